"""Does a short training on CUDA lose as one on the CPU does?

All actions are random, so that they do not depend on the last bit of a Q-value: both devices then learn from the same
transitions, and their losses differ by rounding alone. That grows with every update; LOSS_RTOL is what is let pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rlbench.config import DQNConfig
from rlbench.gpu_check.check import NOT_REACHED, Check, missing_package
from rlbench.gpu_check.same_slots import LEFT_OUT, SLOW_TO_BUILD
from rlbench.gpu_check.trainer import cart_pole_trainer
from rlbench.measure import NO_CUDA
from rlbench.results import Row
from rlbench.speedups import SPEEDUPS, ChoiceError, Choices

LOSS_RTOL = 1e-2
NUM_ENVS = 8
CONFIG = DQNConfig(
    total_timesteps=960,
    num_envs=NUM_ENVS,
    learning_starts=160,
    train_frequency=NUM_ENVS,
    target_network_frequency=320,
    batch_size=32,
    hidden=(32, 32),
    start_e=1.0,
    end_e=1.0,
    log_frequency=80,
    eval_episodes=0,
)


def trainings(device: Any) -> dict[str, Choices]:
    """What is trained on a device: plain, fast, and each loop."""
    named = {"plain": Choices.plain(device), "fast": Choices.fast(device)}
    loops = SPEEDUPS["loop"].variants if "loop" in SPEEDUPS else ()
    return named | {f"fast, loop={loop}": Choices.fast(device).replace(loop=loop) for loop in loops}


def same_training(check: Check) -> Iterator[Row]:
    """A row for each way to train: the largest relative difference of its losses from those of plain on the CPU."""
    expected: np.ndarray | None = None
    config = CONFIG.replace(seed=check.seed)
    for name, choices in trainings(check.device).items():
        if not check.cuda or check.over():
            yield check.absent(f"training: {name}", NOT_REACHED if check.cuda else NO_CUDA)
            continue
        if check.quick and ("loop", choices.loop) in SLOW_TO_BUILD:
            yield check.absent(f"training: {name}", LEFT_OUT)
            continue
        check.note(f"training with {name}")
        try:
            expected = losses(config, Choices.plain("cpu"), "cpu") if expected is None else expected
            found = losses(config, choices, str(check.device))
            yield check.row(f"training: {name}", **curve_agreement(expected, found))
        except ChoiceError as error:
            yield check.absent(f"training: {name}", str(error))
        except Exception as error:  # a finding about these choices, not the end of the section
            if reason := missing_package(error):
                yield check.absent(f"training: {name}", reason)
            else:
                yield check.failed(f"training: {name}", error, same=False)


def losses(config: DQNConfig, choices: Choices, device: str) -> np.ndarray:
    """The mean loss at each log point of a training, from the first update on."""
    history = cart_pole_trainer(config, choices, device).train(progress=False)
    return history.to_frame()["loss"].dropna().to_numpy()


def curve_agreement(expected: np.ndarray, found: np.ndarray) -> dict[str, Any]:
    """`same`, `verdict`, and `loss_difference`, the largest relative one."""
    if len(expected) != len(found) or not len(expected):
        error = f"{len(found)} losses against {len(expected)} on the CPU"
        return {"same": False, "verdict": "NOT the same", "error": error}
    difference = float(np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1e-12)))
    if not difference <= LOSS_RTOL:  # NaN too
        error = f"losses differ by up to {difference:.2g} of the CPU's; accepted is {LOSS_RTOL:g}"
        return {"same": False, "verdict": "NOT the same", "error": error, "loss_difference": difference}
    return {"same": True, "verdict": "same but for rounding", "loss_difference": difference, "points": len(found)}
