"""What a report says of predictions: how good they are, and which classes are confused.

The templates do no arithmetic: all texts and lengths of bars are computed here.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from rankshot.core.errors import format_count, join_some
from rankshot.pages.contents import Card, Evaluation, PredictionOverview, Report
from rankshot.pages.formatting import (
    Bar,
    format_percent,
    format_range,
    make_bars,
    sort_largest_first,
)
from rankshot.zeroshot.metrics import (
    Interval,
    Reliability,
    mean_class_interval,
    per_class_accuracy,
    reliability,
    wilson_interval,
)

Floats = NDArray[np.floating]
MAX_CLASSES = 40
"""Classes in a matrix, and pairs in a list."""
FEW_CLASSES = 20
"""At most this many classes are all in the matrix."""
N_BINS = 10
"""Bins of confidence."""
FIRST_PAIRS = 10
"""Lines of a list of pairs that are not folded."""
MAX_LINES = 1000
"""Lines of a folded table."""
UNEQUAL = 0.02
"""A mean over classes that differs so much from the accuracy is worth a card."""
UNCERTAIN = 0.5
"""Predictions with a smaller probability are counted as uncertain."""


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
        confusion=_count_confusions(truth, predicted, names),
        calibration=reliability(truth, proba, names, N_BINS),
    )


def _count_confusions(
    truth: NDArray[np.str_], predicted: NDArray[np.str_], names: Sequence[str]
) -> NDArray[np.int64]:
    with warnings.catch_warnings():
        # scikit-learn asks for `labels` where there is one class, or nearly one class per input.
        warnings.simplefilter("ignore", UserWarning)
        return np.asarray(confusion_matrix(truth, predicted, labels=names))


def find_lowest_pairs(values: Floats, classes: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of classes with the lowest values of a square matrix, lowest first.

    Cells that are NaN are left out. Equal ones are ordered by the names of the classes.
    """
    by_name = np.argsort(np.argsort(np.array(classes), kind="stable"))
    rows, columns = np.nonzero(~np.isnan(values))
    first = np.lexsort((by_name[columns], by_name[rows], values[rows, columns]))[:MAX_CLASSES]
    return [(int(rows[i]), int(columns[i])) for i in first]


def find_largest_confusions(
    confusion: NDArray[np.integer], classes: Sequence[str]
) -> list[tuple[int, int]]:
    """Pairs (true class, predicted class) with the largest counts, largest first."""
    is_wrong = (confusion > 0) & ~np.eye(len(confusion), dtype=bool)
    return find_lowest_pairs(np.where(is_wrong, -1.0 * confusion, np.nan), classes)


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
    edges = np.arange(N_BINS + 1) / N_BINS
    sizes = np.histogram(confidence, edges)[0]
    return PredictionOverview(
        names,
        tuple(numbers[name] for name in names),
        len(predicted),
        float(np.median(confidence)),
        tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), sizes.tolist(), strict=True)),
    )


# ---- The top of the page


class Headline(NamedTuple):
    """One large number, what it is, what to compare it with, and their places on a scale."""

    number: str
    label: str
    context: tuple[tuple[str, str], ...] = ()
    scale: Mapping[str, float] = MappingProxyType({})


def write_headline(report: Report) -> Headline | None:
    """Return the accuracy beside chance and the forecast; without true classes, what is known.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import Report, evaluate_predictions
    >>> from rankshot.pages.predictions import write_headline
    >>> truth, predicted = np.array(["cat", "dog"]), np.array(["cat", "cat"])
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> evaluation = evaluate_predictions(truth, predicted, proba, ["cat", "dog"])
    >>> headline = write_headline(Report("Cats and dogs", evaluation=evaluation))
    >>> headline.number, headline.label, headline.context[1]
    ('50.0%', 'of 2 inputs of 2 new classes predicted correctly', ('chance', '50.0%'))
    """
    result = report.evaluation or report.overview
    if result is None:
        return None
    of = format_count(len(result.classes), f"{report.kind} class")
    forecast = report.forecast
    if isinstance(result, Evaluation):
        measured: Interval | None = result.accuracy
        n = sum(result.n_inputs)
        label = f"of {format_count(n, 'input')} of {of} predicted correctly"
    else:
        measured, n = result.audited, result.n_inputs
        label = f"of the {format_count(n, 'prediction')} of {of} are correct"
        label += ", by a random audit"
    shown = measured or forecast
    if shown is None:
        label = f"of {of}; their true classes are not known"
        return Headline(format_count(n, "prediction"), label)
    chance = 1 / len(result.classes)
    context = [("95% interval", format_range(shown)), ("chance", format_percent(chance))]
    scale = {"at": shown.estimate, "low": shown.low, "high": shown.high, "chance": chance}
    if measured is None:
        label = f"forecast for {format_count(n, 'input')} of {of}"
    elif forecast is not None:
        scale |= {"from": forecast.low, "to": forecast.high}
        text = f"{format_percent(forecast.estimate)} ({format_range(forecast)})"
        context.append(("forecast", text))
    places = {key: 100 * min(max(value, 0.0), 1.0) for key, value in scale.items()}
    return Headline(format_percent(shown.estimate), label, tuple(context), places)


