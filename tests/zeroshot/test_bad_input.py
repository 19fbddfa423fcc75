"""Bad input is refused with a `RankshotError` that names the value, its place, and what to do."""

import re

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot import Rankings, RankshotError, Scores, Similarity

PR, DR, DS = rs.ProbabilisticRanking, rs.DeterministicRanking, rs.DirectSimilarity
ITEMS = ["bus", "fox", "leopard", "tiger"]
ROW = [[1.0, 2.0, 3.0, 4.0]]
X, Y = np.repeat(np.eye(4), 5, axis=0), np.repeat(ITEMS, 5)
MODEL = FrozenEstimator(LogisticRegression().fit(X, Y))
LISTS = (["leopard", "tiger", "fox"], ["bus", "fox"])


def lists(orders=LISTS, targets=("cat", "truck"), **options):
    return Rankings.from_orders(orders, **{"items": ITEMS, "targets": targets} | options)


RANKINGS = lists()
TABLE = Similarity([[0.1, 0.5, 0.9, 0.8], [0.9, 0.2, 0.1, 0.1]], ["cat", "truck"], ITEMS)


def fit(**options):
    options = {"head": PR(k=2), "rankings": RANKINGS} | options
    return rs.ZeroShotClassifier(MODEL, **options).fit(X, Y)


def proba(*row):
    return Scores.from_probabilities([row], ITEMS)


SCORES = {
    "not 'one vs one' (did you mean 'one-vs-one'?)": lambda: Scores(ROW, ITEMS, "one vs one"),
    "3 classes need a table of 3 columns, not one of shape (1, 4)": lambda: Scores(ROW, ITEMS[:3]),
    "items names 'a' more than once": lambda: Scores(ROW, [*"abca"]),
    "no scores of 'tigre' (did you mean 'tiger'?)": lambda: Scores(ROW, ITEMS).select(["tigre"]),
    "row 0: multiclass probabilities must add up to one, not 1.5": lambda: proba(0.5, 0.5, 0.5, 0),
    "row 0, column 'leopard': -0.1 is not a probability": lambda: proba(0.5, 0.6, -0.1, 0),
}
HEADS = {
    "must be a ranking model such as PlackettLuce(), not 'borda'": lambda: PR(
        posterior="consensus", prior="borda"
    ).fit(RANKINGS),
    "decay must be 0 or more and finite, not -0.5": lambda: PR(decay=-0.5).fit(RANKINGS),
    "cannot use a reference: use another": lambda: PR(posterior="sum").fit(RANKINGS, ROW * 10),
    "the reference has 9 inputs: at least 10 are needed": lambda: PR().fit(RANKINGS, ROW * 9),
    "the reference has multiclass scores, these are one-vs-rest": lambda: (
        PR().fit(RANKINGS, ROW * 10).predict(Scores(ROW, ITEMS, "one-vs-rest"))
    ),
    "expected Rankings, not [['leopard']]: make them with": lambda: PR().fit([["leopard"]]),
    "ranking 1 has no target: name the target": lambda: PR().fit(lists(targets=["cat", None])),
    "no rankings (or all have weight 0)": lambda: PR().fit(lists(weights=[0, 0])),
    "the rankings of 'truck' prefer no seen class to another": lambda: DR().fit(
        lists([["leopard", "fox"], ["bus"]], kind="subset")
    ),
    "all similarities of 'cat' by similarity are negative": lambda: DS().fit(
        Similarity([[-0.1, -0.5]], ["cat"], ["bus", "fox"])
    ),
    "expected a Similarity, not [[0.1, 0.5]]: make one with": lambda: DS().fit([[0.1, 0.5]]),
    "needs one score per class, not one per pair": lambda: DS().fit(TABLE).predict(np.ones((1, 6))),
    "cannot be explained by seen classes and": lambda: rs.explain(DR().fit(RANKINGS), ROW),
}
CLASSIFIER = {
    "a Similarity for heads that take one, not 'rankings.jsonl'": lambda: fit(
        rankings="rankings.jsonl"
    ),
    "reject_below must be 0 or more and at most 1, not 1.5": lambda: fit(reject_below=1.5),
    "ranking 1: unknown item 'tigre' (did you mean 'tiger'?)": lambda: fit(
        rankings=lists([["leopard"], ["tigre"]], items=None)
    ),
    "there are rankings of seen classes only ('fox', 'tiger')": lambda: fit(
        rankings=lists(targets=["fox", "tiger"])
    ),
}


@pytest.mark.parametrize(("message", "call"), (SCORES | HEADS | CLASSIFIER).items())
def test_the_message(message, call):
    with pytest.raises(RankshotError, match=re.escape(message)):
        call()


def test_without_a_mistake_nothing_is_refused():
    assert fit().predict(X[:5], [["truck"]] * 5).tolist() == ["truck"] * 5
    assert fit(classes="all").classes_.tolist() == sorted([*ITEMS, "cat", "truck"])
