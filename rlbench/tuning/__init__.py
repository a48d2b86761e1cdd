"""The fastest valid Choices for a training on this machine: a search by paired blocks of training, losers dropped early."""

from rlbench.tuning.run import tune
from rlbench.tuning.tuned import Tuned

__all__ = ["Tuned", "tune"]
