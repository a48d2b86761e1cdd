"""The same valuations as an independent package, gym-trading-env 0.3.5."""

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

CHILD = """
import json, sys, warnings
import pandas as pd
from gym_trading_env.environments import TradingEnv
curves = []
for case in json.load(sys.stdin):
    close = case["close"]
    index = pd.date_range("2024-01-01", periods=len(close), freq="D")
    df = pd.DataFrame({name: close for name in ("open", "high", "low", "close")}, index=index)
    df["feature_none"] = 0.0
    env = TradingEnv(df, positions=case["positions"], trading_fees=case["fee"], borrow_interest_rate=case["rate"],
                     initial_position=0, portfolio_initial_value=1000, verbose=0)
    env.reset()
    curve = [1000.0]
    for action in case["actions"]:
        _, _, done, truncated, info = env.step(action)
        curve.append(float(info["portfolio_valuation"]))
        if done:
            break
    curves.append(curve)
json.dump(curves, sys.stdout)
"""


def reference_curves(cases):
    """Valuations of the cases by the other package, in a child process: on import it makes every warning an error."""
    if find_spec("gym_trading_env") is None:
        pytest.skip("gym-trading-env 0.3.5 is not installed (requirements-dev.txt)")
    result = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_same_valuations_as_gym_trading_env(whole, equities):
    generator = np.random.default_rng(4)
    cases = []
    for fee in (0.0, 1e-4, 0.005, 0.05):
        for positions in ([0, 1], [-1, 0, 1], [-2, -0.7, 0, 0.3, 1, 2.5]):
            for rate in (0.0, 0.01):
                steps = 60 if rate == 0.0 else 1  # with interest the first step is where the two agree
                close = 80.0 * np.exp(np.cumsum(generator.normal(0.0, 0.02, steps + 1)))
                actions = generator.integers(len(positions), size=steps)
                cases.append({"close": close.tolist(), "positions": positions, "fee": fee, "rate": rate})
                cases[-1]["actions"] = actions.tolist()
    for case, expected in zip(cases, reference_curves(cases), strict=True):
        kwargs = {"fee": case["fee"], "positions": case["positions"], "borrow_rate": case["rate"]}
        ours = equities(whole(case["close"], initial_equity=1000.0, **kwargs), case["actions"])
        assert len(ours) == len(expected)
        assert ours == pytest.approx(expected, rel=1e-9), kwargs
