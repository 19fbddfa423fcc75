"""Association measures: how similar two names are, from how often they occur alone and together.

The measures take arrays of counts that broadcast against one another: ``n_a`` units (windows,
documents, web pages) contain the first name, ``n_b`` the second, ``n_ab`` both, out of ``N``
units. A larger value means more similar. A name that never occurs is unknown, NaN. A pair that
never occurs together has the lowest possible value, so that all such pairs of a table are tied.
The measures do not check the counts; `hit_similarities`, for counts that a user provides, does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_choice, require_number

Floats = NDArray[np.float64]
HitMeasure = Literal["dice", "pmi", "nwd"]


def dice(n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike) -> Floats:
    """Return Dice's coefficient 2 n_ab / (n_a + n_b), in [0, 1].

    It does not need N, so it suits search engines, whose size is unknown.

    Parameters
    ----------
    n_a, n_b : array of int
        How many units, such as sentences or pages, contain the first and the second name.
    n_ab : array of int
        How many contain both.

    Examples
    --------
    >>> from rankshot.sources import dice
    >>> dice([10, 10, 0], 30, [8, 0, 0])
    array([0.4, 0. , nan])
    """
    a, b, ab = _broadcast_counts(n_a, n_b, n_ab)
    share = np.full(a.shape, np.nan)
    np.divide(2 * ab, a + b, out=share, where=(a > 0) & (b > 0))
    return share


def pmi(n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike, N: ArrayLike) -> Floats:
    """Return pointwise mutual information, log(n_ab N / (n_a n_b)).

    For a pair that never occurs together the formula gives minus infinity, which cannot be
    averaged or stored in a table. Such a pair gets -log(2 N) instead. The lowest value of a pair
    that does occur together is -log N (both are in every unit, together in one), so -log(2 N) is
    below it, and the same for all pairs that never occur together.

    Parameters
    ----------
    n_a, n_b : array of int
        How many units, such as sentences or pages, contain the first and the second name.
    n_ab : array of int
        How many contain both.
    N : int
        The number of all units.

    Examples
    --------
    >>> from rankshot.sources import pmi
    >>> pmi(10, [20, 20, 0], [2, 0, 0], 100).round(3)
    array([ 0.   , -5.298,    nan])
    """
    a, b, ab, n = _broadcast_counts(n_a, n_b, n_ab, N)
    occurs = (a > 0) & (b > 0)
    met = occurs & (ab > 0)
    # Sums of logarithms, because products of counts of web pages can overflow.
    together = _log(ab, met) + _log(n, met) - _log(a, met) - _log(b, met)
    return np.where(occurs, np.where(met, together, -_log(2 * n, occurs)), np.nan)


def ppmi(n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike, N: ArrayLike) -> Floats:
    """Return positive pointwise mutual information, max(0, `pmi`).

    To show that two names occur together less often than by chance takes far more text than to
    show that they do so more often. So negative values, which are mostly noise, become zero.

    Parameters
    ----------
    n_a, n_b : array of int
        How many units, such as sentences or pages, contain the first and the second name.
    n_ab : array of int
        How many contain both.
    N : int
        The number of all units.

    Examples
    --------
    >>> from rankshot.sources import ppmi
    >>> ppmi(10, [20, 20, 20], [4, 1, 0], 100).round(3)
    array([0.693, 0.   , 0.   ])
    """
    return np.maximum(pmi(n_a, n_b, n_ab, N), 0)


def normalized_web_similarity(
    n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike, N: ArrayLike
) -> Floats:
    """Return exp(-2 d), where d is the normalised web distance: a similarity in [0, 1].

    The distance of Cilibrasi and Vitányi (2007),
    d = (max(log n_a, log n_b) - log n_ab) / (log N - min(log n_a, log n_b)), runs from 0 to
    infinity; Gracia and Mena (2008) turn it into a similarity in this way. It is 1 for names that
    always occur together and 0 for names that never do.

    Parameters
    ----------
    n_a, n_b : array of int
        How many units, such as sentences or pages, contain the first and the second name.
    n_ab : array of int
        How many contain both.
    N : int
        The number of all units.

    Examples
    --------
    >>> from rankshot.sources import normalized_web_similarity
    >>> normalized_web_similarity(10, [10, 100, 100], [10, 10, 0], 1000).round(3)
    array([1.   , 0.368, 0.   ])
    """
    a, b, ab, n = _broadcast_counts(n_a, n_b, n_ab, N)
    occurs = (a > 0) & (b > 0)
    met = occurs & (ab > 0)
    above = np.maximum(_log(np.maximum(a, b), met) - _log(ab, met), 0)
    below = _log(n, met) - _log(np.minimum(a, b), met)
    # For two names that are in every unit, the denominator is zero.
    limit = np.where(above > 0, np.inf, 0.0)
    distance = np.divide(above, below, out=limit, where=below > 0)
    return np.where(occurs, np.where(met, np.exp(-2 * distance), 0.0), np.nan)


def _broadcast_counts(*counts: ArrayLike) -> tuple[Floats, ...]:
    return np.broadcast_arrays(*(np.asarray(count, dtype=np.float64) for count in counts))


def _log(values: Floats, where: NDArray[np.bool_]) -> Floats:
    return np.log(values, out=np.zeros(values.shape), where=where)


# ---- Hit counts of a user


def hit_similarities(
    n_a: ArrayLike,
    n_b: ArrayLike,
    n_ab: ArrayLike,
    N: float | None,
    target_names: tuple[str, ...],
    item_names: tuple[str, ...],
    measure: HitMeasure,
) -> Floats:
    """Compute the values of `Similarity.from_hit_counts`; refuse impossible counts."""
    compute = resolve_measure(measure, N)
    row = _require_counts(n_a, "n_a", (len(target_names),), N)
    column = _require_counts(n_b, "n_b", (len(item_names),), N)
    table = _require_counts(n_ab, "n_ab", (len(target_names), len(item_names)), N)
    too_many = table > np.minimum(row[:, None], column)
    if too_many.any():
        i, j = np.argwhere(too_many)[0]
        raise RankshotError(
            f"{target_names[i]!r} and {item_names[j]!r} have {table[i, j]:.16g} hits together but "
            f"{row[i]:.16g} and {column[j]:.16g} alone"
        )
    return np.where(np.isnan(table), np.nan, compute(row[:, None], column, np.nan_to_num(table)))


def resolve_measure(
    measure: str, N: float | None
) -> Callable[[ArrayLike, ArrayLike, ArrayLike], Floats]:
    """Return the measure of that name as a function of the three counts."""
    require_choice("measure", measure, get_args(HitMeasure))
    if N is not None:
        require_number("N, the number of all pages,", N, above=0, below=np.inf)
    if measure == "dice":
        return dice
    if N is None:
        raise RankshotError(f"{measure} needs N, the number of all pages; only dice works without")
    total, function = float(N), pmi if measure == "pmi" else normalized_web_similarity
    return lambda n_a, n_b, n_ab: function(n_a, n_b, n_ab, total)


def _require_counts(
    counts: ArrayLike, what: str, shape: tuple[int, ...], most: float | None
) -> Floats:
    array = np.asarray(counts, dtype=np.float64)
    if array.shape != shape:
        raise RankshotError(f"{what} must have shape {shape}, not {array.shape}")
    largest = np.finfo(float).max if most is None else most
    # NaN is for a pair that was not searched for.
    odd = (array < 0) | (array > largest) | (np.isnan(array) & (array.ndim == 1))
    if odd.any():
        limit = "" if most is None else f", and at most {most:.16g}"
        raise RankshotError(f"{what} must be counts{limit}, not {array[odd][0]:.16g}")
    return array
