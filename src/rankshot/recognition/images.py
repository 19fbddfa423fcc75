"""From an image to the numbers that a network takes: resize, crop, normalise.

The size, crop, mean, standard deviation and layout differ from network to network, and a wrong
choice lowers the accuracy without any error. So they are never guessed: they come from the files
of the model, from a named preset, or from the user, and are printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import NO_VALUE, InputError, prefix_errors, short_repr
from rankshot.core.files import parse_json, require_regular
from rankshot.core.images import require_pillow
from rankshot.core.validation import (
    require_choice,
    require_number,
    require_whole_number,
)

# -------------------------------------------------------------------- preprocessing

CONFIG_FILE = "preprocessor_config.json"
"""How libraries of models call the file that describes the preprocessing."""
Layout = Literal["NCHW", "NHWC"]
Interpolation = Literal["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]
INTERPOLATIONS: tuple[Interpolation, ...] = get_args(Interpolation)
"""In the order of Pillow's numbers, which ``preprocessor_config.json`` uses."""
Margin = Literal["down", "even"]
MAX_SIDE = 4096
MAX_STD = 2.0
"""Pixels from 0 to 1 never deviate by more than 0.5; networks also divide by 1."""
_KNOWN_TYPES = {"ViT", "CLIP", "Bit", "Siglip"}
"""Processors of transformers whose files describe all that they do; others have steps in code."""
_KNOWN_STEPS = {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb"}


def _as_numbers(what: str, value: object, n: int) -> list[Any]:
    """Return n numbers, of which one may have been given."""
    values = list(value) if isinstance(value, (Sequence, np.ndarray)) else [value]
    values = values * n if len(values) == 1 else values
    if len(values) != n:
        raise InputError(what, value, f"must be one number or {n}")
    return values


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing of images for a network: resizing, cropping and normalisation.

    The image is resized and cropped in the centre; then its pixels, scaled to [0, 1], are
    normalised: (pixel - mean) / std.

    Parameters
    ----------
    size : int or (int, int)
        The height and width of the input, in pixels.
    mean, std : float or three floats
        The mean and the standard deviation of red, green and blue, where white is 1.
    resize : int, optional
        The shorter side after resizing, before the crop. If None, the whole image is resized to
        ``size``, which changes its proportions.
    interpolation : {"bilinear", "bicubic", "nearest", "lanczos", "box", "hamming"}
        The interpolation method; antialiasing is always on.
    layout : {"NCHW", "NHWC"}
        The order of the axes: images, channels, height, width; or channels last.
    white : float
        The value of a white pixel before ``mean`` is subtracted. With 255, ``mean`` and ``std``
        are on the scale from 0 to 255.
    margin : {"down", "even"}
        How half a pixel is rounded if the margins of the crop are odd: down, as transformers does,
        or to the even number, as torchvision does.

    Examples
    --------
    >>> from rankshot.recognition import Preprocessing
    >>> Preprocessing.read("imagenet").size
    (224, 224)
    >>> half = Preprocessing(size=96, mean=0.5, std=0.5, resize=96)
    >>> from PIL import Image
    >>> half(Image.new("RGB", (200, 100), "white"))[:, 0, 0]
    array([1., 1., 1.], dtype=float32)
    """

    size: Any
    mean: Any
    std: Any
    resize: int | None = None
    interpolation: Interpolation = "bilinear"
    layout: Layout = "NCHW"
    white: float = 1.0
    margin: Margin = "down"

    def __post_init__(self) -> None:
        """Refuse values that cannot be, and those of pixels from 0 to 255 where white is 1."""
        sides = _as_numbers("size", self.size, 2)
        sides = [require_whole_number("size", side, MAX_SIDE) for side in sides]
        object.__setattr__(self, "size", tuple(sides))
        if self.resize is not None:
            require_whole_number("resize", self.resize, MAX_SIDE)
        require_choice("interpolation", self.interpolation, INTERPOLATIONS)
        require_choice("layout", self.layout, get_args(Layout))
        require_choice("margin", self.margin, get_args(Margin))
        require_number("white", self.white, above=0, below=np.inf)
        for what, most, rules in (("mean", 1, {}), ("std", MAX_STD, {"above": 0.0})):
            values = [
                require_number(what, one, below=np.inf, **rules)
                for one in _as_numbers(what, getattr(self, what), 3)
            ]
            object.__setattr__(self, what, tuple(values))
            if self.white == 1 and (large := [one for one in values if abs(one) > most]):
                hint = "divide the means and deviations of pixels from 0 to 255 by 255"
                raise InputError(what, large[0], "is too large: white is 1 here", hint=hint)

    @classmethod
    def read(
        cls,
        source: Preprocessing | str | Path | Mapping[str, object],
        where: str = "preprocessing",
    ) -> Preprocessing:
        """Preprocessing of a preset, or of a model of transformers.

        Parameters
        ----------
        source : str, Path, mapping or Preprocessing
            The name of a preset: "imagenet" (torchvision), "efficientnet-lite" or "clip". Or a file
            ``preprocessor_config.json``, or its values.
        where : str
            What error messages call the values.

        Raises
        ------
        RankshotError
            If a value is missing, or a step is not supported; the message names it.
        """
        if isinstance(source, Preprocessing):
            return source
        config: Any = source
        if isinstance(source, (str, Path)):
            path, where = Path(source), str(source)
            if not path.suffix and not path.is_file():
                return PRESETS[require_choice("preset", where, PRESETS)]
            require_regular(path, "preprocessing")
            config = parse_json(path.read_bytes())
        try:
            with prefix_errors(where):
                return cls(**_read_config(dict(config)))
        except (TypeError, KeyError) as error:
            text = f"has no {error}" if isinstance(error, KeyError) else f"is wrong ({error})"
            raise InputError("preprocessing", NO_VALUE, text, where) from None

    def __call__(self, image: object) -> NDArray[np.float32]:
        """Return a Pillow image in mode RGB as numbers, without the axis of images."""
        pixels = np.asarray(self._resize(image))
        # (pixel · white / 255 - mean) / std, with one multiplication and one addition per pixel.
        scale = self.white / 255 / np.asarray(self.std)
        shift = np.asarray(self.mean) / self.std
        if self.layout == "NCHW":
            # The bytes are moved before they become four times as many.
            pixels = np.ascontiguousarray(pixels.transpose(2, 0, 1))
            scale, shift = scale[:, None, None], shift[:, None, None]
        numbers: NDArray[np.float32] = np.multiply(pixels, scale, dtype=np.float32)
        numbers -= shift.astype(np.float32)
        return numbers

    def _resize(self, image: Any) -> Any:
        method = require_pillow().Resampling[self.interpolation.upper()]
        height, width = self.size
        if self.resize is None:
            return image.resize((width, height), method)
        short, long = sorted(image.size)
        # As torchvision and transformers do: the longer side is rounded down.
        longer = int(self.resize * long / short)
        sides = (self.resize, longer) if image.width <= image.height else (longer, self.resize)
        if image.size != sides:
            image = image.resize(sides, method)
        left, top = self._find_margin(image.width - width), self._find_margin(image.height - height)
        # What is outside of a small image is black.
        return image.crop((left, top, left + width, top + height))

    def _find_margin(self, surplus: int) -> int:
        if self.margin == "down":
            return surplus // 2
        # A border around a small image is rounded towards zero.
        return round(surplus / 2) if surplus >= 0 else -(-surplus // 2)


PRESETS = {
    "imagenet": Preprocessing(
        224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), resize=256, margin="even"
    ),
    "efficientnet-lite": Preprocessing(
        224, 127, 128, resize=256, interpolation="bicubic", white=255
    ),
    "clip": Preprocessing(
        224,
        (0.48145466, 0.4578275, 0.40821073),
        (0.26862954, 0.26130258, 0.27577711),
        resize=224,
        interpolation="bicubic",
    ),
}
"""What the networks of torchvision, EfficientNet-Lite and CLIP were trained with."""


def fit_to_shape(
    preprocessing: Preprocessing, shape: Sequence[object], where: str
) -> Preprocessing:
    """Take the layout from the shape of a network's input, and refuse another size.

    In a shape such as ("N", 3, 224, 224), numbers are fixed. The layout is not changed if the shape
    does not say where the channels are.
    """
    described = f"({', '.join(str(side) if side is not None else '?' for side in shape)})"
    if len(shape) != 4:
        raise InputError(
            "model", described, "must have four axes: images, channels, height, width", where
        )
    layouts: dict[Layout, Any] = {"NCHW": shape[2:], "NHWC": shape[1:3]}
    possible = [name for name, place in zip(layouts, (1, 3), strict=True) if shape[place] == 3]
    if len(possible) != 1:
        return preprocessing
    height, width = layouts[possible[0]]
    is_fixed = all(isinstance(side, int) and side > 0 for side in (height, width))
    if is_fixed and (height, width) != preprocessing.size:
        high, wide = preprocessing.size
        size = f"{height} x {width}"
        problem = f"must be the size that the network expects, {size}"
        raise InputError("preprocessing", f"{high} x {wide}", problem, where)
    return replace(preprocessing, layout=possible[0])


def _read_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `Preprocessing` that a file of transformers describes."""
    name = config.get("image_processor_type") or config.get("feature_extractor_type")
    kind = re.sub("(FeatureExtractor|ImageProcessor(Fast|Pil)?)$", "", str(name))
    if name and kind not in _KNOWN_TYPES:
        hint = "if it only resizes, crops and normalises, remove its name from the file"
        raise InputError("preprocessing", name, "does more than this file describes", hint=hint)
    steps = {step: value for step, value in config.items() if step.startswith("do_")}
    for step, value in steps.items():
        # A text such as "false" would count as true.
        if not isinstance(value, bool | None):
            raise InputError(step, value, "must be true or false")
    unknown = {step for step, value in steps.items() if value} - _KNOWN_STEPS
    if unknown or not config.get("do_resize", True):
        told = ", ".join(sorted(unknown)) or "no do_resize"
        raise InputError("preprocessing", told, "is not supported")
    most = len(INTERPOLATIONS) - 1
    resample: Any = config.get("resample")
    number = require_whole_number("resample", resample, most, least=0)
    mean, std = 0, 1
    if config.get("do_normalize", True):
        mean, std = config["image_mean"], config["image_std"]
    rescale = config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else 1
    size = config.get("size")
    crop = config.get("crop_size") if config.get("do_center_crop") else None
    shortest = size.get("shortest_edge") if isinstance(size, Mapping) else None
    if isinstance(size, int) and crop is not None:
        shortest = size
    if config.get("crop_pct") is not None or (crop is None) != (shortest is None):
        sizes = f"size {short_repr(size)}, crop_size {short_repr(crop)}"
        raise InputError("preprocessing", sizes, "must give all images one shape, and the crop")
    sides: Any = size if crop is None else crop
    return {
        "size": (sides["height"], sides["width"]) if isinstance(sides, Mapping) else sides,
        "mean": mean,
        "std": std,
        "resize": shortest,
        "interpolation": INTERPOLATIONS[number],
        "white": 255 * rescale,
        "margin": config.get("margin", "down"),
    }
