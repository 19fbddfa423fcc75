"""How alike two senses are, from their places in WordNet's hierarchy.

All measures are decided by one common ancestor of the two, the best one; so all are found by
going through the ancestors, and updating at once all pairs that share each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rankshot.semantics.wordnet_nouns import Nouns

Floats = NDArray[np.float64]

Score = Callable[[int, Floats, Floats], Floats]
"""From an ancestor and the ways up to it, as a column and a row, to a score to be maximised."""


def path(nouns: Nouns, a: Sequence[int], b: Sequence[int]) -> Floats:
    """Return 1/(1 + d), d being the steps of the shortest way by a common ancestor."""
    return np.asarray(1 / (1 + _path_lengths(nouns, a, b)))


def leacock_chodorow(nouns: Nouns, a: Sequence[int], b: Sequence[int]) -> Floats:
    """Return -log((d + 1) / 2D), D being the depth of the whole hierarchy."""
    lengths = _path_lengths(nouns, a, b)
    return -np.log((lengths + 1) / (2 * float(nouns.depths.max())))


def wu_palmer(nouns: Nouns, a: Sequence[int], b: Sequence[int]) -> Floats:
    """Return 2D/(d_a + d_b + 2D), D counting the synsets from the ancestor up to the top."""

    def score(ancestor: int, up_a: Floats, up_b: Floats) -> Floats:
        depth = 1.0 + nouns.depths[ancestor]
        return np.asarray(2 * depth / (up_a + up_b + 2 * depth))

    return _best(nouns, a, b, score)


def resnik(nouns: Nouns, a: Sequence[int], b: Sequence[int]) -> Floats:
    """Return the information content of the most informative common ancestor."""
    information = nouns.information

    def score(ancestor: int, up_a: Floats, up_b: Floats) -> Floats:
        return np.full((up_a.size, up_b.size), information[ancestor])

    return _best(nouns, a, b, score)


def lin(nouns: Nouns, a: Sequence[int], b: Sequence[int]) -> Floats:
    """Return twice the ancestor's information over the sum of the two's own."""
    own_a, own_b = nouns.information[list(a)], nouns.information[list(b)]
    return 2 * resnik(nouns, a, b) / np.maximum(own_a[:, None] + own_b, np.finfo(float).tiny)


def jiang_conrath(nouns: Nouns, a: Sequence[int], b: Sequence[int]) -> Floats:
    """Return 1/(1 + information of the two - twice that of the ancestor)."""
    own_a, own_b = nouns.information[list(a)], nouns.information[list(b)]
    return 1 / (1 + own_a[:, None] + own_b - 2 * resnik(nouns, a, b))


MEASURES: dict[str, Callable[[Nouns, Sequence[int], Sequence[int]], Floats]] = {
    "path": path,
    "lch": leacock_chodorow,
    "wup": wu_palmer,
    "resnik": resnik,
    "lin": lin,
    "jcn": jiang_conrath,
}


def _path_lengths(nouns: Nouns, a: Sequence[int], b: Sequence[int]) -> Floats:
    return -_best(nouns, a, b, lambda _, up_a, up_b: -(up_a + up_b))


def _best(nouns: Nouns, a: Sequence[int], b: Sequence[int], score: Score) -> Floats:
    below_a, below_b = _below(nouns, a), _below(nouns, b)
    best = np.full((len(a), len(b)), -np.inf)
    for ancestor in below_a.keys() & below_b.keys():
        rows, up_a = below_a[ancestor]
        columns, up_b = below_b[ancestor]
        found = score(ancestor, up_a[:, None], up_b)
        cells = np.ix_(rows, columns)
        best[cells] = np.maximum(best[cells], found)
    return best


def _below(nouns: Nouns, synsets: Sequence[int]) -> dict[int, tuple[NDArray[np.intp], Floats]]:
    """For every ancestor: which of the synsets are below it, and how far."""
    found: dict[int, list[tuple[int, int]]] = {}
    for row, synset in enumerate(synsets):
        for ancestor, distance in nouns.ancestors(synset).items():
            found.setdefault(ancestor, []).append((row, distance))
    table = {ancestor: np.array(pairs) for ancestor, pairs in found.items()}
    return {
        ancestor: (pairs[:, 0].astype(np.intp), pairs[:, 1].astype(float))
        for ancestor, pairs in table.items()
    }
