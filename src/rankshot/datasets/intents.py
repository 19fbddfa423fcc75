"""Intents: requests to a virtual assistant, 120 seen and 30 new intents (CLINC150)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.datasets.embedded import (
    class_names,
    embedded_file,
    load_held_out_panel,
    load_panel,
    read_only,
)
from rankshot.ranking.rankings import Rankings

Texts = NDArray[np.str_]
PARTS = {
    "seen_train": ("seen", "train"),
    "seen_validation": ("seen", "val"),
    "seen_test": ("seen", "test"),
    "new": ("new", "test"),
    "out_of_scope_validation": (None, "val"),
    "out_of_scope_test": (None, "test"),
}
"""The kind of class, None for texts without labels, and the split of the parts of `TextData`."""


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
        Texts of the new classes for reporting results; no setting may be chosen on them.
    out_of_scope_validation, out_of_scope_test : ndarrays of str
        Texts that belong to no class.
    seen_classes, new_classes : tuples of str
        The names of the classes, sorted.
    held_out_classes : tuple of str
        The held-out seen classes, sorted.
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


def load_intents() -> TextData:
    """Return requests to a virtual assistant, with rankings of their intents (CLINC150).

    They are a part of the requests of all 150 intents; ``intents.md``, in the folder of the data,
    describes it, and its limits.

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
    with embedded_file("intents_requests.jsonl.xz") as path:
        lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    seen, new = class_names("intents")
    return join_intents(lines, seen, new, load_panel("intents"), load_held_out_panel("intents"))


def join_intents(
    lines: Iterable[str],
    seen: tuple[str, ...],
    new: tuple[str, ...],
    panel: Rankings,
    held_out_panel: Rankings,
) -> TextData:
    """Sort requests, one JSON object per line, into the parts of `TextData`.

    Requests of new intents for training and validation are skipped: in zero-shot classification
    there are none. The intent of an out-of-scope request is null.
    """
    kinds: dict[str | None, str | None] = {None: None, **dict.fromkeys(seen, "seen")}
    kinds |= dict.fromkeys(new, "new")
    groups: dict[tuple[str | None, str], list[tuple[str, str]]] = {}
    for request in map(json.loads, lines):
        group = kinds[request["intent"]], request["split"]
        groups.setdefault(group, []).append((request["text"], request["intent"]))
    arrays: dict[str, NDArray[Any]] = {}
    for part, group in PARTS.items():
        texts, labels = zip(*groups[group], strict=True)
        arrays[part] = read_only(np.array(texts))
        if group[0] is not None:
            arrays[f"{part}_label"] = read_only(np.array(labels))
    return TextData(
        "intents",
        **arrays,
        seen_classes=seen,
        new_classes=new,
        held_out_classes=tuple(sorted(held_out_panel.target_names)),
        panel=panel,
        held_out_panel=held_out_panel,
    )
