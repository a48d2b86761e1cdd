"""Advice against what would slow a run down: numbers that are real, or no advice."""

import math

import pytest
from planted import HEALTHY, evidence, phases

from rlbench import Choices, DQNConfig
from rlbench.envs.source import env_source
from rlbench.profiling.advice import advise
from rlbench.profiling.evidence import TrainerRun
from rlbench.profiling.limits import Light
from rlbench.profiling.records import PhaseTime, ThreadProbe


def against(made):
    return {advice.name: advice for advice in advise(made) if advice.kind == "against"}


def of_ours(shares, steps=2_000, parts=(), **slots):
    """Ten seconds of a training of 2,000 steps with those slots."""
    config = DQNConfig(total_timesteps=steps)
    run = TrainerRun("dqn", config, Choices.plain().replace(**slots), env_source("CartPole-v1"), "cpu")
    return evidence(HEALTHY | {"env": 0.1}, phases=(*phases(shares), *parts), run=run, what="dqn")


def test_advice_against_shows_ratios_below_one():
    light = (Light("forward", 1e4, 1e3, 100.0, 4e-4, 1e-5, "launches", 0.02),)
    found = against(evidence(light=light))
    # 100 operators at 5 µs are 0.5 ms against 0.4 of the step's 10
    assert found["no_gpu_at_this_size"].predicted_gain == pytest.approx(10 / 10.1)
    assert found["no_bfloat16_here"].predicted_gain == pytest.approx(0.9)
    assert "no_worker_processes" not in found, "this env takes a millisecond"
    assert against(evidence(HEALTHY | {"env": 0.01}))["no_worker_processes"].predicted_gain < 1


def test_compiling_a_short_training():
    # 2,000 steps at 10 ms are 20 s, 13 of them updates; half of these saved and 15 s of compiling make 28.5 s
    found = against(of_ours(HEALTHY))["no_compile_for_a_short_run"]
    assert found.predicted_gain == pytest.approx(20 / 28.5) and "take 13 s" in found.evidence
    assert "no_compile_for_a_short_run" in against(of_ours({"env": 0.5, "update": 0.5}, update="native"))
    assert "no_compile_for_a_short_run" not in against(of_ours(HEALTHY, steps=10_000)), "65 s of updates"
    assert "no_compile_for_a_short_run" not in against(of_ours(HEALTHY, update="compiled")), "it is compiled"


@pytest.mark.parametrize("loop", ["native", "fused", "tensors"])
def test_a_loop_in_one_call_has_no_updates_to_judge(loop):
    parts = [PhaseTime("forward", 1.0, 0.5, 9, None, "iterations"), PhaseTime("env", 1.0, 0.5, 9, None, "iterations")]
    found = against(of_ours({"iterations": 0.99, "python": 0.01}, parts=parts, loop=loop))
    assert not {"no_compile_for_a_short_run", "no_worker_processes", "no_gpu_at_this_size"} & set(found)
    assert all(a.predicted_gain is None or 0 < a.predicted_gain < math.inf for a in found.values())


def test_a_gpu_is_not_judged_by_the_operators_outside_a_fused_update():
    light = (Light("action", 1e4, 1e3, 100.0, 4e-4, 1e-5, "launches", 0.02),)
    assert "no_gpu_at_this_size" in against(evidence(light=light))
    assert "no_gpu_at_this_size" not in against(evidence({"env": 0.2, "update": 0.8}, light=light))


def test_a_number_of_threads_that_did_not_run_is_no_evidence():
    found = against(evidence(threads=ThreadProbe(1, 4, {1: 0.01, 2: math.inf, 4: 0.02})))
    assert found["no_more_threads"].predicted_gain == 0.5 and "4 instead of 1" in found["no_more_threads"].text
