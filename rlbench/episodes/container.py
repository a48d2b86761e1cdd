"""Whole episodes, packed: tensors made once, of which minibatches are cut without a Python loop over steps."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.episodes.checks import check_episodes

STEP_FIELDS = ("obs", "choice", "log_prob", "reward", "terminated", "truncated")  # a row a step, beside `legal`


@dataclass(frozen=True, eq=False)
class Episodes:
    """E episodes with S steps in all, one episode after another. Episode e has the steps bounds[e] … bounds[e + 1] - 1.

    Every episode is whole: its last step, and no other, is terminated or truncated.

    Attributes:
        obs: (S, D) float32, features of the states that were acted in, seen by the player to move.
        legal: the legal actions of those S states.
        choice: (S,) int64, the place of the action taken among them.
        log_prob: (S,) float32, of that choice under the policy that took it; 0 throughout where it is not known.
        reward: (S,) float32, to the player who moved.
        terminated, truncated: (S,) bool.
        last_obs: (E, D) float32, where a truncated episode led, seen by whoever would move next; 0 for all others.
        bounds: (E + 1,) int64.
        alternating: whether the mover changes at every step of a zero-sum game.
        behaviour: whether `log_prob` is known.
        game: its name.

    Raises:
        EpisodeError: naming the field that is wrong, and the episode and step where one is.
    """

    obs: Tensor
    legal: ActionSets
    choice: Tensor
    log_prob: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    last_obs: Tensor
    bounds: Tensor
    alternating: bool = False
    behaviour: bool = True
    game: str = "game"

    def __post_init__(self) -> None:
        check_episodes(self)

    def __len__(self) -> int:
        """E, the number of episodes."""
        return len(self.bounds) - 1

    @property
    def steps(self) -> int:
        """S, the number of steps in all."""
        return len(self.choice)

    @property
    def lengths(self) -> Tensor:
        """Steps of each episode, (E,) int64."""
        return self.bounds.diff()

    @property
    def device(self) -> torch.device:
        return self.obs.device

    def episode_of(self) -> Tensor:
        """The episode that each step belongs to, (S,) int64."""
        index = torch.arange(len(self), device=self.device)
        return torch.repeat_interleave(index, self.lengths, output_size=self.steps)

    def __getitem__(self, which: int | slice | Sequence[int] | Tensor) -> Episodes:
        """The episodes `which`, copied: one number gives one episode, a slice or numbers as many as they name."""
        try:
            if isinstance(which, int | slice):
                places = range(len(self))[which]
                which = [places] if isinstance(places, int) else list(places)
            numbers = torch.arange(len(self), device=self.device)
            return self.take(
                numbers[torch.as_tensor(which, device=self.device).reshape(-1)] if len(which) else numbers[:0]
            )
        except IndexError as error:
            raise IndexError(f"episode {which!r} is not there: there are {len(self)}.") from error

    def take(self, numbers: Tensor) -> Episodes:
        """Episodes `numbers` (K,) int64, in that order."""
        lengths = self.lengths[numbers]
        bounds = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
        total = int(bounds[-1])  # sync: the size of what is made
        shift = torch.repeat_interleave(self.bounds[numbers] - bounds[:-1], lengths, output_size=total)
        rows = torch.arange(total, device=self.device) + shift
        fields = {name: getattr(self, name)[rows] for name in STEP_FIELDS}
        return replace(self, legal=self.legal.take(rows), last_obs=self.last_obs[numbers], bounds=bounds, **fields)

    def to(self, device: str | torch.device) -> Episodes:
        fields = {name: getattr(self, name).to(device) for name in (*STEP_FIELDS, "legal", "last_obs", "bounds")}
        return replace(self, **fields)

    def returns(self, gamma: float = 1.0) -> Tensor:
        """The discounted sum of rewards (S,) from every step to its episode's end, for the player who moves at that step.

        What would have come behind a truncation is left out. Summed in float64, given in float32.
        """
        sign, lengths = -1.0 if self.alternating else 1.0, self.lengths
        out = self.reward.double()
        longest = int(lengths.max()) if len(self) else 0  # sync: the loop is the host's
        for step in reversed(range(longest - 1)):
            rows = (self.bounds[:-1] + step)[lengths > step + 1]
            out[rows] += gamma * sign * out[rows + 1]
        return out.float()

    def describe(self) -> str:
        """What is in here, in a paragraph."""
        if not len(self):
            return f"{self.game}: no episodes."
        counts, lengths = self.legal.counts, self.lengths
        first = self.returns()[self.bounds[:-1]].double()
        whose = " to whoever moves first" if self.alternating else ""
        known = "stored" if self.behaviour else "not known"
        tensors = [*self.legal, self.bounds, self.last_obs, *(getattr(self, name) for name in STEP_FIELDS)]
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return (
            f"{self.game}: {len(self):,} episodes with {self.steps:,} steps, {int(lengths.min())} to {int(lengths.max())} "
            f"in an episode; {int(counts.min())} to {int(counts.max())} legal actions in a state, "
            f"{float(counts.double().mean()):.1f} on average; mean return{whose} {float(first.mean()):.3g}; "
            f"{int(self.truncated.sum()):,} truncated; log-probabilities {known}; {size / 1e6:,.1f} MB on {self.device}."
        )

    def __repr__(self) -> str:
        return f"<Episodes: {self.describe()}>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a file `.npz` or `.parquet`; see `rlbench.episodes.load`."""
        from rlbench.episodes.files import save

        return save(self, path)

    @classmethod
    def from_lists(
        cls,
        episodes: Iterable[Iterable[Any]],
        *,
        alternating: bool = False,
        game: str = "game",
        device: str | torch.device = "cpu",
    ) -> Episodes:
        """Somebody's own recordings: a list of episodes, each a list of steps; see `rlbench.episodes.lists`."""
        from rlbench.episodes.lists import from_lists

        return from_lists(episodes, alternating=alternating, game=game, device=device)
