"""A leaderboard as a value: items sorted by worth, and how certain their order is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri, stdtr, stdtrit

from rankshot.core.errors import (
    RankshotError,
    UnknownItemError,
    format_count,
    quote_names,
    suggest_name,
)
from rankshot.core.validation import require_number, require_whole_number
from rankshot.ranking.models.information import find_quasi_variances, variances_of_differences
from rankshot.ranking.models.plackett_luce import TIED

Floats = NDArray[np.float64]
ROWS_SHOWN = 20
ELO_MEAN, ELO_UNIT = 1000.0, 400 / np.log(10)
FRAMES = ("pandas", "polars", "pyarrow")


class Comparison(NamedTuple):
    """The difference between the ratings of two items, and how certain it is.

    Attributes
    ----------
    difference : float
        The rating of the first item minus that of the second, on the scale of the leaderboard. For
        log-worths, these are the log-odds that the first is placed before the second.
    standard_error : float
    interval : tuple of float
        The confidence interval of the difference, at the level of the leaderboard.
    certainty : float
        The probability that the first item has the larger worth, if the error of the difference is
        normal. It is conservative for an item that won or lost nearly all its votes.
    p_value : float
        The p-value of the hypothesis that the worths are equal, adjusted by Holm's method for all
        pairs of the leaderboard. Interval and certainty are for two items that were chosen before
        the votes were seen.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
    >>> found = rs.leaderboard(votes, rs.PlackettLuce(regularization=0)).compare("a", "b")
    >>> round(found.difference, 3), round(found.standard_error, 3), round(found.certainty, 4)
    (1.099, 0.365, 0.9982)
    """

    difference: float
    standard_error: float
    interval: tuple[float, float]
    certainty: float
    p_value: float


class Estimate(NamedTuple):
    """A number with its interval, at the level of the leaderboard.

    Attributes
    ----------
    value : float
    interval : tuple of float

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]])
    >>> rs.leaderboard(votes).probability("a", "b").value
    0.5
    """

    value: float
    interval: tuple[float, float]


class Standing(NamedTuple):
    """One row of a leaderboard.

    Attributes
    ----------
    rank : int
        The rank, from 1; items of equal worth share the best of their ranks.
    item : str
    rating, low, high : float
        The log-worth or the Elo rating, with its comparison interval.
    best_rank, worst_rank : int
        The ends of the confidence interval of the rank.
    better_than : int
        The number of items that it is significantly better than, adjusted for all comparisons.
    votes : float
        The total weight of the rankings that compare the item with others.
    wins, ties, share : float
        How often it came before another item, how often it tied, and the share of wins among all
        comparisons, where a tie is half a win.
    standard_error : float
        The standard error of the rating.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
    >>> row = rs.leaderboard(votes)["a"]
    >>> row.rank, row.votes, row.wins, row.share
    (1, 40.0, 30.0, 0.75)
    """

    rank: int
    item: str
    rating: float
    low: float
    high: float
    best_rank: int
    worst_rank: int
    better_than: int
    votes: float
    wins: float
    ties: float
    share: float
    standard_error: float


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard:
    """Items sorted by worth, best first, with intervals; `leaderboard` makes one.

    ``len``, iteration and ``board["item"]`` give its rows (`Standing`). Rows, `compare`,
    `votes_needed` and the printed table use the scale of the leaderboard; all arrays are
    log-worths.

    Attributes
    ----------
    items : tuple of str
        The items, best first. All arrays have this order.
    log_worths : ndarray of shape (C,)
        The log-worths; they add up to zero.
    covariance : ndarray of shape (C, C)
        The covariance of the log-worths.
    degrees : ndarray of shape (C,)
        The degrees of freedom of Student's t distribution for the intervals of each item.
    votes : ndarray of shape (C,)
        The total weight of the rankings that compare each item with others.
    wins, ties : ndarray of shape (C, C)
        How often the row's item came before the column's item, and how often the two tied.
    weight : float
        The number of rankings, or the sum of their weights.
    counted : {"vote", "ranking"}
        What is counted by ``weight``: votes between two items, or other rankings.
    n_raters : int
        The number of raters, if intervals treat the rankings of one rater as dependent; otherwise
        0.
    tie_parameter : float
        δ of `DavidsonLuce` for ties of two items; 0 if ties are not modelled as an outcome.
    effects : dict
        The coefficient of each covariate in the log-odds, as an `Estimate`.
    thin : dict
        The items with too few votes to be ranked, and their numbers of votes.
    level : float
        The level of all intervals, such as 0.95.
    scale : {"log-worth", "elo"}
        The scale of ratings and their differences.
    n_draws, seed : int
        The number of draws for the rank intervals, and their seed.
    origin : float
        The rating of a log-worth of 0.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pairs(
    ...     ["tea", "coffee", "tea", "cocoa", "coffee"], ["coffee", "tea", "cocoa", "tea", "cocoa"],
    ...     weights=[30, 10, 25, 5, 15])
    >>> board = rs.leaderboard(votes)
    >>> board.items, board.worths.round(2)
    (('tea', 'coffee', 'cocoa'), array([0.65, 0.29, 0.06]))
    >>> board.rank_intervals.tolist()
    [[1, 1], [2, 2], [3, 3]]
    """

    items: tuple[str, ...]
    log_worths: Floats
    covariance: Floats
    degrees: Floats
    votes: Floats
    wins: Floats
    ties: Floats
    weight: float
    counted: str
    n_raters: int
    tie_parameter: float
    effects: dict[str, Estimate]
    thin: dict[str, float]
    level: float
    scale: str
    n_draws: int
    seed: int
    origin: float

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
    def ratings(self) -> dict[str, float]:
        """The rating of each item, on the scale of the leaderboard."""
        return dict(zip(self.items, self._to_scale(self.log_worths).tolist(), strict=True))

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of the log-worths, which add up to zero."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def intervals(self) -> Floats:
        """Confidence intervals of the log-worths (relative to their mean), of shape (C, 2)."""
        return self._around_log_worths(self.standard_errors)

    @cached_property
    def rank_intervals(self) -> NDArray[np.int64]:
        """Confidence intervals of the ranks: the best and the worst rank, of shape (C, 2)."""
        rng = np.random.default_rng(self.seed)
        errors = draw_errors(self.covariance, self.n_draws, rng)
        return find_rank_intervals(self._scores, self.covariance, errors, self.level)

    @cached_property
    def _scores(self) -> Floats:
        return find_scores(self.log_worths, self.covariance, self.pair_degrees)

    @cached_property
    def p_values(self) -> Floats:
        """P-values of equal worths, of shape (C, C), adjusted for all pairs (Holm 1979)."""
        pairs = np.triu_indices(len(self), 1)
        p = np.ones((len(self), len(self)))
        p[pairs] = adjust_holm(2 * ndtr(-np.abs(self._scores[pairs])))
        return np.minimum(p, p.T)

    @property
    def clearly_better(self) -> NDArray[np.bool_]:
        """Whether the row's item is significantly better than the column's item.

        If ``level`` is 0.95, the probability of any false positive in the whole matrix is at most
        5%, however many items there are.
        """
        ahead = self.log_worths[:, None] > self.log_worths
        return np.asarray(ahead & (self.p_values < 1 - self.level))

    @property
    def pair_degrees(self) -> Floats:
        """The degrees of freedom of each difference, of shape (C, C).

        They are the mean of the two items' degrees, weighted by their variances, so that the less
        certain item dominates.
        """
        variances = np.maximum(np.diag(self.covariance), np.finfo(float).tiny)
        both = np.add.outer(variances, variances)
        return np.asarray(both / np.add.outer(variances / self.degrees, variances / self.degrees))

    @cached_property
    def quasi_variances(self) -> Floats:
        """One variance per item; the variance of a difference is approximately the sum of two."""
        return find_quasi_variances(self.covariance)

    @property
    def comparison_intervals(self) -> Floats:
        """Intervals from quasi-variances, of shape (C, 2), for visual comparison.

        Tables and plots show them. They are valid for two items chosen in advance; among many
        items, some intervals do not overlap by chance, and `clearly_better` shows which items
        differ. The intervals of items that differ may overlap slightly, whereas `compare` uses the
        covariance of the two. A quasi-variance can be negative; such an item has the interval of
        its standard error.
        """
        variances = self.quasi_variances
        shown = np.where(variances > 0, variances, np.diag(self.covariance))
        return self._around_log_worths(np.sqrt(shown))

    @property
    def unclear_runs(self) -> list[tuple[int, int]]:
        """Runs of neighbours of which none is clearly better than another: first and last place.

        Only maximal runs are listed: none is part of another.
        """
        clear, runs = self.clearly_better, [(0, -1)]
        for first in range(len(self)):
            last = first
            while last + 1 < len(self) and not clear[first : last + 1, last + 1].any():
                last += 1
            if last > max(first, runs[-1][1]):
                runs.append((first, last))
        return runs[1:]

    def compare(self, first: str, second: str) -> Comparison:
        """Return how certain it is that the first item is above the second.

        Interval and certainty assume a normally distributed error. This is conservative if an item
        won or lost nearly all its votes: 100 wins out of 100 give a certainty of 0.95. The number
        of wins is better evidence in this case.

        Parameters
        ----------
        first, second : str
            The names of two items.
        """
        i, j = self._find(first), self._find(second)
        difference = float(self.log_worths[i] - self.log_worths[j])
        error = float(np.sqrt(variances_of_differences(self.covariance)[i, j]))
        difference, error = self.unit * difference, self.unit * error
        degrees = float(self.pair_degrees[i, j])
        reach = float(stdtrit(degrees, (1 + self.level) / 2)) * error
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.float64(difference) / error
        certainty = 0.5 if np.isnan(z) else float(stdtr(degrees, z))
        interval = difference - reach, difference + reach
        return Comparison(difference, error, interval, certainty, float(self.p_values[i, j]))

    def probability(self, first: str, second: str) -> Estimate:
        """Return the probability that the first item beats the second in one vote.

        If ties are modelled as an outcome, this probability and that of the second item add up to
        less than 1; the rest is the probability of a tie. The tie parameter is treated as known.

        Parameters
        ----------
        first, second : str
            The names of two items.

        Examples
        --------
        >>> import rankshot as rs
        >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
        >>> found = rs.leaderboard(votes).probability("a", "b")
        >>> round(found.value, 2), tuple(round(end, 2) for end in found.interval)
        (0.75, (0.59, 0.86))
        """
        found = self.compare(first, second)
        ratings = np.array([found.difference, *found.interval])
        value, low, high = self._win_probability(ratings / self.unit)
        return Estimate(float(value), (float(low), float(high)))

    @property
    def win_rates(self) -> Floats:
        """The share of votes that the model expects the row to win against the column.

        A tie is half a win; the diagonal is NaN. The shares in the votes are `observed_win_rates`.
        """
        won = self._win_probability(self.log_worths[:, None] - self.log_worths)
        shares = (won + 1 - won.T) / 2
        np.fill_diagonal(shares, np.nan)
        return np.asarray(shares)

    @property
    def observed_win_rates(self) -> Floats:
        """The share of votes that the row won against the column; NaN if there are no votes."""
        both = self.wins + self.wins.T + self.ties
        won = self.wins + self.ties / 2
        return np.asarray(np.divide(won, both, out=np.full(both.shape, np.nan), where=both > 0))

    def _win_probability(self, difference: Floats) -> Floats:
        # Without overflow: both terms are at most 1 for the item that is ahead.
        ahead = np.exp(-np.abs(difference))
        total = 1 + ahead + self.tie_parameter * np.sqrt(ahead)
        return np.asarray(np.where(difference >= 0, 1.0, ahead) / total)

    def next_pairs(self, n: int = 1) -> list[tuple[str, str]]:
        """Return the pairs of items whose votes would be most informative about uncertain ranks.

        Ask for votes on these pairs, and make a new leaderboard from all votes. In simulations
        with 15 items, 200 votes on such pairs were as informative as 280 votes on random pairs
        (``tests/ranking/test_planning.py``).

        Parameters
        ----------
        n : int
            The number of pairs to return, each with the better item first. A pair may occur
            several times.

        Examples
        --------
        >>> import rankshot as rs
        >>> wins = [[0, 9, 9], [1, 0, 5], [1, 4, 0]]
        >>> votes = rs.Rankings.from_pair_counts(wins, items=["a", "b", "c"])
        >>> rs.leaderboard(votes).next_pairs()
        [('b', 'c')]
        """
        require_whole_number("n", n)
        if len(self) < 2:
            raise RankshotError("there is only one item, so there is no pair to vote on")
        chosen = choose_pairs(self.log_worths, self.covariance, n)
        return [(self.items[i], self.items[j]) for i, j in chosen]

    def votes_needed(self, width: float) -> int:
        """Return how many more votes are needed for comparison intervals of this mean width.

        The width is on the scale of the ratings: log-worths or Elo points. New votes are assumed
        to resemble the existing ones: the same proportions of pairs, and as many raters per vote.
        The width decreases with the square root of the number of votes.

        Parameters
        ----------
        width : float

        Examples
        --------
        >>> import rankshot as rs
        >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
        >>> rs.leaderboard(votes).votes_needed(0.5)
        129
        """
        require_number("width", width, above=0, below=np.inf)
        found = np.diff(self._to_scale(self.comparison_intervals)).mean()
        return max(0, int(np.ceil(self.weight * ((found / width) ** 2 - 1))))

    def to_frame(self) -> Any:
        """Return the table as a pandas, polars or PyArrow table, whichever is installed.

        Examples
        --------
        >>> import rankshot as rs
        >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
        >>> list(rs.leaderboard(votes).to_frame()["item"])
        ['a', 'b']
        """
        import narwhals.stable.v2 as nw  # noqa: PLC0415 (only for data frames)

        backend: Any = next((name for name in FRAMES if find_spec(name)), None)
        if backend is None:
            raise RankshotError(f"to_frame needs one of {quote_names(FRAMES)}: install one of them")
        columns = dict(zip(Standing._fields, map(list, zip(*self, strict=True)), strict=True))
        return nw.from_dict(columns, backend=backend).to_native()

    def to_dict(self) -> dict[str, object]:
        """Return all numbers of the leaderboard, for JSON.

        Examples
        --------
        >>> import rankshot as rs
        >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
        >>> rs.leaderboard(votes).to_dict()["pairs"][0]
        {'first': 'a', 'second': 'b', 'votes': 40.0, 'observed': 0.75, 'expected': 0.749863}
        """
        both = self.wins + self.wins.T + self.ties
        at = np.argwhere(np.triu(both) > 0).tolist()
        rates = self.observed_win_rates, self.win_rates
        pairs = [
            {
                "first": self.items[i], "second": self.items[j], "votes": float(both[i, j]),
                "observed": float(rates[0][i, j]), "expected": round(float(rates[1][i, j]), 6),
            }
            for i, j in at
        ]  # fmt: skip
        return {
            "level": self.level, "scale": self.scale, "weight": self.weight,
            "raters": self.n_raters, "items": [row._asdict() for row in self],
            "effects": {name: found._asdict() for name, found in self.effects.items()},
            "thin": self.thin, "pairs": pairs,
        }  # fmt: skip

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Standing]:
        ratings = self._to_scale(np.column_stack([self.log_worths, self.comparison_intervals]))
        wins, ties = self.wins.sum(axis=1), self.ties.sum(axis=1)
        compared = wins + ties + self.wins.sum(axis=0)
        share = (wins + ties / 2) / np.where(compared > 0, compared, np.nan)
        better = self.clearly_better.sum(axis=1)
        columns = (*ratings.T, *self.rank_intervals.T, better, self.votes, wins, ties, share)
        lists = (column.tolist() for column in (*columns, self.unit * self.standard_errors))
        return map(Standing, self.ranks.tolist(), self.items, *lists)

    def __getitem__(self, item: str) -> Standing:
        return list(self)[self._find(item)]

    def __repr__(self) -> str:
        """Return a summary line and the first items, one per line."""
        rows = [self.header, *self.iterate_rows(ROWS_SHOWN)]
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
        return "\n".join([*lines, *(f"  {note}" for note in self.iterate_notes())])

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns of the table."""
        return ("rank", "item", self.scale, "interval", "ranks", "better", "votes", "share")

    @property
    def summary(self) -> str:
        """The numbers of items and rankings, and what the intervals are, in words."""
        by = f" by {format_count(self.n_raters, 'rater')}" if self.n_raters else ""
        rankings = f"{self.weight:,.12g} {self.counted}{'' if self.weight == 1 else 's'}{by}"
        intervals = f"{100 * self.level:g}% comparison intervals"
        return f"{format_count(len(self), 'item')}, {rankings}, {intervals}"

    def iterate_rows(self, most: int | None = None) -> Iterator[tuple[str, ...]]:
        """Yield the cells of each item as text, as the table prints them.

        Parameters
        ----------
        most : int, optional
            How many items.
        """
        digits = 0 if self.scale == "elo" else 2
        for row in list(self)[:most]:
            rating, low, high = (_signed(x, digits) for x in (row.rating, row.low, row.high))
            ranks, better = f"{row.best_rank} to {row.worst_rank}", f"{row.better_than}"
            first = f"{row.rank}", row.item, rating, f"{low} to {high}", ranks, better
            yield *first, f"{row.votes:,.6g}", f"{row.share:.2f}"

    def iterate_notes(self) -> Iterator[str]:
        """Yield the notes below the table: items with few votes, and effects of covariates."""
        if self.thin:
            names = [f"{item} ({votes:.6g})" for item, votes in self.thin.items()]
            more = f" and {len(names) - ROWS_SHOWN:,} more" if len(names) > ROWS_SHOWN else ""
            yield f"too few votes to be ranked: {', '.join(names[:ROWS_SHOWN])}{more}"
        if self.scale == "elo":
            yield "Elo points are those of the Bradley-Terry model, fitted to all votes at once"
        for name, (value, (low, high)) in self.effects.items():
            yield f"effect of {name}: {value:.3g} ({low:.3g} to {high:.3g})"

    def _around_log_worths(self, errors: Floats) -> Floats:
        reach = stdtrit(self.degrees, (1 + self.level) / 2) * errors
        return np.asarray(self.log_worths[:, None] + np.outer(reach, [-1, 1]))

    @property
    def unit(self) -> float:
        """The difference in ratings that corresponds to a difference of 1 in log-worths."""
        return float(ELO_UNIT) if self.scale == "elo" else 1.0

    def _to_scale(self, log_worths: Floats) -> Floats:
        return self.unit * log_worths + self.origin

    def _find(self, item: str) -> int:
        if item not in self.items:
            hint = suggest_name(item, (*self.items, *self.thin))
            raise UnknownItemError("item", item, f"is not one of the items{hint}")
        return self.items.index(item)


