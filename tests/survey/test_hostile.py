"""Hostile forms: refused with a status of their own, and stored nowhere."""

import json
import re
from urllib.parse import urlencode

import pytest
from asgi_client import URLENCODED, Survey, begin, dump, form_of, open_survey
from small_studies import ITEMS, small_study

from rankshot.survey.store.database import PARTICIPANT
from rankshot.survey.store.identity import LINK_DIGITS, RATER_DIGITS
from rankshot.survey.web.guards import MOST_BYTES, MOST_FIELDS

STUDY = small_study()
SCRIPT = "<script>alert(1)</script>"


def test_the_same_forms_without_anything_hostile_are_stored(fresh):
    for action, fields in fresh.forms():
        before = dump(fresh.database)
        assert fresh.client.post(action, fields).status == 303
        assert dump(fresh.database) != before


# ---- Bodies ----


def test_a_body_that_is_too_large_is_refused_as_soon_as_that_is_known(survey):
    for action, fields in survey.forms():
        body = urlencode(fields, doseq=True).encode()
        padded = body + b"&x=" + b"x" * (MOST_BYTES - len(body) - 2)
        assert len(padded) == MOST_BYTES + 1
        with survey.hold_unchanged():
            assert survey.client.post(action, padded).status == 413
            # It says so before it comes: nothing of it is read.
            told = {"content-type": URLENCODED, "content-length": str(MOST_BYTES + 1)}
            reply = survey.client.send("POST", action, told, iter([]), breaks_off=True)
            assert reply.status == 413
            assert survey.client.post(action, padded[:-1]).status == 422, "just not too large"


def test_a_body_of_unknown_length_is_read_up_to_the_bound(survey):
    for action, _ in survey.forms():
        chunks = iter([b"x" * 1024] * 1000)
        with survey.hold_unchanged():
            reply = survey.client.send("POST", action, {"content-type": URLENCODED}, chunks)
        assert reply.status == 413
        assert len(list(chunks)) >= 1000 - MOST_BYTES // 1024 - 1, "the rest was not read"


# In a header, the byte b2 is a small two: a digit, but no number.
@pytest.mark.parametrize("length", ["-1", "+5", "1e3", "\xb2", "9" * 5000, "", "5, 5", "0x10"])
def test_a_length_that_is_no_number_is_refused(survey, length):
    for action, fields in survey.forms():
        with survey.hold_unchanged():
            assert survey.client.post(action, fields, {"content-length": length}).status == 413


def test_an_answer_that_breaks_off_is_no_answer(fresh):
    # Cut after any byte, many of these bodies are forms of their own: other answers.
    body = urlencode(fresh.form.answer("1", "2", "3", skip="yes"), doseq=True).encode()
    headers = {"content-type": URLENCODED, "content-length": str(len(body))}
    action = fresh.form.action
    with fresh.hold_unchanged():
        for end in range(len(body) + 1):
            reply = fresh.client.send("POST", action, headers, [body[:end]], breaks_off=True)
            assert reply.status is None
    assert fresh.client.post(action, body).status == 303


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
    for action, fields in survey.forms():
        body = urlencode(fields, doseq=True) + more
        with survey.hold_unchanged(ignored={"seen_at"}):
            assert survey.client.post(action, body.encode()).status == status


def test_a_field_given_twice_is_refused_even_if_both_are_right(survey):
    for action, fields in survey.forms():
        body = urlencode(fields, doseq=True)
        for name in set(fields) - {"place"}:
            for value in (fields[name], "0" * len(fields[name])):
                for twice in (f"{body}&{name}={value}", f"{name}={value}&{body}"):
                    with survey.hold_unchanged():
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
    for action, fields in survey.forms():
        with survey.hold_unchanged():
            reply = survey.client.post(action, written(fields), {"content-type": kind})
        assert reply.status == 415


def test_a_form_may_say_its_charset(fresh):
    for action, fields in fresh.forms():
        kind = {"content-type": f"{URLENCODED.upper()} ; charset=utf-8"}
        assert fresh.client.post(action, fields, kind).status == 303


