"""What a trainer meets when it is used in ways that nobody planned: every loop does the right thing, or says what is wrong."""

import copy
import os
import pickle
import signal
import threading
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rlbench import DQN, Choices, ConfigError, DQNConfig, envs, simulate
from rlbench.batch import Transitions
from rlbench.envs.batch_cartpole import BatchCartPole
from rlbench.envs.spaces import EnvError
from rlbench.envs.trading import TradingEnv
from rlbench.gpu_check import busy
from rlbench.models import mlp
from rlbench.speedups.loop import NoLog
from rlbench.trainers import fused_loop
from rlbench.updates.compiled import in_place
from rlbench.updates.graph import GraphUpdate

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
LOOPS = {
    "python": Choices(loop="python", replay="ring_torch"),
    "tensors": Choices(loop="tensors"),
    "native": Choices(loop="native"),
}


def trading():
    return TradingEnv(MARKET, episode_length=20)


def steps_of_first_updates(config, choices):
    """Env steps at which a training with a row a step has done its first three updates."""
    history = DQN(config.replace(log_frequency=1), choices, trading).train(progress=False)
    frame = history.to_frame()
    return [int(frame.env_step[frame.updates >= k].min()) for k in (1, 2, 3)]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"n_step": 5}, [5, 6, 7]),  # the first sum of five rewards is complete after five steps
        ({"n_step": 5, "learning_starts": 8}, [9, 10, 11]),
        ({"n_step": 1}, [1, 2, 3]),
        ({"n_step": 3, "num_envs": 2, "train_frequency": 2}, [6, 8, 10]),
    ],
)
@pytest.mark.parametrize(
    "choices",
    [*LOOPS.values(), Choices(replay="deque"), Choices(replay="ring_numpy")],
    ids=[*LOOPS, "deque", "ring_numpy"],
)
def test_no_update_before_replay_has_a_row(choices, changes, expected):
    config = SMALL.replace(**{"learning_starts": 0, "train_frequency": 1, "total_timesteps": 30, **changes})
    assert steps_of_first_updates(config, choices) == expected


def test_priorities_of_n_step_rows_from_the_first_one_on():
    config = SMALL.replace(learning_starts=0, train_frequency=1, n_step=5, prioritized_replay_alpha=0.6)
    history = DQN(config, Choices(), trading).train(progress=False)
    assert history.updates == 196 and torch.isfinite(torch.tensor(history.to_frame().loss.values)).all()


def test_a_training_shorter_than_its_n_step_rows_is_told_of():
    config = SMALL.replace(total_timesteps=20, learning_starts=0, train_frequency=1, n_step=30)
    with pytest.warns(UserWarning, match="learning_starts=0, n_step=30 and train_frequency=1 put off"):
        DQN(config, Choices(), trading)


@pytest.mark.parametrize("change", ["assign", "double", "module"])
@pytest.mark.parametrize("choices", [*LOOPS.values(), Choices(update="native")], ids=[*LOOPS, "native_update"])
def test_weights_that_are_not_the_trained_ones_are_refused(choices, change):
    """Else they would neither be learnt from nor change: the update has the old ones by reference or address."""
    trainer = DQN(SMALL, choices, trading)
    weights = trainer.online.state_dict()
    if change == "assign":
        trainer.online.load_state_dict({name: weight.clone() for name, weight in weights.items()}, assign=True)
    elif change == "double":
        trainer.target.double()
    else:
        trainer.online = copy.deepcopy(trainer.online)
    with pytest.raises(ConfigError, match="load weights in place"):
        trainer.train(progress=False)


@pytest.mark.parametrize("loop", LOOPS)
def test_weights_loaded_in_place_are_trained_on(loop):
    trainer = DQN(SMALL, LOOPS[loop], trading)
    first = trainer.train(progress=False)
    again = DQN(SMALL, LOOPS[loop], trading)
    again.online.load_state_dict(first.weights)
    again.target.load_state_dict(first.weights)
    assert again.train(progress=False).weights_sha256 != first.weights_sha256


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        (LOOPS["tensors"], "TensorLoop"),
        (LOOPS["native"], "NativeEnv"),
        (Choices(update="native"), "Native"),
        (Choices(environments="native"), "NativeEnv"),
        (Choices(update="compiled"), "CompiledUpdate"),
    ],
)
def test_a_trainer_that_works_by_address_is_not_copied(choices, name):
    trainer = DQN(SMALL, choices, trading)
    for way in (copy.deepcopy, lambda trainer: pickle.dumps(trainer.__dict__[HOLDER[name]])):
        with pytest.raises(TypeError, match=f"^{name} cannot be copied or pickled.*load_state_dict"):
            way(trainer)


