"""The demonstration: the paper's methods and ours in a few seconds, on the data in the package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from rankshot.core.files import remember_own, require_own
from rankshot.datasets import (
    load_cifar,
    load_held_out_panel,
    load_panel,
    load_photographs,
    load_similarities,
    load_thumbnails,
    write_photographs,
)
from rankshot.datasets.embedded import QUESTIONS
from rankshot.datasets.example_files import EXAMPLE_FILES, write_example_files
from rankshot.pages.images import Outcomes
from rankshot.pages.page import format_percent, format_range, write_page
from rankshot.pages.report import Report, build_report, render_report
from rankshot.ranking.ranking_files import write_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.forecast import Forecast
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.metrics import Interval, wilson_interval
from rankshot.zeroshot.paper.ranking_methods import DeterministicRanking, ProbabilisticRanking
from rankshot.zeroshot.paper.similarity_methods import ConSE, DirectSimilarity
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.weighted_mean import WeightedMean

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


# ---- The demonstration


def fill_missing(table: Similarity) -> Similarity:
    """Return a table with its missing cells filled with the smallest similarity of the table."""
    present = table.values[np.isfinite(table.values)]
    values = np.nan_to_num(table.values, nan=float(present.min()) if present.size else 0.0)
    return Similarity(values, table.targets, table.items, table.source)


def list_methods(
    tables: Mapping[str, Similarity], panel: Rankings
) -> Iterator[tuple[str, str, Any, Rankings | Similarity]]:
    """Yield the paper's methods: method, source, head, and what the head is fitted to."""
    single = {name: fill_missing(table) for name, table in tables.items()}
    ranked = {name: table.to_rankings(LIST_LENGTH) for name, table in single.items()}
    for name, table in single.items():
        yield DS, name, DirectSimilarity(), table.rescale()
    for name, rankings in ranked.items():
        yield DR, name, DeterministicRanking(k=K), rankings
    merged = {"linguistic": Rankings.concatenate(ranked.values()), "panel": panel}
    for name, rankings in (ranked | merged).items():
        yield PR, name, ProbabilisticRanking(k=K, decay=0, posterior="mean"), rankings
    yield "ConSE", "GloVe", ConSE(), tables["GloVe"]


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demonstration.

    Attributes
    ----------
    comparison : dict of dict
        The accuracy of each method with each source, as an interval.
    seen_accuracy : float
        The accuracy of the classifier on validation inputs of seen classes.
    forecast : Forecast
        What a rehearsal with held-out seen classes found.
    panel : Rankings
        The rankings of the panel, of all its questions.
    rankings : Rankings
        The rankings of all sources, including the panel.
    head : LinearHead
        The head with the settings that the rehearsal chose, fitted to the panel.
    scores : Scores
        The scores of the new inputs.
    truth : ndarray of str
        The classes of the new inputs.
    """

    comparison: dict[str, dict[str, Interval]]
    seen_accuracy: float
    forecast: Forecast
    panel: Rankings
    rankings: Rankings
    head: Predictor
    scores: Scores
    truth: NDArray[np.str_]


PAGE, PHOTOGRAPHS, RANKINGS = "report.html", "photographs", "photographs.jsonl"
MANIFEST = "demo.json"
"""The hashes of what was written."""


def write_demo(folder: Path, *, files_only: bool, overwrite: bool) -> Demo | None:
    """Write photographs to try, the files of the guide, and the report of the demonstration.

    With ``files_only``, there is no demonstration and no report. Files in the folder that were
    changed since they were written are replaced only with ``overwrite``.
    """
    photographs, manifest = load_photographs(), folder / MANIFEST
    names = [PAGE, RANKINGS, *EXAMPLE_FILES]
    files = [folder / name for name in names + [f"{PHOTOGRAPHS}/{one}" for one in photographs.ids]]
    for path in files:
        require_own(path, manifest, overwrite=overwrite)
    demo = None
    try:
        write_photographs(folder / PHOTOGRAPHS)
        write_rankings(photographs.rankings, folder / RANKINGS)
        write_example_files(folder)
        if not files_only:
            demo = run_demo()
            write_page(render_report(demo_report(demo)), folder / PAGE)
    finally:
        for path in files:
            if path.exists():
                remember_own(path, manifest)
    return demo


def run_demo() -> Demo:
    """Train a classifier on seen classes, fit heads to the sources, and classify new images."""
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
    methods = list(list_methods(tables, panels["similar"]))
    methods += [
        ("Weighted Mean", f"{name} + reference", WeightedMean(), rankings)
        for name, rankings in questions.items()
    ]
    # A tenth of the usual precision takes a sixth of the time, and is as accurate.
    model = LogisticRegression(C=REGULARIZATION, tol=0.01)
    model.fit(data.seen_train, data.seen_train_label)
    scores, reference = scores_of(model, data.new), scores_of(model, data.seen_validation)
    comparison: dict[str, dict[str, Interval]] = {}
    for method, source, head, semantics in methods:
        given = {"reference": reference} if isinstance(head, WeightedMean) else {}
        correct = head.fit(semantics, **given).predict(scores) == data.new_label
        accuracy = wilson_interval(int(correct.sum()), len(correct))
        comparison.setdefault(method, {})[source] = accuracy
    held_out = [load_held_out_panel("cifar", name) for name in QUESTIONS["cifar"]]
    ranked = Rankings.concatenate([*(one.change_items(panel.items) for one in held_out), panel])
    known = Knowledge(ranked, (reference, data.seen_validation_label))
    forecast = known.rehearse()
    return Demo(
        comparison=comparison,
        seen_accuracy=model.score(data.seen_validation, data.seen_validation_label),
        forecast=forecast,
        panel=panel,
        rankings=Rankings.concatenate(
            [*(fill_missing(t).to_rankings(LIST_LENGTH) for t in tables.values()), panel]
        ),
        head=Knowledge(panel, reference).fit(forecast.settings),
        scores=scores,
        truth=data.new_label,
    )


# ---- Its report

CAPTION = (
    "Comparison: the share of the images of new classes that were recognised, with 95% Wilson "
    f"intervals. K = {K}, except for Weighted Mean, the default head. It uses 15 places and a "
    "reference: the scores of validation images of seen classes."
)
PANEL_NOTE = (
    "The 18 raters of the panel are runs of a language model, not people. They saw no image, but "
    "may have read about these data sets."
)
DATA_NOTE = "The package contains a part of each data set: results on all of it differ."


def demo_report(demo: Demo) -> Report:
    """Return the report of what the demonstration found."""
    merging: Any = ProbabilisticRanking(k=K, decay=0, posterior="consensus").fit(demo.panel)
    proba = demo.head.predict_proba(demo.scores)
    names = [f"Image {row}" for row in range(len(demo.truth))]
    classes = demo.head.classes_.tolist()
    outcomes = Outcomes(names, demo.head.predict(demo.scores), proba, demo.truth, classes)
    images, _, candidates = load_thumbnails()
    forecast, accuracy = demo.forecast, demo.forecast.accuracy
    before, after = forecast.calibration_error
    return build_report(
        "Ten classes that the classifier never saw",
        outcomes,
        head=demo.head,
        scores=demo.scores,
        images=dict(zip(candidates.tolist(), images, strict=True)),
        rankings=demo.rankings,
        consensus=merging.consensus_,
        n_places=K,
        forecast=forecast.predicted,
        lead=(
            "A classifier that was trained on the 100 classes of CIFAR-100 recognises the 10 "
            "classes of CIFAR-10 without a single training image of them. Each new class is "
            "described by rankings of the seen classes, most similar first; the classifier’s "
            "scores show how well each ranking fits an image."
        ),
        settings=(
            ("classifier", f"logistic regression, C = {REGULARIZATION:g}, on image features"),
            ("head", "weighted mean, with the settings that a rehearsal chose"),
            ("rankings", f"{len(demo.rankings):,}, of {len(demo.scores.items)} seen classes"),
        ),
        comparison=demo.comparison,
        notes=(
            CAPTION,
            "The evaluation, the images and the explanations use the head that a rehearsal chose.",
            f"In this rehearsal, {len(forecast.classes)} seen classes were held out.",
            f"Their mean accuracy: {format_percent(accuracy.estimate)} ({format_range(accuracy)}).",
            f"Calibration error: {before:.1%} with the default temperature, {after:.1%} as chosen.",
            f"Accuracy on held-out images of the seen classes: {demo.seen_accuracy:.1%}.",
            PANEL_NOTE,
            DATA_NOTE,
        ),
    )
