"""The researcher's door: one token, one cookie, and nothing behind it for anybody else."""

import json
import time
from http.cookies import SimpleCookie

import pytest
from asgi_client import Client, begin, finish, form_of, open_survey
from server_process import TOKEN
from small_studies import small_study

from rankshot.survey.web import researcher_routes as login_module
from rankshot.survey.web.researcher_routes import COOKIE, LOGIN_SECONDS

STUDY = small_study()
PATHS = [
    "/researcher/progress",
    "/researcher/rankings.jsonl",
    "/researcher/data/answers.csv",
    "/researcher/data/participants.jsonl",
]


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """A survey with the answers of one participant; no test adds any."""
    with open_survey(STUDY, tmp_path_factory.mktemp("login")) as (app, database):
        client = Client(app)
        finish(client, begin(client))
        yield app, database


@pytest.fixture
def client(survey):
    return Client(survey[0])


def log_in(client, token=TOKEN):
    form = form_of(client.get("/researcher").text)
    return client.post(form.action, {**form.fields, "token": token})


def cookie_of(reply):
    """Return the one cookie that a reply sets."""
    ((name, cookie),) = SimpleCookie(reply["set-cookie"]).items()
    assert name == COOKIE
    return cookie


def cookie_header(value):
    return {"cookie": f"{COOKIE}={value}"}


# ---- Off, locked, open ----


@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_shown_to_who_is_not_logged_in(client, path):
    refused = client.get(path)
    assert refused.status == 401
    assert refused["www-authenticate"] == "Bearer"
    assert "leopard" not in refused.text
    asked = client.get("/researcher")
    assert asked.status == 200
    assert 'type="password"' in asked.text
    assert "leopard" not in asked.text


def test_the_token_opens_in_a_header_and_sets_no_cookie(client):
    for scheme in ("Bearer", "bearer", "BEARER"):
        header = {"authorization": f"{scheme} {TOKEN}"}
        page = client.get("/researcher", header)
        assert "Progress of the survey" in page.text
        assert page.all("set-cookie") == []
        download = client.get("/researcher/rankings.jsonl", header)
        assert len([json.loads(line) for line in download.text.splitlines()]) == 4
        assert download["content-disposition"] == 'attachment; filename="rankings.jsonl"'
        assert download["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        TOKEN.encode(),
        b"Basic " + TOKEN.encode(),
        b"Bearer " + TOKEN.encode()[:-1],
        b"Bearer " + TOKEN.encode() + b"x",
        b"Bearer " + TOKEN.upper().encode(),
        b"Bearer \xff\xfe\x00",
        "Bearer tökén tökén tökén".encode(),
        b"Bearer " + b"x" * 60_000,
    ],
)
def test_wrong_tokens_open_nothing_and_break_nothing(client, header):
    for path in PATHS:
        assert client.get(path, {"authorization": header}).status == 401
    page = client.get("/researcher", {"authorization": header})
    is_tried = header.startswith(b"Bearer ") and len(header) > len(b"Bearer ")
    assert page.status == (401 if is_tried else 200)
    assert "Progress of the survey" not in page.text


# ---- Logging in and out ----


def test_logging_in_sets_a_cookie_with_one_purpose(client):
    reply = log_in(client)
    assert (reply.status, reply["location"]) == (303, "/researcher")
    cookie = cookie_of(reply)
    assert cookie["httponly"] is True
    assert cookie["samesite"] == "strict"
    assert cookie["path"] == "/researcher"
    assert cookie["max-age"] == str(LOGIN_SECONDS)
    assert not cookie["domain"]
    assert not cookie["secure"], "over http, a browser would not send it back"
    assert TOKEN not in str(reply.headers)
    assert "Progress of the survey" in client.get("/researcher", cookie_header(cookie.value)).text
    assert {client.get(path, cookie_header(cookie.value)).status for path in PATHS} == {200}


# ---- What a cookie is worth ----


def test_a_cookie_ends(client, monkeypatch):
    start = time.time()
    cookie = cookie_header(cookie_of(log_in(client)).value)

    class Later:
        now = start + LOGIN_SECONDS - 60

        def time(self):
            return self.now

    clock = Later()
    monkeypatch.setattr(login_module, "time", clock)
    assert client.get(PATHS[0], cookie).status == 200
    clock.now += 120
    assert client.get(PATHS[0], cookie).status == 401


def test_forged_cookies_open_nothing_and_break_nothing(client):
    end, signature = cookie_of(log_in(client)).value.split(".")
    later = str(int(end) + 1)
    forged = [
        f"{later}.{signature}",
        f"0{end}.{signature}",
        f"{end}.{signature[:-1]}",
        f"{end}.{signature}0",
        f"{end}.{signature.upper()}",
        f"{end}.",
        end,
        ".",
        "...",
        f"x.{signature}",
        "9" * 5000 + "." + signature,
        "é.é",
        "\xff" * 100,
        "a" * 50_000,
    ]
    for value in forged:
        assert client.get(PATHS[0], cookie_header(value)).status == 401, value[:50]
        assert 'type="password"' in client.get("/researcher", cookie_header(value)).text


# ---- The token itself ----
