"""Every executor steps the same episodes, stores real transitions, and hands out what nobody overwrites (cases 1 and 9)."""

import numpy as np
import pytest
import torch
from executor_envs import Counting
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rlbench import simulate
from rlbench.buffers import RingNumpy, RowSpec, one_step
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.batch_trading_env import BatchTradingEnv
from rlbench.envs.executors import EXECUTORS, prepare_source
from rlbench.envs.factories import TradingFactory
from rlbench.envs.make import make_collector
from rlbench.envs.one_by_one import env_seed
from rlbench.envs.source import EnvSource, env_source
from rlbench.envs.spaces import EnvError
from rlbench.envs.vector import VectorCollector
from rlbench.native.build import BuildError, find_compiler
from rlbench.random import Purpose
from rlbench.speedups import environments

FIELDS = ("obs", "reward", "next_obs", "terminated", "truncated")
CPU, SEED = torch.device("cpu"), 3
OTHERS = [name for name in EXECUTORS if name != "one_by_one"]


def trading():
    return TradingFactory(simulate.martingale(120, seed=3), {"window": 3, "episode_length": 9, "fee": 0.01})


def walk(env, executor, num_envs=2, steps=150, seed=5):
    """What random actions give, as handed out and as copied at once; and the (return, length) of all episodes."""
    if executor == "native":
        try:
            find_compiler()
        except BuildError as error:
            pytest.skip(str(error))
    collector = make_collector(env, num_envs, seed, environments=executor)
    rng, kept, copied, episodes = np.random.default_rng(0), [], [], []
    try:
        for _ in range(steps):
            assert collector.obs.dtype == np.float32 and collector.obs.shape == (num_envs, collector.spec.obs_size)
            row = collector.step(rng.integers(0, collector.spec.num_actions, num_envs))
            kept.append([getattr(row, name) for name in FIELDS])
            copied.append([np.copy(field) for field in kept[-1]])
            episodes += collector.finished
    finally:
        collector.close()
    return kept, copied, episodes, collector


@pytest.mark.parametrize("executor", OTHERS)
@pytest.mark.parametrize("make", [lambda: "CartPole-v1", trading], ids=["CartPole", "trading"])
def test_the_same_episodes_for_the_same_seed(make, executor):
    env = make()
    _, expected, episodes, plain = walk(env, "one_by_one")
    kept, copied, others, collector = walk(env, executor)
    for row, (wanted, handed, at_once) in enumerate(zip(expected, kept, copied, strict=True)):
        for name, one, other, copy in zip(FIELDS, wanted, handed, at_once, strict=True):
            np.testing.assert_array_equal(other, copy, err_msg=f"{name} of step {row} was overwritten")
            if name == "reward":
                assert (np.abs(other - one) <= 4 * np.spacing(np.abs(one))).all()
            else:
                np.testing.assert_array_equal(other, one, err_msg=f"{name} of step {row}")
    assert len(episodes) > 8 and [length for _, length in episodes] == [length for _, length in others]
    np.testing.assert_allclose([r for r, _ in others], [r for r, _ in episodes], rtol=1e-12)
    assert collector.name == plain.name and collector.spec == plain.spec


def expected_of(length, steps):
    """The first `steps` real transitions (obs, next_obs, truncated) of one Counting env, by plain counting."""
    out, episode, t = [], 1, 0
    for _ in range(steps):
        out.append((10.0 * episode + t, 10.0 * episode + t + 1, t + 1 == length))
        episode, t = (episode + 1, 0) if t + 1 == length else (episode, t + 1)
    return out


