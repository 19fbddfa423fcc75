"""Hostile ids, addresses, methods and origins: they lead nowhere, and nothing is stored."""

from urllib.parse import urlencode

import pytest
from asgi_client import URLENCODED, Client, dump, open_survey
from small_studies import small_study

SCRIPT = "<script>alert(1)</script>"
TURK = {"workerId": "A1", "assignmentId": "3A", "turkSubmitTo": "https://www.mturk.com"}
"""What Mechanical Turk adds to an address."""


# ---- Ids ----

IDS = [
    SCRIPT, '"><img src=x onerror=alert(1)>', "'; DROP TABLE participant; --", "' OR '1'='1",
    "a\r\nSet-Cookie: a=b", "a\nb", "a\0b", "../../etc/passwd", "%s%n", "é", "٣", "a b",
    "{{1234567*7654321}}", "${1234567*7654321}", "\u202eann", "x" * 101, "x" * 201, "x" * 60_000,
    "anonymous:1 ", "javascript:alert(1)//",
]  # fmt: skip


@pytest.fixture(scope="module", params=["none", "prolific", "mturk"])
def platform(request, tmp_path_factory):
    """A survey of each platform: a client, the database, and the names of its ids."""
    study = small_study(platform=request.param)
    names = {"none": ["participant"], "prolific": ["PROLIFIC_PID"], "mturk": list(TURK)}
    with open_survey(study, tmp_path_factory.mktemp("platform")) as (app, database):
        yield Client(app), database, names[request.param]


@pytest.mark.parametrize("text", IDS)
def test_ids_that_no_platform_gives_are_refused_and_not_repeated(platform, text):
    client, database, names = platform
    good = {name: TURK.get(name, "A1") for name in names}
    fields = dict(zip(names, ["participant", "assignment", "submit_to"], strict=False))
    for name in names:
        given = {**good, name: text}
        shown = client.get(f"/?{urlencode(given)}")
        assert shown.status in {400, 422}, name
        form = {fields[key]: value for key, value in given.items()}
        sent = client.post("/start", {"form": database.identity.nonce("start"), **form})
        assert sent.status in {400, 422}, name
        for reply in (shown, sent):
            assert_harmless(reply)
    assert dump(database)["participant"] == []


def assert_harmless(reply):
    assert not any(mark in reply.text for mark in ("<script>", "<img", "\0", "\r", "\u202e"))
    assert str(1234567 * 7654321) not in reply.text, "a template would be filled in"
    assert reply.all("set-cookie") == reply.all("location") == []
    assert len(reply.text) < 5_000


# ---- Addresses, methods, origins ----

PATHS = [
    "/static/", "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/%00",
    "/static/survey.css%00", "/static/survey.css/", "/static/SURVEY.CSS", "/static/..%5capp.py",
    "/static//etc/passwd", "//evil.example/", "//evil.example/%2e%2e", "/\\evil.example", "/start/",
    "/researcher/", "/researcher//progress", "/researcher;/progress", "/%2e/researcher/progress",
    "/.git/config", "/.env", "/docs", "/redoc", "/openapi.json/", "/favicon.ico", "/p", "/p/",
    "/p//", "/p/%00", "/p/..%2fresearcher", "/P/x", "/p/x/leave", "/%", "/%zz", "/%ff", "*",
    "/" + "a" * 60_000,
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_addresses_that_are_not_ours_lead_nowhere(survey, path):
    with survey.hold_unchanged():
        for method in ("GET", "POST"):
            reply = survey.client.send(method, path, {"host": "evil.example"})
            assert reply.status in {404, 405, 422}, method
            assert reply.all("location") == []
            assert "evil" not in reply.text


@pytest.mark.parametrize("number", [
    "0", "-1", "00", "01", "1.0", "+1", "1_0", "%201", "1%20", "1%0a", "%D9%A1", "1e0",
    "99999999999", "9" * 5000, "NaN", "1'", "1;", "1%00", "2147483648", "18446744073709551617",
])  # fmt: skip
def test_numbers_in_addresses_are_plain_and_small(survey, number):
    with survey.hold_unchanged():
        reply = survey.client.post(f"{survey.home}/{number}", survey.form.answer("1"))
    assert reply.status == 422


@pytest.mark.parametrize("method", [
    "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "get", "X", "post",
])  # fmt: skip
def test_methods_that_are_not_ours_are_told_which_are(survey, method):
    paths = {"/": "GET", "/start": "POST", survey.form.action: "POST", survey.home: "GET"}
    with survey.hold_unchanged():
        for path, allowed in paths.items():
            reply = survey.client.send(method, path, {"content-type": URLENCODED})
            assert (reply.status, reply["allow"]) == (405, allowed), path


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://["},
        {"origin": "http://survey.example.evil.example"},
        {"origin": "http://survey.example:8080"},
        {"origin": "http://evil.example@survey.example"},
        {"origin": "survey.example"},
        {"origin": "null", "host": ""},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "nonsense"},
        {"sec-fetch-site": "cross-site", "origin": "http://survey.example"},
    ],
)
def test_forms_from_other_sites_are_refused(survey, headers):
    for action, fields in survey.forms():
        with survey.hold_unchanged():
            reply = survey.client.post(action, fields, headers)
            assert reply.status == 403
            assert "Another website" in reply.text
    assert survey.client.get(survey.home, headers).status == 200, "links from elsewhere are fine"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://survey.example"},
        {"origin": "https://survey.example"},
        {"sec-fetch-site": "same-origin", "origin": "https://survey.example", "host": "127.0.0.1"},
        {"sec-fetch-site": "none"},
    ],
)
def test_forms_from_our_own_pages_are_taken(fresh, headers):
    for action, fields in fresh.forms():
        assert fresh.client.post(action, fields, headers).status == 303
