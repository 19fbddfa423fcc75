"""How a survey stands: counts by hand; consensus and stability by really leaving answers out."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from survey_answers import Simulation, answer, study_of

from rankshot.ranking.agreement import concordance
from rankshot.ranking.consensus import kemeny
from rankshot.ranking.rankings import Rankings
from rankshot.survey import stability
from rankshot.survey.quality import Flag
from rankshot.survey.stability import least_scores, stays_best
from rankshot.survey.standing import standing
from rankshot.survey.study import Question

CAT = Question("cat", list("abcd"))
OTHER_CAT = Question("cat", list("cdef"))
DOG = Question("dog", list("abc"))
GOLD = Question("wolf", list("abc"), ["a"])
STUDY = study_of([CAT, OTHER_CAT, DOG], gold=[GOLD], answers_per_question=7)


def of_target(answers, target="cat"):
    found = standing(STUDY, answers, {}, {}).targets
    return next(row for row in found if row.target == target)


# -------------------------------------------------------------------- counts


def test_answers_skips_repeats_and_gold_questions_are_counted_apart():
    said = [
        answer("x", CAT, "ab"),
        answer("y", CAT, "b"),
        answer("z", CAT, ""),
        answer("x", CAT, "ba", repeat=True),
        answer("y", CAT, "", repeat=True),
        answer("x", GOLD, "a"),
        answer("x", DOG, ""),
    ]
    found = standing(STUDY, said, {DOG.key: 3}, {})
    rows = [
        (row.question, row.answered, row.planned, row.live, row.skipped, row.is_asked)
        for row in found.questions
    ]
    assert rows == [
        (CAT, 2, 7, 0, 1, True),
        (OTHER_CAT, 0, 7, 0, 0, True),
        (DOG, 0, 7, 3, 1, True),
    ]
    assert (found.n_answers, found.n_planned) == (2, 21)
    assert [(row.target, row.n_answers) for row in found.targets] == [("cat", 2), ("dog", 0)]


def test_a_study_without_answers_stands_at_nothing():
    found = standing(STUDY, [], {}, {})
    assert [row.answered for row in found.questions] == [0, 0, 0]
    assert found.raters == found.flagged == ()
    dog = found.targets[1]
    assert (dog.n_answers, dog.consensus) == (0, ())
    assert (dog.stability, dog.first_stability, dog.concordance) == (None, None, None)


def test_answers_to_questions_that_the_study_no_longer_has_are_kept_and_shown_as_such():
    old = Question("owl", list("abc"))
    older_dog = Question("dog", list("abx"))
    said = [answer("x", old, "ab"), answer("x", older_dog, "xb"), answer("y", DOG, "ba")]
    found = standing(STUDY, said, {}, {})
    assert [(row.question.target, row.is_asked) for row in found.questions[3:]] == [
        ("dog", False),
        ("owl", False),
    ]
    assert [(row.answered, row.planned) for row in found.questions[3:]] == [(1, 0), (1, 0)]
    assert [row.target for row in found.targets] == ["cat", "dog", "owl"]
    # Both sets of the dog's items are in its consensus.
    assert found.targets[1].n_answers == 2
    assert sorted(map(str, found.targets[1].consensus)) == ["a", "b", "c", "x"]


def test_raters_with_most_flags_come_first():
    flags = {"x": (), "y": (Flag("fast", "", 1.0), Flag("gold", "", 1.0)), "z": (Flag("g", "", 1),)}
    said = [
        answer("x", CAT, "ab"),
        answer("y", CAT, "ab", seconds=1.0),
        answer("y", DOG, "", seconds=3.0),
        answer("y", GOLD, "a", seconds=10.0),
        answer("z", CAT, "ab"),
        answer("w", CAT, "ab"),
    ]
    found = standing(STUDY, said, {}, flags)
    assert [row.rater for row in found.raters] == ["y", "z", "w", "x"]
    assert [row.rater for row in found.flagged] == ["y", "z"]
    first = found.raters[0]
    assert (first.n_answers, first.n_skipped, first.seconds) == (2, 1, 3.0)
    assert first.flags == flags["y"]


# -------------------------------------------------------------------- consensus


def test_the_consensus_of_one_set_is_kemenys():
    orders = ["abcd", "bac", "b", "bdc"]
    said = [answer(r, CAT, order) for r, order in zip("wxyz", orders, strict=True)]
    rankings = Rankings.from_orders([a.order for a in said], items=list("abcd"))
    found = of_target(said)
    assert found.consensus == kemeny(rankings, "exact").order == ("b", "a", "c", "d")
    assert found.concordance == pytest.approx(concordance(rankings))


def test_items_that_nobody_ranked_are_tied_at_the_end():
    assert of_target([answer("x", CAT, "c")]).consensus == ("c", ("a", "b", "d"))
    assert of_target([answer("x", CAT, "c"), answer("y", CAT, "bd")]).consensus[-1] == "a"


def test_several_sets_of_items_are_merged_over_their_union():
    said = [answer("x", CAT, "abcd"), answer("y", OTHER_CAT, "dcef"), answer("z", CAT, "abdc")]
    assert of_target(said).consensus == ("a", "b", "d", "c", "e", "f")
    # Neither set has both a and e, nor was e or f ever ranked.
    said = [answer("x", CAT, "abcd"), answer("y", OTHER_CAT, "cd")]
    assert of_target(said).consensus == ("a", "b", "c", "d", ("e", "f"))


def test_agreement_is_measured_within_questions_and_averaged_over_answers():
    cat = [answer("x", CAT, "abcd"), answer("y", CAT, "abcd"), answer("z", CAT, "dcba")]
    other = [answer("x", OTHER_CAT, "cd"), answer("y", OTHER_CAT, "cd")]
    within = concordance(Rankings.from_orders([a.order for a in cat], items=list("abcd")))
    assert within == pytest.approx(1 / 9)
    assert of_target(cat).concordance == pytest.approx(within)
    assert of_target(cat + other).concordance == pytest.approx((3 * within + 2 * 1) / 5)
    assert of_target(cat + other[:1]).concordance == pytest.approx(within)
    assert of_target(cat[:1] + other[:1]).concordance is None


# -------------------------------------------------------------------- stability


def reversed_pairs(order, answers):
    """Kemeny's score by the definition: how many pairs of shown items the order reverses."""
    place = {item: i for i, item in enumerate(order)}
    total = 0
    for a in answers:
        rest = set(a.question.items) - set(a.order)
        wins = [
            (x, y) for i, x in enumerate(a.order) for y in (*a.order[i + 1 :], *rest) if y in place
        ]
        total += sum(place[x] > place[y] for x, y in wins)
    return total


