"""The benchmarks of parts: counts of products, calls that do as much, rows and tables; no test depends on a time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` is no part of the installed package

from benchmarks import all as everything
from benchmarks import env_steps, gym_trading, iteration, update_step
from benchmarks.text import interval, number
from benchmarks.workloads import RARE, settings, trading
from rlbench.native.build import BuildError, find_compiler
from rlbench.results import append, load
from rlbench.timing import Paired


def has_compiler() -> bool:
    try:
        return bool(find_compiler())
    except BuildError:
        return False


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
needs_market = pytest.mark.skipif(
    importlib.util.find_spec("gym_trading_env") is None, reason="Gym-Trading-Env is not installed"
)
CONFIG = settings(2_000, num_envs=10, **RARE)  # 4-120-84-2 on CartPole


def test_products_of_an_iteration_by_hand():
    """4-120-84-2: a forward pass of one row is 2·(480 + 10,080 + 168) = 21,456 operations, the first layer's 960."""
    found = iteration.products(CONFIG, 4, 2)
    assert [p.name for p in found] == [
        "act 4-120", "act 120-84", "act 84-2", "forward 4-120", "forward 120-84", "forward 84-2",
        "weights 84-2", "weights 120-84", "weights 4-120", "inputs 84-2", "inputs 120-84",
    ]  # fmt: skip
    assert [p.times for p in found] == [1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1]
    flops = sum(2 * p.rows * p.inner * p.columns * p.times for p in found)
    assert flops == 10 * 21_456 + 128 * (2 * 21_456 + 21_456 + 21_456 - 960)
    double = iteration.products(CONFIG.replace(double_dqn=True), 4, 2)
    assert [p.times for p in double if p.name.startswith("forward")] == [3, 3, 3]


def test_products_are_of_the_shapes_that_they_are_counted_with():
    config = CONFIG.replace(num_envs=3, batch_size=5, hidden=(7, 6))
    shapes = {p.name: tuple(iteration.product_call(p, 1)().shape) for p in iteration.products(config, 4, 2)}
    assert shapes == {
        "act 4-7": (3, 7), "act 7-6": (3, 6), "act 6-2": (3, 2),
        "forward 4-7": (5, 7), "forward 7-6": (5, 6), "forward 6-2": (5, 2),
        "weights 6-2": (2, 6), "weights 7-6": (6, 7), "weights 4-7": (7, 4), "inputs 6-2": (5, 6), "inputs 7-6": (5, 7),
    }  # fmt: skip


def test_products_timed_alone_are_summed_by_how_often_they_are_done():
    found = [iteration.Product("a", 1, 1, 1, 2), iteration.Product("b", 1, 1, 1, 1)]
    paired = Paired(
        ("baseline", "the iteration", "a", "b", "baseline again"),
        np.array([[100.0, 300.0, 0.25, 0.5, 200.0]]),
        (1, 1, 1, 1, 1),
        {},
    )
    times = {name: seconds.tolist() for name, seconds in iteration.product_times(paired, found).items()}
    assert times == {"one after another": [1.0], "each alone, summed": [1.0], "one after another, again": [2.0]}


@needs_compiler
def test_a_call_of_the_loop_does_as_many_updates_as_iterations():
    config = CONFIG.replace(buffer_size=500, total_timesteps=10**9, start_e=0.05, end_e=0.05)
    trainer, call = iteration.iterations(config)
    assert trainer.replay.size == 500
    before = trainer.updates, trainer.env_steps
    call()
    assert (trainer.updates - before[0], trainer.env_steps - before[1]) == (100, 1_000)


@needs_compiler
def test_rows_of_an_iteration(tmp_path):
    job = iteration.jobs()[0]
    small = iteration.Iteration("small", job.config.replace(buffer_size=200, batch_size=8, hidden=(8,)))
    rows = iteration.measure(small, 2, True, lambda note: None)
    assert [row["side"] for row in rows] == [iteration.IN_A_ROW, iteration.ALONE, iteration.AGAIN]
    for row in rows:
        ratios = [loop / bare for loop, bare in zip(row["round_times"], row["round_products"], strict=True)]
        assert row["ratio"] == pytest.approx(np.sqrt(np.prod(ratios)))  # the median of two, on a logarithmic scale
    assert iteration.format_rows(rows).endswith("quick: do not cite")
    assert len(load(append(tmp_path / "rows.jsonl", rows))) == 3


