"""The paper's comparison in a minute, on the data inside the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.datasets.cifar import load_cifar
from rankshot.experiments import classifiers as training
from rankshot.experiments.benchmark import load_benchmark, rank_items
from rankshot.experiments.classifiers import LinearClassifier
from rankshot.experiments.methods import PR, Method, paper_methods
from rankshot.experiments.tables import Comparison, ComparisonRow
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.conse import ConSE
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.metrics import Interval, accuracy, wilson_interval
from rankshot.zeroshot.scores import Scores

Announce = Callable[[int, int, str], None]
SOURCES = ("WordNet", "GloVe", "Wikipedia")
"""The linguistic sources that are compared and merged."""
REGULARISATION = {"one-vs-rest": 0.001, "one-vs-one": 0.001, "multiclass": 0.03}
"""Of a few C these are the best on seen classes that played unseen ones, with K = 4 and the
panel's rankings of them: no look at unseen classes."""
REPORTED = (PR, "panel, Plackett-Luce", "multiclass")
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
    head: BaseHead
    scores: Scores
    truth: NDArray[np.str_]


def run_demo(announce: Announce) -> Demo:
    """Train on seen classes, learn from the sources, classify the unseen images.

    Parameters
    ----------
    announce : callable
        Is told how many steps are done, of how many, and what comes next.
    """
    benchmark = load_benchmark(load_cifar())
    task = benchmark.real
    sources = {name: task.sources[name] for name in SOURCES}
    field = paper_methods(sources, task.panel)
    field.append(
        Method(PR, "panel, default head", ProbabilisticRanking(), task.panel, True)  # noqa: FBT003
    )
    field.append(Method("ConSE", "GloVe", ConSE(), sources["GloVe"]))
    todo = len(REGULARISATION) + len(field)
    trained: dict[str, LinearClassifier] = {}
    for setting, C in REGULARISATION.items():
        announce(len(trained), todo, f"training {setting}")
        model = training.trained(setting, C, task.train, task.train_label)
        if setting != "multiclass":
            model = model.with_platt_scaling(task.validation, task.validation_label)
        trained[setting] = model
    scores = {name: model.scores(task.test) for name, model in trained.items()}
    usual = {name: model.scores(task.validation) for name, model in trained.items()}
    rows: list[ComparisonRow] = []
    for one in field:
        announce(len(trained) + len(rows), todo, f"{one.method}, {one.source}")
        found = [one.mark_correct(scores[name], task.test_label, usual[name]) for name in scores]
        rows.append(ComparisonRow(one.method, one.source, tuple(map(_interval, found))))
    shown = next(one.head for one in field if (one.method, one.source) == REPORTED[:2])
    # The report looks into one classifier's decisions.
    shown.fit(task.panel)
    announce(todo, todo, "done")
    return Demo(
        Comparison(tuple(scores), tuple(rows)),
        {
            name: accuracy(task.validation_label, model.predict(task.validation))
            for name, model in trained.items()
        },
        task.panel,
        Rankings.concatenate([*map(rank_items, sources.values()), task.panel]),
        shown,
        scores[REPORTED[2]],
        task.test_label,
    )


def _interval(right: NDArray[np.bool_] | None) -> Interval | None:
    return None if right is None else wilson_interval(int(right.sum()), len(right))