HOLDER = {"TensorLoop": "loop", "NativeEnv": "collector", "Native": "apply_update", "CompiledUpdate": "apply_update"}


def test_a_plain_trainer_that_is_copied_goes_on_alone():
    trainer = DQN(SMALL, LOOPS["python"], trading)
    trainer.train(progress=False)
    weights = {name: weight.clone() for name, weight in trainer.online.state_dict().items()}
    twin = copy.deepcopy(trainer)
    twin.config = SMALL.replace(total_timesteps=300)
    history = twin.train(progress=False)
    assert history.env_steps == 300 and trainer.env_steps == 200
    moved = [name for name, weight in twin.online.state_dict().items() if not torch.equal(weight, weights[name])]
    assert sorted(moved) == sorted(weights)
    assert all(torch.equal(weight, weights[name]) for name, weight in trainer.online.state_dict().items())


class Overwriting(BatchCartPole):
    """Poles whose observations always lie in the same memory."""

    def reset(self, start=None):
        state, self.same = super().reset(start)
        return state, self.same

    def step(self, state, action):
        state, step = super().step(state, action)
        return state, step._replace(obs=self.same.copy_(step.obs))


@pytest.mark.parametrize(
    "choices", [LOOPS["python"], LOOPS["tensors"], Choices()], ids=["ring_torch", "tensors", "plain"]
)
def test_observations_written_over_the_last_ones_are_refused(choices):
    trainer = DQN(SMALL, choices, Overwriting(2))
    with pytest.raises(EnvError, match="BatchCartPole: a step wrote its observations over those of the step before"):
        trainer.train(progress=False)


class Prices:
    """A market whose prices leap by 600 orders of magnitude: what an account is worth, and so a reward, becomes infinite."""

    close = np.where(np.arange(60) % 2, 1e300, 1e-300)
    features = np.zeros((60, 1), np.float32)


@pytest.mark.parametrize("learning_starts", [10, 500])  # with updates, and before the first one
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.filterwarnings("ignore:nothing will be learnt")
def test_infinite_rewards_are_refused_in_every_loop(loop, learning_starts):
    config = SMALL.replace(learning_starts=learning_starts, seed=2)
    trainer = DQN(config, LOOPS[loop], lambda: TradingEnv(Prices, episode_length=10))
    with np.errstate(all="ignore"), pytest.raises(EnvError, match="Trading-v0: .*reward .*finite"):
        trainer.train(progress=False)


class Blinking(BatchCartPole):
    """Poles that once, at the twelfth step, see nothing."""

    def step(self, state, action):
        state, step = super().step(state, action)
        self.taken = getattr(self, "taken", 0) + 1
        return state, step if self.taken != 12 else step._replace(next_obs=step.next_obs * torch.nan)


@pytest.mark.parametrize("loop", ["python", "tensors"])
def test_an_observation_that_is_no_number_is_not_called_divergence(loop):
    trainer = DQN(SMALL, LOOPS[loop], Blinking(2))
    with pytest.raises(EnvError, match="BatchCartPole: .*observation.*finite numbers"):
        trainer.train(progress=False)


@pytest.mark.parametrize("replay", ["ring_numpy", "ring_torch", "deque"])
def test_what_was_refused_is_not_in_replay(replay):
    trainer = DQN(SMALL, Choices(replay=replay), Blinking(2))
    with pytest.raises(EnvError, match=r"observation\[0\] is nan of env 0 at env step 24;"):
        trainer.train(progress=False)
    rows = trainer.replay.sample(np.arange(len(trainer.replay)))
    assert len(rows.next_obs) == 22 and all(np.isfinite(np.asarray(row)).all() for row in rows.next_obs)


