"""Images of inputs, small enough to be embedded in a page, and what was predicted for them."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.images import ENDINGS, ignore_pillow_warnings, read_image, require_pillow

Labels = NDArray[np.str_]
Rows = NDArray[np.intp]
MAX_SIDE = 96
"""The largest width and height of an image on the page, in pixels."""
TINY_SIDE = 48
"""Images up to this size are kept as they are, and shown enlarged, with visible pixels."""
QUALITY = 80


# ---- Files


@dataclass(frozen=True)
class Thumbnail:
    """A small image.

    Attributes
    ----------
    data : bytes
        A file.
    media_type : str
        Its type, such as ``image/png``.
    is_tiny : bool
        Whether it is shown enlarged, with visible pixels.
    """

    data: bytes
    media_type: str
    is_tiny: bool

    @classmethod
    def make(cls, image: Path | NDArray[np.uint8], side: int = MAX_SIDE) -> Thumbnail:
        """Return an image upright, on white, scaled down to at most ``side`` pixels.

        ``image`` is a file, or pixels of shape (height, width, 3). Nothing else of a file is kept:
        no place, no camera, no comment. If it cannot be read, the error says why, without its path.
        """
        if isinstance(image, Path):
            with ignore_pillow_warnings():
                image = np.array(read_image(image, side))
        # Made from the pixels alone: Pillow would copy the comments of a file into the new one.
        stream, is_tiny = io.BytesIO(), max(image.shape[:2]) <= TINY_SIDE
        kind, options = ("PNG", {}) if is_tiny else ("JPEG", {"quality": QUALITY})
        require_pillow().fromarray(image).save(stream, kind, optimize=True, **options)
        return cls(stream.getvalue(), f"image/{kind.lower()}", is_tiny)

    @property
    def uri(self) -> str:
        """Return the image as a data URI."""
        return f"data:{self.media_type};base64,{b64encode(self.data).decode('ascii')}"


def find_files(
    root: Path, names: Iterable[str], endings: Collection[str] = ENDINGS
) -> dict[str, Path]:
    """Find the files of names: paths below a folder, with or without their endings.

    Nothing outside of this folder is found, whatever names and symbolic links say.
    """
    root = root.resolve()
    paths = (path for path in sorted(root.rglob("*")) if path.suffix.lower() in endings)
    files = [file for file in paths if file.is_file() and file.resolve().is_relative_to(root)]
    by_name = {path.relative_to(root).with_suffix("").as_posix(): path for path in files[::-1]}
    by_name |= {path.relative_to(root).as_posix(): path for path in files}
    return {name: by_name[name] for name in names if name in by_name}


# ---- Predictions


class Outcomes(NamedTuple):
    """The predictions of all n inputs, and the true classes if they are known.

    Attributes
    ----------
    ids : sequence of str
        The names of the inputs.
    predicted : ndarray of str, shape (n,)
        The predicted classes.
    proba : ndarray of shape (n, L)
        The probabilities of all classes.
    truth : ndarray of str or None
        The true classes, if they are known.
    classes : sequence of str
        The L classes, in the order of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import Outcomes
    >>> proba = np.array([[0.9, 0.1], [0.4, 0.6]])
    >>> found = Outcomes(["a", "b"], np.array(["cat", "dog"]), proba, None, ["cat", "dog"])
    >>> found.rejected.tolist(), found.probability([1])
    ([False, False], array([0.6]))
    """

    ids: Sequence[str]
    predicted: Labels
    proba: NDArray[np.floating]
    truth: Labels | None
    classes: Sequence[str]

    @property
    def rejected(self) -> NDArray[np.bool_]:
        """Which inputs got none of the classes."""
        return np.asarray(~np.isin(self.predicted, list(self.classes)))

    def probability(self, rows: Sequence[int] | Rows) -> NDArray[np.floating]:
        """Return the probabilities of the predicted classes of some ``rows``."""
        place = {name: j for j, name in enumerate(self.classes)}
        columns = [place[str(label)] for label in self.predicted[rows]]
        # Single precision can give a little more than 1.
        return np.asarray(np.clip(self.proba[rows, columns], 0, 1))
