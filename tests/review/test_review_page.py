"""The page in a real browser: keys alone, two tabs, what is hostile, and what axe finds."""

import numpy as np
import pytest
from PIL import Image
from small_review import RANKINGS, make_scores, serve_review

import rankshot as rs
from axe import check, load_axe
from chromium import opening_pages
from rankshot.review.learning import Learner

pytestmark = pytest.mark.slow

BAD = "<img src=x onerror=document.body.remove()>"
COLOURS = {0: "orange", 1: "brown", 2: "blue"}


@pytest.fixture
def served(tmp_path):
    """A review of 130 small images, one with a hostile name, which a proxy serves under a path."""
    ids = [*(f"{i:03}.png" for i in range(129)), f"{BAD}.png"]
    images = tmp_path / "images"
    images.mkdir()
    for i, name in enumerate(ids):
        Image.new("RGB", (64, 48), COLOURS[i % 3]).save(images / name)
    learner = Learner(rs.Knowledge(RANKINGS, batch=make_scores(130)[0]))
    with serve_review(tmp_path, learner, ids, images, path="/teams/one/") as found:
        yield found


@pytest.fixture
def open_page(browser, served):
    """Return a function that opens the page; nothing may go wrong in it."""
    with opening_pages(browser) as open_new_page:

        def open_review_page(**options):
            page = open_new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
            page.goto(served.url)
            page.wait_for_selector(".card")
            return page

        yield open_review_page


def focused(page):
    return int(page.evaluate("document.activeElement.dataset.row ?? -1"))


def wait_for_label(page, row, text):
    page.locator(f'[data-row="{row}"] .given', has_text=text).wait_for()


def test_keys_alone(open_page, served):
    page, review = open_page(), served.review
    # They work from the first second.
    rows = [focused(page)]
    assert rows[0] >= 0
    predicted = review.predicted.labels
    for key in ("Enter", "3", "x"):
        page.keyboard.press(key)
        rows.append(focused(page))
    page.keyboard.type("do")
    assert page.evaluate("document.activeElement.id") == "typed"
    page.keyboard.press("Enter")
    wait_for_label(page, rows[3], "dog")
    assert len({*rows}) == 4
    expected = [predicted[rows[0]], "truck", "none of these", "dog"]
    assert [review.labels[row] for row in rows] == expected
    page.keyboard.press("u")
    page.locator(f'[data-row="{rows[3]}"].labelled, [data-row="{rows[3]}"].corrected').wait_for(
        state="detached"
    )
    assert focused(page) == rows[3]
    # Arrows move, also to the next page and back.
    page.keyboard.press("ArrowDown")
    assert focused(page) not in rows
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    page.get_by_text("Page 2 of 3").wait_for()
    assert focused(page) >= 0
    page.keyboard.press("ArrowLeft")
    page.get_by_text("Page 1 of 3").wait_for()


def test_a_whole_selection_is_correct(open_page, served):
    page = open_page()
    page.locator(".card").first.focus()
    for _ in range(9):
        page.keyboard.press("Shift+ArrowRight")
    page.get_by_role("button", name="These 10 are correct").wait_for()
    page.keyboard.press("Enter")
    page.get_by_text("10 of 130 labelled").wait_for()
    labels, predicted = served.review.labels, served.review.predicted
    assert len(labels) == 10
    assert {predicted.labels[row] for row in labels} == {*labels.values()}
    page.keyboard.press("Control+a")
    page.get_by_text("60 selected").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("u")
    page.get_by_text("0 of 130 labelled", exact=True).wait_for()


def test_two_tabs_and_nothing_moves_after_a_fit(open_page, served):
    one, other = open_page(), open_page()
    before = other.locator(".card").evaluate_all("cards => cards.map(card => card.dataset.row)")
    rng = np.random.default_rng(0)
    served.review.set_labels({int(row): "dog" for row in rng.choice(130, 20, replace=False)})
    one.locator(".card").nth(5).click()
    one.keyboard.press("2")
    row = int(before[5])
    wait_for_label(other, row, "dog")
    other.get_by_text("changed").wait_for()
    after = other.locator(".card").evaluate_all("cards => cards.map(card => card.dataset.row)")
    assert after == before
    other.get_by_role("button", name="Show the new order").click()
    other.get_by_role("button", name="Show the new order").wait_for(state="hidden")


def test_new_classes_with_a_ranking_and_without(open_page, served):
    page = open_page()
    page.locator(".card").nth(2).click()
    row = focused(page)
    page.keyboard.type("q")
    page.keyboard.type("uokka <b>")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    for place, name in enumerate(("fox", "tigre"), 1):
        page.get_by_label(f"Seen class {place}").fill(name)
    load_axe(page)
    found = page.evaluate(
        "axe.run(document.querySelector('dialog'), {resultTypes: ['violations']})"
    )
    assert found["violations"] == []
    page.keyboard.press("Enter")
    page.locator("#new-error", has_text="tigre").wait_for()
    page.get_by_label("Seen class 2").fill("tiger")
    page.get_by_role("button", name="Save the class").click()
    wait_for_label(page, row, "quokka <b>")
    assert served.review.added == {"quokka <b>": ("fox", "tiger")}
    assert served.review.labels == {row: "quokka <b>"}
    # Without a ranking, for the next input.
    page.keyboard.type("zebu")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Enter")
    page.get_by_text("2 of 130 labelled").wait_for()
    assert served.review.added["zebu"] == ()