@pytest.mark.parametrize("choices", [*LOOPS.values(), Choices(update="native")], ids=[*LOOPS, "native_update"])
@pytest.mark.parametrize("env", [trading, "CartPole-v1"], ids=["trading", "cart_pole"])
def test_divergence_is_the_same_error_in_every_loop(choices, env):
    trainer = DQN(SMALL.replace(learning_rate=1e6, hidden=(16, 16)), choices, env)
    with pytest.raises(
        ConfigError, match=r"env step 50, after 5 updates: training has diverged. Lower learning_rate=1e\+06"
    ):
        trainer.train(progress=False)


class StopsWhenAsked(NoLog):
    """A stop that comes after the loop has begun an advance, as one from another thread or an interrupt may."""

    def __init__(self, trainer):
        self.trainer = trainer

    def room(self):
        self.trainer.stop()
        return 50


@pytest.mark.parametrize("loop", LOOPS)
def test_a_stop_in_the_middle_of_an_advance(loop):
    trainer = DQN(SMALL.replace(log_frequency=1000), LOOPS[loop], trading)
    trainer.loop.advance(StopsWhenAsked(trainer))
    assert trainer.env_steps == (50 if loop == "native" else 1)
    trainer.stopping = False
    history = trainer.train(progress=False)
    assert history.env_steps == 200 and not history.interrupted
    whole = DQN(SMALL, LOOPS[loop], trading).train(progress=False)
    assert history.weights_sha256 == whole.weights_sha256


def test_what_tensors_let_see_is_bounded_whatever_the_log_wants(monkeypatch):
    monkeypatch.setattr("rlbench.trainers.tensor_loop.MOST_ITERATIONS", 16)
    trainer = DQN(SMALL.replace(log_frequency=1000), LOOPS["tensors"], trading)
    trainer.loop.advance(NoLog(10**9))
    assert trainer.env_steps == 16
    pieces = trainer.train(progress=False)
    monkeypatch.undo()
    assert pieces.weights_sha256 == DQN(SMALL, LOOPS["tensors"], trading).train(progress=False).weights_sha256


@pytest.mark.parametrize("loop", LOOPS)
def test_an_interrupt_ends_every_loop_with_what_was_learnt(loop):
    trainer = DQN(SMALL.replace(total_timesteps=10**8, log_frequency=10**8), LOOPS[loop], trading)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    history = trainer.train(progress=False)
    timer.join()
    assert history.interrupted and 0 < history.env_steps < 10**8 and len(history.log_rows) == 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("n_step", [1, 3])
def test_more_rows_at_once_than_replay_has_slots(n_step, monkeypatch):
    """Of rows that go to one slot the last has to stay, also where an index named twice is written in any order."""
    kept = torch.Tensor.index_copy_

    def backwards(self, dim, index, source):
        return kept(self, dim, index.flip(0), source.flip(0))

    config = SMALL.replace(num_envs=7, buffer_size=3, n_step=n_step)
    plain = DQN(config, LOOPS["python"], trading)
    plain.train(progress=False)
    monkeypatch.setattr(torch.Tensor, "index_copy_", backwards)
    for loop in ("tensors", "native"):
        fast = DQN(config, LOOPS[loop], trading)
        fast.train(progress=False)
        torch.testing.assert_close(fast.replay.rows, plain.replay.rows, rtol=1e-6, atol=1e-6)
        assert (fast.replay.head, fast.replay.size) == (plain.replay.head, plain.replay.size)


def test_no_training_is_said_to_have_compiled_anew(monkeypatch):
    """Neither from the first step on, whose state names one tensor twice, nor beside others with other costs or prices."""
    monkeypatch.setattr("rlbench.compile.BACKEND", "eager")
    monkeypatch.setattr(fused_loop, "_kept", {})
    short = simulate.ornstein_uhlenbeck(90, seed=4)
    runs = [
        (SMALL.replace(learning_starts=0, train_frequency=1), trading),
        (SMALL.replace(train_frequency=1), lambda: TradingEnv(MARKET, episode_length=20, fee=0.01)),
        (SMALL.replace(train_frequency=1), lambda: TradingEnv(short, episode_length=20)),
        (SMALL.replace(train_frequency=1, seed=9, learning_rate=1e-3, tau=0.5), trading),
    ]
    trainers = [DQN(config, Choices(loop="fused"), env) for config, env in runs]
    assert [trainer.train(progress=False).recompiles for trainer in trainers] == [0, 0, 0, 0]
    assert trainers[0].loop.compiled is trainers[3].loop.compiled  # what differs is data
    assert trainers[0].loop.compiled.compilations == 1 and len(fused_loop._kept) == 3


