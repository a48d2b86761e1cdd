"""Planted faults in our own trainers, and what a profile said of them beside what was measured. No test depends on a time."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` is no part of the installed package

from benchmarks import planted_faults
from benchmarks.faults import ours
from benchmarks.faults.verdicts import judged, measured, metric_of, table
from rlbench import simulate
from rlbench.cli.app import main as rlbench_main
from rlbench.envs.factories import TradingFactory
from rlbench.results import append, load
from rlbench.speedups import Choices
from rlbench.trainers.make import make_trainer
from rlbench.workloads import workload

FAULTS = tuple(ours.PLANTED)


@pytest.fixture(autouse=True)
def threads_as_they_were():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def short_file():
    """A market that is soon read."""
    return TradingFactory(simulate.martingale(400, seed=0), {"episode_length": 60})


@pytest.mark.parametrize("fault", FAULTS)
def test_ours_differ_in_one_thing_and_both_train(fault, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    planted = ours.PLANTED[fault]
    loop = {"loop": "python"} if planted.trainer == "dqn" else {}
    slow_env = planted.slow_env or planted.env
    differ = [
        dict(planted.slots) != dict(planted.healthy_slots), bool(planted.settings), planted.threads != 1, slow_env != planted.env
    ]  # fmt: skip
    assert sum(differ) == 1
    for env, slots, settings in (
        (planted.env, planted.healthy_slots, {}),
        (slow_env, planted.slots, planted.settings),
    ):
        work = workload(env)
        factory = short_file() if env == "minutes" else work.env
        small = {"eval_episodes": 0, "eval_frequency": 0}
        small |= (
            {"total_timesteps": 256} if planted.trainer == "ppo" else {"total_timesteps": 140, "learning_starts": 130}
        )
        config = work.config(
            work.preset_for(planted.trainer), planted.trainer, **(planted.base | dict(settings) | small)
        )
        trainer = make_trainer(config, Choices.plain().replace(**loop, **slots), factory, "cpu")
        history = trainer.train(progress=False)
        trainer.close()
        assert history.updates > 0


def test_the_sleeping_env_waits_in_each_step(monkeypatch):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    env = ours.sleeping()
    env.reset(seed=0)
    for _ in range(3):
        env.step(0)
    assert waits == [0.03] * 3


@pytest.mark.parametrize("fault", FAULTS)
def test_the_command_line_takes_what_is_planted(fault, monkeypatch):
    asked = {}

    def profile_trainer(config, choices, env, device, seconds, **options):
        asked.update(config=config, choices=choices.to_dict(), threads=torch.get_num_threads(), seconds=seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr("rlbench.profiling.profile_trainer", profile_trainer, raising=False)
    planted = ours.PLANTED[fault]
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        raise SystemExit(rlbench_main(["profile", *planted.arguments(), "--seconds", "3", "--json"]))
    assert asked["threads"] == planted.threads and asked["seconds"] == 3
    for name, value in (planted.base | dict(planted.settings)).items():
        assert getattr(asked["config"], name) == value
    for slot, variant in planted.slots.items():
        assert asked["choices"][slot] == variant
    assert planted.trainer == "ppo" or asked["choices"]["loop"] == "python"


def test_what_counts_with_a_batch_of_one_is_what_was_learnt():
    assert [metric_of(fault) for fault in FAULTS] == ["sps"] * (len(FAULTS) - 1) + ["learnt_per_s"]


def test_gains_are_medians_of_pairs():
    """Gains of 2, 4 and 8, of which the median is 4; the control's are 1, 1/2 and 1."""
    found = measured({"slow": [1.0, 2.0, 1.0], "healthy": [2.0, 8.0, 8.0], "again": [2.0, 4.0, 8.0]})
    assert found["gain"] == pytest.approx(4)
    assert (found["gain_low"], found["gain_high"]) == (pytest.approx(2), pytest.approx(8))
    assert (found["aa_low"], found["aa_high"]) == (pytest.approx(0.5), pytest.approx(1))


def document(*advice, device="cpu"):
    names = ("name", "kind", "predicted_gain")
    phases = [("env", 0.6, ""), ("other", 0.1, ""), ("forward", 0.29, ""), ("backward", 0.5, "update")]
    return {
        "device": device,
        "advice": [dict(zip(names, each, strict=True)) for each in advice],
        "phases": [{"name": name, "seconds": 0.0, "share": share, "part_of": whole} for name, share, whole in phases],
    }


