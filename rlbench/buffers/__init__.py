"""Replay: where transitions wait to be learnt from. All take and give the same rows for the same slots."""

from rlbench.buffers.deque_replay import DequeReplay
from rlbench.buffers.n_step import NStep, one_step
from rlbench.buffers.packed import Columns, columns, pack, unpack
from rlbench.buffers.prioritised import Prioritised, to_uniform53
from rlbench.buffers.ring_frames import RingFrames
from rlbench.buffers.ring_numpy import RingNumpy
from rlbench.buffers.ring_torch import RingTorch
from rlbench.buffers.rows import ReplayError, RowSpec
from rlbench.buffers.sum_tree import SumTreeLoop, SumTreeVectorised

__all__ = [
    "Columns",
    "DequeReplay",
    "NStep",
    "Prioritised",
    "ReplayError",
    "RingFrames",
    "RingNumpy",
    "RingTorch",
    "RowSpec",
    "SumTreeLoop",
    "SumTreeVectorised",
    "columns",
    "one_step",
    "pack",
    "to_uniform53",
    "unpack",
]
