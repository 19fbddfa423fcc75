"""The demonstration: the paper's methods and ours in half a minute, on the data in the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from rankshot.core.progress import Announce
from rankshot.datasets import (
    load_cifar,
    load_held_out_panel,
    load_panel,
    load_similarities,
    load_thumbnails,
)
from rankshot.datasets.embedded import QUESTIONS
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.report.contents import MethodComparison, MethodRow, Report
from rankshot.report.pictures import (
    Outcomes,
    Thumbnail,
    build_gallery,
    choose_pictures,
    describe_choice,
)
from rankshot.report.predictions import evaluate_predictions, explain_outcomes
from rankshot.report.rankings import compare_sources, map_rankings, summarize_rankings
from rankshot.sources.similarity import Similarity, arithmetic_mean, geometric_mean
from rankshot.zeroshot.heads.base import BaseHead, Semantics
from rankshot.zeroshot.heads.deterministic_ranking import DeterministicRanking
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking, RankingModel
from rankshot.zeroshot.heads.similarity_heads import ConSE, DirectSimilarity
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.metrics import Interval, accuracy, wilson_interval
from rankshot.zeroshot.rehearsal import Rehearsal
from rankshot.zeroshot.scores import Scores

SOURCES = ("WordNet", "GloVe", "Wikipedia")
"""The linguistic sources that are compared and combined."""
REGULARIZATION = 0.03
"""The best of a few C on held-out seen classes, with K = 4 and the panel's rankings of these
classes. New classes were not used."""
K = 4
"""The length of the top lists in the paper's Table 2."""
LIST_LENGTH = 10
"""How many items of a source's ranking are used: as many as each rater of the panel ordered."""
DS, DR, PR = "Direct Similarity", "Deterministic Ranking", "Probabilistic Ranking"
ARITHMETIC, GEOMETRIC = "arithmetic mean", "geometric mean"
PRIORS = {"Plackett-Luce": PlackettLuce, "Mallows": Mallows}


# ---- The methods of the paper's Table 2


@dataclass(frozen=True, eq=False)
class Method:
    """A head, the semantics to which it is fitted, and the names of both."""

    method: str
    source: str
    head: BaseHead
    semantics: Semantics
    wants_reference: bool = False

    def mark_correct(
        self, scores: Scores, truth: NDArray[np.str_], reference: Scores | None = None
    ) -> NDArray[np.bool_] | None:
        """Fit the head and return which inputs it predicts correctly.

        Returns None if the head cannot use this kind of scores. The reference (scores of seen
        inputs) is passed to heads with ``wants_reference``.
        """
        if isinstance(self.head, DirectSimilarity | ConSE) and scores.kind == "one-vs-one":
            return None
        given = {"reference": reference} if self.wants_reference else {}
        head: Any = self.head
        return np.asarray(head.fit(self.semantics, **given).predict(scores) == truth)


def paper_head(prior: RankingModel | None = None) -> ProbabilisticRanking:
    """Return Probabilistic Ranking with the settings of the paper."""
    return ProbabilisticRanking(k=K, decay=0, prior=prior, posterior="consensus")


def paper_methods(sources: Mapping[str, Similarity], panel: Rankings) -> list[Method]:
    """Return all methods with all sources, in the order of the paper's Table 2.

    A source without a ranking for some target is used only together with the others.
    """
    tables = list(sources.values())
    merged = {ARITHMETIC: arithmetic_mean(tables), GEOMETRIC: geometric_mean(tables)}
    alone = {
        name: fill_missing(table)
        for name, table in sources.items()
        if not find_unranked_targets(table)
    }
    single = alone | {name: fill_missing(table) for name, table in merged.items()}
    linguistic = Rankings.concatenate(map(rank_items, tables))
    methods = [
        Method(DS, name, DirectSimilarity(), table.rescale()) for name, table in single.items()
    ]
    methods += [
        Method(DR, name, DeterministicRanking(k=K), rank_items(table))
        for name, table in single.items()
    ]
    methods += [Method(PR, name, paper_head(), rank_items(table)) for name, table in alone.items()]
    for what, rankings in (("linguistic", linguistic), ("panel", panel)):
        methods += [
            Method(PR, f"{what}, {name}", paper_head(prior()), rankings)
            for name, prior in PRIORS.items()
        ]
        mean = ProbabilisticRanking(k=K, decay=0, posterior="mean")
        methods.append(Method(PR, f"{what}, mean of rankings", mean, rankings))
    return methods


