"""Triton kernels that encode and score actions without writing their bits, or what the network makes of them, to memory.

For each action:  pre = joint[state] + W bits(id),  score = v . relu(pre).  The bits (A, 64) would be 256 bytes an action in
float32, and pre (A, H) twice as much at H = 128; the id is 8 bytes. A program takes a block of actions, makes their bits from
the ids in registers, and multiplies them with a block of W at a time. The backward pass makes bits and pre anew, so that nothing
of A by H is ever written. With d the gradient of a score and M = [pre > 0], that of `joint` is v times the sums of d M over a
state's actions, that of W is v times (d M)^T bits, and that of v is made from these two sums.

This file needs Triton, and is imported only where it is used. With the variable TRITON_INTERPRET=1 set before, kernels run on the
CPU, in NumPy: for tests.
"""

from __future__ import annotations

import time

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction

from rlbench.actions import ActionSets

BLOCK_A, BLOCK_H = 64, 32  # actions and units of the joint layer that a program holds at once
FEW_A = 16  # actions of one state at once: the least that a product takes
PROGRAMS = 256  # at most, that share the sums over all actions: each keeps sums of its own
BITS = tl.constexpr(64)

builds_s: list[float] = []  # seconds of each first launch of a kernel in this process, in which it is compiled
_launched: set[tuple] = set()


@triton.jit
def bits_of(ids):
    """(BLOCK_A,) int64 -> (BLOCK_A, 64) float32. An arithmetic shift by 63 leaves the sign everywhere: bit 63, after `& 1`."""
    return ((ids[:, None] >> tl.arange(0, BITS)[None, :]) & 1).to(tl.float32)


@triton.jit
def weights_of(weight, h, inside):
    """Rows h of W (H, 64), transposed: (64, BLOCK_H) float32."""
    at = h[None, :] * BITS + tl.arange(0, BITS)[:, None]
    return tl.load(weight + at, mask=inside[None, :], other=0.0).to(tl.float32)


@triton.jit
def before_relu(joint, state, live, bits, w, h, inside, H: tl.constexpr, PRECISION: tl.constexpr):
    """(BLOCK_A, BLOCK_H) float32."""
    at = state[:, None] * H + h[None, :]
    part = tl.load(joint + at, mask=live[:, None] & inside[None, :], other=0.0).to(tl.float32)
    return part + tl.dot(bits, w, input_precision=PRECISION)


@triton.jit(do_not_specialize=["num_actions"], do_not_specialize_on_alignment=["ids"])
def scores_kernel(
    joint,
    weight,
    v,
    ids,
    states,
    scores,
    num_actions,
    H: tl.constexpr,
    BLOCK_A: tl.constexpr,
    BLOCK_H: tl.constexpr,
    PRECISION: tl.constexpr,
):
    a = tl.program_id(0) * BLOCK_A + tl.arange(0, BLOCK_A).to(tl.int64)
    live = a < num_actions
    bits = bits_of(tl.load(ids + a, mask=live, other=0))
    state = tl.load(states + a, mask=live, other=0)
    total = tl.zeros((BLOCK_A,), tl.float32)
    for start in range(0, H, BLOCK_H):
        h = start + tl.arange(0, BLOCK_H)
        inside = h < H
        w = weights_of(weight, h, inside)
        pre = before_relu(joint, state, live, bits, w, h, inside, H, PRECISION)
        hidden = tl.where(pre < 0, 0.0, pre)  # what is no number stays so
        total += tl.sum(hidden * tl.load(v + h, mask=inside, other=0.0)[None, :], axis=1)
    tl.store(scores + a, total, mask=live)


@triton.jit(do_not_specialize_on_alignment=["ids", "offsets"])
def state_sums_kernel(
    joint,
    weight,
    ids,
    offsets,
    d_scores,
    by_state,
    H: tl.constexpr,
    BLOCK_A: tl.constexpr,
    BLOCK_H: tl.constexpr,
    PRECISION: tl.constexpr,
):
    state = tl.program_id(0)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    inside = h < H
    w = weights_of(weight, h, inside)
    lanes = tl.arange(0, BLOCK_A).to(tl.int64)
    total = tl.zeros((BLOCK_H,), tl.float32)
    end = tl.load(offsets + state + 1)
    for start in range(tl.load(offsets + state), end, BLOCK_A):
        a = start + lanes
        live = a < end
        bits = bits_of(tl.load(ids + a, mask=live, other=0))
        d = tl.load(d_scores + a, mask=live, other=0.0)
        pre = before_relu(joint, lanes * 0 + state, live, bits, w, h, inside, H, PRECISION)
        total += tl.sum(tl.where(pre > 0, d[:, None], 0.0), axis=0)
    tl.store(by_state + state.to(tl.int64) * H + h, total, mask=inside)


