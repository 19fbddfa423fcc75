"""Leaderboards: items sorted by worth, and how certain their order is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import clone

from rankshot.core.errors import (
    RankshotError,
    UnknownItemError,
    format_count,
    quote_names,
    short_repr,
    suggest_name,
)
from rankshot.core.validation import (
    Seed,
    require_choice,
    require_generator,
    require_number,
    require_whole_number,
)
from rankshot.ranking.models.information import (
    describe_one_sided,
    find_quasi_variances,
    find_uncompared,
    variances_of_differences,
)
from rankshot.ranking.models.mixture import Sample, merge_equal
from rankshot.ranking.models.plackett_luce import TIED, PlackettLuce
from rankshot.ranking.parts import require_model, require_one_subject, require_rankings
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
ROWS_SHOWN = 20
CACHED_CELLS = 1 << 17
"""Blocks of draws of this size (1 MB) stay in the cache."""
FEW_UNITS = 10
"""Draws from fewer raters vary too little: their errors are clearly too small."""


class Comparison(NamedTuple):
    """What is known of the difference of two items.

    Attributes
    ----------
    difference : float
        The log-worth of the first item minus that of the second: the log-odds that the first is
        placed before the second.
    standard_error : float
    interval : tuple of float
        Two numbers that the difference lies between, at the level of the leaderboard.
    probability : float
        The probability that the first item really has the larger worth, by the normal
        approximation. It is too cautious for an item that won or lost nearly all its votes.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
    >>> found = rs.leaderboard(votes, rs.PlackettLuce(regularization=0)).compare("a", "b")
    >>> round(found.difference, 3), round(found.standard_error, 3), round(found.probability, 4)
    (1.099, 0.365, 0.9987)
    """

    difference: float
    standard_error: float
    interval: tuple[float, float]
    probability: float


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard:
    """Items sorted by worth, best first, with intervals; `leaderboard` makes one.

    Attributes
    ----------
    items : tuple of str
        Best first. All arrays have this order.
    log_worths : ndarray of shape (C,)
        They add up to zero.
    covariance : ndarray of shape (C, C)
        The covariance of the log-worths.
    rank_intervals : ndarray of int of shape (C, 2)
        The best and the worst rank that each item may really have.
    level : float
        The level of all intervals, such as 0.95.
    method : {"simulation", "bootstrap"}
        How they were found.
    weight : float
        The number of rankings, or the sum of their weights.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pairs(
    ...     ["tea", "coffee", "tea", "cocoa"], ["coffee", "tea", "cocoa", "coffee"],
    ...     weights=[30, 10, 25, 15])
    >>> board = rs.leaderboard(votes, random_state=0)
    >>> board.items, board.worths.round(2)
    (('tea', 'cocoa', 'coffee'), array([0.71, 0.19, 0.1 ]))
    >>> board.rank_intervals.tolist()
    [[1, 1], [2, 3], [2, 3]]
    """

    items: tuple[str, ...]
    log_worths: Floats
    covariance: Floats
    rank_intervals: NDArray[np.int64]
    level: float
    method: str
    weight: float

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The rank of each item, from 1; items of equal log-worth share the best of their ranks."""
        above = self.log_worths[:, None] + TIED < self.log_worths
        return np.asarray(1 + above.sum(axis=1))

    @property
    def worths(self) -> Floats:
        """The worths; they add up to one."""
        worths = np.exp(self.log_worths - self.log_worths.max())
        return np.asarray(worths / worths.sum())

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of log-worths that add up to zero."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def intervals(self) -> Floats:
        """Intervals of the log-worths, of shape (C, 2)."""
        return self._around_log_worths(self.standard_errors)

    @cached_property
    def quasi_variances(self) -> Floats:
        """One variance per item, such that differences have about the sum of two of them."""
        return find_quasi_variances(self.covariance)

    @property
    def comparison_intervals(self) -> Floats:
        """Intervals from quasi-variances, of shape (C, 2), for comparisons by eye.

        Items whose intervals do not overlap differ clearly. The intervals of items that differ may
        overlap a little: `compare` takes the covariance of the two. A quasi-variance can be
        negative; such an item has the interval of its standard error.
        """
        variances = self.quasi_variances
        shown = np.where(variances > 0, variances, np.diag(self.covariance))
        return self._around_log_worths(np.sqrt(shown))

    def compare(self, first: str, second: str) -> Comparison:
        """Return how certain it is that the item ``first`` is above ``second``.

        Interval and probability treat the difference as normal. That is too cautious where an item
        won or lost nearly all its votes: 100 wins of 100 have a probability of 0.95. The wins
        themselves are the better evidence there.
        """
        i, j = self._find(first), self._find(second)
        difference = float(self.log_worths[i] - self.log_worths[j])
        pair = self.covariance[np.ix_([i, j], [i, j])]
        error = float(np.sqrt(variances_of_differences(pair)[0, 1]))
        reach = _quantile(self.level) * error
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.float64(difference) / error
        probability = 0.5 if np.isnan(z) else float(ndtr(z))
        return Comparison(difference, error, (difference - reach, difference + reach), probability)

    def to_columns(self) -> dict[str, list[Any]]:
        """Return the table as columns, one value per item: ``pandas.DataFrame`` takes them."""
        low, high = self.intervals.T
        best, worst = self.rank_intervals.T
        columns = {
            "rank": self.ranks,
            "worth": self.worths,
            "log_worth": self.log_worths,
            "standard_error": self.standard_errors,
            "quasi_variance": self.quasi_variances,
            "low": low,
            "high": high,
            "best_rank": best,
            "worst_rank": worst,
        }
        lists = {name: values.tolist() for name, values in columns.items()}
        return {"rank": lists.pop("rank"), "item": list(self.items), **lists}

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        """Return a summary line and the first items, one per line."""
        rows = [HEADER, *self.iterate_rows(ROWS_SHOWN)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"Leaderboard: {self.summary}"]
        for row in rows:
            cells = [
                # Names begin on the left, numbers end on the right.
                cell.ljust(width) if column == 1 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            lines.append("  " + "  ".join(cells).rstrip())
        if len(self) > ROWS_SHOWN:
            lines.append(f"  … and {len(self) - ROWS_SHOWN:,} more")
        return "\n".join(lines)

    @property
    def summary(self) -> str:
        """The numbers of items and rankings, and what the intervals are, in words."""
        return (
            f"{format_count(len(self), 'item')}, {self.weight:,.12g} "
            f"ranking{'' if self.weight == 1 else 's'}, {100 * self.level:g} % intervals by "
            f"{self.method}"
        )

    def iterate_rows(self, most: int | None = None) -> Iterator[tuple[str, ...]]:
        """Yield the cells of each item, or of ``most`` items, as the table prints them."""
        columns = (self.ranks, self.items, self.log_worths, self.intervals, self.rank_intervals)
        for rank, item, value, (low, high), (best, worst) in zip(
            *(column[:most] for column in columns), strict=True
        ):
            interval = f"{_signed(low)} to {_signed(high)}"
            yield f"{rank}", item, _signed(value), interval, f"{best} to {worst}"

    def _around_log_worths(self, errors: Floats) -> Floats:
        return np.asarray(
            self.log_worths[:, None] + _quantile(self.level) * np.outer(errors, [-1, 1])
        )

    def _find(self, item: str) -> int:
        if item not in self.items:
            hint = suggest_name(item, self.items)
            raise UnknownItemError(f"unknown item {short_repr(item)}{hint}")
        return self.items.index(item)


HEADER = ("rank", "item", "log-worth", "interval", "ranks")


def _signed(value: float) -> str:
    return f"{value:.2f}" if abs(value) >= 0.005 else "0.00"


def _quantile(level: float) -> float:
    """Return how many standard errors an interval of the normal distribution reaches."""
    return float(ndtri((1 + level) / 2))


def leaderboard(
    rankings: Rankings,
    model: Any = None,
    *,
    level: float = 0.95,
    method: Literal["simulation", "bootstrap"] = "simulation",
    n_draws: int = 1000,
    random_state: Seed = None,
) -> Leaderboard:
    r"""Sort items by worth, and say how certain their order is.

    Parameters
    ----------
    rankings : Rankings
        Pairs, or rankings of any kind.
    model : PlackettLuce, DavidsonLuce or another model with worths, optional
        `PlackettLuce` by default. A copy is fitted to the rankings. A model that is fitted is used
        as it is, except by the bootstrap.
    level : float
        The level of the intervals.
    method : {"simulation", "bootstrap"}
        ``"simulation"`` takes log-worths as normal, with the covariance that the model computes:
        right if the rankings are independent. ``"bootstrap"`` fits the model again to raters drawn
        with replacement, with all rankings of each: right if the rankings of one rater are alike.
        Rankings without a rater are drawn one by one; one of weight w counts as w of them. The
        bootstrap refuses items that no ranking compares with the others. It warns of fewer than 10
        raters, and of items that always won or always lost: all draws say the same of them.
    n_draws : int
        The number of draws from the normal distribution, or of fits.
    random_state : int, Generator or None

    Returns
    -------
    Leaderboard

    Notes
    -----
    The rank interval of item i contains its true rank with at least the probability ``level``,
    however close the worths are (Mogstad et al. 2024). The draws give the number c that

    .. math:: \max_j |d_i - d_j| / s_{ij}

    stays below with this probability. Here d are the errors of the log-worths and s the standard
    errors of their differences. Items that are more than c standard errors above i count as really
    above it, and likewise below. The range of ranks in the draws themselves would be too narrow.

    The normal distribution is too cautious for items that won or lost nearly all their votes: their
    intervals are too wide, and so are the rank intervals.

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm (2024), Inference for ranks with applications to mobility
    across neighbourhoods and academic achievement across countries. Review of Economic Studies 91.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]], weights=[50, 20, 10])
    >>> rs.leaderboard(votes, random_state=0)
    Leaderboard: 3 items, 80 rankings, 95 % intervals by simulation
      rank  item  log-worth        interval   ranks
         1  a          1.24    0.92 to 1.57  1 to 1
         2  b          0.39    0.09 to 0.68  2 to 2
         3  c         -1.63  -2.06 to -1.19  3 to 3
    """
    require_number("level", level, above=0, below=1)
    require_choice("method", method, ("simulation", "bootstrap"))
    require_whole_number("n_draws", n_draws, least=2)
    weight = require_one_subject(require_rankings(rankings)).weight
    rng = require_generator(random_state)
    model = PlackettLuce() if model is None else require_model(model)
    if not hasattr(model, "covariance"):
        raise RankshotError(
            f"{type(model).__name__} has no worths: use PlackettLuce, DavidsonLuce or "
            "PlackettLuceRegression"
        )
    is_given = method == "simulation" and hasattr(model, "log_worths_")
    if not is_given and hasattr(model, "predict_log_worths"):
        raise RankshotError(
            "a model with features must be fitted before, and the bootstrap cannot fit it again: "
            "give a fitted model and method='simulation'"
        )
    sample = merge_equal(rankings.with_items(model.items_) if is_given else rankings)
    fitted = model if is_given else clone(model).fit(sample.rankings)
    log_worths = fitted.log_worths_
    if method == "simulation":
        covariance = fitted.covariance(sample.rankings)
        errors = _draw_normal(covariance, n_draws, rng)
    else:
        ties_compare = hasattr(fitted, "tie_parameters_")
        draws = _bootstrap_log_worths(model, sample, n_draws, rng, ties_compare=ties_compare)
        covariance = np.atleast_2d(np.cov(draws.T))
        errors = draws - log_worths
    order = np.lexsort((fitted.items_, -log_worths))
    intervals = _find_rank_intervals(log_worths, covariance, errors, level)
    return Leaderboard(
        tuple(fitted.items_[i] for i in order),
        log_worths[order],
        covariance[np.ix_(order, order)],
        intervals[order],
        level,
        method,
        weight,
    )


def _draw_normal(covariance: Floats, n: int, rng: np.random.Generator) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(rng.standard_normal((n, len(covariance))) @ root.T)


def _find_rank_intervals(
    log_worths: Floats, covariance: Floats, errors: Floats, level: float
) -> NDArray[np.int64]:
    """Return the best and worst ranks; ``errors`` has one row per draw."""
    scales = np.sqrt(np.maximum(variances_of_differences(covariance), 0.0))
    # An item does not differ from itself, nor do items that all draws tie.
    scales[scales <= 0] = np.inf
    reach = np.quantile(_largest_differences(errors, 1 / scales), level, axis=1)[:, None]
    above = (log_worths - log_worths[:, None]) / scales
    best = 1 + (above > reach).sum(axis=1)
    worst = len(scales) - (above < -reach).sum(axis=1)
    return np.column_stack([best, worst])


def _largest_differences(errors: Floats, rates: Floats) -> Floats:
    """Return max_j |d_i - d_j| r_ij of each item i, in each draw d (column)."""
    n, C = errors.shape
    largest = np.zeros((C, n))
    size = max(1, CACHED_CELLS // C)
    for start in range(0, n, size):
        draws = np.ascontiguousarray(errors[start : start + size].T)
        top, buffer = np.zeros_like(draws), np.empty_like(draws)
        for i in range(1, C):
            # Each pair of items is computed once, and counts for both.
            before, parts = top[:i], buffer[:i]
            np.subtract(draws[:i], draws[i], out=parts)
            np.multiply(parts, rates[i, :i, None], out=parts)
            np.abs(parts, out=parts)
            np.maximum(before, parts, out=before)
            parts.max(axis=0, out=top[i])
        largest[:, start : start + size] = top
    return largest


# ---- The bootstrap: fits to raters who are drawn with replacement


def _bootstrap_log_worths(
    model: Any, sample: Sample, n_draws: int, rng: np.random.Generator, *, ties_compare: bool
) -> Floats:
    """Return the log-worths of fits to drawn raters, one row per draw."""
    n_units = _require_units(sample.counts)
    _require_compared(sample.rankings, ties_compare=ties_compare)
    fits: list[Floats] = []
    n_failed = 0
    while len(fits) < n_draws:
        try:
            fits.append(clone(model).fit(_resample(sample, n_units, rng)).log_worths_)
        except RankshotError as error:
            n_failed += 1
            reason = str(error)
            if n_failed > n_draws:
                raise RankshotError(
                    "the bootstrap drew rankings that cannot be fitted, in most of its draws: "
                    f"{reason}"
                ) from None
    if n_failed:
        warnings.warn(
            f"{n_failed} of {n_failed + n_draws} draws of the bootstrap could not be fitted, and "
            f"were replaced by others, which makes errors too small (the last one: {reason})",
            stacklevel=3,
        )
    return np.array(fits)


def _resample(sample: Sample, n_units: int, rng: np.random.Generator) -> Rankings:
    """Return the different rankings with the weights that they have among drawn raters."""
    total = sample.counts.sum()
    drawn = rng.multinomial(n_units, sample.counts / total)
    return replace(sample.rankings, weights=drawn @ sample.copies * (total / n_units))


# ---- What the draws cannot say


def _require_units(counts: Floats) -> int:
    """Return how many units a draw has: raters, and rankings without one, by their weights."""
    total = float(counts.sum())
    if total < 2:
        raise RankshotError(
            "the bootstrap needs at least 2 raters, or rankings without a rater, to draw from; "
            f"here is {total:.3g} (a ranking of weight w counts as w). Use method='simulation'"
        )
    if total < FEW_UNITS:
        warnings.warn(
            f"the bootstrap draws from only {total:.3g} raters or rankings: its errors are too "
            "small. Use method='simulation', or ask more raters",
            stacklevel=4,
        )
    return round(total)


def _require_compared(rankings: Rankings, *, ties_compare: bool) -> None:
    """Refuse items that are not compared, warn of one-sided ones: all draws say the same of both.

    Only the regulariser holds such items in place. What it says does not depend on the draw, so it
    would look certain.
    """
    apart = find_uncompared(rankings, ties_compare=ties_compare)
    if apart:
        raise RankshotError(
            "the bootstrap says nothing of items that no ranking compares with the others, "
            f"directly or through others: {quote_names(apart)}. Leave them out, or use "
            "method='simulation'"
        )
    # An item that only ties is as strong as the others of its tie in every draw.
    if one_sided := describe_one_sided(rankings, ties_compare=False):
        warnings.warn(
            f"the errors of some items are too small: {one_sided}. All draws of the bootstrap say "
            "the same of them. Use method='simulation'",
            stacklevel=4,
        )
