"""T steps of N Gymnasium environments by the policy as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Collected, Rollout
from rlbench.config import PPOConfig
from rlbench.envs.spaces import EnvError
from rlbench.phases import phase
from rlbench.trainers.action_draws import NoteEpisodes, uniforms
from rlbench.trainers.finite import check_step


class EnvRollouts:
    """Steps N Gymnasium environments by a policy over a fixed number of actions."""

    turn = 1.0

    def __init__(self, collector: Any, model: Any, evaluator: Any, config: PPOConfig, device: torch.device) -> None:
        self.collector, self.model, self.evaluator, self.config, self.device = (
            collector,
            model,
            evaluator,
            config,
            device,
        )

    def collect(self, first_step: int, note: NoteEpisodes) -> Rollout:
        """`num_steps` steps of every environment."""
        envs = self.collector
        draws = uniforms(self.config, first_step, envs.num_envs, self.device)
        states: list[tuple[Tensor, ...]] = []  # (obs, mask, choice, log_prob, value) of each step
        steps: list[Collected] = []
        count = 0  # real transitions
        for uniform in draws:
            with phase("action"):
                states.append(self._act(uniform))
                actions = states[-1][2].cpu().numpy()  # sync: the envs need the actions
            with phase("env"):
                steps.append(envs.step(actions))
            check_step(steps[-1], envs, (first_step + len(steps)) * envs.num_envs)
            count += int(envs.num_envs if steps[-1].valid is None else steps[-1].valid.sum())
            note([(count, *episode) for episode in envs.finished])
        with phase("store"):
            return self._rollout(states, steps)

    @torch.no_grad()
    def _act(self, uniform: Tensor) -> tuple[Tensor, ...]:
        """What is seen, and the first action whose cumulative probability exceeds a draw."""
        obs = torch.from_numpy(self.collector.obs).to(self.device)
        mask = None if self.collector.mask is None else torch.from_numpy(self.collector.mask).to(self.device)
        if mask is not None and not self.collector.mask.any(axis=1).all():
            env = int(np.argmin(self.collector.mask.any(axis=1)))
            raise EnvError(f"env {env} has no legal action, but its episode goes on: end it or allow one.")
        log_p, value = self.evaluator.log_probs(obs, mask)
        choice = (log_p.exp().cumsum(1) <= uniform[:, None]).sum(1)
        if mask is None:
            choice = choice.clamp(max=log_p.shape[1] - 1)
        else:  # legal also where rounding leaves the sum below 1, or a probability is no number
            last = (mask * torch.arange(mask.shape[1], device=self.device)).amax(1)
            choice = choice.minimum(last).maximum(mask.to(torch.uint8).argmax(1))
        return obs, mask, choice, log_p.gather(1, choice[:, None]).squeeze(1), value

    def _rollout(self, states: list[tuple[Tensor, ...]], steps: list[Collected]) -> Rollout:
        """On the host, where the environments are: how it gets to the device is a choice."""
        choice, log_prob, value = (
            torch.stack(part).cpu()  # sync: once a rollout
            for part in zip(*(state[2:] for state in states), strict=True)
        )
        masks = [step_mask for _, step_mask, *_ in states]

        def rows(name: str, dtype: Any) -> Tensor:
            return torch.from_numpy(np.stack([getattr(step, name) for step in steps]).astype(dtype))

        next_value = torch.cat((value[1:], self._values(self.collector.obs)[None]))
        for t, step in enumerate(steps):
            if step.truncated.any():
                next_value[t] = torch.where(
                    torch.from_numpy(step.truncated), self._values(step.next_obs), next_value[t]
                )
        given = [np.ones(len(step.reward), bool) if step.valid is None else step.valid for step in steps]
        return Rollout(
            rows("obs", np.float32),
            None if masks[0] is None else torch.stack(masks).cpu(),  # sync: once a rollout
            choice,
            log_prob,
            value,
            next_value,
            rows("reward", np.float32),
            rows("terminated", bool),
            rows("truncated", bool),
            None if all(step.valid is None for step in steps) else torch.from_numpy(np.stack(given)),
        )

    @torch.no_grad()
    def _values(self, obs: np.ndarray) -> Tensor:
        """Values (N,) on the host at observations (N, D)."""
        return self.model.values(torch.from_numpy(obs).to(self.device)).cpu()  # sync: asked where an episode was cut

    def check(self, rollout: Rollout) -> None:
        """Steps were looked at as they came."""
