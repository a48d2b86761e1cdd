"""Ids through a first layer: bits by Python's own integers, all ways alike, gradients, few and many ids."""

import pytest
import torch

from rlbench.actions import pack
from rlbench.models import action_scorer, encodings
from rlbench.models.encodings import MIN_IDS, MIN_SORTED, bits_of, sums_by_bit, table_bits
from rlbench.speedups.action_encoding import VARIANTS

SPECIAL = [0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]
SIZES = [1, 6, MIN_IDS - 1, MIN_IDS, MIN_SORTED, MIN_SORTED + 77]


def ids_of(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(-(2**63), 2**63 - 1, (count,), generator=generator)
    special = pack([SPECIAL]).ids[:count]
    drawn[: len(special)] = special
    return drawn


def python_bits(ids):
    return torch.tensor([[(value >> bit) & 1 for bit in range(64)] for value in ids.tolist()], dtype=torch.float64)


def test_names_stay_where_they_were():
    assert action_scorer.encode_shift is encodings.encode_shift and action_scorer.bits_of is bits_of


@pytest.mark.parametrize("bits", [bits_of, table_bits])
def test_bits_are_those_of_python_integers(bits):
    ids = ids_of(40)
    assert torch.equal(bits(ids).double(), python_bits(ids))
    assert bits(ids[:6]).sum(1).tolist() == [0, 1, 2, 63, 1, 64]
    assert bits(pack([[2**63]]).ids).nonzero().tolist() == [[0, 63]]
    assert bits(ids[:0]).shape == (0, 64)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [1, 33])
def test_every_way_is_the_product_with_the_bits(name, size, width):
    ids, generator = ids_of(size), torch.Generator().manual_seed(1)
    weight = torch.randn(width, 64, generator=generator).requires_grad_()
    gradient = torch.randn(size, width, generator=generator)
    out = VARIANTS[name](ids, weight)
    bits = python_bits(ids)
    torch.testing.assert_close(out.double(), bits @ weight.detach().double().t(), rtol=1e-5, atol=2e-5)
    out.backward(gradient)
    torch.testing.assert_close(weight.grad.double(), gradient.double().t() @ bits, rtol=1e-5, atol=5e-4)
    with torch.no_grad():
        assert torch.equal(VARIANTS[name](ids, weight), out)


@pytest.mark.parametrize("name", VARIANTS)
def test_one_weight_gives_one_bit(name):
    """Weight 1 in column 63 alone: 1 for ids from 2^63 on, 0 for others; whatever their number."""
    weight = torch.zeros(2, 64)
    weight[1, 63] = 1.0
    ids = ids_of(MIN_IDS)
    out = VARIANTS[name](ids, weight)
    assert torch.equal(out[:, 0], torch.zeros(MIN_IDS)) and torch.equal(out[:, 1], (ids < 0).float())


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("size", [5, MIN_SORTED])
def test_under_autocast_and_in_other_types(name, size):
    ids, generator = ids_of(size), torch.Generator().manual_seed(1)
    weight = torch.empty(16, 64).uniform_(-0.125, 0.125, generator=generator).requires_grad_()
    expected, gradient = VARIANTS["loop"](ids, weight), torch.randn(size, 16, generator=generator)
    of_weight = torch.autograd.grad(expected, weight, gradient)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = VARIANTS[name](ids, weight)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), expected, rtol=0, atol=0.02)
    found = torch.autograd.grad(out, weight, gradient.bfloat16())[0]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, of_weight, rtol=0.01, atol=0.01 * float(of_weight.abs().max()))


def test_sums_by_bit_with_weights():
    for size in (3, MIN_SORTED):
        ids, generator = ids_of(size), torch.Generator().manual_seed(2)
        rows, weights = torch.randn(size, 8, generator=generator), torch.randn(size, generator=generator)
        expected = python_bits(ids).t() @ (rows * weights[:, None]).double()
        torch.testing.assert_close(sums_by_bit(ids, rows, weights).double(), expected, rtol=1e-5, atol=5e-4)


def test_gradients_of_tables_do_not_pretend_to_have_gradients():
    weight = torch.randn(4, 64, requires_grad=True)
    out = encodings.encode_fused(ids_of(MIN_IDS), weight)
    (first,) = torch.autograd.grad(out.square().sum(), weight, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(first.sum(), weight)
