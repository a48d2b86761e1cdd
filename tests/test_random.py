"""The hash gives the same bits everywhere, and they look random."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlbench.random import Purpose, Stream, key, mix32, random_bits, to_below, to_uniform


def finaliser(x: int) -> int:
    """lowbias32 written out with Python's unbounded ints."""
    x ^= x // 65536
    x = x * 2146121005 % 2**32
    x ^= x // 32768
    x = x * 2221713035 % 2**32
    return x ^ (x // 65536)


@given(st.integers(0, 2**32 - 1))
def test_mixer_is_the_published_one(x):
    assert mix32(x) == finaliser(x)


def test_mixer_permutes_words():
    words = mix32(np.arange(100_000, dtype=np.int64))
    assert len(np.unique(words)) == 100_000
    assert words.min() >= 0 and words.max() < 2**32


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**40), st.integers(0, 2**20))
def test_python_numpy_and_torch_agree(seed, step, index):
    expected = random_bits(seed, Purpose.REPLAY, step, index)
    from_numpy = random_bits(seed, Purpose.REPLAY, np.array([step]), np.array([index]))
    from_torch = random_bits(seed, Purpose.REPLAY, torch.tensor([step]), torch.tensor([index]))
    assert from_numpy.tolist() == from_torch.tolist() == [expected]
    assert to_uniform(from_numpy).tolist() == to_uniform(from_torch).tolist() == [to_uniform(expected)]
    assert to_below(from_numpy, 7).tolist() == to_below(from_torch, 7).tolist() == [to_below(expected, 7)]


@pytest.mark.parametrize("width", [1, 8, 128, 3000])
def test_stream_gives_the_same_in_any_order(width):
    stream = Stream(5, Purpose.EXPLORE, width)
    for step in (0, 5000, 1, 1023, 1024, 0):
        expected = random_bits(5, Purpose.EXPLORE, step, np.arange(width, dtype=np.int64))
        np.testing.assert_array_equal(stream.bits(step), expected)
        np.testing.assert_array_equal(stream.below(step, 10), expected * 10 // 2**32)
        np.testing.assert_array_equal(stream.uniform(step), (expected // 256 / 2**24).astype(np.float32))


def test_draws_are_uniform_and_unrelated():
    steps, index = np.arange(1000, dtype=np.int64)[:, None], np.arange(100, dtype=np.int64)
    draws = {
        purpose: to_uniform(random_bits(1, purpose, steps, index)).astype(float)
        for purpose in (Purpose.EXPLORE, Purpose.ACTION)
    }
    u, v = draws[Purpose.EXPLORE], draws[Purpose.ACTION]
    # 100,000 uniforms: the mean's standard error is 0.2887 / 316 = 0.0009, a correlation's 0.0032.
    assert abs(u.mean() - 0.5) < 0.004 and abs(u.var() - 1 / 12) < 0.002
    for other in (v, np.roll(u, 1, axis=0), np.roll(u, 1, axis=1)):
        assert abs(np.corrcoef(u.ravel(), other.ravel())[0, 1]) < 0.015
    counts = np.bincount((u * 64).astype(int).ravel(), minlength=64)
    chi_square = float(((counts - 1562.5) ** 2 / 1562.5).sum())
    assert 30 < chi_square < 110  # 63 degrees of freedom: mean 63, standard deviation 11


def test_seeds_and_purposes_have_their_own_keys():
    keys = {key(seed, purpose) for seed in [*range(200), 2**32, 2**63 - 1] for purpose in Purpose}
    assert len(keys) == 202 * len(Purpose)
