"""Picture files as red, green and blue pixels: upright, on white, and never too large.

Files come from anywhere. So only formats that Pillow decodes itself are tried, a picture that
claims to be huge is refused before it is decoded, and each refusal has a reason.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError

MAX_PIXELS = 100_000_000
"""Larger pictures are refused: a small file can claim to be huge, and would fill the memory."""
_TOO_LARGE = f"more than {MAX_PIXELS // 10**6} million pixels"
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF")
"""What Pillow may try. Some of its other formats start programs."""
ENDINGS = (
    *(".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".avif"),
)
"""How the names of picture files end, in small or capital letters."""
_ORIENTATION = 0x0112
"""The number of the EXIF entry that says how the camera was held."""
_UPRIGHT = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
"""What undoes each orientation except 1, upright."""
_SMOOTH = {"L", "LA", "RGB", "RGBA", "CMYK"}
"""Modes of Pillow that it can scale with smoothing."""


def require_pillow() -> Any:
    """Return Pillow's module Image, or raise an error that says how to install it."""
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise RankshotError(
            "pictures from files need Pillow: pip install 'rankshot[pictures]'"
        ) from None


def is_pillow_image(value: object) -> bool:
    """Tell whether a value is a Pillow image; nobody has one without Pillow."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


@contextmanager
def ignore_pillow_warnings() -> Iterator[None]:
    """Silence Pillow's warnings of large pictures and odd metadata in the block.

    Warnings belong to the whole process, so this is entered once, around all threads that decode.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def read_picture(file: str | Path) -> Any:
    """Return the first frame of a picture file as a Pillow image: upright, RGB, on white.

    The content of the file decides on its format, not its name.

    Raises
    ------
    RankshotError
        Says what is wrong with the file, without its name.
    """
    pillow = require_pillow()
    if Path(file).exists() and not Path(file).is_file():
        # To open a named pipe would be to wait for its writer, perhaps forever.
        raise RankshotError("not a regular file")
    try:
        with pillow.open(file, formats=FORMATS) as image:
            _require_size(image)
            return convert_picture(image)
    except RankshotError:
        raise
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning):
        raise RankshotError(_TOO_LARGE) from None
    except Exception as error:  # noqa: BLE001 - decoders raise all kinds of errors
        raise RankshotError(_describe_failure(error, Path(file))) from None


def convert_picture(image: Any, shrink_to: int | None = None) -> Any:
    """Return an open picture as red, green and blue, upright, on white.

    Parameters
    ----------
    image : PIL.Image.Image
        As ``PIL.Image.open`` returns it. Grey becomes three equal channels, transparent parts
        become white, colours for printing (CMYK) are converted, 16 bits become 8.
    shrink_to : int, optional
        The largest width and height wanted: a larger picture is scaled down. A large JPEG is then
        decoded at a fraction of its size, which is quick, but less exact.
    """
    pillow = require_pillow()
    orientation = image.getexif().get(_ORIENTATION, 1)
    if shrink_to is not None:
        image.draft(None, (2 * shrink_to, 2 * shrink_to))
    if image.mode == "F":
        raise RankshotError("its pixels are floating-point numbers, whose range is not known")
    if image.mode.startswith("I"):
        # Pillow would clip 16 bits at 255, so that nearly every pixel is white.
        image = pillow.fromarray((np.asarray(image) >> 8).clip(0, 255).astype(np.uint8))
    elif image.mode not in _SMOOTH:
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    if shrink_to is not None:
        image.thumbnail((shrink_to, shrink_to))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = pillow.new("RGBA", image.size, "white")
        image = pillow.alpha_composite(white, image)
    undo = _UPRIGHT.get(orientation)
    if image.mode == "RGB":
        # The file will be closed; a conversion to the same mode would be a copy.
        image.load()
    else:
        image = image.convert("RGB")
    return image if undo is None else image.transpose(pillow.Transpose[undo])


def _require_size(image: Any) -> None:
    if image.width * image.height > MAX_PIXELS:
        raise RankshotError(f"{_TOO_LARGE} ({image.width} x {image.height})")


def _describe_failure(error: Exception, file: Path) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return error.strerror or "cannot be read"
    if isinstance(error, MemoryError):
        return "needs more memory than there is"
    if type(error).__name__ == "UnidentifiedImageError":
        known = ", ".join(FORMATS)
        return f"not a picture ({known} are known)" if file.stat().st_size else "an empty file"
    # Pillow's own message, such as "image file is truncated", names no file.
    return f"damaged ({' '.join(str(error).split()) or type(error).__name__})"
