"""Every loop does what the Python loop does: the same steps, the same replay, the same weights but for rounding."""

import numpy as np
import pytest
import torch

from rlbench import DQN, Choices, DQNConfig, simulate
from rlbench.envs.trading import TradingEnv
from rlbench.speedups import SPEEDUPS, ChoiceError
from rlbench.speedups.loop import NoLog

SMALL = DQNConfig(
    total_timesteps=10_000,
    learning_starts=30,
    train_frequency=4,
    batch_size=8,
    buffer_size=200,
    hidden=(16, 16),
    exploration_fraction=0.02,
    end_e=0.3,
    target_network_frequency=25,
    eval_episodes=0,
)
MARKET = simulate.ornstein_uhlenbeck(400, seed=4)


def trading():
    return TradingEnv(MARKET, episode_length=20)


def windows():
    return TradingEnv(MARKET, episode_length=20, window=3)


class Episodes(NoLog):
    """A log that notes the episodes, and lets a loop go on for at most `at_once` env steps."""

    def __init__(self, trainer, at_once):
        self.trainer, self.at_once, self.seen = trainer, at_once, []

    def room(self):
        return self.at_once

    def episodes(self, finished):
        self.seen += [(self.trainer.env_steps, *episode) for episode in finished]

    def episodes_at(self, finished):
        self.seen += finished


def after(config, choices, env, steps, at_once=10**9):
    """A trainer that has gone `steps` env steps, and the episodes it saw."""
    trainer = DQN(config, choices, env)
    log = Episodes(trainer, 1)
    while trainer.env_steps < steps:
        log.at_once = min(at_once, steps - trainer.env_steps)
        trainer.loop.advance(log)
    return trainer, log.seen


PYTHON = Choices(loop="python", replay="ring_torch")


CONFIGS = [
    {},
    {"num_envs": 3, "n_step": 3, "train_frequency": 2},
    {"num_envs": 5, "train_frequency": 3, "gradient_steps": 2, "tau": 0.3, "anneal_lr": True, "huber": True},
    {"num_envs": 2, "double_dqn": False, "buffer_size": 33, "learning_starts": 0, "hidden": (5,)},
    {"n_step": 2, "buffer_size": 7, "target_network_frequency": 3, "max_grad_norm": 0.0, "hidden": ()},
]


@pytest.fixture
def nothing_generated(monkeypatch):
    """Compiled functions are traced and guarded as ever, but PyTorch runs what was traced."""
    monkeypatch.setattr("rlbench.compile.BACKEND", "eager")
    monkeypatch.setattr("rlbench.trainers.fused_loop._kept", {})


def same_episodes(found, expected):
    """Returns may differ in the last bits: torch's logarithm is not the C library's."""
    assert [(step, length) for step, _, length in found] == [(step, length) for step, _, length in expected]
    np.testing.assert_allclose([e[1] for e in found], [e[1] for e in expected], rtol=1e-12, atol=1e-14)


