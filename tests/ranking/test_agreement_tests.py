"""The agreement of raters, and its tests: against SciPy, published values, and all permutations."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.stats import chi2, friedmanchisquare

import rankshot as rs
from rankshot.ranking import agreement, concordance

FANO = ["abd", "bce", "cdf", "deg", "aef", "bfg", "acg"]


def draw(rng, n, items="abcde", **columns):
    orders = [list(rng.permutation(list(items))) for _ in range(n)]
    return rs.Rankings.from_orders(orders, items=list(items), **columns)


# ---- The test of W


def test_w_and_the_statistic_of_complete_rankings_are_those_of_friedmans_test(rng):
    """SciPy's statistic is corrected for ties: it is W times m (n - 1)."""
    for _ in range(20):
        m, n = rng.integers(3, 9, 2).tolist()
        scores = rng.integers(0, 4, (m, n))
        rankings = rs.Rankings.from_scores(scores, items=range(n))
        found = agreement(rankings, n_resamples=1, random_state=0)
        other = friedmanchisquare(*scores.T)
        assert found.chi_square == pytest.approx(other.statistic)
        assert found.degrees == n - 1
        assert chi2.sf(found.chi_square, found.degrees) == pytest.approx(other.pvalue)
        assert concordance(rankings) == pytest.approx(other.statistic / (m * (n - 1)), abs=1e-12)


def test_conovers_ice_cream():
    """Conover (1999), p. 391; durbinTest of R's PMCMRplus: chi-squared = 12, df = 6, p = 0.06197.

    Seven people each compare three of seven kinds, and all agree.
    """
    votes = rs.Rankings.from_orders(map(list, FANO), kind="subset")
    found = agreement(votes, n_resamples=4999, random_state=0)
    assert (found.chi_square, found.degrees) == (pytest.approx(12), 6)
    assert chi2.sf(found.chi_square, 6) == pytest.approx(0.06197, abs=5e-6)
    # Of the 6^7 orders, 7! agree fully. The error of the estimate is 0.0019.
    assert found.p_value == pytest.approx(5040 / 6**7, abs=0.006)
    assert found.chance == pytest.approx(0.5)


def test_the_p_value_is_the_share_of_all_permutations(rng):
    votes = rs.Rankings.from_orders([list("abc"), list("acb"), ["b", ["a", "c"]]])
    every = [list(permutations("abc"))] * 2 + [
        [(one, tuple(x for x in "abc" if x != one)) for one in "abc"]
    ]
    W = [
        concordance(rs.Rankings.from_orders([[*a], [*b], [c[0], [*c[1]]]], items=list("abc")))
        for a, b, c in product(*every)
    ]
    expected = np.mean(np.array(W) >= concordance(votes) - 1e-9)
    found = agreement(votes, n_resamples=9999, random_state=0)
    assert found.p_value == pytest.approx(expected, abs=0.02)
    assert found.chance == pytest.approx(np.mean(W))


def test_what_takes_too_long_to_permute_is_tested_by_chi_square(rng):
    found = agreement(draw(rng, 20), n_resamples=10_000_000)
    assert found.method == "chi-square"
    assert found.p_value == pytest.approx(chi2.sf(found.chi_square, 4))


def test_rankings_of_one_rater_are_permuted_together(rng):
    """Copies of the rankings of the same raters are no evidence that raters agree."""
    once = draw(rng, 5, raters=list("vwxyz"))
    many = rs.Rankings.concatenate([once] * 6)
    a, b = (agreement(votes, random_state=0) for votes in (once, many))
    assert a.p_value == b.p_value
    assert (a.concordance, a.chance) == pytest.approx((b.concordance, b.chance))
    # Pairs of the same raters: each keeps all own orders, or reverses all of them.
    pairs = [list(p) for order in once.orders() for p in combinations(order, 2)]
    votes = rs.Rankings.from_orders(pairs, raters=np.repeat(list("vwxyz"), 10), kind="subset")
    found = agreement(votes, random_state=0)
    assert found.p_value >= 1 / 16 - 0.02


def test_the_rankings_themselves_are_one_of_the_permutations(rng):
    votes = rs.Mallows.from_center(list("abcde"), 0.7).sample(12, random_state=rng)
    p_value = agreement(votes, n_resamples=19).p_value
    assert 20 * p_value == pytest.approx(max(1, round(20 * p_value)))
