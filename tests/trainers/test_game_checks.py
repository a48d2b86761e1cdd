"""What a reader's games get wrong is one error that names them, the step and, of numbers, the game."""

import pytest
import torch

from rlbench import Choices, PPOConfig
from rlbench.actions import ActionError, ActionSets, pack
from rlbench.config import ConfigError
from rlbench.envs.games import GameStep, Position
from rlbench.envs.spaces import EnvError
from rlbench.trainers.ppo import PPO

CONFIG = PPOConfig(
    total_timesteps=96,
    num_envs=4,
    num_steps=8,
    batch_size=16,
    update_epochs=1,
    hidden=(8,),
    eval_episodes=0,
    log_frequency=16,
)
IDS = [0, 2**63, 2**64 - 1]


class Counting:
    """Four games of three steps; with step t come t + 1 ids. Even games are truncated where the others terminate."""

    name, num_envs, obs_size, alternating, device = "Counting", 4, 2, False, torch.device("cpu")
    calls = 0

    def reset(self):
        self.at = torch.zeros(4, dtype=torch.int64)
        return Position(self.features(), self.sets())

    def features(self):
        return torch.stack([self.at.float(), torch.ones(4)], 1)

    def sets(self):
        return pack([IDS[: 1 + at] for at in self.at.tolist()])

    def step(self, ids):
        self.calls += 1
        assert all(given in legal for given, legal in zip(ids.tolist(), self.lists(), strict=True)), "not legal"
        self.at = self.at + 1
        led_to, over, even = self.features(), self.at == 3, torch.arange(4) % 2 == 0
        self.at = torch.where(over, 0, self.at)
        return GameStep(self.features(), self.sets(), torch.ones(4), over & ~even, over & even, led_to)

    def lists(self):
        return [pack([IDS[: 1 + at]]).ids.tolist() for at in self.at.tolist()]


def wrong_from(call, **change):
    """Such games whose steps have something else in them from their `call`-th on."""

    class Wrong(Counting):
        def step(self, ids):
            step = super().step(ids)
            if self.calls < call:
                return step
            return step._replace(**{name: make(step) for name, make in change.items()})

    return Wrong()


def planted(tensor, place, value):
    tensor = tensor.clone()
    tensor[place] = value
    return tensor


NAN = float("nan")
CASES = {
    "a reward that is no number": (
        {"reward": lambda step: planted(step.reward, 2, NAN)},
        "Counting, game 2: the reward at step 4 is not finite",
    ),
    "a feature that is no number": (
        {"obs": lambda step: planted(step.obs, (1, 1), NAN)},
        "Counting, game 1: a feature of the state at step 5 is not finite",
    ),
    "an infinite feature where a game was cut": (
        {"next_obs": lambda step: planted(step.next_obs, (0, 0), -torch.inf)},
        "Counting, game 0: a feature in next_obs at step 5 is not finite",
    ),
    "no action": (
        {"legal": lambda step: pack([[1], [], [1], [2]])},
        "Counting, step 4: state 1 has no legal action to choose",
    ),
    "sets of lists": (
        {"legal": lambda step: [[1]] * 4},
        "Counting, step 4: legal is of type list; accepted: an ActionSets",
    ),
    "offsets that do not fit": (
        {"legal": lambda step: ActionSets(step.legal.ids, step.legal.offsets + 1)},
        "Counting, step 4: offsets run from 1 to ",
    ),
    "sets of some games": (
        {"legal": lambda step: pack([[1]] * 3)},
        "Counting, step 4: legal has 3 sets of actions; accepted: 4, one a game",
    ),
    "wide numbers": (
        {"obs": lambda step: step.obs.double()},
        r"Counting, step 4: obs is \(4, 2\) torch.float64 on cpu; accepted: \(4, 2\) torch.float32 on cpu",
    ),
    "whole rewards": (
        {"reward": lambda step: step.reward.long()},
        r"Counting, step \d: reward is \(4,\) torch.int64 on cpu; accepted: \(4,\) torch.float32",
    ),
    "a column of rewards": (
        {"reward": lambda step: step.reward[:, None]},
        r"Counting, step 4: reward is \(4, 1\) torch.float32 on cpu; accepted: \(4,\)",
    ),
    "flags as numbers": (
        {"terminated": lambda step: step.terminated.float()},
        r"Counting, step 4: terminated is \(4,\) torch.float32 on cpu; accepted: \(4,\) torch.bool",
    ),
    "a missing column": (
        {"obs": lambda step: step.obs[:, :1]},
        r"Counting, step 4: obs is \(4, 1\) ",
    ),
    "NumPy": (
        {"reward": lambda step: step.reward.numpy()},
        "Counting, step 4: reward is of type ndarray; accepted: ",
    ),
}


