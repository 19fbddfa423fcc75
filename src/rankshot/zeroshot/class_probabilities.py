"""P(y|x): the probabilities of the seen classes, from scores of any kind that has them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from rankshot.ranking.errors import RankshotError
from rankshot.zeroshot.scores import Kind

Floats = NDArray[np.floating]


def log_class_probabilities(values: Floats, kind: Kind, asker: str) -> NDArray[np.float64]:
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
    f = np.asarray(values, np.float64)
    # log σ(f) = -log(1 + e^-f)
    return -np.logaddexp(0, -f) if kind == "one-vs-rest" else np.asarray(log_softmax(f, axis=1))
