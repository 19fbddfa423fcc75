"""Preprocessing against transformers' own processors, and against plain NumPy."""

import json
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

from rankshot import RankshotError
from rankshot.inference import Preprocessing
from rankshot.inference.pictures import (
    as_preprocessing,
    change_preprocessing,
    find_layout,
    fit_to_shape,
)


def noise(rng, height, width):
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize("shape", [(40, 70), (300, 211), (224, 224), (90, 20)])
@pytest.mark.parametrize(
    ("module", "name", "options"),
    [
        ("vit", "ViTImageProcessorPil", {}),
        ("vit", "ViTImageProcessorPil", {"size": {"height": 30, "width": 50}, "resample": 3}),
        ("vit", "ViTImageProcessorPil", {"do_normalize": False}),
        ("clip", "CLIPImageProcessorPil", {}),
        ("clip", "CLIPImageProcessorPil", {"size": {"shortest_edge": 60}, "crop_size": 91}),
        ("convnext", "ConvNextImageProcessorPil", {"size": {"shortest_edge": 224}}),
        ("convnext", "ConvNextImageProcessorPil", {}),
        ("siglip", "SiglipImageProcessorPil", {}),
        ("bit", "BitImageProcessorPil", {"rescale_factor": 1 / 127.5, "image_mean": [1, 1, 1]}),
    ],
)
def test_a_config_file_does_what_transformers_does(rng, module, name, options, shape):
    package = import_module(f"transformers.models.{module}.image_processing_pil_{module}")
    processor = getattr(package, name)(**options)
    ours = Preprocessing.from_config(json.loads(processor.to_json_string()))
    image = noise(rng, *shape)
    wanted = processor(images=image, return_tensors="np")["pixel_values"][0]
    found = ours(image)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=2e-6)


NORMAL = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}


