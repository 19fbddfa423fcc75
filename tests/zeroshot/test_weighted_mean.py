"""WeightedMean with and without a reference, against plain loops and an explicit inverse."""

import numpy as np
import pytest
from head_cases import ITEMS, PAIRS, RANKINGS, VOTES
from sklearn.exceptions import NotFittedError

import exact
import rankshot as rs
from rankshot.zeroshot.default_head import (
    center_weights,
    rank_bonus,
    rank_weights,
)
from rankshot.zeroshot.scores import KINDS
from refusals import refuses

C = len(ITEMS)

each_kind = pytest.mark.parametrize("kind", KINDS)
with_and_without = pytest.mark.parametrize("has_reference", [False, True])


def scores(rng, kind="multiclass", n=60, dtype=np.float64):
    """Correlated columns with different means and scales."""
    columns = PAIRS if kind == "one-vs-one" else C
    values = rng.normal(size=(n, columns)) @ (np.eye(columns) + rng.normal(size=(columns, columns)))
    values = values * np.linspace(0.2, 4, columns) + np.linspace(-2, 3, columns)
    return rs.Scores(values.astype(dtype), ITEMS, kind)


def orders(lists, **options):
    return rs.Rankings.from_orders(lists, items=ITEMS, **options)


# ------------------------------------------------------------------ the weights


