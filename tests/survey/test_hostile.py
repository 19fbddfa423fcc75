"""Hostile requests: refused with a status of their own, and stored nowhere."""

import json
import re
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from asgi_client import ITEMS, URLENCODED, Client, begin, form_of, opened, small_study
from sqlalchemy import select

from rankshot.survey.guards import MOST_BYTES, MOST_FIELDS
from rankshot.survey.identity import LINK_DIGITS, RATER_DIGITS
from rankshot.survey.tables import ASSIGNMENT, METADATA, PARTICIPANT

STUDY = small_study()
SCRIPT = "<script>alert(1)</script>"


class Survey:
    """A survey in which Ann has the first question in front of her, and Bob has his."""

    def __init__(self, app, database):
        self.client, self.database = Client(app), database
        self.identity = database.identity
        self.home, self.other = (begin(self.client, f"participant={p}") for p in ("ann", "bob"))
        self.form, self.others = (form_of(self.client.get(h).text) for h in (self.home, self.other))
        self.nonce = form_of(self.client.get("/").text).fields["form"]

    def dump(self, ignored=()):
        """Return all that is stored."""
        with self.database.reading() as connection:
            return {
                table.name: [
                    {k: v for k, v in row._mapping.items() if k not in ignored}
                    for row in connection.execute(select(table).order_by(*table.primary_key))
                ]
                for table in METADATA.sorted_tables
            }

    @contextmanager
    def unchanged(self, ignored=()):
        """Hold that the block stores nothing."""
        before = self.dump(ignored)
        yield
        assert self.dump(ignored) == before

    def start(self, **changes):
        return {"form": self.nonce, "participant": "eve", **changes}


@pytest.fixture
def survey(tmp_path):
    with opened(STUDY, tmp_path) as (app, database):
        yield Survey(app, database)


def forms(survey):
    """Return the forms that store something, each as it would be accepted."""
    return [("/start", survey.start()), (survey.form.action, survey.form.answer("1"))]


def test_the_same_forms_without_anything_hostile_are_stored(survey):
    for action, fields in forms(survey):
        before = survey.dump()
        assert survey.client.post(action, fields).status == 303
        assert survey.dump() != before


# ---- Bodies ----


def test_a_body_that_is_too_large_is_refused_as_soon_as_that_is_known(survey):
    for action, fields in forms(survey):
        body = urlencode(fields, doseq=True).encode()
        padded = body + b"&x=" + b"x" * (MOST_BYTES - len(body) - 2)
        assert len(padded) == MOST_BYTES + 1
        with survey.unchanged():
            assert survey.client.post(action, padded).status == 413
            # It says so before it comes: nothing of it is read.
            told = {"content-type": URLENCODED, "content-length": str(MOST_BYTES + 1)}
            reply = survey.client.send("POST", action, told, iter([]), breaks_off=True)
            assert reply.status == 413
            assert survey.client.post(action, padded[:-1]).status == 422, "just not too large"


def test_a_body_of_unknown_length_is_read_up_to_the_bound(survey):
    for action, _ in forms(survey):
        chunks = iter([b"x" * 1024] * 1000)
        with survey.unchanged():
            reply = survey.client.send("POST", action, {"content-type": URLENCODED}, chunks)
        assert reply.status == 413
        assert len(list(chunks)) >= 1000 - MOST_BYTES // 1024 - 1, "the rest was not read"


@pytest.mark.parametrize("length", ["-1", "+5", "1e3", "²", "٣", "9" * 5000, "", "5, 5", "0x10"])
def test_a_length_that_is_no_number_is_refused(survey, length):
    for action, fields in forms(survey):
        with survey.unchanged():
            headers = {"content-length": length.encode()}
            assert survey.client.post(action, fields, headers).status == 413


def test_an_answer_that_breaks_off_is_no_answer(survey):
    # Cut after any byte, many of these bodies are forms of their own: other answers.
    body = urlencode(survey.form.answer("1", "2", "3", skip="yes"), doseq=True).encode()
    headers = {"content-type": URLENCODED, "content-length": str(len(body))}
    for end in range(len(body) + 1):
        with survey.unchanged():
            reply = survey.client.send(
                "POST", survey.form.action, headers, [body[:end]], breaks_off=True
            )
            assert reply.status is None
    assert survey.client.post(survey.form.action, body).status == 303


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("&place=1" * 10_000, 413),
        ("&x=" * 10_000, 413),
        (";x=" * 10_000, 413),
        ("".join(f"&{i}=" for i in range(10_000)), 413),
        ("&place=" * (MOST_FIELDS + 1), 413),
        ("&place=" * 51, 422),
        ("&unknown=1", 422),
        ("&__proto__=1", 422),
        ("&FORM=1", 422),
        ("&place[]=1", 422),
        ("&=1", 422),
        ("&skip=yes&skip=yes", 422),
        ("&skip=no", 422),
        ("&skip=true", 422),
        ("&%00=1", 422),
        ("&%FF=1", 422),
    ],
)
def test_fields_that_our_pages_do_not_send_are_refused(survey, more, status):
    for action, fields in forms(survey):
        body = urlencode(fields, doseq=True) + more
        with survey.unchanged(ignored={"seen_at"}):
            assert survey.client.post(action, body.encode()).status == status


