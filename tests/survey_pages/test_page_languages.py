"""Pages in other languages in a browser: what scripts say, right to left, and axe-core."""

import sys
from pathlib import Path

import pytest
from axe import TOO_WIDE, load_axe, violations
from pages import ANIMALS, serve_study, small_study

from rankshot.survey.presentation import Translation
from rankshot.survey.study import Question

sys.path.append(str(Path(__file__).parent.parent / "survey"))
from pseudo_language import TAG, find_keys, untranslated, write_catalogue

pytestmark = pytest.mark.slow

GREEK = ("άλφα", "βήτα", "γάμμα", "δέλτα")
VISIBLE = """() => [
  document.title,
  document.body.innerText,
  ...[...document.querySelectorAll('[aria-label], [title], [alt], [placeholder]')].flatMap(
    (node) => ['aria-label', 'title', 'alt', 'placeholder'].map((name) => node.getAttribute(name)),
  ),
].filter(Boolean)"""


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A study with pages in four languages, and a survey with marked texts."""
    folder = tmp_path_factory.mktemp("languages")
    study = small_study(
        Question("cat", ANIMALS),
        consent="Do you **agree**?\n\n- yes\n- [no](https://example.org)",
        contact="Ada <ada@example.org>",
        questions_per_participant=1,
        answers_per_question=1000,
        repeats=0,
        translations={"ar": Translation(names={"fox": "ثعلب"})},
    )
    with serve_study(study, folder) as survey:
        yield survey


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marked")
    study = small_study(
        Question("έψιλον", GREEK),
        title="Τίτλος",
        prompt="Ποια {target};",
        consent="Ναι;",
        questions_per_participant=1,
        repeats=0,
        language=TAG,
        catalogues=(write_catalogue(folder),),
    )
    with serve_study(study, folder) as survey:
        yield survey


def begin(page, url, query):
    """Agree, and go to the first question, whatever the language."""
    page.goto(f"{url}/?{query}")
    page.locator("button.primary").click()
    page.locator("main > .actions a.primary").click()
    page.locator("#choices button").first.wait_for()


def test_scripts_say_nothing_that_is_not_translated(open_page, marked):
    page = open_page(locale=TAG)
    begin(page, marked.url, "participant=marked")
    seen = set()

    def read():
        texts = page.evaluate(VISIBLE)
        assert untranslated(texts) == []
        seen.update(find_keys(" ".join(texts)))

    read()
    page.locator("button.primary").click()
    read()
    for item in GREEK:
        page.locator("#choices").get_by_role("button", name=item, exact=True).click()
        read()
    row = page.locator("#ranking .row").nth(1)
    for action in ("up", "first", "down", "remove"):
        row.locator(f"[data-action={action}]").click()
        read()
    page.locator("button[name=skip]").click()
    read()
    spoken = {"placed", "moved", "removed", "skip_again", "nothing_ranked"}
    assert {f"question.{key}" for key in (*spoken, "up", "down", "first", "remove")} <= seen


# English is in test_accessibility.py.
@pytest.mark.parametrize("language", ["de", "es", "ar"])
def test_axe_finds_nothing_in_any_language(open_page, running, language):
    page = open_page(locale=language)
    wide = []

    def check():
        page.wait_for_load_state("load")
        load_axe(page)
        assert violations(page) == [], page.title()
        wide.append(page.evaluate(TOO_WIDE))
        html = page.locator("html")
        assert html.get_attribute("lang") == language
        assert html.get_attribute("dir") == ("rtl" if language == "ar" else "ltr")

    page.goto(f"{running.url}/?participant=axe-{language}")
    check()
    page.locator("button.primary").click()
    page.locator(".points").wait_for()
    check()
    page.locator("main > .actions a.primary").click()
    page.locator("#choices button").first.wait_for()
    for _ in range(2):
        page.locator("#choices button:visible").first.click()
    check()
    page.locator("#bar button.primary").click()
    page.locator(".code").wait_for()
    check()
    assert wide == [""] * 4


def test_letters_of_twice_the_size_need_no_scrolling_to_the_side(open_page, running):
    page = open_page(locale="de")
    begin(page, running.url, "participant=large")
    page.evaluate("document.documentElement.style.fontSize = '32px'")
    for _ in range(2):
        page.locator("#choices button:visible").first.click()
    for node in ("document.documentElement", "document.getElementById('ranking')"):
        assert page.evaluate(f"{node}.scrollWidth <= {node}.clientWidth"), node


def test_a_language_is_chosen_on_the_first_page_and_stays(open_page, running):
    page = open_page(locale="de-AT")
    page.goto(f"{running.url}/?participant=switch")
    page.get_by_role("heading", name="Teilnahme").wait_for()
    page.get_by_role("link", name="العربية").click()
    page.get_by_role("heading", name="المشاركة في الدراسة").wait_for()
    page.locator("button.primary").click()
    page.get_by_role("heading", name="طريقة المشاركة").wait_for()
    page.reload()
    page.get_by_role("heading", name="طريقة المشاركة").wait_for()


def test_right_to_left_mirrors_the_page_and_not_the_names(open_page, running):
    page = open_page()
    begin(page, running.url, "participant=mirror&lang=ar")
    for name in ("killer whale", "ثعلب"):
        page.locator("#choices").get_by_role("button", name=name, exact=True).click()
    row = page.locator("#ranking .row").first
    box = row.bounding_box()
    middle = box["x"] + box["width"] / 2
    assert row.locator(".place").bounding_box()["x"] > middle
    assert row.locator("[data-action=remove]").bounding_box()["x"] < middle
    name = row.locator(".name")
    assert (name.get_attribute("lang"), name.inner_text()) == ("en", "killer whale")
    # The name begins next to its place, though it is written from left to right.
    right = name.bounding_box()["x"] + name.bounding_box()["width"]
    text = name.evaluate("""node => {
      const range = document.createRange();
      range.selectNodeContents(node);
      return range.getBoundingClientRect().right;
    }""")
    assert abs(right - text) < 2
    second = page.locator("#ranking .name").nth(1)
    assert second.get_attribute("lang") == "ar"
    label = row.locator("[data-action=remove]").get_attribute("aria-label")
    assert label == "إزالة \u2068killer whale\u2069"


def test_an_unsent_order_outlives_another_language(open_page, running):
    page = open_page()
    begin(page, running.url, "participant=between&lang=en")
    for name in ("fox", "tiger"):
        page.locator("#choices").get_by_role("button", name=name, exact=True).click()
    page.goto(f"{page.url}?lang=ar")
    assert page.locator("#ranking .name").all_inner_texts() == ["ثعلب", "tiger"]


def test_the_keyboard_is_explained_where_there_is_one_with_the_names_of_its_keys(
    open_page, running
):
    for touch in (False, True):
        page = open_page(locale="de", has_touch=touch, is_mobile=touch)
        page.goto(f"{running.url}/?participant=keys-{touch}")
        page.locator("button.primary").click()
        page.locator(".points").wait_for()
        assert page.locator("kbd").all_inner_texts()[-2:] == ["Pos1", "Entf"]
        assert page.locator(".points .keys").is_visible() != touch


def test_who_does_not_agree_reads_that_nothing_is_stored(open_page, running):
    page = open_page(locale="es")
    page.goto(f"{running.url}/?participant=no")
    page.get_by_role("link", name="No acepto").click()
    page.get_by_role("heading", name="Ha decidido no participar").wait_for()
    assert "No se ha guardado nada" in page.inner_text("main")
    assert running.answers("no") == []
    load_axe(page)
    assert violations(page) == []
    page.get_by_role("link", name="Volver a la información").click()
    page.get_by_role("heading", name="Participación").wait_for()
    assert page.url.endswith("/?participant=no&lang=es")
