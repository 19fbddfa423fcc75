"""Pages in other languages in a browser: what scripts say, right to left, and axe-core."""

import pytest
from survey_pages import ANIMALS, serve_study, small_study

from axe import TOO_WIDE, load_axe, violations
from rankshot_survey.study import Question, Translation

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A study with pages in four languages, and a survey with marked texts."""
    folder = tmp_path_factory.mktemp("languages")
    study = small_study(
        Question("cat", ANIMALS),
        consent="Do you **agree**?\n\n- yes\n- [no](https://example.org)",
        contact="Ada <ada@example.org>",
        questions_per_participant=1,
        repeats=0,
        translations={"ar": Translation(names={"fox": "ثعلب"})},
    )
    with serve_study(study, folder) as survey:
        yield survey


# English is in test_accessibility.py.
@pytest.mark.parametrize("language", ["de", "ar"])
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
