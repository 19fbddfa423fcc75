"""Hostile requests: refused with a status of their own, harmless on the page, stored nowhere."""

import json
import re
from urllib.parse import urlencode

import pytest

from asgi import URLENCODED
from asgi_client import Survey, dump, form_of, open_survey
from rankshot.web.guards import MOST_BYTES, MOST_FIELDS
from rankshot_survey.store.identity import LINK_DIGITS, RATER_DIGITS
from small_studies import ITEMS, small_study

STUDY = small_study()
SCRIPT = "<script>alert(1)</script>"


def assert_harmless(reply):
    """Hold that nothing of what was sent is on the page."""
    assert not any(mark in reply.text for mark in ("<script>", "<img", "\0", "\r", "\u202e"))
    assert str(1234567 * 7654321) not in reply.text, "a template would be filled in"
    assert reply.all("set-cookie") == reply.all("location") == []
    assert len(reply.text) < 12_000


def test_the_same_forms_without_anything_hostile_are_stored(fresh):
    for action, fields in fresh.forms():
        before = dump(fresh.database)
        kind = {"content-type": f"{URLENCODED.upper()} ; charset=utf-8"}
        assert fresh.client.post(action, fields, kind).status == 303
        assert dump(fresh.database) != before


# ---- One table of bodies, for both forms that store something


def multipart(fields):
    part = '--b\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
    pairs = [(k, v) for k, vs in fields.items() for v in (vs if isinstance(vs, list) else [vs])]
    return ("".join(part.format(*pair) for pair in pairs) + "--b--\r\n").encode()


def plain(fields):
    return urlencode(fields, doseq=True).encode()


def add(more):
    return lambda fields: plain(fields) + more


BODIES = [
    # too much, or what our pages do not send
    (add(b"&place=1" * 10_000), {}, 413),
    (add(b";x=" * 10_000), {}, 413),
    (add(b"&place=" * (MOST_FIELDS + 1)), {}, 413),
    (add(b"&place=" * 51), {}, 422),
    *((add(more), {}, 422) for more in (b"&unknown=1", b"&__proto__=1", b"&FORM=1", b"&place[]=1")),
    *((add(more), {}, 422) for more in (b"&=1", b"&skip=yes&skip=yes", b"&skip=no", b"&%00=1")),
    (add(b"&form=" + b"0" * 64), {}, 422),
    # lengths that are no numbers; the byte b2 is a small two: a digit, but no number
    *((plain, {"content-length": n}, 413) for n in ("-1", "1e3", "\xb2", "9" * 5000, "", "5, 5")),
    # other kinds of content
    *(
        (multipart, {"content-type": kind}, 415)
        for kind in (
            "multipart/form-data; boundary=b",
            "multipart/form-data; boundary=b; charset=unicode_escape",
            f"{URLENCODED}, multipart/form-data; boundary=b",
        )
    ),
    (lambda fields: json.dumps(fields).encode(), {"content-type": "application/json"}, 415),
    *((plain, {"content-type": it}, 415) for it in ("text/plain", f"x{URLENCODED}", "", "\xff")),
    # from other sites
    *(
        (plain, {"origin": origin}, 403)
        for origin in (
            *("https://evil.example", "null", "", "http://[", "survey.example"),
            "http://survey.example.evil.example",
            "http://evil.example@survey.example",
        )
    ),
    *((plain, {"sec-fetch-site": site}, 403) for site in ("cross-site", "same-site", "nonsense")),
    (plain, {"sec-fetch-site": "cross-site", "origin": "http://survey.example"}, 403),
]  # fmt: skip


@pytest.mark.parametrize(("write", "headers", "status"), BODIES)
def test_forms_as_our_pages_do_not_send_them_are_refused(survey, write, headers, status):
    for action, fields in survey.forms():
        with survey.hold_unchanged(ignored={"seen_at"}):
            reply = survey.client.post(action, write(fields), headers)
        assert reply.status == status
        assert_harmless(reply)


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
                assert survey.client.post(action, body).status in {400, 403, 422}


# ---- Places


PLACES = [
    *("-1", "0", "4", "999", "9" * 5000, "1.0", "1e0", "+1", " 1", "1_0", "0x1", "١", "１", "²"),
    *("1\n", "1\0", "NaN", "null", "true", "'", "1;DROP TABLE assignment", "{{7*7}}", "\u202e1"),
    SCRIPT,
]


