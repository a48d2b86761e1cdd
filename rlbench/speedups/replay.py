"""Replay: how transitions are stored and sampled.

A deque of tuples costs an allocation for each row stored, a walk for each row sampled, and a stack of small arrays for each
batch. A ring of preallocated arrays samples with one fancy index a field. Packed rows in one tensor sample with one gather,
and may live on the GPU, so that no batch is ever copied there (claims A2, A9). It does not help a run whose time goes
elsewhere: with an update every tenth step the sample is a few per cent of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rlbench.batch import Transitions
from rlbench.buffers import DequeReplay, RingNumpy, RingTorch, RowSpec
from rlbench.random import Purpose, random_bits, to_below
from rlbench.speedups.conversion import StackOnce
from rlbench.speedups.speedup import Speedup, check_equal, no_needs

VARIANTS = {"deque": DequeReplay, "ring_numpy": RingNumpy, "ring_torch": RingTorch}
CAPACITY = 10_000
SPEC = RowSpec(obs_size=16, num_actions=3)


def random_transitions(rows: int, spec: RowSpec, seed: int) -> Transitions:
    """Host arrays of made-up transitions, for tests and measurements."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 3, rows)  # 0 goes on, 1 terminated, 2 truncated
    return Transitions(
        obs=rng.standard_normal((rows, spec.obs_size), np.float32),
        action=rng.integers(0, spec.num_actions, rows),
        reward=rng.standard_normal(rows, np.float32),
        next_obs=rng.standard_normal((rows, spec.obs_size), np.float32),
        terminated=ends == 1,
        truncated=ends == 2,
        discount=np.full(rows, 0.99, np.float32),
        next_mask=rng.integers(0, 2, (rows, spec.num_actions)).astype(bool) if spec.masked else None,
    )


def make_inputs(size: int, seed: int, device: str) -> tuple:
    """A stream of rows half as long again as the ring, so that it wraps, and `size` slots to sample."""
    rows = random_transitions(CAPACITY + CAPACITY // 2, SPEC, seed)
    bits = random_bits(seed, Purpose.REPLAY, np.zeros(1, np.int64), np.arange(size, dtype=np.int64))
    return rows, to_below(bits, CAPACITY), device


def bind(variant: Callable[..., Any], inputs: tuple) -> Callable[[], Transitions]:
    """Fill the replay, 8 rows at a time; the call samples and brings the batch to the device as tensors."""
    rows, index, device = inputs
    replay = variant(SPEC, CAPACITY, device)
    for start in range(0, len(rows.action), 8):
        replay.add(Transitions(*(None if field is None else field[start : start + 8] for field in rows)))
    if replay.gives == "tensors":
        return lambda: replay.sample(index)
    convert, target = StackOnce(), torch.device(device)
    return lambda: Transitions(*(None if t is None else t.to(target) for t in convert(replay.sample(index))))


SPEEDUP = Speedup(
    name="replay",
    question="What does a replay buffer cost?",
    summary="Rows in preallocated memory instead of Python objects. Matters when updates are frequent or batches large.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check_equal,
    requires=no_needs,
    sameness="bitwise",
    sizes=(32, 128, 1024),
    size_means="rows in a batch",
    claims=("A2", "A9"),
)
