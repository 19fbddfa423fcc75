"""Catalogues, the choice of a language, and the study's own texts in other languages."""

import re
from string import Formatter

import pytest

from asgi_client import begin, form_of, open_survey
from rankshot_survey.languages import TAGS, Languages, load_catalogue
from rankshot_survey.overview import read_answers
from rankshot_survey.study import Translation
from refusals import refuses
from small_studies import questions_about, small_study

TRANSLATIONS = {
    "de": Translation(
        title="Ähnlich",
        prompt="Was ist {target} am ähnlichsten?",
        consent="Stimmen Sie zu?",
        names={"cat": "Katze", "fox": "Fuchs"},
    )
}


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    study = small_study(translations=TRANSLATIONS, instructions="Think.")
    with open_survey(study, tmp_path_factory.mktemp("translated")) as made:
        yield made


def read_language(page):
    return re.search(r'<html lang="([\w-]+)" dir="(\w+)">', page).groups()


# ---- Catalogues


def fields_of(text):
    return sorted(name for _, name, form, change in Formatter().parse(text) if name)


@pytest.mark.parametrize("tag", TAGS)
def test_every_catalogue_has_the_keys_and_fields_of_the_english_one(tag):
    texts, english = load_catalogue(tag).texts, load_catalogue("en").texts
    assert load_catalogue(tag).language == tag
    assert {key: fields_of(text) for key, text in texts.items()} == {
        key: fields_of(text) for key, text in english.items()
    }


def test_a_language_without_catalogue_is_refused():
    with refuses("languages", "fr"):
        small_study(languages=("fr",))
    with refuses("translations", "fr"):
        Languages(small_study(translations={"fr": Translation()}))
    with refuses("translations", "de"):
        Languages(small_study(languages=("en",), translations=TRANSLATIONS))


# ---- Whose language


@pytest.mark.parametrize(
    ("accepted", "query", "tag"),
    [
        (None, "", "en"),
        ("fr, de-AT;q=0.5", "", "de"),
        ("de", "lang=es", "es"),
        ("de", "lang=fr", "de"),
        ("a;q=nan, b;q=inf, es;q=-1, d;q=1e3, es;x=1, ;q=1, es;q=², de;q=.5,,;==", "", "de"),
        ("en;q=0.5,de;Q = 0.7", "", "de"),
        ("es;q=0, de;q=1.0", "", "de"),
        ("x" * 50_000, "", "en"),
        ("é,;\x7f", "lang=%00", "en"),
    ],
)
def test_the_address_chooses_then_the_browser(translated, accepted, query, tag):
    headers = {} if accepted is None else {"accept-language": accepted}
    reply = translated[0].get(f"/?{query}", headers)
    assert read_language(reply.text)[0] == reply["content-language"] == tag


# ---- The study's own texts


def test_texts_of_the_study_are_translated_and_answers_are_not(translated):
    client, database = translated
    consent = client.get("/?lang=de").text
    assert '<p class="study" dir="auto">Ähnlich</p>' in consent
    assert '<div class="prose" dir="auto">\n<p>Stimmen Sie zu?</p>' in consent
    home = begin(client, "participant=german&lang=de")
    how = client.get(f"{home}/instructions").text
    assert '<div class="prose" dir="auto" lang="en">\n<p>Think.</p>' in how
    seen = set()
    while 'name="place"' in (page := client.get(home).text):
        seen |= set(re.findall(r'<h1 dir="auto">(.*)</h1>', page))
        shown = re.findall(r'data-name="(\w+)" data-language="(\w+)"', page)
        assert sorted(shown) == [("Fuchs", "de"), ("bus", "en"), ("leopard", "en")]
        assert '<label for="place-1" dir="auto" lang="en">' in page or shown[0][1] == "de"
        form = form_of(page)
        first = [name for name, _ in shown].index("Fuchs")
        places = ["1" if i == first else "" for i in range(3)]
        client.post(form.action, form.answer(*places))
    assert "Was ist Katze am ähnlichsten?" in seen
    assert "Was ist dog am ähnlichsten?" in seen
    rater = database.identity.rater("none:id:german")
    with database.begin_read() as connection:
        mine = [answer for answer in read_answers(connection) if answer.rater == rater]
    assert {answer.order for answer in mine} == {("fox",)}
    assert {answer.question.target for answer in mine} == {"cat", "dog", "car", "van"}


@pytest.mark.parametrize(("n_questions", "key", "n"), [(1, "exactly", 1), (2, "questions", 3)])
def test_pages_say_how_many_questions_there_can_be(tmp_path, n_questions, key, n):
    questions = questions_about("cat", "dog")[:n_questions]
    study = small_study(questions=questions, questions_per_participant=10, repeats=1)
    with open_survey(study, tmp_path) as (client, _):
        for tag in ("en", "de", "es", "ar"):
            texts = load_catalogue(tag).texts
            consent = client.get(f"/?lang={tag}").text
            assert f"<p>{texts[f'consent.{key}'].format(n=n)}</p>" in consent
            home = begin(client, f"participant={tag}&lang={tag}")
            how = client.get(f"{home}/instructions").text
            assert (texts["instructions.twice_heading"] in how) == (n_questions > 1)
