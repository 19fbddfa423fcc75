"""Whole surveys in a browser: by mouse, touch, keyboard, without scripts; nothing is lost."""

import re

import pytest
from PIL import Image
from survey_pages import (
    ANIMALS,
    ODD,
    arrive,
    begin,
    choice,
    choose,
    drag,
    focus_name,
    middle,
    ranked_names,
    row,
    send,
    serve_study,
    skip,
    small_study,
    status,
    swipe,
    tab_to,
    unranked_names,
)

from axe import check
from rankshot_survey.study import ItemImage, Question


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Of short names, whichever question comes first: each row has its buttons."""
    questions = Question("cat", ANIMALS), Question("wolf", (*ODD[:3], "okapi"))
    study = small_study(*questions, consent="You may take part, or not.\n\nAsk ada@example.org.")
    with serve_study(study, tmp_path_factory.mktemp("survey")) as running:
        yield running


def code_of(page):
    """Return the completion code, once the page thanks."""
    page.get_by_role("heading", name="Thank you").wait_for()
    # Skipped or answered.
    assert "Everything that you sent is saved.\n\nQuestions completed: 3" in page.inner_text("main")
    code = page.locator("code").inner_text()
    assert re.fullmatch("[A-Z2-7]{10}", code)
    return code


@pytest.mark.slow
def test_a_whole_survey_by_mouse(open_page, survey):
    page = open_page(viewport={"width": 1280, "height": 900})
    begin(page, survey.url, "mouse")
    a, b, c, d, *rest = unranked_names(page)
    n = 4 + len(rest)
    assert ranked_names(page) == ()
    choose(page, a, b, c)
    assert (ranked_names(page), unranked_names(page), status(page)) == (
        (a, b, c),
        (d, *rest),
        f"{c} is now in place 3 of {n}",
    )
    drag(page, row(page, c), row(page, a))
    assert (ranked_names(page), status(page)) == ((c, a, b), f"{c} moved to place 1")
    drag(page, choice(page, d), row(page, a))
    assert (ranked_names(page), status(page)) == ((c, d, a, b), f"{d} is now in place 2 of {n}")
    drag(page, row(page, b), page.locator("#pool-title"))
    assert (ranked_names(page), status(page)) == ((c, d, a), f"{b} removed")
    assert unranked_names(page) == (b, *rest)
    drag(page, row(page, c), row(page, a), below=True)
    assert (ranked_names(page), status(page)) == ((d, a, c), f"{c} moved to place 3")
    row(page, c).get_by_role("button", name=f"Move {c} up", exact=True).click()
    row(page, c).get_by_role("button", name="to the first place").click()
    row(page, d).get_by_role("button", name=f"Move {d} down", exact=True).click()
    assert (ranked_names(page), status(page)) == ((c, a, d), f"{d} moved to place 3")
    row(page, a).get_by_role("button", name=f"Remove {a}").click()
    assert (ranked_names(page), unranked_names(page)) == ((c, d), (a, b, *rest))
    send(page)

    arrive(page, 2)
    assert ranked_names(page) == ()
    everything = unranked_names(page)
    choose(page, *everything)
    assert unranked_names(page) == ()
    send(page)
    arrive(page, 3)
    assert ranked_names(page) == ()
    skip(page)
    code_of(page)
    assert survey.orders("mouse") == [(c, d), everything, ()]
    assert [answer.repeat for answer in survey.answers("mouse")] == [False, False, True]
    assert survey.answers("mouse")[0].shown == (a, b, c, d, *rest)


def test_a_whole_survey_by_touch(open_page, survey):
    page = open_page(has_touch=True, is_mobile=True)
    page.goto(f"{survey.url}/?participant=touch")
    page.get_by_role("button", name="I agree: start").tap()
    page.get_by_role("link", name="Continue to the question").tap()
    arrive(page, 1)
    # All three rows have to be in view.
    a, b, c = sorted(unranked_names(page), key=len)[:3]
    for name in (a, b, c):
        choice(page, name).tap()
    page.get_by_role("button", name=f"Move {b} up", exact=True).tap()
    assert ranked_names(page) == (b, a, c)
    page.get_by_role("button", name=f"Remove {a}", exact=True).tap()
    choice(page, a).tap()
    assert ranked_names(page) == (b, c, a)
    # A finger drags by the dots, and scrolls everywhere else.
    row(page, b).evaluate("row => row.scrollIntoView({block: 'center'})")
    handle, below = row(page, b).locator(".handle svg"), row(page, c)
    swipe(page, handle, middle(below) + 5 - middle(handle))
    assert (ranked_names(page), status(page)) == ((c, b, a), f"{b} moved to place 2")
    swipe(page, row(page, c).locator(".name"), -60)
    swipe(page, choice(page, unranked_names(page)[0]), -60)
    assert ranked_names(page) == (c, b, a)
    page.get_by_role("button", name="Next").tap()
    for number in (2, 3):
        arrive(page, number)
        page.get_by_role("button", name="Skip: I do not know").tap()
    code_of(page)
    assert survey.orders("touch") == [(c, b, a), (), ()]


@pytest.mark.slow
def test_a_whole_survey_by_keyboard_alone(open_page, survey):
    page = open_page(viewport={"width": 1280, "height": 900})

    def press(*keys):
        for key in keys:
            page.keyboard.press(key)

    page.goto(f"{survey.url}/?participant=keyboard")
    tab_to(page, "I agree: start")
    press("Enter")
    page.get_by_role("heading", name="How it works").wait_for()
    tab_to(page, "Continue to the question")
    press("Enter")
    arrive(page, 1)
    a, b, c, d, *rest = unranked_names(page)
    tab_to(page, b)
    press("Enter")
    assert (focus_name(page), status(page)) == (c, f"{b} is now in place 1 of {4 + len(rest)}")
    press("Space", "Enter")
    assert (ranked_names(page), focus_name(page)) == ((b, c, d), (*rest, a)[0])
    tab_to(page, f"Move {d} up")
    press("ArrowUp")
    assert (ranked_names(page), focus_name(page)) == ((b, d, c), f"Move {d} up")
    press("Enter")
    assert (ranked_names(page), focus_name(page)) == ((d, b, c), f"Move {d} up")
    press("ArrowUp")
    assert (ranked_names(page), status(page)) == ((d, b, c), f"{d} stays at place 1")
    press("ArrowDown", "ArrowDown", "ArrowDown")
    assert (ranked_names(page), status(page)) == ((b, c, d), f"{d} stays at place 3")
    press("Home")
    assert (ranked_names(page), status(page)) == ((d, b, c), f"{d} moved to place 1")
    press("Delete")
    assert (ranked_names(page), focus_name(page)) == ((b, c), f"Remove {b}")
    tab_to(page, "Next")
    press("Enter")

    arrive(page, 2)
    everything = unranked_names(page)
    tab_to(page, everything[0])
    # One Enter too many does nothing.
    press("Enter", *("Enter" for _ in everything))
    assert ranked_names(page) == everything
    tab_to(page, f"Remove {everything[-1]}")
    for name in reversed(everything):
        assert focus_name(page) == f"Remove {name}"
        press("Backspace")
    # Nothing is left to take out: the focus is on what went last.
    assert (ranked_names(page), focus_name(page)) == ((), everything[0])
    press("Enter")
    tab_to(page, "Next")
    press("Enter")
    arrive(page, 3)
    tab_to(page, "Skip: I do not know")
    press("Enter")
    code_of(page)
    assert survey.orders("keyboard") == [(b, c), everything[:1], ()]


@pytest.mark.slow
def test_a_whole_survey_without_scripts(open_page, survey):
    page = open_page(java_script_enabled=False)
    begin(page, survey.url, "plain")
    orders = []
    for number in (1, 2):
        arrive(page, number)
        assert page.locator("#by-hand").is_hidden()
        first, _, third, *_ = page.locator("label").all_inner_texts()
        selects = page.get_by_role("combobox")
        assert set(selects.evaluate_all("all => all.map(one => one.value)")) == {""}
        send(page)
        assert page.get_by_role("alert").inner_text().startswith("Nothing is ranked yet")
        selects.nth(0).select_option("1")
        selects.nth(2).select_option("1")
        send(page)
        # What was chosen is still there, and what to change is said.
        message = page.get_by_role("alert").inner_text()
        assert message == f"Place 1 is used twice, for {first} and for {third}."
        assert page.title().startswith("Error: ")
        assert selects.nth(0).input_value() == selects.nth(2).input_value() == "1"
        selects.nth(0).select_option("2")
        send(page)
        orders.append((third, first))
    skip(page)
    code_of(page)
    assert survey.orders("plain") == [*orders, ()]


@pytest.mark.slow
def test_images_are_seen_in_the_question_in_the_pool_and_in_the_ranking(open_page, tmp_path):
    shown = {}
    for name, colour in (("cat", "red"), ("fox", "green"), ("leopard", "blue")):
        shown[name] = tmp_path / f"{name}.png"
        Image.new("RGB", (60, 40), colour).save(shown[name])
    images = tuple(ItemImage(name, file, f"a {name}") for name, file in shown.items())
    study = small_study(Question("cat", ("fox", "leopard", "bus")), images=images, repeats=0)
    with serve_study(study, tmp_path) as running:
        page = open_page()
        begin(page, running.url, "images")
        look = "all => all.map(one => [one.alt, one.naturalWidth, one.clientWidth > 20])"
        seen = {alt: rest for alt, *rest in page.locator("img:visible").evaluate_all(look)}
        assert seen == {f"a {name}": [60, True] for name in shown}
        choice(page, "a fox fox").click()
        assert page.locator("#ranking img").evaluate_all(look) == [["a fox", 60, True]]
        check(page)
        send(page)
        page.get_by_role("heading", name="Thank you").wait_for()
        assert running.orders("images") == [("fox",)]


# ---- Reload, back, double clicks, two tabs, a lost connection: nothing is lost or double


@pytest.mark.slow
def test_an_unsent_order_outlives_reload_and_instructions_and_goes_when_it_is_sent(
    open_page, survey
):
    page = open_page()
    begin(page, survey.url, "reload")
    a, b, c, *_ = unranked_names(page)
    choose(page, c, a, b)
    page.reload()
    assert ranked_names(page) == (c, a, b)
    page.get_by_role("link", name="How it works").click()
    page.get_by_role("link", name="Continue to the question").click()
    assert ranked_names(page) == (c, a, b)
    send(page)
    arrive(page, 2)
    assert ranked_names(page) == ()
    assert page.evaluate("sessionStorage.length") == 0
    assert survey.orders("reload") == [(c, a, b)]


def test_a_lost_connection_loses_nothing(open_page, survey):
    page = open_page()
    begin(page, survey.url, "offline")
    a, b, *_ = unranked_names(page)
    choose(page, b, a)
    page.context.set_offline(True)
    send(page)
    page.get_by_text("There is no connection to the internet. Your ranking is kept").wait_for()
    assert ranked_names(page) == (b, a)
    page.context.set_offline(False)
    send(page)
    arrive(page, 2)
    assert survey.orders("offline") == [(b, a)]


@pytest.mark.slow
def test_the_back_button_leads_on_and_the_first_of_two_tabs_counts(open_page, survey):
    page = open_page()
    begin(page, survey.url, "tabs")
    other = page.context.new_page()
    other.goto(page.url)
    a, b, *_ = unranked_names(page)
    assert unranked_names(other)[:2] == (a, b)
    choose(page, a, b)
    choose(other, b, a)
    send(page)
    arrive(page, 2)
    with other.expect_response("**/p/*/1") as response:
        send(other)
    assert response.value.status == 409
    assert "Your first answer is saved" in other.locator("main").inner_text()
    assert other.locator(".kept li").all_inner_texts() == [a, b]
    other.get_by_role("link", name="Continue").click()
    arrive(other, 2)
    page.go_back()
    arrive(page, 2)
    assert ranked_names(page) == ()
    assert survey.orders("tabs") == [(a, b)]


@pytest.mark.slow
def test_nothing_ranked_is_not_sent_and_a_ranking_is_not_skipped_by_mistake(open_page, survey):
    page = open_page()
    begin(page, survey.url, "empty")
    send(page)
    group = page.get_by_role("group", name="Your ranking")
    message = "Nothing is ranked yet. Choose at least one item, or press “Skip: I do not know”."
    assert group.evaluate("group => group === document.activeElement")
    expect_description(group, message)
    a, b, *_ = unranked_names(page)
    choose(page, a)
    expect_description(group, "")
    skip(page)
    asked = "1 ranked: press Next to send your ranking, or Skip again to skip the question."
    assert status(page) == asked
    choose(page, b)
    skip(page)
    assert status(page) == asked.replace("1", "2")
    assert survey.orders("empty") == []
    skip(page)
    arrive(page, 2)
    assert survey.orders("empty") == [()]


def expect_description(locator, text):
    found = locator.evaluate(
        "node => document.getElementById(node.getAttribute('aria-describedby')).textContent"
    )
    assert found == text
