"""Inputs of a model, each with an id: a folder of images, a list, a table of texts, an array.

Inputs are read again each time they are needed, so a folder of millions of files takes no memory.
What is not used as an input is yielded as well, with the reason: nothing is lost silently.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from rankshot.core.columns import open_table, read_batches
from rankshot.core.errors import InputError, short_repr
from rankshot.core.files import hash_file, read_json_lines, read_lines
from rankshot.core.images import ENDINGS
from rankshot.core.tables import ID, LABEL, find_column
from rankshot.core.validation import as_name
from rankshot.recognition.model import Takes

INPUT_COLUMNS = {"texts": "text", "images": "path"}
"""The column of a table that has the inputs, if no other is named."""
DATASET_COLUMNS = {"texts": "text", "images": "image"}
JSON_ENDINGS = (".jsonl", ".ndjson")


class Input(NamedTuple):
    """An input: its id, and the path of an image, a text, or another value."""

    id: str
    value: Any


class Skipped(NamedTuple):
    """Something that was not scored, and why.

    Attributes
    ----------
    id : str
        The id of the input, such as the path of a file.
    reason : str
        Why it has no scores.
    is_input : bool
        False for what was found next to the inputs, such as hidden files.

    Examples
    --------
    >>> from rankshot.recognition import Skipped
    >>> Skipped("photos/broken.png", "not an image")
    Skipped(id='photos/broken.png', reason='not an image', is_input=True)
    """

    id: str
    reason: str
    is_input: bool = True


Entries = Iterator[Input | Skipped]


@dataclass(frozen=True)
class Inputs:
    """Inputs that can be read several times; `open_inputs` makes them.

    Attributes
    ----------
    name : str
        Where they come from, for messages.
    read : callable
        Yields all inputs, and what is skipped, in the same order every time.
    has_unique_ids : bool
        Whether ids are known to be different, so that they need not be remembered.
    """

    name: str
    read: Callable[[], Entries]
    has_unique_ids: bool = False

    def __iter__(self) -> Entries:
        """Yield all inputs; a second input with the same id is skipped."""
        if self.has_unique_ids:
            yield from self.read()
            return
        seen: set[str] = set()
        for item in self.read():
            if isinstance(item, Input) and item.id in seen:
                yield Skipped(item.id, "the same id as an earlier input")
                continue
            seen.add(item.id)
            yield item


def open_inputs(
    source: object,
    takes: Takes,
    id_prefix: str = "",
) -> Inputs:
    """Return the inputs in a folder, a file, a list or an array, as far as a model takes them.

    A folder stands for all images below it, sorted; .txt has one path (relative to the file) or
    one text per line; .csv and .jsonl have a column ``text`` (``path`` for images), and perhaps
    ``id``; a CSV file may have a single column of any other name besides ``id``. Without ids, rows
    are numbered from 0, after ``id_prefix``.
    """
    if not isinstance(source, (str, Path)):
        return _open_sequence(source, takes)
    path = Path(source)
    if path.suffix in {".csv", *JSON_ENDINGS} and path.is_file():
        return _open_table(path, takes, id_prefix)
    if not path.exists():
        raise InputError("inputs", str(path), "does not exist")
    if path.is_dir() or path.suffix.lower() in ENDINGS:
        if takes != "images":
            raise InputError(
                "inputs",
                str(path),
                f"has images, but the model takes {takes}",
                hint="give texts as .csv, .jsonl or .txt"
                if takes == "texts"
                else "give preprocessing, such as 'imagenet': how images become arrays",
            )
        if path.is_dir():
            return Inputs(str(path), lambda: _walk(path, ""), has_unique_ids=True)
        return Inputs(str(path), lambda: iter([Input(path.name, path)]))
    if path.suffix == ".txt":
        return Inputs(str(path), lambda: _read_list(path, takes))
    raise InputError(
        "inputs", str(path), "must be a folder of images, or a file .csv, .jsonl or .txt"
    )


# -------------------------------------------------------------------- files


def _walk(folder: Path, parent: str) -> Entries:
    """Yield the image files below a folder, and what else is there, sorted by path."""
    try:
        # Names alone: with all that a directory says of them, they would take far more memory.
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError as error:
        yield Skipped(
            _as_id(parent) or str(folder), f"a folder that cannot be read ({error.strerror})"
        )
        return
    for name in names:
        place, id_ = folder / name, _as_id(f"{parent}{name}")
        if name.startswith("."):
            yield Skipped(id_, "hidden", is_input=False)
        elif place.is_dir():
            if place.is_symlink():
                yield Skipped(id_, "a link to a folder, which is not followed", is_input=False)
            else:
                yield from _walk(place, f"{parent}{name}/")
        elif place.suffix.lower() not in ENDINGS:
            ending = place.suffix or "no extension"
            yield Skipped(id_, f"not named like an image ({ending})", is_input=False)
        else:
            yield Input(id_, place)


def _as_id(name: str) -> str:
    # Names of files can hold bytes that are not UTF-8.
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _require_id(name: str, where: str) -> str:
    """Return an id that every kind of table can hold, or raise an error now, not after scoring."""
    if "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise InputError("id", name, "must be text without NUL characters or surrogates", where)
    return name


def _read_list(path: Path, takes: Takes) -> Entries:
    for number, line in read_lines(path):
        if takes == "images":
            yield Input(_require_id(line, f"{path}:{number}"), path.parent / line)
        else:
            # Its line from 0, so that a blank line does not change the others.
            yield Input(str(number - 1), line)


def _open_table(path: Path, takes: Takes, id_prefix: str) -> Inputs:
    wanted = INPUT_COLUMNS.get(takes)
    if wanted is None:
        raise InputError("inputs", str(path), "is a table, but the model takes arrays")
    read = _read_csv if path.suffix == ".csv" else _read_json_lines
    if path.suffix == ".csv":
        others = [name for name in open_table(path).columns if name != ID]
        wanted = others[0] if len(others) == 1 else wanted
    # A missing column, or an empty file, is reported now.
    next(read(path, wanted, id_prefix), None)

    def read_entries() -> Entries:
        for where, name, value in read(path, wanted, id_prefix):
            if not name:
                yield Skipped(where, "the row has no id, or its id is not text")
            elif not isinstance(value, str) or not value.strip():
                yield Skipped(name, f"no text in the column {wanted!r}")
            else:
                yield Input(name, path.parent / value if takes == "images" else value)

    return Inputs(str(path), read_entries)


_Row = tuple[str, str | None, object]
"""The file and line of a row, its id, and its input."""


def _read_csv(path: Path, column: str, id_prefix: str) -> Iterator[_Row]:
    has_ids = ID in open_table(path).columns
    number = 0
    # Texts may be long.
    for batch in read_batches(path, [column, ID] if has_ids else [column], batch_rows=1_000):
        (values,) = batch.read_texts(column)
        numbered = (f"{id_prefix}{n}" for n in range(number, number + len(values)))
        names = batch.read_texts(ID)[0] if has_ids else numbered
        for row, (name, value) in enumerate(zip(names, values, strict=True)):
            yield batch.where(row), _require_id(name, batch.where(row)), value
        number += len(values)


def _read_json_lines(path: Path, column: str, id_prefix: str) -> Iterator[_Row]:
    for number, (line, row) in enumerate(read_json_lines(path)):
        where = f"{path}:{line}"
        if column not in row:
            find_column(list(map(str, row)), column, where)
        name = as_name(row.get(ID, f"{id_prefix}{number}"))
        yield where, None if name is None else _require_id(name, where), row[column]


# -------------------------------------------------------------------- values in memory


def _open_sequence(source: Any, takes: Takes) -> Inputs:
    if hasattr(source, "column_names") and hasattr(source, "features"):
        return _open_dataset(source, takes)
    if not isinstance(source, (Sequence, np.ndarray)):
        if not isinstance(source, Iterable) or hasattr(source, "columns") or issparse(source):
            raise InputError(
                "inputs",
                source if np.isscalar(source) else type(source).__name__,
                "must be a folder, a file, a list, an array or a Dataset",
                hint="the scores of a scikit-learn classifier for a table come from rs.scores_of",
            )
        source = list(source)

    def read() -> Entries:
        for number in range(len(source)):
            value = source[number]
            if takes == "images" and isinstance(value, (str, Path)):
                id_ = _require_id(_as_id(str(value)), f"input {number}")
                yield Input(id_, Path(value))
            elif takes == "texts" and (not isinstance(value, str) or not value.strip()):
                yield Skipped(str(number), f"not a text: {short_repr(value)}")
            else:
                yield Input(str(number), value)

    return Inputs("the list", read)


def _open_dataset(dataset: Any, takes: Takes) -> Inputs:
    """Return the texts or images of a ``datasets.Dataset``, row by row."""
    wanted = DATASET_COLUMNS.get(takes)
    others = [name for name in dataset.column_names if name not in {ID, LABEL}]
    column = wanted if wanted in others else others[0] if len(others) == 1 else None
    if column is None:
        raise InputError("inputs", dataset.column_names, f"must have a column {wanted!r}")
    has_ids = ID in dataset.column_names

    def read() -> Entries:
        for number, row in enumerate(dataset):
            id_ = _require_id(str(row[ID]), f"row {number}") if has_ids else str(number)
            if takes == "texts" and not (isinstance(row[column], str) and row[column].strip()):
                yield Skipped(id_, f"not a text: {short_repr(row[column])}")
            else:
                yield Input(id_, row[column])

    return Inputs("the dataset", read)


def hash_input(value: Path | str) -> str:
    """A hash of a text, or of the content of a file; empty if there is no such file."""
    if isinstance(value, str):
        return sha256(value.encode(errors="surrogatepass")).hexdigest()
    return hash_file(value) if value.is_file() else ""


def find_version(value: Path | str) -> str:
    """Return what changes with the text of an input, or with the size and the time of its file."""
    if isinstance(value, str):
        return sha256(value.encode(errors="surrogatepass")).hexdigest()[:16]
    try:
        status = value.stat()
    except OSError:
        return ""
    return f"{status.st_size}-{status.st_mtime_ns}"


def fingerprint_entries(
    entries: Sequence[Input | Skipped], describe_file: Callable[[Path], str]
) -> str:
    """Return a hash of entries in any order: of texts, arrays, and files."""
    found: list[str] = []
    for one in entries:
        about: tuple[object, ...] = tuple(one)
        value: object = one.value if isinstance(one, Input) else None
        if isinstance(value, Path):
            about = one.id, describe_file(value) if value.exists() else ""
        elif hasattr(value, "tobytes"):
            about = one.id, type(value).__name__, sha256(value.tobytes()).hexdigest()
        found.append(repr(about))
    return sha256("\n".join(sorted(found)).encode(errors="surrogatepass")).hexdigest()
