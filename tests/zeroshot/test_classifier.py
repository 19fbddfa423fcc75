"""`ZeroShotClassifier` on a circle: eight seen classes around it, and new classes between them."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import rankshot as rs
from rankshot.core.errors import RankshotError
from rankshot.zeroshot.metrics import generalized_accuracy

# By angle, in eighths of a turn. Names are not in the order of angles.
SEEN = {"tiger": 0, "bus": 1, "ant": 2, "fox": 3, "whale": 4, "leopard": 5, "oak": 6, "pen": 7}
NEW = {"cat": 0.5, "zebra": 3.5, "dog": 5.5}
ITEMS = sorted(SEEN)
ALL = SEEN | NEW


def steps(targets):
    """How far apart on the circle; whole numbers and halves, so that ties are exact."""
    apart = [[abs(ALL[target] - SEEN[item]) for item in ITEMS] for target in targets]
    return np.minimum(apart, 8 - np.array(apart))


def similarity(targets):
    return rs.Similarity(4 - steps(targets), targets, ITEMS, source="circle")


def inputs(names, n=10, seed=1):
    angle = np.repeat([ALL[name] for name in names], n) * np.pi / 4
    noise = 0.3 * np.random.default_rng(seed).normal(size=(angle.size, 2))
    return 5 * np.column_stack([np.cos(angle), np.sin(angle)]) + noise, np.repeat(names, n)


X, Y = inputs(list(SEEN), 15, seed=0)
X_NEW, Y_NEW = inputs(list(NEW))
RANKINGS = similarity(list(NEW)).to_rankings()
TRAINED = LogisticRegression(max_iter=1000).fit(X, Y)


def pr(**options):
    return rs.ProbabilisticRanking(**{"k": 2} | options)


def zero_shot(estimator=None, **options):
    estimator = FrozenEstimator(TRAINED) if estimator is None else estimator
    return rs.ZeroShotClassifier(estimator, **{"head": pr(), "rankings": RANKINGS} | options)


# -------------------------------------------------------------------- what it recognises

ESTIMATORS = {
    "frozen": FrozenEstimator(TRAINED),
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
    np.testing.assert_array_equal(np.exp(zs.predict_log_proba(X_NEW)), zs.predict_proba(X_NEW))


def test_lists_that_name_some_classes_are_the_top_of_all(tmp_path):
    path = tmp_path / "rankings.jsonl"
    rs.write_rankings(RANKINGS.top(2), path)
    read = rs.read_rankings(path)
    assert set(read.items) < set(ITEMS)
    found, expected = zero_shot(rankings=read).fit(X, Y), zero_shot().fit(X, Y)
    np.testing.assert_array_equal(found.predict_proba(X_NEW), expected.predict_proba(X_NEW))


# -------------------------------------------------------------------- scikit-learn's manners


def test_a_frozen_classifier_is_left_alone_and_any_other_trained_as_a_copy():
    before = TRAINED.coef_.tobytes()
    zs = zero_shot().fit(X[::-1] + 100, Y)  # these inputs would teach it something else
    assert zs.estimator_.estimator is TRAINED
    assert TRAINED.coef_.tobytes() == before
    assert not hasattr(zs.head, "classes_")
    fresh = LogisticRegression(max_iter=1000)
    trained = zero_shot(fresh).fit(X, Y)
    assert not hasattr(fresh, "coef_")
    np.testing.assert_array_equal(trained.predict(X_NEW), zs.predict(X_NEW))


@pytest.mark.filterwarnings("ignore:the rankings of .* are the same:UserWarning")
def test_grid_search_over_k_and_the_prior():
    # All lists start alike, so that the first place tells nothing; the next two tell all.
    nearest = {"cat": ["tiger", "bus"], "dog": ["oak", "leopard"], "zebra": ["fox", "whale"]}
    orders = [["ant", *nearest[z][::turn]] for z in NEW for turn in (1, -1)]
    votes = rs.Rankings.from_orders(orders, items=ITEMS, targets=np.repeat(list(NEW), 2))
    grid = {"head__k": [1, 3], "head__prior": [rs.Mallows(), rs.PlackettLuce()]}
    zs = zero_shot(rankings=votes, head=pr(posterior="consensus", decay=0))
    search = GridSearchCV(zs, grid, cv=3)
    search.fit(X_NEW, Y_NEW)
    by_k = search.cv_results_["mean_test_score"].reshape(2, 2)
    np.testing.assert_allclose(by_k[0], 1 / 3)  # the first by name
    assert (by_k[1] > 0.95).all()
    assert search.best_params_["head__k"] == 3
    assert search.best_estimator_.estimator_.estimator is TRAINED
    assert isinstance(search.best_estimator_.head_.priors_["cat"], rs.Mallows)
    assert search.score(X_NEW, Y_NEW) == pytest.approx(search.best_score_)


# -------------------------------------------------------------------- seen classes as well


@pytest.mark.parametrize("estimator", [LogisticRegression(max_iter=1000), SVC(), LinearSVC()])
def test_seen_and_new_classes_compete(estimator):
    """With a gate that knows the circle; nothing else is learned from inputs of new classes."""
    zs = zero_shot(estimator, classes="all", rankings=similarity(list(ALL)).to_rankings())
    head = zs.fit(X, Y).head_
    features = [head.gate_features(rs.scores_of(zs.estimator_, some)) for some in (X_NEW, X)]
    zs.set_params(gate=rs.zeroshot.fit_gate(*features)).fit(X, Y)
    assert zs.classes_.tolist() == sorted(ALL)
    assert zs.classes_[zs.seen_].tolist() == ITEMS
    assert (zs.predict(inputs(list(SEEN), 15, seed=2)[0]) == Y).mean() > 0.8
    assert (zs.predict(inputs(list(NEW), 10, seed=2)[0]) == Y_NEW).mean() > 0.8


@pytest.mark.parametrize("none", [False, True])
def test_the_inputs_are_the_reference_of_the_gate_and_of_the_head(none):
    reference, held_out = rs.scores_of(TRAINED, X), rs.scores_of(TRAINED, X_NEW)
    for head in (rs.WeightedMean(), pr()):
        by_hand = rs.SeenAndNew(clone(head).fit(RANKINGS, reference=reference), none=none).fit(
            reference
        )
        zs = zero_shot(head=head, classes="all", none=none).fit(X, Y)
        assert zs.classes_.tolist() == sorted([*ALL, *(["none of these"] if none else [])])
        assert zs.classes_[zs.seen_].tolist() == ITEMS
        expected = by_hand.predict_proba(held_out)
        np.testing.assert_array_equal(zs.predict_proba(X_NEW), expected)
        # No labels are needed.
        np.testing.assert_array_equal(zs.fit(X).predict_proba(X_NEW), expected)


def test_a_frozen_classifier_needs_no_inputs_of_its_seen_classes():
    by_hand = rs.SeenAndNew(pr().fit(RANKINGS)).fit()
    zs = zero_shot(classes="all").fit()
    assert zs.classes_.tolist() == sorted(ALL)
    expected = by_hand.predict_proba(rs.scores_of(TRAINED, X_NEW))
    np.testing.assert_array_equal(zs.predict_proba(X_NEW), expected)


def test_the_calibration_trades_seen_for_new():
    zs = zero_shot(classes="all").fit(X, Y)
    before, both, truth = zs.predict_log_proba(X_NEW), np.vstack([X, X_NEW]), [*Y, *Y_NEW]
    found = []
    for constant in [-60, *np.linspace(-3, 3, 25), 60]:
        zs.set_params(calibration=constant)
        found.append(generalized_accuracy(truth, zs.predict(both), ITEMS))
        expected = log_softmax(before - constant * np.isin(zs.classes_, ITEMS), axis=1)
        np.testing.assert_allclose(zs.predict_log_proba(X_NEW), expected, atol=1e-12)
    assert all(a.new <= b.new and a.seen >= b.seen for a, b in pairwise(found))
    assert found[0].new == found[-1].seen == 0
    assert found[-1].new == zero_shot().fit(X, Y).score(X_NEW, Y_NEW)
    assert max(a.harmonic for a in found) > 0.8


# -------------------------------------------------------------------- fewer answers, or none


def test_what_is_not_probable_enough_is_rejected():
    zs = zero_shot().fit(X, Y)
    between = np.vstack([X_NEW, X])
    answers, largest = zs.predict(between), zs.predict_proba(between).max(axis=1)
    assert largest.min() < 0.6 < largest.max()
    for threshold in (0.0, 0.6, np.sort(largest)[40], 1.0):
        zs.set_params(reject_below=threshold)
        expected = np.where(largest >= threshold, answers, "rejected")
        np.testing.assert_array_equal(zs.predict(between), expected)


# -------------------------------------------------------------------- why

OTHERS = rs.Rankings.from_orders(
    [["tiger", "bus", "pen"], ["oak", "pen", "fox"], [["ant", "oak"], "bus", "pen"]],
    items=ITEMS,
    targets=["cat", "dog", "dog"],
    sources="me",
    weights=[1, 3, 0.5],
)
VOTES = rs.Rankings.concatenate([RANKINGS, OTHERS])
TABLE = similarity(list(NEW))
HOLED = rs.Similarity([[np.nan, *row[1:]] for row in TABLE.values], TABLE.targets, ITEMS)
PAPER = {"posterior": "consensus", "decay": 0}
EXPLAINED = {
    "default": zero_shot(head=None, rankings=VOTES),
    "consensus of several": zero_shot(head=pr(k=4, prior=rs.Mallows(), **PAPER), rankings=VOTES),
    "one-vs-one": zero_shot(SVC(), head=pr(k=3, **PAPER)),
    "mean": zero_shot(SVC(), head=pr(k=2), rankings=VOTES),
    "weighted": zero_shot(SVC(), head=rs.WeightedMean(), rankings=VOTES),
    "direct similarity": zero_shot(
        head=rs.zeroshot.paper.DirectSimilarity(n_similar=3), rankings=TABLE
    ),
    "ConSE": zero_shot(head=rs.zeroshot.paper.ConSE(n_classes=4), rankings=HOLED),
}


@pytest.mark.parametrize("zs", EXPLAINED.values(), ids=EXPLAINED)
def test_contributions_of_the_items_add_up_to_the_whole_difference(zs):
    log_proba, top = zs.fit(X, Y).predict_log_proba(X_NEW), zs.top(X_NEW, len(NEW))
    column = {name: i for i, name in enumerate(zs.classes_)}
    for target, against in product((None, "zebra"), (None, "dog")):
        for row, why in enumerate(zs.explain(X_NEW, target=target, against=against)):
            assert (why.target, why.against) == (target or top.labels[row, 0], against)
            mine, all_ = log_proba[row, column[why.target]], log_proba[row]
            base = all_.mean() if against is None else all_[column[against]]
            assert sum(contribution for _, contribution in why.items) == pytest.approx(
                mine - base, abs=1e-9
            )
            assert why.probability == pytest.approx(np.exp(mine))
            assert [name for name, _ in why.alternatives[:3]] == top.labels[row].tolist()
            strength = [abs(contribution) for _, contribution in why.items]
            assert strength == sorted(strength, reverse=True)
            assert 0 not in strength
            assert zs.rankings is not HOLED or "ant" not in dict(why.items)


def test_new_classes_are_explained_among_themselves_and_so_is_the_gate():
    zs = zero_shot(head=pr(k=3), classes="all").fit(X, Y)
    new = ~zs.seen_
    inner, both = zs.head_.head, np.vstack([X_NEW, X])
    scores = rs.scores_of(TRAINED, both)
    log_proba, labels = zs.predict_log_proba(both), zs.predict(both)
    log_odds = np.log(np.exp(log_proba[:, new]).sum(1) / np.exp(log_proba[:, zs.seen_]).sum(1))
    among_new = rs.explain(inner, scores)
    for row, why in enumerate(zs.explain(both, against=None)):
        assert why.target == labels[row]
        assert why.probability == pytest.approx(np.exp(log_proba[row].max()))
        assert sum(term for _, term in why.gate) == pytest.approx(log_odds[row])
        if why.target in NEW:
            alone = among_new[row]
            assert (why.target, why.items) == (alone.target, alone.items)
            assert why.sources == alone.sources
        else:
            assert (why.items, why.sources) == ((), ())
    assert {why.target in NEW for why in zs.explain(both)} == {True, False}
    with pytest.raises(rs.RankshotError, match="no class 'tiger'"):
        zs.explain(X_NEW, against="tiger")


@pytest.mark.parametrize("decay", [0, 0.5])
def test_an_items_push_is_how_much_its_choice_beats_chance(decay):
    orders, targets = [["tiger", "bus"], ["bus", "oak"]], ["cat", "dog"]
    lists = rs.Rankings.from_orders(orders, items=ITEMS, targets=targets)
    f = dict(zip(ITEMS, TRAINED.decision_function(X_NEW[:1])[0], strict=True))

    def choice(item, gone=None):
        left = [np.exp(f[name]) for name in ITEMS if name != gone]
        return np.log(np.exp(f[item]) / sum(left)) - np.log(1 / len(left))

    zs = zero_shot(rankings=lists, head=pr(decay=decay, temperature=1)).fit(X, Y)
    (why,) = zs.explain(X_NEW[:1], target="cat", against="dog")
    found, second = dict(why.items), 2**-decay
    assert found.keys() == {"tiger", "bus", "oak"}
    assert found["tiger"] == pytest.approx(choice("tiger"))
    assert found["bus"] == pytest.approx(second * choice("bus", gone="tiger") - choice("bus"))
    assert found["oak"] == pytest.approx(-second * choice("oak", gone="bus"))


@pytest.mark.parametrize("estimator", [FrozenEstimator(TRAINED), SVC()])
@pytest.mark.parametrize("against", [None, "cat"])
@pytest.mark.parametrize(
    "head", [pr(), rs.WeightedMean(source_weights={"circle": 1, "me": 1})], ids=["pr", "wm"]
)
def test_each_source_is_taken_alone(estimator, against, head):
    zs = zero_shot(estimator, head=head, rankings=VOTES).fit(X, Y)
    found = zs.explain(X_NEW, target="dog", against=against)
    for source in ("circle", "me"):
        alone = clone(zs).set_params(rankings=VOTES.select(source=source)).fit(X, Y)
        log_proba = alone.predict_log_proba(X_NEW)
        base = log_proba if against is None else log_proba[:, alone.classes_ == against]
        expected = log_proba[:, alone.classes_ == "dog"].ravel() - base.mean(axis=1)
        np.testing.assert_allclose([dict(why.sources)[source] for why in found], expected)
    # One of the sources knows no zebra, and has nothing to say for or against it.
    assert [name for name, _ in zs.explain(X_NEW, target="zebra")[0].sources] == ["circle"]
    assert [name for name, _ in zs.explain(X_NEW, against="zebra")[0].sources] == ["circle"]


# ------------------------------------------------------------------ what a user should be told


@pytest.mark.parametrize("posterior", ["mean", "sum"])
def test_targets_with_the_same_ranking_are_remarked_on(posterior):
    same = rs.Rankings.from_orders(
        [list(RANKINGS.items[:3])] * 2, items=RANKINGS.items, targets=["one", "two"]
    )
    with pytest.warns(UserWarning, match="the rankings of 'one', 'two' are the same"):
        zero_shot(rankings=same, head=pr(posterior=posterior)).fit(X, Y)
    with pytest.warns(UserWarning, match="is the only class"):
        zero_shot(rankings=same.select(target="one"), head=pr(posterior=posterior)).fit(X, Y)


def test_a_head_with_a_reference_is_refused():
    """Its reference would be lost without notice; used directly, the head keeps it."""
    usual = rs.scores_of(TRAINED, X)
    head = pr().fit(RANKINGS, reference=usual)
    message = r"the head was fitted with a reference, .*head\.predict\(scores_of\(estimator, X\)\)"
    with pytest.raises(rs.RankshotError, match=message):
        zero_shot(head=head).fit(X, Y)
    # One that was fitted without is fitted again, as ever; so is a copy.
    for other in (pr().fit(RANKINGS), clone(head)):
        found = zero_shot(head=other).fit(X, Y).predict(X_NEW)
        np.testing.assert_array_equal(found, zero_shot().fit(X, Y).predict(X_NEW))


# -------------------------------------------------------------------- examples, evidence, a batch


def opinion(X):
    """The direction of each new class on the circle."""
    angles = np.array(list(NEW.values())) * np.pi / 4
    return rs.Scores(np.asarray(X) @ np.array([np.cos(angles), np.sin(angles)]), list(NEW))


def described(X, features=None, evidence=None):
    scores = rs.scores_of(TRAINED, X)
    return rs.Scores(scores.values, scores.items, scores.kind, features, evidence)


EXAMPLES = X_NEW[::6], Y_NEW[::6]


@pytest.mark.parametrize("classes", ["new", "all"])
def test_examples_and_evidence_are_those_of_the_head(classes):
    zs = zero_shot(head=None, classes=classes)
    zs.fit(X, Y, examples=EXAMPLES, evidence=(X_NEW[::2], opinion))
    new, given, table = (described(x, x, opinion(x)) for x in (X_NEW, EXAMPLES[0], X))
    weighed = new[::2]
    reference = {"reference": table} if classes == "all" else {}
    lists = RANKINGS.change_items(tuple(TRAINED.classes_))
    head = rs.WeightedMean().fit(
        lists, examples=(given, EXAMPLES[1]), evidence=weighed, **reference
    )
    if classes == "all":
        head = rs.SeenAndNew(head).fit(table)
    np.testing.assert_allclose(zs.predict_proba(X_NEW), head.predict_proba(new), rtol=1e-9)
    assert zs.explain(X_NEW[:1])[0].examples is not None


def test_features_are_what_the_last_step_sees():
    scaler = StandardScaler().fit(X)
    pipeline = make_pipeline(scaler, LogisticRegression()).fit(X, Y)
    search = GridSearchCV(pipeline, {"logisticregression__C": [1.0]}, cv=2).fit(X, Y)
    for estimator in (pipeline, FrozenEstimator(search)):
        found = rs.scores_of(estimator, X, features=True)
        np.testing.assert_allclose(found.features, scaler.transform(X))
        assert rs.scores_of(estimator, X).features is None
    assert rs.scores_of(TRAINED, csr_array(X), features=True).features.nnz


def test_texts_alone_are_compared_by_scores():
    class Reader(LogisticRegression):
        def decision_function(self, X):
            return super().decision_function([[float(word) for word in text.split()] for text in X])

    reader = Reader(max_iter=1000).fit(X, Y)
    texts = np.array([f"{a} {b}" for a, b in X_NEW])
    zs = zero_shot(FrozenEstimator(reader), head=None)
    zs.fit(examples=(texts[::6], Y_NEW[::6]))
    plain = rs.WeightedMean().fit(
        RANKINGS.change_items(tuple(TRAINED.classes_)), examples=(described(X_NEW[::6]), Y_NEW[::6])
    )
    expected = plain.predict_proba(described(X_NEW))
    np.testing.assert_allclose(zs.predict_proba(texts), expected, rtol=1e-9)


def test_a_batch_is_decided_together():
    batch, labels = inputs(list(NEW), 40, seed=5)
    zs = zero_shot(head=None, batch=True).fit(examples=EXAMPLES)
    refined = rs.BatchRefinement(zs.head_)
    refined.fit(described(batch, batch), (described(*[EXAMPLES[0]] * 2), EXAMPLES[1]))
    expected = refined.predict_proba(described(batch, batch))
    np.testing.assert_allclose(zs.predict_proba(batch), expected, rtol=1e-9)
    assert np.mean(zs.predict(batch) == labels) > 0.9


WRONG = {
    "batch": ({"batch": True, "classes": "all"}, {}, "batch=True needs classes='new'"),
    "no pair": ({}, {"examples": X_NEW}, "examples must be a pair, inputs and labels"),
    "no function": ({}, {"evidence": (X, X)}, "evidence must be a pair, inputs and a function of"),
    "seen": ({}, {"examples": (X[:1], ["fox"])}, "'fox' is a seen class"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_examples_and_evidence(name):
    options, given, message = WRONG[name]
    with pytest.raises(RankshotError, match=message):
        zero_shot(**{"head": None} | options).fit(X, Y, **given)


def test_rankings_may_be_a_dict():
    orders = dict(zip(RANKINGS.targets.tolist(), RANKINGS.top(2).orders(), strict=True))
    by_dict = zero_shot(rankings={name: list(order) for name, order in orders.items()}).fit()
    by_rankings = zero_shot(rankings=RANKINGS.top(2)).fit()
    np.testing.assert_array_equal(by_dict.predict_proba(X_NEW), by_rankings.predict_proba(X_NEW))
