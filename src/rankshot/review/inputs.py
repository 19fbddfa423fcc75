"""Inputs as people see them: images, sounds, texts, or the largest scores of a row."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np

from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.images import ENDINGS as IMAGE_ENDINGS
from rankshot.core.tables import read_columns
from rankshot.pages.images import ImageFolder, Thumbnail
from rankshot.recognition.inputs import INPUT_COLUMNS, Input, hash_input, open_inputs
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
    """What can be shown of each input.

    Parameters
    ----------
    ids : sequence of str
    scores : Scores
        If there is nothing else to show.
    place : Path, optional
        A folder of images or sounds; or a file of texts, or of paths below its folder.
    takes : {"texts", "images"}, optional
        What a file contains; by default, it is found from the columns.
    versions : mapping of id to str, optional
        The inputs when they were scored; see `hash_input`.
    """

    def __init__(
        self,
        ids: Sequence[str],
        scores: Scores,
        place: Path | None = None,
        takes: Any = None,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        self._ids = ids
        self._scores = scores
        self._versions = versions or {}
        self.folder: ImageFolder | None = None
        self.values: list[Path | str | None] = [None] * len(ids)
        if place is not None:
            self.values = self._open(place, takes)
        self._pillow = Lock()
        self.read_thumbnail = lru_cache(MOST_KEPT)(lambda row: self.read_image(row, SIDE))

    def _open(self, place: Path, takes: Any) -> list[Path | str | None]:
        """Return the file or the text of each input."""
        names: Mapping[str, Any] = {name: name for name in self._ids}
        if not (place.is_dir() or place.suffix.lower() in IMAGE_ENDINGS):
            takes = takes or _find_kind(place)
            found = [one for one in open_inputs(place, takes) if isinstance(one, Input)]
            names = {one.id: one.value for one in found}
            if takes == "texts":
                return [names.get(name) for name in self._ids]
            # A path that leads out of the folder begins with .. and is not found.
            names = {one.id: os.path.relpath(one.value, place.parent) for one in found}
        root = place if place.is_dir() else place.parent
        self.folder = ImageFolder(root, (*IMAGE_ENDINGS, *SOUNDS))
        return [self.folder.find(names.get(name, "")) for name in self._ids]

    def check(self, place: Path) -> list[str]:
        """Return sentences about inputs that are missing or have changed; refuse if all are."""
        missing = [name for name, value in zip(self._ids, self.values, strict=True) if not value]
        if len(missing) == len(self._ids):
            raise RankshotError(
                f"{place}: has none of the inputs; ids must be paths below this folder, with or "
                f"without extensions, or ids of this file, but the first are {quote_names(missing)}"
            )
        changed = [name for row, name in enumerate(self._ids) if self.has_changed(row)]
        problems = {
            f"not found in {place}; their scores are shown": missing,
            "changed since they were scored; run `rankshot recognise` again": changed,
        }
        return [
            f"{len(ids):,} of {len(self._ids):,} inputs {what}: {quote_names(ids)}"
            for what, ids in problems.items()
            if ids
        ]

    def has_changed(self, row: int) -> bool:
        """Return whether an input is another one than when it was scored, or has been removed."""
        value, version = self.values[row], self._versions.get(self._ids[row])
        return value is not None and version is not None and hash_input(value) != version

    def find_kind(self, row: int) -> Kind:
        """Return how an input is shown."""
        value = self.values[row]
        if value is None:
            return "row"
        if isinstance(value, str):
            return "text"
        return "sound" if value.suffix.lower() in SOUNDS else "image"

    def describe(self, row: int) -> dict[str, object]:
        """Return what is shown: of an input without file and text, its largest scores."""
        value = self.values[row]
        text = value[:MOST_CHARACTERS] if isinstance(value, str) else ""
        if value is None:
            scores = self._scores[[row]]
            found = scores.values[0]
            best = np.argsort(-found, kind="stable")[:LARGEST]
            text = ", ".join(f"{scores.items[i]} {found[i]:.3g}" for i in best)
        return {"kind": self.find_kind(row), "text": text, "has_changed": self.has_changed(row)}

    def find_sound(self, row: int) -> tuple[Path, str]:
        """Return the file of a sound, and its type."""
        folder, file = self._require_file(row, "sound")
        return folder.require_inside(file), SOUNDS[file.suffix.lower()]

    def read_image(self, row: int, side: int = LARGE_SIDE) -> Thumbnail:
        """Return an image, of this size in pixels at most."""
        folder, file = self._require_file(row, "image")
        # Warnings are switched off for the whole process meanwhile.
        with self._pillow:
            return folder.read(file, side)

    def _require_file(self, row: int, kind: Kind) -> tuple[ImageFolder, Path]:
        file = self.values[row]
        if self.folder is None or not isinstance(file, Path) or self.find_kind(row) != kind:
            raise RankshotError(f"there is no {kind} of this input")
        return self.folder, file


def _find_kind(place: Path) -> str:
    """Return whether a file has texts or paths, by its columns."""
    columns = read_columns(place)[0] if place.suffix == ".csv" else [INPUT_COLUMNS["texts"]]
    kinds = [kind for kind, column in INPUT_COLUMNS.items() if column in columns]
    if len(kinds) != 1:
        raise RankshotError(
            f"{place}: give the inputs a column named text, or named path; the columns are "
            f"{quote_names(columns)}"
        )
    return kinds[0]
