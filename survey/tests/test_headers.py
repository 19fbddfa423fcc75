"""The headers of every response, whatever its status; and a cookie for who starts alone."""

import re

import pytest

from asgi import Client
from asgi_client import Survey, as_researcher, begin, finish, form_of, open_survey
from rankshot.web.guards import MOST_BYTES
from rankshot_survey.store.participation import Participation
from small_studies import small_study

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; media-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-robots-tag": "noindex",
}
HTML = "text/html; charset=utf-8"
COOKIE = r"rankshot_participant=[0-9a-f.]+; HttpOnly; Max-Age=7776000; Path=/; SameSite=lax"


def test_any_host_is_accepted_and_nothing_is_made_of_it(tmp_path):
    """The survey does not know its public names: a proxy may restrict them."""
    odd = {"host": "odd.example", "origin": "https://odd.example"}
    with open_survey(small_study(), tmp_path) as (client, _):
        page = client.get("/?participant=ann", odd)
        form = form_of(page.text)
        started = client.post(form.action, form.fields, odd)
        assert started.status == 303
        for reply in (page, started, client.get(started["location"], odd), client.get("/x", odd)):
            assert "odd.example" not in f"{reply.headers} {reply.text}"


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    study = small_study(completion_url="https://example.org/done")
    with open_survey(study, tmp_path_factory.mktemp("headers")) as made:
        yield Survey(*made)


def replies(survey):
    """Yield what a request is, the status it should have, its kind, and what it gets."""
    client, form = survey.client, survey.form
    get, post = client.get, client.post
    researcher = as_researcher(survey.database)
    yield "consent", 200, HTML, get("/")
    yield "instructions", 200, HTML, get(f"{survey.home}/instructions")
    yield "question", 200, HTML, get(survey.home)
    yield "start", 303, None, post("/start", survey.start())
    yield "bad id", 400, HTML, get("/?participant=%00")
    yield "locked", 401, HTML, get("/researcher/files/answers.csv")
    yield "other site", 403, HTML, post("/start", {}, {"sec-fetch-site": "cross-site"})
    yield "forged", 403, HTML, post(form.action, form.answer("1", form="0" * 44))
    yield "nowhere", 404, HTML, get("/nowhere")
    yield "no file", 404, HTML, get("/static/nothing.js")
    yield "method", 405, HTML, client.send("PUT", "/")
    yield "options", 405, HTML, client.send("OPTIONS", survey.home)
    yield "large", 413, HTML, post("/start", b"x" * (MOST_BYTES + 1))
    yield "kind", 415, HTML, post("/start", {}, {"content-type": "application/json"})
    yield "malformed", 422, HTML, post("/start", {})
    yield "no ranking", 422, HTML, post(form.action, form.answer())
    yield "answer", 303, None, post(form.action, form.answer("1"))
    yield "another answer", 409, HTML, post(form.action, form.answer("1", "2"))
    finish(client, survey.home)
    yield "finished", 200, HTML, get(survey.home)
    yield "login", 200, HTML, get("/researcher")
    yield "researcher", 200, HTML, get("/researcher", researcher)
    lines = "application/x-ndjson"
    yield "download", 200, lines, get("/researcher/files/rankings.jsonl", researcher)
    yield "no document", 404, HTML, get("/openapi.json")


def assert_guarded(name, reply, cache="no-store"):
    for header, value in HEADERS.items():
        assert reply.all(header) == [value], (name, header)
    assert reply.all("cache-control") == [cache], name
    is_start = name == "start"
    assert len(reply.all("set-cookie")) == is_start, name
    assert all(re.fullmatch(COOKIE, cookie) for cookie in reply.all("set-cookie")), name
    assert reply.all("server") == reply.all("x-powered-by") == [], name


def test_every_response_has_the_headers_and_the_start_alone_sets_a_cookie(survey):
    statuses = set()
    for name, status, kind, reply in replies(survey):
        assert reply.status == status, name
        assert reply.all("content-type") == ([kind] if kind else []), name
        assert_guarded(name, reply)
        statuses.add(status)
    assert statuses == {200, 303, 400, 401, 403, 404, 405, 409, 413, 415, 422}


def quiet(app, raised):
    """Return an application whose errors are noted, where a server would write them down."""

    async def server(*request):
        try:
            await app(*request)
        except RuntimeError as error:
            raised.append(error)

    return server


def test_an_error_of_ours_has_them_too_and_says_nothing_of_itself(tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("a secret of the inside")

    raised = []
    with open_survey(small_study(), tmp_path) as (client, _):
        home = begin(client)
        monkeypatch.setattr(Participation, "current_question", fail)
        reply = Client(quiet(client.app, raised)).get(home)
    assert (reply.status, reply["content-type"]) == (500, HTML)
    assert len(raised) == 1
    assert "secret" not in reply.text
    assert "Traceback" not in reply.text
    assert_guarded("error", reply)
