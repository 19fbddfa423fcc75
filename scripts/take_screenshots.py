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
from base64 import b64encode
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from sklearn.linear_model import RidgeClassifier

import rankshot
from rankshot.datasets import CIFAR_SENSES, class_names, load_cifar, load_panel
from rankshot.recognition import open_run
from rankshot.review.learning import Learner
from rankshot.review.serve import review_run
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
WRONG, CONFIRMED = "coins.jpg", ("astronaut", "cat", "galaxies")
"""A photograph of coins that are predicted to be galaxies, and predictions that are confirmed."""
LEFT_OUT = ("brick_wall.jpg", "lawn.jpg")


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


def run_command(*words):
    """Run the command."""
    subprocess.run([sys.executable, "-m", "rankshot.cli", *map(str, words)], check=True)


# ---- The report


def take_report(browser):
    """Show the first screen of the demonstration's report."""
    with TemporaryDirectory() as folder, open_page(browser, {"width": 1280, "height": 900}) as page:
        run_command("demo", "-o", folder)
        page.goto(Path(folder, "report.html").as_uri())
        images = page.locator("#images").bounding_box()
        clip = {"x": 0, "y": 0, "width": 1280, "height": images["y"] + images["height"] + 12}
        save("report", photograph(page, full_page=True, clip=clip))


# ---- The review


def take_review(browser):
    """Show the page of a review after a correction, and what corrections bring."""
    steps = measure_learning()
    with TemporaryDirectory() as folder:
        photos = Path(folder, "photographs")
        run_command("demo", "--files-only", "-o", folder)
        # Ten photographs fill two rows.
        for name in LEFT_OUT:
            (photos / name).unlink()
        model = ("--model", "efficientnet-lite0", "--rankings", photos.with_suffix(".jsonl"))
        run_command("recognise", photos, *model, "--folder", f"{folder}/run")
        reviewed = review_run(open_run(Path(folder, "run")))
        ids, learner = reviewed.inputs.ids, reviewed.learner
        Path(folder, "review").mkdir()
        with serve_review(Path(folder, "review"), learner, ids, photos) as served:
            right = {ids.index(f"{name}.jpg"): name for name in CONFIRMED}
            # Learning waits until the page was shown: the head would correct itself.
            served.review._fitting.acquire()
            served.review.set_labels(right | {ids.index(WRONG): WRONG.removesuffix(".jpg")})
            for name, size in {"review": (1280, 712), "review-phone": (390, 760)}.items():
                viewport = dict(zip(("width", "height"), size, strict=True))
                with open_page(browser, viewport) as page:
                    page.goto(served.url)
                    page.locator(".card", has_text=WRONG).click()
                    page.wait_for_load_state("networkidle")
                    page.evaluate("scrollTo(0, 0)")
                    shown = photograph(page)
                save(name, shown if name == "review-phone" else add_chart(browser, shown, steps))
            served.review._fitting.release()


def measure_learning():
    """Return the accuracy on the photographs of CIFAR-10 without a label, after 0, 10, ... labels.

    This is what examples/new_classes/05_review.py does.
    """
    data = load_cifar()
    model = RidgeClassifier(alpha=1000).fit(data.seen_train, data.seen_train_label)
    scores = rankshot.scores_of(model, data.new).with_blocks(features=data.new)
    truth, labels, steps = data.new_label.astype(str), {}, []
    learner = Learner(rankshot.Knowledge(load_panel(), batch=scores))
    for n in range(0, 60, 10):
        found = learner.fit(labels, {})
        left = np.setdiff1d(np.arange(len(truth)), list(labels))
        steps.append((n, float(np.mean(found.labels[left] == truth[left]))))
        useful = learner.find_useful(left, 10)
        labels |= {int(row): str(truth[row]) for row in useful}
    return steps


def add_chart(browser, shown, steps):
    """Return an image with a line below it: the accuracy after each number of labels."""
    x, y = (np.array(values, float) for values in zip(*steps, strict=True))
    x, y = 20 + 9.6 * x, 130 - 400 * (y - 0.5)
    dots = "".join(f'<circle cx="{a}" cy="{b}" r="5"/>' for a, b in zip(x, y, strict=True))
    texts = "".join(
        f'<text x="{a}" y="{b - 14}">{share:.0%}</text><text x="{a}" y="156" class="n">{n}</text>'
        for a, b, (n, share) in zip(x, y, steps, strict=True)
    )
    line = " ".join(f"{a},{b}" for a, b in zip(x, y, strict=True))
    stream = BytesIO()
    shown.save(stream, "PNG")
    style = (Path(rankshot.__file__).parent / "web/static/base.css").read_text("utf-8")
    with open_page(browser, {"width": shown.width, "height": shown.height + 190}) as page:
        page.set_content(f"""<style>{style}
          body {{ margin: 0; }} img {{ display: block; border-bottom: 1px solid var(--line); }}
          div {{ display: flex; align-items: center; height: 189px; padding: 0 40px; gap: 60px; }}
          div {{ background: var(--surface); }}
          strong {{ font-size: 60px; letter-spacing: -0.03em; line-height: 1.1; }}
          svg {{ flex: none; }} p {{ color: var(--muted); font-size: 20px; }}
          strong {{ color: var(--ink); }}
          polyline {{ fill: none; stroke: var(--accent); stroke-width: 3; }}
          circle {{ fill: var(--accent); }} text {{ text-anchor: middle; fill: var(--ink); }}
          text {{ font: 600 17px var(--font); }} .n {{ font-weight: 400; fill: var(--muted); }}
        </style><img src="data:image/png;base64,{b64encode(stream.getvalue()).decode()}">
        <div><p><strong>{steps[0][1]:.0%} → {steps[3][1]:.0%}</strong><br>
        Accuracy on 4,000 photographs (CIFAR-10) after 30 simulated corrections</p>
        <svg width="640" height="170"><polyline points="{line}"/>{dots}{texts}
        <text x="585" y="156" class="n">labels</text></svg></div>""")
        return photograph(page)


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
    items = {question.key: question.items for question in study.asked}
    for person in range(n_people):
        now = first + 360 * person
        rater = visit.start(f"none:id:{person}")
        while isinstance(asked := visit.current_question(rater), CurrentQuestion):
            if person == n_people - 1 and asked.position > 1:
                return
            is_hasty = person in {5, 11}
            now += 1.5 if is_hasty else rng.uniform(9, 25)
            places = draw_places(
                asked.shown, items[asked.key], rng, scatter=100 if is_hasty else 1.5
            )
            visit.submit(rater, asked.number, asked.form, places)


def draw_places(shown, items, rng, scatter, k=5):
    """Return the places of the items as shown: the first k of WordNet's order, which scatters."""
    order = sorted(shown, key=lambda item: items.index(item) + rng.gauss(0, scatter))
    return [str(order.index(item) + 1) if item in order[:k] else "" for item in shown]


if __name__ == "__main__":
    main()
