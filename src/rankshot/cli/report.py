"""``rankshot report`` and ``explain``: what ``classify`` predicted, on one page, and why."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from rankshot import pages, ranking, zeroshot
from rankshot.cli.console import check_page, refuse, say
from rankshot.cli.heads import (
    EXAMPLE_IDS,
    PREDICTED,
    HeadOptions,
    fit_head,
    list_example_ids,
    open_table,
    read_rankings_of,
)
from rankshot.core.errors import (
    RankshotError,
    format_count,
    prefix_errors,
    quote_names,
    suggest_name,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankshot.zeroshot.files.predictions import Predictions
    from rankshot.zeroshot.files.score_tables import ScoreTable

TITLE = "Zero-shot predictions"
MAX_PLACES = 10
"""The largest number of places that distances between rankings compare."""
EXPLAINED = 3
"""How many inputs `explain` explains by default."""


def explain(
    scores: Path,
    *,
    options: HeadOptions,
    id: list[str] | None = None,  # noqa: A002
    new_class: str | None = None,
    against: str | None = None,
) -> None:
    """Explain why inputs were assigned their classes.

    For each input, the output shows how much the eight most important seen classes and the rest of
    them contribute. A contribution of +0.7 doubles the odds of the class.

    Example: rankshot explain scores.parquet --rankings rankings.jsonl --id img17 --against dog

    Parameters
    ----------
    scores
        The table of scores, as for `classify` (.csv, .parquet).
    id : <id>
        An input to explain: its id, or its row number (from 0) if the table has no ids; may be
        repeated. The default is the first three inputs.
    new_class
        The class to explain. The default is the predicted class.
    against
        The new class to compare with. The default is the average over all new classes.
    """
    table = open_table(scores, options)
    model, table = fit_head(table, options)
    ids = id or next(table.inputs())[0][:EXPLAINED]
    for name, scores_of_one in table.find(ids).items():
        why = zeroshot.explain(model, scores_of_one, target=new_class, against=against)[0]
        say(f"{name}: {why}\n")


def report(
    predictions: Path,
    *,
    output: Path,
    options: Annotated[HeadOptions, "rankings head set settings reference examples evidence"],
    truth: Path | None = None,
    scores: Path | None = None,
    images: Path | None = None,
) -> None:
    """Write an HTML page about predictions and their accuracy.

    The page is one self-contained HTML file. It begins with the accuracy in one sentence, what
    stands out and what to do next; then come images (--images), confusions, the calibration and
    the accuracy of each class. Labelled examples are not used to measure the accuracy.

    After `rankshot recognise`, give the folder that it keeps. For the predictions of `classify`:
    with --rankings, the page names the most similar new classes, and shows what the rankings of
    each class agree on. With --scores as well, it explains some predictions by the seen classes
    that support them, and names the network and the inputs that it skipped. Then give --head,
    --set, --settings, --reference and --score-type as you gave them to `classify`. A fitted --head
    includes all of these.

    Example: rankshot report photos.rankshot-run --truth labels.csv -o report.html

    Example: rankshot report predictions.parquet --truth labels.csv --rankings rankings.jsonl
    -o report.html

    Parameters
    ----------
    predictions
        The folder that `rankshot recognise` keeps; or the predictions that `classify` wrote (.csv,
        .parquet).
    output
        The page to write (.html).
    truth
        A table of the true classes: with columns id and label, or with a column label alone and the
        same rows as the predictions (.csv, .parquet). If only some inputs have a label, only these
        are reported. Without it, the page shows how often each class was predicted, and how
        probable the predictions are.
    scores
        The scores that `classify` read (.csv, .parquet, or a folder of parts). They need
        --rankings, or a fitted --head.
    images
        A folder of the input images (JPEG, PNG, GIF, WebP): some are shown with their predictions.
        The id of an input is the path of its image below this folder, with or without the
        extension.
    """
    from rankshot.pages.contents import EVIDENCE, EXAMPLES, LEAD, LEAD_WITH_MORE
    from rankshot.recognition.score_parts import read_origin

    check_page(output)
    # A missing folder has an ending as well, which is not what is wrong with it.
    predictions.stat()
    from rankshot.recognition.run_folder import MANIFEST

    if (predictions / MANIFEST).is_file():
        _report_run(predictions, output, truth, [*options.files, *(["scores"] if scores else [])])
        return
    has_rankings = options.rankings is not None
    _check_options(options, scores, has_head=has_rankings or options.fitted is not None)
    predicted = zeroshot.read_predictions(predictions)
    labels, left_out = None, ""
    if truth is not None:
        predicted, labels, left_out = _read_labels(truth, predicted, _find_examples(options))
    ids = [str(name) for name in predicted.ids]
    outcomes = pages.Outcomes(
        ids, predicted.labels.astype(str), predicted.proba, labels, predicted.targets
    )
    model, table, about, find_scores = None, None, dict[str, Any](), None
    kind, settings = "new", list[tuple[str, str]]()
    if scores is not None:
        table = open_table(scores, options)
        model, table = fit_head(table, options)
    if has_rankings:
        about, settings = _find_consensus(options, table, outcomes, model)
        # All new classes have rankings, and seen classes have none.
        kind = "new" if len(about["consensus"]) >= len(outcomes.classes) else "seen and new"
    if scores is not None and table is not None and model is not None:
        open_scores = table

        def find_scores(rows: Collection[int]) -> Iterator[tuple[int, zeroshot.Scores]]:
            row_of = {ids[row]: row for row in rows}
            for name, found in open_scores.find(row_of).items():
                yield row_of[name], found

        settings += read_origin(scores).items()
    files = {"predictions": predictions, "truth": truth, "scores": scores, "images": images}
    # Not the whole paths: a page is made to be given away.
    given = {**files, **options.files}.items()
    shown = [(what, path.resolve().name) for what, path in given if path is not None]
    fitted_to = {} if options.fitted is None else options.fitted.inner.about.get("files", {})
    known = {"examples": EXAMPLES, "evidence": EVIDENCE}
    more = [text for what, text in known.items() if what in {**options.files, **fitted_to}]
    with prefix_errors(predictions):
        page = pages.build_report(
            TITLE,
            outcomes,
            head=model,
            find_scores=find_scores,
            images=images,
            forecast=_find_predicted(options),
            lead=(LEAD_WITH_MORE.format(" and ".join(more)) if more else LEAD) + left_out,
            kind=kind,
            settings=(*shown, *settings),
            **about,
        )
    for note in page.notes:
        say(f"{images}: {note}")
    pages.write_page(pages.render_report(page), output)
    say(f"{_describe_result(outcomes)}; report written to {output}")


def _describe_result(outcomes: pages.Outcomes) -> str:
    if outcomes.truth is None:
        return f"{format_count(len(outcomes.predicted), 'prediction')} without true classes"
    correct = float((outcomes.predicted == outcomes.truth).mean())
    return f"{correct:.1%} of {format_count(len(outcomes.truth), 'input')} correct"


def _check_options(options: HeadOptions, scores: Path | None, *, has_head: bool) -> None:
    refuse(scores and not has_head, "--scores needs --rankings as well")
    refuse(options.settings_file and not has_head, "--settings needs --rankings as well")
    refuse(options.reference and not scores, "--reference needs --scores as well")


def _report_run(run: Path, output: Path, truth: Path | None, given: list[str]) -> None:
    """Write the report of what `rankshot recognise`, or `Recognition.save`, wrote."""
    from rankshot.recognition import open_run
    from rankshot.recognition.run_report import report_run

    refuse(given, f"{run}: has all that is needed; leave out --{next(iter(given), '')}")
    report = report_run(open_run(run), truth)
    pages.write_page(pages.render_report(report), output)
    say(f"report written to {output}")


def _find_examples(options: HeadOptions) -> set[str]:
    """Return the ids of the inputs that the head was fitted to."""
    if options.examples is not None:
        return {*list_example_ids(options.examples)}
    return set() if options.fitted is None else {*options.fitted.inner.about.get(EXAMPLE_IDS, ())}


def _read_labels(
    path: Path, predicted: Predictions, examples: Collection[str]
) -> tuple[Predictions, NDArray[np.str_], str]:
    """Return predictions and labels of inputs that are not ``examples``, and a remark on these."""
    import numpy as np

    labels = zeroshot.read_truth(path, predicted.ids.tolist(), partial=True).astype(str)
    is_example = np.array([str(name) in examples for name in predicted.ids])
    rows = np.flatnonzero((labels != "") & ~is_example)
    refuse(
        not len(rows), f"{path}: has labels of examples only, which cannot be used to test the head"
    )
    remark = ""
    if len(rows) < len(labels):
        n = format_count(len(labels), "input")
        used = format_count(int((is_example & (labels != "")).sum()), "example")
        without = ""
        if is_example.any():
            without = f", without {used} that the head was fitted to"
            remark = f" Examples do not count as test inputs: {used} left out."
        say(f"{path}: labels of {len(rows):,} of the {n}{without}; only these are reported")
        chosen = {name: getattr(predicted, name)[rows] for name in ("ids", "labels", "proba")}
        predicted, labels = replace(predicted, **chosen), labels[rows]
    classes = predicted.targets
    for row in np.flatnonzero(~np.isin(labels, classes)):
        name = str(labels[row])
        raise RankshotError(
            f"{path}: the true class {name!r} of input {predicted.ids[row]!r} is not one of the "
            f"predicted classes{suggest_name(name, classes)}: {quote_names(classes)}"
        )
    return predicted, labels, remark


def _find_predicted(options: HeadOptions) -> zeroshot.metrics.Interval | None:
    """Return the accuracy that a rehearsal predicted, if the settings say it."""
    notes: Any = {}
    if options.settings_file is not None:
        notes = json.loads(options.settings_file.read_bytes()).get("notes", {})
    elif options.fitted is not None:
        notes = options.fitted.inner.about.get("notes", {})
    found = notes.get(PREDICTED)
    return None if found is None else zeroshot.metrics.Interval(*found)


def _find_consensus(
    options: HeadOptions,
    table: ScoreTable | None,
    outcomes: pages.Outcomes,
    model: zeroshot.Predictor | None,
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the rankings of the classes with their consensus, and settings to show."""
    import numpy as np

    from rankshot.zeroshot.seen_and_new import NONE_OF_THESE

    path, rankings = _find_rankings(options, table)
    has_seen = bool(set(outcomes.classes) & set(rankings.items))
    # Seen classes, as predicted by `classify --classes all`, have no rankings.
    missing = sorted(set(outcomes.classes) - {*rankings.target_names, NONE_OF_THESE})
    hint = suggest_name(missing[0], rankings.target_names) if missing else ""
    refuse(
        has_seen and model is not None,
        "--scores: a report explains only predictions of new classes, but these include seen "
        "classes; leave out --scores, and use `rankshot explain --classes all`",
    )
    refuse(
        missing and not has_seen,
        f"{path}: no ranking of {quote_names(missing)}, which are predicted classes{hint}",
    )
    rankings = rankings[np.isin(rankings.targets.astype(str), outcomes.classes)]
    k = min(options.settings.k or rankings.n_items, rankings.n_items)
    merging = zeroshot.ProbabilisticRanking(k=k, posterior="consensus")
    with prefix_errors(path):
        consensus: Any = merging.fit(rankings.top(k)).consensus_
    return {
        "rankings": rankings,
        "consensus": consensus[np.isin(consensus.targets.astype(str), outcomes.classes)],
        "n_places": min(k, MAX_PLACES),
    }, [("places of each ranking", f"the first {k}")]


def _find_rankings(options: HeadOptions, table: ScoreTable | None) -> tuple[Path, ranking.Rankings]:
    """Return the rankings of a file, and its name."""
    from rankshot.zeroshot.class_rankings import only_new, require_targets

    path = cast("Path", options.rankings)
    # `fit_head` has read the same rankings, and printed what was matched.
    rankings = (
        ranking.read_rankings(path) if table is None else read_rankings_of(path, table, quiet=True)
    )
    with prefix_errors(path):
        # Rankings of a run are of seen classes as well, for its rehearsal.
        return path, only_new(require_targets(rankings))
