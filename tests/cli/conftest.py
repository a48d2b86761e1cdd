"""A command as a reader runs it, without the price of a process."""

import json
import sys

import pytest

from rlbench.cli.app import main
from rlbench.speedups import choices

ENVS = '''
import os
import signal

import gymnasium
import numpy as np


class Corridor(gymnasium.Env):
    """Four steps; action 1 earns 1."""

    observation_space = gymnasium.spaces.Box(0, 4, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.array([0], np.float32), {}

    def step(self, action):
        self.at += 1
        return np.array([self.at], np.float32), float(action), self.at == 4, False, {}


class Interrupted(Corridor):
    """As if somebody pressed Ctrl-C at the hundredth step, or at INTERRUPT_AT."""

    steps = 0

    def step(self, action):
        Interrupted.steps += 1
        if Interrupted.steps == int(os.environ.get("INTERRUPT_AT", 100)):
            signal.raise_signal(signal.SIGINT)
        return super().step(action)
'''
TINY = [
    "--total-timesteps",
    "200",
    "--learning-starts",
    "50",
    "--hidden",
    "8",
    "--batch-size",
    "8",
    "--eval-episodes",
    "3",
]


class Ran:
    """What a command gave back and said."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def document(self):
        """The JSON document in the last line of standard output."""
        return json.loads(self.out.splitlines()[-1])


@pytest.fixture
def told_again():
    """Sentences that a process tells once are told to this test, whatever ran before."""
    choices.say_once.cache_clear()


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """Call it with a command line; the working folder is empty but for cli_envs.py."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "cli_envs", raising=False)
    (tmp_path / "cli_envs.py").write_text(ENVS)

    def call(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call


@pytest.fixture
def tiny():
    """Settings of a training that takes a blink."""
    return TINY
