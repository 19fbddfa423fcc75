"""Plackett-Luce with features: R's estimates and brute-force optima."""

import re

import numpy as np
import pytest
from brute import plackett_luce
from numpy.testing import assert_allclose
from pair_tables import SPRINGALL, draw_pairs, make_votes, read_table
from scipy.optimize import minimize
from scipy.stats import t
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot.core.errors import RankshotError

ITEMS = list("abcdef")
FEATURES = np.random.default_rng(3).normal(size=(6, 3))


@pytest.fixture
def rankings(random_rankings):
    return random_rankings(n_items=6, n=40, weights=np.linspace(0.5, 2, 40))


# ---- Independent truths


def test_springall_response_surface():
    """`BTm` of R's BradleyTerry2 1.1.2, without random effects.

    The standard errors are of `glm` with ``epsilon = 1e-15``: those of `BTm` are of its last but
    one iteration, and have five digits in common with these.
    """
    gels = read_table(SPRINGALL, 9)
    wins = gels[~gels.rows_with_ties]
    flavour, gel = np.tile([0.6, 4.8, 9.0], 3), np.repeat([0.0, 2.4, 4.8], 3)
    features = np.stack([flavour, gel, flavour**2, gel**2, flavour * gel], axis=1)
    model = rs.PlackettLuceRegression(item_effects=False).fit(wins, features)
    assert_allclose(
        model.coef_,
        [-0.60543258021, -0.42821393487, 0.02467709526, 0.14089402634, 0.03586849598],
        rtol=1e-6,
    )
    assert_allclose(
        model.coef_standard_errors(wins),
        [0.087848068477, 0.133852060414, 0.008353080361, 0.026201825250, 0.011359322101],
        rtol=1e-6,
    )


def test_a_fit_is_the_optimum_of_the_enumerated_likelihood():
    orders = [["a", "b", "c"], ["b", ["a", "d"]], ["d"], [["c", "a"], "b"], ["b", "c", "d", "a"]]
    weights = np.array([1, 2, 0.5, 1, 1.5])
    votes = rs.Rankings.from_orders(orders, items=list("abcd"), weights=weights)
    X = FEATURES[:4, :2]
    model = rs.PlackettLuceRegression(alpha=0.1, item_effects=False).fit(votes, X)

    def objective(beta):
        worths = dict(zip("abcd", np.exp(X @ beta), strict=True))
        logs = [np.log(plackett_luce(order, worths, list("abcd"))) for order in orders]
        return -weights @ logs / weights.sum() + 0.05 * beta @ beta

    best = minimize(objective, np.zeros(2), method="BFGS", options={"gtol": 1e-9})
    assert_allclose(model.coef_, best.x, atol=1e-6)
    assert_allclose(votes.weights @ model.log_prob(votes), model.log_likelihood_)


def test_one_column_per_item_is_plackett_luce(rankings):
    ridge = rs.PlackettLuceRegression(alpha=0.02).fit(rankings, np.eye(6))
    weight = rankings.weights.sum()
    other = rs.PlackettLuce(regularization=0.02 * weight).fit(rankings)
    assert_allclose(ridge.log_worths_, other.log_worths_, atol=1e-6)
    assert_allclose(ridge.standard_errors(rankings), other.standard_errors(rankings), rtol=1e-5)
    free = rs.PlackettLuceRegression().fit(rankings, np.eye(6)[:, 1:])
    other = rs.PlackettLuce(regularization=0).fit(rankings)
    assert_allclose(free.log_worths_, other.log_worths_, atol=1e-6)
    assert_allclose(free.worths_, other.worths_, atol=1e-6)
    assert free.mode_ == other.mode_
    assert_allclose(free.standard_errors(rankings), other.standard_errors(rankings), rtol=1e-5)


def test_pairs_are_a_logistic_regression_of_differences():
    rng = np.random.default_rng(0)
    first, second = draw_pairs(rng, 300, 6)
    pairs = make_votes(first, second, np.zeros(300), ITEMS)
    model = rs.PlackettLuceRegression(alpha=0.05, item_effects=False).fit(pairs, FEATURES)
    X = FEATURES[first] - FEATURES[second]
    logistic = LogisticRegression(C=1 / (0.05 * 300), fit_intercept=False, tol=1e-10).fit(
        np.vstack([X, -X]), np.repeat([1, 0], 300), sample_weight=np.full(600, 0.5)
    )
    assert_allclose(model.coef_, logistic.coef_[0], atol=1e-5)


