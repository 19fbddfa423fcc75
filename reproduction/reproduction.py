"""The paper's experiments on one data set: all tables and figures, in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from rankshot.core.errors import RankshotError, quote_names
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import arithmetic_mean
from rankshot.zeroshot.paper.similarity_methods import DirectSimilarity
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.weighted_mean import WeightedMean
from reproduction.benchmark import Benchmark, Task, rank_items
from reproduction.bootstrap import Bootstrap
from reproduction.class_maps import (
    ClassTree,
    SemanticMap,
    build_class_tree,
    build_source_maps,
    build_word_maps,
)
from reproduction.classifiers import (
    LEAST_SQUARES,
    SETTINGS,
    AnnounceStep,
    ClassifierCache,
    LinearClassifier,
)
from reproduction.full_sum import full_sum_table
from reproduction.paper_methods import paper_head
from reproduction.paper_tables import LINGUISTIC, table_one, table_two
from reproduction.peer_comparison import peer_table
from reproduction.peers.linear import VectorRegression
from reproduction.ranking_cells import RankingCells, build_ranking_cells
from reproduction.result_one import rater_table, source_table
from reproduction.result_tables import ResultTable, Value
from reproduction.two_classes import MethodScores, TwoClasses, evaluate_pairs, two_class_table

Grid = Mapping[str, tuple[float, ...]]
GRID: Grid = {
    "one-vs-rest": (0.001, 0.01),
    "one-vs-one": (0.001, 0.01),
    "multiclass": (0.001, 0.003, 0.01, 0.03),
    LEAST_SQUARES: (0.0001, 0.0003, 0.001, 0.01),
}
"""The values of C that are tried, by classifier."""
IMAGE_CLASSIFIER_NOTES = (
    "Table 2 uses the C with the best accuracy on validation images, as the paper does.",
    (
        "One-vs-rest and one-vs-one are linear support vector machines; their scores are "
        "scaled by Platt's method, fitted to the validation images. Least squares is not "
        "in the paper."
    ),
)


@dataclass(frozen=True, eq=False)
class PaperFigures:
    """The four figures of the paper, of one data set."""

    tree: ClassTree
    word_maps: tuple[SemanticMap, ...]
    cells: RankingCells
    source_maps: tuple[SemanticMap, ...]
    two_classes: TwoClasses


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The results of all experiments on one data set."""

    name: str
    tables: tuple[ResultTable, ...]
    figures: PaperFigures
    seconds: float

    @property
    def all_tables(self) -> tuple[ResultTable, ...]:
        """The tables, and Figure 4 as a table; a report shows that one below the figure."""
        return (*self.tables, two_class_table(self.figures.two_classes))

    def table(self, name: str) -> ResultTable:
        """Return a table by its short name."""
        for table in self.all_tables:
            if table.name == name:
                return table
        there = quote_names(table.name for table in self.all_tables)
        raise RankshotError(f"no table {name!r}; there are {there}")


def reproduce(
    benchmark: Benchmark, directory: Path, announce: AnnounceStep, grid: Grid = GRID
) -> Reproduction:
    """Run all experiments of the paper on one data set."""
    start = perf_counter()
    models = _Models(benchmark, directory, announce)
    real, cache = benchmark.real, models.of(benchmark.real)
    classifiers, best = _choose_classifiers(cache, real, grid, IMAGE_CLASSIFIER_NOTES)
    bootstrap = Bootstrap(real.test_label)
    scores = {name: partial(_scaled_scores, cache, real, name, best[name]) for name in SETTINGS}
    tables = [table_one(benchmark), classifiers, table_two(benchmark, scores, bootstrap, announce)]
    announce("Result 1")
    tables += [source_table(benchmark), rater_table(benchmark)]
    announce("the full sum over rankings")
    rehearsal, multiclass = models.load("multiclass", best["multiclass"])
    test_scores = multiclass.scores(real.test)
    tables.append(full_sum_table(test_scores, real, real.test_label))
    tables.append(peer_table(benchmark, rehearsal, multiclass, announce))
    announce("figures")
    figures = build_paper_figures(benchmark, _two_class_methods(benchmark, multiclass))
    return Reproduction(benchmark.name, tuple(tables), figures, round(perf_counter() - start))


