"""Accuracy on pairs of new classes: the paper's Figure 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, suggest_name
from rankshot.ranking.consensus.kemeny import borda
from rankshot.ranking.distances import kendall_distance
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.metrics import Interval
from reproduction.benchmark import Benchmark
from reproduction.bootstrap import Bootstrap
from reproduction.result_tables import ResultTable, Value

Floats = NDArray[np.float64]
Pair = tuple[str, str]
CIFAR_PAIRS: tuple[Pair, ...] = (
    ("cat", "dog"),
    ("airplane", "automobile"),
    ("automobile", "deer"),
    ("deer", "ship"),
    ("cat", "truck"),
    ("airplane", "ship"),
    ("dog", "horse"),
)
"""The three pairs of the paper's text, and four more: some similar, some not."""
PAIRS_PER_SIDE = 3
"""For other data sets: how many of the most similar and of the least similar pairs."""


class MethodScores(NamedTuple):
    """The scores of a method for the test inputs; of two classes, the larger score wins."""

    values: NDArray[np.floating]
    targets: tuple[str, ...]


@dataclass(frozen=True)
class TwoClasses:
    """The accuracy of choosing between two new classes, for inputs of these two classes."""

    methods: tuple[str, ...]
    pairs: tuple[Pair, ...]
    accuracy: tuple[tuple[Interval, ...], ...]
    mean: tuple[Interval, ...]
    n_pairs: int


def two_class_table(found: TwoClasses) -> ResultTable:
    """Return Figure 4 as a table: one row per pair, and the mean over all pairs."""
    rows: list[tuple[Value, ...]] = [
        (" or ".join(pair), *cells) for pair, cells in zip(found.pairs, found.accuracy, strict=True)
    ]
    rows.append((f"mean of all {found.n_pairs} pairs", *found.mean))
    return ResultTable(
        "figure 4",
        "Figure 4 in numbers: two new classes at a time",
        ("classes", *found.methods),
        tuple(rows),
    )


def evaluate_pairs(benchmark: Benchmark, methods: Mapping[str, MethodScores]) -> TwoClasses:
    """Evaluate methods on pairs of new classes, all with the same resamples."""
    if not methods:
        raise RankshotError("methods must not be empty")
    task, pairs = benchmark.real, choose_pairs(benchmark)
    wins = {name: _win_probabilities(name, scores, benchmark) for name, scores in methods.items()}
    code = {name: i for i, name in enumerate(task.targets)}
    truth = np.array([code[label] for label in task.test_label])
    sizes = np.bincount(truth, minlength=len(task.targets))
    for name, size in zip(task.targets, sizes, strict=True):
        if size == 0:
            raise RankshotError(f"there is no test input of {name!r}")
    bootstrap = Bootstrap(task.test_label)
    rows = []
    for one, other in pairs:
        a, b = code[one], code[other]
        judged = np.isin(truth, (a, b))
        rival = np.where(truth == a, b, a)
        own = {name: table[np.arange(len(truth)), rival] for name, table in wins.items()}
        rows.append(tuple(bootstrap.interval(own[name], weights=judged) for name in methods))
    mean = tuple(bootstrap.interval(_share_of_mean(table, truth, sizes)) for table in wins.values())
    n_pairs = len(task.targets) * (len(task.targets) - 1) // 2
    return TwoClasses(tuple(methods), pairs, tuple(rows), mean, n_pairs)


def choose_pairs(benchmark: Benchmark) -> tuple[Pair, ...]:
    """Return the pairs of the figure; they do not depend on any result.

    For CIFAR they are fixed and include those of the paper's text. For other data they are chosen
    by Kendall's distance of the panel's rankings, combined by Borda's rule: the three most similar
    and the three least similar pairs, without a repeated class within each three. Of equal
    distances, the first by name is taken.
    """
    return CIFAR_PAIRS if benchmark.name == "cifar" else choose_pairs_by_panel(benchmark.real.panel)


def choose_pairs_by_panel(panel: Rankings) -> tuple[Pair, ...]:
    """Return the pairs of targets with the most and with the least similar rankings."""
    targets = sorted(panel.target_names)
    orders = [borda(panel.select(target=target)).order for target in targets]
    distance = kendall_distance(Rankings.from_orders(orders, items=panel.items))
    cells = list(combinations(range(len(targets)), 2))
    # Sorting is stable: equal distances stay in the order of names.
    nearest = sorted(cells, key=lambda cell: float(distance[cell]))
    farthest = sorted(cells, key=lambda cell: -float(distance[cell]))
    chosen = dict.fromkeys([*_take_disjoint(nearest), *_take_disjoint(farthest)])
    return tuple((targets[a], targets[b]) for a, b in chosen)


def _take_disjoint(cells: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the first pairs that share no class."""
    used: set[int] = set()
    kept: list[tuple[int, int]] = []
    for cell in cells:
        if len(kept) < PAIRS_PER_SIDE and used.isdisjoint(cell):
            kept.append(cell)
            used.update(cell)
    return kept


def _win_probabilities(name: str, scores: MethodScores, benchmark: Benchmark) -> Floats:
    """Return the probability that each input's own class wins against each class; a tie is 1/2."""
    task = benchmark.real
    for target in task.targets:
        if target not in scores.targets:
            hint = suggest_name(target, scores.targets)
            raise RankshotError(f"{name}: there is no column {target!r}{hint}")
    columns = [scores.targets.index(target) for target in task.targets]
    others = scores.values[:, columns]
    truth = np.array([task.targets.index(label) for label in task.test_label])
    own = np.take_along_axis(others, truth[:, None], axis=1)
    return np.asarray(((own > others) + (own >= others).astype(np.float64)) / 2)


def _share_of_mean(wins: Floats, truth: NDArray[np.intp], sizes: NDArray[np.intp]) -> Floats:
    """Return one number per input; their mean is the mean accuracy over all pairs of classes.

    The accuracy of a pair is a sum over its inputs, divided by their number. Resamples within
    classes do not change that number, so the mean over pairs is also a sum over inputs.
    """
    n, L = wins.shape
    n_pairs = L * (L - 1) / 2
    own = np.arange(L) == truth[:, None]
    parts = np.where(own, 0.0, wins) / (sizes[truth][:, None] + sizes)
    return np.asarray(parts.sum(axis=1) * n / n_pairs)
