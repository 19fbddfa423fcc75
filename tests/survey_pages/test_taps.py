"""Where a finger or the mouse comes down: nothing moves under it, and the ranking stays in view."""

import random

import pytest
from pages import (
    begin,
    ranked_names,
    row,
    serve_study,
    small_study,
    unranked_names,
)

from rankshot.survey.study import Question

pytestmark = pytest.mark.slow

NAMES = tuple(f"item {'of some length ' * (i % 4 == 3)}{i}" for i in range(25))
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
SCREENS = {
    "phone": PHONE,
    "small phone": PHONE | {"viewport": {"width": 320, "height": 454}},
    "landscape": PHONE | {"viewport": {"width": 740, "height": 360}},
    "desktop": {"viewport": {"width": 1280, "height": 800}},
}
# Where each name of the pool is: its middle, if it is there to be pressed.
POOL = """() => [...document.querySelectorAll('#choices .choice')].map((choice) => {
  const { x, y, width, height } = choice.getBoundingClientRect();
  const at = { x: x + width / 2, y: y + height / 2 };
  const met = document.elementFromPoint(at.x, at.y);
  return { name: choice.innerText, ...at, isSeen: met !== null && choice.contains(met) };
})"""
# The name of the newest item, and whether its row, and what has the focus, are seen.
NEWEST = """() => {
  const isSeen = (node) => {
    const { x, width, top, bottom } = node.getBoundingClientRect();
    const meets = (y) => node.contains(document.elementFromPoint(x + width / 2, y));
    return meets(top + 2) && meets(bottom - 2);
  };
  const row = document.querySelector('#ranking').lastElementChild;
  const name = row.querySelector('.name').innerText;
  return { name, isSeen: isSeen(row), isFocusSeen: isSeen(document.activeElement) };
}"""
# Brings an item of the pool into view, as somebody does who wants to tap it.
SCROLL = """name => [...document.querySelectorAll('#choices .choice')]
  .find((choice) => choice.innerText === name).scrollIntoView({ block: 'nearest' })"""


@pytest.fixture(scope="module")
def long_survey(tmp_path_factory):
    study = small_study(
        Question("cat", NAMES),
        answers_per_question=1000,
        questions_per_participant=1,
        repeats=0,
    )
    with serve_study(study, tmp_path_factory.mktemp("long")) as running:
        yield running


def places(pool):
    """Return where the items of the pool are on the screen."""
    return [(at["x"], at["y"]) for at in pool]


def test_two_quick_taps_rank_the_two_items_that_they_were_aimed_at(open_page, long_survey):
    page = open_page(**PHONE)
    begin(page, long_survey.url, "pairs")
    wrong = []
    for seed in range(6):
        page.evaluate("sessionStorage.clear()")
        page.reload()
        rng = random.Random(seed)
        page.evaluate("y => scrollTo(0, y)", rng.choice([0, 120, 240]))
        seen = [at for at in page.evaluate(POOL) if at["isSeen"]]
        one = rng.randrange(len(seen) - 1)
        # The next one, which the gap would pull under the finger, or any.
        two = one + 1 if seed % 2 else rng.choice([i for i in range(len(seen)) if i != one])
        for at in (seen[one], seen[two]):
            page.touchscreen.tap(at["x"], at["y"])
        aimed = (seen[one]["name"], seen[two]["name"])
        if ranked_names(page) != aimed:
            wrong.append((seed, aimed, ranked_names(page)))
    assert wrong == []


@pytest.mark.parametrize("screen", SCREENS)
def test_the_pool_never_moves_and_the_newest_item_is_seen(open_page, long_survey, screen):
    page = open_page(**SCREENS[screen])
    # Rows without items go after a while, whatever the speed of this machine.
    page.clock.install()
    begin(page, long_survey.url, f"still-{screen[:5].strip()}")
    page.clock.pause_at(page.evaluate("Date.now() + 3000"))
    press = page.touchscreen.tap if "has_touch" in SCREENS[screen] else page.mouse.click
    page.get_by_role("button", name="Next").click()
    names = list(unranked_names(page))
    for step in range(14):
        if step == 10:
            # At the end of the page it would move as soon as the page became shorter.
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            page.get_by_role("button", name="Skip: I do not know").click()
        name = names.pop((7 * step) % len(names))
        page.evaluate(SCROLL, name)
        before = page.evaluate(POOL)
        at = next(at for at in before if at["name"] == name)
        assert at["isSeen"], (step, at)
        press(at["x"], at["y"])
        after, newest = page.evaluate(POOL), page.evaluate(NEWEST)
        assert places(before) == places(after), step
        assert (newest["name"], newest["isSeen"]) == (name, True), step
    # What is removed is again where it was.
    row(page, name).get_by_role("button", name=f"Remove {name}", exact=True).click()
    assert page.evaluate(POOL) == before


def test_the_first_screen_of_a_small_telephone_has_items(open_page, long_survey):
    page = open_page(**PHONE | {"viewport": {"width": 375, "height": 553}}, locale="de")
    page.goto(f"{long_survey.url}/?participant=small")
    page.locator("button.primary").click()
    page.locator("main > .actions a.primary").click()
    page.locator("#choices button").first.wait_for()
    assert sum(at["isSeen"] for at in page.evaluate(POOL)) >= 4
