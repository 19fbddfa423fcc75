"""The paper's Result 1: whether the ranking of a class tells which class it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.base import clone

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.experiments.benchmark import (
    Benchmark,
    fill_missing,
    find_unranked_targets,
    rank_items,
)
from rankshot.experiments.tables import OursAndPaper, ResultTable, Value
from rankshot.ranking.distances import kendall_distance, mean_kendall_distance
from rankshot.ranking.mallows import Mallows
from rankshot.ranking.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.similarity import Similarity
from rankshot.zeroshot.bootstrap import Bootstrap
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.prior import RankingModel

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
"""The paper's accuracies of linguistic sources; it has none for CIFAR."""
PAPER_RATERS = {
    "animals": {MALLOWS: (0.91, 0.99, 0.99), PLACKETT_LUCE: (0.79, 0.84, 0.96)},
    "cifar": {MALLOWS: (0.73, 0.79, 0.84), PLACKETT_LUCE: (0.72, 0.77, 0.74)},
}
"""The paper's accuracies of 500 rankings by people, for each of `LENGTHS`."""
SAME_TEXT = (("GloVe", "GloVe 100d"), ("Wikipedia", "word2vec"))
"""Sources that were made from one text."""
TOLERANCE = 1e-9
"""Numbers closer than this part of them are not told apart: rounding must not decide."""
INTERVAL_NOTE = (
    "Intervals: 95 % of 1,000 resamples of the targets, each drawn with all its points, because "
    "those of one target are right or wrong together. With so few targets they are rough."
)


@dataclass(frozen=True, eq=False)
class Points:
    """What the sources say of each target that they know: a point a source and target.

    Attributes
    ----------
    values : ndarray of shape (points, items)
        Similarities; what a source does not know is as small as its smallest.
    rankings : Rankings
        The same as rankings, cut to as many items as a rater of the panel ordered.
    targets : ndarray of shape (points,)
    left_out : dict of str to tuple of str
        For each source that lacks any, the targets that it ranks nothing for.
    """

    values: Floats
    rankings: Rankings
    targets: Names
    left_out: dict[str, tuple[str, ...]]


