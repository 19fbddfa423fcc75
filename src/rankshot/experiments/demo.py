"""The demonstration: the paper's comparison in a minute, on the data in the package."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.core.progress import Announce
from rankshot.datasets.cifar import load_cifar
from rankshot.experiments.benchmark import Task, load_benchmark, rank_items
from rankshot.experiments.classifiers import LinearClassifier, train_classifier
from rankshot.experiments.methods import Method, paper_methods
from rankshot.experiments.result_tables import Comparison, ComparisonRow
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.conse import ConSE
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.metrics import Interval, accuracy, wilson_interval
from rankshot.zeroshot.rehearsal import Rehearsal
from rankshot.zeroshot.scores import Scores

SOURCES = ("WordNet", "GloVe", "Wikipedia")
"""The linguistic sources that are compared and combined."""
REGULARIZATION = {"one-vs-rest": 0.001, "one-vs-one": 0.001, "multiclass": 0.03}
"""The best of a few C on seen classes that play new ones, with K = 4 and the panel's rankings of
these classes. New classes were not used."""
WM = "Weighted Mean"
REPORTED = "multiclass"
"""The classifier whose predictions the report explains, with the rehearsed head."""


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demonstration.

    Attributes
    ----------
    comparison : Comparison
    seen_accuracy : dict of str to float
        The accuracy of each classifier on validation inputs of seen classes.
    rehearsal : Rehearsal
        Seen classes that played new ones, with the multiclass classifier.
    predicted : Interval
        The accuracy of the new classes that it predicts.
    panel : Rankings
        The rankings of the panel, of all its questions.
    rankings : Rankings
        The rankings of all sources, including the panel.
    head : BaseHead
        The head that the rehearsal chose and calibrated, fitted to the panel.
    scores : Scores
        The scores of the new inputs by the multiclass classifier.
    truth : ndarray of str
        The classes of the new inputs.

    Examples
    --------
    It takes about a minute, so tests do not run this example:

    >>> from rankshot.experiments import run_demo
    >>> demo = run_demo(announce=print)  # doctest: +SKIP
    >>> demo.predicted                   # doctest: +SKIP
    """

    comparison: Comparison
    seen_accuracy: dict[str, float]
    rehearsal: Rehearsal
    predicted: Interval
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

    Examples
    --------
    It takes about a minute, so tests do not run this example. The command ``rankshot demo`` does
    the same.

    >>> from rankshot.experiments import run_demo
    >>> demo = run_demo(announce=print)  # doctest: +SKIP
    """
    benchmark = load_benchmark(load_cifar())
    task = benchmark.real
    sources = {name: task.sources[name] for name in SOURCES}
    questions = {f"panel, {name}": rankings for name, rankings in task.panels.items()}
    questions["panel, all questions"] = panel = Rankings.concatenate(task.panels.values())
    methods = paper_methods(sources, task.panel)
    methods.append(Method("ConSE", "GloVe", ConSE(), sources["GloVe"]))
    methods += [
        Method(WM, f"{name} + reference", WeightedMean(), rankings, wants_reference=True)
        for name, rankings in questions.items()
    ]
    todo = len(REGULARIZATION) + len(methods) + 1
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
    announce(todo - 1, todo, "rehearsal with seen classes")
    rehearsal = rehearse(benchmark.rehearsal)
    announce(todo, todo, "done")
    return Demo(
        comparison=Comparison(tuple(scores), tuple(rows)),
        seen_accuracy={
            name: accuracy(task.validation_label, model.predict(task.validation))
            for name, model in trained.items()
        },
        rehearsal=rehearsal,
        predicted=rehearsal.predict_accuracy(panel, reference[REPORTED]),
        panel=panel,
        rankings=Rankings.concatenate([*map(rank_items, sources.values()), panel]),
        head=rehearsal.fit_head(panel, reference[REPORTED]),
        scores=scores[REPORTED],
        truth=task.test_label,
    )


def rehearse(task: Task) -> Rehearsal:
    """Let seen classes play new ones, with a classifier that was trained without them."""
    model = train_classifier(REPORTED, REGULARIZATION[REPORTED], task.train, task.train_label)
    inputs = np.concatenate([task.test, task.validation])
    labels = np.concatenate([task.test_label, task.validation_label])
    rankings = Rankings.concatenate(task.panels.values())
    return Rehearsal().fit(model.scores(inputs), labels, rankings)


def _interval(correct: NDArray[np.bool_] | None) -> Interval | None:
    return None if correct is None else wilson_interval(int(correct.sum()), len(correct))