@pytest.mark.parametrize("shape", [(40, 70), (300, 211), (90, 20)])
@pytest.mark.parametrize("ending", ["FeatureExtractor", "ImageProcessor", "ImageProcessorFast"])
@pytest.mark.parametrize(
    ("module", "name", "config"),
    [
        ("convnext", "ConvNext", {"size": 224, "crop_pct": 0.875, "resample": 3}),
        ("convnext", "ConvNext", {"size": 100, "crop_pct": 0.7}),
        ("convnext", "ConvNext", {"size": 100}),
        ("convnext", "ConvNext", {"size": 384, "crop_pct": 0.95}),
        ("convnext", "ConvNext", {"size": {"shortest_edge": 64}}),
        ("vit", "ViT", {"size": 50}),
        ("siglip", "Siglip", {"size": {"height": 50, "width": 40}}),
        ("clip", "CLIP", {"size": 50, "do_center_crop": True, "crop_size": 40}),
        ("bit", "Bit", {"size": 50, "do_center_crop": True, "crop_size": 40}),
    ],
)
def test_older_files_mean_what_transformers_reads_in_them(
    rng, tmp_path, module, name, config, ending, shape
):
    """A size that is a single number, and no word on how to resize."""
    package = import_module(f"transformers.models.{module}.image_processing_pil_{module}")
    path = tmp_path / "preprocessor_config.json"
    key = "feature_extractor_type" if ending == "FeatureExtractor" else "image_processor_type"
    path.write_text(json.dumps(config | NORMAL | {key: name + ending}))
    processor = getattr(package, f"{name}ImageProcessorPil").from_pretrained(tmp_path)
    image = noise(rng, *shape)
    wanted = processor(images=image, return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(Preprocessing.from_file(path)(image), wanted, atol=3e-6)


def test_clip_is_the_preset_of_that_name(rng):
    package = import_module("transformers.models.clip.image_processing_pil_clip")
    image = noise(rng, 100, 150)
    wanted = package.CLIPImageProcessorPil()(images=image, return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(Preprocessing.from_name("clip")(image), wanted, atol=2e-6)


def test_efficientnet_lite_is_the_formula_of_its_authors(rng):
    """(255 x - 127) / 128, of the middle 7/8 of the picture."""
    image = noise(rng, 256, 256)
    wanted = (np.asarray(image)[16:240, 16:240].astype(float) - 127) / 128
    found = Preprocessing.from_name("efficientnet-lite")(image)
    np.testing.assert_allclose(found, wanted.transpose(2, 0, 1), atol=1e-6)


def test_imagenet_by_hand(rng):
    image = noise(rng, 256, 300)
    pixels = np.asarray(image)[16:240, 38:262] / 255
    wanted = (pixels - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    found = Preprocessing.from_name("imagenet")(image)
    np.testing.assert_allclose(found, wanted.transpose(2, 0, 1), atol=1e-6)


@pytest.mark.parametrize("width", range(256, 264))
def test_imagenet_crops_where_torchvision_does(rng, width):
    """By the formula of torchvision's center_crop: int(round((side - size) / 2.0))."""
    for image in (noise(rng, 256, width), noise(rng, width, 256)):
        left, top = (round((side - 224) / 2.0) for side in image.size)
        pixels = np.asarray(image)[top : top + 224, left : left + 224] / 255
        wanted = (pixels - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        found = Preprocessing.from_name("imagenet")(image)
        np.testing.assert_allclose(found, wanted.transpose(2, 0, 1), atol=1e-6)


@pytest.mark.parametrize("side", [3, 4, 5, 6])
def test_small_pictures_are_padded_as_torchvision_does(side):
    """It pads by (size - side) // 2 on the left and on top."""
    prepare = Preprocessing(8, 0, 1, resize=side, margin="even")
    found = prepare(Image.new("RGB", (side, side), "white"))[0]
    begin = (8 - side) // 2
    assert found.sum() == side**2
    assert (found[begin : begin + side, begin : begin + side] == 1).all()


def test_channels_last():
    image = Image.new("RGB", (9, 9), (255, 0, 51))
    plain = Preprocessing(4, 0, 1, resize=4, layout="NHWC")
    assert (plain.shape, plain(image).shape) == ((4, 4, 3), (4, 4, 3))
    np.testing.assert_allclose(plain(image)[0, 0], [1, 0, 0.2], atol=1e-6)


def test_small_pictures_have_black_borders():
    found = Preprocessing(8, 0, 1, resize=4)(Image.new("RGB", (9, 9), "white"))[0]
    assert found.sum() == 16
    assert (found[2:6, 2:6] == 1).all()


def test_other_values_keep_the_share_that_is_cropped_away():
    larger = Preprocessing.from_name("imagenet").with_changes(size=(448, 448), mean=[0.5])
    assert (larger.resize, larger.size, larger.mean) == (512, (448, 448), (0.5, 0.5, 0.5))
    assert larger.std == (0.229, 0.224, 0.225)


def test_given_means_are_those_of_pixels_whose_white_is_one(rng):
    image = noise(rng, 40, 40)
    for name in ("imagenet", "efficientnet-lite"):
        changed = Preprocessing.from_name(name).with_changes(size=8, mean=0.5, std=[0.25])
        wanted = (Preprocessing(8, 0, 1, changed.resize, changed.interpolation)(image) - 0.5) / 0.25
        np.testing.assert_allclose(changed(image), wanted, atol=1e-5)


@pytest.mark.parametrize(
    "values", [{"mean": 127}, {"mean": (0.5, 123.7, 0.5)}, {"mean": -2}, {"std": 58.4}]
)
def test_means_of_pixels_from_0_to_255_are_refused(values):
    message = r"(mean|std) is (127|123.7|-2|58.4), but white is 1 here; divide .* by 255"
    for name in ("imagenet", "efficientnet-lite"):
        with pytest.raises(RankshotError, match=message):
            Preprocessing.from_name(name).with_changes(**values)
    with pytest.raises(RankshotError, match=message):
        Preprocessing(**{"size": 8, "mean": 0, "std": 1} | values)
    assert Preprocessing(8, 127, 128, white=255).mean == (127, 127, 127)


PLAIN = {"do_normalize": False}
CONVNEXT = {"image_processor_type": "ConvNextImageProcessor"} | PLAIN


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"size": 224, "image_mean": [0, 0, 0], "resample": 2}, "no 'image_std' in it"),
        ({"size": 224, "do_flip_channel_order": True}, "the step 'do_flip_channel_order'"),
        ({"size": {"shortest_edge": 9}, "resample": 2} | PLAIN, "there is no crop"),
        ({"image_processor_type": "SiglipImageProcessor", "size": 9} | PLAIN, "there is no crop"),
        ({"size": {"longest_edge": 9}, "resample": 2} | PLAIN, "must have height and width"),
        ({"size": 9, "do_normalize": False, "resample": 17}, "resample must be one of 0 to 5"),
        ({"size": 9, "do_resize": False, "do_normalize": False}, "do_resize is false"),
        ({"image_processor_type": "LevitImageProcessor"}, "not all in this file"),
        (
            {"size": 0, "do_normalize": False, "resample": 2},
            "size must be a whole number from 1 to 4096, not 0",
        ),
        ({"size": 9, "do_normalize": False}, "no 'resample' in it; add it: 2 is bilinear"),
        ({"image_processor_type": "Siglip2ImageProcessor"}, "not all in this file"),
        (CONVNEXT | {"size": {"height": 9, "width": 9}}, "shortest_edge must be a whole number"),
        (CONVNEXT | {"size": 9, "crop_pct": 0}, "crop_pct must be positive"),
        (CONVNEXT | {"size": 9, "do_center_crop": True, "crop_size": 8}, "a second is not known"),
        ({"size": 9, "do_normalize": False, "resample": 2, "crop_pct": 0.9}, "for ConvNext only"),
        (
            {"size": 9, "resample": 2, "image_mean": [1, 2], "image_std": 1},
            "mean must be one number or three",
        ),
        (
            {"size": 9, "image_mean": 0, "image_std": [1, 0, 1], "resample": 2},
            "std must be positive",
        ),
    ],
)
def test_what_a_config_file_must_say(tmp_path, config, message):
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(config))
    with pytest.raises(RankshotError, match=message) as error:
        Preprocessing.from_file(path)
    assert str(error.value).startswith(str(path))
    assert str(error.value).count(str(path)) == 1


