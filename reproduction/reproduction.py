"""The paper's experiments on one data set: all tables and figures, in one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from rankshot.core.errors import RankshotError, quote_names
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import arithmetic_mean
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.heads.similarity_heads import DirectSimilarity
from rankshot.zeroshot.metrics import Bootstrap
from rankshot.zeroshot.scores import Scores
from reproduction.ablation import AblationResult, run_ablation, settings_table
from reproduction.benchmark import Benchmark, Task, rank_items
from reproduction.calibration import calibration_table
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
from reproduction.evaluator import Configuration, Evaluator
from reproduction.full_sum import full_sum_table
from reproduction.paper_methods import paper_head
from reproduction.paper_tables import LINGUISTIC, table_one, table_two
from reproduction.peer_comparison import peer_table
from reproduction.peers.linear import VectorRegression
from reproduction.ranking_cells import RankingCells, build_ranking_cells
from reproduction.rehearsed_sources import (
    prediction_table,
    rehearse_sources,
    task_values,
)
from reproduction.result_one import rater_table, source_table
from reproduction.result_tables import ResultTable, Value
from reproduction.source_matrix import source_matrix
from reproduction.text_peers import NOTES as TEXT_PEER_NOTES, text_peer_methods
from reproduction.two_classes import (
    MethodScores,
    TwoClasses,
    evaluate_pairs,
    two_class_table,
)

Grid = Mapping[str, tuple[float, ...]]
GRID: Grid = {
    "one-vs-rest": (0.001, 0.01),
    "one-vs-one": (0.001, 0.01),
    "multiclass": (0.001, 0.003, 0.01, 0.03),
    LEAST_SQUARES: (0.0001, 0.0003, 0.001, 0.01),
}
"""The values of C that are tried, by classifier."""
TEXT_GRID: Grid = {"multiclass": (1.0, 10.0, 100.0), LEAST_SQUARES: (0.1, 0.3, 1.0, 3.0)}
"""The same for texts, whose features are of length √2."""
IMAGE_CLASSIFIER_NOTES = (
    "Table 2 uses the C with the best accuracy on validation images, as the paper does.",
    (
        "One-vs-rest and one-vs-one are linear support vector machines; their scores are "
        "scaled by Platt's method, fitted to the validation images. Least squares is not "
        "in the paper."
    ),
)
TEXT_CLASSIFIER_NOTES = (
    "Features: TF-IDF of words, pairs of words, and two to five characters inside words.",
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
    figures: PaperFigures | None
    ablation: AblationResult
    seconds: float

    @property
    def all_tables(self) -> tuple[ResultTable, ...]:
        """The tables, and Figure 4 as a table; a report shows that one below the figure."""
        if self.figures is None:
            return self.tables
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
    evaluator = _make_evaluator(benchmark, directory, announce)
    real, cache = benchmark.real, evaluator.caches[benchmark.real.name]
    classifiers, by_images = _choose_classifiers(cache, real, grid, IMAGE_CLASSIFIER_NOTES)
    bootstrap = Bootstrap(real.test_label)
    scores = {name: partial(_scaled_scores, evaluator, name, by_images[name]) for name in SETTINGS}
    tables = [table_one(benchmark), classifiers, table_two(benchmark, scores, bootstrap, announce)]
    announce("Result 1")
    tables += [source_table(benchmark), rater_table(benchmark)]
    announce("the full sum over rankings")
    multiclass = Configuration("multiclass", by_images["multiclass"], ProbabilisticRanking())
    test_scores = evaluator.scores(multiclass, real, "test")
    tables.append(full_sum_table(test_scores, real, real.test_label))
    tables.append(peer_table(benchmark, *_load_models(evaluator, multiclass), announce))
    ablation = run_ablation(evaluator, multiclass.C, grid, announce)
    tables += _tables_beyond_the_paper(evaluator, ablation, bootstrap, announce)
    announce("figures")
    figures = build_paper_figures(
        benchmark, _two_class_methods(benchmark, evaluator, multiclass, ablation.chosen)
    )
    return Reproduction(
        benchmark.name, tuple(tables), figures, ablation, round(perf_counter() - start)
    )


def reproduce_texts(
    benchmark: Benchmark,
    directory: Path,
    announce: AnnounceStep,
    grid: Grid = TEXT_GRID,
) -> Reproduction:
    """Run the experiments on texts: all that does not compare with the paper."""
    start = perf_counter()
    evaluator = _make_evaluator(benchmark, directory, announce)
    real, cache = benchmark.real, evaluator.caches[benchmark.real.name]
    classifiers, by_inputs = _choose_classifiers(cache, real, grid, TEXT_CLASSIFIER_NOTES)
    multiclass = Configuration("multiclass", by_inputs["multiclass"], ProbabilisticRanking())
    ablation = run_ablation(evaluator, multiclass.C, grid, announce)
    models = _load_models(evaluator, multiclass)
    methods = text_peer_methods(evaluator, ablation.chosen)
    peers = peer_table(benchmark, *models, announce, methods, TEXT_PEER_NOTES)
    bootstrap = Bootstrap(real.test_label)
    more = _tables_beyond_the_paper(evaluator, ablation, bootstrap, announce)
    tables = (classifiers, peers, *more)
    return Reproduction(benchmark.name, tables, None, ablation, round(perf_counter() - start))


def _make_evaluator(benchmark: Benchmark, directory: Path, announce: AnnounceStep) -> Evaluator:
    caches = {
        task.name: ClassifierCache(task.name, task.train, task.train_label, directory, announce)
        for task in (benchmark.real, benchmark.rehearsal)
    }
    return Evaluator(benchmark, caches)


def _load_models(
    evaluator: Evaluator, configuration: Configuration
) -> tuple[LinearClassifier, LinearClassifier]:
    """Return the classifier of a configuration, of the rehearsal and of the real task."""
    benchmark = evaluator.benchmark
    rehearsal, real = (
        evaluator.caches[task.name].load_or_train(configuration.setting, configuration.C)
        for task in (benchmark.rehearsal, benchmark.real)
    )
    return rehearsal, real


def _tables_beyond_the_paper(
    evaluator: Evaluator, ablation: AblationResult, bootstrap: Bootstrap, announce: AnnounceStep
) -> list[ResultTable]:
    real = evaluator.benchmark.real
    announce("which settings seen classes favour")
    settings = settings_table(evaluator, ablation.bases)
    announce("predicted accuracy and calibration")
    sources = list(rehearse_sources(evaluator, ablation.chosen))
    predictions = list(sources)
    for label in ("multiclass", LEAST_SQUARES):
        base = ablation.bases[label]
        alone = replace(ablation.chosen, setting=base.setting, C=base.C, partner=None)
        predictions += [
            replace(one, name=f"{one.name}; {label} alone")
            for one in rehearse_sources(evaluator, alone)
        ]
    model = replace(
        ablation.bases["multiclass"],
        head=ProbabilisticRanking(k=ablation.chosen.head.k),
        reference=False,
    )
    scores = evaluator.scores(model, real, "test")
    return [
        ablation.table(bootstrap, real.test_label),
        ablation.selection.table(bootstrap),
        settings,
        prediction_table(predictions, bootstrap),
        calibration_table(sources, task_values(evaluator.fit_head(model, real), scores, real)),
        source_matrix(evaluator, ablation.chosen, announce),
    ]


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


def _scaled_scores(evaluator: Evaluator, setting: str, C: float) -> Scores:
    """Return the scores of the test inputs by one of the paper's classifiers."""
    task = evaluator.benchmark.real
    model = evaluator.caches[task.name].load_or_train(setting, C)
    if setting != "multiclass":
        model = model.with_platt_scaling(task.validation, task.validation_label)
    return model.scores(task.test)


