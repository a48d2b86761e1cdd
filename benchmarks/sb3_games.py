"""The peer's side of PPO on a game: sb3-contrib's MaskablePPO, fed by our games, told to do what a `PPOConfig` describes.

Its actions are 65 squares (the last is a pass) under a mask; our games' are ids, of which a square is the disc that is
placed. Both sides step the same games in the same native code. Where the two count differently:

- Its value loss is the mean squared error, ours half of it: its `vf_coef` is half of ours.
- Its policy and its value have a network each; ours share one, to which come a layer where state and action meet, and
  every legal action's score. The operations of both are counted (`flops_a_sample`).
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.sb3_dqn import PeerError
from benchmarks.trainings import Training, rollout_of
from rlbench.actions import ActionSets
from rlbench.config import PPOConfig
from rlbench.envs.matches import make_games, play_match
from rlbench.models import parameter_count
from rlbench.models.counts import network_flops

PEER = "sb3-contrib"
SQUARES = 64  # and the number of a pass


class BySquare(NamedTuple):
    """Legal actions of N states on 8x8, a column for each square and one for the pass."""

    mask: np.ndarray  # (N, 65) bool
    ids: np.ndarray  # (N, 65) int64; 0 where not legal


def by_square(obs: Tensor, legal: ActionSets) -> BySquare:
    """Where on the board the legal ids of states obs (N, 128) are: the one square of an id that is not taken yet."""
    planes = obs.numpy().reshape(-1, 2, SQUARES) > 0.5
    taken = np.packbits(planes.any(1), axis=1, bitorder="little").view(np.uint64)[:, 0]  # (N,)
    counts = np.diff(legal.offsets.numpy())
    states, ids = np.repeat(np.arange(len(counts)), counts), legal.ids.numpy()
    placed = ids.view(np.uint64) & ~taken[states]
    squares = np.bitwise_count(placed - np.uint64(1))  # the bits below the disc; all 64 where there is none
    found = BySquare(np.zeros((len(counts), SQUARES + 1), bool), np.zeros((len(counts), SQUARES + 1), np.int64))
    found.mask[states, squares], found.ids[states, squares] = True, ids
    return found


def vector_env(game: Any, num_envs: int, seed: int) -> Any:
    """N of our games as a VecEnv of Stable-Baselines3 with `action_masks`; it counts episodes as `VecMonitor` does."""
    from gymnasium import spaces
    from stable_baselines3.common.vec_env import VecEnv

    class Games(VecEnv):
        render_mode = None

        def __init__(self) -> None:
            self.games = make_games(game, num_envs, seed)
            self.lengths = np.zeros(num_envs, np.int64)
            box = spaces.Box(0.0, 1.0, (self.games.obs_size,), np.float32)
            super().__init__(num_envs, box, spaces.Discrete(SQUARES + 1))

        def reset(self) -> np.ndarray:
            obs, legal = self.games.reset()
            self.legal = by_square(obs, legal)
            self.lengths[:] = 0
            return obs.numpy()

        def step_async(self, actions: np.ndarray) -> None:
            self.chosen = torch.from_numpy(self.legal.ids[np.arange(num_envs), actions])

        def step_wait(self) -> tuple:
            step = self.games.step(self.chosen)
            self.legal = by_square(step.obs, step.legal)
            self.lengths += 1
            infos: list[dict] = [{} for _ in range(num_envs)]
            reward, done = step.reward.numpy(), step.terminated.numpy()
            for i in np.flatnonzero(done):  # games pay at their ends alone
                episode = {"r": float(reward[i]), "l": int(self.lengths[i]), "t": 0.0}
                infos[i] = {"terminal_observation": step.next_obs[i].numpy(), "episode": episode}
            self.lengths[done] = 0
            return step.obs.numpy(), reward, done, infos

        def action_masks(self) -> np.ndarray:
            return self.legal.mask

        def get_attr(self, attr_name: str, indices: Any = None) -> list:
            return [getattr(self, attr_name)] * num_envs  # AttributeError says that there is none

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            setattr(self, attr_name, value)

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list:
            return list(getattr(self, method_name)(*args, **kwargs))  # a row a game

        def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
            return [False] * num_envs

        def close(self) -> None:
            """Nothing is held but memory."""

    return Games()


def sb3_settings(config: PPOConfig) -> dict[str, Any]:
    """Keyword arguments of `MaskablePPO` for the same work.

    Raises:
        PeerError: naming the setting that it has no equal for.
    """
    wanted = {"gradient_accumulation": 1, "anneal_lr": False, "clip_vloss": False, "target_kl": 0.0}
    for name, accepted in {**wanted, "old_log_probs": "behaviour"}.items():
        if getattr(config, name) != accepted:
            raise PeerError(f"{name}={getattr(config, name)!r}: both sides can follow {accepted!r} alone.")
    if rollout_of(config) % config.batch_size:
        raise PeerError(f"batch_size={config.batch_size} must divide a rollout's {rollout_of(config)} samples.")
    widths = list(config.hidden)
    return {
        "learning_rate": config.learning_rate,
        "n_steps": config.num_steps,
        "batch_size": config.batch_size,
        "n_epochs": config.update_epochs,
        "gamma": config.gamma,
        "gae_lambda": config.gae_lambda,
        "clip_range": config.clip_coef,
        "normalize_advantage": config.norm_adv,
        "ent_coef": config.ent_coef,
        "vf_coef": config.vf_coef / 2,
        "max_grad_norm": config.max_grad_norm,
        "policy_kwargs": {
            "net_arch": {"pi": widths, "vf": widths},
            "activation_fn": nn.ReLU,
            "optimizer_kwargs": {"eps": 1e-8},  # as ours; its own default is 1e-5
        },
        "seed": config.seed,
        "device": "cpu",
        "verbose": 0,
    }


def train_sb3(game: Any, config: PPOConfig, seed: int, games: int = 0) -> Training:
    """Train MaskablePPO, and play `games` games against `eval_opponent` as ours does.

    Raises:
        PeerError: for settings without an equal, and for a training of a single rollout.
    """
    config = config.replace(seed=seed)
    model, clock = make_model(game, config), _rate_clock()
    model.learn(config.total_timesteps, callback=clock, log_interval=None)
    if clock.first_step <= 0:
        raise PeerError(f"total_timesteps={config.total_timesteps}: a rate needs two rollouts at least.")
    sps = (model.num_timesteps - clock.first_step) / (time.perf_counter() - clock.began)
    updates = model._n_updates * (rollout_of(config) // config.batch_size)  # it counts epochs
    returns = returns_of(model, game, config, games) if games else ()
    return Training(model.num_timesteps, updates, sps, returns)


def make_model(game: Any, config: PPOConfig) -> Any:
    from sb3_contrib import MaskablePPO

    return MaskablePPO("MlpPolicy", vector_env(game, config.num_envs, config.seed), **sb3_settings(config))


def returns_of(model: Any, game: Any, config: PPOConfig, games: int) -> tuple[float, ...]:
    """As `PPO.evaluate`: the same openings, the same opponent's draws, +1, 0 or -1 a game."""

    def greedy(obs: Tensor, legal: ActionSets) -> Tensor:
        found = by_square(obs, legal)
        squares, _ = model.predict(obs.numpy(), action_masks=found.mask, deterministic=True)
        return torch.from_numpy(found.ids[np.arange(len(obs)), squares])

    opponent = game.opponents[config.eval_opponent](config.seed)
    result = play_match(game, greedy, opponent, games + games % 2, config.seed, progress=False)
    return (1.0,) * result.wins + (0.0,) * result.draws + (-1.0,) * result.losses


def _rate_clock() -> Any:
    """A callback that starts the rate's clock where ours starts: after the first rollout and its updates."""
    from stable_baselines3.common.callbacks import BaseCallback

    class RateClock(BaseCallback):
        began = float("nan")
        first_step = 0

        def _on_rollout_start(self) -> None:
            if not self.first_step and self.num_timesteps:
                self.first_step, self.began = self.num_timesteps, time.perf_counter()

        def _on_step(self) -> bool:
            return True

    return RateClock()


def peer_counts(model: Any) -> dict[str, int]:
    """parameters; forward_flops (a state) and sample_update_flops (a sample in an update), of matrix products."""
    nets = model.policy.mlp_extractor
    towers, heads = (nets.policy_net, nets.value_net), (model.policy.action_net, model.policy.value_net)
    forward = sum(network_flops(network) for network in (*towers, *heads))
    first = sum(network_flops(tower[0]) for tower in towers)
    parameters = sum(parameter_count(network) for network in (*towers, *heads))
    return {"parameters": parameters, "forward_flops": forward, "sample_update_flops": 3 * forward - first}
