"""The peer's side: Stable-Baselines3's DQN, told to do the same work as a `DQNConfig` describes.

Where the two count differently:

- SB3's `train_freq` counts steps of the vector env and `gradient_steps` is a number for each such round, where ours counts
  env steps. With 10 envs, one update every env step is `train_freq=1, gradient_steps=10`.
- SB3's target syncs count from step 0, ours from `learning_starts`: between there and the end there are as many.

Settings that SB3's DQN has no counterpart for are refused, so that a ratio never compares two algorithms.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.sides import Run
from benchmarks.workloads import Workload
from rlbench.config import DQNConfig
from rlbench.trainers.evaluate import evaluate
from rlbench.trainers.logbook import WARM_UP_UPDATES

PEER = "stable-baselines3"


class PeerError(ValueError):
    """A setting that both sides cannot follow alike."""


def sb3_settings(config: DQNConfig) -> dict[str, Any]:
    """Keyword arguments of `stable_baselines3.DQN` for the same work.

    Raises:
        PeerError: naming the setting that SB3 has no equal for.
    """
    train_freq, gradient_steps = _round_of_updates(config)
    return {
        "learning_rate": config.learning_rate,
        "buffer_size": config.buffer_size,
        "learning_starts": config.learning_starts,
        "batch_size": config.batch_size,
        "tau": config.tau,
        "gamma": config.gamma,
        "train_freq": train_freq,
        "gradient_steps": gradient_steps,
        "n_steps": config.n_step,
        "target_update_interval": config.target_network_frequency,
        "exploration_fraction": config.exploration_fraction,
        "exploration_initial_eps": config.start_e,
        "exploration_final_eps": config.end_e,
        "max_grad_norm": config.max_grad_norm,
        "policy_kwargs": {"net_arch": list(config.hidden)},  # ReLU and Adam are its defaults, as they are ours
        "seed": config.seed,
        "device": "cpu",
        "verbose": 0,
    }


def _round_of_updates(config: DQNConfig) -> tuple[int, int]:
    """(vector steps between rounds of updates, updates in a round)."""
    if config.double_dqn or not config.huber or not config.max_grad_norm:
        raise PeerError(
            f"double_dqn={config.double_dqn}, huber={config.huber}, max_grad_norm={config.max_grad_norm:g}: SB3's DQN has "
            "no Double DQN, always the Huber loss, and always clips; accepted are False, True and a norm above 0."
        )
    envs, every = config.num_envs, config.train_frequency
    if every % envs and envs % every:
        raise PeerError(f"train_frequency={every} with num_envs={envs}: one must be a multiple of the other.")
    stride = max(envs, every)
    for name in ("learning_starts", "total_timesteps"):
        if getattr(config, name) % stride:
            raise PeerError(f"{name}={getattr(config, name)} must be a multiple of {stride} for both to end alike.")
    for name in ("target_network_frequency", "buffer_size"):
        if getattr(config, name) % envs:
            raise PeerError(f"{name}={getattr(config, name)} must be a multiple of num_envs={envs}.")
    return max(1, every // envs), max(1, envs // every) * config.gradient_steps


def train_sb3(workload: Workload, seed: int) -> Run:
    """Train SB3's DQN on its own default vector env, and evaluate it as ours is.

    Raises:
        PeerError: for settings without an equal, and where training ends within the warm-up.
    """
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env

    config, make_env = workload.config.replace(seed=seed), workload.peer_env or workload.make_env
    envs = make_vec_env(make_env, n_envs=config.num_envs)  # DummyVecEnv of Monitors
    model = DQN("MlpPolicy", envs, **sb3_settings(config))
    clock = _rate_clock()
    model.learn(config.total_timesteps, callback=clock, log_interval=None)
    if clock.first_step < 0:
        raise PeerError(f"{workload.name}: no more than {WARM_UP_UPDATES} updates, so nothing to take a rate from.")
    sps = (model.num_timesteps - clock.first_step) / (time.perf_counter() - clock.began)

    def greedy(obs: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        return model.predict(obs, deterministic=True)[0]

    returns = evaluate(greedy, make_env, config.eval_episodes, config.seed)
    envs.close()
    parameters = sum(p.numel() for p in model.q_net.parameters())
    return Run(model.num_timesteps, model._n_updates, parameters, sps, tuple(returns))


def _rate_clock() -> Any:
    """A callback that starts the rate's clock where ours starts: just after the update that ends the warm-up."""
    from stable_baselines3.common.callbacks import BaseCallback

    class RateClock(BaseCallback):
        began = float("nan")
        first_step = -1

        def _on_rollout_start(self) -> None:
            if self.first_step < 0 and self.model._n_updates >= WARM_UP_UPDATES:
                self.first_step, self.began = self.num_timesteps, time.perf_counter()

        def _on_step(self) -> bool:
            return True

    return RateClock()
