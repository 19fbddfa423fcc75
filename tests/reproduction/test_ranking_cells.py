"""Cells: their rankings are those of the pairs won, counted one by one."""

from itertools import combinations, permutations

import numpy as np
import pytest
from reproduction.benchmark import load_benchmark
from reproduction.ranking_cells import build_ranking_cells

from rankshot.datasets import load_cifar

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    return build_ranking_cells(load_benchmark(load_cifar()))


def beaten_by(classes, coef, intercept, point):
    """Return for each class those that it beats at a point, a pair at a time."""
    beats = {name: set() for name in classes}
    for (one, other), w, b in zip(combinations(classes, 2), coef, intercept, strict=True):
        value = w[0] * point[0] + w[1] * point[1] + b
        winner, loser = (one, other) if value > 0 else (other, one)
        beats[winner].add(loser)
    return beats


def test_the_ranking_of_a_point_is_that_of_the_pairs_won(found, rng):
    rows, columns = found.grid.shape
    for i, j in zip(rng.integers(rows, size=300), rng.integers(columns, size=300), strict=True):
        share = np.array([(j + 0.5) / columns, (i + 0.5) / rows])
        point = found.low + share * (found.high - found.low)
        beats = beaten_by(found.classes, found.coef, found.intercept, point)
        cell = found.cells[found.grid[i, j]]
        places = {}
        for place, names in enumerate(cell.ranking):
            places |= dict.fromkeys((names,) if isinstance(names, str) else names, place)
        assert set(places) == set(found.classes)
        for one, other in combinations(found.classes, 2):
            won, lost = len(beats[one]), len(beats[other])
            assert np.sign(places[one] - places[other]) == np.sign(lost - won)
        circle = any(
            b in beats[a] and c in beats[b] and a in beats[c]
            for a, b, c in permutations(found.classes, 3)
        )
        assert cell.transitive == (not circle)
