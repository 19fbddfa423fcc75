r"""Errors of log-worths that hold if the rankings of one rater are alike.

The covariance is the sandwich :math:`A^{-1} B A^{-1}`: A is the information, and B the sum of
:math:`s_g s_g^\top` over the raters g, where s adds up the derivatives of all rankings of a rater.
Only ratios of weights count in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.arrays import row_blocks
from rankshot.ranking.construction import number_labels
from rankshot.ranking.models.plackett_luce import WorthModel
from rankshot.ranking.models.plackett_luce_stages import Gradients
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
DENSE_CELLS = 1 << 24
"""Sums of this many numbers are dense (128 MB)."""


class Units(NamedTuple):
    """Who gave rankings: raters with all of theirs, or single rankings.

    Attributes
    ----------
    unit, number : ndarray of int
        The unit of each ranking, and its number among the different rankings. Equal single
        rankings are one unit.
    weights : ndarray
        What each ranking counts for its unit: of equal single rankings, the square root of what
        their squares add up to.
    n : float
        How many units there are, equal single rankings one by one.
    n_raters : int
        How many raters there are, if one of them gave several rankings; otherwise 0.
    weights_are_counts : bool
        Whether all weights are whole numbers. A ranking of weight w then counts as w rankings.
    """

    unit: NDArray[np.int64]
    number: NDArray[np.int64]
    weights: Floats
    n: float
    n_raters: int
    weights_are_counts: bool


def find_units(raters: NDArray[np.object_], weights: Floats, number: NDArray[np.intp]) -> Units:
    """Return who gave rankings; ``number`` is that of each among the different ones."""
    rater = number_labels(raters)
    repeats = bool(np.any(np.bincount(rater)[1:] > 1))
    n_raters = int(rater.max()) * repeats
    are_counts = bool(np.all(weights % 1 == 0))
    owned = (rater > 0) & repeats
    single, squares = number[~owned], (weights if are_counts else weights**2)[~owned]
    sums = np.bincount(single, squares)
    alone = np.flatnonzero(sums)
    return Units(
        np.append(rater[owned] - 1, n_raters + np.arange(alone.size)),
        np.append(number[owned], alone),
        np.append(weights[owned], np.sqrt(sums[alone])),
        n_raters + (float(squares.sum()) if are_counts else single.size),
        n_raters,
        are_counts,
    )


def clustered_covariance(
    model: WorthModel,
    rankings: Rankings,
    units: Units,
    one_sided: NDArray[np.bool_],
    halved: NDArray[np.bool_] | None = None,
) -> Floats:
    """Return the covariance of log-worths; ``rankings`` are the different ones.

    If they come from `halve_ties`, ``halved`` says which were ties. Items that always won or always
    lost keep at least the error that the information gives them: their derivatives are nearly 0.
    """
    inverse, gradients = model.inverse_and_gradients(rankings)
    if halved is not None:
        units = _halve_votes(units, halved)
    found = sandwich(inverse, sum_squares(units, gradients), units.n)
    C = len(model.items_)
    if not one_sided.any():
        return centre(found[:C, :C])
    # Relative to the other items, the errors of one-sided ones are those of no other.
    found, least = (centre(V[:C, :C], ~one_sided) for V in (found, inverse))
    ratio = np.sqrt(np.diag(least) / np.maximum(np.diag(found), np.finfo(float).tiny))
    factor = np.where(one_sided, np.maximum(ratio, 1.0), 1.0)
    return centre(factor[:, None] * found * factor)


def sum_squares(units: Units, gradients: Gradients) -> Floats:
    """Return Σ s sᵀ, with the sum s of the derivatives of each unit."""
    n = int(units.unit.max()) + 1
    rest = np.bincount(units.unit, gradients.rest[units.number] * units.weights, n)
    listed = _add_up(units, gradients.listed, n)
    both = listed.T @ listed
    both = both if isinstance(both, np.ndarray) else both.toarray()
    crossed = np.outer(listed.T @ rest, gradients.worths)
    squares = float(rest @ rest) * np.outer(gradients.worths, gradients.worths)
    return np.asarray(both - crossed - crossed.T + squares)


def _add_up(units: Units, rows: csr_array, n: int) -> Floats | csr_array:
    """Return the sum of the rows of each unit: dense if that is not large, otherwise sparse."""
    P, width = rows.shape[1], rows.nnz // rows.shape[0]
    if n * P > DENSE_CELLS or np.any(np.diff(rows.indptr) != width):
        cells = (units.weights, (units.unit, units.number))
        return csr_array(cells, shape=(n, rows.shape[0])) @ rows
    # Rows of equal lengths, such as those of votes, are added up without a sparse product.
    columns, values = rows.indices.reshape(-1, width), rows.data.reshape(-1, width)
    sums = np.zeros(n * P)
    for some in row_blocks(units.unit.size, width):
        number = units.number[some]
        cells = (units.unit[some] * P)[:, None] + columns[number]
        np.add.at(sums, cells.ravel(), (units.weights[some, None] * values[number]).ravel())
    return sums.reshape(n, P)


def sandwich(inverse: Floats, squares: Floats, n_units: float) -> Floats:
    """Return A⁻¹ B A⁻¹ with the factor n / (n - 1) for the number of units."""
    return np.asarray(inverse @ squares @ inverse * (n_units / max(n_units - 1, 1.0)))


def centre(covariance: Floats, some: NDArray[np.bool_] | slice = slice(None)) -> Floats:
    """Return the covariance of the same log-worths, minus their mean over all or some items."""
    shifted = covariance - covariance[some].mean(axis=0)
    return np.asarray(shifted - shifted[:, some].mean(axis=1, keepdims=True))


def halve_ties(rankings: Rankings) -> Rankings:
    """Return each tie of two items as half a win of one, and at the end as half a win of the other.

    Strict rankings stay as they are.
    """
    tied = rankings.rows_with_ties
    places = rankings.places.copy()
    places[rankings.starts[1:][tied] - 1] = 1
    weights = np.where(tied, rankings.weights / 2, rankings.weights)
    first = replace(rankings, places=places, weights=weights)
    second = first[tied]
    backward = second.codes.reshape(-1, 2)[:, ::-1].ravel()
    return Rankings.concatenate([first, replace(second, codes=backward)])


def _halve_votes(units: Units, tied: NDArray[np.bool_]) -> Units:
    """Return the units of the rankings of `halve_ties`, from those of the rankings before it."""
    half = tied[units.number]
    weights = np.where(half, units.weights / 2, units.weights)
    second = tied.size - 1 + np.cumsum(tied)
    return units._replace(
        unit=np.append(units.unit, units.unit[half]),
        number=np.append(units.number, second[units.number[half]]),
        weights=np.append(weights, weights[half]),
    )
