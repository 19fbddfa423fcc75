"""Catalogues, the choice of a language, and the study's own texts in other languages."""

import re
from urllib.parse import parse_qsl

import pytest
from asgi_client import Client, begin, finish, form_of, open_survey
from PIL import Image
from server_process import TOKEN
from small_studies import small_study

from command_line import rankshot
from rankshot.core.errors import RankshotError
from rankshot.survey.extra_answers import read_extra_answers
from rankshot.survey.languages import (
    Languages,
    english_text,
    load_catalogue,
    match_language,
    read_catalogue,
    sort_accepted,
)
from rankshot.survey.presentation import ExtraQuestion, ExtraTranslation, Picture, Translation
from rankshot.survey.progress import read_answers

GIVEN = ("ar", "de", "en", "es")
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


@pytest.mark.parametrize("tag", GIVEN)
def test_a_catalogue_says_its_own_language(tag):
    catalogue = load_catalogue(tag)
    assert catalogue.tag == tag
    assert catalogue.direction == ("rtl" if tag == "ar" else "ltr")


@pytest.mark.parametrize("tag", GIVEN[:2] + GIVEN[3:])
def test_a_translation_is_no_copy(tag):
    english, other = load_catalogue("en").texts, load_catalogue(tag).texts
    # "Error: {title}" and the letters of the example are the same in several languages.
    same = [key for key in english if len(english[key]) > 15 and english[key] == other[key]]
    assert same == []


def test_names_do_not_move_the_words_of_an_arabic_text():
    text = load_catalogue("ar").text("question.placed", name="fox", place=1, total=3)
    assert "\u2068fox\u2069" in text
    assert "\u2068" not in load_catalogue("de").text("question.removed", name="fox")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def french(**changes):
    text = english_text("fr")
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    return text


HEADING = 'heading = "Taking part"\n'


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (HEADING, "", r"these texts are missing: consent\.heading$"),
        (HEADING, f'{HEADING}other = "a"\n', "not in the English catalogue: consent.other"),
        (HEADING, "heading = 3\n", r"\[consent\] heading is 3: it must be text in quotes"),
        (HEADING, 'heading = ""\n', r"\[consent\] heading is ''"),
        (HEADING, 'heading = "{x}"\n', r"consent\.heading is '\{x\}': .* no fields"),
        ("{number} of {total}", "{number}", r"question\.title .*'\{number\}', '\{total\}'"),
        ("{number} of {total}", "{number} {total", r"question\.title .* write a brace"),
        ("{number} of {total}", "{number.x} {total}", r"question\.title .* the fields"),
        ("{number} of {total}", "{number:>99999999} {total}", "write a brace"),
        ("{number} of {total}", "{number!r} {total}", "write a brace"),
        ("[consent]", "[consent", "not TOML"),
        ('language = "fr"', 'language = "French"', "language is 'French'"),
        ('direction = "ltr"', 'direction = "left"', "direction"),
        ('name = "English"', "", "name must be text"),
        ('name = "English"', 'name = "a"\nnick = "b"', "unknown key 'nick'"),
    ],
)
def test_a_catalogue_that_is_wrong_says_where(tmp_path, old, new, says):
    path = write(tmp_path / "fr.toml", french(change=(old, new)))
    with pytest.raises(RankshotError, match=says) as error:
        read_catalogue(path)
    assert str(error.value).startswith(str(path))


def test_a_study_brings_its_own_catalogues(tmp_path):
    more = write(tmp_path / "fr.toml", french(a=("Taking part", "Participation")))
    other = english_text().replace("Taking part", "Welcome")
    own = write(tmp_path / "en.toml", other)
    study = small_study(catalogues=(more, own), languages=("fr", "en"))
    with open_survey(study, tmp_path) as (app, _):
        assert "<h1>Participation</h1>" in Client(app).get("/?lang=fr").text
        assert "<h1>Welcome</h1>" in Client(app).get("/").text
        assert read_language(Client(app).get("/?lang=de").text) == ("en", "ltr")


def test_a_language_without_catalogue_is_refused():
    with pytest.raises(RankshotError, match=r"offered has 'fr'.*survey catalogue fr\.toml"):
        Languages(small_study(languages=("fr",)))
    with pytest.raises(RankshotError, match=r"\[translations\.fr\].*ar, de, en, es"):
        Languages(small_study(translations={"fr": Translation()}))
    with pytest.raises(RankshotError, match=r"\[translations\.de\]"):
        Languages(small_study(languages=("en",), translations=TRANSLATIONS))


