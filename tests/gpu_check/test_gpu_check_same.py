"""Correctness: what agrees passes, what differs or breaks is a failed check, what is absent is neither."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
import torch

from rlbench.batch import Transitions
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.gpu_check import same_envs, same_slots, same_training
from rlbench.gpu_check.check import on_cpu, tensors
from rlbench.speedups import SPEEDUPS


def planted(sameness, **variants):
    """A slot whose variants give the tensors in `variants`, or raise what is there."""

    def bind(variant, inputs):
        def call():
            if isinstance(variant, Exception):
                raise variant
            return [variant]

        return call

    slot = SPEEDUPS["metrics"]
    check = SPEEDUPS["replay"].check
    return dataclasses.replace(
        slot, name="s", variants=variants, sameness=sameness, bind=bind, check=check, make_inputs=lambda *a: None
    )


def verdicts(monkeypatch, check, slot):
    monkeypatch.setattr(same_slots, "SPEEDUPS", {"s": slot})
    return {row["variant"]: (row["same"], row["verdict"]) for row in same_slots.same_slots(check)}


def test_variants_are_held_against_the_plainest(monkeypatch, pretending):
    one = torch.tensor([1.0, -2.0])
    slot = planted(
        "bitwise", plain=one, equal=one.clone(), rounded=one * (1 + 1e-6), wrong=one + 0.1, broken=OSError("x")
    )
    assert verdicts(monkeypatch, pretending, slot) == {
        "plain": (True, "same"),
        "equal": (True, "same"),
        "rounded": (True, "same but for rounding"),
        "wrong": (False, "NOT the same"),
        "broken": (False, "failed"),
    }


def test_rounding_passes_only_where_bits_were_asked_for(monkeypatch, pretending):
    slot = planted("close", plain=torch.ones(1), rounded=torch.ones(1) * (1 + 1e-6))
    assert verdicts(monkeypatch, pretending, slot)["rounded"] == (False, "NOT the same")


def test_a_package_that_is_not_there_is_no_failure(monkeypatch, pretending):
    missing = ModuleNotFoundError("No module named 'gymnasium.vector'")
    slot = planted("bitwise", plain=missing, other=torch.ones(1))
    monkeypatch.setattr(same_slots, "SPEEDUPS", {"s": slot})
    rows = list(same_slots.same_slots(pretending))
    assert [row["not_measured"] for row in rows] == ["needs gymnasium, which is not installed here", None]
    assert rows[1]["same"] is True


def test_without_cuda_nothing_is_compared(check):
    rows = [*same_slots.same_slots(check), *same_envs.same_envs(check), *same_training.same_training(check)]
    assert {row["slot"] for row in rows if "slot" in row} == set(SPEEDUPS)
    assert all(row["same"] is None and row["not_measured"].endswith("not measured on this machine") for row in rows)


def test_a_section_whose_time_is_up_says_so(pretending):
    pretending.deadline = 0.0
    rows = [*same_slots.same_slots(pretending), *same_envs.same_envs(pretending)]
    assert any(row["not_measured"].startswith("cut short") for row in rows)
    assert all(row["same"] is None and row["not_measured"] for row in rows)


def test_containers_come_to_the_cpu_as_they_are():
    batch = Transitions(*[torch.ones(1)] * 7)
    moved = on_cpu({"a": [batch, (1, "x", None)]})
    assert isinstance(moved["a"][0], Transitions) and moved["a"][1] == (1, "x", None)


def test_a_tuple_that_iterates_otherwise_keeps_its_fields():
    class Stacked(NamedTuple):
        rows: list

        def __iter__(self):
            return iter((torch.ones(1), torch.ones(2)))

    moved = on_cpu(Stacked([torch.zeros(1)]))
    assert isinstance(moved, Stacked) and torch.equal(moved.rows[0], torch.zeros(1))
    assert len(list(tensors(moved))) == 2


def test_batch_envs_agree_with_themselves(pretending):
    rows = list(same_envs.same_envs(pretending))
    assert [(row["name"], row["same"]) for row in rows] == [("BatchCartPole", True), ("BatchTrading", True)]


@pytest.mark.parametrize(("step", "field"), [(3, "state"), (5, "reward"), (4, "terminated")])
def test_an_env_that_steps_otherwise_is_found(step, field):
    class Other(BatchCartPole):
        taken = -1

        def step(self, state, action):
            self.taken += 1
            state, out = super().step(state, action)
            if self.taken < step:
                return state, out
            if field == "state":
                return state._replace(x=state.x + 1e-6), out
            changed = out.reward + 1 if field == "reward" else ~out.terminated
            return state, out._replace(**{field: changed})

    with pytest.raises(AssertionError, match=f"step {step}, {'x' if field == 'state' else field}"):
        same_envs.compare_steps(BatchCartPole(4), Other(4), 10, 0)


def test_an_env_that_starts_otherwise_is_found():
    with pytest.raises(AssertionError, match="reset, x"):
        same_envs.compare_steps(BatchCartPole(4, seed=1), BatchCartPole(4, seed=2), 1, 0)


@pytest.mark.parametrize(
    ("found", "same"),
    [([1.0, 2.0], True), ([1.0, 2.01], True), ([1.0, 2.05], False), ([1.0, float("nan")], False), ([1.0], False)],
)
def test_loss_curves(found, same):
    assert same_training.curve_agreement(np.array([1.0, 2.0]), np.array(found))["same"] is same


def test_no_loss_at_all_is_no_agreement():
    assert same_training.curve_agreement(np.array([]), np.array([]))["same"] is False


def test_every_way_to_train_loses_as_plain_does(pretending):
    rows = list(same_training.same_training(pretending))
    assert {row["same"] for row in rows} <= {True, None}, [row["error"] for row in rows]
    assert sum(row["same"] is True for row in rows) >= 2
