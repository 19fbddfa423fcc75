"""Inputs as people see them: images, sounds, texts, or the largest scores of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np

from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.tables import read_columns
from rankshot.inference.inputs import COLUMNS, Input, open_inputs
from rankshot.inference.pictures import ENDINGS as IMAGE_ENDINGS
from rankshot.report.pictures import PictureFolder, Thumbnail
from rankshot.zeroshot.scores import Scores, class_scores

SOUNDS = {
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".weba": "audio/webm",
}
"""How the names of sound files end, and their types."""
SIDE, LARGE_SIDE = 192, 800
"""The largest width and height of an image in the grid, and beside it, in pixels."""
MOST_KEPT = 5_000
"""Thumbnails in memory, about 8 KB each."""
MOST_CHARACTERS = 5_000
"""Of a text; the rest is not sent."""
LARGEST = 5
"""How many of the largest scores of a row are shown."""
Kind = Literal["image", "sound", "text", "row"]


class ShownInputs:
    """What can be shown of each input, by its id.

    Parameters
    ----------
    ids : sequence of str
    scores : Scores
        If there is nothing else to show.
    place : Path, optional
        A folder of images or sounds; or a file of texts, or of paths below its folder.
    takes : {"texts", "pictures"}, optional
        What a file has. By default its columns tell.
    """

    def __init__(
        self,
        ids: Sequence[str],
        scores: Scores,
        place: Path | None = None,
        takes: Literal["texts", "pictures"] | None = None,
    ) -> None:
        self._ids = ids
        self._scores = scores
        self.texts: dict[str, str] = {}
        self._names: Mapping[str, str] | None = None
        self.folder: PictureFolder | None = None
        if place is not None:
            self._open(place, takes)
        self._pillow = Lock()
        self.thumbnail = lru_cache(MOST_KEPT)(self._read_thumbnail)

    def _open(self, place: Path, takes: Any) -> None:
        if place.is_dir():
            self.folder = PictureFolder(place, (*IMAGE_ENDINGS, *SOUNDS))
        elif place.suffix.lower() in IMAGE_ENDINGS:
            self.folder = PictureFolder(place.parent)
        elif (takes or _find_kind(place)) == "pictures":
            found = [one for one in open_inputs(place, "pictures") if isinstance(one, Input)]
            root = place.parent
            self.folder = PictureFolder(root, (*IMAGE_ENDINGS, *SOUNDS))
            # A path that leads out of the folder begins with .. or /, and is not found.
            self._names = {one.id: _relative(one.value, root) for one in found}
        else:
            found = [one for one in open_inputs(place, "texts") if isinstance(one, Input)]
            self.texts = {one.id: one.value for one in found}

    def check(self, place: Path) -> str:
        """Return a sentence about inputs that cannot be shown; refuse if these are all."""
        missing = [name for row, name in enumerate(self._ids) if self.kind(row) == "row"]
        if len(missing) == len(self._ids):
            raise RankshotError(
                f"{place}: has none of the inputs; ids must be paths below this folder, with or "
                f"without endings, or ids of this file, but the first are {quote_names(missing)}"
            )
        n = f"{len(missing):,} of {len(self._ids):,} inputs"
        return f"{place}: has not {n}: {quote_names(missing)}" if missing else ""

    def _find(self, row: int) -> Path | None:
        """Return the file of an input, if there is one."""
        if self.folder is None:
            return None
        name = self._ids[row]
        return self.folder.find(name if self._names is None else self._names.get(name, ""))

    def kind(self, row: int) -> Kind:
        """Return how an input is shown."""
        if self._ids[row] in self.texts:
            return "text"
        file = self._find(row)
        if file is None:
            return "row"
        return "sound" if file.suffix.lower() in SOUNDS else "image"

    def text(self, row: int) -> str:
        """Return the text of an input or, if it is neither an image nor a sound, its scores."""
        kind, name = self.kind(row), self._ids[row]
        if kind == "text":
            return self.texts[name][:MOST_CHARACTERS]
        if kind != "row":
            return ""
        scores = self._scores[[row]]
        values = class_scores(scores.values, scores.kind, len(scores.items), {}, np)[0]
        best = np.argsort(-values, kind="stable")[:LARGEST]
        return ", ".join(f"{scores.items[i]} {values[i]:.3g}" for i in best)

    def sound(self, row: int) -> tuple[Path, str]:
        """Return the file of a sound, and its type."""
        folder, file = self._require_file(row, "sound")
        return folder.require_inside(file), SOUNDS[file.suffix.lower()]

    def image(self, row: int) -> Thumbnail:
        """Return an image as it is shown beside the grid."""
        return self._read(row, LARGE_SIDE)

    def _read_thumbnail(self, row: int) -> Thumbnail:
        return self._read(row, SIDE)

    def _read(self, row: int, side: int) -> Thumbnail:
        folder, file = self._require_file(row, "image")
        # Warnings are switched off for the whole process meanwhile.
        with self._pillow:
            return folder.read(file, side)

    def _require_file(self, row: int, kind: Kind) -> tuple[PictureFolder, Path]:
        file = self._find(row)
        if self.folder is None or file is None or self.kind(row) != kind:
            raise RankshotError(f"there is no {kind} of this input")
        return self.folder, file


def _find_kind(place: Path) -> str:
    """Return whether a file has texts or paths, by its columns."""
    if place.suffix != ".csv":
        return "texts"
    columns = read_columns(place)[0]
    named = [kind for kind, column in COLUMNS.items() if column in columns]
    if len(named) != 1:
        raise RankshotError(
            f"{place}: give the inputs a column named text, or named path; the columns are "
            f"{quote_names(columns)}"
        )
    return named[0]


def _relative(file: Path, root: Path) -> str:
    try:
        return file.relative_to(root).as_posix()
    except ValueError:
        return file.as_posix()