@needs_compiler
def test_sides_of_an_update_learn_the_same():
    job = update_step.Update((5, 8, 8, 3), 6)
    assert job.name == "5-8-8-3, batch 6"
    losses = [[call().loss.item() for _ in range(3)] for call in update_step.updates(job).values()]
    for other in losses[1:]:
        assert other == pytest.approx(losses[0], rel=1e-4)
    assert losses[0][0] > losses[0][2]


@needs_compiler
def test_rows_of_an_update_carry_its_share_of_the_peak(monkeypatch):
    monkeypatch.setattr(update_step, "peak_sizes", lambda: (16, 32))
    job = update_step.Update((3, 5, 2), 1)
    rows = update_step.measure(job, 2, True, lambda note: None)
    assert [row["side"] for row in rows] == ["eager, Adam", "eager, fused Adam", "native", "eager, Adam again"]
    for row in rows:
        assert row["flops"] == 3 * 50 + 50 + 20
        shares = [220 / s / peak for s, peak in zip(row["round_times"], row["round_peaks"], strict=True)]
        assert row["share"] == pytest.approx(sum(shares) / 2)
    assert rows[0]["ratio"] is None


@needs_compiler
def test_calls_of_our_envs_step_every_account():
    calls = {name: make(7) for name, make in env_steps.SIDES.items()}
    assert len(calls["one_by_one"]().reward) == 7
    assert calls["native"]()[1].shape == (7,)
    assert calls["batched, eager"]() is None
    drawn = env_steps.random_actions(7)
    assert {int(action) for row in drawn for action in row} == {0, 1, 2}


@needs_market
def test_the_peer_trades_the_same_prices_and_features():
    ours = trading()
    peer = gym_trading.peer_like(ours)
    assert peer.observation_space.shape == ours.observation_space.shape
    first, _ = peer.reset()
    bar = peer._idx
    np.testing.assert_array_equal(first[:-2], ours.reset(options={"start": bar})[0][:-2])
    rewards, steps, ended = [[], []], 0, False
    actions = np.random.default_rng(0).integers(0, 3, ours.episode_length).tolist()
    for action in actions:
        after, reward, done, truncated, _ = peer.step(action)
        obs, gained, over, cut, _ = ours.step(action)
        rewards[0].append(reward), rewards[1].append(gained)
        np.testing.assert_array_equal(after[:-2], obs[:-2])
        steps, ended = steps + 1, done or truncated
        assert ended == (over or cut)
    assert ended
    assert steps == ours.episode_length
    assert rewards[0] == pytest.approx(rewards[1], abs=1e-9)


@needs_market
@needs_compiler
def test_rows_of_stepping():
    rows = env_steps.measure(env_steps.Stepping(5), 2, True, lambda note: None)
    assert [row["side"] for row in rows] == [env_steps.PEER, *env_steps.SIDES, env_steps.PEER_AGAIN]
    native = rows[3]
    ratios = [a / b for a, b in zip(rows[0]["round_times"], native["round_times"], strict=True)]
    assert native["ratio"] == pytest.approx(np.sqrt(np.prod(ratios)))
    assert native["features"] == 10
    assert env_steps.format_rows(rows).endswith("quick: do not cite")


def test_settings_the_peer_has_no_equal_for_are_refused():
    env = trading()
    env.slippage = 0.01
    with pytest.raises(ValueError, match="no slippage"):
        gym_trading.peer_like(env)


def test_all_benchmarks_have_the_options_that_are_handed_on(capsys):
    found = everything.commands(everything.parse(["--quick"]))
    assert [command[2] for command in found] == [f"benchmarks.{module}" for module in everything.MODULES]
    assert all(command[3:] == ["--quick"] for command in found)
    assert len(everything.commands(everything.parse(["--only", "update"]))) == 1
    with pytest.raises(SystemExit, match="to_475"):
        everything.commands(everything.parse(["--only", "no such"]))


@needs_compiler
def test_a_command_writes_rows_and_prints_a_table(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(update_step, "peak_sizes", lambda: (16,))
    monkeypatch.setattr(update_step, "JOBS", (update_step.Update((3, 4, 2), 2),))
    threads = torch.get_num_threads()
    try:
        assert update_step.main(["--quick", "--rounds", "1"]) == 0
    finally:
        torch.set_num_threads(threads)
    out = capsys.readouterr().out
    assert "3-4-2, batch 2" in out
    assert len(load(next(tmp_path.glob("reports/benchmark-*")))) == 4


def test_numbers_as_text():
    assert [number(v) for v in (None, float("nan"), 0.5, 12.345, 1234.5)] == ["-", "-", "0.500", "12.35", "1,234"]
    assert interval(1.0, 2.0) == "[1.00, 2.00]"
    assert interval(None, None) == "-"
