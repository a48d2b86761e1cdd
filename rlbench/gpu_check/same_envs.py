"""Do the batch environments step on CUDA as they do on the CPU?

Every step begins on both at the CPU's state, brought over, since a pole that stands amplifies the last bit of a sine. What is
counted must be equal; numbers agree within STEP_RTOL and STEP_ATOL (float64) or within float32's rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from rlbench.envs.batch import BatchEnv
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.batch_trading import BatchTrading
from rlbench.gpu_check.check import NOT_REACHED, Check, described, tensors
from rlbench.measure import NO_CUDA
from rlbench.results import Row

ENVS, STEPS, QUICK_STEPS = 64, 200, 20
STEP_RTOL, STEP_ATOL = 1e-11, 1e-12
MakeEnv = Callable[[torch.device], BatchEnv]


def same_envs(check: Check) -> Iterator[Row]:
    """A row for each batch environment."""
    for name, make in makers(check.seed).items():
        steps = QUICK_STEPS if check.quick else STEPS
        fields: dict[str, Any] = {"num_envs": ENVS, "steps": steps}
        if not check.cuda or check.over():
            yield check.absent(name, NOT_REACHED if check.cuda else NO_CUDA, **fields)
            continue
        check.note(f"{name}, {steps} steps on CPU and CUDA")
        try:
            compare_steps(make(torch.device("cpu")), make(check.device), steps, check.seed)
            yield check.row(name, same=True, verdict="same", **fields)
        except AssertionError as error:
            yield check.row(name, same=False, verdict="NOT the same", error=described(error), **fields)
        except Exception as error:  # a finding about this environment, not the end of the section
            yield check.failed(name, error, same=False, **fields)


def makers(seed: int) -> dict[str, MakeEnv]:
    """The batch environments, each from a device."""
    from rlbench import simulate

    market = simulate.ornstein_uhlenbeck(600, seed=seed)
    return {
        "BatchCartPole": lambda device: BatchCartPole(ENVS, device, seed=seed),
        "BatchTrading": lambda device: BatchTrading(market, ENVS, device, seed=seed, episode_length=50, window=4),
    }


def compare_steps(one: BatchEnv, other: BatchEnv, steps: int, seed: int) -> None:
    """Step both with the same actions. Raises AssertionError that names step and field where they differ."""
    generator = torch.Generator().manual_seed(seed)
    state, obs = one.reset()
    _compare(("state", state, "obs", obs), _named(other.reset()), "reset")
    for step in range(steps):
        action = torch.randint(0, one.num_actions, (one.num_envs,), generator=generator)  # (N,)
        there = type(state)(*(part.to(other.device) for part in state))
        expected = one.step(state, action)
        _compare(_named(expected), _named(other.step(there, action.to(other.device))), f"step {step}")
        state = expected[0]


def _named(result: tuple[Any, Any]) -> tuple[str, Any, str, Any]:
    return "state", result[0], "outcome", result[1]


def _compare(expected: tuple[str, Any, str, Any], actual: tuple[str, Any, str, Any], where: str) -> None:
    for part in (0, 2):
        pairs = zip(tensors(expected[part + 1]), tensors(actual[part + 1]), strict=True)
        for number, (one, other) in enumerate(pairs):
            names = getattr(expected[part + 1], "_fields", ())
            field = names[number] if names else expected[part]
            tolerance: dict[str, Any] = {"rtol": 0, "atol": 0}
            if one.dtype == torch.float64:
                tolerance = {"rtol": STEP_RTOL, "atol": STEP_ATOL}
            elif one.is_floating_point():
                tolerance = {"rtol": 1e-6, "atol": 1e-6}
            torch.testing.assert_close(other.cpu(), one, **tolerance, msg=lambda text, f=field: f"{where}, {f}: {text}")