@pytest.mark.parametrize(("k", "decay"), [(2, 0), (3, 1.5), (None, 0.5)])
def test_weights_of_several_rankings(k, decay):
    """Lists of all lengths, subsets, ties and cut ties, with weights; some of one class alone."""
    lists = orders(
        [
            *(["a", "b"], [["c", "d"], "a"], ["e", "b", "a"], ["b", ["d", "a", "c"]], ["d"]),
            *(["c", ["a", "e"], "b"], [["a", "b", "d"], "c"], ["b"], [["d", "e"], "c", "a"]),
        ],
        targets=list("uvuuvwxyz"),
        weights=[1, 2, 0.5, 3, 1, 1, 1, 1, 1],
        kind=["top", "top", "subset", "top", "top", "subset", "top", "top", "subset"],
    )
    head = rs.WeightedMean(k=k, decay=decay).fit(lists)
    assert head.weights_.shape == (6, C)
    for z, row in zip("uvwxyz", head.weights_, strict=True):
        theirs = lists.select(target=z).top(min(k or C, C))
        expected = np.array(exact.class_weights(theirs, decay), float)
        np.testing.assert_allclose(row, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose((head.weights_**2).sum(axis=1), 1, rtol=1e-14)


# ------------------------------------------------------------------ the reference


def rows_of(f):
    return (f - f.mean(axis=1, keepdims=True)) / f.std(axis=1, keepdims=True)


def told_from_chance(f):
    """The share of the mean scores that is not due to chance, written out."""
    mean, around = f.mean(axis=0), f - f.mean(axis=0)
    share = np.bincount(f.argmax(axis=1), minlength=C) / len(f)
    error = around.var(axis=0) / (1 / sum(share**2) - 1)
    eigenvalues = np.linalg.eigvalsh(np.cov(f.T, ddof=0))
    directions = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()
    true = np.mean(mean**2) - np.mean(error) - np.mean(error) * np.sqrt(2 / directions)
    return true / (true + error) if true > 0 else np.zeros(C)


def by_inverse(weights, listed, usual, new, decorrelated=True):
    """The log-posteriors in plain NumPy, from one score per class."""
    usual, f = rows_of(usual), rows_of(new)
    n = np.array([(usual.argmax(axis=1) == c).sum() for c in range(C)])
    variety = 1 / ((n / n.sum()) ** 2).sum()
    coverage = np.maximum(n / (n + C), variety / C * n.sum() / (n.sum() + C))
    coverage = np.maximum(coverage, told_from_chance(usual))
    R = np.eye(C)
    for i in range(C):
        for j in set(range(C)) - {i}:
            r = np.corrcoef(usual[:, i], usual[:, j])[0, 1]
            R[i, j] = r * np.sqrt(coverage[i] * coverage[j])
    inverse = np.linalg.inv(R + 0.1 * C * np.eye(C)) if decorrelated else np.eye(C)
    applied = weights @ inverse
    applied /= np.sqrt(np.diag(applied @ R @ applied.T))[:, None]
    by_reference = (f - coverage * usual.mean(axis=0)) @ applied.T
    mean = usual.mean(axis=0)
    kept = np.sign(mean) * np.minimum(np.abs(mean), usual.std(axis=0))
    beyond = coverage * (1 - kept / mean)
    bonus = rank_bonus(new) - beyond * rank_bonus(usual).mean(axis=0)
    by_weights = (f - beyond * mean) @ weights.T
    total = (by_weights + by_reference) / 2 + bonus @ rank_weights(listed).T
    return total, coverage


def by_class(table):
    """One score per class: of pairs, the sum over those of the class."""
    if table.kind != "one-vs-one":
        return table.values
    rows = [exact.by_pair(row, ITEMS) for row in table.columns]
    return np.array([[sum(f[i, j] for j in ITEMS if j != i) for i in ITEMS] for f in rows])


@each_kind
def test_a_reference_by_the_explicit_inverse(rng, kind):
    usual, new = scores(rng, kind), scores(rng, kind, n=25)
    plain = rs.WeightedMean(k=3).fit(RANKINGS)
    head = rs.WeightedMean(k=3).fit(RANKINGS, reference=usual)
    np.testing.assert_array_equal(head.weights_, plain.weights_)
    weights = center_weights(plain.listed_), plain.listed_
    expected, coverage = by_inverse(*weights, by_class(usual), by_class(new))
    np.testing.assert_allclose(head.coverage_, coverage, rtol=1e-12)
    np.testing.assert_allclose(head.decision_function(new), expected, rtol=1e-9, atol=1e-11)
    log_proba = head.log_proba(new)
    odds = expected - expected[:, [0]]
    np.testing.assert_allclose(log_proba - log_proba[:, [0]], odds, rtol=1e-9, atol=1e-10)
    # Correlations have an influence.
    alone, _ = by_inverse(*weights, by_class(usual), by_class(new), decorrelated=False)
    assert np.abs(alone - expected).max() > 0.05


@pytest.mark.parametrize(
    ("predicted", "covered"),
    [
        # Five classes: n / (n + 5), or the same for all inputs times the share of the classes.
        ([*range(5)] * 9, [45 / 50] * 5),
        ([0] * 45, [45 / 50, *[45 / 50 / 5] * 4]),
        ([0, 1] * 10, [10 / 15, 10 / 15, *[20 / 25 * 2 / 5] * 3]),
        # Shares of .6, .2 and .2: an effective number of 1 / .44 classes.
        ([0, 0, 0, 1, 2] * 2, [6 / 11, *[10 / 15 / 0.44 / 5] * 4]),
    ],
)
def test_a_reference_covers_the_classes_that_are_predicted_for_it(predicted, covered):
    head = rs.WeightedMean().fit(RANKINGS, reference=9 * np.eye(5)[predicted])
    np.testing.assert_allclose(head.coverage_, covered)


def test_subset_rankings_of_one_class_say_nothing():
    for useless in (["a"], [["a", "b", "c"]]):
        with refuses("rankings", "u"):
            rs.WeightedMean().fit(orders([useless, ["b", "c"]], targets=["u", "v"], kind="subset"))
    with pytest.raises(NotFittedError):
        rs.WeightedMean().decision_function(np.ones((1, C)))


# ------------------------------------------------------------------ limits


@with_and_without
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e14, 1e-14])
def test_huge_and_tiny_scores(rng, size, dtype, has_reference):
    usual = scores(rng).values
    usual *= 0.9 / np.abs(usual).max()
    new = usual[:9]
    plain = rs.WeightedMean().fit(VOTES, reference=usual if has_reference else None)
    head = rs.WeightedMean().fit(
        VOTES, reference=(size * usual).astype(dtype) if has_reference else None
    )
    found = head.log_proba((size * new).astype(dtype))
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(found, plain.log_proba(new), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("constant", [0.0, 1e5 / 7, 9e14])
def test_equal_scores_decide_nothing(constant, dtype):
    """Rounding error of the mean is no deviation."""
    lists = rs.Rankings.from_orders(
        [["00", "01"], ["76", "07"]], items=[f"{i:02}" for i in range(77)], targets=["u", "v"]
    )
    row = np.full((2, 77), constant, dtype)
    np.testing.assert_array_equal(rs.WeightedMean().fit(lists).predict_proba(row), 0.5)


@with_and_without
def test_rankings_that_contradict_each_other_have_no_weights(rng, has_reference):
    """Their weights add up to rounding errors, which must not be scaled up."""
    against = orders(
        [["a", "b"], ["c", "a"], ["b", "c"]], targets="none", weights=[0.1] * 3, kind="subset"
    )
    head = rs.WeightedMean(decay=0.3).fit(
        rs.Rankings.concatenate([against, RANKINGS]),
        reference=scores(rng) if has_reference else None,
    )
    np.testing.assert_array_equal(head.weights_[head.classes_ == "none"], 0)
    np.testing.assert_array_equal(head.decision_function(scores(rng))[:, 0], 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_table_has_one_result_in_any_order_of_memory(rng, dtype):
    """Data frames have one column after the other, and sums are rounded in another order there."""
    items = [f"c{i}" for i in range(100)]
    rankings = rs.Rankings.from_orders(
        [rng.permutation(items)[:10].tolist() for _ in range(30)],
        items=items,
        targets=[f"t{i % 10}" for i in range(30)],
    )
    scores = rng.normal(size=(3000, 100)).astype(dtype)
    by_column = np.asfortranarray(scores)
    for reference in (None, scores):
        head = rs.WeightedMean().fit(rankings, reference=reference)
        other = head if reference is None else rs.WeightedMean().fit(rankings, reference=by_column)
        expected = head.predict_proba(scores)
        np.testing.assert_array_equal(other.predict_proba(by_column), expected)
        np.testing.assert_array_equal(other.predict_proba(by_column[::-1])[::-1], expected)