def kept_by_brute_force(answers, orders, k):
    """For each answer: does a best order of the others begin as each of ``orders`` does?"""
    kept = []
    for left_out in range(len(answers)):
        others = answers[:left_out] + answers[left_out + 1 :]
        scores = {p: reversed_pairs(p, others) for p in permutations(orders[0])}
        best = {p[:k] for p, score in scores.items() if score == min(scores.values())}
        kept.append({order[:k] for order in orders} <= best)
    return kept


def best_orders(consensus, answers):
    """The strict orders of the ranked items that a consensus with ties stands for."""
    ranked = {item for a in answers for item in a.order}
    groups = [group if isinstance(group, tuple) else (group,) for group in consensus]
    groups = [group for group in groups if ranked & set(group)]
    return [sum(parts, ()) for parts in product(*map(permutations, groups))]


HALF_CAT = Question("cat", list("cde"))


@st.composite
def some_answers(draw):
    """A few answers to one or two questions of a target, five items in all."""
    said = []
    for number in range(draw(st.integers(2, 7))):
        question = draw(st.sampled_from([CAT, CAT, HALF_CAT]))
        order = draw(st.permutations(question.items))[: draw(st.integers(1, 4))]
        said.append(answer(f"r{number}", question, order))
    return said


@given(some_answers())
@settings(max_examples=60)
def test_every_order_that_the_consensus_allows_is_a_best_one(said):
    allowed = best_orders(of_target(said).consensus, said)
    best = min(reversed_pairs(p, said) for p in permutations(allowed[0]))
    assert {reversed_pairs(order, said) for order in allowed} == {best}


def test_the_consensus_is_a_best_order_also_where_the_search_misses_it():
    said = [answer("x", HALF_CAT, "ec"), answer("y", CAT, "dab"), answer("z", HALF_CAT, "ced")]
    orders = best_orders(of_target(said).consensus, said)
    assert {reversed_pairs(order, said) for order in orders} == {3}


@given(some_answers())
@settings(max_examples=60)
def test_stability_is_that_of_really_leaving_out(said):
    found = of_target(said)
    orders = best_orders(found.consensus, said)
    n = len(orders[0])
    # The first places end where every order has the same set of items before.
    ends = (k for k in range(min(3, n), n + 1) if len({frozenset(p[:k]) for p in orders}) == 1)
    whole, first = (np.mean(kept_by_brute_force(said, orders, k)) for k in (n, next(ends)))
    assert found.stability == pytest.approx(whole)
    assert found.first_stability == pytest.approx(first)


def test_stability_by_hand():
    up, down = list("abcd"), list("dcba")
    agreed = [answer(f"r{i}", CAT, up) for i in range(3)]
    assert of_target(agreed).stability == of_target(agreed).first_stability == 1
    # Without one of the two, one answer stands against one: no order is better than the same.
    split = [*agreed[:2], answer("x", CAT, down)]
    assert of_target(split).stability == 1
    # One against one decides nothing, and without either the other one does.
    even = [agreed[0], answer("x", CAT, down)]
    assert of_target(even).consensus == (("a", "b", "c", "d"),)
    assert of_target(even).stability == of_target(even).first_stability == 0
    # The last places are undecided, and every answer has a say; the first three are clear.
    last = Question("cat", list("abcde"))
    tail = [answer("x", last, "abcde"), answer("y", last, "abced"), answer("z", last, "abcde")]
    tail += [answer("w", last, "abced")]
    assert (of_target(tail).stability, of_target(tail).first_stability) == (0.0, 1.0)
    assert of_target(tail).consensus == ("a", "b", "c", ("d", "e"))
    assert of_target(agreed[:1]).stability is None


