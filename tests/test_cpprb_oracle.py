"""cpprb as an oracle: the same rows in the same slots, the same probabilities and weights (skipped where it is not installed)."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` is no part of the installed package

from benchmarks import cpprb_replay as bench
from rlbench.batch import Transitions
from rlbench.buffers import Prioritised, RingNumpy, RingTorch, SumTreeLoop, SumTreeVectorised, to_uniform53
from rlbench.random import Purpose, Stream
from rlbench.speedups.replay import random_transitions

pytestmark = pytest.mark.skipif(bench.peer_version() is None, reason="cpprb is not installed")
CAPACITY, BATCHES, BATCH = 24, 400, 32


def pair(make_tree, inserts=CAPACITY):
    """Ours and cpprb's prioritised replay with the same rows and errors; some slots named twice."""
    peer = bench.peer_replay(CAPACITY, prioritised=True)
    ours = Prioritised(RingNumpy(bench.SPEC, CAPACITY), make_tree(CAPACITY), bench.ALPHA, bench.EPS)
    rows = random_transitions(inserts, bench.SPEC, seed=4)
    ours.add(rows)
    peer.add(**bench.peer_rows(rows))
    rng = np.random.default_rng(5)
    for _ in range(3):
        index, errors = rng.integers(0, min(inserts, CAPACITY), 20), rng.exponential(2.0, 20)
        ours.update(index, errors)
        peer.update_priorities(index, errors)
    return ours, peer


def drawn_by(peer):
    """Slots of many batches; copied, since cpprb hands out the same array every time."""
    return np.concatenate([np.array(peer.sample(BATCH, beta=0.4)["indexes"], np.int64) for _ in range(BATCHES)])


@pytest.mark.parametrize("make", [RingNumpy, RingTorch])
def test_the_same_rows_lie_in_the_same_slots(make):
    ours, peer, first = make(bench.SPEC, CAPACITY), bench.peer_replay(CAPACITY), 0
    rows = random_transitions(60, bench.SPEC, seed=3)
    for count in (1, 7, 16, 24, 12):
        part = Transitions(*(None if f is None else f[first : first + count] for f in rows))
        ours.add(part)
        peer.add(**bench.peer_rows(part))
        first += count
    stored, sample = peer.get_all_transitions(), ours.sample(np.arange(CAPACITY))
    fields = {"obs": "obs", "act": "action", "rew": "reward", "next_obs": "next_obs", "done": "terminated"}
    for theirs, mine in fields.items():
        expected = stored[theirs] if theirs in ("obs", "next_obs") else stored[theirs][:, 0]
        np.testing.assert_array_equal(np.asarray(getattr(sample, mine), np.float32), expected)


@pytest.mark.parametrize("make_tree", [SumTreeLoop, SumTreeVectorised])
@pytest.mark.parametrize("beta", [0.4, 1.0])
def test_weights_agree_up_to_the_normalisation(make_tree, beta):
    """cpprb divides by the largest weight of the replay, ours by that of the batch: the ratios within a batch are the same."""
    ours, peer = pair(make_tree)
    theirs = np.zeros(CAPACITY)
    for _ in range(BATCHES):
        batch = peer.sample(BATCH, beta=beta)
        theirs[batch["indexes"]] = batch["weights"]
    seen = np.flatnonzero(theirs)
    assert len(seen) > CAPACITY // 2
    index, weight = ours.sample(np.linspace(0, 0.99, 200), beta)
    both = np.isin(index, seen)
    expected = theirs[index[both]] / theirs[index[both]].max()
    np.testing.assert_allclose(weight[both] / weight[both].max(), expected, rtol=1e-5)


@pytest.mark.parametrize("make_tree", [SumTreeLoop, SumTreeVectorised])
@pytest.mark.parametrize("inserts", [CAPACITY, 10, CAPACITY + 5])
def test_probabilities_agree(make_tree, inserts):
    """Shares of many draws of each within 4.5 standard errors of a multinomial; slots never filled are never drawn."""
    ours, peer = pair(make_tree, inserts)
    stream = Stream(6, Purpose.REPLAY, 2 * BATCH)
    mine = np.concatenate([ours.sample(to_uniform53(stream.bits(step)), 0.4)[0] for step in range(BATCHES)])
    theirs = drawn_by(peer)
    p, q = (np.bincount(drawn, minlength=CAPACITY) / len(drawn) for drawn in (mine, theirs))
    error = np.sqrt((p * (1 - p) + q * (1 - q)) / len(mine)) + 1e-9
    assert (np.abs(p - q) < 4.5 * error).all()
    assert not p[inserts:].any() and not q[inserts:].any()


def test_new_rows_get_the_largest_priority_so_far():
    """With cpprb too: after one large error, the share of a new row is that of the row with the error."""
    ours, peer = pair(SumTreeVectorised)
    for replay in (ours, peer):
        (replay.update if replay is ours else replay.update_priorities)(np.array([7]), np.array([50.0]))
    row = random_transitions(1, bench.SPEC, seed=9)
    ours.add(row)
    peer.add(**bench.peer_rows(row))  # slot 0
    assert ours.tree.get(np.array([0])) == ours.tree.get(np.array([7]))
    drawn = drawn_by(peer)
    new, large = (drawn == 0).mean(), (drawn == 7).mean()
    assert abs(new - large) < 5 * np.sqrt(2 * large / len(drawn))


@pytest.mark.parametrize("sides", [bench.sample_sides, bench.insert_sides, bench.prioritised_sides])
def test_every_side_of_the_benchmark_runs(sides):
    calls = sides(200, 16)
    assert next(iter(calls)) == bench.PEER and len(calls) >= 3
    for call in calls.values():
        call()


def test_rows_say_which_side_they_are_of():
    workload = bench.Workload("small", 200, 8, bench.insert_sides)
    rows = bench.measure(workload, 2, True, lambda done, total: None)
    assert [row["side"] for row in rows] == ["cpprb", "ring_numpy", "ring_torch"]
    assert rows[0]["verdict"] == "baseline" and all(row["median_us"] > 0 and row["quick"] for row in rows)
    text = bench.format_rows(rows)
    assert "ring_torch" in text and text.endswith("quick: do not cite")