class _Models:
    """The classifiers of the two tasks of a benchmark, cached in files."""

    def __init__(self, benchmark: Benchmark, directory: Path, announce: AnnounceStep) -> None:
        self._caches = {
            task.name: ClassifierCache(task.name, task.train, task.train_label, directory, announce)
            for task in (benchmark.rehearsal, benchmark.real)
        }

    def of(self, task: Task) -> ClassifierCache:
        """The classifiers of one task."""
        return self._caches[task.name]

    def load(self, setting: str, C: float) -> tuple[LinearClassifier, LinearClassifier]:
        """The classifiers with these settings, of the rehearsal and of the real task."""
        rehearsal, real = (cache.load_or_train(setting, C) for cache in self._caches.values())
        return rehearsal, real


def _choose_classifiers(
    cache: ClassifierCache, task: Task, grid: Grid, notes: Sequence[str]
) -> tuple[ResultTable, dict[str, float]]:
    """Train all classifiers of the grid, and choose the best C on seen validation *inputs*."""
    bootstrap = Bootstrap(task.validation_label)
    rows: list[tuple[Value, ...]] = []
    chosen: dict[str, float] = {}
    for setting, Cs in grid.items():
        accuracy = {}
        for C in Cs:
            labels = cache.load_or_train(setting, C).predict(task.validation)
            accuracy[C] = bootstrap.interval(labels == task.validation_label)
        chosen[setting] = max(accuracy, key=lambda C: accuracy[C].estimate)
        rows += [
            (setting, f"{C:g}", accuracy[C], "yes" if chosen[setting] == C else "") for C in Cs
        ]
    table = ResultTable(
        "classifiers",
        "The classifiers: accuracy on validation inputs of the seen classes",
        ("classifier", "C", "seen classes", "chosen"),
        tuple(rows),
        tuple(notes),
        n_labels=2,
    )
    return table, chosen


def _scaled_scores(cache: ClassifierCache, task: Task, setting: str, C: float) -> Scores:
    """Scores of the test inputs by one of the paper's classifiers."""
    model = cache.load_or_train(setting, C)
    if setting != "multiclass":
        model = model.with_platt_scaling(task.validation, task.validation_label)
    return model.scores(task.test)


def _two_class_methods(
    benchmark: Benchmark, multiclass: LinearClassifier
) -> dict[str, MethodScores]:
    """Scores of the test inputs by the methods of Figure 4."""
    task = benchmark.real
    scores = multiclass.scores(task.test)
    tables = [task.sources[name] for name in LINGUISTIC[benchmark.name]]
    linguistic = paper_head().fit(Rankings.concatenate(map(rank_items, tables)))
    direct = DirectSimilarity().fit(arithmetic_mean(tables).rescale())
    regression = VectorRegression().fit(task.train, task.train_label, benchmark.vectors)
    targets = benchmark.vectors.select(task.targets)
    default = WeightedMean().fit(task.panel, reference=multiclass.scores(task.validation))
    values = {
        "PR, linguistic": linguistic.predict_proba(scores),
        "Direct Similarity": direct.predict_proba(scores),
        "rankshot's default": default.predict_proba(scores),
    }
    names = tuple(map(str, np.asarray(linguistic.classes_)))
    return {name: MethodScores(proba, names) for name, proba in values.items()} | {
        "regression to word vectors": MethodScores(
            regression.decision_function(task.test, targets), task.targets
        )
    }


def build_paper_figures(benchmark: Benchmark, methods: Mapping[str, MethodScores]) -> PaperFigures:
    """Compute the four figures."""
    return PaperFigures(
        build_class_tree(benchmark),
        build_word_maps(benchmark),
        build_ranking_cells(benchmark),
        build_source_maps(benchmark),
        evaluate_pairs(benchmark, methods),
    )
