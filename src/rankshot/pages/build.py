"""A report of predictions, from all that is known about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rankshot.core.errors import InputError, quote_names
from rankshot.pages.contents import Card, Report
from rankshot.pages.explanations import FindScores, explain_outcomes, find_supporters
from rankshot.pages.images import (
    ImageFolder,
    Outcomes,
    Thumbnail,
    build_gallery,
    describe_choice,
    read_images,
)
from rankshot.pages.page import find_similar_classes, summarize_rankings
from rankshot.pages.predictions import count_predictions, evaluate_predictions
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.explanation import Explanation
from rankshot.zeroshot.metrics import Interval

MAX_PLACES = 10
"""Places of rankings that are compared, unless fewer are used."""


def build_report(
    title: str,
    outcomes: Outcomes,
    *,
    head: Any = None,
    find_scores: FindScores | None = None,
    images: str | Path | Mapping[int, Thumbnail] | None = None,
    rankings: Rankings | None = None,
    consensus: Rankings | None = None,
    n_places: int = MAX_PLACES,
    forecast: Interval | None = None,
    **values: Any,
) -> Report:
    """Collect what a page shows of predictions.

    Parameters
    ----------
    title : str
        The heading.
    outcomes : Outcomes
        The predictions, and the true classes if they are known.
    head, find_scores : optional
        The head that made the predictions, and a function that yields rows with their scores: some
        predictions are explained.
    images : str, Path or dict, optional
        A folder in which the ids are paths, with or without extensions; or thumbnails by row.
    rankings, consensus : Rankings, optional
        Rankings of the classes, and one ranking per class that they agree on.
    n_places : int
        How many places of them are compared.
    forecast : Interval, optional
        The accuracy that a rehearsal predicted.
    **values
        Other attributes of the `Report`: its lead, kind, cards, settings and notes.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import Outcomes, build_report
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> found = Outcomes(["a", "b"], np.array(["cat", "cat"]), proba, None, ["cat", "dog"])
    >>> build_report("Cats and dogs", found).overview.counts
    (2, 0)
    """
    predicted, proba, classes = outcomes.predicted, outcomes.proba, outcomes.classes
    page = Report(title, forecast=forecast, **values)
    if outcomes.truth is None:
        detail = "their confidence is included"
        page = replace(page, overview=count_predictions(predicted, proba, classes))
    else:
        detail = "counted as wrong, but not in the confusion matrix"
        evaluation = evaluate_predictions(outcomes.truth, predicted, proba, classes)
        page = replace(page, evaluation=evaluation)
    if n_rejected := int(outcomes.rejected.sum()):
        page = replace(page, cards=(*page.cards, Card("Rejected", f"{n_rejected:,}", detail)))
    if rankings is not None and consensus is not None:
        k = min(n_places, consensus.n_items)
        page = replace(
            page,
            consensuses=summarize_rankings(rankings, consensus, k),
            similar=find_similar_classes(consensus, k),
        )
    thumbnails, notes = _find_images(images, outcomes)
    whys: dict[int, Explanation] = {}
    if head is not None and find_scores is not None:
        examples, whys = explain_outcomes(head, outcomes, thumbnails, find_scores)
        page = replace(page, explanations=examples)
    supporters = {row: find_supporters(why) for row, why in whys.items()}
    return replace(
        page,
        gallery=build_gallery(outcomes, thumbnails, supporters),
        gallery_choice=describe_choice(outcomes, list(thumbnails)) if thumbnails else "",
        notes=(*page.notes, *notes),
    )


def _find_images(
    images: str | Path | Mapping[int, Thumbnail] | None, outcomes: Outcomes
) -> tuple[Mapping[int, Thumbnail], Sequence[str]]:
    """Return thumbnails of some rows, and sentences about images that are missing or unreadable."""
    if images is None or isinstance(images, Mapping):
        return images or {}, ()
    folder = ImageFolder(images)
    # Of inputs with one id, the first is explained, so the first is shown.
    rows = {name: row for row, name in reversed(list(enumerate(outcomes.ids)))}
    files = {row: file for name, row in rows.items() if (file := folder.find(name)) is not None}
    missing = [name for name, row in rows.items() if row not in files][::-1]
    if not files:
        raise InputError(
            "images",
            images,
            "has none of the inputs",
            hint="ids must be paths below this folder, with or without extensions such as .jpg, "
            f"but the first are {quote_names(missing, 3)}",
        )
    thumbnails, notes = read_images(folder, files, outcomes)
    if missing:
        some = f"{len(missing):,} of {len(rows):,} inputs"
        notes.insert(0, f"Images are missing for {some}: {quote_names(missing, 3)}.")
    return thumbnails, notes
