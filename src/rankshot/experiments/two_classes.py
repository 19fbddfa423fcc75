"""Two unseen classes at a time: the paper's Figure 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, suggest_name
from rankshot.experiments.benchmark import Benchmark
from rankshot.experiments.tables import ResultTable, Value
from rankshot.ranking.consensus import borda
from rankshot.ranking.distances import kendall_distance
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.bootstrap import Bootstrap
from rankshot.zeroshot.metrics import Interval, scored_table

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
"""The three that the paper's text names, and four more: some alike, some not."""
PAIRS_PER_SIDE = 3
"""Of other data sets: how many pairs of the most, and of the least, alike."""


class MethodScores(NamedTuple):
    """What a method says of the test inputs: the larger of two numbers of a row wins.

    Attributes
    ----------
    values : ndarray of shape (n, Z)
        Log-probabilities, probabilities or any scores.
    targets : tuple of str
        The names of the columns, all unseen classes among them.
    """

    values: NDArray[np.floating]
    targets: tuple[str, ...]


@dataclass(frozen=True)
class TwoClasses:
    """How often the right one of two unseen classes is found, where only those two could be.

    Attributes
    ----------
    methods : tuple of str
    pairs : tuple of (str, str)
    accuracy : tuple of tuples of Interval
        A row a pair, a column a method.
    mean : tuple of Interval
        Over all pairs of unseen classes, for each method.
    n_pairs : int
        How many those are.
    """

    methods: tuple[str, ...]
    pairs: tuple[Pair, ...]
    accuracy: tuple[tuple[Interval, ...], ...]
    mean: tuple[Interval, ...]
    n_pairs: int


def two_class_table(found: TwoClasses) -> ResultTable:
    """Return Figure 4 as a table: a row a pair, and the mean over all pairs."""
    rows: list[tuple[Value, ...]] = [
        (" or ".join(pair), *cells) for pair, cells in zip(found.pairs, found.accuracy, strict=True)
    ]
    rows.append((f"mean of all {found.n_pairs} pairs", *found.mean))
    return ResultTable(
        "figure 4",
        "Figure 4 in numbers: two unseen classes at a time",
        ("classes", *found.methods),
        tuple(rows),
    )


def evaluate_pairs(benchmark: Benchmark, methods: Mapping[str, MethodScores]) -> TwoClasses:
    """Judge methods on pairs of unseen classes; the same resamples serve all of them.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.datasets.cifar import load_cifar
    >>> from rankshot.experiments.benchmark import load_benchmark
    >>> from rankshot.experiments.two_classes import MethodScores, two_classes
    >>> benchmark = load_benchmark(load_cifar())
    >>> classes, truth = benchmark.images.new_classes, benchmark.images.new_label
    >>> blind = MethodScores(np.zeros((len(truth), 10)), classes)
    >>> found = two_classes(benchmark, {"blind": blind})
    >>> print(found.pairs[0], found.accuracy[0][0], found.n_pairs)
    ('cat', 'dog') .500 [.500, .500] 45
    """
    if not methods:
        raise RankshotError("there is no method to judge on two classes")
    task, pairs = benchmark.real, choose_pairs(benchmark)
    chance = {name: _win_probabilities(name, scores, benchmark) for name, scores in methods.items()}
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
        own = {name: table[np.arange(len(truth)), rival] for name, table in chance.items()}
        rows.append(tuple(bootstrap.interval(own[name], weights=judged) for name in methods))
    mean = tuple(
        bootstrap.interval(_share_of_mean(table, truth, sizes)) for table in chance.values()
    )
    n_pairs = len(task.targets) * (len(task.targets) - 1) // 2
    return TwoClasses(tuple(methods), pairs, tuple(rows), mean, n_pairs)


def choose_pairs(benchmark: Benchmark) -> tuple[Pair, ...]:
    """Return the pairs to look at: a choice that no result has a part in.

    For CIFAR they are fixed, those that the paper's text names among them. For other data the
    panel decides: Kendall's distance of its orders of the seen classes, merged by Borda's rule.
    The three pairs that are most alike are taken, and the three that are least, no class twice
    among either three; of equals, the first by name.

    Examples
    --------
    >>> from rankshot.datasets.cifar import load_cifar
    >>> from rankshot.experiments.benchmark import load_benchmark
    >>> from rankshot.experiments.two_classes import class_pairs
    >>> class_pairs(load_benchmark(load_cifar()))[:2]
    (('cat', 'dog'), ('airplane', 'automobile'))
    """
    return CIFAR_PAIRS if benchmark.name == "cifar" else choose_pairs_by_panel(benchmark.panel)


def choose_pairs_by_panel(panel: Rankings) -> tuple[Pair, ...]:
    """Return the targets that rankings make most alike, two by two, and those least alike."""
    targets = sorted(panel.target_names)
    orders = [borda(panel.select(target=target)).order for target in targets]
    distance = kendall_distance(Rankings.from_orders(orders, items=panel.items))
    cells = list(combinations(range(len(targets)), 2))
    # Sorting keeps equals in their order, which is by name.
    alike = sorted(cells, key=lambda cell: float(distance[cell]))
    unlike = sorted(cells, key=lambda cell: -float(distance[cell]))
    chosen = dict.fromkeys([*_take_disjoint(alike), *_take_disjoint(unlike)])
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
    """Return how likely each input's own class is to win against each class; equal is a half."""
    task = benchmark.real
    for target in task.targets:
        if target not in scores.targets:
            hint = suggest_name(target, scores.targets)
            raise RankshotError(f"{name}: there is no column {target!r}{hint}")
    try:
        scored = scored_table(task.test_label, scores.values, scores.targets)
    except RankshotError as error:
        raise RankshotError(f"{name}: {error}") from None
    columns = [scores.targets.index(target) for target in task.targets]
    own, others = scored.of_truth[:, None], scored.values[:, columns]
    return np.asarray(((own > others) + (own >= others).astype(np.float64)) / 2)


def _share_of_mean(chance: Floats, truth: NDArray[np.intp], sizes: NDArray[np.intp]) -> Floats:
    """Return numbers, one an input, whose mean is the mean accuracy over all pairs of classes.

    The accuracy of a pair is a sum over its inputs, divided by how many they are; resamples
    inside classes leave that number as it is. So the mean over pairs is a sum over inputs, too.
    """
    n, L = chance.shape
    n_pairs = L * (L - 1) / 2
    own = np.arange(L) == truth[:, None]
    parts = np.where(own, 0.0, chance) / (sizes[truth][:, None] + sizes)
    return np.asarray(parts.sum(axis=1) * n / n_pairs)
