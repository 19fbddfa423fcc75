"""Bad input is refused with a `RankshotError` that names the value, its place, and what to do."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC

import rankshot as rs
from rankshot import ConSE, Rankings, RankshotError, Scores, Similarity
from rankshot.zeroshot import metrics as m

PR, DR, DS = rs.ProbabilisticRanking, rs.DeterministicRanking, rs.DirectSimilarity
NAN, INF = np.nan, np.inf
ITEMS = ["bus", "fox", "leopard", "tiger"]
ROW = [[1.0, 2.0, 3.0, 4.0]]
PAIRS = [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]
X, Y = np.repeat(np.eye(4), 5, axis=0), np.repeat(ITEMS, 5)
MODEL = FrozenEstimator(LogisticRegression().fit(X, Y))


def lists(
    orders=(["leopard", "tiger", "fox"], ["bus", "fox"]), targets=("cat", "truck"), **options
):
    return Rankings.from_orders(orders, **{"items": ITEMS, "targets": targets} | options)


RANKINGS = lists()
TABLE = Similarity([[0.1, 0.5, 0.9, 0.8], [0.9, 0.2, 0.1, 0.1]], ["cat", "truck"], ITEMS)
HEAD = PR(k=2).fit(RANKINGS)
PRIOR = {"bus": 0.5, "fox": 0.1, "leopard": 0.1, "tiger": 0.3}
REST = Scores([[1.0, 2.0], [2.0, 1.0], [0.0, 0.0]], ["a", "b"], "one-vs-rest")


def zero_shot(estimator=MODEL, **options):
    return rs.ZeroShotClassifier(estimator, **{"head": PR(k=2), "rankings": RANKINGS} | options)


def fit(estimator=MODEL, X=X, y=Y, **options):
    return zero_shot(estimator, **options).fit(X, y)


def bad(call, message):
    return pytest.param(call, message, id=message[:60])


SCORES = [
    bad(
        lambda: Scores(ROW, ITEMS, "one vs one"),
        "kind must be one of 'multiclass', 'one-vs-rest', 'one-vs-one', not 'one vs one' "
        "(did you mean 'one-vs-one'?)",
    ),
    bad(
        lambda: Scores(ROW, ITEMS[:3]),
        "multiclass scores of 3 classes need a table of 3 columns, not one of shape (1, 4)",
    ),
    bad(
        lambda: Scores(ROW, ITEMS, "one-vs-one"),
        "one-vs-one scores of 4 classes need a table of 6 columns, not one of shape (1, 4)",
    ),
    bad(
        lambda: Scores([1, 2, 3, 4], ITEMS),
        "multiclass scores of 4 classes need a table of 4 columns, not one of shape (4,)",
    ),
    bad(
        lambda: Scores([*ROW, [1, -INF, 3, 4]], ITEMS),
        "row 1, column 'fox': the score is -inf; scores must be finite",
    ),
    bad(
        lambda: Scores([[1, 2, NAN]], ITEMS[:3], "one-vs-one"),
        "row 0, column 'fox' against 'leopard': the score is nan; scores must be finite",
    ),
    bad(lambda: Scores(ROW, "abcd"), "items must be a sequence of names, not 'abcd'"),
    bad(lambda: Scores(ROW, [*"abca"]), "items names 'a' more than once"),
    bad(lambda: Scores(ROW, [*"abc", None]), "items must be non-empty text, not None"),
    bad(
        lambda: Scores(ROW, ITEMS).select(["bus", "tigre"]),
        "there are no scores of 'tigre' (did you mean 'tiger'?)",
    ),
    bad(
        lambda: HEAD.predict(Scores(ROW, [*ITEMS[:3], "tigre"])),
        "the scores have classes that are not in the rankings: 'tigre' (did you mean 'tiger'?)",
    ),
    bad(
        lambda: Scores.from_probabilities([[0.5, 0.5, 0.5, 0]], ITEMS),
        "row 0: multiclass probabilities must add up to one, not 1.5. Pass kind='one-vs-rest' if "
        "each class has its own binary classifier",
    ),
    bad(
        lambda: Scores.from_probabilities([[0.5, 0.6, -0.1, 0]], ITEMS),
        "row 0, column 'leopard': -0.1 is not a probability",
    ),
    bad(
        lambda: rs.scores_of(LogisticRegression(), Scores([[1.0, 2.0]], ["a", "b"])),
        "expected inputs of a classifier, not Scores: pass these to a head, as in "
        "head.predict(scores)",
    ),
    bad(
        lambda: rs.scores_of("svm", X),
        "expected a fitted scikit-learn classifier, not 'svm'",
    ),
]

HEADS = [
    bad(lambda: PR(k=0).fit(RANKINGS), "k must be a whole number from 1 on, not 0"),
    bad(lambda: PR(k=2.5).fit(RANKINGS), "k must be a whole number from 1 on, not 2.5"),
    bad(lambda: DR(k=True).fit(RANKINGS), "k must be a whole number from 1 on, not True"),
    bad(
        lambda: PR(posterior="max").fit(RANKINGS),
        "posterior must be one of 'consensus', 'mean', 'sum', not 'max'",
    ),
    bad(
        lambda: PR(prior="Mallows").fit(RANKINGS),
        "the prior must be a ranking model such as PlackettLuce(), not 'Mallows'",
    ),
    bad(
        lambda: PR(posterior="consensus", prior="borda").fit(RANKINGS),
        "the prior must be a ranking model such as PlackettLuce(), not 'borda'",
    ),
    bad(lambda: PR(decay=-0.5).fit(RANKINGS), "decay must be 0 or more and finite, not -0.5"),
    bad(lambda: PR(decay=NAN).fit(RANKINGS), "decay must be 0 or more and finite, not nan"),
    bad(lambda: PR(decay=INF).fit(RANKINGS), "decay must be 0 or more and finite, not inf"),
    bad(lambda: PR(decay="fast").fit(RANKINGS), "decay must be a number, not 'fast'"),
    bad(lambda: PR(decay="0.5").fit(RANKINGS), "decay must be a number, not '0.5'"),
    bad(lambda: PR(decay=True).fit(RANKINGS), "decay must be a number, not True"),
    bad(lambda: PR(decay=None).fit(RANKINGS), "decay must be a number, not None"),
    bad(
        lambda: PR(posterior="sum").fit(RANKINGS, ROW * 10),
        "posterior='sum' cannot use a reference: use another posterior",
    ),
    bad(
        lambda: PR().fit(RANKINGS, ROW * 9),
        "the reference has 9 inputs: at least 10 are needed, and several hundred are better",
    ),
    bad(
        lambda: PR().fit(RANKINGS, ROW * 10).predict(Scores(ROW, ITEMS, "one-vs-rest")),
        "the reference has multiclass scores, these are one-vs-rest",
    ),
    bad(
        lambda: PR().fit(RANKINGS, Scores(ROW * 10, [*ITEMS[:3], "tigre"])),
        "the scores have classes that are not in the rankings: 'tigre' (did you mean 'tiger'?)",
    ),
    bad(
        lambda: PR().fit(RANKINGS, [*ROW * 9, [1, 2, 3, NAN]]),
        "row 9, column 'tiger': the score is nan; scores must be finite",
    ),
    bad(
        lambda: PR(posterior="sum", n_samples=1).fit(RANKINGS),
        "n_samples must be a whole number from 2 on, not 1",
    ),
    bad(
        lambda: HEAD.sum_over_rankings(ROW),
        "sum_over_rankings needs posterior='sum', not 'mean'",
    ),
    bad(
        lambda: PR().fit([["leopard"]]),
        "expected Rankings, not [['leopard']]: make them with Rankings.from_orders, "
        "from_positions, from_scores, from_pairs, read_rankings or read_pairs",
    ),
    bad(
        lambda: PR().fit(lists(targets=["cat", None])),
        "ranking 1 has no target: name the target of each ranking with targets=, or with "
        '"target" in a file',
    ),
    bad(
        lambda: PR().fit(lists(weights=[0, 0])),
        "there are no rankings (or all have weight 0)",
    ),
    bad(
        lambda: PR(k=3).fit(RANKINGS).predict(PAIRS),
        "one-vs-one scores need rankings of one length: ranking 1 (of 'truck') has 2 items, "
        "others have 3. Use k=2, or scores with one column per class",
    ),
    bad(lambda: DR(temperature=0).fit(RANKINGS), "temperature must be positive and finite, not 0"),
    bad(
        lambda: DR(temperature=NAN).fit(RANKINGS),
        "temperature must be positive and finite, not nan",
    ),
    bad(lambda: DR(temperature="wide").fit(RANKINGS), "temperature must be a number, not 'wide'"),
    bad(
        lambda: DR().fit(lists([["leopard", "fox"], ["bus"]], kind="subset")),
        "the rankings of 'truck' prefer no seen class to another: each compares a single one, or "
        "ties all that it compares",
    ),
    bad(lambda: DS(n_similar=0).fit(TABLE), "n_similar must be a whole number from 1 on, not 0"),
    bad(
        lambda: DS().fit(Similarity([[-0.1, -0.5]], ["cat"], ["bus", "fox"])),
        "all similarities of 'cat' by similarity are negative: leave them out, or use "
        "similarity.rescale(), which makes the smallest value of the table 0",
    ),
    bad(
        lambda: DS().fit([[0.1, 0.5]]),
        "expected a Similarity, not [[0.1, 0.5]]: make one with Similarity(values, targets, "
        "items), read_similarity or a source",
    ),
    bad(
        lambda: DS(class_prior={"bus": 0.5, "fox": 0.1, "leopard": 0.1, "tigre": 0.3}).fit(TABLE),
        "class_prior has no value for 'tiger' (did you mean 'tigre'?)",
    ),
    bad(
        lambda: DS(class_prior=PRIOR | {"fox": 0}).fit(TABLE),
        "class_prior['fox'] must be positive and finite, not 0",
    ),
    bad(
        lambda: DS(class_prior=PRIOR | {"fox": "half"}).fit(TABLE),
        "class_prior['fox'] must be a number, not 'half'",
    ),
    bad(
        lambda: DS().fit(TABLE).predict(PAIRS),
        "DirectSimilarity needs one score per class, not one per pair: one-vs-one scores are "
        "for WeightedMean, ProbabilisticRanking and DeterministicRanking",
    ),
    bad(
        lambda: ConSE(n_classes=2.0).fit(TABLE),
        "n_classes must be a whole number from 1 on, not 2.0",
    ),
    bad(lambda: ConSE(temperature=0).fit(TABLE), "temperature must be positive and finite, not 0"),
    bad(
        lambda: PR(temperature=-1).fit(RANKINGS), "temperature must be positive and finite, not -1"
    ),
    bad(lambda: HEAD.top(ROW, 3), "k must be a whole number from 1 to 2, not 3"),
    bad(lambda: HEAD.top(ROW, "2"), "k must be a whole number from 1 to 2, not '2'"),
    bad(
        lambda: HEAD.predict(ROW, [["cat"], ["cat"]]),
        "candidates: 1 inputs need 1 lists of names, not 2",
    ),
    bad(
        lambda: HEAD.predict(ROW, ["cat"]),
        "candidates: input 0 needs a list of names, not 'cat'",
    ),
    bad(lambda: HEAD.predict(ROW, [["dog"]]), "candidates: input 0: no class 'dog'"),
    bad(lambda: HEAD.predict(ROW * 2, [["cat"], []]), "candidates: input 1 has no candidate"),
    bad(
        lambda: HEAD.predict(ROW, np.ones((1, 3), bool)),
        "candidates must have the shape (1, 2), not (1, 3)",
    ),
    bad(
        lambda: rs.explain(HEAD, ROW, against="lorry"),
        "no class 'lorry'; the classes are 'cat', 'truck'",
    ),
    bad(
        lambda: rs.explain(DR().fit(RANKINGS), ROW),
        "DeterministicRanking cannot be explained by seen classes and sources",
    ),
]

CLASSIFIER = [
    bad(
        lambda: fit(rankings="rankings.jsonl"),
        "rankings must be Rankings (see Rankings.from_orders and read_rankings), or a Similarity "
        "for heads that take one, not 'rankings.jsonl'",
    ),
    bad(lambda: fit(classes="both"), "classes must be one of 'new', 'all', not 'both'"),
    bad(lambda: fit(calibration=NAN), "calibration must be finite, not nan"),
    bad(lambda: fit(calibration="much"), "calibration must be a number, not 'much'"),
    bad(lambda: fit(reject_below=1.5), "reject_below must be 0 or more and at most 1, not 1.5"),
    bad(lambda: fit(reject_below=-0.1), "reject_below must be 0 or more and at most 1, not -0.1"),
    bad(lambda: fit(reject_below="high"), "reject_below must be a number, not 'high'"),
    bad(
        lambda: fit(rankings=lists([["leopard"], ["tigre"]], items=None)),
        "ranking 1: unknown item 'tigre' (did you mean 'tiger'?)",
    ),
    bad(
        lambda: fit(rankings=lists(targets=["fox", "tiger"])),
        "there are rankings of seen classes only ('fox', 'tiger')",
    ),
    bad(
        lambda: fit(rankings=lists(targets=["fox", "tiger"]), classes="all"),
        "there are rankings of seen classes only ('fox', 'tiger')",
    ),
    bad(
        lambda: fit(classes="all", X=X[:3], y=Y[:3]),
        "the reference has 3 inputs: at least 10 are needed, and several hundred are better",
    ),
    bad(
        lambda: fit(X=None, y=None, classes="all", none=True),
        "the gate has no coefficients for 'none of these': pass a reference to fit, or a gate that "
        "was fitted with inputs of this kind",
    ),
    bad(lambda: fit(classes="all", gate=0.5), "gate must be a Gate, not 0.5"),
    bad(
        lambda: fit().predict(X, [["cat"]]),
        "candidates: 20 inputs need 20 lists of names, not 1",
    ),
]

METRICS = [
    bad(lambda: m.accuracy(["a"], ["a", "b"]), "y_true has 1 labels, but y_pred has 2"),
    bad(lambda: m.accuracy([], []), "y_true is empty: there is nothing to measure"),
    bad(
        lambda: m.accuracy(["a", None], ["a", "b"]),
        "y_true, row 1: expected the name of a class, not None",
    ),
    bad(
        lambda: m.generalized_accuracy(["a"], ["a"], seen=["c"]),
        "y_true has no seen class, only 'a'; the seen classes are 'c'. For classes of one kind use "
        "mean_class_accuracy",
    ),
    bad(lambda: m.wilson_interval(5, 3), "correct must be 0 or more and at most 3, not 5"),
    bad(
        lambda: m.wilson_interval(1, 3, level=95),
        "level must be positive and below 1, not 95",
    ),
    bad(
        lambda: m.top_k_accuracy(["cta"], [[0.5, 0.5]], ["cat", "dog"], k=1),
        "y_true, row 0: 'cta' is not one of the 2 classes (did you mean 'cat'?)",
    ),
    bad(
        lambda: m.top_k_accuracy(["cat"], [[0.5, 0.5]], ["cat", "dog"], k=3),
        "k must be a whole number from 1 to 2, not 3",
    ),
    bad(
        lambda: m.negative_log_likelihood(["cat"], [[0.5, 0.5]], ["cat", "dog"]),
        "row 0, class 'cat': a log-probability is at most 0 (np.log of a probability), not 0.5",
    ),
    bad(
        lambda: m.reliability(["cat"], [[0.5, -0.5]], ["cat", "dog"]),
        "row 0, class 'dog': a probability is from 0 to 1 (np.exp of its logarithm), not -0.5",
    ),
]

PLATT_SCALING = []

ALL = [*SCORES, *HEADS, *CLASSIFIER, *METRICS, *PLATT_SCALING]


@pytest.mark.parametrize(("call", "message"), ALL)
def test_the_message(call, message):
    with pytest.raises(RankshotError) as error:
        call()
    assert str(error.value) == message


WITH_A_FRAGMENT = [
    (lambda: fit("svm"), "svm"),
    (lambda: fit(SVC), "SVC"),
    (lambda: fit(Ridge(), y=np.arange(20)), "Ridge"),
    (lambda: fit(head="PR"), "PR"),
    (lambda: fit(head=PR), "ProbabilisticRanking"),
    (lambda: fit(head=LogisticRegression()), "LogisticRegression"),
    (lambda: fit(rankings=TABLE), "to_rankings"),
    (lambda: fit(y=Y[:-1], classes="all"), "19"),
    (lambda: fit(reject_below=0.5, reject_label=3).predict(X), "3"),
    (lambda: PR(prior=rs.Mallows).fit(Rankings.concatenate([RANKINGS] * 2)), "Mallows"),
    (lambda: HEAD.predict(ROW, [["cta"]]), "did you mean 'cat'"),
    (lambda: HEAD.predict(ROW, 5), "5"),
    (lambda: HEAD.predict(ROW, [None]), "None"),
    (lambda: HEAD.predict(ROW, [[["cat"]]]), "cat"),
    (lambda: HEAD.predict(np.array(ROW, np.complex128)), "complex"),
    (lambda: rs.explain(HEAD, ROW, target="cta"), "no class 'cta' (did you mean 'cat'?)"),
    (lambda: DS(class_prior=0.5).fit(TABLE), "0.5"),
    (lambda: DS(class_prior=[0.25] * 4).fit(TABLE), "0.25"),
    (lambda: DS(class_prior=PRIOR | {"fox": INF}).fit(TABLE), "inf"),
    (lambda: ConSE().fit(Similarity([[1, NAN], [NAN, 1]], ["x", "z"], ["a", "b"])), "'a', 'b'"),
]


@pytest.mark.parametrize(("call", "fragment"), WITH_A_FRAGMENT)
def test_the_message_tells(call, fragment):
    with pytest.raises(RankshotError) as error:
        call()
    assert fragment in str(error.value)


def test_without_a_mistake_nothing_is_refused():
    assert fit().predict(X[:5], [["truck"]] * 5).tolist() == ["truck"] * 5
    assert fit(classes="all").classes_.tolist() == sorted([*ITEMS, "cat", "truck"])
