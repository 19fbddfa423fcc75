"""The prior P(π|z): a ranking model fitted to the rankings of each target, and its consensus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.ranking.checks import require_rankings
from rankshot.ranking.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.similarity import Similarity

DEFAULT_K = 10
"""The number of places of each ranking that count, by default in all heads."""


class RankingModel(Protocol):
    """The interface of a prior: that of `PlackettLuce`, `Mallows` and `BabingtonSmith`."""

    mode_: tuple[Any, ...]

    def fit(self, rankings: Rankings) -> RankingModel:
        """Fit the model to the rankings of one target."""

    def log_prob(self, rankings: Rankings) -> NDArray[np.float64]:
        """Return the log-probability of each ranking."""


def require_targets(rankings: Rankings) -> Rankings:
    """Return the rankings with a weight above 0; each must have a target."""
    if isinstance(rankings, Similarity):
        raise RankshotError(
            f"expected Rankings, not the similarities of {rankings.source!r}: use its to_rankings()"
        )
    require_rankings(rankings)
    nameless = np.flatnonzero([target is None for target in rankings.targets])
    if nameless.size:
        raise RankshotError(
            f"ranking {nameless[0]} has no target: name the target of each ranking with targets=, "
            'or with "target" in a file'
        )
    used = rankings[rankings.weights > 0]
    if len(used) == 0:
        raise RankshotError("there are no rankings (or all have weight 0)")
    return used


def require_k(k: int | None, n_items: int) -> int:
    """Return the number of places that count: ``k``, but at most all items; all for None."""
    if k is None:
        return n_items
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise RankshotError(f"k must be a positive integer, or None for all, not {short_repr(k)}")
    return min(int(k), n_items)


def require_prior(prior: RankingModel | None) -> RankingModel:
    """Return the prior model, by default `PlackettLuce()`."""
    prior = PlackettLuce() if prior is None else prior
    if isinstance(prior, type) or not (hasattr(prior, "fit") and hasattr(prior, "log_prob")):
        raise RankshotError(
            f"the prior must be a ranking model such as PlackettLuce(), not {short_repr(prior)}"
        )
    return prior


def fit_priors(
    rankings: Rankings, prior: RankingModel | None, *, singles: bool = False
) -> dict[str, RankingModel]:
    """Fit a copy of the model to the rankings of each target: P(π|z).

    Targets with a single ranking are left out, unless ``singles`` is true: one ranking needs
    no merging.
    """
    prior = require_prior(prior)
    return {
        target: clone(prior).fit(theirs)
        for target, theirs in rankings.by_target().items()
        if singles or len(theirs) > 1
    }


def consensus_rankings(rankings: Rankings, priors: Mapping[str, RankingModel], k: int) -> Rankings:
    """Return one ranking per target, π_0^z: the mode of its prior, cut to k.

    A target with a single ranking has that ranking, with its ties and its kind, as consensus.
    """
    parts = []
    for target, theirs in rankings.by_target().items():
        if len(theirs) == 1:
            parts.append(theirs)
            continue
        order = priors[target].mode_
        parts.append(Rankings.from_orders([order], items=rankings.items, targets=target))
    return Rankings.concatenate(parts).top(k)


def describe_indistinguishable(head: Any) -> list[str]:
    """Return one warning per group of targets that a fitted head cannot distinguish."""
    names = [str(name) for name in head.classes_]
    if len(names) == 1:
        return [f"{names[0]!r} is the only class: every input will be given it"]
    used = getattr(head, "consensus_", None)
    if used is None:
        used = getattr(head, "rankings_", None)
    if used is None:
        return []
    return [
        f"the rankings of {quote_names(same)} are the same in all places that count: inputs of "
        "these classes cannot be distinguished"
        for same in _group_equal_targets(used)
    ]


def _group_equal_targets(rankings: Rankings) -> list[list[str]]:
    """Return groups of targets with the same rankings and the same shares of the weight."""
    numbers = rankings.lists.number_equal_rows([rankings.lengths, rankings.is_subset])
    shares: dict[str, dict[int, float]] = {}
    for target, number, weight in zip(rankings.targets, numbers, rankings.weights, strict=True):
        theirs = shares.setdefault(str(target), {})
        theirs[int(number)] = theirs.get(int(number), 0.0) + float(weight)
    groups: dict[frozenset[tuple[int, float]], list[str]] = {}
    for target in sorted(shares):
        total = sum(shares[target].values())
        key = frozenset((n, round(share / total, 9)) for n, share in shares[target].items())
        groups.setdefault(key, []).append(target)
    return [same for same in groups.values() if len(same) > 1]
