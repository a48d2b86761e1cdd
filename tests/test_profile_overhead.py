"""The benchmark of what watching costs: its two sides do the same, and its verdict by hand. No test depends on a time."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import gymnasium
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` is no part of the installed package

from benchmarks import profile_overhead
from benchmarks.blocks import ScriptInBlocks
from benchmarks.profile_overhead import Job
from rlbench.phases import current
from rlbench.results import load


@pytest.fixture(autouse=True)
def threads_as_they_were():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("watched", ["clock", "trace"])
def test_a_training_of_ours_goes_on_watched_and_unwatched(watched):
    train = profile_overhead.Ours("plain", 0.1)
    for plan in (None, Job("plain", watched).plan, None):
        assert train(plan) > 0
    train.close()
    assert current.clock is None


@pytest.mark.parametrize("watched", ["clock", "trace"])
def test_the_script_by_hand_goes_on_watched_and_unwatched(watched, capsys):
    argv, make, step = sys.argv, gymnasium.make, torch.optim.Adam.step
    train = profile_overhead.ByHand(200)
    for plan in (None, Job("by hand", watched).plan, None):
        assert train(plan) > 0
    train.close()
    assert capsys.readouterr().out == ""  # what the script says is not the benchmark's
    assert sys.argv is argv and gymnasium.make is make and torch.optim.Adam.step is step
    assert current.clock is None


def test_a_block_too_short_for_a_trace_is_an_error():
    train = profile_overhead.ByHand(1)
    with pytest.raises(RuntimeError, match="needs more steps"):
        train(Job("by hand", "trace").plan)
    train.close()


SCRIPT = """
import gymnasium
env = gymnasium.make("CartPole-v1")
for step in range(7):
    env.reset()
    env.step(0)
    print(step, flush=True)
"""


def test_a_block_is_so_many_steps_within_what_watches(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    script, seen = ScriptInBlocks(str(tmp_path / "script.py"), (), 2), []

    @contextlib.contextmanager
    def watch():
        seen.append(script.env_steps)
        yield "watching"
        seen.append(script.env_steps)

    spent, told = script.block(3, watch)
    assert told == "watching" and spent > 0 and seen == [2, 5]
    assert script.block(1)[1] is None
    with pytest.raises(RuntimeError, match="its last line was run"):
        script.block(9)


def test_a_script_that_fails_says_so(tmp_path):
    (tmp_path / "script.py").write_text("import gymnasium\ngymnasium.make('no such env')")
    with pytest.raises(RuntimeError, match="no such env"):
        ScriptInBlocks(str(tmp_path / "script.py"), (), 2).block(1)


def test_a_block_begins_by_looking_away_where_looking_was_done_ahead():
    windows = profile_overhead.Continued(price_s=0.003)
    assert windows.look_s() > 0
    windows.looked(1.0, 10)  # 3 % of that, ten times what it may take: enough for 10 s, and 2 s may be done ahead
    assert windows.look_s() == 0.0
    windows.looked_away(6.9)
    assert windows.look_s() == 0.0
    windows.looked_away(0.2)
    assert windows.look_s() > 0


def planted(monkeypatch, watched_s):
    """A step that takes 1 s, and so long where it is watched; of rounds, the first is the warm-up."""
    asked = []

    class Train:
        def __init__(self, *of_what):
            pass

        def __call__(self, plan):
            asked.append(plan)
            return 1.0 if plan is None else watched_s

        def close(self):
            pass

    monkeypatch.setattr(profile_overhead, "Ours", Train)
    monkeypatch.setattr(profile_overhead, "ByHand", Train)
    return asked


@pytest.mark.parametrize(
    ("watched", "takes", "met"),
    [("clock", 1.01, True), ("clock", 1.03, False), ("trace", 1.9, True), ("trace", 2.1, False)],
)
def test_targets_by_hand(monkeypatch, watched, takes, met):
    asked = planted(monkeypatch, takes)
    units = []
    (row,) = profile_overhead.measure(Job("plain", watched), 5, True, units.append)
    assert len(units) == 6 and len(asked) == 18
    assert sum(plan is not None for plan in asked) == 6
    assert row["ratio"] == pytest.approx(1 / takes)
    assert row["met"] is met
    assert {side: len(values) for side, values in row["step_seconds"].items()} == {"plain": 5, "again": 5, "watched": 5}
    text = profile_overhead.table([row])
    assert f"{takes:.3f} times" in text and ("MISSED" in text) is not met


def test_rows_are_written(monkeypatch, tmp_path, capsys):
    planted(monkeypatch, 1.5)
    monkeypatch.chdir(tmp_path)
    assert profile_overhead.main(["--quick", "--only", "by hand"]) == 0
    rows = load(next(tmp_path.glob("reports/benchmark-*")))
    assert sorted(rows["job"]) == ["by hand, clock", "by hand, trace"]
    assert "quick: do not cite" in capsys.readouterr().out


def test_two_rounds_are_no_verdict(monkeypatch):
    planted(monkeypatch, 1.01)
    (row,) = profile_overhead.measure(Job("plain", "clock"), 2, True, lambda note: None)
    assert row["met"] is None
    assert "too few rounds" in profile_overhead.table([row])
