"""Weights of sources, and which sources are used only to fill gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_number
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.base import quote_sources, source_names, sources_of

Floats = NDArray[np.float64]
LEAST_COHERENCE = 1.64
"""Standard deviations above chance: of sources with random lists, one in 20 is above."""


def choose_source_weights(
    rankings: Rankings, coherence: Callable[[Rankings], float] | None = None
) -> dict[str, float]:
    """Return the default weight of each source: 1 or 0.

    Sources with raters (people, language models) count. Those without (tables: WordNet, vectors,
    corpora) count only if there are no others, and if they rank all classes that any such table
    ranks. A source does not count if it is not more coherent than chance and clearly less coherent
    than another one: with few classes, no source may be above chance. Sources that do not count
    fill in: see `weigh_sources`.

    Parameters
    ----------
    rankings : Rankings
    coherence : function, optional
        Returns how coherent the rankings of a source are, as `measure_coherence`.
    """
    names = sources_of(rankings)
    parts = {source: rankings[names == source] for source in source_names(rankings)}
    if len(parts) == 1:
        return dict.fromkeys(parts, 1.0)
    found = {s: np.inf if coherence is None else coherence(part) for s, part in parts.items()}
    best = max((value for value in found.values() if value < np.inf), default=0.0)
    # The difference of two coherences has twice the variance of one.
    least = min(LEAST_COHERENCE, best - np.sqrt(2) * LEAST_COHERENCE)
    trusted = [source for source in parts if found[source] >= least]
    if raters := [source for source in trusted if parts[source].rater_names]:
        trusted = raters
    else:
        most = max(len(parts[source].target_names) for source in trusted)
        trusted = [s for s in trusted if len(parts[s].target_names) == most]
    return {source: float(source in trusted) for source in parts}


def measure_coherence(listed: Floats, correlations: Floats) -> float:
    r"""Return how coherent lists are, in standard deviations above chance.

    Seen classes that are listed together should have scores that rise and fall together. This is
    Mantel's statistic [1]_, :math:`\sum_{i \ne j} A_{ij} R_{ij}`, with the correlations R of the
    scores and A = w'w, where w are the weights of the seen classes in the lists of each new class.
    Its mean and variance over all permutations of the seen classes have a closed form. It is
    infinite where nothing can be told, as with fewer than four seen classes.

    Parameters
    ----------
    listed : ndarray of shape (new classes, seen classes)
        w.
    correlations : ndarray of shape (seen classes, seen classes)
        R.

    References
    ----------
    .. [1] N. Mantel, "The detection of disease clustering and a generalized regression approach",
       Cancer Research 27 (1967), 209-220.
    """
    n = len(correlations)
    if n < 4:
        return np.inf
    together = listed.T @ listed
    # Without their means over pairs, both have the mean 0.
    A, R = (_center_pairs(matrix) for matrix in (together, correlations))
    pairs = n * (n - 1)
    a, r = (np.array([(x**2).sum(), (x.sum(axis=1) ** 2).sum()]) for x in (A, R))
    variance = 2 * a[0] * r[0] / pairs
    variance += 4 * (a[1] - a[0]) * (r[1] - r[0]) / (pairs * (n - 2))
    variance += (2 * a[0] - 4 * a[1]) * (2 * r[0] - 4 * r[1]) / (pairs * (n - 2) * (n - 3))
    scale = a[0] * r[0] / pairs
    if variance <= np.finfo(float).eps * max(scale, 1.0):
        return np.inf
    return float((A * R).sum() / np.sqrt(variance))


def _center_pairs(matrix: Floats) -> Floats:
    """Return a symmetric matrix without its diagonal, and without the mean of all other cells."""
    n = len(matrix)
    others = ~np.eye(n, dtype=bool)
    return np.where(others, matrix - matrix[others].mean(), 0.0)


def weigh_sources(rankings: Rankings, weights: Mapping[str, float]) -> Rankings:
    """Multiply the weights of rankings by those of their sources.

    A source with the weight 0 only fills in: its rankings count for classes that no other ranks.
    """
    weighed = rankings.weights * [weights[source] for source in sources_of(rankings)]
    targets = rankings.targets.astype(str)
    is_lost = ~np.isin(targets, targets[weighed > 0])
    weighed = np.where(is_lost, rankings.weights, weighed)
    return replace(rankings, weights=weighed)[weighed > 0]


def require_source_weights(weights: Mapping[str, float], rankings: Rankings) -> dict[str, float]:
    """Return the weights of the sources of some rankings, 0 for those that are not named.

    At least one must be above 0.
    """
    if not isinstance(weights, Mapping):
        raise RankshotError(
            f"source_weights must be a dict of sources and weights, not {short_repr(weights)}"
        )
    for source, weight in weights.items():
        require_number(f"source_weights[{source!r}]", weight, least=0, below=np.inf)
    found = {source: float(weights.get(source, 0.0)) for source in source_names(rankings)}
    if not any(found.values()):
        wanted = quote_sources(source for source, weight in weights.items() if weight > 0)
        raise RankshotError(
            f"no ranking by {wanted or 'a source'} with a weight in source_weights, only by "
            f"{quote_sources(found)}"
        )
    return found
