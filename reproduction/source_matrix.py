"""Sources added to sources: what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np

from rankshot.core.errors import format_share
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.metrics import mean_class_accuracy
from reproduction.benchmark import Task, find_unranked_targets
from reproduction.classifiers import AnnounceStep
from reproduction.evaluator import Configuration, Evaluator
from reproduction.result_tables import ResultTable, Value


def source_matrix(
    evaluator: Evaluator, chosen: Configuration, announce: AnnounceStep
) -> ResultTable:
    """Return what adding each source to each other costs, by default and at equal weights."""
    announce("each source with each other")
    rows: list[tuple[Value, ...]] = []
    for task in (evaluator.benchmark.rehearsal, evaluator.benchmark.real):
        sources = {name: _named(task.rankings(name), name) for name in _complete_sources(task)}
        sources["random lists"] = _random_like(next(iter(sources.values())))
        measure = _measurer(evaluator, chosen, task)
        accuracy = {name: measure(one, {}) for name, one in sources.items()}
        costs: dict[str, list[tuple[float, float, str]]] = {name: [] for name in sources}
        for first, second in permutations(sources, 2):
            if first == "random lists":
                continue
            both = Rankings.concatenate([sources[first], sources[second]])
            equal = measure(both, {first: 1.0, second: 1.0})
            costs[first].append(
                (measure(both, {}) - accuracy[first], equal - accuracy[first], second)
            )
        for name, found in costs.items():
            if found:
                worst, worst_equal = min(found), min(found, key=lambda one: one[1])
                rows.append(
                    (
                        "rehearsal" if task is evaluator.benchmark.rehearsal else "new classes",
                        name,
                        accuracy[name],
                        f"{format_share(worst[0])} ({worst[2]})",
                        f"{format_share(worst_equal[1])} ({worst_equal[2]})",
                    )
                )
    return ResultTable(
        "sources added to sources",
        "The loss if the worst other source is added to each source",
        ("task", "source", "alone", "worst addition, default", "worst addition, equal weights"),
        tuple(rows),
        (
            "Mean class accuracy with a reference. Random lists are one of the additions.",
            "If all additions help, the smallest gain is shown.",
        ),
        n_labels=2,
    )


def _complete_sources(task: Task) -> list[str]:
    tables = [name for name in task.sources if not find_unranked_targets(task.sources[name])]
    return [*task.panels, *tables]


def _named(rankings: Rankings, name: str) -> Rankings:
    return replace(rankings, sources=np.full(len(rankings), name, object))


def _random_like(rankings: Rankings) -> Rankings:
    """Return random lists of the same lengths, by a single rater of the same targets."""
    rng = np.random.default_rng(0)
    targets = rankings.target_names
    orders = [rng.permutation(rankings.items)[:15].tolist() for _ in targets]
    return Rankings.from_orders(
        orders, items=rankings.items, targets=targets, sources="random lists", raters="nobody"
    )


def _measurer(
    evaluator: Evaluator, chosen: Configuration, task: Task
) -> Callable[[Rankings, dict[str, float]], float]:
    scores = evaluator.scores(chosen, task, "test")
    usual = evaluator.scores(chosen, task, "validation")

    def measure(rankings: Rankings, weights: dict[str, float]) -> float:
        head = WeightedMean(source_weights=weights or None).fit(rankings, usual)
        return mean_class_accuracy(task.test_label, head.predict(scores))

    return measure
