"""The researcher's page: what it shows, what can be done on it, and by whom."""

import csv
import io
import json
import re
import time
from html import escape, unescape

import pytest
from asgi_client import Client, begin, dump, finish, form_of, open_survey
from server_process import TOKEN
from small_studies import small_study

from rankshot.ranking.rater_groups import RaterGroup
from rankshot.survey.store.database import EXTRA_ANSWER, Database
from rankshot.survey.store.people import exclude, read_events, read_state
from rankshot.survey.study import Question
from rankshot.survey.web.participant_table import ROWS
from rankshot.survey.web.researcher_routes import COOKIE, Login

STUDY = small_study(gold=(Question("wolf", ("dog", "bus", "cup"), ("dog",)),))
HOSTILE = "<img src=x onerror=alert(1)>=1+1\"'"
BEARER = {"authorization": f"Bearer {TOKEN}"}


class Page:
    """A survey, and its researcher who is logged in."""

    def __init__(self, app, database):
        self.app, self.database = app, database
        self.visitor = Client(app)
        cookie = Login(TOKEN, database.identity).cookie(time.time())
        self.client = Client(app, headers={"cookie": f"{COOKIE}={cookie}"})

    def take_part(self, name):
        """Let somebody answer everything; return the rater."""
        home = begin(self.visitor, f"participant={name}")
        finish(self.visitor, home)
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

    def token(self):
        return form_of(self.text()).fields["form"]

    def ask(self, action, *raters, **fields):
        """Send the form of the page, which asks for a confirmation."""
        sent = {"form": self.token(), "action": action, "rater": list(raters), **fields}
        return self.client.post("/researcher/confirm", sent)

    def do(self, action, *raters, why="", **fields):
        """Ask, confirm, and return the page that says what was done."""
        asked = self.ask(action, *raters, **fields)
        assert asked.status == 200, asked.text
        form = form_of(asked.text)
        sent = {name: unescape(value) for name, value in form.fields.items()}
        if action == "exclude":
            assert 'name="why" required' in asked.text
            sent["why"] = why
        done = self.client.post(form.action, sent)
        assert done.status == 303, done.text
        assert done["location"].startswith("/researcher?")
        return self.text(done["location"].removeprefix("/researcher"))

    def figure(self, name, query=""):
        return re.search(rf"<dt>{name}</dt><dd>([^<]+)</dd>", self.text(query))[1]

    def events(self):
        with self.database.begin_read() as connection:
            return [(event.action, event.rater) for event in read_events(connection)]


