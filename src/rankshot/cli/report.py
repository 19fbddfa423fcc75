"""``rankshot report``: the accuracy of a run of ``classify``, on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import check_page, say
from rankshot.cli.head_options import (
    DECAY,
    DecayOption,
    HeadOptions,
    HeadPriorOption,
    K,
    KOption,
    Posterior,
    PosteriorOption,
    RankingsOption,
    ReferenceOption,
    fit_head,
)
from rankshot.cli.score_options import ScoreType, ScoreTypeOption, find_inputs
from rankshot.core.errors import RankshotError, format_count, quote_names, suggest_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankshot.report.contents import Report
    from rankshot.zeroshot.files.predictions import Predictions
    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.heads.base import BaseHead

    Labels = NDArray[np.str_]

COMPARED = 10
"""How many places of the rankings the map compares."""
EXAMPLES = 12
"""The largest number of inputs that are explained."""


def report(
    predictions: Annotated[
        Path, typer.Argument(help="The predictions that `classify` wrote (.csv, .parquet).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write (.html).")],
    truth: Annotated[
        Path,
        typer.Option(
            help="A table of the true classes: with columns id and label, or with a column label "
            "alone and the same rows as the predictions (.csv, .parquet)."
        ),
    ],
    rankings: RankingsOption = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="The scores that `classify` read. If --rankings is given too, some inputs are "
            "explained."
        ),
    ] = None,
    k: KOption = K,
    decay: DecayOption = DECAY,
    posterior: PosteriorOption = Posterior.MEAN,
    prior: HeadPriorOption = None,
    reference: ReferenceOption = None,
    score_type: ScoreTypeOption = ScoreType.AUTO,
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "Zero-shot predictions",
) -> None:
    """Write a page that compares predictions with the true classes.

    The page is one self-contained HTML file.

    With --rankings, the page shows what the rankings of each class agree on. With --scores as
    well, it explains why some inputs were given their classes; then give --k, --decay,
    --posterior, --prior, --reference and --score-type as you gave them to `classify`.

    Example: rankshot report predictions.parquet --truth labels.csv --rankings rankings.jsonl
    -o report.html
    """
    from rankshot.report.page import render_report, write_page
    from rankshot.zeroshot.files.predictions import read_predictions
    from rankshot.zeroshot.files.score_tables import open_scores
    from rankshot.zeroshot.files.truth import read_truth

    check_page(output)
    if scores is not None and rankings is None:
        raise RankshotError("--scores needs --rankings as well: explanations use both")
    if reference is not None and scores is None:
        raise RankshotError("--reference needs --scores as well: only explanations use it")
    options = HeadOptions(
        rankings=rankings,
        k=k,
        decay=decay,
        prior=prior,
        posterior=posterior,
        reference=reference,
    )
    predicted = read_predictions(predictions)
    labels = read_truth(truth, predicted.ids.tolist()).astype(str)
    _check_classes(labels, predicted, truth)
    try:
        page = _build_page(title, predicted, labels)
    except RankshotError as error:
        raise RankshotError(f"{predictions}: {error}") from None
    inputs = {
        "predictions": predictions,
        "truth": truth,
        "rankings": rankings,
        "scores": scores,
        "reference": reference,
    }
    files = [f"{what} {path}" for what, path in inputs.items() if path is not None]
    page = replace(page, notes=(*page.notes, f"Made from {', '.join(files)}."))
    if rankings is not None:
        page = _add_rankings(page, rankings, predicted)
    if scores is not None:
        table = open_scores(scores)
        model, score_type = fit_head(table, score_type, options)
        page = _add_examples(page, predicted, labels, table, model, score_type)
    write_page(render_report(page), output)
    right = float((predicted.labels == labels).mean())
    say(f"{right:.1%} of {format_count(len(labels), 'input')} right; report written to {output}")


def _check_classes(labels: Labels, predicted: Predictions, path: Path) -> None:
    import numpy as np

    unknown = np.flatnonzero(~np.isin(labels, predicted.targets))
    if unknown.size:
        name = str(labels[unknown[0]])
        raise RankshotError(
            f"{path}: the true class {name!r} of input {predicted.ids[unknown[0]]!r} is none of "
            f"the predicted classes{suggest_name(name, predicted.targets)}"
        )


def _build_page(title: str, predicted: Predictions, labels: Labels) -> Report:
    from rankshot.report.contents import Report, evaluate_predictions
    from rankshot.zeroshot.heads.base import REJECTED

    rejected = 0 if REJECTED in predicted.targets else int((predicted.labels == REJECTED).sum())
    facts = [("inputs", f"{len(labels):,}"), ("classes", f"{len(predicted.targets):,}")]
    notes = []
    if rejected:
        facts.append(("rejected", f"{rejected:,}"))
        notes.append("A rejected input counts as wrong, but is not in the confusion matrix.")
    given = predicted.labels.astype(str)
    return Report(
        title=title,
        facts=tuple(facts),
        evaluation=evaluate_predictions(labels, given, predicted.proba, predicted.targets),
        notes=tuple(notes),
    )


def _add_rankings(page: Report, path: Path, predicted: Predictions) -> Report:
    from rankshot.ranking import read_rankings, summarize
    from rankshot.report.contents import map_rankings

    rankings = read_rankings(path)
    if missing := sorted(set(predicted.targets) - set(rankings.target_names)):
        raise RankshotError(
            f"{path}: no ranking of {quote_names(missing)}, which are predicted classes"
            f"{suggest_name(missing[0], rankings.target_names)}"
        )
    try:
        summaries = tuple(summarize(rankings))
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    return replace(page, consensuses=summaries, map=map_rankings(rankings, COMPARED))


def _add_examples(
    page: Report,
    predicted: Predictions,
    labels: Labels,
    table: ScoreTable,
    model: BaseHead,
    score_type: ScoreType,
) -> Report:
    """Explain a few inputs, right and wrong ones; rejected inputs have no class to explain."""
    import numpy as np

    from rankshot.report.contents import ExplainedInput, choose_examples
    from rankshot.zeroshot import explain
    from rankshot.zeroshot.heads.base import REJECTED

    kept = np.flatnonzero(predicted.labels != REJECTED)
    given = predicted.labels.astype(str)
    found = choose_examples(given[kept], labels[kept], predicted.targets[:EXAMPLES])
    rows = {str(predicted.ids[row]): row for row in kept[found]}
    cards = []
    for name, scores in find_inputs(table, rows, score_type):
        why = explain(model, scores)[0]
        if why.target != (label := str(given[rows[name]])):
            raise RankshotError(
                f"input {name!r} is {label!r} in the predictions, but {why.target!r} with these "
                "--scores and --rankings: give the files and options that `classify` had, or "
                "leave out --scores"
            )
        cards.append(ExplainedInput(name, why, str(labels[rows[name]])))
    return replace(page, explanations=tuple(cards))
