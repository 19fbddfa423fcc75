"""The methods of the paper's Table 2, each with its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.experiments.benchmark import fill_missing, find_unranked_targets, rank_items
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity, arithmetic_mean, geometric_mean
from rankshot.zeroshot.alignment import Semantics
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.conse import ConSE
from rankshot.zeroshot.heads.deterministic_ranking import DeterministicRanking
from rankshot.zeroshot.heads.direct_similarity import DirectSimilarity
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.prior import RankingModel
from rankshot.zeroshot.scores import Scores

K = 4
"""The length of the top lists in the paper's Table 2."""
DS, DR, PR = "Direct Similarity", "Deterministic Ranking", "Probabilistic Ranking"
ARITHMETIC, GEOMETRIC = "arithmetic mean", "geometric mean"
PRIORS = {"Plackett-Luce": PlackettLuce, "Mallows": Mallows}
MEAN = "mean of rankings"


@dataclass(frozen=True, eq=False)
class Method:
    """A head, the semantics to which it is fitted, and the names of both."""

    method: str
    source: str
    head: BaseHead
    semantics: Semantics
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
        if isinstance(self.head, ProbabilisticRanking | WeightedMean) and self.wants_reference:
            self.head.fit(self.semantics, reference)  # type: ignore[arg-type]
        else:
            self.head.fit(self.semantics)
        return np.asarray(self.head.predict(scores) == truth)


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
        methods.append(Method(PR, f"{what}, {MEAN}", mean, rankings))
    return methods