# ---- Effects of items


def test_of_very_many_rankings_the_fit_is_a_least_squares_regression_of_worths(random_rankings):
    """Worths are known exactly; what features leave unexplained is the error of a linear model."""
    rankings = random_rankings(n_items=6, n=40, weights=np.full(40, 1e7))
    theta = rs.PlackettLuce(regularization=0).fit(rankings).log_worths_
    X = np.column_stack([np.ones(6), FEATURES[:, :2]])
    coef, [squares], *_ = np.linalg.lstsq(X, theta)
    variance = squares / (6 - 3)
    model = rs.PlackettLuceRegression().fit(rankings, FEATURES[:, :2])
    assert_allclose(model.coef_, coef[1:], rtol=1e-4)
    assert_allclose(model.item_std_, np.sqrt(variance), rtol=1e-2)
    errors = np.sqrt(np.diag(np.linalg.inv(X.T @ X))[1:] * variance)
    assert_allclose(model.coef_standard_errors(rankings), errors, rtol=1e-2)
    assert_allclose(model.log_worths_, theta, atol=1e-4)
    width = 3.182446 * errors  # Student's t with 3 degrees of freedom
    assert_allclose(
        model.coef_intervals(rankings), np.c_[coef[1:] - width, coef[1:] + width], rtol=2e-2
    )


def test_effects_of_items_have_the_largest_evidence():
    """The mean of the likelihood over random effects and coefficients, of few votes."""
    rng = np.random.default_rng(5)
    worths = dict(zip(ITEMS, np.exp([2.0, -1.5, 1.0, -2.0, 1.5, -1.0]), strict=True))
    votes = rs.PlackettLuce.from_worths(worths).sample(8, k=2, random_state=rng)
    X = FEATURES[:, :1] - FEATURES[:, :1].mean()
    draws, coefs = rng.normal(size=(20_000, 6)), np.linspace(-6, 6, 20_000)
    first, second = votes.codes.reshape(-1, 2).T

    def log_evidence(std):
        # The coefficient has a wide uniform prior.
        worths = np.exp(coefs[:, None] * X[:, 0] + std * draws)
        total = worths.sum(axis=1, keepdims=True)
        rest = worths @ (1 - np.eye(6)[first].T)
        shares = worths[:, first] / total * worths[:, second] / rest
        return np.log(shares.prod(axis=1).mean())

    model = rs.PlackettLuceRegression().fit(votes, X)
    found = np.array([log_evidence(factor * model.item_std_) for factor in (0, 0.4, 1, 4)])
    assert found.argmax() == 2
    assert 0.5 < model.item_std_ < 4


@pytest.mark.slow
@pytest.mark.parametrize(("n_items", "n", "k"), [(12, 150, 3), (20, 200, 5)])
def test_intervals_cover_the_coefficients_of_items_with_effects(n_items, n, k):
    """Effects of standard deviation 0.5. Without them in the model, .2 to .7 of intervals cover.

    Of 500 coefficients, .95 cover with a Monte Carlo error of .010.
    """
    rng = np.random.default_rng(n_items)
    beta = np.array([1.0, -0.5])
    covered = []
    for _ in range(250):
        X = rng.normal(size=(n_items, 2))
        theta = X @ beta + 0.5 * rng.normal(size=n_items)
        worths = dict(zip(map(str, range(n_items)), np.exp(theta), strict=True))
        votes = rs.PlackettLuce.from_worths(worths).sample(n, k, rng)
        low, high = rs.PlackettLuceRegression().fit(votes, X).coef_intervals(votes).T
        covered.append((low < beta) & (beta < high))
    assert 0.93 <= np.mean(covered) <= 0.97


# ---- Features


