"""Make the first image of README and site again: sentences, and what is predicted for them.

    make first-image

It runs the first program of the README, and shows some of its predictions, for wide and for narrow
screens, in light and in dark colours. ``preview.jpg`` is the same for social media. The system's
Chromium draws the page, as in the tests.
"""

import sys
from io import BytesIO
from pathlib import Path

from jinja2 import Template
from PIL import Image

import rankshot

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from measure_first_program import run_first_program  # noqa: E402

from chromium import launch_chromium  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SHOWN = (
    "Awbody hes the richt til a nationality.",
    "Ugnunu hà dirittu à una naziunalità.",
    "Elk un een hett dat Recht, dat he een",
    "Sing saha bae boga hak dina",
    "Elkeen het die reg tot burgerskap.",
    "Toda persona tiene derecho a una nacionalidad.",
)
"""How the sentences in the image begin: one sentence in new languages, then in old ones. The last
is an error."""
LONGEST = 47
"""Characters of a sentence."""
NAMES = {
    "ace": "Acehnese",
    "af": "Afrikaans",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "fy": "Frisian",
    "id": "Indonesian",
    "it": "Italian",
    "jv": "Javanese",
    "lij": "Ligurian",
    "ms": "Malay",
    "nl": "Dutch",
    "pcm": "Pidgin",
    "vec": "Venetian",
}
WIDTHS = {"wide": 940, "narrow": 380}
SCALES = {"wide": 2, "narrow": 2}
SOFTWARE = 0x0131
"""The EXIF tag that names the program."""


def main() -> None:
    """Run the program, and draw its result four times."""
    page = describe(**run_first_program())
    template = Template((ROOT / "scripts" / "first_image.html").read_text("utf-8"), autoescape=True)
    with launch_chromium() as browser:
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                image = draw(browser, template.render(**page), width, scheme)
                save(image, IMAGES / f"first-{width}-{scheme}.webp")
                if (width, scheme) == ("wide", "light"):
                    save(frame(image), IMAGES / "preview.jpg")


def describe(data, similar, before, added, **_):
    """Return some sentences: what is predicted before and after, and the list that was added."""
    rows = []
    for start in SHOWN:
        row = next(i for i, text in enumerate(data.texts) if text.startswith(start))
        truth = data.labels[row]
        rows.append(
            {
                "text": shorten(data.texts[row]),
                "list": ", ".join(NAMES[one] for one in similar.get(truth, ())),
                "guesses": [
                    (NAMES.get(labels[row], labels[row]), labels[row] == truth)
                    for labels in (before, added.labels)
                ],
            }
        )
    return {"rows": rows}


def shorten(text):
    """Return a sentence, or its first words."""
    if len(text) <= LONGEST:
        return text
    return text[: LONGEST - 2].rpartition(" ")[0] + " …"


def draw(browser, page, width, scheme):
    """Return the page as an image without a background: that of the reader shows through."""
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 100},
        device_scale_factor=SCALES[width],
        color_scheme=scheme,
    )
    tab = context.new_page()
    tab.set_content(page)
    image = Image.open(BytesIO(tab.screenshot(full_page=True, omit_background=True)))
    context.close()
    return image


def frame(image):
    """Return an image in the middle of a white one of 1200 x 630 pixels."""
    small = image.resize((1160, round(1160 * image.height / image.width)))
    preview = Image.new("RGB", (1200, 630), "white")
    preview.paste(small, (20, (630 - small.height) // 2), small)
    return preview


def save(image, path):
    """Write an image, with the version that made it."""
    exif = Image.Exif()
    exif[SOFTWARE] = f"rankshot {rankshot.__version__}"
    image.save(path, quality=80, exif=exif)
    print(f"{path.relative_to(ROOT)}: {image.width} x {image.height}, {path.stat().st_size} B")


if __name__ == "__main__":
    main()
