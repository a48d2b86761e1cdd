"""Slots `environments`, `features` and `market_io`: the same answers, and reasons for what cannot be used."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pandas as pd
import pytest
import torch

from rlbench import market, simulate
from rlbench.batch import Collected
from rlbench.envs.executors import EXECUTORS
from rlbench.envs.factories import TradingFactory
from rlbench.envs.source import env_source
from rlbench.envs.spaces import EnvError
from rlbench.speedups import environments, features, market_io

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
CASES = [
    (module.SPEEDUP, variant)
    for module in (environments, features, market_io)
    for variant in list(module.SPEEDUP.variants)[1:]
]


def names(case):
    return case if isinstance(case, str) else case.name


@pytest.mark.parametrize(("slot", "variant"), CASES, ids=names)
@pytest.mark.parametrize("size", [1, 2, 70])
def test_variant_agrees_with_the_plainest(slot, variant, size):
    if variant == "async" and size != 2:
        pytest.skip("processes are started once")
    if slot.requires(variant, None, None, CPU, None):
        pytest.skip("not here")
    outcomes = [
        slot.exercise(slot.variants[name], slot.make_inputs(size, 1, "cpu")) for name in (slot.plainest, variant)
    ]
    slot.check(*outcomes)
    ends = list(outcomes[0])[3]
    assert ends.any() and not ends.all()


@pytest.mark.parametrize("slot", [environments.SPEEDUP, features.SPEEDUP, market_io.SPEEDUP], ids=names)
def test_what_differs_is_noticed(slot):
    one = list(slot.exercise(slot.variants["table" if slot.name == "features" else list(slot.variants)[-1]],
                             slot.make_inputs(3, 0, "cpu")))  # fmt: skip
    slot.check(one, [field.clone() for field in one])
    for place, name in enumerate(environments.FIELDS):
        wrong = [field.clone() for field in one]
        flat = wrong[place].view(-1)
        if name == "reward":
            flat[5] += 8 * np.spacing(abs(flat[5].item()) or 1e-6)
        else:
            flat[5] = ~flat[5] if flat.dtype == torch.bool else flat[5] + 1e-6
        with pytest.raises(AssertionError, match="reward|" + name):
            slot.check(one, wrong)


def test_rewards_may_differ_by_four_units_in_the_last_place():
    def steps(reward):
        row = np.zeros((1, 1), np.float32)
        flag = np.zeros(1, bool)
        return environments.Steps([Collected(row, np.zeros(1), np.array([reward]), row, flag, flag, None, None)])

    environments.check(steps(1.0), steps(1.0 + 4 * 2.0**-52))
    with pytest.raises(AssertionError, match="1 of 1 rewards"):
        environments.check(steps(1.0), steps(1.0 + 5 * 2.0**-52))


def test_a_measurement_starts_no_crowd_of_processes():
    with pytest.raises(EnvError, match="measured up to 16"):
        environments.bind(EXECUTORS["async"], environments.make_inputs(17, 0, "cpu"))


def make_poles():
    return gymnasium.make("CartPole-v1")


def trading_source(prices=None, **options):
    return env_source(TradingFactory(prices or simulate.martingale(300, seed=0), {"episode_length": 10, **options}))


VECTOR = env_source(gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync"))


@pytest.mark.parametrize(
    ("variant", "device", "env", "words"),
    [
        ("one_by_one", CPU, VECTOR, "is a vector env and is stepped as it is; leave this slot out"),
        ("batched", CPU, env_source("MountainCar-v0"), "MountainCar-v0 has no batched counterpart"),
        ("native", CPU, env_source("MountainCar-v0"), "accepted here: one_by_one, sync, async"),
        ("native", CUDA, trading_source(), "native code runs on the CPU"),
        ("async", CPU, env_source(lambda: make_poles()), "a lambda; a process of its own imports what it runs"),
        ("async", CPU, env_source(make_poles), None),
        ("async", CPU, trading_source(), None),
        ("async", CPU, env_source(make_poles()), None),
        ("sync", CUDA, env_source("MountainCar-v0"), None),
        ("batched", CUDA, trading_source(), None),
        ("batched", CPU, trading_source(reward=len), "no batched counterpart"),
    ],
)
def test_reasons_against_an_executor(variant, device, env, words):
    reason = environments.SPEEDUP.requires(variant, None, None, device, env)
    assert reason is None if words is None else words in reason


def known(prices):
    """A market with a feature that came with it."""
    given = pd.DataFrame({"feature_mine": np.arange(300.0)}, index=prices.prices.index)
    return market.from_prices(prices.prices, name="mine", given=given)


@pytest.mark.parametrize("slot", [features.SPEEDUP, market_io.SPEEDUP], ids=names)
def test_reasons_against_slower_features(slot):
    slowest = slot.plainest
    prices = simulate.martingale(300, seed=0)
    reasons = {
        "is not rlbench's trading env": env_source("CartPole-v1"),
        "were given with it": trading_source(known(prices)),
        "are a later part": trading_source(prices.split().validation),
        "is a SimpleNamespace": trading_source(SimpleNamespace(close=prices.close, features=prices.features)),
    }
    for words, env in reasons.items():
        assert words in slot.requires(slowest, None, None, CPU, env)
    for part in (prices, prices.split().train):
        assert slot.requires(slowest, None, None, CPU, trading_source(part)) is None
    assert slot.requires(slowest, None, None, CPU, None) is None


def test_features_and_executor_must_go_together():
    asked, env = features.SPEEDUP.requires, trading_source()
    for executor in EXECUTORS:
        choices = SimpleNamespace(environments=executor)
        on_device = executor in ("batched", "native")
        assert (asked("table_on_device", choices, None, CPU, env) is None) == on_device
        assert (asked("table", choices, None, CPU, env) is None) == (not on_device)
        assert (asked("per_step", choices, None, CPU, env) is None) == (not on_device)
        assert (market_io.SPEEDUP.requires("read_each_episode", choices, None, CPU, env) is None) == (not on_device)
        assert market_io.SPEEDUP.requires("in_memory", choices, None, CPU, env) is None
