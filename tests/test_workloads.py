"""Workloads: from names and prices to envs, each part of a market in its place."""

import gymnasium
import numpy as np
import pandas as pd
import pytest

from rlbench.config import DQNConfig
from rlbench.envs.spaces import EnvError
from rlbench.prices.errors import PriceError
from rlbench.workloads import workload

MODULE = """
import gymnasium

def make():
    return gymnasium.make("CartPole-v1")

def on_market(market, window=1):
    from rlbench.envs.trading import TradingEnv
    return TradingEnv(market, positions=(0, 1), window=window, episode_length=5)
"""


@pytest.fixture
def prices():
    """100 bars whose closes tell their place: 100.0, 101.0, …"""
    close = 100.0 + np.arange(100)
    index = pd.date_range("2024-01-01", periods=100, freq="1D", tz="UTC", name="time")
    columns = {"open": close, "high": close, "low": close, "close": close, "volume": np.ones(100)}
    return pd.DataFrame(columns, index=index)


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "reader_envs.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "reader_envs"


@pytest.mark.parametrize(
    ("name", "preset"), [(None, "cartpole"), ("CartPole-v1", "cartpole"), ("MountainCar-v0", "default")]
)
def test_an_id_comes_with_settings_that_suit(name, preset):
    work = workload(name)
    assert work.preset == preset
    assert work.test_env is None and work.splits is None and work.eval_env is None
    assert work.test(lambda obs, mask: None, 5, 1) is None
    assert work.env().action_space.n >= 2


def test_settings_given_go_before_the_preset():
    work = workload("CartPole-v1")
    assert work.preset == "cartpole" and work.config() == DQNConfig.preset("cartpole")
    assert work.config(train_frequency=7).train_frequency == 7
    assert work.config("default").train_frequency == 10


@pytest.mark.parametrize("name", ["ou", "sine", "martingale"])
def test_simulated_markets_are_split_in_time(name):
    work = workload(name)
    train, validation, test = work.splits
    assert [len(part) for part in work.splits] == [12_000, 4_000, 4_000]
    assert train.time[-1] < validation.time[0] and validation.time[-1] < test.time[0]
    markets = [make().market for make in (work.env, work.eval_env, work.test_env)]
    assert markets == [train, validation, test]
    assert work.preset == "trading"


def test_prices_make_a_trading_workload_with_each_part_in_its_place(prices):
    work = workload(prices=prices)
    assert work.name == "trading"
    firsts = [float(make().market.close[0]) for make in (work.env, work.eval_env, work.test_env)]
    assert firsts == [100.0, 160.0, 180.0]
    assert work.test_env().episode_length == 19  # 20 bars leave 19 steps after the first


def test_env_options_reach_the_trading_env(prices):
    env = workload(prices=prices, env_options={"fee": 0.01, "window": 3}).env()
    assert (env.fee, env.window, env.episode_length) == (0.01, 3, 57)


def test_the_test_part_is_scored_beside_buy_and_hold(prices):
    work = workload(prices=prices, env_options={"fee": 0.0})
    long = work.env().positions.index(1.0)
    found = work.test(lambda obs, mask: np.full(len(obs), long), 3, seed=1)
    # 20 bars from 180 to 199, all held: every episode earns log(199 / 180).
    assert found["mean_return"] == pytest.approx(np.log(199 / 180))
    assert found["buy_and_hold"] == pytest.approx(np.log(199 / 180))
    flat = work.env().positions.index(0.0)
    assert work.test(lambda obs, mask: np.full(len(obs), flat), 3, seed=1)["mean_return"] == 0.0


def test_real_bars_by_ticker():
    work = workload(ticker="IBM")
    assert work.name == "trading" and "IBM" in work.splits.train.name


def test_a_factory_by_name(module):
    work = workload(f"{module}:make")
    assert work.env().spec.id == "CartPole-v1"
    assert work.preset == "default"


def test_a_readers_env_is_given_the_market(module, prices):
    work = workload(f"{module}:on_market", prices=prices, env_options={"window": 2})
    env = work.test_env()
    assert float(env.market.close[0]) == 180.0
    assert env.positions == (0.0, 1.0) and env.window == 2
    assert work.test(lambda obs, mask: np.ones(len(obs), int), 2, seed=1)["buy_and_hold"] is not None


def test_an_id_that_takes_a_market_is_given_it(prices):
    from rlbench.envs.trading import TradingEnv

    class Renamed(TradingEnv):
        def __init__(self, market, **kwargs):
            super().__init__(market, episode_length=4, **kwargs)

    gymnasium.register("tests/Renamed-v0", entry_point=Renamed)
    try:
        work = workload("tests/Renamed-v0", prices=prices)
        assert float(work.eval_env().unwrapped.market.close[0]) == 160.0
    finally:
        del gymnasium.registry["tests/Renamed-v0"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "CartPole-v1", "prices": "x"}, "market="),
        ({"name": "ou", "prices": "x"}, "takes no prices"),
        ({"name": "ou", "ticker": "IBM"}, "no ticker"),
        ({"name": "CartPole-v1", "ticker": "IBM"}, "no ticker"),
        ({"name": "CartPole-v1", "env_options": {"fee": 0.1}}, "fee"),
        ({"name": "tradin"}, "trading"),
        ({"name": "NoSuchEnv-v3"}, "NoSuchEnv"),
        ({"name": "no_such_module:make"}, "no_such_module"),
    ],
)
def test_refusals(arguments, words, prices):
    if "prices" in arguments:
        arguments = {**arguments, "prices": prices}
    with pytest.raises(EnvError, match=words):
        workload(**arguments)


def test_too_few_bars_and_unknown_tickers_are_refused_at_once(prices):
    with pytest.raises(PriceError, match="bars"):
        workload(prices=prices.head(5))
    with pytest.raises(PriceError, match="AAPL"):
        workload(ticker="NONE")
