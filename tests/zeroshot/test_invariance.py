"""Names decide, columns do not: permuting items or targets permutes the answer and no more."""

from itertools import product

import numpy as np
import pytest
from head_cases import (
    HEADS,
    ITEMS,
    SIMILARITY_HEADS,
    few_heads,
    fitted,
    kinds_of,
    permuted,
    random_scores,
)
from sklearn.base import clone

import rankshot as rs
from rankshot.zeroshot.decide import EQUAL_LOG_PROBA, most_probable
from rankshot.zeroshot.scores import KINDS, n_columns

TARGETS = ("p", "q", "r")


def random_votes(rng, *, subsets):
    """(target, source, order, weight, kind) of rankings with ties, by sources that lack classes."""
    for target in TARGETS:
        for source in rng.permutation(["one", "two", "three"])[: rng.integers(1, 4)]:
            names = rng.permutation(ITEMS)[: rng.integers(2 if subsets else 4, 6)]
            cuts = np.flatnonzero(rng.random(names.size - 1) < 0.7) + 1
            order = [group.tolist() for group in np.split(names, cuts)]
            is_subset = subsets and len(order) > 1 and rng.random() < 0.5
            kind = "subset" if is_subset else "top"
            yield target, str(source), order, rng.choice([0.5, 1.0]), kind


def fit(name, votes, table, usual, order, rename):
    """Fit with the items in this ``order`` and the targets renamed; ``usual`` is a reference."""
    items = [ITEMS[i] for i in order]
    if name in SIMILARITY_HEADS:
        similar = rs.Similarity(table[:, order], [rename[z] for z in TARGETS], items)
        return clone(HEADS[name]).fit(similar)
    targets, sources, orders, weights, kinds = zip(*votes, strict=True)
    options = {"sources": sources, "weights": weights, "kind": kinds}
    targets = [rename[z] for z in targets]
    rankings = rs.Rankings.from_orders(orders, items=items, targets=targets, **options)
    if usual is None:
        return clone(HEADS[name]).fit(rankings)
    scores = rs.Scores(permuted(usual.values, order, usual.kind), items, usual.kind)
    return clone(HEADS[name]).fit(rankings, scores)


def ask(head, values, kind, order, rename):
    """Log-probabilities in the order of TARGETS, the decisions, and all targets best first."""
    scores = rs.Scores(permuted(values, order, kind), head.items_, kind)
    columns = np.searchsorted(head.classes_, [rename[z] for z in TARGETS])
    return head.predict_log_proba(scores)[:, columns], head.predict(scores), head.top(scores, 3)


def best_first(log_proba, rename):
    """The targets by probability; of equals the first by name comes first, whatever the names."""
    order = sorted(range(3), key=lambda z: (-round(log_proba[z], 7), rename[TARGETS[z]]))
    return [rename[TARGETS[z]] for z in order]


def tenths(rng, kind, n):
    """Few distinct numbers tie all the time; sums of tenths differ in their last digit."""
    return rng.integers(-3, 4, (n, n_columns(5, kind))) / 10


@pytest.mark.parametrize(
    ("name", "with_reference"),
    [
        *((name, False) for name in ("default", "weighted", "deterministic", "sum", "conse")),
        *((name, False) for name in ("consensus", "direct")),
        *((name, True) for name in ("default", "weighted")),
    ],
)
def test_other_columns_and_other_names_permute_the_answer(rng, name, with_reference):
    """And so do rankings in another order, of sources that lack classes or compare subsets."""
    same = dict(zip(TARGETS, TARGETS, strict=True))
    for kind, subsets in product(kinds_of(name), (False, True)):
        votes = list(random_votes(rng, subsets=subsets and kind != "one-vs-one"))
        table = rng.choice([-0.5, 0.0, 0.25, 0.5, 1.0], (3, 5))
        table[:, 0] = abs(table[:, 0])
        usual = rs.Scores(tenths(rng, kind, 12), ITEMS, kind) if with_reference else None
        if with_reference and subsets:
            usual.values[:, 0] = 0.1  # a column that never changes
        order, rename = (
            rng.permutation(5),
            dict(zip(TARGETS, rng.permutation([*"ksz"]), strict=True)),
        )
        head = fit(name, votes, table, usual, np.arange(5), same)
        other = fit(name, rng.permutation(np.array(votes, object)), table, usual, order, rename)
        values = tenths(rng, kind, 4)
        before, label, top = ask(head, values, kind, np.arange(5), same)
        after, renamed, renamed_top = ask(other, values, kind, order, rename)
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-9)
        expected = [best_first(row, same) for row in before]
        assert top.labels.tolist() == expected
        assert renamed_top.labels.tolist() == [best_first(row, rename) for row in before]
        assert label.tolist() == [first for first, *_ in expected]
        assert renamed.tolist() == renamed_top.labels[:, 0].tolist()
        far = [
            ask(*one)[0]
            for one in (
                (head, 3000 * values, kind, np.arange(5), same),
                (other, 3000 * values, kind, order, rename),
            )
        ]
        np.testing.assert_allclose(far[1], far[0], rtol=1e-7, atol=1e-7)


