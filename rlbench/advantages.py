"""Generalised advantage estimation (Schulman et al., 2016, "High-dimensional continuous control using GAE", eq. 16).

    delta_t = r_t + gamma turn V(s_t+1) (1 - terminated_t) - V(s_t)
    A_t     = delta_t + gamma lambda turn (1 - (terminated_t or truncated_t)) A_t+1,      A_T = 0

`turn` is +1, or -1 where the mover changes at every step of a zero-sum game: what comes after is then worth to one player what
it costs the other. A value is bootstrapped across a truncation, never across a termination; the advantages of an episode never
leak into the one before. The loop goes backwards through time; `scan` joins intervals of steps instead, each of twice the
length: A_t = b + a A_t+s, where two neighbouring intervals (a, b), (a', b') make (a a', b + a b').
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from rlbench.compile import Compiled

# (reward, value, next_value, terminated, truncated, gamma, gae_lambda, turn) -> advantages, all (T, N)
Gae = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, float, float, float], Tensor]
KEPT = 16  # most compiled functions that a process keeps


def gae_loop(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
    gae_lambda: float,
    turn: float = 1.0,
) -> Tensor:
    """Advantages (T, N), a Python float at a time.

    Args:
        reward, value, next_value: (T, N) float32, as in `batch.Rollout`.
        terminated, truncated: (T, N) bool.
        turn: 1, or -1 where the mover changes at every step.
    """
    rows = (reward, value, next_value, terminated, truncated)
    r, v, v_next, term, trunc = (field.tolist() for field in rows)  # sync: the loop is Python's
    num_steps, num_envs = reward.shape
    out = [[0.0] * num_envs for _ in range(num_steps)]
    for n in range(num_envs):
        after = 0.0
        for t in reversed(range(num_steps)):
            delta = r[t][n] - v[t][n]
            if not term[t][n]:
                delta += gamma * turn * v_next[t][n]
            if term[t][n] or trunc[t][n]:
                after = 0.0
            after = delta + gamma * gae_lambda * turn * after
            out[t][n] = after
    return torch.tensor(out, dtype=reward.dtype, device=reward.device).reshape(num_steps, num_envs)


def gae_rows(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
    gae_lambda: float,
    turn: float = 1.0,
) -> Tensor:
    """As `gae_loop`: a loop over T steps, one operation for all N environments."""
    delta, decay = _recurrence(reward, value, next_value, terminated, truncated, gamma * turn, gae_lambda)
    steps, decays, after = delta.unbind(0), decay.unbind(0), reward.new_zeros(reward.shape[1:])
    for t in reversed(range(len(steps))):
        after = torch.addcmul(steps[t], decays[t], after, out=steps[t])  # a view of delta: nothing else reads it
    return delta


def gae_scan(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    gamma: float,
    gae_lambda: float,
    turn: float = 1.0,
) -> Tensor:
    """As `gae_loop`: log2(T) rounds, each a few operations on everything, and no loop over steps."""
    return _scanned(*_recurrence(reward, value, next_value, terminated, truncated, gamma * turn, gae_lambda))


class CompiledGae:
    """As `gae_scan`, compiled: once for every shape, type, layout and device that a process meets, whatever the floats.

    Attributes:
        build_s: seconds that compiling has taken in this process so far, whoever asked for it.
        recompiles: compilations beyond the first of each shape.
    """

    def __init__(self, backend: str | None = None) -> None:
        self.backend = backend
        self._kept: OrderedDict[Hashable, Compiled] = OrderedDict()  # the last used one last
        self._gone_s = 0.0  # of functions that are no longer kept

    def __call__(
        self,
        reward: Tensor,
        value: Tensor,
        next_value: Tensor,
        terminated: Tensor,
        truncated: Tensor,
        gamma: float,
        gae_lambda: float,
        turn: float = 1.0,
    ) -> Tensor:
        rows = (reward, value, next_value, terminated, truncated)
        # Numbers would be compiled into the function; tensors may change.
        factors = (reward.new_full((), number) for number in (gamma * turn, gae_lambda))
        return self._function(rows)(*rows, *factors)

    def _function(self, rows: tuple[Tensor, ...]) -> Compiled:
        key = (*((t.shape, t.stride(), t.dtype, str(t.device)) for t in rows), torch.get_num_threads())
        if key not in self._kept:
            self._kept[key] = Compiled(_scan, self.backend)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._gone_s += self._kept.popitem(last=False)[1].compile_s
        return self._kept[key]

    def forget(self) -> None:
        """Let the next call compile anew, as in a new process; what lies on disk stays."""
        self._gone_s = self.build_s
        self._kept.clear()

    @property
    def build_s(self) -> float:
        return self._gone_s + sum(function.compile_s for function in self._kept.values())

    @property
    def recompiles(self) -> int:
        return sum(function.recompiles for function in self._kept.values())


gae_compiled = CompiledGae()


def _recurrence(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    discount: float | Tensor,
    gae_lambda: float | Tensor,
) -> tuple[Tensor, Tensor]:
    """(delta, decay), both (T, N) and new: A_t = delta_t + decay_t A_t+1. A value behind a termination need not be finite."""
    delta = reward + discount * next_value.masked_fill(terminated, 0.0) - value
    decay = (~(terminated | truncated)).to(reward.dtype) * (discount * gae_lambda)
    return delta, decay


def _scanned(b: Tensor, a: Tensor) -> Tensor:
    """A (T, N) of A_t = b_t + a_t A_t+1 with A_T = 0, by doubling (Hillis and Steele, 1986)."""
    length, num_steps = 1, len(b)
    while length < num_steps:
        b = torch.cat((torch.addcmul(b[:-length], a[:-length], b[length:]), b[-length:]))
        if 2 * length < num_steps:
            a = torch.cat((a[:-length] * a[length:], a[-length:]))  # what ends at T is never multiplied again
        length *= 2
    return b


def _scan(
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    truncated: Tensor,
    discount: Tensor,
    gae_lambda: Tensor,
) -> Tensor:
    return _scanned(*_recurrence(reward, value, next_value, terminated, truncated, discount, gae_lambda))
