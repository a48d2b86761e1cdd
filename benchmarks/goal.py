"""One training on CartPole-v1 until its greedy policy balances for 475 steps, in a process of its own; prints a JSON object.

Both sides: from time to time the mean return of 20 whole episodes of the greedy policy, on fresh envs that are started alike, is
held against 475; the first evaluation that reaches it ends the training. The clock stands still meanwhile.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium  # noqa: F401 (so that no side's clock pays for it)
import numpy as np
import torch

from benchmarks.workloads import cartpole
from rlbench.config import DQNConfig
from rlbench.speedups import Choices
from rlbench.trainers.dqn import DQN
from rlbench.trainers.evaluate import Policy, evaluate

GOAL, EPISODES = 475.0, 20


class Race:
    """The clock of a training and its evaluations.

    Args:
        started: when the process was started, as `time.time()` has it.
    """

    def __init__(self, started: float) -> None:
        self.imported_s, self.start = time.time() - started, time.perf_counter()
        self.paused = 0.0  # seconds of evaluations
        self.seconds: float | None = None  # when the goal was reached
        self.env_steps, self.means = 0, []

    def evaluate(self, env_steps: int, returns_of: Callable[[], list[float]]) -> list[float]:
        """Evaluate at `env_steps`, the clock standing still, and note whether that is the goal."""
        began = time.perf_counter()
        returns = returns_of()
        if returns:
            self.means.append(statistics.fmean(returns))
            self.env_steps = env_steps
            if self.means[-1] >= GOAL and self.seconds is None:
                self.seconds = began - self.start - self.paused
        self.paused += time.perf_counter() - began
        return returns

    def outcome(self, updates: int, built_s: float = 0.0) -> dict[str, Any]:
        """What became of it; no seconds where the goal was not reached."""
        return {
            "seconds": self.seconds,
            "spent_s": self.seconds or time.perf_counter() - self.start - self.paused,
            "with_imports_s": None if self.seconds is None else self.seconds + self.imported_s,
            "imports_s": self.imported_s,
            "build_s": built_s,
            "env_steps": self.env_steps,
            "updates": updates,
            "evaluations": len(self.means),
            "evaluations_s": self.paused,
            "last_mean": self.means[-1],
        }


class Racer(DQN):
    """Our trainer, stopped by the evaluation that reaches the goal."""

    race: Race

    def evaluate(self, episodes: int, seed: int | None = None) -> list[float]:
        returns = self.race.evaluate(self.env_steps, lambda: super(Racer, self).evaluate(episodes, seed))
        if self.race.seconds is not None:
            self.stop()
        return returns


def race_ours(started: float, seed: int, cap: int, every: int) -> dict[str, Any]:
    """The preset `cartpole` under fast(), what is built with it included."""
    race = Race(started)
    config = DQNConfig.preset("cartpole", total_timesteps=cap, eval_frequency=every, eval_episodes=EPISODES, seed=seed)
    trainer = Racer(config, Choices.fast(), "CartPole-v1")
    trainer.race = race
    history = trainer.train(progress=False)
    return race.outcome(history.updates, history.compile_s) | {"choices": history.choices}


def zoo_settings(envs: int, cap: int) -> dict[str, Any]:
    """SB3's DQN on CartPole-v1 as RL Baselines3 Zoo tuned it, where a training has 50,000 steps and one env.

    With several envs a round of updates comes after as many env steps, or one vector step more, with as many updates for each.
    """
    vector_steps = -(-256 // envs)
    return {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1_000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": vector_steps,
        "gradient_steps": vector_steps * envs // 2,
        "exploration_fraction": 0.16 * 50_000 / cap,
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    }


def race_sb3(started: float, seed: int, cap: int, every: int, envs: int) -> dict[str, Any]:
    """SB3's DQN on its own default vector env."""
    from stable_baselines3 import DQN as PeerDQN
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    class Judge(BaseCallback):
        due = every

        def _on_step(self) -> bool:
            if self.num_timesteps >= self.due:
                self.due += every
                look(self.num_timesteps)
            return race.seconds is None

    def look(env_steps: int) -> None:
        race.evaluate(env_steps, lambda: evaluate(greedy, cartpole, EPISODES, seed))

    race = Race(started)
    model = PeerDQN(
        "MlpPolicy", make_vec_env(cartpole, n_envs=envs), seed=seed, device="cpu", verbose=0, **zoo_settings(envs, cap)
    )
    greedy: Policy = lambda obs, mask: np.asarray(model.predict(obs, deterministic=True)[0])  # noqa: E731
    model.learn(cap, callback=Judge(), log_interval=None)
    if race.seconds is None:
        look(model.num_timesteps)
    return race.outcome(model._n_updates)


def main(arguments: list[str]) -> None:
    """side started seed cap every"""
    side, started, *whole = arguments
    seed, cap, every = map(int, whole)
    torch.set_num_threads(1)
    if side == "ours":
        found = race_ours(float(started), seed, cap, every)
    else:
        found = race_sb3(float(started), seed, cap, every, int(side.removeprefix("sb3-")))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
