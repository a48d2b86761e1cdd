"""Plans of a study, by hand: what is compared, what is barred, and what is left out because it would change nothing."""

import itertools

import gymnasium
import numpy as np
import pytest

from rlbench import ChoiceError, Choices, ConfigError, DQNConfig
from rlbench.envs.source import env_source
from rlbench.study import Variant, plan

TINY = DQNConfig(total_timesteps=120, learning_starts=20, train_frequency=4, batch_size=8, hidden=(8,), buffer_size=64)


class Corridor(gymnasium.Env):
    """An env without a batched counterpart."""

    observation_space = gymnasium.spaces.Box(0, 4, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)


def labels(made):
    return [variant.label for variant in made.variants]


def test_plan_choices_has_the_three_named_ones_with_plain_first():
    assert labels(plan("choices", TINY)) == ["plain", "naive", "fast"]


def test_plan_alone_changes_one_slot_at_a_time():
    made = plan("alone", TINY, slots=["optimizer", "replay"])
    assert labels(made) == [
        "plain",
        "optimizer=foreach",
        "optimizer=fused",
        "replay=deque",
        "replay=ring_torch",
        "replay=ring_frames",
    ]
    plain = Choices.plain().to_dict()
    for variant in made.variants[1:]:
        differing = [s for s, v in variant.choices.to_dict().items() if v != plain[s]]
        assert len(differing) == 1


def test_plan_alone_leaves_out_slots_without_use_with_a_line_for_each_reason():
    made = plan("alone", TINY, slots=["features", "metrics", "priorities"], env=Corridor)
    assert labels(made) == ["plain", "metrics=item_each_step"]
    assert [line.split(": ")[0] for line in made.left_out] == ["features", "priorities"]
    used = plan("alone", TINY.replace(prioritized_replay_alpha=0.5), slots=["priorities"], env=Corridor)
    assert labels(used) == ["plain", "priorities=loop"] and used.left_out == ()
    with pytest.raises(ChoiceError, match="nothing to compare: priorities: prioritized_replay_alpha=0"):
        plan("alone", TINY, slots=["priorities"], env=Corridor)


def test_plan_alone_bars_what_the_env_cannot_use():
    made = plan("alone", TINY, slots=["environments", "replay", "loop"], env=Corridor)
    barred = {variant.label for variant in made.variants if variant.barred}
    loops = {"loop=tensors", "loop=fused", "loop=native"}
    assert barred == loops | {"environments=batched", "environments=native", "replay=ring_frames"}
    assert all("batched counterpart" in v.barred for v in made.variants if v.label in loops)
    on_cart_pole = plan("alone", TINY, slots=["loop"], env="CartPole-v1")
    assert next(v for v in on_cart_pole.variants if v.label == "loop=native").barred is None


def used(made, variant, env=None):
    return variant.in_use(made.device, None if env is None else env_source(env))


def test_plan_cumulative_adds_in_the_order_asked_for():
    made = plan("cumulative", TINY, slots=["optimizer", "metrics", "replay"], device="cuda")
    assert labels(made) == ["plain", "+ optimizer=fused", "+ replay=ring_torch"]
    last = made.variants[-1].choices
    assert (last.optimizer, last.replay) == ("fused", "ring_torch")


@pytest.mark.parametrize("env", [None, "CartPole-v1", Corridor])
def test_plan_cumulative_changes_something_at_each_rung_and_ends_at_fast(env):
    made = plan("cumulative", TINY, env=env)
    computes = [used(made, variant, env) for variant in made.variants]
    assert all(one != other for one, other in itertools.combinations(computes, 2))
    assert computes[-1] == used(made, Variant("fast", Choices.fast(), TINY), env)
    assert all(variant.barred is None for variant in made.variants) and made.left_out == ()
    rungs = ["+ optimizer=fused", "+ update=native"]
    assert labels(made)[-1] == ("+ update=native" if env is Corridor else "+ loop=native")
    assert [label for label in labels(made) if label in rungs] == rungs


