"""Replay: where transitions wait to be learnt from. All take and give the same rows for the same slots."""

from rlbench.buffers.deque_replay import DequeReplay
from rlbench.buffers.n_step import NStep, one_step
from rlbench.buffers.ring_numpy import RingNumpy
from rlbench.buffers.ring_torch import RingTorch
from rlbench.buffers.rows import ReplayError, RowSpec

__all__ = ["DequeReplay", "NStep", "ReplayError", "RingNumpy", "RingTorch", "RowSpec", "one_step"]
