from itertools import permutations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.scores import pair_columns
from refusals import refuses

# Around a circle, so that each can be told from the rest by a line; not in the order of names.
NAMES = np.array(["tiger", "bus", "leopard", "ant", "fox"])
NUMBERS = np.array([30, 4, 100, 7, 20])


def around_a_circle(labels, n=15, std=0.5, seed=0):
    angle = 2 * np.pi * np.arange(len(labels)) / len(labels)
    centers = 5 * np.column_stack([np.cos(angle), np.sin(angle)]) + [20, -3]
    noise = std * np.random.default_rng(seed).normal(size=(len(labels), n, 2))
    return (centers[:, None] + noise).reshape(-1, 2), np.repeat(labels, n), centers


def fitted(estimator, labels=NAMES, **options):
    X, y, centers = around_a_circle(labels, **options)
    return estimator.fit(X, y), X, y, centers


def speaks_for(scores, i, j):
    """Return every row's preference for the class named i over the one named j."""
    i, j = scores.items.index(str(i)), scores.items.index(str(j))
    if scores.kind != "one-vs-one":
        return scores.values[:, i] - scores.values[:, j]
    column, sign = pair_columns(len(scores.items))
    return sign[i, j] * scores.pairs[:, column[i, j]]


def assert_every_pair_knows_its_classes(scores, y):
    """All training inputs are on their side of every boundary between two classes."""
    labels = np.unique(y)
    assert scores.items == tuple(str(label) for label in labels)
    for i, j in permutations(labels, 2):
        assert (speaks_for(scores, i, j)[y == i] > 0).all(), (i, j)


def platt_svm():
    return CalibratedClassifierCV(SVC(kernel="linear"), method="sigmoid", cv=2)


ONE_VS_ONE = [
    SVC(),
    SVC(kernel="linear", decision_function_shape="ovr", break_ties=True),
    NuSVC(nu=0.1),
    OneVsOneClassifier(SVC(kernel="linear")),
    OneVsOneClassifier(platt_svm()),
    OneVsOneClassifier(make_pipeline(StandardScaler(), LogisticRegression())),
]
ONE_VS_REST = [
    LinearSVC(random_state=0),
    SGDClassifier(random_state=0),
    Perceptron(random_state=0),
    RidgeClassifier(),
    OneVsRestClassifier(SVC()),
    OneVsRestClassifier(CalibratedClassifierCV(SVC(), cv=2)),
    OneVsRestClassifier(GaussianNB()),
    OneVsRestClassifier(make_pipeline(StandardScaler(), SVC())),
]
MULTICLASS = [
    LogisticRegression(),
    LinearDiscriminantAnalysis(),
    HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5),
    AdaBoostClassifier(DecisionTreeClassifier(max_depth=4), random_state=0),
    RandomForestClassifier(n_estimators=20, random_state=0),
    GaussianNB(),
    KNeighborsClassifier(),
    platt_svm(),
]
ALL = {"one-vs-one": ONE_VS_ONE, "one-vs-rest": ONE_VS_REST, "multiclass": MULTICLASS}
CASES = [
    pytest.param(model, kind, id=" ".join(str(model).split()))
    for kind, models in ALL.items()
    for model in models
]


@pytest.mark.parametrize(("estimator", "kind"), CASES)
def test_kind_columns_and_signs(estimator, kind):
    """Of five classes and of two, by names or numbers."""
    for labels in (NAMES, np.array([30, 4])):
        model, X, y, _ = fitted(make_pipeline(StandardScaler(), estimator), labels)
        scores = scores_of(model, X)
        assert scores.kind == kind
        assert_every_pair_knows_its_classes(scores, y)
    assert scores.columns.shape[1] == (1 if kind == "one-vs-one" else 2)


# -------------------------------------------------------------------- values


@pytest.mark.parametrize("estimator", MULTICLASS, ids=lambda model: type(model).__name__)
def test_the_softmax_of_multiclass_scores_is_predict_proba(estimator):
    X, y, _ = around_a_circle(NAMES, std=2.0)
    X = StandardScaler().fit_transform(X)
    model = estimator.fit(X, y)
    # The millionth that a probability of zero counts as is all that may differ.
    assert softmax(scores_of(model, X).values, axis=1) == pytest.approx(
        model.predict_proba(X), rel=1e-5, abs=1e-5
    )


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_the_shape_of_a_decision_function_does_not_matter(shape):
    model, X, _, _ = fitted(NuSVC(nu=0.1, decision_function_shape=shape))
    scores = scores_of(model, X)
    assert model.decision_function_shape == shape, "the estimator is left alone"
    assert model.decision_function(X).shape == (len(X), 5 if shape == "ovr" else 10)
    model.set_params(decision_function_shape="ovo")
    np.testing.assert_array_equal(scores.columns, model.decision_function(X))


