import pickle
import threading

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

from rlbench.profiling.clock import RecordingClock
from rlbench.profiling.found import WRAPPERS, is_env, subclasses


class Bare:
    """An env that knows no Gymnasium."""

    def reset(self):
        return np.zeros(2, np.float32)

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, {}


class Derived(Bare):
    def step(self, action):
        return super().step(action)


@pytest.fixture
def recorder():
    WRAPPERS.install(globals())
    try:
        with RecordingClock() as clock:
            yield clock
    finally:
        WRAPPERS.remove()


def network():
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))


def test_a_dqn_by_hand_is_found(recorder):
    env, net = gymnasium.make("CartPole-v1"), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    obs, _ = env.reset(seed=1)
    for _ in range(5):
        with torch.no_grad():
            action = int(net(torch.from_numpy(obs)).argmax())
        obs, *_ = env.step(action)
        loss = net(torch.from_numpy(obs)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (recorder.totals.steps, recorder.totals.updates, recorder.totals.episodes) == (5, 5, 1)
    assert recorder.totals.counts == {"env": 6, "action": 5, "forward": 5, "backward": 5, "optimizer": 5}


def test_classes_with_step_and_reset_are_envs(recorder):
    env = Derived()
    env.reset()
    env.step(0)

    class Later(gymnasium.Env):
        def step(self, action):
            return None

    class LaterBare:
        def step(self, action):
            return None

        def reset(self):
            return None

    Later().step(0)
    LaterBare().step(0)
    assert (recorder.totals.steps, recorder.totals.episodes) == (3, 1)


def test_what_is_an_env():
    assert is_env(Bare) and is_env(Derived) and is_env(gymnasium.Wrapper)
    assert not any(is_env(value) for value in (nn.Module, torch.optim.Adam, Bare(), object, 1, None))


def test_a_vector_env_counts_once(recorder):
    envs = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    envs.reset(seed=1)
    envs.step(np.zeros(3, np.int64))
    assert (recorder.totals.steps, recorder.totals.episodes) == (1, 1)


def test_every_optimizer_counts_once_a_step(recorder):
    net = network()

    class Own(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    for make in (torch.optim.Adam, torch.optim.RMSprop, Own):
        optimizer = make(net.parameters(), lr=0.1)
        net(torch.ones(4, 2)).sum().backward()
        torch.optim.lr_scheduler.StepLR(optimizer, 1)
        optimizer.step()
    lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=2)

    def closure():
        lbfgs.zero_grad()
        loss = net(torch.ones(4, 2)).square().sum()
        loss.backward()
        return loss

    lbfgs.step(closure)
    assert recorder.totals.updates == 4


def test_calls_of_modules_rest_while_nobody_looks(recorder):
    wrapped, net = nn.Module.__call__, network()
    WRAPPERS.rest()
    before = nn.Module.__call__
    assert before is not wrapped
    net(torch.ones(1, 2))
    assert not recorder.totals.counts and not recorder.pieces[1:]
    WRAPPERS.rest()
    assert nn.Module.__call__ is before
    WRAPPERS.install()  # somebody else looks
    assert nn.Module.__call__ is wrapped
    WRAPPERS.rest()
    assert nn.Module.__call__ is wrapped
    WRAPPERS.remove()
    WRAPPERS.rest()
    WRAPPERS.wake()
    assert nn.Module.__call__ is wrapped
    net(torch.ones(1, 2))
    with recorder.finding("env"):
        pass
    assert recorder.totals.counts == {"action": 1, "env": 1}


def test_what_the_reader_wrapped_meanwhile_is_left_alone(monkeypatch):
    original = nn.Module.__call__

    def own(self, *args, **kwargs):
        return original(self, *args, **kwargs)

    WRAPPERS.install()
    WRAPPERS.rest()
    monkeypatch.setattr(nn.Module, "__call__", own)
    WRAPPERS.wake()
    assert nn.Module.__call__ is own
    WRAPPERS.remove()
    assert nn.Module.__call__ is own
    monkeypatch.undo()
    assert nn.Module.__call__ is original


def test_gradients_by_grad_are_backward(recorder):
    net = network()
    torch.autograd.grad(net(torch.ones(1, 2)).sum(), list(net.parameters()))
    assert recorder.totals.counts["backward"] == 1


def test_minibatches_of_a_loader_are_sampled(recorder):
    data = torch.utils.data.TensorDataset(torch.ones(6, 2))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=3):
        network()(batch).sum().backward()
    assert recorder.totals.counts["sample"] == 3, "two minibatches and the end"


def test_an_exception_in_a_call_leaves_the_clock_whole(recorder):
    class Broken(nn.Module):
        def forward(self, x):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Broken()(torch.ones(1))
    Bare().step(0)
    assert recorder.top.free and recorder.totals.steps == 1


def test_other_threads_do_not_count(recorder):
    thread = threading.Thread(target=lambda: network()(torch.ones(1, 2)))
    thread.start()
    thread.join()
    Bare().step(0)
    assert recorder.totals.counts == {"env": 1}


def test_under_compile_a_module_is_traced_as_ever(recorder):
    traced = []

    def backend(graph, inputs):
        traced.append(graph)
        return graph.forward

    torch._dynamo.reset()
    net = torch.compile(network(), backend=backend, fullgraph=True)
    for _ in range(3):
        assert net(torch.ones(4, 2)).shape == (4, 1)
    Bare().step(0)
    assert len(traced) == 1 and recorder.totals.counts == {"env": 1, "action": 3}


def test_all_is_as_before_once_removed():
    before = (
        nn.Module.__call__,
        torch.autograd.backward,
        torch.autograd.grad,
        Bare.step,
        gymnasium.Env.step,
        __build_class__,
    )
    steps = {cls: vars(cls).get("step") for cls in subclasses(torch.optim.Optimizer)}
    for _ in range(2):
        WRAPPERS.install(globals())
        WRAPPERS.install(globals())
        WRAPPERS.remove()
        assert nn.Module.__call__ is not before[0]
        WRAPPERS.remove()
        after = (
            nn.Module.__call__,
            torch.autograd.backward,
            torch.autograd.grad,
            Bare.step,
            gymnasium.Env.step,
            __build_class__,
        )
        assert after == before
        assert {cls: vars(cls).get("step") for cls in steps} == steps


def test_a_wrapped_class_can_be_sent_to_a_worker(recorder):
    cloudpickle = pytest.importorskip("cloudpickle")

    class Local:
        def reset(self):
            return 1

        def step(self, action):
            return action + 1

    copy = pickle.loads(cloudpickle.dumps(Local))
    assert copy().step(1) == 2