def test_plan_cumulative_does_not_time_a_rung_that_changes_nothing():
    made = plan("cumulative", TINY, slots=["update", "optimizer", "loop", "environments"], env="CartPole-v1")
    assert labels(made) == ["plain", "+ update=native", "+ loop=native"]
    assert made.left_out == (
        "+ optimizer=fused: computes as + update=native does here",
        "+ environments=native: computes as + loop=native does here",
    )


def test_plan_leave_one_out_puts_one_slot_back():
    made = plan("leave_one_out", TINY, env=Corridor)
    assert labels(made) == ["plain", "fast", "fast, update=eager"]
    assert used(made, made.variants[2], Corridor)["optimizer"] == "fused"
    assert any(line.startswith("optimizer: update='native' has an Adam of its own") for line in made.left_out)


def test_plan_leave_one_out_touches_only_slots_in_use():
    made = plan("leave_one_out", TINY, env="CartPole-v1")
    assert labels(made) == ["plain", "fast", "fast, loop=python"]
    assert used(made, made.variants[2], "CartPole-v1")["environments"] == "native"
    assert made.left_out == ("environments, update, optimizer: loop='native' does this in its own way",)
    on_cuda = plan("leave_one_out", TINY, device="cuda", slots=["replay"], env=Corridor)
    assert labels(on_cuda) == ["plain", "fast", "fast, replay=ring_numpy"]


def test_choices_that_compute_alike_here_are_one_variant(monkeypatch):
    monkeypatch.setattr(Choices, "fast", Choices.plain)
    made = plan("choices", TINY)
    assert labels(made) == ["plain", "naive"] and made.left_out == ("fast: computes as plain does here",)


def test_plan_says_what_cannot_be_used_here():
    made = plan("alone", TINY, slots=["transfer"])
    assert [variant.barred is None for variant in made.variants] == [True, False, False]
    assert "CUDA" in made.variants[1].barred


@pytest.mark.parametrize(
    ("mode", "config", "expected"),
    [
        ("batch", TINY, ["batch_size=8", "batch_size=32", "batch_size=128", "batch_size=256"]),
        ("batch", TINY.replace(batch_size=128), ["batch_size=128", "batch_size=32", "batch_size=256"]),
        ("width", TINY, ["hidden=8", "hidden=64,64", "hidden=256,256", "hidden=512,512"]),
        ("presets", TINY, ["as given", "preset fast"]),
    ],
)
def test_plan_over_settings_has_the_given_ones_as_baseline(mode, config, expected):
    made = plan(mode, config)
    assert labels(made) == expected
    assert made.baseline.config == config


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"mode": "all"}, ConfigError, "cumulative"),
        ({"mode": "choices", "slots": ["replay"]}, ConfigError, "takes no slots"),
        ({"mode": "batch", "slots": ["replay"]}, ConfigError, "takes no slots"),
        ({"mode": "alone", "choices": Choices.fast()}, ConfigError, "sets the choices itself"),
        ({"mode": "alone", "slots": ["reply"]}, ChoiceError, "replay"),
        ({"mode": "alone", "slots": ["games"]}, ChoiceError, "dqn has no slot 'games': slots are loop, .*, backend[.]"),
        ({"mode": "epochs"}, ConfigError, "not for dqn: accepted are choices, .*, width[.]"),
    ],
)
def test_plan_refuses_what_it_would_ignore(arguments, error, words):
    with pytest.raises(error, match=words):
        plan(config=TINY, **arguments)


def test_presets_refuse_to_compare_a_preset_with_itself():
    with pytest.raises(ConfigError, match="nothing is left"):
        plan("presets", DQNConfig.preset("fast"))


def test_the_baseline_of_settings_must_be_usable():
    with pytest.raises(ChoiceError, match="loop='native' cannot be used: Corridor has no batched counterpart"):
        plan("batch", TINY, choices=Choices(loop="native"), env=Corridor)


def test_a_plan_with_nothing_to_compare_is_refused():
    with pytest.raises(ChoiceError, match="no slot is given"):
        plan("alone", TINY, slots=())
    with pytest.raises(ChoiceError, match=r"nothing to compare: fast\(\) on cpu changes none of transfer"):
        plan("cumulative", TINY, slots=["transfer"])
