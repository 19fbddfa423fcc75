"""How a survey stands: counts by hand; consensus and stability by really leaving answers out."""

from dataclasses import replace
from itertools import permutations, product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from survey_answers import Simulation, answer, sample_around, study_of

from rankshot.ranking.agreement import concordance
from rankshot.ranking.consensus.kemeny import kemeny
from rankshot.ranking.rankings import Rankings
from rankshot.survey import consensus as solver
from rankshot.survey.consensus import best_orders
from rankshot.survey.progress import summarize_progress
from rankshot.survey.quality import Flag
from rankshot.survey.study import Question

CAT = Question("cat", list("abcd"))
OTHER_CAT = Question("cat", list("cdef"))
DOG = Question("dog", list("abc"))
GOLD = Question("wolf", list("abc"), ["a"])
STUDY = study_of([CAT, OTHER_CAT, DOG], gold=[GOLD], answers_per_question=7)


def progress_of(answers, target="cat"):
    found = summarize_progress(STUDY, answers, {}, {}).targets
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
    found = summarize_progress(STUDY, said, {DOG.key: 3}, {})
    rows = [
        (row.question, row.answered, row.planned, row.in_progress, row.skipped, row.is_asked)
        for row in found.questions
    ]
    assert rows == [
        (CAT, 2, 7, 0, 1, True),
        (OTHER_CAT, 0, 7, 0, 0, True),
        (DOG, 0, 7, 3, 1, True),
    ]
    assert (found.n_answers, found.n_planned) == (2, 21)
    targets = [(row.target, row.n_answers, row.planned, row.in_progress) for row in found.targets]
    assert targets == [("cat", 2, 14, 0), ("dog", 0, 7, 3)]


def test_a_study_without_answers_stands_at_nothing():
    found = summarize_progress(STUDY, [], {}, {})
    assert [row.answered for row in found.questions] == [0, 0, 0]
    assert found.raters == found.flagged == ()
    dog = found.targets[1]
    assert (dog.n_answers, dog.consensus) == (0, ())
    assert (dog.stability, dog.first_stability, dog.concordance) == (None, None, None)


def test_answers_to_questions_that_the_study_no_longer_has_are_kept_and_shown_as_such():
    old = Question("owl", list("abc"))
    older_dog = Question("dog", list("abx"))
    said = [answer("x", old, "ab"), answer("x", older_dog, "xb"), answer("y", DOG, "ba")]
    found = summarize_progress(STUDY, said, {DOG.key: 2, older_dog.key: 5}, {})
    # Somebody may still have an old question before them, but nobody is asked it any more.
    assert [(row.planned, row.in_progress) for row in found.targets] == [(14, 0), (7, 2), (0, 0)]
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
        answer("y", OTHER_CAT, "c", seconds=None),
        answer("z", CAT, "ab", seconds=None),
        answer("w", CAT, "ab"),
    ]
    found = summarize_progress(STUDY, said, {}, flags)
    assert [row.rater for row in found.raters] == ["y", "z", "w", "x"]
    assert [row.rater for row in found.flagged] == ["y", "z"]
    first = found.raters[0]
    # Of what took no known time, the median knows nothing.
    counts = (first.n_answers, first.n_checks, first.n_skipped)
    assert (*counts, first.seconds) == (2, 1, 1, 3.0)
    assert found.raters[1].seconds is None
    assert first.flags == flags["y"]


# -------------------------------------------------------------------- consensus


def test_the_consensus_of_one_set_is_kemenys():
    orders = ["abcd", "bac", "b", "bdc"]
    said = [answer(r, CAT, order) for r, order in zip("wxyz", orders, strict=True)]
    rankings = Rankings.from_orders([a.order for a in said], items=list("abcd"))
    found = progress_of(said)
    assert found.consensus == kemeny(rankings, "exact").order == ("b", "a", "c", "d")
    assert found.concordance == pytest.approx(concordance(rankings))


