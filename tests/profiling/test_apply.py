import pytest

from rlbench import Choices, DQNConfig, PPOConfig
from rlbench.envs.source import env_source
from rlbench.profiling.apply import TOP, _together, apply, candidate_of
from rlbench.profiling.evidence import TrainerRun
from rlbench.profiling.findings import Advice, Applied
from rlbench.profiling.text import applied_text

CONFIG = DQNConfig(hidden=(8,), batch_size=8, learning_starts=32, total_timesteps=4000)
RUN = TrainerRun("dqn", CONFIG, Choices.plain(), env_source("CartPole-v1"), "cpu")
QUICK = {"budget_s": 1, "block_s": 0.02, "progress": False}


def advice(name, choice, kind="option", **more):
    return Advice(name, kind, "", "", "", 1.5, 2.0, choice=choice, **more)


class Planted:
    """A contender whose rate is planted by what is changed; updates come at one in ten steps."""

    first_s = compile_s = 0.0
    gains = {"optimizer": 1.5, "replay": 1.25, "conversion": 0.5, "threads": 1.0, "batch_size": 0.8}  # noqa: RUF012

    def __init__(self, candidate, env, device):
        self.candidate, self.trainer = candidate, object()

    def block(self, seconds):
        steps = 100_000 * seconds
        for name in self.candidate.changed:
            steps *= self.gains[name]
        return round(steps), round(steps / 10), seconds

    def close(self):
        pass


def test_a_choice_may_be_slots_settings_or_threads():
    made = candidate_of(RUN, {"optimizer": "fused", "hidden": (4,), "threads": 2}, 1)
    assert (made.choices.optimizer, made.config.hidden, made.threads) == ("fused", (4,), 2)
    assert candidate_of(RUN, {}, 1).choices == RUN.choices and candidate_of(RUN, {}, 1).threads == 1


def test_a_name_that_is_both_a_slot_and_a_setting():
    ppo = TrainerRun("ppo", PPOConfig(), Choices.plain(), env_source("CartPole-v1"), "cpu")
    assert candidate_of(ppo, {"old_log_probs": "recompute_packed"}, 1).choices.old_log_probs == "recompute_packed"
    setting = candidate_of(ppo, {"old_log_probs": "recomputed"}, 1)
    assert setting.config.old_log_probs == "recomputed" and setting.choices == ppo.choices


def test_planted_ratios_beside_predictions(monkeypatch):
    monkeypatch.setattr("rlbench.profiling.apply.Contender", Planted)
    suggestions = [
        advice("quick", {"optimizer": "fused"}),
        advice("quicker", {"replay": "ring_torch"}, "fault"),
        advice("slow", {"conversion": "preallocated"}),
        advice("no_gpu", {}, "against"),
        advice("threads", {"threads": 1}),
        advice("beyond_the_top", {"optimizer": "foreach"}),
    ]
    found = apply(RUN, suggestions, **QUICK)
    assert [(a.advice, round(a.ratio, 3), a.verdict) for a in found] == [
        ("quick", 1.5, "faster"),
        ("quicker", 1.25, "faster"),
        ("slow", 0.5, "slower"),
        ("threads", 1.0, "no difference seen"),
        ("together", 1.875, "faster"),
    ]
    assert len(found) == TOP + 1 and found[0].predicted == 1.5 and found[-1].predicted is None
    assert found[-1].choice == {"optimizer": "fused", "replay": "ring_torch"}
    text = applied_text(found)
    assert "1.50x" in text and "0.50x" in text, "ratios below 1 in plain view"


def test_transitions_learnt_where_the_minibatch_is_what_changes(monkeypatch):
    monkeypatch.setattr("rlbench.profiling.apply.Contender", Planted)
    small = advice("small_batch", {"batch_size": 64}, "fault", metric="transitions learnt a second")
    (found,) = apply(RUN, [small], **QUICK)
    assert found.ratio == pytest.approx(8 * 0.8, rel=1e-3), "eight times the rows, 0.8 of the updates a second"


def test_on_a_real_training():
    found = apply(RUN, [advice("fused_optimizer", {"optimizer": "fused"})], **QUICK)
    assert found[0].ratio > 0 and found[0].low <= found[0].ratio <= found[0].high


@pytest.mark.parametrize("choice", [{"update": "cuda_graph"}, {"batch_size": 0}, {"no_such": 1}])
def test_what_cannot_run_is_named(choice):
    (found,) = apply(RUN, [advice("x", choice)], "CartPole-v1", **QUICK)
    assert found.verdict.startswith("could not run: ") and next(iter(choice)) in found.verdict + "update"


def test_nothing_to_apply():
    assert apply(RUN, [advice("x", {})], "CartPole-v1") == ()


def faster(name, choice, ratio=2.0):
    return Applied(name, choice, None, ratio, ratio, ratio, 1, 1, "faster")


@pytest.mark.parametrize("name", ["hidden", "batch_size"])
def test_another_task_to_learn_is_not_taken_into_all_together(name):
    fused = faster("b", {"optimizer": "fused"})
    assert _together(RUN, [faster("a", {name: 1}), fused]) is None
    assert _together(RUN, [fused, faster("c", {"replay": "deque"})]).choice == {"optimizer": "fused", "replay": "deque"}
    assert _together(RUN, [fused, fused]) is None, "one change twice is one"


def test_what_cannot_be_chosen_beside_the_best_is_left_out_of_all_together():
    native = faster("whole_loop", {"loop": "native"}, 9.0)
    assert _together(RUN, [faster("a", {"optimizer": "fused"}), native]) is None
    threads = faster("threads", {"threads": 1}, 1.1)
    assert _together(RUN, [faster("a", {"optimizer": "fused"}), threads, native]).choice == {
        "loop": "native",
        "threads": 1,
    }


def test_where_two_want_one_slot_the_better_one_has_it():
    both = [faster("a", {"optimizer": "fused"}, 3.0), faster("b", {"optimizer": "foreach", "replay": "deque"}, 2.0)]
    assert _together(RUN, both).choice == {"optimizer": "fused", "replay": "deque"}
