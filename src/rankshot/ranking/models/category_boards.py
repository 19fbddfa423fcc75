"""Leaderboards by category, and what differs between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.ranking.models.leaderboard import Leaderboard, as_rankings, leaderboard
from rankshot.ranking.models.robust_errors import centre

COLUMNS = ("a", "b", "winner", "loser", "rater", "weight", "count")


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
    ('dinner', 'a', -0.49, 0.0)
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
        variance = (1 - 2 / K) * variances + variances.sum(axis=0) / K**2
        error = np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        p = 2 * ndtr(-np.abs(gap / error)).ravel()
        gap, error = boards[0].unit * gap, boards[0].unit * error
        order = np.argsort(p)
        held = np.empty_like(p)
        held[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
        cells = [(name, item) for name in self._boards for item in common]
        rows = zip(cells, gap.ravel().tolist(), error.ravel().tolist(), held.tolist(), strict=True)
        found = [Difference(*cell, d, s, q) for cell, d, s, q in rows]
        return [found[i] for i in order]


def leaderboards(
    votes: Any, model: Any = None, *, category: str | None = None, **options: Any
) -> Leaderboards:
    """Make a leaderboard for each category of votes: for each target of the rankings.

    Parameters
    ----------
    votes : Rankings, data frame, str or Path
        As for `leaderboard`.
    model : PlackettLuce, DavidsonLuce or another model with worths, optional
    category : str, optional
        The column of categories, in a table of votes; `Rankings` have them as targets.
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
    kept = {name: options.pop(name) for name in COLUMNS if name in options}
    if category is not None:
        kept["category"] = category
    rankings = as_rankings(votes, **kept)
    if not rankings.target_names:
        raise RankshotError("the votes have no categories: name their column with category=")
    found = {}
    for name, part in rankings.by_target().items():
        listed = sorted({*part.codes.tolist()})
        if part.is_subset.all():
            part = part.change_items(tuple(part.items[i] for i in listed))  # noqa: PLW2901
        found[name] = leaderboard(part, model, **options)
    return Leaderboards(found)
