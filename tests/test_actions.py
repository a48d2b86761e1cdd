"""Sets of actions: every form of ids, bits beyond 53 and 63, what is refused, and taking some of the sets."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rlbench
from rlbench.actions import ActionError, ActionSets, cat, check_sets, pack, to_unsigned, unpack

IDS = [0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]
BIT_COUNTS = [0, 1, 2, 63, 1, 64]
LISTS = st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=5), max_size=6)


def as_int64(ids):
    return np.array(ids, np.uint64).view(np.int64)


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        iter,
        lambda ids: np.array(ids, np.uint64),
        lambda ids: np.array(ids, np.uint64)[::1].astype(">u8"),
        as_int64,
        lambda ids: torch.from_numpy(as_int64(ids)),
        lambda ids: [np.uint64(i) for i in ids],
        lambda ids: np.array(ids, object),
    ],
)
def test_every_form_of_ids_keeps_all_bits(form):
    sets = pack([form(IDS), form(IDS[2:3])])
    assert sets.ids.dtype == torch.int64 and sets.offsets.tolist() == [0, 6, 7]
    assert unpack(sets) == [IDS, [2**53 + 1]]
    assert [bin(i).count("1") for i in to_unsigned(sets.ids)] == [*BIT_COUNTS, 2]


def test_other_integer_arrays_and_a_tensor_of_unsigned_ids():
    assert unpack(pack([np.array([3, 200], np.uint8), np.array([7], np.int32)])) == [[3, 200], [7]]
    assert unpack(pack([torch.from_numpy(np.array(IDS, np.uint64))])) == [IDS]


@pytest.mark.parametrize("bad", [-1, 2**64, 1.0, np.float64(2**53), True, "7", None, float("nan")])
def test_what_is_no_number_of_64_bits_is_refused_by_name(bad):
    with pytest.raises(ActionError, match=r"state 1: the id .* refused; accepted .* 0 to 2\^64 - 1"):
        pack([[1], [2, bad]])


@pytest.mark.parametrize("bad", [np.array([1.0, 2.0]), np.array([-1], np.int32), np.array([True])])
def test_arrays_of_other_kinds_are_refused(bad):
    with pytest.raises(ActionError, match="state 0"):
        pack([bad])


@pytest.mark.parametrize("bad", [7, None, "12", b"12"])
def test_a_set_that_is_no_list_is_refused(bad):
    with pytest.raises(ActionError, match="state 1"):
        pack([[1], bad])


@given(LISTS)
def test_packing_and_unpacking_are_inverse(lists):
    assert unpack(pack(lists)) == lists


@given(LISTS, st.data())
def test_some_of_the_sets(lists, data):
    sets = pack(lists)
    index = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8)) if lists else []
    expected = [lists[i] for i in index]
    for total in (None, sum(map(len, expected))):
        assert unpack(sets.take(torch.tensor(index, dtype=torch.int64), total)) == expected
    start = data.draw(st.integers(0, len(lists)))
    stop = data.draw(st.integers(start, len(lists)))
    part = sets.slice(start, stop)
    assert unpack(part) == lists[start:stop]
    assert unpack(cat([part, sets, part])) == lists[start:stop] + lists + lists[start:stop]


def test_a_slice_shares_its_ids():
    sets = pack([[1, 2], [3], [4]])
    assert sets.slice(1, 3).ids.data_ptr() == sets.ids[2:].data_ptr()


def test_counts_and_states():
    sets = pack([[5, 6], [], [7]])
    assert sets.counts.tolist() == [2, 0, 1] and sets.states().tolist() == [0, 0, 2]
    assert isinstance(sets, tuple) and sets._fields == ("ids", "offsets") and rlbench.ActionSets is ActionSets
    assert [t.shape for t in pack([])] == [(0,), (1,)]


def test_good_sets_pass_the_check():
    sets = pack([[1], [2, 3]])
    assert check_sets(sets) is sets
    ended = pack([[1], [], [4]])
    assert check_sets(ended, live=torch.tensor([True, False, True])) is ended


def made(ids, offsets):
    return ActionSets(torch.tensor(ids), torch.tensor(offsets))


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        (made([1, 2], [0, 1, 1, 2]), "state 1 has no legal action to choose"),
        (made([1, 2], [0, 1, 3]), "offsets run from 0 to 3; accepted: from 0 to the number of ids, 2"),
        (made([1, 2], [1, 2]), "offsets run from 1 to 2"),
        (made([1, 2], [0, 2, 1, 2]), "offsets fall behind state 1"),
        (made([1.0, 2.0], [0, 2]), "torch.float32"),
        (ActionSets(torch.tensor([1]), torch.tensor([0, 1], dtype=torch.int32)), "torch.int32"),
        (made([[1, 2]], [0, 2]), r"ids \(1, 2\)"),
        (ActionSets(torch.tensor([1]), torch.empty(0, dtype=torch.int64)), r"offsets \(0,\)"),
    ],
)
def test_sets_that_cannot_be_used_are_refused(sets, says):
    with pytest.raises(ActionError, match=says):
        check_sets(sets)


def test_a_live_state_without_an_action_is_named():
    sets = pack([[], [1], []])
    with pytest.raises(ActionError, match="state 2 has no legal action"):
        check_sets(sets, live=torch.tensor([False, True, True]))
