"""The agreement of raters, and its tests: against SciPy, published values, and all permutations."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.stats import chi2, friedmanchisquare, spearmanr, t

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
    assert a.interval == pytest.approx(b.interval)
    # Pairs of the same raters: each keeps all own orders, or reverses all of them.
    pairs = [list(p) for order in once.orders() for p in combinations(order, 2)]
    votes = rs.Rankings.from_orders(pairs, raters=np.repeat(list("vwxyz"), 10), kind="subset")
    found = agreement(votes, random_state=0)
    assert found.p_value >= 1 / 16 - 0.02


# ---- The interval


def test_w_less_chance_is_the_mean_of_spearmans_correlations(rng):
    votes = draw(rng, 6, "abcdefg")
    found = agreement(votes, n_resamples=9, random_state=0)
    rho = spearmanr(votes.positions(), axis=1).statistic
    share = (found.concordance - found.chance) / (1 - found.chance)
    assert share == pytest.approx(rho[~np.eye(6, dtype=bool)].mean())
    assert found.chance == pytest.approx(1 / 6)


def test_two_raters_have_no_narrow_interval():
    found = agreement(rs.Rankings.from_orders([list("abc"), list("abc")]), random_state=0)
    assert found.interval[0] < 0.6
    opposite = rs.Rankings.from_orders([list("abc"), list("bac")])
    assert agreement(opposite, random_state=0).interval == (0, 1)


def test_raters_who_all_agree_need_not_be_all_raters():
    """If 10 raters agree, .05^(1/10) = 74 % of all, or more, agree; two of them with .74²."""
    found = agreement(rs.Rankings.from_orders([list("abcd")] * 10), random_state=0)
    assert found.interval == (pytest.approx(0.1 + 0.9 * 0.05**0.2), 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_compared", "spread", "n"),
    [(8, 0.3, 6), (8, 0.3, 20), (8, 1.0, 6), (8, 1.0, 20), (5, 0.3, 20), (5, 1.0, 20)],
)
def test_intervals_contain_the_w_of_other_raters(n_compared, spread, n):
    """300 samples of a Mallows model: the Monte Carlo error of .95 is .013.

    Six raters who each compare five of the eight items have .987.
    """
    rng = np.random.default_rng(n)
    model = rs.Mallows.from_center(list("abcdefgh"), spread)

    def draw_some(n):
        orders = np.array(model.sample(n, random_state=rng).orders())
        keys = rng.random((n, 8))
        kept = keys.argsort(axis=1).argsort(axis=1) < n_compared
        return rs.Rankings.from_orders(
            [order[own].tolist() for order, own in zip(orders, kept, strict=True)], kind="subset"
        )

    truth = concordance(draw_some(20_000))
    covered = []
    for _ in range(300):
        found = agreement(draw_some(n), n_resamples=1, random_state=0)
        low, high = found.interval
        covered.append(low <= found.chance + truth * (1 - found.chance) <= high)
    assert 0.92 <= np.mean(covered) <= 0.985


def test_a_higher_level_and_more_resamples_are_what_they_say(rng):
    votes = rs.Mallows.from_center(list("abcde"), 0.7).sample(12, random_state=rng)
    half, most = (agreement(votes, level=level, n_resamples=1).interval for level in (0.5, 0.99))
    assert most[0] < half[0] < half[1] < most[1]
    # The rankings themselves are one of twenty.
    p_value = agreement(votes, n_resamples=19).p_value
    assert 20 * p_value == pytest.approx(max(1, round(20 * p_value)))


def test_the_interval_of_complete_rankings_is_that_of_the_jackknife(rng):
    """Of the mean correlation of two raters, (m W - 1) / (m - 1), with one rater left out."""
    votes = rs.Mallows.from_center(list("abcde"), 0.7).sample(12, random_state=rng)
    places = np.argsort(votes.codes.reshape(12, 5), axis=1)

    def find_w(places):
        return 12 * np.var(places.sum(axis=0)) * 5 / (len(places) ** 2 * (5**3 - 5))

    logs = [np.log(1 - (11 * find_w(np.delete(places, i, 0)) - 1) / 10) for i in range(12)]
    factor = np.exp(t.ppf(0.975, 11) * np.sqrt(11 * np.var(logs)))
    found = agreement(votes, n_resamples=1)
    missing = 1 - find_w(places)
    assert found.interval == pytest.approx((max(1 - missing * factor, 0), 1 - missing / factor))
