"""Make the first image of README and site again: sentences, and what is predicted for them.

    make first-image

It runs the first program of the README, and shows some of its predictions, for wide and for narrow
screens, in light and in dark colours. ``preview.jpg`` is the same for social media. The system's
Chromium draws the page, as in the tests.
"""

import re
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
from jinja2 import Template
from PIL import Image

import rankshot

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from chromium import launch_chromium  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SHOWN = (
    "Awbody hes the richt til a nationality.",
    "Ugnunu hà dirittu à una naziunalità.",
    "Пур халӑх та тивӗҫлӗ тата хисепре",
    "Elk un een hett dat Recht, dat he een tohört.",
    "Sing saha bae nampa pangaku nu sarua",
    "Matag usa nga sinumbong sa usa ka may silot",
    "Setiap orang berhak atas pengakuan",
)
"""How the sentences in the image begin. The last two are errors: one of either kind."""
EXPLAINED = SHOWN[0]
LONGEST = 46
"""Characters of a sentence."""
NAMES = {
    "ba": "Bashkir",
    "en": "English",
    "fy": "Frisian",
    "id": "Indonesian",
    "jv": "Javanese",
    "lij": "Ligurian",
    "nl": "Dutch",
    "pcm": "Nigerian Pidgin",
    "tl": "Tagalog",
}
WIDTHS = {"wide": 1200, "narrow": 400}
SCALES = {"wide": 1.5, "narrow": 2}
SOFTWARE = 0x0131
"""The EXIF tag that names the program."""


def main() -> None:
    """Run the program, and draw its result four times."""
    text = (ROOT / "README.md").read_text("utf-8")
    program: dict = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], program)
    page = describe(**program)
    template = Template((ROOT / "scripts" / "first_image.html").read_text("utf-8"), autoescape=True)
    with launch_chromium() as browser:
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                image = draw(browser, template.render(**page), width, scheme)
                save(image, IMAGES / f"first-{width}-{scheme}.webp")
                if (width, scheme) == ("wide", "light"):
                    save(frame(image), IMAGES / "preview.jpg")


def describe(data, similar, score, before, added, **_):
    """Return some sentences with their languages, the shares that are correct, and one list."""
    rows = [next(i for i, text in enumerate(data.texts) if text.startswith(s)) for s in SHOWN]
    shares = [np.asarray(labels) == data.labels for labels in (before, added.labels)]
    known = score([data.texts[rows[0]]])
    values = dict(zip(known.items, known.values[0], strict=True))
    low, high = min(values.values()), max(values.values())
    return {
        "rows": [
            {
                "text": shorten(data.texts[row]),
                "before": NAMES[before[row]],
                "after": NAMES.get(added.labels[row], added.labels[row]),
                "truth": NAMES.get(data.labels[row], data.labels[row]),
                "correct": added.labels[row] == data.labels[row],
            }
            for row in rows
        ],
        "new": [f"{share[data.is_new].mean():.0%}" for share in shares],
        "old": [f"{share[~data.is_new].mean():.0%}" for share in shares],
        "bars": [
            (NAMES[one], 100 * (values[one] - low) / (high - low)) for one in similar["Scots"]
        ],
    }


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