@pytest.mark.parametrize(
    "hostile",
    [
        *(b"%00", b"%FF", b"%C3%28", b"%ED%A0%80", b"%F4%90%80%80", b"%", b"%zz"),
        *(b"\0", b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\r\n"),
    ],
)
def test_bytes_that_are_no_text_are_refused_in_every_field(survey, hostile):
    for action, fields in survey.forms():
        for name in fields:
            others = urlencode({k: v for k, v in fields.items() if k != name}, doseq=True)
            body = f"{others}&{name}=".encode() + hostile
            with survey.hold_unchanged(ignored={"seen_at"}):
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
    with survey.hold_unchanged(ignored={"seen_at"}):
        reply = survey.client.post(survey.form.action, fields)
    assert reply.status == 422
    assert "<script>alert" not in reply.text


@pytest.mark.parametrize("n", [0, 1, len(ITEMS) - 1, len(ITEMS) + 1, 50, 51, MOST_FIELDS - 2])
def test_too_few_and_too_many_places_are_refused(survey, n):
    fields = {**survey.form.fields, "place": ["1", *[""] * (n - 1)] if n else []}
    with survey.hold_unchanged(ignored={"seen_at"}):
        assert survey.client.post(survey.form.action, fields).status == 422


@pytest.mark.parametrize("places", ["111", "122", "133", "23 ", "3  ", "   "])
def test_places_that_make_no_ranking_are_refused(survey, places):
    with survey.hold_unchanged(ignored={"seen_at"}):
        fields = survey.form.answer(*places.replace(" ", ""))
        assert survey.client.post(survey.form.action, fields).status == 422


# ---- Tokens and links ----


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Another survey of the same study, with the same people."""
    with open_survey(STUDY, tmp_path_factory.mktemp("elsewhere")) as made:
        yield Survey(*made)


def test_forged_and_foreign_tokens_of_answers_are_refused(survey, elsewhere):
    token = survey.form.fields["form"]
    tokens = {
        "made up": "0" * len(token),
        "shown earlier": "0" + token[:11] + token[12:],
        "changed": token[:-1] + ("0" if token[-1] != "0" else "1"),
        "of another participant": survey.others.fields["form"],
        "of the same participant in another survey": elsewhere.form.fields["form"],
        "of another form": token[:12] + survey.nonce[:32],
        "of the form's other half": token[:12] + survey.nonce[32:],
    }
    malformed = [
        "",
        token[:-1],
        token + "0",
        token.upper() + "g",
        "g" * len(token),
        SCRIPT,
        token[12:],
    ]
    for status, some in ((403, tokens.values()), (422, malformed)):
        for forged in some:
            with survey.hold_unchanged():
                fields = survey.form.answer("1", form=forged)
                assert survey.client.post(survey.form.action, fields).status == status, forged


def test_forged_and_foreign_tokens_of_the_start_are_refused(survey, elsewhere):
    nonce = survey.nonce
    forged = ["0" * 64, nonce[32:] + nonce[:32], "0" * 32 + nonce[32:], elsewhere.nonce]
    malformed = ["", nonce[:-1], nonce + "0", "G" * 64, SCRIPT, nonce + "\n"]
    for status, some in ((403, forged), (422, malformed)):
        for form in some:
            with survey.hold_unchanged():
                reply = survey.client.post("/start", survey.start(form=form))
                assert reply.status == status, form


def test_a_form_is_over_when_its_question_went_to_somebody_else(tmp_path):
    study = small_study(answers_per_question=1, questions_per_participant=1, return_after_minutes=1)
    with open_survey(study, tmp_path) as (app, database):
        survey = Survey(app, database)
        client = survey.client

        def minutes_pass():
            with database.begin_write() as connection:
                connection.execute(PARTICIPANT.update().values(seen_at=PARTICIPANT.c.seen_at - 61))

        def read_question(home):
            return re.search(r"<h1[^>]*>([^<]+)", client.get(home).text)[1]

        before = read_question(survey.home)
        minutes_pass()
        homes = [begin(client, f"participant=p{i}") for i in range(4)]
        (same,) = [home for home in homes if read_question(home) == before]
        form = form_of(client.get(same).text)
        assert client.post(form.action, form.answer("1")).status == 303
        minutes_pass()
        assert read_question(survey.home) != before
        with survey.hold_unchanged():
            assert client.post(survey.form.action, survey.form.answer("1")).status == 403


def test_an_answer_to_a_question_that_was_not_shown_yet_is_refused(fresh):
    # Only the server can make the token of the next question.
    with fresh.hold_unchanged():
        for number in (2, 5):
            reply = fresh.client.post(f"{fresh.home}/{number}", fresh.form.answer("1"))
            assert reply.status == 403


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
        with survey.hold_unchanged():
            assert survey.client.get(f"/p/{forged}").status == 404, name
            fields = survey.form.answer("1")
            assert survey.client.post(f"/p/{forged}/1", fields).status in {403, 404}, name
