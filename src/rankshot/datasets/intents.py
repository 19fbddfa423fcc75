"""Intents: requests to a virtual assistant, 120 seen and 30 new intents (CLINC150)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.names import as_names
from rankshot.core.text_files import decode_lines, read_lines
from rankshot.datasets.embedded import (
    class_names,
    embedded_file,
    load_held_out_panel,
    load_panel,
)
from rankshot.datasets.features import read_only
from rankshot.ranking.files import read_rankings
from rankshot.ranking.rankings import Rankings

Texts = NDArray[np.str_]
SPLITS = ("train", "val", "test")
CLASS_LISTS = ("seen", "unseen", "held_out_seen")
"""The lists of ``classes.json``."""


@dataclass(frozen=True, eq=False, repr=False)
class TextData:
    """Texts with the names of their classes, and rankings of the classes; arrays are read-only.

    Attributes
    ----------
    name : str
        The data set, "intents", as for `load_similarities` and `load_class_vectors`.
    seen_train, seen_train_label : ndarrays of str, shape (n,)
        Texts of the seen classes, for training.
    seen_validation, seen_validation_label : ndarrays of str
        Other texts of the seen classes, for calibration and for the choice of settings.
    seen_test, seen_test_label : ndarrays of str
        Texts of the seen classes to report results on.
    new, new_label : ndarrays of str
        Texts of the new classes to report results on; no setting may be chosen on them.
    out_of_scope_validation, out_of_scope_test : ndarrays of str
        Texts that belong to no class.
    seen_classes, new_classes : tuples of str
        The names of the classes, sorted.
    held_out_classes : tuple of str
        The seen classes that play new ones, sorted.
    panel : Rankings
        Rankings of the seen classes, for each new class as target.
    held_out_panel : Rankings
        Rankings of the seen classes that are not held out, for each held-out class as target.
    """

    name: str
    seen_train: Texts
    seen_train_label: Texts
    seen_validation: Texts
    seen_validation_label: Texts
    seen_test: Texts
    seen_test_label: Texts
    new: Texts
    new_label: Texts
    out_of_scope_validation: Texts
    out_of_scope_test: Texts
    seen_classes: tuple[str, ...]
    new_classes: tuple[str, ...]
    held_out_classes: tuple[str, ...]
    panel: Rankings
    held_out_panel: Rankings

    def __repr__(self) -> str:
        seen = (self.seen_train, self.seen_validation, self.seen_test)
        return (
            f"{self.name}: {' + '.join(str(len(texts)) for texts in seen)} texts of "
            f"{len(self.seen_classes)} seen classes, {len(self.new)} of "
            f"{len(self.new_classes)} new ones, "
            f"{len(self.out_of_scope_validation)} + {len(self.out_of_scope_test)} out of scope"
        )


def load_intents(directory: str | Path | None = None) -> TextData:
    """Return requests to a virtual assistant, with rankings of their intents (CLINC150).

    Without a directory, these are the data that come with the package: a part of the requests of
    all 150 intents; ``intents.md``, in the folder of the data, describes it, and its limits.

    Parameters
    ----------
    directory : str or Path, optional
        The directory of the whole data, with four files. ``requests.jsonl`` has one request per
        line, ``{"split": "train", "intent": "translate", "text": "..."}``; the split is "train",
        "val" or "test", and the intent of an out-of-scope request is null, in "val" and "test"
        alone. ``classes.json`` has the lists "seen", "unseen" (the new classes) and
        "held_out_seen" (the seen classes that play new ones). ``panel.jsonl`` and
        ``panel_held_out_seen.jsonl`` have rankings for the new and the held-out classes. Requests
        of new intents for training and validation are skipped: in zero-shot classification there
        are none.

    Raises
    ------
    RankshotError
        Names the file, the line and what is wrong.
    FileNotFoundError
        If a file is missing.

    Examples
    --------
    >>> from rankshot.datasets import load_intents
    >>> data = load_intents()
    >>> data
    intents: 4800 + 1200 + 1200 texts of 120 seen classes, 600 of 30 new ones, 100 + 200 out of
    scope
    >>> print(f"{data.new_label[0]}: {data.new[0]}")
    plug_type: will i need to have a plug converter when i visit madrid
    >>> data.panel.select(target="gas", rater="lm1")
    Rankings: 1 ranking of 120 items, 1 target, 1 source, 1 rater
      gas: gas_type > mpg > distance > oil_change_when > rewards_balance > jump_start >
        last_maintenance > pto_balance > …
    """
    return _load_embedded() if directory is None else _load_directory(Path(directory))


class IntentClasses(NamedTuple):
    """The seen, the new and the held-out seen classes, each sorted."""

    seen: tuple[str, ...]
    new: tuple[str, ...]
    held_out: tuple[str, ...]


def _load_embedded() -> TextData:
    seen, new = class_names("intents")
    panel, held_out_panel = load_panel("intents"), load_held_out_panel("intents")
    classes = IntentClasses(seen, new, tuple(sorted(held_out_panel.target_names)))
    with (
        embedded_file("intents_requests.jsonl.xz") as path,
        lzma.open(path) as stream,
    ):
        texts = _read_requests(decode_lines(stream, path), path, classes)
    return TextData("intents", *texts, *classes, panel, held_out_panel)


def _load_directory(directory: Path) -> TextData:
    classes = _read_classes(directory / "classes.json")
    path = directory / "requests.jsonl"
    texts = _read_requests(read_lines(path), path, classes)
    others = tuple(name for name in classes.seen if name not in classes.held_out)
    panel = _read_panel(directory / "panel.jsonl", classes.seen, classes.new)
    held_out_panel = _read_panel(directory / "panel_held_out_seen.jsonl", others, classes.held_out)
    return TextData("intents", *texts, *classes, panel, held_out_panel)


# ---- Files


def _read_classes(path: Path) -> IntentClasses:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RankshotError(f"{path}: not JSON ({error})") from None
    if not isinstance(content, dict) or (missing := sorted({*CLASS_LISTS} - {*content})):
        lacking = quote_names(missing) if isinstance(content, dict) else short_repr(content)
        raise RankshotError(
            f"{path}: expected an object with the lists {quote_names(CLASS_LISTS)}; "
            f"{'there is no ' if isinstance(content, dict) else 'this is '}{lacking}"
        )
    seen, new, held_out = (
        tuple(sorted(as_names(content[kind], f"{path}: {kind!r}"))) for kind in CLASS_LISTS
    )
    if both := sorted({*seen} & {*new}):
        raise RankshotError(f"{path}: {quote_names(both)} is both in 'seen' and in 'unseen'")
    if unknown := sorted({*held_out} - {*seen}):
        raise RankshotError(f"{path}: {quote_names(unknown)} of 'held_out_seen' is not in 'seen'")
    return IntentClasses(seen, new, held_out)


def _read_panel(path: Path, items: tuple[str, ...], targets: tuple[str, ...]) -> Rankings:
    panel = read_rankings(path, items=items)
    if missing := sorted({*targets} - {*panel.target_names}):
        raise RankshotError(f"{path}: there is no ranking for {quote_names(missing)}")
    if odd := sorted({*panel.target_names} - {*targets}):
        hint = suggest_name(odd[0], targets)
        raise RankshotError(f"{path}: a ranking for the unknown target {short_repr(odd[0])}{hint}")
    return panel


def _read_requests(
    lines: Iterable[tuple[int, str]], path: Path, classes: IntentClasses
) -> list[Texts]:
    """Return the texts and labels of each part, in the order of the fields of `TextData`."""
    kind_of = {**dict.fromkeys(classes.seen, "seen"), **dict.fromkeys(classes.new, "new")}
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for number, line in lines:
        split, intent, text = _parse_request(line, f"{path}:{number}")
        if intent is not None and intent not in kind_of:
            hint = suggest_name(intent, kind_of)
            raise RankshotError(f"{path}:{number}: unknown intent {short_repr(intent)}{hint}")
        kind = "out of scope" if intent is None else kind_of[intent]
        if (kind, split) == ("out of scope", "train"):
            raise RankshotError(f"{path}:{number}: an out-of-scope request to train on")
        found.setdefault((kind, split), []).append((text, intent or ""))
    arrays: list[Texts] = []
    for kind, split, names in (
        *(("seen", split, classes.seen) for split in SPLITS),
        ("new", "test", classes.new),
    ):
        pairs = found.get((kind, split), [])
        if missing := sorted({*names} - {intent for _, intent in pairs}):
            raise RankshotError(f"{path}: no request of {quote_names(missing)} in {split!r}")
        arrays += (read_only(np.array(column)) for column in zip(*pairs, strict=True))
    for split in ("val", "test"):
        texts = [text for text, _ in found.get(("out of scope", split), [])]
        arrays.append(read_only(np.array(texts, dtype=np.str_)))
    return arrays


def _parse_request(line: str, where: str) -> tuple[str, str | None, str]:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RankshotError(f"{where}: not JSON ({error}): {short_repr(line)}") from None
    if not isinstance(record, dict):
        raise RankshotError(f"{where}: expected an object, not {short_repr(record)}")
    split, text = record.get("split"), record.get("text")
    # A missing intent must not be read as null, which means out of scope.
    intent = record.get("intent", False)
    if split not in SPLITS:
        raise RankshotError(
            f"{where}: 'split' is {short_repr(split)}, not one of {quote_names(SPLITS)}"
        )
    if not isinstance(text, str) or not text.strip():
        raise RankshotError(f"{where}: 'text' is {short_repr(text)}, not the text of a request")
    if intent is not None and not isinstance(intent, str):
        raise RankshotError(
            f"{where}: 'intent' must be a name, or null for an out-of-scope request"
        )
    return split, intent, text