@pytest.fixture
def page(tmp_path):
    with open_survey(STUDY, tmp_path) as (app, database):
        yield Page(app, database)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A page with three participants, for tests that change nothing."""
    with open_survey(STUDY, tmp_path_factory.mktemp("kept")) as (app, database):
        page = Page(app, database)
        page.done = [page.take_part(name) for name in ("ann", "bob")]
        page.active = page.start("cem")
        yield page


# ---- What it shows


def test_all_participants_are_there_with_their_states(kept):
    assert set(kept.raters()) == {*kept.done, kept.active}
    text = kept.text()
    assert "3 of 3 participants." in text
    for rater in kept.done:
        assert kept.database.identity.code(rater) in text
    assert (kept.figure("Finished"), kept.figure("Active now")) == ("2", "1")
    assert kept.figure("Answers") == "8 of 4,000,000"


def test_filters_keep_what_they_say(kept):
    assert kept.raters("?state=active") == [kept.active]
    assert set(kept.raters("?state=finished")) == set(kept.done)
    assert kept.raters("?state=excluded") == []
    assert "No participant fits these filters." in kept.text("?state=excluded")
    # All answers came in no time.
    assert set(kept.raters("?flag=any")) == set(kept.raters("?flag=fast")) == set(kept.done)
    assert kept.raters("?flag=none") == [kept.active]
    assert kept.raters(f"?text={kept.active[:9].upper()}") == [kept.active]
    code = kept.database.identity.code(kept.done[0])
    assert kept.raters(f"?text={code.lower()}") == [kept.done[0]]
    assert kept.raters("?state=finished&flag=none") == []


@pytest.mark.parametrize(
    "column", ["rater", "id", "state", "start", "answers", "skipped", "seconds", "time", "flags"]
)
def test_every_column_sorts_both_ways(kept, column):
    up, down = kept.text(f"?sort={column}"), kept.text(f"?sort=-{column}")
    assert up.count("aria-sort=") == down.count("aria-sort=") == 1
    assert 'aria-sort="ascending"' in up
    assert 'aria-sort="descending"' in down
    # Each heading leads to the other direction.
    sorted_now = r'aria-sort="(?:a|de)scending"><a class="query sort" href="([^"]+)"'
    for text, other in ((up, f"-{column}"), (down, column)):
        address = unescape(re.search(sorted_now, text)[1])
        is_default = other == "-flags"
        assert address == ("/researcher?" if is_default else f"/researcher?sort={other}")
    if column in {"rater", "id", "start"}:
        assert kept.raters(f"?sort={column}") == kept.raters(f"?sort=-{column}")[::-1]


def test_sorting_is_by_value_and_what_is_unknown_comes_last(kept):
    assert kept.raters("?sort=rater") == sorted([*kept.done, kept.active])
    assert kept.raters("?sort=answers")[0] == kept.active
    assert kept.raters("?sort=-answers")[-1] == kept.active
    assert kept.raters("?sort=seconds")[-1] == kept.raters("?sort=-seconds")[-1] == kept.active


@pytest.mark.parametrize(
    "query",
    [
        "?sort=evil", "?state=evil", "?flag=evil", "?page=0", "?page=x", "?evil=1",
        "?text=" + "x" * 101, "?done=evil", "?n=-1", "?pilot=perhaps",
    ],
)  # fmt: skip
def test_other_queries_are_malformed(kept, query):
    assert kept.client.get(f"/researcher{query}").status == 422


def test_a_page_of_a_participant(kept):
    rater = kept.done[0]
    text = kept.client.get(f"/researcher/participants/{rater}").text
    assert text.count('<td class="items">') == 2 * 5
    assert "gold: right" in text or "gold: wrong" in text
    assert "<strong>fast</strong>: 5 of 5 answers within 3 seconds" in text
    assert kept.client.get(f"/researcher/participants/{'0' * 16}").status == 404
    for odd in ("evil", rater.upper() + "0", rater + "'", "..%2f" + rater):
        assert kept.client.get(f"/researcher/participants/{odd}").status in {404, 422}
    refused = kept.visitor.get(f"/researcher/participants/{rater}")
    assert refused.status == 401
    assert '<a class="primary" href="/researcher">Log in</a>' in refused.text


def test_an_unchanged_part_is_not_sent_again(page):
    page.take_part("ann")
    first = page.client.get("/researcher/progress?sort=rater")
    same = page.client.get("/researcher/progress?sort=rater", {"if-none-match": first["etag"]})
    assert (same.status, same.body) == (304, b"")
    page.start("bob")
    fresh = page.client.get("/researcher/progress?sort=rater", {"if-none-match": first["etag"]})
    assert fresh.status == 200
    assert fresh["etag"] != first["etag"]
    assert fresh.text in page.text("?sort=rater")


def test_many_participants_come_in_pages_and_are_chosen_all_at_once(page):
    raters = [page.start(f"p{i}") for i in range(ROWS + 3)]
    assert page.raters("?sort=start") == raters[:ROWS]
    assert page.raters("?sort=start&page=2") == page.raters("?sort=start&page=9") == raters[ROWS:]
    assert "Page 1 of 2" in page.text()
    # A form with a whole page of rows is not too large.
    said = page.do("exclude", *raters[:ROWS], why="a page")
    assert f"{ROWS} participants were excluded." in said
    said = page.do("exclude", why="the rest", everyone="yes", query="?state=active")
    assert "3 participants were excluded." in said
    assert page.figure("Excluded") == str(ROWS + 3)
    assert "The table is empty" in page.ask("exclude", everyone="yes", query="?state=active").text


# ---- Actions


def test_excluding_and_restoring(page):
    ann, bob = page.take_part("ann"), page.take_part("bob")
    said = page.do("exclude", ann, why=f"copied {HOSTILE}")
    assert "1 participant was excluded." in said
    assert f'excluded: <span dir="auto">{escape(f"copied {HOSTILE}")}' in (
        said.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")
    )
    assert "<img" not in said
    assert (page.figure("Excluded"), page.figure("Answers")) == ("1", "4 of 4,000,000")
    lines = page.client.get("/researcher/rankings.jsonl").text.splitlines()
    assert {json.loads(line)["rater"] for line in lines} == {bob}
    assert page.events() == [("exclude", ann)]
    # The answers are still there to be looked at.
    assert "skipped" in page.client.get(f"/researcher/participants/{ann}").text
    assert "1 participant was restored." in page.do("restore", ann)
    assert (page.figure("Excluded"), page.figure("Answers")) == ("0", "8 of 4,000,000")
    assert page.events() == [("restore", ann), ("exclude", ann)]


def test_a_reason_is_needed(page):
    ann = page.take_part("ann")
    form = form_of(page.ask("exclude", ann).text)
    for why in ("", "  \n "):
        reply = page.client.post(form.action, {**form.fields, "why": why})
        assert reply.status == 409
        assert "The reason of an exclusion has 0 characters" in reply.text
    assert page.client.post(form.action, {**form.fields, "why": "x" * 501}).status == 422
    assert page.events() == []


def test_deleting_by_pasted_ids_codes_and_raters(page):
    raters = [page.take_part(name) for name in ("ann", "bob", "cem", "dan")]
    code = page.database.identity.code(raters[1])
    said = page.do("delete", who=f"ann, {code}\r\n{raters[2]}\n")
    assert "3 participants were deleted." in said
    assert page.raters() == raters[3:]
    stored = json.dumps(dump(page.database))
    assert not any(rater in stored for rater in raters[:3])
    assert page.events() == [("delete", None)]


def test_who_is_unknown_or_not_chosen_is_named_and_nothing_happens(page):
    ann = page.take_part("ann")
    before = dump(page.database)
    reply = page.ask("delete", ann, who=f"nobody {HOSTILE}")
    assert reply.status == 409
    assert "nobody" in reply.text
    assert "<img" not in reply.text
    assert "No participant is chosen" in page.ask("delete").text
    assert dump(page.database) == before
    # Deleted by somebody else between the question and its confirmation.
    form = form_of(page.ask("delete", ann).text)
    assert page.client.post(form.action, form.fields).status == 303
    again = page.client.post(form.action, {**form.fields})
    assert again.status == 409
    assert "Nothing was changed. No participant has" in again.text


def test_pasted_ids_are_never_mixed_with_the_table(page):
    """The field has its own form; a request with both is refused."""
    raters = [page.take_part(name) for name in ("ann", "bob")]
    text = page.text()
    assert re.search(r'<textarea id="who"[^>]* form="ids"', text)
    assert re.search(r'<input type="checkbox" id="everyone"[^>]* form="act"', text)
    reply = page.ask("delete", who="ann", everyone="yes")
    assert reply.status == 409
    assert "not both" in reply.text
    assert page.raters("?sort=start") == raters


def test_more_participants_than_a_form_can_name(page, monkeypatch):
    """The form repeats how they were chosen; others than those shown are never meant."""
    monkeypatch.setattr("rankshot.survey.web.researcher_actions.MOST_NAMED", 2)
    raters = [page.start(f"p{i}") for i in range(4)]
    asked = page.ask("delete", everyone="yes", query="?state=active")
    form = form_of(asked.text)
    assert not any(rater in json.dumps(form.fields) for rater in raters)
    page.start("latecomer")
    refused = page.client.post(form.action, form.fields)
    assert refused.status == 409
    assert "Other participants are meant now" in refused.text
    assert len(page.raters()) == 5
    assert "5 participants were deleted." in page.do("delete", everyone="yes")
    assert page.raters() == []


def test_the_table_stays_as_it_was(page):
    """After an action, on Cancel, and from the page of a participant."""
    ann, _ = page.take_part("ann"), page.take_part("bob")
    query = "?state=finished&sort=rater"
    shown = escape(query)
    assert f'/researcher/participants/{ann}{shown}"' in page.text(query)
    one = page.client.get(f"/researcher/participants/{ann}{query}").text
    assert f'<a href="/researcher{shown}">All participants</a>' in one
    assert f'name="query" value="{shown}"' in one
    asked = page.ask("exclude", ann, query=query)
    assert f'href="/researcher{shown}">Cancel</a>' in asked.text
    form = form_of(asked.text)
    done = page.client.post(form.action, {**form.fields, "query": query, "why": "x"})
    assert done["location"] == f"/researcher{query}&done=exclude&n=1"


def test_who_is_still_to_be_paid_is_said_before(page):
    ann, bob, cem = page.take_part("ann"), page.take_part("bob"), page.start("cem")
    both = "2 of them have finished and would be paid, but will be on"
    assert f"{both} no list for payment any more" in page.ask("delete", ann, bob, cem).text
    asked = page.ask("exclude", ann, bob, cem).text
    assert f"{both} the list of those to reject." in asked
    page.do("exclude", ann, why="copied")
    asked = page.ask("exclude", ann, bob).text
    assert "1 of them has finished and would be paid" in asked
    assert "1 of them is excluded already: the reason is replaced." in asked
    assert "would be paid" not in page.ask("delete", cem).text
    assert 'class="primary danger"' in page.ask("delete", cem).text


def test_nobody_is_restored_who_is_not_excluded_and_no_pilot_is_deleted_twice(page):
    ann, bob = page.take_part("ann"), page.take_part("bob")
    refused = page.ask("restore", ann)
    assert refused.status == 409
    assert "Nobody of them is excluded" in refused.text
    page.do("exclude", ann, why="x")
    asked = page.ask("restore", ann, bob).text
    assert "Restore 1 participant?" in asked
    assert "1 of them is not excluded, and nothing changes for them." in asked
    assert "1 participant was restored." in page.do("restore", ann, bob)
    assert page.events() == [("restore", ann), ("exclude", ann)]
    assert "There are no pilot participants" in page.ask("reset").text
    assert "Delete the pilot" not in page.text()


def test_all_unknown_ids_are_named_and_what_was_pasted_is_kept(page):
    page.take_part("ann")
    typed = "ann " + " ".join(f"nobody{i}" for i in range(12))
    reply = page.ask("delete", who=typed)
    assert reply.status == 409
    problem = re.search(r'role="alert">([^<]+)<', reply.text)[1]
    assert all(f"nobody{i}" in problem for i in range(12))
    assert f">{typed}</textarea>" in reply.text


def test_what_is_deleted_is_not_called_unchanged(page, monkeypatch):
    """The rows are gone, though a log still has copies."""
    ann, bob = page.take_part("ann"), page.take_part("bob")
    form = form_of(page.ask("delete", ann).text)

    def fail(database):
        database.remains = "the log still has copies"

    monkeypatch.setattr(Database, "erase_deleted", fail)
    reply = page.client.post(form.action, form.fields)
    assert reply.status == 200
    assert "Nothing was changed" not in reply.text
    assert "1 participant was deleted." in reply.text
    assert 'role="alert">The log still has copies.</p>' in reply.text
    assert page.raters() == [bob]
    assert "The log" not in page.do("exclude", bob, why="x"), "this is about a deletion"


def test_the_table_has_the_ids_of_the_platform(tmp_path):
    with open_survey(small_study(platform="prolific"), tmp_path) as opened:
        page = Page(*opened)
        ids = "PROLIFIC_PID={}&STUDY_ID=s&SESSION_ID=t".format("5f" * 12)
        rater = begin(page.visitor, ids).removeprefix("/p/")[:16]
        text = page.text()
        assert ">Prolific id</a>" in text
        assert f"<code>{'5f' * 12}</code>" in text
        assert page.database.identity.code(rater) not in text
        assert ">Started (UTC)</a>" in text
        assert f"<code>{'5f' * 12}</code>" in page.ask("delete", rater).text


def test_reopening_asks_again_what_was_skipped(page):
    home = begin(page.visitor, "participant=ann")
    finish(page.visitor, home, skip="yes")
    rater = home.removeprefix("/p/")[:16]
    assert "1 participant was reopened." in page.do("reopen", rater)
    assert "Nobody was reopened." in page.do("reopen", rater)
    assert page.events() == [("reopen", rater)]


def test_the_state_of_the_study_and_its_pilot(page):
    for action, state in [("pause", "paused"), ("close", "closed"), ("pilot", "pilot")]:
        said = page.do(action)
        assert page.figure("State") == state
        assert 'role="status"' in said
        with page.database.begin_read() as connection:
            assert read_state(connection) == state
    tried = page.take_part("tester")
    page.do("open")
    ann = page.take_part("ann")
    assert page.raters() == [ann]
    assert "1 pilot participant is not counted here." in page.text()
    assert page.raters("?pilot=true") == [tried]
    assert page.figure("Answers", "?pilot=true") == page.figure("Answers") == "4 of 4,000,000"
    for pilot, rater in ((False, ann), (True, tried)):
        query = f"?pilot={str(pilot).lower()}"
        lines = page.client.get(f"/researcher/rankings.jsonl{query}").text.splitlines()
        assert {json.loads(line)["rater"] for line in lines} == {rater}
        lines = page.client.get(f"/researcher/data/answers.jsonl{query}").text.splitlines()
        assert {json.loads(line)["rater"] for line in lines} == {rater}
    assert "The pilot is deleted." in page.do("reset")
    assert page.raters("?pilot=true") == []
    assert page.raters() == [ann]


def test_a_question_changes_nothing(page):
    ann = page.take_part("ann")
    page.do("pause")
    before = dump(page.database)
    for action in ("exclude", "reopen", "delete", "open", "pilot", "close"):
        assert page.ask(action, ann).status == 200
    assert dump(page.database) == before


# ---- Whose forms they are


def test_forms_belong_to_one_login(page):
    ann = page.take_part("ann")
    mine = page.token()
    theirs = form_of(page.visitor.get("/researcher", BEARER).text).fields["form"]
    other = Login(TOKEN, page.database.identity).cookie(time.time() + 60)
    later = form_of(page.visitor.get("/researcher", {"cookie": f"{COOKIE}={other}"}).text)
    sent = {"action": "delete", "rater": ann}
    start = form_of(page.visitor.get("/").text).fields["form"]
    login = form_of(page.visitor.get("/researcher").text).fields["form"]
    before = dump(page.database)
    for form in (theirs, later.fields["form"], start, login, "0" * 64):
        for path in ("confirm", "act"):
            sent = {"form": form, "action": "delete", "who": ann}
            assert page.client.post(f"/researcher/{path}", sent).status == 403
    sent = {"form": mine, "action": "delete", "who": ann}
    for path in ("confirm", "act"):
        assert page.visitor.post(f"/researcher/{path}", sent).status == 401
        for headers in (
            {"origin": "https://evil.example"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
        ):
            assert page.client.post(f"/researcher/{path}", sent, headers).status == 403
        assert page.client.get(f"/researcher/{path}").status == 405
    assert dump(page.database) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"action": "evil"},
        {"action": ""},
        {"who": "x" * 60_001},
        {"evil": "1"},
        {"query": "?pilot=perhaps"},
        {"query": "?evil=1"},
        {"form": "short"},
    ],
)
def test_other_forms_are_malformed(kept, changes):
    sent = {"form": kept.token(), "action": "delete", "who": kept.done[0], **changes}
    before = dump(kept.database)
    assert kept.client.post("/researcher/confirm", sent).status == 422
    assert kept.client.post("/researcher/act", sent).status == 422
    assert dump(kept.database) == before


# ---- Files


@pytest.mark.parametrize("what", ["answers", "participants"])
def test_raw_data_are_downloaded_as_csv_and_json_lines(kept, what):
    table = kept.client.get(f"/researcher/data/{what}.csv")
    assert table["content-type"] == "text/csv; charset=utf-8"
    assert table["content-disposition"] == f'attachment; filename="{what}.csv"'
    rows = list(csv.DictReader(io.StringIO(table.body.decode("utf-8-sig"), newline="")))
    lines = kept.client.get(f"/researcher/data/{what}.jsonl").text.splitlines()
    assert len(rows) == len(lines) == (10 if what == "answers" else 3)
    assert list(rows[0]) == list(json.loads(lines[0]))


def test_nothing_to_download_is_said(page):
    for path in ("rankings.jsonl", "data/answers.csv", "data/participants.jsonl"):
        reply = page.client.get(f"/researcher/{path}")
        assert reply.status == 404
        assert "Nothing to download" in reply.text


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
    assert (
        f"'@{HOSTILE}"
        in next(
            csv.DictReader(
                io.StringIO(page.client.get("/researcher/payment/payments.csv").text[1:])
            )
        )["reason"]
    )


def test_who_is_paid(page):
    ann, bob = page.take_part("ann"), page.take_part("bob")
    page.start("cem")
    codes = [page.database.identity.code(rater) for rater in (ann, bob)]
    page.do("exclude", bob, why="copied")
    # Ann was too fast to be approved without a look.
    assert page.client.get("/researcher/payment/approve.txt").text == ""
    assert page.client.get("/researcher/payment/reject.txt").text == f"{codes[1]}\n"
    table = page.client.get("/researcher/payment/payments.csv").body.decode("utf-8-sig")
    decisions = {row["rater"]: row["decision"] for row in csv.DictReader(io.StringIO(table))}
    assert (decisions[ann], decisions[bob]) == ("look at", "reject")
    assert sorted(decisions.values()) == ["look at", "reject", "wait"]
    page.do("pilot")
    dan = page.take_part("dan")
    flagged = page.client.get("/researcher/payment/flagged.txt?pilot=true").text
    assert flagged == f"{page.database.identity.code(dan)}\n"
    assert "/researcher/payment/flagged.txt?pilot=true" in page.text("?pilot=true")


def test_page_and_export_count_flagged_raters_alike(page):
    """Somebody who skips everything is flagged, but has no answer that could be left out."""
    page.take_part("ann")
    home = begin(page.visitor, "participant=bob")
    while 'name="place"' in (text := page.visitor.get(home).text):
        form = form_of(text)
        page.visitor.post(form.action, {**form.fields, "skip": "yes"})
    assert page.figure("Flagged raters") == "2 of 2"
    assert "4 of 4 answers are left out. They are from 1 rater." in page.text()


def test_groups_of_raters_are_shown(page, monkeypatch):
    groups = (
        RaterGroup(("a", "b", "c"), ("dog", "bus")),
        RaterGroup(("d", "e", "f"), ("bus", ("cup", "dog"))),
    )
    page.take_part("ann")
    assert "raters fall into" not in page.text()
    monkeypatch.setattr("rankshot.survey.progress.find_rater_groups", lambda _: groups)
    page.take_part("bob")
    text = re.sub(r"<[^>]*>", "", page.text())
    assert "The raters fall into 2 groups:" in text
    assert "3 raters: dog › bus" in text
    assert "3 raters: bus › cup = dog" in text
