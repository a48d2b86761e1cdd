"""DQN (Mnih et al., 2015), with Double DQN, n-step returns and action masks as settings.

One loop: collect, store, sample, update, sync the target, log. How each part is computed is bound once, in `__init__`,
from the Choices.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.buffers import NStep, RowSpec, one_step
from rlbench.config import DQNConfig
from rlbench.envs.source import env_source
from rlbench.machine import resolve_device
from rlbench.models.networks import describe_network, make_network
from rlbench.phases import phase
from rlbench.random import Purpose, random_bits
from rlbench.speedups import Choices, variants_for
from rlbench.trainers.arguments import checked_choices, evaluation_factory
from rlbench.trainers.collectors import collector_of
from rlbench.trainers.draws import ByPriority, Uniform
from rlbench.trainers.explore import EpsilonGreedy
from rlbench.trainers.finite import check_replay, check_start, check_step
from rlbench.trainers.history import History
from rlbench.trainers.logbook import Logbook
from rlbench.trainers.plan import Plan
from rlbench.trainers.schedule import learning_start, linear, update_points
from rlbench.trainers.target import TargetSync
from rlbench.trainers.trainer import Trainer


class DQN(Trainer):
    """Trains a Q-network on any Gymnasium env with Box observations and Discrete actions.

    Args:
        config: what is learnt.
        choices: how it is computed; `Choices.plain(device)` where left out.
        env: an id, "module:factory", a factory, a `gymnasium.Env` or a `gymnasium.vector.VectorEnv`.
        device: "cpu", "cuda", "cuda:N" or "auto"; where CUDA is asked for and absent, the CPU with one line that says so.
        eval_env: a factory of the envs to evaluate on, where they differ from `env`.

    Raises:
        ConfigError, ChoiceError, EnvError: naming the field, what was found, and what is accepted.
    """

    title = "DQN"
    log_numbers = ("loss", "q", "epsilon")

    def __init__(
        self,
        config: DQNConfig | None = None,
        choices: Choices | None = None,
        env: Any = "CartPole-v1",
        device: str = "cpu",
        eval_env: Any = None,
    ) -> None:
        self.config = config = DQNConfig() if config is None else config
        self.device = resolve_device(device)
        self.source = env_source(env)
        self.choices = choices = checked_choices(config, choices, self.device, self.source)
        self.collector = collector_of(self.source, config, choices, self.device)
        check_start(self.collector.obs, self.collector.name)
        self.make_eval_env = evaluation_factory(env, eval_env, config, self.collector)
        spec = self.collector.spec
        self.spec = RowSpec(
            spec.obs_size, spec.num_actions, self.collector.masked, spec.layout, self.collector.num_envs
        )

        generator = torch.Generator().manual_seed(random_bits(config.seed, Purpose.WEIGHTS, 0, 0))
        self.online = make_network(config, self.spec, generator).to(self.device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)

        bound = variants_for(choices)
        self.replay = bound["replay"](self.spec, config.buffer_size, self.device)
        self.convert = bound["conversion"]("pinned" in choices.transfer)
        self.transfer = bound["transfer"]
        self.precision, self.backend = bound["precision"](self.device), bound["backend"]()
        self.apply_update = bound["update"](self.online, self.target, config, bound["optimizer"], self.precision)
        self.losses = bound["metrics"]()
        # A replay of tensors keeps them on the device: nothing to convert, nothing to transfer.
        self.to_device = (lambda rows: rows) if self.replay.gives == "tensors" else self._convert_and_transfer

        envs = self.collector.num_envs
        self.explore = EpsilonGreedy(self.spec, config, envs)
        self.n_step = NStep(config.n_step, config.gamma, envs) if config.n_step > 1 else None
        if config.prioritized_replay_alpha:
            self.draw = ByPriority(config, self.replay, bound["priorities"](config.buffer_size), self.device)
        else:
            self.draw = Uniform(config, self.replay, self.apply_update.chunk)
        self.target_sync = TargetSync(self.online, self.target, config, self.apply_update, self.precision.scaled)
        self.learning_start = learning_start(config, envs)
        self.last_target: Tensor | None = None  # (B,) of the last update, read at log points
        self.loop = bound["loop"](self)
        self.trained = self.parameters()

    def iterate(self, log: Logbook) -> None:
        self.loop.advance(log)

    def advance(self, log: Logbook) -> None:
        """One iteration, which is the algorithm: collect, update where that is due, sync the target where that is."""
        config, before = self.config, self.env_steps
        self.collect(log)
        for point in update_points(before, self.env_steps, self.learning_start, config.train_frequency):
            self.target_sync.up_to(point - 1)
            for _ in range(config.gradient_steps // self.apply_update.chunk):
                self.update(self.sample())
            self.target_sync.up_to(point)
        self.target_sync.up_to(self.env_steps)

    def follow(self, plan: Plan) -> None:
        """Set the counters to where a plan that has been carried out leaves them."""
        self.iterations, self.env_steps = self.iterations + plan.iterations, plan.env_steps
        self.updates += plan.updates
        self.target_sync.follow(plan)

    def collect(self, log: Logbook) -> None:
        """One step of every env, stored in replay. Counts real transitions only."""
        with phase("action"):
            actions = self.explore(self.iterations, self.epsilon, self.collector.obs, self.collector.mask, self.greedy)
        with phase("env"):
            collected = self.collector.step(actions)
        self.iterations += 1
        self.env_steps += len(actions) if collected.valid is None else int(np.count_nonzero(collected.valid))
        check_step(collected, self.collector, self.env_steps)
        with phase("store"):
            rows = one_step(collected, self.config.gamma) if self.n_step is None else self.n_step(collected)
            if rows is not None and len(rows.action):
                self.draw.add(rows)
        log.episodes(self.collector.finished)

    def sample(self) -> Transitions:
        """A minibatch on the device, or as many as an update takes at once."""
        with phase("sample"):
            rows = self.replay.sample(self.draw.slots(self.updates, self.env_steps))
        return self.draw.weighted(self.to_device(rows))

    def _convert_and_transfer(self, rows: Transitions) -> Transitions:
        with phase("sample"):
            batch = self.convert(rows)
        with phase("transfer"):
            return self.transfer(batch, self.device)

    def update(self, batch: Transitions) -> None:
        """A step of Adam on the temporal-difference loss, or as many as are taken at once."""
        updated = self.apply_update(batch, self.learning_rate)
        self.last_target = updated.target
        with phase("sync"):
            self.losses.add(updated.loss)
        with phase("sample"):
            self.draw.learn(updated.td_error)
        self.updates += self.apply_update.chunk

    @property
    def compile_s(self) -> float:
        return self.apply_update.build_s + (0.0 if self.loop is self else self.loop.build_s)

    @property
    def recompiles(self) -> int:
        return self.apply_update.recompiles + (0 if self.loop is self else self.loop.recompiles)

    @property
    def learning_rate(self) -> float:
        c = self.config
        return linear(c.learning_rate, 0.0, c.total_timesteps, self.env_steps) if c.anneal_lr else c.learning_rate

    @property
    def epsilon(self) -> float:
        c = self.config
        return linear(c.start_e, c.end_e, c.exploration_fraction * c.total_timesteps, self.env_steps)

    @torch.inference_mode()
    def greedy(self, obs: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        """The best legal actions (N,) int64 for observations (N, D) and masks (N, A) or None."""
        q = self.online(torch.from_numpy(obs).to(self.device))  # (N, A)
        if mask is not None:
            q = q.masked_fill(~torch.from_numpy(mask).to(self.device), -torch.inf)
        return q.argmax(dim=1).cpu().numpy()  # sync: the envs need the actions

    def describe_network(self) -> dict[str, Any]:
        return describe_network(self.config, self.spec, self.online)

    def close_history(self, history: History) -> None:
        history.target_syncs = self.target_sync.count

    def read_log(self) -> dict[str, float]:
        """Mean loss since the last call, mean target of the last update, epsilon."""
        q = float("nan") if self.last_target is None else self.last_target.mean().item()  # sync: at log points
        return {"loss": self.losses.mean(), "q": q, "epsilon": self.epsilon}

    def check_data(self) -> None:
        check_replay(self.replay, self.env_name)

    @property
    def network(self) -> torch.nn.Module:
        return self.online

    def parameters(self) -> list[Tensor]:
        return [*self.online.parameters(), *self.target.parameters()]
