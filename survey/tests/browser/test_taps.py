"""Where a finger or the mouse comes down: nothing moves under it, and the ranking stays in view."""

import random

import pytest
from survey_pages import begin, ranked_names, serve_study, small_study

from rankshot_survey.study import Question

pytestmark = pytest.mark.slow

NAMES = tuple(f"item {'of some length ' * (i % 4 == 3)}{i}" for i in range(25))
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
# Where each name of the pool is: its middle, if it is there to be pressed.
POOL = """() => [...document.querySelectorAll('#choices .choice')].map((choice) => {
  const { x, y, width, height } = choice.getBoundingClientRect();
  const at = { x: x + width / 2, y: y + height / 2 };
  const met = document.elementFromPoint(at.x, at.y);
  return { name: choice.innerText, ...at, isSeen: met !== null && choice.contains(met) };
})"""


@pytest.fixture(scope="module")
def long_survey(tmp_path_factory):
    study = small_study(Question("cat", NAMES), questions_per_participant=1, repeats=0)
    with serve_study(study, tmp_path_factory.mktemp("long")) as running:
        yield running


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