def random_votes(rng, n_answers, n_items):
    """Margins and votes around a best order, without much agreement."""
    orders = rng.permuted(np.tile(np.arange(n_items), (n_answers, 1)), axis=1)
    names = [f"{i:02d}" for i in range(n_items)]
    rankings = Rankings.from_item_numbers(orders, items=names)
    best = [names.index(item) for item in kemeny(rankings, "exact").order]
    table = np.argsort(orders, axis=1)[:, best]
    votes = np.sign(table[:, None, :] - table[:, :, None]).astype(np.int8)
    return votes.sum(axis=0, dtype=np.int64), votes


@pytest.mark.parametrize("k", [1, 3, 9])
def test_enumeration_and_search_agree(rng, monkeypatch, k):
    """Where items are many, the score is put together from the cycles and searched for."""
    for _ in range(6):
        margins, votes = random_votes(rng, 11, 9)
        monkeypatch.setattr(stability, "MOST_ENUMERATED", 10)
        enumerated = stays_best(margins, votes, k)
        monkeypatch.setattr(stability, "MOST_ENUMERATED", 2)
        assert np.array_equal(enumerated, stays_best(margins, votes, k))
        monkeypatch.setattr(stability, "MOST_ENUMERATED", 5)
        assert np.array_equal(enumerated, stays_best(margins, votes, k))


def test_the_margins_alone_never_decide_wrongly(rng, monkeypatch):
    """What is said without working out a score is what working it out says."""
    decided = 0
    for _ in range(30):
        margins, votes = random_votes(rng, int(rng.integers(2, 9)), 6)
        for k in (1, 3, 6):
            quick = stays_best(margins, votes, k)
            every = stability._begin_best_orders(margins - votes.astype(np.int64), k)
            assert np.array_equal(quick, every)
            decided += quick.size
    assert decided > 200


def test_least_scores_are_those_of_the_best_permutations(rng):
    W = rng.integers(0, 6, (3, 5, 5))
    W[:, np.arange(5), np.arange(5)] = 0
    least = least_scores(W)
    for table, scores in zip(W, least, strict=True):
        for number in range(1 << 5):
            members = [i for i in range(5) if number >> i & 1]
            best = min(
                sum(table[b, a] for i, a in enumerate(p) for b in p[i + 1 :])
                for p in permutations(members)
            )
            assert scores[number] == best


def test_many_items_take_the_same_way():
    """26 items: one answer decides between two neighbours, all agree on the rest."""
    items = [chr(97 + i) for i in range(26)]
    question = Question("cat", items)
    swapped = [*items[:20], items[21], items[20], *items[22:]]
    said = [answer("x", question, items), answer("y", question, swapped)]
    said += [answer("z", question, items)]
    found = of_target(said)
    assert found.consensus == tuple(items)
    assert (found.stability, found.first_stability) == (1.0, 1.0)
    found = of_target(said[:2])
    assert (found.stability, found.first_stability) == (0.0, 1.0)


def test_the_standing_does_not_depend_on_the_order_of_answers_or_items(rng):
    simulated = Simulation(5)
    study = study_of(simulated.questions, gold=[simulated.gold])
    before = standing(study, simulated.answers, {}, {})
    turned = [
        replace(a, question=replace(a.question, items=a.question.items[::-1]))
        for a in simulated.answers
    ]
    after = standing(study, [turned[i] for i in rng.permutation(len(turned))], {}, {})
    for x, y in zip(before.targets, after.targets, strict=True):
        assert (x.target, x.n_answers, x.consensus) == (y.target, y.n_answers, y.consensus)
        assert (x.stability, x.first_stability) == (y.stability, y.first_stability)
        assert x.concordance == pytest.approx(y.concordance)
    assert before.questions == after.questions


def test_simulated_raters_agree_on_the_truth_more_surely_the_more_there_are():
    simulated = Simulation(7, between=1.5, within=2.0)
    study = study_of(simulated.questions, gold=[simulated.gold])
    few = [a for a in simulated.answers if a.rater in simulated.raters[:10]]
    early, late = (standing(study, said, {}, {}).targets for said in (few, simulated.answers))
    means = [np.mean([row.first_stability for row in rows]) for rows in (early, late)]
    assert means[0] < means[1]
    truth = [tuple(f"item {i}" for i in center) for center in simulated.centers]
    right = [row.consensus[:3] == center[:3] for row, center in zip(late, truth, strict=True)]
    assert np.mean(right) > 0.8
