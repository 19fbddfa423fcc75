"""Prolific and Mechanical Turk: who comes from there, and how they get back."""

import re

import pytest
from asgi_client import Client, begin, finish, form_of, open_survey
from small_studies import small_study
from sqlalchemy import select

from rankshot.survey.platforms import PREVIEW
from rankshot.survey.store.database import PARTICIPANT

DONE = "https://app.prolific.com/submissions/complete?cc=C1A2B3"
PROLIFIC = small_study(platform="prolific", completion_url=DONE)
PID = "5f1e2d3c4b5a69788796a5b4"
TURK = small_study(platform="mturk")
LIVE, SANDBOX = "https://www.mturk.com", "https://workersandbox.mturk.com"


def turk_query(assignment="3AAA", worker="A1WORKER", host=LIVE):
    """Return what Mechanical Turk adds to the address of an external question."""
    return f"assignmentId={assignment}&hitId=3H&workerId={worker}&turkSubmitTo={host}"


@pytest.fixture
def prolific(tmp_path):
    with open_survey(PROLIFIC, tmp_path) as (app, _):
        yield Client(app)


@pytest.fixture
def turk(tmp_path):
    with open_survey(TURK, tmp_path) as (app, database):
        yield Client(app), database


def people(database):
    with database.begin_read() as connection:
        return connection.execute(select(PARTICIPANT)).all()


# ---- Prolific ----


def test_the_redirect_to_prolific_comes_after_the_last_answer_only(prolific):
    home = begin(prolific, f"PROLIFIC_PID={PID}&STUDY_ID=1&SESSION_ID=2")
    for left in range(4, 0, -1):
        early = prolific.get(f"{home}/leave")
        assert (early.status, early.all("location")) == (409, []), f"{left} questions are left"
        assert DONE not in early.text
        assert f'href="{home}"' in early.text
        form = form_of(prolific.get(home).text)
        assert prolific.post(form.action, form.answer("1")).status == 303
    page = prolific.get(home).text
    assert re.search(rf'<a [^>]*href="{home}/leave">Return to Prolific</a>', page)
    leaving = prolific.get(f"{home}/leave")
    assert (leaving.status, leaving["location"]) == (303, DONE)


# ---- Mechanical Turk ----


def test_who_previews_a_task_is_asked_to_accept_it_first(turk):
    client, database = turk
    page = client.get(f"/?assignmentId={PREVIEW}&turkSubmitTo={LIVE}")
    assert (page.status, "<form" in page.text) == (400, False)
    assert "accept the task first" in page.text
    assert people(database) == []


@pytest.mark.parametrize("host", [LIVE, SANDBOX])
@pytest.mark.parametrize("slash", ["", "%2F"])
def test_the_task_is_handed_in_where_it_came_from(turk, host, slash):
    client, database = turk
    home = begin(client, turk_query(host=host + slash))
    assert "externalSubmit" not in client.get(home).text
    page = finish(client, home)
    action, fields = form_of(page).action, form_of(page).fields
    assert action == f"{host}/mturk/externalSubmit"
    rater = database.identity.verify_link(home.removeprefix("/p/"))
    assert fields == {"assignmentId": "3AAA", "code": database.identity.code(rater)}
    assert re.search(r'<form method="post"', page)
    assert client.get(f"{home}/leave").status in {404, 405}


@pytest.mark.parametrize(
    "host",
    [
        "",
        "javascript:alert(1)",
        "http://www.mturk.com",
        "https://www.mturk.com.evil.example",
        "https://www.mturk.com@evil.example",
        "https://www.mturk.com%0d%0aSet-Cookie:%20a=b",
        '"><script>alert(1)</script>',
    ],
)
def test_no_form_of_ours_goes_anywhere_else(turk, host):
    client, database = turk
    page = client.get(f"/?{turk_query(host=host)}")
    assert page.status == 400
    assert "<form" not in page.text
    assert "<script>alert" not in page.text
    nonce = database.identity.nonce("start")
    fields = {"form": nonce, "workerId": "A1", "assignmentId": "3AAA", "turkSubmitTo": host}
    assert client.post("/start", fields).status == 400
    assert people(database) == []


def test_a_task_that_was_returned_and_taken_again_is_handed_in_as_the_new_one(turk):
    client, database = turk
    home = begin(client, turk_query("3FIRST"))
    form = form_of(client.get(home).text)
    assert client.post(form.action, form.answer("1")).status == 303
    assert begin(client, turk_query("3SECOND")) == home
    assert len(people(database)) == 1
    page = finish(client, home)
    assert "Questions done: 4" in page
    assert form_of(page).fields["assignmentId"] == "3SECOND"
    # Nobody is paid twice for the same answers.
    assert begin(client, turk_query("3THIRD")) == home
    assert form_of(client.get(home).text).fields["assignmentId"] == "3SECOND"


# ---- What an id may be ----
