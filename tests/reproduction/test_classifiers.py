"""Classifiers by scikit-learn as numbers, and a cache that trains none of them twice."""

import numpy as np
import pytest
from joblib import parallel_config
from reproduction.classifiers import (
    KINDS,
    LEAST_SQUARES,
    ClassifierCache,
    make_estimator,
    train_classifier,
)
from sklearn.datasets import make_blobs

from rankshot.zeroshot.estimator_scores import scores_of

NAMES = np.array(["elk", "bus", "dog", "cat"])


@pytest.fixture(scope="module")
def data():
    X, number = make_blobs(120, n_features=5, centers=4, cluster_std=3.0, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X.astype(np.float32), NAMES[number]


@pytest.fixture(scope="module", autouse=True)
def in_this_process():
    """Processes of joblib take longer to start than these classifiers take to train."""
    with parallel_config("sequential"):
        yield


# ---- The numbers


@pytest.mark.parametrize("setting", ["one-vs-rest", "multiclass", LEAST_SQUARES])
def test_scores_are_the_decision_function(data, setting):
    (X, y), C = data, 0.1
    found, model = train_classifier(setting, C, X, y), make_estimator(setting, C).fit(X, y)
    assert found.classes == tuple(model.classes_) == tuple(sorted(NAMES))
    scores = found.scores(X)
    np.testing.assert_allclose(scores.columns, model.decision_function(X), rtol=1e-4, atol=1e-4)
    assert scores.kind == KINDS[setting] == scores_of(model, X).kind
    assert (found.coef.dtype, found.intercept.dtype) == (np.float32, np.float32)
    assert (found.predict(X) == model.predict(X)).mean() > 0.99


# ---- The cache


@pytest.mark.parametrize("setting", ["one-vs-one", LEAST_SQUARES])
def test_what_is_kept_is_not_trained_again(data, tmp_path, setting):
    said, place = [], tmp_path / "deep" / "down"
    first, again = (
        ClassifierCache("some", *data, place, said.append).load_or_train(setting, 0.1)
        for _ in range(2)
    )
    assert said == [f"training {setting}, C = 0.1, on 4 classes"]
    assert (again.kind, again.classes) == (first.kind, first.classes)
    np.testing.assert_array_equal(again.coef, first.coef)
    np.testing.assert_array_equal(again.intercept, first.intercept)
    name = f"some-{setting.replace(' ', '-')}-0.1.npz"
    assert [path.name for path in place.iterdir()] == [name]