def test_a_field_given_twice_is_refused_even_if_both_are_right(survey):
    for action, fields in forms(survey):
        body = urlencode(fields, doseq=True)
        for name in set(fields) - {"place"}:
            for value in (fields[name], "0" * len(fields[name])):
                for twice in (f"{body}&{name}={value}", f"{name}={value}&{body}"):
                    with survey.unchanged():
                        assert survey.client.post(action, twice.encode()).status == 422


def multipart(fields):
    part = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    pairs = [(k, v) for k, vs in fields.items() for v in (vs if isinstance(vs, list) else [vs])]
    file = '--b\r\nContent-Disposition: form-data; name="f"; filename="a.sh"\r\n\r\nrm\r\n'
    return ("".join(part.format(*pair) for pair in pairs) + file + "--b--\r\n").encode()


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("multipart/form-data; boundary=b", multipart),
        ("multipart/form-data; boundary=b; charset=unicode_escape", multipart),
        ("multipart/form-data", multipart),
        ("application/json", lambda fields: json.dumps(fields).encode()),
        ("text/plain", lambda fields: urlencode(fields, doseq=True).encode()),
        ("application/xml", lambda _: b"<!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>"),
        (f"{URLENCODED}, multipart/form-data; boundary=b", multipart),
        (f"x{URLENCODED}", lambda fields: urlencode(fields, doseq=True).encode()),
        ("", lambda fields: urlencode(fields, doseq=True).encode()),
        ("\xff", lambda fields: urlencode(fields, doseq=True).encode()),
    ],
)
def test_only_forms_as_our_pages_send_them_are_read(survey, kind, written):
    for action, fields in forms(survey):
        with survey.unchanged():
            reply = survey.client.post(action, written(fields), {"content-type": kind})
        assert reply.status == 415
    plain = {"content-type": f"{URLENCODED.upper()} ; charset=utf-8"}
    assert survey.client.post(*forms(survey)[1], plain).status == 303


@pytest.mark.parametrize("text", ["%00", "%FF", "%C3%28", "%ED%A0%80", "%F4%90%80%80", "%", "%zz"])
@pytest.mark.parametrize("raw", [False, True])
def test_bytes_that_are_no_text_are_refused_in_every_field(survey, text, raw):
    hostile = bytes.fromhex(text.replace("%", "")) if raw and len(text) % 3 == 0 else text.encode()
    for action, fields in forms(survey):
        for name in fields:
            others = urlencode({k: v for k, v in fields.items() if k != name}, doseq=True)
            body = f"{others}&{name}=".encode() + hostile
            with survey.unchanged(ignored={"seen_at"}):
                assert survey.client.post(action, body).status in {400, 422}


# ---- Places ----

