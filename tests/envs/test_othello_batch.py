"""Sets of squares in tensors: lines over the whole board, picking and counting, a step of random play."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlbench.actions import unpack
from rlbench.envs.othello import (
    SIZES,
    Boards,
    boards_of,
    features,
    finished,
    lead,
    legal_actions,
    legal_squares,
    play_square,
    start,
)
from rlbench.envs.othello_batch import BLOCK, START, after, count, flips, nth_square, random_step
from rlbench.envs.othello_batch_ids import ids_of_rows, random_packed_step

MASK = 2**64 - 1


def signed(bits):
    return bits - 2**64 if bits >= 2**63 else bits


@pytest.mark.parametrize("size", SIZES)
def test_the_first_moves_are_known_beforehand(size):
    assert legal_squares(*start(1, size)).item() == START[size][2]


@pytest.mark.parametrize("corner", [0, 7, 56, 63])
def test_lines_from_and_to_every_corner(corner):
    """A disc in one corner and theirs all along the edges and the diagonal: three moves, each of seven discs."""
    r, c = corner // 8, corner % 8
    steps = [(0, 1 if c == 0 else -1), (1 if r == 0 else -1, 0)]
    steps.append((steps[1][0], steps[0][1]))
    lines = [[8 * (r + i * a) + c + i * b for i in range(1, 8)] for a, b in steps]
    theirs = sum(1 << at for line in lines for at in line[:6])
    boards = Boards(torch.tensor([signed(1 << corner)]), torch.tensor([signed(theirs)]), 8)
    (ids,) = unpack(legal_actions(boards))
    assert sorted(ids) == sorted(sum(1 << at for at in line) for line in lines)
    # and back: a disc at the far end of each, the corner free
    for line in lines:
        back = Boards(torch.tensor([signed(1 << line[6])]), torch.tensor([signed(theirs)]), 8)
        placed = torch.tensor([signed(1 << corner)])
        assert flips(*back[:2], placed, 8).item() & MASK == sum(1 << at for at in line[:6])


@given(st.lists(st.integers(1, MASK), min_size=1, max_size=8), st.integers(0, MASK))
def test_the_nth_square_of_any_set(sets, number):
    counts = [bits.bit_count() for bits in sets]
    k = [number % n for n in counts]
    tensor = torch.tensor([signed(bits) for bits in sets])
    assert count(tensor).tolist() == counts
    found = nth_square(tensor, torch.tensor(k)).tolist()
    expected = [[1 << b for b in range(64) if bits >> b & 1][at] for bits, at in zip(sets, k, strict=True)]
    assert [bits & MASK for bits in found] == expected


def test_an_empty_set_has_no_square():
    assert nth_square(torch.tensor([0, 1]), torch.tensor([0, 0])).tolist() == [0, 1]


@pytest.mark.parametrize("size", SIZES)
def test_a_step_of_random_play_takes_each_square_alike_and_starts_anew(size):
    n, generator = 200, torch.Generator().manual_seed(3)
    boards = start(n, size)
    moves, ends = legal_squares(*boards), 0
    for _ in range(2 * size**2):
        bits = torch.randint(2**32, (n,), generator=generator)
        k = (bits * count(moves)) >> 32
        expected = play_square(boards, nth_square(moves, k))
        mine, theirs, moves, ended = random_step(boards.mine, boards.theirs, moves, bits, size)
        assert torch.equal(ended, finished(expected))
        for ours, played, begun in zip((mine, theirs), expected, start(n, size), strict=False):
            assert torch.equal(ours, torch.where(ended, begun, played))
        boards = Boards(mine, theirs, size)
        assert torch.equal(moves, legal_squares(*boards))
        ends += int(ended.sum())
    assert ends >= n


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_compiled_step_is_the_same(size):
    """It compiles whole, and vector code of other widths, with a rest at the end, changes nothing."""
    n, generator = 203, torch.Generator().manual_seed(4)
    compiled = torch.compile(random_step, fullgraph=True)
    state = (*start(n, size)[:2], legal_squares(*start(n, size)))
    for _ in range(2 * size**2):
        bits = torch.randint(2**32, (n,), generator=generator)
        expected, found = random_step(*state, bits, size), compiled(*state, bits, size)
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))
        state = expected[:3]


@pytest.mark.parametrize("size", SIZES)
def test_a_step_on_packed_ids_is_the_same_as_on_squares(size):
    n, generator = 100, torch.Generator().manual_seed(6)
    boards = start(n, size)
    state, legal = (*boards[:2], legal_squares(*boards)), legal_actions(boards)
    for _ in range(2 * size**2):
        bits = torch.randint(2**32, (n,), generator=generator)
        *packed, legal, packed_ended = random_packed_step(*state[:2], legal, bits, size)
        *state, ended = random_step(*state, bits, size)
        assert torch.equal(packed_ended, ended)
        assert torch.equal(packed[0], state[0]) and torch.equal(packed[1], state[1])
        expected = legal_actions(Boards(*packed, size))
        assert torch.equal(legal.ids, expected.ids) and torch.equal(legal.offsets, expected.offsets)


@pytest.mark.slow
def test_compiled_parts_of_a_packed_step_are_the_same():
    n, generator = 203, torch.Generator().manual_seed(7)
    parts = torch.compile(after, fullgraph=True), torch.compile(ids_of_rows, dynamic=True, fullgraph=True)
    state = *start(n)[:2], legal_actions(start(n))
    for _ in range(130):
        bits = torch.randint(2**32, (n,), generator=generator)
        expected, found = random_packed_step(*state, bits, 8), random_packed_step(*state, bits, 8, *parts)
        for ours, theirs in zip((*found[:2], *found[2]), (*expected[:2], *expected[2]), strict=True):
            assert torch.equal(ours, theirs)
        state = expected[:3]


@pytest.mark.parametrize("size", SIZES)
def test_few_games_and_many_take_two_paths_to_one_answer(size):
    generator = torch.Generator().manual_seed(5)
    numbers = torch.randint(-(2**63), 2**63 - 1, (3, BLOCK + 1), generator=generator)
    board = signed(sum(1 << (8 * r + c) for r in range(size) for c in range(size)))
    mine, theirs = numbers[0] & board, ~numbers[0] & numbers[1] & board
    moves = legal_squares(mine, theirs, size)
    parts = [legal_squares(mine[i : i + 700], theirs[i : i + 700], size) for i in range(0, len(mine), 700)]
    assert torch.equal(moves, torch.cat(parts))
    placed = nth_square(moves, count(moves) // 2)
    turned = [
        flips(mine[i : i + 700], theirs[i : i + 700], placed[i : i + 700], size) for i in range(0, len(mine), 700)
    ]
    assert torch.equal(flips(mine, theirs, placed, size), torch.cat(turned))


@pytest.mark.parametrize("size", SIZES)
def test_no_value_is_read_on_the_host(size):
    """Tensors without values go through: nothing waits for a device, and all constants are on it."""
    boards = start(3, size, "meta")
    bits = torch.zeros(3, dtype=torch.int64, device="meta")
    outcome = random_step(*boards[:2], legal_squares(*boards), bits, size)
    outcome += play_square(boards, bits)[:2]
    outcome += (finished(boards), lead(boards), features(boards), boards_of(features(boards), size).mine)
    assert {tensor.device.type for tensor in outcome} == {"meta"}
