"""The trainer: the same run for the same seed, the same under every Choice, and it learns what can be worked out by hand."""

import json
import os
import signal
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import torch

import rlbench
from rlbench import Choices, DQNConfig
from rlbench.envs.spaces import EnvError
from rlbench.speedups import ChoiceError
from rlbench.trainers.dqn import DQN

SMALL = DQNConfig(
    total_timesteps=300,
    learning_starts=50,
    train_frequency=2,
    target_network_frequency=20,
    batch_size=16,
    buffer_size=100,
    hidden=(16,),
    eval_episodes=3,
    log_frequency=100,
)


class Corridor(gymnasium.Env):
    """Five cells; right (1) from the last one pays 1 and ends, left (0) from the first stays. Some actions are masked."""

    observation_space = gymnasium.spaces.Box(0, 1, (5,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, masked: bool = False) -> None:
        self.masked = masked

    def _out(self):
        obs = np.zeros(5, np.float32)
        obs[min(self.cell, 4)] = 1
        return obs, {"action_mask": np.array([self.cell > 0, True, False])} if self.masked else {}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.t = 0, 0
        return self._out()

    def step(self, action):
        assert not self.masked or (action == 1 or (action == 0 and self.cell > 0)), "an illegal action was taken"
        self.t += 1
        self.cell += {0: -1, 1: 1, 2: 0}[int(action)]
        self.cell = max(0, self.cell)
        out = self._out()
        return out[0], float(self.cell == 5), self.cell == 5, self.t == 50, out[1]


def run(config=SMALL, choices=None, env="CartPole-v1", **kwargs):
    return DQN(config, choices, env, **kwargs).train(progress=False)


def test_same_seed_in_fresh_processes_gives_the_same_actions_losses_and_weights():
    script = (
        "import json, torch, rlbench, numpy as np\n"
        f"config = rlbench.DQNConfig(**{dataclass_dict(SMALL)!r})\n"
        "trainer = rlbench.DQN(config); actions = []; step = trainer.collector.step\n"
        "trainer.collector.step = lambda a: (actions.append(a.tolist()), step(a))[1]\n"
        "history = trainer.train(progress=False)\n"
        "losses = history.to_frame().loss.tolist()\n"
        "print(json.dumps([actions, losses, history.weights_sha256, history.returns]))\n"
    )
    outs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=120) for _ in range(2)
    ]
    assert outs[0].stdout == outs[1].stdout
    actions, losses, digest, _ = json.loads(outs[0].stdout)
    assert len(actions) == 300 and len(digest) == 64 and np.isfinite(losses[-1])


def dataclass_dict(config):
    import dataclasses

    return dataclasses.asdict(config)


def test_another_seed_gives_another_run():
    assert run().weights_sha256 != run(SMALL.replace(seed=2)).weights_sha256


@pytest.mark.parametrize("num_envs", [1, 3, 8])
def test_updates_and_target_syncs_do_not_depend_on_the_number_of_envs(num_envs):
    config = SMALL.replace(total_timesteps=240, num_envs=num_envs, gradient_steps=2)
    history = run(config, env=Corridor)
    assert history.env_steps == 240
    assert history.updates == 190  # at 52, 54, … 240: 95 rounds of two
    assert history.target_syncs == 10  # at 60, 80, … 240


def test_reset_calls_of_a_vector_env_are_not_env_steps():
    envs = gymnasium.vector.SyncVectorEnv([Corridor] * 2)  # next-step autoreset
    trainer = DQN(SMALL.replace(num_envs=2), env=envs)
    history = trainer.train(progress=False)
    lost = len(history.episodes)  # a call for each end, but for those whose reset was still to come
    assert 300 <= history.env_steps <= 301
    assert trainer.iterations * 2 - history.env_steps <= lost <= trainer.iterations * 2 - history.env_steps + 2
    assert history.episodes.length.max() <= 50


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("double", "n_step"), [(True, 1), (False, 3)])
def test_values_of_a_corridor(masked, double, n_step):
    """Optimal values are gamma to the number of steps that remain after this one: 0.5^4 … 0.5^0."""
    config = DQNConfig(
        total_timesteps=4000,
        learning_starts=100,
        train_frequency=2,
        batch_size=64,
        gamma=0.5,
        learning_rate=5e-3,
        target_network_frequency=50,
        hidden=(),
        n_step=n_step,
        double_dqn=double,
        end_e=0.5 if n_step == 1 else 0.05,
        eval_episodes=2,
    )
    trainer = DQN(config, Choices.fast(), env=lambda: Corridor(masked))
    history = trainer.train(progress=False)
    assert history.returns == [1.0, 1.0]
    q = trainer.online(torch.eye(5))[:, 1].tolist()
    np.testing.assert_allclose(q, [0.0625, 0.125, 0.25, 0.5, 1.0], atol=0.05)


def test_the_step_size_falls_to_nothing_when_asked():
    """At 300 of 300 env steps it is 0: the last update changes nothing; without it it does."""
    for anneal, rate in ((True, 0.0), (False, SMALL.learning_rate)):
        trainer = DQN(SMALL.replace(anneal_lr=anneal))
        seen = []
        optimizer = trainer.apply_update.optimizer
        step = optimizer.step
        optimizer.step = lambda seen=seen, step=step, own=optimizer: (seen.append(own.param_groups[0]["lr"]), step())
        trainer.train(progress=False)
        assert seen[-1] == rate and seen[0] == pytest.approx(SMALL.learning_rate * (1 - 52 / 300 if anneal else 1))


