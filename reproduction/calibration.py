"""How well probabilities of new classes are calibrated, by what the rehearsal can fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import StratifiedKFold

from rankshot.zeroshot.metrics import class_weights
from reproduction.rehearsed_sources import RehearsedSource, TaskValues
from reproduction.result_tables import ResultTable, Value

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
SMALLEST = 1e-6
"""The smallest probability that isotonic regression may give; 0 would have no logarithm."""
N_BINS = 15
MODEL = "all questions, ProbabilisticRanking without a reference"
NOTES = (
    (
        "Calibration error: the mean difference between confidence and accuracy in 15 bins of "
        "confidence. Log-loss: the mean of -log P(true class). Both are measured on the new "
        "classes; lower is better."
    ),
    (
        "Vector scaling and Dirichlet calibration have parameters for each class, and a new class "
        "has no labelled inputs to fit them to. With the same parameters for all classes, both "
        "reduce to a temperature. To show what they would reach, they are fitted to the labels of "
        "one half of the new inputs and applied to the other half: these rows are not zero-shot."
    ),
    (
        "Isotonic regression corrects the probability of the predicted class only; the others "
        "share the rest in proportion."
    ),
)


class Calibrated(NamedTuple):
    """Probabilities after a calibration: what a table reports of them."""

    error: float
    log_loss: float


def judge(log_proba: Floats, truth: Codes, decided: Codes) -> Calibrated:
    """Return calibration error and log-loss; ``decided`` are the predicted columns."""
    rows = np.arange(len(truth))
    confidence = np.exp(log_proba[rows, decided])
    error = calibration_error(confidence, decided == truth)
    return Calibrated(error, float(-log_proba[rows, truth].mean()))


def calibration_error(confidence: Floats, correct: NDArray[np.bool_]) -> float:
    """Return the mean over inputs of |accuracy - confidence| in their bin of confidence.

    Unlike `expected_calibration_error`, it takes the confidence of the predicted class, which
    after a calibration need not be the most probable one.
    """
    bins = np.ceil(confidence * N_BINS)
    gap = confidence - correct
    _, code = np.unique(bins, return_inverse=True)
    return float(np.abs(np.bincount(code, gap)).sum() / len(gap))


# ---- What can be fitted in the rehearsal


def temper(values: Floats, temperature: float) -> Floats:
    """Return the log-probabilities of decision values at a temperature."""
    return np.asarray(log_softmax(values / temperature, axis=1))


def fit_isotonic(given: TaskValues) -> Callable[[Floats], Floats]:
    """Return the isotonic regression of being right on the confidence, as a function."""
    decided = given.values.argmax(axis=1)
    confidence = np.exp(given.values[np.arange(len(decided)), decided])
    model = IsotonicRegression(y_min=SMALLEST, y_max=1 - SMALLEST, out_of_bounds="clip")
    model.fit(confidence, decided == given.truth, sample_weight=class_weights(given.truth))

    def apply(log_proba: Floats) -> Floats:
        rows, top = np.arange(len(log_proba)), log_proba.argmax(axis=1)
        proba = np.exp(log_proba)
        new = model.predict(proba[rows, top])
        proba = np.maximum(proba, SMALLEST)
        proba[rows, top] = 0.0
        proba *= ((1 - new) / proba.sum(axis=1))[:, None]
        proba[rows, top] = new
        return np.asarray(np.log(proba))

    return apply


# ---- What needs labels of the new classes


def fit_vector_scaling(given: TaskValues) -> Callable[[Floats], Floats]:
    """Return vector scaling (Guo et al. 2017): a factor and a constant for each class."""
    return _fit_map(given, np.eye(given.values.shape[1]))


def fit_dirichlet(given: TaskValues) -> Callable[[Floats], Floats]:
    """Return Dirichlet calibration (Kull et al. 2019): a linear map of all log-probabilities."""
    L = given.values.shape[1]
    return _fit_map(given, np.ones((L, L)))


def _fit_map(given: TaskValues, free: Floats) -> Callable[[Floats], Floats]:
    """Fit softmax(F W + b), where only the ``free`` elements of W differ from the identity.

    The penalty is half the sum of squares of what differs from the identity and from 0.
    """
    F, y = given.values, given.truth
    rows, L = np.arange(len(y)), F.shape[1]
    start = np.concatenate([np.eye(L), np.zeros((1, L))])

    def apply(w: Floats, log_proba: Floats) -> Floats:
        return np.asarray(log_softmax(log_proba @ w[:L] + w[L], axis=1))

    def loss(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(L + 1, L)
        log_proba = apply(w, F)
        excess = np.exp(log_proba)
        excess[rows, y] -= 1
        slope = np.concatenate([F.T @ excess * free, excess.sum(axis=0, keepdims=True)])
        value = -log_proba[rows, y].sum() + ((w - start) ** 2).sum() / 2
        return float(value), (slope + w - start).ravel()

    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B").x.reshape(L + 1, L)
    return lambda log_proba: apply(found, log_proba)


def cross_fit(fit: Callable[[TaskValues], Callable[[Floats], Floats]], given: TaskValues) -> Floats:
    """Return the calibrated log-probabilities of each half, fitted to the other half."""
    found = np.empty_like(given.values)
    halves = StratifiedKFold(2, shuffle=True, random_state=0)
    for some, others in halves.split(given.values, given.truth):
        fitted = fit(TaskValues(given.values[some], given.truth[some]))
        found[others] = fitted(given.values[others])
    return found


# ---- The table


def calibration_table(sources: Sequence[RehearsedSource], model: TaskValues) -> ResultTable:
    """Return calibration error and log-loss; for the first source also with labels."""
    rows: list[tuple[Value, ...]] = []
    for number, source in enumerate(sources):
        decided = source.real.values.argmax(axis=1)
        for calibration, fitted_to, log_proba in _calibrate(source, with_labels=number == 0):
            found = judge(log_proba, source.real.truth, decided)
            rows.append((source.name, calibration, fitted_to, *found))
    own = judge(temper(model.values, 1.0), model.truth, model.values.argmax(axis=1))
    rows.append((MODEL, "none: the model's own temperature 1", "nothing", *own))
    return ResultTable(
        "calibration",
        "Calibration: probabilities of the new classes",
        ("source", "calibration", "fitted to", "calibration error", "log-loss"),
        tuple(rows),
        NOTES,
        n_labels=3,
    )


def _calibrate(source: RehearsedSource, *, with_labels: bool) -> Iterator[tuple[str, str, Floats]]:
    """Yield the name of each calibration, what it is fitted to, and its log-probabilities."""
    values, seen = source.real.values, "seen classes"
    before, after = source.default_temperature, source.head.temperature_
    yield f"none: temperature {before:.2f}", "nothing", temper(values, before)
    yield f"temperature {after:.2f}", seen, temper(values, after)
    rehearsed = TaskValues(temper(source.rehearsal.values, before), source.rehearsal.truth)
    yield "isotonic", seen, fit_isotonic(rehearsed)(temper(values, before))
    if with_labels:
        labels = "labels of new classes"
        labelled = TaskValues(temper(values, after), source.real.truth)
        yield "vector scaling", labels, cross_fit(fit_vector_scaling, labelled)
        yield "Dirichlet", labels, cross_fit(fit_dirichlet, labelled)