def rank_items(table: Similarity) -> Rankings:
    """Rank the items for each target by a source, and keep the first `LIST_LENGTH` of them.

    Targets for which the source ties all items have no ranking.
    """
    unranked = find_unranked_targets(table)
    ranked = [name for name in table.targets if name not in unranked]
    length = min(LIST_LENGTH, len(table.items))
    return fill_missing(table.select(ranked, table.items)).to_rankings(length)


def find_unranked_targets(table: Similarity) -> tuple[str, ...]:
    """Return the targets without similarities, or with the same similarity to all items."""
    missing = np.isnan(table.values)
    highest = np.where(missing, -np.inf, table.values).max(axis=1)
    lowest = np.where(missing, np.inf, table.values).min(axis=1)
    # A row without a number is not above itself either.
    ranked = highest > lowest
    return tuple(name for name, known in zip(table.targets, ranked, strict=True) if not known)


def fill_missing(table: Similarity) -> Similarity:
    """Return a table with its missing cells filled with the smallest similarity of the table."""
    present = table.values[np.isfinite(table.values)]
    values = np.nan_to_num(table.values, nan=float(present.min()) if present.size else 0.0)
    return Similarity(values, table.targets, table.items, table.source)


# ---- The demonstration


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demonstration.

    Attributes
    ----------
    comparison : MethodComparison
    seen_accuracy : float
        The accuracy of the classifier on validation inputs of seen classes.
    rehearsal : Rehearsal
        With held-out seen classes.
    predicted : Interval
        The accuracy of the new classes that it predicts.
    panel : Rankings
        The rankings of the panel, of all its questions.
    rankings : Rankings
        The rankings of all sources, including the panel.
    head : BaseHead
        The head that the rehearsal chose and calibrated, fitted to the panel.
    scores : Scores
        The scores of the new inputs.
    truth : ndarray of str
        The classes of the new inputs.
    """

    comparison: MethodComparison
    seen_accuracy: float
    rehearsal: Rehearsal
    predicted: Interval
    panel: Rankings
    rankings: Rankings
    head: BaseHead
    scores: Scores
    truth: NDArray[np.str_]


def run_demo(announce: Announce) -> Demo:
    """Train a classifier on seen classes, fit heads to the sources, and classify new images.

    ``announce`` is called with the number of steps done, the number of all steps, and the next
    step.
    """
    data = load_cifar()
    tables = {
        name: table.select(data.new_classes, data.seen_classes)
        for name, table in load_similarities("cifar").items()
        if name in SOURCES
    }
    # The question that is nearest to the paper's is the last of those that the panel was asked.
    panels = {name: load_panel("cifar", name) for name in QUESTIONS["cifar"][::-1]}
    questions = {f"panel, {name}": rankings for name, rankings in panels.items()}
    questions["panel, all questions"] = panel = Rankings.concatenate(panels.values())
    methods = paper_methods(tables, panels["similar"])
    methods.append(Method("ConSE", "GloVe", ConSE(), tables["GloVe"]))
    methods += [
        Method("Weighted Mean", f"{name} + reference", WeightedMean(), rankings, True)  # noqa: FBT003
        for name, rankings in questions.items()
    ]
    todo = len(methods) + 2
    announce(0, todo, "training")
    model = _train(data.seen_train, data.seen_train_label)
    classes = tuple(model.classes_.tolist())
    scores = Scores(model.decision_function(data.new), classes)
    reference = Scores(model.decision_function(data.seen_validation), classes)
    rows: list[MethodRow] = []
    for one in methods:
        announce(1 + len(rows), todo, f"{one.method}, {one.source}")
        correct = np.asarray(one.mark_correct(scores, data.new_label, reference))
        cell = wilson_interval(int(correct.sum()), len(correct))
        rows.append(MethodRow(one.method, one.source, cell))
    announce(todo - 1, todo, "rehearsal with seen classes")
    rehearsal = _rehearse()
    announce(todo, todo, "done")
    return Demo(
        comparison=MethodComparison(tuple(rows), CAPTION),
        seen_accuracy=accuracy(data.seen_validation_label, model.predict(data.seen_validation)),
        rehearsal=rehearsal,
        predicted=rehearsal.predict_accuracy(panel, reference),
        panel=panel,
        rankings=Rankings.concatenate([*map(rank_items, tables.values()), panel]),
        head=rehearsal.fit_head(panel, reference),
        scores=scores,
        truth=data.new_label,
    )


def _train(X: NDArray[np.float32], y: NDArray[np.str_]) -> LogisticRegression:
    return LogisticRegression(C=REGULARIZATION, max_iter=500).fit(X, y)


def _rehearse() -> Rehearsal:
    """Hold out the seen classes that the panel ranked; train a classifier on the others."""
    data = load_cifar()
    panel = Rankings.concatenate(
        [load_held_out_panel("cifar", name) for name in QUESTIONS["cifar"][::-1]]
    )
    trained = ~np.isin(data.seen_train_label, panel.target_names)
    held = ~np.isin(data.seen_validation_label, panel.target_names)
    model = _train(data.seen_train[trained], data.seen_train_label[trained])
    # All inputs of the held-out classes, and the validation inputs of the others.
    X = (data.seen_train[~trained], data.seen_validation[~held], data.seen_validation[held])
    y = (
        data.seen_train_label[~trained],
        data.seen_validation_label[~held],
        data.seen_validation_label[held],
    )
    scores = Scores(model.decision_function(np.concatenate(X)), tuple(model.classes_.tolist()))
    return Rehearsal().fit(scores, np.concatenate(y), panel)


# ---- Its report

CAPTION = (
    "Share of the images of new classes that were recognised, with 95% Wilson intervals. "
    f"K = {K}, except for Weighted Mean, the default head. It uses 15 places and a reference: the "
    "scores of validation images of seen classes."
)
CONSENSUS_NOTE = (
    f"Consensus: the order is the panel’s, in the first {K} places. The agreement and the "
    "distances are those of all raters and sources."
)
PANEL_NOTE = (
    "The panel consists of 18 raters. Each is a run of a language model, not a person. Eight "
    "ordered the ten seen classes that look most similar to a new class. Six ordered the 15 that a "
    "classifier would say for photographs of it, and four those that it would say for this new "
    "class rather than for the others. They saw no image; a language model may have read about "
    "these data sets."
)
DATA_NOTE = (
    "The data in the package are features of a few thousand images. The results differ from those "
    "on the complete data sets."
)


def demo_report(demo: Demo) -> Report:
    """Return the report of what the demonstration found."""
    consensus = cast("Rankings", paper_head().fit(demo.panel).consensus_)
    proba = demo.head.predict_proba(demo.scores)
    predicted = demo.head.predict(demo.scores)
    targets = demo.head.classes_.tolist()
    names = [f"Image {row}" for row in range(len(demo.truth))]
    outcomes = Outcomes(predicted, proba, demo.truth, targets)
    images, _, candidates = load_thumbnails()
    shown = choose_pictures(outcomes, candidates)
    pixels = dict(zip(candidates.tolist(), images, strict=True))
    pictures = {row: Thumbnail.from_pixels(pixels[row]) for row in shown}
    explained, whys = explain_outcomes(
        demo.head,
        outcomes,
        names,
        pictures,
        lambda rows: ((row, demo.scores[row : row + 1]) for row in rows),
    )
    best = max(row.accuracy.estimate for row in demo.comparison.rows)
    return Report(
        title="Ten classes that the classifier never saw",
        lead=(
            "This page compares zero-shot methods. A classifier that was trained on the 100 "
            "classes of CIFAR-100 recognises the 10 classes of CIFAR-10 without a single training "
            "image of them. Each new class is described by rankings of the seen classes, most "
            "similar first; the classifier’s scores tell how probable each ranking is for an image."
        ),
        facts=(
            ("seen classes", f"{len(demo.scores.items)}"),
            ("new classes", f"{len(targets)}"),
            ("test images", f"{len(demo.truth):,}"),
            ("rankings", f"{len(demo.rankings):,}"),
            ("best accuracy", f"{best:.1%}"),
            ("random guessing", f"{1 / len(targets):.1%}"),
        ),
        comparison=demo.comparison,
        evaluation=evaluate_predictions(demo.truth, predicted, proba, targets),
        gallery=build_gallery(outcomes, names, pictures, whys),
        gallery_choice=describe_choice(outcomes, shown, len(candidates)),
        consensuses=summarize_rankings(demo.rankings, consensus, K),
        sources=compare_sources(demo.rankings, consensus, K),
        map=map_rankings(demo.rankings, LIST_LENGTH),
        explanations=explained,
        notes=(
            describe_rehearsal(demo),
            f"Accuracy on held-out images of the seen classes: {demo.seen_accuracy:.1%}.",
            CONSENSUS_NOTE,
            PANEL_NOTE,
            DATA_NOTE,
        ),
    )


def describe_rehearsal(demo: Demo) -> str:
    """Return what the rehearsal was, and what it found."""
    before, after = demo.rehearsal.calibration_error_
    return (
        "Evaluation, pictures and explanations: the head that a rehearsal chose. In it, "
        f"{len(demo.rehearsal.classes_)} seen classes were held out. "
        f"Their mean accuracy was {demo.rehearsal.accuracy_}, and the expected calibration error "
        f"{before:.3f} with the default temperature, {after:.3f} with the chosen one. For the new "
        f"classes it predicted a mean accuracy of {demo.predicted}."
    )
