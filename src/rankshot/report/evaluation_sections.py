"""Accuracy, confusions, classes and calibration as the template needs them; or predictions alone.

The template does no arithmetic: all texts and lengths of bars are computed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rankshot.report.charts import draw_reliability
from rankshot.report.contents import Evaluation, Overview
from rankshot.report.texts import (
    MISSING,
    Bar,
    choose_heat_class,
    format_number,
    format_percent,
    make_bars,
)
from rankshot.zeroshot.metrics import (
    FEW_CLASSES,
    MAX_CLASSES,
    Interval,
    choose_confused_classes,
    describe_left_out,
    find_hardest_pairs,
    find_largest_confusions,
    format_share,
)

Matrix = list[tuple[str, list[tuple[str, str]]]]
"""Rows of a heat table: a name, and the CSS class and the text of each cell."""
FIRST_PAIRS = 10
"""Lines of a list of pairs that are not folded."""
FIRST_CLASSES = 10
"""Of many classes, this many with the lowest and with the highest accuracy are not folded."""
MAX_LINES = 1000
"""Lines of a folded table."""


# ---- Accuracy


class Metric(NamedTuple):
    """A number with its name, and its confidence interval if it has one."""

    name: str
    value: str
    interval: str = ""


def format_accuracy(evaluation: Evaluation) -> dict[str, Any]:
    """Return the main numbers, as cards, and the others, as a sentence."""
    L = len(evaluation.classes)
    main = [
        _format_interval("Accuracy", evaluation.accuracy),
        _format_interval("Mean class accuracy", evaluation.mean_class_accuracy),
        *(Metric("Top-5 accuracy", format_share(share)) for k, share in evaluation.top_k if k == 5),
        Metric("Random guessing", format_share(1 / L)),
    ]
    others = [f"top-{k} {format_share(share)}" for k, share in evaluation.top_k if k != 5]
    return {
        "metrics": main,
        "others": f"Other top-k accuracies: {', '.join(others)}." if others else "",
        "n_inputs": f"{sum(evaluation.n_inputs):,}",
        "n_classes": f"{L:,}",
    }


def _format_interval(name: str, interval: Interval) -> Metric:
    estimate, low, high = map(format_share, interval)
    return Metric(name, estimate, f"{low}–{high}")


def format_overview(overview: Overview) -> dict[str, Any]:
    """Return what predictions without true classes tell: how many of each class, and how sure."""
    order = sorted(zip(overview.classes, overview.counts, strict=True), key=_largest_first)
    bars = make_bars(order, [f"{count:,}" for _, count in order], max(overview.counts, default=0))
    most = max((count for _, _, count in overview.confidences), default=0)
    return {
        "metrics": [
            Metric("Inputs", f"{overview.n_inputs:,}"),
            Metric("New classes", f"{len(overview.classes):,}"),
            Metric("Predicted classes", f"{sum(count > 0 for count in overview.counts):,}"),
            Metric("Median confidence", format_percent(overview.median_confidence)),
        ],
        "first": bars[:FEW_CLASSES],
        "others": bars[FEW_CLASSES:MAX_LINES],
        "confidences": [
            Bar(f"{100 * low:.0f}–{100 * high:.0f}%", f"{count:,}", count / most if most else 0.0)
            for low, high, count in overview.confidences
        ],
    }


def _largest_first(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


# ---- Confusions


class PairLine(NamedTuple):
    """Two classes and a number about them."""

    first: str
    second: str
    text: str
    share: str
    length: float


def format_confusions(evaluation: Evaluation) -> dict[str, Any]:
    """Return the most frequent confusions, and both matrices: all classes, or the worst."""
    L = len(evaluation.classes)
    kept = choose_confused_classes(np.asarray(evaluation.confusion), evaluation.classes)
    pairs = _list_confusions(evaluation)
    note = "" if len(kept) == L else describe_left_out(len(kept), L)
    return {
        "first": pairs[:FIRST_PAIRS],
        "others": pairs[FIRST_PAIRS:],
        "classes": [evaluation.classes[i] for i in kept],
        "matrix": _format_confusion(evaluation, kept) if len(kept) > 1 else [],
        "note": note,
        "all_classes": evaluation.classes,
        "pairwise": _format_pairwise(evaluation) if 1 < L <= MAX_CLASSES else [],
        "pairs": _list_hardest_pairs(evaluation) if L > MAX_CLASSES else [],
    }


def _format_confusion(evaluation: Evaluation, kept: Sequence[int]) -> Matrix:
    """Return the counts; 0 is blank, so that the confusions stand out."""
    counts = np.asarray(evaluation.confusion)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return [
        (
            evaluation.classes[i],
            [_format_count(counts[i, j], shares[i, j], own=i == j) for j in kept],
        )
        for i in kept
    ]


def _format_count(count: int, share: float, *, own: bool) -> tuple[str, str]:
    css = choose_heat_class(share) if count else ""
    return f"{css} own".strip() if own else css, f"{count:,}" if count else ""


def _format_pairwise(evaluation: Evaluation) -> Matrix:
    return [
        (name, [_format_pairwise_cell(share, diagonal=i == j) for j, share in enumerate(row)])
        for i, (name, row) in enumerate(
            zip(evaluation.classes, np.asarray(evaluation.pairwise).tolist(), strict=True)
        )
    ]


def _format_pairwise_cell(share: float, *, diagonal: bool) -> tuple[str, str]:
    """Return the CSS class and the text of a cell; colours start at one half, random guessing."""
    if math.isnan(share):
        return "", "" if diagonal else MISSING
    per_cent = round(100 * share)
    return ("below" if per_cent < 50 else choose_heat_class(2 * share - 1)), str(per_cent)


def _list_confusions(evaluation: Evaluation) -> list[PairLine]:
    counts = np.asarray(evaluation.confusion)
    found = find_largest_confusions(counts, evaluation.classes)
    most = max((int(counts[pair]) for pair in found), default=0)
    return [
        PairLine(
            evaluation.classes[i],
            evaluation.classes[j],
            f"{counts[i, j]:,}",
            format_percent(counts[i, j] / evaluation.n_inputs[i]),
            counts[i, j] / most,
        )
        for i, j in found
    ]


def _list_hardest_pairs(evaluation: Evaluation) -> list[PairLine]:
    shares = np.asarray(evaluation.pairwise)
    return [
        PairLine(
            evaluation.classes[i],
            evaluation.classes[j],
            format_percent(float(shares[i, j])),
            "",
            float(shares[i, j]),
        )
        for i, j in find_hardest_pairs(shares, evaluation.classes)
    ]


# ---- Classes


class ClassLine(NamedTuple):
    """The accuracy of a class, and the classes that its inputs were most often confused with."""

    bar: Bar
    inputs: int
    confused_with: tuple[str, ...]
    times: int


def format_classes(evaluation: Evaluation) -> dict[str, Any]:
    """Return a line per class, lowest accuracy first; of many classes, in three parts."""
    order = sort_by_accuracy(evaluation.per_class, evaluation.classes)
    lines = [_format_class(evaluation, i) for i in order]
    if len(lines) <= FEW_CLASSES:
        return {"parts": [("", lines)], "others": [], "n_others": 0}
    measured = sum(evaluation.n_inputs[i] > 0 for i in order)
    lowest = lines[:FIRST_CLASSES]
    last = max(measured, 2 * FIRST_CLASSES)
    highest = lines[last - FIRST_CLASSES : last][::-1]
    others = lines[FIRST_CLASSES : last - FIRST_CLASSES] + lines[last:]
    return {
        "parts": [
            (f"The {FIRST_CLASSES} lowest", lowest),
            (f"The {FIRST_CLASSES} highest", highest),
        ],
        "others": others[:MAX_LINES],
        "n_others": len(others),
    }


def _format_class(evaluation: Evaluation, i: int) -> ClassLine:
    counts = np.array(evaluation.confusion[i])
    counts[i] = 0
    times = int(counts.max())
    others = np.flatnonzero(counts == times) if times else np.empty(0, np.intp)
    share = evaluation.per_class[i]
    bar = Bar(evaluation.classes[i], format_percent(share), 0.0 if math.isnan(share) else share)
    confused_with = tuple(sorted(evaluation.classes[j] for j in others))
    return ClassLine(bar, evaluation.n_inputs[i], confused_with, times)


# ---- Calibration


def format_calibration(evaluation: Evaluation) -> dict[str, Any]:
    """Return the reliability diagram, its bins, and what they amount to."""
    after, before = evaluation.calibration, evaluation.uncalibrated
    most = max((count for _, _, count in after.reliability), default=0)
    return {
        "error": format_share(after.expected_calibration_error),
        "log_loss": format_number(after.log_loss),
        "before": before
        and {
            "error": format_share(before.expected_calibration_error),
            "log_loss": format_number(before.log_loss),
        },
        "diagram": draw_reliability(
            after.reliability,
            "Accuracy against confidence, with one disc per bin",
            before.reliability if before else (),
        ),
        "bins": [
            (format_percent(confidence), format_percent(share), Bar("", f"{count:,}", count / most))
            for confidence, share, count in after.reliability
            if count
        ],
    }


# ---- Selections from large results


def sort_by_accuracy(per_class: Sequence[float], classes: Sequence[str]) -> list[int]:
    """Return the positions of the classes, lowest accuracy first, NaN last."""
    return sorted(range(len(classes)), key=lambda i: (_nan_last(per_class[i]), classes[i]))


def _nan_last(value: float) -> float:
    return np.inf if np.isnan(value) else value
