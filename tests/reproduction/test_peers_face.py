"""What all peers have in common: names, ties, missing numbers, messages, scikit-learn's manners."""

import numpy as np
import pytest
from reproduction.peers.attributes import DAP, IAP
from reproduction.peers.base import MeanImputation, choose_targets
from reproduction.peers.linear import ESZSL, SAE, VectorRegression
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rankshot.core.errors import RankshotError
from rankshot.datasets import load_cifar
from rankshot.sources.class_vectors import ClassVectors

SEEN = ["ant", "bee", "cat", "dog", "elk", "fly"]
TARGETS = ["gnu", "hen", "ibis"]
PEERS = [
    ESZSL(feature_penalty=2.0, vector_penalty=0.5),
    SAE(encoder_weight=0.3),
    SAE(direction="to features"),
    VectorRegression(penalty=3.0),
    DAP(penalty=0.2),
]


def rounding(peer):
    """How far answers may differ: the regressions of DAP stop at a tolerance, the others don't."""
    return {"rtol": 1e-5, "atol": 1e-5} if isinstance(peer, DAP) else {"rtol": 1e-9, "atol": 1e-11}


peers = pytest.mark.parametrize("peer", PEERS, ids=repr)


@pytest.fixture
def inputs(rng):
    codes = np.r_[np.arange(6), rng.integers(6, size=84)]
    X = rng.normal(size=(90, 5)) + 2 * rng.normal(size=(6, 5))[codes]
    vectors = ClassVectors([*SEEN, *TARGETS], rng.normal(size=(9, 4)), "test")
    return X.astype(np.float32), np.array(SEEN)[codes], vectors


@peers
def test_permuting_inputs_classes_and_targets_permutes_the_answer(peer, inputs, rng):
    X, y, vectors = inputs
    targets = vectors.select(TARGETS)
    table = clone(peer).fit(X, y, vectors).decision_function(X[:9], targets)
    rows = rng.permutation(len(X))
    shuffled = vectors.select(rng.permutation(vectors.names).tolist())
    again = clone(peer).fit(X[rows], y[rows], shuffled)
    turned = again.decision_function(X[:9][::-1], targets.select(TARGETS[::-1]))
    np.testing.assert_allclose(turned[::-1, ::-1], table, **rounding(peer))
    best = again.predict(X[:9], targets.select(TARGETS[::-1]))
    assert best.tolist() == np.array(TARGETS)[table.argmax(axis=1)].tolist()


@peers
def test_renaming_classes_changes_nothing_else(peer, inputs):
    """New names that sort in another order."""
    X, y, vectors = inputs
    new = dict(zip(vectors.names, "zyxwvutsr", strict=True))
    renamed = ClassVectors([new[name] for name in vectors.names], vectors.values, "test")
    found = clone(peer).fit(X, [new[name] for name in y], renamed)
    plain = clone(peer).fit(X, y, vectors)
    np.testing.assert_allclose(
        found.decision_function(X, renamed.select([new[name] for name in TARGETS])),
        plain.decision_function(X, vectors.select(TARGETS)),
        **rounding(peer),
    )


@peers
def test_only_the_vectors_of_the_classes_in_y_are_looked_at(peer, inputs):
    X, y, vectors = inputs
    others = ClassVectors(
        [*SEEN, *TARGETS], np.r_[vectors.values[:6], np.full((3, 4), np.nan)], "test"
    )
    targets = vectors.select(TARGETS)
    np.testing.assert_array_equal(
        clone(peer).fit(X, y, others).decision_function(X, targets),
        clone(peer).fit(X, y, vectors).decision_function(X, targets),
    )


@peers
@pytest.mark.parametrize("names", [["owl", "auk", "jay"], ["auk", "jay", "owl"]])
def test_targets_with_one_vector_tie_and_the_first_by_name_is_taken(peer, inputs, names):
    X, y, vectors = inputs
    value = vectors.values[6]
    # A tie that rounding can break: the columns of a product need not agree to the last bit.
    same = ClassVectors(names, [value, value, value], "test")
    assert set(clone(peer).fit(X, y, vectors).predict(X, same)) == {"auk"}


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_rounding_does_not_decide_whatever_the_scale_of_the_scores(scale):
    scores = scale * np.array([[1.0, 1.0 + 1e-14], [-1.0 - 1e-14, -1.0], [1.0, 1.0 + 1e-6]])
    assert choose_targets(scores, ("auk", "owl")).tolist() == ["auk", "auk", "owl"]
    assert choose_targets(scores[:, ::-1], ("owl", "auk")).tolist() == ["auk", "auk", "owl"]
    assert choose_targets(np.zeros((1, 2)), ("owl", "auk")).tolist() == ["auk"]


@peers
def test_an_answer_does_not_depend_on_the_other_targets(peer, inputs):
    X, y, vectors = inputs
    fitted = clone(peer).fit(X, y, vectors)
    table = fitted.decision_function(X, vectors.select(TARGETS))
    alone = fitted.decision_function(X, vectors.select(["hen"]))
    np.testing.assert_allclose(alone, table[:, [1]], rtol=1e-9, atol=1e-12)


@peers
def test_a_peer_can_be_cloned_and_told_its_parameters(peer, inputs):
    X, y, vectors = inputs
    fitted = clone(peer).fit(X, y, vectors)
    assert fitted.get_params() == peer.get_params()
    assert not hasattr(clone(fitted), "classes_")
    assert fitted.classes_ == tuple(SEEN)
    assert fitted.n_features_in_ == 5
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X, vectors)


