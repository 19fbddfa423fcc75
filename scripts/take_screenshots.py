"""Make the images in docs/images again, from a run of this version.

    make screenshots

- report.png: the first screen of the report of ``rankshot demo``, which takes a minute
- survey.png: a question half answered, on a phone and on a desktop
- researcher.png: the researcher's page of a survey with simulated answers
- review.png, review-phone.png: the page that checks and corrects predictions
- images of the gallery, copied from docs/gallery: build the site first, with ``make docs``

The pages are shown by the system's Chromium, as in the tests, and served as in the tests. Each file
has at most 256 colours, to be small, and names the version in its metadata: a test reads it.
"""

import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from sklearn.linear_model import RidgeClassifier

import rankshot
from rankshot.datasets import CIFAR_SENSES, class_names, load_cifar, load_panel, load_thumbnails
from rankshot.review.learning import Learner
from rankshot_survey import new_study
from rankshot_survey.store.participation import CurrentQuestion, Participation

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
SURVEY = (ROOT / "survey" / "tests", ROOT / "survey" / "tests" / "browser")
sys.path[:0] = map(str, (TESTS, *SURVEY, TESTS / "review"))

from small_review import serve_review  # noqa: E402
from survey_pages import begin, choose, serve_study  # noqa: E402

from chromium import launch_chromium  # noqa: E402

IMAGES = ROOT / "docs" / "images"
GALLERY = ROOT / "docs" / "gallery"
COPIED = {"groups": "rankings/images/sphx_glr_02_groups_of_raters_001.png"}
"""Images of the gallery that the guide shows."""
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 900, "height": 600}
TOKEN = "0123456789abcdef"
WRONG = "0160.png"
"""A truck that is predicted to be an automobile."""


def main() -> None:
    """Make all images."""
    for name, source in COPIED.items():
        save(name, Image.open(GALLERY / source))
    with launch_chromium() as browser:
        take_question(browser)
        take_researcher(browser)
        take_report(browser)
        take_review(browser)


def save(name, image):
    """Write an image with few colours, and the version that made it."""
    version = PngInfo()
    version.add_text("Software", f"rankshot {rankshot.__version__}")
    path = IMAGES / f"{name}.png"
    image.convert("RGB").quantize(256).save(path, optimize=True, pnginfo=version)
    print(f"{path.relative_to(ROOT)}: {image.width} x {image.height}, {path.stat().st_size} B")


