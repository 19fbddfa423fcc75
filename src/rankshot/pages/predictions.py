"""What a report says of predictions: how good they are, and which classes are confused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import format_count, join_some
from rankshot.pages.images import Outcomes
from rankshot.pages.page import (
    Card,
    format_matrix,
    format_percent,
    format_range,
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

N_BINS = 10
"""Bins of confidence."""
FEW_CLASSES = 20
"""With more classes, the matrix has only those of the most frequent confusions, this many."""


# ---- Values


# eq=False: comparing arrays does not give a single truth value.
@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well the new classes were recognised; see `evaluate_predictions`.

    Attributes
    ----------
    classes : tuple of str
        The L classes.
    accuracy, mean_class_accuracy : Interval
        Over all inputs, and the mean over the classes that have inputs.
    per_class : tuple of float
        The accuracy over the inputs of each class; NaN for a class without inputs.
    n_inputs : tuple of int
        The number of inputs of each class. A row of ``confusion`` may have a smaller sum, because
        it leaves out rejected inputs.
    confusion : ndarray of int, shape (L, L)
        Counts, one row per true class and one column per predicted class.
    calibration : Reliability
        How well probabilities fit the share of correct predictions.
    """

    classes: tuple[str, ...]
    accuracy: Interval
    mean_class_accuracy: Interval
    per_class: tuple[float, ...]
    n_inputs: tuple[int, ...]
    confusion: NDArray[np.int64]
    calibration: Reliability


class PredictionOverview(NamedTuple):
    """Predictions without true classes: the inputs of each class, the most frequent class first.

    The confidence of a prediction is the largest probability of its input. ``confidences`` has the
    number of inputs of each bin, from the first that has any.
    """

    counts: dict[str, int]
    n_inputs: int
    median_confidence: float
    confidences: tuple[tuple[str, int], ...]


def evaluate_predictions(outcomes: Outcomes) -> Evaluation:
    """Compare predictions with the true classes; a rejected input counts as wrong."""
    assert outcomes.truth is not None  # noqa: S101 (who calls this knows the true classes)
    truth, predicted, names = outcomes.truth, outcomes.predicted, tuple(map(str, outcomes.classes))
    place = {name: i for i, name in enumerate(names)}
    by_class = per_class_accuracy(truth, predicted)
    per_class = tuple(by_class.get(name, float("nan")) for name in names)
    n_inputs = tuple(int((truth == name).sum()) for name in names)
    confusion = np.zeros((len(names), len(names)), int)
    for (true, given), n in Counter(zip(truth.tolist(), predicted.tolist(), strict=True)).items():
        if true in place and given in place:
            confusion[place[true], place[given]] = n
    return Evaluation(
        classes=names,
        accuracy=wilson_interval(int((predicted == truth).sum()), len(truth)),
        mean_class_accuracy=mean_class_interval(per_class, n_inputs),
        per_class=per_class,
        n_inputs=n_inputs,
        confusion=confusion,
        calibration=reliability(truth, outcomes.proba, names, N_BINS),
    )


def count_predictions(outcomes: Outcomes) -> PredictionOverview:
    """Count the predictions of each class, but not rejected inputs, and how certain they are."""
    numbers = Counter(outcomes.predicted.tolist())
    counts = sort_largest_first((str(name), numbers[name]) for name in outcomes.classes)
    confidence = np.minimum(np.asarray(outcomes.proba, dtype=float).max(axis=1), 1.0)
    edges = np.arange(N_BINS + 1) / N_BINS
    sizes = np.histogram(confidence, edges)[0]
    names = [f"{100 * low:.0f}\N{EN DASH}{100 * high:.0f}%" for low, high in pairwise(edges)]
    return PredictionOverview(
        dict(counts),
        len(outcomes.predicted),
        float(np.median(confidence)),
        tuple(zip(names, sizes.tolist(), strict=True))[int(np.argmax(sizes > 0)) :],
    )


# ---- The top of the page


class Headline(NamedTuple):
    """One large number, what it is, what to compare it with, and their places on a scale."""

    number: str
    label: str
    context: tuple[tuple[str, str], ...] = ()
    scale: Mapping[str, float] = MappingProxyType({})


def write_headline(
    result: Evaluation | PredictionOverview, kind: str, forecast: Interval | None = None
) -> Headline:
    """Return the accuracy beside chance and the forecast; without true classes, what is known."""
    measured = result.accuracy if isinstance(result, Evaluation) else None
    n_classes = len(result.classes if isinstance(result, Evaluation) else result.counts)
    n, of = np.sum(result.n_inputs), format_count(n_classes, f"{kind} class")
    shown = measured or forecast
    if shown is None:
        label = f"of {of}; their true classes are not known"
        return Headline(format_count(n, "prediction"), label)
    label = f"forecast for {format_count(n, 'input')} of {of}"
    if measured:
        label = f"of {format_count(n, 'input')} of {of} predicted correctly"
    chance = 1 / n_classes
    context = [("95% interval", format_range(shown)), ("chance", format_percent(chance))]
    scale = {"at": shown.estimate, "low": shown.low, "high": shown.high, "chance": chance}
    if measured and forecast:
        scale |= {"from": forecast.low, "to": forecast.high}
        text = f"{format_percent(forecast.estimate)} ({format_range(forecast)})"
        context.append(("forecast", text))
    places = {key: 100 * min(max(value, 0.0), 1.0) for key, value in scale.items()}
    return Headline(format_percent(shown.estimate), label, tuple(context), places)


