"""The covariance of log-worths, from the information about them, and quasi-variances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rankshot.core.errors import RankshotError, quote_names

Floats = NDArray[np.float64]
SMALLEST_PIVOT = 1e-10
"""An item whose share of information of its own is smaller has errors of few correct digits."""


def invert_information(information: Floats, items: tuple[str, ...], penalty: float = 0) -> Floats:
    """Return the covariance of log-worths that add up to zero, and of other parameters.

    Only differences of log-worths are known, so the information has no inverse. One item is taken
    as the reference: the errors of the differences from it give all others. Each row is scaled,
    so that information of any size can be inverted.

    Parameters
    ----------
    information : ndarray of shape (C, C) or larger
        Minus the second derivatives of the log-likelihood in the log-worths, and then in any other
        parameters.
    items : tuple of str
        The names of the C items, for messages.
    penalty : float
        η of the penalty η/2 Σ θ², which counts as a prior.

    Raises
    ------
    RankshotError
        Names the items that no ranking compares with the others.

    Examples
    --------
    >>> invert_information(np.array([[4.0, -4.0], [-4.0, 4.0]]), ("a", "b"))
    array([[ 0.0625, -0.0625],
           [-0.0625,  0.0625]])
    """
    C, information = len(items), information.copy()
    # In differences of log-worths, the prior is the information of η/C comparisons of each pair.
    information[:C, :C] += penalty * (np.eye(C) - 1 / C)
    _require_connected(information[:C, :C], items)
    reference = int(np.argmax(np.diag(information)[:C]))
    others = np.delete(np.arange(len(information)), reference)
    names = [items[i] if i < C else "a tie parameter" for i in others]
    covariance = np.zeros_like(information)
    covariance[np.ix_(others, others)] = invert_curvature(
        information[np.ix_(others, others)], names
    )
    covariance[:C] -= covariance[:C].mean(axis=0)
    covariance[:, :C] -= covariance[:, :C].mean(axis=1, keepdims=True)
    return (covariance + covariance.T) / 2


def invert_curvature(curvature: Floats, names: list[str]) -> Floats:
    """Return the inverse of a positive definite matrix, with rows of any scale.

    Raises
    ------
    RankshotError
        Names a parameter for which the matrix is not positive, or hardly is.

    Examples
    --------
    >>> invert_curvature(np.diag([1e-200, 4.0]), ["a", "b"])
    array([[1.0e+200, 0.0e+000],
           [0.0e+000, 2.5e-001]])
    """
    own = np.diag(curvature)
    if np.any(own <= 0):
        raise _no_maximum(names[int(own.argmin())])
    if not names:
        return curvature
    scale = 1 / np.sqrt(own)
    factor = _factor(scale[:, None] * curvature * scale, names)
    return np.asarray(scale[:, None] * cho_solve(factor, np.eye(len(names))) * scale)


def _require_connected(information: Floats, items: tuple[str, ...]) -> None:
    count, label = connected_components(csr_array(information != 0), directed=False)
    if count > 1:
        sizes = np.bincount(label)
        apart = [items[i] for i in np.flatnonzero(label != np.argmax(sizes))]
        raise RankshotError(
            f"standard errors are infinite: the items fall into {count} groups that the rankings "
            f"do not compare with each other ({quote_names(apart)} apart from the others). "
            "Use regularization > 0, or add rankings that connect them"
        )


def _factor(scaled: Floats, items: list[str]) -> tuple[Floats, bool]:
    """Factor a matrix of diagonal 1; its pivots are the shares that no other item explains."""
    try:
        factor: tuple[Floats, bool] = cho_factor(scaled)
        pivots = np.diag(factor[0]) ** 2
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(scaled)
        worst = int(np.abs(vectors[:, 0]).argmax())
        if values[0] < -SMALLEST_PIVOT:
            raise _no_maximum(items[worst]) from None
        pivots = np.where(np.arange(len(scaled)) == worst, 0.0, 1.0)
    if pivots.min() < SMALLEST_PIVOT:
        raise RankshotError(
            f"the standard error of {items[int(pivots.argmin())]!r} cannot be computed: it depends "
            "on rankings that weigh less than 1e-10 of others. Make their weights more alike, or "
            "use regularization > 0"
        )
    return factor


def _no_maximum(item: str) -> RankshotError:
    """Return the error for information that is negative, as only ties that K cuts can have."""
    return RankshotError(
        "standard errors do not exist at these log-worths: they are no maximum of the likelihood "
        f"(of {item!r}, for example). Fit the model to the same rankings"
    )


def variances_of_differences(covariance: Floats) -> Floats:
    """Return the variance of the difference of each two log-worths.

    Examples
    --------
    >>> variances_of_differences(np.array([[2.0, 1.0], [1.0, 3.0]]))
    array([[0., 3.],
           [3., 0.]])
    """
    variances = np.diag(covariance)
    return np.asarray(variances[:, None] + variances - 2 * covariance)


def find_quasi_variances(covariance: Floats) -> Floats:
    r"""Return the quasi-variances of Firth and de Menezes: one number per item.

    The variance of a difference of two log-worths is about the sum of theirs. They minimise, over
    the pairs of items, the squares of

    .. math:: \log(q_i + q_j) - \log \operatorname{Var}(\theta_i - \theta_j)

    by Newton's method. A quasi-variance can be negative; a sum of two is not.

    References
    ----------
    Firth and de Menezes (2004), Quasi-variances. Biometrika 91.

    Examples
    --------
    >>> find_quasi_variances(np.diag([1.0, 2.0, 3.0])).round(6)
    array([1., 2., 3.])
    """
    C = len(covariance)
    wanted = variances_of_differences(covariance)
    # The scale keeps sums of squares of variances of any size within the range of numbers.
    unit = max(wanted.max(initial=0.0), np.finfo(float).tiny)
    # Items that have the same error do not count as a pair: their difference has none.
    pairs = wanted > 1e-14 * unit
    wanted = np.where(pairs, wanted / unit, 1.0)
    q = np.where(pairs, wanted, 0.0).sum(axis=1) / (2 * max(C - 1, 1))
    return np.asarray(_minimise_log_ratios(q, wanted, pairs) * unit)


def _minimise_log_ratios(q: Floats, wanted: Floats, pairs: NDArray[np.bool_]) -> Floats:
    loss, residuals, sums = _log_ratios(q, wanted, pairs)
    for _ in range(200):
        weights = np.where(pairs, 1 / sums, 0.0)
        # Second derivatives of half the loss; made positive where a sum is far too large.
        squares = weights**2 * np.maximum(1 - residuals, 0.1)
        # Two items, for example, determine only the sum of theirs: the lift decides for equal ones.
        normal = squares + np.diag((1 + 1e-12) * squares.sum(axis=1) + np.finfo(float).tiny)
        step = np.linalg.solve(normal, -(weights * residuals).sum(axis=1))
        scale = 1.0
        while scale > 1e-8:
            new = _log_ratios(q + scale * step, wanted, pairs)
            if new[0] <= loss:
                break
            scale /= 2
        else:
            break
        q = q + scale * step
        loss, residuals, sums = new
        if np.abs(step).max() <= 1e-12 * np.abs(q).max():
            break
    return q


def _log_ratios(
    q: Floats, wanted: Floats, pairs: NDArray[np.bool_]
) -> tuple[float, Floats, Floats]:
    """Return the sum of squares, the log-ratios, and the sums; no sum may be negative."""
    sums = np.where(pairs, q[:, None] + q, 1.0)
    if sums.min() <= 0:
        return np.inf, sums, sums
    residuals = np.log(sums / wanted)
    return float((residuals**2).sum()), residuals, sums
