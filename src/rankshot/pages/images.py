"""Images of inputs, small enough to be embedded in a page, and which inputs are shown."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError, RankshotError, format_count, short_repr
from rankshot.core.images import (
    ENDINGS,
    ignore_pillow_warnings,
    read_image,
    require_pillow,
)
from rankshot.pages.formatting import format_percent

Labels = NDArray[np.str_]
Rows = NDArray[np.intp]
MAX_SIDE = 96
"""The largest width and height of an image on the page, in pixels."""
TINY_SIDE = 48
"""Images up to this size are kept as they are, and shown enlarged, with visible pixels."""
QUALITY = 80
MAX_IMAGES = 60


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
    is_tiny: bool = False

    @classmethod
    def from_pixels(cls, pixels: NDArray[np.uint8]) -> Thumbnail:
        """Return an image from its pixels, of shape (height, width, 3), red, green and blue."""
        # Made from the pixels alone: Pillow would copy the comments of a file into the new one.
        image, stream = require_pillow().fromarray(pixels), io.BytesIO()
        is_tiny = max(pixels.shape[:2]) <= TINY_SIDE
        kind, options = ("PNG", {}) if is_tiny else ("JPEG", {"quality": QUALITY})
        image.save(stream, kind, optimize=True, **options)
        return cls(stream.getvalue(), f"image/{kind.lower()}", is_tiny)

    @property
    def uri(self) -> str:
        """Return the image as a data URI."""
        return f"data:{self.media_type};base64,{b64encode(self.data).decode('ascii')}"


class ImageFolder:
    """Finds the image files of inputs in a folder, and reads them.

    Nothing outside of this folder is read, whatever ids and symbolic links say.
    """

    def __init__(self, path: str | Path, endings: Collection[str] = ENDINGS) -> None:
        self.root = Path(path).resolve()
        if not self.root.is_dir():
            raise InputError("images", str(path), "is not a folder")
        require_pillow()
        self._endings = endings
        self._listed: dict[str, dict[str, Path]] = {}

    def find(self, name: str) -> Path | None:
        """Return the file of an id, a path below the folder with or without its ending, or None."""
        parent, _, last = name.rpartition("/")
        if name.startswith("/"):
            return None
        if parent not in self._listed:
            self._listed[parent] = self._list_files(parent)
        return self._listed[parent].get(last)

    def _list_files(self, parent: str) -> dict[str, Path]:
        """Return the image files of one folder by their names, and by these without endings."""
        try:
            folder = (self.root / parent).resolve()
            if not folder.is_relative_to(self.root):
                return {}
            there = (file for file in folder.iterdir() if file.suffix.lower() in self._endings)
            files = sorted(there)
        except (OSError, ValueError):
            # An id may not be the name of a folder at all.
            return {}
        stems = {file.stem: file for file in reversed(files)}
        return stems | {file.name: file for file in files}

    def require_inside(self, file: Path) -> Path:
        """Return a file of the folder; an error says why it is not one, without its path."""
        if not file.resolve().is_relative_to(self.root) or not file.is_file():
            raise RankshotError("not a file, or a link that leads out of the folder")
        return file

    def read(self, file: Path, side: int = MAX_SIDE) -> Thumbnail:
        """Return an image, scaled down to at most 96 x 96 pixels, upright, on white.

        Nothing else of the file is kept: no place, no camera, no comment. An error says why the
        file cannot be shown, without its path. ``side`` is the size in pixels.
        """
        self.require_inside(file)
        with ignore_pillow_warnings():
            return Thumbnail.from_pixels(np.array(read_image(file, side)))


# ---- Choice


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


def choose_images(outcomes: Outcomes, candidates: Rows) -> list[int]:
    """Choose the rows to show: as many correct as wrong predictions per class, most certain first.

    If the truth is not known, it is the most and the least probable predictions of each class.
    One of both kinds for each class comes first, then the next of both kinds for each class.
    """
    surest = candidates[np.argsort(-outcomes.probability(candidates), kind="stable")]
    predicted = outcomes.predicted[surest]
    truth = None if outcomes.truth is None else outcomes.truth[surest]
    n_shown = min(len(outcomes.classes), MAX_IMAGES // 2)
    places = np.linspace(0, len(outcomes.classes) - 1, n_shown).round().astype(int)
    each = MAX_IMAGES // (2 * n_shown)
    piles: list[Rows] = []
    for name in (outcomes.classes[place] for place in places):
        if truth is None:
            theirs = surest[predicted == name]
            half = (len(theirs) + 1) // 2
            piles += [theirs[:half], theirs[half:][::-1]]
        else:
            is_own, is_correct = truth == name, predicted == name
            piles += [surest[is_own & is_correct], surest[is_own & ~is_correct]]
    return [int(pile[i]) for i in range(each) for pile in piles if i < len(pile)]


def describe_choice(outcomes: Outcomes, rows: Sequence[int]) -> str:
    """Describe the choice of these rows, and the share of them that is wrong."""
    text = f"{len(rows):,} of {len(outcomes.ids):,} inputs are shown: for each class, some of the"
    if outcomes.truth is None:
        return f"{text} most and of the least probable predictions."
    wrong = outcomes.predicted != outcomes.truth
    return (
        f"{text} correct and of the wrong predictions with the highest probability. "
        f"{format_percent(wrong.mean(), 0)} of all predictions are wrong, and "
        f"{format_percent(wrong[list(rows)].mean(), 0)} of those shown."
    )


def read_images(
    folder: ImageFolder, files: Mapping[int, Path], outcomes: Outcomes
) -> tuple[dict[int, Thumbnail], list[str]]:
    """Choose some of the rows that have a file, and read their images only.

    Which ones cannot be shown is returned in sentences.
    """
    candidates = np.array(sorted(row for row in files if not outcomes.rejected[row]), int)
    thumbnails, unreadable = {}, []
    for row in choose_images(outcomes, candidates):
        try:
            thumbnails[row] = folder.read(files[row])
        except RankshotError as error:
            unreadable.append(f"{short_repr(outcomes.ids[row])} ({error})")
    some = format_count(len(unreadable), "image")
    return thumbnails, [f"{some} cannot be shown: {'; '.join(unreadable)}."] if unreadable else []


class ShownInput(NamedTuple):
    """An input with its image, what was predicted for it, and why.

    Attributes
    ----------
    name : str
        The input, for example its id.
    thumbnail : Thumbnail
    label : str
        The predicted class.
    probability : float
        Of the predicted class.
    truth : str, optional
        The true class, if it is known.
    supporters : tuple of str
        The seen classes that support the predicted class most.
    """

    name: str
    thumbnail: Thumbnail
    label: str
    probability: float
    truth: str | None = None
    supporters: tuple[str, ...] = ()


def build_gallery(
    outcomes: Outcomes,
    thumbnails: Mapping[int, Thumbnail],
    supporters: Mapping[int, tuple[str, ...]],
) -> tuple[ShownInput, ...]:
    """Return some inputs with their images."""
    rows = list(thumbnails)
    return tuple(
        ShownInput(
            str(outcomes.ids[row]),
            thumbnails[row],
            str(outcomes.predicted[row]),
            probability,
            None if outcomes.truth is None else str(outcomes.truth[row]),
            supporters.get(row, ()),
        )
        for row, probability in zip(rows, outcomes.probability(rows).tolist(), strict=True)
    )
