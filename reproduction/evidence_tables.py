"""More than rankings: labelled examples, another model's opinion, and sources added to sources."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.linear_model import LogisticRegression

from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.evidence import word_evidence
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.metrics import Interval, format_share, mean_class_accuracy
from rankshot.zeroshot.scores import Scores
from reproduction.benchmark import Task, TextTask, find_unranked_targets
from reproduction.classifiers import AnnounceStep
from reproduction.evaluator import Configuration, Evaluator, weight_rankings
from reproduction.paper_methods import paper_head
from reproduction.result_tables import ResultTable, Value

Labels = NDArray[np.str_]
Predict = Callable[[Any, Labels, Any], Labels]
NUMBERS = (0, 1, 2, 5, 10, 20)
"""Labelled examples per class."""
N_DRAWS = 5
MOST_TESTED = 200
"""Test inputs per class: more would hardly change the accuracy."""
STRENGTHS = (1.0, 10.0)
"""Of logistic regression, scikit-learn's C; the table has the better of them."""


def example_curves(
    evaluator: Evaluator, chosen: Configuration, announce: AnnounceStep
) -> ResultTable:
    """Return the accuracy against labelled examples, with and without rankings."""
    announce("labelled examples")
    task = evaluator.benchmark.real
    model = evaluator.classifier(chosen, task)
    usual = evaluator.scores(chosen, task, "validation")
    rankings = weight_rankings(chosen, task)
    paper = paper_head().fit(task.panel)
    reference = usual if chosen.reference else None

    def by_head(*, features: bool) -> Predict:
        def predict(given: Any, labels: Labels, tested: Any) -> Labels:
            def scores(X: Any) -> Scores:
                return replace(model.scores(X), features=X) if features else model.scores(X)

            examples = None if given is None else (scores(given), labels)
            head = WeightedMean().fit(rankings, reference, examples)
            return head.predict(scores(tested))

        return predict

    def by_regression(C: float) -> Predict:
        def predict(given: Any, labels: Labels, tested: Any) -> Labels:
            with warnings.catch_warnings():
                # One example per class looks like a regression.
                warnings.filterwarnings("ignore", "The number of unique classes")
                model = LogisticRegression(C=C, max_iter=1000).fit(given, labels)
            return np.asarray(model.predict(tested))

        return predict

    rows = [
        ("rankings and examples, features", *_curve(task, by_head(features=True))),
        ("rankings and examples, scores only", *_curve(task, by_head(features=False))),
        (
            "examples alone: logistic regression on the features",
            *_better(*(_curve(task, by_regression(C), least=1) for C in STRENGTHS)),
        ),
        (
            "the paper's method, which takes no examples",
            *_curve(task, lambda _, __, tested: paper.predict(model.scores(tested)), most=0),
        ),
    ]
    return ResultTable(
        "examples",
        "Accuracy against labelled examples per new class, with and without rankings",
        ("method", *map(str, NUMBERS)),
        tuple(rows),
        (
            (
                f"Mean class accuracy; means over {N_DRAWS} draws of examples, with 95 % intervals "
                "of these means. Half of the inputs of the new classes are drawn from, the other "
                f"half tested, at most {MOST_TESTED} per class. Logistic regression: the better of "
                "C = 1 and C = 10 in each cell, by the tested inputs."
            ),
        ),
    )


def _curve(task: Task, predict: Predict, least: int = 0, most: int = NUMBERS[-1]) -> list[Value]:
    """Return the accuracy of a method for each number of examples."""
    pool, tested = _split(task)
    found: list[Value] = []
    for n in NUMBERS:
        if not least <= n <= most:
            found.append(None)
            continue
        accuracies = []
        for draw in range(N_DRAWS if n else 1):
            rows = _draw(task.test_label, pool, n, draw)
            given = task.test[rows] if n else None
            labels = predict(given, task.test_label[rows], task.test[tested])
            accuracies.append(mean_class_accuracy(task.test_label[tested], labels))
        found.append(_mean_interval(np.array(accuracies)))
    return found


def _better(*curves: list[Value]) -> list[Value]:
    """Return the better of several methods in each cell."""
    cells = zip(*curves, strict=True)
    return [
        max(cell, key=lambda one: one.estimate if isinstance(one, Interval) else -1.0)
        for cell in cells
    ]


def _split(task: Task) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows that examples are drawn from, and those that are tested."""
    order = np.random.default_rng(0).permutation(len(task.test_label))
    half = len(order) // 2
    rest = order[half:]
    tested = [rest[task.test_label[rest] == name][:MOST_TESTED] for name in task.targets]
    return order[:half], np.concatenate(tested)


def _draw(labels: Labels, pool: NDArray[np.intp], n: int, seed: int) -> NDArray[np.intp]:
    order = np.random.default_rng(seed).permutation(pool)
    return np.concatenate([order[labels[order] == name][:n] for name in np.unique(labels)])


def _mean_interval(values: NDArray[np.float64]) -> Interval | float:
    mean = float(values.mean())
    if len(values) == 1:
        return mean
    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return Interval(mean, mean - half, mean + half)


# ---- Another model's opinion


def evidence_table(
    evaluator: Evaluator, chosen: Configuration, directory: Path | None
) -> ResultTable:
    """Return what words, and a sentence encoder if there is one, add to the rankings of intents."""
    rows: list[tuple[Value, ...]] = []
    for task in (evaluator.benchmark.rehearsal, evaluator.benchmark.real):
        assert isinstance(task, TextTask)
        scores = evaluator.scores(chosen, task, "test")
        usual = evaluator.scores(chosen, task, "validation") if chosen.reference else None
        rankings = weight_rankings(chosen, task)
        alone = WeightedMean().fit(rankings, usual).predict(scores)
        for name, evidence in list_opinions(task, directory):
            table = replace(scores, evidence=evidence)
            head = WeightedMean().fit(rankings, usual, evidence=table)
            said = np.array(evidence.items)[evidence.values.argmax(axis=1)]
            rows.append(
                (
                    "rehearsal" if task is evaluator.benchmark.rehearsal else "new classes",
                    name,
                    *(
                        mean_class_accuracy(task.test_label, labels)
                        for labels in (alone, said, head.predict(table))
                    ),
                    float(head.evidence_weight_ or 0.0),
                )
            )
    return ResultTable(
        "evidence",
        "Another model's opinion: rankings, evidence, and both with the default weight",
        ("task", "evidence", "rankings", "evidence alone", "both", "weight"),
        tuple(rows),
        ("Mean class accuracy. The weight is found without labels, from the agreement of both.",),
        n_labels=2,
    )


def list_opinions(task: TextTask, directory: Path | None) -> Iterator[tuple[str, Scores]]:
    """Yield the evidence that there is, with one column per target."""
    texts = list(task.test_text)
    words = word_evidence(texts, task.targets, list(task.train_text))
    yield "words of request and name", words
    if directory is None or not (path := directory / "intents" / "encoder_cosines.npz").is_file():
        return
    lines = (directory / "intents" / "requests.jsonl").read_text("utf-8").splitlines()
    number = {json.loads(line)["text"]: row for row, line in enumerate(lines)}
    with np.load(path, allow_pickle=False) as arrays:
        place = {row: i for i, row in enumerate(arrays["row"].tolist())}
        wanted = [place.get(number[text]) for text in texts]
        if None in wanted:
            return
        cosines = Scores(arrays["cosine"][wanted].astype(np.float64), arrays["names"].astype(str))
    yield "sentence encoder", cosines.select(task.targets)


# ---- Sources added to sources


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
        "What it costs to add the worst other source to each source",
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
