"""Images: files become upright RGB on white, and then what transformers' own processors make."""

import json
import os
import struct
import subprocess
import sys
import warnings
import zlib
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from rankshot import RankshotError
from rankshot.core import images
from rankshot.core.images import MAX_PIXELS, ignore_pillow_warnings, read_image
from rankshot.recognition import Preprocessing
from rankshot.recognition.images import (
    PRESETS,
    fit_to_shape,
)
from refusals import refuses
from tiny_models import BLUE, RED, two_halves, write_images

WHITE = (255, 255, 255)


def assert_colors(image, left, right, within=30):
    assert image.mode == "RGB"
    pixels = np.asarray(image).astype(int)
    height, width, _ = pixels.shape
    found = pixels[height // 2, width // 4], pixels[height // 2, 3 * width // 4]
    for one, wanted in zip(found, (left, right), strict=True):
        assert np.abs(one - wanted).max() <= within, (one, wanted)


def test_formats_and_modes(tmp_path):
    for mode, file in (("CMYK", "a.jpg"), ("P", "a.gif"), ("RGBA", "a.webp")):
        (two_halves().quantize(2) if mode == "P" else two_halves().convert(mode)).save(
            tmp_path / file
        )
        assert_colors(read_image(tmp_path / file), RED, BLUE)


def test_grey_has_three_equal_channels(tmp_path):
    grey = Image.new("L", (40, 20), 255)
    grey.paste(0, (20, 0, 40, 20))
    sixteen = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    for image in (grey.convert("1"), grey, grey.convert("LA"), sixteen):
        image.save(tmp_path / "a.png")
        assert_colors(read_image(tmp_path / "a.png"), WHITE, (0, 0, 0), within=0)
    # They are scaled and not clipped.
    Image.fromarray(np.full((20, 40), 0x4000, np.uint16)).save(tmp_path / "a.png")
    assert_colors(read_image(tmp_path / "a.png"), (64,) * 3, (64,) * 3, within=0)


def test_transparent_parts_are_white(tmp_path):
    image = two_halves().convert("RGBA")
    image.paste((0, 0, 0, 0), (20, 0, 40, 20))
    image.save(tmp_path / "a.png")
    assert_colors(read_image(tmp_path / "a.png"), RED, WHITE, within=0)
    Image.new("RGBA", (40, 20), (0, 0, 0, 128)).save(tmp_path / "half.png")
    assert_colors(read_image(tmp_path / "half.png"), (127,) * 3, (127,) * 3, within=1)


def test_photographs_are_turned_upright(tmp_path):
    """Orientation 6, say, is a camera held upright: what it stored must be turned clockwise."""
    image = two_halves()
    image.paste((0, 250, 0), (0, 0, 10, 5))
    stored = np.asarray(image)
    mirrored = stored[:, ::-1]
    upright = [stored, mirrored, np.rot90(stored, 2), np.rot90(mirrored, 2)]
    upright += [np.rot90(mirrored), np.rot90(stored, -1), np.rot90(mirrored, -1), np.rot90(stored)]
    for orientation, wanted in enumerate(upright, 1):
        exif = Image.Exif()
        exif[0x0112] = orientation
        image.save(tmp_path / "a.png", exif=exif)
        np.testing.assert_array_equal(np.asarray(read_image(tmp_path / "a.png")), wanted)
        small = np.asarray(read_image(tmp_path / "a.png", 20))
        assert small.shape == (wanted.shape[0] // 2, wanted.shape[1] // 2, 3)


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
        (b"no image", "not an image"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage", "not an image"),
        (bomb(MAX_PIXELS // 1000, 1001), "more than 100 million pixels"),
        (bomb(100_000, 100_000), "more than 100 million pixels"),
        (bomb(300, 300), "damaged"),
    ],
)
def test_what_is_not_an_image_is_refused_with_a_reason(tmp_path, content, reason):
    (tmp_path / "a.png").write_bytes(content)
    before = Image.MAX_IMAGE_PIXELS, list(warnings.filters)
    with ignore_pillow_warnings(), pytest.raises(RankshotError, match=reason) as error:
        read_image(tmp_path / "a.png")
    assert str(tmp_path) not in str(error.value)
    assert (Image.MAX_IMAGE_PIXELS, list(warnings.filters)) == before


def test_an_image_of_the_largest_size_is_read(tmp_path, monkeypatch):
    two_halves().save(tmp_path / "a.png")
    monkeypatch.setattr(images, "MAX_PIXELS", 40 * 20)
    assert read_image(tmp_path / "a.png").size == (40, 20)


def test_floating_point_pixels(tmp_path):
    Image.fromarray(np.ones((5, 5), np.float32)).save(tmp_path / "a.tif")
    with pytest.raises(RankshotError, match="floating-point numbers"):
        read_image(tmp_path / "a.tif")


@pytest.mark.slow
def test_what_is_no_regular_file_is_not_opened(tmp_path):
    """A pipe without a writer would block the run for ever; /dev/zero never ends."""
    write_images(tmp_path, 1)
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    # A bound socket would need a short path; a folder is refused in the same way.
    (tmp_path / "folder").mkdir()
    names = ["0000.png", "pipe.jpg", "zero.png"]
    (tmp_path / "list.txt").write_text("\n".join([*names, "folder"]))
    program = """
import sys, rankshot as rs
from rankshot.recognition import Preprocessing
plain = Preprocessing(8, 0, 1)
run = lambda batch: batch.mean(axis=(2, 3))
for inputs in (sys.argv[1], sys.argv[1] + "/list.txt"):
    found = rs.recognition.score(run, inputs, list("rgb"), preprocessing=plain, on_error="skip")
    print(*[one.id for one in found.skipped if one.reason == "not a regular file"])
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "pipe.jpg zero.png\npipe.jpg zero.png folder\n"


# ---- Preprocessing


def noise(rng, height, width):
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "options"),
    [
        ("vit", "ViT", {"size": {"height": 30, "width": 50}, "resample": 3}),
        ("vit", "ViT", {"do_normalize": False}),
        ("clip", "CLIP", {}),
        ("clip", "CLIP", {"size": {"shortest_edge": 60}, "crop_size": 91}),
        ("siglip", "Siglip", {}),
        ("bit", "Bit", {"rescale_factor": 1 / 127.5, "image_mean": [1, 1, 1]}),
    ],
)
def test_a_config_file_does_what_transformers_does(rng, module, name, options):
    package = import_module(f"transformers.models.{module}.image_processing_pil_{module}")
    processor = getattr(package, f"{name}ImageProcessorPil")(**options)
    ours = Preprocessing.read(json.loads(processor.to_json_string()))
    assert name != "CLIP" or options or ours == Preprocessing.read("clip")
    for shape in ((300, 211), (90, 20)):
        image = noise(rng, *shape)
        wanted = processor(images=image, return_tensors="np")["pixel_values"][0]
        found = ours(image)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, wanted, atol=2e-6)


def test_imagenet_crops_where_torchvision_does(rng):
    """By the formula of torchvision's center_crop: int(round((side - size) / 2.0))."""
    for image in (noise(rng, 256, 257), noise(rng, 259, 256), noise(rng, 256, 300)):
        left, top = (round((side - 224) / 2.0) for side in image.size)
        pixels = np.asarray(image)[top : top + 224, left : left + 224] / 255
        wanted = (pixels - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        found = Preprocessing.read("imagenet")(image)
        np.testing.assert_allclose(found, wanted.transpose(2, 0, 1), atol=1e-6)


def test_small_images_are_padded_as_torchvision_does():
    """It pads by (size - side) // 2 on the left and on top."""
    for side in (3, 4, 5, 6):
        prepare = Preprocessing(8, 0, 1, resize=side, margin="even")
        found = prepare(Image.new("RGB", (side, side), "white"))[0]
        begin = (8 - side) // 2
        assert found.sum() == side**2
        assert (found[begin : begin + side, begin : begin + side] == 1).all()


def test_means_of_pixels_from_0_to_255_are_refused():
    for values in ({"mean": (0.5, 123.7, 0.5)}, {"std": 58.4}):
        with refuses(*values):
            replace(PRESETS["imagenet"], **values)
    assert Preprocessing(8, 127, 128, white=255).mean == (127, 127, 127)
    for values in ({"resize": 10**6}, {"resize": 0}, {"size": 10**6}, {"margin": "left"}):
        with refuses(*values):
            replace(PRESETS["imagenet"], **values)


PLAIN = {"do_normalize": False}
REFUSED = [
    {"size": 224, "image_mean": [0, 0, 0], "resample": 2},
    {"size": 224, "do_flip_channel_order": True},
    {"size": {"shortest_edge": 9}, "resample": 2} | PLAIN,
    {"size": 9, "crop_pct": 0.9, "resample": 2} | PLAIN,
    {"size": 9, "do_resize": False} | PLAIN,
    {"image_processor_type": "ConvNextImageProcessor"},
    [1],
]


@pytest.mark.parametrize("step", ["do_resize", "do_normalize", "do_center_crop", "do_pad"])
@pytest.mark.parametrize("value", ["false", 1, "true", []])
def test_a_step_is_true_or_false(step, value):
    with refuses(step, value):
        Preprocessing.read({"size": 9, "resample": 2, **PLAIN, step: value})


def test_what_a_config_file_must_say(tmp_path):
    path = tmp_path / "preprocessor_config.json"
    for config in REFUSED:
        path.write_text(json.dumps(config))
        with refuses("preprocessing"):
            Preprocessing.read(path)
    values = {"size": 9, "do_normalize": False, "resample": 2}
    path.write_text(json.dumps(values))
    assert Preprocessing.read(path) == Preprocessing.read(values) == Preprocessing(9, 0, 1)
    with refuses("preset", "imagnet"):
        Preprocessing.read("imagnet")


def test_layouts_are_read_from_shapes():
    plain = Preprocessing((64, 32), 0, 1)
    other = replace(plain, layout="NHWC")
    for shape in (("n", 3, 64, 32), ("n", 3, "h", "w")):
        assert fit_to_shape(other, shape, "net") == plain
    assert fit_to_shape(plain, (None, 64, 32, 3), "net") == other
    # The channels may be anywhere.
    assert fit_to_shape(other, ("n", 3, 3, 3), "net") == other
    with refuses("model", where="net"):
        fit_to_shape(plain, ("n", 7), "net")
    with refuses("preprocessing", where="net"):
        fit_to_shape(plain, ("n", 3, 9, 7), "net")
