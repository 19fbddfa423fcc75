"""Why inputs got their classes: bars for what each seen class and each source contributed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import NO_VALUE, InputError, format_count
from rankshot.pages.contents import ExplainedInput
from rankshot.pages.formatting import (
    Bar,
    find_scale,
    format_factor,
    format_percent,
    make_bars,
    shorten,
    sort_largest_first,
)
from rankshot.pages.images import Outcomes, Thumbnail
from rankshot.zeroshot.explanation import Explanation, explain
from rankshot.zeroshot.scores import Scores

MAX_EXAMPLES = 12
"""The largest number of inputs that are explained in detail."""
N_SUPPORTERS = 3
"""Seen classes that are named with each image."""
FindScores = Callable[[Collection[int]], Iterable[tuple[int, Scores]]]
"""Yields the rows that it is given, each with the scores of its input."""


def explain_outcomes(
    head: Any, outcomes: Outcomes, thumbnails: Mapping[int, Thumbnail], find_scores: FindScores
) -> tuple[tuple[ExplainedInput, ...], dict[int, Explanation]]:
    """Explain an example of each class in detail, and all inputs that have an image, by row."""
    # Rejected inputs have no class to explain. Inputs with an image are the best examples.
    shown = np.array(list(thumbnails), int)
    first = np.concatenate([shown, np.setdiff1d(np.flatnonzero(~outcomes.rejected), shown)])
    examples = first[_choose_examples(outcomes, first)].tolist()
    cards, whys = {}, {}
    for row, scores in find_scores({*thumbnails, *examples}):
        label = str(outcomes.predicted[row])
        why = explain(head, scores)[0]
        if why.target != label:
            rule = f"gives {why.target!r}, but the predictions have {label!r}"
            where = f"input {outcomes.ids[row]!r}"
            hint = "give the head and the scores that made the predictions"
            raise InputError("head", NO_VALUE, rule, where, hint)
        if row in thumbnails:
            whys[row] = why
        if row in examples:
            truth = None if outcomes.truth is None else str(outcomes.truth[row])
            # The rival of a wrong class is the true one, otherwise the most probable other class.
            order = np.argsort(-np.asarray(outcomes.proba[row]), kind="stable")
            others = [str(outcomes.classes[i]) for i in order if outcomes.classes[i] != label]
            rival = truth if truth not in (None, label) else next(iter(others), None)
            why = explain(head, scores, against=rival)[0]
            cards[row] = ExplainedInput(outcomes.ids[row], why, truth, thumbnails.get(row))
    return tuple(cards[row] for row in examples), whys


def _choose_examples(outcomes: Outcomes, rows: NDArray[np.intp]) -> list[int]:
    """Return places of examples among rows: the first input of each of the first classes.

    Wrong and correct predictions take turns, as far as a class has both. If the truth is not
    known, it is an input that got the class.
    """
    predicted = outcomes.predicted[rows]
    truth = predicted if outcomes.truth is None else outcomes.truth[rows]
    chosen = []
    was_correct = True
    for name in outcomes.classes[:MAX_EXAMPLES]:
        theirs = np.flatnonzero(truth == name)
        if theirs.size:
            is_correct = predicted[theirs] == name
            best = int(np.argmax(is_correct != was_correct))
            was_correct = bool(is_correct[best])
            chosen.append(int(theirs[best]))
    return chosen


def find_supporters(why: Explanation) -> tuple[str, ...]:
    """Return the seen classes that support the explained class most, the strongest first.

    Where rankings are known, only classes in the rankings of the explained class are returned:
    others support it only by their low scores.
    """
    listed = set(why.listed)
    pairs = sort_largest_first(pair for pair in why.items if pair[0] in listed or not listed)
    return tuple(name for name, value in pairs[:N_SUPPORTERS] if value > 0)


def format_explanations(inputs: Sequence[ExplainedInput]) -> list[Any]:
    """Return inputs with their contributions and alternatives."""
    return [
        (one, format_contributions(one.explanation), format_alternatives(one.explanation))
        for one in inputs
    ]


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
    scale = find_scale(value for group in groups for _, value in group.shown)
    tables = []
    for group in groups:
        total = format_factor(sum(value for _, value in group.rest))
        note = f"{format_count(len(group.rest), 'other')}, together {total}." if group.rest else ""
        heading = f"{shorten(group.heading, 160)}, together {format_factor(group.total)}"
        tables.append(_format_table(heading, group.shown, scale, note))
    if why.others:
        tables.append(_format_table("besides the scores", why.others, None, ""))
    return tables


def _format_table(
    heading: str, pairs: Iterable[tuple[str, float]], scale: float | None, note: str
) -> dict[str, Any]:
    values = sort_largest_first(pairs)
    scale = find_scale(value for _, value in values) if scale is None else scale
    bars = make_bars(values, format_factor, scale)
    return {"caption": _capitalise(heading), "bars": bars, "note": note}


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
