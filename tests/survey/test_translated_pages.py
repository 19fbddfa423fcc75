"""Every page in a catalogue of marked texts: nothing that participants read is left in English."""

import re

import pytest
from asgi_client import MANY, Client, begin, finish, form_of, open_survey
from pseudo_language import TAG, find_keys, untranslated, visible_texts, write_catalogue
from small_studies import small_study

from rankshot.survey.languages import ENGLISH, load_catalogue
from rankshot.survey.presentation import Example
from rankshot.survey.store.participation import Participation
from rankshot.survey.study import DEFAULT_PROMPT, Question
from rankshot.survey.web.app import Rates
from rankshot.survey.web.guards import MOST_BYTES

ITEMS = ("άλφα", "βήτα", "γάμμα")
LANGUAGE = {"accept-language": TAG}
MTURK = "workerId={}&assignmentId=3&turkSubmitTo=https://www.mturk.com"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("marked")


@pytest.fixture(scope="module")
def marked_study(folder):
    path = write_catalogue(folder)
    counter = iter(range(100))

    def make(**changes):
        """Open a survey whose own texts are Greek."""
        study = small_study(
            **{"prompt": "Ποια {target};", **changes},
            title="Τίτλος",
            consent="Ναι;",
            contact="Αδα",
            items=ITEMS,
            questions=(Question("δέλτα", ITEMS), Question("έψιλον", ITEMS)),
            catalogues=(path,),
            questions_per_participant=2,
            repeats=1,
            language=TAG,
        )
        own = folder / str(next(counter))
        own.mkdir()
        return study, own

    return make


class Reader:
    """Somebody whose browser asks for the marked texts, and who looks for others."""

    def __init__(self, app):
        self.client = Client(app, headers=LANGUAGE)
        self.keys = set()

    def get(self, target, status=200):
        return self.read(self.client.get(target), status)

    def post(self, target, fields, status, headers=None):
        return self.read(self.client.post(target, fields, headers), status)

    def read(self, reply, status):
        assert reply.status == status, reply.text
        if status == 303:
            return reply
        code = re.findall(r"<code[^>]*>(\w+)</code>", reply.text)
        texts = [text for text in visible_texts(reply.text) if text not in code]
        assert untranslated(texts) == []
        assert f'<html lang="{TAG}" dir="ltr">' in reply.text
        assert reply["content-language"] == TAG
        assert reply["vary"] == "accept-language"
        self.keys |= find_keys(reply.text)
        return reply


def read_survey(reader, database, broken):
    """Read the pages of a whole survey, and all that can go wrong on the way."""
    reader.get("/?participant=ann")
    reader.get("/declined")
    reader.get("/?participant=%00", 400)
    nonce = form_of(reader.client.get("/").text).fields["form"]
    reader.post("/start", {"form": "0" * len(nonce)}, 403)
    home = begin(reader.client)
    reader.get(f"{home}/instructions")
    form = form_of(reader.get(home).text)
    for places in (["1", "1"], ["9"], ["2"], []):
        reader.post(form.action, form.answer(*places), 422)
    reader.post(form.action, {**form.fields, "place": ["1"]}, 422)
    reader.post(form.action, form.answer("1", form="0" * 32), 403)
    reader.post(form.action, form.answer("1"), 303)
    reader.post(form.action, form.answer("2", "1"), 409)
    reader.post(form.action, form.answer("1", "1"), 422)
    again = form_of(reader.get(home).text)
    reader.post(again.action, again.answer(skip="yes"), 303)
    reader.post(again.action, again.answer("1"), 409)
    broken.append(True)
    reader.post(again.action, again.answer("1"), 500)
    broken.clear()
    finish(reader.client, home)
    reader.get(home)
    identity = database.identity
    reader.get(f"/p/{identity.link('0' * 16)}", 404)
    reader.get(f"/p/{'0' * len(identity.link('0' * 16))}", 404)
    reader.get("/nowhere", 404)
    reader.get("/static/nothing.js", 404)
    reader.read(reader.client.send("PUT", "/"), 405)
    reader.post("/start", {}, 422)
    reader.post("/start", b"form=1&form=2", 422)
    reader.post("/start", {}, 403, {"sec-fetch-site": "cross-site"})
    reader.post("/start", b"x" * (MOST_BYTES + 1), 413)
    reader.post("/start", {}, 415, {"content-type": "application/json"})


