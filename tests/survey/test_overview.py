"""The overview: the pilot apart from the others, and flags that stay."""

from contextlib import closing

import pytest
from small_studies import Visitors, small_study

from rankshot.survey.export import answer_records
from rankshot.survey.overview import read_overview
from rankshot.survey.store.database import Database
from rankshot.survey.store.people import (
    exclude,
    set_state,
)
from rankshot.survey.study import ExtraQuestion

STUDY = small_study(extra=(ExtraQuestion("age", "How old?", "number"),))


@pytest.fixture
def survey(tmp_path):
    with closing(Database(tmp_path / "study.sqlite", create=True)) as database:
        yield Visitors(STUDY, database)


@pytest.fixture
def read(survey):
    return lambda **which: read_overview(STUDY, survey.database, survey.now, **which)


def test_the_pilot_and_the_others_never_mix(survey, read):
    set_state(survey.database, "pilot")
    tried = survey.start("tester")
    survey.answer(tried, 3)
    set_state(survey.database, "open")
    ann = survey.start("ann")
    survey.answer(ann, 1)
    both = [read(pilot=pilot) for pilot in (False, True)]
    assert [list(view.people) for view in both] == [[ann], [tried]]
    assert [view.n_answers for view in both] == [1, 3]
    assert [{a.rater for a in view.answers} for view in both] == [{ann}, {tried}]
    assert [sum(q.in_progress for q in view.questions) for view in both] == [3, 1]
    assert [view.n_pilot for view in both] == [1, 1]


def test_the_evidence_for_an_exclusion_stays(survey, read):
    raters = [survey.start(str(i)) for i in range(6)]
    for rater in raters:
        fast = rater == raters[0]
        order = STUDY.items[::-1] if fast else STUDY.items
        survey.answer(rater, rank=lambda *_, order=order: order, seconds=1 if fast else 9)
    before = read().people
    assert [flag.name for flag in before[raters[0]].flags] == ["fast", "distance"]
    exclude(survey.database, raters[:1], "too fast")
    view = read()
    assert view.people[raters[0]].flags == before[raters[0]].flags
    assert raters[0] not in view.flags
    named = [record["flags"] for record in answer_records(view) if record["excluded"]]
    assert named == [["fast", "distance"]] * 4