@peers
def test_seen_classes_are_recognised(peer, inputs):
    """Seen classes as targets: far above one in six for anything that learns."""
    X, y, vectors = inputs
    found = clone(peer).fit(X, y, vectors).predict(X, vectors.select(SEEN))
    assert (found == y).mean() > 0.45


# ---- Bad input


@peers
def test_a_class_without_a_vector_is_named(peer, inputs):
    X, y, vectors = inputs
    without = vectors.select([name for name in vectors.names if name != "cat"])
    with pytest.raises(RankshotError, match="no vector of 'cat'"):
        clone(peer).fit(X, y, without)


@peers
def test_a_class_whose_numbers_are_all_missing_is_named(peer, inputs):
    X, y, vectors = inputs
    values = vectors.values.copy()
    values[[2, 7]] = np.nan
    missing = ClassVectors(vectors.names, values, "test")
    with pytest.raises(RankshotError, match="'cat' has no vector: all its numbers are missing"):
        clone(peer).fit(X, y, missing)
    fitted = clone(peer).fit(X, y, vectors)
    with pytest.raises(RankshotError, match="'hen' has no vector"):
        fitted.predict(X, missing.select(TARGETS))


def test_wrong_shapes_and_values_are_named(inputs):
    X, y, vectors = inputs
    peer = ESZSL().fit(X, y, vectors)
    bad = X.copy()
    bad[3, 1] = np.inf
    wrong = [
        (lambda: ESZSL().fit(X, y[:-1], vectors), "X has 90 rows, but y has 89 labels"),
        (lambda: ESZSL().fit(X[:, 0], y, vectors), r"shape \(n, d\), not \(90,\)"),
        (lambda: ESZSL().fit(bad, y, vectors), "row 3, column 1 is inf"),
        (lambda: ESZSL().fit([["a"]], ["ant"], vectors), "X must be a table of numbers"),
        (lambda: ESZSL().fit(X, [None, *y[1:]], vectors), "y, row 0: .*not None"),
        (lambda: peer.predict(X[:, :4], vectors), r"shape \(n, 5\), not \(90, 4\)"),
        (
            lambda: peer.predict(X, ClassVectors(["hen"], [[1.0, 2.0]], "test")),
            "vectors have 2 numbers, but those of the training classes have 4",
        ),
    ]
    for call, message in wrong:
        with pytest.raises(RankshotError, match=message):
            call()


# ---- Missing numbers


def test_a_missing_number_is_the_mean_over_training_classes_that_have_it():
    nan = np.nan
    seen = ClassVectors(["ant", "bee", "cat"], [[1, nan, 5], [3, 8, nan], [nan, 2, nan]], "test")
    imputation = MeanImputation.from_training(seen)
    np.testing.assert_array_equal(
        imputation.complete(seen).values, [[1, 5, 5], [3, 8, 5], [2, 2, 5]]
    )
    target = ClassVectors(["hen", "ibis"], [[nan, nan, 7], [100, 100, nan]], "test")
    np.testing.assert_array_equal(imputation.complete(target).values, [[2, 5, 7], [100, 100, 5]])


def test_a_column_that_no_training_class_has_is_named():
    seen = ClassVectors(["ant", "bee"], [[1, np.nan], [2, np.nan]], "test")
    with pytest.raises(RankshotError, match=r"column 1 .* missing for all training classes"):
        MeanImputation.from_training(seen)


@peers
def test_peers_impute(peer, inputs):
    """Filling in by hand, class by class, changes nothing."""
    X, y, vectors = inputs
    holes, filled = vectors.values.copy(), vectors.values.copy()
    for row, column in [(0, 1), (4, 1), (3, 2), (7, 0)]:
        holes[row, column] = np.nan
    for row, column in [(0, 1), (4, 1), (3, 2), (7, 0)]:
        have = [holes[i, column] for i in range(6) if not np.isnan(holes[i, column])]
        filled[row, column] = sum(have) / len(have)
    holes, filled = (ClassVectors(vectors.names, v, "test") for v in (holes, filled))
    np.testing.assert_allclose(
        clone(peer).fit(X, y, holes).decision_function(X, holes.select(TARGETS)),
        clone(peer).fit(X, y, filled).decision_function(X, filled.select(TARGETS)),
        **rounding(peer),
    )


def test_iap_imputes_and_breaks_ties_by_name():
    vectors = ClassVectors(["ant", "bee", "cat"], [[9.0, 0.0], [0.0, np.nan], [1.0, 8.0]], "test")
    peer = IAP().fit(vectors)
    # Of bee's second number the mean is 4, above the mean of all, 22 / 6.
    assert peer.attributes_.prior.tolist() == pytest.approx([1 / 3, 2 / 3])
    same = ClassVectors(["owl", "auk"], [[9.0, 9.0], [9.0, 9.0]], "test")
    assert peer.predict([[0.2, 0.3, 0.5]], same).tolist() == ["auk"]
    assert clone(peer).get_params() == {}


# ---- Real features


@peers
def test_classes_that_were_not_trained_on_are_recognised(peer):
    """Sixty classes of CIFAR-100 to train on, ten others to tell apart; chance is .1.

    The vectors are mean features of the classes: they know more than words do, and need no file.
    """
    data = load_cifar()
    X, y = data.seen_train[:, :32], data.seen_train_label
    names = sorted(data.seen_classes)
    means = np.array([X[y == name].mean(axis=0)[:20] for name in names])
    vectors = ClassVectors(names, means, "mean features")
    seen, targets = names[:60], names[60:70]
    train, test = np.isin(y, seen), np.isin(y, targets)
    found = clone(peer).fit(X[train], y[train], vectors).predict(X[test], vectors.select(targets))
    assert (found == y[test]).mean() > 0.3
