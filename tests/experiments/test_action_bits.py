"""Bits of ids from three distances, and how many bits known ids have."""

import numpy as np
import torch

from rlbench.experiments import action_bits as bits

IDS = [0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]


def test_bits_are_counted():
    ids = torch.from_numpy(np.array(IDS, np.uint64).view(np.int64))
    assert bits.bit_counts(ids) == [0, 1, 2, 63, 1, 64] == [value.bit_count() for value in IDS]
    assert bits.loop_bits(ids).sum(1).tolist() == [0, 1, 2, 63, 1, 64]


def test_rows_of_three_distances():
    rows = bits.encodings([3, 40], 5, device="cpu", quick=True, rounds=1, progress=False, seed=2)
    variants = {within: {} for within in (bits.ALONE, bits.LAYER, bits.UPDATE)}
    for row in rows:
        variants[row["within"]].setdefault(row["size"], []).append(row["variant"])
    assert variants[bits.ALONE] == {size: ["loop", "shift", "byte_table"] for size in (3, 40)}
    assert variants[bits.LAYER] == {size: ["loop", "shift", "byte_table", "fused"] for size in (3, 40)}
    ((actions, names),) = variants[bits.UPDATE].items()
    assert 5 <= actions <= 100 and names == ["loop", "shift", "byte_table", "fused"]
    assert all(row["same"] for row in rows) and {row["baseline"] for row in rows} == {"loop"}
    assert {row.get("states") for row in rows} == {None, 5}
