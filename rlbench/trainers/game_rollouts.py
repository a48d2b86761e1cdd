"""T steps of N games by the policy as it is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rlbench.actions import ActionSets, cat
from rlbench.batch import Rollout
from rlbench.config import PPOConfig
from rlbench.envs.games import Games, GameStep
from rlbench.phases import phase
from rlbench.segments import pick
from rlbench.trainers.action_draws import NoteEpisodes, uniforms
from rlbench.trainers.game_checks import check_ends, check_form, check_position, check_rollout, check_steps


class GameRollouts:
    """Plays N games by an evaluator. In self-play the one policy moves for both sides.

    Attributes:
        turn: what another's gain is to oneself: -1 where two players take turns in a zero-sum game, else +1.
    """

    def __init__(self, games: Games, model: Any, evaluator: Any, config: PPOConfig, device: torch.device) -> None:
        self.games, self.model, self.evaluator, self.config, self.device = games, model, evaluator, config, device
        self.turn = -1.0 if games.alternating else 1.0
        self.act = getattr(evaluator, "act", self._act)
        self.name, self.num_envs = games.name, games.num_envs
        self._begin()

    def _begin(self) -> None:
        """All games at the start of their first episode."""
        self.obs, self.legal = self.games.reset()
        check_position(self.games, self.obs, self.legal)
        self.returns = torch.zeros(self.num_envs)  # (N,) of the episodes that are going on, to who moved first in each
        self.lengths = torch.zeros(self.num_envs, dtype=torch.int64)
        self.whole = True  # whether no step of these episodes is missing

    def collect(self, first_step: int, note: NoteEpisodes) -> Rollout:
        """`num_steps` steps of every game, the first of them number `first_step`.

        Where the last call broke off, by an error or an interrupt, all games start anew.
        """
        if not self.whole:
            self._begin()
        self.whole, self.first_step = False, first_step
        steps: list[GameStep] = []
        try:
            rollout = self._collect(steps, note)
        except Exception as error:
            if not isinstance(error, MemoryError | torch.OutOfMemoryError):
                check_steps(self.games, steps, first_step)  # which has a better reason, where it is the games'
            raise
        self.whole = True
        return rollout

    def _collect(self, steps: list[GameStep], note: NoteEpisodes) -> Rollout:
        draws = uniforms(self.config, self.first_step, self.num_envs, self.device)
        states: list[tuple] = []  # (obs, legal, choice, log_prob, value) of each step
        for uniform in draws:
            with phase("action"):
                choice, log_prob, value = self.act(self.obs, self.legal, uniform)
                ids = self.legal.ids[self.legal.offsets[:-1] + choice]
            states.append((self.obs, self.legal, choice, log_prob, value))
            with phase("env"):
                steps.append(self.games.step(ids))
            self.obs, self.legal = steps[-1].obs, steps[-1].legal
        check_form(self.games, steps[-1], self.first_step + len(steps) - 1)
        with phase("store"):
            self._note(steps, note)
            return self._rollout(states, steps)

    def _act(self, obs: Tensor, legal: ActionSets, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        log_p, value = self.evaluator.log_probs(obs, legal)
        choice = pick(log_p, legal.offsets, uniform)
        return choice, log_p[legal.offsets[:-1] + choice], value

    def _rollout(self, states: list[tuple], steps: list[GameStep]) -> Rollout:
        obs, legal, choice, log_prob, value = zip(*states, strict=True)
        reward, terminated, truncated = (
            torch.stack([getattr(step, name) for step in steps]) for name in ("reward", "terminated", "truncated")
        )
        next_value = torch.stack([*value[1:], self._values(self.obs)])
        if truncated.any():  # sync: few games have time limits; asked once a rollout
            ends = torch.stack([step.next_obs for step in steps])  # (T, N, D)
            check_ends(self.games, ends, truncated, self.first_step)
            led_to = self._values(ends.flatten(0, 1)).view_as(next_value)
            next_value = torch.where(truncated, led_to, next_value)
        return Rollout(
            torch.stack(obs),
            cat(legal),
            torch.stack(choice),
            torch.stack(log_prob),
            torch.stack(value),
            next_value,
            reward,
            terminated,
            truncated,
        )

    @torch.no_grad()
    def _values(self, obs: Tensor) -> Tensor:
        return self.model.states(obs)[1]

    def _note(self, steps: list[GameStep], note: NoteEpisodes) -> None:
        """Note the episodes that ended; in self-play, their returns to who moved first."""
        rewards, ends = (
            torch.stack([step.reward for step in steps]).cpu(),  # sync: once a rollout
            torch.stack([step.terminated | step.truncated for step in steps]).cpu(),  # sync: once a rollout
        )
        finished: list[tuple[int, float, int]] = []
        for number, (reward, ended) in enumerate(zip(rewards, ends, strict=True), start=1):
            sign = torch.where(self.lengths % 2 == 0, 1.0, self.turn)
            self.returns += reward * sign
            self.lengths += 1
            if ended.any():  # sync: on the host
                returns, lengths = self.returns[ended].tolist(), self.lengths[ended].tolist()  # sync: on the host
                count = number * self.num_envs
                finished += [(count, *episode) for episode in zip(returns, lengths, strict=True)]
                self.returns[ended], self.lengths[ended] = 0.0, 0
        note(finished)

    def close(self) -> None:
        """Nothing is held but memory."""

    def check(self, rollout: Rollout) -> None:
        """Refuse a rollout with a number that is not finite, or a state without an action."""
        check_rollout(self.games, rollout, self.obs, self.first_step)
