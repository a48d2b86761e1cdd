"""Small markets and episodes that the tests of the envs share; each fixture is a plain function."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rlbench.envs.trading import TradingEnv

sys.path.append(str(Path(__file__).parent / "children"))  # what child processes import


def _toy_market(close, features=None):
    close = np.asarray(close, dtype=np.float64)
    if features is None:
        features = np.zeros((len(close), 1), dtype=np.float32)
    return SimpleNamespace(close=close, features=np.asarray(features, dtype=np.float32))


def _whole(close, **kwargs):
    """An env that runs once through all of `close` from its first bar."""
    kwargs = {"fee": 0.0, "episode_length": None, "random_start": False} | kwargs
    return TradingEnv(_toy_market(close), **kwargs)


def _equities(env, actions):
    """Equity at reset and after each action; stops at the end of the episode."""
    curve = [env.reset()[1]["equity"]]
    for action in actions:
        *_, terminated, truncated, info = env.step(action)
        curve.append(info["equity"])
        if terminated or truncated:
            break
    return curve


def _random_market(bars=300, width=3, seed=0):
    generator = np.random.default_rng(seed)
    close = 50.0 * np.exp(np.cumsum(generator.normal(0.0, 0.02, bars)))
    return _toy_market(close, generator.normal(size=(bars, width)))


@pytest.fixture(scope="session")
def toy_market():
    return _toy_market


@pytest.fixture(scope="session")
def whole():
    return _whole


@pytest.fixture(scope="session")
def equities():
    return _equities


@pytest.fixture(scope="session")
def random_market():
    return _random_market
