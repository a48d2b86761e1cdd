"""The benchmarks' settings, checks, rows and table; only the last tests need Stable-Baselines3."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # `benchmarks` is no part of the installed package

from benchmarks.rounds import UnequalWork, check_same_work, run_rounds
from benchmarks.run import choose, parse
from benchmarks.sb3_dqn import PeerError, sb3_settings, train_sb3
from benchmarks.sides import Run, our_sides
from benchmarks.table import format_table, make_rows
from benchmarks.workloads import Workload, cartpole, long_workloads, settings, speed_workloads
from rlbench.results import append, load
from rlbench.trainers.schedule import update_points

HAS_PEER = importlib.util.find_spec("stable_baselines3") is not None
needs_peer = pytest.mark.skipif(not HAS_PEER, reason="Stable-Baselines3 is not installed")
SMALL = settings(200, learning_starts=100, hidden=(8,), batch_size=4, train_frequency=2).replace(eval_episodes=2)


def run_of(sps: float, updates: int = 400) -> Run:
    return Run(env_steps=5_000, updates=updates, parameters=10, sps=sps, returns=(1.0, 3.0))


def test_each_workload_is_told_to_the_peer_in_its_own_counts():
    rounds = [
        (s["train_freq"], s["gradient_steps"]) for s in (sb3_settings(w.config) for w in speed_workloads())
    ]  # vector steps between rounds, updates a round
    assert rounds == [(10, 1), (1, 1), (1, 1), (1, 10)]


def test_all_other_settings_agree():
    config = settings(4_000, learning_rate=0.5, gamma=0.25, hidden=(7, 5), batch_size=9, end_e=0.125, seed=11)
    told = sb3_settings(config)
    assert told["policy_kwargs"] == {"net_arch": [7, 5]}
    assert (told["learning_rate"], told["gamma"], told["batch_size"], told["seed"]) == (0.5, 0.25, 9, 11)
    assert (told["exploration_initial_eps"], told["exploration_final_eps"]) == (1.0, 0.125)
    assert (told["exploration_fraction"], told["learning_starts"]) == (0.5, 1_000)
    assert (told["target_update_interval"], told["buffer_size"], told["tau"]) == (500, 10_000, 1.0)
    assert (told["max_grad_norm"], told["n_steps"], told["device"]) == (10.0, 1, "cpu")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"double_dqn": True}, "double_dqn=True"),
        ({"huber": False}, "huber=False"),
        ({"max_grad_norm": 0.0}, "max_grad_norm=0"),
        ({"num_envs": 3, "train_frequency": 10}, "num_envs=3"),
        ({"learning_starts": 1_005}, "learning_starts=1005"),
        ({"total_timesteps": 5_002}, "total_timesteps=5002"),
        ({"num_envs": 10, "target_network_frequency": 505}, "target_network_frequency=505"),
    ],
)
def test_what_the_peer_cannot_follow_is_refused_by_name(changes, named):
    config = settings(5_000, train_frequency=10).replace(**changes)
    with pytest.raises(PeerError, match=named):
        sb3_settings(config)


def test_expected_updates_are_those_of_the_schedule():
    for workload in (*speed_workloads(), *speed_workloads(quick=True), *long_workloads()):
        c = workload.config
        counted = sum(
            len(list(update_points(step, step + c.num_envs, c.learning_starts, c.train_frequency)))
            for step in range(0, c.total_timesteps, c.num_envs)
        )
        assert workload.expected_updates == counted > 20  # or there would be no rate
    assert speed_workloads()[0].expected_updates == 400


def test_unequal_work_is_refused_with_side_and_count():
    workload = speed_workloads()[0]
    check_same_work(workload, {"sb3": run_of(1.0), "plain": run_of(2.0)})
    with pytest.raises(UnequalWork, match=r"plain did updates=399 where 400"):
        check_same_work(workload, {"sb3": run_of(1.0), "plain": run_of(1.0, updates=399)})


def test_rounds_train_every_side_once_and_the_baseline_twice_with_one_seed():
    seen: list[tuple[str, int]] = []

    def side(name: str):
        return lambda workload, seed: seen.append((name, seed)) or run_of(100.0 + seed)

    runs = run_rounds(speed_workloads()[0], {"sb3": side("sb3"), "plain": side("plain")}, rounds=3)
    assert sorted(seen) == sorted([(n, s) for s in range(4) for n in ("sb3", "sb3", "plain")])
    assert [s for _, s in seen] == [s for s in range(4) for _ in range(3)]  # interleaved: one round after another
    assert list(runs) == ["sb3", "plain", "sb3 again"]
    assert all([run.sps for run in of] == [101.0, 102.0, 103.0] for of in runs.values())  # the warm-up is not kept


@pytest.fixture
def rows():
    runs = {"sb3": 6 * [run_of(100.0)], "naive": 6 * [run_of(50.0)], "plain": 6 * [run_of(200.0)]}
    return make_rows(speed_workloads()[0], {**runs, "sb3 again": 6 * [run_of(100.0)]})


def test_ratios_above_and_below_one(rows):
    by_side = {row["side"]: row for row in rows}
    assert by_side["plain"]["ratio"] == pytest.approx(2.0)
    assert by_side["naive"]["ratio"] == pytest.approx(0.5)
    verdicts = {name: row["verdict"] for name, row in by_side.items()}
    assert verdicts == {
        "sb3": "baseline", "naive": "slower", "plain": "faster", "sb3 again": "no difference seen",
    }  # fmt: skip


def test_rows_carry_every_round_and_their_circumstances(rows, tmp_path):
    frame = load(append(tmp_path / "rows.jsonl", rows))
    assert list(frame["side"]) == ["sb3", "naive", "plain", "sb3 again"]
    plain = frame.set_index("side").loc["plain"]
    assert plain["round_sps"] == 6 * [200.0]
    assert plain["round_returns"] == 6 * [2.0]
    assert plain["return_iqm"] == 2.0
    assert (plain["updates"], plain["env_steps"], plain["rounds"]) == (400, 5_000, 6)
    assert plain["config.batch_size"] == 128
    assert plain["choices.replay"] == "ring_numpy"
    assert plain["seeds"] == [1, 2, 3, 4, 5, 6]
    assert {"machine", "threads", "load", "steal", "versions.torch", "commit", "dirty", "command"} <= set(frame)
    json.dumps([dict(row, round_returns=list(row["round_returns"])) for row in rows])  # plain values otherwise


def test_the_table_shows_the_slower_side_like_the_faster(rows):
    text = format_table(rows)
    lines = text.splitlines()
    assert len(lines) == 2 + 4 + 1
    assert "0.50x" in lines[3]
    assert lines[3].endswith("slower")
    assert "2.00x" in lines[4]
    assert lines[4].endswith("faster")
    assert lines[-1] == "fewer than 20 rounds: do not cite"
    assert format_table([{**row, "quick": True} for row in rows]).endswith("quick: do not cite")
    assert "cite" not in format_table([{**row, "rounds": 20} for row in rows])


def test_the_command_line_refuses_what_it_cannot_do(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.run.version", lambda: "2.9.0")
    assert [w.name for w in choose(parse(["--only", "cartpole"]))] == ["CartPole, 1 env", "CartPole, 10 envs"]
    for arguments in (["--quick", "--record"], ["--quick", "--long"], ["--rounds", "0"]):
        with pytest.raises(SystemExit):
            parse(arguments)
    with pytest.raises(SystemExit, match="trading, 10 envs"):
        choose(parse(["--only", "no such"]))
    monkeypatch.setattr("benchmarks.run.version", lambda: None)
    with pytest.raises(SystemExit):
        parse([])
    assert "pip install -r benchmarks/requirements.txt" in capsys.readouterr().err


def test_our_sides_do_the_work_that_was_asked_for():
    workload = Workload("small", cartpole, SMALL)
    runs = {name: side(workload, 1) for name, side in our_sides().items()}
    check_same_work(workload, {"sb3": runs["plain"], **runs})
    assert workload.expected_updates == 50
    assert len(runs["plain"].returns) == 2


@needs_peer
@pytest.mark.parametrize(("envs", "every"), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 4)])
def test_the_peer_does_the_same_work(envs, every):
    workload = Workload("small", cartpole, SMALL.replace(num_envs=envs, train_frequency=every))
    runs = {"sb3": train_sb3(workload, 1), "plain": our_sides()["plain"](workload, 1)}
    check_same_work(workload, runs)
    assert runs["sb3"].sps > 0
    assert len(runs["sb3"].returns) == 2


@needs_peer
def test_a_training_without_a_rate_is_refused():
    with pytest.raises(PeerError, match="no more than 20 updates"):
        train_sb3(Workload("small", cartpole, SMALL.replace(train_frequency=5)), 1)


@needs_peer
def test_the_peer_has_the_same_network_and_optimizer():
    from stable_baselines3 import DQN as PeerDQN
    from torch import nn
    from torch.optim import Adam

    from rlbench import DQN

    config = speed_workloads()[0].config
    peer = PeerDQN("MlpPolicy", cartpole(), **sb3_settings(config))
    mine = DQN(config, None, cartpole)
    layers = [layer for layer in peer.q_net.q_net if not isinstance(layer, nn.Flatten)]
    assert [type(layer) for layer in layers] == [type(layer) for layer in mine.online]
    assert [p.shape for p in peer.q_net.parameters()] == [p.shape for p in mine.online.parameters()]
    optimizer = mine.apply_update.optimizer
    assert type(peer.policy.optimizer) is type(optimizer) is Adam
    for name in ("lr", "betas", "eps", "weight_decay"):
        assert peer.policy.optimizer.param_groups[0][name] == optimizer.param_groups[0][name]
