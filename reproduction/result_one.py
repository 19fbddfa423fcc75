"""The paper's Result 1: how well a ranking identifies the class for which it was made."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import clone

from rankshot.core.errors import RankshotError, short_repr
from rankshot.ranking.distances import kendall_distance, mean_kendall_distance
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.paper.ranking_methods import RankingModel
from reproduction.benchmark import Benchmark, SourcePoints, collect_points
from reproduction.bootstrap import Bootstrap
from reproduction.result_tables import OursAndPaper, ResultTable, Value

Floats = NDArray[np.float64]
Names = NDArray[np.str_]
LENGTHS = (2, 5, 10)
"""The paper's K."""
EUCLIDEAN, NORMALIZED = "Euclidean", "Euclidean, normalised"
HAUSDORFF, MEAN = "Kendall, Hausdorff", "Kendall, mean over ties"
MALLOWS, PLACKETT_LUCE = "Mallows", "Plackett-Luce"
PAPER_SOURCES = {
    "animals": {
        EUCLIDEAN: 0.44,
        NORMALIZED: 0.62,
        f"{HAUSDORFF}, K = 2": 0.72,
        f"{HAUSDORFF}, K = 5": 0.70,
        f"{HAUSDORFF}, K = 10": 0.64,
    }
}
"""The accuracies of linguistic sources that the paper reports; it reports none for CIFAR."""
PAPER_RATERS = {
    "animals": {MALLOWS: (0.91, 0.99, 0.99), PLACKETT_LUCE: (0.79, 0.84, 0.96)},
    "cifar": {MALLOWS: (0.73, 0.79, 0.84), PLACKETT_LUCE: (0.72, 0.77, 0.74)},
}
"""The accuracies that the paper reports for 500 rankings by people, for each of `LENGTHS`."""
TOLERANCE = 1e-9
"""Relative differences below this count as ties, so that rounding does not decide."""
SAME_TEXT = (("GloVe", "GloVe 100d"), ("Wikipedia", "word2vec"))
"""Pairs of sources that were computed from the same text."""
INTERVAL_NOTE = (
    "Intervals are 95% intervals from 1,000 resamples of the targets, each drawn with all its "
    "points, because the points of one target are not independent. With this few targets, the "
    "intervals are rough."
)


def source_table(benchmark: Benchmark) -> ResultTable:
    """Return the leave-one-out 1-nearest-neighbour accuracy of the points of all sources.

    A point is the row of similarities of a new class by one source. Points are compared as
    numbers (Euclidean) and as rankings (Kendall).
    """
    points = collect_points(benchmark.real.sources)
    bootstrap = TargetBootstrap(points.targets)
    paper = PAPER_SOURCES.get(benchmark.name, {})
    rows = [
        (
            name,
            OursAndPaper(
                bootstrap.interval(nearest_is_correct(table, points.targets)), paper.get(name)
            ),
        )
        for name, table in _distances(points).items()
    ]
    return ResultTable(
        "result 1, sources",
        "Result 1: leave-one-out 1-nearest-neighbour accuracy of the rankings of "
        f"{len(benchmark.real.targets)} new classes by {len(benchmark.real.sources)} sources",
        ("distance", "accuracy"),
        tuple(rows),
        _source_notes(points, list(benchmark.real.sources)),
    )


def _distances(points: SourcePoints) -> dict[str, Floats]:
    """Return the distances between all points, by name of the distance."""
    sums = np.abs(points.values).sum(axis=1, keepdims=True)
    shares = points.values / sums
    tables = {EUCLIDEAN: cdist(points.values, points.values), NORMALIZED: cdist(shares, shares)}
    for name, distance in ((HAUSDORFF, kendall_distance), (MEAN, mean_kendall_distance)):
        for k in LENGTHS:
            tables[f"{name}, K = {k}"] = distance(points.rankings, k=k)
    return tables


def _source_notes(points: SourcePoints, names: list[str]) -> tuple[str, ...]:
    notes = [f"{len(points.targets)} points from {', '.join(names)}; the paper used other sources."]
    missing = [
        f"{source} lacks {len(targets)} ({', '.join(targets)})"
        for source, targets in points.left_out.items()
    ]
    if missing:
        notes.append(f"Targets without a ranking by a source are left out: {'; '.join(missing)}.")
    notes += [
        f"{one} and {other} come from the same text, so they are not independent."
        for one, other in SAME_TEXT
        if {one, other} <= set(names)
    ]
    notes.append(
        "The paper's Hausdorff distance takes the worst case that ties allow, so a ranking with "
        "large ties, such as WordNet's, is far from every strict ranking. The mean over the "
        "strict lists that ties allow does not penalise ties."
    )
    return (*notes, INTERVAL_NOTE)


