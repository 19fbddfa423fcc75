r"""Errors of parameters that hold if the rankings of one rater are alike.

The covariance is the sandwich :math:`A^{-1} B A^{-1}`: A is the information, and B the sum of
:math:`s_g s_g^\top` over the raters g, where s adds up the derivatives of all rankings of a rater.
Only ratios of weights count in it.

A fit follows its raters, so that s is too small, most of all for a rater who gave many of the
rankings. CR2 corrects this, and Satterthwaite's rule gives degrees of freedom (Bell and McCaffrey
2002). Both need a model of the variance of s. Here, for one parameter at a time, it is
:math:`\omega = q + \tau^2 h^2` with the information h of a rater: q is chance, and τ² the variance
of tastes, which the derivatives themselves tell (Imbens and Kolesár 2016). With the share a of the
rater in all information, s has after the fit the covariance

.. math:: \omega_g 1_{g = k} - a_g \omega_k - \omega_g a_k + a_g a_k \textstyle\sum \omega .

For G raters with equal shares this gives the factor G / (G - 1), and G - 1 degrees of freedom.

Rankings without a rater, among those of raters, may be of raters as well. With the share n of
rankings that have a rater, B is divided by n if the others are of further raters, and by n² if they
are of the same raters. Then the sum of s over the raters is smaller, as it is minus that of the
other rankings: it tells the mixture of the two.

References
----------
Bell and McCaffrey (2002), Bias reduction in standard errors for linear regression with multi-stage
samples. Survey Methodology 28. Imbens and Kolesár (2016), Robust standard errors in small samples.
Review of Economics and Statistics 98.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import chdtr

from rankshot.core.arrays import row_blocks

Floats = NDArray[np.float64]
ROUNDING = 1e-9


class Units(NamedTuple):
    """Whose rankings belong together: those of each rater, or single rankings.

    Attributes
    ----------
    unit, number : ndarray of int
        The unit of a ranking, and its number among the different rankings. Equal single rankings
        are one unit. If there are several raters, only their rankings are listed.
    weights : ndarray
        What the ranking counts for its unit: of equal single rankings, the square root of what
        their squares add up to.
    copies : ndarray
        How many single rankings each unit stands for; 1 for a rater.
    n_raters : int
        How many raters there are, if some of them gave several rankings; otherwise 0.
    weights_are_counts : bool
        Whether all weights are whole numbers. A ranking of weight w then counts as w rankings.
    """

    unit: NDArray[np.int64]
    number: NDArray[np.int64]
    weights: Floats
    copies: Floats
    n_raters: int
    weights_are_counts: bool


def find_units(rater: NDArray[np.int64], weights: Floats, number: NDArray[np.intp]) -> Units:
    """Whose rankings belong together; raters have numbers from 1, and 0 is nobody.

    ``number`` is that of each ranking among the different ones. If all rankings are of one rater,
    each is a unit of its own: they say nothing about other raters.
    """
    sizes = np.bincount(rater, minlength=1)
    repeats = bool(np.any(sizes[1:] > 1) and sizes.max() < rater.size)
    n_raters = (sizes.size - 1) * repeats
    are_counts = bool(np.all(weights % 1 == 0))
    owned = (rater > 0) & repeats
    single, alone = (number[~owned], weights[~owned]) if n_raters < 2 else (number[:0], weights[:0])
    squares = np.bincount(single, alone if are_counts else alone**2)
    which = np.flatnonzero(squares)
    squares, total = squares[which], np.bincount(single, alone)[which]
    return Units(
        np.append(rater[owned] - 1, n_raters + np.arange(which.size)),
        np.append(number[owned], which),
        np.append(weights[owned], np.sqrt(squares)),
        np.append(np.ones(n_raters), total**2 / squares),
        n_raters,
        are_counts,
    )


class Squares(NamedTuple):
    """B, corrected for the fit, and degrees of freedom for each parameter.

    ``probability`` is that of no larger squares, if all rankings were independent.
    """

    B: Floats
    degrees: Floats
    probability: float


def sum_squares(gradients: csr_array, weights: Floats, units: Units) -> Squares:
    """Sum of squares of units.

    ``gradients`` and ``weights`` are those of the different rankings.
    """
    n, P = units.copies.size, gradients.shape[1]
    own = csr_array((gradients.data**2, gradients.indices, gradients.indptr), gradients.shape)
    # Derivatives and their squares as one complex number: so their sums have the same cells.
    both = np.where(own.data > 0, gradients.data + 1j * own.data, 0.0)
    pairs = csr_array((both, gradients.indices, gradients.indptr), gradients.shape)

    def add_up(weights: Floats) -> csr_array:
        found = csr_array((weights, (units.unit, units.number)), (n, gradients.shape[0])) @ pairs
        found.sort_indices()
        return found

    # The information of equal single rankings is that of one, times their number.
    sums = add_up(units.weights)
    copies = np.repeat(units.copies, np.diff(sums.indptr))
    h = sums.data.imag * np.sqrt(copies)
    q = h if units.weights_are_counts else add_up(units.weights**2).data.imag
    sums = sums.real
    joint, cells = np.square(sums.sum(axis=0)), np.array([sums.data**2, h, q])
    factors, degrees, ratio = _find_factors(cells, copies, sums.indices, joint, weights @ own)
    sums.data *= factors
    B = np.zeros((P, P))
    for some in row_blocks(n, P):
        block = sums[some].toarray()
        B += block.T @ block
    # A sum of squares: one parameter is the common shift of all log-worths.
    n_squares = float(degrees.mean()) * (P - 1)
    return Squares(B, degrees, float(chdtr(n_squares, n_squares * ratio)))


def _find_factors(
    cells: Floats, copies: Floats, column: NDArray[np.integer], joint: Floats, total: Floats
) -> tuple[Floats, Floats, float]:
    """Factors of s, degrees of freedom for each column, and a ratio.

    It is that of the squares of s to what they are by chance alone. The cells of the sparse table
    of units and parameters are s², the information h, and the variance by chance q, over all copies
    of the unit. ``joint`` is the squared sum of s, and ``total`` all information, that of nobody's
    rankings included.
    """
    of_one, h, q = cells / copies

    def add_up(*values: Floats) -> list[Floats]:
        """Sums of each column, over all copies."""
        return [np.bincount(column, copies * each, total.size).astype(float) for each in values]

    total, square = np.where(total > 0, total, 1.0), h**2
    squares, q1, qh, h1, h2, h3 = add_up(of_one, q, q * h, h, square, square * h)
    # The share of units with names, and the sum of squared shares.
    named = np.where(h1 > 0, np.minimum(h1 / total, 1.0), 1.0)
    a2 = h2 / total**2
    by_chance = q1 - 2 * qh / total + a2 * q1 / named
    ratio = float(squares.sum() / by_chance.sum()) if by_chance.sum() > 0 else 0.0
    excess = squares - by_chance
    tastes = h2 - 2 * h3 / total + a2 * h2 / named
    tau = max(0.0, float(excess.sum() / tastes.sum())) if tastes.sum() > 0 else 0.0
    tastes, same = tau * (1 - named) * h2, 0.0
    if tastes.sum() > ROUNDING * q1.sum():
        apart = float((joint - (1 - named) * q1).sum() / tastes.sum())
        same = min(max(1 - apart, 0.0), 1.0)
    scale = (1 - same) / named + same / named**2
    all_w = (q1 + tau * h2) / named / total**2
    a, w = h / total[column], q + tau * square
    remaining = w * (1 - 2 * a) + all_w[column] * square
    # Nothing is left of a unit that has all information.
    is_known = remaining > ROUNDING * w
    correction = np.divide(w, remaining, out=np.zeros_like(w), where=is_known)
    factors = np.sqrt(correction * scale[column])
    a *= is_known
    b = a**2 / (1 - a)
    a1, a2, b1, b2 = add_up(a, a**2, b, b**2)
    degrees = np.divide(a1**2, a2 + b1**2 - b2, out=np.zeros_like(a1), where=a1 > 0)
    return factors, degrees, ratio


def centre(covariance: Floats, some: NDArray[np.bool_] | slice = slice(None)) -> Floats:
    """Covariance of the same log-worths, minus their mean over all or some items."""
    shifted = covariance - covariance[some].mean(axis=0)
    return np.asarray(shifted - shifted[:, some].mean(axis=1, keepdims=True))


def keep_least_errors(
    covariance: Floats, inverse: Floats, one_sided: NDArray[np.bool_], degrees: Floats
) -> Floats:
    """Covariance, with at least the error of the model for some items.

    The derivatives of items that always won or always lost are nearly 0, and so are those of items
    that a single rater has compared, who has no degrees of freedom.
    """
    C = one_sided.size
    some = one_sided | (degrees[:C] == 0)
    if not some.any() or some.all():
        return covariance if not some.any() else inverse
    # Relative to the other items, the errors of these are those of no other.
    centred = centre(covariance[:C, :C], ~some)
    own, least = np.diag(centred), np.diag(centre(inverse[:C, :C], ~some))
    # Rounding cannot be scaled: such items have an error of their own.
    lost = some & (own <= ROUNDING * least)
    ratio = np.divide(least, own, out=np.ones(C), where=some & ~lost)
    factor = np.where(lost, 0.0, np.sqrt(np.maximum(ratio, 1.0)))
    covariance = covariance.copy()
    covariance[:C, :C] = centre(factor[:, None] * centred * factor + np.diag(lost * least))
    return covariance
