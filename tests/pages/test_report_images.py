"""Images on a page: made from pixels, read from files of all kinds, and chosen fairly."""

import base64
import io
import os

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from rankshot import RankshotError
from rankshot.pages import build_report
from rankshot.pages.explanations import choose_inputs
from rankshot.pages.images import Outcomes, Thumbnail, find_files
from tiny_models import two_halves


def decode(thumbnail):
    """Return the pixels that a browser shows, as Pillow decodes them."""
    return np.asarray(Image.open(io.BytesIO(thumbnail.data)).convert("RGB"))


# ---- Pixels


def test_tiny_images_keep_every_pixel(rng):
    pixels = rng.integers(0, 256, size=(5, 17, 3), dtype=np.uint8)
    thumbnail = Thumbnail.make(pixels)
    np.testing.assert_array_equal(decode(thumbnail), pixels)
    assert base64.b64decode(thumbnail.uri.partition("base64,")[2]) == thumbnail.data
    assert thumbnail.is_tiny


# ---- Files


def test_nothing_but_pixels_gets_into_the_page(tmp_path):
    exif = Image.Exif()
    exif[0x010E] = "SECRET place"
    two_halves(300, 200).save(tmp_path / "a.jpg", exif=exif, comment=b"SECRET comment")
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", "SECRET words")
    two_halves(40, 40).save(tmp_path / "b.png", pnginfo=notes, exif=exif)
    assert b"SECRET" in (tmp_path / "a.jpg").read_bytes()
    for file in find_files(tmp_path, "ab").values():
        assert b"SECRET" not in Thumbnail.make(file).data


def test_nothing_outside_of_the_folder_is_read(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside / "deep", outside):
        folder.mkdir(parents=True)
        two_halves(300, 200).save(folder / "a.png")
    (inside / "link.png").symlink_to(outside / "a.png")
    (inside / "far").symlink_to(outside)
    (inside / "near.png").symlink_to(inside / "deep" / "a.png")
    os.mkfifo(inside / "pipe.png")
    (inside / "folder.png").mkdir()
    names = ["../out/a", "../out/a.png", str(outside / "a"), "far/a", "deep/../../out/a"]
    names += [str(inside / "deep" / "a"), "/deep/a", "a", "", ".", "..", "a\0b", "a\0b/c"]
    names += ["x" * 5000 + "/a", "link", "pipe", "folder"]
    assert find_files(inside, names) == {}
    found = find_files(inside, ["deep/a", "deep/a.png", "near"])
    assert len(found) == 3
    for file in found.values():
        shown = decode(Thumbnail.make(file))
        assert shown[32, 24].argmax() == 0
        assert shown[32, 72].argmax() == 2
    with pytest.raises(RankshotError):
        Thumbnail.make(inside / "pipe.png")


# ---- Choice


PROBA = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6], [0.55, 0.45], [0.5, 0.5]])
PREDICTED = np.array(["cat", "cat", "dog", "dog", "cat", "none of these"])
TRUTH = np.array(["cat", "cat", "cat", "dog", "dog", "dog"])
SMALL = Outcomes([f"input {i}" for i in range(6)], PREDICTED, PROBA, TRUTH, ["cat", "dog"])


@pytest.mark.parametrize(
    ("outcomes", "candidates", "rows"),
    [
        # A correct and a wrong prediction of each class, and then the next ones.
        (SMALL, range(6), [0, 2, 3, 4, 1]),
        (SMALL, [1, 3, 5], [1, 3]),
        # The most and the least probable prediction of each class, and then the next ones.
        (SMALL._replace(truth=None), range(6), [0, 4, 2, 3, 1]),
        (SMALL._replace(truth=None), [5], []),
    ],
)
def test_inputs_of_all_classes_are_chosen_in_turn(outcomes, candidates, rows):
    assert choose_inputs(outcomes, np.array(candidates, int)) == rows


def test_at_most_sixty_inputs_are_chosen():
    names = [f"c{i:02}" for i in range(40)]
    many = Outcomes(range(80), np.repeat(names, 2), np.repeat(np.eye(40), 2, axis=0), None, names)
    assert choose_inputs(many, np.arange(80)) == [2 * i + j for i in range(30) for j in (0, 1)]


@pytest.mark.parametrize("truth", [TRUTH, None])
def test_rejected_inputs_are_counted_and_have_no_image(truth):
    pixels = {row: np.zeros((8, 8, 3), np.uint8) for row in (0, 2, 3, 5)}
    report = build_report("t", SMALL._replace(truth=truth), images=pixels)
    assert [one.name for one in report.inputs] == ["input 0", "input 2", "input 3"]
    assert all(one.thumbnail.is_tiny for one in report.inputs)
    assert [(card.label, card.value) for card in report.cards] == [("Rejected", "1")]
    assert (report.evaluation is None) == (truth is None) == (report.overview is not None)


def test_an_image_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"nothing")
    images = {0: np.zeros((8, 8, 3), np.uint8), 2: tmp_path / "broken.png"}
    report = build_report("t", SMALL, images=images)
    assert [one.name for one in report.inputs] == ["input 0"]
    assert len(report.notes) == 1
    assert str(tmp_path) not in report.notes[0]
