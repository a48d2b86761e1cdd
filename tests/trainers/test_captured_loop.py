"""The fused loop's handling of memory under capture, with a stand-in for CUDA's graphs."""

import numpy as np
import pytest
import torch

from rlbench import DQN, Choices, DQNConfig, simulate
from rlbench.envs.trading import TradingEnv
from rlbench.notices import say_once
from rlbench.trainers import fused_loop

SMALL = DQNConfig(
    total_timesteps=200,
    learning_starts=30,
    train_frequency=4,
    batch_size=8,
    buffer_size=100,
    hidden=(8,),
    target_network_frequency=25,
    eval_episodes=0,
    log_frequency=50,
)
MARKET = simulate.ornstein_uhlenbeck(400, seed=4)
PYTHON = Choices(loop="python", replay="ring_torch")


def trading():
    return TradingEnv(MARKET, episode_length=20)


@pytest.fixture(autouse=True)
def nothing_generated(monkeypatch):
    """Compiled functions are traced and guarded as ever, but PyTorch runs what was traced."""
    monkeypatch.setattr("rlbench.compile.BACKEND", "eager")
    monkeypatch.setattr(fused_loop, "_kept", {})


class Recorded(fused_loop.Graph):
    """A graph's handling of memory without CUDA: capturing changes nothing, and a replay runs the function again."""

    def capture(self, function, writes):
        fused_loop.warm_up(function, self.carry, self.orders, writes)

        def replay():
            after, self.seen = function(self.carry, self.orders)
            fused_loop._copy(self.carry, after)

        return replay


@pytest.mark.parametrize(
    "changes",
    [
        {"buffer_size": 20},  # full when the graph is captured, so that what lies behind the head is drawn
        {"buffer_size": 20, "n_step": 3, "num_envs": 4, "train_frequency": 4},
        {"buffer_size": 3, "num_envs": 4, "train_frequency": 2},
        {"buffer_size": 1000, "tau": 0.3, "learning_starts": 0, "gradient_steps": 2},
        {"n_step": 2, "train_frequency": 4, "anneal_lr": True},
    ],
)
def test_a_captured_loop_does_what_python_does(changes, monkeypatch):
    monkeypatch.setattr(fused_loop, "Graph", Recorded)
    config = SMALL.replace(**{"train_frequency": 1, "target_network_frequency": 7, **changes})
    plain, fused = DQN(config, PYTHON, trading), DQN(config, Choices(loop="fused"), trading)
    fused.loop.calls = 4
    one, other = (trainer.train(progress=False) for trainer in (plain, fused))
    assert fused.loop.graph is not None and fused.recompiles == 0
    torch.testing.assert_close(fused.replay.rows, plain.replay.rows, rtol=1e-6, atol=1e-6)
    for name, weight in one.weights.items():
        torch.testing.assert_close(other.weights[name], weight, rtol=1e-3, atol=1e-4)
    assert (one.updates, one.target_syncs) == (other.updates, other.target_syncs)
    columns = ["env_step", "updates", "loss", "q"]
    np.testing.assert_allclose(one.to_frame()[columns], other.to_frame()[columns], rtol=1e-3, atol=1e-5)
    assert [row[0] for row in one.episode_rows] == [row[0] for row in other.episode_rows]


class Broken(fused_loop.Graph):
    """A graph that this driver does not capture."""

    def capture(self, function, writes):
        raise RuntimeError("operation not permitted when stream is capturing")


def test_a_capture_that_fails_leaves_compiled_calls_and_one_line(monkeypatch, capsys):
    monkeypatch.setattr(fused_loop, "Graph", Broken)
    say_once.cache_clear()
    config = SMALL.replace(train_frequency=1)
    plain, fused = DQN(config, PYTHON, trading), DQN(config, Choices(loop="fused"), trading)
    fused.loop.calls = 4
    one, other = (trainer.train(progress=False) for trainer in (plain, fused))
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and "could not be captured in a graph (operation not permitted" in said[0]
    assert one.updates == other.updates and fused.loop.calls == 1
    torch.testing.assert_close(fused.replay.rows, plain.replay.rows, rtol=1e-6, atol=1e-6)
    for name, weight in one.weights.items():
        torch.testing.assert_close(other.weights[name], weight, rtol=1e-3, atol=1e-4)