@pytest.fixture
def broken(monkeypatch):
    """A list; while it has something in it, the store fails."""
    submit, switch = Participation.submit, []

    def submit_or_fail(*arguments, **options):
        if switch:
            raise RuntimeError
        return submit(*arguments, **options)

    monkeypatch.setattr(Participation, "submit", submit_or_fail)
    return switch


def test_no_page_has_other_texts_and_no_text_has_no_page(marked_study, broken, monkeypatch):
    keys = set()

    def open_reader(survey, **rates):
        return open_survey(*survey, rates=Rates(**{**vars(MANY), **rates}))

    with open_reader(marked_study()) as (app, database):
        reader = Reader(app)
        # An exception goes on to the server after its page.
        call = reader.client._app

        async def catch(*arguments):
            try:
                await call(*arguments)
            except RuntimeError:
                assert broken

        monkeypatch.setattr(reader.client, "_app", catch)
        read_survey(reader, database, broken)
        keys |= reader.keys
    done = {"completion_url": "https://example.org/a", "refusal_url": "https://example.org/b"}
    prolific = marked_study(platform="prolific", answers_per_question=1, spare_answers=0, **done)
    with open_reader(prolific) as (app, _):
        reader = Reader(app)
        reader.get("/", 400)
        home = begin(reader.client, "PROLIFIC_PID=ann")
        reader.get(f"{home}/leave", 409)
        reader.get("/?PROLIFIC_PID=bob", 503)
        reader.get("/declined")
        finish(reader.client, home)
        reader.get(home)
        keys |= reader.keys
    with open_reader(marked_study(platform="mturk")) as (app, _):
        reader = Reader(app)
        reader.get("/?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")
        reader.get("/?workerId=1&assignmentId=2&turkSubmitTo=https://example.org", 400)
        form = form_of(reader.get(f"/?{MTURK.format(1)}").text)
        preview = {**form.fields, "assignment": "ASSIGNMENT_ID_NOT_AVAILABLE"}
        reader.post("/start", preview, 400)
        home = begin(reader.client, MTURK.format(1))
        finish(reader.client, home)
        reader.get(home)
        keys |= reader.keys
    with open_reader(marked_study(), requests=1) as (app, _):
        reader = Reader(app)
        reader.get("/")
        reader.get("/", 429)
        keys |= reader.keys
    with open_reader(marked_study(prompt=DEFAULT_PROMPT)) as (app, _):
        # The default prompt itself is a text of the study.
        client = Client(app, headers=LANGUAGE)
        keys |= find_keys(client.get(f"{begin(client)}/instructions").text)
    assert set(load_catalogue(ENGLISH).texts) - keys == set()


def test_a_text_that_is_not_translated_is_found():
    assert untranslated(["⟦a.b ⟦c.d 1⟧⟧", "Τίτλος", "3"]) == []
    assert untranslated(["⟦a.b⟧ Next"]) == [" Next"]
    assert visible_texts('<p title="a">b<b aria-label="c">d</b></p>') == ["a", "b", "c", "d"]


def test_the_example_of_a_study(marked_study):
    example = Example("ζήτα", ("ένα", "δύο", "τρία"), ("τρία", "ένα"))
    with open_survey(*marked_study(example=example)) as (app, _):
        reader = Reader(app)
        page = reader.get(f"{begin(reader.client)}/instructions").text
    assert "Ποια ζήτα;" in page
    assert re.findall(r'class="name"[^>]*>(\w+)<', page) == ["τρία", "ένα"]
    assert re.findall(r'class="choice"[^>]*>(\w+)<', page) == ["δύο"]