PLACES = [
    SCRIPT, "-1", "0", "4", "99", "999", "1000", "9" * 5000, "1.0", "1e0", "+1", " 1", "1 ", "01 ",
    "1_0", "0x1", "١", "１", "Ⅰ", "²", "①", "1\n", "1\0", "NaN", "inf", "None", "null", "true", "'",
    "1;DROP TABLE assignment", "1--", "{{7*7}}", "\u202e1", "1\u200b",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_places_that_are_none_are_refused(survey, place):
    fields = survey.form.answer(place)
    # A sign of life is one, whatever the answer.
    with survey.unchanged(ignored={"seen_at"}):
        reply = survey.client.post(survey.form.action, fields)
    assert reply.status == 422
    assert "<script>alert" not in reply.text


@pytest.mark.parametrize("n", [0, 1, len(ITEMS) - 1, len(ITEMS) + 1, 50, 51, MOST_FIELDS - 2])
def test_too_few_and_too_many_places_are_refused(survey, n):
    fields = {**survey.form.fields, "place": ["1", *[""] * (n - 1)] if n else []}
    with survey.unchanged(ignored={"seen_at"}):
        assert survey.client.post(survey.form.action, fields).status == 422


@pytest.mark.parametrize("places", ["111", "122", "133", "23 ", "3  ", "   "])
def test_places_that_make_no_ranking_are_refused(survey, places):
    with survey.unchanged(ignored={"seen_at"}):
        fields = survey.form.answer(*places.replace(" ", ""))
        assert survey.client.post(survey.form.action, fields).status == 422


# ---- Tokens and links ----


@pytest.fixture
def elsewhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    with opened(STUDY, tmp_path / "elsewhere") as (app, database):
        yield Survey(app, database)


def test_forged_and_foreign_tokens_of_answers_are_refused(survey, elsewhere):
    token = survey.form.fields["form"]
    tokens = {
        "made up": "0" * 32,
        "changed": token[:-1] + ("0" if token[-1] != "0" else "1"),
        "of another participant": survey.others.fields["form"],
        "of the same participant in another survey": elsewhere.form.fields["form"],
        "of another form": survey.nonce[:32],
        "of the form's other half": survey.nonce[32:],
    }
    malformed = ["", token[:-1], token + "0", token.upper() + "g", "g" * 32, SCRIPT, token + "\n"]
    for status, some in ((403, tokens.values()), (422, malformed)):
        for forged in some:
            with survey.unchanged():
                fields = survey.form.answer("1", form=forged)
                assert survey.client.post(survey.form.action, fields).status == status, forged


def test_forged_and_foreign_tokens_of_the_start_are_refused(survey, elsewhere):
    nonce = survey.nonce
    forged = ["0" * 64, nonce[32:] + nonce[:32], "0" * 32 + nonce[32:], elsewhere.nonce]
    malformed = ["", nonce[:-1], nonce + "0", "G" * 64, SCRIPT, nonce + "\n"]
    for status, some in ((403, forged), (422, malformed)):
        for form in some:
            with survey.unchanged():
                reply = survey.client.post("/start", survey.start(form=form))
                assert reply.status == status, form


def test_a_form_is_over_when_its_question_went_to_somebody_else(tmp_path):
    study = small_study(answers_per_question=1, questions_per_participant=1, return_after_minutes=1)
    with opened(study, tmp_path) as (app, database):
        survey = Survey(app, database)
        client = survey.client

        def minutes_pass():
            with database.writing() as connection:
                connection.execute(PARTICIPANT.update().values(seen_at=PARTICIPANT.c.seen_at - 61))

        def asked(home):
            return re.search(r"<h1[^>]*>([^<]+)", client.get(home).text)[1]

        before = asked(survey.home)
        minutes_pass()
        homes = [begin(client, f"participant=p{i}") for i in range(4)]
        (same,) = [home for home in homes if asked(home) == before]
        form = form_of(client.get(same).text)
        assert client.post(form.action, form.answer("1")).status == 303
        minutes_pass()
        assert asked(survey.home) != before
        with survey.unchanged():
            assert client.post(survey.form.action, survey.form.answer("1")).status == 403


def test_an_answer_to_a_question_that_was_not_shown_yet_is_refused(survey):
    rater = survey.identity.rater_of(survey.home.removeprefix("/p/"))
    with survey.database.reading() as connection:
        second = (ASSIGNMENT.c.rater == rater) & (ASSIGNMENT.c.number == 2)
        key = connection.execute(select(ASSIGNMENT.c.question).where(second)).scalar_one()
    # Not even with the token that its form is going to have.
    fields = survey.form.answer("1", form=survey.identity.form_token(rater, 2, key))
    with survey.unchanged():
        assert survey.client.post(f"{survey.home}/2", fields).status == 403
        assert survey.client.post(f"{survey.home}/2", survey.form.answer("1")).status == 403
        assert survey.client.post(f"{survey.home}/5", fields).status == 403
    survey.client.post(survey.form.action, survey.form.answer("1"))
    survey.client.get(survey.home)
    assert survey.client.post(f"{survey.home}/2", fields).status == 303


def test_links_of_others_and_links_that_were_made_up_lead_nowhere(survey, elsewhere):
    link, other = (home.removeprefix("/p/") for home in (survey.home, survey.other))
    links = {
        "another's rater before my signature": other[:RATER_DIGITS] + link[RATER_DIGITS:],
        "my rater before another's signature": link[:RATER_DIGITS] + other[RATER_DIGITS:],
        "the same participant in another survey": elsewhere.home.removeprefix("/p/"),
        "zeros": "0" * LINK_DIGITS,
        "a participant who never began": survey.identity.link(survey.identity.rater("none:id:x")),
    }
    for name, forged in links.items():
        with survey.unchanged():
            assert survey.client.get(f"/p/{forged}").status == 404, name
            fields = survey.form.answer("1")
            assert survey.client.post(f"/p/{forged}/1", fields).status in {403, 404}, name


# ---- Ids ----

IDS = [
    SCRIPT, '"><img src=x onerror=alert(1)>', "'; DROP TABLE participant; --", "' OR '1'='1",
    "a\r\nSet-Cookie: a=b", "a\nb", "a\0b", "../../etc/passwd", "{{7*7}}", "${7*7}", "%s%n", "é", "٣",
    "a b", "\u202eann", "x" * 101, "x" * 201, "x" * 60_000, "anonymous:1 ", "javascript:alert(1)//",
]  # fmt: skip


@pytest.mark.parametrize("text", IDS)
@pytest.mark.parametrize("platform", ["none", "prolific", "mturk"])
def test_ids_that_no_platform_gives_are_refused_and_not_repeated(tmp_path, platform, text):
    # 64 KiB is the most that a server reads of an address; an application sees any.
    names = {"none": ["participant"], "prolific": ["PROLIFIC_PID"]}
    turk = {"workerId": "A1", "assignmentId": "3A", "turkSubmitTo": "https://www.mturk.com"}
    good = turk if platform == "mturk" else {}
    with opened(small_study(platform=platform), tmp_path) as (app, database):
        client = Client(app)
        for name in names.get(platform, turk):
            reply = client.get(f"/?{urlencode({**good, name: text})}")
            assert reply.status in {400, 422}, name
            assert_harmless(reply, text)
        fields = {"participant": "A1", "assignment": "3A", "submit_to": turk["turkSubmitTo"]}
        sent = fields if platform == "mturk" else {"participant": "A1"}
        for name in sent:
            form = {"form": database.identity.nonce("start"), **sent, name: text}
            reply = client.post("/start", form)
            assert reply.status in {400, 413, 422}, name
            assert_harmless(reply, text)
        with database.reading() as connection:
            assert connection.execute(select(PARTICIPANT)).all() == []


def assert_harmless(reply, text):
    assert not any(mark in reply.text for mark in ("<script>", "<img", "\0", "\r", "\u202e"))
    assert "49" not in reply.text, "a template would be filled in"
    assert reply.all("set-cookie") == reply.all("location") == []
    assert len(reply.text) < 5_000


# ---- Addresses, methods, origins ----

PATHS = [
    "/static/", "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/%00",
    "/static/survey.css%00", "/static/survey.css/", "/static/SURVEY.CSS", "/static/..%5capp.py",
    "/static//etc/passwd", "//evil.example/", "//evil.example/%2e%2e", "/\\evil.example", "/start/",
    "/researcher/", "/researcher//standing", "/researcher;/standing", "/%2e/researcher/standing",
    "/.git/config", "/.env", "/docs", "/redoc", "/openapi.json/", "/favicon.ico", "/p", "/p/", "/p//",
    "/p/%00", "/p/..%2fresearcher", "/P/x", "/p/x/leave", "/%", "/%zz", "/%ff", "*", "/" + "a" * 60_000,
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_addresses_that_are_not_ours_lead_nowhere(survey, path):
    with survey.unchanged():
        for method in ("GET", "POST"):
            reply = survey.client.send(method, path, {"host": "evil.example"})
            assert reply.status in {404, 405, 422}, method
            assert reply.all("location") == []
            assert "evil" not in reply.text


@pytest.mark.parametrize("number", [
    "0", "-1", "00", "01", "1.0", "+1", "1_0", "%201", "1%20", "1%0a", "%D9%A1", "1e0", "99999999999",
    "9" * 5000, "NaN", "1'", "1;", "1%00", "2147483648", "18446744073709551617",
])  # fmt: skip
def test_numbers_in_addresses_are_plain_and_small(survey, number):
    with survey.unchanged():
        reply = survey.client.post(f"{survey.home}/{number}", survey.form.answer("1"))
    assert reply.status == 422


@pytest.mark.parametrize("method", [
    "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "get", "X", "post",
])  # fmt: skip
def test_methods_that_are_not_ours_are_told_which_are(survey, method):
    paths = {"/": "GET", "/start": "POST", survey.form.action: "POST", survey.home: "GET"}
    with survey.unchanged():
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
    for action, fields in forms(survey):
        with survey.unchanged():
            reply = survey.client.post(action, fields, headers)
            assert reply.status == 403
            assert "another site" in reply.text
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
def test_forms_from_our_own_pages_are_taken(survey, headers):
    for action, fields in forms(survey):
        assert survey.client.post(action, fields, headers).status == 303
