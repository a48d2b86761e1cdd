"""Every replay holds the newest rows, each with its own next observation (handed cases 5 and 9)."""

import numpy as np
import pytest
import torch

from rlbench.batch import Layout, Transitions
from rlbench.buffers import DequeReplay, ReplayError, RingFrames, RingNumpy, RingTorch, RowSpec, columns, pack
from rlbench.buffers.rows import spans
from rlbench.speedups.conversion import StackOnce
from rlbench.speedups.replay import random_transitions, windowed_transitions

REPLAYS = [DequeReplay, RingNumpy, RingTorch]


def numbered(first: int, count: int, masked: bool = False) -> Transitions:
    """Rows whose observation is their number, and the next one's is one more."""
    ids = np.arange(first, first + count, dtype=np.float32)
    return Transitions(
        ids[:, None],
        ids.astype(np.int64) % 3,
        ids * 10,
        ids[:, None] + 1,
        ids % 2 == 0,
        ids % 5 == 0,
        np.full(count, 0.5, np.float32),
        (ids[:, None] % np.array([2, 3, 5]) == 0) if masked else None,
    )


def tensors(replay, index) -> Transitions:
    rows = replay.sample(np.asarray(index, np.int64))
    return rows if replay.gives == "tensors" else StackOnce()(rows)


@pytest.mark.parametrize("make", REPLAYS)
@pytest.mark.parametrize(("inserts", "newest"), [(8, {3, 4, 5, 6, 7}), (3, {0, 1, 2}), (5, {0, 1, 2, 3, 4})])
@pytest.mark.parametrize("stride", [1, 2, 3, 8])
def test_only_the_newest_rows_each_with_its_own_next_observation(make, inserts, newest, stride):
    replay = make(RowSpec(1, 3, masked=True), capacity=5)
    for first in range(0, inserts, stride):
        replay.add(numbered(first, min(stride, inserts - first), masked=True))
    assert len(replay) == len(newest)
    index = np.random.default_rng(0).integers(0, len(replay), 10_000)
    rows = tensors(replay, index)
    ids = rows.obs[:, 0]
    assert set(ids.tolist()) == newest
    assert torch.equal(rows.next_obs[:, 0], ids + 1)
    assert torch.equal(rows.reward, ids * 10) and torch.equal(rows.action, ids.long() % 3)
    assert torch.equal(rows.terminated, (ids % 2 == 0).float()) and torch.equal(rows.truncated, (ids % 5 == 0).float())
    assert torch.equal(rows.next_mask, (ids[:, None] % torch.tensor([2, 3, 5]) == 0).float())
    assert rows.discount.unique().tolist() == [0.5]


@pytest.mark.parametrize("make", REPLAYS)
@pytest.mark.parametrize("capacity", [1, 2, 7])
@pytest.mark.parametrize("masked", [False, True])
def test_slots_are_those_of_a_plain_list_ring(make, capacity, masked):
    """Against a list that is overwritten in turn, on random strides, some longer than the ring."""
    spec = RowSpec(obs_size=3, num_actions=4, masked=masked)
    replay, ring, head = make(spec, capacity), {}, 0
    rng = np.random.default_rng(capacity)
    for _ in range(12):
        count = int(rng.integers(1, 2 * capacity + 2))
        rows = random_transitions(count, spec, seed=int(rng.integers(1000)))
        replay.add(rows)
        for i in range(count):
            ring[head % capacity] = [None if f is None else np.copy(f[i]) for f in rows]
            head += 1
        assert len(replay) == len(ring)
        got = tensors(replay, range(len(ring)))
        for slot, row in ring.items():
            for stored, expected in zip(got, row, strict=True):
                assert (stored is None) == (expected is None)
                if stored is not None:
                    np.testing.assert_array_equal(stored[slot].numpy(), np.asarray(expected, stored.numpy().dtype))


