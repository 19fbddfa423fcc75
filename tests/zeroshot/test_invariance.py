"""Names decide, columns do not: permuting items or targets permutes the answer and no more."""

from itertools import product

import numpy as np
import pytest
from head_cases import (
    HEADS,
    SIMILARITY_HEADS,
    few_heads,
    fitted,
    kinds_of,
    permuted,
    random_scores,
)
from hypothesis import given, settings, strategies as st
from sklearn.base import clone

import rankshot as rs
from rankshot.zeroshot.scores import KINDS

ITEMS = ("a", "b", "c", "d", "e")
TARGETS = ("p", "q", "r")
EXAMPLES = settings(max_examples=12)

# Few distinct numbers, so that scores, similarities and whole targets tie all the time; of
# tenths, so that sums in another order differ in their last digit.
score = st.integers(-3, 3).map(lambda tenths: tenths / 10)
similarities = st.lists(
    st.sampled_from([-0.5, 0.0, 0.25, 0.5, 1.0]), min_size=5, max_size=5
).filter(lambda row: max(row) >= 0)


@st.composite
def orders(draw):
    """All items but at most one, in groups; at least three places count."""
    names = draw(st.permutations(ITEMS))[: draw(st.integers(4, 5))]
    groups = []
    for name in names:
        if groups and draw(st.integers(0, 2)) == 0:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


@st.composite
def rankings(draw):
    """(target, order, weight) of one or two rankings a target."""
    targets = [z for z in TARGETS for _ in range(draw(st.integers(1, 2)))]
    return [(z, draw(orders()), draw(st.sampled_from([1.0, 2.0]))) for z in targets]


@st.composite
def references(draw, kind):
    """Scores of twelve seen inputs; those of one column may be all the same."""
    columns = 10 if kind == "one-vs-one" else 5
    usual = np.reshape(
        draw(st.lists(score, min_size=12 * columns, max_size=12 * columns)), (12, -1)
    )
    if draw(st.booleans()):
        usual[:, 0] = 0.1
    return usual


@st.composite
def problems(draw):
    """What a head is fitted to, scores, and other names for the targets."""
    return {
        "rankings": draw(rankings()),
        "similarity": np.array(draw(st.lists(similarities, min_size=3, max_size=3))),
        "scores": np.array([draw(st.lists(score, min_size=5, max_size=5))]),
        "pairs": np.array([draw(st.lists(score, min_size=10, max_size=10))]),
        "items": draw(st.permutations(range(5))),
        "rows": draw(st.permutations(range(3))),
        "names": dict(zip(TARGETS, draw(st.permutations(["k", "s", "z"])), strict=True)),
    }


def fit(name, problem, order, rename, rows, kind=None, usual=None):
    """Fit with the items in this ``order``, and the targets renamed and in other rows.

    The reference, if any, is the scores ``usual`` of one ``kind``.
    """
    items = [ITEMS[i] for i in order]
    if name in SIMILARITY_HEADS:
        table = problem["similarity"][rows][:, order]
        semantics = rs.Similarity(table, [rename[TARGETS[i]] for i in rows], items)
    else:
        lists = sorted(problem["rankings"], key=lambda row: rows.index(TARGETS.index(row[0])))
        semantics = rs.Rankings.from_orders(
            [groups for _, groups, _ in lists],
            items=items,
            targets=[rename[target] for target, _, _ in lists],
            weights=[weight for _, _, weight in lists],
        )
    if usual is None:
        return clone(HEADS[name]).fit(semantics)
    scores = rs.Scores(permuted(usual, list(order), kind), items, kind)
    return clone(HEADS[name]).fit(semantics, scores)


def ask(head, kind, problem, order):
    """Return the log-probabilities by name, the decision, and all targets best first."""
    values = problem["pairs" if kind == "one-vs-one" else "scores"]
    scores = rs.Scores(permuted(values, list(order), kind), head.items_, kind)
    log_proba = dict(zip(head.classes_.tolist(), head.predict_log_proba(scores)[0], strict=True))
    return log_proba, head.predict(scores)[0], head.top(scores, 3).labels[0].tolist()


def best_first(log_proba, name_of):
    """The targets by probability; of equals the first by name comes first, whatever the names."""
    return sorted(TARGETS, key=lambda z: (-round(log_proba[z], 7), name_of[z]))


