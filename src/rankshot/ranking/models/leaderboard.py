"""Leaderboards: items sorted by worth, and how certain their order is."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from rankshot.core.errors import (
    RankshotError,
    UnknownItemError,
    format_count,
    quote_names,
    short_repr,
    suggest_name,
)
from rankshot.core.estimators import clone
from rankshot.core.tables import ColumnReader, as_frame
from rankshot.core.validation import (
    Seed,
    require_choice,
    require_generator,
    require_number,
    require_whole_number,
)
from rankshot.ranking.consensus.precedence import item_weights, precedence
from rankshot.ranking.matrices import count_ties
from rankshot.ranking.models.davidson_luce import DavidsonLuce
from rankshot.ranking.models.information import (
    find_one_sided,
    find_quasi_variances,
    variances_of_differences,
)
from rankshot.ranking.models.match_covariates import fit_matches, read_covariates
from rankshot.ranking.models.plackett_luce import TIED, PlackettLuce
from rankshot.ranking.models.rank_intervals import choose_pairs, draw_errors, find_rank_intervals
from rankshot.ranking.models.robust_errors import (
    centre,
    clustered_covariance,
    find_units,
    halve_ties,
)
from rankshot.ranking.parts import (
    keep_counted_part,
    merge_copies,
    require_model,
    require_one_subject,
    require_rankings,
    require_some,
)
from rankshot.ranking.ranking_files import read_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.votes import read_votes

Floats = NDArray[np.float64]
Ties = Literal["outcome", "half", "ignore"]
Scale = Literal["log-worth", "elo"]
TIES = ("outcome", "half", "ignore")
ROWS_SHOWN = 20
FEW_VOTES = 10
"""Items with fewer votes are listed apart, unless they have a tenth of the median."""
ELO_MEAN, ELO_UNIT = 1000.0, 400 / np.log(10)
FRAMES = ("pandas", "polars", "pyarrow")


class Comparison(NamedTuple):
    """What is known about the difference between two items.

    Attributes
    ----------
    difference : float
        The rating of the first item minus that of the second, on the scale of the leaderboard. For
        log-worths, these are the log-odds that the first is placed before the second.
    standard_error : float
    interval : tuple of float
        Two numbers that the difference lies between, at the level of the leaderboard.
    certainty : float
        The probability that the first item really has the larger worth, if the difference is
        normal. It is too cautious for an item that won or lost nearly all its votes.

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
        From 1; items of equal worth share the best of their ranks.
    item : str
    rating, low, high : float
        The log-worth, or the Elo points, with its comparison interval.
    best_rank, worst_rank : int
        The interval of the rank.
    votes : float
        The rankings that compare the item with others, by weight.
    wins, ties, share : float
        How often it came before, or tied with, another item; and the share of wins among all
        comparisons, a tie as half a win.
    standard_error : float
        That of the rating.

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
    votes: float
    wins: float
    ties: float
    share: float
    standard_error: float


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard:
    """Items sorted by worth, best first, with intervals; `leaderboard` makes one.

    ``len``, iteration and ``board["item"]`` give its rows (`Standing`). Rows, `compare`,
    `votes_needed` and what is printed have the scale of the leaderboard; all arrays are of
    log-worths.

    Attributes
    ----------
    items : tuple of str
        Best first. All arrays have this order.
    log_worths : ndarray of shape (C,)
        They add up to zero.
    covariance : ndarray of shape (C, C)
        The covariance of the log-worths.
    degrees : float
        The degrees of freedom of Student's distribution, for all intervals.
    votes : ndarray of shape (C,)
        The rankings that compare each item with others, by weight.
    wins, ties : ndarray of shape (C, C)
        How often the item of the row came before that of the column, and how often the two tied.
    weight : float
        The number of rankings, or the sum of their weights.
    counted : {"vote", "ranking"}
        What ``weight`` counts: votes between two items, or other rankings.
    n_raters : int
        The number of raters, if intervals treat the rankings of one rater as dependent; otherwise
        0.
    tie_parameter : float
        δ of `DavidsonLuce` for ties of two items; 0 where a tie is not an outcome.
    effects : dict
        The coefficient of each covariate in the log-odds, as an `Estimate`.
    thin : dict
        The items that have too few votes to be ranked, with their votes.
    level : float
        The level of all intervals, such as 0.95.
    scale : {"log-worth", "elo"}
        The scale of ratings and their differences.
    n_draws, seed : int
        For intervals of ranks.

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
    degrees: float
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
        """Intervals of the log-worths, which are relative to the mean, of shape (C, 2)."""
        return self._around_log_worths(self.standard_errors)

    @cached_property
    def rank_intervals(self) -> NDArray[np.int64]:
        """The best and the worst rank that each item may really have, of shape (C, 2)."""
        rng = np.random.default_rng(self.seed)
        errors = draw_errors(self.covariance, self.degrees, self.n_draws, rng)
        return find_rank_intervals(
            self.log_worths, self.covariance, errors, self.degrees, self.level
        )

    @cached_property
    def quasi_variances(self) -> Floats:
        """One variance per item, such that differences have about the sum of two of them."""
        return find_quasi_variances(self.covariance)

    @property
    def comparison_intervals(self) -> Floats:
        """Intervals from quasi-variances, of shape (C, 2), for comparisons by eye.

        Table and plot show them. Items whose intervals do not overlap differ clearly. The intervals
        of items that differ may overlap a little: `compare` takes the covariance of the two. A
        quasi-variance can be negative; such an item has the interval of its standard error.
        """
        variances = self.quasi_variances
        shown = np.where(variances > 0, variances, np.diag(self.covariance))
        return self._around_log_worths(np.sqrt(shown))

    def compare(self, first: str, second: str) -> Comparison:
        """Return how certain it is that the first item is above the second.

        Interval and certainty treat the difference as normal. That is too cautious where an item
        won or lost nearly all its votes: 100 wins of 100 have a certainty of 0.95. The wins
        themselves are the better evidence there.

        Parameters
        ----------
        first, second : str
            The names of two items.
        """
        i, j = self._find(first), self._find(second)
        difference = float(self.log_worths[i] - self.log_worths[j])
        error = float(np.sqrt(variances_of_differences(self.covariance)[i, j]))
        difference, error = self.unit * difference, self.unit * error
        reach = self._quantile * error
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.float64(difference) / error
        certainty = 0.5 if np.isnan(z) else float(stdtr(self.degrees, z))
        return Comparison(difference, error, (difference - reach, difference + reach), certainty)

    def probability(self, first: str, second: str) -> Estimate:
        """Return the probability that the first item beats the second in one vote.

        Where a tie is an outcome, the two may also tie: the rest up to 1 is that of a tie and of
        the second item. The tie parameter is treated as known.

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

        A tie counts as half a win; NaN on the diagonal. `observed_win_rates` are those of the
        votes.
        """
        won = self._win_probability(self.log_worths[:, None] - self.log_worths)
        shares = (won + 1 - won.T) / 2
        np.fill_diagonal(shares, np.nan)
        return np.asarray(shares)

    @property
    def observed_win_rates(self) -> Floats:
        """The share of votes that the row won against the column; NaN where there is none."""
        both = self.wins + self.wins.T + self.ties
        won = self.wins + self.ties / 2
        return np.asarray(np.divide(won, both, out=np.full(both.shape, np.nan), where=both > 0))

    def _win_probability(self, difference: Floats) -> Floats:
        # Without overflow: both terms are at most 1 for the item that is ahead.
        ahead = np.exp(-np.abs(difference))
        total = 1 + ahead + self.tie_parameter * np.sqrt(ahead)
        return np.asarray(np.where(difference >= 0, 1.0, ahead) / total)

    def next_pairs(self, n: int = 1) -> list[tuple[str, str]]:
        """Return the pairs of items whose votes would say most about the ranks that are still open.

        Ask for votes on these pairs, and make a new leaderboard from all votes. In simulations with
        15 items, 200 votes on such pairs said as much about the ranks as 280 on random pairs
        (``tests/ranking/test_planning.py``).

        Parameters
        ----------
        n : int
            How many pairs, the better item first; one may be named several times.

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
            raise RankshotError("there is one item: no pair to ask for")
        chosen = choose_pairs(self.log_worths, self.covariance, n)
        return [(self.items[i], self.items[j]) for i, j in chosen]

    def votes_needed(self, width: float) -> int:
        """Return how many more votes are needed for comparison intervals of this mean width.

        The width is that of the ratings: log-worths or Elo points. New votes are assumed to be like
        the existing ones: the same shares of pairs, and as many raters per vote. Width falls with
        the square root of the number of votes.

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

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the ratings with comparison intervals: a `rankshot.plots.WorthsDisplay`.

        Parameters
        ----------
        ax : matplotlib axes, optional
        """
        # This layer imports none above it; the package knows them all.
        return sys.modules["rankshot"].plots.WorthsDisplay.from_leaderboard(self, ax=ax)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Standing]:
        ratings = self._to_scale(np.column_stack([self.log_worths, self.comparison_intervals]))
        wins, ties = self.wins.sum(axis=1), self.ties.sum(axis=1)
        compared = wins + ties + self.wins.sum(axis=0)
        share = (wins + ties / 2) / np.where(compared > 0, compared, np.nan)
        columns = (*ratings.T, *self.rank_intervals.T, self.votes, wins, ties, share)
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
        return ("rank", "item", self.scale, "interval", "ranks", "votes", "share")

    @property
    def summary(self) -> str:
        """The numbers of items and rankings, and what the intervals are, in words."""
        by = f" by {format_count(self.n_raters, 'rater')}" if self.n_raters else ""
        rankings = f"{self.weight:,.12g} {self.counted}{'' if self.weight == 1 else 's'}{by}"
        intervals = f"{100 * self.level:g} % comparison intervals"
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
            interval = f"{_signed(row.low, digits)} to {_signed(row.high, digits)}"
            ranks, votes = f"{row.best_rank} to {row.worst_rank}", f"{row.votes:,.6g}"
            rating = _signed(row.rating, digits)
            yield f"{row.rank}", row.item, rating, interval, ranks, votes, f"{row.share:.2f}"

    def iterate_notes(self) -> Iterator[str]:
        """Yield what the table says below its rows: thin items, and effects of covariates."""
        if self.thin:
            names = [f"{item} ({votes:.6g})" for item, votes in self.thin.items()]
            more = f" and {len(names) - ROWS_SHOWN:,} more" if len(names) > ROWS_SHOWN else ""
            yield f"too few votes to be ranked: {', '.join(names[:ROWS_SHOWN])}{more}"
        for name, (value, (low, high)) in self.effects.items():
            yield f"effect of {name}: {value:.3g} ({low:.3g} to {high:.3g})"

    @property
    def _quantile(self) -> float:
        """How many standard errors an interval reaches."""
        return float(stdtrit(self.degrees, (1 + self.level) / 2))

    def _around_log_worths(self, errors: Floats) -> Floats:
        return np.asarray(self.log_worths[:, None] + self._quantile * np.outer(errors, [-1, 1]))

    @property
    def unit(self) -> float:
        """What a difference of log-worths of 1 is on the scale of ratings."""
        return float(ELO_UNIT) if self.scale == "elo" else 1.0

    def _to_scale(self, log_worths: Floats) -> Floats:
        return self.unit * log_worths + (ELO_MEAN if self.scale == "elo" else 0.0)

    def _find(self, item: str) -> int:
        if item not in self.items:
            hint = suggest_name(item, (*self.items, *self.thin))
            raise UnknownItemError(f"unknown item {short_repr(item)}{hint}")
        return self.items.index(item)