@pytest.mark.parametrize("make", REPLAYS)
def test_stored_rows_do_not_follow_the_arrays_they_came_from(make):
    replay, rows = make(RowSpec(1, 3, masked=True), 4), numbered(6, 2, masked=True)
    replay.add(rows)
    for field in rows:
        if field is not None:
            field[...] = 0
    got = tensors(replay, [0, 1])
    assert got.obs.tolist() == [[6.0], [7.0]] and got.next_mask.tolist() == [[1, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize("make", REPLAYS)
def test_a_sample_stays_as_it_was_when_more_rows_come_in(make):
    replay = make(RowSpec(1, 3), 2)
    replay.add(numbered(0, 2))
    sample = tensors(replay, [0, 1])
    replay.add(numbered(8, 2))
    assert sample.obs.tolist() == [[0.0], [1.0]] and sample.reward.tolist() == [0.0, 10.0]


@pytest.mark.parametrize("make", REPLAYS)
def test_a_capacity_below_one_is_refused(make):
    with pytest.raises(ReplayError, match="capacity must be at least 1, not 0"):
        make(RowSpec(1, 2), 0)


def test_spans_cover_every_slot_once():
    assert spans(0, 1, 5) == [(slice(0, 1), slice(0, 1))]
    assert spans(4, 3, 5) == [(slice(4, 5), slice(0, 1)), (slice(0, 2), slice(1, 3))]
    assert spans(2, 3, 5) == [(slice(2, 5), slice(0, 3))]
    assert spans(1, 7, 5) == [(slice(3, 5), slice(2, 4)), (slice(0, 3), slice(4, 7))]


@pytest.mark.parametrize("kind", [DequeReplay, RingNumpy, RingTorch])
def test_a_replay_larger_than_the_memory_is_refused_at_once(kind):
    with pytest.raises(ReplayError, match=r"buffer_size=10,000,000,000,000 rows .* take 520,000.0 GB, and cpu has"):
        kind(RowSpec(obs_size=4, num_actions=2), 10**13)  # 4 + 4 + 5 numbers of 4 bytes


def as_tensors(rows: Transitions) -> Transitions:
    return Transitions(*(None if f is None else torch.from_numpy(np.array(f)) for f in rows))


@pytest.mark.parametrize("masked", [False, True])
def test_tensors_go_in_as_arrays_do(masked):
    """One by one, in strides that wrap, and more than the ring holds; as fields and as packed rows."""
    spec = RowSpec(3, 4, masked)
    rings = [RingTorch(spec, 5) for _ in range(3)]
    for seed, count in enumerate([1, 3, 3, 5, 12, 2]):
        rows = random_transitions(count, spec, seed)
        rings[0].add(rows)
        rings[1].add(as_tensors(rows))
        rings[2].add_packed(pack(as_tensors(rows), spec))
        for ring in rings[1:]:
            assert torch.equal(ring.rows, rings[0].rows)
            assert (ring.size, ring.head) == (rings[0].size, rings[0].head)


@pytest.mark.parametrize("masked", [False, True])
def test_packed_rows_are_the_fields_side_by_side(masked):
    spec = RowSpec(2, 3, masked)
    ring, rows = RingTorch(spec, 6), random_transitions(6, spec, 0)
    ring.add(rows)
    index = np.array([5, 0, 0], np.int64)
    packed, at = ring.sample_packed(index), columns(spec)
    assert packed.shape == (3, at.width) == (3, 2 + 2 + 5 + 3 * masked)
    for name in at._fields[:-1]:
        expected, column = getattr(rows, name), getattr(at, name)
        if expected is not None:
            width = 1 if expected.ndim == 1 else expected.shape[1]
            got = packed[:, column : column + width].reshape(expected[index].shape)
            assert got.tolist() == expected[index].astype(np.float32).tolist(), name
    for field, again in zip(ring.sample(torch.from_numpy(index)), ring.sample(index), strict=True):
        assert (field is None and again is None) or torch.equal(field, again)
    again = pack(ring.sample(index), spec)
    assert torch.equal(again, packed)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("make", [RingTorch, RingFrames])
def test_rows_on_the_device_are_those_of_the_host(make):
    spec = RowSpec(16, 3, True, Layout(7, 2, 2), num_envs=2)
    host, device = make(spec, 50), make(spec, 50, "cuda")
    rows = windowed_transitions(60, spec, 0, episode=11)
    for start in range(0, 120, 6):
        chunk = Transitions(*(None if f is None else f[start : start + 6] for f in rows))
        host.add(chunk)
        device.add(chunk)
    index = np.arange(50)
    for expected, actual in zip(host.sample(index), device.sample(index), strict=True):
        assert expected is None or (actual.is_cuda and torch.equal(actual.cpu(), expected))
