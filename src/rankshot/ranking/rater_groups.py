"""Do the raters of a target fall into groups that do not agree? Said only if it is clear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rankshot.core.errors import format_count
from rankshot.ranking.layouts import NamedOrder
from rankshot.ranking.models.mixture import RankingMixture
from rankshot.ranking.parts import keep_counted_part
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.restriction import find_ranked_items, keep_ranked_items

FEWEST_RATERS = 10
"""Of fewer raters nothing can be said."""
FEWEST_IN_GROUP = 3
"""Fewer raters are no group: they may be careless, and are listed as furthest from the consensus."""
MOST_GROUPS = 3
MARGIN = 10.0
"""By how much the BIC must be smaller with one more group: very strong evidence, after Kass and
Raftery (1995)."""
SURE = 0.9
"""The least mean probability with which raters belong to their groups."""


@dataclass(frozen=True)
class RaterGroup:
    """Raters who agree more with one another than with the others.

    Attributes
    ----------
    raters : tuple of str
        Their names, sorted.
    order : tuple
        Their consensus, as long as the longest of the rankings; a tie is a tuple inside it.
    """

    raters: tuple[str, ...]
    order: NamedOrder


def find_rater_groups(rankings: Rankings) -> tuple[RaterGroup, ...]:
    """Return the groups that the raters of one target fall into, the largest first.

    Empty unless the evidence is clear: there are at least ten raters, the BIC of a mixture of
    Plackett-Luce models is smaller by 10 or more for each further group, each group has at least
    three raters, and raters belong to their groups with a mean probability of 0.9 or more.

    Examples
    --------
    >>> import rankshot as rs
    >>> orders = [["a", "b", "c", "d"]] * 8 + [["d", "c", "b", "a"]] * 6
    >>> raters = [f"p{i}" for i in range(14)]
    >>> votes = rs.Rankings.from_orders(orders, raters=raters)
    >>> for group in find_rater_groups(votes):
    ...     print(len(group.raters), group.order)
    8 ('a', 'b', 'c', 'd')
    6 ('d', 'c', 'b', 'a')
    """
    named = np.array([rater is not None for rater in rankings.raters], bool)
    rankings = keep_counted_part(rankings[named])
    if len(rankings.rater_names) < FEWEST_RATERS:
        return ()
    rankings = keep_ranked_items(rankings, find_ranked_items(rankings))
    found: tuple[RaterGroup, ...] = ()
    last = _fit(rankings, 1)
    for n_groups in range(2, MOST_GROUPS + 1):
        mixture = _fit(rankings, n_groups)
        groups = _list_groups(mixture, rankings)
        if mixture.bic_ > last.bic_ - MARGIN or not groups:
            break
        found, last = groups, mixture
    return found


def _fit(rankings: Rankings, n_groups: int) -> RankingMixture:
    return RankingMixture(n_groups=n_groups, n_starts=4, tol=0.01, random_state=0).fit(rankings)


def _list_groups(mixture: RankingMixture, rankings: Rankings) -> tuple[RaterGroup, ...]:
    """Return the raters of each group; nothing if a group is small, or membership is unsure."""
    names, first = np.unique(rankings.raters.astype(str), return_index=True)
    memberships = mixture.predict_proba(rankings)[first]
    group = memberships.argmax(axis=1)
    sizes = np.bincount(group, minlength=mixture.n_groups)
    if sizes.min() < FEWEST_IN_GROUP or memberships.max(axis=1).mean() < SURE:
        return ()
    longest = int(rankings.lengths.max())
    return tuple(
        RaterGroup(tuple(names[group == g].tolist()), mixture.models_[g].mode_[:longest])
        for g in np.argsort(-sizes, kind="stable")
    )
