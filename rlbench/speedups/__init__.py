"""The slots: one optimization, one file. `SPEEDUPS` is what tests, measurements, notebooks and panels are made from."""

from rlbench.speedups import conversion, metrics, optimizer, replay, transfer, update
from rlbench.speedups.choices import ChoiceError, Choices
from rlbench.speedups.speedup import Speedup

SPEEDUPS: dict[str, Speedup] = {
    module.SPEEDUP.name: module.SPEEDUP for module in (replay, conversion, transfer, update, optimizer, metrics)
}

__all__ = ["SPEEDUPS", "ChoiceError", "Choices", "Speedup"]