def test_new_items_have_worths_on_the_same_scale(rankings):
    model = rs.PlackettLuceRegression(item_effects=False).fit(rankings, FEATURES)
    assert_allclose(model.predict_log_worths(FEATURES), model.log_worths_)
    new = model.predict_log_worths([[1.0, 2.0, 3.0]])
    assert_allclose(new - model.log_worths_[0], ([1, 2, 3] - FEATURES[0]) @ model.coef_)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_names_features_and_items(rankings, library):
    module = pytest.importorskip(library)
    model = rs.PlackettLuceRegression().fit(rankings, FEATURES)
    columns = {name: FEATURES[::-1, j] for j, name in enumerate(["size", "age", "cost"])}
    extra = {name: [*values, 99.0] for name, values in columns.items()}
    frame = module.DataFrame({"item": [*rankings.items[::-1], "other"], **extra})
    named = rs.PlackettLuceRegression().fit(rankings, frame)
    assert_allclose(named.coef_, model.coef_)
    assert named.feature_names_in_.tolist() == ["size", "age", "cost"]
    assert_allclose(
        named.predict_log_worths(frame), model.predict_log_worths([*FEATURES[::-1], [99.0] * 3])
    )
    with pytest.raises(
        RankshotError, match="columns of the fit, 'size', 'age', 'cost', not 'size'"
    ):
        named.predict_log_worths(module.DataFrame({"size": [1.0]}))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (FEATURES[:5], "features have 5 rows for 6 items"),
        (FEATURES[:, 0], "features must be a table of numbers with one row per item"),
        (np.where(np.arange(18).reshape(6, 3) == 7, np.nan, FEATURES), "item 'c': 'x1' is nan"),
        (np.hstack([FEATURES, np.ones((6, 1))]), "the coefficient of 'x3' is not determined"),
        (
            np.hstack([FEATURES, 1 + FEATURES[:, :1] - 2 * FEATURES[:, 2:]]),
            "it is a linear combination of 'x0', 'x2'",
        ),
    ],
)
def test_wrong_features_are_named(rankings, features, message):
    with pytest.raises(RankshotError, match=re.escape(message)):
        rs.PlackettLuceRegression().fit(rankings, features)


# ---- Estimates that do not exist


def test_features_must_differ_between_items_that_are_compared():
    """The feature tells two groups apart, which no pair compares."""
    pairs = rs.Rankings.from_pairs(list("abcd"), list("badc"))
    group = [[0.0], [0.0], [1.0], [1.0]]
    with pytest.raises(RankshotError, match="the coefficient of 'x0' is not determined"):
        rs.PlackettLuceRegression().fit(pairs, group)


def test_an_order_that_no_ranking_contradicts_is_refused():
    pairs = rs.Rankings.from_pairs(list("aab"), list("bcc"))
    with pytest.raises(RankshotError, match=r"no ranking contradicts .* combination of 'x0'"):
        rs.PlackettLuceRegression().fit(pairs, [[3.0], [2.0], [1.0]])
    # Not strongly connected, but the feature does not follow the order.
    model = rs.PlackettLuceRegression(item_effects=False).fit(pairs, [[1.0], [3.0], [0.0]])
    assert np.isfinite(model.coef_).all()
    # The information of other rankings need only be positive: x² p (1 - p), with x = 1 - 0.
    pair = rs.Rankings.from_pairs(["a"], ["c"], items=list("abc"))
    p = np.exp(model.log_prob(pair))
    assert_allclose(model.coef_covariance(pair), [1 / (p * (1 - p))])
    with pytest.raises(RankshotError, match="the coefficient of 'x0' is not determined"):
        model.coef_covariance(rs.Rankings.from_orders([["a"]], items=list("abc"), kind="subset"))


def test_intervals_of_another_level(rng):
    """Their widths are quantiles of Student's t: five items less one, less one feature."""
    votes = rs.PlackettLuce.from_worths(dict(zip("abcde", [1, 3, 2, 4, 6], strict=True))).sample(
        50, random_state=rng
    )
    model = rs.PlackettLuceRegression().fit(votes, np.arange(5.0)[:, None])
    half, usual = (np.diff(model.coef_intervals(votes, level=p)) for p in (0.5, 0.95))
    assert_allclose(usual / half, t.ppf(0.975, 3) / t.ppf(0.75, 3), rtol=1e-9)


def test_steps_are_limited(rankings):
    with pytest.warns(UserWarning, match="converge"):
        rs.PlackettLuceRegression(max_iter=1).fit(rankings, FEATURES)
