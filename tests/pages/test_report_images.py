"""Images on a page: made from pixels, read from files of all kinds, and chosen fairly."""

import base64
import io
import os

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from rankshot import RankshotError
from rankshot.pages import build_report
from rankshot.pages.images import (
    Outcomes,
    Thumbnail,
    choose_images,
    describe_choice,
    find_files,
)
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


def random_outcomes(rng, L, n, known=True):
    classes = [f"c{i}" for i in range(L)]
    proba = rng.dirichlet(np.full(L, 0.3), size=n)
    predicted = np.array(classes)[proba.argmax(axis=1)]
    truth = np.array(classes)[rng.integers(0, L, n)]
    return Outcomes(range(n), predicted, proba, truth if known else None, classes)


@pytest.mark.parametrize("L", [1, 10, 31])
def test_each_class_shows_its_surest_rights_and_wrongs(rng, L):
    outcomes = random_outcomes(rng, L, 2000)
    some = np.sort(rng.permutation(2000)[:1500])
    rows = choose_images(outcomes, some)
    assert len(set(rows)) == len(rows) <= 60
    assert set(rows) <= set(some.tolist())
    each = max(60 // (2 * L), 1)
    shown = {str(outcomes.truth[row]) for row in rows}
    assert len(shown) == min(L, 30)
    sure = outcomes.proba.max(axis=1)
    for name in shown:
        for right in (True, False):
            theirs = [
                row
                for row in some.tolist()
                if outcomes.truth[row] == name and (outcomes.predicted[row] == name) == right
            ]
            best = sorted(theirs, key=lambda row: -sure[row])[:each]
            assert [row for row in rows if row in theirs] == best
    # The first images are of all classes, as right as wrong.
    if L == 10:
        first = rows[:20]
        assert sorted(outcomes.truth[first]) == sorted([*outcomes.classes, *outcomes.classes])
        assert (outcomes.predicted[first] == outcomes.truth[first]).tolist() == [True, False] * 10
    assert f"{len(rows)} of 2,000" in describe_choice(outcomes, rows)


@pytest.mark.parametrize("L", [1, 10, 31])
def test_without_the_truth_each_class_shows_its_most_and_least_probable(rng, L):
    outcomes = random_outcomes(rng, L, 2000, known=False)
    rows = choose_images(outcomes, np.arange(2000))
    each, sure = max(60 // (2 * L), 1), outcomes.proba.max(axis=1)
    shown = {str(outcomes.predicted[row]) for row in rows}
    assert len(shown) == min(L, 30)
    for name in shown:
        theirs = sorted(np.flatnonzero(outcomes.predicted == name), key=lambda row: -sure[row])
        expected = [theirs[i] for n in range(each) for i in (n, -1 - n)]
        assert [row for row in rows if outcomes.predicted[row] == name] == expected
    assert f"{len(rows)} of 2,000" in describe_choice(outcomes, rows)
    assert describe_choice(outcomes, range(2000)) == describe_choice(outcomes, []) == ""


@pytest.mark.parametrize("known", [True, False])
def test_rejected_inputs_are_counted_and_have_no_image(rng, known):
    outcomes = random_outcomes(rng, 3, 20, known)
    outcomes.predicted[:2] = "none of these"
    pixels = rng.integers(0, 256, size=(20, 8, 8, 3), dtype=np.uint8)
    report = build_report("t", outcomes, images=dict(enumerate(pixels)))
    assert {int(one.name) for one in report.gallery} == {*range(2, 20)}
    assert [(card.label, card.value) for card in report.cards] == [("Rejected", "2")]
    assert (report.evaluation is None, report.overview is None) == (not known, known)


def test_an_image_that_cannot_be_read_is_named(rng, tmp_path):
    outcomes = random_outcomes(rng, 3, 3)
    (tmp_path / "broken.png").write_bytes(b"nothing")
    pixels = np.zeros((8, 8, 3), np.uint8)
    report = build_report("t", outcomes, images={0: pixels, 2: tmp_path / "broken.png"})
    assert [one.name for one in report.gallery] == ["0"]
    assert len(report.notes) == 1
    assert str(tmp_path) not in report.notes[0]
