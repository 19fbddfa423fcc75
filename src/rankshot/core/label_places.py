"""Where the labels of a map go: near what they name, beside each other, and off the marks."""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MARK_RADIUS = 4.0
DIRECTIONS = 16
RINGS = 10
"""A label is tried in this many directions, at this many distances: half a line apart. A longer
leader would cross other labels."""
ROUNDING = 1e-5
"""Labels that overlap by less, in pixels, are beside each other."""
COST_OF_COVERING = 25.0
"""A label moves this many pixels further away to leave one more mark uncovered."""
MAX_COVERED = 3
"""A label that covers more marks than this hides more than it tells."""


def text_width(text: str, font_size: float) -> float:
    """Return the approximate width of a text; Chinese, Japanese and Korean letters are square."""
    ems = sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6 for letter in text)
    return ems * font_size


def place_labels(centers: Floats, sizes: Floats, points: Floats, box: Floats) -> Floats:
    """Return the middle of each label, as near to its centre as other labels and marks allow.

    A label that would overlap others, or many marks, wherever it is put has no place: NaN.

    Parameters
    ----------
    centers : ndarray, shape (n, 2)
        The best place of each label.
    sizes : ndarray, shape (n, 2)
        Widths and heights.
    points : ndarray, shape (m, 2)
        Marks, which the labels should not cover.
    box : ndarray, shape (2,)
        Width and height of the chart.

    Examples
    --------
    Two labels for the same place are put one above the other:

    >>> import numpy as np
    >>> from rankshot.core.label_places import place_labels
    >>> middle, size = [50.0, 50.0], [40.0, 10.0]
    >>> place_labels(np.array([middle] * 2), np.array([size] * 2), np.empty((0, 2)),
    ...              np.array([100.0, 100.0])).tolist()
    [[50.0, 50.0], [50.0, 40.0]]

    In a box for one label, the second has no place:

    >>> place_labels(np.array([[20.0, 5.0]] * 2), np.array([size] * 2), np.empty((0, 2)),
    ...              np.array([40.0, 10.0])).tolist()
    [[20.0, 5.0], [nan, nan]]
    """
    places = np.full(centers.shape, np.nan)
    sums = _cumulative_counts(points, box)
    # The widest label has the fewest possible places, so it is placed first.
    for chosen, label in enumerate(order := np.argsort(-sizes[:, 0], kind="stable")):
        free = _candidate_places(centers[label], sizes[label], box)
        placed = order[:chosen][~np.isnan(places[order[:chosen], 0])]
        free = free[~_overlap_any(free, places[placed], (sizes[label] + sizes[placed]) / 2)]
        covered = _count_covered(sums, free, sizes[label] / 2 + MARK_RADIUS)
        cost = np.hypot(*(free - centers[label]).T) + COST_OF_COVERING * covered
        cost[covered > MAX_COVERED] = np.inf
        if np.isfinite(cost).any():
            places[label] = free[np.argmin(cost)]
    return places


def _candidate_places(center: Floats, size: Floats, box: Floats) -> Floats:
    """Return the centre and rings around it, moved so that the label is inside the box."""
    angles = np.arange(DIRECTIONS) * 2 * np.pi / DIRECTIONS - np.pi / 2
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    # Rings are half the height of a label apart, so that labels can be stacked without a gap.
    radii = np.arange(1, RINGS + 1) * size[1] / 2
    rings = (radii[:, None, None] * circle).reshape(-1, 2)
    moved = center + np.vstack([np.zeros((1, 2)), rings])
    inside: Floats = np.clip(
        moved, np.minimum(size / 2, box / 2), np.maximum(box - size / 2, box / 2)
    )
    return inside.round(6)


def _cumulative_counts(points: Floats, box: Floats) -> Floats:
    """Return the number of points above and left of each pixel (a summed-area table)."""
    width, height = np.ceil(box).astype(int) + 1
    counts = np.zeros((height + 1, width + 1))
    columns, rows = np.clip(np.floor(points), 0, np.ceil(box)).astype(int).T
    np.add.at(counts, (rows + 1, columns + 1), 1)
    sums: Floats = counts.cumsum(axis=0).cumsum(axis=1)
    return sums


def _count_covered(sums: Floats, places: Floats, half: Floats) -> Floats:
    """Return the number of points within ``half`` a width and height of each place."""
    most = np.array(sums.shape[::-1]) - 1
    left, top = np.clip(np.round(places - half), 0, most).astype(int).T
    right, bottom = np.clip(np.round(places + half), 0, most).astype(int).T
    counts: Floats = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return counts


def _overlap_any(places: Floats, others: Floats, reach: Floats) -> NDArray[np.bool_]:
    """Return which places are nearer than ``reach``, in x and in y, to one of the others."""
    gap = reach - np.abs(places[:, None] - others)
    return np.asarray((gap.min(axis=-1) > ROUNDING).any(axis=1))
