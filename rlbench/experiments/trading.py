"""Train, validate, test on a market: weights are chosen on the validation part, and the test part is looked at once."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rlbench.config import DQNConfig
from rlbench.progress import Progress
from rlbench.speedups import Choices
from rlbench.stats import block_bootstrap
from rlbench.trainers.dqn import DQN

if TYPE_CHECKING:
    from rlbench.market import Market

EPISODE_BARS = 256


@dataclass
class Trained:
    """One seed's training. `curve`: env_step, value (log return of one pass over validation, greedy).

    `agent` holds the weights of the checkpoint at `best_step`, the one with the best `best_value` on validation.
    """

    seed: int
    agent: DQN
    curve: list[dict[str, float]] = field(default_factory=list)
    best_step: int = 0
    best_value: float = -np.inf
    seconds: float = 0.0
    _weights: Any = None

    def look(self, validation: Market, options: Mapping[str, Any], step: int) -> None:
        """Evaluate on validation; keep the weights if they are the best so far."""
        value = float(np.log(play(self.agent, validation, options)["equity"].iloc[-1]))
        self.curve.append({"env_step": step, "value": value})
        if value > self.best_value:
            self.best_step, self.best_value = step, value
            self._weights = copy.deepcopy(self.agent.online.state_dict())

    def restore(self) -> None:
        """Put the chosen weights back into the agent."""
        if self._weights is not None:
            self.agent.online.load_state_dict(self._weights)


def train(
    market: Market,
    config: DQNConfig,
    seeds: Sequence[int],
    *,
    options: Mapping[str, Any] | None = None,
    choices: Choices | None = None,
    device: str = "cpu",
    checkpoints: int = 10,
    progress: bool | None = None,
) -> list[Trained]:
    """Train one agent a seed on the train part; each comes back with the weights that did best on validation.

    `options` are those of `TradingEnv`. The best of `checkpoints` looks at validation is an optimistic number: only the
    test part says what the chosen weights are worth.
    """
    parts, options = market.split(), dict(options or {})
    config = config.replace(log_frequency=max(1, config.total_timesteps // checkpoints), eval_episodes=0)
    done = []
    with Progress(config.total_timesteps * len(seeds), f"DQN on {market.name}", "steps", progress) as bar:
        for seed in seeds:
            agent = DQN(config.replace(seed=seed), choices, _episodes(parts.train, options), device)
            trained = Trained(seed, agent)

            def on_log(state: dict, trained: Trained = trained, start: int = bar.done) -> None:
                trained.look(parts.validation, options, state["step"])
                bar.advance(start + state["step"] - bar.done, f"seed {trained.seed}")

            trained.seconds = agent.train(progress=False, on_log=on_log).train_s
            trained.restore()
            done.append(trained)
    return done


def _episodes(part: Market, options: Mapping[str, Any]) -> Any:
    """A factory of training envs: random starts on the part."""
    from rlbench.envs.trading import TradingEnv

    room = len(part) - options.get("window", 1)
    settings = {"episode_length": min(EPISODE_BARS, room), **options}
    return lambda: TradingEnv(part, **settings)


def play(agent: DQN, part: Market, options: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """The greedy policy's one pass over all of `part`: bar, close, equity, action, position, filled, and time."""
    from rlbench.envs.references import run_policy
    from rlbench.envs.trading import TradingEnv

    env = TradingEnv(part, **{**(options or {}), "episode_length": None, "random_start": False})
    history = run_policy(env, lambda observation: int(agent.act(observation)))
    return history.assign(time=part.time[history["bar"].to_numpy()])


def hold(part: Market, options: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """Buy at the first close and keep: columns as of `play`."""
    from rlbench.envs.references import run_policy
    from rlbench.envs.trading import TradingEnv

    settings = {**(options or {}), "positions": (1.0,), "episode_length": None, "random_start": False}
    history = run_policy(TradingEnv(part, **settings), lambda observation: 0)
    return history.assign(time=part.time[history["bar"].to_numpy()])


def yearly_advantage(agent: pd.DataFrame, other: pd.DataFrame, bars_per_year: float) -> tuple[float, float, float]:
    """Mean log return a year of `agent` over `other`, with a 95 % interval from the stationary block bootstrap."""
    gained = np.diff(np.log(agent["equity"])) - np.diff(np.log(other["equity"]))  # (T,)
    low, high = block_bootstrap(gained)
    return float(gained.mean()) * bars_per_year, low * bars_per_year, high * bars_per_year


def curves(runs: Sequence[Trained], name: str) -> pd.DataFrame:
    """The validation curves of all seeds, tidy: name, seed, env_step, value."""
    return pd.DataFrame([{"name": name, "seed": run.seed, **point} for run in runs for point in run.curve])