def list_cards(result: Evaluation | PredictionOverview) -> list[Card]:
    """Return cards, such as the class with the lowest accuracy, or classes never predicted.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import Outcomes
    >>> from rankshot.pages.predictions import evaluate_predictions, list_cards
    >>> truth = np.repeat(["octopus", "squid"], 20)
    >>> predicted = np.repeat(["octopus", "squid"], [3, 37])
    >>> proba = np.eye(2)[(predicted == "squid").astype(int)]
    >>> found = Outcomes(range(40), predicted, proba, truth, ["octopus", "squid"])
    >>> for card in list_cards(evaluate_predictions(found)):
    ...     print(*card, sep=" | ")
    Lowest class | octopus 15.0% | 3 of 20 inputs; 17 predicted as squid
    Probabilities | 42.5 points too high | mean probability 100.0%, accuracy 57.5%
    """
    if isinstance(result, Evaluation):
        return _accuracy_cards(result)
    never = [name for name, count in result.counts.items() if not count]
    cards = [Card("Median probability", format_percent(result.median_confidence))]
    value, detail = format_count(len(never), "class"), join_some(never, 5)
    return [*cards, Card("Never predicted", value, detail)] if never else cards


def _accuracy_cards(result: Evaluation) -> list[Card]:
    lines = [line for line in format_classes(result) if line.inputs]
    cards = []
    if len(lines) > 1:
        low = lines[0]
        detail = f"{round(low.accuracy * low.inputs):,} of {format_count(low.inputs, 'input')}"
        if low.times:
            detail += f"; {low.times:,} predicted as {' or '.join(low.confused_with[:2])}"
        cards.append(Card("Lowest class", f"{low.name} {format_percent(low.accuracy)}", detail))
    bins = result.calibration
    confidence, accuracy = (
        float(np.nansum(bins.count * values) / bins.count.sum())
        for values in (bins.confidence, bins.accuracy)
    )
    value = f"{100 * abs(confidence - accuracy):.1f} points too "
    value += "high" if confidence > accuracy else "low"
    if result.accuracy.low <= confidence <= result.accuracy.high:
        value = "as high as they should be"
    detail = f"mean probability {format_percent(confidence)}, accuracy {format_percent(accuracy)}"
    cards.append(Card("Probabilities", value, detail))
    sizes = [line.inputs for line in lines]
    if min(sizes) < max(sizes):
        detail = f"classes have {min(sizes):,} to {max(sizes):,} inputs"
        mean = format_percent(result.mean_class_accuracy.estimate)
        cards.append(Card("Mean over classes", mean, detail))
    return cards


def suggest_step(result: Evaluation | PredictionOverview) -> str:
    """Return a sentence with the next step."""
    if isinstance(result, PredictionOverview):
        return "Check some predictions that are drawn at random, to measure the accuracy."
    confused = find_largest_confusions(result)
    if not confused:
        return "No class was confused with another: check more inputs to narrow the interval."
    # Two classes that are confused with each other are named once.
    pairs = dict.fromkeys(tuple(sorted(result.classes[i] for i in pair)) for pair in confused)
    what = "Label a few inputs of these classes, or add rankings that contrast them"
    return f"{what}: {'; '.join(map(' and '.join, list(pairs)[:3]))}."


# ---- Sections


def find_largest_confusions(evaluation: Evaluation) -> list[tuple[int, int]]:
    """Return places of (true class, predicted class), the largest counts first, then by name."""
    names, counts = evaluation.classes, evaluation.confusion
    pairs = [(int(i), int(j)) for i, j in np.argwhere(counts) if i != j]
    return sorted(pairs, key=lambda pair: (-counts[pair], names[pair[0]], names[pair[1]]))


def format_confusions(evaluation: Evaluation) -> dict[str, object] | None:
    """Return the matrix of the classes that are confused most often, if there are several."""
    names, counts = evaluation.classes, evaluation.confusion
    kept, note = list(range(len(names))), ""
    if len(names) > FEW_CLASSES:
        largest = find_largest_confusions(evaluation)[:FEW_CLASSES]
        kept = sorted({place for pair in largest for place in pair})
        note = f"Only classes of the {FEW_CLASSES} most frequent confusions are shown."
    if len(kept) < 2:
        return None
    part = counts[np.ix_(kept, kept)]
    shares = part / np.maximum(counts.sum(axis=1)[kept, None], 1)
    texts = [[f"{n:,}" if n else "" for n in row] for row in part.tolist()]
    return {"matrix": format_matrix([names[i] for i in kept], shares, texts), "note": note}


class ClassLine(NamedTuple):
    """The accuracy of a class, and the classes that its inputs were most often confused with."""

    name: str
    accuracy: float
    inputs: int
    confused_with: tuple[str, ...]
    times: int


def format_classes(evaluation: Evaluation) -> list[ClassLine]:
    """Return a line per class, lowest accuracy first; classes without inputs are last."""
    lines = []
    for i, (name, share) in enumerate(zip(evaluation.classes, evaluation.per_class, strict=True)):
        counts = np.array(evaluation.confusion[i])
        counts[i] = 0
        times = int(counts.max())
        # If nothing was confused, no count is 1.
        others = np.array(evaluation.classes)[counts == max(times, 1)].tolist()
        n = evaluation.n_inputs[i]
        lines.append(ClassLine(name, share, n, tuple(sorted(others)), times))
    return sorted(
        lines, key=lambda line: (not line.inputs, np.nan_to_num(line.accuracy), line.name)
    )
