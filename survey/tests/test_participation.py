"""Taking part: who is asked what, what is kept, and what is refused; on both databases."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import combinations
from random import Random

import pytest

from rankshot.core.errors import NO_VALUE
from rankshot_survey.overview import read_answers, read_overview
from rankshot_survey.store.assignment import assign_questions, count_answers
from rankshot_survey.store.database import Database
from rankshot_survey.store.participation import (
    AlreadyAnsweredError,
    Finished,
    StoppedError,
)
from refusals import refuses
from small_studies import Visitors, questions_about, small_study

ITEMS = ("bus", "fox", "leopard", "tiger", "truck")
TARGETS = ("cat", "dog", "car", "wolf", "lion", "van")
STUDY = small_study(
    items=ITEMS,
    questions=questions_about(*TARGETS, items=ITEMS),
    answers_per_question=4,
    questions_per_participant=3,
)
ALL_AT_ONCE = replace(STUDY, answers_per_question=1, questions_per_participant=6)


@pytest.fixture
def database(place):
    with closing(Database(place, create=True)) as opened:
        yield opened


def stored_answers(people):
    with people.database.begin_read() as connection:
        return read_answers(connection)


def hold_one_each(people):
    """Hold that every question has one answer."""
    assert Counter(a.question.target for a in stored_answers(people)) == dict.fromkeys(TARGETS, 1)


def require_full(function, *arguments):
    """Hold that somebody finds no question."""
    with pytest.raises(StoppedError, match="full"):
        function(*arguments)


@pytest.mark.parametrize("seed", range(5))
def test_loads_stay_within_one_of_each_other(seed):
    def open_ones(counts):
        return {key: n for key, n in counts.items() if n < 10}

    rng = Random(seed)
    counts = dict.fromkeys("abcdefg", 0)
    while keys := assign_questions(open_ones(counts), rng.randint(1, 5), rng):
        assert len(set(keys)) == len(keys)
        for key in keys:
            counts[key] += 1
        assert max(counts.values()) - min(counts.values()) <= 1
    assert set(counts.values()) == {10}


def test_every_question_reaches_its_plan_and_then_the_survey_is_full(database):
    people = Visitors(STUDY, database)
    for person in range(8):
        people.answer(people.start(person))
    require_full(people.start, "late")
    answers = stored_answers(people)
    assert set(Counter(a.question.target for a in answers).values()) == {4}
    pairs = Counter((a.rater, a.question.key) for a in answers)
    assert set(pairs.values()) == {1}


def test_abandoned_questions_return_to_the_pool(database):
    people = Visitors(ALL_AT_ONCE, database)
    first = people.start("first")
    people.answer(first, 1)
    require_full(people.start, "second")
    people.now += 31 * 60
    second = people.start("second")
    with database.begin_read() as connection:
        loads = count_answers(connection, ALL_AT_ONCE, people.now)
        assert sum(load.in_progress for load in loads.values()) == 5
    assert read_overview(ALL_AT_ONCE, database, people.now).counts["left"] == 1
    assert people.answer(second).n_answers == 5
    code = database.identity.code(first)
    assert people.visits.current_question(first) == Finished(code, 1, 1, False)
    hold_one_each(people)


def test_who_agrees_and_never_answers_loses_the_place(database):
    people = Visitors(ALL_AT_ONCE, database)
    first = people.start("first")
    asked = people.visits.current_question(first)
    people.now += 60
    for ask in (people.visits.require_place, partial(people.visits.start, "none:id:second")):
        require_full(ask)
    people.now += 30 * 60
    second = people.start("second")
    assert read_overview(ALL_AT_ONCE, database, people.now).counts == {"left": 1, "active": 1}
    # A late first answer is kept, but the other questions belong to somebody else.
    people.submit(first, asked, asked.shown[:2])
    assert people.visits.current_question(first).n_answers == 1
    people.answer(second)
    assert {a.question.target for a in stored_answers(people)} == set(TARGETS)
    require_full(people.start, "third")


def test_who_comes_back_keeps_what_is_free(database):
    people = Visitors(replace(ALL_AT_ONCE, questions_per_participant=2), database)
    first = people.start("first")
    before = people.visits.current_question(first)
    people.now += 31 * 60
    assert people.visits.current_question(first) == before, "nobody else wanted it"
    people.answer(first, 1)
    people.now += 31 * 60
    # The five other questions go to three people; the last of them has one, and answers nothing.
    for rater in [people.start(i) for i in range(3)][:2]:
        people.answer(rater)
    people.now += 31 * 60
    n = people.answer(first).n_answers
    assert Counter(a.question.target for a in stored_answers(people)).total() == 4 + n
    assert len({a.question.target for a in stored_answers(people)}) == 4 + n
    assert n in {1, 2}, "what others have answered is not asked again"


def test_the_same_answer_twice_is_one_and_another_one_is_told_so(database):
    people = Visitors(STUDY, database)
    rater = people.start("ann")
    asked = people.visits.current_question(rater)
    for _ in range(2):
        people.submit(rater, asked, asked.shown[:2])
    with pytest.raises(AlreadyAnsweredError) as error:
        people.submit(rater, asked, asked.shown[2:4])
    assert error.value.order == asked.shown[:2]
    assert [a.order for a in stored_answers(people)] == [asked.shown[:2]]


def test_one_of_many_simultaneous_answers_is_kept(database):
    people = Visitors(STUDY, database)
    rater = people.start("ann")
    asked = people.visits.current_question(rater)

    def send(pair):
        try:
            people.submit(rater, asked, pair)
        except AlreadyAnsweredError as error:
            return error.order
        return pair

    with ThreadPoolExecutor(8) as pool:
        kept = set(pool.map(send, list(combinations(asked.shown, 2))))
    assert kept == {stored_answers(people)[0].order}


def test_seconds_are_unknown_if_the_clock_was_set_back(database):
    people = Visitors(STUDY, database)
    rater = people.start("ann")
    for passed in (8.0, -3600.0):
        asked = people.visits.current_question(rater)
        # Loading the page again does not start the time again.
        people.now += passed / 2
        assert people.visits.current_question(rater).form == asked.form
        people.now += passed / 2
        people.submit(rater, asked, asked.shown[:2])
    assert [a.seconds for a in stored_answers(people)] == [8.0, None]


def test_bad_urls_of_a_database_are_refused_without_their_password():
    for url in ("mysql://root@localhost/x", "postgresql://user:very-secret@127.0.0.1:1/x"):
        with refuses("database", NO_VALUE) as caught:
            Database(url)
        assert "very-secret" not in str(caught.value)


@pytest.mark.parametrize(("n_questions", "n_again"), [(1, 0), (3, 1), (4, 2), (6, 3)])
def test_at_most_half_of_the_questions_come_again(database, n_questions, n_again):
    """So that others come in between."""
    targets = TARGETS[:n_questions]
    study = small_study(
        items=ITEMS,
        questions=questions_about(*targets, items=ITEMS),
        questions_per_participant=6,
        repeats=3,
    )
    assert study.n_repeated == n_again
    people, asked = Visitors(study, database), Counter()
    people.answer(people.start("a"), rank=lambda q, shown: asked.update([q.target]) or shown[:2])
    assert asked.total() == n_questions + n_again
    assert max(asked.values()) <= 2
