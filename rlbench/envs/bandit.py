"""A game of one move whose best answer is known exactly, and the example of how a game is written.

Every state shows a context and offers some random 64-bit ids. The reward of an id is a sum over its bits, with weights that
belong to the context: whoever reads the context and the bits rightly knows the best id, and a policy's share of the optimum can
be computed instead of judged.

**A game for `rlbench.PPO`** needs three things of a state: numbers that describe it (`features`), the ids of its legal actions
(`legal`), and what an action does (`step`). Write them once for one game in plain Python, as in `OneBandit`: that is all that is
needed. Where collecting is too slow, write them once more for N games by tensor operations, as in `ManyBandits`. The rules
(`IdBandit`) say how both are made. To be testable, and to let a run be repeated, a game draws nothing from a global generator:
episode e of game i is a function of (seed, e, i) alone, through `rlbench.random`, and then both forms give the same episodes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rlbench.actions import BITS, ActionSets
from rlbench.envs.games import GameStep, Player, Position
from rlbench.random import Purpose, random_bits, to_below, to_uniform
from rlbench.segments import segment_max

WEIGHTS_SEED = 64  # one table of weights for all bandits, so that what is learnt under one seed is right under another
LARGEST = 127  # a weight is a whole number from -127 to 127, all equally likely
SCALE = 4096  # a power of two: rewards are exact in float32, in Python and on every device
# Places of an episode's draws in the hash; those of the ids, two words each, come behind.
CONTEXT, COUNT, NOISE, IDS = 0, 1, 2, 3


@dataclass(frozen=True)
class IdBandit:
    """The rules: what is the same for all bandits of one kind.

    An id's reward in a context is 1/2 + Σ_b ±w_b / 4096, plus w_b where bit b is set and minus w_b where it is not. It has the
    mean 1/2 and the standard deviation 0.14 over random ids, so that nearly all lie in [0, 1].

    Args:
        contexts: how many there are; a state's features are a 1 in its context's place and 0 elsewhere.
        least, most: the number of legal actions; all from `least` to `most` are equally likely.
        noise: every reward is off by up to this, either way, all amounts equally likely.

    Raises:
        ValueError: naming an argument that cannot be used.
    """

    contexts: int = 4
    least: int = 1
    most: int = 20
    noise: float = 0.0

    name: ClassVar[str] = "IdBandit"
    alternating: ClassVar[bool] = False  # one player: no turns
    opponents: ClassVar[dict[str, Any]] = {}  # and nobody to play against

    def __post_init__(self) -> None:
        for field, low in (("contexts", 1), ("least", 1), ("most", self.least)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise ValueError(f"{field}={value!r} is refused; accepted: whole numbers of at least {low}.")
        if not 0 <= self.noise < math.inf:
            raise ValueError(f"noise={self.noise!r} is refused; accepted: numbers of at least 0.")

    @property
    def obs_size(self) -> int:
        return self.contexts

    def one(self) -> OneBandit:
        return OneBandit(self)

    def batched(self, num_envs: int, seed: int, device: Any = "cpu") -> ManyBandits:
        return ManyBandits(self, num_envs, seed, device)

    def why_not_native(self) -> str:
        """The reason why there is no `native()`, which a game may leave out."""
        return "IdBandit has no native code: use batched"

    def step_of(self, episode: int, place: int) -> int:
        """The step under which an episode's draw lies in the hash."""
        return episode * (IDS + 2 * self.most) + place

    def weights(self) -> np.ndarray:
        """(contexts, 64) int64; column b is the weight of the bit of value 2^b."""
        context, bit = np.arange(self.contexts)[:, None], np.arange(BITS)
        bits = random_bits(WEIGHTS_SEED, Purpose.WEIGHTS, context, bit)
        return to_below(bits, 2 * LARGEST + 1) - LARGEST

    def expected(self, obs: Tensor, legal: ActionSets) -> Tensor:
        """The reward (A,) of every legal action, noise left out; exact."""
        return reward_of(self.weights_at(obs)[legal.states()], legal.ids)

    def best(self, obs: Tensor, legal: ActionSets) -> Tensor:
        """The place (B,) of each state's best action in its list, of equals the first."""
        value, states = self.expected(obs, legal), legal.states()
        place = torch.arange(len(states), device=states.device) - legal.offsets[states]
        top = value == segment_max(value, states, len(obs))[states]
        first = torch.full((len(obs),), self.most, device=states.device)
        return first.scatter_reduce(0, states, torch.where(top, place, self.most), "amin")

    def optimum_share(self, policy: Player, states: int = 10_000, seed: int = 0, device: Any = "cpu") -> float:
        """What a policy earns on `states` states, over what the best ids earn there. Noise left out.

        Raises:
            ValueError: naming a state in which the policy took what is not legal.
        """
        obs, legal = self.batched(states, seed, device).reset()
        ids, state = policy(obs, legal), legal.states()
        taken = legal.ids == ids[state]
        offered = torch.zeros(states, dtype=torch.bool, device=ids.device).index_put((state[taken],), taken[taken])
        if not bool(offered.all()):  # sync: a check
            raise ValueError(f"state {int(offered.int().argmin())}: the policy took an id that is not legal there.")
        best = legal.ids[legal.offsets[:-1] + self.best(obs, legal)]
        weights = self.weights_at(obs)
        return float(reward_of(weights, ids).double().mean() / reward_of(weights, best).double().mean())

    def weights_at(self, obs: Tensor) -> Tensor:
        """The weights (B, 64) that hold in states obs (B, D)."""
        return torch.from_numpy(self.weights()).to(obs.device)[obs.argmax(1)]


