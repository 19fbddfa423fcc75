"""Audits: how many predictions are correct, from inputs drawn at random, whenever one stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lgamma, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

ERROR = 0.05
"""One minus the confidence of an interval."""


class Checked(NamedTuple):
    """What an audit has found: ``n_correct`` of ``n_checked``, drawn from ``n_inputs``."""

    n_correct: int
    n_checked: int
    n_inputs: int


def confidence_sequence(checked: Checked) -> tuple[float, float]:
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
    >>> from rankshot.review.audit import Checked, confidence_sequence
    >>> low, high = confidence_sequence(Checked(110, 120, 10_000))
    >>> round(low, 3), round(high, 3)
    (0.806, 0.976)
    >>> confidence_sequence(Checked(9, 10, 10))
    (0.9, 0.9)
    """
    s, t, n = checked
    f = t - s

    def is_inside(correct: int) -> bool:
        ratio = betaln(1 + s, 1 + f) - _log_probability(correct, checked)
        return bool(ratio < -log(ERROR))

    # The logarithm of the probability is a concave function of M, so the set is an interval, and
    # the most probable M is in it.
    best = min(max(round(s * n / t) if t else n // 2, s), n - f)
    return (
        _bisect(is_inside, best, s - 1) / n,
        _bisect(is_inside, best, n - f + 1) / n,
    )


def _bisect(is_inside: Callable[[int], bool], inside: int, outside: int) -> int:
    """Return the last number that is inside, on the way to one that is outside."""
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if is_inside(middle) else (inside, middle)
    return inside


def _log_probability(correct: int, checked: Checked) -> float:
    """Return the log-probability of a sequence of draws, given the number of correct inputs."""
    s, t, n = checked
    wrong, f = n - correct, t - s
    of_correct = lgamma(correct + 1) - lgamma(correct - s + 1)
    of_wrong = lgamma(wrong + 1) - lgamma(wrong - f + 1)
    return of_correct + of_wrong - lgamma(n + 1) + lgamma(n - t + 1)


class Audit(NamedTuple):
    """Inputs in random order, and the predictions of the moment when an audit was opened.

    Until it is closed, nothing is learned.
    """

    order: NDArray[np.intp]
    predicted: NDArray[np.str_]


def describe_audit(audit: Audit, judged: Sequence[str]) -> dict[str, Any]:
    """Return the progress of an audit and its estimate, for the page.

    ``judged`` has the classes of the first inputs.
    """
    names, n = audit.predicted[audit.order], len(judged)
    checked = Checked(int((names[:n] == np.array(judged, str)).sum()), n, len(names))
    low, high = confidence_sequence(checked)
    return {
        **checked._asdict(),
        "low": low,
        "high": high,
        "row": int(audit.order[n]) if n < len(names) else None,
    }
