"""From files to fitted heads: `load_head`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.validation import as_names
from rankshot.zeroshot.files.head_files import INNER, HeadFile, read_head_file, require_part
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.plan import build_head
from rankshot.zeroshot.scores import Scores, n_columns


def load_head(path: str | Path) -> BaseHead:
    """Read a fitted head that ``head.save`` or ``rankshot fit`` wrote.

    It gives the same answers and explanations as the head that was saved, and can be saved again.
    ``head.provenance_`` says how it was made.

    Parameters
    ----------
    path : str or Path
        The folder or file that was written.

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> cosines = rs.Similarity(
    ...     [[.9, .8, .1], [.1, .2, .9]], ["cat", "truck"], ["leopard", "tiger", "bus"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rs.ConSE(n_classes=2).fit(cosines).save(folder + "/new-classes.rankshot")
    ...     head = rs.load_head(folder + "/new-classes.rankshot")
    >>> head, head.items_, head.classes_.tolist()
    (ConSE(n_classes=2), ('leopard', 'tiger', 'bus'), ['cat', 'truck'])
    """
    path = Path(path)
    file = read_head_file(path)
    try:
        items = as_names(require_part(file.manifest, "seen_classes", list), "seen_classes")
        # A forged file may have any numbers, but loading it must not warn.
        with np.errstate(all="ignore"):
            head = _build_head(file, require_part(file.manifest, "head", dict), "", items)
            _try_head(head)
    except Exception as error:  # noqa: BLE001 (anything, if the parts contradict each other)
        text = str(error) if isinstance(error, RankshotError) else repr(error)
        damaged = "" if text.startswith("is damaged") else "is damaged: "
        raise RankshotError(f"{path}: {damaged}{text}") from None
    head._loaded = head.classes_, file.manifest["provenance"]
    return head


def _build_head(
    file: HeadFile, described: dict[str, Any], folder: str, items: tuple[str, ...]
) -> BaseHead:
    """Return the head that a part of the manifest describes."""
    settings = require_part(described, "settings", dict)
    inner = []
    if "head" in described:
        inner = [_build_head(file, described["head"], folder + INNER, items)]
    head: BaseHead = build_head(settings, *inner)
    classes = as_names(require_part(described, "classes", list), "classes")
    head.items_, head.classes_ = items, np.array(classes)
    rankings = file.read_rankings(folder, items)
    values = require_part(described, "values", dict)
    head._restore_state({**values, **file.read_arrays(folder), **rankings})
    # Classes may have examples and no rankings.
    fitting = all({*found.target_names} <= {*classes} for found in rankings.values())
    if not fitting or head.classes_.tolist() != list(classes):
        raise RankshotError(f"the classes {quote_names(classes)} do not fit {short_repr(head)}")
    return head


def _try_head(head: BaseHead) -> None:
    """Raise unless a head gives probabilities: then its parts fit together."""
    kind = head._expected_kind() or "multiclass"
    scores = Scores(np.zeros((1, n_columns(len(head.items_), kind))), head.items_, kind)
    scores = scores._with_columns(np.zeros((1, head.n_features_)), head)
    if not np.isclose(head.predict_proba(scores).sum(), 1):
        raise RankshotError("its numbers do not give probabilities")
