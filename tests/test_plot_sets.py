"""Pictures of ids, of layouts and of spreads hold what they are given."""

import pandas as pd
import pytest

from rlbench import plot_sets
from rlbench.plot_style import COLOURS

WHITE = (1.0, 1.0, 1.0)


def filled(axis):
    """(column, row) of the squares that are not white."""
    squares = [patch for patch in axis.patches if patch.get_facecolor()[:3] != WHITE]
    return {(round(patch.get_x() + 0.5), round(patch.get_y() + 0.5)) for patch in squares}


def test_bits_of_an_id_lie_in_rows_of_eight():
    figure = plot_sets.boards({"none": 0, "two": 1 << 19 | 1 << 27, "last": 1 << 63, "all": 2**64 - 1})
    none, two, last, every = figure.axes
    assert filled(none) == set() and filled(two) == {(3, 2), (3, 3)} and filled(last) == {(7, 7)}
    assert len(filled(every)) == 64 and last.get_title() == "last"


@pytest.mark.parametrize("counts", [[3, 1, 9, 3, 5, 2], [4, 4], [1]])
def test_every_action_is_in_every_layout(counts):
    figure = plot_sets.layouts(counts, "title")
    padded, grouped, packed = figure.axes
    assert [len(filled(axis)) for axis in (padded, packed)] == [sum(counts)] * 2
    assert len(padded.patches) == len(counts) * max(counts) and len(grouped.patches) == sum(counts)
    assert f"{len(set(counts))} call" in grouped.get_title()


def test_every_spread_has_its_place():
    numbers = {"ratio_low": 1.5, "ratio_high": 2.5, "aa_low": 0.9, "aa_high": 1.1, "baseline": "loop"}
    rows = [
        {"variant": variant, "spread": spread, "ratio": 2.0, "filled_up": share, **numbers}
        for spread, share in (("all 10", 0.0), ("1 to 20", 0.48))
        for variant in ("loop", "packed", "padded")
    ]
    rows.append({**rows[0], "variant": "native", "ratio": float("nan")})
    figure = plot_sets.over_spreads(pd.DataFrame(rows), "title")
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_xticklabels()] == [
        "all 10\n(0% filled up)",
        "1 to 20\n(48% filled up)",
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "A/A band: no difference seen",
        "packed",
        "padded",
    ]
    assert COLOURS[6] not in plot_sets.TELLABLE  # yellow on white
