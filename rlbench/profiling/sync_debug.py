"""torch's own word on which calls wait for a CUDA device: a warning for each, heard and not shown."""

from __future__ import annotations

import warnings
from typing import Any

import torch

WORD = "synchroniz"  # "called a synchronizing CUDA operation"


class SyncDebug:
    """Hears torch's warnings between `start` and `stop`. Other warnings are shown as ever.

    Attributes:
        heard: how many.
    """

    def __init__(self) -> None:
        self.heard = 0

    def start(self) -> None:
        self._mode = torch.cuda.get_sync_debug_mode()
        self._show = warnings.showwarning
        self._hearing = self._hear  # one object, to be known again
        warnings.filterwarnings("always", message=f".*{WORD}", category=UserWarning)
        self._filter = warnings.filters[0]
        warnings.showwarning = self._hearing
        torch.cuda.set_sync_debug_mode("warn")

    def stop(self) -> None:
        """Put back what was changed, unless somebody else has changed it since."""
        torch.cuda.set_sync_debug_mode(self._mode)
        if warnings.showwarning is self._hearing:
            warnings.showwarning = self._show
        if self._filter in warnings.filters:
            warnings.filters.remove(self._filter)

    def _hear(self, message: Any, *args: Any, **kwargs: Any) -> None:
        if WORD in str(message):
            self.heard += 1
        else:
            self._show(message, *args, **kwargs)
