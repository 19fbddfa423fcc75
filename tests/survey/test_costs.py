"""What an answer costs the database: statements, not times, which differ between machines."""

from contextlib import contextmanager, suppress

import pytest
from small_studies import small_study
from sqlalchemy import event

from rankshot.survey.store.database import Database
from rankshot.survey.store.participation import Participation, StoppedError


@pytest.fixture
def database(place):
    database = Database(place, create=True)
    yield database
    database.close()


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
        survey.submit(rater, now.number, now.form, ["1", "", ""])
    assert [statement.split()[0] for statement in noted] == ["SELECT", "UPDATE", "UPDATE"]
    with noted_statements(database) as noted:
        survey.current_question(rater)
    assert [statement.split()[0] for statement in noted] == ["SELECT"], "a page writes nothing"


def test_a_visit_counts_the_answers_of_one_question_unless_that_is_closed(database):
    # Five people answer all four questions.
    survey = Participation(small_study(answers_per_question=5), database)
    counted = []
    for person in range(6):
        with noted_statements(database) as noted, suppress(StoppedError):
            survey.require_place(None)
        counted.append(len(noted))
        with suppress(StoppedError):
            assert survey.start(f"none:id:p{person}")
            assert person < 5
    # The state of the study and one question; at the end one, two and the last.
    assert counted == [2] * 5 + [4]
