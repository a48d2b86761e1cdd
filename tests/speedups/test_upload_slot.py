"""The slots `upload` and `transfer` for PPO: what reaches the updater is the same, how often it is moved is not."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rlbench import Choices, DQNConfig, PPOConfig
from rlbench.actions import pack
from rlbench.batch import Decisions, Transitions
from rlbench.minibatches import index_views
from rlbench.speedups import transfer
from rlbench.speedups.transfer import moved, pageable
from rlbench.speedups.upload import SPEEDUP, VARIANTS, bind, make_inputs, per_minibatch, whole_rollout_once

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
GAME, GYMNASIUM = SimpleNamespace(game=object()), SimpleNamespace(game=None)


def decisions(legal):
    row = torch.arange(4.0)
    return Decisions(row[:, None], legal, row.long(), row, row, row, row)


class Counting:
    """A transfer to a device that is not there: it notes what was moved, and marks it by a copy."""

    def __init__(self):
        self.calls = 0

    def __call__(self, batch, device):
        assert device == CUDA
        self.calls += 1
        return moved(batch, torch.clone)


@pytest.mark.parametrize("size", [1, 33, 700])
def test_variants_agree(size):
    inputs = make_inputs(size, 0, "cpu")
    expected = bind(per_minibatch, inputs)()
    assert expected
    SPEEDUP.check(expected, bind(whole_rollout_once, inputs)())


@pytest.mark.parametrize("legal", [pack([[1], [2, 3], [4], [5, 6, 2**63]]), torch.ones(4, 2, dtype=torch.bool), None])
def test_a_rollout_goes_over_once_or_a_minibatch_at_a_time(legal):
    order, seen, calls = np.array([3, 1, 0, 2]), {}, {}
    for name, upload in VARIANTS.items():
        move = Counting()
        source = upload(decisions(legal), CUDA, move)
        batches = [source.ready(b) for _ in range(3) for b in index_views(source.rows, order, [2, 2])]
        seen[name], calls[name] = batches, move.calls
    assert calls == {"per_minibatch": 6, "whole_rollout_once": 1}
    for one, other in zip(*seen.values(), strict=True):
        transfer.check_equal(one, other)
    assert seen["per_minibatch"][0].obs.tolist() == [[3.0], [1.0]]


def test_counts_stay_on_the_host():
    rows = whole_rollout_once(decisions(pack([[1], [2, 3], [4], [5]])), CUDA, Counting()).rows
    rows.decisions = None  # whatever is on the device is not asked
    assert rows.counts.tolist() == [1, 2, 1, 1]


def test_moving_keeps_the_form_of_what_is_moved():
    batch = Transitions(*(torch.full((2,), float(i)) for i in range(7)))
    out = moved(batch, lambda t: t + 1)
    assert type(out) is Transitions and out.next_mask is None and out.reward.tolist() == [3.0, 3.0]
    given = decisions(pack([[1], [2], [3], [4]]))
    out = pageable(given, CPU)
    assert type(out) is Decisions and type(out.legal) is type(given.legal)
    assert out.legal.ids is given.legal.ids and out.obs is given.obs  # already there: handed on


def test_on_the_cpu_nothing_is_transferred():
    reason = SPEEDUP.requires("whole_rollout_once", None, None, CPU, None)
    assert reason == "nothing is transferred on the CPU; accepted here: per_minibatch"
    assert SPEEDUP.requires("per_minibatch", None, None, CPU, GAME) is None
    assert SPEEDUP.requires("whole_rollout_once", None, None, CUDA, None) is None
    for variant in ("pinned", "pinned_non_blocking"):
        assert "accepted here: pageable" in transfer.requires(variant, None, PPOConfig(), CPU, GAME)
    assert transfer.requires("pageable", Choices(), PPOConfig(), CPU, GAME) is None


class WithGames:
    """Choices of a trainer of games."""

    replay = "ring_torch"  # DQN's: PPO has no replay

    def __init__(self, games):
        self.games = games

    def to_dict(self):
        return {"games": self.games, "replay": self.replay}


@pytest.mark.parametrize("slot", [SPEEDUP, transfer.SPEEDUP])
def test_games_that_are_stepped_on_the_device_need_no_upload(slot):
    for variant in slot.variants:
        reason = slot.requires(variant, WithGames("batched"), PPOConfig(), CUDA, GAME)
        assert "games='batched' collects on the device" in reason and reason.endswith("leave this slot out")
        for env in (GYMNASIUM, None):
            assert slot.requires(variant, WithGames("batched"), PPOConfig(), CUDA, env) is None
        assert "collects on the device" in slot.requires(variant, WithGames("one_by_one"), PPOConfig(), CUDA, GAME)


def test_for_dqn_transfers_are_refused_as_before():
    choices = Choices(replay="ring_torch")
    for config in (DQNConfig(), None):
        assert "keeps rows on the device" in transfer.requires("pinned", choices, config, CUDA, None)
        assert transfer.requires("pageable", choices, config, CUDA, None) is None
    assert transfer.requires("pinned", choices, PPOConfig(), CUDA, None) is None