def does_what_python_does(loop, changes, env, steps=300):
    """Train with both loops and compare everything that is left behind."""
    config = SMALL.replace(**changes)
    (plain, expected), (fast, found) = (after(config, c, env, steps) for c in (PYTHON, Choices(loop=loop)))
    same_episodes(found, expected)
    assert len(found) > 3
    for counter in ("iterations", "env_steps", "updates"):
        assert getattr(fast, counter) == getattr(plain, counter)
    assert fast.target_sync.count == plain.target_sync.count
    assert (fast.replay.head, fast.replay.size) == (plain.replay.head, plain.replay.size)
    torch.testing.assert_close(fast.replay.rows, plain.replay.rows, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(fast.last_target, plain.last_target, rtol=1e-3, atol=1e-4)
    assert fast.losses.mean() == pytest.approx(plain.losses.mean(), rel=1e-3)
    for networks in ((fast.online, plain.online), (fast.target, plain.target)):
        for one, other in zip(*(network.parameters() for network in networks), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    return fast


@pytest.mark.parametrize("env", ["CartPole-v1", trading], ids=["cart_pole", "trading"])
@pytest.mark.parametrize("changes", CONFIGS)
@pytest.mark.parametrize("loop", ["native", "tensors"])
def test_a_loop_does_what_python_does(loop, changes, env):
    does_what_python_does(loop, changes, env)


@pytest.mark.parametrize("network", ["dueling", "conv"])
def test_tensors_take_any_network(network):
    does_what_python_does("tensors", {"network": network}, windows)


@pytest.mark.parametrize("changes", CONFIGS[:3])
def test_fused_does_what_python_does(changes, nothing_generated):
    fast = does_what_python_does("fused", changes, trading)
    assert fast.loop.compiled.compilations == 1 and fast.recompiles == 0


@pytest.mark.slow
def test_fused_compiles_once_for_trainings_that_differ_in_the_seed_alone():
    first, second = (does_what_python_does("fused", {"train_frequency": 1, "seed": s}, trading) for s in (1, 2))
    assert first.loop.build_s > 0 == second.loop.build_s and first.recompiles == second.recompiles == 0


def test_what_cannot_be_unrolled_is_refused():
    config = SMALL.replace(num_envs=13, train_frequency=17)
    with pytest.raises(ChoiceError, match=r"num_envs=13, train_frequency=17 .* more than 24 collections and updates"):
        DQN(config, Choices(loop="fused"), "CartPole-v1")


@pytest.mark.parametrize("loop", ["native", "tensors"])
def test_pieces_of_any_size_give_the_same_run(loop):
    whole, pieces = (after(SMALL, Choices(loop=loop), trading, 400, size)[0] for size in (10**9, 7))
    assert torch.equal(whole.replay.rows, pieces.replay.rows)
    assert all(torch.equal(a, b) for a, b in zip(whole.online.parameters(), pieces.online.parameters(), strict=True))


@pytest.mark.parametrize("loop", ["native", "tensors"])
def test_weights_that_are_loaded_take_effect(loop):
    trainer, _ = after(SMALL, Choices(loop=loop), trading, 100)
    loaded = {name: torch.zeros_like(weight) for name, weight in trainer.online.state_dict().items()}
    trainer.online.load_state_dict(loaded)
    trainer.target.load_state_dict(loaded)
    trainer.loop.advance(NoLog(4))  # one update: of Adam, whose steps are about the learning rate
    assert all(weight.abs().max() < 0.01 for weight in trainer.online.parameters())


@pytest.mark.parametrize("loop", ["native", "tensors"])
def test_a_whole_training_has_the_rows_of_the_python_loop(loop):
    config = SMALL.replace(total_timesteps=900, log_frequency=200, eval_frequency=450, eval_episodes=2)
    plain, fast = (DQN(config, c, "CartPole-v1").train(progress=False) for c in (PYTHON, Choices(loop=loop)))
    for frame in ("to_frame", "evaluations", "episodes"):
        one, other = (getattr(h, frame) for h in (plain, fast))
        one, other = (frame() if callable(frame) else frame for frame in (one, other))
        assert one.env_step.tolist() == other.env_step.tolist() and len(one) > 1
    assert plain.to_frame().updates.tolist() == fast.to_frame().updates.tolist()
    assert fast.choices == {"loop": loop}


@pytest.mark.parametrize("loop", ["native", "tensors"])
def test_train_goes_on_after_a_stop(loop):
    config = SMALL.replace(total_timesteps=600, log_frequency=100)
    trainer = DQN(config, Choices(loop=loop), trading)
    first = trainer.train(progress=False, on_log=lambda row: trainer.stop() if row["step"] >= 300 else None)
    assert first.interrupted and first.env_steps == 300
    second = trainer.train(progress=False)
    whole = DQN(config, Choices(loop=loop), trading).train(progress=False)
    assert second.weights_sha256 == whole.weights_sha256 and np.isfinite(second.to_frame().loss).all()


@pytest.mark.parametrize(
    ("changes", "choices", "message"),
    [
        ({"network": "dueling"}, {}, "no network='dueling'"),
        ({"prioritized_replay_alpha": 0.5}, {}, "prioritised replay"),
        ({}, {"replay": "deque"}, "loop='native' does this in its own way; leave this slot out"),
    ],
)
def test_what_it_cannot_do_is_refused(changes, choices, message):
    with pytest.raises(ChoiceError, match=message):
        DQN(SMALL.replace(**changes), Choices(loop="native", **choices), "CartPole-v1")


def test_an_env_without_a_counterpart_is_refused_and_fast_steps_back(capsys):
    with pytest.raises(ChoiceError, match="Acrobot-v1 has no batched counterpart"):
        DQN(SMALL, Choices(loop="native"), "Acrobot-v1")
    assert "loop" in SPEEDUPS and DQN(SMALL, Choices.fast(), "Acrobot-v1").choices.loop == "python"