def reward_of(weights: Tensor, ids: Tensor) -> Tensor:
    """1/2 + Σ ±w / 4096, (A,) float32, of ids (A,) under weights (A, 64)."""
    bits = (ids[:, None] >> torch.arange(BITS, device=ids.device)) & 1  # (A, 64)
    return 0.5 + ((2 * bits - 1) * weights).sum(1).float() / SCALE


class OneBandit:
    """One bandit in plain Python (a `OneGame`): a list of numbers, a list of ids, and a step."""

    alternating = False

    def __init__(self, rules: IdBandit) -> None:
        self.rules, self.obs_size = rules, rules.obs_size
        self._weights = rules.weights().tolist()
        self.reset(seed=0, episode=0, index=0)

    def reset(self, seed: int, episode: int, index: int) -> None:
        """Start an episode. Everything in it comes from these three numbers."""
        rules = self.rules

        def draw(place: int) -> int:
            return random_bits(seed, Purpose.RESET, rules.step_of(episode, place), index)  # 32 bits

        self._context = to_below(draw(CONTEXT), rules.contexts)
        count = rules.least + to_below(draw(COUNT), rules.most - rules.least + 1)
        self._ids = [draw(IDS + 2 * k) << 32 | draw(IDS + 2 * k + 1) for k in range(count)]
        self._noise = rules.noise * (2 * to_uniform(draw(NOISE)) - 1)
        self._over = False

    def features(self) -> list[float]:
        return [float(k == self._context) for k in range(self.rules.contexts)]

    def legal(self) -> list[int]:
        """Ids as Python ints from 0 to 2^64 - 1; none once the game has ended."""
        return [] if self._over else list(self._ids)

    def step(self, action_id: int) -> tuple[float, bool]:
        """(reward, whether the game has ended), and here it always has."""
        if action_id not in self.legal():
            raise ValueError(f"the id {action_id} is not legal; legal are {self.legal()}.")
        self._over = True
        weights = self._weights[self._context]
        total = sum(w if action_id >> b & 1 else -w for b, w in enumerate(weights))
        return 0.5 + total / SCALE + self._noise, True


class ManyBandits:
    """N bandits side by side (`Games`): the same by tensor operations, without a Python loop over games."""

    alternating = False

    def __init__(self, rules: IdBandit, num_envs: int, seed: int, device: Any = "cpu") -> None:
        self.rules, self.name, self.obs_size = rules, rules.name, rules.obs_size
        self.num_envs, self.seed, self.device = num_envs, seed, torch.device(device)
        self._games = torch.arange(num_envs, device=self.device)
        self._weights = torch.from_numpy(rules.weights()).to(self.device)  # (contexts, 64)
        self._context = self._games
        self._episode = 0

    def reset(self) -> Position:
        """All bandits at the start of their first episode."""
        return self._start(0)

    def step(self, ids: Tensor) -> GameStep:
        """Take ids (N,) int64. They are trusted to be legal: to look would make the host wait for the device."""
        over = torch.ones(self.num_envs, dtype=torch.bool, device=self.device)
        last = self._features()  # where a game ends is where it stood
        noise = self.rules.noise * (2 * to_uniform(self._draw(NOISE)).double() - 1)
        reward = (reward_of(self._weights[self._context], ids).double() + noise).float()
        obs, legal = self._start(self._episode + 1)
        return GameStep(obs, legal, reward, over, torch.zeros_like(over), last)

    def _start(self, episode: int) -> Position:
        """Every bandit at the start of an episode; they all have one step, so that all are in the same."""
        rules, self._episode = self.rules, episode
        self._context = to_below(self._draw(CONTEXT), rules.contexts)
        count = rules.least + to_below(self._draw(COUNT), rules.most - rules.least + 1)  # (N,)
        words = torch.stack([self._draw(IDS + k) for k in range(2 * rules.most)], 1)  # (N, 2 most)
        ids = words[:, 0::2] << 32 | words[:, 1::2]  # (N, most): the bit of value 2^63 is int64's sign
        offered = torch.arange(rules.most, device=self.device) < count[:, None]
        offsets = torch.cat((count.new_zeros(1), count.cumsum(0)))
        return Position(self._features(), ActionSets(ids[offered], offsets))  # sync: how many ids there are

    def _features(self) -> Tensor:
        contexts = torch.arange(self.rules.contexts, device=self.device)
        return (self._context[:, None] == contexts).float()  # (N, contexts)

    def _draw(self, place: int) -> Tensor:
        """32 random bits (N,) of the episode under way."""
        return random_bits(self.seed, Purpose.RESET, self.rules.step_of(self._episode, place), self._games)
