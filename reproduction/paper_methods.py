"""The methods of the paper's Table 2, each with the sources that it is fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.datasets.demo import DR, DS, LIST_LENGTH, PR, K, fill_missing
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity, arithmetic_mean, geometric_mean
from rankshot.zeroshot.paper.ranking_methods import (
    DeterministicRanking,
    ProbabilisticRanking,
    RankingModel,
)
from rankshot.zeroshot.paper.similarity_methods import ConSE, DirectSimilarity
from rankshot.zeroshot.scores import Scores

ARITHMETIC, GEOMETRIC = "arithmetic mean", "geometric mean"
PRIORS = {"Plackett-Luce": PlackettLuce, "Mallows": Mallows}


@dataclass(frozen=True, eq=False)
class Method:
    """A head, the semantics to which it is fitted, and the names of both."""

    method: str
    source: str
    head: Any
    semantics: Rankings | Similarity
    wants_reference: bool = False

    def mark_correct(
        self, scores: Scores, truth: NDArray[np.str_], reference: Scores | None = None
    ) -> NDArray[np.bool_] | None:
        """Fit the head and return which inputs it predicts correctly.

        Returns None if the head cannot use this kind of scores. The reference (scores of seen
        inputs) is passed to heads with ``wants_reference``.
        """
        if isinstance(self.head, DirectSimilarity | ConSE) and scores.kind == "one-vs-one":
            return None
        given = {"reference": reference} if self.wants_reference else {}
        head: Any = self.head
        return np.asarray(head.fit(self.semantics, **given).predict(scores) == truth)


def paper_head(prior: RankingModel | None = None) -> ProbabilisticRanking:
    """Return Probabilistic Ranking with the settings of the paper."""
    return ProbabilisticRanking(k=K, decay=0, prior=prior, posterior="consensus")


def paper_methods(sources: Mapping[str, Similarity], panel: Rankings) -> list[Method]:
    """Return all methods with all sources, in the order of the paper's Table 2.

    A source without a ranking for some target is used only together with the others.
    """
    tables = list(sources.values())
    merged = {ARITHMETIC: arithmetic_mean(tables), GEOMETRIC: geometric_mean(tables)}
    alone = {
        name: fill_missing(table)
        for name, table in sources.items()
        if not find_unranked_targets(table)
    }
    single = alone | {name: fill_missing(table) for name, table in merged.items()}
    linguistic = Rankings.concatenate(map(rank_items, tables))
    methods = [
        Method(DS, name, DirectSimilarity(), table.rescale()) for name, table in single.items()
    ]
    methods += [
        Method(DR, name, DeterministicRanking(k=K), rank_items(table))
        for name, table in single.items()
    ]
    methods += [Method(PR, name, paper_head(), rank_items(table)) for name, table in alone.items()]
    for what, rankings in (("linguistic", linguistic), ("panel", panel)):
        methods += [
            Method(PR, f"{what}, {name}", paper_head(prior()), rankings)
            for name, prior in PRIORS.items()
        ]
        mean = ProbabilisticRanking(k=K, decay=0, posterior="mean")
        methods.append(Method(PR, f"{what}, mean of rankings", mean, rankings))
    return methods


def rank_items(table: Similarity) -> Rankings:
    """Rank the items for each target by a source, and keep the first `LIST_LENGTH` of them.

    Targets for which the source ties all items have no ranking.
    """
    unranked = find_unranked_targets(table)
    ranked = [name for name in table.targets if name not in unranked]
    length = min(LIST_LENGTH, len(table.items))
    return fill_missing(table.select(ranked, table.items)).to_rankings(length)


def find_unranked_targets(table: Similarity) -> tuple[str, ...]:
    """Return the targets without similarities, or with the same similarity to all items."""
    missing = np.isnan(table.values)
    highest = np.where(missing, -np.inf, table.values).max(axis=1)
    lowest = np.where(missing, np.inf, table.values).min(axis=1)
    # A row without a number is not above itself either.
    ranked = highest > lowest
    return tuple(name for name, known in zip(table.targets, ranked, strict=True) if not known)
