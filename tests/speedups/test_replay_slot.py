"""What the replay slot refuses, and the streams it is measured on."""

import numpy as np
import pytest
import torch

from rlbench import DQNConfig
from rlbench.batch import Layout
from rlbench.buffers import RingFrames, RingNumpy, RowSpec
from rlbench.envs.source import EnvSource
from rlbench.speedups.conversion import StackOnce
from rlbench.speedups.replay import SPEEDUP, windowed_transitions

CPU = torch.device("cpu")


def source(layout=None, vector=False, mode="SAME_STEP"):
    given = type("Given", (), {"metadata": {"autoreset_mode": mode}})()
    return EnvSource(given, "X-v0", None, vector=vector, layout=layout)


@pytest.mark.parametrize(
    ("config", "env", "says"),
    [
        (None, None, None),
        (DQNConfig(), source(Layout(4, 2, 1)), None),
        (None, source(Layout(4, 2, 1), vector=True), None),
        (None, source(), "X-v0 does not say that its observations are windows"),
        (None, source(Layout(1, 4, 1)), "a window of 1 bar shares nothing"),
        (None, source(Layout(4, 2, 1), vector=True, mode="NEXT_STEP"), "X-v0 resets in a step of its own"),
        (DQNConfig(n_step=3), None, "n_step=3 makes rows that span several bars"),
    ],
)
def test_frames_are_refused_with_a_reason(config, env, says):
    reason = SPEEDUP.requires("ring_frames", None, config, CPU, env)
    assert (reason is None) if says is None else reason.startswith(says)
    assert all(SPEEDUP.requires(v, None, config, CPU, env) is None for v in SPEEDUP.variants if v != "ring_frames")


def test_frames_are_refused_where_rows_do_not_come_from_the_host():
    choices = type("Choices", (), {"loop": "fused"})()
    assert "loop='fused' keeps them elsewhere" in SPEEDUP.requires("ring_frames", choices, None, CPU, None)


@pytest.mark.parametrize(("steps", "envs", "episode"), [(1, 1, 5), (23, 3, 5), (10, 2, 5)])
def test_windows_of_made_up_rows_move_on_within_episodes(steps, envs, episode):
    spec = RowSpec(7, 3, layout=Layout(3, 2, 1), num_envs=envs)
    rows = windowed_transitions(steps, spec, 0, episode)
    obs, after = (f.reshape(steps, envs, 7) for f in (rows.obs, rows.next_obs))
    assert (obs[:, :, 2:6] == after[:, :, :4]).all()
    goes_on = (obs[1:, :, :6] == after[:-1, :, :6]).all(axis=(1, 2))
    assert goes_on.tolist() == [(step + 1) % episode != 0 for step in range(steps - 1)]
    frames, whole = RingFrames(spec, steps * envs), RingNumpy(spec, steps * envs)
    for replay in (frames, whole):
        replay.add(rows)
    index = np.arange(steps * envs)
    SPEEDUP.check(StackOnce()(whole.sample(index)), frames.sample(index))
