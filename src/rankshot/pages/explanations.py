"""Inputs that a page shows: with their images, and why they got their classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from rankshot.core.errors import format_count
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

MAX_EXAMPLES = 12
"""The largest number of inputs that are explained in detail."""
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
    thumbnails: Mapping[int, Thumbnail],
    head: Predictor | None = None,
    scores: Scores | None = None,
) -> tuple[tuple[ShownInput, ...], tuple[ShownInput, ...]]:
    """Return the inputs that have an image, and an example of each class, explained in detail.

    Without a head and the scores of all inputs, nothing is explained. An input whose class is not
    that of the head, since it was corrected or rejected, has no explanation.
    """
    supporters: dict[int, tuple[str, ...]] = {}
    whys: dict[int, Explanation] = {}
    if head is not None and scores is not None:
        rows = list(thumbnails)
        for row, why in zip(rows, explain(head, scores[rows]) if rows else (), strict=True):
            supporters[row] = find_supporters(why) if why.target == outcomes.predicted[row] else ()
        # Inputs with an image are the best examples.
        others = np.setdiff1d(np.flatnonzero(~outcomes.rejected), rows)
        for row in _choose_examples(outcomes, np.array([*rows, *others], int)):
            why = explain(head, scores[[row]], against=_find_rival(outcomes, row))[0]
            if why.target == outcomes.predicted[row]:
                whys[row] = why

    def show(row: int) -> ShownInput:
        return ShownInput(
            str(outcomes.ids[row]),
            str(outcomes.predicted[row]),
            float(outcomes.probability([row])[0]),
            None if outcomes.truth is None else str(outcomes.truth[row]),
            thumbnails.get(row),
            supporters.get(row, ()),
            whys.get(row),
        )

    return tuple(map(show, thumbnails)), tuple(map(show, whys))


def _find_rival(outcomes: Outcomes, row: int) -> str | None:
    """Return the true class if another was predicted, or else the most probable other class."""
    own = outcomes.predicted[row]
    if outcomes.truth is not None and outcomes.truth[row] != own:
        return str(outcomes.truth[row])
    order = np.argsort(-np.asarray(outcomes.proba[row]), kind="stable")
    return next((outcomes.classes[i] for i in order if outcomes.classes[i] != own), None)


def _choose_examples(outcomes: Outcomes, rows: Rows) -> list[int]:
    """Return some of the rows: of each of the first classes, the first that is wrong, if any."""
    predicted = outcomes.predicted[rows]
    truth = predicted if outcomes.truth is None else outcomes.truth[rows]
    piles = [np.flatnonzero(truth == name) for name in outcomes.classes[:MAX_EXAMPLES]]
    firsts = [pile[np.argmax(predicted[pile] != truth[pile])] for pile in piles if pile.size]
    return rows[firsts].tolist() if firsts else []


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
        shown, rest = pairs[:MAX_SHOWN], pairs[MAX_SHOWN:]
        total = format_factor(sum(value for _, value in rest))
        note = f"{format_count(len(rest), 'other')}, together {total}." if rest else ""
        caption = f"{shorten(heading, 160)}, together {format_factor(sum(x for _, x in pairs))}"
        tables.append(_format_table(caption, shown, scale, note))
    if why.others:
        scale = find_scale(value for _, value in why.others)
        tables.append(_format_table("besides the scores", why.others, scale, ""))
    return tables


def _format_table(
    heading: str, pairs: Iterable[tuple[str, float]], scale: float, note: str
) -> dict[str, Any]:
    bars = make_bars(sort_largest_first(pairs), format_factor, scale)
    return {"caption": heading[:1].upper() + heading[1:], "bars": bars, "note": note}
