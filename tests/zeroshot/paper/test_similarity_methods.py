"""Direct Similarity and ConSE: the heads that are fitted to similarities."""

from itertools import combinations

import numpy as np
import pytest

import exact
import rankshot as rs
from exact import mp, mpf
from refusals import refuses

ITEMS = list("abcde")
TARGETS = ["u", "v", "w"]

# ------------------------------------------------------------------ Direct Similarity


def exact_direct(table, row, kind, n, prior=None):
    """Equation 18, with a tie for the last places by the mean of the exponents over which.

    A negative similarity counts as 0.
    """
    odds = [
        p / mpf(1 if prior is None else prior[item])
        for p, item in zip(exact.class_probabilities(row, kind), ITEMS, strict=True)
    ]
    weights = []
    for w in table.tolist():
        ways = [
            chosen
            for chosen in combinations(range(5), n)
            if min(w[i] for i in chosen) >= max(w[i] for i in range(5) if i not in chosen)
        ]
        exponent = [mpf(0)] * 5
        for chosen in ways:
            total = mp.fsum(mpf(max(w[i], 0)) for i in chosen)
            for i in chosen:
                exponent[i] += mpf(max(w[i], 0)) / total / len(ways)
        weights.append(mp.fprod(o**y for o, y in zip(odds, exponent, strict=True)))
    return exact.log_normalized(weights)


