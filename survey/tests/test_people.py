"""What researchers do with participants: exclude, restore, withdraw, delete, reset."""

from random import Random

import pytest

from asgi_client import dump
from rankshot_survey.store.assignment import count_answers
from rankshot_survey.store.database import Database
from rankshot_survey.store.participation import StoppedError
from rankshot_survey.store.people import (
    delete_participants,
    exclude,
    find_raters,
    release,
    restore,
    set_state,
)
from rankshot_survey.study import Question
from refusals import refuses
from small_studies import Visitors, prolific_ids, small_study

GOLD = Question("lorry", ("rose", "truck", "fox"), first=("truck",))
STUDY = small_study(answers_per_question=2, questions_per_participant=4, repeats=1, gold=(GOLD,))


class Survey(Visitors):
    """A survey, and what is stored of it."""

    def __init__(self, study, place):
        super().__init__(study, Database(place, create=True))

    def loads(self, **more):
        with self.database.begin_read() as connection:
            found = count_answers(connection, self.study, self.now, **more)
        return {tuple(load) for load in found.values()}


@pytest.fixture
def survey(place):
    made = Survey(STUDY, place)
    yield made
    made.database.close()


def stopped(survey, function, *arguments):
    with pytest.raises(StoppedError) as error:
        function(*arguments)
    return error.value.reason


def test_answers_of_the_excluded_are_kept_and_do_not_count(survey):
    raters = [survey.start(name) for name in ("ann", "bob")]
    for rater in raters:
        survey.answer(rater)
    assert survey.loads() == {(2, 0)}
    with pytest.raises(StoppedError):
        survey.start("eve")
    before = dump(survey.database)["assignment"]
    exclude(survey.database, [raters[0]], "answers  within\na second ")
    assert survey.loads() == {(1, 0)}
    assert survey.view().people[raters[0]].row.excluded_why == "answers within a second"
    eve = survey.start("eve")
    survey.answer(eve)
    assert survey.loads() == {(2, 0)}, "somebody else has the place at once"
    restore(survey.database, [raters[0]])
    assert survey.loads() == {(3, 0)}
    kept = [row for row in dump(survey.database)["assignment"] if row["rater"] in raters]
    assert kept == before


def test_the_last_answer_of_somebody_who_was_excluded_earns_no_code(survey):
    rater = survey.start("ann")
    # Four questions, a gold one and a repeat.
    survey.answer(rater, n=5)
    asked = survey.visits.current_question(rater)
    exclude(survey.database, [rater], "too fast")
    survey.submit(rater, asked, asked.shown[:1])
    assert survey.view().people[rater].row.finished_at is None
    assert stopped(survey, survey.visits.current_question, rater) == "excluded"


def test_who_withdraws_leaves_no_answer_and_a_free_place(survey):
    ann, bob = survey.start("ann"), survey.start("bob")
    survey.answer(ann)
    survey.answer(bob, 3)
    survey.visits.withdraw(ann)
    survey.visits.withdraw(bob)
    stored = dump(survey.database)
    assert stored["assignment"] == []
    assert {row["rater"] for row in stored["participant"]} == {ann, bob}
    assert survey.loads() == {(0, 0)}
    for name, rater in (("ann", ann), ("bob", bob)):
        assert stopped(survey, survey.start, name) == "withdrawn"
        assert stopped(survey, survey.visits.current_question, rater) == "withdrawn"
    delete_participants(survey.database, [ann])
    assert survey.start("ann") == ann
    assert survey.answer(ann).n_counted == 4


def test_an_id_alone_does_not_resume_until_a_researcher_releases_it_once(survey):
    ann = survey.start("ann", form="a form")
    survey.answer(ann, 1)
    assert survey.start("ann", form="a form") == survey.start("ann", owned=ann) == ann
    with pytest.raises(StoppedError):
        survey.start("ann", form="another", owned="0" * 16)
    release(survey.database, [ann])
    assert survey.start("ann", form="another") == ann
    with pytest.raises(StoppedError):
        survey.start("ann", form="another")


def test_the_pilot_and_the_others_never_mix(survey):
    survey = Visitors(small_study(), survey.database)
    set_state(survey.database, "pilot")
    tried = survey.start("tester")
    survey.answer(tried, 3)
    set_state(survey.database, "open")
    ann = survey.start("ann")
    survey.answer(ann, 1)
    both = [survey.view(pilot=pilot) for pilot in (False, True)]
    assert [list(view.people) for view in both] == [[ann], [tried]]
    assert [{a.rater for a in view.answers} for view in both] == [{ann}, {tried}]
    assert [view.n_answers for view in both] == [1, 3]
    assert [sum(row.in_progress for row in view.targets) for view in both] == [3, 1]
    assert [view.n_pilot for view in both] == [1, 1]


def test_people_are_found_by_id_code_and_rater(survey):
    identity = survey.database.identity
    ann = survey.start("ann", ids=prolific_ids("3AAA", "s", "t"))
    bob = survey.start("bob", ids=prolific_ids("3AAA", "s", "u"))

    def find(*names):
        with survey.database.begin_read() as connection:
            return find_raters(connection, identity, "none", names)

    assert find("ann") == find(ann) == find(identity.code(ann)) == [ann]
    assert find(bob, "ann", "bob") == [bob, ann]
    with refuses("ids", ["x", "y"]):
        find("ann", "x", "y")
    with refuses("ids", "3AAA"):
        find("3AAA")


# ---- Spare answers


def test_who_leaves_is_replaced_and_every_question_gets_its_answers(tmp_path):
    """A platform sends somebody for everybody who leaves; the excluded are replaced later."""
    study = small_study(
        platform="prolific", answers_per_question=5, questions_per_participant=2, gold=(GOLD,)
    )
    assert study.n_spare == 3
    survey, rng, finished = Survey(study, tmp_path / "study.sqlite"), Random(2), []

    def fill():
        while True:
            try:
                rater = survey.start(str(rng.random()))
            except StoppedError as stopped:
                return stopped.reason
            survey.now += 60
            fate = rng.choice(["finishes", "finishes", "leaves", "withdraws"])
            survey.answer(rater, 1 if fate == "leaves" else 100)
            if fate == "withdraws":
                survey.visits.withdraw(rater)
            elif fate == "finishes":
                finished.append(rater)

    for excluded in ([], 3):
        if excluded:
            exclude(survey.database, finished[:excluded], "too fast")
        assert fill() == "full"
        # Those who left are still expected for a while.
        survey.now += 3600
        assert fill() == "full"
        given = [load[0] for load in survey.loads()]
        assert min(given) >= 5
        assert max(given) <= 5 + study.n_spare
    survey.database.close()