@few_heads
def test_a_constant_for_all_classes_changes_nothing(rng, name):
    """The sigmoids of one-vs-rest scores have a zero: there only rankings do not see it."""
    head = fitted(name)
    # In steps of 1/64, so that adding 512 rounds nothing.
    values = np.round(random_scores(rng, "multiclass", n=20).values * 64) / 64
    for kind in KINDS[: 1 if name in SIMILARITY_HEADS else 2]:
        before, after = (
            head.predict_log_proba(rs.Scores(values + constant, head.items_, kind))
            for constant in (0, 512)
        )
        np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-12)


# ------------------------------------------------------------------ exactly equal targets


def tied_targets(order):
    """Targets p and q have equal probability wherever the scores of c and d are equal."""
    return rs.Rankings.from_orders(
        [["a", "d", "e"], ["a", "c", "e"], ["f", "b", "a"]],
        items=[list("abcdef")[i] for i in order],
        targets=["q", "p", "r"],
    )


@pytest.mark.parametrize("kind", ["multiclass", "one-vs-one"])
@pytest.mark.parametrize(
    "head",
    [
        rs.WeightedMean(),
        rs.ProbabilisticRanking(k=3, posterior="consensus"),
        rs.ProbabilisticRanking(k=3),
        rs.ProbabilisticRanking(k=3, posterior="sum"),
    ],
)
def test_rounding_does_not_choose_between_equals(rng, head, kind):
    """Sums taken in another order differ in their last digit, and float32 has few of them."""
    first, second = np.triu_indices(6, 1)
    for decay, scale, dtype in product([0, 0.5], [3, 300], [np.float32, np.float64]):
        f = (rng.integers(-1000, 1000, (200, 6)) * scale / 1000).astype(dtype)
        f[:, 3] = f[:, 2]
        values = f[:, first] - f[:, second] if kind == "one-vs-one" else f
        order = rng.permutation(6).tolist()
        head = clone(head).set_params(decay=decay).fit(tied_targets(order))
        scores = rs.Scores(permuted(values, order, kind), head.items_, kind)
        assert "q" not in head.predict(scores).tolist()
        labels = head.top(scores, 3).labels
        assert (np.argmax(labels == "p", axis=1) < np.argmax(labels == "q", axis=1)).all()


def test_equal_is_relative_to_values_beyond_one():
    """One class in thousands has a log-probability of -8, and more rounding than one near 0."""
    for dtype, equal in EQUAL_LOG_PROBA.items():
        for top, apart, best in ((-8, 6, 0), (-8, 10, 1), (-0.1, 0.8, 0), (-0.1, 1.2, 1)):
            log_proba = np.array([[top - apart * equal, top]]).astype(dtype)
            assert most_probable(log_proba).tolist() == [best]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("head", [rs.DirectSimilarity(n_similar=3), rs.ConSE(n_classes=3)])
def test_rounding_does_not_choose_between_equals_by_similarity(rng, head, dtype):
    """p is to c what q is to d."""
    table = np.array([[0.7, 0.1, 0.3, 0.9], [0.7, 0.1, 0.9, 0.3], [0.2, 0.9, 0.4, 0.4]])
    for _ in range(10):
        f = (rng.integers(-1000, 1000, (200, 4)) * 30 / 1000).astype(dtype)
        f[:, 3] = f[:, 2]
        order = rng.permutation(4).tolist()
        items = [list("abcd")[i] for i in order]
        head.fit(rs.Similarity(table[:, order], ["q", "p", "r"], items))
        assert "q" not in head.predict(f[:, order]).tolist()