@few_heads
@EXAMPLES
@given(problem=problems())
def test_other_columns_and_other_names_permute_the_answer(name, problem):
    heads = fit_both(name, problem)
    for kind in kinds_of(name):
        check_permuted(*heads, problem, kind)


@pytest.mark.parametrize(
    "name", ["default", "weighted", pytest.param("consensus", marks=pytest.mark.slow)]
)
@EXAMPLES
@given(problem=problems(), data=st.data())
def test_they_do_with_a_reference_too(name, problem, data):
    for kind in kinds_of(name):
        usual = data.draw(references(kind))
        check_permuted(*fit_both(name, problem, kind, usual), problem, kind)


def fit_both(name, problem, *reference):
    """Fit two heads: to the problem as it is, and to the permuted and renamed one."""
    head = fit(name, problem, range(5), {z: z for z in TARGETS}, [0, 1, 2], *reference)
    rows = list(problem["rows"])
    return head, fit(name, problem, problem["items"], problem["names"], rows, *reference)


def check_permuted(head, other, problem, kind):
    same, rename = {z: z for z in TARGETS}, problem["names"]
    before, label, ranked = ask(head, kind, problem, range(5))
    after, label_after, ranked_after = ask(other, kind, problem, problem["items"])
    for z in TARGETS:
        assert after[rename[z]] == pytest.approx(before[z], rel=1e-9, abs=1e-9)
    assert ranked == best_first(before, same)
    assert ranked_after == [rename[z] for z in best_first(before, rename)]
    assert (label, label_after) == (ranked[0], ranked_after[0])


def random_votes(rng):
    """(target, source, order, weight, kind) of rankings with ties, by sources that lack classes."""
    for target in "pqrs":
        for source in rng.permutation(["one", "two", "three"])[: rng.integers(1, 4)]:
            names = rng.permutation(list("abcdef"))[: rng.integers(2, 7)]
            cuts = np.flatnonzero(rng.random(names.size - 1) < 0.7) + 1
            order = [group.tolist() for group in np.split(names, cuts)]
            kind = "subset" if len(order) > 1 and rng.random() < 0.5 else "top"
            yield target, str(source), order, rng.choice([0.5, 1.0]), kind


@pytest.mark.parametrize(
    "head",
    [
        rs.ProbabilisticRanking(k=3),
        rs.ProbabilisticRanking(k=3, posterior="consensus"),
        rs.ProbabilisticRanking(k=2, posterior="sum"),
        rs.DeterministicRanking(k=3),
        rs.WeightedMean(k=3),
    ],
)
def test_subsets_and_sources_in_another_order_change_nothing(rng, head):
    for _ in range(15):
        votes = list(random_votes(rng))
        items, scores = list("abcdef"), rng.integers(-3, 4, (5, 6)) * rng.choice([0.5, 300])
        found = []
        for order, rows in (
            (np.arange(6), np.arange(len(votes))),
            (rng.permutation(6), rng.permutation(len(votes))),
        ):
            targets, sources, orders, weights, kinds = zip(*(votes[i] for i in rows), strict=True)
            rankings = rs.Rankings.from_orders(
                orders,
                items=[items[i] for i in order],
                targets=targets,
                sources=sources,
                weights=weights,
                kind=kinds,
            )
            found.append(clone(head).fit(rankings).predict_log_proba(scores[:, order]))
        np.testing.assert_allclose(found[0], found[1], rtol=1e-7, atol=1e-7)


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
    for decay, scale, dtype in product([0, 0.5], [3, 30, 300], [np.float32, np.float64]):
        f = (rng.integers(-1000, 1000, (300, 6)) * scale / 1000).astype(dtype)
        f[:, 3] = f[:, 2]
        values = f[:, first] - f[:, second] if kind == "one-vs-one" else f
        order = rng.permutation(6).tolist()
        head = clone(head).set_params(decay=decay).fit(tied_targets(order))
        scores = rs.Scores(permuted(values, order, kind), head.items_, kind)
        assert "q" not in head.predict(scores).tolist()
        labels = head.top(scores, 3).labels
        assert (np.argmax(labels == "p", axis=1) < np.argmax(labels == "q", axis=1)).all()


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
