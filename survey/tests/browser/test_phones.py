"""What a phone shows of a question, with a long prompt, also from right to left, with images."""

from contextlib import ExitStack
from functools import cache

import pytest
from PIL import Image
from survey_pages import begin_in_any_language, serve_study, small_study

from rankshot_survey.study import ItemImage, Question, Translation

pytestmark = pytest.mark.slow

NAMES = {
    "en": "snow leopard,killer whale,grizzly bear,red fox,hippopotamus,Siberian tiger,rabbit,"
    "German shepherd,spider monkey,chimpanzee",
    "de": "Schneeleopard,Schwertwal,Grizzlybär,Rotfuchs,Flusspferd,Sibirischer Tiger,Kaninchen,"
    "Deutscher Schäferhund,Klammeraffe,Schimpanse",
    "ar": "نمر الثلوج,الحوت القاتل,الدب الرمادي,الثعلب الأحمر,فرس النهر,النمر السيبيري,أرنب,"
    "الراعي الألماني,القرد العنكبوتي,شمبانزي",
}
# Each has 160 characters with the name of the target in it.
PROMPTS = {
    "en": "Think of where these animals live, what they eat and how they move, and not only of "
    "what they look like: which of these are in your own opinion most like a {target}?",
    "de": "Denken Sie daran, wo diese Tiere leben, was sie fressen und wie sie sich bewegen, nicht "
    "nur an ihr Aussehen: Welche davon sind wohl einer {target} am ähnlichsten?",
    "ar": "فكر في المكان الذي تعيش فيه هذه الحيوانات وفي ما تأكله وفي الطريقة التي تتحرك بها وليس "
    "فقط في شكلها الخارجي: أي من هذه الحيوانات أكثر شبهاً برأيك بالحيوان: {target}؟",
}
TARGETS = {"en": "cat", "de": "Katze", "ar": "قطة"}
# A phone of 360 x 640, also without what the bars of its browser take, and a larger one.
SIZES = ((360, 640), (360, 560), (390, 664))
# The items of the pool of which all corners can be tapped, and those of which the middle can.
VISIBLE = """() => {
  const buttons = [...document.querySelectorAll('#choices .choice')];
  const meets = (button, x, y) => button.contains(document.elementFromPoint(x, y));
  return buttons.map((button) => {
    const { left, right, top, bottom } = button.getBoundingClientRect();
    const corners = [left + 8, right - 8].flatMap((x) => [top + 4, bottom - 4].map((y) => [x, y]));
    return corners.every(([x, y]) => meets(button, x, y));
  });
}"""
ITEMS = tuple(NAMES["en"].split(","))
IMAGES = (*ITEMS, "cat")


@pytest.fixture(scope="module")
def serve(tmp_path_factory):
    """Return a function that serves a study, without images or with images of all names."""
    folder = tmp_path_factory.mktemp("phones")
    image = folder / "image.png"
    Image.new("RGB", (120, 90), "teal").save(image)
    translations = {
        tag: Translation(
            prompt=PROMPTS[tag],
            names={**dict(zip(ITEMS, NAMES[tag].split(","), strict=True)), "cat": TARGETS[tag]},
        )
        for tag in NAMES
        if tag != "en"
    }
    questions = (Question("cat", ITEMS), Question("dog", ITEMS))
    settings = {"prompt": PROMPTS["en"], "repeats": 0, "translations": translations}
    images = tuple(ItemImage(name, image, "an image of it") for name in IMAGES)
    with ExitStack() as servers:

        @cache
        def start(content):
            (folder / content).mkdir()
            shown = images if content == "images" else ()
            study = small_study(*questions, **settings, images=shown)
            return servers.enter_context(serve_study(study, folder / content))

        yield start


def open_question(page, survey, language):
    """Go to the question about the cat, whether it is the first or the second."""
    begin_in_any_language(page, survey.url, f"lang={language}&participant=p{id(page)}")
    if TARGETS[language] not in page.locator("h1").inner_text():
        page.locator("#bar .secondary").click()
        page.get_by_text(TARGETS[language]).first.wait_for()
    page.wait_for_load_state("load")


def n_visible(page):
    return sum(page.evaluate(VISIBLE))


def check_phone(page, survey, language):
    """Look at a question before and after two taps, and scroll to the other items."""
    open_question(page, survey, language)
    assert page.locator("#n-left").inner_text() == "10"
    first = n_visible(page)
    assert first >= 6
    assert page.evaluate("scrollX + scrollY") == 0
    for number in (0, 1):
        page.locator("#choices .choice").nth(number).tap()
    # Two have gone from the places that were seen.
    assert n_visible(page) >= 6 - 2
    assert page.locator("#ranking .row").last.is_visible()
    for row in page.locator("#ranking .row:has(img)").all():
        image, name = (row.locator(part).bounding_box() for part in ("img", ".name"))
        one, two = sorted((image, name), key=lambda box: box["x"])
        assert two["x"] - one["x"] - one["width"] >= 6, "the image touches the name"
    page.locator("#choices .choice").last.scroll_into_view_if_needed()
    assert page.evaluate(VISIBLE)[-1]
    assert page.evaluate("scrollX + scrollY") == 0
    button = page.locator("#bar .primary")
    assert button.bounding_box()["y"] + 44 <= page.viewport_size["height"]


@pytest.mark.parametrize("content", ["names", "images"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("language", NAMES)
def test_a_phone_shows_six_items_of_a_question(open_page, serve, language, size, content):
    viewport = dict(zip(("width", "height"), size, strict=True))
    page = open_page(viewport=viewport, has_touch=True, is_mobile=True)
    check_phone(page, serve(content), language)
