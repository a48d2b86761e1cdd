"""What a reader plants beside the usual places: features outside the env, numbers read one by one; and what comes first."""

from dataclasses import replace

import pytest
from planted import HEALTHY, TWINS, counted, evidence, hot, place
from test_advice_of_lines import first, script

from rlbench import Choices, DQNConfig
from rlbench.envs.source import env_source
from rlbench.profiling.advice import advise
from rlbench.profiling.advice.reads import how_often
from rlbench.profiling.answer import rate, sentences, subject
from rlbench.profiling.evidence import TrainerRun
from rlbench.profiling.records import Sync, Work


def test_features_beside_the_env(tmp_path):
    at = script(
        tmp_path,
        """\
        def prepare(history):
            frame = pd.DataFrame(history)
            return frame.rolling(10).mean().iloc[-1]

        def returns(rewards):
            return np.cumsum(rewards[::-1])[::-1]
        """,
    )
    line = hot("return frame.rolling(10)…", 0.5, 0.5, "store", **at("rolling", "prepare"))
    found = first(advise(evidence(HEALTHY | {"store": 0.5}, lines=(line,))))
    assert (found.name, found.predicted_gain) == ("recomputed_features", pytest.approx(2.0))
    sums = hot("return np.cumsum…", 0.3, 0.3, "python", **at("cumsum", "returns"))
    assert "recomputed_features" not in {
        each.name for each in advise(evidence(HEALTHY | {"python": 0.3}, lines=(sums,)))
    }


def test_numbers_read_one_by_one_cost_their_loop(tmp_path):
    at = script(
        tmp_path,
        """\
        def clip(parameters):
            total = 0.0
            for p in parameters:
                for g in p.grad.flatten():
                    total += g.item() ** 2
            return total
        """,
    )
    inner, head = at("g.item()", "clip"), at("p.grad.flatten()", "clip")
    sync = Sync(
        place("total += g.item() ** 2", inner["line"], file=inner["file"], function="clip"),
        ".item()",
        "optimizer",
        5000,
        50.0,
    )
    lines = (hot("total += …", 0.2, 0.2, "optimizer", **inner), hot("for g in …", 0.1, 0.1, "optimizer", **head))
    found = first(advise(evidence(HEALTHY | {"optimizer": 0.4}, lines=lines, counted=counted([sync]))))
    assert found.name == "sync_each_step" and "50 times a step" in found.text and "30 %" in found.evidence
    assert found.predicted_gain == found.bound == pytest.approx(1 / 0.7) and "whole tensor" in found.instead
    once = replace(sync, count=100, per_step=1.0)
    assert first(advise(evidence(lines=lines, counted=counted([once])))).predicted_gain == 1.0


def test_the_action_after_an_update_is_read_where_the_others_are():
    here = place("action = net(obs).argmax().item()", 7)
    syncs = [Sync(here, ".item()", "action", 99, 0.99), Sync(here, ".item()", "forward", 1, 0.01)]
    run = replace(evidence(counted=counted(syncs, updates=1)), updates=10)
    assert "sync_each_step" not in {each.name for each in advise(run)}
    loss = Sync(place("losses.append(loss.item())", 9), ".item()", "python", 1, 0.01)
    found = advise(replace(run, counted=counted([*syncs, loss], updates=1)))
    assert [each.places for each in found if each.name == "sync_each_step"] == [(loss.place,)]


def test_how_often_is_told_in_steps_or_updates():
    assert how_often(1.0, 1.0) == "Once a step" and how_often(38.2, 1.0) == "38.2 times a step"
    assert how_often(1 / 32, 1 / 32) == "Once an update" and how_often(2.0, 1 / 32) == "64 times an update"


def test_two_reads_on_a_line_are_one_line():
    here = place("x = a.item() + b.tolist()[0]", 7)
    syncs = [Sync(here, ".item()", "python", 100, 1.0), Sync(here, ".tolist()", "python", 100, 1.0)]
    found = first(advise(evidence(counted=counted(syncs))))
    assert found.places == (here,) and "at 1 line." in found.evidence and "2 times a step" in found.text


def test_what_takes_no_time_is_not_to_be_changed_first():
    sync = Sync(place("losses.append(loss.item())"), ".item()", "python", 100, 1.0)
    run = evidence(HEALTHY | {"python": 0.4, "forward": 0.05, "backward": 0.05}, counted=counted([sync]))
    said = sentences(run, advise(run))
    assert said[0].startswith("The largest part of the time, 40 %")
    assert said[1].startswith(
        "No fault was found that takes time on this machine. One takes none here: Once a step a number"
    )
    assert said[2].startswith("To look at first: Python between the parts takes 40 %")
    python = next(each for each in advise(run) if each.name == "whole_loop")
    assert python.bound == pytest.approx(1 / 0.6), "no more than its share allows"


def test_a_whole_loop_of_ours_has_no_bound():
    config = DQNConfig.preset("cartpole")
    run = TrainerRun("dqn", config, Choices.named("plain"), env_source("CartPole-v1"), "cpu")
    found = next(
        each for each in advise(evidence(HEALTHY | {"python": 0.4}, what="dqn", run=run)) if each.name == "whole_loop"
    )
    assert found.bound is None and found.choice == {"loop": "native"}


def test_an_optimizer_in_one_call_by_what_was_timed():
    work = (Work("optimizer", 0, 10**4, 2000),)
    many = replace(counted(), work=work)  # 20 operators for each of 100 updates
    run = evidence(HEALTHY | {"optimizer": 0.4}, counted=many, twins=replace(TWINS, fused_s=2e-3))
    found = next(each for each in advise(run) if each.name == "fused_optimizer")
    assert found.predicted_gain == pytest.approx(1 / 0.8), "2 of its 4 ms are left, of 10"


def test_what_was_profiled_and_how_fast():
    run = evidence()
    assert (subject(run), rate(run)) == ("script train.py", ", 100 steps a second")
    assert subject(replace(run, what="block", name="block")) == "a block"
    assert subject(replace(run, what="block", name="mine")) == "block mine"
    config = DQNConfig.preset("cartpole", num_envs=8)
    ours = replace(
        run, what="dqn", name="CartPole-v1", run=TrainerRun("dqn", config, Choices.named("plain"), None, "cpu")
    )
    assert (subject(ours), rate(ours)) == ("DQN on CartPole-v1", ", 100 steps of 8 environments a second")
