"""What a panel's dropdowns offer, and which combinations it refuses."""

import pytest
import torch

from rlbench.config import DQNConfig
from rlbench.envs.factories import TradingFactory
from rlbench.envs.source import env_source
from rlbench.panel.selection import Selection, choices_of
from rlbench.simulate import martingale
from rlbench.speedups import SPEEDUPS, ChoiceError, Choices

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def selection(choices=None, slots=None, device=CPU, env=None, **settings) -> Selection:
    source = None if env is None else env_source(env)
    return Selection("dqn", choices, slots, DQNConfig(**settings), device, source)


OF_DQN = [name for name, slot in SPEEDUPS.items() if "dqn" in slot.workloads]


def test_every_slot_of_the_workload_is_shown():
    assert selection().slots == tuple(OF_DQN)
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
    with pytest.raises(ChoiceError, match="no workload 'sarsa': workloads are dqn, ppo"):
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
    assert (chosen.name, chosen.changes()) == ("fast", {"loop": "native"})
    chosen.select("replay", "ring_torch")
    assert (chosen.name, chosen.label) == (None, "environments=native, replay=ring_torch, update=native")
    chosen.use("plain")
    chosen.select("loop", "native")
    assert chosen.name == "fast"


def test_named_choices_fill_only_the_slots_shown():
    chosen = selection(slots=["replay"])
    chosen.use("naive")
    assert chosen.changes() == {"replay": "deque"}


def test_choices_table_has_a_row_for_each_slot():
    chosen = selection("replay=ring_torch")
    table = chosen.choices_table().set_index("slot")
    assert list(table.index) == OF_DQN
    assert table.loc["replay", ["selected", "plain"]].tolist() == ["ring_torch", "ring_numpy"]
    assert table.loc["conversion", "selected"] == "not used"
    assert table.loc["metrics", "remark"] == ""


def trading():
    return TradingFactory(martingale(100, seed=0))


def test_what_the_env_or_the_settings_bar_is_left_out_with_the_reason():
    chosen = selection(env="Acrobot-v1", n_step=2)
    loop = chosen.slot("loop")
    assert loop.offered == ("python",)
    assert loop.remark()[0].startswith("without tensors, fused, native: Acrobot-v1 has no batched counterpart")
    assert chosen.slot("environments").offered == ("one_by_one", "sync", "async")
    assert "n_step=2" in chosen.slot("replay").left_out["ring_frames"]
    assert selection(env="CartPole-v1").slot("loop").offered == tuple(SPEEDUPS["loop"].variants)


def test_a_slot_that_the_env_or_the_settings_have_no_use_for_cannot_be_changed():
    chosen = selection(env="CartPole-v1")
    for name, why in [
        ("features", "CartPole-v1 is not"),
        ("market_io", "CartPole-v1 is not"),
        ("priorities", "alpha=0"),
    ]:
        slot = chosen.slot(name)
        assert slot.fixed and why in slot.unused and name not in chosen.in_use()
    assert selection(env=trading()).slot("features").unused is None
    assert selection(prioritized_replay_alpha=0.5).slot("priorities").unused is None
    assert chosen.slot("transfer").unused is None and not chosen.slot("transfer").fixed


def test_reasons_that_differ_are_all_told():
    remark = selection(env="CartPole-v1").slot("update").remark()[0]
    assert "without chunked: a round has one update" in remark and "without cuda_graph: a graph needs CUDA" in remark


@pytest.mark.parametrize("loop", ["tensors", "native"])
def test_beside_a_loop_that_does_all_itself_the_others_show_as_not_used(loop):
    chosen = selection(env=trading())
    chosen.select("replay", "ring_torch")
    chosen.select("loop", loop)
    assert chosen.problem() is None and chosen.in_use() == {"loop": loop}
    for name in OF_DQN:
        assert (chosen.slot(name).unused is None) == (name == "loop")
    assert "takes loop='python'" in chosen.slot("metrics").remark()[1]
    assert not chosen.slot("metrics").fixed and chosen.slot("priorities").fixed


def test_choosing_another_slot_puts_the_loop_back_and_keeps_what_was_shown():
    chosen = selection(env=trading())
    chosen.use("fast")
    assert chosen.slot("update").selected == "native"
    chosen.select("metrics", "item_each_step")
    assert chosen.problem() is None
    expected = Choices.fast().replace(metrics="item_each_step").usable(chosen.config, CPU, chosen.source)
    assert chosen.in_use() == expected.in_use(chosen.config, CPU, chosen.source)
    assert chosen.in_use()["loop"] == "python" and chosen.in_use()["update"] == "native"


def test_a_panel_without_the_slot_loop_takes_the_python_loop_once_it_is_used():
    chosen = selection("fast", slots=["replay"], env="CartPole-v1")
    assert chosen.in_use() == {"loop": "native"}
    chosen.use("naive")
    assert chosen.in_use()["loop"] == "python" and chosen.in_use()["replay"] == "deque"


def test_named_choices_are_what_a_trainer_would_use_of_them_here():
    chosen = selection(env="Acrobot-v1")
    chosen.use("fast")
    assert chosen.problem() is None and chosen.name == "fast"
    assert chosen.changes() == {"update": "native"}
    assert selection("fast", env="Acrobot-v1").name == selection(Choices.fast(), env="Acrobot-v1").name == "fast"


def test_a_variant_that_nobody_picked_gives_way_without_a_problem():
    chosen = selection(env=trading())
    chosen.select("environments", "batched")
    assert chosen.problem() is None
    assert "keeps its table on the device" in chosen.slot("features").unused
    assert not chosen.slot("features").fixed
    chosen.select("features", "table")
    assert "features='table' cannot be used" in chosen.problem()
    chosen.select("features", "table_on_device")
    assert chosen.problem() is None and chosen.in_use()["features"] == "table_on_device"
