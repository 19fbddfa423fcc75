"""Inputs as people see them: images, sounds, texts, or the largest scores of a row."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np

from rankshot.core.columns import open_table
from rankshot.core.errors import InputError, quote_names
from rankshot.core.files import hash_file
from rankshot.core.images import ENDINGS as IMAGE_ENDINGS
from rankshot.pages.images import ImageFolder, Thumbnail
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
    values : mapping of id to Path or str, optional
        The file, below ``root``, or the text of each input.
    root : Path, optional
        The folder of the files: no other file is read.
    hashes : mapping of id to str, optional
        The SHA-256 of the files when they were scored.
    """

    def __init__(
        self,
        ids: Sequence[str],
        scores: Scores,
        values: Mapping[str, Path | str] | None = None,
        root: Path | None = None,
        hashes: Mapping[str, str] | None = None,
    ) -> None:
        self._ids = ids
        self._scores = scores
        self._hashes = hashes or {}
        self.folder = None if root is None else ImageFolder(root, (*IMAGE_ENDINGS, *SOUNDS))
        self.values = [(values or {}).get(name) for name in ids]
        self._pillow = Lock()
        self.read_thumbnail = lru_cache(MOST_KEPT)(lambda row: self.read_image(row, SIDE))
        self._hash = lru_cache(MOST_KEPT)(lambda file, _size, _time: hash_file(file))

    @classmethod
    def open(
        cls, ids: Sequence[str], scores: Scores, place: Path, takes: Any = None
    ) -> ShownInputs:
        """Find inputs in a folder of images or sounds; or in a file of texts, or of paths."""
        names: Mapping[str, Any] = {name: name for name in ids}
        if not (place.is_dir() or place.suffix.lower() in IMAGE_ENDINGS):
            takes = takes or _find_kind(place)
            entries = [one for one in open_inputs(place, takes) if isinstance(one, Input)]
            names = {one.id: one.value for one in entries}
            if takes == "texts":
                return cls(ids, scores, names)
            # A path that leads out of the folder begins with .. and is not found.
            names = {one.id: os.path.relpath(one.value, place.parent) for one in entries}
        root = place if place.is_dir() else place.parent
        folder = ImageFolder(root, (*IMAGE_ENDINGS, *SOUNDS))
        files = {name: folder.find(names.get(name, "")) for name in ids}
        return cls(ids, scores, {name: file for name, file in files.items() if file}, root)

    def check(self, place: Path) -> list[str]:
        """Return sentences about inputs that are missing; refuse if all are."""
        missing = [name for name, value in zip(self._ids, self.values, strict=True) if not value]
        if len(missing) == len(self._ids):
            raise InputError(
                "inputs",
                str(place),
                "has none of the inputs",
                hint="ids must be paths below this folder, with or without extensions, or ids of "
                f"this file, but the first are {quote_names(missing)}",
            )
        if not missing:
            return []
        what = f"{len(missing):,} of {len(self._ids):,} inputs not found in {place}"
        return [f"{what}; their scores are shown: {quote_names(missing)}"]

    def has_changed(self, row: int) -> bool:
        """Return whether an input is another one than when it was scored, or has been removed."""
        value, digest = self.values[row], self._hashes.get(self._ids[row])
        if not isinstance(value, Path) or digest is None:
            return False
        try:
            about = value.stat()
            return self._hash(value, about.st_size, about.st_mtime_ns) != digest
        except OSError:
            return True

    def find_kind(self, row: int) -> Kind:
        """Return the kind of an input."""
        value = self.values[row]
        if value is None:
            return "row"
        if isinstance(value, str):
            return "text"
        return "sound" if value.suffix.lower() in SOUNDS else "image"

    def describe(self, row: int) -> dict[str, object]:
        """Return the text of an input for the page; without file and text, its largest scores."""
        value = self.values[row]
        text = value[:MOST_CHARACTERS] if isinstance(value, str) else ""
        if value is None:
            scores = self._scores[[row]]
            values = scores.values[0]
            best = np.argsort(-values, kind="stable")[:LARGEST]
            text = ", ".join(f"{scores.items[i]} {values[i]:.3g}" for i in best)
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
            raise InputError("row", row, f"has no {kind}")
        return self.folder, file


def _find_kind(place: Path) -> str:
    """Return whether a file has texts or paths, by its columns."""
    columns = open_table(place).columns if place.suffix == ".csv" else [INPUT_COLUMNS["texts"]]
    kinds = [kind for kind, column in INPUT_COLUMNS.items() if column in columns]
    if len(kinds) != 1:
        rule = "must have a column named text, or one named path"
        raise InputError("inputs", str(place), rule, hint=f"it has {quote_names(columns)}")
    return kinds[0]
