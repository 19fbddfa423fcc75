"""Platt scaling: log-odds from the decision values of binary classifiers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.ranking.entries import row_starts
from rankshot.zeroshot.scores import Kind, Scores, column_name

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK_CELLS = 1 << 18
"""Decision values that are fitted together; about ten arrays of this size exist at a time."""
MAX_ITERATIONS = 100
LEAST_GAIN = 1e-12
"""A column is final when a Newton step would gain less log-likelihood than this."""


class PlattScaling(BaseEstimator):
    r"""Platt's probabilistic scaling of one-vs-rest and one-vs-one scores.

    A decision value f tells on which side of a boundary an input is, but not how probable that
    is. Platt models the probability as a sigmoid with two parameters per column,

    .. math:: P(+ | f) = \frac{1}{1 + e^{-(a f + b)}}

    and fits them to held-out inputs by maximum likelihood. The targets are (N₊ + 1) / (N₊ + 2)
    and 1 / (N₋ + 2) instead of 1 and 0, so that the parameters are finite even if f separates the
    two sides. The scaled scores are the log-odds a f + b.

    For one-vs-rest scores the inputs of a column's class are positive and all others are
    negative. For one-vs-one scores the inputs of the pair's first class are positive, those of
    the second class are negative, and all others are ignored.

    Attributes
    ----------
    items_ : tuple of str
        The classes, in the order of the columns.
    kind_ : str
        "one-vs-rest" or "one-vs-one".
    slopes_, intercepts_ : ndarray of shape (columns,)
        a and b. A slope is negative if the decision values have the wrong sign, and 0 if they
        are all equal.

    Notes
    -----
    The inputs must not be those that the classifier was trained on: its decision values for these
    are too good.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines. Advances in Large Margin
    Classifiers. Lin, Lin and Weng (2007), A note on Platt's probabilistic outputs for support
    vector machines. Machine Learning 68.

    Examples
    --------
    >>> from rankshot.zeroshot import Scores
    >>> from reproduction.platt import PlattScaling
    >>> scores = Scores([[1.0], [2.0], [-2.0], [0.5]], ["cat", "bus"], "one-vs-one")
    >>> platt = PlattScaling().fit(scores, ["cat", "cat", "bus", "bus"])
    >>> platt.transform(scores).values.ravel().round(2)
    array([ 0.33,  0.91, -1.42,  0.04])
    """

    def fit(self, scores: Scores, y: Iterable[Any]) -> PlattScaling:
        """Fit one slope and one intercept per column.

        Parameters
        ----------
        scores : Scores
            One-vs-rest or one-vs-one scores of held-out inputs.
        y : iterable of names
            The true class of every input. Every class must occur.
        """
        _require_binary(scores)
        classes = _class_numbers(y, scores)
        sides = _Sides.from_classes(scores.kind, classes, len(scores.items))
        slopes, intercepts = np.empty((2, len(sides.size)))
        final = np.empty(len(sides.size), bool)
        for block in sides.blocks():
            cells = sides.cells(scores.values, block)
            slopes[block], intercepts[block], final[block] = _fit(cells)
        if not final.all():
            stuck = column_name(scores.items, scores.kind, int(np.argmin(final)))
            raise RankshotError(f"{stuck}: no convergence after {MAX_ITERATIONS} Newton steps")
        self.items_ = scores.items
        self.kind_ = scores.kind
        self.slopes_ = slopes
        self.intercepts_ = intercepts
        return self

    def transform(self, scores: Scores) -> Scores:
        """Return the log-odds a f + b, as scores of the same kind.

        Parameters
        ----------
        scores : Scores
            Scores of the same kind and of the same classes, in any order.
        """
        check_is_fitted(self)
        _require_binary(scores)
        if scores.kind != self.kind_:
            raise RankshotError(f"fitted to {self.kind_} scores, but these are {scores.kind}")
        fitted = set(self.items_)
        if other := [name for name in scores.items if name not in fitted]:
            raise RankshotError(f"not fitted to scores of {quote_names(other)}")
        values = scores.with_items(self.items_).values
        scaled = values * self.slopes_.astype(values.dtype)
        scaled += self.intercepts_.astype(values.dtype)
        return Scores(scaled, self.items_, self.kind_).with_items(scores.items)


def _require_binary(scores: Scores) -> None:
    if not isinstance(scores, Scores):
        raise RankshotError(f"expected Scores, not {short_repr(scores)}: make them with scores_of")
    if scores.kind == "multiclass":
        raise RankshotError(
            "Platt scaling is for one-vs-rest and one-vs-one scores; the softmax of multiclass "
            "scores gives probabilities already"
        )
    if len(scores.items) < 2:
        raise RankshotError(f"{scores.items[0]!r} is the only class: Platt scaling needs two")


def _class_numbers(y: Iterable[Any], scores: Scores) -> NDArray[np.intp]:
    if not isinstance(y, Iterable) or isinstance(y, str):
        raise RankshotError(f"y must be a list of class names, not {short_repr(y)}")
    names = [str(label) for label in y]
    if len(names) != len(scores):
        raise RankshotError(f"y needs one label per input, {len(scores)} in all, not {len(names)}")
    number = {name: i for i, name in enumerate(scores.items)}
    for row, name in enumerate(names):
        if name not in number:
            raise RankshotError(
                f"row {row}: there are no scores of the class {short_repr(name)}"
                f"{suggest_name(name, scores.items)}"
            )
    occurring = set(names)
    if missing := [name for name in scores.items if name not in occurring]:
        raise RankshotError(f"no input of class {quote_names(missing)} to calibrate with")
    return np.array([number[name] for name in names], np.intp)


# -------------------------------------------------------------------- the inputs of each column


@dataclass(frozen=True)
class _Cells:
    """The decision values of some columns, concatenated, with Platt's targets."""

    f: Floats
    targets: Floats
    starts: Ints

    @property
    def sizes(self) -> Ints:
        return np.diff(self.starts)

    def total(self, cells: Floats) -> Floats:
        """Return the sum over the cells of each column."""
        return np.asarray(np.add.reduceat(cells, self.starts[:-1]))

    def repeat(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Repeat the value of each column for all of its cells."""
        return np.repeat(columns, self.sizes)


@dataclass(frozen=True)
class _Sides:
    """The positive and the negative inputs of every column.

    ``rows`` holds the inputs sorted by class and is used as a ring. ``begin`` and ``size``, of
    shape (columns, 2), are the runs of the positive and the negative inputs of each column in it.
    """

    rows: NDArray[np.intp]
    begin: Ints
    size: Ints

    @classmethod
    def from_classes(cls, kind: Kind, classes: NDArray[np.intp], n_items: int) -> _Sides:
        rows = np.argsort(classes, kind="stable")
        size = np.bincount(classes, minlength=n_items)
        begin = row_starts(size)[:-1]
        if kind == "one-vs-one":
            pairs = np.column_stack(np.triu_indices(n_items, 1))
            return cls(rows, begin[pairs], size[pairs])
        # In a ring, the inputs of all other classes follow those of a class.
        rest_begin, rest_size = begin + size, rows.size - size
        return cls(rows, np.column_stack([begin, rest_begin]), np.column_stack([size, rest_size]))

    def blocks(self) -> Iterator[slice]:
        """Split the columns into runs of about `BLOCK_CELLS` decision values."""
        ends = np.cumsum(self.size.sum(axis=1))
        first = 0
        while first < ends.size:
            limit = BLOCK_CELLS + (ends[first - 1] if first else 0)
            last = max(first + 1, int(np.searchsorted(ends, limit, "right")))
            yield slice(first, last)
            first = last

    def cells(self, values: NDArray[np.floating], block: slice) -> _Cells:
        size = self.size[block]
        n_positive, n_negative = size.T
        targets = np.column_stack([(n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2)])
        # Two runs per column, each at the positions begin, begin + 1, … of the ring.
        starts = row_starts(size.ravel())
        shift = self.begin[block].ravel() - starts[:-1]
        place = (np.arange(starts[-1]) + np.repeat(shift, size.ravel())) % self.rows.size
        column = np.repeat(np.arange(block.start, block.stop), size.sum(axis=1))
        return _Cells(
            values[self.rows[place], column].astype(np.float64),
            np.repeat(targets.ravel(), size.ravel()),
            starts[::2],
        )


# -------------------------------------------------------------------- the fit


def _fit(cells: _Cells) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return the slopes and intercepts of all columns, and whether they have converged.

    f is centred and scaled first, which does not change the result but its numerical accuracy.
    """
    first = cells.starts[:-1]
    varies = np.minimum.reduceat(cells.f, first) < np.maximum.reduceat(cells.f, first)
    center = cells.total(cells.f / cells.repeat(cells.sizes))
    x = cells.f - cells.repeat(center)
    scale = np.where(varies, cells.total(np.abs(x) / cells.repeat(cells.sizes)), 1.0)
    x = np.where(cells.repeat(varies), x / cells.repeat(scale), 0.0)
    slope, intercept, final = _newton(x, cells)
    return slope / scale, intercept - slope * (center / scale), final


def _newton(x: Floats, cells: _Cells) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Newton's method with step halving, in all columns at once."""
    slope = np.zeros(cells.sizes.size)
    mean_target = cells.total(cells.targets) / cells.sizes
    intercept = np.log(mean_target) - np.log1p(-mean_target)
    final = np.zeros(slope.size, bool)
    loss = _loss(x, cells, slope, intercept)
    for _ in range(MAX_ITERATIONS):
        z = cells.repeat(slope) * x + cells.repeat(intercept)
        p = expit(z)
        weight = p * expit(-z)
        weights = cells.total(weight)
        # Centred at their weighted mean, the steps of slope and level are independent.
        mean = cells.total(weight * x) / weights
        deviation = x - cells.repeat(mean)
        curvature = cells.total(weight * deviation**2)
        error = cells.targets - p
        uphill, level = cells.total(error * deviation), cells.total(error)
        turn = np.divide(uphill, curvature, out=np.zeros_like(slope), where=curvature > 0)
        lift = level / weights - mean * turn
        gain = (uphill * turn + level**2 / weights) / 2
        turn[final] = lift[final] = 0
        slope, intercept, loss = _descend(x, cells, (slope, intercept, loss), (turn, lift), gain)
        final |= gain <= LEAST_GAIN
        if final.all():
            break
    return slope, intercept, final


def _descend(
    x: Floats,
    cells: _Cells,
    here: tuple[Floats, Floats, Floats],
    step: tuple[Floats, Floats],
    gain: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Take the step; halve it in the columns where it gains too little (Armijo's rule)."""
    slope, intercept, loss = here
    length = np.ones_like(slope)
    while True:
        new = slope + length * step[0], intercept + length * step[1]
        new_loss = _loss(x, cells, *new)
        # The last term allows for rounding.
        short = new_loss > loss - 1e-4 * length * gain + 1e-12 * loss
        if not (short & (length > 1e-10)).any():
            return *new, new_loss
        length[short] /= 2


def _loss(x: Floats, cells: _Cells, slope: Floats, intercept: Floats) -> Floats:
    """Return the cross-entropy of each column: the sum of log(1 + e^z) - t z."""
    z = cells.repeat(slope) * x + cells.repeat(intercept)
    return cells.total(-log_expit(-z) - cells.targets * z)
