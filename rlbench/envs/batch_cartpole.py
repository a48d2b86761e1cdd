"""Thousands of poles in one call: Gymnasium's CartPole-v1 as pure functions of tensors, on the CPU or CUDA.

The equations are those of A. Barto, R. Sutton and C. Anderson ("Neuronlike Adaptive Elements That Can Solve Difficult Learning
Control Problems", 1983) for a track without friction, stepped by Euler's method. Their operations come in Gymnasium's order in
float64: a step from the same state and action differs at most by what the last bit of torch's sine and cosine makes of it, and
where those are NumPy's, as they nearly always are, not at all. An upright pole multiplies any difference by e every
quarter of a second (12 steps), so that two long episodes with the same actions may part in the end. Needs torch alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from rlbench.envs import checks
from rlbench.envs.batch import BatchStep
from rlbench.random import Purpose, Words, random_bits

GRAVITY = 9.8  # m/s²
CART_MASS, POLE_MASS = 1.0, 0.1  # kg
TOTAL_MASS = POLE_MASS + CART_MASS
HALF_LENGTH = 0.5  # m, of the pole
POLE_MOMENT = POLE_MASS * HALF_LENGTH
FORCE = 10.0  # N
TIME_STEP = 0.02  # s
MOST_POSITION = 2.4  # m: further out an episode terminates
MOST_ANGLE = 12 * 2 * math.pi / 360  # rad


class CartPoleState(NamedTuple):
    """N poles in the middle of their episodes; all (N,)."""

    x: Tensor  # float64, m
    x_dot: Tensor  # float64, m/s
    theta: Tensor  # float64, rad from upright
    theta_dot: Tensor  # float64, rad/s
    steps: Tensor  # int64: taken in this episode
    episode: Tensor  # int64: how many episodes this pole has begun, less one


def start_value(seed: int, episode: Words, cell: Words) -> Words:
    """One of the four numbers an episode starts from, uniform in [-0.05, 0.05): component d of pole i has the cell 4 i + d.

    Python ints give a float, tensors float64 in their broadcast shape: the same numbers, from the upper 24 bits of the hash.
    """
    bits = random_bits(seed, Purpose.RESET, episode, cell) >> 8
    unit = (bits.to(torch.float64) if isinstance(bits, Tensor) else bits) * 2.0**-24  # exact
    return unit * 0.1 - 0.05


class BatchCartPole:
    """Rules of N poles; it holds no state.

    The reward is 1 at every step. Like `gymnasium.make("CartPole-v1")`, a step that falls at the time limit has both flags set.
    A pole whose episode has ended is restarted in the same step; its e-th episode starts from numbers that depend on
    (seed, e, i) alone.

    Raises:
        ValueError: naming the argument, what was found, and what is accepted.
    """

    def __init__(
        self, num_envs: int = 1024, device: str | torch.device = "cpu", seed: int = 0, max_episode_steps: int = 500
    ) -> None:
        self.device = torch.device(device)
        self.num_envs = checks.checked_count("num_envs", num_envs, most=2**31 - 1, why="poles")
        why = "steps before an episode is truncated"
        self.max_episode_steps = checks.checked_count("max_episode_steps", max_episode_steps, most=2**31 - 1, why=why)
        self.seed = seed
        self.name, self.layout = "BatchCartPole", None
        self.obs_size, self.num_actions = 4, 2  # D, A
        index = torch.arange(self.num_envs, device=self.device)
        self._cells = 4 * index + torch.arange(4, device=self.device)[:, None]  # (4, N)

    def reset(self, start: Tensor | None = None) -> tuple[CartPoleState, Tensor]:
        """All poles at the start of their first episode, and their observations (N, 4).

        `start` (N, 4) float64 chooses x, x_dot, theta and theta_dot.
        """
        nothing = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        values = self._start(nothing) if start is None else self._checked(start)
        return CartPoleState(*values.unbind(0), nothing, nothing.clone()), _rows(values)

    def step(self, state: CartPoleState, action: Tensor) -> tuple[CartPoleState, BatchStep]:
        """Push the carts by `action` (N,) int64, 1 to the right, any other number to the left, for one time step."""
        moved = self._push(state, action)  # (4, N)
        steps = state.steps + 1
        terminated = (moved[0].abs() > MOST_POSITION) | (moved[2].abs() > MOST_ANGLE)
        truncated = steps >= self.max_episode_steps
        ended = terminated | truncated
        episode = state.episode + ended
        after = torch.where(ended, self._start(episode), moved)
        reward = torch.ones_like(moved[0])
        state = CartPoleState(*after.unbind(0), torch.where(ended, 0, steps), episode)
        return state, BatchStep(_rows(after), reward, terminated, truncated, _rows(moved))

    def _push(self, state: CartPoleState, action: Tensor) -> Tensor:
        """x, x_dot, theta, theta_dot (4, N) one time step on. The order of the operations matters to the last bit."""
        x, x_dot, theta, theta_dot = state[:4]
        force = torch.where(action == 1, FORCE, -FORCE)  # float32 holds it exactly
        cos, sin = torch.cos(theta), torch.sin(theta)
        push = (force + POLE_MOMENT * torch.square(theta_dot) * sin) / TOTAL_MASS
        inertia = HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * torch.square(cos) / TOTAL_MASS)
        theta_acc = (GRAVITY * sin - cos * push) / inertia  # rad/s²
        x_acc = push - POLE_MOMENT * theta_acc * cos / TOTAL_MASS  # m/s²
        return torch.stack(
            (
                x + TIME_STEP * x_dot,
                x_dot + TIME_STEP * x_acc,
                theta + TIME_STEP * theta_dot,
                theta_dot + TIME_STEP * theta_acc,
            )
        )

    def observe(self, state: CartPoleState) -> Tensor:
        """Observations (N, 4) float32."""
        return _rows(torch.stack(state[:4]))

    def _start(self, episode: Tensor) -> Tensor:  # (4, N)
        return start_value(self.seed, episode, self._cells)

    def _checked(self, start: Tensor) -> Tensor:
        values = start.to(self.device, torch.float64)
        if values.shape != (self.num_envs, 4) or not bool(values.isfinite().all()):
            raise ValueError(
                f"start of shape {tuple(start.shape)} is refused; accepted: ({self.num_envs}, 4) finite numbers, "
                "x, x_dot, theta and theta_dot of each pole."
            )
        return values.T.clone(memory_format=torch.contiguous_format)


def _rows(values: Tensor) -> Tensor:
    """(4, N) float64 to observations (N, 4) float32."""
    return values.T.to(torch.float32, memory_format=torch.contiguous_format)
