"""Pictures of inputs, small enough to be embedded in a page: from pixels, or from files."""

from __future__ import annotations

import io
import struct
import zlib
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.inference.pictures import (
    MAX_PIXELS,
    convert_picture,
    ignore_pillow_warnings,
    require_pillow,
)

SIDE = 96
"""The largest width and height of a picture on the page, in pixels."""
TINY = 48
"""Pictures up to this size are kept as they are, and shown enlarged, with visible pixels."""
FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
"""What Pillow may try. Some of its other formats start programs."""
ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".webp")
QUALITY = 80


@dataclass(frozen=True)
class Picture:
    """A small picture.

    Attributes
    ----------
    data : bytes
        A file.
    media_type : str
        Its type, such as ``image/png``.
    is_tiny : bool
        Whether it is shown enlarged, with visible pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report import Picture
    >>> red = Picture.from_pixels(np.full((32, 32, 3), (255, 0, 0), dtype=np.uint8))
    >>> red.media_type, red.is_tiny, red.uri[:22]
    ('image/png', True, 'data:image/png;base64,')
    """

    data: bytes
    media_type: str
    is_tiny: bool = False

    @classmethod
    def from_pixels(cls, pixels: NDArray[np.uint8]) -> Picture:
        """Return a picture from its pixels, of shape (height, width, 3), red, green and blue."""
        return cls(encode_png(pixels), "image/png", max(pixels.shape[:2]) <= TINY)

    @property
    def uri(self) -> str:
        """The picture as a data URI."""
        return f"data:{self.media_type};base64,{b64encode(self.data).decode('ascii')}"


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return pixels as a PNG file.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (height, width, 3)
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise RankshotError(
            "pixels must have the shape (height, width, 3) and the type uint8, not "
            f"{pixels.shape} and {pixels.dtype}"
        )
    height, width, _ = pixels.shape
    # Each line begins with the number of its filter. Filter 2 stores differences to the line above.
    lines = np.full((height, 1 + 3 * width), 2, np.uint8)
    lines[:, 1:] = np.diff(pixels.reshape(height, -1), axis=0, prepend=np.uint8(0))
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


class PictureFolder:
    """Finds the picture files of inputs in a folder, and reads them.

    Parameters
    ----------
    path : str or Path
        Nothing outside of this folder is read, whatever ids and symbolic links say.

    Raises
    ------
    RankshotError
        If there is no such folder, or if Pillow is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from rankshot.report import PictureFolder
    >>> with TemporaryDirectory() as folder:
    ...     Image.new("RGB", (64, 48), "tan").save(Path(folder, "cat.png"))
    ...     pictures = PictureFolder(folder)
    ...     pictures.find("cat.png").name
    'cat.png'
    """

    def __init__(self, path: str | Path) -> None:
        self.root = Path(path).resolve()
        if not self.root.is_dir():
            raise RankshotError(f"{path}: there is no such folder")
        self._image = require_pillow()
        self._listed: dict[str, dict[str, Path]] = {}

    def find(self, name: str) -> Path | None:
        """Return the file of an input, or None. No file is opened.

        Parameters
        ----------
        name : str
            The id of the input: a path below the folder, with or without the ending of the file.
            If files differ only in their ending, the first in alphabetical order is taken.
        """
        parent, _, last = name.rpartition("/")
        if name.startswith("/"):
            return None
        if parent not in self._listed:
            self._listed[parent] = self._list_files(parent)
        return self._listed[parent].get(last)

    def _list_files(self, parent: str) -> dict[str, Path]:
        """Return the picture files of one folder by their names, and by these without endings."""
        try:
            folder = (self.root / parent).resolve()
            if not folder.is_relative_to(self.root):
                return {}
            files = sorted(file for file in folder.iterdir() if file.suffix.lower() in ENDINGS)
        except (OSError, ValueError):
            # An id may be no name of a folder at all.
            return {}
        stems = {file.stem: file for file in reversed(files)}
        return stems | {file.name: file for file in files}

    def read(self, file: Path) -> Picture:
        """Return a picture, scaled down to at most 96 x 96 pixels, upright, on white.

        Nothing else of the file is kept: no place, no camera, no comment.

        Raises
        ------
        RankshotError
            Says why the file cannot be shown, without its path.
        """
        if not file.resolve().is_relative_to(self.root):
            raise RankshotError("a link that leads out of the folder")
        if not file.is_file():
            raise RankshotError("not a file")
        try:
            with ignore_pillow_warnings(), self._image.open(file, formats=FORMATS) as image:
                too_large = image.width * image.height > MAX_PIXELS
                pixels = None if too_large else np.array(convert_picture(image, SIDE))
        except self._image.DecompressionBombError:
            pixels = None
        except Exception:  # noqa: BLE001 - decoders raise all kinds of errors for damaged files
            raise RankshotError("damaged, or not a JPEG, PNG, GIF or WebP picture") from None
        if pixels is None:
            raise RankshotError(f"more than {MAX_PIXELS // 1_000_000} million pixels")
        if max(pixels.shape) <= TINY:
            return Picture.from_pixels(pixels)
        # Made from the pixels alone, because Pillow would copy comments into the new file.
        stream = io.BytesIO()
        self._image.fromarray(pixels).save(stream, "JPEG", quality=QUALITY, optimize=True)
        return Picture(stream.getvalue(), "image/jpeg")
