"""Lets compiled functions run uncompiled for a while.

A compiled function and a dispatch mode do not go together: torch 2.13 refuses to run one that was compiled with `fullgraph=True`,
and one that is called under a mode for the first time would never be compiled afterwards.
"""

from __future__ import annotations

import contextlib
from types import FrameType

import torch

DYNAMO = ("torch/_dynamo/eval_frame.py", r"torch\_dynamo\eval_frame.py")
WRAPPER = "compile_wrapper"  # torch's function around one that was handed to `torch.compile`, whether it is compiled now or not


class Uncompiled:
    """Between `start` and `stop` `torch.compile` does nothing, on all threads. What was compiled before is kept for later."""

    def __init__(self) -> None:
        self._stance: torch.compiler.set_stance | None = None

    def start(self) -> None:
        # Torch refuses in the midst of a compiled function: the rest of that one is left as it is.
        with contextlib.suppress(RuntimeError):
            self._stance = torch.compiler.set_stance("force_eager")

    def stop(self) -> bool:
        """Back to what it was; False where that is not possible here."""
        if self._stance is not None:
            try:
                self._stance.__exit__(None, None, None)
            except RuntimeError:
                return False
            self._stance = None
        return True


def is_compiled(frame: FrameType | None) -> bool:
    """Whether it lies within a function that would run compiled otherwise."""
    while frame is not None:
        if frame.f_code.co_name == WRAPPER and frame.f_code.co_filename.endswith(DYNAMO):
            return True
        frame = frame.f_back
    return False
