"""The prior P(π|z): a ranking model fitted to the rankings of each new class; its consensus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.core.errors import RankshotError, short_repr
from rankshot.ranking.agreement import merge_rankings
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.parts import AnyRankings, keep_counted
from rankshot.ranking.rankings import Rankings


class RankingModel(Protocol):
    """The interface of a prior: that of `PlackettLuce`, `Mallows` and `BabingtonSmith`."""

    mode_: tuple[Any, ...]

    def fit(self, rankings: Rankings) -> RankingModel:
        """Fit the model to the rankings of one new class."""

    def log_prob(self, rankings: Rankings) -> NDArray[np.float64]:
        """Return the log-probability of each ranking."""


def require_prior(prior: RankingModel | None) -> RankingModel:
    """Return the prior model, by default `PlackettLuce()`."""
    prior = PlackettLuce() if prior is None else prior
    if isinstance(prior, type) or not (hasattr(prior, "fit") and hasattr(prior, "log_prob")):
        raise RankshotError(
            f"the prior must be a ranking model such as PlackettLuce(), not {short_repr(prior)}"
        )
    return prior


def fit_priors(
    rankings: Rankings, prior: RankingModel | None, k: int, *, singles: bool = False
) -> dict[str, RankingModel]:
    """Fit a copy of the model to the first k places of the rankings of each new class: P(π|z).

    Classes with a single ranking are left out, unless ``singles`` is true: one ranking needs
    no merging.
    """
    prior = require_prior(prior)
    return {
        target: clone(prior).fit(theirs)
        for target, theirs in rankings.top(k).by_target().items()
        if singles or len(theirs) > 1
    }


def consensus_rankings(
    rankings: AnyRankings, priors: Mapping[Any, RankingModel], k: int
) -> Rankings:
    """Return one ranking per new class, π_0^z: the mode of its prior, cut to k.

    ``priors`` are those of `fit_priors` for the same k. See `merge_rankings`. Rankings without a
    target are those of one class, None.
    """
    first = keep_counted(rankings).top(k)
    named: Mapping[Any, AnyRankings] = first.by_target() or {None: first}
    return Rankings.concatenate(
        [merge_rankings(theirs, priors.get(target)) for target, theirs in named.items()]
    )
