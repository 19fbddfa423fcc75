"""Inputs that a page shows: with their images, and why they got their classes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, format_count, short_repr
from rankshot.pages.images import Outcomes, Rows, Thumbnail
from rankshot.pages.page import (
    Bar,
    find_scale,
    format_factor,
    format_percent,
    make_bars,
    shorten,
    sort_largest_first,
)
from rankshot.zeroshot.explanation import MAX_SHOWN, Explanation, explain
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.scores import Scores

MAX_SHOWN_INPUTS, MAX_EXPLAINED = 60, 12
"""The largest numbers of inputs that are shown, and of those that are explained in detail."""
N_SUPPORTERS = 3
"""Seen classes that are named with each image."""


class ShownInput(NamedTuple):
    """An input, what was predicted for it, and why.

    Attributes
    ----------
    name : str
        The input, for example its id.
    label : str
        The predicted class.
    probability : float
        Of the predicted class.
    truth : str, optional
        The true class, if it is known.
    thumbnail : Thumbnail, optional
    supporters : tuple of str
        The seen classes that support the predicted class most.
    why : Explanation, optional
        Why it is this class, and not the true class or the most probable other one.
    """

    name: str
    label: str
    probability: float
    truth: str | None = None
    thumbnail: Thumbnail | None = None
    supporters: tuple[str, ...] = ()
    why: Explanation | None = None


def show_inputs(
    outcomes: Outcomes,
    images: Mapping[int, Path | NDArray[np.uint8]],
    head: Predictor | None = None,
    scores: Scores | None = None,
) -> tuple[tuple[ShownInput, ...], list[str]]:
    """Return some inputs with their images and explanations, and a remark if images are broken.

    If there are images, only inputs with an image are chosen. Without a head and the scores of all
    inputs, nothing is explained. An input whose class is not that of the head, since it was
    corrected, has no explanation.
    """
    rows = choose_inputs(outcomes, np.array(sorted(images) or range(len(outcomes.ids)), int))
    thumbnails, unreadable = {}, []
    for row in rows:
        try:
            thumbnails[row] = Thumbnail.make(images[row]) if images else None
        except RankshotError as error:
            unreadable.append(f"{short_repr(outcomes.ids[row])} ({error})")
    truth = {row: None if outcomes.truth is None else str(outcomes.truth[row]) for row in rows}
    supporters, whys = {}, {}
    if head is not None and scores is not None:
        found = {row: explain(head, scores[[row]])[0] for row in thumbnails}
        same = {row: why for row, why in found.items() if why.target == outcomes.predicted[row]}
        supporters = {row: find_supporters(why) for row, why in same.items()}
        # Wrong predictions are explained in detail first.
        for row in sorted(same, key=lambda row: truth[row] == same[row].target)[:MAX_EXPLAINED]:
            rival = _find_rival(truth[row], same[row])
            whys[row] = explain(head, scores[[row]], against=rival)[0]
    shown = tuple(
        ShownInput(
            str(outcomes.ids[row]),
            str(outcomes.predicted[row]),
            float(outcomes.probability([row])[0]),
            truth[row],
            thumbnail,
            supporters.get(row, ()),
            whys.get(row),
        )
        for row, thumbnail in thumbnails.items()
    )
    some = format_count(len(unreadable), "image")
    return shown, [f"{some} cannot be shown: {'; '.join(unreadable)}."] if unreadable else []


def choose_inputs(outcomes: Outcomes, candidates: Rows) -> list[int]:
    """Choose the rows to show: as many correct as wrong predictions per class, most certain first.

    If the truth is not known, it is the most and the least probable predictions of each class.
    One of both kinds for each class comes first, then the next of both kinds for each class.
    Rejected inputs are left out.
    """
    candidates = candidates[~outcomes.rejected[candidates]]
    surest = candidates[np.argsort(-outcomes.probability(candidates), kind="stable")]
    predicted = outcomes.predicted[surest]
    truth = None if outcomes.truth is None else outcomes.truth[surest]
    piles: list[Rows] = []
    for name in outcomes.classes:
        if truth is None:
            theirs = surest[predicted == name]
            half = len(theirs) // 2
            piles += [theirs[: len(theirs) - half], theirs[::-1][:half]]
        else:
            theirs, is_correct = surest[truth == name], predicted[truth == name] == name
            piles += [theirs[is_correct], theirs[~is_correct]]
    turns = zip_longest(*piles)
    return [int(row) for turn in turns for row in turn if row is not None][:MAX_SHOWN_INPUTS]


def _find_rival(truth: str | None, why: Explanation) -> str | None:
    """Return the true class if another was predicted, or else the most probable other class."""
    others = (name for name, _ in why.alternatives if name != why.target)
    return next(others, None) if truth in (None, why.target) else truth


def find_supporters(why: Explanation) -> tuple[str, ...]:
    """Return the seen classes that support the explained class most, the strongest first.

    Where rankings are known, only classes in the rankings of the explained class are returned:
    others support it only by their low scores.
    """
    listed = set(why.listed)
    pairs = sort_largest_first(pair for pair in why.items if pair[0] in listed or not listed)
    return tuple(name for name, value in pairs[:N_SUPPORTERS] if value > 0)


def format_alternatives(why: Explanation) -> list[Bar]:
    """Return bars for the probabilities of the most probable other classes."""
    others = sort_largest_first(pair for pair in why.alternatives if pair[0] != why.target)
    return make_bars(others, format_percent, 1.0)


def format_contributions(why: Explanation) -> list[dict[str, Any]]:
    """Tables of contributions: of seen classes, with one scale, and of others.

    Examples
    --------
    >>> from rankshot.pages.explanations import format_contributions
    >>> from rankshot.zeroshot.explanation import Explanation
    >>> why = Explanation("cat", 0.9, items=(("leopard", 0.7), ("bus", -0.35)))
    >>> for table in format_contributions(why):
    ...     print(table["caption"], [bar[:3] for bar in table["bars"]])
    Seen classes, together ×1.4 [('leopard', '×2.0', 1.0), ('bus', '÷1.4', -0.5)]
    """
    groups = why.group_items()
    scale = find_scale(value for _, pairs in groups for _, value in pairs)
    tables = []
    for heading, pairs in groups:
        shown, rest = sort_largest_first(pairs[:MAX_SHOWN]), pairs[MAX_SHOWN:]
        total = format_factor(sum(value for _, value in rest))
        caption = f"{shorten(heading, 160)}, together {format_factor(sum(x for _, x in pairs))}"
        tables.append(
            {
                "caption": caption[0].upper() + caption[1:],
                "bars": make_bars(shown, format_factor, scale),
                "note": f"{format_count(len(rest), 'other')}, together {total}." if rest else "",
            }
        )
    if why.others:
        scale = find_scale(value for _, value in why.others)
        bars = make_bars(sort_largest_first(why.others), format_factor, scale)
        tables.append({"caption": "Besides the scores", "bars": bars, "note": ""})
    return tables