@contextmanager
def open_page(browser, viewport):
    """Open a page in a window of its own."""
    context = browser.new_context(viewport=viewport, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def photograph(page, **options):
    """Return what a page shows."""
    return Image.open(BytesIO(page.screenshot(**options)))


# ---- The report


def take_report(browser):
    """Show the first screen of the demonstration's report."""
    with TemporaryDirectory() as folder, open_page(browser, {"width": 1280, "height": 900}) as page:
        rankshot_command = [sys.executable, "-m", "rankshot.cli"]
        subprocess.run([*rankshot_command, "demo", "-o", folder], check=True)
        page.goto(Path(folder, "report.html").as_uri())
        images = page.locator("#images").bounding_box()
        clip = {"x": 0, "y": 0, "width": 1280, "height": images["y"] + images["height"] + 12}
        save("report", photograph(page, full_page=True, clip=clip))


# ---- The review


def take_review(browser):
    """Show the page of a review of photographs, after some labels."""
    images, truth, rows = load_thumbnails()
    data = load_cifar()
    model = RidgeClassifier(alpha=1000).fit(data.seen_train, data.seen_train_label)
    scores = rankshot.scores_of(model, data.new[rows])
    known = rankshot.Knowledge(load_panel(), batch=scores.with_blocks(features=data.new[rows]))
    learner = Learner(known)
    ids = [f"{row:04}.png" for row in rows]
    with TemporaryDirectory() as folder:
        place = Path(folder, "photos")
        place.mkdir()
        for name, pixels in zip(ids, images, strict=True):
            Image.fromarray(pixels).save(place / name)
        with serve_review(Path(folder), learner, ids, place) as served:
            served.review.set_labels({row: str(truth[row]) for row in range(0, len(ids), 4)})
            served.review.learn()
            for name, size in {"review": (1280, 764), "review-phone": (390, 760)}.items():
                viewport = dict(zip(("width", "height"), size, strict=True))
                with open_page(browser, viewport) as page:
                    page.goto(served.url)
                    page.locator(".card", has_text=WRONG).click()
                    # A phone shows the row above this card as well.
                    move = "(card, rows) => scrollTo(0, rows * (card.offsetTop - 284))"
                    page.locator(".card", has_text=WRONG).evaluate(move, name == "review-phone")
                    page.wait_for_load_state("networkidle")
                    save(name, photograph(page))


# ---- The survey


def design_study(answers_per_question):
    """Return a study of six new classes."""
    targets, seen = ["cat", "deer", "dog", "horse", "ship", "truck"], class_names("cifar").seen
    near = rankshot.WordNet(senses=CIFAR_SENSES).similarity(targets, seen).to_rankings()
    return new_study(
        targets,
        seen,
        show=8,
        rankings=near,
        answers_per_question=answers_per_question,
        questions_per_participant=3,
    )


def take_question(browser):
    """Show a question half answered, on a phone and on a desktop."""
    # Each participant gets all questions, so that one of them is about the cat.
    study = replace(design_study(1000), questions_per_participant=6)
    with TemporaryDirectory() as folder, serve_study(study, Path(folder)) as survey:
        phone, desktop = (half_answer(browser, survey.url, size) for size in (PHONE, DESKTOP))
    both = Image.new("RGB", (phone.width + desktop.width + 60, phone.height + 40), "#d8d8d8")
    both.paste(phone, (20, 20))
    both.paste(desktop, (phone.width + 40, (both.height - desktop.height) // 2))
    save("survey", both)


def half_answer(browser, url, viewport):
    """Return the question about the cat after three choices."""
    with open_page(browser, viewport) as page:
        begin(page, url, viewport["width"])
        # Questions come in a random order.
        while "“cat”" not in page.locator("h1").inner_text():
            with page.expect_navigation():
                page.get_by_role("button", name="Skip").click()
        choose(page, "leopard", "tiger", "lion")
        return photograph(page)


def take_researcher(browser):
    """Show the researcher's page of a survey that has answers."""
    study = design_study(12)
    with TemporaryDirectory() as folder, serve_study(study, Path(folder), TOKEN) as survey:
        simulate(study, survey.database)
        with open_page(browser, {"width": 1200, "height": 1300}) as page:
            page.goto(f"{survey.url}/researcher")
            page.get_by_label("The token").fill(TOKEN)
            page.get_by_role("button", name="Log in").click()
            page.get_by_role("heading", name="Progress of the survey").wait_for()
            save("researcher", photograph(page))


def simulate(study, database, n_people=16):
    """Let people take part, one every six minutes until now; two are hasty, the last one leaves."""
    rng = Random(0)
    now = first = time.time() - 360 * n_people
    visit = Participation(study, database, lambda: now, rng)
    for person in range(n_people):
        now = first + 360 * person
        rater = visit.start(f"none:id:{person}")
        while isinstance(asked := visit.current_question(rater), CurrentQuestion):
            if person == n_people - 1 and asked.position > 1:
                return
            is_hasty = person in {5, 11}
            now += 1.5 if is_hasty else rng.uniform(9, 25)
            places = draw_places(asked, rng, scatter=100 if is_hasty else 1.5)
            visit.submit(rater, asked.number, asked.form, places)


def draw_places(asked, rng, scatter, k=5):
    """Return the places of the items as shown: the first k of WordNet's order, which scatters."""
    order = sorted(
        asked.shown, key=lambda item: asked.question.items.index(item) + rng.gauss(0, scatter)
    )
    return [str(order.index(item) + 1) if item in order[:k] else "" for item in asked.shown]


if __name__ == "__main__":
    main()