def test_without_an_input_nothing_can_be_decided_and_hostile_names_are_text(open_page, served):
    page = open_page()
    page.get_by_role("searchbox", name="Id or text").fill("no such input")
    page.get_by_text("No matches").wait_for()
    for name in ("Correct", "None of these"):
        assert page.get_by_role("button", name=name, exact=True).is_disabled()
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_text("130 inputs").wait_for()
    assert page.get_by_role("button", name="Correct", exact=True).is_enabled()
    page.get_by_role("searchbox", name="Id or text").fill("onerror")
    page.get_by_text("1 input", exact=True).wait_for()
    page.locator(".card").click()
    assert page.inner_text("#name").startswith(BAD)
    assert page.locator(".card .id img").count() == 0


def test_groups_follow_each_other_and_boxes_cover_no_image(open_page):
    page = open_page()
    boxes = page.evaluate("""() => [...document.querySelectorAll('.card')].map((card) => {
        const [image, tick] = ['img', '.tick'].map((each) => card.querySelector(each)
            .getBoundingClientRect());
        return [card.getBoundingClientRect().top, tick.top >= image.bottom];
    })""")
    tops = [top for top, _ in boxes]
    per_line = max(map(tops.count, tops))
    assert all(tops.count(top) == per_line for top in {*tops[:-per_line]})
    assert all(is_below for _, is_below in boxes)


def test_an_image_is_enlarged_by_a_click_or_a_key(open_page):
    page = open_page()
    for enlarge in (
        lambda: page.keyboard.press("+"),
        lambda: page.locator("#preview img").click(),
        lambda: page.locator(".card:focus img").click(),
    ):
        enlarge()
        image = page.locator("#zoom img")
        image.wait_for()
        assert image.bounding_box()["width"] > 300
        page.keyboard.press("Escape")
        image.wait_for(state="hidden")
        assert focused(page) >= 0


def test_an_audit(open_page, served):
    page = open_page()
    page.get_by_role("button", name="Random audit").click()
    page.get_by_role("button", name="Begin an audit").click()
    page.locator(".card").focus()
    for n in range(1, 6):
        row = served.review.next_row
        page.locator(f'.card[data-row="{row}"]').wait_for()
        page.keyboard.press("Enter" if n < 5 else "x")
        page.get_by_text(f"from {n} of 130 inputs").wait_for()
        page.locator(f'.card:not([data-row="{row}"])').wait_for()
    assert "80% correct" in page.inner_text("#estimate")
    check(page)
    page.get_by_role("button", name="Close the audit, and learn from it").click()
    page.get_by_text("The last audit:").wait_for()
    assert len(served.review.labels) == 5


COVERED = """
    const panel = document.querySelector('aside').getBoundingClientRect();
    return [panel.height / innerHeight, document.documentElement.scrollWidth - innerWidth];
"""


def test_on_a_phone_the_panel_leaves_room_and_errors_are_seen(open_page, served):
    page = open_page(viewport={"width": 390, "height": 844}, has_touch=True)
    covered, sideways = page.evaluate(f"(() => {{{COVERED}}})()")
    assert covered < 1 / 3
    assert sideways <= 0
    # A card that has the focus is not under the panel.
    page.locator(".card").first.tap()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
        card = page.locator(".card:focus").bounding_box()
        assert card["y"] + card["height"] <= page.locator("aside").bounding_box()["y"]
    page.route("**/api/labels", lambda route: route.fulfill(status=422, json={"error": "full"}))
    page.get_by_role("button", name="Correct", exact=True).tap()
    error = page.get_by_text("Not saved: full")
    error.wait_for()
    assert page.evaluate("scrollY") > 0
    assert error.bounding_box()["y"] >= 0
    check(page)


def test_accessibility(open_page, served):
    page = open_page()
    served.review.set_labels({0: "dog", 1: "cat", 2: "none of these"})
    page.get_by_text("3 of 130 labelled").wait_for()
    page.locator(".card").nth(1).click()
    page.keyboard.press(" ")
    page.keyboard.press("?")
    page.locator("#reasons caption", has_text="rankings").first.wait_for()
    widths = "bars => Math.max(...bars.map(bar => bar.offsetWidth))"
    assert page.locator("#reasons .bar").evaluate_all(widths) > 20
    page.get_by_text("Keys", exact=True).click()
    check(page)
