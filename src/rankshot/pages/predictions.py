"""What a report says of predictions: how good they are, what is confused, and some examples.

The template does no arithmetic: all texts and lengths of bars are computed here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, format_count
from rankshot.pages.contents import Evaluation, ExplainedInput, PredictionOverview
from rankshot.pages.formatting import (
    Bar,
    Html,
    PairLine,
    format_interval,
    format_percent,
    make_bars,
    sort_largest_first,
)
from rankshot.pages.images import Outcomes, Thumbnail
from rankshot.pages.result_plots import ConfusionDisplay, ReliabilityDisplay
from rankshot.zeroshot.decide import Predictor
from rankshot.zeroshot.explanation import Explanation, explain
from rankshot.zeroshot.metrics import (
    FEW_CLASSES,
    Interval,
    count_confusions,
    find_largest_confusions,
    mean_class_interval,
    per_class_accuracy,
    reliability,
    wilson_interval,
)
from rankshot.zeroshot.scores import Scores

DIAGRAM_WIDTH = 4.2
"""Inches: it fits on a phone."""
N_CONFIDENCES = 10
"""Bins of confidence if the true classes are not known."""
FIRST_PAIRS = 10
"""Lines of a list of pairs that are not folded."""
MAX_LINES = 1000
"""Lines of a folded table."""
MAX_FINDINGS = 3
"""Classes that are named at the top of the page."""
MAX_EXAMPLES = 12
"""The largest number of inputs that are explained in detail."""


# ---- Values


def evaluate_predictions(
    truth: NDArray[np.str_],
    predicted: NDArray[np.str_],
    proba: NDArray[np.floating],
    classes: Sequence[str],
) -> Evaluation:
    """Compare predictions with the true classes.

    Parameters
    ----------
    truth, predicted : ndarray of str, shape (n,)
        A rejected input counts as a wrong prediction.
    proba : ndarray, shape (n, L)
    classes : sequence of str
        The L targets, in the order of the columns of ``proba``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import evaluate_predictions
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> found = evaluate_predictions(
    ...     np.array(["cat", "dog"]), np.array(["cat", "cat"]), proba, ["cat", "dog"])
    >>> found.accuracy.estimate, found.confusion.tolist()
    (0.5, [[1, 0], [1, 0]])
    """
    names = tuple(map(str, classes))
    by_class = per_class_accuracy(truth, predicted)
    per_class = tuple(by_class.get(name, float("nan")) for name in names)
    n_inputs = tuple(int((truth == name).sum()) for name in names)
    return Evaluation(
        classes=names,
        accuracy=wilson_interval(int((predicted == truth).sum()), len(truth)),
        mean_class_accuracy=mean_class_interval(per_class, n_inputs),
        per_class=per_class,
        n_inputs=n_inputs,
        confusion=count_confusions(truth, predicted, names),
        calibration=reliability(truth, proba, names),
    )


def count_predictions(
    predicted: NDArray[np.str_], proba: NDArray[np.floating], classes: Sequence[str]
) -> PredictionOverview:
    """Count the predictions of each class, and how certain they are.

    Parameters
    ----------
    predicted : ndarray of str, shape (n,)
        A label that is none of the classes, such as that of rejected inputs, is not counted.
    proba : ndarray, shape (n, L)
    classes : sequence of str

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import count_predictions
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.05, 0.95]])
    >>> found = count_predictions(np.array(["cat", "cat", "dog"]), proba, ["cat", "dog"])
    >>> found.counts, found.median_confidence
    ((2, 1), 0.9)
    """
    names = tuple(map(str, classes))
    numbers = Counter(predicted.tolist())
    confidence = np.minimum(np.asarray(proba, dtype=float).max(axis=1), 1.0)
    edges = np.arange(N_CONFIDENCES + 1) / N_CONFIDENCES
    sizes = np.histogram(confidence, edges)[0]
    return PredictionOverview(
        names,
        tuple(numbers[name] for name in names),
        len(predicted),
        float(np.median(confidence)),
        tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), sizes.tolist(), strict=True)),
    )


def explain_outcomes(
    head: Predictor,
    outcomes: Outcomes,
    names: Sequence[str],
    thumbnails: Mapping[int, Thumbnail],
    find_scores: Callable[[Collection[int]], Iterable[tuple[int, Scores]]],
) -> tuple[tuple[ExplainedInput, ...], dict[int, Explanation]]:
    """Explain an example of each class in detail, and all inputs that have an image, by row.

    ``find_scores`` yields the rows that it is given, each with the scores of its input.
    """
    # Rejected inputs have no class to explain. Inputs with an image are the best examples.
    shown = np.array(list(thumbnails), int)
    first = np.concatenate([shown, np.setdiff1d(np.flatnonzero(~outcomes.rejected), shown)])
    examples = first[_choose_examples(outcomes, first)].tolist()
    cards, whys = {}, {}
    for row, scores in find_scores({*thumbnails, *examples}):
        label = str(outcomes.predicted[row])
        why = explain(head, scores)[0]
        if why.target != label:
            raise RankshotError(
                f"input {names[row]!r} is {label!r} in the predictions, but {why.target!r} with "
                "these scores and this head: give those that made the predictions"
            )
        if row in thumbnails:
            whys[row] = why
        if row in examples:
            truth = None if outcomes.truth is None else str(outcomes.truth[row])
            # The rival of a wrong class is the true one, otherwise the most probable other class.
            order = np.argsort(-np.asarray(outcomes.proba[row]), kind="stable")
            others = [str(outcomes.classes[i]) for i in order if outcomes.classes[i] != label]
            rival = truth if truth not in (None, label) else next(iter(others), None)
            why = explain(head, scores, against=rival)[0]
            cards[row] = ExplainedInput(names[row], why, truth, thumbnails.get(row))
    return tuple(cards[row] for row in examples), whys


def _choose_examples(outcomes: Outcomes, rows: NDArray[np.intp]) -> list[int]:
    """Return the places of examples among rows: the first input of each of the first classes.

    Inputs that were not recognised and inputs that were take turns, as far as a class has both,
    and errors come first: so there is an error if any of these classes has one. If the truth is
    not known, it is an input that got the class.
    """
    predicted = outcomes.predicted[rows]
    truth = predicted if outcomes.truth is None else outcomes.truth[rows]
    chosen = []
    was_right = True
    for name in outcomes.classes[:MAX_EXAMPLES]:
        theirs = np.flatnonzero(truth == name)
        if theirs.size:
            right = predicted[theirs] == name
            best = int(np.argmax(right != was_right))
            was_right = bool(right[best])
            chosen.append(int(theirs[best]))
    return chosen


# ---- Accuracy


def write_verdict(
    found: Evaluation | PredictionOverview, predicted: Interval | None = None, kind: str = "new"
) -> str:
    """Return the result of a page in one sentence.

    Parameters
    ----------
    found : Evaluation or PredictionOverview
        What `evaluate_predictions` or `count_predictions` returned.
    predicted : Interval, optional
        The accuracy that a rehearsal predicted.
    kind : str
        Which classes could be predicted, such as ``"new"`` or ``"seen and new"``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import evaluate_predictions, write_verdict
    >>> truth, predicted = np.array(["cat", "dog"]), np.array(["cat", "cat"])
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> text = write_verdict(evaluate_predictions(truth, predicted, proba, ["cat", "dog"]))
    >>> text.split(". ")[0]
    '1 of 2 inputs of 2 new classes were classified correctly: 50.0% (95% interval 9.5–90.5%)'
    """
    classes = format_count(len(found.classes), f"{kind} class")
    before = ""
    if predicted is not None:
        before = f" The rehearsal on seen classes had predicted {format_interval(predicted)}."
    if isinstance(found, PredictionOverview):
        known = "The true classes are not given, so the accuracy is not known."
        if found.audited is not None:
            correct = format_interval(found.audited)
            known = f"A random sample was checked: {correct} of the predictions are correct."
        return f"{format_count(found.n_inputs, 'prediction')} of {classes}. {known}{before}"
    n = sum(found.n_inputs)
    return (
        f"{round(found.accuracy.estimate * n):,} of {format_count(n, 'input')} of {classes} were "
        f"classified correctly: {format_interval(found.accuracy)}. Random guessing reaches "
        f"{format_percent(1 / len(found.classes))}.{before}"
    )


def list_findings(found: Evaluation) -> list[str]:
    """Return what stands out: the classes that are clearly less accurate than all inputs together.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import evaluate_predictions
    >>> from rankshot.pages.predictions import list_findings
    >>> truth = np.repeat(["octopus", "squid"], 20)
    >>> predicted = np.repeat(["octopus", "squid"], [3, 37])
    >>> proba = np.eye(2)[(predicted == "squid").astype(int)]
    >>> list_findings(evaluate_predictions(truth, predicted, proba, ["octopus", "squid"]))
    ['octopus: 3 of 20 recognised; 17 taken for squid']
    """
    return [
        f"{line.bar.name}: {round(line.bar.length * line.inputs):,} of {line.inputs:,} recognised"
        + (f"; {line.times:,} taken for {' or '.join(line.confused_with[:2])}" * bool(line.times))
        for line in _find_weak_classes(found)
    ]


def list_steps(found: Evaluation | PredictionOverview) -> list[str]:
    """Return what to do next."""
    if isinstance(found, PredictionOverview):
        if found.audited is not None:
            return ["Label more inputs to increase the accuracy, and check another random sample."]
        return ["Check some predictions that are drawn at random, to learn the accuracy."]
    weak = [line for line in _find_weak_classes(found) if line.times]
    if not np.any(found.confusion - np.diag(np.diag(found.confusion))):
        return ["No class was confused with another: check more inputs to narrow the interval."]
    if not weak:
        return [
            "Label some inputs. No class is clearly less accurate than others, so any class helps."
        ]
    # Two classes that are confused with each other are named once.
    pairs = dict.fromkeys(tuple(sorted([line.bar.name, line.confused_with[0]])) for line in weak)
    what = "Label a few inputs of these classes, or add rankings that contrast them"
    return [f"{what}: {'; '.join(map(' and '.join, pairs))}."]


def _find_weak_classes(found: Evaluation) -> list[ClassLine]:
    """Return the classes whose interval is below the accuracy of all inputs, lowest first."""
    lines = [line for part in format_classes(found).values() for line in part if line.inputs]
    return [
        line
        for line in lines
        if wilson_interval(round(line.bar.length * line.inputs), line.inputs).high
        < found.accuracy.estimate
    ][:MAX_FINDINGS]


def list_facts(found: Evaluation | PredictionOverview) -> list[tuple[str, str]]:
    """Return labels and values of the cards below the verdict."""
    if isinstance(found, PredictionOverview):
        return [("median probability", format_percent(found.median_confidence))]
    return [
        ("mean accuracy of a class", format_percent(found.mean_class_accuracy.estimate)),
        (
            "mean error of the probabilities",
            format_percent(found.calibration.expected_calibration_error),
        ),
    ]


def format_overview(overview: PredictionOverview) -> dict[str, object]:
    """Return how many inputs got each class, and how certain these predictions are."""
    bars = make_bars(sort_largest_first(zip(overview.classes, overview.counts, strict=True)))
    bins = [(f"{100 * low:.0f}–{100 * high:.0f}%", n) for low, high, n in overview.confidences]
    return {
        "first": bars[:FEW_CLASSES],
        "others": bars[FEW_CLASSES:MAX_LINES],
        "confidences": make_bars(bins),
    }


# ---- Confusions and classes


def format_confusions(evaluation: Evaluation) -> dict[str, object]:
    """Return the most frequent confusions, and the matrix."""
    names, counts = evaluation.classes, evaluation.confusion
    found = find_largest_confusions(counts, names)
    pairs = [
        PairLine(
            names[i],
            names[j],
            f"{counts[i, j]:,}",
            format_percent(counts[i, j] / evaluation.n_inputs[i]),
            counts[i, j] / counts[found[0]],
        )
        for i, j in found
    ]
    title = "Number of inputs by true class (rows) and predicted class (columns)"
    matrix = Html(ConfusionDisplay(counts, list(names)).to_svg(title)) if len(names) > 1 else ""
    return {
        "first": pairs[:FIRST_PAIRS],
        "others": pairs[FIRST_PAIRS:],
        "matrix": matrix,
        "n_classes": len(names),
    }


class ClassLine(NamedTuple):
    """The accuracy of a class, and the classes that its inputs were most often confused with."""

    bar: Bar
    inputs: int
    confused_with: tuple[str, ...]
    times: int


def format_classes(evaluation: Evaluation) -> dict[str, list[ClassLine]]:
    """Return a line per class, lowest accuracy first; those after the first are folded."""
    order = sorted(
        range(len(evaluation.classes)),
        # NaN, the accuracy of a class without inputs, comes last.
        key=lambda i: (np.nan_to_num(evaluation.per_class[i], nan=np.inf), evaluation.classes[i]),
    )
    lines = [_format_class(evaluation, i) for i in order]
    return {"first": lines[:FEW_CLASSES], "others": lines[FEW_CLASSES:MAX_LINES]}


def _format_class(evaluation: Evaluation, i: int) -> ClassLine:
    counts = np.array(evaluation.confusion[i])
    counts[i] = 0
    times = int(counts.max())
    # If nothing was confused, no count is 1.
    others = np.array(evaluation.classes)[counts == max(times, 1)].tolist()
    share = evaluation.per_class[i]
    bar = Bar(evaluation.classes[i], format_percent(share), 0.0 if math.isnan(share) else share)
    return ClassLine(bar, evaluation.n_inputs[i], tuple(sorted(others)), times)


# ---- Calibration


def format_calibration(evaluation: Evaluation) -> dict[str, object]:
    """Return the reliability diagram, and what it amounts to."""
    bins = evaluation.calibration
    title = "Accuracy against confidence, with one disc per bin"
    return {
        "error": format_percent(bins.expected_calibration_error),
        "diagram": Html(ReliabilityDisplay(bins).to_svg(title, DIAGRAM_WIDTH)),
    }
