"""What rows of `experiments.game_training` come to: how far each way got, and whether one learns as another does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rlbench.envs.matches import wilson
from rlbench.experiments.game_training import CHANCE
from rlbench.results import Row
from rlbench.stats import non_inferior

RESULTS = ["wins", "draws", "losses"]


def ends(rows: Sequence[Row] | pd.DataFrame) -> pd.DataFrame:
    """Each way at the end of its time, by opponent, and somebody who moves at random.

    Columns: opponent, label, seeds, env_steps (median), seconds (median), games (of all seeds), wins, draws, losses, win_share
    with win_low and win_high (Wilson, of all these games), score.
    """
    frame = _frame(rows)
    made = []
    for (opponent, label), part in frame[frame["last"]].groupby(["opponent", "label"], sort=False):
        wins, draws, losses = (int(part[name].sum()) for name in RESULTS)
        games = wins + draws + losses
        low, high = wilson(wins, games)
        numbers = {"games": games, "wins": wins, "draws": draws, "losses": losses, "win_share": wins / games}
        made.append(
            {"opponent": opponent, "label": label, "seeds": int(part["seed"].nunique())}
            | {name: float(part[name].median()) for name in ("env_steps", "seconds")}
            | {**numbers, "win_low": low, "win_high": high, "score": (wins + draws / 2) / games}
        )
    return pd.DataFrame(made).sort_values("opponent", key=_as_met, kind="stable").reset_index(drop=True)


def speeds(rows: Sequence[Row] | pd.DataFrame) -> pd.DataFrame:
    """Env steps a second of whole trainings, matches and compilation left out: label, seeds, env_steps, seconds, sps; medians."""
    frame = _frame(rows)
    whole = frame[frame["last"] & (frame["label"] != CHANCE)].drop_duplicates(["label", "seed"])
    whole = whole.assign(sps=whole["env_steps"] / whole["seconds"])
    found = whole.groupby("label", sort=False)[["env_steps", "seconds", "sps"]].median()
    found.insert(0, "seeds", whole.groupby("label", sort=False)["seed"].nunique())
    return found.reset_index()


def shared_marks(rows: Sequence[Row] | pd.DataFrame, labels: Sequence[str]) -> list[int]:
    """The env steps at which all trainings of these ways were looked at, with the same seeds."""
    frame = _frame(rows)
    frame = frame[frame["label"].isin(labels)]
    trainings = len(frame[["label", "seed"]].drop_duplicates())
    counts = frame.drop_duplicates(["label", "seed", "env_steps"])["env_steps"].value_counts()
    return sorted(int(steps) for steps, count in counts.items() if count == trainings)


def same_strength(rows: Sequence[Row] | pd.DataFrame, base: str = "plain", other: str = "fast") -> pd.DataFrame:
    """Does `other` learn what `base` does? Scores (a draw is half a win) after the most env steps that all trainings have seen.

    Columns: opponent, env_steps, seeds, chance, base, other (interquartile means over seeds), difference with low and high (95 %,
    by a bootstrap over seeds), verdict (of non-inferiority, on the scale from chance to base), equal_until (env steps up to which
    both won, drew and lost as many games; 0 for none).
    """
    frame, marks = _frame(rows), shared_marks(rows, [base, other])
    if not marks or not {base, other} <= set(frame["label"]):
        return pd.DataFrame()
    made = []
    for opponent, part in frame.groupby("opponent", sort=False):
        of = {label: part[part["label"] == label] for label in (base, other, CHANCE)}
        scores = [each[each["env_steps"] == marks[-1]].sort_values("seed")["score"] for each in (of[base], of[other])]
        chance = float(of[CHANCE]["score"].iloc[0])
        found = non_inferior(*(each.to_numpy(float) for each in scores), chance)
        made.append(
            {"opponent": opponent, "env_steps": marks[-1], "seeds": found.seeds, "chance": chance, "base": found.plain}
            | {"other": found.other, "difference": found.difference, "low": found.low, "high": found.high}
            | {"verdict": found.verdict, "equal_until": _equal_until(of[base], of[other], marks)}
        )
    return pd.DataFrame(made)


def _equal_until(base: pd.DataFrame, other: pd.DataFrame, marks: Sequence[int]) -> int:
    last = 0
    for mark in marks:
        results = [each[each["env_steps"] == mark].sort_values("seed")[RESULTS].to_numpy(int) for each in (base, other)]
        if not np.array_equal(*results):
            break
        last = mark
    return last


def _as_met(opponents: pd.Series) -> pd.Series:
    """The order of the opponents as the rows have it is that of their strength; kept."""
    order = {name: i for i, name in enumerate(dict.fromkeys(opponents))}
    return opponents.map(order)


def _frame(rows: Sequence[Row] | pd.DataFrame) -> pd.DataFrame:
    return rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(list(rows))