def list_cards(result: Evaluation | PredictionOverview) -> list[Card]:
    """Return cards: the lowest class, a confusion, wrong probabilities, classes never predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import evaluate_predictions
    >>> from rankshot.pages.predictions import list_cards
    >>> truth = np.repeat(["octopus", "squid"], 20)
    >>> predicted = np.repeat(["octopus", "squid"], [3, 37])
    >>> proba = np.eye(2)[(predicted == "squid").astype(int)]
    >>> for card in list_cards(evaluate_predictions(truth, predicted, proba, ["octopus", "squid"])):
    ...     print(*card, sep=" | ")
    Lowest class | octopus 15.0% | 3 of 20 inputs; 17 predicted as squid
    Most frequent confusion | octopus → squid | 17 inputs, 85.0% of octopus
    Probabilities | 42.5 points too high | mean probability 100.0%, accuracy 57.5%
    """
    return (
        _count_cards(result) if isinstance(result, PredictionOverview) else _accuracy_cards(result)
    )


def _count_cards(result: PredictionOverview) -> list[Card]:
    counts = sort_largest_first(zip(result.classes, result.counts, strict=True))
    (first, n), n_inputs = counts[0], max(result.n_inputs, 1)
    uncertain = sum(size for _, high, size in result.confidences if high <= UNCERTAIN)
    never = [name for name, count in counts if not count]
    share, doubt = format_percent(n / n_inputs), format_percent(uncertain / n_inputs)
    cards = [
        Card("Most often predicted", first, f"{format_count(int(n), 'input')}, {share}"),
        Card(
            "Uncertain", format_count(uncertain, "input"), f"{doubt} have a probability below 50%"
        ),
        Card("Median probability", format_percent(result.median_confidence)),
    ]
    if never:
        cards.append(
            Card("Never predicted", format_count(len(never), "class"), join_some(never, 5))
        )
    return cards


def _accuracy_cards(result: Evaluation) -> list[Card]:
    lines = [line for part in format_classes(result).values() for line in part if line.inputs]
    cards = []
    if len(lines) > 1:
        low = lines[0]
        detail = f"{round(low.bar.length * low.inputs):,} of {format_count(low.inputs, 'input')}"
        if low.times:
            detail += f"; {low.times:,} predicted as {' or '.join(low.confused_with[:2])}"
        cards.append(Card("Lowest class", f"{low.bar.name} {low.bar.text}", detail))
    for i, j in find_largest_confusions(result.confusion, result.classes)[:1]:
        n, (true, other) = int(result.confusion[i, j]), (result.classes[i], result.classes[j])
        share = f"{format_percent(n / result.n_inputs[i])} of {true}"
        detail = f"{format_count(n, 'input')}, {share}"
        cards.append(Card("Most frequent confusion", f"{true} → {other}", detail))
    used = result.calibration.count > 0
    weights = result.calibration.count[used]
    confidence, accuracy = (
        float(np.average(values[used], weights=weights))
        for values in (result.calibration.confidence, result.calibration.accuracy)
    )
    points = f"{100 * abs(confidence - accuracy):.1f} points too "
    inside = result.accuracy.low <= confidence <= result.accuracy.high
    value = (
        "as high as they should be"
        if inside
        else points + ("high" if confidence > accuracy else "low")
    )
    detail = f"mean probability {format_percent(confidence)}, accuracy {format_percent(accuracy)}"
    cards.append(Card("Probabilities", value, detail))
    mean = result.mean_class_accuracy.estimate
    if abs(mean - result.accuracy.estimate) > UNEQUAL:
        sizes = [line.inputs for line in lines]
        detail = f"classes have {min(sizes):,} to {max(sizes):,} inputs"
        cards.append(Card("Mean over classes", format_percent(mean), detail))
    return cards


