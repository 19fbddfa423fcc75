"""What a report says of predictions: how good they are, and which inputs stand for the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankshot.report.contents import Calibration, Evaluation, Overview
from rankshot.zeroshot.metrics import (
    ScoredTable,
    count_confusions,
    mean_class_interval,
    per_class_accuracy,
    require_probabilities,
    wilson_interval,
)

N_CONFIDENCES = 10
"""Bins of confidence if the true classes are not known."""


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
        A rejected input counts as wrong.
    proba : ndarray, shape (n, L)
    classes : sequence of str
        The L targets, in the order of the columns of ``proba``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import evaluate_predictions
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> found = evaluate_predictions(
    ...     np.array(["cat", "dog"]), np.array(["cat", "cat"]), proba, ["cat", "dog"])
    >>> found.accuracy.estimate, found.confusion.tolist()
    (0.5, [[1, 0], [1, 0]])
    """
    names = tuple(map(str, classes))
    by_class = per_class_accuracy(truth, predicted)
    scored = require_probabilities(truth, proba, names)
    ks = [k for k in (2, 3, 5, 10) if k < len(names)]
    per_class = tuple(by_class.get(name, float("nan")) for name in names)
    n_inputs = tuple(int((truth == name).sum()) for name in names)
    return Evaluation(
        classes=names,
        accuracy=wilson_interval(int((predicted == truth).sum()), len(truth)),
        mean_class_accuracy=mean_class_interval(per_class, n_inputs),
        per_class=per_class,
        n_inputs=n_inputs,
        confusion=count_confusions(truth, predicted, names),
        pairwise=scored.pairwise_accuracy(),
        calibration=_measure_calibration(scored),
        top_k=tuple((k, scored.top_k_accuracy(k)) for k in ks),
    )


def undo_temperature(
    truth: NDArray[np.str_],
    proba: NDArray[np.floating],
    classes: Sequence[str],
    temperature: float,
    before: float,
) -> Calibration:
    """Return the calibration of predictions if the head had another temperature.

    Log-posteriors are divided by the temperature T and normalised. So with the temperature
    T₀ = ``before``, the probabilities are proportional to P^(T / T₀).

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report.prediction_summaries import undo_temperature
    >>> proba = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> found = undo_temperature(np.array(["cat", "dog"]), proba, ["cat", "dog"], 1.0, 2.0)
    >>> round(np.exp(-found.log_loss), 3)                # 2 : 1 instead of 4 : 1
    np.float64(0.667)
    """
    powers = (proba / proba.max(axis=1, keepdims=True)) ** (temperature / before)
    shares = powers / powers.sum(axis=1, keepdims=True)
    return _measure_calibration(require_probabilities(truth, shares, tuple(map(str, classes))))


def _measure_calibration(scored: ScoredTable) -> Calibration:
    bins = scored.reliability()
    filled = bins.count > 0
    columns = (bins.confidence, bins.accuracy, bins.count)
    reliability = zip(*(column[filled].tolist() for column in columns), strict=True)
    with np.errstate(divide="ignore"):
        log_loss = 0 - np.log(np.minimum(scored.of_truth, 1)).mean()
    return Calibration(tuple(reliability), bins.expected_calibration_error, float(log_loss))


def count_predictions(
    predicted: NDArray[np.str_], proba: NDArray[np.floating], classes: Sequence[str]
) -> Overview:
    """Count the predictions of each class, and how sure they are.

    Parameters
    ----------
    predicted : ndarray of str, shape (n,)
        A label that is none of the classes, such as that of rejected inputs, is not counted.
    proba : ndarray, shape (n, L)
    classes : sequence of str

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import count_predictions
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
    return Overview(
        names,
        tuple(numbers[name] for name in names),
        len(predicted),
        float(np.median(confidence)),
        tuple(zip(edges[:-1].tolist(), edges[1:].tolist(), sizes.tolist(), strict=True)),
    )


def choose_examples(
    predicted: NDArray[np.str_], truth: NDArray[np.str_] | None, targets: Sequence[str]
) -> list[int]:
    """Return the rows of examples: the first input of each target.

    Inputs that were not recognised and inputs that were take turns, as far as a target has both,
    and errors come first: so there is an error if any of these targets has one. If the truth is
    not known, it is an input that got the target.

    Parameters
    ----------
    predicted : ndarray of str
        The predicted classes.
    truth : ndarray of str or None
        The true classes, if they are known.
    targets : sequence of str
        The classes that get an example.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import choose_examples
    >>> predicted = np.array(["cat", "cat", "dog", "dog"])
    >>> truth = np.array(["dog", "cat", "dog", "cat"])
    >>> choose_examples(predicted, truth, ["cat", "dog"])
    [3, 2]
    """
    chosen = []
    was_right = True
    for target in targets:
        theirs = np.flatnonzero((predicted if truth is None else truth) == target)
        right = predicted[theirs] == target
        if theirs.size:
            best = int(np.argmax(right != was_right))
            was_right = bool(right[best])
            chosen.append(int(theirs[best]))
    return chosen


def choose_rival(
    label: str, truth: str | None, proba: NDArray[np.floating], classes: Sequence[str]
) -> str | None:
    """Return the class that a prediction is compared with to explain it.

    It is the true class if the prediction is wrong, else the most probable other class. It is
    None if there is only one class.

    Parameters
    ----------
    label : str
        The predicted class.
    truth : str or None
        The true class, if it is known.
    proba : ndarray of shape (L,)
        The probabilities of all classes.
    classes : sequence of str
        The L classes.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import choose_rival
    >>> proba = np.array([0.6, 0.3, 0.1])
    >>> choose_rival("cat", "fox", proba, ["cat", "dog", "fox"])
    'fox'
    >>> choose_rival("cat", None, proba, ["cat", "dog", "fox"])
    'dog'
    """
    if truth not in (None, label):
        return truth
    order = np.argsort(-np.asarray(proba), kind="stable")
    return next((str(classes[i]) for i in order if classes[i] != label), None)
