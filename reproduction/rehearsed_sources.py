"""What a rehearsal promises for new classes, source by source, and what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.metrics import Bootstrap, Interval, class_weights
from rankshot.zeroshot.rehearsal import Rehearsal
from rankshot.zeroshot.scores import Scores
from reproduction.benchmark import Task, find_unranked_targets
from reproduction.evaluator import Configuration, Evaluator, weight_rankings
from reproduction.result_tables import ResultTable, Value

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
SUPPORTED = "settings chosen on seen classes"
PREDICTION_NOTE = (
    "Rehearsal.predict_accuracy uses the rankings of the new classes, but none of their inputs. "
    "Its interval is for these few classes, not for a mean over many, so it is wide. Nothing is "
    "predicted for tables without raters."
)


@dataclass(frozen=True, eq=False)
class TaskValues:
    """The decision values of the test inputs of a task, and the column of their classes."""

    values: Floats
    truth: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class RehearsedSource:
    """A source that was rehearsed, and its results on new classes."""

    name: str
    head: BaseHead
    default_temperature: float
    rehearsed: Interval
    predicted: Interval | None
    rehearsal: TaskValues
    real: TaskValues


def rehearse_sources(
    evaluator: Evaluator, configuration: Configuration
) -> Iterator[RehearsedSource]:
    """Rehearse a configuration, and then its head with each source alone.

    Sources that do not rank all classes are left out.
    """
    tasks = evaluator.benchmark.rehearsal, evaluator.benchmark.real
    chosen = [weight_rankings(configuration, task) for task in tasks]
    yield rehearse_source(evaluator, configuration, SUPPORTED, chosen)
    real = evaluator.benchmark.real
    linguistic = [
        name
        for name in real.sources
        if not any(find_unranked_targets(task.sources[name]) for task in tasks)
    ]
    # A single question is what the configuration uses.
    questions = list(real.panels) if len(real.panels) > 1 else []
    for name in (*questions, *linguistic):
        rankings = [task.rankings(name) for task in tasks]
        yield rehearse_source(evaluator, configuration, name, rankings)


def rehearse_source(
    evaluator: Evaluator, configuration: Configuration, name: str, rankings: Sequence[Rankings]
) -> RehearsedSource:
    """Use `Rehearsal` as a user would, with rankings for the rehearsal and for new classes."""
    # With one name for all of them, nothing is left out.
    held_out, new = (replace(one, sources=np.full(len(one), name, object)) for one in rankings)
    rehearsal, real = evaluator.benchmark.rehearsal, evaluator.benchmark.real
    parts = [evaluator.scores(configuration, rehearsal, part) for part in ("test", "validation")]
    scores = Scores(np.concatenate([one.values for one in parts]), parts[0].items, parts[0].kind)
    labels = np.concatenate([rehearsal.test_label, rehearsal.validation_label])
    tool = Rehearsal(clone(configuration.head), grid={}).fit(scores, labels, held_out)
    usual = evaluator.scores(configuration, real, "validation")
    head = tool.fit_head(new, usual)
    played: BaseHead = clone(tool.head_)
    played.fit(held_out, **({"reference": parts[1]} if tool.plan_.reference else {}))
    return RehearsedSource(
        name,
        head,
        copy(head).set_params(temperature=None).temperature_,  # type: ignore[attr-defined]
        tool.accuracy_,
        tool.predict_accuracy(new, usual),
        task_values(played, parts[0], rehearsal),
        task_values(head, evaluator.scores(configuration, real, "test"), real),
    )


def task_values(head: BaseHead, scores: Scores, task: Task) -> TaskValues:
    """Return the decision values of scores of a task's test inputs."""
    values = np.asarray(head.decision_function(scores), np.float64)
    return TaskValues(values, np.searchsorted(head.classes_, task.test_label))


def prediction_table(sources: Sequence[RehearsedSource], bootstrap: Bootstrap) -> ResultTable:
    """Return the accuracies that were predicted, beside those that came out."""
    rows: list[tuple[Value, ...]] = []
    for one in sources:
        if one.predicted is None:
            continue
        correct = one.real.values.argmax(axis=1) == one.real.truth
        found = bootstrap.interval(correct, class_weights(one.real.truth))
        inside = one.predicted.low <= found.estimate <= one.predicted.high
        cells = (one.rehearsed, one.predicted, found, "yes" if inside else "no")
        rows.append((one.name, *cells))
    return ResultTable(
        "predicted accuracy",
        "Accuracy on new classes: predicted from seen classes, and measured",
        (
            *("source", "held-out seen classes", "predicted for the new classes"),
            *("new classes, mean over classes", "inside the interval"),
        ),
        tuple(rows),
        (PREDICTION_NOTE,),
    )
