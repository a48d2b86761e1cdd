"""Reads and copies: what one costs is told from the loop around it, and what needs a GPU says so."""

import math

import numpy as np
import pytest
import torch

from rlbench.experiments import syncs, transfers
from rlbench.timing import Paired


def test_cost_of_a_read_by_hand():
    """Three rounds of a loop of 20 reads: 20, 40 and 60 µs more than without, so 1, 2 and 3 µs a read, 2 in the middle."""
    base = np.array([1.0, 1.0, 1.0])
    seconds = np.stack([base, base + np.array([20e-6, 40e-6, 60e-6]), base + 10e-6], axis=1)
    paired = Paired(("baseline", "x", "baseline again"), seconds, (1, 1, 1), {})
    cost = syncs.read_cost(paired, "x")
    assert cost["read_us"] == pytest.approx(2.0, rel=1e-6)
    assert cost["read_low"] == pytest.approx(1.0, rel=1e-6) and cost["read_high"] == pytest.approx(3.0, rel=1e-6)
    assert cost["aa_read_us"] == pytest.approx(0.5, rel=1e-6)


def test_every_way_to_read_is_measured_at_every_width():
    rows = syncs.reads([0, 4], rounds=1, quick=True, progress=False, device="cpu")
    assert [(row["width"], row["read"]) for row in rows] == [(w, r) for w in (0, 4) for r in syncs.READERS]
    assert all(row["median_us"] > 0 and row["verdict"] == "too few rounds" for row in rows)


@pytest.mark.parametrize(
    ("name", "value"),
    [(".item()", 0.5), ("float(t)", 0.5), ("if t > 0", True), (".tolist()", 0.5), ('f"{t:.3f}"', "0.500")],
)
def test_readers_read(name, value):
    assert syncs.READERS[name](torch.tensor(0.5)) == value


def test_copies_have_a_row_a_kind_and_say_what_was_not_measured():
    rows = transfers.copies([4, 4099], rounds=1, quick=True, progress=False, device="cpu")
    assert [row["copy"] for row in rows] == [*transfers.COPIES, *transfers.COPIES]
    assert {row["bytes"] for row in rows} == {4, 4096}
    for row in rows:
        if row["copy"] == transfers.HOST:
            assert row["gb_per_s"] == pytest.approx(row["bytes"] / row["median_us"] / 1e3)
        else:
            assert row["not_measured"].endswith("not measured on this machine") and math.isnan(row["ratio"])


def test_a_size_without_a_number_is_refused():
    with pytest.raises(ValueError, match="3 bytes; accepted are whole numbers from 4"):
        transfers.copies([3], rounds=1, progress=False)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_copies_on_the_gpu_are_all_timed():
    rows = transfers.copies([4096], rounds=1, quick=True, progress=False, device="cuda")
    assert all(row["median_us"] > 0 for row in rows)
