import numpy as np
import pytest
from hypothesis import given, strategies as st
from reproduction.platt import PlattScaling
from scipy.optimize import minimize, root
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.svm import LinearSVC

from rankshot.core.errors import RankshotError
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.scores import Scores
from reproduction import platt

ITEMS = ("tiger", "bus", "fox", "leopard")


def platt_by_scipy(f, positive):
    """One column: a general optimiser, polished until the gradient is zero."""
    f, positive = np.asarray(f, float), np.asarray(positive)
    n = positive.sum()
    targets = np.where(positive, (n + 1) / (n + 2), 1 / ((~positive).sum() + 2))

    def loss(ab):
        z = ab[0] * f + ab[1]
        return np.sum(np.logaddexp(0, z) - targets * z)

    def gradient(ab):
        error = expit(ab[0] * f + ab[1]) - targets
        return np.array([error @ f, error.sum()])

    rough = minimize(loss, [0.0, 0.0], jac=gradient, method="BFGS").x
    polished = root(gradient, rough, tol=1e-14).x
    assert np.abs(gradient(polished)).max() < 1e-11 * (1 + np.abs(f).max() * f.size)
    return polished


def held_out(rng, kind, n=60, items=ITEMS, noise=1.0):
    """Noisy scores that know a little; every class occurs, some more often than others."""
    C = len(items)
    classes = np.concatenate([np.arange(C), rng.integers(0, C, n - C) // rng.integers(1, 3, n - C)])
    of = (classes[:, None] == np.arange(C)).astype(float)
    if kind == "one-vs-one":
        first, second = np.triu_indices(C, 1)
        of = of[:, first] - of[:, second]
    values = of + noise * rng.normal(size=of.shape) + rng.normal(size=of.shape[1])
    return Scores(values, items, kind), np.array(items)[classes]


def test_one_vs_rest_columns_are_fitted_against_all_others(rng):
    scores, y = held_out(rng, "one-vs-rest")
    fitted = PlattScaling().fit(scores, y)
    assert fitted.items_ == ITEMS
    for column, item in enumerate(ITEMS):
        expected = platt_by_scipy(scores.values[:, column], y == item)
        found = [fitted.slopes_[column], fitted.intercepts_[column]]
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_one_vs_one_columns_are_fitted_to_the_inputs_of_their_pair(rng):
    scores, y = held_out(rng, "one-vs-one")
    fitted = PlattScaling().fit(scores, y)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for column, (i, j) in enumerate(pairs):
        inside = (y == ITEMS[i]) | (y == ITEMS[j])
        expected = platt_by_scipy(scores.values[inside, column], y[inside] == ITEMS[i])
        found = [fitted.slopes_[column], fitted.intercepts_[column]]
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-8)


def by_scikit_learn(n_classes):
    """A LinearSVC, and what scikit-learn's own sigmoid calibration makes of held-out inputs."""
    X, y = make_blobs(300, centers=n_classes, cluster_std=4.0, random_state=3)
    model = LinearSVC(C=0.1, random_state=0).fit(X[:100], y[:100])
    calibrated = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid", ensemble=False)
    calibrated.fit(X[100:], y[100:])
    scores = scores_of(model, X[100:])
    return scores, y[100:], calibrated, X[100:]


def test_scikit_learn_finds_the_same_for_one_vs_rest():
    scores, y, calibrated, _ = by_scikit_learn(4)
    fitted = PlattScaling().fit(scores, y)
    theirs = calibrated.calibrated_classifiers_[0].calibrators
    # Theirs is 1 / (1 + exp(a f + b)), and another optimiser.
    assert fitted.slopes_ == pytest.approx([-each.a_ for each in theirs], rel=1e-5)
    assert fitted.intercepts_ == pytest.approx([-each.b_ for each in theirs], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("kind", ["one-vs-rest", "one-vs-one"])
def test_scikit_learn_finds_the_same_probabilities_for_two_classes(kind):
    scores, y, calibrated, X = by_scikit_learn(2)
    if kind == "one-vs-one":
        scores = Scores(-2 * scores.values[:, 1:], scores.items, kind)
    scaled = PlattScaling().fit(scores, y).transform(scores)
    proba = calibrated.predict_proba(X)[:, : scaled.values.shape[1]]
    assert expit(scaled.values) == pytest.approx(proba, abs=1e-5)


def test_separated_sides_get_the_smoothed_targets():
    """Two values of f, one per side: the sigmoid can meet both targets."""
    y = ["bus"] * 3 + ["fox"] * 5
    scores = Scores(
        np.where(np.array(y) == "bus", 2.0, -1.0)[:, None], ["bus", "fox"], "one-vs-one"
    )
    scaled = PlattScaling().fit(scores, y).transform(scores)
    assert expit(scaled.values[:3, 0]) == pytest.approx(4 / 5, abs=1e-12)
    assert expit(scaled.values[3:, 0]) == pytest.approx(1 / 7, abs=1e-12)


@pytest.mark.parametrize("distance", [3, 100, 1e5])
def test_one_input_far_from_the_others(rng, distance):
    """Where whole Newton steps run away."""
    y = np.array(["bus"] + ["fox"] * 49)
    f = rng.normal(size=50) + distance * (y == "bus")
    fitted = PlattScaling().fit(Scores(f[:, None], ["bus", "fox"], "one-vs-one"), y)
    slope, intercept = platt_by_scipy(f / distance, y == "bus")
    assert fitted.slopes_ == pytest.approx([slope / distance], rel=1e-8)
    assert fitted.intercepts_ == pytest.approx([intercept], rel=1e-8)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["one-vs-rest", "one-vs-one"]),
    st.lists(st.floats(0.01, 100), min_size=6, max_size=6),
    st.lists(st.floats(-50, 50), min_size=6, max_size=6),
    st.booleans(),
)
def test_stretching_and_shifting_columns_changes_nothing(seed, kind, stretch, shift, turn):
    scores, y = held_out(np.random.default_rng(seed), kind, n=25)
    C = scores.values.shape[1]
    a = np.array(stretch[:C]) * (-1 if turn else 1)
    other = Scores(scores.values * a + np.array(shift[:C]), ITEMS, kind)
    expected = PlattScaling().fit(scores, y).transform(scores).values
    found = PlattScaling().fit(other, y).transform(other).values
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("kind", ["one-vs-rest", "one-vs-one"])
def test_another_order_of_classes_permutes_the_answer(rng, kind):
    scores, y = held_out(rng, kind)
    fitted = PlattScaling().fit(scores, y)
    order = ("leopard", "fox", "tiger", "bus")
    other = scores.with_items(order)
    expected = fitted.transform(scores).with_items(order).values
    assert PlattScaling().fit(other, y).transform(other).values == pytest.approx(expected)
    scaled = fitted.transform(other)
    assert scaled.items == order
    np.testing.assert_array_equal(scaled.values, expected)


