"""The images that pages and README share: they come from this version and from this gallery."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import rankshot

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs" / "gallery"
IMAGES = ROOT / "docs" / "images"
SHARED = sorted(path.name for path in (*IMAGES.glob("*.png"), *IMAGES.glob("first-*.webp")))
AGAIN = "make screenshots, make first-image"
SOFTWARE = 0x0131
"""The tag of the program that made a WebP image."""


@pytest.fixture(scope="module")
def copied():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        return runpy.run_path(str(ROOT / "scripts" / "take_screenshots.py"))["COPIED"]


@pytest.mark.parametrize("name", SHARED)
def test_an_image_is_small_shown_and_made_by_this_version(name):
    path = IMAGES / name
    with Image.open(path) as image:
        made_by = image.info.get("Software") or image.getexif()[SOFTWARE]
    assert made_by == f"rankshot {rankshot.__version__}", AGAIN
    assert path.stat().st_size < 200_000
    assert is_shown(name)


def is_shown(name):
    folders = ("docs", "docs/guide", "survey", "survey/docs")
    pages = [page for folder in folders for page in (ROOT / folder).glob("*.md")]
    pages += [ROOT / "README.md"]
    return any(re.search(rf"images/{name}\b", page.read_text("utf-8")) for page in pages)


@pytest.mark.skipif(not GALLERY.exists(), reason="the site is not built: make docs")
def test_copied_images_are_those_of_the_gallery(copied):
    for name, source in copied.items():
        # Fewer colours, and other digits of another processor, change little.
        shown, drawn = (
            np.asarray(Image.open(path).convert("RGB"), dtype=float)
            for path in (IMAGES / f"{name}.png", GALLERY / source)
        )
        assert shown.shape == drawn.shape, AGAIN
        assert np.abs(shown - drawn).mean() < 1, AGAIN
