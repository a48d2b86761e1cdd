"""Replay: how transitions are stored and sampled.

A deque of tuples costs an allocation for each row stored, a walk for each row sampled, and a stack of small arrays for each
batch. A ring of preallocated arrays samples with one fancy index a field. Packed rows in one tensor sample with one gather,
and may live on the GPU, so that no batch is ever copied there (claims A2, A9). Where an observation is a window of bars, frames
hold each bar once instead of twice a window, for more work a sample. It does not help a run whose time goes elsewhere: with an
update every tenth step the sample is a few per cent of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from rlbench.batch import Layout, Transitions
from rlbench.buffers import DequeReplay, RingFrames, RingNumpy, RingTorch, RowSpec
from rlbench.buffers.windows import refusal
from rlbench.envs.vector import autoreset_mode
from rlbench.random import Purpose, random_bits, to_below
from rlbench.speedups.conversion import StackOnce
from rlbench.speedups.speedup import Speedup, check_equal

VARIANTS = {"deque": DequeReplay, "ring_numpy": RingNumpy, "ring_torch": RingTorch, "ring_frames": RingFrames}
CAPACITY = 10_000
SPEC = RowSpec(obs_size=16, num_actions=3, layout=Layout(window=7, features=2, own=2))


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


def windowed_transitions(steps: int, spec: RowSpec, seed: int, episode: int = 250) -> Transitions:
    """`random_transitions` whose windows of bars move on by one bar a step, in episodes of `episode` steps.

    Rows come as from `spec.num_envs` envs: all of them in order at each step.
    """
    n, layout = spec.num_envs, spec.layout
    rows = random_transitions(steps * n, spec, seed)
    if layout is None:
        return rows
    window, width = layout.window, layout.window * layout.features
    episodes = -(-steps // episode)
    rng = np.random.default_rng(seed + 1)
    bars = rng.standard_normal((n, episodes, episode + window, layout.features), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(bars, window, axis=2)  # (N, episodes, episode + 1, F, w)
    windows = windows.transpose(2, 1, 0, 4, 3).reshape(episode + 1, episodes, n, width)
    for field, part in ((rows.obs, windows[:-1]), (rows.next_obs, windows[1:])):
        field[:, :width] = part.swapaxes(0, 1).reshape(-1, width)[: steps * n]
    return rows


def make_inputs(size: int, seed: int, device: str) -> tuple:
    """A stream of rows half as long again as the ring, so that it wraps, and `size` slots to sample."""
    rows = windowed_transitions(CAPACITY + CAPACITY // 2, SPEC, seed)
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


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if variant != "ring_frames":
        return None
    if config is not None and config.n_step > 1:
        return (
            f"n_step={config.n_step} makes rows that span several bars, and frames hold rows of one step; set n_step=1"
        )
    loop = getattr(choices, "loop", "python")
    if loop != "python":
        return f"it takes rows from the host, and loop={loop!r} keeps them elsewhere; take loop='python'"
    if env is None:
        return None
    if env.vector and autoreset_mode(env.given, env.name) == "NEXT_STEP":
        return f"{env.name} resets in a step of its own, so that not every env has a row at each step; take ring_torch"
    return refusal(env.layout, env.name)


SPEEDUP = Speedup(
    name="replay",
    question="What does a replay buffer cost?",
    summary="Rows in preallocated memory instead of Python objects. Matters when updates are frequent or batches large.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check_equal,
    requires=requires,
    sameness="bitwise",
    sizes=(32, 128, 1024),
    size_means="rows in a batch",
    claims=("A2", "A9"),
)
