"""Davidson-Luce: published estimates, enumeration of all weak orders, and derivatives."""

import re
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pair_tables import PUDDING, SPRINGALL, read_table
from scipy.optimize import linprog, minimize
from scipy.sparse.csgraph import connected_components

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.leaderboards.davidson_luce import Likelihood, build_likelihood
from rankshot.ranking.models.information import find_covariance


def contrasts(model, rankings):
    """Log-worths and their standard errors as R gives them: relative to the first item."""
    covariance = model.covariance(rankings)
    variances = np.diag(covariance) + covariance[0, 0] - 2 * covariance[0]
    return (model.log_worths_ - model.log_worths_[0])[1:], np.sqrt(variances)[1:]


def find_tie_errors(model, rankings):
    """Standard errors of the logarithms of tie parameters; infinite where nothing is known."""
    C, likelihood = len(model.items_), build_likelihood(rankings, model._sizes)
    ridge = np.where(np.arange(likelihood.size) < C, model.regularization, 0.0)
    covariance = find_covariance(likelihood, model._values, ridge, model.items_)
    variances = np.diag(covariance)[C:]
    errors = np.sqrt(np.where(variances > 0, variances, np.inf))
    return dict(zip(model.tie_parameters_, errors.tolist(), strict=True))


def make_model(log_worths, ties):
    """A model of items a, b, …, with tie parameters by size."""
    items = tuple("abcdefgh"[: len(log_worths)])
    return rs.leaderboards.DavidsonLuce(regularization=0)._with_values(
        items, [*ties], np.append(log_worths, np.log([*ties.values()]))
    )


# ---- Published estimates


