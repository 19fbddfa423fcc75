"""Catalogues, the choice of a language, and the study's own texts in other languages."""

import re

import pytest

from asgi_client import begin, form_of, open_survey
from rankshot_survey.languages import Languages, english_text, load_catalogue, read_catalogue
from rankshot_survey.overview import read_answers
from rankshot_survey.study import Question, Translation
from refusals import refuses
from small_studies import questions_about, small_study
from survey_command import run_command

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


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


HEADING = 'heading = "Taking part"\n'


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        (HEADING, "", "consent.heading"),
        (HEADING, 'heading = "{x}"\n', "consent.heading"),
        ("{number} of {total}", "{number}", "question.title"),
        ("{number} of {total}", "{number} {total", "question.title"),
        ('exactly = "Please', 'best_worst = "x"\nexactly = "Please', "question.best_worst"),
        ('language = "fr"', 'language = "French"', "language"),
    ],
)
def test_a_catalogue_that_is_wrong_says_where(tmp_path, old, new, key):
    text = english_text("fr")
    assert old in text
    path = write(tmp_path / "fr.toml", text.replace(old, new))
    with refuses(key, where=str(path)):
        read_catalogue(path)


def test_a_study_brings_its_own_catalogues(tmp_path):
    more = write(tmp_path / "fr.toml", english_text("fr").replace("Taking part", "Participation"))
    other = english_text().replace("Taking part", "Welcome")
    own = write(tmp_path / "en.toml", other)
    study = small_study(catalogues=(more, own), languages=("fr", "en"))
    with open_survey(study, tmp_path) as (client, _):
        assert "<h1>Participation</h1>" in client.get("/?lang=fr").text
        assert "<h1>Welcome</h1>" in client.get("/").text
        assert read_language(client.get("/?lang=de").text) == ("en", "ltr")


def test_a_language_without_catalogue_is_refused():
    with refuses("language.offered", "fr"):
        Languages(small_study(languages=("fr",)))
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


GOLD = Question("ant", ("bee", "car"), ("bee",))


@pytest.mark.parametrize(
    ("n_questions", "gold", "key", "n", "twice"),
    [
        (1, (), "exactly", 1, False),
        (1, (GOLD,), "exactly", 2, False),
        (2, (), "questions", 3, True),
    ],
)
def test_pages_say_how_many_questions_there_can_be(tmp_path, n_questions, gold, key, n, twice):
    questions = questions_about("cat", "dog")[:n_questions]
    study = small_study(questions=questions, gold=gold, questions_per_participant=10, repeats=1)
    with open_survey(study, tmp_path) as (client, _):
        for tag in ("en", "de", "es", "ar"):
            texts = load_catalogue(tag).texts
            consent = client.get(f"/?lang={tag}").text
            assert f"<p>{texts[f'consent.{key}'].format(n=n)}</p>" in consent
            home = begin(client, f"participant={tag}&lang={tag}")
            how = client.get(f"{home}/instructions").text
            assert (texts["instructions.twice_heading"] in how) == twice


# ---- The command that begins a translation


def test_the_english_texts_are_written_to_be_translated(tmp_path):
    path = tmp_path / "fr.toml"
    done = run_command(f"catalogue {path}")
    assert done.status == 0, done.err
    assert 'catalogues = ["fr.toml"]' in done.out
    assert read_catalogue(path).language == "fr"
    assert read_catalogue(path).texts == load_catalogue("en").texts
    path.write_text("mine", encoding="utf-8")
    assert run_command(f"catalogue {path}").status == 2
    assert path.read_text(encoding="utf-8") == "mine"
    for name in ("French.toml", "fr.txt", "none/fr.toml"):
        assert run_command(f"catalogue {tmp_path}/{name}").status == 2
    assert [file.name for file in tmp_path.iterdir()] == ["fr.toml"]
