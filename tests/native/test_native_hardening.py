"""What native code must not be led into: rules that are not its own, shapes it has no room for, memory that has moved."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from rlbench import DQN, Choices, DQNConfig, simulate
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.batch_cartpole_env import BatchCartPoleEnv
from rlbench.envs.batch_trading import BatchTrading
from rlbench.native.envs import NativeEnv, why_not_native
from rlbench.speedups import ChoiceError

SMALL = DQNConfig(
    total_timesteps=120,
    learning_starts=20,
    train_frequency=4,
    batch_size=8,
    buffer_size=100,
    hidden=(8,),
    target_network_frequency=25,
    eval_episodes=0,
    log_frequency=40,
)
MARKET = simulate.ornstein_uhlenbeck(200, seed=4)


class Seven(BatchTrading):
    """An account that earns 7 a step, whatever it does."""

    def step(self, state, action):
        state, step = super().step(state, action)
        return state, step._replace(reward=torch.full_like(step.reward, 7.0))


class Three(BatchCartPoleEnv):
    """Poles that earn 3 a step: a vector env that is more than the face of its core."""

    def step(self, actions):
        obs, reward, *rest = super().step(actions)
        return obs, 3.0 * reward, *rest


def test_a_subclass_is_not_stepped_by_the_rules_of_its_parent(capsys):
    core = Seven(MARKET, 2, episode_length=10)
    assert "no native counterpart" in why_not_native(core)
    with pytest.raises(TypeError, match="no native counterpart"):
        NativeEnv(core)
    with pytest.raises(ChoiceError, match="loop='native' cannot be used: BatchTrading has no native counterpart"):
        DQN(SMALL, Choices(loop="native"), core)
    for choices in (Choices.fast(), Choices(loop="tensors")):
        history = DQN(SMALL, choices, core).train(progress=False)
        assert history.episodes.episode_return.tolist() == [70.0] * len(history.episodes) and len(history.episodes) > 5


def test_a_vector_env_that_changes_rewards_is_stepped_itself():
    with pytest.raises(ChoiceError, match="Three has no batched counterpart"):
        DQN(SMALL, Choices(loop="tensors"), Three(2))
    history = DQN(SMALL, Choices.fast(), Three(2)).train(progress=False)
    assert (history.episodes.episode_return == 3.0 * history.episodes.length).all() and len(history.episodes) > 1


def test_the_plain_face_of_a_core_is_stepped_natively():
    assert DQN(SMALL, Choices.fast(), BatchCartPoleEnv(2)).choices.loop == "native"
    assert why_not_native(BatchCartPole(1)) is None


def test_more_layers_than_there_is_room_for():
    deep = SMALL.replace(hidden=(4,) * 16)
    for choices in (Choices(loop="native"), Choices(update="native")):
        with pytest.raises(ChoiceError, match="room for 15 hidden layers, and hidden has 16"):
            DQN(deep, choices, "CartPole-v1")
    used = DQN(deep, Choices.fast(), "CartPole-v1").choices
    assert (used.loop, used.update) == ("python", "eager")
    assert DQN(SMALL.replace(hidden=(4,) * 15), Choices.fast(), "CartPole-v1").choices.loop == "native"


def test_memory_is_flat_in_the_native_loop():
    marks = []

    def on_log(row):
        marks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)

    config = SMALL.replace(total_timesteps=100_000, log_frequency=2_000, train_frequency=10)
    trainer = DQN(config, Choices(loop="native"), BatchTrading(MARKET, 4, episode_length=50))
    assert trainer.train(progress=False, on_log=on_log).env_steps == 100_000
    assert marks[-1] - marks[len(marks) // 2] < 4096  # KiB


SANITISED = """
import random, warnings
import rlbench.native.build as build
sanitise = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
build.FLAGS = ("-O1", "-march=native", "-std=gnu11", "-shared", "-fPIC", *sanitise)
from rlbench import DQN, Choices, DQNConfig, simulate
from rlbench.envs.batch_trading import BatchTrading
from rlbench.envs.trading import TradingEnv
market = simulate.ornstein_uhlenbeck(120, seed=4)
tickers = [simulate.ornstein_uhlenbeck(30 + k, seed=k) for k in range(5)]
envs = [
    "CartPole-v1",
    lambda: TradingEnv(market, positions=(1,), episode_length=20),
    lambda: TradingEnv(market, positions=(-1, 1), episode_length=None, window=7),
    lambda: TradingEnv(market, episode_length=1),
    lambda: TradingEnv(market, episode_length=1, window=118),
    lambda: TradingEnv(market, positions=(-50, 0, 50), fee=0.05, borrow_rate=0.01, slippage=0.01, episode_length=30),
    BatchTrading(tickers, 3, episode_length=None, window=2),
    BatchTrading(tickers, 9, episode_length=3, positions=(-1, 1)),
]
draw = random.Random(1)
for number in range(40):
    settings = dict(
        n_step=draw.choice([1, 2, 30]), buffer_size=draw.choice([1, 2, 50]), batch_size=draw.choice([1, 7, 33, 300]),
        hidden=draw.choice([(), (1,), (17,), (33, 31), (300,), (4,) * 15]), learning_starts=draw.choice([0, 30]),
        train_frequency=draw.choice([1, 3]), gradient_steps=draw.choice([1, 3]), huber=draw.random() < 0.5,
        double_dqn=draw.random() < 0.5, max_grad_norm=draw.choice([0.0, 0.1]), tau=draw.choice([0.1, 1.0]),
    )
    env = envs[number % len(envs)]
    if not isinstance(env, BatchTrading):
        settings["num_envs"] = draw.choice([1, 2, 7, 33])
    choices = draw.choice([Choices(loop="native"), Choices(update="native"), Choices(environments="native")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        DQN(DQNConfig(total_timesteps=120, eval_episodes=0, **settings), choices, env).train(progress=False)
print("clean")
"""


def library(name):
    found = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
    return found if Path(found).is_absolute() else None


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("gcc") and sys.platform == "linux"), reason="needs gcc's sanitisers")
def test_sanitisers_find_nothing_over_odd_shapes(tmp_path):
    preload = [library("libasan.so"), library("libubsan.so")]
    if None in preload:
        pytest.skip("gcc has no sanitisers here")
    env = {
        **os.environ,
        "LD_PRELOAD": " ".join(preload),
        "ASAN_OPTIONS": "detect_leaks=0",
        "RLBENCH_CACHE": str(tmp_path),
    }
    done = subprocess.run([sys.executable, "-c", SANITISED], env=env, capture_output=True, text=True, timeout=300)
    assert done.stdout.endswith("clean\n"), done.stderr[-3000:]