def test_items_that_nobody_ranked_are_tied_at_the_end():
    assert progress_of([answer("x", CAT, "c")]).consensus == ("c", ("a", "b", "d"))
    assert progress_of([answer("x", CAT, "c"), answer("y", CAT, "bd")]).consensus[-1] == "a"


def test_several_sets_of_items_are_merged_over_their_union():
    said = [answer("x", CAT, "abcd"), answer("y", OTHER_CAT, "dcef"), answer("z", CAT, "abdc")]
    assert progress_of(said).consensus == ("a", "b", "d", "c", "e", "f")
    # Neither set has both a and e, nor was e or f ever ranked.
    said = [answer("x", CAT, "abcd"), answer("y", OTHER_CAT, "cd")]
    assert progress_of(said).consensus == ("a", "b", "c", "d", ("e", "f"))


def test_agreement_is_measured_within_questions_and_averaged_over_answers():
    cat = [answer("x", CAT, "abcd"), answer("y", CAT, "abcd"), answer("z", CAT, "dcba")]
    other = [answer("x", OTHER_CAT, "cd"), answer("y", OTHER_CAT, "cd")]
    within = concordance(Rankings.from_orders([a.order for a in cat], items=list("abcd")))
    assert within == pytest.approx(1 / 9)
    assert progress_of(cat).concordance == pytest.approx(within)
    assert progress_of(cat + other).concordance == pytest.approx((3 * within + 2 * 1) / 5)
    assert progress_of(cat + other[:1]).concordance == pytest.approx(within)
    assert progress_of(cat[:1] + other[:1]).concordance is None


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


def allowed_orders(consensus, answers):
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
    allowed = allowed_orders(progress_of(said).consensus, said)
    best = min(reversed_pairs(p, said) for p in permutations(allowed[0]))
    assert {reversed_pairs(order, said) for order in allowed} == {best}


def test_the_consensus_is_a_best_order_also_where_the_search_misses_it():
    said = [answer("x", HALF_CAT, "ec"), answer("y", CAT, "dab"), answer("z", HALF_CAT, "ced")]
    orders = allowed_orders(progress_of(said).consensus, said)
    assert {reversed_pairs(order, said) for order in orders} == {3}


def first_groups(consensus, n_places=3):
    """The first places of a consensus, with every tie that begins in them."""
    found, taken = [], 0
    for group in consensus:
        if taken >= n_places:
            break
        found.append(group)
        taken += 1 if isinstance(group, str) else len(group)
    return found


def leave_out_each(answers):
    """The shares without which the same consensus is shown, by summing up the others alone."""
    consensus = progress_of(answers).consensus
    without = [
        progress_of(answers[:row] + answers[row + 1 :]).consensus for row in range(len(answers))
    ]
    return (
        np.mean([other == consensus for other in without]),
        np.mean([first_groups(other) == first_groups(consensus) for other in without]),
    )


def stabilities(answers):
    found = progress_of(answers)
    return found.stability, found.first_stability


