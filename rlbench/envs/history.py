"""What one step and one episode of the trading env leave behind."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd


class StepState(NamedTuple):
    """What a custom `reward=` function gets, once a step, after the step."""

    bar: int  # index of the bar that has just closed
    close: float  # its close
    previous_close: float  # the close at which the action filled
    equity: float  # at this close
    previous_equity: float  # at the previous close, before the fill
    position: float  # target position chosen by the action (0 after bankruptcy)
    exposure: float  # value of the shares over equity, as drifted to
    filled: bool  # whether the action traded
    terminated: bool  # bankrupt


def episode_frame(
    close: Sequence[float], start: int, equities: list[float], actions: list[int], positions: tuple[float, ...]
) -> pd.DataFrame:
    """An episode as a table with a row a bar: bar, close, equity, action, position, filled.

    `equities` (steps + 1,) begins with the equity at reset, `actions` has one index a step. `action` and `position` are
    those chosen at that bar's close (missing in the last row, where none has been chosen yet); `filled` tells whether
    the choice traded.
    """
    end = start + len(equities)
    held = positions.index(0.0) if 0.0 in positions else -1
    filled = [action != before for action, before in zip(actions, [held, *actions], strict=False)]
    return pd.DataFrame(
        {
            "bar": np.arange(start, end),
            "close": np.array(close[start:end], dtype=np.float64),
            "equity": np.array(equities, dtype=np.float64),
            "action": pd.array([*actions, None], dtype="Int64"),
            "position": [*(positions[action] for action in actions), math.nan],
            "filled": [*filled, False],
        }
    )
