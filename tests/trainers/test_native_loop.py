"""The native loop does what the Python loop does: the same steps, the same replay, the same weights but for rounding."""

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


@pytest.mark.parametrize("env", ["CartPole-v1", trading], ids=["cart_pole", "trading"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_envs": 3, "n_step": 3, "train_frequency": 2},
        {"num_envs": 5, "train_frequency": 3, "gradient_steps": 2, "tau": 0.3, "anneal_lr": True, "huber": True},
        {"num_envs": 2, "double_dqn": False, "buffer_size": 33, "learning_starts": 0, "hidden": (5,)},
        {"n_step": 2, "buffer_size": 7, "target_network_frequency": 3, "max_grad_norm": 0.0, "hidden": ()},
    ],
)
def test_native_does_what_python_does(env, changes):
    config = SMALL.replace(**changes)
    (plain, expected), (fast, found) = (after(config, c, env, 300) for c in (PYTHON, Choices(loop="native")))
    assert found == expected and len(found) > 3
    for counter in ("iterations", "env_steps", "updates", "target_syncs"):
        assert getattr(fast, counter) == getattr(plain, counter)
    assert (fast.replay.head, fast.replay.size) == (plain.replay.head, plain.replay.size)
    torch.testing.assert_close(fast.replay.rows, plain.replay.rows, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(fast.last_target, plain.last_target, rtol=1e-3, atol=1e-4)
    assert fast.losses.mean() == pytest.approx(plain.losses.mean(), rel=1e-3)
    for networks in ((fast.online, plain.online), (fast.target, plain.target)):
        for one, other in zip(*(network.parameters() for network in networks), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_pieces_of_any_size_give_the_same_run():
    whole, pieces = (after(SMALL, Choices(loop="native"), trading, 400, size)[0] for size in (10**9, 7))
    assert torch.equal(whole.replay.rows, pieces.replay.rows)
    assert all(torch.equal(a, b) for a, b in zip(whole.online.parameters(), pieces.online.parameters(), strict=True))


def test_a_whole_training_has_the_rows_of_the_python_loop():
    config = SMALL.replace(total_timesteps=900, log_frequency=200, eval_frequency=450, eval_episodes=2)
    plain, fast = (DQN(config, c, "CartPole-v1").train(progress=False) for c in (PYTHON, Choices(loop="native")))
    for frame in ("to_frame", "evaluations", "episodes"):
        one, other = (getattr(h, frame) for h in (plain, fast))
        one, other = (frame() if callable(frame) else frame for frame in (one, other))
        assert one.env_step.tolist() == other.env_step.tolist() and len(one) > 1
    assert plain.to_frame().updates.tolist() == fast.to_frame().updates.tolist()
    assert fast.choices == {"loop": "native"} | {k: v for k, v in fast.choices.items() if k != "loop"}
    assert not {"replay", "update", "optimizer", "transfer", "conversion", "metrics"} & set(fast.choices)


def test_train_goes_on_after_a_stop():
    config = SMALL.replace(total_timesteps=600, log_frequency=100)
    trainer = DQN(config, Choices(loop="native"), trading)
    first = trainer.train(progress=False, on_log=lambda row: trainer.stop() if row["step"] >= 300 else None)
    assert first.interrupted and first.env_steps == 300
    second = trainer.train(progress=False)
    whole = DQN(config, Choices(loop="native"), trading).train(progress=False)
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
