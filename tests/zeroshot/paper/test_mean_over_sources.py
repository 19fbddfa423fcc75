"""Classes compare on equal terms, whatever sources rank them."""

import numpy as np
import pytest

import rankshot as rs
from rankshot.zeroshot.paper.probabilistic_ranking import MeanOverSources

ITEMS = list("abcdef")


def rankings(rows, **options):
    """Rankings from (target, source, order) or (target, source, order, weight)."""
    return rs.Rankings.from_orders(
        [list(row[2]) for row in rows],
        items=ITEMS,
        targets=[row[0] for row in rows],
        sources=[row[1] for row in rows],
        weights=[row[3] if len(row) > 3 else 1.0 for row in rows],
        **options,
    )


COMPLETE = [
    ("p", "one", "abc"), ("q", "one", "cba"), ("r", "one", "efd"),
    ("p", "two", "bad"), ("q", "two", "dfe"), ("r", "two", "fab"),
]  # fmt: skip


def by_loops(rankings, head, log_prob):
    """The definition, with a loop over classes and sources that are all connected."""
    sources = sorted(set(rankings.sources))
    values, shares = {}, {}
    for s in sources:
        totals = []
        for z in head.classes_:
            rows = np.flatnonzero((rankings.targets == z) & (rankings.sources == s))
            if rows.size:
                weights = rankings.weights[rows]
                values[s, z] = weights @ log_prob[rows] / weights.sum()
                totals.append(weights.sum())
        shares[s] = np.mean(totals)
    result = []
    for z in head.classes_:
        total = 0
        for s in sources:
            known = [values[s, other] for other in head.classes_ if (s, other) in values]
            neutral = np.log(np.mean(np.exp(known), axis=0))
            total = total + shares[s] * values.get((s, z), neutral)
        result.append(total / sum(shares.values()))
    return np.array(result)


@pytest.mark.parametrize(
    "rows",
    [
        COMPLETE,
        COMPLETE[:-1],
        [row for row in COMPLETE if row[:2] not in {("p", "one"), ("q", "two")}],
        [*COMPLETE[:-1], ("p", "two", "fed", 2.0), ("q", "three", "ab"), ("r", "three", "fe", 0.5)],
    ],
)
def test_the_definition(rng, rows):
    votes = rankings(rows)
    head = rs.ProbabilisticRanking(k=3).fit(votes)
    values = rng.normal(size=(7, len(ITEMS)))
    each = rs.Rankings.from_orders(
        votes.orders(), items=ITEMS, targets=[f"{i:02}" for i in range(len(votes))]
    )
    # One class for each ranking: its log-posterior is log P(π|x), minus that of equal scores.
    log_prob = rs.ProbabilisticRanking(k=3).fit(each).log_posterior(values).T
    np.testing.assert_allclose(
        head.log_posterior(values).T, by_loops(votes, head, log_prob), atol=1e-12
    )


def test_a_source_that_ranks_one_class_changes_nothing(rng):
    values = rng.normal(scale=2, size=(50, len(ITEMS)))
    plain = rs.ProbabilisticRanking().fit(rankings(COMPLETE))
    more = rs.ProbabilisticRanking().fit(rankings([*COMPLETE, ("q", "poor", "fed")]))
    np.testing.assert_allclose(more.log_proba(values), plain.log_proba(values), atol=1e-12)
    assert more.unused_ == ("poor",)


def test_sources_without_a_common_class_are_compared_as_they_are(rng):
    values = rng.normal(size=(20, len(ITEMS)))
    orders = ["abc", "bcd", "fed"]
    own = rankings([(z, f"expert of {z}", order) for z, order in zip("pqr", orders, strict=True)])
    one = rankings([(z, "one", order) for z, order in zip("pqr", orders, strict=True)])
    np.testing.assert_allclose(
        rs.ProbabilisticRanking().fit(own).log_proba(values),
        rs.ProbabilisticRanking().fit(one).log_proba(values),
        atol=1e-12,
    )
    assert MeanOverSources(own, np.array(["p", "q", "r"])).missing == {}


@pytest.mark.parametrize("rater", [None, "somebody"])
@pytest.mark.parametrize("has_reference", [False, True])
def test_a_table_that_lacks_a_class_changes_nothing_in_the_default_head(rng, rater, has_reference):
    """It fills in: so no class gains or loses by what the table does not know."""
    one = [row for row in COMPLETE if row[1] == "one"]
    usual = rng.normal(size=(30, len(ITEMS))) if has_reference else None
    people = rankings(one, raters=rater)
    both = rs.Rankings.concatenate([people, rankings([("q", "two", "dfe"), ("p", "two", "bad")])])
    values = rng.normal(size=(50, len(ITEMS)))
    plain, more = (rs.WeightedMean().fit(each, reference=usual) for each in (people, both))
    np.testing.assert_array_equal(more.predict_proba(values), plain.predict_proba(values))
    assert more.source_weights_ == {"one": 1.0, "two": 0.0}
    assert more.missing_ == {}
    # A class that nobody else ranks is added, and the odds of the others stay.
    extra = rs.Rankings.concatenate([people, rankings([("s", "two", "fce")])])
    log_proba = rs.WeightedMean().fit(extra, reference=usual).log_proba(values)[:, :3]
    odds = log_proba - log_proba[:, :1]
    expected = plain.log_proba(values)
    np.testing.assert_allclose(odds, expected - expected[:, :1], atol=1e-12)


PR = rs.ProbabilisticRanking
HEADS = [
    *(rs.WeightedMean(), rs.zeroshot.paper.DeterministicRanking(k=5), PR(k=5)),
    PR(k=2, posterior="sum", n_samples=100, random_state=0),
]


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("has_raters", [True, False])
def test_a_class_that_a_source_lacks_is_not_a_magnet(head, has_raters):
    """Scores without any class in them: no class is predicted much too often.

    A person lacks a class; or a table does, and two of the items as well.
    """
    rng = np.random.default_rng(0)
    items, classes = [f"c{i}" for i in range(30)], [f"z{i}" for i in range(6)]
    rater, n, n_lacking = ("somebody", 5, 0) if has_raters else (None, 30, 2)
    shares = []
    for _ in range(12):
        parts = [
            rs.Rankings.from_orders(
                [rng.permutation(some)[:n].tolist() for _ in named],
                items=items, targets=named, sources=source, raters=rater, kind=kind,
            )
            for named, some, source, kind in (
                (classes, items, "one", "top"),
                (classes[1:], items[n_lacking:], "two", "top" if has_raters else "subset"),
            )
        ]  # fmt: skip
        found = head.fit(rs.Rankings.concatenate(parts)).predict(rng.normal(size=(200, 30)))
        shares.append(np.mean(found == classes[0]))
    assert np.mean(shares) < 1.35 / 6


def test_what_a_source_lacks_is_known():
    head = rs.ProbabilisticRanking().fit(rankings(COMPLETE[:-1]))
    assert head.missing_ == {"two": ["r"]}
    assert rs.ProbabilisticRanking().fit(rankings(COMPLETE)).missing_ == {}
    by_people = rankings(COMPLETE[:-1], raters="somebody")
    assert rs.WeightedMean().fit(by_people).missing_ == {"two": ["r"]}
