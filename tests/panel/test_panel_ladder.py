"""The ladder's marks stand where the numbers say; nothing is drawn outside."""

import math

import pytest

from rlbench.panel.ladder import COLOURS, UNDECIDED, draw_ladder, draw_state, png


def rung(choices="fast", ratio=1.5, low=1.4, high=1.6, band=1.02, verdict="faster", **other):
    row = {
        "choices": choices,
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "aa_low": 1 / band,
        "aa_high": band,
    }
    return {**row, "verdict": verdict, "mean_return": 9.5, "plain_return": math.nan, "rounds": 1, "note": "", **other}


def colour(name):
    from matplotlib.colors import to_rgba

    return to_rgba(COLOURS.get(name, UNDECIDED))


def test_bars_begin_at_one_and_end_at_the_ratio():
    rows = [
        rung(),
        rung("naive", 0.4, 0.35, 0.5, verdict="slower"),
        rung("x", 1.01, 0.9, 1.1, 1.2, "no difference seen"),
    ]
    (axes,) = draw_ladder(rows).axes
    bands, bars = axes.patches[::2], axes.patches[1::2]
    for row, band, bar in zip(rows, bands, bars, strict=True):
        assert bar.get_x() == 1 and bar.get_x() + bar.get_width() == pytest.approx(row["ratio"])
        assert bar.get_facecolor() == colour(row["verdict"])
        assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((row["aa_low"], row["aa_high"]))
    intervals = [tuple(line.get_xdata()) for line in axes.lines[:3]]
    assert intervals == [(1.4, 1.6), (0.35, 0.5), (0.9, 1.1)]


@pytest.mark.parametrize(("low", "high"), [(0.98, 1.02), (0.004, 0.006), (150.0, 400.0), (0.1, 60.0)])
def test_the_axis_holds_every_interval_and_one(low, high):
    (axes,) = draw_ladder([rung(ratio=math.sqrt(low * high), low=low, high=high)]).axes
    left, right = axes.get_xlim()
    assert left < min(low, 0.8) and right > max(high, 1.25)
    ticks = axes.get_xticks()
    assert 1 in ticks and 1 <= len(ticks) <= 10 and all(left <= tick <= right for tick in ticks)


def test_remarks_name_interval_verdict_and_both_returns():
    (axes,) = draw_ladder([rung(note="quick: do not cite")]).axes
    assert axes.texts[0].get_text() == (
        "1.50x  [1.40, 1.60]  faster\nreturn 9.5, plain n/a; 1 round (quick: do not cite)"
    )


def test_long_labels_are_broken_between_slots():
    (axes,) = draw_ladder([rung("replay=ring_torch, optimizer=foreach, metrics=item_each_step")]).axes
    lines = axes.get_yticklabels()[0].get_text().split("\n")
    assert lines == ["replay=ring_torch", "optimizer=foreach", "metrics=item_each_step"]


def test_state_with_and_without_a_ladder():
    slots = [("replay", "ring_torch", True, ""), ("conversion", "not used", False, "rows are tensors")]
    alone, both = draw_state("title", slots, "note", []), draw_state("title", slots, "note", [rung()])
    assert (len(alone.axes), len(both.axes)) == (1, 2)
    texts = [text.get_text() for text in alone.axes[0].texts]
    assert texts == ["replay", "ring_torch", "", "conversion", "not used", "rows are tensors", "note"]
    for figure in (alone, both):
        assert png(figure).startswith(b"\x89PNG")


def test_a_long_remark_takes_the_room_that_it_needs():
    long = "without native: " + "a reason " * 40
    slots = [
        ("loop", "python", False, long),
        ("environments", "one_by_one", False, long),
        ("replay", "deque", True, ""),
    ]
    figure = draw_state("title", slots, "note", [])
    png(figure)
    boxes = [text.get_window_extent() for text in figure.axes[0].texts if text.get_text()]
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[i + 1 :])
