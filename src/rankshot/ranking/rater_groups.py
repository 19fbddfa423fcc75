"""Do the raters of a target fall into groups that do not agree? Said only if it is clear."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from rankshot.core.errors import format_count
from rankshot.ranking.construction import number_labels
from rankshot.ranking.entries import find_first
from rankshot.ranking.matrices import (
    ABSENT,
    NamedOrder,
    find_ranked_items,
    keep_ranked_items,
    levels,
)
from rankshot.ranking.models.mixture import RankingMixture
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.parts import keep_counted_part
from rankshot.ranking.rankings import Rankings

FEWEST_RATERS = 10
"""Of fewer raters nothing can be said."""
FEWEST_IN_GROUP = 3
"""Fewer raters are not a group: they may be careless. They are listed as furthest from the rest."""
MOST_GROUPS = 3
BIC_MARGIN = 10.0
"""By how much the BIC must be smaller with one more group: very strong evidence, after Kass and
Raftery (1995)."""
LEAST_MEMBERSHIP = 0.9
"""The least mean probability with which raters belong to their groups."""
MOST_RATER_PAIRS = 1_000_000
"""Raters times pairs of items; more would take longer than a second or two."""


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
    three raters, and raters belong to their groups with a mean probability of 0.9 or more. Weights
    do not count.
    """
    rankings = _keep_named(rankings)
    if len(rankings.rater_names) < FEWEST_RATERS or has_too_many_raters(rankings):
        return ()
    last = _fit(rankings, 1)
    if not _looks_split(rankings, last):
        return ()
    found: tuple[RaterGroup, ...] = ()
    for n_groups in range(2, MOST_GROUPS + 1):
        mixture = _fit(rankings, n_groups)
        groups = _list_groups(mixture, rankings)
        if mixture.bic_ > last.bic_ - BIC_MARGIN or not groups:
            break
        found, last = groups, mixture
    return found


def format_groups(groups: tuple[RaterGroup, ...], most: int) -> str:
    """Return a sentence about groups, with the first ``most`` places of each."""
    parts = [format_count(len(groups), "group")]
    for group in groups:
        places = [tie if isinstance(tie, str) else " = ".join(tie) for tie in group.order[:most]]
        more = " > …" if len(group.order) > most else ""
        parts.append(f"{format_count(len(group.raters), 'rater')}: {' > '.join(places)}{more}")
    return ". ".join(parts)


def has_too_many_raters(rankings: Rankings) -> bool:
    """Tell whether a search for groups would take long."""
    return len(rankings) * int(find_ranked_items(rankings).sum()) ** 2 > MOST_RATER_PAIRS


def _keep_named(rankings: Rankings) -> Rankings:
    """Keep the different rankings of each named rater, and the items that are in any of them.

    Weights and repetitions are left out: that an answer counts ten times does not make it ten
    independent ones, and evidence for groups would grow with it.
    """
    named = np.array([rater is not None for rater in rankings.raters], bool)
    rankings = keep_counted_part(rankings[named])
    columns = [number_labels(rankings.raters), rankings.lengths, rankings.is_subset]
    rankings = rankings[np.sort(find_first(rankings.lists.number_equal_rows(columns)))]
    nothing = np.full(len(rankings), None, object)
    rankings = replace(rankings, targets=nothing, weights=np.ones(len(rankings)))
    return keep_ranked_items(rankings) if len(rankings) else rankings


def _looks_split(rankings: Rankings, one: RankingMixture) -> bool:
    """Tell whether two halves of the raters, found quickly, have a smaller BIC than all together.

    This takes a small part of the time of EM, and most targets need no more.
    """
    names, rater = np.unique(rankings.raters.astype(str), return_inverse=True)
    half = _split_in_two(rankings, rater, len(names))
    sizes = np.bincount(half, minlength=2)
    if sizes.min() < FEWEST_IN_GROUP:
        return False
    log_likelihood = float(sizes @ np.log(sizes / sizes.sum())) + sum(
        PlackettLuce().fit(rankings[half[rater] == side]).log_likelihood_ for side in (0, 1)
    )
    n_parameters = 2 * one.n_parameters_ + 1
    bic = -2 * log_likelihood + n_parameters * float(np.log(len(names)))
    return bic < one.bic_


def _split_in_two(rankings: Rankings, rater: NDArray[np.intp], n_raters: int) -> NDArray[np.intp]:
    """Split raters by 2-means of "i before j"."""
    table = levels(rankings)
    sign = np.sign(table[:, None, :] - table[:, :, None]).astype(float)
    present = table != ABSENT
    sign *= present[:, None, :] & present[:, :, None]
    votes = np.zeros((n_raters, rankings.n_items**2))
    np.add.at(votes, rater, sign.reshape(len(table), -1))
    if np.all(votes == votes[0]):
        return np.zeros(n_raters, np.intp)
    return np.asarray(KMeans(2, n_init=2, random_state=0).fit_predict(votes))


def _fit(rankings: Rankings, n_groups: int) -> RankingMixture:
    return RankingMixture(n_groups=n_groups, n_starts=3, tol=0.01, random_state=0).fit(rankings)


def _list_groups(mixture: RankingMixture, rankings: Rankings) -> tuple[RaterGroup, ...]:
    """Return the raters of each group; nothing if a group is small, or membership is unsure."""
    names, first = np.unique(rankings.raters.astype(str), return_index=True)
    memberships = mixture.predict_proba(rankings)[first]
    group = memberships.argmax(axis=1)
    sizes = np.bincount(group, minlength=mixture.n_groups)
    if sizes.min() < FEWEST_IN_GROUP or memberships.max(axis=1).mean() < LEAST_MEMBERSHIP:
        return ()
    longest = int(rankings.lengths.max())
    return tuple(
        RaterGroup(tuple(names[group == g].tolist()), mixture.models_[g].mode_[:longest])
        for g in np.argsort(-sizes, kind="stable")
    )
