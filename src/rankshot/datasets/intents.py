"""Intents: requests to a virtual assistant, 120 seen and 30 new intents (CLINC150)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.files import decode_lines, read_lines
from rankshot.core.validation import as_names
from rankshot.datasets.embedded import (
    class_names,
    embedded_file,
    load_held_out_panel,
    load_panel,
)
from rankshot.datasets.features import read_only
from rankshot.ranking.files.ranking_files import read_rankings
from rankshot.ranking.rankings import Rankings

Texts = NDArray[np.str_]
SPLITS = ("train", "val", "test")
PARTS = {
    "seen_train": ("seen", "train"),
    "seen_validation": ("seen", "val"),
    "seen_test": ("seen", "test"),
    "new": ("new", "test"),
}
"""The kind of class and the split of the parts of `TextData` that have labels."""
OUT_OF_SCOPE = "out of scope"
OUT_OF_SCOPE_PARTS = {"out_of_scope_validation": "val", "out_of_scope_test": "test"}
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

    Examples
    --------
    >>> from rankshot.datasets import load_intents
    >>> data = load_intents()
    >>> len(data.seen_classes), len(data.new_classes)
    (120, 30)
    >>> print(data.new[0], "->", data.new_label[0])
    will i need to have a plug converter when i visit madrid -> plug_type
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
    panel, held_out_panel = load_panel("intents"), load_held_out_panel("intents")
    classes = IntentClasses(*class_names("intents"), tuple(sorted(held_out_panel.target_names)))
    with embedded_file("intents_requests.jsonl.xz") as path:
        stream = BytesIO(lzma.decompress(path.read_bytes()))
        requests = _read_requests(decode_lines(stream, path), path, classes)
    return _join(requests, classes, panel, held_out_panel)


def _load_directory(directory: Path) -> TextData:
    classes = _read_classes(directory / "classes.json")
    path = directory / "requests.jsonl"
    requests = _read_requests(read_lines(path), path, classes)
    others = tuple(name for name in classes.seen if name not in classes.held_out)
    panel = _read_panel(directory / "panel.jsonl", classes.seen, classes.new)
    held_out_panel = _read_panel(directory / "panel_held_out_seen.jsonl", others, classes.held_out)
    return _join(requests, classes, panel, held_out_panel)


def _join(
    requests: dict[str, Any], classes: IntentClasses, panel: Rankings, held_out_panel: Rankings
) -> TextData:
    return TextData(
        "intents",
        **requests,
        seen_classes=classes.seen,
        new_classes=classes.new,
        held_out_classes=classes.held_out,
        panel=panel,
        held_out_panel=held_out_panel,
    )


# ---- Files


def _read_classes(path: Path) -> IntentClasses:
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RankshotError(f"{path}: not JSON ({error})") from None
    if not isinstance(content, dict) or not {*CLASS_LISTS} <= {*content}:
        found = list(content) if isinstance(content, dict) else content
        raise RankshotError(
            f"{path}: expected an object with the lists {quote_names(CLASS_LISTS)}, "
            f"not {short_repr(found)}"
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
) -> dict[str, Any]:
    """Return the texts and labels of all parts, by the fields of `TextData`."""
    groups = _group_requests(lines, path, classes)
    arrays: dict[str, Texts] = {}
    for part, (kind, split) in PARTS.items():
        pairs = groups.get((kind, split), [])
        if missing := sorted({*getattr(classes, kind)} - {intent for _, intent in pairs}):
            raise RankshotError(f"{path}: no request of {quote_names(missing)} in {split!r}")
        texts, labels = zip(*pairs, strict=True)
        arrays |= {part: np.array(texts), f"{part}_label": np.array(labels)}
    for part, split in OUT_OF_SCOPE_PARTS.items():
        found = groups.get((OUT_OF_SCOPE, split), [])
        arrays[part] = np.array([text for text, _ in found], dtype=np.str_)
    return {name: read_only(array) for name, array in arrays.items()}


def _group_requests(
    lines: Iterable[tuple[int, str]], path: Path, classes: IntentClasses
) -> dict[tuple[str, str], list[tuple[str, str | None]]]:
    """Return the texts and intents of each kind of class and split."""
    kinds: dict[str | None, str] = {None: OUT_OF_SCOPE}
    kinds |= {**dict.fromkeys(classes.seen, "seen"), **dict.fromkeys(classes.new, "new")}
    groups: dict[tuple[str, str], list[tuple[str, str | None]]] = {}
    for number, line in lines:
        split, intent, text = _parse_request(line, f"{path}:{number}")
        if intent not in kinds:
            hint = suggest_name(intent, classes.seen + classes.new)
            raise RankshotError(f"{path}:{number}: unknown intent {short_repr(intent)}{hint}")
        if intent is None and split not in OUT_OF_SCOPE_PARTS.values():
            raise RankshotError(f"{path}:{number}: an out-of-scope request to train on")
        groups.setdefault((kinds[intent], split), []).append((text, intent))
    return groups


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
