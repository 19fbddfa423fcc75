"""WCAG 2.2 AA, as far as a machine can tell: axe-core, reflow, text spacing, targets, focus."""

import pytest
from survey_pages import arrive, begin, choose, send, serve_study, skip, small_study, unranked_names

from axe import check
from rankshot_survey.store.people import set_state
from rankshot_survey.study import Question

pytestmark = pytest.mark.slow

ONE_QUESTION = small_study(
    Question("cat", ("leopard", "tiger")),
    unshown="after",
    answers_per_question=1,
    questions_per_participant=1,
    repeats=0,
)


def test_every_page_of_a_survey(open_page, survey):
    page = open_page()
    page.goto(f"{survey.url}/?participant=axe")
    check(page)
    page.get_by_role("button", name="I agree: start").click()
    page.get_by_role("heading", name="How it works").wait_for()
    check(page)
    page.get_by_role("link", name="Continue to the question").click()
    arrive(page, 1)
    other = page.context.new_page()
    other.goto(page.url)
    check(page)
    send(page)
    check(page)
    a, b, *_ = unranked_names(page)
    choose(page, a, b)
    check(page)
    send(page)
    arrive(page, 2)
    # One of the two questions has long names.
    choose(page, *unranked_names(page))
    check(page)
    choose(other, b)
    send(other)
    other.get_by_role("heading", name="Already answered").wait_for()
    check(other)
    send(page)
    arrive(page, 3)
    skip(page)
    page.get_by_role("heading", name="Thank you").wait_for()
    check(page)
    page.goto(f"{survey.url}/nowhere")
    check(page)


def test_the_pages_of_a_pilot_of_a_pause_and_of_who_withdraws(open_page, tmp_path):
    page = open_page()
    with serve_study(ONE_QUESTION, tmp_path) as running:
        set_state(running.database, "pilot")
        begin(page, running.url, "one")
        assert "This is a test" in page.inner_text("main")
        check(page)
        page.get_by_role("link", name="Withdraw and delete my answers").click()
        page.get_by_role("heading", name="Withdraw and delete your answers?").wait_for()
        check(page)
        page.get_by_role("link", name="No, go back").click()
        arrive(page, 1)
        page.get_by_role("link", name="Withdraw and delete my answers").click()
        page.get_by_role("button", name="Withdraw and delete my answers").click()
        page.get_by_role("heading", name="You have withdrawn").wait_for()
        check(page)
        set_state(running.database, "paused")
        page.goto(f"{running.url}/?participant=three")
        page.get_by_role("heading", name="The study is paused").wait_for()
        check(page)


def test_what_has_the_focus_is_seen_and_what_can_be_pressed_is_large(open_page, survey):
    page = open_page(viewport={"width": 360, "height": 560})
    begin(page, survey.url, "focus")
    assert page.locator("#bar").evaluate("bar => getComputedStyle(bar).position") == "sticky"
    choose(page, *unranked_names(page)[:3])
    # The order stays, and Tab begins at the top.
    page.reload()
    stops = 0
    while True:
        page.keyboard.press("Tab")
        found = page.evaluate("""() => {
          const node = document.activeElement;
          const box = node.getBoundingClientRect();
          const top = (y) => node.contains(document.elementFromPoint(box.x + box.width / 2, y));
          return {
            atEnd: node === document.body,
            name: node.getAttribute('aria-label') ?? node.innerText,
            isSeen: top(box.top + 3) && top(box.bottom - 3),
            outline: getComputedStyle(node).outlineStyle,
            width: box.width,
            height: box.height,
          };
        }""")
        if found["atEnd"]:
            break
        stops += 1
        assert found["isSeen"], f"{found['name']} is covered or out of sight"
        assert found["outline"] == "solid", found["name"]
        assert found["height"] >= 40, found
        assert found["width"] >= 40, found
    # The instructions, folding, what is not ranked, four buttons a row (and a row of sentences
    # itself), the two that send, and withdrawing.
    per_row = 5 if page.locator("form.wide").count() else 4
    assert stops == 1 + 1 + len(unranked_names(page)) + 3 * per_row + 2 + 1