def _signed(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def leaderboard(
    votes: Any,
    model: Any = None,
    *,
    ties: Ties | None = None,
    covariates: Iterable[str] = (),
    min_votes: float | None = None,
    scale: Scale = "log-worth",
    level: float = 0.95,
    n_draws: int = 1000,
    random_state: Seed = 0,
    **columns: str,
) -> Leaderboard:
    r"""Sort items by worth, and say how certain their order is.

    Parameters
    ----------
    votes : Rankings, data frame, str or Path
        Rankings of any kind; or a table of votes between two items, as `Rankings.from_votes` takes
        it; or a file of rankings, as `read_rankings` does.
    model : PlackettLuce, DavidsonLuce or another model with worths, optional
        A copy is fitted to the rankings. A model that is fitted is used as it is. By default, the
        model that ``ties`` needs.
    ties : {"outcome", "half", "ignore"}, optional
        What a tie is: an outcome of its own, more likely between items of equal worth
        (`DavidsonLuce`); half a win of each of two items, as leaderboards of language models have
        it; or an unknown order, which says nothing about two items. By default an outcome, if there
        are ties.
    covariates : iterable of str
        Columns of the table of votes that may explain who wins in addition to the worths:
        ``length`` is the column of this name (of the first item minus that of the second), or
        ``length_a`` minus ``length_b``; ``position`` is what it is worth to be the first of the
        two.
    min_votes : float, optional
        Items with fewer votes are listed apart. By default 10, or a tenth of the median if that is
        less.
    scale : {"log-worth", "elo"}
        The scale of ratings and their differences: log-worths, or Elo points with the mean 1000.
    level : float
        The level of the intervals.
    n_draws : int
        The number of draws for intervals of ranks.
    random_state : int, Generator or None
    **columns : str
        The names of the columns of a table, as `Rankings.from_votes` takes them: ``a``, ``b``,
        ``winner``, ``loser``, ``rater``, ``weight`` and ``count``.

    Returns
    -------
    Leaderboard

    Notes
    -----
    If raters gave several rankings, these may be correlated, and errors are clustered by rater (a
    sandwich, with Student's distribution of G - 1 degrees of freedom for G raters). The same holds,
    with single rankings in place of raters, for half wins and for weights that are not whole
    numbers; only ratios of such weights count. A whole weight w counts as w rankings. Otherwise
    errors are those of the model, with 2 n degrees of freedom for n rankings.

    The rank interval of an item contains its true rank with at least the probability ``level``,
    however close the worths are (Mogstad et al. 2024, with the step-down of their section 4).

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm (2024), Inference for ranks with applications to mobility
    across neighbourhoods and academic achievement across countries. Review of Economic Studies 91.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]], weights=[50, 20, 10])
    >>> rs.leaderboard(votes)
    Leaderboard: 3 items, 80 rankings, 95 % comparison intervals
      rank  item  log-worth        interval   ranks  votes  share
         1  a          1.24    0.88 to 1.61  1 to 1     80   0.81
         2  b          0.39    0.13 to 0.64  2 to 2     80   0.56
         3  c         -1.63  -2.25 to -1.01  3 to 3     80   0.12
    """
    require_number("level", level, above=0, below=1)
    require_whole_number("n_draws", n_draws, least=2)
    require_choice("scale", scale, ("log-worth", "elo"))
    if min_votes is not None:
        require_number("min_votes", min_votes, least=0)
    if ties is not None:
        require_choice("ties", ties, TIES)
    seed = int(require_generator(random_state).integers(2**63))
    settings = {"level": level, "scale": scale, "n_draws": n_draws, "seed": seed}
    names = (covariates,) if isinstance(covariates, str) else tuple(covariates)
    if names:
        found = _fit_with_covariates(votes, model, ties, names, columns, settings)
    else:
        found = _fit(as_rankings(votes, **columns), model, ties, settings)
    _warn_of_names(found.items)
    return _sort(found, min_votes)


def _sort(board: Leaderboard, least: float | None) -> Leaderboard:
    """Return a leaderboard, best first, of the items that have enough votes."""
    votes = board.votes
    if least is None:
        least = min(FEW_VOTES, float(np.median(votes[votes > 0])) / 10)
    kept = np.flatnonzero(votes >= least)
    if not kept.size:
        raise RankshotError(f"no item has {least:g} votes: lower min_votes")
    values = board.log_worths[kept] - board.log_worths[kept].mean()
    order = np.lexsort(([board.items[i] for i in kept], -values))
    at = kept[order]
    thin = (i for i in np.argsort(-votes, kind="stable") if votes[i] < least)
    return replace(
        board,
        items=tuple(board.items[i] for i in at),
        log_worths=values[order],
        covariance=centre(board.covariance[np.ix_(at, at)]),
        votes=votes[at],
        wins=board.wins[np.ix_(at, at)],
        ties=board.ties[np.ix_(at, at)],
        thin={board.items[i]: float(votes[i]) for i in thin},
    )


def as_rankings(votes: Any, **columns: Any) -> Rankings:
    """Return rankings as they are, or those of a file or of a table of votes."""
    if isinstance(votes, (str, Path)) and not columns:
        return read_rankings(votes)
    if isinstance(votes, (str, Path)) or as_frame(votes) is not None:
        return Rankings.from_votes(votes, **columns)
    if columns:
        raise RankshotError(f"{next(iter(columns))}= names a column of a table, not of Rankings")
    return require_rankings(votes)


# ---- The fit


def _fit(
    rankings: Rankings, model: Any, ties: Ties | None, settings: dict[str, Any]
) -> Leaderboard:
    """Return a leaderboard of all items, as they come."""
    weight = require_one_subject(rankings).weight
    counted = keep_counted_part(rankings)
    model, ties = choose_model(counted, model, ties)
    is_fitted = hasattr(model, "log_worths_")
    if is_fitted:
        counted = counted.with_items(model.items_)
    elif hasattr(model, "predict_log_worths"):
        raise RankshotError("a model with features must be fitted before: give a fitted model")
    merged, number = merge_copies(counted)
    # Rankings of several targets are warned of once.
    merged = replace(merged, targets=np.full(len(merged), None, object))
    halved = ties == "half" and merged.has_ties
    data = halve_ties(merged) if halved else merged
    fitted = model if is_fitted else clone(model).fit(data)
    units = find_units(counted.raters, counted.weights, number)
    votes, wins, tied = _count(merged)
    one_sided, described = find_one_sided(wins if ties == "ignore" else wins + tied, merged.items)
    if described:
        warnings.warn(
            f"some items always won, always lost or were not compared ({described}). They have no "
            "finite estimate: only the penalty of the model holds them, and their intervals say "
            "little. Leave them out, or give a model with more regularization",
            stacklevel=3,
        )
    by_rater = units.n_raters > 0 and units.n > 1
    if halved or by_rater or not units.weights_are_counts:
        tied_rows = merged.rows_with_ties if halved else None
        covariance = clustered_covariance(fitted, data, units, one_sided, tied_rows)
        degrees = max(units.n - 1, 1.0)
    else:
        covariance, degrees = fitted.covariance(data), 2 * max(weight, 1.0)
        if units.n_raters:
            warnings.warn(
                "all rankings are of one rater: the intervals say how this rater would decide "
                "again, not what other raters would say",
                stacklevel=3,
            )
    what = "vote" if np.all(counted.is_subset & (counted.n_listed == 2)) else "ranking"
    counts = votes, wins, tied, weight, what, units.n_raters * by_rater
    delta = getattr(fitted, "tie_parameters_", {}).get(2, 0.0)
    items, theta = fitted.items_, fitted.log_worths_
    return Leaderboard(items, theta, covariance, degrees, *counts, delta, {}, {}, **settings)


def choose_model(
    rankings: Rankings, model: Any, ties: Ties | None, **settings: Any
) -> tuple[Any, Ties]:
    """Return the model, and what a tie is in it."""
    if model is None:
        ties = ties or ("outcome" if rankings.has_ties else "ignore")
        model = (DavidsonLuce if ties == "outcome" else PlackettLuce)(**settings)
    elif not hasattr(require_model(model), "covariance"):
        raise RankshotError(
            f"{type(model).__name__} has no worths: use PlackettLuce, DavidsonLuce or "
            "PlackettLuceRegression"
        )
    is_outcome = isinstance(model, DavidsonLuce)
    own: Ties = "outcome" if is_outcome else "ignore"
    if ties not in (None, own) and (is_outcome or ties == "outcome"):
        raise RankshotError(
            f"ties={ties!r} needs {'PlackettLuce' if is_outcome else 'DavidsonLuce'}, not "
            f"{type(model).__name__}: leave one of the two out"
        )
    if ties == "half" and np.any(rankings.rows_with_ties & (rankings.n_listed > 2)):
        raise RankshotError(
            "half a win is for ties of two items in votes, and these rankings tie items of longer "
            "lists: use ties='outcome' or ties='ignore'"
        )
    return model, ties or own


def _fit_with_covariates(
    votes: Any,
    model: Any,
    ties: Ties | None,
    names: tuple[str, ...],
    columns: dict[str, str],
    settings: dict[str, Any],
) -> Leaderboard:
    if isinstance(votes, Rankings) or model is not None:
        raise RankshotError(
            "covariates need a table of votes, a data frame or a file, and no model"
        )
    table = ColumnReader(votes)
    read = read_votes(table, **columns)
    rankings = Rankings.of_votes(read)
    weight = require_some(rankings).weight
    ties = ties or ("outcome" if rankings.has_ties else "ignore")
    X, eta = read_covariates(table, names), PlackettLuce().regularization
    b, V, units = fit_matches(read, X, names, ties=ties, regularization=eta)
    C, degrees = len(read.items), max(units.n - 1, 1.0)
    reach = stdtrit(degrees, (1 + settings["level"]) / 2) * np.sqrt(np.diag(V))
    effects = {
        name: Estimate(float(b[k]), (float(b[k] - reach[k]), float(b[k] + reach[k])))
        for k, name in enumerate(names, C)
    }
    delta = float(np.exp(b[-1])) if ties == "outcome" else 0.0
    counted = merge_copies(keep_counted_part(rankings))[0]
    counts = *_count(counted), weight, "vote", units.n_raters
    return Leaderboard(
        read.items, b[:C], V[:C, :C], degrees, *counts, delta, effects, {}, **settings
    )


def _count(rankings: Rankings) -> tuple[Floats, Floats, Floats]:
    """Return the votes of each item, and the wins and ties of each two."""
    top = ~rankings.is_subset
    everywhere = float(rankings.weights[top].sum())
    votes = item_weights(rankings[~top] if top.any() else rankings) + everywhere
    return votes, precedence(rankings), count_ties(rankings)


# ---- What a reader should know


def _warn_of_names(items: tuple[str, ...]) -> None:
    """Warn of names that differ only in case, blanks or signs between words."""
    alike: dict[str, list[str]] = {}
    for item in items:
        alike.setdefault(" ".join(item.replace("_", " ").split()).casefold(), []).append(item)
    if several := [names for names in alike.values() if len(names) > 1]:
        text = "; ".join(" and ".join(map(repr, names)) for names in several[:3])
        warnings.warn(
            f"some names are nearly equal, and count as different items: {text}", stacklevel=3
        )
