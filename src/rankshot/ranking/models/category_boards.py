"""Leaderboards by category, and what differs between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.ranking.models.board import Leaderboard
from rankshot.ranking.models.leaderboard import leaderboard, read_given
from rankshot.ranking.models.rank_intervals import adjust_holm
from rankshot.ranking.models.robust_errors import centre
from rankshot.ranking.ranking_files import TABLE_ARGUMENTS


class Difference(NamedTuple):
    """How an item differs in one category from the mean of all.

    Attributes
    ----------
    category, item : str
    difference : float
        The rating in this category minus the mean over the categories, in log-worths or Elo points.
    standard_error : float
    p_value : float
        Of no difference, adjusted by Holm's method for all differences together.

    Examples
    --------
    >>> import rankshot as rs
    >>> orders = [["a", "b"], ["b", "a"]]
    >>> votes = rs.Rankings.from_orders(
    ...     orders * 2, weights=[30, 10, 12, 28], targets=["lunch"] * 2 + ["dinner"] * 2)
    >>> found = rs.leaderboards(votes).differences()[0]
    >>> found.category, found.item, round(found.difference, 2), round(found.p_value, 3)
    ('dinner', 'a', -0.49, 0.001)
    """

    category: str
    item: str
    difference: float
    standard_error: float
    p_value: float


class Leaderboards(Mapping[str, Leaderboard]):
    """Leaderboards by category, a mapping; `leaderboards` makes it.

    Parameters
    ----------
    boards : dict of Leaderboard

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b"], ["b", "a"]] * 2, targets=["lunch"] * 2 + ["dinner"] * 2)
    >>> list(rs.leaderboards(votes))
    ['dinner', 'lunch']
    """

    def __init__(self, boards: dict[str, Leaderboard]) -> None:
        self._boards = boards

    def __getitem__(self, category: str) -> Leaderboard:
        if category not in self._boards:
            hint = suggest_name(category, self._boards)
            raise RankshotError(f"no category {short_repr(category)}{hint}")
        return self._boards[category]

    def __iter__(self) -> Iterator[str]:
        return iter(self._boards)

    def __len__(self) -> int:
        return len(self._boards)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {board!r}" for name, board in self.items())

    def differences(self) -> list[Difference]:
        """Return what differs between categories, the clearest differences first.

        Only items that all categories rank are compared, relative to their mean. Categories are
        treated as independent: if the same raters voted in all of them, that is cautious.
        """
        boards = list(self._boards.values())
        common = sorted(set.intersection(*({*board.items} for board in boards)))
        if len(boards) < 2 or len(common) < 2:
            raise RankshotError("there are no two categories with two items in common to compare")
        at = [[board.items.index(item) for item in common] for board in boards]
        K, both = len(boards), list(zip(boards, at, strict=True))
        theta = np.array([board.log_worths[i] for board, i in both])
        theta -= theta.mean(axis=1, keepdims=True)
        covariances = (centre(board.covariance[np.ix_(i, i)]) for board, i in both)
        variances = np.array([np.diag(V) for V in covariances])
        gap = theta - theta.mean(axis=0)
        # Each category adds its part to the variance, and has its own degrees of freedom (Welch).
        own, others = variances * (1 - 1 / K) ** 2, variances / K**2
        variance = np.maximum(own + others.sum(axis=0) - others, np.finfo(float).tiny)
        error, degrees = np.sqrt(variance), np.array([board.degrees[i] for board, i in both])
        rates = own**2 / degrees + (others**2 / degrees).sum(axis=0) - others**2 / degrees
        p = 2 * stdtr(variance**2 / np.maximum(rates, np.finfo(float).tiny), -np.abs(gap / error))
        held, order = adjust_holm(p.ravel()), np.argsort(p, axis=None)
        gap, error = boards[0].unit * gap, boards[0].unit * error
        cells = [(name, item) for name in self._boards for item in common]
        rows = zip(cells, gap.ravel().tolist(), error.ravel().tolist(), held.tolist(), strict=True)
        found = [Difference(*cell, d, s, q) for cell, d, s, q in rows]
        return [found[i] for i in order]


def leaderboards(
    votes: Any,
    model: Any = None,
    *,
    category: str | None = None,
    covariates: Iterable[str] = (),
    cluster: Any = None,
    **options: Any,
) -> Leaderboards:
    """Make a leaderboard for each category of votes: for each target of the rankings.

    Parameters
    ----------
    votes : Rankings, data frame, str or Path
        As for `leaderboard`.
    model : PlackettLuce, DavidsonLuce or another model with worths, optional
    category : str, optional
        The column of categories, in a table of votes; `Rankings` have them as targets.
    covariates, cluster
        Those of `leaderboard`; each category has its own coefficients.
    **options
        Those of `leaderboard`.

    Returns
    -------
    Leaderboards

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pairs(
    ...     ["a", "b"] * 30, ["b", "a"] * 30, targets=["lunch"] * 40 + ["dinner"] * 20)
    >>> boards = rs.leaderboards(votes)
    >>> list(boards), boards["lunch"].weight
    (['dinner', 'lunch'], 40.0)
    """
    columns = {name: options.pop(name) for name in TABLE_ARGUMENTS & {*options}}
    if category is not None:
        columns["category"] = category
    names = (covariates,) if isinstance(covariates, str) else tuple(covariates)
    given = read_given(votes, names, cluster, columns)
    if not given.rankings.target_names:
        raise RankshotError("the votes have no categories: name their column with category=")
    found = {}
    for name in given.rankings.target_names:
        part = given.select(given.rankings.targets == name)
        if part.rankings.is_subset.all():
            listed = np.unique(part.rankings.codes)
            items = tuple(part.rankings.items[i] for i in listed)
            part = part._replace(rankings=part.rankings.change_items(items))
        found[name] = leaderboard(part, model, covariates=names, **options)
    return Leaderboards(found)
