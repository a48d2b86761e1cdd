"""Bad arguments of the trading env are refused with one error that names them."""

import math

import numpy as np
import pytest

from rlbench.envs.trading import TradingEnv


@pytest.mark.parametrize(
    ("kwargs", "name"),
    [
        ({"positions": ()}, "positions"),
        ({"positions": (0, 1, 1)}, "positions"),
        ({"positions": (0, math.nan)}, "positions"),
        ({"positions": (0, math.inf)}, "positions"),
        ({"positions": ("long", "flat")}, "positions"),
        ({"positions": 3}, "positions"),
        ({"fee": -1e-4}, "fee"),
        ({"fee": 1.0}, "fee"),
        ({"fee": math.nan}, "fee"),
        ({"fee": "low"}, "fee"),
        ({"borrow_rate": -0.1}, "borrow_rate"),
        ({"borrow_rate": 1}, "borrow_rate"),
        ({"slippage": -0.1}, "slippage"),
        ({"slippage": 1.5}, "slippage"),
        ({"window": 0}, "window"),
        ({"window": 301}, "window"),
        ({"window": 300}, "window"),
        ({"window": 2.0}, "window"),
        ({"episode_length": 0}, "episode_length"),
        ({"episode_length": 300}, "episode_length"),
        ({"episode_length": 296, "window": 5}, "episode_length"),
        ({"episode_length": True}, "episode_length"),
        ({"initial_equity": 0.0}, "initial_equity"),
        ({"initial_equity": math.inf}, "initial_equity"),
        ({"observation_clip": -1.0}, "observation_clip"),
        ({"random_start": 1}, "random_start"),
        ({"reward": "log"}, "reward"),
        ({"render_mode": "human"}, "render_mode"),
    ],
)
def test_bad_arguments_are_named(random_market, kwargs, name):
    with pytest.raises(ValueError, match=rf"^{name}=.*accepted"):
        TradingEnv(random_market(), **kwargs)


def test_the_longest_episode_is_accepted(random_market):
    env = TradingEnv(random_market(), window=5, episode_length=295)
    env.reset()
    assert env.history()["bar"].tolist() == [4]


@pytest.mark.parametrize("bad", [math.nan, 0.0, -1.0, math.inf])
def test_bad_prices_are_refused_with_their_bar(whole, bad):
    with pytest.raises(ValueError, match=r"market\.close\[2\]"):
        whole([1.0, 2.0, bad, 3.0])


def test_bad_markets_are_refused(whole, random_market):
    with pytest.raises(ValueError, match=r"market is a ndarray"):
        TradingEnv(np.ones(5))
    market = random_market()
    market.features[7, 2] = math.nan
    with pytest.raises(ValueError, match=r"market\.features\[7, 2\] is nan"):
        TradingEnv(market)
    market.features = market.features[:-1]
    with pytest.raises(ValueError, match=r"market\.features has shape"):
        TradingEnv(market)
    with pytest.raises(ValueError, match=r"market\.close has shape"):
        whole([1.0])


@pytest.mark.parametrize("action", [-1, 3])
def test_unknown_actions_are_refused(random_market, action):
    env = TradingEnv(random_market())
    env.reset()
    with pytest.raises(ValueError, match=rf"action={action}"):
        env.step(action)


@pytest.mark.parametrize("options", [{"start": -1}, {"start": 44}, {"start": 1.0}, {"begin": 3}])
def test_bad_reset_options_are_refused(random_market, options):
    with pytest.raises(ValueError, match="accepted"):
        TradingEnv(random_market(), episode_length=256).reset(options=options)


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, "much", [1.0, 2.0]])
def test_a_custom_reward_that_is_no_number_is_refused_with_its_bar(random_market, bad):
    env = TradingEnv(random_market(), reward=lambda state: bad, random_start=False)
    env.reset()
    with pytest.raises(ValueError, match="reward= returned .* at bar 1; accepted"):
        env.step(0)