@pytest.mark.parametrize("executor", ["one_by_one", "sync", "async"])
def test_eight_envs_that_overwrite_their_arrays_and_end_at_different_times(executor):
    lengths = [1 + env_seed(SEED, Purpose.RESET, i) % 7 for i in range(8)]
    assert len(set(lengths)) > 4
    collector, calls = make_collector(Counting, 8, SEED, environments=executor), 20
    replay = RingNumpy(RowSpec(1, 3, masked=True), 1000)
    try:
        for _ in range(calls):
            assert collector.masked and [int(o) % 2 for o in collector.obs[:, 0]] == [m[0] for m in collector.mask]
            rows = one_step(collector.step(np.zeros(8, np.int64)), 0.9)
            assert len(rows.action) == 8
            replay.add(rows)
    finally:
        collector.close()
    rows = replay.sample(np.arange(8 * calls))
    found = [
        (float(o[0]), float(n[0]), bool(t)) for o, n, t in zip(rows.obs, rows.next_obs, rows.truncated, strict=True)
    ]
    assert sorted(found) == sorted(row for n in lengths for row in expected_of(n, calls))
    assert len(replay) == 8 * calls  # what frame counters count: no step is lost to a reset
    for next_obs, mask in zip(rows.next_obs, rows.next_mask, strict=True):
        assert mask.tolist() == [(int(next_obs[0]) % 10 + k) % 2 for k in range(3)]


def test_a_vector_env_is_stepped_as_it_is():
    envs = SyncVectorEnv([Counting] * 3, autoreset_mode=AutoresetMode.NEXT_STEP)
    collector = make_collector(envs, 1, 0)
    assert isinstance(collector, VectorCollector) and collector.envs is envs


def test_what_has_no_batched_counterpart_says_so():
    for executor in ("batched", "native"):
        with pytest.raises(EnvError, match=r"no batched counterpart: step it one_by_one, sync or async"):
            make_collector("MountainCar-v0", 2, 0, environments=executor)


def test_a_batch_env_alone_has_no_single_envs():
    poles = EnvSource(None, "BatchCartPole", None, batch=lambda n, seed, device: BatchCartPole(n, device, seed))
    assert make_collector(poles, 2, 0, environments="batched").obs.shape == (2, 4)
    for executor in ("one_by_one", "sync", "async"):
        with pytest.raises(EnvError, match="is a batch env with no single ones: step it batched or native"):
            make_collector(poles, 2, 0, environments=executor)
        assert "accepted here: batched, native" in environments.SPEEDUP.requires(executor, None, None, CPU, poles)


def test_a_batch_env_may_end_where_the_next_episode_starts():
    """A flat account whose last bar is the one that it starts from next: equal observations, nothing overwritten."""
    market = simulate.martingale(6, seed=0)
    collector = make_collector(BatchTradingEnv(market, 16, episode_length=2, seed=1), 1, 0)
    met = 0
    for _ in range(20):
        row = collector.step(np.ones(16, np.int64))
        met += (np.all(row.next_obs == collector.obs, axis=1) & row.truncated).sum()
    assert met


@pytest.mark.parametrize("arguments", [{}, {"window": 3, "observation_clip": 0.5}, {"episode_length": None}])
@pytest.mark.parametrize(
    "slow", [("per_step", "in_memory"), ("table", "read_each_episode"), ("per_step", "read_each_episode")]
)
def test_slower_trading_envs_give_the_same_to_the_last_bit(arguments, slow):
    source = env_source(TradingFactory(simulate.martingale(70, seed=1), {"episode_length": 7, **arguments}))
    prepared = prepare_source(source, *slow)
    assert type(prepared.make()) is not type(source.make())
    steps = 20 if arguments else 40
    expected, found = (walk(each, "one_by_one", 2, steps)[1] for each in (source, prepared))
    for one, other in zip(expected, found, strict=True):
        for field, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(field, same)


def test_preparing_changes_nothing_where_there_is_nothing_to_change():
    for source in (env_source("CartPole-v1"), env_source(trading())):
        assert prepare_source(source) is source
    source = env_source("CartPole-v1")
    assert prepare_source(source, "per_step", "read_each_episode") is source


def test_the_price_file_goes_with_its_factory():
    prepared = prepare_source(env_source(trading()), market_io="read_each_episode")
    path = prepared.make.file.path
    assert path.is_file()
    del prepared
    assert not path.exists()