def test_a_verdict_by_hand():
    told = document(("too_wide", "fault", 6.0), ("env_waits", "fault", 3.0), ("a_gpu", "against", None))
    found = judged(told, "env_waits", 2.0)
    assert (found["found"], found["place"], found["first"]) == (True, 2, "too_wide")
    assert (found["predicted"], found["factor"], found["within"]) == (3.0, 1.5, True)
    assert found["other_share"] == 0.1
    assert found["shares_sum"] == pytest.approx(0.99)  # a part of a fused phase is in no sum
    assert judged(told, "too_wide", 9.5)["factor"] == pytest.approx(9.5 / 6)
    assert judged(told, "too_wide", 9.5)["within"] is False


@pytest.mark.parametrize(
    "told",
    [document(), document(("env_waits", "against", 3.0)), document(("too_wide", "fault", 3.0))],
    ids=["nothing", "only against", "another"],
)
def test_what_is_not_advised_is_not_found(told):
    found = judged(told, "env_waits", 3.0)
    assert (found["found"], found["place"], found["predicted"]) == (False, None, None)
    assert (found["factor"], found["within"]) == (None, False)


def test_advice_without_a_number_is_found_but_predicts_nothing():
    found = judged(document(("env_waits", "fault", None)), "env_waits", 3.0)
    assert (found["found"], found["place"], found["factor"], found["within"]) == (True, 1, None, False)


def fake_rates(script, fault, env, seconds):
    """Twice as fast without its fault, 100 times in transitions learnt; the market is a slower env."""
    base = 10.0 if env == "market" else 100.0
    healthy = fault == "none"
    return {"sps": base * (2 if healthy else 1), "learnt_per_s": base * (100 if healthy else 1)}


def test_a_target_is_measured_and_summed_up(monkeypatch, tmp_path):
    gains = {"env_waits": 2.5, "recomputed_features": 4.0, "small_batch": 100.0}
    monkeypatch.setattr(
        planted_faults, "profiled", lambda job, fault, seconds: document((fault, "fault", gains[fault]))
    )
    monkeypatch.setattr(planted_faults, "script_rates_once", fake_rates)
    job = planted_faults.Job("by hand", tuple(gains))
    units = []
    rows = planted_faults.measure(job, 2, True, units.append)
    assert len(units) == planted_faults.units([job], 2) == 3 + 2 * (3 + 4)
    assert [row["fault"] for row in rows] == list(gains)
    assert [row["gain"] for row in rows] == pytest.approx([2, 2, 100])
    assert [row["within"] for row in rows] == [True, False, True]
    assert all(len(row["rates"][side]) == 2 for row in rows for side in ("slow", "healthy", "again"))
    text = table(rows)
    assert "by hand: 3 of 3 found, 3 first, 2 predicted within a factor 1.5" in text
    assert "quick: do not cite" in text
    assert len(load(append(tmp_path / "rows.jsonl", rows))) == 3


def test_one_of_ours_is_timed_on_both_sides():
    rates = planted_faults.our_rates(ours.PLANTED["small_batch"], "small_batch", 2, 0.02)
    assert {side: len(values) for side, values in rates.items()} == {"slow": 2, "healthy": 2, "again": 2}
    assert all(value > 0 and math.isfinite(value) for values in rates.values() for value in values)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA")
def test_what_needs_cuda_is_left_out_without_it(capsys):
    assert all("round_trip" not in job.faults for job in planted_faults.make_jobs())
    with pytest.raises(SystemExit):
        planted_faults.main(["--fault", "round_trip"])
    assert "--fault round_trip needs CUDA" in capsys.readouterr().err


def test_with_cuda_the_script_by_hand_copies_there_and_back(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for chosen in ((), ("round_trip",)):
        jobs = planted_faults.make_jobs(chosen)
        assert [job.name for job in jobs if "round_trip" in job.faults] == ["by hand"]
    assert [job.name for job in jobs] == ["by hand"]


def test_faults_are_chosen_without_losing_the_others():
    chosen = planted_faults.make_jobs(["too_wide"])
    assert {job.faults for job in chosen} == {("too_wide",)}
    everything = planted_faults.make_jobs()
    assert all(set(job.faults) - {"round_trip"} == set(FAULTS) for job in everything)
    assert [job.name for job in everything if job.name != "Stable-Baselines3"] == ["by hand", "ours"]


def test_a_profile_that_fails_says_what_it_said():
    with pytest.raises(RuntimeError, match="no script"):
        planted_faults.profile(["gone.py"], [], 1.0)
