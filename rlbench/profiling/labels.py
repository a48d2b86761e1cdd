"""Names beside marks in a picture, so that none lies on another, on a mark or outside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]  # left, bottom, right, top
GAP = 3.0  # pixels between a label and anything else
NEAR = 14.0  # pixels: farther away, a line leads to the mark


def label_marks(
    axis: Axes,
    marks: Sequence[tuple[float, float, str]],
    fontsize: float = 8,
    radius: float = 6,
    colour: str = "#333333",
) -> list[Box]:
    """Write the text of each (x, y, text) beside its mark, in data coordinates, and return where, in pixels.

    The limits of the axis must be set before; `radius` is that of a mark, in points. Places are tried from near to far, and the
    first free one is taken.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = axis.figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()  # settles where the axis lies
    frame = axis.get_window_extent(renderer)
    inside = (frame.x0, frame.y0, frame.x1, frame.y1)
    pixels = figure.dpi / 72
    points = [tuple(axis.transData.transform((x, y))) for x, y, _ in marks]
    taken: list[Box] = [_around(point, radius * pixels) for point in points]
    placed = []
    for (x, y, text), point in zip(marks, points, strict=True):
        written = axis.text(x, y, text, fontsize=fontsize)
        extent = written.get_window_extent(renderer)
        box = free_place(point, (extent.width, extent.height), taken, inside, radius * pixels + GAP)
        written.remove()
        place = tuple((corner - at) / pixels for corner, at in zip(box[:2], point, strict=True))
        far = _distance(point, box) > NEAR * pixels
        more = {"bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5}}
        if far:
            more["arrowprops"] = {"arrowstyle": "-", "color": "#9A9A9A", "linewidth": 0.6, "shrinkB": radius}
        axis.annotate(text, (x, y), xytext=place, textcoords="offset points", fontsize=fontsize, color=colour, **more)
        taken.append(box)
        placed.append(box)
    return placed


def free_place(
    point: tuple[float, float], size: tuple[float, float], taken: Sequence[Box], inside: Box, near: float
) -> Box:
    """The box of this (width, height) that is nearest to the point, inside, and on nothing that is taken; where there is none,
    the one that lies on least."""
    width, height = size
    best, least = None, math.inf
    for ring in range(12):
        distance = near + ring * height * 0.8
        for turn in range(16):
            angle = 2 * math.pi * turn / 16
            x = point[0] + math.cos(angle) * distance + (math.cos(angle) - 1) / 2 * width
            y = point[1] + math.sin(angle) * distance + (math.sin(angle) - 1) / 2 * height
            box = (x, y, x + width, y + height)
            covered = sum(_common(_grown(box), other) for other in taken) + 10 * _outside(box, inside)
            if covered == 0:
                return box
            if covered < least:
                best, least = box, covered
    return best


def _around(point: tuple[float, float], radius: float) -> Box:
    return point[0] - radius, point[1] - radius, point[0] + radius, point[1] + radius


def _grown(box: Box) -> Box:
    return box[0] - GAP, box[1] - GAP, box[2] + GAP, box[3] + GAP


def _common(one: Box, other: Box) -> float:
    """Area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0


def _outside(box: Box, inside: Box) -> float:
    area = (box[2] - box[0]) * (box[3] - box[1])
    return area - _common(box, inside) if _common(box, inside) < area * (1 - 1e-9) else 0.0


def _distance(point: tuple[float, float], box: Box) -> float:
    across = max(box[0] - point[0], 0.0, point[0] - box[2])
    return math.hypot(across, max(box[1] - point[1], 0.0, point[1] - box[3]))
