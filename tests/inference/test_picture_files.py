"""Odd picture files: each becomes upright RGB on white, or is refused with its reason."""

import os
import struct
import subprocess
import sys
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image, ImageOps

from rankshot import RankshotError
from rankshot.inference.pictures import MAX_PIXELS, ignore_pillow_warnings, read_picture
from tiny_models import write_pictures

RED, BLUE, WHITE = (250, 10, 20), (10, 20, 250), (255, 255, 255)


def halves(mode="RGB", width=40, height=20):
    """Return a picture whose left half is red and whose right half is blue."""
    image = Image.new("RGB", (width, height), RED)
    image.paste(BLUE, (width // 2, 0, width, height))
    return image.convert(mode)


def assert_colors(image, left, right, within=30):
    assert image.mode == "RGB"
    pixels = np.asarray(image).astype(int)
    height, width, _ = pixels.shape
    found = pixels[height // 2, width // 4], pixels[height // 2, 3 * width // 4]
    for one, wanted in zip(found, (left, right), strict=True):
        assert np.abs(one - wanted).max() <= within, (one, wanted)


@pytest.mark.parametrize("ending", ["jpg", "png", "webp", "bmp", "tif", "ppm", "gif", "avif"])
def test_formats(tmp_path, ending):
    file = tmp_path / f"a.{ending}"
    halves().save(file)
    image = read_picture(file)
    assert image.size == (40, 20)
    assert_colors(image, RED, BLUE)


@pytest.mark.parametrize("ending", ["png", "bmp", "tif"])
def test_lossless_pixels_are_kept_exactly(tmp_path, rng, ending):
    pixels = rng.integers(0, 256, (7, 9, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / f"a.{ending}")
    np.testing.assert_array_equal(np.asarray(read_picture(tmp_path / f"a.{ending}")), pixels)


@pytest.mark.parametrize("mode", ["CMYK", "P", "RGBA"])
def test_colors_of_other_modes(tmp_path, mode):
    file = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    (halves().quantize(2) if mode == "P" else halves(mode)).save(file)
    assert_colors(read_picture(file), RED, BLUE)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "I;16"])
def test_grey_has_three_equal_channels(tmp_path, mode):
    grey = Image.new("L", (40, 20), 255)
    grey.paste(0, (20, 0, 40, 20))
    if mode == "I;16":
        grey = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    else:
        grey = grey.convert(mode)
    grey.save(tmp_path / "a.png")
    assert_colors(read_picture(tmp_path / "a.png"), WHITE, (0, 0, 0), within=0)


def test_sixteen_bits_are_scaled_and_not_clipped(tmp_path):
    Image.fromarray(np.full((20, 40), 0x4000, np.uint16)).save(tmp_path / "a.png")
    assert_colors(read_picture(tmp_path / "a.png"), (64,) * 3, (64,) * 3, within=0)


def test_transparent_parts_are_white(tmp_path):
    image = halves("RGBA")
    image.paste((0, 0, 0, 0), (20, 0, 40, 20))
    image.save(tmp_path / "a.png")
    assert_colors(read_picture(tmp_path / "a.png"), RED, WHITE, within=0)
    Image.new("RGBA", (40, 20), (0, 0, 0, 128)).save(tmp_path / "half.png")
    assert_colors(read_picture(tmp_path / "half.png"), (127,) * 3, (127,) * 3, within=1)


def test_a_transparent_colour_of_a_palette_is_white(tmp_path):
    image = Image.new("P", (40, 20), 0)
    image.putpalette([0, 0, 0, *RED])
    image.paste(1, (20, 0, 40, 20))
    image.info["transparency"] = 0
    image.save(tmp_path / "a.png")
    assert_colors(read_picture(tmp_path / "a.png"), WHITE, RED, within=0)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_photographs_are_turned_upright(tmp_path, orientation):
    """As Pillow's own exif_transpose does."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = halves()
    image.paste((0, 250, 0), (0, 0, 10, 5))
    image.save(tmp_path / "a.png", exif=exif)
    with Image.open(tmp_path / "a.png") as stored:
        wanted = np.asarray(ImageOps.exif_transpose(stored))
    np.testing.assert_array_equal(np.asarray(read_picture(tmp_path / "a.png")), wanted)


def test_the_first_frame_of_an_animation_counts(tmp_path):
    frames = [Image.new("RGB", (40, 20), color) for color in (RED, BLUE)]
    for ending in ("gif", "webp"):
        file = tmp_path / f"a.{ending}"
        frames[0].save(file, save_all=True, append_images=frames[1:], duration=50)
        with Image.open(file) as animation:
            assert animation.n_frames == 2
        assert_colors(read_picture(file), RED, RED)


def test_floating_point_pixels_are_refused(tmp_path):
    Image.fromarray(np.ones((5, 5), np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(RankshotError, match="floating-point numbers"):
        read_picture(tmp_path / "a.tif")


# ---- Hostile files


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(width, height):
    """Return a small PNG that claims to be as large as this."""
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(bytes(1000), 9))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + data + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "an empty file"),
        (b"no picture", "not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage", "not a picture"),
        (bomb(MAX_PIXELS // 1000, 1001), r"more than 100 million pixels \(100000 x 1001\)"),
        (bomb(100_000, 100_000), "more than 100 million pixels"),
        (bomb(300, 300), "damaged"),
    ],
)
def test_what_is_no_picture_is_refused_with_a_reason(tmp_path, content, reason):
    (tmp_path / "a.png").write_bytes(content)
    before = Image.MAX_IMAGE_PIXELS, list(warnings.filters)
    with ignore_pillow_warnings(), pytest.raises(RankshotError, match=reason) as error:
        read_picture(tmp_path / "a.png")
    assert str(tmp_path) not in str(error.value)
    assert (Image.MAX_IMAGE_PIXELS, list(warnings.filters)) == before


@pytest.mark.parametrize("ending", ["jpg", "png", "gif", "webp", "bmp", "tif"])
def test_truncated_files_are_refused(tmp_path, rng, ending):
    file = tmp_path / f"a.{ending}"
    Image.fromarray(rng.integers(0, 256, (90, 90, 3), dtype=np.uint8)).save(file)
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    with ignore_pillow_warnings(), pytest.raises(RankshotError, match=r"damaged|not a picture"):
        read_picture(file)


def test_a_missing_file_or_library_says_so(tmp_path, monkeypatch):
    with pytest.raises(RankshotError, match="No such file"):
        read_picture(tmp_path / "nothing.png")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(RankshotError, match=r"need Pillow: pip install 'rankshot\[pictures\]'"):
        read_picture(tmp_path / "a.png")


def test_what_is_no_regular_file_is_not_opened(tmp_path):
    """A pipe without a writer would block the run for ever; /dev/zero never ends."""
    write_pictures(tmp_path, 1)
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    # A bound socket would need a short path; a folder is refused in the same way.
    (tmp_path / "folder").mkdir()
    names = ["0000.png", "pipe.jpg", "zero.png"]
    (tmp_path / "list.txt").write_text("\n".join([*names, "folder"]))
    program = """
import sys, rankshot as rs
from rankshot.inference import Preprocessing
plain = Preprocessing(8, 0, 1)
run = lambda batch: batch.mean(axis=(2, 3))
for inputs in (sys.argv[1], sys.argv[1] + "/list.txt"):
    found = rs.inference.score(run, inputs, list("rgb"), preprocessing=plain, on_error="skip")
    print(*[one.id for one in found.skipped if one.reason == "not a regular file"])
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "pipe.jpg zero.png\npipe.jpg zero.png folder\n"
