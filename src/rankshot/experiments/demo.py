"""The demonstration: the paper's comparison in a minute, on the data in the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.core.progress import Announce
from rankshot.datasets.cifar import load_cifar
from rankshot.experiments.benchmark import load_benchmark, rank_items
from rankshot.experiments.classifiers import LinearClassifier, train_classifier
from rankshot.experiments.methods import PR, Method, paper_methods
from rankshot.experiments.result_tables import Comparison, ComparisonRow
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.conse import ConSE
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.metrics import Interval, accuracy, wilson_interval
from rankshot.zeroshot.scores import Scores

SOURCES = ("WordNet", "GloVe", "Wikipedia")
"""The linguistic sources that are compared and combined."""
REGULARIZATION = {"one-vs-rest": 0.001, "one-vs-one": 0.001, "multiclass": 0.03}
"""The best of a few C on seen classes that play new ones, with K = 4 and the panel's rankings of
these classes. New classes were not used."""
REPORTED = (PR, "panel, Plackett-Luce", "multiclass")
"""The method, source and classifier whose predictions the report explains."""


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demonstration.

    Attributes
    ----------
    comparison : Comparison
    seen_accuracy : dict of str to float
        The accuracy of each classifier on validation inputs of seen classes.
    panel : Rankings
        The rankings to which the head of `REPORTED` was fitted.
    rankings : Rankings
        The rankings of all sources, including the panel.
    head : ProbabilisticRanking
        The head of `REPORTED`, fitted.
    scores : Scores
        The scores of the new inputs by the classifier of `REPORTED`.
    truth : ndarray of str
        The classes of the new inputs.
    """

    comparison: Comparison
    seen_accuracy: dict[str, float]
    panel: Rankings
    rankings: Rankings
    head: BaseHead
    scores: Scores
    truth: NDArray[np.str_]


def run_demo(announce: Announce) -> Demo:
    """Train classifiers on seen classes, fit heads to the sources, and classify new images.

    Parameters
    ----------
    announce : callable
        Called with the number of steps done, the number of all steps, and the next step.
    """
    benchmark = load_benchmark(load_cifar())
    task = benchmark.real
    sources = {name: task.sources[name] for name in SOURCES}
    methods = paper_methods(sources, task.panel)
    default = ProbabilisticRanking()
    methods += [
        Method(PR, "panel, default head + reference", default, task.panel, wants_reference=True),
        Method("ConSE", "GloVe", ConSE(), sources["GloVe"]),
    ]
    todo = len(REGULARIZATION) + len(methods)
    trained: dict[str, LinearClassifier] = {}
    for setting, C in REGULARIZATION.items():
        announce(len(trained), todo, f"training {setting}")
        model = train_classifier(setting, C, task.train, task.train_label)
        if setting != "multiclass":
            model = model.with_platt_scaling(task.validation, task.validation_label)
        trained[setting] = model
    scores = {name: model.scores(task.test) for name, model in trained.items()}
    reference = {name: model.scores(task.validation) for name, model in trained.items()}
    rows: list[ComparisonRow] = []
    for one in methods:
        announce(len(trained) + len(rows), todo, f"{one.method}, {one.source}")
        found = [
            one.mark_correct(scores[name], task.test_label, reference[name]) for name in scores
        ]
        rows.append(ComparisonRow(one.method, one.source, tuple(map(_interval, found))))
    head = next(one.head for one in methods if (one.method, one.source) == REPORTED[:2])
    # The report explains the predictions with one classifier: the head must be fitted for it.
    head.fit(task.panel)
    announce(todo, todo, "done")
    return Demo(
        comparison=Comparison(tuple(scores), tuple(rows)),
        seen_accuracy={
            name: accuracy(task.validation_label, model.predict(task.validation))
            for name, model in trained.items()
        },
        panel=task.panel,
        rankings=Rankings.concatenate([*map(rank_items, sources.values()), task.panel]),
        head=head,
        scores=scores[REPORTED[2]],
        truth=task.test_label,
    )


def _interval(correct: NDArray[np.bool_] | None) -> Interval | None:
    return None if correct is None else wilson_interval(int(correct.sum()), len(correct))
