"""Iterations of a DQN on a native env in one C call: a Python face for dqn_loop.c."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
import torch

from rlbench.buffers import RingTorch
from rlbench.buffers.rows import SCALARS
from rlbench.config import DQNConfig
from rlbench.native.build import check_layout, load, take_build_seconds
from rlbench.native.dqn import Job, NativeUpdate
from rlbench.native.envs import POINTER, REAL, WHOLE, Key, NativeEnv, Step
from rlbench.random import Purpose
from rlbench.uncopied import Uncopied


class Loop(ctypes.Structure):
    """Kept in step with `struct loop` in dqn_loop.c."""

    _fields_ = (
        *((n, POINTER) for n in ["update", "act", "step", "env"]),
        ("out", Step),
        *((n, WHOLE) for n in ["num_envs", "obs_size", "num_actions", "capacity", "n_step"]),
        *((n, REAL) for n in ["gamma", "tau"]),
        *((n, Key) for n in ["explore", "which", "replay"]),
        *((n, WHOLE) for n in ["head", "size", "iteration", "updates", "env_steps", "losses", "finished"]),
        *((n, POINTER) for n in ["rows", "obs", "sampled", "action", "sampled_action"]),
        *((n, POINTER) for n in ["held_obs", "held_sum", "held_action", "held_steps", "held_first", "held"]),
        *((n, POINTER) for n in ["loss", "returns", "finished_return", "lengths", "finished_length", "finished_step"]),
    )


class Ran(NamedTuple):
    """What happened in a call."""

    losses: np.ndarray  # (updates,) float32
    episodes: list[tuple[int, float, int]]  # (env step, return, length) of each that ended


class NativeIterations(Uncopied):
    """Act, step, store, sample, update and sync the target, as a list of operations says.

    It works on the trainer's own networks and replay, and holds what else there is between two iterations.
    """

    def __init__(self, config: DQNConfig, update: NativeUpdate, env: NativeEnv, replay: RingTorch) -> None:
        self.parts = update, env, replay  # whose memory the C code writes to
        n, d, width = env.num_envs, env.obs_size, replay.rows.shape[1]
        held = (n, config.n_step)
        self.replay, self.env, self.updater = replay, env, update
        self.arrays = {
            "obs": env.first_obs.copy(),
            "sampled": np.zeros((config.batch_size, width), np.float32),
            "action": np.zeros(n, np.int64),
            "sampled_action": np.zeros(config.batch_size, np.int64),
            "held_obs": np.zeros((*held, d), np.float32),
            "held_sum": np.zeros(held),
            "held_action": np.zeros(held, np.int64),
            "held_steps": np.zeros(held, np.int64),
            "held_first": np.zeros(n, np.int64),
            "held": np.zeros(n, np.int64),
            "returns": np.zeros(n),
            "lengths": np.zeros(n, np.int64),
        }
        self.out = {
            "action": self.arrays["action"],
            "obs": np.zeros((n, d), np.float32),
            "next_obs": np.zeros((n, d), np.float32),
            "reward": np.zeros(n),
            "terminated": np.zeros(n, bool),
            "truncated": np.zeros(n, bool),
        }
        # (B,) of the last update, overwritten by the next
        self.target, self.error = torch.zeros(config.batch_size), torch.zeros(config.batch_size)
        self.update_job, self.act_job = self._job(config.batch_size), self._job(n)
        self._point_at_samples(d, width)
        library = load("dqn_loop")
        check_layout(library, "loop", Loop)
        self._run = library.dqn_run
        self._run.restype, self._run.argtypes = WHOLE, (POINTER, WHOLE, POINTER, POINTER)
        self.build_s = take_build_seconds()
        self.struct = self._struct(config)

    def run(self, operation: np.ndarray, argument: np.ndarray, env_steps: int, *, iterations: int, updates: int) -> Ran:
        """Do operations (K,) int64 with their arguments (K,) float64, the first at env step `env_steps`.

        `iterations` of them collect, and `updates` are updates.
        """
        loop, room = self.struct, iterations * self.env.num_envs
        loss = np.empty(updates, np.float32)
        ended = np.empty(room), np.empty(room, np.int64), np.empty(room, np.int64)
        loop.loss = loss.ctypes.data
        loop.finished_return, loop.finished_length, loop.finished_step = (array.ctypes.data for array in ended)
        loop.env_steps, loop.head, loop.size = env_steps, self.replay.head, self.replay.size
        self.update_job.step = self.updater.job.step  # which somebody may have called in between
        bad = self._run(ctypes.addressof(loop), len(operation), operation.ctypes.data, argument.ctypes.data)
        self.replay.head, self.replay.size = loop.head, loop.size
        self.updater.job.step = self.update_job.step
        self.env.refuse(bad, self.arrays["action"])
        returns, lengths, steps = (array[: loop.finished].tolist() for array in ended)
        return Ran(loss, list(zip(steps, returns, lengths, strict=True)))

    def _job(self, rows: int) -> Job:
        """The update's job for another number of rows, with memory of its own to work in."""
        job = Job.from_buffer_copy(self.updater.job)
        job.batch = rows
        work = torch.empty(self.updater.work_size(job))
        self.parts += (work,)
        job.work = work.data_ptr()
        return job

    def _point_at_samples(self, d: int, width: int) -> None:
        """The minibatch of every update: rows as replay packs them, in one place."""
        job, rows = self.update_job, self.arrays["sampled"]
        column = {name: rows.ctypes.data + 4 * (2 * d + i) for i, name in enumerate(SCALARS)}
        self.strides = np.array([1, width, width, width])  # of action, reward, terminated, discount
        job.obs, job.next_obs, job.obs_stride, job.next_stride = (
            rows.ctypes.data,
            rows.ctypes.data + 4 * d,
            width,
            width,
        )
        job.action, job.scalar_strides = self.arrays["sampled_action"].ctypes.data, self.strides.ctypes.data
        job.reward, job.terminated, job.discount = column["reward"], column["terminated"], column["discount"]
        job.next_mask, job.weight, job.mask_stride = None, None, 0
        job.target_out, job.error_out = self.target.data_ptr(), self.error.data_ptr()

    def _struct(self, config: DQNConfig) -> Loop:
        env, replay = self.env, self.replay
        loop = Loop(ctypes.addressof(self.update_job), ctypes.addressof(self.act_job))
        loop.step, loop.env = ctypes.cast(env.function, POINTER), env.address
        loop.out = Step(*(array.ctypes.data for array in self.out.values()))
        loop.num_envs, loop.obs_size, loop.num_actions = env.num_envs, env.obs_size, env.core.num_actions
        loop.capacity, loop.n_step, loop.gamma, loop.tau = replay.capacity, config.n_step, config.gamma, config.tau
        loop.explore, loop.which = Key.of(config.seed, Purpose.EXPLORE), Key.of(config.seed, Purpose.ACTION)
        loop.replay, loop.rows = Key.of(config.seed, Purpose.REPLAY), replay.rows.data_ptr()
        for name, array in self.arrays.items():
            setattr(loop, name, array.ctypes.data)
        return loop
