"""Who may start by the answers before the study, the consent that is kept, and the debriefing."""

import re
import time

import pytest
from PIL import Image

from asgi_client import begin, dump, finish, form_of, open_survey, says
from rankshot_survey import ExtraQuestion, ItemImage, Translation
from rankshot_survey.export import consent_records, participant_records, payment_records
from rankshot_survey.overview import read_overview
from small_studies import ITEMS, small_study

NATIVE = ExtraQuestion(
    "native",
    "Is English your first language?",
    "choice",
    ("yes", "no", "both"),
    accepted=("yes", "both"),
)
AGE = ExtraQuestion("age", "How old are you?", "number", least=18)
URL = "https://app.prolific.com/submissions/complete?cc="
STUDY = small_study(
    platform="prolific",
    completion_url=f"{URL}DONE",
    screening_url=f"{URL}SCREENED",
    extra=(AGE, NATIVE),
    debriefing="We studied **order effects**.",
    translations={"de": Translation(consent="Stimmen Sie zu?", debriefing="Wir untersuchten das.")},
)


@pytest.fixture
def opened(tmp_path):
    with open_survey(STUDY, tmp_path) as made:
        yield made


def start(client, name, query="", **answers):
    form = form_of(client.get(f"/?PROLIFIC_PID={name}{query}").text)
    return client.post(form.action, {**form.fields, **answers})


def view_of(database):
    return read_overview(STUDY, database, time.time())


def test_who_is_accepted_starts_and_the_answer_is_kept(opened):
    client, database = opened
    page = client.get("/?PROLIFIC_PID=ann").text
    assert "Is English your first language?" in page
    assert "How old are you?" not in page
    reply = start(client, "ann", **{"extra-2": "both"})
    assert reply.status == 303
    # Who comes again is not asked again, and the last questions are the others.
    assert "first language" not in client.get("/?PROLIFIC_PID=ann").text
    home = reply["location"].removesuffix("/instructions")
    finish(client, home)
    last = client.get(f"{home}/extra").text
    assert ("How old" in last, "first language" in last) == (True, False)
    form = form_of(last)
    assert client.post(form.action, {**form.fields, "extra-2": "no"}).status == 422
    assert client.post(form.action, {**form.fields, "extra-1": "30"}).status == 303
    (record,) = participant_records(view_of(database))
    assert (record["extra_native"], record["extra_age"]) == ("both", "30")


def test_who_is_not_accepted_gets_a_code_of_their_own_and_no_second_try(opened):
    client, database = opened
    for answer in ("no", "yes"):
        reply = (
            client.get(start(client, "bob", **{"extra-2": answer})["location"])
            if answer == "no"
            else client.get("/?PROLIFIC_PID=bob")
        )
        assert reply.status == 410
        assert says(reply.text, "stopped.screened_heading")
        assert f'href="{URL}SCREENED"' in reply.text
    (person,) = view_of(database).people.values()
    assert (person.state, person.extra) == ("screened out", {})
    assert dump(database)["assignment"] == []
    (row,) = payment_records(view_of(database))
    assert (row["id"], row["decision"]) == ("bob", "screened out")


def test_an_answer_is_needed_and_one_that_is_not_offered_is_refused(opened):
    client, database = opened
    for answers in ({}, {"extra-2": ""}, {"extra-2": "maybe"}):
        reply = start(client, "eve", **answers)
        assert reply.status == 422
        assert 'class="field-error"' in reply.text
        # The page can be sent again.
        assert form_of(reply.text).fields["PROLIFIC_PID"] == "eve"
        # So can the other language, and who declines has not lost the id either.
        links = re.findall(r'href="(/[^"]*lang=[^"]*)"', reply.text)
        assert len(links) == 4
        assert all("PROLIFIC_PID=eve&amp;" in link for link in links)
        back = client.get(links[-1].replace("&amp;", "&")).text
        assert 'href="/?PROLIFIC_PID=eve&amp;lang=en"' in back
        # What is wrong comes first, and is announced.
        problem = reply.text.index('role="alert" tabindex="-1" autofocus')
        assert problem < reply.text.index("Do you agree?")
    for field in ("extra-1", "extra-3", "native"):
        assert start(client, "eve", **{"extra-2": "yes", field: "20"}).status == 422
    assert dump(database)["participant"] == []


def test_the_text_of_the_consent_is_kept_once_with_its_version(opened):
    client, database = opened
    for name, query in (("ann", ""), ("bob", ""), ("cem", "&lang=de")):
        assert start(client, name, query, **{"extra-2": "yes"}).status == 303
    view = view_of(database)
    texts = {row["text"]: row for row in consent_records(view)}
    assert {text: row["participants"] for text, row in texts.items()} == {
        "Do you agree?": 2,
        "Stimmen Sie zu?": 1,
    }
    records = list(participant_records(view))
    assert records[0]["consent"] == records[1]["consent"] == texts["Do you agree?"]["version"]
    assert records[2]["consent"] == texts["Stimmen Sie zu?"]["version"]
    assert texts["Stimmen Sie zu?"]["language"] == "de"
    # Who agrees again, here to another text, has agreed to that.
    assert start(client, "ann", "&lang=de").status == 303
    ann, *_ = participant_records(view_of(database))
    assert ann["consent"] == records[2]["consent"]


def test_the_debriefing_is_on_the_last_page_and_for_who_withdraws(opened):
    client, _ = opened
    home = start(client, "ann", **{"extra-2": "yes"})["location"].removesuffix("/instructions")
    assert "order effects" not in client.get(home).text
    form = form_of(client.get(f"{home}/withdraw").text)
    client.post(form.action, form.fields)
    assert "We studied <strong>order effects</strong>." in client.get(home).text
    home = start(client, "bob", "&lang=de", **{"extra-2": "yes"})["location"]
    home = home.removesuffix("/instructions")
    finish(client, home)
    form = form_of(client.get(f"{home}/extra").text)
    client.post(form.action, form.fields)
    assert "Wir untersuchten das." in client.get(home).text


def test_hidden_names_are_nowhere_on_the_page_but_what_the_images_show(tmp_path):
    image = tmp_path / "p.png"
    Image.new("RGB", (8, 8)).save(image)
    images = tuple(ItemImage(name, image, f"image {i}") for i, name in enumerate(ITEMS[:2]))
    hidden = {"hide_names": True, "prompt": "Which are most like this?"}
    with open_survey(small_study(images=images, **hidden), tmp_path) as (client, _):
        home = begin(client)
        page = client.get(home).text
        # The third has no image.
        assert [name in page for name in ITEMS] == [False, False, True]
        assert page.count('<span class="unseen">image ') == 2
        form = form_of(page)
        wrong = client.post(form.action, form.answer("1", "1"))
        assert (wrong.status, ITEMS[0] in wrong.text, ITEMS[1] in wrong.text) == (422, False, False)
        client.post(form.action, form.answer("1", "2", "3"))
        other = client.post(form.action, form.answer("2", "1", "3"))
        assert (other.status, "image 0" in other.text) == (409, True)
        assert ITEMS[0] not in other.text
