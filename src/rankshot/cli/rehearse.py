"""``rankshot rehearse``: seen classes are held out, to choose, to calibrate and to predict."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rankshot import core, ranking, recognition, zeroshot
from rankshot.cli.console import check_output, print_table, say
from rankshot.cli.heads import (
    PREDICTED,
    ScoreType,
    add_evidence,
    infer_score_type,
    match_columns,
    read_new_rankings,
    rename,
)
from rankshot.core.errors import format_count, format_share, prefix_errors, quote_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankshot.zeroshot.files.score_tables import ScoreTable


def rehearse(
    scores: Path,
    *,
    truth: Path,
    rankings: Path,
    new_rankings: Path | None = None,
    evidence: Path | None = None,
    output: Path | None = None,
    score_type: ScoreType = "auto",
) -> None:
    """Choose settings and predict the accuracy on held-out classes.

    Some seen classes are treated as if they were new: their columns are removed from the scores,
    and their inputs have to be recognised by rankings of the other classes. Because their true
    classes are known, the command can choose sources and settings, calibrate the probabilities, and
    predict the accuracy on the new classes, without any input of the new classes.

    Example: rankshot rehearse seen_scores.csv --truth seen_labels.csv --rankings rehearsal.jsonl
    --new-rankings rankings.jsonl -o settings.json

    Parameters
    ----------
    scores
        The scores of inputs of seen classes that the classifier was not trained on, with one
        column per seen class and optionally a column id (.csv, .parquet; read into memory).
    truth
        A table of the true classes of these inputs: with columns id and label, or with a column
        label alone and the same rows as the scores (.csv, .parquet).
    rankings
        Rankings for some seen classes, which list the other seen classes (.jsonl), as written by
        `rankshot rank --rehearse seen_labels.csv`.
    new_rankings
        The rankings of the new classes (.jsonl), by the same sources. With them, the accuracy on
        the new classes is predicted.
    evidence
        Another model's scores for the rehearsed classes: one column for each of them, and the same
        ids as the scores (.csv, .parquet). The rehearsal finds its weight; `classify
        --evidence` takes the same model's scores for the new classes.
    output
        The settings to write (.json), for --settings of `rankshot classify`, `explain` and
        `report`.
    """
    check_output(output, (".json",), scores, truth, rankings, new_rankings, evidence)
    table = add_evidence(zeroshot.open_scores(scores).keep(), evidence)
    about = ranking.read_rankings(rankings)
    of_rankings = [*about.items, *filter(None, about.target_names)]
    about = rename(about, match_columns(of_rankings, table, rankings))
    about_new = None if new_rankings is None else read_new_rankings(new_rankings, table)
    values, labels = read_labelled(infer_score_type(table, score_type), truth)
    rehearsal = zeroshot.Rehearsal()
    with prefix_errors(f"{scores}, {truth}", rankings):
        rehearsal.fit(values, labels, about)
    forecast = rehearsal.forecast_
    if without := sorted(set(about.target_names) - set(forecast.classes)):
        say(f"{rankings}: left out, since they have no inputs: {quote_names(without)}")
    predicted = None
    if about_new is not None:
        with prefix_errors(new_rankings):
            predicted = rehearsal.predict_accuracy(about_new)
    # Files come first: a reader of the output that stops early (`| head`) ends the command.
    if output is not None:
        forecast.settings.write(output, _make_notes(forecast, predicted))
    for line in check_labelled(values, labels).describe()[1:]:
        say(line)
    _print_choice(forecast)
    for line in forecast.describe(about_new)[1:]:
        say(line)
    if output is not None:
        reference = ["--reference", str(scores)] if forecast.settings.use_reference else []
        more = ["--evidence", "EVIDENCE"] if forecast.settings.evidence_weight else []
        given = [*reference, *more, "--settings", str(output)]
        words = f"rankshot classify SCORES --rankings {new_rankings or 'RANKINGS'}"
        say(f"settings written to {output}; to use them:")
        say(f"  {words} {shlex.join(given)} -o PREDICTIONS")


def read_labelled(table: ScoreTable, truth: Path) -> tuple[zeroshot.Scores, NDArray[np.object_]]:
    """Read a table of scores into memory, and the class of each input."""
    from rankshot.zeroshot.files.score_tables import rename_all

    ids, scores = table.read()
    labels = zeroshot.read_truth(truth, ids)
    column_of = match_columns(labels.tolist(), table, truth)
    return scores, core.as_text_array(rename_all(labels.tolist(), column_of))


def check_labelled(
    scores: zeroshot.Scores, labels: NDArray[np.object_]
) -> recognition.NetworkCheck:
    """Return what a network says of labelled inputs, and how accurate it is."""
    rows = list(map(str, range(len(labels))))
    return recognition.check_scores([(rows, scores)], dict(zip(rows, labels.tolist(), strict=True)))


# ---- What is written and printed


def _make_notes(
    forecast: zeroshot.Forecast, predicted: tuple[float, ...] | None
) -> dict[str, object]:
    """Return what a reader of the file wants to know; it is not read again."""
    notes: dict[str, object] = {
        "rehearsed classes": forecast.classes.tolist(),
        "their mean accuracy, with 95% interval": list(forecast.accuracy),
        "expected calibration error before and after": list(forecast.calibration_error),
    }
    if predicted is not None:
        notes[PREDICTED] = list(predicted)
    return notes


def _describe_settings(settings: zeroshot.Settings) -> str:
    return f"decay={settings.decay}, k={settings.k}"


def _print_choice(forecast: zeroshot.Forecast) -> None:
    """Print what was tried, and what was chosen."""
    rows = [
        [each.what, str(each.accuracy), "chosen" if each is forecast.chosen else ""]
        for each in forecast.trials
    ]
    rows[0][0] += f" ({_describe_settings(forecast.trials[0].settings)})"
    n = format_count(len(forecast.classes), "seen class")
    title = f"Mean accuracy of {n}, held out as new ones"
    print_table(title, ["tried", ">accuracy and 95% interval", ""], rows)
    settings = forecast.settings
    reference = "with a reference" if settings.use_reference else "without a reference"
    say(
        f"chosen: {_describe_settings(settings)}, temperature={settings.temperature:.3g}, "
        f"{reference} (a change is made only if it gains more than its standard error over the "
        "classes, or twice that for weights of sources)"
    )
    weights = {source or "no source": w for source, w in (settings.source_weights or {}).items()}
    if len(weights) > 1:
        say(f"sources: {', '.join(f'{source} {weight:.2g}' for source, weight in weights.items())}")
    if settings.evidence_weight is not None:
        say(f"evidence: weight {settings.evidence_weight:.2f} relative to the rankings")
    before, after = map(format_share, forecast.calibration_error)
    say(
        f"calibration: confidence and accuracy differ by {before} with the default temperature, "
        f"and by {after} with the chosen one"
    )
