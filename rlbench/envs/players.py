"""Who plays a game: at random, greedily, by a policy in memory or in a folder, by looking ahead.

A player takes features (N, D) and the packed legal actions of N states and gives one id each, (N,) int64, on the device of the
ids. None loops over states. Players that draw count their calls, so that a fresh one repeats a game.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.envs.alpha_beta import DEPTHS, alpha_beta, first_of_largest
from rlbench.envs.games import Player
from rlbench.envs.othello import count
from rlbench.models.action_scorer import ActionScorer
from rlbench.random import Purpose, random_bits, to_below, to_uniform

NAMES = ("random", "greedy", *(f"alpha_beta_{depth}" for depth in DEPTHS))


class PlayerError(ValueError):
    """A player that cannot be made; the message names the name or file, what was found and what is accepted."""


@dataclass
class RandomPlayer:
    """All legal actions alike: at its n-th call, state i takes the draw (n, i) of the hash."""

    seed: int
    calls: int = 0

    def __call__(self, obs: Tensor, legal: ActionSets) -> Tensor:
        index = torch.arange(len(obs), device=legal.ids.device)
        k = to_below(random_bits(self.seed, Purpose.OPPONENT, self.calls, index), legal.counts)
        self.calls += 1
        return legal.ids[legal.offsets[:-1] + k]


def random_player(seed: int) -> Player:
    return RandomPlayer(seed)


def greedy(obs: Tensor, legal: ActionSets) -> Tensor:
    """The first of the ids with the most bits: in Othello, the most discs flipped."""
    return first_of_largest(count(legal.ids), legal)


@dataclass
class PolicyPlayer:
    """A policy (see `player_of`)."""

    model: ActionScorer
    sample: int | None = None
    calls: int = 0

    @torch.no_grad()
    def __call__(self, obs: Tensor, legal: ActionSets) -> Tensor:
        device = self.model.score.device
        there = legal.to(device)
        states = there.states()
        joint, _ = self.model.states(obs.to(device))
        scores = self.model.scores(joint[states], there.ids)  # (A,)
        bad = ~scores.isfinite()
        if bool(bad.any()):  # sync: a check, once a move
            at = int(states[bad][0])
            raise PlayerError(
                f"the policy's scores of state {at} are not finite: its weights or the features are broken."
            )
        if self.sample is not None:
            scores = scores + self._gumbel(len(scores), device)
        return first_of_largest(scores, there).to(legal.ids.device)

    def _gumbel(self, actions: int, device: torch.device) -> Tensor:
        """Noise under which the largest score is a draw from the softmax of the scores (Gumbel, 1954). # (A,)"""
        index = torch.arange(actions, device=device)
        uniform = (
            to_uniform(random_bits(self.sample or 0, Purpose.ACTION, self.calls, index)) + 2.0**-25
        )  # never 0 or 1
        self.calls += 1
        return -(-uniform.double().log()).log()


def player_of(model: ActionScorer, sample: int | None = None) -> Player:
    """A policy as a player: the first of the actions of the highest score, or a draw from the policy.

    Args:
        sample: None for the best action; else the seed of draws.
    """
    if not isinstance(model, ActionScorer):
        raise PlayerError(f"{type(model).__name__} is no policy over sets of actions; accepted: an ActionScorer.")
    return PolicyPlayer(model, sample)


def policy_player(policy: Any, sample: int | None = None) -> Player:
    """The player of an ActionScorer, of a run (its settings and weights), or of something that has one as `model`."""
    if isinstance(policy, ActionScorer):
        return player_of(policy, sample)
    weights, config = getattr(policy, "weights", None), getattr(policy, "config", None)
    if weights is not None and config is not None:
        hidden = config["hidden"] if isinstance(config, dict) else config.hidden
        return player_of(scorer_of(weights, hidden, "this run"), sample)
    return player_of(getattr(policy, "model", policy), sample)


def saved_player(path: str | Path, sample: int | None = None) -> PolicyPlayer:
    """The policy in a folder that `rlbench train ppo --out` wrote.

    Raises:
        PlayerError: naming the file that is missing, cannot be read, or does not hold such a policy.
    """
    folder = Path(path)
    settings, weights_file = folder / "config.json", folder / "weights.pt"
    for file in (settings, weights_file):
        if not file.is_file():
            raise PlayerError(f"there is no file {file}; accepted is a folder written by `rlbench train ppo --out`.")
    try:
        hidden = json.loads(settings.read_text(encoding="utf-8"))["hidden"]
    except (ValueError, KeyError, TypeError) as error:
        raise PlayerError(f"{settings} has no setting 'hidden': train again with --out.") from error
    try:
        weights = torch.load(weights_file, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, KeyError, pickle.UnpicklingError) as error:
        raise PlayerError(f"{weights_file} is damaged or no file of weights: train again with --out.") from error
    return PolicyPlayer(scorer_of(weights, hidden, str(weights_file)), sample)


def scorer_of(weights: Any, hidden: Any, where: str) -> ActionScorer:
    """A model of these widths with these weights.

    Raises:
        PlayerError: where they are not those of such a model.
    """
    if (
        not isinstance(hidden, list | tuple)
        or not hidden
        or not all(type(width) is int and width > 0 for width in hidden)
    ):
        raise PlayerError(f"{where}: hidden={hidden!r} is refused; accepted are the widths of one layer or more.")
    first = weights.get("state.0.weight") if isinstance(weights, dict) else None
    if not isinstance(first, Tensor) or first.ndim != 2:
        raise PlayerError(f"{where} holds no policy over sets of actions, as PPO on a game learns it.")
    model = ActionScorer(first.shape[1], hidden)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise PlayerError(f"{where} does not fit a policy with hidden={tuple(hidden)}: {error}") from error
    return model.eval().requires_grad_(False)


def opponent_named(name_or_path: str | Path, seed: int, size: int = 8) -> Player:
    """A player of Othello by its name, or the folder of a saved policy.

    Raises:
        PlayerError: for a name that is neither, and for a policy of another size of board.
    """
    name = str(name_or_path)
    if name == "random":
        return random_player(seed)
    if name == "greedy":
        return greedy
    if name in NAMES:
        return alpha_beta(int(name.removeprefix("alpha_beta_")), size)
    if not Path(name_or_path).is_dir():
        raise PlayerError(
            f"opponent {name!r} is refused; accepted: {', '.join(NAMES)}, or a folder written by `rlbench train ppo --out`."
        )
    player = saved_player(name_or_path)
    obs_size = player.model.state[0].in_features
    if obs_size != 2 * size**2:
        raise PlayerError(
            f"{Path(name) / 'weights.pt'} is a policy for {obs_size} features; a {size}x{size} board has {2 * size**2}."
        )
    return player
