"""Where the labels of a map go: beside what they name, and never on one another."""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DIRECTIONS = 16
RINGS = 40

MARK_RADIUS = 4.0
COST_OF_COVERING = 25.0
"""A label goes this many pixels further away to leave one more mark uncovered."""


def text_width(text: str, font_size: float) -> float:
    """Return about how wide a text is; letters of Chinese, Japanese and Korean are square."""
    ems = sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6 for letter in text)
    return ems * font_size


def place_labels(centers: Floats, sizes: Floats, points: Floats, box: Floats) -> Floats:
    """Return the middle of each label, as near to its centre as the others and the marks allow.

    Parameters
    ----------
    centers : ndarray, shape (n, 2)
        Where each label would be best.
    sizes : ndarray, shape (n, 2)
        Widths and heights.
    points : ndarray, shape (m, 2)
        Marks, better left uncovered.
    box : ndarray, shape (2,)
        Width and height of the drawing.

    Examples
    --------
    Two labels for one place stand one above the other:

    >>> import numpy as np
    >>> from rankshot.report.label_places import place_labels
    >>> middle, size = [50.0, 50.0], [40.0, 10.0]
    >>> place_labels(np.array([middle] * 2), np.array([size] * 2), np.empty((0, 2)),
    ...              np.array([100.0, 100.0])).tolist()
    [[50.0, 50.0], [50.0, 40.0]]
    """
    places = np.empty_like(centers)
    sums = _sums(points, box)
    # The widest have the fewest places to go, so they choose first.
    for chosen, label in enumerate(order := np.argsort(-sizes[:, 0], kind="stable")):
        free = _candidates(centers[label], sizes[label], box)
        reach = (sizes[label] + sizes[order[:chosen]]) / 2
        overlap = _overlap(free, places[order[:chosen]], reach).sum(axis=1)
        covered = _covered(sums, free, sizes[label] / 2 + MARK_RADIUS)
        moved = np.hypot(*(free - centers[label]).T)
        # An overlap costs more than any way, but where no place is free the least of it wins.
        cost = moved + COST_OF_COVERING * covered + 1e4 * overlap
        places[label] = free[np.argmin(cost)]
    return places


def _candidates(center: Floats, size: Floats, box: Floats) -> Floats:
    """Return the centre and rings around it, moved to where the label is inside the box."""
    angles = np.arange(DIRECTIONS) * 2 * np.pi / DIRECTIONS - np.pi / 2
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    # Half a label's height a ring: fine enough to stack labels without a gap.
    radii = np.arange(1, RINGS + 1) * size[1] / 2
    rings = (radii[:, None, None] * circle).reshape(-1, 2)
    moved = center + np.vstack([np.zeros((1, 2)), rings])
    inside: Floats = np.clip(
        moved, np.minimum(size / 2, box / 2), np.maximum(box - size / 2, box / 2)
    )
    return inside.round(6)


def _sums(points: Floats, box: Floats) -> Floats:
    """Return how many points are above and left of each pixel, so that rectangles are counted."""
    width, height = np.ceil(box).astype(int) + 1
    counts = np.zeros((height + 1, width + 1))
    columns, rows = np.clip(np.floor(points), 0, np.ceil(box)).astype(int).T
    np.add.at(counts, (rows + 1, columns + 1), 1)
    sums: Floats = counts.cumsum(axis=0).cumsum(axis=1)
    return sums


def _covered(sums: Floats, places: Floats, half: Floats) -> Floats:
    """Return how many points are within ``half`` a width and height of each place."""
    most = np.array(sums.shape[::-1]) - 1
    left, top = np.clip(np.round(places - half), 0, most).astype(int).T
    right, bottom = np.clip(np.round(places + half), 0, most).astype(int).T
    counts: Floats = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return counts


def _overlap(places: Floats, others: Floats, reach: Floats) -> Floats:
    """Return by how many pixels boxes at ``places`` overlap each other, the lesser of two ways."""
    gap = reach - np.abs(places[:, None] - others)
    least: Floats = gap.min(axis=-1)
    return np.maximum(least, 0)
