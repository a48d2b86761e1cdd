"""Correctness: what agrees passes, what differs or breaks is a failed check, what is absent is neither."""

import dataclasses
import re
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch

from rlbench.batch import Transitions
from rlbench.envs.bandit import IdBandit
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.gpu_check import same_envs, same_games, same_ppo, same_slots, same_training
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
    sections = (same_slots.same_slots, same_envs.same_envs, same_training.same_training, same_games.same_games)
    rows = [row for section in (*sections, same_ppo.same_ppo) for row in section(check)]
    assert {row["slot"] for row in rows if "slot" in row} == set(SPEEDUPS)
    assert all(row["same"] is None and row["not_measured"].endswith("not measured on this machine") for row in rows)


def test_a_section_whose_time_is_up_says_so(pretending):
    pretending.deadline = 0.0
    sections = (same_slots.same_slots, same_envs.same_envs, same_games.same_games, same_ppo.same_ppo)
    rows = [row for section in sections for row in section(pretending)]
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


def test_games_agree_with_themselves(pretending):
    rows = list(same_games.same_games(pretending))
    assert len(rows) == 5 and all(row["same"] is True for row in rows), [row["error"] for row in rows]


@pytest.mark.parametrize(("step", "field"), [(0, "obs"), (2, "reward"), (1, "ids"), (3, "terminated")])
def test_games_that_step_otherwise_are_found(step, field):
    class Other:
        """A game whose second batch differs."""

        made = 0

        def batched(self, num_envs, seed, device):
            games = IdBandit().batched(num_envs, seed, device)
            self.made += 1
            return games if self.made == 1 else Wrong(games)

    class Wrong:
        taken = -1

        def __init__(self, games):
            self.games, self.num_envs, self.device, self.reset = games, games.num_envs, games.device, games.reset

        def step(self, ids):
            self.taken += 1
            out = self.games.step(ids)
            if self.taken != step:
                return out
            if field == "ids":
                return out._replace(legal=out.legal._replace(ids=out.legal.ids ^ 1))
            changed = getattr(out, field)
            return out._replace(**{field: ~changed if field == "terminated" else changed + 1e-6})

    with pytest.raises(AssertionError, match=f"step {step}, {field}"):
        same_games.compare_games(Other(), torch.device("cpu"), 5, 0)


def test_every_way_to_train_ppo_goes_as_plain_does(pretending):
    rows = list(same_ppo.same_ppo(pretending))
    assert [row["name"] for row in rows] == [
        f"PPO training: {name}" for name in ("plain", "packed", "packed_triton", "fast")
    ]
    assert all(row["same"] is True for row in rows if not row["not_measured"]), [row["error"] for row in rows]
    assert rows[0]["difference"] == 0 and rows[0]["mean_return"] == rows[0]["cpu_mean_return"]
    assert "CUDA" in rows[2]["not_measured"]


def frame(**changes):
    columns = {"env_step": [8, 16], "updates": [2, 4], "entropy": [1.0, 0.5], "value_loss": [0.2, 0.1]}
    return pd.DataFrame({**columns, "first_ratio_error": [1e-7, 2e-7], **changes})


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"entropy": [1.005, 0.5]}, None),
        ({"entropy": [1.02, 0.5]}, "entropy and value_loss of the first round differ by up to 0.02"),
        ({"value_loss": [0.2, 0.12]}, None),
        ({"value_loss": [0.2, 0.13]}, "of later rounds differ by up to 0.3 "),
        ({"value_loss": [0.2, float("nan")]}, "of later rounds differ by up to nan"),
        ({"updates": [2, 3]}, r"rows at updates \[2, 3\], on the CPU \[2, 4\]"),
        ({"first_ratio_error": [0.0, 1e-3]}, "a ratio of probabilities is off by 0.001"),
    ],
)
def test_trainings_of_ppo_by_hand(changes, fault):
    found = same_ppo.fault(frame(), frame(**changes))
    assert found is None if fault is None else re.search(fault, found)
