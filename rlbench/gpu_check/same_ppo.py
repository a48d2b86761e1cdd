"""Does a short training of PPO on CUDA go as one on the CPU does?

Both begin with the same weights and take the same draws. In the first round they meet the same positions, so that what is
learnt from them differs by rounding alone. From then on a draw that falls between two roundings of a probability may lead one of
them into another game: later rounds are held against wider bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch

from rlbench.config import PPOConfig
from rlbench.gpu_check.check import NOT_REACHED, Check
from rlbench.gpu_check.same_slots import LEFT_OUT, SLOW_TO_BUILD
from rlbench.gpu_check.trainer import othello_trainer
from rlbench.measure import NO_CUDA
from rlbench.results import Row
from rlbench.speedups import ChoiceError, Choices
from rlbench.trainers.history import History

SIZE = 6  # of the board
COLUMNS = ("entropy", "value_loss")
FIRST_RTOL, LATER_RTOL, MOST_RATIO_ERROR = 1e-2, 0.25, 1e-4
# Few games and one minibatch a round: a compiled function for each of a handful of shapes.
CONFIG = PPOConfig(
    total_timesteps=768,
    num_envs=8,
    num_steps=32,
    batch_size=256,
    update_epochs=2,
    hidden=(32, 32),
    learning_rate=1e-3,
    log_frequency=256,
    eval_opponent="random",
    eval_episodes=32,
)


def ways(device: torch.device) -> dict[str, Choices]:
    """What is trained; what takes long to build comes last."""
    plain = Choices.plain(device)
    return {
        "plain": plain,
        "packed": plain.replace(evaluate="packed", gae="scan"),
        "packed_triton": plain.replace(evaluate="packed_triton", gae="scan"),
        "fast": Choices.fast(device),
    }


def same_ppo(check: Check) -> Iterator[Row]:
    """A row for each of `ways`: how far its numbers are from plain's on the CPU, and the returns of both."""
    expected: History | None = None
    config = CONFIG.replace(seed=check.seed)
    for name, choices in ways(check.device).items():
        label = f"PPO training: {name}"
        if not check.cuda or check.over():
            yield check.absent(label, NOT_REACHED if check.cuda else NO_CUDA)
            continue
        if check.quick and SLOW_TO_BUILD & set(choices.to_dict().items()) & own_slots(choices):
            yield check.absent(label, LEFT_OUT)
            continue
        check.note(label)
        try:
            expected = expected or trained(config, Choices.plain("cpu"), "cpu")
            yield check.row(label, **agreement(expected, trained(config, choices, check.device)))
        except ChoiceError as error:
            yield check.absent(label, str(error))
        except Exception as error:  # a finding about these choices, not the end of the section
            yield check.failed(label, error, same=False)


def own_slots(choices: Choices) -> set[tuple[str, str]]:
    """The choices of what PPO has slots for."""
    return {(slot, getattr(choices, slot)) for slot in ("evaluate", "gae", "ppo_update")}


def trained(config: PPOConfig, choices: Choices, device: str | torch.device) -> History:
    return othello_trainer(config, choices, device, SIZE).train(progress=False)


def agreement(expected: History, found: History) -> dict[str, Any]:
    """`same` and `verdict`; `difference`, the largest relative one in the first round; both mean returns."""
    one, other = expected.to_frame(), found.to_frame()
    numbers = {
        "mean_return": found.mean_return,
        "cpu_mean_return": expected.mean_return,
        "compile_s": found.compile_s,
        "recompiles": found.recompiles,
    }
    error = fault(one, other)
    if error is None:
        first = difference(one.head(1), other.head(1))
        return {"same": True, "verdict": "same but for rounding", "difference": first, **numbers}
    return {"same": False, "verdict": "NOT the same", "error": error, **numbers}


def fault(one: pd.DataFrame, other: pd.DataFrame) -> str | None:
    """What speaks against the same training, or None."""
    for column in ("env_step", "updates"):
        if list(one[column]) != list(other[column]):
            return f"rows at {column} {list(other[column])}, on the CPU {list(one[column])}"
    for part, limit in ((slice(0, 1), FIRST_RTOL), (slice(1, None), LATER_RTOL)):
        off = difference(one[part], other[part])
        if not off <= limit:  # NaN too
            rounds = "the first round" if limit == FIRST_RTOL else "later rounds"
            return f"{' and '.join(COLUMNS)} of {rounds} differ by up to {off:.2g} of the CPU's; accepted is {limit:g}"
    ratio = float(other["first_ratio_error"].max())
    if not ratio <= MOST_RATIO_ERROR:
        return f"before any update a ratio of probabilities is off by {ratio:.2g}; accepted is {MOST_RATIO_ERROR:g}"
    return None


def difference(one: pd.DataFrame, other: pd.DataFrame) -> float:
    """The largest relative difference in COLUMNS."""
    expected, found = one[list(COLUMNS)].to_numpy(), other[list(COLUMNS)].to_numpy()
    return float(np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1e-12), initial=0.0))