@pytest.mark.parametrize(
    "places",
    [
        *([place, "", ""] for place in PLACES),
        *(["1", *[""] * (n - 1)] for n in (1, len(ITEMS) - 1, len(ITEMS) + 1, 50, 51)),
        *([], ["1", "1", "1"], ["1", "2", "2"], ["2", "3", ""], ["3", "", ""], ["", "", ""]),
    ],
)
def test_places_that_make_no_ranking_are_refused(survey, places):
    # A sign of life is one, whatever the answer.
    with survey.hold_unchanged(ignored={"seen_at"}):
        reply = survey.client.post(survey.form.action, {**survey.form.fields, "place": places})
    assert reply.status == 422
    assert "<script>alert" not in reply.text


def test_a_wrong_ranking_is_shown_again_with_its_places(survey):
    form = survey.form
    reply = survey.client.post(form.action, {**form.fields, "place": ["2", "3", ""]})
    again = form_of(reply.text)
    assert (again.action, again.fields) == (form.action, form.fields)
    assert re.findall(r"<option selected>(\d)", reply.text) == ["2", "3"]


# ---- Tokens and links


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
    malformed = [token[:-1], token + "0", "g" * len(token), SCRIPT, token[12:]]
    for forged in (*tokens.values(), *malformed):
        with survey.hold_unchanged():
            fields = survey.form.answer("1", form=forged)
            assert survey.client.post(survey.form.action, fields).status == 403, forged


def test_forged_and_foreign_tokens_of_the_start_are_refused(survey, elsewhere):
    nonce = survey.nonce
    forged = ["0" * 64, nonce[32:] + nonce[:32], "0" * 32 + nonce[32:], elsewhere.nonce]
    malformed = [nonce[:-1], nonce + "0", "G" * 64, SCRIPT, nonce + "\n"]
    for form in (*forged, *malformed):
        with survey.hold_unchanged():
            reply = survey.client.post("/start", survey.start(form=form))
            assert reply.status == 403, form


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


# ---- Ids, addresses and methods

IDS = [
    SCRIPT, '"><img src=x onerror=alert(1)>', "'; DROP TABLE participant; --", "a\nb", "a\0b",
    "a\r\nSet-Cookie: a=b", "../../etc/passwd", "%s%n", "é", "٣", "a b", "{{1234567*7654321}}",
    "${1234567*7654321}", "\u202eann", "x" * 101, "x" * 60_000, "javascript:alert(1)//",
]  # fmt: skip


@pytest.mark.parametrize("platform", ["none", "prolific"])
def test_ids_that_no_platform_gives_are_refused_and_not_repeated(tmp_path, platform):
    name = {"none": "participant", "prolific": "PROLIFIC_PID"}[platform]
    with open_survey(small_study(platform=platform), tmp_path) as (client, database):
        for text in IDS:
            nonce = database.identity.nonce("start")
            for reply in (
                client.get(f"/?{urlencode({name: text})}"),
                client.post("/start", {"form": nonce, name: text}),
            ):
                assert reply.status in {400, 422}, text
                assert_harmless(reply)
        assert dump(database)["participant"] == []


PATHS = [
    "/static/", "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/%00",
    "/static/survey.css%00", "/static/..%5capp.py", "/static//etc/passwd", "//evil.example/",
    "/\\evil.example", "/start/", "/researcher/", "/researcher//files", "/researcher;/files",
    "/%2e/researcher/files", "/.git/config", "/.env", "/docs", "/redoc", "/p", "/p/", "/p//",
    "/p/%00", "/p/..%2fresearcher", "/P/x", "/p/x/extra", "/%", "/%zz", "/%ff", "*",
    "/" + "a" * 60_000,
]  # fmt: skip


def test_addresses_that_are_not_ours_lead_nowhere(survey):
    numbers = ("0", "-1", "01", "1.0", "+1", "1_0", "1%0a", "%D9%A1", "9" * 5000, "NaN", "1%00")
    with survey.hold_unchanged():
        for path in PATHS:
            for method in ("GET", "POST"):
                reply = survey.client.send(method, path, {"host": "evil.example"})
                assert reply.status in {404, 405, 422}, (method, path)
                assert reply.all("location") == []
                assert "evil" not in reply.text
        for number in numbers:
            reply = survey.client.post(f"{survey.home}/{number}", survey.form.answer("1"))
            assert reply.status == 422, number
