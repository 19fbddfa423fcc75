"""Every page in a catalogue of marked texts: nothing that participants read is left in English."""

import re
from contextlib import suppress

import pytest
from asgi_client import MANY, Client, begin, finish, form_of, open_survey
from pseudo_language import TAG, find_keys, untranslated, visible_texts, write_catalogue
from small_studies import small_study
from sqlalchemy.exc import OperationalError

from rankshot.survey.languages import ENGLISH, load_catalogue
from rankshot.survey.presentation import Example, ExtraQuestion
from rankshot.survey.store.participation import Participation
from rankshot.survey.store.people import exclude, set_state
from rankshot.survey.study import DEFAULT_PROMPT, Question
from rankshot.survey.web.app import Rates
from rankshot.survey.web.guards import MOST_BYTES

ITEMS = ("άλφα", "βήτα", "γάμμα")
LANGUAGE = {"accept-language": TAG}
EXTRA = (
    ExtraQuestion("a", "Ένα;", "choice", ("ένα", "δύο"), required=True),
    ExtraQuestion("b", "Δύο;", "number", least=1.5, most=2.5),
    ExtraQuestion("c", "Τρία;", "number", least=1),
    ExtraQuestion("d", "Τέσσερα;", "text"),
    ExtraQuestion("e", "Πέντε;", "choice", ("ένα", "δύο")),
)
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
            **{"prompt": "Ποια {target};", "repeats": 1, **changes},
            title="Τίτλος",
            consent="Ναι;",
            contact="Αδα",
            items=ITEMS,
            questions=(Question("δέλτα", ITEMS), Question("έψιλον", ITEMS)),
            catalogues=(path,),
            questions_per_participant=2,
            language=TAG,
        )
        own = folder / str(next(counter))
        own.mkdir()
        return study, own

    return make


class Reader:
    """Somebody whose browser asks for the marked texts, and who looks for others."""

    def __init__(self, app):
        async def catch(*arguments):
            # An exception goes on to the server after its page.
            with suppress(RuntimeError):
                await app(*arguments)

        self.client = Client(catch, headers=LANGUAGE)
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
    reader.post(form.action, form.answer("1", form="0" * 44), 403)
    reader.post(form.action, form.answer("1"), 303)
    reader.post(form.action, form.answer("2", "1"), 409)
    reader.post(form.action, form.answer("1", "1"), 422)
    again = form_of(reader.get(home).text)
    reader.post(again.action, again.answer(skip="yes"), 303)
    reader.post(again.action, again.answer("1"), 409)
    for error, status in ((RuntimeError(), 500), (OperationalError("", {}, OSError("a")), 503)):
        broken.append(error)
        reader.post(again.action, again.answer("1"), status)
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


def read_extra_questions(reader, _database):
    """Read the page with the extra questions, and what may be wrong with answers to them."""
    home = begin(reader.client)
    while 'name="place"' in (page := reader.client.get(home)).text:
        form = form_of(page.text)
        reader.client.post(form.action, form.answer("1"))
    form = form_of(reader.get(f"{home}/extra").text)
    for wrong in (["", "x", "x", "9"], ["x", "1", "1.5", "9"], ["ένα", "3", "1", "9" * 2001]):
        sent = {f"extra-{i}": value for i, value in enumerate(wrong, 1)}
        reader.post(form.action, {**form.fields, **sent}, 422)
    reader.post(form.action, {**form.fields, "extra-9": "1"}, 422)
    right = {"form": "0" * 32, "extra-1": "ένα", "extra-2": "2", "extra-3": "1", "extra-4": ""}
    reader.post(form.action, right, 403)


