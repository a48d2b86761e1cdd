"""Native batch envs on the CPU: a Python face for trading.c and cart_pole.c."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch

from rlbench.envs.batch import BatchEnv
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.batch_trading import BatchTrading
from rlbench.native.build import check_layout, load, take_build_seconds
from rlbench.random import Purpose, key
from rlbench.uncopied import Uncopied

BLOCK = 1 << 20  # bytes of outcomes that are allocated at once
POINTER, WHOLE, REAL = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class Key(ctypes.Structure):
    """Kept in step with `struct key` in random.h."""

    _fields_ = (("low", ctypes.c_uint32), ("high", ctypes.c_uint32))

    @classmethod
    def of(cls, seed: int, purpose: Purpose) -> Key:
        return cls(*key(seed, purpose))


class Step(ctypes.Structure):
    """Kept in step with `struct step` in env.h."""

    _fields_ = tuple((name, POINTER) for name in ["action", "obs", "next_obs", "reward", "terminated", "truncated"])


class CartPole(ctypes.Structure):
    """Kept in step with `struct cart_pole` in cart_pole.c."""

    _fields_ = (
        *((name, WHOLE) for name in ("num_envs", "most_steps")),
        ("reset", Key),
        *((name, POINTER) for name in ("state", "steps", "episode")),
    )


class Trading(ctypes.Structure):
    """Kept in step with `struct trading` in trading.c."""

    _fields_ = (
        *(
            (n, WHOLE)
            for n in ["num_envs", "positions", "window", "features", "flat", "episode_length", "random_start"]
        ),
        *((n, REAL) for n in ["initial", "floor", "clip", "buy_cost", "sell_cost", "borrow_rate"]),
        ("reset", Key),
        *((n, POINTER) for n in ["close", "table", "first_start", "num_starts", "last_bar"]),
        *((n, POINTER) for n in ["position", "buy_divisor", "sell_divisor"]),
        *(
            (n, POINTER)
            for n in [
                "ticker",
                "bar",
                "end",
                "held",
                "episode",
                "ended",
                "cash",
                "shares",
                "equity",
                "entry",
                "exposure",
                "growth",
                "profit",
            ]
        ),
    )


class NativeEnv(Uncopied):
    """The environments of a `BatchEnv`, stepped in one C call. It holds their state.

    Attributes:
        function, address: the C function `step(address, struct step *)` and the struct that it takes first.
        build_s: seconds of compilation.
    """

    def __init__(self, core: BatchEnv) -> None:
        reason = why_not_native(core)
        if reason:
            raise TypeError(reason)
        self.core, self.num_envs, self.obs_size = core, core.num_envs, core.obs_size
        state, obs = core.reset()
        self.first_obs = obs.numpy().copy()  # sync: host memory; (N, D)
        name = "trading" if isinstance(core, BatchTrading) else "cart_pole"
        self.arrays = _trading_arrays(core, state) if name == "trading" else _cart_pole_arrays(state)
        self.struct = _trading(core) if name == "trading" else _cart_pole(core)
        for field, array in self.arrays.items():
            setattr(self.struct, field, array.ctypes.data)
        self.address = ctypes.addressof(self.struct)
        library = load(name, exact=True)
        check_layout(library, name, type(self.struct))
        self.function = getattr(library, f"{name}_step")
        self.function.restype, self.function.argtypes = WHOLE, (POINTER, POINTER)
        self.build_s = take_build_seconds()
        self._allocate()

    def step(self, action: np.ndarray) -> tuple[np.ndarray, ...]:
        """Take action (N,) int64; obs, reward, terminated, truncated, next_obs as in `BatchStep`, in memory of their own."""
        action = np.ascontiguousarray(action, np.int64)
        if action.shape != (self.num_envs,):
            raise ValueError(f"actions of shape {action.shape} are refused; accepted: ({self.num_envs},).")
        if self.taken == len(self.block[0]):
            self._allocate()
        k, out = self.taken, self.out
        self.taken += 1
        out.action = action.__array_interface__["data"][0]
        bad = self.function(self.address, self.out_address)
        for name, stride in self.strides:
            setattr(out, name, getattr(out, name) + stride)
        self.refuse(bad, action)
        obs, next_obs, reward, terminated, truncated = self.block
        return obs[k], reward[k], terminated[k], truncated[k], next_obs[k]

    def _allocate(self) -> None:
        """Memory for the outcomes of many steps: five allocations a step would cost more than a step of one env does."""
        n, d = self.num_envs, self.obs_size
        steps = max(1, BLOCK // (n * (8 * d + 10)))
        wide = (steps, n, d)
        obs, next_obs, reward = np.empty(wide, np.float32), np.empty(wide, np.float32), np.empty((steps, n))
        self.block = obs, next_obs, reward, np.empty((steps, n), bool), np.empty((steps, n), bool)
        names = ("obs", "next_obs", "reward", "terminated", "truncated")
        self.strides = [(name, array.strides[0]) for name, array in zip(names, self.block, strict=True)]
        self.out = Step(None, *(array.ctypes.data for array in self.block))
        self.out_address, self.taken = ctypes.addressof(self.out), 0

    def refuse(self, bad: int, action: np.ndarray) -> None:
        """Raise where the C function found the action of an environment (counted from 1) out of range."""
        if bad:
            found, most = int(action[bad - 1]), self.core.num_actions - 1
            raise ValueError(f"action={found} of env {bad - 1} is refused; accepted: 0 to {most}.")


def why_not_native(core: Any) -> str | None:
    """The reason why a batch env has no native counterpart here, or None. A subclass may have rules of its own."""
    if type(core) not in (BatchTrading, BatchCartPole):
        return f"{getattr(core, 'name', core)} has no native counterpart; BatchTrading and BatchCartPole have"
    if core.device.type != "cpu":
        return f"native code runs on the CPU, and {core.name} lies on {core.device}"
    return None


def _cart_pole(core: BatchCartPole) -> CartPole:
    return CartPole(core.num_envs, core.max_episode_steps, Key.of(core.seed, Purpose.RESET))


def _cart_pole_arrays(state: Any) -> dict[str, np.ndarray]:
    return _copies(state=torch.stack(state[:4], 1), steps=state.steps, episode=state.episode)


def _trading(core: BatchTrading) -> Trading:
    costs = core.costs
    return Trading(
        core.num_envs,
        core.num_actions,
        core.window,
        core.layout.features,
        core.flat,
        core.episode_length or 0,
        core.random_start,
        core.initial_equity,
        core.floor,
        core.clip,
        costs.buy_cost,
        costs.sell_cost,
        costs.borrow_rate,
        Key.of(core.seed, Purpose.RESET),
    )


def _trading_arrays(core: BatchTrading, state: Any) -> dict[str, np.ndarray]:
    data, costs = core.data, core.costs
    shared = {
        "close": data.close,
        "table": data.features,
        "first_start": data.first_start,
        "num_starts": data.num_starts,
        "last_bar": data.last_bar,
        "position": costs.position,
        "buy_divisor": costs.buy_divisor,
        "sell_divisor": costs.sell_divisor,
    }
    return {name: tensor.numpy() for name, tensor in shared.items()} | _copies(  # sync: host memory, not copied
        ticker=state.ticker,
        bar=state.bar,
        end=state.end,
        held=state.held,
        episode=state.episode,
        cash=state.cash,
        shares=state.shares,
        equity=state.equity,
        entry=state.entry_equity,
        exposure=state.position,
        ended=torch.zeros_like(state.bar),
        growth=torch.ones_like(state.equity),
        profit=torch.zeros_like(state.equity),
    )


def _copies(**tensors: Any) -> dict[str, np.ndarray]:
    return {name: np.array(tensor.numpy()) for name, tensor in tensors.items()}  # sync: host memory
