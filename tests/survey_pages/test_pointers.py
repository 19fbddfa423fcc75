"""Second fingers, clicks beside a button, releases that nobody hears of: the right item moves."""

import pytest
from pages import (
    begin,
    choice,
    choose,
    finger,
    fingers,
    middle,
    ranked_names,
    row,
    status,
    unranked_names,
)

pytestmark = pytest.mark.slow

DESKTOP = {"width": 1280, "height": 900}


def is_dragging(page):
    """Return whether something is in hand, as far as it is seen."""
    return page.evaluate("""() => document.documentElement.classList.contains('sorting')
      || document.querySelector('.ghost') !== null""")


OTHERS = {"name": ".name", "dots": ".handle svg", "button": "[data-action='remove']"}


@pytest.mark.parametrize("other", OTHERS)
def test_a_second_finger_leaves_a_drag_alone(open_page, survey, other):
    page = open_page(has_touch=True, is_mobile=True)
    begin(page, survey.url, f"fingers-{other}")
    # All three rows have to be in view.
    a, b, c = sorted(unranked_names(page), key=len)[:3]
    for name in (a, b, c):
        choice(page, name).tap()
    row(page, b).evaluate("row => row.scrollIntoView({block: 'center'})")
    one = finger(row(page, a).locator(".handle svg"), 1)
    two = finger(row(page, c).locator(OTHERS[other]), 2)
    end = middle(row(page, b)) + 5
    touch = fingers(page)
    touch("touchStart", one)
    for y in (one["y"] + 8, (one["y"] + end) / 2, end):
        touch("touchMove", {**one, "y": y})
    assert is_dragging(page)
    touch("touchStart", {**one, "y": end}, two)
    assert is_dragging(page)
    # The first finger goes, the second one stays for a while.
    touch("touchEnd", {**one, "y": end})
    assert not is_dragging(page)
    assert (ranked_names(page), status(page)) == ((b, a, c), f"{a} moved to place 2")
    touch("touchEnd", two)
    assert not is_dragging(page)
    assert ranked_names(page) == (b, a, c)
    row(page, a).get_by_role("button", name=f"Move {a} up", exact=True).tap()
    assert ranked_names(page) == (a, b, c)


@pytest.mark.parametrize("beside", ["left", "right"])
def test_a_click_beside_a_button_is_not_the_first_of_two_on_it(open_page, survey, beside):
    # On the left the click meets the row; on the right, no part of the lists.
    action = {"left": "Move {} up", "right": "Remove {}"}[beside]
    page = open_page(viewport=DESKTOP)
    begin(page, survey.url, f"beside-{beside}")
    a, b, c, d, *_ = unranked_names(page)
    choose(page, a, b, c, d)
    page.get_by_role("button", name=action.format(d), exact=True).click()
    if beside == "right":
        choose(page, d)
    box = page.get_by_role("button", name=action.format(b), exact=True).bounding_box()
    edge = box["x"] if beside == "left" else box["x"] + box["width"]
    outside, inside = (-1.5, 1.5) if beside == "left" else (2.5, -2.5)
    y = box["y"] + box["height"] / 2
    page.mouse.click(edge + outside, y)
    page.mouse.move(edge + inside, y)
    # The browser counts this click as the second one.
    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)
    assert ranked_names(page) == {"left": (b, a, d, c), "right": (a, c, d)}[beside]


def test_an_unheard_release_ends_a_drag(open_page, survey):
    page = open_page(viewport=DESKTOP)
    begin(page, survey.url, "unheard")
    a, b, c, *_ = unranked_names(page)
    choose(page, a, b, c)
    press = """name => {
      const { x, y } = name.getBoundingClientRect();
      name.dispatchEvent(new PointerEvent('pointerdown', {
        bubbles: true, pointerId: 1, pointerType: 'mouse', isPrimary: true, buttons: 1,
        clientX: x + 5, clientY: y + 5,
      }));
    }"""
    row(page, a).locator(".name").evaluate(press)
    below = row(page, c).bounding_box()
    page.mouse.move(below["x"] + 60, below["y"] + 10)
    page.mouse.move(below["x"] + 60, below["y"] + 50, steps=4)
    assert not is_dragging(page)
    assert ranked_names(page) == (a, b, c)
    # Nor is the next press taken for the one before.
    row(page, a).locator(".name").evaluate(press)
    page.mouse.move(below["x"] + 60, middle(row(page, c)))
    page.mouse.down()
    page.mouse.move(below["x"] + 60, middle(row(page, b)) - 5, steps=4)
    page.mouse.up()
    assert (ranked_names(page), status(page)) == ((a, c, b), f"{c} moved to place 2")


def test_a_press_ends_a_drag_whose_release_was_unheard(open_page, survey):
    page = open_page(viewport=DESKTOP)
    begin(page, survey.url, "pressed-again")
    a, b, c, *_ = unranked_names(page)
    choose(page, a, b, c)
    box = row(page, a).bounding_box()
    page.mouse.move(box["x"] + 60, middle(row(page, a)))
    page.mouse.down()
    page.mouse.move(box["x"] + 60, middle(row(page, c)), steps=4)
    assert is_dragging(page)
    page.locator("#pool-title").evaluate(
        "title => title.dispatchEvent(new PointerEvent('pointerdown', {"
        " bubbles: true, pointerId: 1, pointerType: 'mouse', isPrimary: true, buttons: 1 }))"
    )
    assert not is_dragging(page)
    assert ranked_names(page) == (a, b, c)
    page.mouse.up()
    assert ranked_names(page) == (a, b, c)
