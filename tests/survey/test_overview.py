"""The overview: read again after every change, and only then."""

from contextlib import closing
from random import Random

import pytest
from small_studies import small_study

from rankshot.survey.export import answer_records
from rankshot.survey.overview import OverviewReader, read_overview
from rankshot.survey.store.database import Database
from rankshot.survey.store.participation import Participation
from rankshot.survey.store.people import (
    delete_participants,
    exclude,
    reopen_participants,
    restore,
    set_state,
    withdraw,
)
from rankshot.survey.study import ExtraQuestion

STUDY = small_study(extra=(ExtraQuestion("age", "How old?", "number"),))


class Survey:
    """A study with a clock that tests set, and its reader."""

    def __init__(self, database):
        self.now = 1e9
        self.database = database
        self.visits = Participation(STUDY, database, lambda: self.now, Random(0), lambda: self.now)
        self.reader = OverviewReader(STUDY, database, lambda: self.now)

    def answer(self, rater, *, skip=False, n=1, seconds=9, turn=0):
        for _ in range(n):
            asked = self.visits.current_question(rater)
            self.now += seconds
            places = [str((i + turn) % len(asked.shown) + 1) for i in range(len(asked.shown))]
            self.visits.submit(rater, asked.number, asked.form, places, skip=skip)


@pytest.fixture
def survey(place):
    with closing(Database(place, create=True)) as database:
        yield Survey(database)


def test_every_change_is_seen_and_nothing_else_is_read_again(survey):
    database, read = survey.database, survey.reader.read
    ann, bob = (survey.visits.start(f"none:id:{name}") for name in ("ann", "bob"))
    survey.answer(ann, n=2)
    seen = [read()]

    def finish():
        survey.answer(ann)
        survey.answer(ann, skip=True)
        extra = survey.visits.current_question(ann)
        survey.visits.submit_extra(ann, extra.form, {"age": "30"})

    def later():
        survey.now += 3600

    for change, sees in [
        (lambda: survey.answer(bob), lambda view: view.people[bob].n_answers == 1),
        (finish, lambda view: view.people[ann].extra == {"age": "30"}),
        (later, lambda view: view.people[bob].state == "left"),
        (lambda: exclude(database, [bob], "why"), lambda view: view.counts["excluded"] == 1),
        (lambda: restore(database, [bob]), lambda view: view.counts["excluded"] == 0),
        (lambda: set_state(database, "paused"), lambda view: view.state == "paused"),
        (lambda: set_state(database, "open"), lambda view: view.state == "open"),
        (lambda: reopen_participants(database, [ann]), lambda view: view.counts["left"] == 2),
        (lambda: withdraw(database, [bob]), lambda view: view.people[bob].state == "withdrawn"),
        (lambda: survey.visits.start("none:id:cem"), lambda view: len(view.people) == 3),
        (lambda: delete_participants(database, [ann]), lambda view: ann not in view.people),
    ]:
        assert not sees(seen[-1])
        change()
        seen.append(read())
        assert sees(seen[-1])
        assert read() is seen[-1]
        # What is used again is what is found without it.
        fresh = read_overview(STUDY, database, survey.now)
        assert (fresh.questions, fresh.targets) == (seen[-1].questions, seen[-1].targets)
        assert fresh.people == seen[-1].people
    assert len({view.version for view in seen}) == len(seen)


def test_the_pilot_and_the_others_never_mix(survey):
    set_state(survey.database, "pilot")
    tried = survey.visits.start("none:id:tester")
    survey.answer(tried, n=3)
    set_state(survey.database, "open")
    ann = survey.visits.start("none:id:ann")
    survey.answer(ann)
    both = [survey.reader.read(pilot=pilot) for pilot in (False, True)]
    assert [list(view.people) for view in both] == [[ann], [tried]]
    assert [view.n_answers for view in both] == [1, 3]
    assert [{a.rater for a in view.answers} for view in both] == [{ann}, {tried}]
    assert [sum(q.in_progress for q in view.questions) for view in both] == [3, 1]
    assert [view.n_pilot for view in both] == [1, 1]
    assert [survey.reader.read(pilot=pilot) for pilot in (False, True)] == both


def test_the_evidence_for_an_exclusion_stays(survey):
    raters = [survey.visits.start(f"none:id:{i}") for i in range(6)]
    for rater in raters:
        survey.answer(rater, n=4, seconds=1 if rater == raters[0] else 9, turn=raters.index(rater))
    before = survey.reader.read().people
    assert [flag.name for flag in before[raters[0]].flags] == ["fast", "distance"]
    exclude(survey.database, raters[:1], "too fast")
    view = survey.reader.read()
    assert view.people[raters[0]].flags == before[raters[0]].flags
    assert raters[0] not in view.flags
    assert raters[0] not in view.flags
    named = [record["flags"] for record in answer_records(view) if record["excluded"]]
    assert named == [["fast", "distance"]] * 4
