"""Prolific and Mechanical Turk: who comes from there, and how they get back."""

import re

import pytest
from asgi_client import Client, begin, finish, form_of, open_survey
from small_studies import small_study
from sqlalchemy import select

from rankshot.core.errors import RankshotError
from rankshot.survey.platforms import PREVIEW, Arrival, TurkTask, read_visitor
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


@pytest.mark.parametrize(
    "query",
    ["", "PROLIFIC_PID=", f"participant={PID}", f"prolific_pid={PID}", "STUDY_ID=1&SESSION_ID=2"],
)
def test_prolific_needs_an_id(prolific, query):
    refused = prolific.get(f"/?{query}")
    assert refused.status == 400
    assert "PROLIFIC_PID" in refused.text
    assert "<form" not in refused.text


def test_a_form_without_the_id_does_not_start_either(prolific):
    fields = form_of(prolific.get(f"/?PROLIFIC_PID={PID}").text).fields
    assert fields["participant"] == PID
    for others in ({}, {"participant": ""}):
        form = {"form": fields["form"], **others}
        assert prolific.post("/start", form).status == 400


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


def test_who_opens_the_address_again_is_the_same_person(prolific):
    home = begin(prolific, f"PROLIFIC_PID={PID}")
    finish(prolific, home)
    assert begin(prolific, f"PROLIFIC_PID={PID}&SESSION_ID=another") == home
    assert begin(prolific, f"PROLIFIC_PID={PID[::-1]}") != home


def test_a_plain_study_with_a_completion_url_redirects_as_well(tmp_path):
    with open_survey(small_study(completion_url="https://example.org/?a=1&b=%20"), tmp_path) as (
        app,
        _,
    ):
        client = Client(app)
        home = begin(client, "")
        finish(client, home)
        assert client.get(f"{home}/leave")["location"] == "https://example.org/?a=1&b=%20"


def test_without_a_completion_url_there_is_nowhere_to_go(tmp_path):
    with open_survey(small_study(), tmp_path) as (app, _):
        client = Client(app)
        home = begin(client)
        assert "/leave" not in finish(client, home)
        assert client.get(f"{home}/leave").status in {404, 405}


def test_whoever_answered_nothing_gets_no_code_and_no_redirect(tmp_path):
    # Who starts, goes away, and comes back when others have answered everything, has done nothing.
    study = small_study(
        platform="prolific", completion_url=DONE, answers_per_question=1, return_after_minutes=0.01
    )
    with open_survey(study, tmp_path) as (app, database):
        client = Client(app)
        idle = begin(client, "PROLIFIC_PID=idle")
        with database.begin_write() as connection:
            connection.execute(PARTICIPANT.update().values(seen_at=PARTICIPANT.c.seen_at - 60))
        busy = begin(client, "PROLIFIC_PID=busy")
        assert "Return to Prolific" in finish(client, busy)
        with database.begin_write() as connection:
            connection.execute(PARTICIPANT.update().values(seen_at=PARTICIPANT.c.seen_at - 60))
        back = client.get(idle)
        assert back.status == 503
        assert "No question is left" in back.text
        assert "code" not in back.text
        assert client.get(f"{idle}/leave").status == 409


# ---- Mechanical Turk ----


def test_a_preview_shows_the_consent_and_no_start(turk):
    client, database = turk
    for query in (
        f"assignmentId={PREVIEW}&hitId=3H",
        f"assignmentId={PREVIEW}&turkSubmitTo={LIVE}",
    ):
        page = client.get(f"/?{query}")
        assert page.status == 200
        assert "Do you agree?" in page.text
        assert "accept the task first" in page.text
        assert "<form" not in page.text
        assert "<button" not in page.text
    nonce = database.identity.nonce("start")
    preview = {"form": nonce, "participant": "A1", "assignment": PREVIEW, "submit_to": LIVE}
    assert client.post("/start", preview).status == 400
    assert people(database) == []


@pytest.mark.parametrize("host", [LIVE, SANDBOX])
@pytest.mark.parametrize("slash", ["", "/", "%2F"])
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
        "https://evil.example/https://www.mturk.com",
        "https://www.mturk.com@evil.example",
        "https://evil.example%23https://www.mturk.com",
        "https://requester.mturk.com",
        "https://WWW.MTURK.COM",
        "https://www.mturk.com:8443",
        "https://www.mturk.com/mturk",
        "https://www.mturk.com%0d%0aSet-Cookie:%20a=b",
        "//www.mturk.com",
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
    fields = {"form": nonce, "participant": "A1", "assignment": "3AAA", "submit_to": host}
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


def policy(page):
    """Return a page's content-security policy, as directives."""
    parts = (part.split() for part in page["content-security-policy"].split(";"))
    return {name: sources for name, *sources in parts}


def test_only_mechanical_turk_may_frame_its_study_and_get_its_forms(turk):
    client, _ = turk
    home = begin(client, turk_query())
    for page in (client.get(home), client.get("/nowhere"), client.get(f"/?{turk_query()}")):
        directives = policy(page)
        assert directives["frame-ancestors"] == ["https://*.mturk.com"]
        # Where it takes tasks, and where it sends workers on from there.
        hosts = {LIVE, SANDBOX, "https://worker.mturk.com"}
        assert directives["form-action"][0] == "'self'"
        assert set(directives["form-action"][1:]) == hosts


@pytest.mark.parametrize("study", [PROLIFIC, small_study()], ids=["prolific", "none"])
def test_nobody_frames_other_studies(tmp_path, study):
    with open_survey(study, tmp_path) as (app, _):
        directives = policy(Client(app).get("/"))
    assert directives["frame-ancestors"] == ["'none'"]
    assert directives["form-action"] == ["'self'"]


@pytest.mark.parametrize("query", [turk_query(worker=""), turk_query(assignment=""), "workerId=A1"])
def test_an_address_that_lacks_something_says_so(turk, query):
    client, _ = turk
    assert client.get(f"/?{query}").status == 400


# ---- What an id may be ----


@pytest.mark.parametrize("text", ["a", "A-Z_a.z:0@9", "x" * 100])
def test_ids_are_taken_as_they_are(text):
    assert read_visitor("none", Arrival(text)).participant == text
    assert read_visitor("prolific", Arrival(text)).participant == text
    turk = read_visitor("mturk", Arrival(text, "", text, SANDBOX))
    assert (turk.participant, turk.turk) == (text, TurkTask(text, SANDBOX))


@pytest.mark.parametrize(
    "text", ["x" * 101, "a b", "a\n", "\na", "a\r\nb", "a\0", "é", "٣", "<b>", "a'--", "a/b", "%00"]
)
def test_ids_that_no_platform_gives_are_refused(text):
    for platform in ("none", "prolific"):
        with pytest.raises(RankshotError, match="letters, digits"):
            read_visitor(platform, Arrival(text))
    with pytest.raises(RankshotError, match="workerId is"):
        read_visitor("mturk", Arrival(text, "", "3AAA", LIVE))
    with pytest.raises(RankshotError, match="assignmentId is"):
        read_visitor("mturk", Arrival("A1", "", text, LIVE))


def test_ids_of_two_platforms_are_two_people(tmp_path):
    with open_survey(small_study(), tmp_path) as (app, database):
        home = begin(Client(app), f"participant={PID}")
        rater = database.identity.rater(f"none:id:{PID}")
        assert home == f"/p/{database.identity.link(rater)}"
        assert database.identity.rater(f"prolific:id:{PID}") != rater
