"""`ZeroShotClassifier` on a circle: eight seen classes around it, and new classes between them."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import rankshot as rs
from rankshot.zeroshot import Settings
from refusals import refuses

# By angle, in eighths of a turn. Names are not in the order of angles.
SEEN = {"tiger": 0, "bus": 1, "ant": 2, "fox": 3, "whale": 4, "leopard": 5, "oak": 6, "pen": 7}
NEW = {"cat": 0.5, "zebra": 3.5, "dog": 5.5}
ITEMS = sorted(SEEN)
ALL = SEEN | NEW


def inputs(names, n=10, seed=1):
    angle = np.repeat([ALL[name] for name in names], n) * np.pi / 4
    noise = 0.3 * np.random.default_rng(seed).normal(size=(angle.size, 2))
    return 5 * np.column_stack([np.cos(angle), np.sin(angle)]) + noise, np.repeat(names, n)


def orders(targets):
    def apart(z, item):
        d = abs(ALL[z] - SEEN[item])
        return min(d, 8 - d)

    return {z: sorted(ITEMS, key=lambda item: apart(z, item))[:4] for z in targets}


X, Y = inputs(list(SEEN), 15, seed=0)
X_NEW, Y_NEW = inputs(list(NEW))
RANKINGS = orders(NEW)
TRAINED = LogisticRegression(max_iter=1000).fit(X, Y)


def zero_shot(estimator=None, **options):
    estimator = FrozenEstimator(TRAINED) if estimator is None else estimator
    return rs.ZeroShotClassifier(estimator, **{"rankings": RANKINGS} | options)


def by_hand(**options):
    lists = rs.Rankings.from_orders(RANKINGS.values(), items=ITEMS, targets=list(RANKINGS))
    return rs.WeightedMean().fit(lists, **options)


ESTIMATORS = {
    "multiclass": LogisticRegression(max_iter=1000),
    "one-vs-rest": LinearSVC(),
    "one-vs-one": SVC(),
    "probabilities": RandomForestClassifier(100, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), SVC(kernel="linear")),
}


@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_new_classes_are_recognised_by_any_classifier(estimator):
    zs = zero_shot(estimator).fit(X, Y)
    assert zs.classes_.tolist() == sorted(NEW)
    assert not zs.seen_.any()
    assert (zs.predict(X_NEW) == Y_NEW).mean() > 0.95
    np.testing.assert_allclose(zs.predict_proba(X_NEW).sum(axis=1), 1)
    assert not hasattr(estimator, "classes_"), "a copy was trained"


def test_a_fitted_classifier_is_used_as_it_is_and_its_inputs_are_the_reference():
    """Nothing that is passed is ignored."""
    before, scores = TRAINED.coef_.tobytes(), rs.scores_of(TRAINED, X_NEW)
    reference = rs.scores_of(TRAINED, X)
    for estimator in (TRAINED, FrozenEstimator(TRAINED)):
        alone = zero_shot(estimator).fit()
        np.testing.assert_array_equal(alone.predict_proba(X_NEW), by_hand().predict_proba(scores))
        with_reference = zero_shot(estimator).fit(X)
        np.testing.assert_array_equal(
            with_reference.predict_proba(X_NEW),
            by_hand(reference=reference).predict_proba(scores),
        )
    assert TRAINED.coef_.tobytes() == before
    with refuses("y"):
        zero_shot(LogisticRegression()).fit(X)


def test_rankings_are_a_dict_rankings_a_file_or_a_data_frame(tmp_path):
    pandas = pytest.importorskip("pandas")
    lists = rs.Rankings.from_orders(RANKINGS, items=ITEMS)
    rs.write_rankings(lists, tmp_path / "rankings.jsonl")
    frame = pandas.DataFrame(
        [(z, row, place) for z, order in RANKINGS.items() for place, row in enumerate(order, 1)],
        columns=["target", "item", "rank"],
    )
    expected = zero_shot().fit().predict_proba(X_NEW)
    for rankings in (lists, tmp_path / "rankings.jsonl", frame):
        found = zero_shot(rankings=rankings).fit().predict_proba(X_NEW)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_seen_and_new_classes_compete():
    zs = zero_shot(LogisticRegression(max_iter=1000), classes="all").fit(X, Y)
    # The last quarter of the inputs is the reference, if it has ten.
    assert zs.head_.about["budget"]["n_inputs"] == len(Y) / 4
    few = np.arange(len(Y)) % 15 < 5
    assert zs.fit(X[few], Y[few]).head_.about["budget"]["n_inputs"] == 10
    few[0] = False
    assert zs.fit(X[few], Y[few]).head_.about["budget"] is None
    zs.fit(X, Y)
    assert zs.classes_.tolist() == sorted(ALL)
    assert zs.classes_[zs.seen_].tolist() == ITEMS
    assert (zs.predict(inputs(list(SEEN), 15, seed=2)[0]) == Y).mean() > 0.7


def test_settings_of_a_rehearsal_and_a_grid_search():
    zs = zero_shot(settings=Settings(k=1, temperature=2.0)).fit()
    assert zs.head_.temperature == 2
    search = GridSearchCV(zero_shot(), {"settings": [Settings(k=1), Settings(k=4)]}, cv=3)
    search.fit(X_NEW, Y_NEW)
    assert search.score(X_NEW, Y_NEW) > 0.9


def test_examples_and_batches_are_those_of_the_head():
    scores = rs.scores_of(TRAINED, X_NEW, features=True)
    zs = zero_shot().fit(examples=(X_NEW[::5], Y_NEW[::5]))
    head = by_hand(examples=(scores[::5], Y_NEW[::5]))
    np.testing.assert_allclose(zs.predict_proba(X_NEW), head.predict_proba(scores))
    plain = rs.scores_of(TRAINED, X_NEW)
    together = zero_shot(batch=True).fit()
    refined = rs.zeroshot.BatchRefinement(by_hand()).fit(plain)
    np.testing.assert_allclose(together.predict_proba(X_NEW), refined.predict_proba(plain))
    why = zs.explain(X_NEW[:1], against="dog")[0]
    assert why.target == "cat"


WRONG = {
    "estimator": {"estimator": StandardScaler()},
    "rankings": {"rankings": None},
    "classes": {"classes": "some"},
    "batch": {"batch": "always"},
}


@pytest.mark.parametrize("parameter", WRONG)
def test_refused(parameter):
    with refuses(parameter):
        zero_shot(**WRONG[parameter]).fit(X, Y)


def test_examples_are_a_pair():
    for examples in ([X_NEW, Y_NEW], (X_NEW, Y_NEW, None), (X_NEW, None), (X_NEW, Y_NEW[1:])):
        with refuses("examples"):
            zero_shot().fit(examples=examples)


def test_classes_that_cannot_be_distinguished_are_named():
    same = {"cat": ["tiger", "bus"], "lion": ["tiger", "bus"], "dog": ["oak"]}
    with pytest.warns(UserWarning, match="'cat', 'lion' cannot be distinguished"):
        zero_shot(rankings=same).fit()
