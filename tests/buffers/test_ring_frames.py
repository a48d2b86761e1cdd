"""The frame-saving ring gives bit for bit what the ring of whole rows gives, for every stream of windows (handed case 5)."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlbench.batch import Layout, Transitions
from rlbench.buffers import ReplayError, RingFrames, RingNumpy, RingTorch, RowSpec
from rlbench.speedups.conversion import StackOnce

MANY = np.arange(10_000)


def stream(steps: int, num_envs: int, layout: Layout, ends: float, seed: int, masked: bool = False) -> Transitions:
    """Rows of `steps` steps of `num_envs` envs whose windows move on by one random bar; `ends` is the chance of an end."""
    rng = np.random.default_rng(seed)
    w, f, own = layout
    window = rng.standard_normal((num_envs, w, f), np.float32)
    kept = []
    own_now = rng.standard_normal((num_envs, own), np.float32)
    for _ in range(steps):
        following = np.concatenate([window[:, 1:], rng.standard_normal((num_envs, 1, f), np.float32)], axis=1)
        own_next = rng.standard_normal((num_envs, own), np.float32)
        over = rng.random(num_envs) < ends
        kept.append(
            Transitions(
                np.concatenate([window.reshape(num_envs, -1), own_now], axis=1),
                rng.integers(0, 3, num_envs),
                rng.standard_normal(num_envs),
                np.concatenate([following.reshape(num_envs, -1), own_next], axis=1),
                over & (rng.random(num_envs) < 0.5),
                over & (rng.random(num_envs) < 0.5),
                np.full(num_envs, 0.9, np.float32),
                rng.integers(0, 2, (num_envs, 3)).astype(bool) if masked else None,
            )
        )
        fresh = rng.standard_normal((num_envs, w, f), np.float32)
        window = np.where(over[:, None, None], fresh, following)
        own_now = own_next
    return Transitions(*(None if f[0] is None else np.concatenate(f) for f in zip(*kept, strict=True)))


def part(rows: Transitions, start: int, stop: int) -> Transitions:
    return Transitions(*(None if f is None else f[start:stop] for f in rows))


def assert_equal(frames: RingFrames, whole: RingNumpy) -> None:
    assert len(frames) == len(whole) and frames.head == whole.head
    index = np.arange(len(whole))
    for actual, expected in zip(frames.sample(index), StackOnce()(whole.sample(index)), strict=True):
        assert (actual is None) == (expected is None)
        if actual is not None:
            assert actual.dtype == expected.dtype and actual.shape == expected.shape
            assert actual.numpy().tobytes() == expected.contiguous().numpy().tobytes()


@given(st.integers(2, 5), st.integers(1, 3), st.integers(0, 2), st.integers(1, 4), st.integers(1, 40), st.data())
def test_any_stream_comes_back_as_from_the_ring_of_whole_rows(window, features, own, num_envs, capacity, data):
    layout = Layout(window, features, own)
    masked, ends = data.draw(st.booleans()), data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    spec = RowSpec(window * features + own, 3, masked, layout, num_envs)
    frames, whole = RingFrames(spec, capacity), RingNumpy(spec, capacity)
    rows = stream(60, num_envs, layout, ends, data.draw(st.integers(0, 999)), masked)
    step = 0
    while step < 60:
        count = data.draw(st.sampled_from([1, 1, 2, 3, 25]))
        chunk = part(rows, step * num_envs, (step + count) * num_envs)
        frames.add(chunk)
        whole.add(chunk)
        assert_equal(frames, whole)
        step += count


@pytest.mark.parametrize("inserts", [8, 3])
def test_only_the_newest_rows_each_with_its_own_next_observation(inserts):
    """Handed case 5 with windows of two bars: capacity 5, bars numbered, ids of the newest only, never a zero."""
    spec = RowSpec(2, 3, layout=Layout(2, 1, 0))
    replay = RingFrames(spec, 5)
    for i in range(1, inserts + 1):
        flag = np.zeros(1, bool)
        obs = np.array([[i, i + 1]], np.float32)
        replay.add(Transitions(obs, np.array([i % 3]), np.array([i * 10.0]), obs + 1, flag, flag, np.ones(1)))
    rows = replay.sample(MANY % len(replay))
    assert torch.equal(rows.next_obs, rows.obs + 1) and torch.equal(rows.reward, rows.obs[:, 0] * 10)
    assert set(rows.obs[:, 0].tolist()) == set(range(max(1, inserts - 4), inserts + 1))


@pytest.mark.parametrize("terminated", [True, False])
def test_the_true_last_observation_of_an_episode_is_kept(terminated):
    """Bars 1 2 3 | 90 91 92: the row that ends the first episode bootstraps from its own bar 4, not from bar 90."""
    replay = RingFrames(RowSpec(3, 3, layout=Layout(2, 1, 1)), 4)
    one, ends = np.array([False]), np.array([True])
    for obs, after, over in [([1, 2], [2, 3], one), ([2, 3], [3, 4], ends), ([90, 91], [91, 92], one)]:
        obs, after = np.array([[*obs, 0.5]], np.float32), np.array([[*after, 0.25]], np.float32)
        flags = (over, one) if terminated else (one, over)
        replay.add(Transitions(obs, np.array([0]), np.array([1.0]), after, *flags, np.ones(1)))
    rows = replay.sample(np.array([0, 1, 2]))
    assert rows.obs.tolist() == [[1, 2, 0.5], [2, 3, 0.5], [90, 91, 0.5]]
    assert rows.next_obs.tolist() == [[2, 3, 0.25], [3, 4, 0.25], [91, 92, 0.25]]
    assert (rows.terminated if terminated else rows.truncated).tolist() == [0, 1, 0]


def test_a_reset_without_an_end_is_found_by_its_bars():
    """An env that jumps without saying so: the window is stored afresh."""
    layout = Layout(2, 1, 0)
    spec, flag = RowSpec(2, 3, layout=layout), np.zeros(1, bool)
    frames, whole = RingFrames(spec, 4), RingNumpy(spec, 4)
    for a, b, c in [(1, 2, 3), (7, 8, 9), (-0.0, 9, 10), (9, 10, 11)]:
        rows = Transitions(np.array([[a, b]], np.float32), np.array([0]), np.ones(1), np.array([[b, c]], np.float32),
                           flag, flag, np.ones(1))  # fmt: skip
        frames.add(rows)
        whole.add(rows)
    assert_equal(frames, whole)


def test_it_takes_a_fraction_of_the_memory_and_keeps_to_it():
    layout = Layout(window=32, features=10, own=2)
    spec = RowSpec(322, 3, layout=layout, num_envs=4)
    frames, whole = RingFrames(spec, 2000), RingTorch(spec, 2000)
    before = frames.nbytes
    rows = stream(1000, 4, layout, ends=1 / 256, seed=1)
    for start in range(0, 4000, 4):
        frames.add(part(rows, start, start + 4))
    assert whole.nbytes == 2000 * 4 * (2 * 322 + 5)
    # A row: 10 features, 2 · 2 own numbers, 5 scalars of 4 bytes, and 8 of its frame's number.
    assert 2000 * (4 * 19 + 8) < before < 1.2 * 2000 * (4 * 19 + 8)
    assert frames.nbytes < 1.5 * before < whole.nbytes / 10


def test_a_sample_and_the_replay_do_not_follow_the_arrays_they_came_from():
    layout = Layout(2, 1, 1)
    replay = RingFrames(RowSpec(3, 3, layout=layout), 3)
    rows = stream(2, 1, layout, 0.0, seed=3)
    expected = rows.obs.copy()
    replay.add(rows)
    rows.obs[...] = rows.next_obs[...] = 0
    sample = replay.sample(np.array([0, 1]))
    replay.add(stream(3, 1, layout, 0.0, seed=4))
    assert sample.obs.numpy().tolist() == expected.tolist()


def test_what_cannot_be_gathered_from_frames_is_refused_by_name():
    with pytest.raises(ReplayError, match="does not say that its observations are windows"):
        RingFrames(RowSpec(4, 2), 5)
    with pytest.raises(ReplayError, match="a window of 1 bar shares nothing"):
        RingFrames(RowSpec(4, 2, layout=Layout(1, 2, 2)), 5)
    with pytest.raises(ReplayError, match="makes 8 numbers, and observations have 9"):
        RingFrames(RowSpec(9, 2, layout=Layout(3, 2, 2)), 5)
    with pytest.raises(ReplayError, match="capacity must be at least 1, not 0"):
        RingFrames(RowSpec(8, 2, layout=Layout(3, 2, 2)), 0)


def test_rows_that_skip_a_bar_or_an_env_are_refused_by_number():
    layout = Layout(3, 1, 0)
    replay = RingFrames(RowSpec(3, 3, layout=layout, num_envs=2), 10)
    rows = stream(2, 2, layout, 0.0, seed=5)
    replay.add(rows)
    with pytest.raises(ReplayError, match="3 rows of 2 envs"):
        replay.add(part(rows, 0, 3))
    rows.next_obs[1] += 1  # as where a row spans several steps
    with pytest.raises(ReplayError, match="in row 1 the window of next_obs is not that of obs moved on by one bar"):
        replay.add(rows)
    assert len(replay) == 4
