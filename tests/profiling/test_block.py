import sys
import threading
import time

import gymnasium
import pytest
import torch
from torch import nn

import rlbench


class Env:
    """Two numbers, ends after 20 steps."""

    def reset(self):
        self.at = 0
        return torch.zeros(2)

    def step(self, action):
        self.at += 1
        return torch.full((2,), self.at / 20), 1.0, self.at == 20


def training(steps=150, seed=0, after=None, net=None):
    """A small loop with everything in it; gives its weights."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)) if net is None else net
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    env = Env()
    obs = env.reset()
    for step in range(steps):
        with torch.no_grad():
            action = net(obs).argmax().item()
        obs, reward, done = env.step(action)
        if done:
            obs = env.reset()
        loss = (net(torch.rand(16, 2)).sum(dim=1) - reward).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if after == step:
            raise ZeroDivisionError("planted")
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()])


def check(report):
    evidence = report.evidence
    assert sum(phase.share for phase in evidence.phases) == pytest.approx(1.0, abs=0.02)
    assert evidence.share("other") < 0.2
    return {phase.name for phase in evidence.phases if phase.share > 0}


def test_a_block_of_code_that_knows_nothing_of_it():
    with rlbench.profile("mine") as report:
        training()
    assert check(report) >= {"env", "action", "forward", "backward", "optimizer"}
    evidence = report.evidence
    assert evidence.steps == pytest.approx(evidence.updates, abs=3) and evidence.steps > 20
    assert evidence.counted is not None and evidence.trace is not None and report.error == ""
    calls = {(sync.place.source, sync.call) for sync in evidence.counted.syncs if sync.place.function == "training"}
    assert ("action = net(obs).argmax().item()", ".item()") in calls


def test_nothing_is_left_behind_and_nothing_changed():
    plain = training()
    before = nn.Module.__call__, gymnasium.Env.step, Env.step, sys.getswitchinterval(), torch.get_num_threads()
    state = torch.get_rng_state()
    with rlbench.profile(threads=True) as report:
        weights = training()
    assert torch.equal(weights, plain), "a profiled training learns the same"
    assert (
        nn.Module.__call__,
        gymnasium.Env.step,
        Env.step,
        sys.getswitchinterval(),
        torch.get_num_threads(),
    ) == before
    torch.set_rng_state(state)
    first = torch.rand(3)
    torch.set_rng_state(state)
    str(report)
    assert torch.equal(torch.rand(3), first)


def test_an_exception_is_passed_on_and_the_report_is_there():
    with pytest.raises(ZeroDivisionError), rlbench.profile() as report:
        training(after=100)
    assert report.error == "ZeroDivisionError: planted" and check(report) >= {"env", "forward"}


def test_a_block_without_anything_to_see():
    with rlbench.profile() as report:
        sum(range(1000))
    assert report.advice == () and any("Name parts" in note for note in report.evidence.notes)


def test_what_comes_before_the_first_step_is_in_no_share():
    with rlbench.profile() as report:
        time.sleep(0.3)
        training(60)
    check(report)
    assert report.evidence.share("set-up") == 0.0
    assert not any("torch.compile" in note for note in report.evidence.notes)
    (note,) = (note for note in report.evidence.notes if "setting up" in note)
    amount, unit = note.removeprefix("Before the first step ").split()[:2]
    assert float(amount) * {"ms": 1e-3, "s": 1.0}[unit] >= 0.299  # rounded


def test_parts_that_are_named():
    with rlbench.profile() as report:
        for _ in range(1500):
            with rlbench.phase("env"):
                sum(range(20_000))
            with rlbench.phase("my own part"):
                sum(range(40_000))
    found = {phase.name: phase.share for phase in report.evidence.phases}
    assert found["my own part"] > found["env"] > 0.1 and report.evidence.steps > 30


def test_blocks_nest_and_repeat():
    with rlbench.profile("outer") as outer:
        training(60)
        for _ in range(2):
            with rlbench.profile("inner") as inner:
                training(80)
            assert check(inner) >= {"env", "optimizer"}
        training(60)
    assert check(outer) >= {"env", "optimizer"}
    assert outer.evidence.updates > inner.evidence.updates
    assert rlbench.phase("a") is rlbench.phase("b"), "no clock is left open"


def test_in_another_thread():
    reports = []

    def work():
        with rlbench.profile() as report:
            training(80)
        reports.append(report)

    thread = threading.Thread(target=work)
    thread.start()
    training(40)
    thread.join()
    assert check(reports[0]) >= {"env", "forward"}


@pytest.mark.parametrize("held", [torch.inference_mode, lambda: torch.device("cpu")])
def test_with_modes_that_the_reader_holds(held):
    net = nn.Linear(2, 2)
    env = Env()
    with held(), rlbench.profile() as report:
        env.reset()
        for _ in range(4000):
            env.step(net(torch.zeros(1, 2)).argmax().item())
    assert report.evidence.steps > 20
    assert report.evidence.counted.syncs


def test_acting_and_stepping_in_inference_mode():
    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    env = Env()
    env.reset()
    with rlbench.profile() as report:
        for _ in range(1500):
            with torch.inference_mode():
                env.step(net(torch.zeros(1, 2)).argmax().item())
            optimizer.zero_grad()
            net(torch.rand(4, 2)).sum().backward()
            optimizer.step()
    assert report.evidence.counted.updates > 0 and torch.empty(2).add(1).shape == (2,)


def test_a_mode_that_is_opened_within_and_kept():
    mode = torch.device("cpu")
    with rlbench.profile() as report:
        for i in range(40):
            if i == 20:
                mode.__enter__()
            nn.Linear(2, 2)(torch.zeros(1, 2)).sum().backward()
            Env().reset()
            training(1)
    mode.__exit__(None, None, None)
    assert report.evidence.seconds > 0
    assert torch.zeros(1).item() == 0.0


def test_a_compiled_network():
    traced = []

    def backend(graph, inputs):
        traced.append(graph)
        return graph.forward

    torch._dynamo.reset()
    torch.manual_seed(0)
    net = torch.compile(nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)), backend=backend)
    with rlbench.profile() as report:
        training(net=net)
    assert check(report) >= {"env", "action", "forward", "backward"}
    assert len(traced) < 20, "not compiled again at every step"
    assert any(note.startswith("torch.compile took ") for note in report.evidence.notes)


def test_our_own_trainer_in_a_block():
    config = rlbench.DQNConfig(total_timesteps=400, learning_starts=100, eval_episodes=0, hidden=(16,))
    with rlbench.profile() as report:
        rlbench.DQN(config, rlbench.Choices(loop="python"), env="CartPole-v1").train(progress=False)
    assert check(report) >= {"env", "action", "store", "sample", "forward", "backward", "optimizer", "python"}


def test_supervised_learning_counts_updates():
    data = torch.utils.data.TensorDataset(torch.rand(4000, 2))
    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with rlbench.profile() as report:
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=4):
            optimizer.zero_grad()
            net(batch).square().mean().backward()
            optimizer.step()
    assert check(report) >= {"sample", "forward", "backward", "optimizer"}
    assert report.evidence.steps == report.evidence.updates > 50


def test_long_rollouts_then_many_updates():
    net = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(net.parameters())
    env = Env()
    with rlbench.profile() as report:
        for _ in range(16):
            obs = env.reset()
            for _ in range(64):
                with torch.no_grad():
                    action = net(obs).argmax().item()
                obs, _, _ = env.step(action)
            for _ in range(32):
                loss = net(torch.rand(8, 2)).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    assert check(report) >= {"env", "action", "forward", "backward", "optimizer"}
    assert report.evidence.counted.updates > 0