@pytest.mark.parametrize("kind", ["one-vs-rest", "one-vs-one"])
def test_blocks_change_nothing(rng, monkeypatch, kind):
    scores, y = held_out(rng, kind)
    whole = PlattScaling().fit(scores, y)
    for cells in (1, 70, 150):
        monkeypatch.setattr(platt, "BLOCK_CELLS", cells)
        parts = PlattScaling().fit(scores, y)
        assert parts.slopes_ == pytest.approx(whole.slopes_, rel=1e-10)
        assert parts.intercepts_ == pytest.approx(whole.intercepts_, rel=1e-10)


def test_what_is_refused(rng):
    scores, y = held_out(rng, "one-vs-rest")
    fitted = PlattScaling().fit(scores, y)
    with pytest.raises(RankshotError, match="no input of class 'bus' to calibrate with"):
        PlattScaling().fit(scores[y != "bus"], y[y != "bus"])
    with pytest.raises(RankshotError, match=r"row 1: .* class 'foxx' \(did you mean 'fox'\?\)"):
        PlattScaling().fit(scores, [y[0], "foxx", *y[2:]])
    with pytest.raises(RankshotError, match="y needs one label per input, 60 in all, not 59"):
        PlattScaling().fit(scores, y[1:])
    with pytest.raises(RankshotError, match="one-vs-rest and one-vs-one scores"):
        PlattScaling().fit(Scores(scores.values, ITEMS), y)
    with pytest.raises(RankshotError, match="expected Scores"):
        PlattScaling().fit(scores.values, y)
    with pytest.raises(RankshotError, match="'bus' is the only class"):
        PlattScaling().fit(Scores([[1.0]], ["bus"], "one-vs-rest"), ["bus"])
    with pytest.raises(RankshotError, match="fitted to one-vs-rest scores, but these are one-vs-o"):
        fitted.transform(held_out(rng, "one-vs-one")[0])
    with pytest.raises(RankshotError, match="not fitted to scores of 'cat'"):
        fitted.transform(Scores(scores.values, ("tiger", "bus", "fox", "cat"), "one-vs-rest"))
    with pytest.raises(RankshotError, match="there are no scores of 'leopard'"):
        fitted.transform(scores.select(ITEMS[:3]))