def suggest_step(result: Evaluation | PredictionOverview) -> str:
    """Return a sentence with the next step."""
    if isinstance(result, PredictionOverview):
        if result.audited is not None:
            return "Label more inputs to increase the accuracy, and check another random sample."
        return "Check some predictions that are drawn at random, to measure the accuracy."
    lines = [line for part in format_classes(result).values() for line in part if line.times]
    low = [
        line
        for line in lines
        if wilson_interval(round(line.bar.length * line.inputs), line.inputs).high
        < result.accuracy.estimate
    ][:3]
    if not lines:
        return "No class was confused with another: check more inputs to narrow the interval."
    if not low:
        return "Label some inputs. No class is clearly less accurate than the others."
    # Two classes that are confused with each other are named once.
    pairs = dict.fromkeys(tuple(sorted([line.bar.name, line.confused_with[0]])) for line in low)
    what = "Label a few inputs of these classes, or add rankings that contrast them"
    return f"{what}: {'; '.join(map(' and '.join, pairs))}."


# ---- Sections


def format_overview(overview: PredictionOverview) -> dict[str, object]:
    """Return bars for the inputs of each class, and for their confidences."""
    bars = make_bars(sort_largest_first(zip(overview.classes, overview.counts, strict=True)))
    bins = [(_format_bin(low, high), n) for low, high, n in overview.confidences]
    return {
        "first": bars[:FEW_CLASSES],
        "others": bars[FEW_CLASSES:MAX_LINES],
        "confidences": make_bars(bins),
    }


def _format_bin(low: float, high: float) -> str:
    return f"{100 * low:.0f}\N{EN DASH}{100 * high:.0f}%"


def format_confusions(evaluation: Evaluation) -> dict[str, object]:
    """Return the most frequent confusions, and the matrix."""
    names, counts = evaluation.classes, evaluation.confusion
    largest = find_largest_confusions(counts, names)
    pairs = [
        (
            Bar(names[i], f"{counts[i, j]:,}", counts[i, j] / counts[largest[0]]),
            names[j],
            format_percent(counts[i, j] / evaluation.n_inputs[i]),
        )
        for i, j in largest
    ]
    matrix: dict[str, Any] | None = None
    kept = list(range(len(names)))
    if len(names) > FEW_CLASSES:
        wrong = counts - np.diag(counts.diagonal())
        times = wrong.sum(axis=0) + wrong.sum(axis=1)
        most = np.lexsort((names, -times))[:MAX_CLASSES]
        kept = sorted(int(i) for i in most if times[i]) or kept[:FEW_CLASSES]
    if len(names) > 1:
        part = counts[np.ix_(kept, kept)]
        shares = part / np.maximum(counts.sum(axis=1)[kept, None], 1)
        texts = [[f"{n:,}" if n else "" for n in row] for row in part.tolist()]
        matrix = format_matrix([names[i] for i in kept], shares, texts)
    note = ""
    if len(kept) < len(names):
        note = f"Only the {len(kept)} of {len(names):,} classes with the most confusions are shown."
    first, others = pairs[:FIRST_PAIRS], pairs[FIRST_PAIRS:]
    return {"first": first, "others": others, "matrix": matrix, "note": note}


def format_matrix(
    names: Sequence[str], shares: NDArray[np.floating], texts: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Return a square matrix of shares from 0 to 1 with its names, as a template takes it."""
    values = np.nan_to_num(shares).round(2).tolist()
    rows = [
        (name, [(text, share) for text, share in zip(*row, strict=True)])
        for name, *row in zip(names, texts, values, strict=True)
    ]
    return {"names": list(names), "rows": rows}


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
    bar = Bar(evaluation.classes[i], format_percent(share), float(np.nan_to_num(share)))
    return ClassLine(bar, evaluation.n_inputs[i], tuple(sorted(others)), times)


def format_calibration(calibration: Reliability) -> dict[str, object]:
    """Return a bar per bin of confidence: its accuracy, with a notch at its mean confidence."""
    bins = zip(*(values.tolist() for values in (
        calibration.edges[:-1], calibration.edges[1:], calibration.confidence,
        calibration.accuracy, calibration.count,
    )), strict=True)  # fmt: skip
    rows = [
        (Bar(_format_bin(low, high), format_percent(share), share, tick=confidence), f"{n:,}")
        for low, high, confidence, share, n in bins
        if n
    ]
    return {"error": format_percent(calibration.expected_calibration_error), "rows": rows}
