"""Cells of the plane, cut out by pairwise classifiers, and their rankings: the paper's Figure 2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC

from rankshot.ranking.matrices import NamedOrder, group_ties, name_groups
from reproduction.benchmark import Benchmark

Floats = NDArray[np.float64]
Signs = NDArray[np.int8]
CLASSES = {
    "cifar": ("bus", "cattle", "fox", "lizard", "pickup_truck", "rocket", "whale", "wolf"),
    "animals": (
        *("elephant", "gorilla", "horse", "killer+whale", "mouse", "otter", "tiger", "wolf"),
    ),
}
"""Eight seen classes of each data set: some of them similar, some not."""
COLUMNS = 400
"""Grid points from left to right; the vertical distance is the same."""
INPUTS_PER_CLASS = 8
"""How many inputs of each class are kept for a drawing."""
MARGIN = 0.1
"""The margin around those inputs, as a fraction of their width and height."""
ON_A_LINE = -1


@dataclass(frozen=True)
class Cell:
    """A part of the plane that no line crosses, so that all its points have the same ranking."""

    signs: tuple[int, ...]
    ranking: NamedOrder
    transitive: bool
    n_points: int


@dataclass(frozen=True, eq=False)
class RankingCells:
    """Eight classes in the plane, the lines between each two of them, and the cells."""

    classes: tuple[str, ...]
    coef: Floats
    intercept: Floats
    low: Floats
    high: Floats
    cells: tuple[Cell, ...]
    grid: NDArray[np.int64]
    inputs: Floats
    input_labels: NDArray[np.str_]


def build_ranking_cells(benchmark: Benchmark) -> RankingCells:
    """Project eight seen classes to a plane, separate each two by a line, and find the cells.

    The plane is that of linear discriminant analysis with Ledoit and Wolf's shrinkage. There are
    nearly as many features as inputs, and without shrinkage the training inputs would look farther
    apart than other inputs. The lines are linear support vector machines in that plane.
    """
    data, classes = benchmark.data, CLASSES[benchmark.name]
    chosen = np.isin(data.seen_train_label, classes)
    X, y = data.seen_train[chosen].astype(np.float64), data.seen_train_label[chosen]
    plane = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto", n_components=2).fit(X, y)
    points = plane.transform(X)
    # The sign of an axis is arbitrary: the training input farthest from 0 is made positive.
    direction = np.sign(np.take_along_axis(points, np.abs(points).argmax(axis=0)[None], axis=0))
    coef, intercept = fit_pair_lines(points * direction, y)
    shown = np.concatenate(
        [np.flatnonzero(data.seen_validation_label == name)[:INPUTS_PER_CLASS] for name in classes]
    )
    inputs = direction * plane.transform(data.seen_validation[shown].astype(np.float64))
    room = MARGIN * np.ptp(inputs, axis=0)
    low, high = inputs.min(axis=0) - room, inputs.max(axis=0) + room
    cells, grid = find_cells(coef, intercept, classes, low, high)
    labels = data.seen_validation_label[shown]
    return RankingCells(classes, coef, intercept, low, high, cells, grid, inputs, labels)


def fit_pair_lines(X: Floats, y: NDArray[np.str_]) -> tuple[Floats, Floats]:
    """Return one line per pair of classes, with w'x + b > 0 on the side of the first by name."""
    machines = OneVsOneClassifier(LinearSVC(dual=False)).fit(X, y).estimators_
    # In scikit-learn the score of a pair is positive for its second class.
    coef = -np.concatenate([machine.coef_ for machine in machines])
    return coef, -np.concatenate([machine.intercept_ for machine in machines])


def find_cells(
    coef: Floats, intercept: Floats, classes: tuple[str, ...], low: Floats, high: Floats
) -> tuple[tuple[Cell, ...], NDArray[np.int64]]:
    """Return the cells of all points of a fine grid, and the index of the cell of each point."""
    points, shape = _grid(low, high)
    signs = np.sign(points @ coef.T + intercept).astype(np.int8)
    inside = (signs != 0).all(axis=1)
    # A pattern of signs as one number, one bit per line.
    code = (signs[inside] > 0) @ (1 << np.arange(len(coef), dtype=np.int64))
    _, first, number, size = np.unique(
        code, return_index=True, return_inverse=True, return_counts=True
    )
    patterns = signs[inside][first]
    # Largest first; equal sizes are ordered by their signs.
    order = np.lexsort((*-patterns.T[::-1], -size))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    grid = np.full(len(points), ON_A_LINE)
    grid[inside] = place[number]
    cells = tuple(make_cell(patterns[i], classes, int(size[i])) for i in order)
    return cells, grid.reshape(shape)


def make_cell(signs: Signs, classes: tuple[str, ...], n_points: int) -> Cell:
    """Return the cell on these sides of all lines, with its ranking."""
    first, second = np.triu_indices(len(classes), 1)
    won = np.bincount(np.where(signs > 0, first, second), minlength=len(classes))
    # Every pair has a winner, so there is no circle if and only if all numbers of wins differ.
    transitive = len(set(won.tolist())) == len(classes)
    ranking = name_groups(group_ties(-won.astype(np.float64), tolerance=0.5), classes)
    return Cell(tuple(signs.tolist()), ranking, transitive, n_points)


def _grid(low: Floats, high: Floats) -> tuple[Floats, tuple[int, int]]:
    """Return the centres of squares that fill a rectangle, row by row, and the grid's shape."""
    width, height = (high - low).tolist()
    rows = max(1, round(COLUMNS * height / width))
    x = low[0] + width * (np.arange(COLUMNS) + 0.5) / COLUMNS
    y = low[1] + height * (np.arange(rows) + 0.5) / rows
    return np.column_stack([np.tile(x, rows), np.repeat(y, COLUMNS)]), (rows, COLUMNS)