@pytest.mark.parametrize("kind", ["multiclass", "one-vs-rest"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_direct_similarity_with_ties_that_are_cut(kind, n):
    table = np.array(
        [[0.9, 0.5, 0.5, 0.5, 0.1], [0.3, 0.3, 0.3, 0.3, 0.3], [-0.1, 0.2, -0.8, -0.1, 0.7]]
    )
    head = rs.zeroshot.paper.DirectSimilarity(n_similar=n)
    head.fit(rs.Similarity(table, TARGETS, ITEMS))
    values = np.array([[1000.0, 0, 1, 2, 3], [-700, 3, 3, 1, 0], [0.1, 0.2, 0.3, -0.4, 0.5]])
    truth = [exact_direct(table, row, kind, n) for row in values]
    found = head.log_proba(rs.Scores(values, ITEMS, kind))
    np.testing.assert_allclose(found, truth, rtol=1e-13, atol=1e-9)


@pytest.mark.parametrize("n", [3, 50])
def test_exponents_of_unknown_negative_and_no_similarities(n):
    """Unknown ones are left out, negative ones count as zero, and zeros alone count alike."""
    rows = {
        "unknown": ([np.nan, 0.3, 0.1], [0, 0.75, 0.25]),
        "negative": ([0.6, -0.3, 0.2], [0.75, 0, 0.25]),
        "both": ([-0.9, 0.4, np.nan], [0, 1, 0]),
        "zeros": ([0.0, 0, 0], [1 / 3, 1 / 3, 1 / 3]),
        "zeros and negative": ([0, -0.5, 0], [0.5, 0, 0.5]),
        "zeros and unknown": ([0, np.nan, -1], [1, 0, 0]),
    }
    table = rs.Similarity([values for values, _ in rows.values()], list(rows), list("abc"))
    head = rs.zeroshot.paper.DirectSimilarity(n_similar=n).fit(table)
    expected = dict(zip(head.classes_, head.exponents_, strict=True))
    for name, (_, exponents) in rows.items():
        np.testing.assert_allclose(expected[name], exponents, err_msg=name)


def test_direct_similarity_refuses_what_it_cannot_use():
    method = rs.zeroshot.paper.DirectSimilarity
    for values in ([np.nan, np.nan], [-0.1, np.nan]):
        with refuses("similarity", "u"):
            method().fit(rs.Similarity([values], ["u"], ["a", "b"]))
    head = method().fit(rs.Similarity([[0.1, -0.2, 0.3]], ["u"], list("abc")))
    with refuses("scores", "one-vs-one"):
        head.predict(rs.Scores([[1.0, 2.0, 3.0]], list("abc"), "one-vs-one"))
    with refuses("class_prior['b']", 0):
        method(class_prior={"a": 1}).fit(rs.Similarity([[1, 1]], ["u"], ["a", "b"]))


# ------------------------------------------------------------------ ConSE


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["multiclass", "one-vs-rest"])
@pytest.mark.parametrize("n_classes", [1, 3, 10])
def test_conse_goes_to_the_nearest_vector(rng, kind, n_classes):
    """By the vectors themselves: the cosine of the convex combination and each target."""
    seen, new = unit(rng.normal(size=(5, 8))), unit(rng.normal(size=(3, 8)))
    cosines = rs.Similarity(new @ seen.T, TARGETS, ITEMS)
    head = rs.zeroshot.paper.ConSE(n_classes=n_classes).fit(cosines)
    for row in rng.normal(scale=2, size=(25, 5)):
        p = np.array([float(x) for x in exact.class_probabilities(row, kind)])
        best = np.argsort(-p)[:n_classes]
        mean = p[best] @ seen[best] / p[best].sum()
        cosine = new @ mean / np.linalg.norm(mean)
        scores = rs.Scores([row], ITEMS, kind)
        assert head.predict(scores) == [TARGETS[int(np.argmax(cosine))]]
        expected = np.exp(new @ mean / 0.1)
        np.testing.assert_allclose(head.predict_proba(scores)[0], expected / expected.sum())


def test_conse_uses_ten_classes_as_in_its_paper(rng):
    items = [f"s{i}" for i in range(14)]
    cosines = rs.Similarity(rng.uniform(-1, 1, (3, 14)), TARGETS, items)
    scores = rs.Scores(rng.normal(size=(5, 14)), items)
    conse = rs.zeroshot.paper.ConSE
    expected = conse(n_classes=10).fit(cosines).predict_proba(scores)
    np.testing.assert_array_equal(conse().fit(cosines).predict_proba(scores), expected)


def test_classes_that_tie_for_the_last_places_share_them():
    cosines = rs.Similarity(np.eye(3, 5), TARGETS, ITEMS)
    head = rs.zeroshot.paper.ConSE(n_classes=2).fit(cosines)
    proba = head.predict_proba([[5.0, 1, 1, 1, 0]])
    weights = np.exp([5.0, 1, 1]) * [1, 1 / 3, 1 / 3]
    expected = np.exp(10 * weights / (np.exp(5.0) + np.exp(1.0)))
    np.testing.assert_allclose(proba[0], expected / expected.sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_most_probable_classes_are_those_of_the_largest_scores(dtype):
    """Of two sigmoids that round to 1, one is still the larger."""
    cosines = rs.Similarity([[0.9, 0.1, 0.2], [0.1, 0.9, 0.3]], ["u", "v"], list("abc"))
    head = rs.zeroshot.paper.ConSE(n_classes=1).fit(cosines)
    far = rs.Scores(np.array([[1000, 900, 0]], dtype), list("abc"), "one-vs-rest")
    near = rs.Scores(np.array([[3, 2, 0]], dtype), list("abc"), "one-vs-rest")
    np.testing.assert_allclose(head.predict_proba(far), head.predict_proba(near), rtol=1e-5)


def test_a_class_without_a_vector_is_left_out():
    values = np.array([[0.9, np.nan, 0.2], [0.1, np.nan, 0.3]])
    scores = [[1.0, 7.0, 2.0]]
    with_it = rs.zeroshot.paper.ConSE(n_classes=2).fit(
        rs.Similarity(values, ["u", "v"], list("abc"))
    )
    without = rs.zeroshot.paper.ConSE(n_classes=2).fit(
        rs.Similarity(values[:, ::2], ["u", "v"], ["a", "c"])
    )
    expected = without.predict_proba([[1.0, 2.0]])
    np.testing.assert_allclose(with_it.predict_proba(scores), expected)
    nowhere = rs.Similarity([[0.1, np.nan], [np.nan, 0.2]], ["u", "v"], ["a", "b"])
    with refuses("similarity"):
        rs.zeroshot.paper.ConSE().fit(nowhere).predict([[1.0, 2.0]])
