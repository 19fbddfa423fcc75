"""Taking part: who is asked what, what is kept, and what is refused; on both databases."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
from asgi_client import run_coroutine
from small_studies import questions_about, small_study
from sqlalchemy import event

from rankshot.core.errors import RankshotError
from rankshot.survey.overview import read_answers, read_overview
from rankshot.survey.store.assignment import assign_questions, count_answers
from rankshot.survey.store.database import Database
from rankshot.survey.store.participation import (
    AlreadyAnsweredError,
    CurrentQuestion,
    Finished,
    Participation,
    StoppedError,
    Submission,
)
from rankshot.survey.web.participant_routes import WriteQueue

ITEMS = ("bus", "fox", "leopard", "tiger", "truck")
TARGETS = ("cat", "dog", "car", "wolf", "lion", "van")
STUDY = small_study(
    items=ITEMS,
    questions=questions_about(*TARGETS, items=ITEMS),
    answers_per_question=4,
    questions_per_participant=3,
)


@pytest.fixture
def database(place):
    opened = Database(place, create=True)
    yield opened
    opened.close()


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


def open_participation(study, database):
    clock = Clock()
    return Participation(study, database, clock, Random(0), clock), clock


def submit(survey, rater, asked, order=None, **more):
    order = asked.shown[:2] if order is None else order
    places = [str(order.index(item) + 1) if item in order else "" for item in asked.shown]
    (problem,) = survey.submit_all([Submission(rater, asked.number, asked.form, places, **more)])
    if problem is not None:
        raise problem


def answer_all(survey, rater):
    while isinstance(asked := survey.current_question(rater), CurrentQuestion):
        submit(survey, rater, asked)
    return asked


def read_stored_answers(database):
    with database.begin_read() as connection:
        return read_answers(connection)


@pytest.mark.parametrize("seed", range(5))
def test_loads_stay_within_one_of_each_other(seed):
    def open_ones(counts):
        return {key: n for key, n in counts.items() if n < 10}

    rng = Random(seed)
    counts = dict.fromkeys("abcdefg", 0)
    while keys := assign_questions(open_ones(counts), rng.randint(1, 5), (), rng):
        assert len(set(keys)) == len(keys)
        for key in keys:
            counts[key] += 1
        assert max(counts.values()) - min(counts.values()) <= 1
    assert set(counts.values()) == {10}


def test_every_question_reaches_its_plan_and_then_the_survey_is_full(database):
    survey, _ = open_participation(STUDY, database)
    for person in range(8):
        answer_all(survey, survey.start(f"none:{person}"))
    with pytest.raises(StoppedError, match="full"):
        survey.start("none:late")
    answers = read_stored_answers(database)
    assert set(Counter(a.question.target for a in answers).values()) == {4}
    pairs = Counter((a.rater, a.question.key) for a in answers)
    assert set(pairs.values()) == {1}


def test_abandoned_questions_return_to_the_pool(database):
    study = replace(STUDY, answers_per_question=1, questions_per_participant=6)
    survey, clock = open_participation(study, database)
    first = survey.start("none:first")
    submit(survey, first, survey.current_question(first))
    with pytest.raises(StoppedError, match="full"):
        survey.start("none:second")
    clock.now += 31 * 60
    second = survey.start("none:second")
    assert second is not None
    with database.begin_read() as connection:
        loads = count_answers(connection, study, clock.now)
        assert sum(load.in_progress for load in loads.values()) == 5
    assert read_overview(study, database, clock.now).counts["left"] == 1
    assert answer_all(survey, second).n_answers == 5
    assert survey.current_question(first) == Finished(database.identity.code(first), 1, 1, 0, False)
    assert set(Counter(a.question.target for a in read_stored_answers(database)).values()) == {1}


def test_who_agrees_and_never_answers_soon_loses_the_place(database):
    study = replace(STUDY, answers_per_question=1, questions_per_participant=6)
    survey, clock = open_participation(study, database)
    first = survey.start("none:first")
    asked = survey.current_question(first)
    clock.now += 60
    for ask in (survey.require_place, survey.start):
        with pytest.raises(StoppedError, match="full") as stopped:
            ask("none:second")
        assert stopped.value.wait == pytest.approx(4 * 60)
    clock.now += stopped.value.wait + 1
    second = survey.start("none:second")
    assert read_overview(study, database, clock.now).counts == {"left": 1, "active": 1}
    # A late first answer is kept, but the other questions belong to somebody else.
    submit(survey, first, asked)
    assert survey.current_question(first).n_answers == 1
    answer_all(survey, second)
    assert {a.question.target for a in read_stored_answers(database)} == set(TARGETS)
    with pytest.raises(StoppedError, match="full") as stopped:
        survey.start("none:third")
    assert stopped.value.wait is None, "every question has its answer"


def test_who_comes_back_keeps_what_is_free_and_gets_others_for_what_is_not(database):
    study = replace(STUDY, answers_per_question=1, questions_per_participant=2)
    survey, clock = open_participation(study, database)
    first = survey.start("none:first")
    before = survey.current_question(first)
    clock.now += 31 * 60
    assert survey.current_question(first) == before, "nobody else wanted it"
    clock.now += 31 * 60
    # All six questions go to three others; the last of them answers nothing.
    others = [survey.start(f"none:{i}") for i in range(3)]
    for rater in others[:2]:
        answer_all(survey, rater)
    clock.now += 31 * 60
    finished = answer_all(survey, first)
    assert finished.n_answers == 2
    counts = Counter(a.question.target for a in read_stored_answers(database))
    assert set(counts) == set(TARGETS)
    assert set(counts.values()) == {1}


def test_an_answer_from_a_page_that_was_open_too_long_is_kept(database):
    study = replace(STUDY, answers_per_question=1, questions_per_participant=6)
    survey, clock = open_participation(study, database)
    slow = survey.start("none:slow")
    asked = survey.current_question(slow)
    clock.now += 31 * 60
    submit(survey, slow, asked)
    assert [a.rater for a in read_stored_answers(database)] == [slow]
    quick = survey.start("none:quick")
    assert answer_all(survey, quick).n_answers == 5, "what slow has not answered is free"
    assert survey.current_question(slow).n_answers == 1


def test_the_same_answer_twice_is_one_and_another_one_is_told_so(database):
    survey, _ = open_participation(STUDY, database)
    rater = survey.start("none:ann")
    asked = survey.current_question(rater)
    submit(survey, rater, asked, order=asked.shown[:2])
    submit(survey, rater, asked, order=asked.shown[:2])
    with pytest.raises(AlreadyAnsweredError) as error:
        submit(survey, rater, asked, order=asked.shown[2:4])
    assert error.value.order == asked.shown[:2]
    assert [a.order for a in read_stored_answers(database)] == [asked.shown[:2]]


def test_one_of_many_simultaneous_answers_is_kept(database):
    survey, _ = open_participation(STUDY, database)
    rater = survey.start("none:ann")
    asked = survey.current_question(rater)

    def send(pair):
        try:
            submit(survey, rater, asked, order=pair)
        except AlreadyAnsweredError as error:
            return error.order
        return pair

    with ThreadPoolExecutor(8) as pool:
        kept = set(pool.map(send, list(combinations(asked.shown, 2))))
    assert kept == {read_stored_answers(database)[0].order}


def test_a_clock_that_is_set_back_changes_no_seconds_of_the_same_process(database):
    clock, ticks = Clock(), Clock()
    survey = Participation(STUDY, database, clock, Random(0), ticks)
    rater = survey.start("none:ann")
    for passed, jump in ((8.0, -3600.0), (9.0, 86_400.0)):
        asked = survey.current_question(rater)
        ticks.now += passed
        clock.now += passed + jump
        submit(survey, rater, asked)
    assert [a.seconds for a in read_stored_answers(database)] == [8.0, 9.0]


def test_bad_places_for_a_database_say_so(tmp_path):
    with pytest.raises(RankshotError, match=r"gone.sqlite: there is no such database"):
        Database(tmp_path / "gone.sqlite")
    with pytest.raises(RankshotError, match="must be an SQLite file or a URL"):
        Database("mysql://root@localhost/x")
    (tmp_path / "text.sqlite").write_text("no database, but text that is long enough" * 50)
    with pytest.raises(RankshotError, match="not a database"):
        Database(tmp_path / "text.sqlite")
    with pytest.raises(RankshotError, match="cannot open") as error:
        Database("postgresql://user:very-secret@127.0.0.1:1/x")
    assert "very-secret" not in str(error.value)


# ---- What an answer costs the database: statements, not times, which differ between machines


@contextmanager
def noted_statements(database):
    """Yield a list to which every statement is added while the block runs."""
    noted = []

    def note(_connection, _cursor, statement, *_):
        if not statement.startswith("BEGIN"):
            noted.append(statement)

    event.listen(database._engine, "before_cursor_execute", note)
    yield noted
    event.remove(database._engine, "before_cursor_execute", note)


def test_an_answer_takes_three_statements_and_the_next_question_one(database):
    survey = Participation(small_study(), database)
    rater = survey.start("none:id:ann")
    now = survey.current_question(rater)
    with noted_statements(database) as noted:
        submit(survey, rater, now, now.shown[:1])
    assert [statement.split()[0] for statement in noted] == ["SELECT", "UPDATE", "UPDATE"]
    with noted_statements(database) as noted:
        survey.current_question(rater)
    assert [statement.split()[0] for statement in noted] == ["SELECT"], "a page writes nothing"


# ---- Answers that wait together


def test_answers_share_a_transaction_and_a_wrong_one_fails_alone(tmp_path):
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        visits = Participation(small_study(), database)
        sent = []
        for name, places in (("ann", "123"), ("bob", "113"), ("cem", "321"), ("dan", "1")):
            rater = visits.start(f"none:id:{name}")
            asked = visits.current_question(rater)
            form = "0" * len(asked.form) if name == "cem" else asked.form
            sent.append(Submission(rater, asked.number, form, [*places.ljust(3)]))
        sent[-1] = sent[-1]._replace(places=["1", "", ""])
        problems = visits.submit_all(sent)
        assert [type(problem).__name__ for problem in problems] == [
            "NoneType",
            "ParticipantError",
            "NotAssignedError",
            "NoneType",
        ]
        with database.begin_read() as connection:
            assert {a.rater for a in read_answers(connection)} == {sent[0].rater, sent[3].rater}


def test_what_waits_for_a_thread_is_stored_together_and_each_hears_of_an_outage():
    stored = []

    def store(sent):
        stored.append(sent)
        if "outage" in sent:
            raise OSError("no space")
        return [None] * len(sent)

    async def send():
        queue = WriteQueue(store, 1)
        answers = await asyncio.gather(*(queue.put(number) for number in range(5)))
        outage = await asyncio.gather(*(queue.put(text) for text in ("x", "outage")))
        # The queue goes on after an outage.
        return answers, [str(problem) for problem in outage], await queue.put("z")

    assert run_coroutine(send()) == ([None] * 5, ["no space"] * 2, None)
    assert stored == [(0, 1, 2, 3, 4), ("x", "outage"), ("z",)]
