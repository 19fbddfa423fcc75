"""Make the first image of README and site again: photographs, and what is predicted for them.

    make first-image

It runs the network and rankshot over the photographs of the package, and shows the result, for wide
and for narrow screens, in light and in dark colours. ``preview.jpg`` is the same for social media.
The system's Chromium draws the page, as in the tests.
"""

import base64
import sys
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from jinja2 import Template
from PIL import Image

import rankshot
from rankshot.datasets import load_photographs, write_photographs

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from chromium import launch_chromium  # noqa: E402

IMAGES = ROOT / "docs" / "images"
EXPLAINED = "rocket"
WIDTHS = {"wide": 1200, "narrow": 400}
SCALES = {"wide": 1.5, "narrow": 2}
SOFTWARE = 0x0131
"""The EXIF tag that names the program."""


def main() -> None:
    """Run the network, and draw the result four times."""
    with TemporaryDirectory() as folder:
        write_photographs(folder)
        start = process_time()
        names = sorted(set(load_photographs().labels))
        found = rankshot.recognise(folder, names, model="efficientnet-lite0")
        seconds = process_time() - start
        page = describe(Path(folder), found, seconds)
    template = Template((ROOT / "scripts" / "first_image.html").read_text("utf-8"), autoescape=True)
    with launch_chromium() as browser:
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                image = draw(browser, template.render(**page), width, scheme)
                save(image, IMAGES / f"first-{width}-{scheme}.webp")
                if (width, scheme) == ("wide", "light"):
                    save(image.resize((1200, 630)), IMAGES / "preview.jpg")


def describe(folder, found, seconds):
    """Return each photograph with what is predicted for it, and one explanation."""
    photos = load_photographs()
    rows = [photos.ids.tolist().index(Path(name).name) for name in found.ids]
    best = photos.scores.values[rows].argmax(axis=1)
    predicted = [photos.scores.items[column] for column in best]
    cards = [
        {
            "name": new.replace("_", " "),
            "own": own,
            "correct": new == label,
            "source": "data:image/jpeg;base64,"
            + base64.b64encode((folder / photos.ids[row]).read_bytes()).decode(),
        }
        for row, new, own, label in zip(
            rows, found.labels, predicted, photos.labels[rows], strict=True
        )
    ]
    n_correct = sum(card["correct"] for card in cards)
    (row,) = (i for i, one in enumerate(rows) if photos.labels[one] == EXPLAINED)
    why = rankshot.explain(found.head, photos.scores[rows][row : row + 1])[0]
    evidence = dict(why.items)
    longest = max(evidence[name] for name in why.listed)
    order = sorted(why.listed, key=lambda name: -evidence[name])[:5]
    values = photos.scores.values[rows][row]
    place = {
        name: 1 + int((values > values[photos.scores.items.index(name)]).sum())
        for name in why.listed
    }
    return {
        "cards": cards,
        "explained": cards[row],
        "bars": [(name, 100 * evidence[name] / longest, place[name]) for name in order],
        "correct": f"{n_correct} of {len(cards)} correct",
        "seconds": f"{seconds:.0f} s",
    }


def draw(browser, page, width, scheme):
    """Return the page as an image."""
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 630},
        device_scale_factor=SCALES[width],
        color_scheme=scheme,
    )
    tab = context.new_page()
    tab.set_content(page)
    image = Image.open(BytesIO(tab.screenshot(full_page=True)))
    context.close()
    return image.convert("RGB")


def save(image, path):
    """Write an image, with the version that made it."""
    exif = Image.Exif()
    exif[SOFTWARE] = f"rankshot {rankshot.__version__}"
    image.save(path, quality=76, exif=exif)
    print(f"{path.relative_to(ROOT)}: {image.width} x {image.height}, {path.stat().st_size} B")


if __name__ == "__main__":
    main()
