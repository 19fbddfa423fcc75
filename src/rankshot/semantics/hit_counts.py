"""Similarities from the hit counts of a search engine, for pages, photographs or anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.errors import RankshotError, did_you_mean, shown
from rankshot.semantics.associations import dice, normalized_web_distance, pmi

HitMeasure = Literal["dice", "pmi", "nwd"]

Floats = NDArray[np.float64]


def hit_similarities(
    n_a: ArrayLike,
    n_b: ArrayLike,
    n_ab: ArrayLike,
    N: float | None,
    target_names: tuple[str, ...],
    item_names: tuple[str, ...],
    measure: HitMeasure,
) -> Floats:
    """Compute the values of `Similarity.from_hit_counts`; refuse counts that cannot be."""
    row = _count_array(n_a, "n_a", (len(target_names),))
    column = _count_array(n_b, "n_b", (len(item_names),))
    table = _count_array(n_ab, "n_ab", (len(target_names), len(item_names)))
    compute = checked_measure(measure, N)
    _refuse_alone(row, target_names, N)
    _refuse_alone(column, item_names, N)
    too_many = table > np.minimum(row[:, None], column)
    if too_many.any():
        i, j = np.argwhere(too_many)[0]
        raise RankshotError(
            f"{target_names[i]!r} and {item_names[j]!r} have {table[i, j]:.16g} hits together but "
            f"{row[i]:.16g} and {column[j]:.16g} alone"
        )
    return np.where(np.isnan(table), np.nan, compute(row[:, None], column, np.nan_to_num(table)))


def checked_measure(
    measure: str, N: float | None
) -> Callable[[ArrayLike, ArrayLike, ArrayLike], Floats]:
    """Return the measure as a function of three counts."""
    known = get_args(HitMeasure)
    if measure not in known:
        raise RankshotError(
            f"unknown measure {shown(measure)}{did_you_mean(measure, known)}; "
            f"known are {', '.join(known)}"
        )
    if N is not None and not (np.isfinite(N) and N > 0):
        raise RankshotError(f"the number of all pages must be positive, not {shown(N)}")
    if measure == "dice":
        return dice
    if N is None:
        raise RankshotError(f"{measure} needs N, the number of all pages; only dice does not")
    total, function = float(N), pmi if measure == "pmi" else normalized_web_distance
    return lambda n_a, n_b, n_ab: function(n_a, n_b, n_ab, total)


def _count_array(counts: ArrayLike, what: str, shape: tuple[int, ...]) -> Floats:
    try:
        array = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RankshotError(f"{what} must be numbers: {error}") from None
    if array.shape != shape:
        raise RankshotError(f"{what} must have shape {shape}, not {array.shape}")
    odd = (array < 0) | np.isinf(array) | (np.isnan(array) & (array.ndim == 1))
    if odd.any():
        raise RankshotError(f"{what} must be counts, not {array[odd][0]}")
    return array


def _refuse_alone(counts: Floats, names: tuple[str, ...], N: float | None) -> None:
    if N is not None and (counts > N).any():
        worst = int(np.argmax(counts > N))
        raise RankshotError(f"{names[worst]!r} has {counts[worst]:.16g} hits of {N:.16g} in all")
