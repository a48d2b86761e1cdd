"""The questions' measurements: rows are complete, what is absent says so, and nothing leaves a trace."""

import math
import multiprocessing
import os

import pandas as pd
import pytest
import torch

from rlbench import Choices, DQNConfig, PPOConfig, simulate
from rlbench.envs.othello import Othello
from rlbench.experiments import devices, light, phases, switches, trading
from rlbench.experiments.sameness import same_answers
from rlbench.speedups import SPEEDUPS

SMALL = DQNConfig(total_timesteps=120, learning_starts=20, train_frequency=4, hidden=(8,), batch_size=8)


@pytest.mark.parametrize(
    ("wanted", "cores", "threads", "found"),
    [(8, 2.0, 1, 2), (8, 16.0, 4, 4), (2, 16.0, 1, 2), (8, 0.5, 1, 1), (8, 2.0, 4, 1)],
)
def test_workers_times_threads_never_exceed_the_cores(wanted, cores, threads, found):
    assert switches.fitting_workers(wanted, cores, threads) == found


def test_sweep_has_a_row_a_cell_and_says_what_was_not_measured():
    rows = devices.sweep([4, 8], [8], rounds=1, quick=True, progress=False)
    assert [(row["batch_size"], row["hidden"]) for row in rows] == [(4, 8), (8, 8)]
    for row in rows:
        assert row["baseline_us"] > 0
        if not torch.cuda.is_available():
            assert math.isnan(row["ratio"]) and row["not_measured"].endswith("not measured on this machine")


def test_training_steps_are_env_steps_with_an_update_each(monkeypatch):
    made = []
    monkeypatch.setattr(devices, "DQN", lambda *given: made.append(devices_dqn(*given)) or made[-1])
    devices.training_steps(5, batch_size=4, hidden=8, rounds=1, progress=False)
    assert made[0].env_steps == 5 + 4 and made[0].updates == 5


devices_dqn = devices.DQN


def test_threads_are_put_back():
    before = torch.get_num_threads()
    rows = switches.threads((4,), hidden=8, rounds=1, quick=True, progress=False)
    assert torch.get_num_threads() == before
    assert rows[0]["batch_size"] == 4 and rows[0]["against"] == "1 torch thread"


def test_vector_envs_learn_the_same_and_leave_no_process(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    (row,) = switches.vector_envs([2], train_steps=60, rounds=1, quick=True, progress=False)
    assert row["same_weights"] is True and row["return_against"] == row["return_switch"]
    assert multiprocessing.active_children() == []
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_phases_add_up_to_the_whole():
    rows = pd.DataFrame(
        phases.profile(
            SMALL, {"plain": Choices.plain(), "naive": Choices.naive()}, repeats=2, device="cpu", progress=False
        )
    )
    whole = rows.groupby(["name", "repeat"]).agg({"seconds": "sum", "total_s": "first", "share": "sum"})
    assert len(whole) == 4
    assert whole["seconds"].to_numpy() == pytest.approx(whole["total_s"].to_numpy())
    assert whole["share"].to_numpy() == pytest.approx(1.0)
    assert set(rows["phase"]) == set(phases.ORDER)


def test_a_loop_of_many_iterations_in_a_call_is_one_phase():
    fast = Choices.fast()
    named = {"fast": fast, "parts": fast.replace(loop="python")}
    if SPEEDUPS["loop"].requires("native", None, None, torch.device("cpu"), None):
        pytest.skip("no C compiler")
    rows = pd.DataFrame(phases.profile(SMALL, named, repeats=1, device="cpu", progress=False))
    seconds = rows.pivot(index="phase", columns="name", values="seconds")
    assert seconds.loc["iterations", "fast"] > 0 == seconds.loc["iterations", "parts"]
    assert not seconds.loc[list(phases.PARTS), "fast"].any()
    assert (seconds.loc[["env", "action", "store", "sample", "update"], "parts"] > 0).all()


@pytest.mark.parametrize("env", [Othello(4), "CartPole-v1"])
def test_phases_of_ppo_add_up_to_the_whole_on_games_and_other_envs(env):
    config = PPOConfig(total_timesteps=128, num_envs=4, num_steps=16, batch_size=32, hidden=(8,))
    named = {"plain": Choices.plain(), "naive": Choices.naive(), "fast": Choices.fast()}
    rows = pd.DataFrame(phases.profile(config, named, env, repeats=1, device="cpu", progress=False))
    assert list(rows["phase"].unique()) == list(phases.PPO_ORDER)
    assert rows.groupby("name")["seconds"].sum().to_numpy() == pytest.approx(rows.groupby("name")["total_s"].first())
    seconds = rows.pivot(index="phase", columns="name", values="seconds")
    assert (seconds.loc[["env", "action", "store", "advantages", "sync"]] > 0).all(axis=None)
    assert (seconds.loc[["sample", "forward", "backward", "optimizer"], ["plain", "naive"]] > 0).all(axis=None)


def test_every_replay_gives_the_same_answer_and_a_broken_one_does_not():
    slot = SPEEDUPS["replay"]
    rows = same_answers(slot, [1, 3], [0], "cpu")
    assert len(rows) == 2 * len(slot.variants) and all(row["same"] for row in rows)
    answers = iter([torch.zeros(1), torch.ones(1), torch.zeros(1), torch.zeros(1)])
    broken = type(slot)(**{**slot.__dict__, "bind": lambda variant, inputs: lambda: next(answers)})
    assert [row["same"] for row in same_answers(broken, [1], [0], "cpu")] == [True, False, True, True]


def test_the_checkpoint_that_validation_likes_best_comes_back():
    market = simulate.ornstein_uhlenbeck(400, seed=3)
    (run,) = trading.train(market, SMALL.replace(total_timesteps=200), [1], checkpoints=4, progress=False)
    assert [point["env_step"] for point in run.curve] == [50, 100, 150, 200]
    assert run.best_value == max(point["value"] for point in run.curve)
    again = trading.play(run.agent, market.split().validation)
    assert math.log(again["equity"].iloc[-1]) == pytest.approx(run.best_value, abs=1e-12)
    assert list(trading.curves([run], "x").columns) == ["name", "seed", "env_step", "value"]


def test_holding_is_the_price_ratio_less_one_fee():
    part = simulate.ornstein_uhlenbeck(100, seed=1).split().test
    history = trading.hold(part, {"fee": 0.0})
    assert history["equity"].iloc[-1] == pytest.approx(part.close[-1] / part.close[0])
    assert list(history["time"]) == list(part.time)


def test_yearly_advantage_of_a_constant_lead():
    frame = pd.DataFrame({"equity": [math.exp(0.01 * t) for t in range(30)]})
    flat = pd.DataFrame({"equity": [1.0] * 30})
    assert trading.yearly_advantage(frame, flat, 250.0) == pytest.approx((2.5, 2.5, 2.5))


def test_operations_of_an_update_by_hand():
    """3-5-2, one row: forward 2·15 + 2·10 = 50; weights 50, inputs of the second layer 20. Three forward passes or two."""
    assert light.update_flops((3, 5, 2), 1) == 3 * 50 + 50 + 20
    assert light.update_flops((3, 5, 2), 7, double_dqn=False) == 7 * (2 * 50 + 50 + 20)
    assert light.update_flops((3, 2), 1) == 3 * 12 + 12
    assert torch.equal(light.square_product(8)(), light.square_product(8)())
    assert light.matmul_peak(sizes=(64, 48), repeats=1) > 0
