"""Where a finger or the mouse comes down: nothing moves under it, and the ranking stays in view."""

import random

import pytest
from survey_pages import begin, begin_in_any_language, ranked_names, serve_study, small_study

from rankshot_survey.study import Question, Translation

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


NAMED = {
    "en": "snow leopard,orca,grizzly bear,red fox,hippopotamus,Siberian tiger,rabbit,wolf,owl,ape",
    "de": "Schneeleopard,Orca,Grizzlybär,Rotfuchs,Flusspferd,Sibirischer Tiger,Hase,Wolf,Eule,Affe",
    "es": "leopardo de las nieves,orca,oso pardo,zorro rojo,hipopótamo,tigre,conejo,lobo,búho,mono",
    "ar": "نمر الثلوج,الحوت القاتل,الدب الرمادي,الثعلب الأحمر,فرس النهر,النمر,أرنب,ذئب,بومة,قرد",
}
TEN = tuple(NAMED["en"].split(","))
LAYOUT = """() => [...document.querySelectorAll("#choices li")].map((li) => [
  li.offsetLeft, li.offsetTop
])"""
# Seconds between two taps of a session: the pool used to move after 1.5 seconds of quiet.
PAUSES = (1.4, 1.5, 1.55, 1.6, 1.7, 1.8, 2.0)


@pytest.fixture(scope="module")
def translated_survey(tmp_path_factory):
    translations = {
        tag: Translation(names=dict(zip(TEN, names.split(","), strict=True)))
        for tag, names in NAMED.items()
        if tag != "en"
    }
    study = small_study(
        Question("cat", TEN), questions_per_participant=1, repeats=0, translations=translations
    )
    with serve_study(study, tmp_path_factory.mktemp("slow")) as running:
        yield running


@pytest.mark.parametrize("session", range(13))
def test_slow_taps_rank_every_item_that_they_were_aimed_at(open_page, translated_survey, session):
    """Every tap counts, however long the pause before it, and the pool never moves."""
    language, rng = list(NAMED)[session % 4], random.Random(session)
    page = open_page(**PHONE | {"viewport": {"width": 360, "height": 640}})
    query = f"lang={language}&participant=slow{session}"
    begin_in_any_language(page, translated_survey.url, query)
    page.clock.install()
    before, aimed = page.evaluate(LAYOUT), []
    for number in rng.sample(range(10), 10):
        page.clock.run_for(1000 * rng.choice(PAUSES))
        choice = page.locator("#choices .choice").nth(number)
        choice.scroll_into_view_if_needed()
        at = page.evaluate(POOL)[number]
        aimed.append(at["name"])
        page.touchscreen.tap(at["x"], at["y"])
    assert ranked_names(page) == tuple(aimed)
    assert page.evaluate(LAYOUT) == before
    page.locator("#fold").tap()
    assert page.locator("#ranking .row").last.is_visible()
