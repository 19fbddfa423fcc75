"""P(y|x): the probabilities of the seen classes, from scores of any kind that has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from rankshot.ranking.errors import RankshotError
from rankshot.zeroshot.scores import Kind

Floats = NDArray[np.floating]


def log_class_probabilities(values: Floats, kind: Kind, asker: str) -> Floats:
    """Return log P(y|x), a row an input: of the softmax, or of the sigmoid for one-vs-rest.

    Examples
    --------
    >>> log_class_probabilities(np.array([[0.0, -99.0]]), "one-vs-rest", "example").round(3)
    array([[ -0.693, -99.   ]])
    """
    if kind == "one-vs-one":
        raise RankshotError(
            f"{asker} needs a score for each class, not for each pair: one-vs-one scores are for "
            "ProbabilisticRanking and DeterministicRanking"
        )
    if kind == "one-vs-rest":
        # log σ(f) = -log(1 + e^-f)
        return -np.logaddexp(np.zeros((), values.dtype), -values)
    return np.asarray(log_softmax(values, axis=1))