@triton.jit(do_not_specialize=["num_actions"], do_not_specialize_on_alignment=["ids"])
def bit_sums_kernel(
    joint,
    weight,
    ids,
    states,
    d_scores,
    by_bit,
    num_actions,
    H: tl.constexpr,
    BLOCK_A: tl.constexpr,
    BLOCK_H: tl.constexpr,
    PRECISION: tl.constexpr,
):
    program = tl.program_id(0)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    inside = h < H
    w = weights_of(weight, h, inside)
    total = tl.zeros((BLOCK_H, BITS), tl.float32)
    for block in range(program, tl.cdiv(num_actions, BLOCK_A), tl.num_programs(0)):
        a = block * BLOCK_A + tl.arange(0, BLOCK_A).to(tl.int64)
        live = a < num_actions
        bits = bits_of(tl.load(ids + a, mask=live, other=0))
        state = tl.load(states + a, mask=live, other=0)
        d = tl.load(d_scores + a, mask=live, other=0.0)
        pre = before_relu(joint, state, live, bits, w, h, inside, H, PRECISION)
        total += tl.dot(tl.trans(tl.where(pre > 0, d[:, None], 0.0)), bits, input_precision=PRECISION)
    at = (program * H + h)[:, None] * BITS + tl.arange(0, BITS)[None, :]
    tl.store(by_bit + at, total, mask=inside[:, None])


def scores_of(joint: Tensor, weight: Tensor, v: Tensor, sets: ActionSets, states: Tensor, precision: str) -> Tensor:
    """Scores (A,) float32 of the actions of B sets.

    Args:
        joint: (B, H), a state's part of the joint layer, in any floating type.
        weight, v: (H, 64) and (H,) float32. All arrays are contiguous.
        states: (A,) int64, the state that each action belongs to.
        precision: of products: "ieee" or "tf32".
    """
    count, scores = len(sets.ids), torch.empty(len(sets.ids), device=joint.device)
    if count:
        arrays = (joint, weight, v, sets.ids, states, scores)
        _launch(scores_kernel, (triton.cdiv(count, BLOCK_A),), (*arrays, count), BLOCK_A, precision)
    return scores


def gradients_of(
    joint: Tensor, weight: Tensor, v: Tensor, sets: ActionSets, states: Tensor, d_scores: Tensor, precision: str
) -> tuple[Tensor, Tensor, Tensor]:
    """From d_scores (A,) float32 to the gradients of joint (B, H), weight (H, 64) and v (H,), all float32.

    Each program sums over actions of its own, always the same in the same order: results do not vary from run to run.
    """
    (num_states, width), count = joint.shape, len(sets.ids)
    if not count:
        return torch.zeros_like(joint, dtype=torch.float32), torch.zeros_like(weight), torch.zeros_like(v)
    blocks, programs = triton.cdiv(width, BLOCK_H), min(triton.cdiv(count, BLOCK_A), PROGRAMS)
    by_state = torch.empty((num_states, width), device=joint.device)
    parts = torch.empty((programs, width, BITS.value), device=joint.device)
    arrays = (joint, weight, sets.ids, sets.offsets, d_scores, by_state)
    _launch(state_sums_kernel, (num_states, blocks), arrays, FEW_A, precision)
    arrays = (joint, weight, sets.ids, states, d_scores, parts)
    _launch(bit_sums_kernel, (programs, blocks), (*arrays, count), BLOCK_A, precision)
    by_bit = parts.sum(0)
    d_v = (joint * by_state).sum(0) + (weight * by_bit).sum(1)
    return by_state * v, by_bit * v.unsqueeze(1), d_v


def _launch(kernel, grid: tuple[int, ...], arguments: tuple, block: int, precision: str) -> None:
    """Start a kernel on the device of its tensors; the first launch of each form compiles it, which is timed."""
    joint = arguments[0]
    form = (kernel, joint.dtype, joint.device, joint.shape[1], precision)
    start = time.perf_counter()
    with torch.cuda.device_of(joint):
        # Fused multiply-adds are asked for by name: Triton is about to change its default.
        kernel[grid](*arguments, joint.shape[1], block, BLOCK_H, precision, enable_fp_fusion=True)
    if form not in _launched:
        _launched.add(form)
        if not isinstance(kernel, InterpretedFunction):
            builds_s.append(time.perf_counter() - start)
