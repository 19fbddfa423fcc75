"""The extra questions: errors are found, nothing typed is lost, the keyboard is enough."""

import pytest
from axe import check
from pages import begin, choose, send, serve_study, small_study

from rankshot.survey.store.people import read_extra_answers
from rankshot.survey.study import ExtraQuestion, Question

pytestmark = pytest.mark.slow

EXTRA = (
    ExtraQuestion("age", "How old are you?", "number", least=18, most=120, required=True),
    ExtraQuestion("pet", "Which pet do you have?", "choice", choices=("cat", "dog"), required=True),
    ExtraQuestion("home", "Where do you live?", "choice", choices=("a city", "a village")),
    ExtraQuestion("note", "Is there anything else?", "text"),
)


@pytest.fixture(scope="module")
def extra_survey(tmp_path_factory):
    study = small_study(
        Question("cat", ("leopard", "tiger")),
        answers_per_question=1000,
        questions_per_participant=1,
        repeats=0,
        extra=EXTRA,
    )
    with serve_study(study, tmp_path_factory.mktemp("extra")) as running:
        yield running


@pytest.mark.parametrize("scripts", [True, False])
def test_errors_get_the_focus_and_what_was_typed_stays(open_page, extra_survey, scripts):
    page = open_page(java_script_enabled=scripts)
    begin(page, extra_survey.url, f"errors-{scripts}")
    if scripts:
        choose(page, "tiger")
    else:
        page.get_by_role("combobox").first.select_option("1")
    send(page)
    page.get_by_role("heading", name="Last questions").wait_for()
    age = page.get_by_role("textbox", name="How old are you?", exact=True)
    age.fill("17")
    page.get_by_label("Is there anything else?").fill("one\n<two>")
    page.get_by_role("radio", name="a village").check()
    page.get_by_role("button", name="Send").click()
    problem = page.get_by_role("alert")
    problem.wait_for()
    assert page.title().startswith("Error: ")
    if scripts:
        # Without scripts the browser also focuses it, but cannot be asked.
        assert problem.evaluate("node => node === document.activeElement")
        check(page)
    assert problem.get_by_role("link").all_inner_texts() == [EXTRA[0].text, EXTRA[1].text]
    assert age.input_value() == "17"
    assert page.get_by_label("Is there anything else?").input_value() == "one\n<two>"
    assert page.get_by_role("radio", name="a village").is_checked()
    page.get_by_role("radio", name="dog").check()
    age.fill("42")
    page.get_by_role("button", name="Send").click()
    page.get_by_role("heading", name="Thank you").wait_for()
    assert page.locator("code").count() == 1
    stored = {"age": "42", "home": "a village", "note": "one\n<two>", "pet": "dog"}
    assert stored in extra_answers(extra_survey)


def extra_answers(survey):
    """Return what all participants have answered."""
    with survey.database.begin_read() as connection:
        return list(read_extra_answers(connection).values())