PUBLISHED = {
    "pudding": (
        read_table(PUDDING, 6),
        [0.2202419002, 0.1529777049, 0.1751449086, 0.1338652270, 0.3771348958],
        [0.187216981, 0.193518358, 0.188211086, 0.192704560, 0.192406233],
        (-0.2919270862, 0.08249869, -809.7095101),
        (1e-8, 1e-8),
    ),
    "springall": (
        read_table(SPRINGALL, 9),
        [-2.27322954559, -3.29074993942, -0.39761046448, -1.89478943361, -2.84284729328,
         1.28146667695, 0.00489786626, -0.60743834343],
        [0.28681811853, 0.32250408855, 0.26101192837, 0.27911170100, 0.30389782484, 0.29576927704,
         0.26478005980, 0.26078153615],
        (-0.14439169086, 0.09020630193, -732.0672554),
        (1e-7, 1e-6),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PUBLISHED)
def test_pairs_with_ties(case):
    """`btmodel(undecided = TRUE)` of R's psychotools 0.7.2."""
    votes, log_worths, errors, others, (atol, error_atol) = PUBLISHED[case]
    log_tie, tie_error, log_likelihood = others
    model = rs.leaderboards.DavidsonLuce(regularization=0).fit(votes)
    found, found_errors = contrasts(model, votes)
    assert_allclose(found, log_worths, atol=atol)
    assert_allclose(found_errors, errors, atol=error_atol)
    assert_allclose(np.log(model.tie_parameters_[2]), log_tie, atol=atol)
    assert_allclose(find_tie_errors(model, votes)[2], tie_error, atol=error_atol)
    assert_allclose(model.log_likelihood_, log_likelihood, atol=1e-6)
    if case == "pudding":
        # R PlackettLuce's vignette, and Davidson's own estimates, of seven iterations.
        assert -2 * model.log_likelihood_ == pytest.approx(1619.4, abs=0.05)
        davidson = [0.1388005, 0.1729985, 0.1617420, 0.1653930, 0.1586805, 0.2023855, 0.7468147]
        assert_allclose([*model.worths_, model.tie_parameters_[2]], davidson, atol=3e-5)


FRUITS = ["apple", "banana", "orange", "pear"]
FRUIT_CASES = {
    # R PlackettLuce's example: ties of two and of three.
    "example": (
        [[1, 2, 0, 0], [4, 1, 2, 3], [2, 1, 1, 1], [1, 2, 3, 0], [2, 1, 1, 0], [1, 0, 3, 2]],
        [0.2942874276, -0.7335113052, -0.1190960478],
        [1.049959701, 1.150983922, 1.079815182],
        {2: (-1.8619467101, 1.074113899), 3: (-0.7369734578, 1.137208422)},
        -14.56973929,
    ),
    # From its tests: ties of two and of four, none of three.
    "missing size": (
        [[1, 2, 0, 0], [4, 1, 2, 3], [2, 1, 1, 0], [1, 2, 3, 0], [2, 1, 3, 0], [1, 0, 3, 2],
         [1, 1, 1, 1]],
        [0.4997057974, -1.2111352613, -0.3645294658],
        [0.9473382498, 1.0713034328, 1.0768859657],
        {2: (-1.9665711515, 1.0657089368), 4: (1.7333283917, 1.4430120591)},
        -13.5377879,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FRUIT_CASES)
def test_fruits(case):
    """R's `glm` of the equivalent Poisson log-linear model, one row per possible set."""
    positions, log_worths, errors, ties, log_likelihood = FRUIT_CASES[case]
    rankings = rs.Rankings.from_positions(positions, items=FRUITS, kind="subset")
    model = rs.leaderboards.DavidsonLuce(regularization=0).fit(rankings)
    found, found_errors = contrasts(model, rankings)
    assert_allclose(found, log_worths, atol=1e-6)
    assert_allclose(found_errors, errors, atol=1e-5)
    assert list(model.tie_parameters_) == list(ties)
    for size, (estimate, error) in ties.items():
        assert_allclose(np.log(model.tie_parameters_[size]), estimate, atol=1e-6)
        assert_allclose(find_tie_errors(model, rankings)[size], error, atol=1e-5)
    assert_allclose(model.log_likelihood_, log_likelihood, atol=1e-7)


# ---- Probabilities by enumeration


def weak_orders(items):
    """Yield every order of the items with ties, as a list of tuples."""
    if not items:
        yield []
    for size in range(1, len(items) + 1):
        for first in combinations(items, size):
            for rest in weak_orders([item for item in items if item not in first]):
                yield [first, *rest]


def brute_log_prob(groups, available, theta, delta):
    """The product over choices, with every set that could have been chosen."""
    left, total = list(available), 0.0
    for group in groups:
        sums = [
            delta[size] * np.exp(np.mean([theta[item] for item in chosen]))
            for size in delta
            for chosen in combinations(left, size)
        ]
        weight = delta.get(len(group), 0) * np.exp(np.mean([theta[item] for item in group]))
        with np.errstate(divide="ignore"):
            total += np.log(weight / np.sum(sums))
        left = [item for item in left if item not in group]
    return total


THETA = dict(zip("abcde", [0.4, -1.1, 0.9, 0.0, 0.3], strict=True))
DELTA = {1: 1.0, 2: 0.7, 4: 1.6}
MODEL = make_model([*THETA.values()], {2: DELTA[2], 4: DELTA[4]})
ALL_ORDERS = list(weak_orders("abcde"))


def as_rankings(orders, **options):
    lists = [[list(group) for group in order] for order in orders]
    return rs.Rankings.from_orders(lists, items=["a", "b", "c", "d", "e"], **options)


def test_probabilities_are_those_of_enumerated_sets_and_add_up_to_one():
    found = MODEL.log_prob(as_rankings(ALL_ORDERS))
    assert len(found) == 541
    assert_allclose(np.exp(found).sum(), 1, rtol=1e-12)
    expected = [brute_log_prob(order, "abcde", THETA, DELTA) for order in ALL_ORDERS]
    assert_allclose(found, expected, rtol=1e-12)
    assert np.isneginf(found).sum() > 0


@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_a_top_k_ranking_has_the_probability_of_all_orders_that_begin_with_it(n_groups):
    full = np.exp(MODEL.log_prob(as_rankings(ALL_ORDERS)))
    begin = {}
    for order, probability in zip(ALL_ORDERS, full, strict=True):
        key = tuple(order[:n_groups])
        begin[key] = begin.get(key, 0.0) + probability
    found = np.exp(MODEL.log_prob(as_rankings(begin)))
    assert_allclose(found, list(begin.values()), atol=1e-14)


def test_worths_can_have_any_ratio():
    model = make_model(np.log([1e150, 1e-150, 1e-300]), {2: 0.5})
    found = model.log_prob(
        rs.Rankings.from_orders([["b", "a", "c"], [["b", "c"], "a"]], items=list("abc"))
    )
    ten = np.log(10)
    # In the first stage a is sure; then b against c, with a ratio of 10^150.
    assert_allclose(found, [-300 * ten, np.log(0.5) - (225 + 150) * ten], rtol=1e-12)


# ---- Fits


def test_derivatives(random_rankings, rng):
    rankings = random_rankings(n_items=5, n=12)
    likelihood = Likelihood(rankings, np.arange(1, 6))
    point = rng.normal(size=9)
    found = likelihood.evaluate(point)
    model = make_model(point[:5], dict(zip(range(2, 6), np.exp(point[5:]), strict=True)))
    assert_allclose(found.value, rankings.weights @ model.log_prob(rankings))
    steps = 1e-5 * np.eye(9)
    pairs = [(likelihood.evaluate(point + s), likelihood.evaluate(point - s)) for s in steps]
    slopes = [(up.value - down.value) / 2e-5 for up, down in pairs]
    curvatures = [(down.gradient - up.gradient) / 2e-5 for up, down in pairs]
    assert_allclose(found.gradient, slopes, atol=1e-6)
    assert_allclose(likelihood.information(point), curvatures, atol=1e-6)


def test_a_fit_is_the_optimum_of_the_enumerated_likelihood():
    orders = ["a|bc|d", "ab|c", "d|a|b|c", "c|b", "abc|d", "b|a|cd"]
    lists = [[list(group) for group in order.split("|")] for order in orders]
    weights = [1, 2, 1, 3, 0.5, 1.5]
    rankings = rs.Rankings.from_orders(lists, items=list("abcd"), weights=weights)
    model = rs.leaderboards.DavidsonLuce(regularization=0.3).fit(rankings)

    def objective(values):
        theta = dict(zip("abcd", values, strict=False))
        delta = {1: 1.0, 2: np.exp(values[4]), 3: np.exp(values[5])}
        values_of = [brute_log_prob(order, "abcd", theta, delta) for order in lists]
        return -np.dot(weights, values_of) + 0.15 * np.sum(values[:4] ** 2)

    best = minimize(objective, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    assert_allclose(model.log_worths_, best.x[:4], atol=1e-5)
    assert_allclose(np.log(list(model.tie_parameters_.values())), best.x[4:], atol=1e-5)


@pytest.mark.parametrize("kind", ["top", "subset"])
def test_without_ties_it_is_plackett_luce(random_rankings, kind):
    rankings = random_rankings(n_items=5, n=60, ties=False, kind=kind)
    model, other = rs.leaderboards.DavidsonLuce().fit(rankings), rs.PlackettLuce().fit(rankings)
    assert model.tie_parameters_ == {}
    assert_allclose(model.log_worths_, other.log_worths_, atol=1e-6)
    assert_allclose(model.log_likelihood_, other.log_likelihood_, atol=1e-8)
    assert_allclose(model.log_prob(rankings), other.log_prob(rankings), atol=1e-5)
    assert_allclose(model.standard_errors(rankings), other.standard_errors(rankings), rtol=1e-5)


# ---- Errors


def test_ties_that_k_cuts_have_no_probability():
    cut = rs.Rankings.from_orders([["b", ["a", "c", "d"]]], items=list("abcd")).top(2)
    model = rs.leaderboards.DavidsonLuce().fit(
        rs.Rankings.from_orders([list("abcd"), list("dbca")])
    )
    with pytest.raises(rs.RankshotError, match="cuts a tie"):
        model.log_prob(cut)


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        (
            rs.Rankings.from_orders([["a"], ["b", ["a", "c", "d"]]], items=list("abcd")).top(2),
            "ranking 1: K = 2 cuts a tie of 3 items",
        ),
        (
            rs.Rankings.from_pairs(["a", "b"], ["b", "c"], ties=[True, True]),
            "the tie parameter of ties of 2 items is infinite",
        ),
        (
            # A win and a tie: the tie parameter grows with the worth of the winner.
            rs.Rankings.from_pairs(["a", "a"], ["b", "b"], ties=[False, True]),
            "does not exist: no ranking keeps the worths of 'a' and 'b' from growing apart",
        ),
    ],
)
def test_fits_that_do_not_exist_are_refused(rankings, message):
    with pytest.raises(RankshotError, match=re.escape(message)):
        rs.leaderboards.DavidsonLuce(regularization=0).fit(rankings)


def grows_without_bound(rankings):
    """Whether a direction exists in which no choice becomes less probable, over all sets."""
    C = rankings.n_items
    sizes = {1}
    choices = []
    for order in rankings.orders():
        groups = [list(g) if isinstance(g, (list, tuple)) else [g] for g in order]
        groups = [[rankings.items.index(item) for item in group] for group in groups]
        for i, group in enumerate(groups):
            among = [item for later in groups[i:] for item in later]
            if len(among) > 1:
                choices.append((group, among))
                sizes.add(len(group))
    sizes = sorted(sizes)

    def score(items):
        row = np.zeros(C + len(sizes))
        row[list(items)] = 1 / len(items)
        row[C + sizes.index(len(items))] = 1
        return row

    rows = [
        score(other) - score(chosen)
        for chosen, among in choices
        for size in sizes
        for other in combinations(among, size)
    ]
    bounds = [(-1, 1)] * C + [(0, 0)] + [(-2, 2)] * (len(sizes) - 1)
    found = linprog(np.sum(rows, axis=0), A_ub=np.array(rows), b_ub=np.zeros(len(rows)),
                    bounds=bounds)  # fmt: skip
    # All scores are the same if items that are not compared do not exist.
    seen = np.zeros((C, C), bool)
    for _, among in choices:
        seen[np.ix_(among, among)] = True
    return found.fun < -1e-6 or connected_components(seen)[0] > 1


def test_an_estimate_is_found_where_it_exists_and_nowhere_else(rng):
    """Against a linear program over all sets that could have been chosen."""
    found = {True: 0, False: 0}
    for _ in range(32):
        orders = []
        for _ in range(int(rng.integers(2, 7))):
            items = rng.permutation(list("abcd"))[: int(rng.integers(2, 5))]
            place = np.sort(rng.integers(0, 2 if rng.random() < 0.5 else 4, items.size))
            orders.append([items[place == p].tolist() for p in np.unique(place)])
        rankings = rs.Rankings.from_orders(orders, items=list("abcd"), kind="subset")
        grows = grows_without_bound(rankings)
        found[grows] += 1
        if grows:
            with pytest.raises(RankshotError, match=r"does not exist|is infinite"):
                rs.leaderboards.DavidsonLuce(regularization=0).fit(rankings)
        else:
            model = rs.leaderboards.DavidsonLuce(regularization=0).fit(rankings)
            assert np.abs(model.log_worths_).max() < 20
    assert min(found.values()) > 10
