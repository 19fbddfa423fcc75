"""The report of the demonstration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankshot.experiments.benchmark import LIST_LENGTH
from rankshot.experiments.demo import REPORTED, Demo
from rankshot.experiments.methods import K
from rankshot.ranking.concordance import summarize
from rankshot.report.contents import Report
from rankshot.report.from_results import (
    class_map,
    consensus_cards,
    evaluation_of,
    example_rows,
    explanation_card,
)
from rankshot.zeroshot.explanation import explain

CAPTION = (
    "Share of unseen images classified rightly, with 95 % Wilson intervals; "
    f"K = {K} but for the default head."
)
CONSENSUS_NOTE = (
    "The consensus is the panel's; agreement and distances are those of all four sources, each "
    "counting alike."
)
PANEL_NOTE = (
    "The panel are eight raters, language models each, that put the ten most similar of the "
    "hundred seen classes in order, by their names alone. They are not people."
)
DATA_NOTE = (
    "The data inside the package are features of some thousands of images; the figures are not "
    "those of the whole data sets."
)


def demo_report(demo: Demo) -> Report:
    """Put what the demonstration found on a page."""
    method, source, classifier = REPORTED
    proba = demo.head.predict_proba(demo.scores)
    predicted = demo.head.predict(demo.scores)
    targets = demo.head.classes_.tolist()
    examples = example_rows(predicted, demo.truth, targets)
    reasons = explain(demo.head, demo.scores[np.array(examples)])
    best = max(c.estimate for row in demo.comparison.rows for c in row.cells if c is not None)
    seen = ", ".join(f"{name} {share:.1%}" for name, share in demo.seen_accuracy.items())
    return Report(
        title="Ten classes that the classifier never saw",
        lead=(
            "Classifiers trained on CIFAR-100's classes tell CIFAR-10's apart, without a single "
            "training image of them: by how probable each new class's ranking of the known ones "
            "is under their own scores."
        ),
        facts=(
            ("seen classes", f"{len(demo.scores.items)}"),
            ("unseen classes", f"{len(targets)}"),
            ("unseen images", f"{len(demo.truth):,}"),
            ("rankings", f"{len(demo.rankings):,}"),
            ("best accuracy", f"{best:.1%}"),
            ("by chance", f"{1 / len(targets):.1%}"),
        ),
        comparison=replace(demo.comparison, caption=CAPTION),
        consensuses=consensus_cards(summarize(demo.panel, k=LIST_LENGTH), demo.rankings),
        map=class_map(demo.rankings, LIST_LENGTH),
        evaluation=evaluation_of(demo.truth, predicted, proba, targets),
        explanations=tuple(
            explanation_card(f"Image {row}", why, str(demo.truth[row]))
            for row, why in zip(examples, reasons, strict=True)
        ),
        notes=(
            f"Evaluation and explanations: {method} ({source}), {classifier} classifier.",
            f"On held-out images of the classes they know, the classifiers are right: {seen}.",
            CONSENSUS_NOTE,
            PANEL_NOTE,
            DATA_NOTE,
        ),
    )
