"""PPO on games that were recorded before: epochs over a buffer of episodes, as the source's loader and trainer do.

A round is `update_epochs` epochs. Before it the policy as it is values all states, and advantages follow. Old log-probabilities
are those that were stored (`old_log_probs="behaviour"`: ratios are to the policy that played), or are computed by the policy as
it is ("recomputed": ratios begin at 1, and what the player was is forgotten). Games of another policy are off-policy data, which
the clip keeps from being trusted far: this warms a policy up; play of its own makes it strong.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import torch
from torch import Tensor

from rlbench.batch import Decisions, PPOUpdated
from rlbench.config import ConfigError, PPOConfig
from rlbench.episodes import ORDERS, Episodes
from rlbench.episodes.lanes import lanes
from rlbench.minibatches import Rows, like_parts, slices
from rlbench.models.action_scorer import ActionScorer
from rlbench.phases import phase
from rlbench.progress import Progress
from rlbench.speedups import Choices, variants_for
from rlbench.trainers.epoch import update_epoch
from rlbench.trainers.interrupt import interrupt_calls
from rlbench.trainers.recorded_checks import check_fit, usable_choices
from rlbench.trainers.recorded_history import RecordedHistory
from rlbench.trainers.schedule import linear

ROWS = 8192  # most states that are valued, or whose choices are looked at again, at once
LOSSES = tuple(name for name in PPOUpdated._fields if name != "ratio_error")


def train_on_episodes(
    model: ActionScorer,
    episodes: Episodes,
    config: PPOConfig | None = None,
    choices: Choices | None = None,
    epochs: int = 4,
    batch_by: str = "shuffled",
    progress: bool | None = None,
) -> RecordedHistory:
    """Train a policy, in place, on recorded games.

    Args:
        model: on any device. Episodes may lie on the CPU while it is on CUDA: the slots `upload` and `transfer` bring them over.
        config: of it `total_timesteps`, `num_envs`, `num_steps`, `hidden` and evaluations mean nothing here; with `anneal_lr` the
            step size falls to 0 over the epochs.
        choices: how it is computed; `Choices.plain` where left out.
        epochs: passes over all samples.
        batch_by: what goes into a minibatch: "shuffled", "grouped" (equal numbers of legal actions) or "bucketed" (1, 2, 3 to 4,
            5 to 8, …).
        progress: False hides it.

    Raises:
        ConfigError, ChoiceError, EpisodeError: naming what cannot be used.
    """
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise ConfigError(f"epochs={epochs!r} is refused; accepted: whole numbers of at least 1.")
    return RecordedTraining(model, episodes, config, choices, batch_by).train(epochs, progress)


class RecordedTraining:
    """Binds the slots, once, and goes over the samples."""

    def __init__(
        self,
        model: ActionScorer,
        episodes: Episodes,
        config: PPOConfig | None = None,
        choices: Choices | None = None,
        batch_by: str = "shuffled",
    ) -> None:
        self.config = config = PPOConfig() if config is None else config
        check_fit(model, episodes, config, batch_by)
        self.model, self.episodes, self.batch_by = model, episodes, batch_by
        self.device = model.score.device
        self.choices = usable_choices(choices, config, self.device)
        bound = variants_for(self.choices, "ppo")
        model.encode = bound["action_encoding"]
        self.precision, self.backend = bound["precision"](self.device), bound["backend"]()
        self.evaluator = bound["evaluate"](model)
        self.apply_update = bound["ppo_update"](model, config, self.evaluator, bound["optimizer"], self.precision)
        self.advantages, self.old_log_probs = bound["gae"], bound["old_log_probs"]
        self.upload, self.transfer, self.minibatches = bound["upload"], bound["transfer"], bound["minibatch"]
        self.losses = {name: bound["metrics"]() for name in LOSSES}
        self.lanes = lanes(episodes.bounds)
        self.epochs, self.stopping = 0, False

    def train(self, epochs: int, progress: bool | None = None) -> RecordedHistory:
        """Go over the samples `epochs` times, or until an interrupt."""
        history = self.new_history()
        compiled, renew = self.compile_s, True
        bar = Progress(epochs * len(self.episodes), f"PPO on {self.episodes.game}", "episodes", progress)
        with bar, interrupt_calls(self.stop), self.precision.setting(), self.backend:
            while len(history.rows) < epochs and not self.stopping:
                start, built = time.perf_counter(), self.compile_s
                if renew:
                    source = self.uploaded(self.learnable())
                rate = self.learning_rate(len(history.rows), epochs)
                found = self.epoch(source, rate)
                losses = {name: metric.mean() for name, metric in self.losses.items()}
                seconds = time.perf_counter() - start - (self.compile_s - built)
                history.add(
                    seconds, losses, float(found.ratio_error[0]), renew, rate, len(found.loss)
                )  # sync: once an epoch
                bar.advance(len(self.episodes), f"loss {losses['loss']:.3g}")
                renew = not len(history.rows) % self.config.update_epochs
                renew |= 0 < self.config.target_kl < losses["approx_kl"]
        history.compile_s, history.interrupted = self.compile_s - compiled, self.stopping
        self.stopping = False  # called again, it goes on
        history.recompiles, history.skipped_updates = self.recompiles, int(self.apply_update.skipped)
        return history

    @torch.no_grad()
    def learnable(self) -> Decisions:
        """All samples with the advantages that the policy as it is gives them."""
        games, config, put = self.episodes, self.config, self.lanes.spread
        with phase("advantages"):
            value = self.values(games.obs)
            next_value = self.next_values(value)
            rows = (put(games.reward), put(value), put(next_value), put(games.terminated, True), put(games.truncated))
            turn = -1.0 if games.alternating else 1.0
            found = self.advantages(*rows, config.gamma, config.gae_lambda, turn)
            advantage = self.lanes.gather(found)
        samples = Decisions(games.obs, games.legal, games.choice, games.log_prob, value, advantage, advantage + value)
        if config.old_log_probs == "recomputed":
            with phase("old_log_probs"):
                samples = samples._replace(log_prob=self.recomputed(samples))
        return samples

    def values(self, obs: Tensor) -> Tensor:
        """What the policy expects (S,) of states (S, D), where those lie."""
        parts = [self.model.states(part.to(self.device))[1].to(obs.device) for part in obs.split(ROWS)]
        return torch.cat(parts) if parts else obs.new_zeros(0)

    def next_values(self, value: Tensor) -> Tensor:
        """The value (S,) of where each step led, to whoever acts there; 0 behind a terminated one."""
        games, last = self.episodes, self.episodes.bounds[1:] - 1
        led_to = torch.cat((value[1:], value.new_zeros(1)))
        led_to[last] = 0.0
        cut = games.truncated[last]
        if cut.any():  # sync: few games are broken off
            led_to[last[cut]] = self.values(games.last_obs[cut])
        return led_to

    def recomputed(self, samples: Decisions) -> Tensor:
        """Log-probabilities (S,) of all choices under the policy as it is."""
        parts = slices(Rows(samples), like_parts(len(samples.choice), ROWS))
        found = [self.old_log_probs(self.model, self.transfer(part, self.device)) for part in parts]
        return torch.cat(found).to(samples.choice.device)

    def uploaded(self, samples: Decisions) -> Any:
        """The samples as minibatches are taken from them: see the slot `upload`."""
        with phase("transfer"):
            return self.upload(samples, self.device, self.transfer)

    def epoch(self, source: Any, learning_rate: float) -> PPOUpdated:
        """One pass over all samples, in an order of its own."""
        kind = ORDERS[self.batch_by]
        order, sizes = kind(source.rows, self.config.batch_size, self.config.seed).order(self.epochs)
        self.epochs += 1
        return update_epoch(self.apply_update, self.minibatches, source, order, sizes, learning_rate, self._note)

    def _note(self, found: PPOUpdated) -> None:
        with phase("sync"):
            for name, metric in self.losses.items():
                metric.add(getattr(found, name))

    def learning_rate(self, done: int, epochs: int) -> float:
        rate = self.config.learning_rate
        return linear(rate, 0.0, epochs, done) if self.config.anneal_lr else rate

    def stop(self) -> None:
        """Ask a running `train` to finish its epoch and return."""
        self.stopping = True

    def new_history(self) -> RecordedHistory:
        config, choices = dataclasses.asdict(self.config), self.choices.in_use(self.config, self.device)
        games = self.episodes
        return RecordedHistory(config, choices, games.game, len(games), games.steps, self.batch_by)

    @property
    def compile_s(self) -> float:
        """Seconds of compilation so far."""
        return sum(float(getattr(part, "build_s", 0.0)) for part in self._parts())

    @property
    def recompiles(self) -> int:
        return sum(int(getattr(part, "recompiles", 0)) for part in self._parts())

    def _parts(self) -> tuple[object, ...]:
        return self.apply_update, self.evaluator, self.advantages