def source_table(benchmark: Benchmark) -> ResultTable:
    """Return how often the nearest point, of another source or target, is of the same target.

    The points are the sources' rows of similarities of the unseen classes, compared as numbers
    (Euclidean) and as rankings (Kendall).
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
        "Result 1: leave-one-out 1-nearest-neighbour accuracy of what "
        f"{len(benchmark.real.sources)} sources say of {len(benchmark.real.targets)} unseen classes",
        ("distance", "accuracy"),
        tuple(rows),
        _source_notes(points, list(benchmark.real.sources)),
    )


def collect_points(sources: dict[str, Similarity]) -> Points:
    """Gather the points of all sources, less those that rank nothing."""
    values, rankings, left_out = [], [], {}
    targets: list[str] = []
    for name, table in sources.items():
        nothing = find_unranked_targets(table)
        if nothing:
            left_out[name] = nothing
        told = [target for target in table.targets if target not in nothing]
        if told:
            values.append(fill_missing(table.select(told, table.items)).values)
            rankings.append(rank_items(table))
            targets += told
    if not targets:
        raise RankshotError(f"none of the sources {quote_names(sources)} ranks anything")
    return Points(
        np.concatenate(values), Rankings.concatenate(rankings), np.array(targets), left_out
    )


def _distances(points: Points) -> dict[str, Floats]:
    """Return the distances between all points, by each way to measure them."""
    sums = np.abs(points.values).sum(axis=1, keepdims=True)
    shares = points.values / sums
    tables = {EUCLIDEAN: cdist(points.values, points.values), NORMALIZED: cdist(shares, shares)}
    for name, distance in ((HAUSDORFF, kendall_distance), (MEAN, mean_kendall_distance)):
        for k in LENGTHS:
            tables[f"{name}, K = {k}"] = distance(points.rankings, k=k)
    return tables


def nearest_is_correct(distance: Floats, labels: Names) -> Floats:
    """Return for each point whether its nearest other has the same label: 1 or 0.

    Of several equally near, each is as likely to be taken: the share of them that is right.

    Examples
    --------
    >>> places = np.array([0.0, 1.0, 2.0, 9.0])
    >>> distance = np.abs(places[:, None] - places)
    >>> nearest_is_right(distance, np.array(["cat", "cat", "dog", "dog"]))
    array([1. , 0.5, 0. , 1. ])
    """
    others = distance.copy()
    np.fill_diagonal(others, np.inf)
    nearest = others <= others.min(axis=1, keepdims=True) * (1 + TOLERANCE)
    return _share_correct(nearest, labels[:, None] == labels)


def _share_correct(taken: NDArray[np.bool_], right: NDArray[np.bool_]) -> Floats:
    """Return the part of what each row may take that is right."""
    return np.asarray((taken & right).sum(axis=1) / taken.sum(axis=1))


def _source_notes(points: Points, names: list[str]) -> tuple[str, ...]:
    notes = [f"{len(points.targets)} points of {', '.join(names)}; the paper had other sources."]
    missing = [
        f"{source} lacks {len(targets)} ({', '.join(targets)})"
        for source, targets in points.left_out.items()
    ]
    if missing:
        notes.append(f"Targets that a source ranks nothing for are left out: {'; '.join(missing)}.")
    notes += [
        f"{one} and {other} are of the same text, and no independent witnesses of each other."
        for one, other in SAME_TEXT
        if {one, other} <= set(names)
    ]
    notes.append(
        "Hausdorff's distance, the paper's, takes the worst case of what ties allow. WordNet's "
        "large ties make it unfit: a ranking with large ties is far from every strict one, "
        "whatever it says. The mean over the strict lists that ties allow does not punish ties; "
        "whether it finds more, the rows tell."
    )
    return (*notes, INTERVAL_NOTE)


# -------------------------------------------------------------------- the panel


def rater_table(benchmark: Benchmark) -> ResultTable:
    """Return how often a model of each target's rankings finds the target of one left out.

    Each ranking is left out in turn; the targets' models, fitted to all others, say how
    probable it is, and the most probable target is taken (uniform prior).
    """
    panel, paper = benchmark.panel, PAPER_RATERS.get(benchmark.name, {})
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
        f"The raters are {len(panel.rater_names)} of a language-model panel, not people, and chose "
        f"from all {panel.n_items} items. The paper's were people, 50 answers a target, who "
        "ordered 10 items that were chosen beforehand."
    )
    models = (
        "All is cut to K, also what the models are fitted to. Plackett-Luce is regularised "
        f"(η = {PlackettLuce().regularization:g}); to Mallows nothing but their list is possible "
        "where all rankings that are left agree. Of several equally probable targets, each is as "
        "likely to be taken. Of two targets with the same lists, the one without the left-out "
        "ranking is the more probable by Plackett-Luce: there it is always wrong."
    )
    return raters, models, INTERVAL_NOTE


def bayes_is_correct(rankings: Rankings, model: RankingModel) -> Floats:
    """Return for each ranking, left out, whether its own target is the most probable: 1 or 0.

    Only the model of its own target must be fitted without it. Of several equally probable
    targets, each is as likely to be taken.
    """
    labels = rankings.targets
    names = np.array(rankings.target_names)
    log_prob = np.empty((len(rankings), len(names)))
    for column, name in enumerate(names):
        own = np.flatnonzero(labels == name)
        if own.size < 2:
            raise RankshotError(
                f"target {short_repr(str(name))} has one ranking: with it left out, nothing is known"
            )
        log_prob[:, column] = clone(model).fit(rankings[own]).log_prob(rankings)
        for row in own:
            others = rankings[own[own != row]]
            log_prob[row, column] = clone(model).fit(others).log_prob(rankings[int(row)])[0]
    best = log_prob.max(axis=1, keepdims=True)
    # Where all are impossible, the largest is -inf, and so are all: they are alike.
    taken = log_prob >= np.where(np.isneginf(best), best, best - TOLERANCE * np.abs(best))
    return _share_correct(taken, labels[:, None] == names)


class TargetBootstrap:
    """Resamples of targets, each drawn with all its points.

    Parameters
    ----------
    targets : ndarray of shape (points,)

    Examples
    --------
    >>> found = TargetBootstrap(np.array(["cat", "cat", "dog"])).interval(np.array([1., 0., 1.]))
    >>> round(found.estimate, 3), found.low, found.high
    (0.667, 0.5, 1.0)
    """

    def __init__(self, targets: Names) -> None:
        self._code = np.unique(targets, return_inverse=True)[1]
        self._sizes = np.bincount(self._code).astype(np.float64)
        # For the resamples, a target is an input, and all are of one kind.
        self._bootstrap = Bootstrap(["target"] * len(self._sizes))

    def interval(self, right: Floats) -> Interval:
        """Return the mean over points, and the interval that resamples put it in."""
        means = np.bincount(self._code, right) / self._sizes
        return self._bootstrap.interval(means, self._sizes)
