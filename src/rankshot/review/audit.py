"""Audits: how many predictions are correct, from inputs drawn at random, whenever one stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

ERROR = 0.05
"""One minus the confidence of an interval."""


def confidence_sequence(n_correct: int, n_checked: int, n_inputs: int) -> tuple[float, float]:
    r"""Return an interval of the share of correct predictions among all inputs.

    With a probability of 95%, the share is in the intervals of all numbers of checks at once. So
    one may look as often as one likes, and stop for any reason. Inputs are drawn without
    replacement; when all are checked, the interval is a point.

    Let M of the N predictions be correct. The draws x have a probability P(x|M), a product of
    shares of what is left. Its mean over a beta-binomial prior of M, with equal probabilities for
    M = 0, ..., N, is B(1 + s, 1 + f) for s correct and f wrong predictions. For the true M, the
    ratio B(1 + s, 1 + f) / P(x|M) begins at 1, and its mean never grows (a supermartingale), so by
    Ville's inequality it ever reaches 1 / 0.05 with at most the probability 0.05. The interval has
    all M for which the ratio is smaller: this is the prior-posterior-ratio martingale of
    Waudby-Smith and Ramdas (2020), "Confidence sequences for sampling without replacement".

    Examples
    --------
    >>> from rankshot.review.audit import confidence_sequence
    >>> low, high = confidence_sequence(110, 120, 10_000)
    >>> round(low, 3), round(high, 3)
    (0.806, 0.976)
    >>> confidence_sequence(9, 10, 10)
    (0.9, 0.9)
    """
    s, f = n_correct, n_checked - n_correct
    m = np.arange(s, n_inputs - f + 1)
    log_p = gammaln(m + 1) - gammaln(m - s + 1)
    log_p += gammaln(n_inputs - m + 1) - gammaln(n_inputs - m - f + 1)
    log_p += gammaln(n_inputs - n_checked + 1) - gammaln(n_inputs + 1)
    inside = m[betaln(1 + s, 1 + f) - log_p < -np.log(ERROR)]
    return float(inside[0] / n_inputs), float(inside[-1] / n_inputs)


class Audit(NamedTuple):
    """Inputs in random order, and the predictions of the moment when an audit was opened.

    Until it is closed, nothing is learned.
    """

    order: NDArray[np.intp]
    predicted: NDArray[np.str_]

    def describe(self, judged: Sequence[str]) -> dict[str, Any]:
        """Return the progress and the estimate; ``judged`` has the classes of the first inputs."""
        n, n_inputs = len(judged), len(self.order)
        n_correct = int((self.predicted[self.order[:n]] == np.array(judged, str)).sum())
        low, high = confidence_sequence(n_correct, n, n_inputs)
        return {
            "n_correct": n_correct,
            "n_checked": n,
            "n_inputs": n_inputs,
            "low": low,
            "high": high,
            "row": int(self.order[n]) if n < n_inputs else None,
        }
