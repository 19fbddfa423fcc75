"""Experiments on sounds: networks for ESC-50, and classes that they were not trained on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankshot.zeroshot.metrics import (
    Bootstrap,
    class_interval,
    expected_calibration_error,
)
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.classifiers import AnnounceStep
from reproduction.paper_methods import paper_head
from reproduction.result_tables import ResultTable, Value
from reproduction.scored_tasks import TABLES, ScoredTask, load_scored_tasks

Predict = Callable[[ScoredTask], NDArray[np.str_]]
PUBLISHED = {
    "denoising autoencoder (Sims, Mendes and Chalup 2024)": 0.274,
    "diffusion (Sims, Mendes and Chalup 2024)": 0.224,
}
"""On the same ten classes: means of ten runs in the authors' repository, ZeroDiffusion."""


def reproduce_sounds(directory: Path, announce: AnnounceStep) -> tuple[ResultTable, ...]:
    """Run the experiments on sounds: what needs neither training nor labelled examples."""
    tasks = tuple(load_scored_tasks("sounds", directory, announce))
    return network_table(tasks), accuracy_table(tasks)


def network_table(tasks: tuple[ScoredTask, ...]) -> ResultTable:
    """Return what each network knows, and its accuracy on clips of the classes that it knows."""
    rows: list[tuple[Value, ...]] = []
    for task in tasks:
        items = np.array(task.reference.items)
        found = items[task.reference.values.argmax(axis=1)]
        interval = Bootstrap(task.reference_labels).interval(found == task.reference_labels)
        targets = ", ".join(sorted(set(task.labels.tolist())))
        rows.append((task.name, len(items), len(task.reference), interval, targets))
    return ResultTable(
        "networks",
        "The networks: accuracy on clips of the seen classes",
        ("network", "seen classes", "clips", "seen accuracy", "targets"),
        tuple(rows),
        (
            (
                "Small residual networks, trained from scratch on folds 1 to 4 of the seen "
                "classes of ESC-50; the clips here are those of fold 5."
            ),
            (
                "The targets of “held-out” are seen classes in the other splits: settings are "
                "chosen there. The targets of “published” are those of Sims, Mendes and Chalup."
            ),
        ),
    )


def accuracy_table(tasks: tuple[ScoredTask, ...]) -> ResultTable:
    """Return the accuracy of several methods for the targets of each network."""

    def default(source: str) -> Predict:
        def predict(task: ScoredTask) -> NDArray[np.str_]:
            head = WeightedMean().fit(task.rankings[source], reference=task.reference)
            return np.asarray(head.predict(task.scores))

        return predict

    methods: dict[str, Predict] = {
        "the paper's: panel, consensus, K = 4": lambda task: np.asarray(
            paper_head().fit(task.rankings["panel"]).predict(task.scores)
        ),
        "panel": lambda task: np.asarray(
            WeightedMean().fit(task.rankings["panel"]).predict(task.scores)
        ),
        "panel with a reference: the default": default("panel"),
        f"{TABLES['sounds']} with a reference": default(TABLES["sounds"]),
    }
    rows: list[tuple[Value, ...]] = [
        (name, *(class_interval(task.labels, predict(task) == task.labels) for task in tasks))
        for name, predict in methods.items()
    ]
    rows.append(("calibration error of the default", *map(_calibration_error, tasks)))
    rows += [
        (
            name,
            *(share if "published" in task.name else None for task in tasks),
        )
        for name, share in PUBLISHED.items()
    ]
    return ResultTable(
        "sounds",
        "Accuracy on classes that the networks do not know",
        ("method", *(task.name.removeprefix("sounds ") for task in tasks)),
        tuple(rows),
        (
            (
                "Mean class accuracy, with 95% intervals from resamples of classes; chance is "
                ".10, and .11 for the held-out classes. Each target has 40 clips."
            ),
            (
                "The rows of 2024 are the means of ten runs in the authors' repository, with their "
                "own networks, and with word vectors of the classes in place of rankings."
            ),
        ),
    )


def _calibration_error(task: ScoredTask) -> float:
    head = WeightedMean().fit(task.rankings["panel"], reference=task.reference)
    proba = head.predict_proba(task.scores)
    return expected_calibration_error(task.labels, proba, head.classes_)
