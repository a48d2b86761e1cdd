"""Where a training's time goes: the same short training under several Choices, with a clock on its phases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlbench.config import Config
from rlbench.machine import StealMeter, describe, resolve_device
from rlbench.phases import PhaseClock
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.trainers.make import make_trainer

PARTS = ("env", "action", "store", "sample", "transfer", "forward", "backward", "optimizer", "update", "sync")
# A loop that runs many iterations in one call is one phase; its parts show under the Python loop.
ORDER = (*PARTS, "iterations", "python", "other")
PPO_ORDER = (
    *("env", "action", "store", "advantages", "old_log_probs", "sample", "transfer"),
    *("forward", "backward", "optimizer", "update", "sync", "python", "other"),
)
ORDERS = {"dqn": ORDER, "ppo": PPO_ORDER}  # by trainer


def profile(
    config: Config,
    choices: Mapping[str, Choices],
    env: Any = "CartPole-v1",
    *,
    device: str = "auto",
    repeats: int = 5,
    order_seed: int = 0,
    progress: bool | None = None,
) -> list[Row]:
    """Train `repeats` times under each of `choices`, interleaved in random order; a row for each run and phase.

    Row: name, repeat, phase (those of `ORDERS`, by the config's trainer), seconds (exclusive), share, total_s, env_steps,
    updates. "other" is what lies outside all phases: the loop itself, checks, syncs of a target network, logging. A clocked
    run on CUDA is slower than a plain one.
    """
    where = resolve_device(device)
    machine, order = describe(steal_interval_s=0), np.random.default_rng(order_seed)
    config = config.replace(eval_episodes=0)
    names = list(choices)
    rows: list[Row] = []
    with Progress(repeats * len(names), "phases", "trainings", progress) as bar:
        _run(config, choices[names[0]], env, where)  # the first run of all pays for loading
        for repeat in range(repeats):
            for which in order.permutation(len(names)):
                name, meter = names[which], StealMeter()
                clock, history = _run(config, choices[name], env, where)
                bar.advance(1, name)
                whole = {"env_steps": history.env_steps, "updates": history.updates, "total_s": clock.total}
                for phase in ORDERS[config.trainer]:
                    own = {
                        "phase": phase,
                        "seconds": clock.seconds.get(phase, 0.0),
                        "share": clock.shares.get(phase, 0.0),
                    }
                    fields = {"name": name, "repeat": repeat, **own, **whole}
                    row = new_row("phase", device=where, seeds=[config.seed], machine=machine, meter=meter, **fields)
                    rows.append(row)
    return rows


def _run(config: Config, choices: Choices, env: Any, device: Any) -> tuple[PhaseClock, Any]:
    trainer = make_trainer(config, choices, env, str(device))
    with PhaseClock(device) as clock:
        history = trainer.train(progress=False)
    return clock, history
