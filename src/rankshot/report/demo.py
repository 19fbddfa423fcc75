"""The report of the demonstration."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from rankshot.datasets import load_thumbnails
from rankshot.ranking.rankings import Rankings
from rankshot.report.contents import ExplainedInput, Report
from rankshot.report.demo_results import LIST_LENGTH, Demo, K, paper_head
from rankshot.report.gallery import Answers, build_gallery, choose_pictures, describe_choice
from rankshot.report.pictures import Picture
from rankshot.report.prediction_summaries import (
    choose_examples,
    choose_rival,
    evaluate_predictions,
)
from rankshot.report.ranking_summaries import compare_sources, map_rankings, summarize_rankings
from rankshot.zeroshot.explanation import explain

CAPTION = (
    "Share of the images of new classes that were recognised, with 95% Wilson intervals. "
    f"K = {K}, except for Weighted Mean, the default head. It uses 15 places and a reference: the "
    "scores of validation images of seen classes."
)
CONSENSUS_NOTE = (
    f"Consensus: the order is the panel’s, in the first {K} places. The agreement and the "
    "distances are those of all sources, with the same weight for each source."
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
    answers = Answers(predicted, proba, demo.truth, targets)
    images, _, candidates = load_thumbnails()
    shown = choose_pictures(answers, candidates)
    pixels = dict(zip(candidates.tolist(), images, strict=True))
    pictures = {row: Picture.from_pixels(pixels[row]) for row in shown}
    whys = explain(demo.head, demo.scores[np.array(shown)])
    # Inputs with a picture are the best examples.
    first = np.concatenate([shown, np.delete(np.arange(len(demo.truth)), shown)])
    examples = first[choose_examples(predicted[first], demo.truth[first], targets)].tolist()
    best = max(c.estimate for row in demo.comparison.rows for c in row.cells if c is not None)
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
        comparison=replace(demo.comparison, caption=CAPTION),
        evaluation=evaluate_predictions(demo.truth, predicted, proba, targets),
        gallery=build_gallery(
            answers,
            names,
            pictures,
            dict(zip(shown, whys, strict=True)),
            describe_choice(answers, shown, len(candidates)),
        ),
        consensuses=summarize_rankings(
            weigh_sources_equally(demo.rankings), consensus, K, by_source=True
        ),
        sources=compare_sources(demo.rankings, consensus, K),
        map=map_rankings(demo.rankings, LIST_LENGTH),
        explanations=tuple(
            ExplainedInput(
                names[row],
                explain(
                    demo.head,
                    demo.scores[row : row + 1],
                    against=choose_rival(str(predicted[row]), truth, proba[row], targets),
                )[0],
                truth,
                pictures.get(row),
            )
            for row, truth in zip(examples, demo.truth[examples].tolist(), strict=True)
        ),
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


def weigh_sources_equally(rankings: Rankings) -> Rankings:
    """Return rankings with weights so that each source counts the same for each target."""
    weights = [
        1 / ((rankings.targets == target) & (rankings.sources == source)).sum()
        for target, source in zip(rankings.targets, rankings.sources, strict=True)
    ]
    return replace(rankings, weights=np.array(weights))
