"""Randomness as data: a counter-based hash that gives the same bits wherever it is computed.

A draw is a pure function of (seed, purpose, step, index). Nothing has a state, so a run can be resumed at any step, two
variants of one computation see the same draws, and numpy, torch, compiled and native code agree bit for bit. All of it is
32-bit arithmetic done in int64 tensors, since torch has no unsigned shifts.

The mixer is the 32-bit finaliser of C. Wellons' hash-prospector ("lowbias32", 2018), applied once for the step and once for
the index, each keyed. It is meant for simulation, not for secrets.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

import numpy as np
import torch

Words = TypeVar("Words", int, np.ndarray, torch.Tensor)

MASK32 = 0xFFFFFFFF
STEP_STRIDE = 0x9E3779B1  # odd, so that distinct steps stay distinct modulo 2^32
INDEX_STRIDE = 0x85EBCA77


class Purpose(IntEnum):
    """What a draw is for. Draws of different purposes are unrelated, whatever their step and index."""

    EXPLORE = 1  # explore or exploit?
    ACTION = 2  # which random action
    REPLAY = 3  # which stored transitions
    RESET = 4  # seeds of environments
    EVALUATION = 5  # seeds of evaluation environments
    WEIGHTS = 6  # initial weights
    OPPONENT = 7  # moves of an opponent that is part of a game
    MINIBATCH = 8  # the order of samples in an epoch


def mix32(x: Words) -> Words:
    """Mix 32-bit words held in int64 (or Python ints); any shape in, same shape out, each in 0 … 2^32 - 1."""
    x = x & MASK32
    x = x ^ (x >> 16)
    x = (x * 0x7FEB352D) & MASK32
    x = x ^ (x >> 15)
    x = (x * 0x846CA68B) & MASK32
    return x ^ (x >> 16)


def key(seed: int, purpose: Purpose) -> tuple[int, int]:
    """Two 32-bit keys of a seed (any Python int of up to 64 bits) and a purpose."""
    low = mix32((seed & MASK32) ^ (int(purpose) * STEP_STRIDE & MASK32))
    high = mix32(((seed >> 32) & MASK32) ^ mix32(low + INDEX_STRIDE))
    return low, high


def random_bits(seed: int, purpose: Purpose, step: Words, index: Words) -> Words:
    """32 random bits for each (step, index).

    Args:
        step, index: Python ints, or int64 arrays or tensors that broadcast; 0 or more.

    Returns:
        Words in 0 … 2^32 - 1, int64, in the broadcast shape.
    """
    low, high = key(seed, purpose)
    return mix32(mix32(step * STEP_STRIDE + low) ^ mix32(index * INDEX_STRIDE + high))


def to_uniform(bits: Words) -> Words:
    """Uniform float32 in [0, 1) from the upper 24 of 32 bits: every value is exact, so all backends agree."""
    if isinstance(bits, torch.Tensor):
        return (bits >> 8).to(torch.float32) * 2.0**-24
    if isinstance(bits, np.ndarray):
        return (bits >> 8).astype(np.float32) * np.float32(2.0**-24)
    return (bits >> 8) * 2.0**-24


def to_below(bits: Words, n: int) -> Words:
    """Integers in 0 … n - 1 from 32 bits by multiply and shift; n at most 2^31 (bias below n / 2^32)."""
    return (bits * n) >> 32


class Stream:
    """The draws of one purpose, computed a block of steps at a time, since a call on few numbers is all overhead.

    `stream.bits(step)` gives the (width,) int64 words of that step: the same as `random_bits` gives, in any order of calls.
    """

    def __init__(self, seed: int, purpose: Purpose, width: int, block: int = 1024) -> None:
        self.seed, self.purpose, self.width = seed, purpose, width
        self.block = max(1, block // max(1, width // 16))
        self.first = -self.block  # no block is held yet
        self._index = np.arange(width, dtype=np.int64)
        self._bits = self._uniform = np.empty((0, width))

    def _hold(self, step: int) -> int:
        row = step - self.first
        if not 0 <= row < self.block:
            self.first = step - step % self.block
            steps = np.arange(self.first, self.first + self.block, dtype=np.int64)[:, None]
            self._bits = random_bits(self.seed, self.purpose, steps, self._index)  # (block, width)
            self._uniform = to_uniform(self._bits)
            row = step - self.first
        return row

    def bits(self, step: int) -> np.ndarray:
        row = self._hold(step)
        return self._bits[row]  # (width,) int64

    def uniform(self, step: int) -> np.ndarray:
        row = self._hold(step)
        return self._uniform[row]  # (width,) float32

    def below(self, step: int, n: int) -> np.ndarray:
        return to_below(self.bits(step), n)  # (width,) int64
