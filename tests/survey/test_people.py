"""What researchers do with participants: exclude, restore, reopen, withdraw, delete, reset."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from threading import Event

import pytest
from asgi_client import dump
from server_process import wait_until
from small_studies import questions_about, small_study
from sqlalchemy import func, select, text

from rankshot.core.errors import RankshotError
from rankshot.survey.overview import read_overview
from rankshot.survey.platforms import ProlificSession, TurkTask
from rankshot.survey.store import participation, postgresql as store_postgresql, sqlite_files
from rankshot.survey.store.assignment import count_answers
from rankshot.survey.store.database import ASSIGNMENT, EXTRA_ANSWER, Database
from rankshot.survey.store.participation import (
    CurrentQuestion,
    NotAssignedError,
    Participation,
    StoppedError,
)
from rankshot.survey.store.people import (
    delete_participants,
    exclude,
    find_raters,
    forget_ids,
    read_events,
    reopen_participants,
    reset,
    restore,
    set_state,
    withdraw,
)
from rankshot.survey.study import ExtraQuestion, Question

GOLD = Question("lorry", ("rose", "truck", "fox"), first=("truck",))
STUDY = small_study(answers_per_question=2, questions_per_participant=4, repeats=1, gold=(GOLD,))
DAY = 24 * 60 * 60


class Survey:
    """A survey with a clock that the test sets."""

    def __init__(self, study, place):
        self.database = Database(place, create=True)
        self.now = 1e9
        self.taking = Participation(study, self.database, lambda: self.now, Random(0))
        self.study = study

    def start(self, name, **more):
        return self.taking.start(f"none:id:{name}", **more)

    def answer(self, rater, n=100, *, skip=()):
        """Answer the next questions, but skip those of some targets."""
        for _ in range(n):
            asked = self.taking.current_question(rater)
            if not isinstance(asked, CurrentQuestion):
                return asked
            places = ["1", *[""] * (len(asked.shown) - 1)]
            left_out = asked.question.target in skip
            self.taking.submit(rater, asked.number, asked.form, places, skip=left_out)
        return None

    def loads(self, **more):
        with self.database.begin_read() as connection:
            found = count_answers(connection, self.study, self.now, **more)
        return {tuple(load) for load in found.values()}

    def people(self, **more):
        return read_overview(self.study, self.database, self.now, **more).people

    def count_assigned(self, rater):
        mine = select(func.count()).select_from(ASSIGNMENT).where(ASSIGNMENT.c.rater == rater)
        with self.database.begin_read() as connection:
            return connection.execute(mine).scalar_one()

    def events(self):
        with self.database.begin_read() as connection:
            found = read_events(connection)
        return Counter((event.action, event.rater, event.detail) for event in found)


@pytest.fixture
def survey(place):
    made = Survey(STUDY, place)
    yield made
    made.database.close()


def stopped(survey, function, *arguments):
    with pytest.raises(StoppedError) as error:
        function(*arguments)
    return error.value.reason


def test_everything_about_each_participant_is_counted(survey):
    ann, bob = survey.start("ann"), survey.start("bob")
    survey.now += 60
    survey.answer(ann, skip=("cat",))
    survey.answer(bob, 2)
    people = survey.people()
    assert list(people) == sorted((ann, bob)), "both started at once"
    mine, theirs = people[ann], people[bob]
    # Of six, one may be the repeat of what was skipped, which is not asked.
    n_repeats = survey.count_assigned(ann) - 5
    assert n_repeats in (0, 1)
    assert (mine.n_answers, mine.n_checks, mine.n_skipped) == (3, 1 + n_repeats, 1)
    assert (mine.started_at, mine.finished_at) == (1e9, 1e9 + 60)
    assert theirs.finished_at is None
    assert theirs.n_answers + theirs.n_checks == 2
    assert survey.count_assigned(bob) == 6
    assert survey.people(pilot=True) == {}


def test_answers_of_the_excluded_are_kept_and_do_not_count(survey):
    raters = [survey.start(name) for name in ("ann", "bob")]
    for rater in raters:
        survey.answer(rater)
    assert survey.loads() == {(2, 0)}
    assert survey.start("eve") is None
    before = dump(survey.database)["assignment"]
    exclude(survey.database, [raters[0]], "answers  within\na second ")
    assert survey.loads() == {(1, 0)}
    assert survey.people()[raters[0]].excluded_why == "answers within a second"
    eve = survey.start("eve")
    survey.answer(eve)
    assert survey.loads() == {(2, 0)}, "somebody else has the place at once"
    restore(survey.database, [raters[0]])
    assert survey.loads() == {(3, 0)}
    kept = [row for row in dump(survey.database)["assignment"] if row["rater"] in raters]
    assert kept == before
    assert survey.events() == {
        ("exclude", raters[0], "answers within a second"): 1,
        ("restore", raters[0], ""): 1,
    }


def test_only_who_changes_is_reported_and_recorded(survey):
    ann, bob = survey.start("ann"), survey.start("bob")
    survey.answer(ann)
    before = survey.people()
    assert restore(survey.database, [ann, bob]) == []
    assert reopen_participants(survey.database, [ann, bob]) == []
    assert survey.people() == before, "who has finished without a skip is still to be paid"
    assert survey.events() == {}
    assert exclude(survey.database, [ann], "too fast") == [ann]
    assert exclude(survey.database, [ann], "too  fast") == []
    assert set(exclude(survey.database, [ann, bob], "one person")) == {ann, bob}
    assert restore(survey.database, [ann]) == [ann]
    withdraw(survey.database, [bob])
    assert reopen_participants(survey.database, [ann, bob]) == [bob]
    assert reset(survey.database, pilot_only=True) == 0
    assert survey.events() == {
        ("exclude", ann, "too fast"): 1,
        ("exclude", ann, "one person"): 1,
        ("exclude", bob, "one person"): 1,
        ("restore", ann, ""): 1,
        ("withdraw", bob, ""): 1,
        ("reopen", bob, ""): 1,
    }


def test_the_restored_do_not_take_places_that_others_have_meanwhile(survey):
    first = [survey.start(name) for name in ("ann", "bob")]
    survey.answer(first[0], 1)
    exclude(survey.database, first, "one person")
    others = [survey.start(name) for name in ("eve", "max")]
    assert survey.loads() == {(0, 2)}
    restore(survey.database, first)
    assert survey.loads() <= {(0, 2), (1, 2)}, "2 answers per question"
    for rater in (*others, *first):
        survey.answer(rater)
    assert max(given for given, _ in survey.loads()) <= 3


def test_the_excluded_do_not_go_on_but_see_their_code_if_they_had_finished(survey):
    ann, bob = survey.start("ann"), survey.start("bob")
    survey.answer(ann)
    survey.answer(bob, 1)
    exclude(survey.database, [ann, bob], "one person")
    assert survey.taking.current_question(ann).code == survey.database.identity.code(ann)
    assert stopped(survey, survey.taking.current_question, bob) == "excluded"
    assert stopped(survey, survey.start, "bob") == "excluded"
    assert stopped(survey, survey.taking.require_place, "none:id:bob") == "excluded"
    restore(survey.database, [bob])
    assert survey.answer(bob).n_counted == 4


def test_who_withdraws_leaves_no_answer_and_a_free_place(survey):
    ann, bob = survey.start("ann"), survey.start("bob")
    survey.answer(ann)
    survey.answer(bob, 3)
    with survey.database.begin_write() as connection:
        connection.execute(EXTRA_ANSWER.insert().values(rater=ann, name="age", value="33"))
    survey.taking.withdraw(ann)
    survey.taking.withdraw(bob)
    stored = dump(survey.database)
    assert (stored["assignment"], stored["extra_answer"]) == ([], [])
    assert {row["rater"] for row in stored["participant"]} == {ann, bob}
    assert survey.loads() == {(0, 0)}
    for name, rater in (("ann", ann), ("bob", bob)):
        assert stopped(survey, survey.start, name) == "withdrawn"
        assert stopped(survey, survey.taking.current_question, rater) == "withdrawn"
    reopen_participants(survey.database, [ann])
    assert survey.start("ann") == ann
    assert survey.answer(ann).n_counted == 4
    with pytest.raises(NotAssignedError):
        survey.taking.withdraw("0" * 16)


def test_reopened_participants_get_their_skipped_questions_again(survey):
    ann = survey.start("ann")
    assert survey.answer(ann, skip=("cat", "dog")).n_counted == 2
    reopen_participants(survey.database, [ann])
    asked = survey.taking.current_question(ann)
    assert asked.question.target in ("cat", "dog")
    finished = survey.answer(ann)
    assert (finished.n_counted, finished.n_skipped) == (4, 0)
    assert survey.events() == {("reopen", ann, ""): 1}


def test_what_others_have_answered_meanwhile_is_not_asked_again(survey):
    ann = survey.start("ann")
    survey.answer(ann, skip=("cat", "dog"))
    for name in ("bob", "eve"):
        survey.answer(survey.start(name))
    assert survey.loads() == {(2, 0)}
    reopen_participants(survey.database, [ann])
    finished = survey.answer(ann)
    assert (finished.n_counted, finished.n_skipped) == (2, 0)
    assert survey.loads() == {(2, 0)}


@pytest.mark.parametrize("answered", [False, True])
def test_who_withdrew_and_may_go_on_gets_questions_by_the_own_link(survey, answered):
    ann = survey.start("ann")
    if answered:
        survey.answer(ann)
    withdraw(survey.database, [ann])
    reopen_participants(survey.database, [ann])
    assert survey.taking.current_question(ann).position == 1
    assert survey.answer(ann).n_counted == 4
    withdraw(survey.database, [ann])
    reopen_participants(survey.database, [ann])
    set_state(survey.database, "closed")
    assert stopped(survey, survey.taking.current_question, ann) == "closed"


def test_the_last_answer_of_the_excluded_is_no_end(survey):
    ann = survey.start("ann")
    asked = survey.taking.current_question(ann)
    while asked.position < asked.total:
        survey.taking.submit(ann, asked.number, asked.form, ["1", *[""] * (len(asked.shown) - 1)])
        asked = survey.taking.current_question(ann)
    exclude(survey.database, [ann], "too fast")
    survey.taking.submit(ann, asked.number, asked.form, ["1", *[""] * (len(asked.shown) - 1)])
    assert survey.people()[ann].n_answers == 4, "what was sent is stored"
    assert survey.people()[ann].finished_at is None
    assert stopped(survey, survey.taking.current_question, ann) == "excluded"
    restore(survey.database, [ann])
    assert survey.taking.current_question(ann).code


def test_who_skips_everything_may_think_again_and_nobody_else(survey):
    ann, bob = survey.start("ann"), survey.start("bob")
    finished = survey.answer(ann, skip=("cat", "dog", "car", "van"))
    assert (finished.n_counted, finished.n_skipped) == (0, 4)
    survey.answer(bob, 2)
    for rater in (bob, "0" * 16):
        with pytest.raises(NotAssignedError):
            survey.taking.reopen(rater)
    survey.taking.reopen(ann)
    assert survey.answer(ann).n_counted == 4
    with pytest.raises(NotAssignedError):
        survey.taking.reopen(ann)
    assert survey.events() == {}, "no researcher did anything"


def test_deleted_participants_are_in_no_table(survey):
    raters = [survey.start(name) for name in ("ann", "bob")]
    for rater in raters:
        survey.answer(rater)
    with survey.database.begin_write() as connection:
        connection.execute(EXTRA_ANSWER.insert().values(rater=raters[0], name="age", value="33"))
    exclude(survey.database, raters, "Ann Smith says that she was ill")
    delete_participants(survey.database, raters[:1])
    assert raters[0] not in str(dump(survey.database))
    assert {row["rater"] for row in dump(survey.database)["assignment"]} == {raters[1]}
    assert survey.events() == {
        ("exclude", raters[1], "Ann Smith says that she was ill"): 1,
        ("delete", None, "1 deleted"): 1,
    }
    assert survey.start("ann") == raters[0], "who was deleted is nobody we know"


# ---- What is deleted is gone from the bytes

SECRET = "I was born in Oldenburg"
EXTRA = (ExtraQuestion("free", "Anything else?", "text"),)


def tell_a_secret(place):
    """Return a survey with a free text of somebody, and this rater."""
    survey = Survey(small_study(extra=EXTRA), place)
    ann = survey.start("ann")
    left = survey.answer(ann)
    survey.taking.submit_extra(ann, left.form, {"free": SECRET})
    return survey, ann


def has_secret(folder):
    return any(SECRET.encode() in path.read_bytes() for path in folder.iterdir())


def test_what_was_withdrawn_is_soon_gone_from_the_file_and_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_files, "CHECKPOINT_SECONDS", 0.05)
    survey, ann = tell_a_secret(tmp_path / "study.sqlite")
    survey.database.start_serving()
    assert has_secret(tmp_path)
    survey.taking.withdraw(ann)
    wait_until(lambda: not has_secret(tmp_path))
    survey.database.close()


def test_a_deletion_does_not_wait_for_readers_and_a_server_finishes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_files, "CHECKPOINT_SECONDS", 0.05)
    monkeypatch.setattr(sqlite_files, "ERASE_SECONDS", 0.2)
    survey, ann = tell_a_secret(tmp_path / "study.sqlite")
    survey.database.start_serving()
    command = Database(tmp_path / "study.sqlite")
    with survey.database.begin_read() as connection:
        connection.execute(text("SELECT count(*) FROM question")).scalar()
        start = time.monotonic()
        delete_participants(command, [ann])
        assert time.monotonic() - start < 5
        assert "the rows are deleted, but the log (study.sqlite-wal) still has" in command.remains
        command.close()
        assert survey.answer(survey.start("bob"), 1) is None, "others go on"
        assert has_secret(tmp_path)
    wait_until(lambda: not has_secret(tmp_path))
    delete_participants(survey.database, [survey.start("bob")])
    assert survey.database.remains is None
    survey.database.close()


def read_table_file(database):
    """Return the bytes of the table with the extra answers, in PostgreSQL."""
    file = "current_setting('data_directory') || '/' || pg_relation_filepath('extra_answer')"
    with database.begin_write() as connection:
        connection.execute(text("CHECKPOINT"))
        return Path(connection.execute(text(f"SELECT {file}")).scalar()).read_bytes()


@pytest.mark.parametrize("table", ["participant", "survey"])
def test_a_deletion_from_postgresql_does_not_wait_for_readers_and_says_so(
    postgresql, monkeypatch, table
):
    monkeypatch.setattr(store_postgresql, "ERASE_SECONDS", 0.2)
    survey, ann = tell_a_secret(postgresql())
    bob = survey.start("bob")
    with survey.database.begin_read() as connection:
        # A lock of the table, or only a snapshot that is older than the deletion.
        connection.execute(text(f"SELECT count(*) FROM {table}")).scalar()
        start = time.monotonic()
        delete_participants(survey.database, [ann])
        assert time.monotonic() - start < 5
        assert "the files of the tables still have copies" in survey.database.remains
        survey.answer(bob, 1)
        assert SECRET.encode() in read_table_file(survey.database)
    delete_participants(survey.database, [bob])
    assert survey.database.remains is None
    with survey.database.begin_write() as connection:
        assert connection.execute(text("SHOW lock_timeout")).scalar() == "0"
    assert SECRET.encode() not in read_table_file(survey.database)
    survey.database.close()


def test_a_lock_of_a_new_reader_does_not_stop_the_answers(postgresql, monkeypatch):
    monkeypatch.setattr(store_postgresql, "ERASE_SECONDS", 0.2)
    survey, ann = tell_a_secret(postgresql())
    monkeypatch.setattr(store_postgresql, "_wait_for_readers", lambda _connection: True)
    with survey.database.begin_read() as connection:
        connection.execute(text("SELECT count(*) FROM participant")).scalar()
        delete_participants(survey.database, [ann])
        assert survey.database.remains is not None
        survey.start("bob")
    survey.database.close()


@pytest.mark.parametrize("action", [withdraw, delete_participants])
def test_extra_answers_that_come_at_the_same_moment_are_deleted_as_well(
    postgresql, monkeypatch, action
):
    survey = Survey(small_study(extra=EXTRA), postgresql())
    ann = survey.start("ann")
    left = survey.answer(ann)
    save, is_saving = participation.save_extra_answers, Event()

    def save_late(*arguments):
        is_saving.set()
        waits = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with survey.database.begin_read() as connection:
                if connection.execute(waits).scalar():
                    break
            time.sleep(0.01)
        save(*arguments)

    monkeypatch.setattr(participation, "save_extra_answers", save_late)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(survey.taking.submit_extra, ann, left.form, {"free": "a secret"})
        assert is_saving.wait(20)
        action(survey.database, [ann])
        sent.result()
    stored = dump(survey.database)
    assert (stored["extra_answer"], stored["assignment"]) == ([], [])
    survey.database.close()


@pytest.mark.parametrize(
    "action",
    [
        lambda database, raters: exclude(database, raters, "no reason"),
        restore,
        reopen_participants,
        withdraw,
        delete_participants,
    ],
)
def test_an_unknown_rater_is_named_and_nothing_is_done(survey, action):
    ann = survey.start("ann")
    survey.answer(ann, skip=("cat",))
    before = dump(survey.database)
    with pytest.raises(RankshotError, match="no rater 'cafe'; nothing was changed"):
        action(survey.database, [ann, "cafe"])
    assert dump(survey.database) == before


def test_a_reason_is_needed_and_not_a_novel(survey):
    ann = survey.start("ann")
    for why in ("", " \n ", "x" * 501):
        with pytest.raises(RankshotError, match="write from 1 to 500"):
            exclude(survey.database, [ann], why)
    assert survey.events() == {}


def test_people_are_found_by_id_code_invitation_and_rater(survey):
    identity = survey.database.identity
    ann = survey.start("ann", turk=TurkTask("3AAA", "https://www.mturk.com"))
    bob = survey.taking.start("invitation:id:7", session=ProlificSession("p-7", "s", "t"))

    def find(*names):
        with survey.database.begin_read() as connection:
            return find_raters(connection, identity, "none", names)

    assert find("ann") == find(ann) == find(identity.code(ann)) == find("3AAA") == [ann]
    assert find("7") == find(identity.invitation(7)) == find("p-7") == [bob]
    assert find(bob, "ann", "7") == [bob, ann]
    with pytest.raises(RankshotError, match=r"'x', 'y'; nothing was changed"):
        find("ann", "x", "y")
    with pytest.raises(RankshotError, match="no participant"):
        find(identity.invitation(7)[:-1] + "g")
    withdraw(survey.database, [ann])
    seven = survey.start("7")
    with pytest.raises(RankshotError, match="'7' fits 2 participants"):
        find("7")
    assert seven != bob


def test_ids_of_the_platform_are_forgotten(survey):
    ann = survey.start("ann", session=ProlificSession("no-hex-digits", "st", "se"))
    bob = survey.start("bob", turk=TurkTask("3AAA", "https://www.mturk.com"))
    person = survey.people()[ann]
    assert [person.ids[f"platform_{name}"] for name in ("id", "study", "session")] == [
        *("no-hex-digits", "st", "se")
    ]
    assert forget_ids(survey.database) == 2
    people = survey.people()
    assert set(people[ann].ids.values()) == set(people[bob].ids.values()) == {None}
    assert "no-hex-digits" not in str(dump(survey.database))
    assert survey.events() == {("forget-ids", None, "ids of 2 participants"): 1}


def test_a_new_session_replaces_the_old_one_until_the_end(survey):
    first, second, third = (ProlificSession("5f1e", "st", name) for name in "abc")
    ann = survey.start("ann", session=first)
    survey.start("ann", session=second)
    assert survey.people()[ann].ids["platform_session"] == "b"
    survey.answer(ann)
    survey.start("ann", session=third)
    assert survey.people()[ann].ids["platform_session"] == "b", "nobody is paid twice"


# ---- States


def test_in_a_paused_study_nobody_starts_or_goes_on_but_what_is_sent_is_stored(survey):
    ann, bob = survey.start("ann"), survey.start("bob")
    survey.answer(bob)
    asked = survey.taking.current_question(ann)
    set_state(survey.database, "paused")
    survey.taking.submit(ann, asked.number, asked.form, ["1", *[""] * (len(asked.shown) - 1)])
    assert stopped(survey, survey.taking.current_question, ann) == "paused"
    for name in ("ann", "eve"):
        assert stopped(survey, survey.start, name) == "paused"
        assert stopped(survey, survey.taking.require_place, f"none:id:{name}") == "paused"
    assert survey.taking.current_question(bob).code, "who has finished sees the code"
    set_state(survey.database, "open")
    assert survey.taking.current_question(ann).position == 2


def test_in_a_closed_study_who_has_started_may_finish(survey):
    ann = survey.start("ann")
    set_state(survey.database, "closed")
    assert stopped(survey, survey.start, "bob") == "closed"
    assert stopped(survey, survey.taking.require_place, None) == "closed"
    assert survey.start("ann") == ann
    assert survey.answer(ann).n_counted == 4
    set_state(survey.database, "closed")
    assert survey.events() == {("state", None, "open to closed"): 1}
    with pytest.raises(RankshotError, match="state must be"):
        set_state(survey.database, "stopped")


def test_pilot_answers_never_mix(survey):
    set_state(survey.database, "pilot")
    assert survey.taking.require_place(None) is True
    pilots = [survey.start(f"pilot {i}") for i in range(2)]
    for rater in pilots:
        assert survey.taking.current_question(rater).pilot
        assert survey.answer(rater).pilot
    assert survey.start("pilot 3") is None, "the plan holds for a pilot as well"
    assert survey.loads() == {(0, 0)}
    assert survey.loads(pilot=True) == {(2, 0)}
    set_state(survey.database, "open")
    assert survey.taking.require_place(None) is False
    ann = survey.start("ann")
    assert not survey.taking.current_question(ann).pilot
    survey.answer(ann)
    assert survey.loads() == {(1, 0)}
    assert set(survey.people()) == {ann}
    assert set(survey.people(pilot=True)) == set(pilots)
    assert reset(survey.database, pilot_only=True) == 2
    assert survey.people(pilot=True) == {}
    assert set(survey.people()) == {ann}
    assert survey.loads() == {(1, 0)}


def test_a_reset_deletes_people_and_answers_only_and_not_while_the_study_runs(survey):
    ann = survey.start("ann")
    survey.answer(ann)
    before = dump(survey.database)
    for state, words in (("open", "open"), ("pilot", "a pilot")):
        set_state(survey.database, state)
        with pytest.raises(RankshotError, match=f"the survey is {words}: pause or close it first"):
            reset(survey.database, pilot_only=False)
    set_state(survey.database, "paused")
    assert reset(survey.database, pilot_only=False) == 1
    after = dump(survey.database)
    assert after["participant"] == after["assignment"] == []
    assert after["question"] == before["question"]
    assert after["survey"] == [{**before["survey"][0], "state": "paused"}]
    assert ("reset", None, "all participants: 1 deleted") in survey.events()


def test_who_tried_the_pilot_is_a_new_participant_in_the_study(survey):
    set_state(survey.database, "pilot")
    tried = survey.start("ann")
    survey.answer(tried)
    assert survey.start("ann") == tried
    assert survey.taking.is_known("none:id:ann")
    set_state(survey.database, "open")
    assert not survey.taking.is_known("none:id:ann")
    assert survey.taking.require_place("none:id:ann") is False
    ann = survey.start("ann")
    assert ann != tried
    assert survey.taking.current_question(ann).position == 1
    survey.answer(ann)
    assert survey.taking.current_question(tried).pilot, "by the own link, the pilot is kept"
    with survey.database.begin_read() as connection:
        found = find_raters(connection, survey.database.identity, "none", ["ann"])
    assert set(found) == {ann, tried}, "who asks for a deletion means both"
    assert survey.loads() == survey.loads(pilot=True) == {(1, 0)}


# ---- Spare answers


@pytest.mark.parametrize("spare", [0, 1, 2])
def test_a_question_is_assigned_to_some_more_people_until_it_is_closed(place, spare):
    study = replace(
        small_study(questions=questions_about("cat", "dog")),
        answers_per_question=3,
        questions_per_participant=2,
        spare_answers=spare,
    )
    survey = Survey(study, place)
    raters = [survey.start(str(i)) for i in range(6)]
    assert raters.count(None) == 3 - spare
    found = [rater for rater in raters if rater]
    assert (stopped(survey, survey.taking.require_place, None)) == "full"
    for rater in found[:3]:
        survey.answer(rater)
    # With all answers, a question is closed, and nobody new gets it.
    assert survey.loads() == {(3, spare)}
    assert survey.start("late") is None
    if spare:
        withdraw(survey.database, found[:1])
        assert survey.loads() == {(2, spare)}
        assert survey.start("late") is not None
    survey.now += DAY
    assert survey.loads() == {(2 if spare else 3, 0)}
    survey.database.close()
