"""Plans of a study of PPO: its own slots and settings, on games and on other envs."""

import itertools

import gymnasium
import numpy as np
import pytest

from rlbench import SPEEDUPS, ChoiceError, Choices, ConfigError, DQNConfig, PPOConfig
from rlbench.envs.bandit import IdBandit
from rlbench.envs.othello import Othello
from rlbench.envs.source import env_source
from rlbench.envs.spaces import EnvError
from rlbench.native.policy import why_no_policy
from rlbench.study import MODES, Variant, plan

TINY = PPOConfig(total_timesteps=64, num_envs=4, num_steps=8, batch_size=16, hidden=(8,))
GAME = Othello(4)
OF_PPO = [name for name, slot in SPEEDUPS.items() if "ppo" in slot.workloads]
CHOICE_MODES = ("choices", "alone", "cumulative", "leave_one_out")
native = pytest.mark.skipif(why_no_policy() is not None, reason="no C compiler")


class Corridor(gymnasium.Env):
    """An env without a batched counterpart."""

    observation_space = gymnasium.spaces.Box(0, 4, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)


def labels(made):
    return [variant.label for variant in made.variants]


def used(made, variant, env):
    return variant.in_use(made.device, env_source(env))


@pytest.mark.parametrize("env", [GAME, IdBandit(), Corridor, "CartPole-v1"])
@pytest.mark.parametrize("mode", CHOICE_MODES)
def test_only_slots_that_ppo_has_are_changed_and_each_change_computes_otherwise(mode, env):
    made = plan(mode, TINY, env=env)
    usable = [variant for variant in made.variants if variant.barred is None]
    computes = [used(made, variant, env) for variant in usable]
    assert all(one != other for one, other in itertools.combinations(computes, 2))
    assert all(set(slots) <= set(OF_PPO) for slots in computes)
    named = {word.removeprefix("+ ").removeprefix("fast, ").split("=")[0] for word in labels(made)}
    assert named <= {"plain", "naive", "fast", *OF_PPO}
    assert not any("has no such slot" in line for line in made.left_out)


def test_alone_takes_every_variant_of_the_slots_of_a_game():
    made = plan("alone", TINY, slots=["games", "evaluate", "minibatch"], env=GAME)
    plain = Choices.plain().to_dict()
    expected = [f"{s}={v}" for s in ("games", "evaluate", "minibatch") for v in SPEEDUPS[s].variants if v != plain[s]]
    assert labels(made) == ["plain", *expected]
    assert "CUDA" in next(v.barred for v in made.variants if v.label == "evaluate=packed_triton")


@native
def test_cumulative_ends_at_fast_with_the_update_last():
    made = plan("cumulative", TINY, env=GAME)
    assert labels(made)[1:3] == ["+ games=native", "+ evaluate=packed_native"]
    assert labels(made)[-2:] == ["+ optimizer=fused", "+ ppo_update=native"]
    assert used(made, made.variants[-1], GAME) == used(made, Variant("fast", Choices.fast(), TINY), GAME)


@native
def test_leave_one_out_puts_one_slot_of_the_game_back():
    made = plan("leave_one_out", TINY, env=GAME)
    assert labels(made)[:3] == ["plain", "fast", "fast, games=batched"]
    assert labels(made)[-1] == "fast, ppo_update=eager"
    assert any(line.startswith("environments: Othello 4x4 is a game") for line in made.left_out)


def test_slots_of_games_have_no_use_on_other_envs():
    made = plan("alone", TINY, slots=["games", "action_encoding", "gae"], env=Corridor)
    assert labels(made) == ["plain", "gae=loop", "gae=scan", "gae=compiled"]
    assert [line.split(":")[0] for line in made.left_out] == ["games", "action_encoding"]


def test_modes_of_settings_have_values_of_ppo():
    assert labels(plan("batch", TINY)) == ["batch_size=16", "batch_size=128", "batch_size=256", "batch_size=1024"]
    assert labels(plan("epochs", TINY)) == ["update_epochs=4", "update_epochs=2", "update_epochs=8"]
    assert labels(plan("rollout", TINY)) == ["num_steps=8", "num_steps=32", "num_steps=128", "num_steps=512"]
    assert labels(plan("width", TINY, env=GAME))[1] == "hidden=64,64"
    fast = plan("presets", TINY).variants[1].config
    assert (fast.batch_size, fast.num_steps, fast.hidden) == (128, 40, (8,))


@pytest.mark.parametrize(
    ("config", "arguments", "error", "words"),
    [
        (TINY, {"mode": "alone", "slots": ["replay"]}, ChoiceError, "ppo has no slot 'replay': slots are market_io"),
        (TINY, {"mode": "batch", "choices": Choices(loop="native")}, ChoiceError, "ppo has no such slot"),
        (TINY, {"mode": "batch", "choices": Choices(games="native"), "env": Corridor}, ChoiceError, "is no game"),
        (DQNConfig(), {"mode": "choices", "env": GAME}, EnvError, "which DQN does not take"),
        (DQNConfig(), {"mode": "rollout"}, ConfigError, "'rollout' is not for dqn"),
    ],
)
def test_refusals(config, arguments, error, words):
    with pytest.raises(error, match=words):
        plan(config=config, **arguments)


def test_every_mode_works_for_ppo():
    assert all(plan(mode, TINY, env=GAME).baseline.config == TINY for mode in MODES)
