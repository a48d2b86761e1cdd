"""The benchmarks against Stable-Baselines3: settings, checks, rows and table; only the last tests need a peer."""

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
from benchmarks.workloads import (
    Workload,
    cartpole,
    gym_trading,
    long_workloads,
    settings,
    speed_workloads,
    trading,
)
from rlbench.results import append, load
from rlbench.trainers.schedule import update_points

HAS_PEER = importlib.util.find_spec("stable_baselines3") is not None
needs_peer = pytest.mark.skipif(not HAS_PEER, reason="Stable-Baselines3 is not installed")
SMALL = settings(200, learning_starts=100, hidden=(8,), batch_size=4, train_frequency=2).replace(eval_episodes=2)


def run_of(sps: float, updates: int = 600) -> Run:
    return Run(env_steps=7_000, updates=updates, parameters=10, sps=sps, returns=(1.0, 3.0))


def test_each_workload_is_told_to_the_peer_in_its_own_counts():
    rounds = [
        (s["train_freq"], s["gradient_steps"]) for s in (sb3_settings(w.config) for w in speed_workloads())
    ]  # vector steps between rounds, updates a round
    assert rounds == [(10, 1), (1, 1), (1, 1), (1, 10), (1, 1)]


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
    assert speed_workloads()[0].expected_updates == 600
    assert [w.expected_updates for w in speed_workloads()[2:]] == 3 * [1_500]  # one every env step after 1,000


def test_unequal_work_is_refused_with_side_and_count():
    workload = speed_workloads()[0]
    check_same_work(workload, {"sb3": run_of(1.0), "plain": run_of(2.0)})
    with pytest.raises(UnequalWork, match=r"plain did updates=599 where 600"):
        check_same_work(workload, {"sb3": run_of(1.0), "plain": run_of(1.0, updates=599)})


def test_rounds_train_every_side_once_and_the_baselines_twice_with_one_seed():
    seen: list[tuple[str, int]] = []

    def side(name: str):
        return lambda workload, seed: seen.append((name, seed)) or run_of(100.0 + seed)

    runs = run_rounds(speed_workloads()[0], {n: side(n) for n in ("sb3", "plain", "fast")}, rounds=3)
    assert sorted(seen) == sorted([(n, s) for s in range(4) for n in ("sb3", "sb3", "plain", "plain", "fast")])
    assert [s for _, s in seen] == [s for s in range(4) for _ in range(5)]  # interleaved: one round after another
    assert list(runs) == ["sb3", "plain", "fast", "sb3 again", "plain again"]
    assert all([run.sps for run in of] == [101.0, 102.0, 103.0] for of in runs.values())  # the warm-up is not kept


@pytest.fixture
def rows():
    rates = {"sb3": 100.0, "naive": 50.0, "plain": 200.0, "fast": 900.0, "sb3 again": 100.0, "plain again": 200.0}
    return make_rows(speed_workloads()[0], {name: 6 * [run_of(sps)] for name, sps in rates.items()})


def test_ratios_above_and_below_one(rows):
    by_side = {row["side"]: row for row in rows}
    assert by_side["plain"]["ratio"] == pytest.approx(2.0)
    assert by_side["naive"]["ratio"] == pytest.approx(0.5)
    verdicts = {name: row["verdict"] for name, row in by_side.items()}
    assert verdicts == {
        "sb3": "baseline", "naive": "slower", "plain": "faster", "fast": "faster", "sb3 again": "no difference seen",
        "plain again": "faster",
    }  # fmt: skip


def test_ratios_to_plain_stand_beside_those_to_the_peer(rows):
    by_side = {row["side"]: row for row in rows}
    assert (by_side["fast"]["ratio"], by_side["fast"]["plain_ratio"]) == pytest.approx((9.0, 4.5))
    assert by_side["naive"]["plain_ratio"] == pytest.approx(0.25)
    assert by_side["plain"]["plain_ratio"] is None
    assert by_side["plain"]["plain_verdict"] == "baseline"
    assert by_side["plain again"]["plain_verdict"] == "no difference seen"