def _signed(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


# ---- Which ranks items may really have, and which votes would tell more
#
# The rank interval of item i contains its true rank with at least the given probability, however
# close the worths are (Mogstad et al. 2024). Draws of the errors d give the number c that
#
#     max_j |d_i - d_j| / s_ij
#
# stays below with this probability, where s are the standard errors of differences. Items that are
# more than c standard errors above i count as really above it, and likewise below. Differences with
# few degrees of freedom count as many normal standard errors as are equally improbable. Then the
# maximum is over the items that are left, with a smaller c, until no more items are told from i
# (step-down).


def find_scores(log_worths: Floats, covariance: Floats, degrees: Floats) -> Floats:
    """Return how far items (columns) are above others (rows), in normal standard errors.

    Those of Student's distribution with ``degrees[i, j]`` are moved to equal probabilities.
    """
    scales = np.sqrt(np.maximum(variances_of_differences(covariance), 0.0))
    difference = log_worths - log_worths[:, None]
    # An item does not differ from itself, nor do items that the errors do not tell apart.
    t = np.divide(difference, scales, out=np.zeros_like(scales), where=scales > 0)
    with np.errstate(under="ignore"):
        return np.asarray(-np.sign(t) * ndtri(stdtr(degrees, -np.abs(t))))


def adjust_holm(p: Floats) -> Floats:
    """Return p-values that hold for all of them together (Holm 1979)."""
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return adjusted


def draw_errors(covariance: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw normal errors of log-worths, one column per draw."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ rng.standard_normal((len(covariance), n)))


def find_rank_intervals(
    scores: Floats, covariance: Floats, errors: Floats, level: float
) -> NDArray[np.int64]:
    """Return the best and the worst rank of each item."""
    # Bonferroni's bound decides most pairs: the first maximum would only lower it a little.
    bound = -ndtri((1 - level) / (2 * max(len(scores) - 1, 1)))
    scales = np.sqrt(np.maximum(variances_of_differences(covariance), 0.0))
    undecided = (scales > 0) & (np.abs(scores) <= bound)
    # Single precision is enough for a quantile of draws, and fits in the cache.
    draws = errors.astype(np.float32)
    rates = np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0).astype(np.float32)
    nth = min(int(np.ceil(level * draws.shape[1])), draws.shape[1]) - 1
    for i, row in enumerate(undecided):
        left = np.flatnonzero(row)
        sizes = np.abs(draws[left] - draws[i]) * rates[i, left, None]
        while left.size:
            reach = np.partition(sizes.max(axis=0), nth)[nth]
            still = np.abs(scores[i, left]) <= reach
            if still.all():
                break
            left, sizes = left[still], sizes[still]
        undecided[i] = False
        undecided[i, left] = True
    decided = (scales > 0) & ~undecided
    best = 1 + (decided & (scores > 0)).sum(axis=1)
    worst = len(scores) - (decided & (scores < 0)).sum(axis=1)
    return np.column_stack([best, worst])


def choose_pairs(log_worths: Floats, covariance: Floats, n: int) -> list[tuple[int, int]]:
    r"""Return the pairs whose votes are expected to tell most of the order, one after the other.

    A vote between i and j has the information h = p (1 - p) of their difference, and changes the
    covariance V to V - h V e eᵀ V / (1 + h eᵀ V e), with e = e_i - e_j. Each pair is the one that
    most lowers the variances of all differences, each in units of itself and weighted by the
    probability that its order is wrong.
    """
    difference = log_worths[:, None] - log_worths
    information = expit(difference) * expit(-difference)
    V, chosen = covariance.copy(), []
    for _ in range(n):
        variances = variances_of_differences(V)
        safe = np.where(variances > 0, variances, np.inf)
        weights = ndtr(-np.abs(difference) / np.sqrt(safe)) / safe
        laplacian = np.diag(weights.sum(axis=1)) - weights
        gain = information * variances_of_differences(V @ laplacian @ V)
        gain /= 1 + information * variances
        gain[np.tril_indices_from(gain)] = -np.inf  # (j, i) is the same pair, up to rounding
        i, j = divmod(int(np.argmax(gain)), len(V))
        moved = V[:, i] - V[:, j]
        V = V - information[i, j] / (1 + information[i, j] * variances[i, j]) * np.outer(
            moved, moved
        )
        chosen.append((i, j))
    return chosen