# ---- Whose language


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        ("", []),
        ("de", ["de"]),
        ("en;q=0.5,de;q=0.7", ["de", "en"]),
        ("a, b, c;q=1.0, d;q=0", ["a", "b", "c"]),
        ("a;q=nan, b;q=inf, c;q=-1, d;q=1e3, e;x=1, ;q=1, f;q=٣, g;q=.5", ["g"]),
        ("a; Q = 0.2 , b", ["b", "a"]),
        (",,;;==", []),
    ],
)
def test_preferences_of_a_browser_are_sorted(header, tags):
    assert sort_accepted(header) == tags


def test_a_region_matches_its_language_alone():
    known = ["de", "pt-BR"]
    assert match_language("de-AT", known) == "de"
    assert match_language("DE-at-1996", known) == "de"
    assert match_language("pt-br", known) == "pt-BR"
    assert match_language("pt", known) is None
    assert match_language("den", known) is None


@pytest.mark.parametrize(
    ("accepted", "query", "tag"),
    [
        (None, "", "en"),
        ("fr", "", "en"),
        ("fr, de-AT;q=0.5", "", "de"),
        ("de", "lang=es", "es"),
        ("de", "lang=fr", "de"),
        ("de", "lang=", "de"),
        ("*", "", "en"),
        ("x" * 50_000, "", "en"),
        ("é,;\x7f", "lang=%00", "en"),
    ],
)
def test_the_address_chooses_then_the_browser(translated, accepted, query, tag):
    headers = {} if accepted is None else {"accept-language": accepted}
    reply = Client(translated[0]).get(f"/?{query}", headers)
    assert read_language(reply.text)[0] == reply["content-language"] == tag


def test_the_study_s_language_comes_before_english(tmp_path):
    with open_survey(small_study(language="de-CH"), tmp_path) as (app, _):
        assert read_language(Client(app).get("/").text)[0] == "de"


def test_the_choice_at_the_start_stays(translated):
    client = Client(translated[0], headers={"accept-language": "es"})
    home = begin(client, "participant=chooses&lang=ar")
    for page in (home, f"{home}/instructions"):
        assert read_language(client.get(page).text) == ("ar", "rtl")
        assert read_language(client.get(f"{page}?lang=de").text) == ("de", "ltr")
    form = form_of(client.get(home).text)
    refused = [
        client.post(form.action, form.answer("1", form="0" * 44)),
        client.post(form.action, form.answer("9")),
        client.post(form.action, form.answer("1")),
        client.post(form.action, form.answer("1", "2")),
    ]
    assert [reply.status for reply in refused] == [403, 422, 303, 409]
    languages = [read_language(reply.text)[0] for reply in refused if reply.status != 303]
    assert languages == ["ar"] * 3
    # Who comes again may choose again.
    assert begin(client, "participant=chooses&lang=de") == home
    assert read_language(client.get(home).text)[0] == "de"


def test_a_language_that_is_not_offered_is_not_stored(translated):
    client = Client(translated[0])
    form = form_of(client.get("/?participant=odd").text)
    reply = client.post("/start", {**form.fields, "language": "xx"})
    home = reply["location"].removesuffix("/instructions")
    assert read_language(client.get(home).text)[0] == "en"
    assert read_language(client.get(home, {"accept-language": "de"}).text)[0] == "de"


def test_the_researcher_s_pages_are_english(translated):
    client = Client(translated[0], headers={"accept-language": "de"})
    key = {"authorization": f"Bearer {TOKEN}"}
    for reply in (
        client.get("/researcher"),
        client.get("/researcher", key),
        client.get("/researcher/progress", {"authorization": "Bearer wrong"}),
    ):
        assert "Teilnahme" not in reply.text
        assert reply["content-language"] == "en"


def test_the_languages_of_the_first_page_keep_the_rest_of_the_address(translated):
    page = Client(translated[0]).get("/?participant=a.b&lang=en&x=%22%3E%3Cb&x=2").text
    links = re.findall(r'<a href="/\?([^"]*)" lang="(\w+)" hreflang="\2" dir="auto">(\w+)<', page)
    assert {(tag, name) for _, tag, name in links} == {
        ("ar", "العربية"),
        ("de", "Deutsch"),
        ("es", "Español"),
    }
    for address, tag, _ in links:
        kept = [("participant", "a.b"), ("x", '"><b'), ("x", "2")]
        assert parse_qsl(address.replace("&amp;", "&")) == [*kept, ("lang", tag)]


