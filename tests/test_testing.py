"""The contracts for heads and sources: each is broken by a head or a source of its own."""

from types import SimpleNamespace

import numpy as np
import pytest

import rankshot as rs
from rankshot.testing import check_head, check_source

RANKINGS = rs.Rankings.from_orders(
    [["leopard", "tiger"], ["bus", "tiger"], ["tiger", "leopard"]],
    items=["bus", "leopard", "tiger"],
    targets=["cat", "truck", "lion"],
)
SCORES = rs.Scores([[0.1, 3.0, 1.5], [4.0, 0.0, 1.0], [0.0, 1.0, 2.5]], RANKINGS.items)
HEAD = rs.WeightedMean().fit(RANKINGS)


class Broken:
    """A head that differs from a good one in some of its methods and attributes."""

    def __init__(self, proba=HEAD.predict_proba, **changes):
        self.predict_proba = proba
        self.classes_ = HEAD.classes_
        vars(self).update(changes)

    def predict(self, scores):
        return self.classes_[np.argmax(self.predict_proba(scores), axis=1)]

    def top(self, scores, k):
        return SimpleNamespace(labels=self.predict(scores)[:, None])

    def save(self, path):
        HEAD.save(path)


def unnamed(scores):
    """Probabilities by the numbers of the columns."""
    return HEAD.predict_proba(rs.Scores(scores.values, RANKINGS.items))


def jointly(scores):
    """Probabilities that depend on how many inputs there are."""
    return (HEAD.predict_proba(scores) + (len(scores) - 1) / 3) / len(scores)


@pytest.mark.parametrize(
    ("head", "contract"),
    [
        (Broken(classes_=HEAD.classes_[::-1]), "classes_ are sorted"),
        (Broken(lambda scores: HEAD.predict_proba(scores)[:, :2]), "one column per class"),
        (Broken(lambda scores: HEAD.predict_proba(scores) - 0.3), "not negative"),
        (Broken(lambda scores: 2 * HEAD.predict_proba(scores)), "add up to one"),
        (Broken(predict=lambda scores: HEAD.classes_[[0, 0, 0]]), "the most probable class"),
        (Broken(top=lambda *_: SimpleNamespace(labels=HEAD.classes_[:, None])), "top begins"),
        (Broken(jointly), "does not depend on other inputs"),
        (Broken(unnamed), "matched by their names"),
        (Broken(save=rs.WeightedMean().fit(RANKINGS[:2]).save), "the same classes"),
        (Broken(save=rs.WeightedMean(k=1).fit(RANKINGS).save), "the same probabilities"),
    ],
)
def test_each_contract_of_a_head_is_checked(head, contract):
    check_head(Broken(), SCORES)
    with pytest.raises(AssertionError, match=contract):
        check_head(head, SCORES)


class Source:
    """A source whose answer is made by a function of targets and items."""

    def __init__(self, method, answer):
        setattr(self, method, answer)


def compare(targets, items, *, source="s"):
    """The more letters two names share, the more similar they are."""
    values = [[len({*target} & {*item}) for item in items] for target in targets]
    return rs.Similarity(values, targets, items, source)


def rank(targets, items):
    return compare(targets, items).to_rankings()


@pytest.mark.parametrize(
    ("method", "answer", "contract"),
    [
        ("similarity", lambda _, items: compare(["cow"], items), "about the targets"),
        ("similarity", lambda targets, items: compare(targets, items[1:]), "has the items"),
        ("similarity", lambda *names: compare(*names, source=""), "the table names its source"),
        ("similarity", lambda *names: compare(*names).values, "returns a Similarity"),
        ("rankings", compare, "returns Rankings"),
        ("rankings", lambda *names: rank(*names)[:0], "there is a ranking"),
        ("rankings", lambda *names: compare(*names, source="").to_rankings(), "names its source"),
        ("rankings", lambda targets, items: rank(targets[:1], items), "order of names"),
        ("vectors", compare, "a method rankings or similarity"),
        (
            "similarity",
            lambda targets, items: rs.Similarity([[1, 2, 3], [4, 5, 6]], targets, items),
            "order of names",
        ),
    ],
)
def test_each_contract_of_a_source_is_checked(method, answer, contract):
    names = ["cat", "dog"], ["rat", "god", "tram"]
    check_source(Source("similarity", compare), *names)
    check_source(Source("rankings", rank), *names)
    with pytest.raises(AssertionError, match=contract):
        check_source(Source(method, answer), *names)
