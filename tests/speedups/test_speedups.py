"""Every slot: each variant gives what the plainest gives, on several sizes and seeds; records are complete."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from rlbench import SPEEDUPS
from rlbench.batch import Transitions
from rlbench.speedups.conversion import EachSample, Preallocated, StackOnce
from rlbench.speedups.metrics import ItemEachStep, OnDevice
from rlbench.speedups.transfer import pageable

CPU = torch.device("cpu")
# Seconds of compilation for every size; for the loop, tests/trainers/test_fused_loop.py has a shorter one.
COMPILED = {
    ("update", "compiled"),
    ("update", "chunked"),
    ("loop", "fused"),
    ("gae", "compiled"),
    ("evaluate", "packed_compiled"),
    ("ppo_update", "compiled"),
}
PROCESSES = ("environments", "async")  # tests/envs/test_executors.py has them: not one for each of 128 environments
CASES = [
    pytest.param(slot, variant, marks=[pytest.mark.slow] if (slot, variant) in COMPILED else [])
    for slot, speedup in SPEEDUPS.items()
    for variant in speedup.variants
    if speedup.requires(variant, None, None, CPU, None) is None and (slot, variant) != PROCESSES
]


@pytest.mark.parametrize(("slot", "variant"), CASES)
@pytest.mark.parametrize("size", [1, 2, 33, 128])
@pytest.mark.parametrize("seed", [0, 1])
def test_variant_agrees_with_the_plainest(slot, variant, size, seed):
    speedup = SPEEDUPS[slot]
    expected = speedup.exercise(speedup.variants[speedup.plainest], speedup.make_inputs(size, seed, "cpu"))
    actual = speedup.exercise(speedup.variants[variant], speedup.make_inputs(size, seed, "cpu"))
    speedup.check(expected, actual)


@pytest.mark.parametrize("slot", SPEEDUPS)
def test_a_wrong_outcome_is_noticed(slot):
    """A planted violation: the check must not pass everything."""
    speedup = SPEEDUPS[slot]
    call = speedup.bind(speedup.variants[speedup.plainest], speedup.make_inputs(8, 0, "cpu"))
    expected = call()
    if isinstance(expected, torch.Tensor):
        wrong = expected + 1e-3
    elif isinstance(expected, Transitions):
        wrong = expected._replace(reward=expected.reward + 1e-6)
    else:
        expected = [tensor.clone() for tensor in expected]
        wrong = [tensor + 1e-2 for tensor in expected]
    with pytest.raises(AssertionError):
        speedup.check(expected, wrong)


@pytest.mark.parametrize("slot", SPEEDUPS)
def test_records_are_complete(slot):
    speedup = SPEEDUPS[slot]
    assert speedup.name == slot and speedup.question.endswith("?") and speedup.summary
    assert len(speedup.variants) >= 2 and speedup.plainest == next(iter(speedup.variants))
    assert speedup.sameness in ("bitwise", "close", "statistical")
    assert speedup.sizes and speedup.size_means and speedup.claims
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in speedup.variants)
    assert not {"old", "new", "v2", "fast", "slow"} & set(speedup.variants)
    file = Path(__file__).parents[2] / "rlbench" / "speedups" / f"{slot}.py"
    assert file.is_file() and file.read_text(encoding="utf-8").startswith('"""')


@pytest.mark.parametrize("convert", [EachSample, StackOnce, Preallocated])
@pytest.mark.parametrize("as_lists", [True, False])
@pytest.mark.parametrize("rows", [1, 5])
def test_conversion_takes_lists_and_arrays_with_and_without_masks(convert, as_lists, rows):
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((rows, 2)).astype(np.float32)
    flat = rng.integers(0, 2, rows)
    mask = rng.integers(0, 2, (rows, 3)).astype(np.float32)
    make = list if as_lists else (lambda array: array)
    for legal in (None, mask):
        given = Transitions(
            make(wide),
            make(flat),
            make(flat * 0.5),
            make(wide + 1),
            *(make(flat) for _ in range(3)),
            None if legal is None else make(legal),
        )
        batch = convert()(given)
        assert batch.action.dtype == torch.int64 and batch.reward.dtype == batch.terminated.dtype == torch.float32
        assert batch.obs.tolist() == wide.tolist() and batch.next_obs.tolist() == (wide + 1).tolist()
        assert batch.reward.tolist() == (flat * 0.5).tolist() and batch.terminated.tolist() == flat.tolist()
        assert batch.next_mask is None if legal is None else batch.next_mask.tolist() == mask.tolist()


def test_preallocated_keeps_one_batch_while_the_next_is_made():
    convert = Preallocated()

    def batch(value):
        rows = np.full((2, 1), value, np.float32)
        return Transitions(rows, rows[:, 0], rows[:, 0], rows, rows[:, 0], rows[:, 0], rows[:, 0])

    first, second = convert(batch(1)), convert(batch(2))
    assert first.obs.tolist() == [[1.0], [1.0]] and second.obs.tolist() == [[2.0], [2.0]]
    third = convert(batch(3))
    assert third.obs.data_ptr() == first.obs.data_ptr()  # the memory is reused
    assert convert(Transitions(*(np.ones((3, 1), np.float32) for _ in range(7)))).obs.shape == (3, 1)


def test_transfer_to_where_a_tensor_is_hands_it_on():
    batch = Transitions(*(torch.ones(2) for _ in range(7)))
    assert all(a is b for a, b in zip(pageable(batch, CPU), batch, strict=True))


def test_pinned_transfers_are_refused_without_cuda():
    for variant in ("pinned", "pinned_non_blocking"):
        assert "needs CUDA" in SPEEDUPS["transfer"].requires(variant, None, None, CPU, None)
        assert SPEEDUPS["transfer"].requires(variant, None, None, torch.device("cuda"), None) is None


@pytest.mark.parametrize("make", [ItemEachStep, OnDevice])
def test_metrics_are_means_since_the_last_reading(make):
    metric = make()
    assert np.isnan(metric.mean())
    for loss in (1.0, 2.0, 6.0):
        metric.add(torch.tensor(loss, requires_grad=True))
    assert metric.mean() == 3.0
    metric.add(torch.tensor(5.0))
    assert metric.mean() == 5.0
    assert np.isnan(metric.mean())
