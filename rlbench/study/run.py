"""Whole trainings, speed beside return: several ways to train, the same seeds for each, interleaved.

Seeds are the outer loop. Within a seed every variant trains once, and the baseline twice (the A/A control), in a random
order, so that a drift of the machine falls on all alike and differences can be taken within a seed.

A row is a training. It has `study` (which one it belongs to), `mode, label, baseline`, `role` ("baseline", "again" or
"variant"), `rung` (its place in the plan), `changed, statistical, env, seed`, `position` (in the order of its seed),
`config, choices, env_steps, updates, sps, train_s, total_s, compile_s, mean_return, eval_episodes`, `evaluations` (env
step, seconds, mean return), `random_return, weights_sha256, quick, not_measured`, and what `results.new_row` adds. A
variant that cannot be used here gives one row that says why.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch

from rlbench.config import Config, ConfigError
from rlbench.envs.given_games import as_game
from rlbench.envs.make import factory_of
from rlbench.envs.source import EnvSource, env_source
from rlbench.envs.spaces import EnvError
from rlbench.machine import Machine, StealMeter, describe
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.speedups import SPEEDUPS
from rlbench.stats import CITABLE_SEEDS
from rlbench.study.variants import Plan, Variant, changed
from rlbench.trainers.history import History
from rlbench.trainers.make import make_trainer
from rlbench.trainers.random_play import random_game_return, random_return
from rlbench.trainers.takes import check_takes

AGAIN = " again"  # behind the baseline's label: the A/A control
EMPTY = dict.fromkeys(
    ("env_steps", "updates", "sps", "train_s", "total_s", "compile_s", "mean_return", "weights_sha256")
)


def study(
    plan: Plan,
    env: Any = "CartPole-v1",
    *,
    eval_env: Any = None,
    env_name: str | None = None,
    seeds: Sequence[int] = (1, 2, 3),
    progress: bool | None = None,
    should_stop: Callable[[], bool] | None = None,
    on_row: Callable[[Row], None] | None = None,
    order_seed: int = 0,
) -> list[Row]:
    """Train every variant of `plan` with every seed. Returns a row a training, as above.

    Args:
        env, eval_env: as for `DQN` or `PPO`; every training makes its own. A game is evaluated against the config's
            `eval_opponent`, without an `eval_env`.
        env_name: what rows call it; the env's own name where left out.
        seeds: at least ten of them to cite; fewer are stamped `quick`.
        should_stop: asked at every log point; the training under way is then given up, complete ones are kept.
        on_row: gets each row as soon as it is known.

    Raises ConfigError for no seeds, or one of them twice; EnvError for an env that cannot be used. `order_seed` is that of
    the random order.
    """
    seeds = [int(seed) for seed in seeds]
    if not seeds or len(set(seeds)) != len(seeds):
        raise ConfigError(f"study seeds {seeds}: accepted are one or more different whole numbers, at best ten.")
    should_stop = should_stop or (lambda: False)
    make_env = env if as_game(env) is not None else factory_of(env)
    source, config = env_source(make_env), plan.baseline.config
    check_takes(config.trainer, source)
    if source.game is not None and eval_env is not None:
        raise EnvError(f"{source.name} is a game and is evaluated by matches or its own episodes: leave eval_env out.")
    make_eval = None if source.game is not None else factory_of(eval_env or make_env)
    run = _Study(
        plan=plan.on(source),
        make_env=make_env,
        source=source,
        make_eval=make_eval,
        env_name=env_name or (env if isinstance(env, str) else None),
        seeds=seeds,
        random_return=_random_return(source, make_eval, config, seeds[0], plan.device, should_stop),
        should_stop=should_stop,
        on_row=on_row or (lambda row: None),
    )
    return run.rows(progress, order_seed)


def _random_return(
    source: EnvSource,
    make_eval: Callable[[], Any] | None,
    config: Config,
    seed: int,
    device: torch.device,
    should_stop: Callable[[], bool],
) -> float | None:
    """What chance earns by the evaluation that the trainings get; None without one."""
    if not config.eval_episodes:
        return None
    if make_eval is None:
        return random_game_return(source, config, seed, device, should_stop)
    return random_return(make_eval, config.eval_episodes, seed, should_stop)


def _warm_up_config(config: Config) -> Config:
    """A few updates, no evaluation."""
    envs, none = config.num_envs, {"eval_frequency": 0, "eval_episodes": 0}
    if config.trainer == "ppo":
        rounds = min(config.num_steps, 8)
        return config.replace(num_steps=rounds, total_timesteps=min(config.total_timesteps, envs * rounds), **none)
    steps = min(config.total_timesteps, 25 * config.train_frequency + envs)
    return config.replace(total_timesteps=steps, learning_starts=0, **none)


@dataclasses.dataclass
class _Study:
    """One study under way."""

    plan: Plan
    make_env: Any  # a factory, or a game
    source: EnvSource
    make_eval: Callable[[], Any] | None  # None for a game
    env_name: str | None
    seeds: list[int]
    random_return: float | None
    should_stop: Callable[[], bool]
    on_row: Callable[[Row], None]
    kept: list[Row] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self.name = f"{stamp}-{self.plan.mode}"
        self.machine: Machine = describe(steal_interval_s=0)

    def rows(self, progress: bool | None, order_seed: int) -> list[Row]:
        usable = [variant for variant in self.plan.variants if variant.barred is None]
        for variant in self.plan.variants:
            if variant.barred is not None:
                self._keep(self._row(variant, "variant", None, None, None, StealMeter()))
        runs = [(variant, "variant") for variant in usable[1:]]
        runs += [(self.plan.baseline, "baseline"), (self.plan.baseline, "again")]
        total = len(self.seeds) * sum(variant.config.total_timesteps for variant, _ in runs)
        with Progress(total, "study", "steps", progress) as bar:
            if self.should_stop() or not self._warm_up():
                return self.kept
            for seed in self.seeds:
                order = np.random.default_rng([order_seed, seed]).permutation(len(runs))
                for position, which in enumerate(order.tolist()):
                    if not self._train(*runs[which], seed, position, bar):
                        return self.kept
        return self.kept

    def _warm_up(self) -> bool:
        """A short training that is thrown away, so that the first one kept does not pay for loading libraries.

        False where it was interrupted.
        """
        base = self.plan.baseline
        trainer = make_trainer(_warm_up_config(base.config), base.choices, self.make_env, str(self.plan.device))
        interrupted = trainer.train(progress=False).interrupted
        trainer.close()
        return not interrupted

    def _train(self, variant: Variant, role: str, seed: int, position: int, bar: Progress) -> bool:
        """One training; False where it was given up."""
        if self.should_stop():
            return False
        meter = StealMeter()
        config = variant.config.replace(seed=seed)
        trainer = make_trainer(config, variant.choices, self.make_env, str(self.plan.device), self.make_eval)
        done = bar.done

        def on_log(state: dict) -> None:
            bar.advance(done + min(state["step"], state["total"]) - bar.done, f"{variant.label}, seed {seed}")
            if self.should_stop():
                trainer.stop()

        history = trainer.train(progress=False, on_log=on_log)
        trainer.close()
        if history.interrupted:
            return False
        self._keep(self._row(variant, role, seed, position, history, meter))
        return True

    def _keep(self, row: Row) -> None:
        self.kept.append(row)
        self.on_row(row)

    def _row(
        self,
        variant: Variant,
        role: str,
        seed: int | None,
        position: int | None,
        history: History | None,
        meter: StealMeter,
    ) -> Row:
        base = self.plan.baseline
        used = variant.in_use(self.plan.device, self.source) if history is None else history.choices
        return new_row(
            "training",
            device=self.plan.device,
            seeds=[] if seed is None else [seed],
            machine=self.machine,
            meter=meter,
            study=self.name,
            mode=self.plan.mode,
            label=variant.label + (AGAIN if role == "again" else ""),
            baseline=base.label,
            role=role,
            changed=changed(variant, base, self.plan.device, self.source),
            statistical=_statistical(used),
            rung=self.plan.variants.index(variant),
            env=self.env_name or (history.env if history is not None else None),
            seed=seed,
            position=position,
            config=dataclasses.asdict(variant.config if seed is None else variant.config.replace(seed=seed)),
            choices=used,
            **_numbers(history),
            random_return=self.random_return,
            quick=len(self.seeds) < CITABLE_SEEDS,
            not_measured=variant.barred,
        )


def _numbers(history: History | None) -> Row:
    """What a training reached, and how fast; empty without one."""
    if history is None:
        return {**EMPTY, "eval_episodes": 0, "evaluations": []}
    summary = history.summary()
    evaluations = history.evaluations[["env_step", "seconds", "mean_return"]].to_numpy(float).tolist()
    return {**{name: summary[name] for name in (*EMPTY, "eval_episodes")}, "evaluations": evaluations}


def _statistical(used: Mapping[str, str]) -> list[str]:
    """The slots filled with a variant whose outcome is the same in distribution only (the plainest one is exact)."""
    return [s for s, v in used.items() if SPEEDUPS[s].sameness == "statistical" and v != SPEEDUPS[s].plainest]
