"""What a trainer says where memory runs out: what is large, which settings to lower, and what is still there."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from rlbench.config import ConfigError
from rlbench.trainers.held import Held, held_tensors
from rlbench.trainers.update_sizes import SETTINGS, of_an_update, remedy

if TYPE_CHECKING:
    from rlbench.trainers.history import History
    from rlbench.trainers.logbook import Logbook

SHOWN = 6


class OutOfMemory(torch.OutOfMemoryError):
    """Memory ran out while training.

    Attributes:
        history: of the run so far, with the weights on the CPU; None where training had not begun.
        held: the pieces of memory that the trainer held, the largest first.
    """

    def __init__(self, text: str, history: History | None, held: list[Held]) -> None:
        super().__init__(text)
        self.history, self.held = history, held


@contextlib.contextmanager
def explain_out_of_memory(trainer: Any, log: Logbook | None = None) -> Iterator[None]:
    """Turn an error of PyTorch's or NumPy's about memory, raised inside, into an `OutOfMemory` that says what to do.

    What the failed call had built is let go. With `log` the books are closed, so that the error has the run's history; the
    trainer keeps its networks, optimizer and replay, and can be evaluated, or trained on once there is room.
    """
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if isinstance(error, OutOfMemory) or not _about_memory(error):
            raise
        text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        device = torch.device(trainer.device if isinstance(error, torch.OutOfMemoryError) else "cpu")
        traceback.clear_frames(error.__traceback__)  # its tensors would live as long as the error
    else:
        return
    if device.type == "cuda":
        torch.cuda.empty_cache()
    held = largest(trainer)
    history = None if log is None else _closed(trainer, log)
    raise OutOfMemory(_sentence(trainer, device, text, held, history), history, held) from None


def _about_memory(error: BaseException) -> bool:
    """PyTorch's CPU allocator raises a RuntimeError like any other."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator" in str(error)


def largest(trainer: Any) -> list[Held]:
    """What a trainer holds, and what a minibatch takes while an update runs, the largest first."""
    return sorted([*held_tensors(trainer), *of_an_update(trainer)], key=lambda piece: -piece.nbytes)


def _closed(trainer: Any, log: Logbook) -> History:
    """The history with its last row, counts and weights, marked as interrupted; as it is where there is no room for that."""
    trainer.stop()  # no final evaluation
    try:
        return log.finish()
    except (torch.OutOfMemoryError, MemoryError, ConfigError):
        trainer.stopping = False
        return log.history


def _sentence(trainer: Any, device: torch.device, text: str, held: list[Held], history: History | None) -> str:
    there = [piece for piece in held if torch.device(piece.device).type == device.type]
    when = f" at env step {trainer.env_steps:,}" if hasattr(trainer, "env_steps") else ""
    shown = "; ".join(f"{piece.name} {piece.shape} {_megabytes(piece.nbytes)}" for piece in there[:SHOWN])
    settings = SETTINGS[trainer.config.trainer]
    shares = dict.fromkeys(settings.values(), 0)
    for piece in there:
        setting = next((each for start, each in settings.items() if f"{piece.name}.".startswith(f"{start}.")), None)
        if setting is not None:
            shares[setting] += piece.nbytes
    order = sorted(shares.items(), key=lambda item: -item[1])
    lower = ", ".join(f"{name}={getattr(trainer.config, name)!r} ({_megabytes(size)})" for name, size in order)
    kept = (
        " Nothing else is lost: the error's `history` has the rows and weights so far." if history is not None else ""
    )
    return (
        f"out of memory on {device}{when}. Largest there: {shown}. Lower a setting, the first ones save most: "
        f"{lower}{remedy(trainer)}; or give the device more room.{kept} ({text})"
    )


def _megabytes(nbytes: int) -> str:
    size = nbytes / 1e6
    return f"{size:,.1f} MB" if size >= 1 else f"{size:.2g} MB"
