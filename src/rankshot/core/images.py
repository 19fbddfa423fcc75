"""Image files from anywhere: read upright, in red, green and blue, on white.

Only formats that Pillow decodes itself are tried, an image that claims to be huge is refused
before it is decoded, and each refusal has a reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_module

MAX_PIXELS = 100_000_000
"""Larger images are refused: a small file can claim to be huge, and would fill the memory."""
FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF")
"""What Pillow may try. Some of its other formats start programs."""
ENDINGS = (
    *(".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff"),
    *(".ppm", ".pgm", ".avif"),
)
"""How the names of image files end, in small or capital letters."""
_SMOOTH = {"L", "LA", "RGB", "RGBA", "CMYK"}
"""Modes of Pillow that it can scale with smoothing."""


def require_pillow() -> Any:
    """Pillow's module Image, or raise an error that says how to install it."""
    return require_module("PIL.Image", "image files", "onnx")


@contextmanager
def ignore_pillow_warnings() -> Iterator[None]:
    """Silence Pillow's warnings of large images and odd metadata in the block.

    Warnings belong to the whole process, so this is entered once, around all threads that decode.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def read_image(file: str | Path, shrink_to: int | None = None) -> object:
    """First frame of an image file as a Pillow image: upright, RGB, on white.

    The content of the file decides on its format, not its name. An image that is larger than
    ``shrink_to`` is scaled down, as `convert_image` does.
    """
    pillow = require_pillow()
    path = Path(file)
    if path.exists() and not path.is_file():
        # To open a named pipe would be to wait for its writer, perhaps forever.
        raise RankshotError("not a regular file")
    try:
        with pillow.open(file, formats=FORMATS) as image:
            if image.width * image.height <= MAX_PIXELS:
                return convert_image(image, shrink_to)
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning):
        pass
    except RankshotError:
        raise
    except Exception as error:  # noqa: BLE001 - decoders raise all kinds of errors
        raise RankshotError(_describe_failure(error, path)) from None
    raise RankshotError(f"more than {MAX_PIXELS // 10**6} million pixels: scale it down")


def convert_image(image: Any, shrink_to: int | None = None) -> Any:
    """Open image as red, green and blue, upright, on white.

    An image larger than ``shrink_to`` is scaled down. A large JPEG is then decoded at a fraction
    of its size, which is quick, but less exact.
    """
    pillow = require_pillow()
    if shrink_to is not None:
        image.draft(None, (2 * shrink_to, 2 * shrink_to))
    import_module("PIL.ImageOps").exif_transpose(image, in_place=True)
    if image.mode == "F":
        raise RankshotError("its pixels are floating-point numbers of unknown range")
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
    # A conversion to the same mode would be a copy.
    return image if image.mode == "RGB" else image.convert("RGB")


def _describe_failure(error: Exception, file: Path) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return error.strerror or "cannot be read"
    if isinstance(error, MemoryError):
        return "needs more memory than there is"
    if type(error).__name__ == "UnidentifiedImageError":
        known = ", ".join(FORMATS)
        return f"not an image ({known} are known)" if file.stat().st_size else "an empty file"
    # Pillow's own message, such as "image file is truncated", names no file.
    return f"damaged ({' '.join(str(error).split()) or type(error).__name__})"
