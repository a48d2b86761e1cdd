"""The benchmarks of whole PPO: settings, checks, operations, rows and tables; no test depends on a time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` is no part of the installed package

from benchmarks import ppo_run, sb3_ppo
from benchmarks.rounds import UnequalWork
from benchmarks.sb3_dqn import PeerError
from benchmarks.sb3_games import by_square, make_model, peer_counts, returns_of, sb3_settings, train_sb3, vector_env
from benchmarks.trainings import (
    Training,
    check_work,
    expected_updates,
    in_rounds,
    mean_actions,
    numbers_of,
    ours,
    settings,
)
from rlbench.actions import pack
from rlbench.envs.othello import Othello, features, legal_actions, start
from rlbench.results import append, load
from rlbench.speedups import Choices

needs_peer = pytest.mark.skipif(importlib.util.find_spec("sb3_contrib") is None, reason="sb3-contrib is not installed")
GAME = Othello(8, opponent="random")
SMALL = settings(2, num_envs=4, num_steps=8, batch_size=16, update_epochs=2, hidden=(8, 8), eval_opponent="random")


@pytest.fixture(autouse=True)
def _no_sweeps(monkeypatch):
    """Between trainings the garbage collector goes through all of a process; here that is the whole test run."""
    monkeypatch.setattr("benchmarks.trainings.gc.collect", lambda: 0)


def test_a_training_is_told_in_rollouts():
    assert (SMALL.total_timesteps, SMALL.log_frequency) == (64, 32)
    assert (SMALL.anneal_lr, SMALL.eval_episodes, SMALL.eval_frequency) == (False, 0, 0)
    assert expected_updates(SMALL) == 2 * 2 * 2
    assert expected_updates(SMALL.replace(batch_size=12)) == 2 * 2 * 3
    with pytest.raises(ValueError, match="two rollouts"):
        ours(Choices.plain(), GAME)(settings(1, num_envs=4, num_steps=8), 1)


def test_our_sides_do_the_work_that_was_asked_for():
    for choices in (Choices.naive(), Choices.plain(), Choices.fast()):
        training = ours(choices, GAME, games=2)(SMALL, 3)
        check_work("small", "ours", SMALL, training)
        assert training.sps > 0
        assert len(training.returns) == 2
    with pytest.raises(UnequalWork, match="small: ours did updates=8 where 16"):
        check_work("small", "ours", SMALL.replace(update_epochs=4), training)


def test_rounds_train_each_side_once_and_one_of_them_twice():
    seen: list[int] = []

    def side(config, seed):
        seen.append(seed)
        return Training(64, 8, 100.0 + seed, (1.0, 0.0))

    kept = in_rounds("small", SMALL, {"a": side, "b": side}, "a", 3)
    assert sorted(seen) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert list(kept) == ["a", "b", "a, again"]
    assert all([training.sps for training in found] == [101.0, 102.0, 103.0] for found in kept.values())
    row = numbers_of(kept["a"])
    assert (row["median_sps"], row["rounds"], row["updates"], row["return_iqm"]) == (102.0, 3, 8, 0.5)


def test_actions_of_random_play_are_counted():
    """From the start position there are four; on 4x4 never more than the twelve squares that are free then."""
    assert mean_actions(Othello(8), games=3, steps=1) == 4.0
    assert 1.0 <= mean_actions(Othello(4), games=3, steps=20) <= 12.0


def test_legal_ids_by_square():
    """First moves: row 2 column 3 turns (3, 3), row 3 column 2 turns (3, 3), and so on; then a state that can only pass."""
    obs, legal = features(start(2)), legal_actions(start(1))
    found = by_square(obs, pack([legal.ids, [0]]))
    assert np.flatnonzero(found.mask[0]).tolist() == [19, 26, 37, 44]
    expected = {19: 27, 26: 27, 37: 36, 44: 36}
    assert {s: int(found.ids[0, s]) for s in expected} == {s: 1 << s | 1 << d for s, d in expected.items()}
    assert np.flatnonzero(found.mask[1]).tolist() == [64]
    assert not found.ids[1].any()
    corner = torch.zeros(1, 128)
    corner[0, 61], corner[0, 64 + 62] = 1.0, 1.0  # a disc of mine, one of theirs, and the last square free
    found = by_square(corner, pack([[1 << 63 | 1 << 62]]))
    assert np.flatnonzero(found.mask[0]).tolist() == [63]
    assert int(found.ids[0, 63]) == -(1 << 62)  # bits 63 and 62, as int64


def test_settings_that_both_can_follow():
    config = SMALL.replace(
        clip_coef=0.3, ent_coef=0.02, vf_coef=0.5, gamma=0.9, gae_lambda=0.8, learning_rate=0.01, seed=7
    )
    told = sb3_settings(config)
    assert (told["n_steps"], told["batch_size"], told["n_epochs"], told["seed"]) == (8, 16, 2, 7)
    assert (told["clip_range"], told["ent_coef"], told["vf_coef"]) == (0.3, 0.02, 0.25)
    assert (told["gamma"], told["gae_lambda"], told["learning_rate"], told["max_grad_norm"]) == (0.9, 0.8, 0.01, 0.5)
    assert told["policy_kwargs"]["net_arch"] == {"pi": [8, 8], "vf": [8, 8]}
    for changes in ({"anneal_lr": True}, {"target_kl": 0.1}, {"batch_size": 24}, {"clip_vloss": True}):
        with pytest.raises(PeerError, match=next(iter(changes))):
            sb3_settings(config.replace(**changes))


@needs_peer
def test_the_peers_vector_env_plays_our_games():
    envs, direct = vector_env(GAME, 5, 3), GAME.batched(5, 3)
    obs, (expected, legal) = envs.reset(), direct.reset()
    assert envs.has_attr("action_masks") and not envs.has_attr("no_such_thing")
    ended = 0
    for step in range(70):
        np.testing.assert_array_equal(obs, expected.numpy())
        masks = np.stack(envs.env_method("action_masks"))
        assert masks.sum(1).tolist() == legal.counts.tolist()
        actions = np.array([np.flatnonzero(mask)[step % mask.sum()] for mask in masks])
        place = step % legal.counts  # squares and ids come in one order
        taken = direct.step(legal.ids[legal.offsets[:-1] + place])
        obs, reward, done, infos = envs.step(actions)
        expected, legal = taken.obs, taken.legal
        assert reward.tolist() == taken.reward.tolist() and done.tolist() == taken.terminated.tolist()
        for i in np.flatnonzero(done):
            np.testing.assert_array_equal(infos[i]["terminal_observation"], taken.next_obs[i].numpy())
            assert infos[i]["episode"]["r"] == reward[i]
            assert 20 <= infos[i]["episode"]["l"] <= 40
        ended += done.sum()
    assert ended >= 5


@needs_peer
def test_the_peer_does_the_same_work():
    training = train_sb3(GAME, SMALL, 2, games=4)
    check_work("small", "sb3", SMALL, training)
    assert training.sps > 0
    assert len(training.returns) == 4
    with pytest.raises(PeerError, match="two rollouts"):
        train_sb3(GAME, settings(1, num_envs=4, num_steps=8, batch_size=16), 1)


@needs_peer
def test_the_peers_network_and_optimizer_are_as_told():
    """Two towers 128-8-8 and heads of 65 and 1."""
    model = make_model(GAME, SMALL)
    counts = peer_counts(model)
    tower = 128 * 8 + 8 * 8
    assert counts["parameters"] == 2 * (tower + 16) + (8 * 65 + 65) + (8 + 1)
    assert counts["parameters"] == sum(p.numel() for p in model.policy.parameters())
    assert counts["forward_flops"] == 2 * (2 * tower + 8 * 65 + 8)
    assert counts["sample_update_flops"] == 3 * counts["forward_flops"] - 2 * (2 * 128 * 8)
    group = model.policy.optimizer.param_groups[0]
    assert (type(model.policy.optimizer), group["eps"], group["lr"]) == (torch.optim.Adam, 1e-8, SMALL.learning_rate)
    assert len(returns_of(model, GAME, SMALL, 3)) == 4  # every opening twice


@needs_peer
def test_rows_beside_the_peer(tmp_path):
    job = sb3_ppo.Job("small", SMALL, 2)
    rows = sb3_ppo.measure(job, 5, True, lambda note: None)
    assert [row["side"] for row in rows] == ["sb3", "plain", "fast", "sb3, again"]
    peer, plain, fast, again = rows
    ratios = np.divide(fast["round_sps"], peer["round_sps"])
    assert fast["ratio"] == pytest.approx(float(np.exp(np.median(np.log(ratios)))))
    assert (fast["target"], plain["target"], fast["met"]) == (5.0, None, fast["ratio"] >= 5.0)
    assert plain["flops_a_sample"] == fast["flops_a_sample"] != peer["flops_a_sample"] == again["flops_a_sample"]
    state, joint, action = 2 * (128 * 8 + 8 * 8), 2 * 8 * 8, round(2 * 8 * 65 * sb3_ppo.actions())
    forward = state + joint + 2 * 8
    assert fast["forward_flops"] == forward + action
    assert fast["sample_update_flops"] == 3 * forward - 2 * 128 * 8 + 3 * action
    assert (peer["choices"], plain["choices"]["evaluate"]) == (None, "padded")
    assert sb3_ppo.format_rows(rows).endswith("quick: do not cite")
    assert len(load(append(tmp_path / "rows.jsonl", rows))) == 4


def test_the_sources_before_and_after():
    before, after, lean = (ppo_run.choices_of(side).to_dict() for side in ("naive", "after", "after, all else plain"))
    changed = {slot: after[slot] for slot in after if after[slot] != before[slot]}
    assert changed == {
        "action_encoding": "shift", "evaluate": "same_count_or_loop", "old_log_probs": "recompute_grouped",
    }  # fmt: skip
    assert {slot: lean[slot] for slot in changed} == changed
    assert (after["games"], after["minibatch"], after["gae"]) == ("one_by_one", "stack_samples", "loop")
    assert (lean["games"], lean["minibatch"], lean["gae"]) == ("batched", "index_views", "rows")
    assert ppo_run.choices_of("fast, again") == Choices.fast()
    targets = {job.name: job.targets for job in ppo_run.jobs()}
    assert targets == {
        "hidden 64": {"naive": 20.0}, "hidden 128": {"after": 2.0, "after, all else plain": 2.0}, "hidden 512": {},
    }  # fmt: skip


def test_rows_of_whole_trainings(monkeypatch, tmp_path):
    monkeypatch.setattr(ppo_run.Job, "config", SMALL)
    job = ppo_run.Job(8, ("fast", "plain", "after"), {"after": 1e9})
    rows = ppo_run.measure(job, 5, True, lambda note: None)
    fast, plain, after, again = rows
    assert [row["side"] for row in rows] == ["fast", "plain", "after", "fast, again"]
    assert after["ratio"] == pytest.approx(
        float(np.exp(np.median(np.log(np.divide(fast["round_sps"], after["round_sps"])))))
    )
    assert (after["met"], plain["met"], fast["ratio"], again["target"]) == (False, None, None, None)
    assert after["choices"]["evaluate"] == "same_count_or_loop"
    assert again["choices"] == fast["choices"]
    assert ppo_run.format_rows(rows).endswith("quick: do not cite")
    assert len(load(append(tmp_path / "rows.jsonl", rows))) == 4


def test_the_command_line_refuses_what_it_cannot_do(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.command.version", lambda package: None)
    for arguments in (["--quick", "--long"], []):
        with pytest.raises(SystemExit):
            sb3_ppo.main(arguments)
    assert "sb3-contrib not installed here" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        ppo_run.parse(["--quick", "--record"])