def test_history_and_summary():
    calls = []
    trainer = DQN(SMALL.replace(eval_frequency=100), env="CartPole-v1")
    history = trainer.train(progress=False, on_log=calls.append)
    log, episodes = history.to_frame(), history.episodes
    assert log.env_step.tolist() == [100, 200, 300] and log.updates.tolist() == [25, 75, 125]
    assert [call["step"] for call in calls] == [100, 200, 300] and calls[-1]["eta_s"] == 0 and calls[0]["total"] == 300
    assert history.evaluations.env_step.tolist() == [100, 200, 300] and history.eval_episodes == 3
    assert history.evaluations.mean_return.iloc[-1] == history.mean_return == np.mean(history.returns)
    assert (episodes.episode_return == episodes.length).all() and episodes.length.sum() <= 300
    summary = history.summary()
    needed = "env_steps updates train_s compile_s sps total_s mean_return eval_episodes seed config choices machine"
    assert {*needed.split(), "weights_sha256"} <= set(summary) and json.loads(json.dumps(summary)) == json.loads(
        json.dumps(summary)
    )
    assert summary["env_steps"] == 300 and summary["updates"] == 125 and summary["sps"] > 0
    assert history.train_s <= history.total_s


def test_act_and_what_it_refuses():
    trainer = DQN(SMALL, env=lambda: Corridor(True))
    one = trainer.act(np.eye(5)[0], mask=[False, True, False])
    assert one == 1 and type(one) is int
    assert trainer.act(np.eye(5), mask=np.tile([False, False, True], (5, 1))).tolist() == [2] * 5
    with pytest.raises(EnvError, match=r"shape \(4,\); accepted are \(5,\) and \(N, 5\)"):
        trainer.act(np.zeros(4))
    with pytest.raises(EnvError, match="state 1 has no legal action"):
        trainer.act(np.eye(5)[:2], mask=[[True] * 3, [False] * 3])


def test_stop_returns_what_was_learnt():
    trainer = DQN(SMALL)
    history = trainer.train(progress=False, on_log=lambda row: trainer.stop())
    assert history.interrupted and history.env_steps == 100 and history.updates == 25 and not history.returns
    assert set(history.weights) == set(trainer.online.state_dict()) and history.summary()["mean_return"] is None


@pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind are POSIX's")
def test_interrupt_finishes_the_iteration_and_restores_the_handler():
    before = signal.getsignal(signal.SIGINT)
    history = DQN(SMALL).train(progress=False, on_log=lambda row: os.kill(os.getpid(), signal.SIGINT))
    assert history.interrupted and history.env_steps == 100
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_during_the_final_evaluation_keeps_what_was_learnt():
    trainer = DQN(SMALL)
    act = trainer.greedy
    trainer.greedy = lambda obs, mask: (trainer.env_steps == 300 and trainer.stop(), act(obs, mask))[1]
    history = trainer.train(progress=False)
    assert history.interrupted and history.env_steps == 300 and not history.returns and history.weights


def test_unused_and_impossible_choices_are_refused_at_construction():
    with pytest.raises(ChoiceError, match="pinned memory needs CUDA"):
        DQN(SMALL, Choices(transfer="pinned"))
    with pytest.raises(ChoiceError, match="leave this slot out"):
        DQN(SMALL, Choices(replay="ring_torch", conversion="preallocated"))


def test_cuda_that_is_not_there_falls_back_with_one_line(capfd):
    if torch.cuda.is_available():
        pytest.skip("there is CUDA here")
    trainer = DQN(SMALL, device="cuda")
    assert trainer.device.type == "cpu"


def test_an_env_that_cannot_be_copied_is_refused_unless_nothing_is_evaluated():
    class Stubborn(Corridor):
        def __deepcopy__(self, memo):
            raise TypeError("has a socket")

    with pytest.raises(EnvError, match=r"cannot be copied \(has a socket\): pass a factory"):
        DQN(SMALL, env=Stubborn())
    assert run(SMALL.replace(eval_episodes=0), env=Stubborn()).eval_episodes == 0
    assert run(SMALL, env=Stubborn(), eval_env=Corridor).eval_episodes == 3


def test_global_random_state_is_left_alone():
    torch.manual_seed(1)
    np.random.seed(1)
    states = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    run(env=Corridor)
    assert torch.equal(torch.random.get_rng_state(), states[0]) and (np.random.get_state()[1] == states[1]).all()


def test_tensorboard_scalars_or_the_line_that_installs_it(tmp_path):
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(RuntimeError, match="pip install tensorboard"):
            DQN(SMALL).train(progress=False, tensorboard=str(tmp_path))
    else:
        DQN(SMALL).train(progress=False, tensorboard=str(tmp_path))
        assert list(tmp_path.glob("events*"))


def test_public_names():
    assert rlbench.DQN is DQN and rlbench.SPEEDUPS["replay"].variants["deque"]


def test_after_a_stop_training_can_go_on_to_the_same_end():
    """Stopped at 100 of 300 env steps and called again: the weights of one uninterrupted run; each call has its own rows."""
    trainer = DQN(SMALL)
    first = trainer.train(progress=False, on_log=lambda row: trainer.stop())
    second = trainer.train(progress=False)
    assert (first.interrupted, second.interrupted) == (True, False)
    assert first.to_frame().env_step.tolist() == [100] and second.to_frame().env_step.tolist() == [200, 300]
    assert second.env_steps == 300 and second.returns and second.weights_sha256 == run().weights_sha256


def test_a_training_without_an_update_says_so():
    with pytest.warns(UserWarning, match=r"nothing will be learnt: total_timesteps=300 .* learning_starts=300"):
        history = DQN(SMALL.replace(learning_starts=300)).train(progress=False)
    assert history.updates == 0 and np.isnan(history.to_frame().loss).all()