def test_a_file_a_preset_or_values(tmp_path):
    path = tmp_path / "p.json"
    values = {"size": 9, "do_normalize": False, "resample": 2}
    path.write_text(json.dumps(values))
    assert as_preprocessing(path) == as_preprocessing(values) == Preprocessing(9, 0, 1)
    with pytest.raises(RankshotError, match=r"did you mean 'imagenet'\?"):
        as_preprocessing("imagnet")
    with pytest.raises(RankshotError, match="there is no such file"):
        as_preprocessing("other.json")
    path.write_text("[1")
    with pytest.raises(RankshotError, match="not JSON"):
        as_preprocessing(path)
    path.write_text("[1]")
    with pytest.raises(RankshotError, match="must hold an object"):
        as_preprocessing(path)


def test_layouts_are_read_from_shapes():
    assert find_layout(("n", 3, 224, 320)) == ("NCHW", (224, 320))
    assert find_layout((None, 64, 32, 3)) == ("NHWC", (64, 32))
    assert find_layout(("n", 3, "h", "w")) == ("NCHW", None)
    assert find_layout(("n", 3, 3, 3)) is None
    assert find_layout(("n", 7)) is None
    plain = Preprocessing((64, 32), 0, 1)
    assert fit_to_shape(plain, (None, 64, 32, 3), "net").layout == "NHWC"
    with pytest.raises(RankshotError, match=r"net: it expects pictures of 9 x 7 .* 64 x 32.* 9x7"):
        fit_to_shape(plain, ("n", 3, 9, 7), "net")
    with pytest.raises(RankshotError, match=r"its input has 2 axes \(n, 10\)"):
        fit_to_shape(plain, ("n", 10), "net")


def test_values_without_a_preset():
    made = change_preprocessing(None, ("n", 64, 32, 3), mean=(0.5,), std=(0.5,))
    assert (made.size, made.resize) == ((64, 32), 32)
    with pytest.raises(RankshotError, match="lacks std; give size, mean and std"):
        change_preprocessing(None, None, size=(4, 4), mean=(0.5,))
    with pytest.raises(RankshotError, match="layout is NHWC, not NCHW"):
        change_preprocessing(made, ("n", 64, 32, 3), layout="NCHW")
    assert change_preprocessing(made, None) is made
    assert change_preprocessing(made, None, layout="NHWC").layout == "NHWC"
