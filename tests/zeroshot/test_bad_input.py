"""Bad input is refused with a `RankshotError` that names the value, its place, and what to do."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot import Rankings, RankshotError, Scores, Similarity

PR, DR, DS = rs.ProbabilisticRanking, rs.DeterministicRanking, rs.DirectSimilarity
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


def zero_shot(estimator=MODEL, **options):
    return rs.ZeroShotClassifier(estimator, **{"head": PR(k=2), "rankings": RANKINGS} | options)


def fit(estimator=MODEL, X=X, y=Y, **options):
    return zero_shot(estimator, **options).fit(X, y)


def bad(call, message):
    return pytest.param(call, message, id=message[:60])


SCORES = [
    bad(
        lambda: Scores(ROW, ITEMS, "one vs one"),
        "kind must be one of 'multiclass', 'one-vs-rest', 'one-vs-one', not 'one vs one'"
        "; did you mean 'one-vs-one'?",
    ),
    bad(
        lambda: Scores(ROW, ITEMS[:3]),
        "multiclass scores of 3 classes need a table of 3 columns, not one of shape (1, 4)",
    ),
    bad(
        lambda: Scores.from_probabilities([[0.5, 0.5, 0.5, 0]], ITEMS),
        "row 0: multiclass probabilities must add up to one, not 1.5. Pass kind='one-vs-rest' if "
        "each class has its own binary classifier; if some classes were left out, divide each row "
        "by its sum",
    ),
    bad(
        lambda: Scores.from_probabilities([[0.5, 0.6, -0.1, 0]], ITEMS),
        "row 0, column 'leopard': -0.1 is not a probability",
    ),
    bad(
        lambda: Scores.from_probabilities([[0.5, 1.01, 0, 0]], ITEMS, kind="one-vs-rest"),
        "row 0, column 'fox': 1.01 is not a probability",
    ),
]

HEADS = [
    bad(
        lambda: PR(posterior="consensus", prior="borda").fit(RANKINGS),
        "the prior must be a ranking model such as PlackettLuce(), not 'borda'",
    ),
    bad(
        lambda: PR(posterior="sum").fit(RANKINGS, ROW * 10),
        "ProbabilisticRanking(posterior='sum') cannot use a reference: leave it out",
    ),
    bad(
        lambda: PR().fit(RANKINGS, ROW * 9),
        "the reference has 9 inputs: at least 10 are needed, and several hundred are better",
    ),
    bad(
        lambda: PR().fit(RANKINGS, ROW * 10).predict(Scores(ROW, ITEMS, "one-vs-rest")),
        "the reference has multiclass scores, but these are one-vs-rest: pass the same kind",
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
        lambda: DR().fit(lists([["leopard", "fox"], ["bus"]], kind="subset")),
        "the rankings of 'truck' do not order any seen classes: each lists a single one, or ties "
        "all that it lists",
    ),
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
        lambda: DS().fit(TABLE).predict(PAIRS),
        "DirectSimilarity needs one score per class, not one per pair; WeightedMean, "
        "ProbabilisticRanking and DeterministicRanking accept one-vs-one scores",
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
    bad(lambda: fit(reject_below=1.5), "reject_below must be 0 or more and at most 1, not 1.5"),
    bad(
        lambda: fit(rankings=lists(targets=["fox", "tiger"])),
        "there are rankings of seen classes only ('fox', 'tiger')",
    ),
]

ALL = [*SCORES, *HEADS, *CLASSIFIER]


@pytest.mark.parametrize(("call", "message"), ALL)
def test_the_message(call, message):
    with pytest.raises(RankshotError) as error:
        call()
    assert str(error.value) == message


def test_without_a_mistake_nothing_is_refused():
    assert fit().predict(X[:5], [["truck"]] * 5).tolist() == ["truck"] * 5
    assert fit(classes="all").classes_.tolist() == sorted([*ITEMS, "cat", "truck"])
