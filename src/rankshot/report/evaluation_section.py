"""From an evaluation to what the template writes of it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rankshot.report import large_results as large
from rankshot.report.bars import Bar
from rankshot.report.charts import reliability_diagram
from rankshot.report.contents import Evaluation
from rankshot.report.texts import NONE, number_text, percent_text, share_text

HEAT_STEPS = 9
"""Steps of the style sheet's colours for heat tables, beyond the empty one."""


class ClassLine(NamedTuple):
    """A class's accuracy, and what it is most often taken for."""

    bar: Bar
    inputs: int
    taken_for: tuple[str, ...]
    times: int


class PairLine(NamedTuple):
    """Two classes and a figure about them."""

    first: str
    second: str
    text: str
    share: str
    length: float


def evaluation_section(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures, the bars of each class, both matrices or their worst, and reliability."""
    L = len(evaluation.classes)
    small = L <= large.MOST_CLASSES
    low, high = evaluation.accuracy.low, evaluation.accuracy.high
    return {
        "figures": [
            ("Accuracy", share_text(evaluation.accuracy.estimate)),
            *((f"In the top {k}", share_text(share)) for k, share in evaluation.top_k),
            ("Calibration error", share_text(evaluation.expected_calibration_error)),
            ("Log loss", number_text(evaluation.log_loss)),
        ],
        "interval": f"{share_text(low)}–{share_text(high)}",
        "n_classes": L,
        "chance": f"{number_text(100 / L)}%",
        "classes": evaluation.classes,
        "class_lines": _class_lines(evaluation),
        "confusion": _confusion_rows(evaluation) if small else [],
        "confusions": [] if small else _confusion_list(evaluation),
        "pairwise": _pairwise_rows(evaluation) if small else [],
        "pairs": [] if small else _pair_list(evaluation),
        "diagram": reliability_diagram(
            evaluation.reliability, "How often right, against how sure, with a disc for each bin"
        ),
        "bins": _bin_lines(evaluation),
    }


def _class_lines(evaluation: Evaluation) -> list[ClassLine]:
    lines = []
    for i in large.lowest_classes(evaluation.per_class, evaluation.classes):
        counts = np.array(evaluation.confusion[i])
        counts[i] = 0
        times = int(counts.max())
        others = np.flatnonzero(counts == times) if times else np.empty(0, np.intp)
        share = evaluation.per_class[i]
        bar = Bar(evaluation.classes[i], percent_text(share), 0.0 if math.isnan(share) else share)
        taken_for = tuple(sorted(evaluation.classes[j] for j in others))
        lines.append(ClassLine(bar, evaluation.n_inputs[i], taken_for, times))
    return lines


def _confusion_rows(evaluation: Evaluation) -> list[tuple[str, list[tuple[str, str]]]]:
    counts = np.asarray(evaluation.confusion)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return [
        (name, [(heat(s), f"{c:,}") for s, c in zip(*row, strict=True)])
        for name, row in zip(
            evaluation.classes, zip(shares.tolist(), counts.tolist(), strict=True), strict=True
        )
    ]


def _pairwise_rows(evaluation: Evaluation) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (name, [_pairwise_cell(share, diagonal=i == j) for j, share in enumerate(row)])
        for i, (name, row) in enumerate(
            zip(evaluation.classes, np.asarray(evaluation.pairwise).tolist(), strict=True)
        )
    ]


def _pairwise_cell(share: float, *, diagonal: bool) -> tuple[str, str]:
    """Return the class and text of a cell; its colour starts at one half, a blind guess."""
    if math.isnan(share):
        return "", "" if diagonal else NONE
    per_cent = round(100 * share)
    return ("below" if per_cent < 50 else heat(2 * share - 1)), str(per_cent)


def _confusion_list(evaluation: Evaluation) -> list[PairLine]:
    counts = np.asarray(evaluation.confusion)
    totals = counts.sum(axis=1)
    found = large.largest_confusions(counts, evaluation.classes)
    most = max((int(counts[pair]) for pair in found), default=0)
    return [
        PairLine(
            evaluation.classes[i],
            evaluation.classes[j],
            f"{counts[i, j]:,}",
            percent_text(counts[i, j] / totals[i]),
            counts[i, j] / most,
        )
        for i, j in found
    ]


def _pair_list(evaluation: Evaluation) -> list[PairLine]:
    shares = np.asarray(evaluation.pairwise)
    return [
        PairLine(
            evaluation.classes[i],
            evaluation.classes[j],
            percent_text(float(shares[i, j])),
            "",
            float(shares[i, j]),
        )
        for i, j in large.hardest_pairs(shares, evaluation.classes)
    ]


def _bin_lines(evaluation: Evaluation) -> list[tuple[str, str, Bar]]:
    most = max((count for _, _, count in evaluation.reliability), default=0)
    return [
        (percent_text(confidence), percent_text(share), Bar("", f"{count:,}", count / most))
        for confidence, share, count in evaluation.reliability
        if count
    ]


def heat(share: float) -> str:
    """Return the class of a cell of a heat table, for a share from 0 to 1.

    Examples
    --------
    >>> from rankshot.report.evaluation_section import heat
    >>> heat(0), heat(0.5), heat(1), heat(float("nan"))
    ('h0', 'h5', 'h9', '')
    """
    if math.isnan(share):
        return ""
    # Halves go up, so that the steps are equally wide: round() would send them to even steps.
    return f"h{math.floor(HEAT_STEPS * min(max(share, 0), 1) + 0.5)}"
