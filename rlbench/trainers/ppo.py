"""PPO (Schulman et al., 2017) over sets of legal actions of any size, or over a fixed number of actions.

One loop: collect, advantages, minibatches, update, log. How each part is computed is bound once, in `__init__`, from the Choices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rlbench.actions import check_sets, pack, to_unsigned
from rlbench.batch import Decisions, PPOUpdated, Rollout
from rlbench.config import PPOConfig
from rlbench.envs.source import env_source
from rlbench.envs.spaces import EnvError
from rlbench.machine import resolve_device
from rlbench.minibatches import like_parts
from rlbench.models.policy_counts import describe_policy
from rlbench.phases import phase
from rlbench.random import Purpose, random_bits
from rlbench.speedups import Choices, variants_for
from rlbench.trainers.arguments import checked_choices, evaluation_factory
from rlbench.trainers.epoch import update_epoch
from rlbench.trainers.finite import check_start
from rlbench.trainers.history import History
from rlbench.trainers.logbook import Logbook
from rlbench.trainers.policies import policy_for
from rlbench.trainers.schedule import linear
from rlbench.trainers.strength import evaluate_game, greedy_player, rules_of, strength_of
from rlbench.trainers.trainer import Trainer

LOSSES = tuple(name for name in PPOUpdated._fields if name != "ratio_error")


class PPO(Trainer):
    """Trains a policy on any game (`rlbench.envs.games`), or any Gymnasium env with Box observations and Discrete actions.

    Args:
        config: what is learnt.
        choices: how it is computed; `Choices.plain(device)` where left out.
        env: a game; or an id, "module:factory", a factory, a `gymnasium.Env` or a `gymnasium.vector.VectorEnv`.
        device: "cpu", "cuda", "cuda:N" or "auto"; where CUDA is asked for and absent, the CPU with one line that says so.
        eval_env: a factory of the envs to evaluate on, where they differ from `env`.

    Raises:
        ConfigError, ChoiceError, EnvError: naming the field, what was found, and what is accepted.
    """

    title = "PPO"
    log_numbers = (*LOSSES, "first_ratio_error")

    def __init__(
        self,
        config: PPOConfig | None = None,
        choices: Choices | None = None,
        env: Any = "CartPole-v1",
        device: str = "cpu",
        eval_env: Any = None,
    ) -> None:
        self.config = config = PPOConfig() if config is None else config
        self.device = resolve_device(device)
        self.source = env_source(env)
        self.choices = choices = checked_choices(config, choices, self.device, self.source, PPOConfig)
        bound = variants_for(choices, "ppo")
        policy = policy_for(self.source, config, choices, bound, self.device)
        self.model, self.rollouts, self.collector = policy.model, policy.rollouts, policy.collector
        game = self.source.game
        if game and eval_env is not None:
            raise EnvError(
                f"{self.source.name} is a game, which is evaluated by matches or by what is earned in it: leave eval_env out."
            )
        self.make_eval_env = None if game else evaluation_factory(env, eval_env, config, self.collector)
        if game and config.eval_episodes:
            rules_of(self)  # refused now where it cannot be evaluated on

        self.precision, self.backend = bound["precision"](self.device), bound["backend"]()
        self.apply_update = bound["ppo_update"](
            self.model, config, policy.evaluator, bound["optimizer"], self.precision
        )
        self.evaluator, self.advantages = policy.evaluator, bound["gae"]
        self.old_log_probs = bound["old_log_probs"]
        self.upload, self.transfer, self.minibatches = bound["upload"], bound["transfer"], bound["minibatch"]
        self.losses = {name: bound["metrics"]() for name in LOSSES}
        self.first_ratio_error: list[Tensor] = []  # of the rounds since the last log point
        self.epochs = 0
        self.trained = self.parameters()
        self.built_before = (getattr(self.advantages, "build_s", 0.0), getattr(self.advantages, "recompiles", 0))

    def iterate(self, log: Logbook) -> None:
        """Collect a rollout, then go over it `update_epochs` times."""
        rollout = self.collect(log)
        source, rows = self.learnable(rollout)
        sizes = like_parts(len(rows), self.config.batch_size)
        for epoch in range(self.config.update_epochs):
            order = rows[self.order(len(rows))]
            found = update_epoch(
                self.apply_update, self.minibatches, source, order, sizes, self.learning_rate, self.note
            )
            if epoch == 0:
                self.first_ratio_error.append(found.ratio_error[0])
            self.updates += len(sizes)
            self.epochs += 1
            if self.config.target_kl and found.approx_kl.mean().item() > self.config.target_kl:  # sync: once an epoch
                break

    def collect(self, log: Logbook) -> Rollout:
        """`num_steps` steps of every env. Counts real transitions only."""

        def note(finished: list[tuple[int, float, int]]) -> None:
            if finished:
                log.episodes_at([(self.env_steps + count, *episode) for count, *episode in finished])

        rollout = self.rollouts.collect(self.iterations * self.config.num_steps, note)
        self.rollouts.check(rollout)
        self.iterations += 1
        valid = rollout.valid
        self.env_steps += rollout.reward.numel() if valid is None else int(valid.sum())  # sync: on the host
        return rollout

    def learnable(self, rollout: Rollout) -> tuple[Any, np.ndarray]:
        """The rollout's samples with their advantages, where updates read them, and the numbers of those that are real."""
        config = self.config
        with phase("advantages"):
            advantage = self.advantages(
                rollout.reward,
                rollout.value,
                rollout.next_value,
                rollout.terminated,
                rollout.truncated,
                config.gamma,
                config.gae_lambda,
                self.rollouts.turn,
            )
        legal = rollout.legal.flatten(0, 1) if isinstance(rollout.legal, Tensor) else rollout.legal
        flat = {name: getattr(rollout, name).flatten(0, 1) for name in ("obs", "choice", "log_prob", "value")}
        target = advantage + rollout.value
        decisions = Decisions(legal=legal, advantage=advantage.flatten(), target=target.flatten(), **flat)
        with phase("old_log_probs"):
            decisions = decisions._replace(log_prob=self.old_log_probs(self.model, decisions))
        with phase("transfer"):
            source = self.upload(decisions, self.device, self.transfer)
        every = np.arange(rollout.reward.numel())
        return source, every if rollout.valid is None else every[rollout.valid.flatten().numpy()]  # sync: on the host

    def order(self, count: int) -> np.ndarray:
        """The order of an epoch's samples, (count,): the same for all variants."""
        return np.argsort(
            random_bits(self.config.seed, Purpose.MINIBATCH, self.epochs, np.arange(count)), kind="stable"
        )

    def note(self, found: PPOUpdated) -> None:
        """Take in the numbers of an update, or of several."""
        with phase("sync"):
            for name, metric in self.losses.items():
                metric.add(getattr(found, name))

    @property
    def learning_rate(self) -> float:
        c = self.config
        return linear(c.learning_rate, 0.0, c.total_timesteps, self.env_steps) if c.anneal_lr else c.learning_rate

    @property
    def compile_s(self) -> float:
        return self._of_parts("build_s") - self.built_before[0]

    @property
    def recompiles(self) -> int:
        return int(self._of_parts("recompiles") - self.built_before[1])

    def _of_parts(self, name: str) -> float:
        """A sum over the parts that may be compiled; some of them are one for the whole process."""
        return sum(float(getattr(part, name, 0.0)) for part in (self.apply_update, self.evaluator, self.advantages))

    @property
    def network(self) -> nn.Module:
        return self.model

    def check_data(self) -> None:
        if self.source.game is None:  # of games, each rollout is looked at whole
            check_start(self.collector.obs, self.env_name)

    def read_log(self) -> dict[str, float]:
        errors, self.first_ratio_error = self.first_ratio_error, []
        largest = torch.stack(errors).max().item() if errors else float("nan")  # sync: at log points
        return {**{name: metric.mean() for name, metric in self.losses.items()}, "first_ratio_error": largest}

    def close_history(self, history: History) -> None:
        if self.source.game and history.returns and not self.stopping:
            history.strength = strength_of(self, self.config.eval_episodes)

    def describe_network(self) -> dict[str, Any]:
        return describe_policy(self.config, self.model)

    @torch.inference_mode()
    def greedy(self, obs: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        legal = None if mask is None else torch.from_numpy(mask).to(self.device)
        log_p, _ = self.evaluator.log_probs(torch.from_numpy(obs).to(self.device), legal)
        return log_p.argmax(dim=1).cpu().numpy()  # sync: the envs need the actions

    def act(self, obs: Any, legal: Any = None) -> Any:
        """The most probable action.

        Args:
            obs: in a game, the features (D,) of one state; else as in `Trainer.act`.
            legal: in a game, the ids of that state's legal actions; else a mask or None.

        Returns:
            In a game, the id as a Python int, 0 … 2^64 - 1.
        """
        if self.source.game is None:
            return super().act(obs, legal)
        rows = torch.as_tensor(np.asarray(obs, np.float32), device=self.device).reshape(1, -1)
        sets = check_sets(pack([legal], self.device))
        return to_unsigned(greedy_player(self)(rows, sets))[0]

    def evaluate(self, episodes: int, seed: int | None = None) -> list[float]:
        """Returns of the greedy policy: on fresh envs; or of games, against `eval_opponent` where the game has opponents."""
        seed = self.config.seed if seed is None else seed
        if self.source.game is None:
            return super().evaluate(episodes, seed)
        return evaluate_game(self, episodes, seed)
