"""The paper's comparison in a minute, on the data inside the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.datasets.cifar import load_cifar
from rankshot.datasets.panel import load_panel
from rankshot.datasets.similarities import load_similarities
from rankshot.experiments.comparison import Comparison, ComparisonRow, Contender
from rankshot.experiments.three_classifiers import Trained, estimators, train
from rankshot.ranking.mallows import Mallows
from rankshot.ranking.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.means import arithmetic_mean, geometric_mean
from rankshot.semantics.similarity import Similarity
from rankshot.zeroshot.conse import ConSE
from rankshot.zeroshot.decisions import Decisions
from rankshot.zeroshot.deterministic_ranking import DeterministicRanking
from rankshot.zeroshot.direct_similarity import DirectSimilarity
from rankshot.zeroshot.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.scores import Scores

Announce = Callable[[int, int, str], None]

K = 4
"""As the paper reports."""

SOURCES = ("WordNet", "GloVe", "Wikipedia")
"""The linguistic sources that are compared and merged."""

LISTED = 10
"""How many items of a source's ranking are merged: as many as a rater of the panel ordered."""

DS, DR, PR = "Direct Similarity", "Deterministic Ranking", "Probabilistic Ranking"
SHOWN = (PR, "panel, Plackett-Luce", "multiclass")
"""The row and the column that the report looks into."""


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demonstration found.

    Attributes
    ----------
    comparison : Comparison
    seen_accuracy : dict of str to float
        Of each classifier, on held-out inputs of the classes it knows.
    panel : Rankings
        What the head of `SHOWN` was fitted to.
    rankings : Rankings
        Of all sources, the panel included.
    head : ProbabilisticRanking
        That of `SHOWN`, fitted.
    scores : Scores
        What the classifier of `SHOWN` says of the unseen inputs.
    truth : ndarray of str
        Their classes.
    """

    comparison: Comparison
    seen_accuracy: dict[str, float]
    panel: Rankings
    rankings: Rankings
    head: Decisions
    scores: Scores
    truth: NDArray[np.str_]


def run_demo(announce: Announce) -> Demo:
    """Train on seen classes, learn from the sources, classify the unseen images.

    Parameters
    ----------
    announce : callable
        Is told how many steps are done, of how many, and what comes next.
    """
    data = load_cifar()
    validation = data.seen_validation, data.seen_validation_label
    known = load_similarities()
    tables = {name: known[name] for name in SOURCES}
    unseen = [table.select(data.unseen_classes, data.seen_classes) for table in tables.values()]
    panel = load_panel()
    field = contenders(dict(zip(tables, unseen, strict=True)), panel)
    todo = len(estimators()) + len(field)
    trained: dict[str, Trained] = {}
    for name, estimator in estimators().items():
        announce(len(trained), todo, f"training {name}")
        trained[name] = train(estimator, data.seen_train, data.seen_train_label, *validation)
    scores = {name: one.scores(data.unseen) for name, one in trained.items()}
    rows: list[ComparisonRow] = []
    for contender in field:
        announce(len(trained) + len(rows), todo, f"{contender.method}, {contender.source}")
        rows.append(contender.measured(scores, data.unseen_label))
    shown = next(one.head for one in field if (one.method, one.source) == SHOWN[:2])
    announce(todo, todo, "done")
    return Demo(
        Comparison(tuple(scores), tuple(rows)),
        {name: one.accuracy(*validation) for name, one in trained.items()},
        panel,
        Rankings.concatenate([*map(listed_of, unseen), panel]),
        shown,
        scores[SHOWN[2]],
        data.unseen_label,
    )


def contenders(sources: dict[str, Similarity], panel: Rankings) -> list[Contender]:
    """Return all methods with all sources, in the order of the paper's second table."""
    tables = list(sources.values())
    merged = {
        **sources,
        "arithmetic mean": arithmetic_mean(tables),
        "geometric mean": geometric_mean(tables),
    }
    linguistic = Rankings.concatenate(map(listed_of, tables))
    heads = {"Plackett-Luce": PlackettLuce, "Mallows": Mallows}
    field = [
        Contender(DS, name, DirectSimilarity(), table.scaled()) for name, table in merged.items()
    ]
    field += [
        Contender(DR, name, DeterministicRanking(k=K), listed_of(table))
        for name, table in merged.items()
    ]
    field += [
        Contender(PR, name, ProbabilisticRanking(k=K), listed_of(table))
        for name, table in sources.items()
    ]
    for what, rankings in (("all three", linguistic), ("panel", panel)):
        field += [
            Contender(PR, f"{what}, {name}", ProbabilisticRanking(k=K, prior=prior()), rankings)
            for name, prior in heads.items()
        ]
        mean = ProbabilisticRanking(k=K, posterior="mean")
        field.append(Contender(PR, f"{what}, mean of rankings", mean, rankings))
    field.append(Contender("ConSE", "GloVe", ConSE(), sources["GloVe"]))
    return field


def listed_of(table: Similarity) -> Rankings:
    """Rank the items of each target and keep the first; what a source does not know is last."""
    values = np.nan_to_num(table.values, nan=float(np.nanmin(table.values)))
    known = Similarity(values, table.targets, table.items, table.source)
    return known.to_rankings(LISTED)