@pytest.mark.parametrize("face", ["BatchTradingEnv", "BatchCartPoleEnv"])
def test_a_face_of_a_batch_env_has_the_same_episodes_in_every_loop(face):
    def make():
        arguments = (MARKET,) if face == "BatchTradingEnv" else ()
        return getattr(envs, face)(*arguments, num_envs=3, seed=77)

    config = SMALL.replace(start_e=1.0, end_e=1.0, seed=5)  # what is learnt leads nowhere else
    rows = []
    for choices in LOOPS.values():
        trainer = DQN(config, choices, make())
        trainer.train(progress=False)
        rows.append(trainer.replay.rows)
    assert len(trainer.replay) == 100
    torch.testing.assert_close(rows[1], rows[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(rows[2], rows[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("choices", LOOPS.values(), ids=LOOPS)
def test_a_batch_env_alone_says_how_it_can_be_evaluated(choices):
    config = SMALL.replace(eval_episodes=3)
    for given in ({}, {"eval_env": BatchCartPole(4)}):
        with pytest.raises(EnvError, match="BatchCartPole has no single environments to evaluate on: pass eval_env="):
            DQN(config, choices, BatchCartPole(4), **given)
    history = DQN(config, choices, BatchCartPole(4), eval_env="CartPole-v1").train(progress=False)
    assert len(history.returns) == 3


def test_memory_that_runs_out_in_a_warm_up_has_taught_nothing(monkeypatch):
    stream = SimpleNamespace(wait_stream=lambda other: None)
    for name, value in (
        ("device", nullcontext()),
        ("Stream", stream),
        ("current_stream", stream),
        ("stream", nullcontext()),
    ):
        monkeypatch.setattr(torch.cuda, name, lambda *given, value=value: value)
    calls = iter((False, True))

    class Failing(GraphUpdate):
        def function(self, count, batch):
            update = in_place(self.network, self.settings, count)

            def run(*arguments):
                if next(calls):
                    raise torch.OutOfMemoryError("no room")
                return update(*arguments)

            return run

    generator = torch.Generator().manual_seed(0)
    online, target = (mlp(3, (4,), 2, generator) for _ in range(2))
    update = Failing(online, target, DQNConfig(), None)
    before = [tensor.clone() for tensor in update.changing()]
    columns = [torch.ones(5) for _ in range(4)]
    with pytest.raises(torch.OutOfMemoryError):
        update(
            Transitions(
                torch.ones(5, 3), torch.zeros(5, dtype=torch.int64), columns[0], torch.ones(5, 3), *columns[1:]
            ),
            1e-3,
        )
    assert all(torch.equal(a, b) for a, b in zip(update.changing(), before, strict=True))


def test_an_annotation_is_no_kernel():
    """A range that somebody named spans the idle time between kernels: counted, it would make any GPU look busy."""
    span = SimpleNamespace(start=0, end=9), SimpleNamespace(start=0, end=1)
    events = [
        SimpleNamespace(
            name="step", device_type=torch.autograd.DeviceType.CUDA, time_range=span[0], is_user_annotation=True
        ),
        SimpleNamespace(
            name="gemm", device_type=torch.autograd.DeviceType.CUDA, time_range=span[1], is_user_annotation=False
        ),
    ]
    assert busy.device_spans(events) == {"kernels": [(0.0, 1.0)], "copies": [], "all": [(0.0, 1.0)]}


def test_an_update_between_two_native_calls_counts():
    """Adam's correction and the numbers that draw minibatches go on from it, as they do in the Python loop."""
    trainers = [DQN(SMALL, LOOPS[loop], trading) for loop in ("python", "native")]
    for trainer in trainers:
        trainer.train(
            progress=False, on_log=lambda row, trainer=trainer: trainer.stop() if row["step"] >= 100 else None
        )
        trainer.update(trainer.sample())
        trainer.train(progress=False)
    plain, native = trainers
    assert native.updates == native.apply_update.taken == plain.updates == 44
    for one, other in zip(plain.online.parameters(), native.online.parameters(), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-6)