@pytest.mark.parametrize("most_solved", [15, 2])
@given(said=some_answers())
@settings(max_examples=50)
def test_stability_is_that_of_really_leaving_out(most_solved, said):
    """Also where every circle is searched for, and the items shown differ."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "MOST_SOLVED", most_solved)
        assert stabilities(said) == pytest.approx(leave_out_each(said))


@pytest.mark.parametrize(
    ("n_items", "n_answers", "spread"),
    [(3, 6, 0), (6, 9, 0), (8, 12, 0.3), (10, 21, 0.5), (13, 15, 0), (20, 9, 0.1), (24, 8, 0)],
)
def test_stability_of_noisy_answers_is_that_of_really_leaving_out(rng, n_items, n_answers, spread):
    question = Question("cat", [f"{i:02d}" for i in range(n_items)])
    for _ in range(5):
        orders = sample_around(np.tile(np.arange(n_items), (n_answers, 1)), spread, rng)
        said = [
            answer(
                "x", question, [question.items[i] for i in order[: rng.integers(1, n_items + 1)]]
            )
            for order in orders
        ]
        said += said[:2]
        assert stabilities(said) == pytest.approx(leave_out_each(said))


@pytest.mark.parametrize(
    ("one_way", "other_way", "whole"),
    # A lead of one becomes a draw without one of those who lead; a draw is decided by anybody.
    [(2, 1, 1 / 3), (26, 25, 25 / 51), (27, 25, 1), (27, 24, 1), (25, 25, 0), (2, 0, 1)],
)
def test_a_lead_of_one_is_not_stable(one_way, other_way, whole):
    said = [answer("x", CAT, "abcd")] * one_way + [answer("y", CAT, "bacd")] * other_way
    assert stabilities(said) == pytest.approx((whole, whole))


def test_stability_by_hand():
    up, down = list("abcd"), list("dcba")
    agreed = [answer(f"r{i}", CAT, up) for i in range(3)]
    assert stabilities(agreed) == (1, 1)
    # One against one decides nothing, and without either the other one does.
    even = [agreed[0], answer("x", CAT, down)]
    assert progress_of(even).consensus == (("a", "b", "c", "d"),)
    assert stabilities(even) == (0, 0)
    # The last places are undecided, and every answer has a say; the first three are clear.
    last = Question("cat", list("abcde"))
    tail = [answer("x", last, "abcde"), answer("y", last, "abced")] * 2
    assert stabilities(tail) == (0, 1)
    assert progress_of(tail).consensus == ("a", "b", "c", ("d", "e"))
    # A tie that begins in the third place belongs to the first three.
    tail = [answer("x", last, "abcde"), answer("y", last, "abdce")] * 2
    assert progress_of(tail).consensus == ("a", "b", ("c", "d"), "e")
    assert stabilities(tail) == (0, 0)
    assert progress_of(agreed[:1]).stability is None


def test_an_item_that_one_answer_alone_ranks_or_was_shown():
    # d is last with z and without; c and d are tied without w.
    said = [answer("x", CAT, "abc"), answer("y", CAT, "abc"), answer("z", CAT, "abcd")]
    assert stabilities(said) == (1, 1)
    said = [answer("x", CAT, "ab"), answer("y", CAT, "ab"), answer("w", CAT, "abc")]
    assert progress_of(said).consensus == ("a", "b", "c", "d")
    assert stabilities(said) == pytest.approx((2 / 3, 2 / 3))
    # Without the only answer to the other question, e and f are not there at all.
    said = [answer("x", CAT, "abcd"), answer("y", CAT, "abcd"), answer("z", OTHER_CAT, "cdef")]
    assert progress_of(said).consensus == ("a", "b", "c", "d", "e", "f")
    assert stabilities(said) == pytest.approx((2 / 3, 1))


def random_margins(rng, n_tables, n_items, largest=3):
    above = np.triu(rng.integers(-largest, largest + 1, (n_tables, n_items, n_items)), 1)
    return above - above.transpose(0, 2, 1)


def reversed_margins(margins, order):
    return sum(max(margins[b, a], 0) for i, a in enumerate(order) for b in order[i + 1 :])


@pytest.mark.parametrize("n_items", [1, 2, 3, 4, 6])
def test_best_orders_are_those_of_all_permutations(rng, n_items):
    margins = random_margins(rng, 30, n_items)
    for table, order in zip(margins, best_orders(margins).tolist(), strict=True):
        scores = {p: reversed_margins(table, p) for p in permutations(range(n_items))}
        assert scores[tuple(order)] == min(scores.values())


def test_of_several_best_orders_the_first_by_margins_and_number(rng):
    """In one circle of all items, as enumeration finds it."""
    several = 0
    for table in random_margins(rng, 200, 5, largest=1):
        if not solver._find_reachable(table[None] > 0).all():
            continue
        scores = {p: reversed_margins(table, p) for p in permutations(range(5))}
        best = [p for p, score in scores.items() if score == min(scores.values())]
        total = table.sum(axis=1)
        first = min(best, key=lambda p: [(-total[i], i) for i in p])
        assert best_orders(table[None])[0].tolist() == list(first)
        several += len(best) > 1
    assert several > 5


@pytest.mark.parametrize("n_items", [11, 15])
def test_orders_of_many_items_are_as_good_as_integer_programming_finds(rng, n_items):
    question = Question("cat", [f"{i:02d}" for i in range(n_items)])
    for _ in range(3):
        said = [answer("x", question, rng.permutation(question.items)) for _ in range(9)]
        rankings = Rankings.from_orders([a.order for a in said], items=question.items)
        for order in allowed_orders(progress_of(said).consensus, said)[:2]:
            assert reversed_pairs(order, said) == kemeny(rankings, "exact").score


def test_of_more_items_an_order_is_shown_that_no_move_improves(rng):
    margins = random_margins(rng, 4, 20)
    for table, order in zip(margins, best_orders(margins), strict=True):
        score = reversed_margins(table, order)
        least = inf
        for item, place in product(range(20), range(20)):
            moved = [i for i in order if i != item]
            least = min(least, reversed_margins(table, [*moved[:place], item, *moved[place:]]))
        assert least == score


def test_many_items_that_nearly_all_agree_on():
    """26 items: the answers differ in two neighbours."""
    items = [chr(97 + i) for i in range(26)]
    question = Question("cat", items)
    swapped = [*items[:20], items[21], items[20], *items[22:]]
    said = [answer("x", question, items), answer("y", question, swapped)]
    said += [answer("z", question, items)]
    assert progress_of(said).consensus == tuple(items)
    assert stabilities(said) == pytest.approx((1 / 3, 1))
    assert stabilities(said[:2]) == (0, 1)


def test_the_progress_does_not_depend_on_the_order_of_answers_or_items(rng):
    simulated = Simulation(5)
    study = study_of(simulated.questions, gold=[simulated.gold])
    before = summarize_progress(study, simulated.answers, {}, {})
    turned = [
        replace(a, question=replace(a.question, items=a.question.items[::-1]))
        for a in simulated.answers
    ]
    after = summarize_progress(study, [turned[i] for i in rng.permutation(len(turned))], {}, {})
    for x, y in zip(before.targets, after.targets, strict=True):
        assert (x.target, x.n_answers, x.consensus) == (y.target, y.n_answers, y.consensus)
        assert (x.stability, x.first_stability) == (y.stability, y.first_stability)
        assert x.concordance == pytest.approx(y.concordance)
    assert before.questions == after.questions


def test_simulated_raters_agree_on_the_truth_more_surely_the_more_there_are():
    simulated = Simulation(7, between=1.5, within=2.0)
    study = study_of(simulated.questions, gold=[simulated.gold])
    few = [a for a in simulated.answers if a.rater in simulated.raters[:10]]
    early, late = (
        summarize_progress(study, said, {}, {}).targets for said in (few, simulated.answers)
    )
    means = [np.mean([row.first_stability for row in rows]) for rows in (early, late)]
    assert means[0] < means[1]
    truth = [tuple(f"item {i}" for i in center) for center in simulated.centers]
    right = [row.consensus[:3] == center[:3] for row, center in zip(late, truth, strict=True)]
    assert np.mean(right) > 0.8


def test_raters_who_fall_into_groups_are_named():
    said = [answer(f"p{i:02}", CAT, "abcd" if i < 8 else "dcba") for i in range(14)]
    first, second = progress_of(said).groups
    assert first.raters == tuple(f"p{i:02}" for i in range(8))
    assert (first.order, second.order) == (tuple("abcd"), tuple("dcba"))
    assert progress_of([answer(f"p{i:02}", CAT, "abcd") for i in range(14)]).groups == ()


def test_the_same_answers_of_other_raters_are_other_groups():
    memo = {}
    said = [answer(f"p{i:02}", CAT, "abcd" if i < 8 else "dcba") for i in range(14)]
    others = [replace(one, rater=f"q{one.rater}") for one in said]
    found = [summarize_progress(STUDY, each, {}, {}, memo).targets[0] for each in (said, others)]
    assert found[0].groups[0].raters != found[1].groups[0].raters
