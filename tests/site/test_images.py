"""The images that pages and README share: they come from this version and from this gallery."""

import re
import runpy
import sys

import numpy as np
import pytest
from gallery_pages import BUILT, GALLERY, ROOT
from PIL import Image

import rankshot

IMAGES = ROOT / "docs" / "images"
AGAIN = "make screenshots"


@pytest.fixture(scope="module")
def copied():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        return runpy.run_path(str(ROOT / "scripts" / "take_screenshots.py"))["COPIED"]


@pytest.mark.parametrize("name", sorted(path.name for path in IMAGES.glob("*.png")))
def test_an_image_is_small_shown_and_made_by_this_version(name):
    path = IMAGES / name
    with Image.open(path) as image:
        assert image.info.get("Software") == f"rankshot {rankshot.__version__}", AGAIN
    assert path.stat().st_size < 200_000
    assert is_shown(name)


def is_shown(name):
    folders = ("docs", "docs/guide", "survey", "survey/docs")
    pages = [page for folder in folders for page in (ROOT / folder).glob("*.md")]
    pages += [ROOT / "README.md"]
    return any(re.search(rf"images/{name}\b", page.read_text("utf-8")) for page in pages)


@pytest.mark.parametrize("name", sorted(path.name for path in IMAGES.glob("first-*.webp")))
def test_the_first_image_is_small_shown_and_made_by_this_version(name):
    with Image.open(IMAGES / name) as image:
        assert image.getexif()[0x0131] == f"rankshot {rankshot.__version__}", "make first-image"
    assert (IMAGES / name).stat().st_size < 200_000
    assert is_shown(name)


@pytest.mark.skipif(not BUILT, reason="the site is not built: make docs")
def test_copied_images_are_those_of_the_gallery(copied):
    for name, source in copied.items():
        # Fewer colours, and other digits of another processor, change little.
        shown, drawn = (
            np.asarray(Image.open(path).convert("RGB"), dtype=float)
            for path in (IMAGES / f"{name}.png", GALLERY / source)
        )
        assert shown.shape == drawn.shape, AGAIN
        assert np.abs(shown - drawn).mean() < 1, AGAIN
