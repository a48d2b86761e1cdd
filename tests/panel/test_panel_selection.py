"""What a panel's dropdowns offer, and which combinations it refuses."""

import pytest
import torch

from rlbench.config import DQNConfig
from rlbench.panel.selection import Selection, choices_of
from rlbench.speedups import SPEEDUPS, ChoiceError, Choices

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def selection(choices=None, slots=None, device=CPU) -> Selection:
    return Selection("dqn", choices, slots, DQNConfig(), device)


def test_every_slot_of_the_workload_is_shown():
    assert selection().slots == tuple(SPEEDUPS)
    assert selection(slots=["optimizer"]).slots == ("optimizer",)


@pytest.mark.parametrize(
    ("given", "replay"),
    [
        (None, "ring_numpy"),
        ("naive", "deque"),
        ("replay=ring_torch, optimizer=foreach", "ring_torch"),
        ({"replay": "deque"}, "deque"),
        (Choices(replay="deque"), "deque"),
    ],
)
def test_choices_come_in_the_forms_of_a_parameters_cell(given, replay):
    assert choices_of(given, CPU).replay == replay


@pytest.mark.parametrize("given", [{"replai": "deque"}, {"replay": "dequeue"}, "replay=dequeue", "faster"])
def test_unknown_names_are_refused(given):
    with pytest.raises(ChoiceError):
        selection(given)


def test_unknown_workloads_and_slots_are_refused():
    with pytest.raises(ChoiceError, match="no workload 'sarsa': workloads are dqn"):
        Selection("sarsa", None, None, DQNConfig(), CPU)
    with pytest.raises(ChoiceError, match="no slot 'brakes' of dqn"):
        selection(slots=["brakes"])
    with pytest.raises(ChoiceError, match="in this panel: slots are replay"):
        selection(slots=["replay"]).select("optimizer", "fused")
    with pytest.raises(ChoiceError, match="accepted are naive, plain, fast"):
        selection().use("faster")


def test_variants_that_the_machine_lacks_are_left_out_with_the_reason():
    slot = selection().slot("transfer")
    assert slot.offered == ("pageable",)
    assert set(slot.left_out) == {"pinned", "pinned_non_blocking"}
    assert "CUDA" in slot.remark()[0]
    assert selection(device=CUDA).slot("transfer").offered == ("pageable", "pinned", "pinned_non_blocking")


def test_a_variant_of_the_parameters_cell_that_cannot_run_stays_visible_and_is_a_problem():
    chosen = selection({"transfer": "pinned"})
    assert chosen.slot("transfer").offered == ("pageable", "pinned")
    assert "transfer='pinned' cannot be used" in chosen.problem()
    chosen.select("transfer", "pageable")
    assert chosen.problem() is None
    assert chosen.slot("transfer").offered == ("pageable",)


def test_a_combination_that_cannot_work_is_a_sentence_until_it_is_mended():
    chosen = selection(device=CUDA)
    chosen.select("transfer", "pinned")
    assert chosen.problem() is None
    chosen.select("replay", "ring_torch")
    assert "transfer='pinned' cannot be used: replay='ring_torch'" in chosen.problem()
    chosen.select("transfer", "pageable")
    assert chosen.problem() is None


def test_a_slot_left_without_use_is_released_and_comes_back():
    chosen = selection()
    chosen.select("conversion", "preallocated")
    chosen.select("replay", "ring_torch")
    assert chosen.problem() is None
    assert "conversion" not in chosen.choices.explicit
    assert "hands out tensors" in chosen.slot("conversion").unused
    chosen.select("replay", "deque")
    assert chosen.slot("conversion").unused is None


def test_an_unused_slot_set_by_the_parameters_cell_is_a_problem():
    chosen = selection({"replay": "ring_torch", "conversion": "preallocated"})
    assert "conversion='preallocated' cannot be used" in chosen.problem()
    chosen.select("optimizer", "fused")  # any choice of the reader's releases it
    assert chosen.problem() is None


def test_named_choices_are_recognised_and_changes_are_counted_from_plain():
    chosen = selection()
    assert (chosen.name, chosen.changes(), chosen.label) == ("plain", {}, "plain")
    chosen.use("fast")
    assert (chosen.name, chosen.changes()) == ("fast", {"update": "native"})
    chosen.select("replay", "ring_torch")
    assert (chosen.name, chosen.label) == (None, "update=native, replay=ring_torch")


def test_named_choices_fill_only_the_slots_shown():
    chosen = selection(slots=["replay"])
    chosen.use("naive")
    assert chosen.changes() == {"replay": "deque"}


def test_choices_table_has_a_row_for_each_slot():
    chosen = selection("replay=ring_torch")
    table = chosen.choices_table().set_index("slot")
    assert list(table.index) == list(SPEEDUPS)
    assert table.loc["replay", ["selected", "plain"]].tolist() == ["ring_torch", "ring_numpy"]
    assert table.loc["conversion", "selected"] == "not used"
    assert table.loc["metrics", "remark"] == ""
