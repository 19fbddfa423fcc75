"""How a survey stands: counts by hand, and the consensus by enumeration."""

from itertools import permutations, product

import pytest
from hypothesis import given, settings, strategies as st

from rankshot.ranking import PlackettLuce, Rankings
from rankshot_survey.overview import summarize_targets
from rankshot_survey.store.assignment import Load
from rankshot_survey.study import Question
from survey_answers import answer, study_of

CAT = Question("cat", list("abcd"))
OTHER_CAT = Question("cat", list("cdef"))
DOG = Question("dog", list("abc"))
GOLD = Question("wolf", list("abc"), ["a"])
STUDY = study_of([CAT, OTHER_CAT, DOG], gold=[GOLD], answers_per_question=7)


def summarize(answers, in_progress=None):
    loads = {key: Load(0, n) for key, n in (in_progress or {}).items()}
    return summarize_targets(STUDY, answers, loads)


def progress_of(answers, target="cat"):
    return next(row for row in summarize(answers) if row.target == target)


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
    targets = summarize(said, {DOG.key: 3})
    assert [row[:6] for row in targets] == [("cat", 2, 14, 0, 1, 0), ("dog", 0, 7, 3, 1, 0)]
    assert (targets[1].consensus, targets[1].concordance) == ((), None)


def test_answers_to_questions_that_the_study_no_longer_has_are_kept_and_shown_as_such():
    old, older_dog = Question("owl", list("abc")), Question("dog", list("abx"))
    said = [answer("x", old, "ab"), answer("x", older_dog, "xb"), answer("y", DOG, "ba")]
    targets = summarize(said, {DOG.key: 2, older_dog.key: 5})
    # Somebody may still have an old question before them, but nobody is asked it any more.
    assert [row[:6] for row in targets] == [
        ("cat", 0, 14, 0, 0, 0),
        ("dog", 1, 7, 2, 0, 1),
        ("owl", 0, 0, 0, 0, 1),
    ]
    # Both sets of the dog's items are in its consensus.
    assert sorted(map(str, targets[1].consensus)) == ["a", "b", "c", "x"]


def test_several_sets_of_items_are_merged_over_their_union():
    said = [answer("x", CAT, "abcd"), answer("y", OTHER_CAT, "dcef"), answer("z", CAT, "abdc")]
    found = progress_of(said)
    assert found.consensus == ("a", "b", "d", "c", "e", "f")
    # This is Plackett-Luce's order; a and b were not compared with e and f.
    rankings = Rankings.from_orders([a.order for a in said], items=list("abcdef"), kind="subset")
    worths = dict(zip("abcdef", PlackettLuce().fit(rankings).log_worths_, strict=True))
    assert sorted(worths, key=worths.get, reverse=True) == list(found.consensus)
    # Neither set has both a and e, nor was e or f ever ranked.
    said = [answer("x", CAT, "abcd"), answer("y", OTHER_CAT, "cd")]
    assert progress_of(said).consensus == ("a", "b", "c", "d", ("e", "f"))


def test_agreement_is_that_of_all_questions_of_a_target():
    cat = [answer("x", CAT, "abcd"), answer("y", CAT, "abcd"), answer("z", CAT, "dcba")]
    other = [answer("x", OTHER_CAT, "cd"), answer("y", OTHER_CAT, "cd")]
    assert progress_of(cat).concordance == pytest.approx(1 / 9)
    assert 1 / 9 < progress_of(cat + other).concordance < 1
    assert progress_of(cat[:2] + other).concordance == pytest.approx(1)
    assert progress_of(cat[:1]).concordance is None


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


@st.composite
def some_answers(draw):
    """A few answers to one question."""
    said = []
    for number in range(draw(st.integers(2, 7))):
        order = draw(st.permutations(CAT.items))[: draw(st.integers(1, 4))]
        said.append(answer(f"r{number}", CAT, order))
    return said


@given(some_answers())
@settings(max_examples=30, deadline=None)
def test_every_order_that_the_consensus_allows_is_a_best_one(said):
    allowed = allowed_orders(progress_of(said).consensus, said)
    best = min(reversed_pairs(p, said) for p in permutations(allowed[0]))
    assert {reversed_pairs(order, said) for order in allowed} == {best}
