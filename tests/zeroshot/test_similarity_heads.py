"""Direct Similarity and ConSE: the heads that are fitted to similarities."""

from itertools import combinations

import exact
import numpy as np
import pytest
from exact import mp, mpf

import rankshot as rs
from rankshot import RankshotError
from rankshot.zeroshot.scores import log_class_probabilities

ITEMS = list("abcde")
TARGETS = ["u", "v", "w"]

# ------------------------------------------------------------------ the seen classes


@pytest.mark.parametrize("kind", ["multiclass", "one-vs-rest"])
@pytest.mark.parametrize("gap", [1.0, 1000.0])
def test_probabilities_of_the_seen_classes(kind, gap):
    values = np.array([[0.5, gap, 0, 0, 1], [-gap, 0, 0.25, gap / 2, 0], [0, 0, 0, 0, -gap]])
    truth = [[float(mp.log(p)) for p in exact.class_probabilities(row, kind)] for row in values]
    found = log_class_probabilities(values, kind, "test")
    np.testing.assert_allclose(found, truth, rtol=1e-13, atol=1e-15)
    short = log_class_probabilities(np.float32(values), kind, "test")
    np.testing.assert_allclose(short, truth, rtol=1e-6, atol=1e-6)


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
    head = rs.DirectSimilarity(n_similar=n)
    head.fit(rs.Similarity(table, TARGETS, ITEMS))
    values = np.array([[1000.0, 0, 1, 2, 3], [-700, 3, 3, 1, 0], [0.1, 0.2, 0.3, -0.4, 0.5]])
    truth = [exact_direct(table, row, kind, n) for row in values]
    found = head.predict_log_proba(rs.Scores(values, ITEMS, kind))
    np.testing.assert_allclose(found, truth, rtol=1e-13, atol=1e-9)


def test_more_similar_classes_than_there_are():
    table = rs.Similarity([[0.9, 0.1], [0.2, 0.6]], ["u", "v"], ["a", "b"])
    few, many = (rs.DirectSimilarity(n_similar=n).fit(table) for n in (2, 50))
    np.testing.assert_array_equal(few.exponents_, many.exponents_)


def test_unknown_similarities_are_not_among_the_similar():
    table = rs.Similarity([[np.nan, 0.3, 0.1], [0.5, 0.2, np.nan]], ["u", "v"], list("abc"))
    head = rs.DirectSimilarity(n_similar=3).fit(table)
    np.testing.assert_allclose(head.exponents_, [[0, 0.75, 0.25], [5 / 7, 2 / 7, 0]])


def test_negative_similarities_count_as_zero():
    cosines = rs.Similarity([[0.6, -0.3, 0.2], [-0.9, 0.4, np.nan]], ["u", "v"], list("abc"))
    head = rs.DirectSimilarity(n_similar=3).fit(cosines)
    np.testing.assert_allclose(head.exponents_, [[0.75, 0, 0.25], [0, 1, 0]])


@pytest.mark.parametrize("n", [2, 9])
def test_classes_of_no_similarity_at_all_count_alike(n):
    table = rs.Similarity([[0.0, 0, 0], [0, -0.5, 0], [0, np.nan, -1]], TARGETS, list("abc"))
    head = rs.DirectSimilarity(n_similar=n).fit(table)
    np.testing.assert_allclose(head.exponents_, [[1 / 3, 1 / 3, 1 / 3], [0.5, 0, 0.5], [1, 0, 0]])


@pytest.mark.parametrize(
    ("options", "values", "message"),
    [
        ({}, [[-0.5, -0.25]], "all similarities of 'u' by similarity are negative: leave them"),
        ({}, [[np.nan, np.nan]], "has no similarities of 'u'"),
        ({"class_prior": {"a": 1}}, [[1, 1]], r"class_prior\['b'\] must be positive, not 0"),
    ],
)
def test_direct_similarity_says_what_is_wrong(options, values, message):
    with pytest.raises(RankshotError, match=message):
        rs.DirectSimilarity(**options).fit(rs.Similarity(values, ["u"], ["a", "b"]))


# ------------------------------------------------------------------ ConSE


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["multiclass", "one-vs-rest"])
@pytest.mark.parametrize("n_classes", [1, 3, 10])
def test_conse_goes_to_the_nearest_vector(rng, kind, n_classes):
    """By the vectors themselves: the cosine of the convex combination and each target."""
    seen, new = unit(rng.normal(size=(5, 8))), unit(rng.normal(size=(3, 8)))
    cosines = rs.Similarity(new @ seen.T, TARGETS, ITEMS)
    head = rs.ConSE(n_classes=n_classes, temperature=0.2).fit(cosines)
    for row in rng.normal(scale=2, size=(25, 5)):
        p = np.array([float(x) for x in exact.class_probabilities(row, kind)])
        best = np.argsort(-p)[:n_classes]
        mean = p[best] @ seen[best] / p[best].sum()
        cosine = new @ mean / np.linalg.norm(mean)
        scores = rs.Scores([row], ITEMS, kind)
        assert head.predict(scores) == [TARGETS[int(np.argmax(cosine))]]
        expected = np.exp(new @ mean / 0.2)
        np.testing.assert_allclose(head.predict_proba(scores)[0], expected / expected.sum())


def test_classes_that_tie_for_the_last_places_share_them():
    cosines = rs.Similarity(np.eye(3, 5), TARGETS, ITEMS)
    head = rs.ConSE(n_classes=2, temperature=1.0).fit(cosines)
    proba = head.predict_proba([[5.0, 1, 1, 1, 0]])
    weights = np.exp([5.0, 1, 1]) * [1, 1 / 3, 1 / 3]
    expected = np.exp(weights / (np.exp(5.0) + np.exp(1.0)))
    np.testing.assert_allclose(proba[0], expected / expected.sum())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_most_probable_classes_are_those_of_the_largest_scores(dtype):
    """Of two sigmoids that round to 1, one is still the larger."""
    cosines = rs.Similarity([[0.9, 0.1, 0.2], [0.1, 0.9, 0.3]], ["u", "v"], list("abc"))
    head = rs.ConSE(n_classes=1).fit(cosines)
    far = rs.Scores(np.array([[1000, 900, 0]], dtype), list("abc"), "one-vs-rest")
    near = rs.Scores(np.array([[3, 2, 0]], dtype), list("abc"), "one-vs-rest")
    np.testing.assert_allclose(head.predict_proba(far), head.predict_proba(near), rtol=1e-5)


def test_a_class_without_a_vector_is_left_out():
    values = np.array([[0.9, np.nan, 0.2], [0.1, np.nan, 0.3]])
    scores = [[1.0, 7.0, 2.0]]
    with_it = rs.ConSE(n_classes=2).fit(rs.Similarity(values, ["u", "v"], list("abc")))
    without = rs.ConSE(n_classes=2).fit(rs.Similarity(values[:, ::2], ["u", "v"], ["a", "c"]))
    expected = without.predict_proba([[1.0, 2.0]])
    np.testing.assert_allclose(with_it.predict_proba(scores), expected)


def test_no_class_has_a_vector_known_to_all_targets():
    table = rs.Similarity([[0.1, np.nan], [np.nan, 0.2]], ["u", "v"], ["a", "b"])
    with pytest.raises(RankshotError):
        rs.ConSE().fit(table).predict([[1.0, 2.0]])
