import itertools

import pytest
from matplotlib.text import Text

from rlbench.plot_style import new_figure
from rlbench.profiling.labels import free_place, label_marks

INSIDE = (0.0, 0.0, 100.0, 100.0)


def apart(one, other):
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_the_first_place_is_to_the_right_of_the_mark():
    left, bottom, right, top = free_place((50.0, 50.0), (20.0, 10.0), [], INSIDE, 5.0)
    assert (left, bottom, right, top) == (55.0, 45.0, 75.0, 55.0)


@pytest.mark.parametrize("point", [(99.0, 50.0), (1.0, 1.0), (50.0, 99.0), (99.0, 1.0)])
def test_labels_stay_inside(point):
    left, bottom, right, top = free_place(point, (20.0, 10.0), [], INSIDE, 5.0)
    assert left >= 0 and bottom >= 0 and right <= 100 and top <= 100


def test_what_is_taken_is_left_free():
    taken = [(55.0, 40.0, 80.0, 60.0)]
    assert apart(free_place((50.0, 50.0), (20.0, 10.0), taken, INSIDE, 5.0), taken[0])


def test_where_nothing_is_free_there_is_a_place_all_the_same():
    box = free_place((50.0, 50.0), (90.0, 90.0), [(0.0, 0.0, 100.0, 100.0)], INSIDE, 5.0)
    assert box[2] - box[0] == pytest.approx(90.0)


@pytest.mark.parametrize("log", [False, True])
def test_a_dozen_marks_in_one_place_have_labels_apart(log):
    figure, (axis,) = new_figure()
    axis.set(xlim=(1, 100), ylim=(1, 100))
    if log:
        axis.set(xscale="log", yscale="log")
    placed = label_marks(axis, [(10.0 + k / 100, 10.0, f"phase {k}, 5 %") for k in range(12)])
    assert all(apart(one, other) for one, other in itertools.combinations(placed, 2))
    assert sorted(text.get_text() for text in axis.texts) == sorted(f"phase {k}, 5 %" for k in range(12))
    # Where they are drawn is where they were placed.
    figure.draw_without_rendering()
    drawn = [Text.get_window_extent(text) for text in axis.texts]  # without the line to the mark
    for one, other in zip(placed, drawn, strict=True):
        assert (one[0], one[1]) == pytest.approx((other.x0, other.y0), abs=4.0)
