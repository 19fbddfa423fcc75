"""Mallows models with other distances than Kendall's, against sums over all permutations."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import chi2

import rankshot as rs
from rankshot.ranking.models import mallows_distances
from rankshot.ranking.models.mallows_distances import DISTANCES, normalize

FUNCTIONS = {
    "footrule": rs.ranking.footrule_distance,
    "spearman": rs.ranking.spearman_distance,
    "cayley": rs.ranking.cayley_distance,
    "hamming": rs.ranking.hamming_distance,
}
NAMES = list(FUNCTIONS)


def every_order(items):
    return rs.Rankings.from_orders(list(permutations(items)), items=items)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spread", [0.0, 0.05, 0.7, 30.0])
@pytest.mark.parametrize("n_items", [1, 2, 3, 6])
def test_normalizers_and_means_are_sums_over_all_permutations(name, spread, n_items):
    every = every_order([str(i) for i in range(n_items)])
    distance = FUNCTIONS[name](every, every[:1])[:, 0]
    weights = np.exp(-spread * distance)
    found = normalize(name, spread, n_items)
    assert found.log == pytest.approx(np.log(weights.sum()), rel=1e-12, abs=1e-14)
    assert found.mean == pytest.approx(weights @ distance / weights.sum(), rel=1e-10, abs=1e-14)
    assert rs.ranking.mallows_log_normalizer(spread, n_items, distance=name) == found.log


@pytest.mark.parametrize("name", NAMES)
def test_probabilities_sum_to_one_and_fall_with_the_distance(name):
    model = rs.Mallows.from_center(list("dbeca"), 0.4, distance=name)
    every = every_order(list("abcde"))
    found = model.log_prob(every)
    assert np.exp(found).sum() == pytest.approx(1)
    center = rs.Rankings.from_orders([list("dbeca")], items=list("abcde"))
    distance = FUNCTIONS[name](every, center)[:, 0]
    np.testing.assert_allclose(found - found.max(), -0.4 * distance, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_samples_have_the_probabilities_of_the_model(name, spread):
    model = rs.Mallows.from_center(list("dbeca"), spread, distance=name)
    every = every_order(list("abcde"))
    n = 20_000
    drawn = model.sample(n, random_state=1)
    number = {tuple(order): i for i, order in enumerate(every.orders())}
    counts = np.bincount([number[tuple(order)] for order in drawn.orders()], minlength=120)
    expected = n * np.exp(model.log_prob(every))
    few = expected < 5
    counts, expected = (np.append(x[~few], x[few].sum()) for x in (counts, expected))
    counted = expected > 0
    statistic = ((counts - expected)[counted] ** 2 / expected[counted]).sum()
    assert statistic < chi2.ppf(0.9999, counted.sum() - 1)
    short = model.sample(5, k=2, random_state=1)
    assert short.orders() == [order[:2] for order in model.sample(5, random_state=1).orders()]


@pytest.mark.parametrize("name", ["footrule", "cayley", "hamming"])
def test_samples_of_many_items_have_the_mean_distance(name):
    n, n_items, spread = 400, 120, {"footrule": 0.05, "cayley": 5.0, "hamming": 4.0}[name]
    items = [f"{i:03}" for i in range(n_items)]
    model = rs.Mallows.from_center(items, spread, distance=name)
    center = rs.Rankings.from_orders([items], items=items)
    distance = FUNCTIONS[name](model.sample(n, random_state=0), center)[:, 0]
    error = distance.std() / np.sqrt(n)
    assert abs(distance.mean() - normalize(name, spread, n_items).mean) < 4 * error


@pytest.mark.parametrize("name", NAMES)
def test_the_fit_is_the_best_of_all_centres(name, rng):
    votes = rs.Mallows.from_center(list("ecabd"), 0.2, distance=name).sample(12, random_state=2)
    votes = rs.Rankings.from_orders(
        votes.orders(), items=list("abcde"), weights=rng.integers(1, 4, 12)
    )
    model = rs.Mallows(distance=name).fit(votes)
    every = every_order(list("abcde"))
    total = FUNCTIONS[name](every, votes) @ votes.weights
    center = rs.Rankings.from_orders([list(model.center_)], items=list("abcde"))
    assert FUNCTIONS[name](center, votes) @ votes.weights == pytest.approx(total.min())

    def value(spread):
        return votes.weights @ rs.Mallows.from_center(model.center_, spread, name).log_prob(votes)

    assert value(model.spread_) == pytest.approx(model.log_likelihood_)
    assert model.spread_ > 0
    for other in (0.0, 0.99 * model.spread_, 1.01 * model.spread_, 5.0):
        assert value(other) < model.log_likelihood_


@pytest.mark.parametrize("name", NAMES)
def test_fits_ignore_the_numbers_of_the_items(name, rng):
    votes = rs.Rankings.from_item_numbers(
        np.argsort(rng.random((6, 8)), axis=1), items=list("abcdefgh")
    )
    shuffled = votes.with_items(list("hcadbgfe"))
    one, two = (rs.Mallows(distance=name).fit(v) for v in (votes, shuffled))
    assert one.center_ == two.center_
    assert one.spread_ == pytest.approx(two.spread_, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("unit", [1e-300, 1e-10, 1e300])
@pytest.mark.parametrize("enumerated", [0, 6])
def test_fits_ignore_the_unit_of_the_weights(name, unit, enumerated, monkeypatch):
    monkeypatch.setattr(mallows_distances, "ENUMERATED_ITEMS", enumerated)
    orders, weights = ["abc", "bac", "cab", "bca"], np.array([3.0, 1, 2, 1])
    one, two = (
        rs.Mallows(distance=name).fit(rs.Rankings.from_orders([list(o) for o in orders], weights=w))
        for w in (weights, unit * weights)
    )
    assert two.center_ == one.center_
    assert two.spread_ == pytest.approx(one.spread_, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", ["exact", "borda"])
def test_subsets_of_all_items_but_one_are_refused(name, method):
    """Nothing is known of the place of the last item: it was not compared."""
    subset = rs.Rankings.from_orders([["a", "b"]], items=list("abc"), kind="subset")
    message = rf"ranking 0 compares only a subset of the items: Mallows\(distance='{name}'\)"
    with pytest.raises(rs.RankshotError, match=message):
        rs.Mallows.from_center(list("abc"), 1, name).log_prob(subset)
    with pytest.raises(rs.RankshotError, match=message):
        rs.Mallows(distance=name, method=method).fit(subset)


def test_the_search_by_swaps_finds_the_best_of_few_items(rng, monkeypatch):
    """Against all 720 centres, where these are not simply tried."""
    rankings = rs.Rankings.from_item_numbers(
        np.argsort(rng.random((9, 6)), axis=1), items=list("abcdef")
    )
    exact = rs.Mallows(distance="cayley").fit(rankings)
    monkeypatch.setattr(mallows_distances, "ENUMERATED_ITEMS", 0)
    found = rs.Mallows(distance="cayley").fit(rankings)
    assert found.log_likelihood_ == pytest.approx(exact.log_likelihood_)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", ["insertion", "borda"])
def test_a_centre_and_a_spread_are_recovered(name, method):
    spread = {"footrule": 0.3, "spearman": 0.1, "cayley": 2.5, "hamming": 2.0}[name]
    truth = rs.Mallows.from_center(list("hgfedcba"), spread, distance=name)
    model = rs.Mallows(distance=name, method=method).fit(truth.sample(2000, random_state=0))
    assert model.center_ == tuple("hgfedcba")
    assert model.spread_ == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_rankings_that_agree_and_rankings_that_cancel(name):
    same = rs.Rankings.from_orders([["b", "a", "c"]] * 2)
    model = rs.Mallows(distance=name).fit(same)
    assert (model.center_, model.spread_, model.log_likelihood_) == (("b", "a", "c"), np.inf, 0.0)
    assert model.log_prob(every_order(list("abc"))).max() == 0
    assert model.sample(2, random_state=0).orders() == [["b", "a", "c"]] * 2
    flat = rs.Mallows(distance=name).fit(every_order(list("abc")))
    assert flat.spread_ == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "alpha", "n_items", "log"),
    [("cayley", 3, 10, 13.0481794289176), ("hamming", 3, 10, 12.4542713806513)],
)
def test_normalizers_of_bayesmallows(name, alpha, n_items, log):
    """R BayesMallows, test-compute_exact_partition_function.R: its alpha is C times the spread."""
    found = rs.ranking.mallows_log_normalizer(alpha / n_items, n_items, distance=name)
    assert found == pytest.approx(log, rel=1e-13)


@pytest.mark.parametrize(
    ("name", "alpha", "n_items", "mean"),
    [
        ("cayley", 12, 6, 1.375779),
        ("hamming", 10.5, 7, 2.69246),
        ("footrule", 157.5, 45, 0.080459),
        ("spearman", 40, 10, 0.006033),
    ],
)
def test_mean_distances_of_bayesmallows(name, alpha, n_items, mean):
    """The same package, test-expected_dist.R."""
    assert normalize(name, alpha / n_items, n_items).mean == pytest.approx(mean, abs=5e-7)


def test_published_counts():
    """How many permutations of four items have each distance: OEIS A062869 for the footrule,
    Stirling numbers of the first kind for Cayley's, rencontres numbers for Hamming's."""
    expected = {
        "footrule": {0: 1, 2: 3, 4: 7, 6: 9, 8: 4},
        "cayley": {0: 1, 1: 6, 2: 11, 3: 6},
        "hamming": {0: 1, 2: 6, 3: 8, 4: 9},
    }
    for name, counts in expected.items():
        d, number = np.array(list(counts.items()), float).T
        for spread in (0.0, 0.1, 1.0):
            found = np.exp(rs.ranking.mallows_log_normalizer(spread, 4, distance=name))
            assert found == pytest.approx(number @ np.exp(-spread * d), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: rs.Mallows(distance="ulam").fit(r), "distance must be one of"),
        (
            lambda r: rs.Mallows(distance="footrule").fit(r.top(1)),
            r"ranking 0 does not order all items: Mallows\(distance='footrule'\) has a likelihood",
        ),
        (
            lambda r: rs.Mallows(distance="spearman").fit(rs.Rankings.from_orders([[["a", "b"]]])),
            "ranking 0 has ties",
        ),
        (lambda r: rs.Mallows.from_center(["a"], 1, "ulam"), "distance must be one of"),
        (
            lambda r: rs.ranking.mallows_log_normalizer(1, 19, distance="spearman"),
            "a sum over all sets of the 19 items: it is computed for at most 18",
        ),
        (
            lambda r: rs.ranking.mallows_log_normalizer(1, 4, 2, distance="cayley"),
            "k is for distance",
        ),
        (lambda r: rs.ranking.mallows_log_normalizer(1, 3.5), "n_items must be a whole number"),
    ],
)
def test_bad_calls(call, message):
    with pytest.raises(rs.RankshotError, match=message):
        call(rs.Rankings.from_orders([["a", "b", "c"], ["c", "a", "b"]]))


def test_every_distance_is_public():
    assert set(DISTANCES) == set(FUNCTIONS)
