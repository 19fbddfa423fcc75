"""`SeenClassSearch`, on a circle of twelve classes."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.zeroshot.metrics import mean_class_accuracy

# By angle, in twelfths of a turn. Names are not in the order of angles.
ALL = dict(zip(["g", "k", "b", "north", *"lhcja", "south", *"di"], range(12), strict=True))
NEW = ["north", "south"]
SEEN = [name for name in ALL if name not in NEW]
ITEMS = sorted(SEEN)
# Two that have a class between them, which is next to both.
GROUPS = [["h", "j"], ["i", "k"]]

FITTED = []
"""The classes that each `Nearest` was trained on."""


class Nearest(ClassifierMixin, BaseEstimator):
    """Scores are distances to the means of classes; what was fitted is written down."""

    def __init__(self, scale=1.0):
        self.scale = scale

    def fit(self, X, y):
        FITTED.append(set(y))
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == name].mean(axis=0) for name in self.classes_])
        return self

    def decision_function(self, X):
        return -self.scale * ((X[:, None] - self.means_) ** 2).sum(axis=2)


def inputs(names, n=12, seed=0, std=0.3):
    angle = np.repeat([ALL[name] for name in names], n) * np.pi / 6
    noise = std * np.random.default_rng(seed).normal(size=(angle.size, 2))
    return 5 * np.column_stack([np.cos(angle), np.sin(angle)]) + noise, np.repeat(names, n)


X, Y = inputs(SEEN)


def way(start, end):
    """How far it is from one to the other around the circle, clockwise or not (negative)."""
    return (ALL[end] - ALL[start] + 6) % 12 - 6


def similarity(targets):
    apart = [[abs(way(target, item)) for item in ITEMS] for target in targets]
    return rs.Similarity(6 - np.array(apart), targets, ITEMS)


def good_to_the_second_place():
    """The class in the middle of a group comes first, and that on the other side second.

    The others follow: for one of each group the nearest first, for the other the farthest.
    """
    orders = []
    for name in SEEN:
        side = -1 if name in "jk" else 1
        first, second, *others = sorted(
            set(SEEN) - {name}, key=lambda item: (abs(way(name, item)), -side * way(name, item))
        )
        orders.append([first, second, *others[::side]])
    return rs.Rankings.from_orders(orders, items=ITEMS, targets=SEEN)


def with_new(rankings, orders):
    new = rs.Rankings.from_orders(orders, items=ITEMS, targets=NEW)
    return rs.Rankings.concatenate([rankings, new])


RANKINGS = with_new(good_to_the_second_place(), [["b", "l"], ["a", "d"]])


def zero_shot(estimator=None, **options):
    defaults = {"head": rs.ProbabilisticRanking(k=2, decay=0), "rankings": RANKINGS}
    return rs.ZeroShotClassifier(estimator or Nearest(), **defaults | options)


def frozen():
    return FrozenEstimator(Nearest().fit(X, Y))


def search(estimator=None, grid=None, held_out=GROUPS, **options):
    zs = estimator if isinstance(estimator, rs.ZeroShotClassifier) else zero_shot(estimator)
    grid = {"head__k": [1, 2, 8]} if grid is None else grid
    return rs.SeenClassSearch(zs, grid, held_out=held_out, **options)


# -------------------------------------------------------------------- what is chosen


@pytest.mark.parametrize("estimator", [Nearest(), frozen()], ids=["trained", "frozen"])
def test_the_best_k_is_found(estimator):
    found = search(estimator).fit(X, Y)
    assert found.best_params_ == {"head__k": 2}
    assert found.best_score_ == found.trials_[1].score > 0.9
    # By the first place alone the two of a group cannot be told apart; later ones mislead.
    assert found.trials_[0].score == 0.5
    assert found.trials_[2].score < 0.7
    assert found.best_estimator_.head_.get_params()["k"] == 2
    assert found.best_estimator_.classes_.tolist() == NEW
    X_new, y_new = inputs(NEW, seed=1)
    assert found.best_estimator_.score(X_new, y_new) == 1


@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize("leave_alone", [True, False], ids=["frozen", "trained"])
def test_a_trial_is_what_it_would_be_by_hand(k, leave_alone):
    """A head for the held-out classes, over the scores of the other classes."""
    expected = []
    for group in GROUPS:
        stay = [item for item in ITEMS if item not in group]
        keep, play = np.isin(Y, stay), np.isin(Y, group)
        model = Nearest().fit(X if leave_alone else X[keep], Y if leave_alone else Y[keep])
        scores = model.decision_function(X[play])[:, np.isin(model.classes_, stay)]
        orders = [
            [item for item in order if item in stay]
            for name in group
            for order in RANKINGS.select(target=name).orders()
        ]
        head = rs.ProbabilisticRanking(k=k, decay=0)
        head.fit(rs.Rankings.from_orders(orders, items=stay, targets=group))
        expected.append(mean_class_accuracy(Y[play], head.predict(scores)))
    found = search(frozen() if leave_alone else Nearest(), {"head__k": [k]}).fit(X, Y)
    (trial,) = found.trials_
    assert trial.by_fold == pytest.approx(expected)
    assert trial.score == pytest.approx(np.mean(expected))
    assert trial.params == {"head__k": k}


@pytest.mark.filterwarnings("ignore:the rankings of .* are the same:UserWarning")
def test_nothing_said_of_new_classes_is_touched():
    good = good_to_the_second_place()
    poisons = [
        RANKINGS,
        with_new(good, [["d"], [["a", "b", "c"], "d"]]),
        rs.Rankings.concatenate([good] + [with_new(good, [["a"], ["a"]])[10:]] * 5),
    ]
    found = [search(zero_shot(rankings=some)).fit(X, Y).trials_ for some in poisons]
    apart = search(zero_shot(rankings=RANKINGS[10:]), rankings=good).fit(X, Y)
    assert found[0] == found[1] == found[2] == apart.trials_
    assert apart.best_estimator_.head_.rankings_.target_names == ("north", "south")


def test_of_equals_the_first_and_grids_in_a_list():
    grid = [{"head__k": [2]}, {"head__k": [2], "head__prior": [rs.Mallows()]}]
    found = search(grid=grid).fit(X, Y)
    assert found.trials_[0].score == found.trials_[1].score
    assert found.best_params_ == {"head__k": 2}
    assert [set(trial.params) for trial in found.trials_] == [set(each) for each in grid]


def test_a_classifier_without_a_head_has_the_default_one():
    found = search(zero_shot(head=None)).fit(X, Y)
    assert found.best_params_ == {"head__k": 2}
    assert found.estimator.head is None


def test_similarities():
    zs = zero_shot(head=rs.DirectSimilarity(), rankings=similarity(list(ALL)))
    found = search(zs, {"head__n_similar": [1, 2, 8]}).fit(X, Y)
    for trial in found.trials_:
        head = rs.DirectSimilarity(n_similar=trial.params["head__n_similar"])
        for group, accuracy in zip(GROUPS, trial.by_fold, strict=True):
            stay, play = [item for item in ITEMS if item not in group], np.isin(Y, group)
            model = Nearest().fit(X[~play], Y[~play])
            head.fit(zs.rankings.select(group, stay))
            expected = head.predict(model.decision_function(X[play]))
            assert accuracy == pytest.approx(mean_class_accuracy(Y[play], expected))
    assert found.best_score_ > 0.9
    assert found.best_estimator_.classes_.tolist() == NEW


# -------------------------------------------------------------------- how often it trains


def test_a_classifier_is_trained_once_a_fold_and_setting_of_its_own():
    FITTED.clear()
    grid = {"head__k": [1, 2, 8], "estimator__scale": [0.1, 1.0], "head__posterior": ["mean"]}
    found = search(grid=grid).fit(X, Y)
    without = [set(SEEN) - set(group) for group in GROUPS for _ in range(2)]
    assert [without, [set(SEEN)]] == [FITTED[:-1], FITTED[-1:]]
    assert found.best_estimator_.estimator_.scale == found.best_params_["estimator__scale"]
    FITTED.clear()
    search(grid={"head__k": [1, 2, 8]}).fit(X, Y)
    assert len(FITTED) == len(GROUPS) + 1


def test_whole_classifiers_can_be_compared():
    FITTED.clear()
    grid = {"estimator": [Nearest(0.0), Nearest(1.0)], "head__k": [1, 2]}
    found = search(grid=grid).fit(X, Y)
    assert len(FITTED) == 2 * len(GROUPS) + 1
    assert found.best_estimator_.estimator_.scale == 1


def test_a_frozen_classifier_is_never_trained():
    zs = zero_shot(frozen(), rankings=similarity(list(ALL)).to_rankings())
    before = zs.estimator.estimator.means_.tobytes()
    FITTED.clear()
    found = search(zs).fit(X, Y)
    assert FITTED == []
    assert found.best_estimator_.estimator_.estimator is zs.estimator.estimator
    assert zs.estimator.estimator.means_.tobytes() == before
    assert not hasattr(zs, "head_")


def held_out_by(seed, n_folds=4):
    FITTED.clear()
    search(grid={}, held_out=None, n_folds=n_folds, random_state=seed).fit(X, Y)
    return [set(SEEN) - trained for trained in FITTED[:-1]]


def test_classes_take_turns_by_chance():
    first = held_out_by(1)
    assert sorted(map(len, first)) == [2, 2, 3, 3]
    assert set().union(*first) == set(SEEN)
    assert held_out_by(1) == first != held_out_by(2)
    assert list(map(len, held_out_by(1, n_folds=5))) == [2] * 5


def test_clone_and_parameters():
    original = search(zero_shot(reject_below=0.5), n_folds=3).fit(X, Y)
    copied = clone(original)
    assert not hasattr(copied, "trials_")
    assert copied.get_params()["estimator__reject_below"] == 0.5
    assert copied.fit(X, Y).trials_ == original.trials_


# -------------------------------------------------------------------- what cannot be done

UNRANKED = zero_shot(rankings=RANKINGS[10:])
REFUSED = {
    "not a zero-shot classifier": (search(), {"estimator": Nearest()}, "a ZeroShotClassifier, not"),
    "too many folds": (
        search(held_out=None),
        {"n_folds": 6},
        "between 1 and 5, with at least two classes per fold",
    ),
    "folds that are no number": (search(held_out=None), {"n_folds": "5"}, "not '5'"),
    "a fold of one class": (
        search(),
        {"held_out": [["h", "j"], ["k"]]},
        r"different classes, not \['k'\]",
    ),
    "an unknown class": (search(), {"held_out": [["h", "zz"]]}, "of a seen class 'zz'"),
    "a new class": (search(), {"held_out": [["h", "north"]]}, "of a seen class 'north'"),
    "no ranking of a seen class": (search(), {"estimator": UNRANKED}, "of 'north', 'south'"),
    "seen classes as well": (
        search(),
        {"estimator": zero_shot(classes="all")},
        "for classes='new' only, not for classes='all'",
    ),
    "no rankings": (
        search(),
        {"rankings": "r.jsonl"},
        "must be Rankings .* or a Similarity .*, not 'r.jsonl'",
    ),
}


@pytest.mark.parametrize(("good", "change", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(good, change, message):
    with pytest.raises(rs.RankshotError, match=message):
        good.set_params(**change).fit(X, Y)


def test_a_ranking_that_is_gone_with_the_group():
    lists = [["j"], ["h"], ["c"], ["c"]]
    short = rs.Rankings.from_orders(lists, items=ITEMS, targets=["h", "j", "k", "i"])
    with pytest.raises(rs.RankshotError, match="rankings of 'h', 'j' contain no seen class"):
        search(rankings=short, grid={"head__k": [1]}).fit(X, Y)


def test_a_pipeline_that_ends_in_a_frozen_classifier():
    piped = make_pipeline("passthrough", frozen())
    assert search(piped).fit(X, Y).trials_ == search(frozen()).fit(X, Y).trials_


def test_settings_that_are_arrays():
    grid = {"estimator__scale": [np.ones(8), np.full(8, 0.5)]}
    assert len(search(grid=grid).fit(X, Y).trials_) == 2


def test_every_k_that_the_classifier_allows_can_be_tried():
    assert len(search(grid={"head__k": [2, 10]}).fit(X, Y).trials_) == 2


def test_inputs_of_new_classes_are_refused():
    X_new, y_new = inputs(NEW)
    with pytest.raises(rs.RankshotError, match="'north'"):
        search(frozen(), held_out=[NEW]).fit(X_new, y_new)
