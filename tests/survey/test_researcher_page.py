"""The researcher's page: what it shows, and to whom."""

import csv
import io
import json
import re
import time

import pytest
from asgi_client import Client, begin, finish, open_survey
from server_process import TOKEN
from small_studies import small_study

from rankshot.survey.store.database import EXTRA_ANSWER
from rankshot.survey.store.people import exclude, set_state
from rankshot.survey.study import Question
from rankshot.survey.web.researcher_routes import COOKIE, Login

STUDY = small_study(gold=(Question("wolf", ("dog", "bus", "cup"), ("dog",)),))
HOSTILE = "<img src=x onerror=alert(1)>=1+1\"'"


class Page:
    """A survey, and its researcher who is logged in."""

    def __init__(self, app, database):
        self.app, self.database = app, database
        self.visitor = Client(app)
        cookie = Login(TOKEN, database.identity).cookie(time.time())
        self.client = Client(app, headers={"cookie": f"{COOKIE}={cookie}"})

    def take_part(self, name, **more):
        """Let somebody answer everything; return the rater."""
        home = begin(self.visitor, f"participant={name}")
        finish(self.visitor, home, **more)
        return home.removeprefix("/p/")[:16]

    def start(self, name):
        """Let somebody start; return the rater."""
        return begin(self.visitor, f"participant={name}").removeprefix("/p/")[:16]

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
    with open_survey(STUDY, tmp_path) as (app, database):
        yield Page(app, database)


def test_all_participants_are_there_with_their_states(page):
    done = [page.take_part(name) for name in ("ann", "bob")]
    active = page.start("cem")
    # Those with flags come first: all answers came in no time.
    *flagged, last = page.raters()
    assert (sorted(flagged), last) == (sorted(done), active)
    text = page.text()
    assert "3 participants." in text
    for rater in done:
        assert page.database.identity.code(rater) in text
    assert (page.figure("Finished"), page.figure("Active now")) == ("2", "1")
    assert page.figure("Answers") == "8 of 4,000,000"
    order = [text.index(f'id="{name}-title"') for name in ("counts", "consensus", "people")]
    assert order == sorted(order), "progress and consensus come before people"
    assert "<button" not in text.partition("<main")[2], "the page only shows"
    assert page.client.get("/researcher?sort=rater").status == 422
    set_state(page.database, "pilot")
    dan = page.start("dan")
    assert (page.raters("?pilot=true"), len(page.raters())) == ([dan], 3)


def test_a_page_of_a_participant(page):
    rater = page.take_part("ann")
    text = page.client.get(f"/researcher/participants/{rater}").text
    assert text.count('<td class="items">') == 2 * 5
    assert "gold: right" in text or "gold: wrong" in text
    assert "<strong>fast</strong>: 5 of 5 answers within 3 seconds" in text
    assert page.client.get(f"/researcher/participants/{'0' * 16}").status == 404
    for odd in ("evil", rater.upper() + "0", rater + "'", "..%2f" + rater):
        assert page.client.get(f"/researcher/participants/{odd}").status in {404, 422}
    refused = page.visitor.get(f"/researcher/participants/{rater}")
    assert refused.status == 401
    assert '<a class="primary" href="/researcher">Log in</a>' in refused.text


def test_raw_data_are_downloaded_as_csv_and_json_lines(page):
    for path in ("rankings.jsonl", "data/answers.csv", "data/participants.jsonl"):
        reply = page.client.get(f"/researcher/{path}")
        assert (reply.status, "Nothing to download" in reply.text) == (404, True)
    page.take_part("ann")
    for what, n in (("answers", 5), ("participants", 1)):
        table = page.client.get(f"/researcher/data/{what}.csv")
        assert table["content-type"] == "text/csv; charset=utf-8"
        assert table["content-disposition"] == f'attachment; filename="{what}.csv"'
        rows = list(csv.DictReader(io.StringIO(table.body.decode("utf-8-sig"), newline="")))
        lines = page.client.get(f"/researcher/data/{what}.jsonl").text.splitlines()
        assert len(rows) == len(lines) == n
        assert list(rows[0]) == list(json.loads(lines[0]))
    assert len(page.client.get("/researcher/rankings.jsonl").text.splitlines()) == 4


def test_hostile_answers_are_text_in_every_place(page):
    ann = page.take_part("ann")
    with page.database.begin_write() as connection:
        row = {"rater": ann, "name": "note", "value": f"={HOSTILE}\r\n<script>"}
        connection.execute(EXTRA_ANSWER.insert(), [row])
    exclude(page.database, [ann], f"@{HOSTILE}")
    for path in ("/researcher", f"/researcher/participants/{ann}", "/researcher/progress"):
        text = page.client.get(path).text
        assert "<img" not in text
        assert "<script>" not in text
    text = page.client.get("/researcher/data/participants.csv").body.decode("utf-8-sig")
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert row["excluded_why"] == f"'@{HOSTILE}"
    assert row["extra_note"] == f"'={HOSTILE}\r\n<script>"
    text = page.client.get("/researcher/payment/payments.csv").text[1:]
    assert next(csv.DictReader(io.StringIO(text)))["reason"] == f"'@{HOSTILE}"


def test_who_is_paid(page):
    ann, bob = page.take_part("ann"), page.take_part("bob")
    page.start("cem")
    exclude(page.database, [bob], "copied")
    # Ann was too fast to be approved without a look.
    assert page.client.get("/researcher/payment/approve.txt").text == ""
    code = page.database.identity.code(bob)
    assert page.client.get("/researcher/payment/reject.txt").text == f"{code}\n"
    table = page.client.get("/researcher/payment/payments.csv").body.decode("utf-8-sig")
    decisions = {row["rater"]: row["decision"] for row in csv.DictReader(io.StringIO(table))}
    assert (decisions[ann], decisions[bob]) == ("look at", "reject")
    assert sorted(decisions.values()) == ["look at", "reject", "wait"]
