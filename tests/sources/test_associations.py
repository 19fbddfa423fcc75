from math import exp, log

import numpy as np
import pytest

from rankshot.sources.associations import dice, normalized_web_similarity, pmi, ppmi


def test_by_hand():
    # 8 pages have both of two words that 20 and 10 pages of 1000 have.
    assert dice(20, 10, 8) == pytest.approx(16 / 30)
    assert pmi(20, 10, 8, 1000) == pytest.approx(log(8 * 1000 / 200))
    assert ppmi(20, 10, 8, 1000) == pytest.approx(log(40))
    distance = (log(20) - log(8)) / (log(1000) - log(10))
    assert normalized_web_similarity(20, 10, 8, 1000) == pytest.approx(exp(-2 * distance))


def test_the_published_web_distance_of_horse_and_rider():
    # Cilibrasi and Vitányi (2007), section 1: 46,700,000 "horse", 12,200,000 "rider",
    # 2,630,000 both, of 8,058,044,651 pages: about 0.443.
    alike = normalized_web_similarity(46_700_000, 12_200_000, 2_630_000, 8_058_044_651)
    assert -log(alike) / 2 == pytest.approx(0.443, abs=5e-4)


@pytest.mark.parametrize("measure", [pmi, ppmi, normalized_web_similarity])
def test_zeros_of_what_needs_all_counts(measure):
    n_a, n_b, n_ab = [0, 5, 0, 5, 5], [5, 0, 0, 5, 1000], [0, 0, 0, 0, 0]
    values = measure(n_a, n_b, n_ab, 1000)
    assert np.isnan(values[:3]).all()
    assert np.isfinite(values[3:]).all()
    assert values[3] == values[4], "pairs that never meet tie"


def test_a_pair_that_never_meets_is_below_every_pair_that_does(rng):
    N = 50
    a, b = rng.integers(1, N + 1, (2, 500))
    ab = rng.integers(1, np.minimum(a, b) + 1)
    for measure in (pmi, normalized_web_similarity):
        assert measure(a, b, 0, N).max() < measure(a, b, ab, N).min()
    # The worst case that can be counted: both everywhere, together once.
    assert pmi(N, N, 0, N) < pmi(N, N, 1, N)


def test_broadcasting_and_symmetry(rng):
    n_a, n_b = rng.integers(5, 30, 3), rng.integers(5, 30, 4)
    n_ab = rng.integers(0, 5, (3, 4))
    for measure, more in ((dice, ()), (pmi, (100,)), (normalized_web_similarity, (100,))):
        table = measure(n_a[:, None], n_b, n_ab, *more)
        assert table.shape == (3, 4)
        np.testing.assert_array_equal(table.T, measure(n_b[:, None], n_a, n_ab.T, *more))
        assert table[1, 2] == measure(n_a[1], n_b[2], n_ab[1, 2], *more)


@pytest.fixture
def rng():
    return np.random.default_rng(7)
