"""``rankshot report``: how well a run of ``classify`` did, on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from rankshot.cli.console import check_page, say
from rankshot.cli.head_options import (
    DECAY,
    DecayOption,
    HeadPriorOption,
    K,
    KOption,
    Posterior,
    PosteriorOption,
    RankingsOption,
    ReferenceOption,
    fitted_head,
)
from rankshot.cli.score_options import ScoresAre, ScoresAreOption, inputs_named
from rankshot.core.errors import RankshotError, quote_names, suggest_name
from rankshot.ranking.concordance import summarize
from rankshot.ranking.files import read_rankings
from rankshot.report.contents import (
    ExplainedInput,
    Report,
    choose_examples,
    evaluate_predictions,
    map_rankings,
)
from rankshot.report.page import render_report, write_page
from rankshot.zeroshot.explanation import explain
from rankshot.zeroshot.files.predictions import Predictions, read_predictions
from rankshot.zeroshot.files.score_tables import ScoreTable, open_scores
from rankshot.zeroshot.files.truth import read_truth
from rankshot.zeroshot.heads.base import REJECTED, BaseHead

Labels = NDArray[np.str_]
COMPARED = 10
"""Places of the rankings that the map compares."""
EXAMPLES = 12
"""How many inputs are explained at most."""


def report(
    predictions: Annotated[Path, typer.Argument(help="What `classify` wrote (.csv, .parquet).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write (.html).")],
    truth: Annotated[
        Path,
        typer.Option(help="The true classes: columns id and label, or label alone, row by row."),
    ],
    rankings: RankingsOption = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="What `classify` read: with --rankings, examples are explained."),
    ] = None,
    k: KOption = K,
    decay: DecayOption = DECAY,
    posterior: PosteriorOption = Posterior.MEAN,
    prior: HeadPriorOption = None,
    reference: ReferenceOption = None,
    scores_are: ScoresAreOption = ScoresAre.AUTO,
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "Zero-shot predictions",
) -> None:
    """Judge predictions against the truth, and put it on one self-contained page.

    With --rankings it shows what they agree on; with --scores, too, why some inputs got their
    classes: then give --k, --decay, --posterior, --prior, --reference and --scores-are as to
    `classify`.

    Example: rankshot report predictions.parquet --truth labels.csv --rankings rankings.jsonl
    -o report.html
    """
    check_page(output)
    if scores is not None and rankings is None:
        raise RankshotError("--scores needs --rankings, too: examples are explained by both")
    if reference is not None and scores is None:
        raise RankshotError("--reference needs --scores, too: it is of use for examples alone")
    predicted = read_predictions(predictions)
    labels = read_truth(truth, predicted.ids.tolist()).astype(str)
    _check_classes(labels, predicted, truth)
    try:
        page = _page(title, predicted, labels)
    except RankshotError as error:
        raise RankshotError(f"{predictions}: {error}") from None
    named = {
        "predictions": predictions,
        "truth": truth,
        "rankings": rankings,
        "scores": scores,
        "reference": reference,
    }
    files = [f"{what} {path}" for what, path in named.items() if path is not None]
    page = replace(page, notes=(*page.notes, f"Made from {', '.join(files)}."))
    if rankings is not None:
        page = _with_rankings(page, rankings, predicted)
    if scores is not None:
        table = open_scores(scores)
        model, scores_are = fitted_head(
            table,
            scores_are,
            rankings=rankings,
            k=k,
            decay=decay,
            prior=prior,
            posterior=posterior,
            reference=reference,
        )
        page = _with_examples(page, predicted, labels, table, model, scores_are)
    write_page(render_report(page), output)
    right = float((predicted.labels == labels).mean())
    say(f"{right:.1%} of {len(labels):,} inputs right; report written to {output}")


def _check_classes(labels: Labels, predicted: Predictions, path: Path) -> None:
    unknown = np.flatnonzero(~np.isin(labels, predicted.targets))
    if unknown.size:
        name = str(labels[unknown[0]])
        raise RankshotError(
            f"{path}: the true class {name!r} of input {predicted.ids[unknown[0]]!r} is none of "
            f"the classes predicted{suggest_name(name, predicted.targets)}"
        )


def _page(title: str, predicted: Predictions, labels: Labels) -> Report:
    rejected = 0 if REJECTED in predicted.targets else int((predicted.labels == REJECTED).sum())
    facts = [("inputs", f"{len(labels):,}"), ("classes", f"{len(predicted.targets):,}")]
    notes = []
    if rejected:
        facts.append(("rejected", f"{rejected:,}"))
        notes.append(
            "A rejected input counts as wrong; the table of what was taken for what leaves it out."
        )
    given = predicted.labels.astype(str)
    return Report(
        title=title,
        facts=tuple(facts),
        evaluation=evaluate_predictions(labels, given, predicted.proba, predicted.targets),
        notes=tuple(notes),
    )


def _with_rankings(page: Report, path: Path, predicted: Predictions) -> Report:
    rankings = read_rankings(path)
    if missing := sorted(set(predicted.targets) - set(rankings.target_names)):
        raise RankshotError(
            f"{path}: no ranking of {quote_names(missing)}, which the predictions have"
            f"{suggest_name(missing[0], rankings.target_names)}"
        )
    try:
        summaries = tuple(summarize(rankings))
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    return replace(page, consensuses=summaries, map=map_rankings(rankings, COMPARED))


def _with_examples(
    page: Report,
    predicted: Predictions,
    labels: Labels,
    table: ScoreTable,
    model: BaseHead,
    are: ScoresAre,
) -> Report:
    """Explain a few inputs, right and wrong ones; what was rejected has no class to explain."""
    kept = np.flatnonzero(predicted.labels != REJECTED)
    given = predicted.labels.astype(str)
    found = choose_examples(given[kept], labels[kept], predicted.targets[:EXAMPLES])
    rows = {str(predicted.ids[row]): row for row in kept[found]}
    cards = []
    for name, one in inputs_named(table, rows, are):
        why = explain(model, one)[0]
        if why.target != (label := str(given[rows[name]])):
            raise RankshotError(
                f"input {name!r} is {label!r} in the predictions, but {why.target!r} by these "
                "--scores and --rankings: give the files and options that `classify` had, or "
                "leave out --scores"
            )
        cards.append(ExplainedInput(name, why, str(labels[rows[name]])))
    return replace(page, explanations=tuple(cards))
