"""The fastest valid Choices for a training on this machine: a search by paired blocks of training, losers dropped early."""

from rlbench.tuning.search import Tuned, tune

__all__ = ["Tuned", "tune"]