def read_stops(reader, database):
    """Read the pages of people who cannot start, or not go on."""
    client = reader.client
    homes = {name: begin(client, f"participant={name}") for name in ("eva", "ida", "una")}
    skip_everything(client, homes["una"])
    reader.get(homes["una"])
    reader.get(f"{homes['eva']}/withdraw")
    reader.post(f"{homes['eva']}/withdrawn", {"form": "0" * 32}, 403)
    form = form_of(client.get(f"{homes['eva']}/withdraw").text)
    reader.post(form.action, form.fields, 303)
    reader.get(homes["eva"], 410)
    exclude(database, [database.identity.rater("none:id:ida")], "why")
    reader.get(homes["ida"], 410)
    for state, status in (("pilot", 200), ("paused", 503), ("closed", 410)):
        set_state(database, state)
        reader.get("/?participant=new", status)


def skip_everything(client, home):
    while 'name="place"' in (page := client.get(home).text):
        form = form_of(page)
        client.post(form.action, form.answer(skip="yes"))


def read_prolific(reader, _database):
    reader.get("/", 400)
    home = begin(reader.client, "PROLIFIC_PID=ann")
    reader.get(f"{home}/leave", 409)
    reader.get("/?PROLIFIC_PID=bob", 503)
    reader.get("/declined")
    skip_everything(reader.client, home)
    form = form_of(reader.get(home).text)
    reader.post(form.action, form.fields, 303)
    finish(reader.client, home)
    reader.get(home)


def read_mturk(reader, _database):
    reader.get("/?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE")
    reader.get("/?workerId=1&assignmentId=2&turkSubmitTo=https://example.org", 400)
    form = form_of(reader.get(f"/?{MTURK.format(1)}").text)
    preview = {**form.fields, "assignment": "ASSIGNMENT_ID_NOT_AVAILABLE"}
    reader.post("/start", preview, 400)
    home = begin(reader.client, MTURK.format(1))
    while 'name="place"' in (page := reader.get(home).text):
        form = form_of(page)
        reader.post(form.action, form.answer("1"), 303)


def read_without_access(reader, _database):
    reader.get("/?participant=ann", 403)
    reader.get("/?invitation=1-0", 403)


def read_too_many_starts(reader, _database):
    begin(reader.client)
    reader.post("/start", form_of(reader.get("/").text).fields, 429)


def read_too_many_requests(reader, _database):
    reader.get("/")
    reader.get("/", 429)


def read_default_example(reader, _database):
    # The default prompt itself is a text of the study.
    page = reader.client.get(f"{begin(reader.client)}/instructions").text
    reader.keys |= find_keys(page)


@pytest.fixture
def broken(monkeypatch):
    """A list; while there is an error in it, the store raises it."""
    submit, switch = Participation.submit, []

    def submit_or_fail(*arguments, **options):
        if switch:
            raise switch[0]
        return submit(*arguments, **options)

    monkeypatch.setattr(Participation, "submit", submit_or_fail)
    return switch


URLS = {"completion_url": "https://example.org/a", "refusal_url": "https://example.org/b"}
FULL = {"answers_per_question": 1, "spare_answers": 0}
WHOLE = [
    (read_survey, {}),
    (read_extra_questions, {"extra": EXTRA, "repeats": 0}),
    (read_stops, {"refusal_url": URLS["refusal_url"]}),
    (read_prolific, {"platform": "prolific", **URLS, **FULL}),
    (read_mturk, {"platform": "mturk"}),
    (read_without_access, {"invitations": True}),
    (read_without_access, {"allowed": frozenset(["bob"])}),
    (read_too_many_requests, {}),
    (read_too_many_starts, {}),
    (read_default_example, {"prompt": DEFAULT_PROMPT}),
]


FEW = {
    read_too_many_requests: Rates(requests=1),
    read_too_many_starts: Rates(starts=1),
}


def test_no_page_has_other_texts_and_no_text_has_no_page(marked_study, broken):
    keys = set()
    for read, changes in WHOLE:
        more = (broken,) if read is read_survey else ()
        rates = FEW.get(read, MANY)
        with open_survey(*marked_study(**changes), rates=rates) as (app, database):
            reader = Reader(app)
            read(reader, database, *more)
            keys |= reader.keys
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