def _two_class_methods(
    benchmark: Benchmark, evaluator: Evaluator, multiclass: Configuration, chosen: Configuration
) -> dict[str, MethodScores]:
    """Return the scores of the test inputs by the methods of Figure 4."""
    task = benchmark.real
    scores = evaluator.scores(multiclass, task, "test")
    tables = [task.sources[name] for name in LINGUISTIC[benchmark.name]]
    linguistic = paper_head().fit(Rankings.concatenate(map(rank_items, tables)))
    direct = DirectSimilarity().fit(arithmetic_mean(tables).rescale())
    regression = VectorRegression().fit(task.train, task.train_label, benchmark.vectors)
    targets = benchmark.vectors.select(task.targets)
    best = evaluator.fit_head(chosen, task)
    return {
        "PR, linguistic": MethodScores(linguistic.predict_log_proba(scores), _names(linguistic)),
        "Direct Similarity": MethodScores(direct.predict_log_proba(scores), _names(direct)),
        "regression to word vectors": MethodScores(
            regression.decision_function(task.test, targets), task.targets
        ),
        "settings chosen on seen classes": MethodScores(
            best.predict_log_proba(evaluator.scores(chosen, task, "test")), _names(best)
        ),
    }


def _names(head: BaseHead) -> tuple[str, ...]:
    return tuple(map(str, np.asarray(head.classes_)))


def build_paper_figures(benchmark: Benchmark, methods: Mapping[str, MethodScores]) -> PaperFigures:
    """Compute the four figures."""
    return PaperFigures(
        build_class_tree(benchmark),
        build_word_maps(benchmark),
        build_ranking_cells(benchmark),
        build_source_maps(benchmark),
        evaluate_pairs(benchmark, methods),
    )