def test_two_classes_have_the_decision_value_as_log_odds():
    for estimator in (LogisticRegression(), OneVsRestClassifier(SVC())):
        model, X, _, _ = fitted(estimator, NAMES[:2], std=3.0)
        f = model.decision_function(X)
        np.testing.assert_array_equal(scores_of(model, X).values, np.column_stack([-f / 2, f / 2]))
    svc, *_ = fitted(SVC(), NAMES[:2], std=3.0)
    np.testing.assert_array_equal(scores_of(svc, X).columns, -svc.decision_function(X)[:, None])


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, OneVsOneClassifier])
def test_binary_probabilities_become_log_odds(wrapper):
    model, X, _, _ = fitted(wrapper(platt_svm()), std=3.0)
    proba = np.column_stack([each.predict_proba(X)[:, 1] for each in model.estimators_])
    values = scores_of(model, X).columns
    sign = -1 if wrapper is OneVsOneClassifier else 1
    assert expit(sign * values) == pytest.approx(proba, rel=1e-5, abs=1e-6)
    assert 0.01 < proba.min(axis=1).mean() < 0.99, "so that there is something to compare"


def test_naive_bayes_keeps_what_probabilities_lose():
    model, _, _, centers = fitted(GaussianNB(), std=0.05)
    assert (model.predict_proba(centers) == 0).sum() >= 10
    values = scores_of(model, centers).values
    np.testing.assert_array_equal(values, model.predict_log_proba(centers))


# -------------------------------------------------------------------- inside one another


@pytest.mark.parametrize("inside", [SVC(), LogisticRegression()])
def test_wrappers_are_seen_through(inside):
    X, y, _ = around_a_circle(NAMES)
    scaled = StandardScaler().fit(X)
    expected = scores_of(inside.fit(scaled.transform(X), y), scaled.transform(X))

    pipeline = make_pipeline("passthrough", StandardScaler(), inside).fit(X, y)
    search = GridSearchCV(pipeline, {"standardscaler__with_mean": [True]}, cv=2).fit(X, y)
    bare = make_pipeline(scaled, FrozenEstimator(inside)).fit(X, y)
    for model in (pipeline, search, bare, FrozenEstimator(search), make_pipeline(search)):
        found = scores_of(model, X)
        assert (found.items, found.kind) == (expected.items, expected.kind)
        assert found.columns == pytest.approx(expected.columns, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("estimator", [OneVsOneClassifier(SVC()), OneVsRestClassifier(SVC())])
def test_data_frames_and_sparse_inputs(estimator):
    pandas = pytest.importorskip("pandas")
    X, y, _ = around_a_circle(NAMES)
    expected = scores_of(estimator.fit(X, y), X).columns
    frame = pandas.DataFrame(X, columns=["length", "width"])
    np.testing.assert_array_equal(scores_of(estimator.fit(frame, y), frame).columns, expected)
    assert scores_of(estimator, frame).features is None
    np.testing.assert_array_equal(scores_of(estimator, frame, features=True).features, X)
    sparse = csr_array(X)
    assert scores_of(estimator.fit(sparse, y), sparse).columns == pytest.approx(expected, abs=1e-3)


# -------------------------------------------------------------------- what is refused


def test_what_has_no_scores():
    X, y, _ = around_a_circle(NUMBERS)
    Y = np.column_stack([y == 4, y == 7, X[:, 0] > 20]).astype(int)
    vote = VotingClassifier([("svc", SVC()), ("tree", DecisionTreeClassifier())]).fit(X, y)
    for model in (
        vote,
        Ridge().fit(X, y),
        OneVsRestClassifier(Ridge()).fit(X, y),
        GridSearchCV(SVC(), {"C": [1]}, refit=False, cv=2).fit(X, y),
        OneVsRestClassifier(SVC()).fit(X, Y),
        RandomForestClassifier(3).fit(X, Y),
    ):
        with refuses("estimator"):
            scores_of(model, X)
