"""Items with pictures: in the pool, in the ranking, without scripts, and in a stored answer."""

import pytest
from axe import TOO_WIDE, check
from pages import arrive, begin, send, serve_study, small_study
from PIL import Image

from rankshot.survey.study import Picture, Question

pytestmark = pytest.mark.slow

ITEMS = tuple(f"animal {i}" for i in range(24))
# The sizes of what is on the page, whether or not its pictures have come.
BOXES = """() => [...document.querySelectorAll('.choice, .row, .target, h1, .numbered, .bar')].map(
  (node) => JSON.stringify(node.getBoundingClientRect()))"""
LOADED = "() => [...document.images].every((image) => image.complete && image.naturalWidth > 0)"


@pytest.fixture(scope="module")
def picture_survey(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    pictures = {}
    for i, name in enumerate((*ITEMS, "cat")):
        path = folder / f"{i}.png"
        # Wide, high and large ones.
        Image.new("RGB", (60 + 97 * i, 3000 - 120 * i), (10 * i, 99, 200)).save(path)
        pictures[name] = Picture(path, f"A photo of {name}")
    study = small_study(
        # One item has no picture.
        Question("cat", (*ITEMS, "no picture")),
        Question("dog", ITEMS[:3]),
        answers_per_question=1000,
        repeats=0,
        pictures=pictures,
    )
    with serve_study(study, folder) as running:
        yield running


def open_cat(page):
    """Skip to the question about the cat, which has a picture itself."""
    if page.get_by_role("heading", name="dog").count():
        page.get_by_role("button", name="Skip: I do not know").click()
        arrive(page, 2)
    page.get_by_role("heading", name="cat").wait_for()


def test_pictures_in_the_pool_in_the_ranking_and_in_a_stored_answer(open_page, picture_survey):
    page = open_page(has_touch=True, is_mobile=True)
    begin(page, picture_survey.url, "pictures")
    open_cat(page)
    other = page.context.new_page()
    other.goto(page.url)
    assert page.get_by_role("figure").get_by_role("img", name="A photo of cat").is_visible()
    pool = page.locator("#choices")
    for name in ("animal 0", "animal 23"):
        button = pool.get_by_role("button", name=f"A photo of {name} {name}", exact=True)
        button.tap()
        row = page.locator("#ranking .row").filter(has_text=name)
        assert row.get_by_role("img", name=f"A photo of {name}", exact=True).is_visible()
    assert pool.get_by_role("button", name="no picture", exact=True).count() == 1
    assert page.evaluate(TOO_WIDE) == ""
    page.wait_for_load_state("networkidle")
    assert page.evaluate(LOADED)
    check(page)
    send(page)
    send_other_answer(other)
    other.get_by_role("heading", name="Already answered").wait_for()
    assert other.locator(".kept li").all_inner_texts() == ["animal 0", "animal 23"]
    assert other.locator(".kept img").evaluate_all("all => all.map((one) => one.alt)") == [
        "A photo of animal 0",
        "A photo of animal 23",
    ]
    assert other.evaluate(TOO_WIDE) == ""


def send_other_answer(page):
    """Answer the question of a second tab in another way."""
    page.locator("#choices").get_by_role("button", name="no picture", exact=True).tap()
    send(page)
