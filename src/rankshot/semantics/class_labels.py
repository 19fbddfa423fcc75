"""Class names as they come: lists, ``id2label``, text files, and the classes of ImageNet."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from rankshot.core.names import as_names
from rankshot.core.text_files import read_names


@dataclass(frozen=True)
class ClassLabels:
    """The names of a classifier's classes, in the order of its outputs."""

    names: tuple[str, ...]
    synsets: tuple[str | None, ...] = ()
    synonyms: tuple[tuple[str, ...], ...] = ()
    changes: list[str] = field(default_factory=list)


def read_class_labels(source: str | Path | Sequence[str] | Mapping[Any, str]) -> ClassLabels:
    """Read class names from a file, a list, a mapping from numbers, or "imagenet-1k"."""
    if isinstance(source, Mapping):
        numbers = sorted(source, key=int)
        return ClassLabels(as_names([source[number] for number in numbers], "classes"))
    if source == "imagenet-1k":
        place = files("rankshot.datasets") / "data" / "imagenet_classes.tsv"
        with as_file(place) as path, path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
        return ClassLabels(tuple(row["name"] for row in rows), tuple(row["id"] for row in rows))
    if isinstance(source, (str, Path)):
        return ClassLabels(read_names(Path(source)))
    return ClassLabels(as_names(source, "classes"))