def test_one_language_needs_no_choice(tmp_path):
    with open_survey(small_study(languages=("de",)), tmp_path) as (app, _):
        page = Client(app).get("/?lang=en").text
    assert read_language(page)[0] == "de"
    assert "hreflang" not in page


# ---- The study's own texts


def test_texts_of_the_study_are_translated_and_answers_are_not(translated):
    app, database = translated
    client = Client(app)
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


def test_extra_questions_pictures_and_contact_are_translated_and_answers_are_not(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "fox.png")
    german = Translation(
        contact="Ada, auf Deutsch",
        instructions="Denken Sie nach.",
        alts={"fox": "Ein roter Fuchs"},
        extra={"pet": ExtraTranslation("Welches Haustier?", ("Katze", "Hund"))},
    )
    study = small_study(
        translations={"de": german},
        pictures={"fox": Picture(tmp_path / "fox.png", "A red fox")},
        extra=(ExtraQuestion("pet", "Which pet?", "choice", ("cat", "dog"), required=True),),
    )
    with open_survey(study, tmp_path) as (app, database):
        client = Client(app)
        assert "Ada, auf Deutsch" in client.get("/?lang=de").text
        home = begin(client, "participant=german&lang=de")
        # The study has instructions in German alone.
        assert "<p>Denken Sie nach.</p>" in client.get(f"{home}/instructions").text
        assert "Denken" not in client.get(f"{home}/instructions?lang=es").text
        page = client.get(home).text
        assert 'alt="Ein roter Fuchs" dir="auto">' in page
        assert 'data-alt="Ein roter Fuchs" data-alt-language="de"' in page
        assert 'alt="A red fox" dir="auto" lang="en">' in client.get(f"{home}?lang=es").text
        finish(client, home)
        page = client.get(f"{home}/extra").text
        assert "<bdi>Welches Haustier?</bdi>" in page
        assert 'value="dog"><span dir="auto">Hund</span>' in page
        form = form_of(page)
        assert client.post(form.action, {**form.fields, "extra-1": "Hund"}).status == 422
        assert client.post(form.action, {**form.fields, "extra-1": "dog"}).status == 303
        with database.begin_read() as connection:
            assert list(read_extra_answers(connection).values()) == [{"pet": "dog"}]


def test_the_answer_that_is_kept_is_shown_in_the_participant_s_language(translated):
    client = Client(translated[0])
    home = begin(client, "participant=twice&lang=de")
    page = client.get(home).text
    form = form_of(page)
    first = re.findall(r'data-name="(\w+)"', page).index("Fuchs")
    places = ["1" if i == first else "" for i in range(3)]
    assert client.post(form.action, form.answer(*places)).status == 303
    page = client.post(form.action, form.answer("1", "2", "3")).text
    assert '<li dir="auto">Fuchs</li>' in page


def test_two_names_that_a_translation_makes_one_stay_apart(tmp_path):
    same = {"de": Translation(names={"fox": "Tier", "leopard": "Tier"})}
    with open_survey(small_study(translations=same), tmp_path) as (app, _):
        client = Client(app)
        page = client.get(begin(client, "participant=a&lang=de")).text
    assert sorted(re.findall(r'data-name="(\w+)"', page)) == ["bus", "fox", "leopard"]


def test_errors_name_items_as_they_are_shown(translated):
    client = Client(translated[0])
    home = begin(client, "participant=wrong&lang=de")
    page = client.get(home).text
    form = form_of(page)
    names = re.findall(r'data-name="(\w+)"', page)
    text = client.post(form.action, form.answer("1", "1")).text
    assert f"Platz 1 ist doppelt vergeben, an {names[0]} und an {names[1]}." in text


# ---- The command that begins a translation


def test_the_english_texts_are_written_to_be_translated(tmp_path):
    path = tmp_path / "fr.toml"
    done = rankshot(f"survey catalogue {path}")
    assert done.status == 0, done.err
    assert 'catalogues = ["fr.toml"]' in done.out
    assert read_catalogue(path).tag == "fr"
    assert read_catalogue(path).texts == load_catalogue("en").texts
    path.write_text("mine", encoding="utf-8")
    assert "exists already" in rankshot(f"survey catalogue {path}").err
    assert path.read_text(encoding="utf-8") == "mine"
    for name in ("French.toml", "fr.txt", "none/fr.toml"):
        assert rankshot(f"survey catalogue {tmp_path}/{name}").status == 2
    assert [file.name for file in tmp_path.iterdir()] == ["fr.toml"]
