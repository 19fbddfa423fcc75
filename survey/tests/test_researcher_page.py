"""The researcher's page: what it shows, and to whom; one token, one cookie."""

import csv
import io
import re
import time
from http.cookies import SimpleCookie
from types import SimpleNamespace

import pytest

from asgi import Client
from asgi_client import as_researcher, begin, finish, form_of, open_survey
from rankshot_survey.store.identity import Identity
from rankshot_survey.store.people import exclude, set_state
from rankshot_survey.study import Question
from rankshot_survey.web import researcher_routes as module
from rankshot_survey.web.researcher_routes import COOKIE, LOGIN_SECONDS
from server_process import TOKEN
from small_studies import small_study

STUDY = small_study(gold=(Question("wolf", ("dog", "bus", "cup"), ("dog",)),))
HOSTILE = "<img src=x onerror=alert(1)>=1+1\"'"


class Page:
    """A survey, and its researcher who is logged in."""

    def __init__(self, visitor, database):
        self.visitor, self.database = visitor, database
        self.client = Client(visitor.app, headers=as_researcher(database))

    def start(self, name, *, finishes=False):
        """Let somebody start, or answer everything; return the rater."""
        home = begin(self.visitor, f"participant={name}")
        if finishes:
            finish(self.visitor, home)
        return home.removeprefix("/p/")[:16]

    def take_part(self, name):
        return self.start(name, finishes=True)

    def text(self, query=""):
        reply = self.client.get(f"/researcher{query}")
        assert reply.status == 200, reply.text
        return reply.text

    def raters(self, query=""):
        """Return the raters in the table, from above."""
        return re.findall(r'<tr id="r-(\w+)">', self.text(query))

    def figure(self, name, query=""):
        return re.search(rf"<dt>{name}</dt><dd>([^<]+)</dd>", self.text(query))[1]


@pytest.fixture
def page(tmp_path):
    with open_survey(STUDY, tmp_path) as made:
        yield Page(*made)


def test_all_participants_are_there_with_their_states(page):
    done = [page.take_part(name) for name in ("ann", "bob")]
    active = page.start("cem")
    # Those with flags come first: all answers came in no time.
    *flagged, last = page.raters()
    assert (sorted(flagged), last) == (sorted(done), active)
    text = page.text()
    assert "3 participants." in text
    assert "<strong>fast</strong>: 5 of 5 answers within 3 seconds" in text
    for rater in done:
        assert page.database.identity.code(rater) in text
    assert (page.figure("Finished"), page.figure("Active now")) == ("2", "1")
    assert page.figure("Answers") == "8 of 4,000,000"
    order = [text.index(f'id="{name}-title"') for name in ("counts", "people")]
    assert order == sorted(order), "progress and consensus come before people"
    assert "<button" not in text.partition("<main")[2], "the page only shows"
    assert page.client.get("/researcher?sort=rater").status == 422
    set_state(page.database, "pilot")
    dan = page.start("dan")
    assert (page.raters("?pilot=true"), len(page.raters())) == ([dan], 3)


def test_files_are_downloaded_and_say_who_is_paid(page):
    for name in ("rankings.jsonl", "answers.csv", "participants.csv", "payments.csv"):
        reply = page.client.get(f"/researcher/files/{name}")
        assert reply.status == 404
        assert page.visitor.get(f"/researcher/files/{name}").status == 401
    assert page.client.get("/researcher/files/study.sqlite").status == 422
    ann, bob, cem = page.take_part("ann"), page.take_part("bob"), page.start("cem")
    exclude(page.database, [bob], "copied")
    found = {}
    for what, n in (("answers", 10), ("participants", 3), ("payments", 3)):
        table = page.client.get(f"/researcher/files/{what}.csv")
        assert table["content-type"] == "text/csv; charset=utf-8"
        assert table["content-disposition"] == f'attachment; filename="{what}.csv"'
        assert table["cache-control"] == "no-store"
        text = table.body.decode("utf-8-sig")
        found[what] = list(csv.DictReader(io.StringIO(text, newline="")))
        assert len(found[what]) == n
    assert len(page.client.get("/researcher/files/rankings.jsonl").text.splitlines()) == 4
    decisions = {row["rater"]: row["decision"] for row in found["payments"]}
    # Ann was too fast to be approved without a look.
    assert decisions == {ann: "look at", bob: "reject", cem: "wait"}


# ---- Login

LOCKED = "/researcher/files/answers.csv"


def log_in(client, token=TOKEN):
    form = form_of(client.get("/researcher").text)
    return client.post(form.action, {**form.fields, "token": token})


def cookie_header(value):
    return {"cookie": f"{COOKIE}={value}"}


def test_the_token_sets_a_cookie_with_one_purpose_which_ends(page, monkeypatch):
    client = page.visitor
    for wrong in (TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "tökén tökén tökén", "x" * 500):
        refused = log_in(client, wrong)
        assert (refused.status, refused.all("set-cookie")) == (401, [])
    start = time.time()
    reply = log_in(client)
    assert (reply.status, reply["location"]) == (303, "/researcher")
    ((name, cookie),) = SimpleCookie(reply["set-cookie"]).items()
    assert name == COOKIE
    kept = ("httponly", "samesite", "path", "max-age", "domain", "secure")
    # Over http, a browser would not send a secure cookie back.
    expected = (True, "strict", "/researcher", str(LOGIN_SECONDS), "", "")
    assert tuple(cookie[key] for key in kept) == expected
    assert TOKEN not in str(reply.headers)
    header = cookie_header(cookie.value)
    assert 'id="people-title"' in client.get("/researcher", header).text

    assert client.get(LOCKED, header).status == 404, "nobody has started"
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: start + LOGIN_SECONDS + 60))
    assert client.get(LOCKED, header).status == 401


def test_forged_cookies_open_nothing_and_break_nothing(page):
    client = page.visitor
    cookie = as_researcher(page.database)["cookie"].partition("=")[2]
    stamp, signature = cookie[:12], cookie[12:]
    forged = [
        f"{int(stamp, 16) + 1:012x}{signature}",
        *(f"0{cookie}", cookie[:-1], f"{cookie}0", cookie.upper(), stamp, f"x{cookie[1:]}"),
        *("9" * 5000 + signature, "é.é", "a" * 50_000),
        page.database.identity.timed_token(time.time(), "login", TOKEN[:-1]),
        Identity(b"a key").timed_token(time.time(), "login", TOKEN),
    ]
    for value in forged:
        reply = client.get(LOCKED, cookie_header(value))
        assert reply.status == 401, value[:50]
        assert 'type="password"' in client.get("/researcher", cookie_header(value)).text
    assert client.get(LOCKED, {"authorization": f"Bearer {TOKEN}"}).status == 401


def test_logging_out_deletes_the_cookie(page):
    action = form_of(page.text()).action
    assert page.visitor.post(action, {}).status == 401
    reply = page.client.post(action, {})
    assert (reply.status, reply["location"]) == (303, "/researcher")
    assert f'{COOKIE}="";' in reply["set-cookie"]
