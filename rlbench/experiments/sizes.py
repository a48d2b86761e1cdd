"""Batch size, width and kind of network against return as well as time (claims A3, A14, B8, B11).

The market is mean-reverting, so that the best that anyone could earn there is known; an observation is a window of bars with
the usual features, most of which are noise to it. Every configuration trains for as many env steps, with as many updates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from rlbench.buffers import RowSpec
from rlbench.config import NETWORKS, ConfigError, DQNConfig
from rlbench.models import describe_network
from rlbench.results import Row
from rlbench.speedups import Choices
from rlbench.stats import bootstrap_interval, interquartile_mean
from rlbench.study import Plan, Variant, study, summarise
from rlbench.trainers.evaluate import evaluate

if TYPE_CHECKING:
    from rlbench.market import Market

WINDOW, BARS = 4, 30_000
BATCH_SIZES, QUICK_BATCH_SIZES = (32, 128, 256, 512), (32, 128, 512)
WIDTHS, QUICK_WIDTHS = (32, 64, 128, 256), (32, 64, 256)
AXES = ("batch", "width", "network")  # what a configuration changes; the first one changes nothing


def settings(quick: bool = False, **changes: Any) -> DQNConfig:
    """What is changed one at a time: the trading preset with a smaller batch, and a step size that learns within its time."""
    own = {"batch_size": 128, "learning_rate": 3e-3, "learning_starts": 500, "eval_episodes": 20 if quick else 40}
    return DQNConfig.preset("trading", **{**own, "total_timesteps": 4_000 if quick else 60_000, **changes})


def market(bars: int = BARS, seed: int = 1) -> Market:
    """An Ornstein-Uhlenbeck price whose bars have the standard features and, last, the deviation from the mean."""
    from rlbench.market import from_prices
    from rlbench.simulate import ornstein_uhlenbeck

    known = ornstein_uhlenbeck(bars, seed=seed)
    given = pd.DataFrame(known.raw_features, columns=list(known.feature_names), index=known.prices.index)
    return from_prices(known.prices, name=known.name, given=given, simulated=True, process=known.process)


def plan_of_sizes(config: DQNConfig, choices: Choices, device: str = "cpu", quick: bool = False) -> Plan:
    """The settings as given, and with batch size, width of all hidden layers, or network changed, one at a time."""
    batch_sizes, widths = (QUICK_BATCH_SIZES, QUICK_WIDTHS) if quick else (BATCH_SIZES, WIDTHS)
    made = {f"batch {n}": config.replace(batch_size=n) for n in batch_sizes}
    made |= {f"width {n}": config.replace(hidden=(n,) * len(config.hidden)) for n in widths}
    made |= {name: config.replace(network=name) for name in NETWORKS}
    variants = [Variant("as given", choices, config)]
    variants += [Variant(label, choices, other) for label, other in made.items() if other != config]
    return Plan("sizes", tuple(variants), torch.device(device))


def sizes(
    config: DQNConfig,
    seeds: Sequence[int],
    *,
    choices: Choices | None = None,
    device: str = "cpu",
    window: int = WINDOW,
    bars: int = BARS,
    quick: bool = False,
    progress: bool | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[Row]:
    """Train every configuration of `plan_of_sizes` with every seed; a row of `study` for each training, and in it
    `axis`, `batch_size`, `network`, `hidden`, `parameters`, `forward_flops`, `update_flops`, `samples` (replayed in all),
    `samples_per_s`, and `best_return`, that of the best causal policy in the same episodes.

    Args:
        choices: how all are computed; plain() where left out, which computes every network alike.

    Raises ConfigError where nothing would be evaluated, and what `study` raises.
    """
    from rlbench.envs.trading import TradingEnv

    if not config.eval_episodes:
        raise ConfigError("eval_episodes=0 leaves a study of return without returns: at least 1 is accepted.")
    parts = market(bars).split()
    train, held_out = (lambda part=part: TradingEnv(part, window=window) for part in (parts.train, parts.validation))
    plan = plan_of_sizes(config, choices or Choices.plain(device), device, quick)
    name = f"{parts.train.name}, window {window}"
    rows = study(plan, train, eval_env=held_out, env_name=name, seeds=seeds, progress=progress, should_stop=should_stop)
    env = held_out()
    spec = RowSpec(env.observation_space.shape[0], int(env.action_space.n), layout=env.layout)
    facts = {variant.label: _facts(variant, plan.baseline, spec) for variant in plan.variants}
    best = {seed: _best(parts.validation, held_out, config.eval_episodes, seed) for seed in map(int, seeds)}
    return [_with(row, facts[plan.variants[row["rung"]].label], best) for row in rows]


def _facts(variant: Variant, baseline: Variant, spec: RowSpec) -> dict[str, Any]:
    """What a configuration is and costs."""
    own, base = variant.config, baseline.config
    differs = [own.batch_size != base.batch_size, own.hidden != base.hidden, own.network != base.network]
    axis = dict(zip(differs, AXES, strict=True)).get(True, "as given")
    return {"axis": axis, "batch_size": own.batch_size, **describe_network(own, spec)}


def _best(part: Market, make_env: Callable[[], Any], episodes: int, seed: int) -> float:
    """Mean return of the best causal policy, in the episodes in which a trained one is evaluated."""
    from rlbench.envs.ou_optimum import best_causal_policy

    env = make_env()
    policy = best_causal_policy(part.process or {}, env.positions, env.fee, env.slippage, progress=False)
    returns = evaluate(policy.from_observation(part), make_env, episodes, seed)
    return float(np.mean(returns)) if returns else float("nan")


def _with(row: Row, facts: dict[str, Any], best: dict[int, float]) -> Row:
    updates, seconds = row["updates"], row["train_s"]
    samples = None if updates is None else updates * facts["batch_size"]
    rate = None if samples is None or not seconds else samples / seconds
    return {**row, **facts, "samples": samples, "samples_per_s": rate, "best_return": best.get(row["seed"])}


def table(rows: Sequence[Row] | pd.DataFrame) -> pd.DataFrame:
    """One row a configuration: what it is and costs, seconds and samples a second (medians over seeds), return.

    Columns: label, axis, network, batch_size, hidden, parameters, update_flops, seconds, samples_per_s, share with its
    interval (interquartile mean over seeds of the return as a share of the best causal policy's), share_difference with its
    interval (against the first row), gain_per_sample (share above chance for each million samples replayed), time_ratio with
    its interval (seconds over those of the first row, within a seed), speed (the verdict), learns, update, seeds.
    """
    frame = pd.DataFrame(list(rows)) if not isinstance(rows, pd.DataFrame) else rows
    trained = frame[frame["not_measured"].isna() & (frame["role"] != "again")]
    of_label = summarise(frame).set_index("label")
    first = _shares(trained[trained["role"] == "baseline"])
    made = []
    for label, part in trained.groupby("label", sort=False):
        head, summary = part.iloc[0], of_label.loc[label]
        kept = {n: head[n] for n in ("axis", "network", "batch_size", "hidden", "parameters", "update_flops")}
        chance = head["random_return"] / part["best_return"].mean()
        shares = _shares(part)
        low, high = bootstrap_interval(part["train_s"].to_numpy(float), np.median)
        numbers = {
            **_interval("seconds", float(part["train_s"].median()), (low, high)),
            "samples_per_s": float(part["samples_per_s"].median()),
            **_interval("share", float(interquartile_mean(shares)), bootstrap_interval(shares, interquartile_mean)),
            **_interval("share_difference", *_difference(first, shares)),
            "gain_per_sample": (float(interquartile_mean(shares)) - chance) / (head["samples"] / 1e6),
            **_interval(
                "time_ratio", 1 / summary["sps_ratio"], (1 / summary["sps_ratio_high"], 1 / summary["sps_ratio_low"])
            ),
        }
        words = {"speed": summary["speed"], "learns": summary["learns"], "update": head["choices"]["update"]}
        made.append({"label": label, "rung": head["rung"], **kept, **numbers, **words, "seeds": len(part)})
    return pd.DataFrame(made).sort_values("rung").drop(columns="rung").reset_index(drop=True)


def _shares(part: pd.DataFrame) -> np.ndarray:
    """Return over the best causal policy's, a seed each, by seed."""
    part = part.sort_values("seed")
    return part["mean_return"].to_numpy(float) / part["best_return"].to_numpy(float)


def _difference(base: np.ndarray, own: np.ndarray) -> tuple[float, tuple[float, float]]:
    """Interquartile mean of the differences within a seed, whose evaluation episodes are the same; its interval."""
    gained = own - base
    return float(interquartile_mean(gained)), bootstrap_interval(gained, interquartile_mean)


def _interval(name: str, value: float, ends: tuple[float, float]) -> dict[str, float]:
    return {name: value, f"{name}_low": ends[0], f"{name}_high": ends[1]}