# ---- The panel


def rater_table(benchmark: Benchmark) -> ResultTable:
    """Return the leave-one-out Bayes accuracy of ranking models of the targets.

    Each ranking is left out in turn. One model per target, fitted to the other rankings, gives its
    probability, and the most probable target is chosen (uniform prior).
    """
    panel, paper = benchmark.real.panel, PAPER_RATERS.get(benchmark.name, {})
    bootstrap = TargetBootstrap(panel.targets.astype(str))
    models: dict[str, RankingModel] = {MALLOWS: Mallows(), PLACKETT_LUCE: PlackettLuce()}
    rows: list[tuple[Value, ...]] = []
    for name, model in models.items():
        found = [bootstrap.interval(bayes_is_correct(panel.top(k), model)) for k in LENGTHS]
        printed = paper.get(name, (None,) * len(LENGTHS))
        rows.append((name, *map(OursAndPaper, found, printed)))
    return ResultTable(
        "result 1, raters",
        f"Result 1: leave-one-out Bayes accuracy of {len(panel)} rankings by a "
        "language-model panel",
        ("model", *(f"K = {k}" for k in LENGTHS)),
        tuple(rows),
        _rater_notes(panel),
    )


def _rater_notes(panel: Rankings) -> tuple[str, ...]:
    raters = (
        f"The raters are {len(panel.rater_names)} runs of a language model, not people. They chose "
        f"from all {panel.n_items} items. In the paper, people gave 50 answers per target and "
        "ordered 10 preselected items."
    )
    models = (
        "All rankings are cut to K, including those to which the models are fitted. "
        f"Plackett-Luce is regularised (η = {PlackettLuce().regularization:g}). "
        "Where all remaining rankings of a target are the same, Mallows gives every other "
        "ranking the probability 0. A decision between equally probable targets is divided among "
        "them. If two targets have the same lists, Plackett-Luce prefers the target without the "
        "left-out ranking, so it is always wrong there."
    )
    return raters, models, INTERVAL_NOTE


def bayes_is_correct(rankings: Rankings, model: RankingModel) -> Floats:
    """Return for each ranking, left out, whether its own target is the most probable: 1 or 0.

    Only the model of its own target must be fitted without it. Where several targets are equally
    probable, it is the share of them that is correct.
    """
    labels = rankings.targets
    names = np.array(rankings.target_names)
    log_prob = np.empty((len(rankings), len(names)))
    for column, name in enumerate(names):
        own = np.flatnonzero(labels == name)
        if own.size < 2:
            raise RankshotError(
                f"target {short_repr(str(name))} has one ranking; the accuracy needs two or more"
            )
        log_prob[:, column] = clone(model).fit(rankings[own]).log_prob(rankings)
        for row in own:
            others = rankings[own[own != row]]
            log_prob[row, column] = clone(model).fit(others).log_prob(rankings[int(row)])[0]
    best = log_prob.max(axis=1, keepdims=True)
    # Where all targets are impossible, all values are -inf, and all targets tie.
    taken = log_prob >= np.where(np.isneginf(best), best, best - TOLERANCE * np.abs(best))
    correct = taken & (labels[:, None] == names)
    return np.asarray(correct.sum(axis=1) / taken.sum(axis=1))


class TargetBootstrap:
    """Bootstrap over targets, each drawn with all its points."""

    def __init__(self, targets: Names) -> None:
        self._code = np.unique(targets, return_inverse=True)[1]
        self._sizes = np.bincount(self._code).astype(np.float64)
        # The units of the resamples are targets, all of one class.
        self._bootstrap = Bootstrap(["target"] * len(self._sizes))

    def interval(self, values: Floats) -> Interval:
        """Return the mean over points with its bootstrap interval."""
        means = np.bincount(self._code, values) / self._sizes
        return self._bootstrap.interval(means, self._sizes)


def nearest_is_correct(distance: Floats, labels: NDArray[np.str_]) -> Floats:
    """Return for each point whether the nearest other point has the same label: 1 or 0.

    Where several points are equally near, it is the share of them with the same label.
    """
    others = distance.copy()
    np.fill_diagonal(others, np.inf)
    nearest = others <= others.min(axis=1, keepdims=True) * (1 + TOLERANCE)
    correct = nearest & (labels[:, None] == labels)
    return np.asarray(correct.sum(axis=1) / nearest.sum(axis=1))
