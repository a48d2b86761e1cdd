import pytest

from rlbench import Choices, DQNConfig
from rlbench.envs.source import env_source
from rlbench.profiling.apply import apply, candidate_of
from rlbench.profiling.evidence import TrainerRun
from rlbench.profiling.findings import Advice

CONFIG = DQNConfig(hidden=(8,), batch_size=8, learning_starts=32, total_timesteps=4000)
RUN = TrainerRun("dqn", CONFIG, Choices.plain(), env_source("CartPole-v1"), "cpu")


def advice(name, choice, kind="option", **more):
    return Advice(name, kind, "", "", "", 1.5, 2.0, choice=choice, **more)


def test_a_choice_may_be_slots_settings_or_threads():
    made = candidate_of(RUN, {"optimizer": "fused", "hidden": (4,), "threads": 2}, 1)
    assert (made.choices.optimizer, made.config.hidden, made.threads) == ("fused", (4,), 2)
    assert candidate_of(RUN, {}, 1).choices == RUN.choices and candidate_of(RUN, {}, 1).threads == 1


def test_measured_beside_predicted():
    suggestions = [
        advice("fused_optimizer", {"optimizer": "fused"}),
        advice("small_batch", {"batch_size": 64}, "fault", metric="transitions learnt a second"),
        advice("no_gpu", {}, "against"),
        advice("nothing_to_do", {}),
    ]
    found = {a.advice: a for a in apply(RUN, suggestions, "CartPole-v1", budget_s=2, block_s=0.05, progress=False)}
    assert set(found) - {"together"} == {"fused_optimizer", "small_batch"}
    assert found["small_batch"].ratio > 2, "eight times the transitions in each update"
    assert found["fused_optimizer"].predicted == 1.5 and found["fused_optimizer"].low <= found["fused_optimizer"].high


def test_what_cannot_run_is_named():
    (found,) = apply(
        RUN, [advice("x", {"update": "cuda_graph"})], "CartPole-v1", budget_s=1, block_s=0.02, progress=False
    )
    assert found.verdict.startswith("could not run: ")


def test_nothing_to_apply():
    assert apply(RUN, [advice("x", {})], "CartPole-v1") == ()


@pytest.mark.parametrize("name", ["hidden", "batch_size"])
def test_another_task_to_learn_is_not_taken_into_all_together(name):
    from rlbench.profiling.apply import _together
    from rlbench.profiling.findings import Applied

    faster = [
        Applied("a", {name: 1}, None, 2, 2, 2, 1, 1, "faster"),
        Applied("b", {"optimizer": "fused"}, None, 2, 2, 2, 1, 1, "faster"),
    ]
    assert _together(faster) is None
    assert _together([faster[1], faster[1]]).choice == {"optimizer": "fused"}
