"""Labelled examples of new classes, as they are checked and described.

`class_means` has what is learned from them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import InputError, suggest_name
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.tables import as_labels, as_scores, read_labelled


def as_examples(
    examples: tuple[Scores | ArrayLike, ArrayLike], items: tuple[str, ...], ranked: Sequence[str]
) -> tuple[Scores, NDArray[np.str_]]:
    """The scores and labels of examples of new classes.

    A class may have examples and no ranking, unless its name looks like that of a ranked class.
    """
    scores, names = read_labelled(examples)
    if names is None:
        raise InputError("examples", examples, "must be a pair: scores, and the class of each row")
    table = as_scores(scores, items)
    labels = as_labels(names, len(table), "examples")
    if not labels.size:
        raise InputError("examples", labels.shape, "must have an input")
    for name in sorted(set(labels.tolist())):
        require_example_label(name, items, ranked)
    return table, labels


def require_example_label(
    name: str, items: Collection[str], ranked: Collection[str], where: str = ""
) -> None:
    """Raise for a label that is a seen class, or looks like a misspelt name of a new one."""
    if name in items:
        raise InputError("examples", name, "is a seen class, not a new one", where)
    if name not in ranked and (close := suggest_name(name, ranked)):
        rule = f"has no ranking{close}"
        raise InputError("examples", name, rule, where, "correct the label, or rank the class")
