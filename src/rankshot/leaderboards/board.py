"""A leaderboard as a value: items sorted by worth, and how certain their order is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr

from rankshot.core.errors import InputError, format_count, suggest_name
from rankshot.core.tables import make_frame
from rankshot.core.validation import require_number, require_whole_number
from rankshot.leaderboards.evidence import (
    Evidence,
    Looks,
    ScoreTests,
    allow_looks,
    choose_pairs,
    draw_errors,
    find_evidence,
    find_pair_degrees,
    find_rank_intervals,
)
from rankshot.leaderboards.misfit import find_misfit
from rankshot.leaderboards.rows import Comparison, Estimate, Misfit, Standing
from rankshot.ranking.column_meanings import Reading
from rankshot.ranking.models.information import find_quasi_variances
from rankshot.ranking.models.plackett_luce import TIED
from rankshot.ranking.votes import Votes

Floats = NDArray[np.float64]
ROWS_SHOWN = 20
N_DRAWS = 1000
"""Draws of the errors for rank intervals."""
ELO_MEAN, ELO_UNIT = 1000.0, 400 / np.log(10)


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
        δ of Davidson's model: two equal items tie with probability δ / (2 + δ). 0 if ties are not
        modelled as an outcome.
    effects : dict
        The coefficient of each covariate in the log-odds, as an `Estimate`.
    thin : dict
        The items with too few votes to be ranked, and their numbers of votes.
    level : float
        The level of all intervals, such as 0.95.
    scale : {"log-worth", "elo"}
        The scale of ratings and their differences.
    origin : float
        The rating of a log-worth of 0.
    looks : {"one", "many", "guided"}
        For how many looks claims and intervals hold.
    warnings : tuple of str
        What limits the claims.
    categories : dict
        The leaderboard of each category.
    source : Votes
        What the board was made of.
    tests, places, one_sided
        The score tests, the number of each item in them, and 1 for items that never lost (-1 if
        they never won).

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
    origin: float
    looks: str
    tests: ScoreTests
    places: NDArray[np.intp]
    one_sided: NDArray[np.int8]
    warnings: tuple[str, ...]
    categories: Mapping[str, Leaderboard]
    source: Votes

    @property
    def reading(self) -> Reading | None:
        """Which columns of a table were used, and which were not."""
        return self.source.reading

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
        errors = draw_errors(self.covariance, N_DRAWS, np.random.default_rng(0))
        return find_rank_intervals(self.evidence, self.covariance, errors, self.level, self._looks)

    @cached_property
    def evidence(self) -> Evidence:
        """How far each item (row) is above each other one, in normal standard errors."""
        return find_evidence(
            self.log_worths, self.covariance, self.degrees, self.tests, self.places
        )

    @cached_property
    def _looks(self) -> Looks:
        return allow_looks(self.looks, self.covariance)

    @cached_property
    def p_values(self) -> Floats:
        """P-values of equal worths, of shape (C, C), adjusted for all pairs (Holm 1979)."""
        pairs = np.triu_indices(len(self), 1)
        p = np.ones((len(self), len(self)))
        z, errors, _ = self.evidence
        p[pairs] = self._looks.adjust(np.exp(self._looks.log_p(z[pairs], errors[pairs])))
        return np.minimum(p, p.T)

    @property
    def clearly_better(self) -> NDArray[np.bool_]:
        """Whether the row's item is significantly better than the column's item.

        If ``level`` is 0.95, the probability of any false positive in the whole matrix is at most
        5%, however many items there are.
        """
        ahead = self.log_worths[:, None] > self.log_worths
        return np.asarray(ahead & (self.p_values < 1 - self.level))

    @cached_property
    def quasi_variances(self) -> Floats:
        """One variance per item; the variance of a difference is approximately the sum of two."""
        return find_quasi_variances(self.covariance)

    @cached_property
    def comparison_intervals(self) -> Floats:
        """Intervals from quasi-variances, of shape (C, 2), for visual comparison.

        Tables and plots show them. They are valid for two items chosen in advance; among many
        items, some intervals do not overlap by chance, and `clearly_better` shows which items
        differ. The intervals of items that differ may overlap slightly, whereas `compare` uses the
        covariance of the two. A quasi-variance can be negative; such an item has the interval of
        its standard error. The interval of an item that never lost has no upper end, and its lower
        end is that of its difference to the best other item.
        """
        found = self._around_log_worths(self._quasi_errors)
        for i in np.flatnonzero(self.one_sided):
            side = int(self.one_sided[i])
            others = np.flatnonzero(self.one_sided != side)
            if others.size:
                other = others[np.argmax(side * self.log_worths[others])]
                # Two items without limits share their difference.
                is_shared = self.one_sided[other] == -side
                at = self.log_worths[other]
                at = at if not is_shared else (self.log_worths[i] + at) / 2
                found[i] = at + self._bound(int(i), int(other)) / (1 + is_shared)
        return found

    @property
    def _quasi_errors(self) -> Floats:
        variances = self.quasi_variances
        return np.sqrt(np.where(variances > 0, variances, np.diag(self.covariance)))

    def _bound(self, i: int, j: int) -> Floats:
        """Return the interval of a difference, from score tests."""
        estimate = float(self.log_worths[i] - self.log_worths[j])
        first, second = int(self.places[i]), int(self.places[j])
        looks, level = self._looks, self.level
        bound = self.tests.bound
        return np.array([bound(first, second, estimate, x, level, looks) for x in (-1, 1)])

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

        Parameters
        ----------
        first, second : str
            The names of two items.
        """
        i, j = self._find(first), self._find(second)
        difference = float(self.log_worths[i] - self.log_worths[j])
        z, error = float(self.evidence.z[i, j]), float(self.evidence.errors[i, j])
        if self.evidence.by_score[i, j]:
            low, high = self._bound(i, j)
            certainty = float(ndtr(z))
        else:
            degrees = find_pair_degrees(self.covariance, self.degrees)[i, j]
            reach = float(self._looks.reach(np.array(error), degrees, self.level))
            low, high = difference - reach, difference + reach
            certainty = float(stdtr(degrees, difference / error)) if error else 0.5
        if self.looks != "one":
            p = float(np.exp(self._looks.log_p(z, error)))
            certainty = max(0.5, 1 - p / 2) if z > 0 else min(0.5, p / 2)
        interval = float(self.unit * low), float(self.unit * high)
        p_value = float(self.p_values[i, j])
        return Comparison(self.unit * difference, self.unit * error, interval, certainty, p_value)

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

        Ask for votes on these pairs, and make a new leaderboard from all votes, with
        ``looks="guided"``: other claims do not hold for votes that depend on earlier ones.

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
        chosen = choose_pairs(self.log_worths, self.covariance, n if len(self) > 1 else 0)
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
        wide = np.diff(self._to_scale(self._around_log_worths(self._quasi_errors)))
        found = wide.mean()
        return max(0, int(np.ceil(self.weight * ((found / width) ** 2 - 1))))

    def misfits(self) -> list[Misfit]:
        """Return the pairs of items that have votes, the least explained by the ratings first.

        Examples
        --------
        >>> import rankshot as rs
        >>> wins = [[0, 18, 4], [2, 0, 18], [16, 2, 0]]
        >>> votes = rs.Rankings.from_pair_counts(wins, items=["rock", "scissors", "paper"])
        >>> found = rs.leaderboard(votes).misfits()[0]
        >>> found.observed, round(found.expected, 2), found.p_value < 0.01
        (0.9, 0.53, True)
        """
        both = self.wins + self.wins.T + self.ties
        first, second = np.nonzero(np.triu(both))
        p = find_misfit(self.tests)[np.ix_(self.places, self.places)]
        tables = both, self.observed_win_rates, self.win_rates, p
        values = (table[first, second].tolist() for table in tables)
        rows = zip(first.tolist(), second.tolist(), *values, strict=True)
        found = [Misfit(self.items[i], self.items[j], *more) for i, j, *more in rows]
        return sorted(found, key=lambda each: 2.0 if np.isnan(each.p_value) else each.p_value)

    def to_frame(self) -> Any:
        """Return the table as a pandas, polars or PyArrow table, whichever is installed.

        Examples
        --------
        >>> import rankshot as rs
        >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
        >>> list(rs.leaderboard(votes).to_frame()["item"])
        ['a', 'b']
        """
        columns = map(list, zip(*self, strict=True))
        return make_frame(dict(zip(Standing._fields, columns, strict=True)))

    def to_dict(self) -> dict[str, object]:
        """Return all numbers of the leaderboard, for JSON.

        Examples
        --------
        >>> import rankshot as rs
        >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
        >>> list(rs.leaderboard(votes).to_dict()["pairs"][0])
        ['first', 'second', 'votes', 'observed', 'expected', 'p_value']
        """
        pairs = [each._asdict() for each in self.misfits()]
        found: dict[str, object] = {
            "level": self.level, "looks": self.looks, "scale": self.scale,
            "weight": self.weight, "raters": self.n_raters, "warnings": list(self.warnings),
            "reading": None if self.reading is None else str(self.reading),
            "items": [row._asdict() for row in self],
            "effects": {name: found._asdict() for name, found in self.effects.items()},
            "thin": self.thin, "pairs": pairs,
        }  # fmt: skip
        if self.categories:
            found["categories"] = {name: each.to_dict() for name, each in self.categories.items()}
        return {key: _without_infinity(value) for key, value in found.items()}

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
        notes = [*self.iterate_notes(), str(self.reading or "")]
        return "\n".join([*lines, *(f"  {note}" for note in notes if note)])

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
        looks = "" if self.looks == "one" else " for any number of looks"
        return f"{format_count(len(self), 'item')}, {rankings}, {intervals}{looks}"

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
            model = "Davidson" if self.tie_parameter else "Bradley-Terry"
            yield f"Elo points are those of the {model} model, fitted to all votes at once"
        for name, (value, (low, high)) in self.effects.items():
            yield f"effect of {name}: {value:.3g} ({low:.3g} to {high:.3g})"

    def _around_log_worths(self, errors: Floats) -> Floats:
        reach = self._looks.reach(errors, self.degrees, self.level)
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
            raise InputError("item", item, f"is not ranked{hint}")
        return self.items.index(item)


def _signed(value: float, digits: int) -> str:
    if not isfinite(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def _without_infinity(value: Any) -> Any:
    """Return a value with None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_infinity(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_infinity(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
