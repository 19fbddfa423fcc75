"""A model, of whatever library, as a function from inputs to scores; and its inputs, with ids.

Inputs are in a folder of images, a list, a table of texts, or an array. What is not used as an
input is yielded as well, with the reason: nothing is lost silently.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from rankshot.core.columns import read_batches
from rankshot.core.errors import InputError, short_repr
from rankshot.core.files import hash_file, read_lines, require_regular
from rankshot.core.images import ENDINGS
from rankshot.core.tables import ID, LABEL
from rankshot.core.validation import as_name
from rankshot.recognition.images import Preprocessing
from rankshot.zeroshot.scores import Kind

Takes = Literal["images", "texts", "values"]


@dataclass(eq=False)
class Model:
    """A model that turns a batch of inputs into scores; `open_model` makes it.

    Attributes
    ----------
    name : str
        A description of the model, for messages.
    takes : {"images", "texts", "values"}
        The input of ``run``: an array of preprocessed images, a list of texts, or the inputs as
        they are.
    run : callable
        Returns one row of scores per input.
    run_with_features : callable or None
        Returns the scores, and the input of the model's last layer as features: one row per input,
        or None if the last layer is not found. None for a model without layers, such as a
        function.
    classes : sequence, mapping, ClassLabels or None
        The names of its classes, if it has them, for `read_class_labels`.
    preprocessing : Preprocessing or None
        How images are preprocessed, if this is known.
    odd : str
        Why the model's own classes or preprocessing cannot be used, in brackets; usually empty.
    prepare : callable or None
        The model's own function from a Pillow image to its input; it replaces ``preprocessing``.
    input_shape : tuple or None
        The shape of its input, if this is known. Axes of fixed size are numbers.
    n_outputs : int or None
        The number of scores per input, if this is known before the model runs.
    max_tokens : int or None
        Texts are cut after this many tokens.
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        The kind of its scores, as in `Scores`.
    fingerprint : str or None
        A hash that changes with the weights; None if it cannot be computed, as for a function.
    device : str
        The device that the model runs on.
    has_probabilities : bool or None
        Whether its scores are probabilities; None before the first batch.

    Examples
    --------
    >>> import rankshot as rs
    >>> count = lambda texts: [[text.count("a"), text.count("b")] for text in texts]
    >>> model = rs.recognition.open_model(count)
    >>> model.takes, model.classes, model.run(["banana"])
    ('values', None, array([[3, 1]]))
    """

    name: str
    takes: Takes
    run: Callable[[Any], NDArray[Any]]
    run_with_features: Callable[[Any], tuple[NDArray[Any], Any]] | None = None
    classes: Any = None
    preprocessing: Preprocessing | None = None
    prepare: Callable[[Any], NDArray[Any]] | None = None
    input_shape: tuple[object, ...] | None = None
    n_outputs: int | None = None
    max_tokens: int | None = None
    kind: Kind = "multiclass"
    fingerprint: str | None = None
    device: str = "CPU"
    odd: str = ""
    has_probabilities: bool | None = None

    def __str__(self) -> str:
        cut = f"; texts are cut after {self.max_tokens:,} tokens" if self.max_tokens else ""
        return f"{self.name}, on {self.device}{cut}"

    @property
    def about(self) -> dict[str, str]:
        """What the model takes, its name, and the preprocessing of images."""
        about = {"takes": self.takes, "model": str(self)}
        if self.takes == "images":
            about["preprocessing"] = str(self.preprocessing or "the model's own processor")
        return about


def join_lines(error: Exception) -> str:
    """Return the message of an error of another library, in one line that is not too long."""
    return " ".join(str(error).split())[:400]


def name_outputs(id2label: object) -> dict[Any, Any] | None:
    """Return the names in a configuration of transformers, unless it made them up."""
    labels = dict(id2label) if isinstance(id2label, Mapping) else {}
    made_up = all(str(label) == f"LABEL_{number}" for number, label in labels.items())
    return None if made_up else labels


def fingerprint_files(paths: Iterable[Path]) -> str:
    """Return a hash of the content of files, and of their names."""
    about = [(os.fsencode(path.name), hash_file(path)) for path in paths]
    return sha256(repr(about).encode()).hexdigest()


# -------------------------------------------------------------------- inputs

INPUT_COLUMNS = {"texts": "text", "images": "path"}
"""The column of a table that has the inputs, if no other is named."""
DATASET_COLUMNS = {"texts": "text", "images": "image"}
TABLE_ENDINGS = {".csv", ".parquet", ".jsonl", ".ndjson"}
TABLE_ROWS = 1_000
"""Rows of a table that are read at a time: texts may be long."""


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


def open_inputs(source: object, takes: Takes) -> Entries:
    """Yield the inputs in a folder, a file, a list or an array, as far as a model takes them.

    A folder stands for all images below it, sorted; .txt has one path (relative to the file) or
    one text per line; tables (.csv, .jsonl, .parquet) have a column ``text`` (``path`` for images),
    and perhaps ``id``; a CSV file may have a single column of any other name besides ``id``.
    Without ids, rows are numbered from 0. A second input with the same id is skipped.
    """
    if not isinstance(source, (str, Path)):
        return _skip_repeated(_read_sequence(source, takes))
    path = Path(source)
    require_regular(path, "inputs")
    if not path.exists():
        raise InputError("inputs", str(path), "does not exist")
    if path.suffix in TABLE_ENDINGS and path.is_file():
        return _skip_repeated(_read_table(path, takes))
    if path.suffix == ".txt" and path.is_file():
        return _skip_repeated(_read_list(path, takes))
    if not path.is_dir() and path.suffix.lower() not in ENDINGS:
        rule = "must be a folder of images, or a file .csv, .jsonl or .txt"
        raise InputError("inputs", str(path), rule)
    if takes != "images":
        hint = "give texts as .csv, .jsonl or .txt; for images, give preprocessing"
        raise InputError("inputs", str(path), f"has images, but the model takes {takes}", hint=hint)
    # The paths in a folder differ: they need not be remembered.
    return _walk(path, "") if path.is_dir() else iter([Input(path.name, path)])


def _skip_repeated(entries: Entries) -> Entries:
    seen: set[str] = set()
    for one in entries:
        if isinstance(one, Input) and one.id in seen:
            yield Skipped(one.id, "the same id as an earlier input")
        else:
            seen.add(one.id)
            yield one


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


Row = tuple[str, str | None, object]
"""The place of a row, its id, and its input."""


def _read_rows(rows: Iterable[Row], column: str, takes: Takes, folder: Path) -> Entries:
    """Yield the inputs of a table; paths are relative to a folder."""
    for where, name, value in rows:
        if not name:
            yield Skipped(where, "the row has no id, or its id is not text")
        elif not value.strip() if isinstance(value, str) else takes == "texts":
            yield Skipped(name, f"no text in the column {column!r}")
        else:
            is_path = takes == "images" and isinstance(value, str)
            yield Input(_require_id(name, where), folder / str(value) if is_path else value)


def _read_table(path: Path, takes: Takes) -> Entries:
    column = INPUT_COLUMNS.get(takes)
    if column is None:
        raise InputError("inputs", str(path), "is a table, but the model takes arrays")
    number = 0
    for batch in read_batches(path, batch_rows=TABLE_ROWS):
        others = [name for name in batch.columns if name != ID]
        if path.suffix == ".csv" and len(others) == 1:
            column = others[0]
        values = batch.read_values(column)
        ids: Iterable[str] = map(str, count(number))
        if ID in batch.columns:
            ids = batch.read_texts(ID)[0]
        rows = zip(map(batch.where, range(len(values))), ids, values, strict=False)
        yield from _read_rows(rows, column, takes, path.parent)
        number += len(values)


# -------------------------------------------------------------------- values in memory


def _read_sequence(source: Any, takes: Takes) -> Entries:
    if hasattr(source, "column_names") and hasattr(source, "features"):
        yield from _read_dataset(source, takes)
        return
    if not isinstance(source, Iterable) or hasattr(source, "columns") or issparse(source):
        raise InputError(
            "inputs",
            source if np.isscalar(source) else type(source).__name__,
            "must be a folder, a file, a list, an array or a Dataset",
            hint="the scores of a scikit-learn classifier for a table come from rs.scores_of",
        )
    for number, value in enumerate(source):
        if takes == "images" and isinstance(value, (str, Path)):
            yield Input(_require_id(_as_id(str(value)), f"input {number}"), Path(value))
        elif takes == "texts" and (not isinstance(value, str) or not value.strip()):
            yield Skipped(str(number), f"not a text: {short_repr(value)}")
        else:
            yield Input(str(number), value)


def _read_dataset(dataset: Any, takes: Takes) -> Entries:
    """Yield the texts or images of a ``datasets.Dataset``, row by row."""
    wanted = DATASET_COLUMNS.get(takes)
    others = [name for name in dataset.column_names if name not in {ID, LABEL}]
    column = wanted if wanted in others else others[0] if len(others) == 1 else None
    if column is None:
        raise InputError("inputs", dataset.column_names, f"must have a column {wanted!r}")
    rows = ((f"row {i}", as_name(row.get(ID, i)), row[column]) for i, row in enumerate(dataset))
    return _read_rows(rows, column, takes, Path())
