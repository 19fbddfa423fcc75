"""What all peers have in common: names, ties, missing numbers, messages, scikit-learn's manners."""

import numpy as np
import pytest
from reproduction.peers.attributes import DAP
from reproduction.peers.base import MeanImputation
from reproduction.peers.linear import ESZSL, SAE, VectorRegression
from sklearn.base import clone

from rankshot.sources.vectors import ClassVectors

pytestmark = pytest.mark.slow

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
