"""Inputs as people see them: images, sounds, texts, or the largest scores of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np

from rankshot.core.columns import open_table
from rankshot.core.errors import InputError
from rankshot.core.images import ENDINGS as IMAGE_ENDINGS
from rankshot.pages.images import Thumbnail, find_files
from rankshot.recognition.inputs import INPUT_COLUMNS, Input, open_inputs
from rankshot.zeroshot.scores import Scores

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
SIDE, LARGE_SIDE = 192, 1200
"""The largest width and height of an image in the grid, and enlarged, in pixels."""
MOST_KEPT = 5_000
"""Thumbnails in memory, about 8 KB each."""
MOST_CHARACTERS = 5_000
"""Of a text; the rest is not sent."""
LARGEST = 5
"""How many of the largest scores of a row are shown."""
Kind = Literal["image", "sound", "text", "row"]


def find_inputs(ids: Sequence[str], place: Path, takes: Any = None) -> dict[str, Path | str]:
    """Find inputs in a folder of images or sounds; or in a file of texts, or of paths."""
    endings = (*IMAGE_ENDINGS, *SOUNDS)
    if place.is_dir() or place.suffix.lower() in IMAGE_ENDINGS:
        return {**find_files(place if place.is_dir() else place.parent, ids, endings)}
    has_paths = place.suffix == ".csv" and INPUT_COLUMNS["images"] in open_table(place).columns
    entries = open_inputs(place, takes or ("images" if has_paths else "texts"))
    return {one.id: one.value for one in entries if isinstance(one, Input)}


class ShownInputs:
    """What can be shown of each input.

    Parameters
    ----------
    ids : sequence of str
    scores : Scores
        If there is nothing else to show.
    values : mapping of id to Path or str, optional
        The file or the text of each input; files that are not there are left out.
    """

    def __init__(
        self,
        ids: Sequence[str],
        scores: Scores,
        values: Mapping[str, Path | str] | None = None,
    ) -> None:
        self.ids = ids
        self._scores = scores
        every = ((values or {}).get(name) for name in ids)
        self.values = [
            one if isinstance(one, str) or (one and one.is_file()) else None for one in every
        ]
        self._pillow = Lock()
        self.read_thumbnail = lru_cache(MOST_KEPT)(lambda row: self.read_image(row, SIDE))

    @property
    def missing(self) -> list[str]:
        """The ids of inputs of which only the scores can be shown."""
        return [name for name, value in zip(self.ids, self.values, strict=True) if value is None]

    def require_row(self, row: int) -> int:
        """Return the number of an input, or raise an error if there is none."""
        if row not in range(len(self.ids)):
            raise InputError("row", row, f"is not one of the {len(self.ids):,} inputs")
        return row

    def find_kind(self, row: int) -> Kind:
        """Return the kind of an input."""
        value = self.values[row]
        if value is None:
            return "row"
        if isinstance(value, str):
            return "text"
        return "sound" if value.suffix.lower() in SOUNDS else "image"

    def text(self, row: int) -> str:
        """Return the text of an input, empty if it is none."""
        value = self.values[row]
        return value if isinstance(value, str) else ""

    def describe(self, row: int) -> dict[str, object]:
        """Return the text of an input for the page; without file and text, its largest scores."""
        text = self.text(row)[:MOST_CHARACTERS]
        if self.values[row] is None:
            scores = self._scores[[row]]
            values = scores.values[0]
            best = np.argsort(-values, kind="stable")[:LARGEST]
            text = ", ".join(f"{scores.items[i]} {values[i]:.3g}" for i in best)
        return {"kind": self.find_kind(row), "text": text}

    def find_sound(self, row: int) -> tuple[Path, str]:
        """Return the file of a sound, and its type."""
        file = self._require_file(row, "sound")
        return file, SOUNDS[file.suffix.lower()]

    def read_image(self, row: int, side: int = LARGE_SIDE) -> Thumbnail:
        """Return an image, of this size in pixels at most."""
        # Warnings are switched off for the whole process meanwhile.
        with self._pillow:
            return Thumbnail.make(self._require_file(row, "image"), side)

    def _require_file(self, row: int, kind: Kind) -> Path:
        file = self.values[row]
        if not isinstance(file, Path) or self.find_kind(row) != kind:
            raise InputError("row", row, f"has no {kind}")
        return file
