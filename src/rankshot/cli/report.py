"""``rankshot report``: the result of a run of ``classify``, on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer

from rankshot.cli.console import check_page, say
from rankshot.cli.head_options import HeadOptions, fit_head, innermost_head
from rankshot.cli.head_parameters import (
    DecayOption,
    Head,
    HeadKOption,
    HeadOption,
    HeadPriorOption,
    PosteriorOption,
    RankingsOption,
    ReferenceOption,
    SettingsOption,
    TemperatureOption,
)
from rankshot.cli.matched_names import read_rankings_of
from rankshot.cli.score_options import ScoreType, ScoreTypeOption, find_inputs
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
    from rankshot.zeroshot.scores import Scores

    Labels = NDArray[np.str_]

COMPARED = 10
"""The largest number of places that distances between rankings compare."""
EXAMPLES = 12
"""The largest number of inputs that are explained."""
LEAD_WITHOUT_TRUTH = (
    "This page shows what a zero-shot classifier predicted: classes without a single training "
    "example, which it knows only by rankings of the classes that it was trained on (the seen "
    "classes)."
)


def report(
    predictions: Annotated[
        Path, typer.Argument(help="The predictions that `classify` wrote (.csv, .parquet).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write (.html).")],
    truth: Annotated[
        Path | None,
        typer.Option(
            help="A table of the true classes: with columns id and label, or with a column label "
            "alone and the same rows as the predictions (.csv, .parquet). Without it, the page "
            "shows what was predicted, and how sure the predictions are."
        ),
    ] = None,
    rankings: RankingsOption = None,
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
    head: HeadOption = Head.WEIGHTED_MEAN,
    k: HeadKOption = None,
    decay: DecayOption = None,
    posterior: PosteriorOption = None,
    prior: HeadPriorOption = None,
    temperature: TemperatureOption = None,
    settings: SettingsOption = None,
    reference: ReferenceOption = None,
    score_type: ScoreTypeOption = ScoreType.AUTO,
    title: Annotated[str, typer.Option(help="The heading of the page.")] = "Zero-shot predictions",
) -> None:
    """Write a page that compares predictions with the true classes.

    The page is one self-contained HTML file. It begins with the accuracy, then shows what was
    confused with what, and the accuracy of each class.

    With --images, the page shows pictures of some inputs, recognised and not recognised, scaled
    down and embedded.

    With --rankings, the page shows what the first --k places of the rankings of each class agree
    on. With --scores as well, it explains why some inputs were given their classes, and names the
    seen classes that speak for each prediction that is shown with its picture; then give
    --head, --k, --decay, --posterior, --prior, --temperature, --settings, --reference and
    --score-type as you gave them to `classify`. A fitted --head has all this already. With
    --settings, --truth and --rankings, the page compares the calibration with that before the
    rehearsal. Only --head weighted-mean and --head probabilistic are explained.

    Example: rankshot report predictions.parquet --truth labels.csv --rankings rankings.jsonl
    -o report.html
    """
    from rankshot.report.page import render_report, write_page
    from rankshot.report.pictures import Outcomes, build_gallery
    from rankshot.zeroshot.files.predictions import read_predictions, read_truth
    from rankshot.zeroshot.files.score_tables import open_scores

    check_page(output)
    options = HeadOptions.from_command(
        rankings=rankings,
        head=head,
        k=k,
        decay=decay,
        prior=prior,
        posterior=posterior,
        temperature=temperature,
        reference=reference,
        settings=settings,
    )
    has_rankings = rankings is not None or options.fitted is not None
    if scores is not None and not has_rankings:
        raise RankshotError("--scores needs --rankings as well: explanations use both")
    if reference is not None and scores is None:
        raise RankshotError("--reference needs --scores as well: only explanations use it")
    if settings is not None and rankings is None:
        raise RankshotError("--settings needs --rankings as well: they tell which classes are new")
    if scores is not None and options.head not in REFERENCE_HEADS:
        raise RankshotError(
            f"--head {options.head} is not explained in a report: leave out --scores; --head "
            "weighted-mean and --head probabilistic are"
        )
    predicted = read_predictions(predictions)
    labels = None
    if truth is not None:
        labels = read_truth(truth, predicted.ids.tolist()).astype(str)
        _check_classes(labels, predicted, truth)
    try:
        page = _build_page(title, predicted, labels)
    except RankshotError as error:
        raise RankshotError(f"{predictions}: {error}") from None
    outcomes = Outcomes(predicted.labels.astype(str), predicted.proba, labels, predicted.targets)
    shots = _read_pictures(images, outcomes, predicted.ids)
    whys: dict[int, Explanation] = {}
    model, table = None, None
    if scores is not None:
        table = open_scores(scores)
        model, score_type = fit_head(table, score_type, options)
    if has_rankings:
        page = _add_rankings(page, options, table, predicted, labels, model)
    if table is not None and model is not None:
        cards, whys = _explain_inputs(
            outcomes, predicted.ids, shots.pictures, table, model, score_type
        )
        page = replace(page, explanations=cards)
    files = {
        "predictions": predictions,
        "truth": truth,
        "rankings": rankings,
        "head": options.saved,
        "scores": scores,
        "reference": reference,
        "images": images,
        "settings": settings,
    }
    # Not the whole paths: a page is made to be given away.
    shown = [(what, path.resolve().name) for what, path in files.items() if path is not None]
    page = replace(
        page,
        gallery=build_gallery(outcomes, predicted.ids, shots.pictures, whys),
        gallery_choice=shots.choice,
        settings=(*shown, *page.settings),
        notes=(*page.notes, *shots.notes),
    )
    write_page(render_report(page), output)
    say(f"{_summarize(predicted, labels)}; report written to {output}")


def _summarize(predicted: Predictions, labels: Labels | None) -> str:
    if labels is None:
        return f"{format_count(len(predicted), 'prediction')} without true classes"
    right = float((predicted.labels == labels).mean())
    return f"{right:.1%} of {format_count(len(labels), 'input')} right"


def _check_classes(labels: Labels, predicted: Predictions, path: Path) -> None:
    import numpy as np

    unknown = np.flatnonzero(~np.isin(labels, predicted.targets))
    if unknown.size:
        name = str(labels[unknown[0]])
        raise RankshotError(
            f"{path}: the true class {name!r} of input {predicted.ids[unknown[0]]!r} is none of "
            f"the predicted classes{suggest_name(name, predicted.targets)}"
        )


def _build_page(title: str, predicted: Predictions, labels: Labels | None) -> Report:
    from rankshot.report.contents import Report
    from rankshot.report.predictions import count_predictions, evaluate_predictions
    from rankshot.zeroshot.heads.decisions import REJECTED

    rejected = 0 if REJECTED in predicted.targets else int((predicted.labels == REJECTED).sum())
    given = predicted.labels.astype(str)
    page = Report(title)
    if labels is None:
        page = replace(
            page,
            lead=LEAD_WITHOUT_TRUTH,
            overview=count_predictions(given, predicted.proba, predicted.targets),
        )
    else:
        page = replace(
            page,
            evaluation=evaluate_predictions(labels, given, predicted.proba, predicted.targets),
        )
    if not rejected:
        return page
    note = "A rejected input counts as wrong, but is not in the confusion matrix."
    if labels is None:
        note = "Rejected inputs have no predicted class, but their confidence counts."
    return replace(page, facts=(("rejected", f"{rejected:,}"),), notes=(note,))


def _add_rankings(
    page: Report,
    options: HeadOptions,
    table: ScoreTable | None,
    predicted: Predictions,
    labels: Labels | None,
    model: BaseHead | None,
) -> Report:
    import numpy as np

    from rankshot.report.rankings import compare_sources, map_rankings, summarize_rankings

    path, rankings = _find_rankings(options, table)
    has_seen = bool(set(predicted.targets) & set(rankings.items))
    if has_seen and model is not None:
        raise RankshotError(
            "--scores: explanations in a report are of new classes, and these predictions are of "
            "seen classes as well; leave out --scores, and use `rankshot explain --classes all`"
        )
    # Seen classes, as predicted by `classify --classes all`, have no rankings.
    missing = sorted(set(predicted.targets) - set(rankings.target_names))
    if missing and not has_seen:
        raise RankshotError(
            f"{path}: no ranking of {quote_names(missing)}, which are predicted classes"
            f"{suggest_name(missing[0], rankings.target_names)}"
        )
    page = _add_calibration_before(page, options, predicted, labels, has_seen=has_seen)
    rankings = rankings[np.isin(rankings.targets.astype(str), predicted.targets)]
    k = min(getattr(options.model, "k", None) or rankings.n_items, rankings.n_items)
    consensus = getattr(model, "consensus_", None)
    if consensus is None:
        try:
            consensus = _merge_rankings(rankings, options, k)
        except RankshotError as error:
            raise RankshotError(f"{path}: {error}") from None
    compared = min(k, COMPARED)
    settings = [("--k", f"{k} places of each ranking")]
    if model is not None:
        # Without scores, it is not known how the predictions were made.
        settings += _describe_head(options)
    return replace(
        page,
        consensuses=summarize_rankings(rankings, consensus, compared),
        sources=compare_sources(rankings, consensus, compared),
        map=map_rankings(rankings, compared),
        settings=tuple(settings),
    )


def _find_rankings(options: HeadOptions, table: ScoreTable | None) -> tuple[Path, Rankings]:
    """Return the rankings of a file, or those that a fitted head has, and the name of the file."""
    from rankshot.ranking import read_rankings
    from rankshot.zeroshot.alignment import require_targets

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
    page: Report,
    options: HeadOptions,
    predicted: Predictions,
    labels: Labels | None,
    *,
    has_seen: bool,
) -> Report:
    """Add the calibration with the temperature of the head before the rehearsal of --settings."""
    from rankshot.report.predictions import undo_temperature

    before, now = options.settings.default_temperature, options.settings.temperature
    if before is None or now is None or labels is None or page.evaluation is None:
        return page
    if has_seen:
        note = (
            "The calibration before the rehearsal is not shown, because seen classes may be "
            "predicted, too: their probabilities depend on other settings as well."
        )
        say(f"{options.settings_file}: {note}")
        return replace(page, notes=(*page.notes, note))
    found = undo_temperature(labels, predicted.proba, predicted.targets, now, before)
    return replace(page, evaluation=replace(page.evaluation, uncalibrated=found))


def _describe_head(options: HeadOptions) -> list[tuple[str, str]]:
    settings, posterior = [("--head", options.head)], options.settings.posterior
    if options.head == "probabilistic":
        settings += [("--posterior", posterior or "mean")]
    if posterior != "sum" and options.head in REFERENCE_HEADS:
        settings += [("--decay", f"{options.model.decay:g}")]
    if not options.merges_rankings:
        used = "each ranking counts for itself; the consensus is only shown as a summary"
        settings += [("rankings", used)]
    return settings


def _merge_rankings(rankings: Rankings, options: HeadOptions, k: int) -> Rankings:
    """Return the consensus of each class, as a head with these options merges its rankings."""
    from rankshot.zeroshot import ProbabilisticRanking

    prior = getattr(options.model, "prior", None)
    head = ProbabilisticRanking(k=k, prior=prior, posterior="consensus")
    return cast("Rankings", head.fit(rankings.top(k)).consensus_)


class _Shots(NamedTuple):
    """The pictures to show by their rows, how they were chosen, and what is missing."""

    pictures: dict[int, Thumbnail]
    choice: str = ""
    notes: tuple[str, ...] = ()


def _read_pictures(images: Path | None, outcomes: Outcomes, ids: NDArray[np.object_]) -> _Shots:
    """Choose inputs that have a picture, and read these pictures only."""
    import numpy as np

    from rankshot.report.pictures import PictureFolder, choose_pictures, describe_choice
    from rankshot.zeroshot.heads.decisions import REJECTED

    if images is None:
        return _Shots({})
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
    candidates = np.array(sorted(row for row in files if outcomes.predicted[row] != REJECTED), int)
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
    return _Shots(pictures, choice, tuple(notes))


def _explain_inputs(
    outcomes: Outcomes,
    ids: NDArray[np.object_],
    shown: dict[int, Thumbnail],
    table: ScoreTable,
    model: BaseHead,
    score_type: ScoreType,
) -> tuple[tuple[ExplainedInput, ...], dict[int, Explanation]]:
    """Explain a few inputs in detail, and those that are shown with a picture, in one reading.

    Rejected inputs have no class to explain.
    """
    import numpy as np

    from rankshot.report.contents import ExplainedInput
    from rankshot.report.predictions import choose_examples, choose_rival
    from rankshot.zeroshot.heads.decisions import REJECTED

    kept = np.flatnonzero(outcomes.predicted != REJECTED)
    # Inputs with a picture are the best examples.
    first = np.concatenate([np.array(list(shown), int), kept[~np.isin(kept, list(shown))]])
    known = None if outcomes.truth is None else outcomes.truth[first]
    found = choose_examples(outcomes.predicted[first], known, outcomes.classes[:EXAMPLES])
    examples = set(first[found].tolist())
    rows = {str(ids[row]): row for row in [*shown, *examples]}
    cards, whys = [], {}
    for name, scores in find_inputs(table, rows, score_type):
        row = rows[name]
        label = str(outcomes.predicted[row])
        truth = None if outcomes.truth is None else str(outcomes.truth[row])
        if row in shown:
            whys[row] = _explain_prediction(model, scores, name, label, None)
        if row in examples:
            rival = choose_rival(label, truth, outcomes.proba[row], outcomes.classes)
            why = _explain_prediction(model, scores, name, label, rival)
            cards.append(ExplainedInput(name, why, truth, shown.get(row)))
    return tuple(cards), whys


def _explain_prediction(
    model: BaseHead, scores: Scores, name: str, label: str, against: str | None
) -> Explanation:
    from rankshot.zeroshot import explain

    why = explain(model, scores, against=against)[0]
    if why.target != label:
        raise RankshotError(
            f"input {name!r} is {label!r} in the predictions, but {why.target!r} with these "
            "--scores and this head: give the files and options that `classify` had, or "
            "leave out --scores"
        )
    return why