def test_without_plain_there_is_no_ratio_to_it():
    runs = {name: 6 * [run_of(100.0)] for name in ("sb3", "fast", "sb3 again")}
    assert make_rows(speed_workloads()[0], runs)[1]["plain_ratio"] is None


def test_rows_carry_every_round_and_their_circumstances(rows, tmp_path):
    frame = load(append(tmp_path / "rows.jsonl", rows))
    assert list(frame["side"]) == ["sb3", "naive", "plain", "fast", "sb3 again", "plain again"]
    plain = frame.set_index("side").loc["plain"]
    assert plain["round_sps"] == 6 * [200.0]
    assert plain["round_returns"] == 6 * [2.0]
    assert plain["return_iqm"] == 2.0
    assert (plain["updates"], plain["env_steps"], plain["rounds"]) == (600, 7_000, 6)
    assert plain["config.batch_size"] == 128
    assert plain["choices.replay"] == "ring_numpy"
    assert frame.set_index("side").loc["fast", "choices.loop"] in ("native", "python")  # python without a compiler
    assert plain["seeds"] == [1, 2, 3, 4, 5, 6]
    assert {"machine", "threads", "load", "steal", "versions.torch", "commit", "dirty", "command"} <= set(frame)
    json.dumps([dict(row, round_returns=list(row["round_returns"])) for row in rows])  # plain values otherwise


def test_the_table_shows_the_slower_side_like_the_faster(rows):
    text = format_table(rows)
    lines = text.splitlines()
    assert len(lines) == 2 + 6 + 1
    assert "0.500x" in lines[3]
    assert lines[3].endswith("slower")
    assert "2.00x" in lines[4]
    assert lines[4].endswith("faster")
    assert "9.00x" in lines[5]
    assert "4.50x" in lines[5]
    assert lines[-1] == "fewer than 20 rounds: do not cite"
    assert format_table([{**row, "quick": True} for row in rows]).endswith("quick: do not cite")
    assert "cite" not in format_table([{**row, "rounds": 20} for row in rows])


def test_the_command_line_refuses_what_it_cannot_do(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.command.version", lambda package: "2.9.0")
    assert [w.name for w in choose(parse(["--only", "cartpole"]))] == ["CartPole, 1 env", "CartPole, 10 envs"]
    assert [parse(a).rounds for a in ([], ["--quick"], ["--long"], ["--rounds", "3"])] == [20, 5, 10, 3]
    for arguments in (["--quick", "--record"], ["--quick", "--long"], ["--rounds", "0"]):
        with pytest.raises(SystemExit):
            parse(arguments)
    with pytest.raises(SystemExit, match="trading, 10 envs"):
        choose(parse(["--only", "no such"]))
    monkeypatch.setattr("benchmarks.command.version", lambda package: None)
    with pytest.raises(SystemExit):
        parse([])
    assert "pip install -r benchmarks/requirements.txt" in capsys.readouterr().err


def test_a_workload_whose_peer_is_missing_is_left_out_with_a_word(monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.command.version", lambda package: None if package == "gym-trading-env" else "1")
    chosen = choose(parse(["--only", "trading"]))
    assert [w.name for w in chosen] == ["trading, 1 env", "trading, 10 envs"]
    assert "Gym-Trading-Env: left out" in capsys.readouterr().err


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
@pytest.mark.skipif(importlib.util.find_spec("gym_trading_env") is None, reason="Gym-Trading-Env is not installed")
def test_the_peer_does_the_same_work_on_its_own_env():
    small = settings(200, learning_starts=100, hidden=(8,), batch_size=4, train_frequency=1).replace(eval_episodes=2)
    workload = Workload("small", trading, small, peer_env=gym_trading, naive=False)
    runs = {"sb3": train_sb3(workload, 1), "plain": our_sides()["plain"](workload, 1)}
    check_same_work(workload, runs)  # parameters, too: observations are of one size
    assert runs["sb3"].parameters == (12 + 1) * 8 + (8 + 1) * 3


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
