"""What the settings of PPO do to its speed and to what it learns, one changed at a time: a guide that is measured.

Each setting is changed alone from a base, with several seeds. A training is judged twice: after as many env steps as the base,
and after as many seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch

from rlbench.config import ConfigError, PPOConfig
from rlbench.experiments import game_training
from rlbench.results import Row
from rlbench.speedups import Choices
from rlbench.stats import bootstrap_interval, interquartile_mean
from rlbench.study import Plan, Variant, study, summarise
from rlbench.timing import MIN_ROUNDS
from rlbench.workloads import GAMES, workload

BASE = "base"
AXES = {  # by name, what the setting is
    "batch_size": "samples in a minibatch",
    "num_steps": "steps of each game between rounds of updates",
    "update_epochs": "passes over the samples of a round",
    "hidden": "width of the hidden layers",
    "preset": "a preset's settings, all of them",
}
PRESETS = ("default", "fast")
STEPS, QUICK_STEPS = 196_608, 6_144
TIMES = (1 / 4, 1 / 2, 2, 4)  # of the base's batch_size and num_steps
LOOKS, EPISODES = 8, 200  # evaluations in a training; episodes of each
FEW_SEEDS = "too few seeds"


def settings(name: str, quick: bool = False, steps: int = 0, **changes: Any) -> tuple[Any, PPOConfig]:
    """The rules of a game by its name, and the base: what suits the game, with a step size that does not fall.

    So a training that is stopped midway is what a shorter one would have been. `steps` (0 for its own number) are rounded up to
    whole rounds of the longest kind that is tried, so that all end after as many.

    Raises:
        ConfigError: for an unknown game.
    """
    if name not in GAMES:
        raise ConfigError(f"game={name!r} is unknown: accepted are {', '.join(GAMES)}.")
    if GAMES[name]:
        rules, config = game_training.settings(name, quick, **changes)
    else:
        small = game_training.SMALL if quick else {}
        rules = workload(name).env
        config = workload(name).config(trainer="ppo", **{"anneal_lr": False, **small, **changes})
    longest = max(TIMES) * config.num_envs * config.num_steps
    total = -(-(steps or (QUICK_STEPS if quick else STEPS)) // longest) * longest
    looks = {"eval_frequency": total // (LOOKS // 2 if quick else LOOKS), "log_frequency": total // LOOKS}
    own = {"total_timesteps": total, "eval_episodes": EPISODES, **looks, **changes}
    return rules, config.replace(**own)


def changes(base: PPOConfig, quick: bool = False) -> dict[str, tuple[str, PPOConfig]]:
    """By label, the setting that is changed and what comes of it. What would change nothing is left out."""
    times = (min(TIMES), max(TIMES)) if quick else TIMES
    values: dict[str, list[Any]] = {
        name: [max(1, round(getattr(base, name) * factor)) for factor in times] for name in ("batch_size", "num_steps")
    }
    values["update_epochs"] = [1, 8] if quick else [1, 2, 8, 16]
    values["hidden"] = [(width,) * len(base.hidden) for width in ((32, 256) if quick else (32, 64, 128, 256, 512))]
    made = {
        f"{name}={_short(value)}": (name, base.replace(**{name: value})) for name in values for value in values[name]
    }
    kept = ("total_timesteps", "eval_episodes", "eval_frequency", "eval_opponent", "log_frequency", "anneal_lr", "seed")
    same = {name: getattr(base, name) for name in kept}
    made |= {f"preset {name}": ("preset", PPOConfig.preset(name, **same)) for name in PRESETS}
    return {label: found for label, found in made.items() if found[1] != base}


def _short(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def guide(
    game: str = "othello4",
    steps: int = 0,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    *,
    axes: Sequence[str] = tuple(AXES),
    choices: Choices | None = None,
    device: str = "cpu",
    quick: bool = False,
    progress: bool | None = None,
    should_stop: Callable[[], bool] | None = None,
    **base: Any,
) -> list[Row]:
    """Train the base and every change of it with every seed; rows of `study`, and in each `axis`, `value` and `game`.

    Args:
        game: by its name, such as "othello4" or "bandit".
        steps: env steps of each training; 0 takes its own number.
        axes: which settings are changed; see `AXES`.
        choices: how all are computed; fast() where left out.
        quick: fewer values and steps.
        base: settings of the base that differ from those that suit the game.

    Raises ConfigError for an unknown game or axis, and what `study` raises.
    """
    unknown = [axis for axis in axes if axis not in AXES]
    if unknown or not axes:
        raise ConfigError(f"axes={list(axes)!r} is refused: accepted are one or more of {', '.join(AXES)}.")
    rules, config = settings(game, quick, steps, **base)
    choices = choices or Choices.fast(device)
    made = {label: each for label, each in changes(config, quick).items() if each[0] in axes}
    variants = [Variant(BASE, choices, config), *(Variant(label, choices, own) for label, (_, own) in made.items())]
    plan = Plan("guide", tuple(variants), torch.device(device))
    rows = study(plan, rules, env_name=game, seeds=seeds, progress=progress, should_stop=should_stop)
    return [{**row, "game": game, **_facts(variants[row["rung"]], made)} for row in rows]


def _facts(variant: Variant, made: Mapping[str, tuple[str, PPOConfig]]) -> dict[str, Any]:
    """Which setting a variant changes, and to what."""
    if variant.label == BASE:
        return {"axis": BASE, "value": ""}
    axis = made[variant.label][0]
    value = variant.label.removeprefix("preset ") if axis == "preset" else _short(getattr(variant.config, axis))
    return {"axis": axis, "value": value}


def table(rows: Sequence[Row] | pd.DataFrame) -> pd.DataFrame:
    """One row a change, the base first.

    Columns, with _low and _high where there is an interval (95 % over seeds):
        axis, value, label, seeds, updates, sps (median), sps_ratio (over the base's within a seed), aa_low, aa_high, speed (the
        verdict), result (interquartile mean of the last return), by_steps (its difference from the base's after as many env
        steps), by_seconds (that after as many seconds as the quicker of the two took), and the verdicts steps_verdict and
        seconds_verdict: "better", "worse", "no difference seen" or "too few seeds".
    """
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
    trained = frame[frame["not_measured"].isna() & (frame["role"] != "again")]
    of_label = summarise(frame).set_index("label")
    base = _by_seed(trained[trained["role"] == "baseline"])
    made = []
    for label, part in trained.groupby("label", sort=False):
        own, head, speed = _by_seed(part), part.iloc[0], of_label.loc[label]
        shared = base.index.intersection(own.index)
        after = [_returns(base.loc[seed], own.loc[seed]) for seed in shared]
        kept = {
            name: speed[name] for name in ("sps", "sps_ratio", "sps_ratio_low", "sps_ratio_high", "aa_low", "aa_high")
        }
        made.append(
            {"axis": head["axis"], "value": head["value"], "label": label, "seeds": len(shared)}
            | {"updates": int(head["updates"]), **kept, "speed": speed["speed"], "rung": head["rung"]}
            | {"result": speed["return_iqm"], "result_low": speed["return_low"], "result_high": speed["return_high"]}
            | _difference("steps", [own - base for base, own, *_ in after])
            | _difference("seconds", [own - base for *_, base, own in after])
        )
    return pd.DataFrame(made).sort_values("rung", kind="stable").drop(columns="rung").reset_index(drop=True)


def _by_seed(part: pd.DataFrame) -> pd.DataFrame:
    return part.drop_duplicates("seed").set_index("seed").sort_index()


def _returns(base: pd.Series, own: pd.Series) -> tuple[float, float, float, float]:
    """The returns of two trainings at their ends, and after the seconds that the quicker one took."""
    seconds = min(float(base["train_s"]), float(own["train_s"]))
    return (
        float(base["mean_return"]), float(own["mean_return"]), return_at(base, seconds), return_at(own, seconds),
    )  # fmt: skip


def return_at(row: pd.Series | Mapping[str, Any], seconds: float) -> float:
    """The return after so many seconds of a training: on a straight line between evaluations, which starts at chance."""
    looks = [(0.0, float(row["random_return"])), *((at, value) for _, at, value in row["evaluations"])]
    return float(np.interp(seconds, *np.array(looks, float).T))


def _difference(name: str, gained: Sequence[float]) -> dict[str, Any]:
    """Differences within a seed in sum, with an interval and a verdict."""
    values = np.asarray(gained, float)
    if not len(values) or not np.isfinite(values).all():
        return {
            f"by_{name}": np.nan,
            f"by_{name}_low": np.nan,
            f"by_{name}_high": np.nan,
            f"{name}_verdict": "not evaluated",
        }
    low, high = bootstrap_interval(values, interquartile_mean)
    verdict = "better" if low > 0 else "worse" if high < 0 else "no difference seen"
    if len(values) < MIN_ROUNDS:
        verdict = FEW_SEEDS
    centre = float(interquartile_mean(values))
    return {f"by_{name}": centre, f"by_{name}_low": low, f"by_{name}_high": high, f"{name}_verdict": verdict}
