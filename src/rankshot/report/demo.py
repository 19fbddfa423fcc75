"""The report of the demonstration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankshot.experiments.benchmark import LIST_LENGTH
from rankshot.experiments.demo import REPORTED, Demo
from rankshot.experiments.methods import K
from rankshot.ranking.concordance import TargetSummary, disagreement, summarize
from rankshot.ranking.rankings import Rankings
from rankshot.report.contents import (
    ExplainedInput,
    Report,
    choose_examples,
    evaluate_predictions,
    map_rankings,
)
from rankshot.zeroshot.explanation import explain

CAPTION = (
    "Share of the images of new classes that were recognised, with 95% Wilson intervals. "
    f"K = {K}, except for the default head, which is also fitted with a reference: the scores of "
    "validation images of seen classes."
)
CONSENSUS_NOTE = (
    "Consensus: the order is the panel’s. The agreement and the distances are those of all four "
    "sources, with the same weight for each source."
)
PANEL_NOTE = (
    "The panel consists of eight raters. Each is a language model, not a person. From the names "
    "alone, each rater ordered the ten most similar of the hundred seen classes."
)
DATA_NOTE = (
    "The data in the package are features of a few thousand images. The results differ from those "
    "on the complete data sets."
)


def demo_report(demo: Demo) -> Report:
    """Return the report of what the demonstration found."""
    method, source, classifier = REPORTED
    proba = demo.head.predict_proba(demo.scores)
    predicted = demo.head.predict(demo.scores)
    targets = demo.head.classes_.tolist()
    examples = choose_examples(predicted, demo.truth, targets)
    reasons = explain(demo.head, demo.scores[np.array(examples)])
    best = max(c.estimate for row in demo.comparison.rows for c in row.cells if c is not None)
    seen = ", ".join(f"{name} {share:.1%}" for name, share in demo.seen_accuracy.items())
    return Report(
        title="Ten classes that the classifier never saw",
        lead=(
            "This page compares zero-shot methods. Classifiers that were trained on the 100 "
            "classes of CIFAR-100 recognise the 10 classes of CIFAR-10 without a single training "
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
        comparison=replace(demo.comparison, caption=CAPTION),
        consensuses=tuple(
            measure_source_agreement(summary, demo.rankings)
            for summary in summarize(demo.panel, k=LIST_LENGTH)
        ),
        map=map_rankings(demo.rankings, LIST_LENGTH),
        evaluation=evaluate_predictions(demo.truth, predicted, proba, targets),
        explanations=tuple(
            ExplainedInput(f"Image {row}", why, str(demo.truth[row]))
            for row, why in zip(examples, reasons, strict=True)
        ),
        notes=(
            f"Evaluation and explanations: {method} ({source}), {classifier} classifier.",
            f"Accuracy of the classifiers on held-out images of the seen classes: {seen}.",
            CONSENSUS_NOTE,
            PANEL_NOTE,
            DATA_NOTE,
        ),
    )


def measure_source_agreement(summary: TargetSummary, rankings: Rankings) -> TargetSummary:
    """Return a summary with the agreement of the sources of ``rankings`` instead of its raters'.

    The order stays. The distances are those of the sources to it, and each source has the same
    weight, whatever its number of raters.
    """
    consensus = Rankings.from_orders([summary.order], items=rankings.items).top(summary.k)
    theirs = rankings.select(target=summary.target)
    nobody = np.full(len(theirs), None, object)
    sizes = np.array([(theirs.sources == source).sum() for source in theirs.sources])
    weighted = summarize(replace(theirs, weights=1 / sizes), k=summary.k)[0]
    return replace(
        summary,
        concordance=weighted.concordance,
        mean_distance=weighted.mean_distance,
        disagreement=disagreement(replace(theirs, raters=nobody), consensus),
    )
