"""``rankshot report`` and ``explain``: what ``classify`` predicted, on one page, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankshot.cli.console import check_page, say
from rankshot.cli.heads import HeadOptions, fit_head, innermost_head, takes_head
from rankshot.cli.score_tables import (
    ScoreType,
    ScoreTypeOption,
    find_inputs,
    read_first_ids,
    read_rankings_of,
)
from rankshot.core.errors import RankshotError, format_count, quote_names, short_repr, suggest_name
from rankshot.zeroshot.settings import REFERENCE_HEADS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankshot.ranking.rankings import Rankings
    from rankshot.report.contents import ExplainedInput, Report
    from rankshot.report.pictures import Outcomes, Thumbnail
    from rankshot.zeroshot.explanation import Explanation
    from rankshot.zeroshot.files.predictions import Predictions
    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.heads.base import BaseHead

    Labels = NDArray[np.str_]

MAX_PLACES = 10
"""The largest number of places that distances between rankings compare."""
MAX_EXAMPLES = 12
"""The largest number of inputs that are explained."""
EXPLAINED = 3
"""How many inputs `explain` explains by default."""
LEAD_WITHOUT_TRUTH = (
    "This page shows what a zero-shot classifier predicted: classes without a single training "
    "example, which it knows only by rankings of the classes that it was trained on (the seen "
    "classes)."
)


@takes_head()
def explain(
    scores: Annotated[
        Path, typer.Argument(help="The table of scores, as for `classify` (.csv, .parquet, .npz).")
    ],
    options: HeadOptions,
    id: Annotated[  # noqa: A002
        list[str] | None,
        typer.Option(
            metavar="<id>",
            help="The id of an input to explain, or its row number if the table has no ids; may "
            "be repeated. The default is the first three inputs.",
        ),
    ] = None,
    new_class: Annotated[
        str | None,
        typer.Option(help="The class to explain. The default is the predicted class."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="The new class to compare with. The default is the average over all new classes."
        ),
    ] = None,
    score_type: ScoreTypeOption = ScoreType.AUTO,
) -> None:
    """Show why inputs got their classes.

    For each input, the output says how much each seen class and each source contributes.

    Example: rankshot explain scores.parquet --rankings rankings.jsonl --id img17 --against dog
    """
    from rankshot.zeroshot import explain as explain_scores
    from rankshot.zeroshot.files.score_tables import open_scores

    if options.head == "deterministic":
        raise RankshotError(
            "--head deterministic cannot be explained because it compares whole rankings; the "
            "other heads can"
        )
    table = open_scores(scores)
    model, score_type = fit_head(table, score_type, options)
    ids = id or read_first_ids(table, EXPLAINED)
    for name, scores_of_one in find_inputs(table, ids, score_type):
        why = explain_scores(model, scores_of_one, target=new_class, against=against)[0]
        say(f"{name}: {why}\n")


@takes_head("rankings", "head", "set", "settings", "reference")
def report(
    predictions: Annotated[
        Path, typer.Argument(help="The predictions that `classify` wrote (.csv, .parquet).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write (.html).")],
    options: HeadOptions,
    truth: Annotated[
        Path | None,
        typer.Option(
            help="A table of the true classes: with columns id and label, or with a column label "
            "alone and the same rows as the predictions (.csv, .parquet). Without it, the page "
            "shows what was predicted, and how certain the predictions are."
        ),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="The scores that `classify` read. If --rankings or a fitted --head is given too, "
            "some inputs are explained."
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            help="A folder of the inputs' pictures (JPEG, PNG, GIF, WebP): some are shown with "
            "what was predicted. The id of an input is the path of its picture below this folder, "
            "with or without the ending."
        ),
    ] = None,
    score_type: ScoreTypeOption = ScoreType.AUTO,
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "Zero-shot predictions",
) -> None:
    """Write a page that compares predictions with the true classes.

    The page is one self-contained HTML file. It begins with the accuracy, then shows what was
    confused with what, and the accuracy of each class.

    With --rankings, the page shows what the first places of the rankings of each class agree
    on. With --scores as well, it explains why some inputs were given their classes, and names the
    seen classes that support each prediction that is shown with its picture; then give --head,
    --set, --settings, --reference and --score-type as you gave them to `classify`. A fitted --head
    has all this already. With --settings, --truth and --rankings, the page compares the calibration
    with that before the rehearsal. Only the heads weighted-mean and probabilistic are explained.

    Example: rankshot report predictions.parquet --truth labels.csv --rankings rankings.jsonl
    -o report.html
    """
    from rankshot.report.page import render_report, write_page
    from rankshot.report.pictures import Outcomes, build_gallery
    from rankshot.zeroshot.files.predictions import read_predictions
    from rankshot.zeroshot.files.score_tables import open_scores

    check_page(output)
    has_rankings = options.rankings is not None or options.fitted is not None
    if not has_rankings and (scores is not None or options.settings_file is not None):
        given = "--settings" if scores is None else "--scores"
        raise RankshotError(f"{given} needs --rankings as well")
    if options.reference is not None and scores is None:
        raise RankshotError("--reference needs --scores as well")
    if scores is not None and options.head not in REFERENCE_HEADS:
        raise RankshotError(
            f"--head {options.head} is not explained in a report: leave out --scores; --head "
            "weighted-mean and --head probabilistic are"
        )
    predicted = read_predictions(predictions)
    labels = None if truth is None else _read_labels(truth, predicted)
    outcomes = Outcomes(predicted.labels.astype(str), predicted.proba, labels, predicted.targets)
    try:
        page = _build_page(title, outcomes)
    except RankshotError as error:
        raise RankshotError(f"{predictions}: {error}") from None
    pictures, choice, notes = _read_pictures(images, outcomes, predicted.ids)
    whys: dict[int, Explanation] = {}
    model, table = None, None
    if scores is not None:
        table = open_scores(scores)
        model, score_type = fit_head(table, score_type, options)
    if has_rankings:
        page = _add_rankings(page, options, table, outcomes, model)
    if table is not None and model is not None:
        examples, whys = _explain_inputs(
            outcomes, predicted.ids, pictures, table, model, score_type
        )
        page = replace(page, explanations=examples)
    files = {
        "predictions": predictions,
        "truth": truth,
        "rankings": options.rankings,
        "head": options.saved,
        "scores": scores,
        "reference": options.reference,
        "images": images,
        "settings": None if options.saved else options.settings_file,
    }
    # Not the whole paths: a page is made to be given away.
    shown = [(what, path.resolve().name) for what, path in files.items() if path is not None]
    page = replace(
        page,
        gallery=build_gallery(outcomes, predicted.ids, pictures, whys),
        gallery_choice=choice,
        settings=(*shown, *page.settings),
        notes=(*page.notes, *notes),
    )
    write_page(render_report(page), output)
    result = f"{format_count(len(predicted), 'prediction')} without true classes"
    if labels is not None:
        right = float((outcomes.predicted == labels).mean())
        result = f"{right:.1%} of {format_count(len(labels), 'input')} right"
    say(f"{result}; report written to {output}")


def _read_labels(path: Path, predicted: Predictions) -> Labels:
    import numpy as np

    from rankshot.zeroshot.files.predictions import read_truth

    labels = read_truth(path, predicted.ids.tolist()).astype(str)
    unknown = np.flatnonzero(~np.isin(labels, predicted.targets))
    if unknown.size:
        name = str(labels[unknown[0]])
        raise RankshotError(
            f"{path}: the true class {name!r} of input {predicted.ids[unknown[0]]!r} is none of "
            f"the predicted classes{suggest_name(name, predicted.targets)}"
        )
    return labels


def _build_page(title: str, outcomes: Outcomes) -> Report:
    from rankshot.report.contents import Report
    from rankshot.report.predictions import count_predictions, evaluate_predictions

    predicted, proba, labels, classes = outcomes
    if labels is None:
        found = count_predictions(predicted, proba, classes)
        page = Report(title, LEAD_WITHOUT_TRUTH, overview=found)
        note = "Rejected inputs have no predicted class, but their confidence counts."
    else:
        page = Report(title, evaluation=evaluate_predictions(labels, predicted, proba, classes))
        note = "A rejected input counts as wrong, but is not in the confusion matrix."
    if rejected := outcomes.rejected.sum():
        page = replace(page, facts=(("rejected", f"{rejected:,}"),), notes=(note,))
    return page


def _add_rankings(
    page: Report,
    options: HeadOptions,
    table: ScoreTable | None,
    outcomes: Outcomes,
    model: BaseHead | None,
) -> Report:
    import numpy as np

    from rankshot.report.rankings import compare_sources, map_rankings, summarize_rankings
    from rankshot.zeroshot import ProbabilisticRanking

    path, rankings = _find_rankings(options, table)
    has_seen = bool(set(outcomes.classes) & set(rankings.items))
    if has_seen and model is not None:
        raise RankshotError(
            "--scores: explanations in a report are of new classes, and these predictions are of "
            "seen classes as well; leave out --scores, and use `rankshot explain --classes all`"
        )
    # Seen classes, as predicted by `classify --classes all`, have no rankings.
    missing = sorted(set(outcomes.classes) - set(rankings.target_names))
    if missing and not has_seen:
        raise RankshotError(
            f"{path}: no ranking of {quote_names(missing)}, which are predicted classes"
            f"{suggest_name(missing[0], rankings.target_names)}"
        )
    page = _add_calibration_before(page, options, outcomes, has_seen=has_seen)
    rankings = rankings[np.isin(rankings.targets.astype(str), outcomes.classes)]
    k = min(getattr(options.model, "k", None) or rankings.n_items, rankings.n_items)
    consensus: Any = getattr(model, "consensus_", None)
    if consensus is None:
        prior = getattr(options.model, "prior", None)
        merging = ProbabilisticRanking(k=k, prior=prior, posterior="consensus")
        try:
            consensus = merging.fit(rankings.top(k)).consensus_
        except RankshotError as error:
            raise RankshotError(f"{path}: {error}") from None
    compared = min(k, MAX_PLACES)
    # Without scores, it is not known how the predictions were made.
    described = [] if model is None else _describe_head(options)
    return replace(
        page,
        consensuses=summarize_rankings(rankings, consensus, compared),
        sources=compare_sources(rankings, consensus, compared),
        map=map_rankings(rankings, compared),
        settings=(("k", f"{k} places of each ranking"), *described),
    )


def _find_rankings(options: HeadOptions, table: ScoreTable | None) -> tuple[Path, Rankings]:
    """Return the rankings of a file, or those that a fitted head has, and the name of the file."""
    from rankshot.ranking import read_rankings
    from rankshot.zeroshot.heads.base import require_targets

    if options.fitted is not None and options.saved is not None:
        inner = innermost_head(options.fitted)
        for name in ("rankings_", "consensus_"):
            if (found := getattr(inner, name, None)) is not None:
                return options.saved, found
        raise RankshotError(
            f"{options.saved}: {type(inner).__name__} has no rankings to show; leave out --head"
        )
    path = cast("Path", options.rankings)
    # `fit_head` has read the same rankings, and printed what was matched.
    rankings = read_rankings(path) if table is None else read_rankings_of(path, table, quiet=True)
    try:
        return path, require_targets(rankings)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


def _add_calibration_before(
    page: Report, options: HeadOptions, outcomes: Outcomes, *, has_seen: bool
) -> Report:
    """Add the calibration with the temperature of the head before the rehearsal of --settings."""
    from rankshot.report.predictions import undo_temperature

    before, now = options.settings.default_temperature, options.settings.temperature
    if before is None or now is None or outcomes.truth is None or page.evaluation is None:
        return page
    if has_seen:
        note = (
            "The calibration before the rehearsal is not shown, because seen classes may be "
            "predicted, too: their probabilities depend on other settings as well."
        )
        say(f"{options.settings_file}: {note}")
        return replace(page, notes=(*page.notes, note))
    found = undo_temperature(outcomes.truth, outcomes.proba, outcomes.classes, now, before)
    return replace(page, evaluation=replace(page.evaluation, uncalibrated=found))


def _describe_head(options: HeadOptions) -> Iterator[tuple[str, str]]:
    posterior = options.settings.posterior
    yield "method", options.head
    if options.head == "probabilistic":
        yield "posterior", posterior or "mean"
    if posterior != "sum":
        yield "decay", f"{options.model.decay:g}"
    if not options.merges_rankings:
        used = "each ranking counts for itself; the consensus is only shown as a summary"
        yield "use of rankings", used


def _read_pictures(
    images: Path | None, outcomes: Outcomes, ids: NDArray[np.object_]
) -> tuple[dict[int, Thumbnail], str, list[str]]:
    """Choose inputs that have a picture, and read these only; say how, and what is missing."""
    import numpy as np

    from rankshot.report.pictures import PictureFolder, choose_pictures, describe_choice

    if images is None:
        return {}, "", []
    folder = PictureFolder(images)
    # Of inputs with one id, the first is explained, so the first is shown.
    rows = {str(name): row for row, name in reversed(list(enumerate(ids)))}
    files = {row: file for name, row in rows.items() if (file := folder.find(name)) is not None}
    missing = [name for name, row in rows.items() if row not in files][::-1]
    if not files:
        raise RankshotError(
            f"{images}: there is no picture of any input; ids must be paths below this folder, "
            f"with or without endings such as .jpg, but the first are {quote_names(missing[:3])}"
        )
    candidates = np.array(sorted(row for row in files if not outcomes.rejected[row]), int)
    pictures, unreadable = {}, []
    for row in choose_pictures(outcomes, candidates):
        try:
            pictures[row] = folder.read(files[row])
        except RankshotError as error:
            unreadable.append(f"{short_repr(ids[row])} ({error})")
    notes = []
    if missing:
        some = f"{len(missing):,} of {format_count(len(rows), 'id')}"
        notes.append(f"There is no picture for {some}: {quote_names(missing, 3)}.")
    if unreadable:
        some = format_count(len(unreadable), "picture")
        notes.append(f"{some} cannot be shown: {'; '.join(unreadable)}.")
    for note in notes:
        say(f"{images}: {note}")
    choice = describe_choice(outcomes, list(pictures), len(candidates)) if pictures else ""
    return pictures, choice, notes


def _explain_inputs(
    outcomes: Outcomes,
    ids: NDArray[np.object_],
    pictures: dict[int, Thumbnail],
    table: ScoreTable,
    model: BaseHead,
    score_type: ScoreType,
) -> tuple[tuple[ExplainedInput, ...], dict[int, Explanation]]:
    """Explain a few inputs in detail, and those that are shown with a picture, in one reading."""
    import numpy as np

    from rankshot.report.contents import ExplainedInput
    from rankshot.report.predictions import choose_examples, choose_rival
    from rankshot.zeroshot import explain

    # Rejected inputs have no class to explain. Inputs with a picture are the best examples.
    kept = np.flatnonzero(~outcomes.rejected)
    first = np.concatenate([np.array(list(pictures), int), kept[~np.isin(kept, list(pictures))]])
    known = None if outcomes.truth is None else outcomes.truth[first]
    found = choose_examples(outcomes.predicted[first], known, outcomes.classes[:MAX_EXAMPLES])
    examples = set(first[found].tolist())
    rows = {str(ids[row]): row for row in [*pictures, *examples]}
    cards, whys = [], {}
    for name, scores in find_inputs(table, rows, score_type):
        row = rows[name]
        label = str(outcomes.predicted[row])
        why = explain(model, scores)[0]
        if why.target != label:
            raise RankshotError(
                f"input {name!r} is {label!r} in the predictions, but {why.target!r} with these "
                "--scores and this head: give the files and options that `classify` had, or "
                "leave out --scores"
            )
        if row in pictures:
            whys[row] = why
        if row in examples:
            truth = None if outcomes.truth is None else str(outcomes.truth[row])
            rival = choose_rival(label, truth, outcomes.proba[row], outcomes.classes)
            why = explain(model, scores, against=rival)[0]
            cards.append(ExplainedInput(name, why, truth, pictures.get(row)))
    return tuple(cards), whys
