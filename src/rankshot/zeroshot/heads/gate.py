"""`Gate`: whether an input is of a seen class, of a new class, or of neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression

from rankshot.core.arrays import log_softmax
from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_number

Coefficients = tuple[float, float, float]
RIDGE = 100.0
"""The inverse of the penalty on the coefficients of a gate (scikit-learn's C). It only matters if
a few inputs tell the groups apart without an error."""


@dataclass(frozen=True)
class Gate:
    """What decides whether an input is of a seen class, of a new class, or of neither.

    The log-odds of the group *new*, and of the group *none of these*, against the group *seen*
    are linear in two features z and s: how well the input fits the best new class, and how well
    it fits the best seen class. `SeenAndNew.gate_features` returns them.

    Parameters
    ----------
    new : three numbers
        The coefficients of z and s and the constant, for new classes.
    none : three numbers, optional
        The same for inputs of neither group.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot import Gate
    >>> gate = Gate(new=(1.0, -2.0, 0.5))
    >>> np.exp(gate.log_proba([[1.0, 0.0], [0.0, 1.0]])).round(2)
    array([[0.18, 0.82],
           [0.82, 0.18]])
    """

    new: Coefficients
    none: Coefficients | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "new", _require_coefficients("new", self.new))
        if self.none is not None:
            object.__setattr__(self, "none", _require_coefficients("none", self.none))

    def log_proba(self, features: ArrayLike, *, none: bool = False) -> NDArray[np.float64]:
        """Return the log-probabilities of seen, new and (if wanted) none, as columns."""
        z_s_1 = np.insert(np.asarray(features, np.float64), 2, 1.0, axis=1)
        return np.asarray(log_softmax(z_s_1 @ self.coefficients(none=none), np, 1))

    def coefficients(self, *, none: bool) -> NDArray[np.float64]:
        """Return the coefficients of z and s and the constants, one column per group."""
        groups = [(0.0, 0.0, 0.0), self.new]
        if none and self.none is not None:
            groups.append(self.none)
        return np.array(groups).T


def _require_coefficients(name: str, values: Any) -> Coefficients:
    wrong = f"gate: {name} must be three finite numbers, not {short_repr(values)}"
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        raise RankshotError(wrong) from None
    if len(numbers) != 3 or not np.isfinite(numbers).all():
        raise RankshotError(wrong)
    return numbers[0], numbers[1], numbers[2]


DEFAULT_GATE = Gate(new=(1.1, -1.7, -1.0), none=(0.1, -1.0, -1.9))
"""Fitted to seen classes of three data sets that play new ones, with two classifiers each."""
DEFAULT_GATE_WITHOUT_REFERENCE = Gate(new=(0.5, -0.5, 0.0))
"""The same without a reference. The best coefficients of the difference are .4 to .8."""


def fit_gate(
    new: ArrayLike,
    seen: ArrayLike,
    none: ArrayLike | None = None,
    *,
    new_share: float = 0.5,
    none_share: float = 0.1,
) -> Gate:
    """Fit a gate by logistic regression.

    All groups have the same weight, whatever their numbers of inputs.

    Parameters
    ----------
    new, seen, none : array-like of shape (n, 2)
        The features of inputs of new classes, of seen classes and of neither, as returned by
        `SeenAndNew.gate_features`. In a rehearsal, the new classes are held-out seen classes, and
        ``none`` are inputs of other held-out classes whose rankings the head does not have.
    new_share : float
        The share of new classes among the inputs to classify, without those of neither group.
    none_share : float
        The share of inputs of neither group among those to classify.

    Examples
    --------
    >>> from rankshot import fit_gate
    >>> gate = fit_gate(new=[[1, 0], [2, 1], [0, 1]], seen=[[0, 0], [1, 1], [1, 2]])
    >>> gate.new[0] > 0 > gate.new[1]
    True
    """
    new_odds = _odds("new_share", new_share)
    groups = [("seen", seen), ("new", new)] + ([] if none is None else [("none", none)])
    tables = [_require_features(name, table) for name, table in groups]
    sizes = np.array([len(table) for table in tables])
    model = LogisticRegression(C=RIDGE, max_iter=1000).fit(
        np.concatenate(tables),
        np.repeat(np.arange(len(tables)), sizes),
        sample_weight=np.repeat(sizes.sum() / (len(sizes) * sizes), sizes),
    )
    fitted = np.column_stack([model.coef_, model.intercept_])
    if none is None:
        return Gate(tuple(fitted[0] + [0, 0, np.log(new_odds)]))
    # The share of seen classes is (1 - none_share) / (1 + new_odds).
    none_odds = _odds("none_share", none_share) * (1 + new_odds)
    against_seen = fitted[1:] - fitted[0]
    against_seen[:, 2] += np.log([new_odds, none_odds])
    return Gate(*map(tuple, against_seen))


def _odds(what: str, share: float) -> float:
    share = require_number(what, share, above=0, below=1)
    return share / (1 - share)


def _require_features(group: str, table: ArrayLike) -> NDArray[np.float64]:
    features = np.asarray(table, np.float64)
    if features.ndim != 2 or features.shape[1] != 2 or len(features) == 0:
        raise RankshotError(
            f"{group}: expected two features of at least one input, not shape {features.shape}"
        )
    if not np.isfinite(features).all():
        raise RankshotError(f"{group}: the features must be finite")
    return features