@pytest.mark.parametrize("named", ["plain", "fast", "naive"])
@pytest.mark.parametrize("case", CASES)
def test_a_step_that_is_wrong_is_named(case, named):
    change, says = CASES[case]
    with pytest.raises((EnvError, ActionError), match=says):
        PPO(CONFIG, getattr(Choices, named)(), wrong_from(5, **change)).train(progress=False)


def test_a_plain_tuple_is_no_step():
    class Tuples(Counting):
        def step(self, ids):
            return tuple(super().step(ids))

    with pytest.raises(EnvError, match="Counting, step 0: step.. gave a tuple without obs, legal, "):
        PPO(CONFIG, env=Tuples()).train(progress=False)


def test_what_a_reset_gives_is_looked_at():
    class Wide(Counting):
        def features(self):
            return super().features().double()

    with pytest.raises(EnvError, match=r"Counting, at the first reset: obs is \(4, 2\) torch.float64"):
        PPO(CONFIG, env=Wide())


def test_the_state_behind_a_rollout_is_looked_at_before_its_value_is_learnt_from():
    """Its value would make every advantage no number, and the settings would be blamed."""
    games = wrong_from(8, obs=lambda step: planted(step.obs, (3, 0), NAN))
    with pytest.raises(EnvError, match="Counting, game 3: a feature of the state at step 8 is not finite"):
        PPO(CONFIG.replace(gamma=0.9), env=games).train(progress=False)


def test_what_is_never_used_may_be_anything():
    """Where a step led that ended no game is the next state: nobody looks at it here."""
    games = wrong_from(5, next_obs=lambda step: planted(step.next_obs, (1, 0), NAN))
    assert PPO(CONFIG, env=games).train(progress=False).env_steps == 96


def test_rewards_that_are_too_large_are_a_matter_of_scale():
    games = wrong_from(1, reward=lambda step: step.reward * 1e38)
    with pytest.raises(ConfigError, match="scale the rewards"):
        PPO(CONFIG, env=games).train(progress=False)


def test_a_games_own_error_passes_as_it_is():
    error = KeyError("mine")

    def fail(step):
        raise error

    with pytest.raises(KeyError) as caught:
        PPO(CONFIG, env=wrong_from(3, obs=fail)).train(progress=False)
    assert caught.value is error


def test_after_a_rollout_that_broke_off_games_start_anew():
    """Half of a rollout is gone: what episodes have earned and who is to move would be counted from the wrong step."""

    class Once(Counting):
        def step(self, ids):
            if self.calls == 12:
                self.calls += 1
                raise OSError("once")
            return super().step(ids)

    trainer = PPO(CONFIG, env=Once())
    with pytest.raises(OSError, match="once"):
        trainer.train(progress=False)
    assert trainer.env_steps == 32
    history = trainer.train(progress=False)
    assert history.env_steps == 96 and set(history.episodes.episode_return) == {3.0} == set(history.episodes.length)


def test_an_episode_is_noted_at_the_env_step_at_which_it_ended():
    """Four games of three steps: the first four end with step 3, so 12 steps of all games in."""
    history = PPO(CONFIG, env=Counting()).train(progress=False)
    assert list(history.episodes.env_step[:8]) == [12] * 4 + [24] * 4
    assert history.episodes.env_step.max() == 96
