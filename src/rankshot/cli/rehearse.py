"""``rankshot rehearse``: seen classes play new ones, to choose, to calibrate and to predict."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import check_writable, say
from rankshot.cli.head_options import Head
from rankshot.cli.score_options import ScoreType, ScoreTypeOption, build_scores, infer_score_type
from rankshot.core.errors import RankshotError, format_count, quote_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankshot.ranking.rankings import Rankings
    from rankshot.zeroshot.rehearsal.rehearsal import Rehearsal
    from rankshot.zeroshot.scores import Scores


def rehearse(
    scores: Annotated[
        Path,
        typer.Argument(
            help="The scores of inputs of seen classes, with one column per seen class and "
            "optionally a column id (.csv, .parquet, .npz; read into memory)."
        ),
    ],
    truth: Annotated[
        Path,
        typer.Option(help="The seen class of each of these inputs: a column label, and id."),
    ],
    rankings: Annotated[
        Path,
        typer.Option(
            help="Rankings of some seen classes by the others (.jsonl), as written by "
            "`rankshot rank --rehearse 20`."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The settings to write (.json), for `classify --settings`."
        ),
    ] = None,
    new_rankings: Annotated[
        Path | None,
        typer.Option(
            help="The rankings of the new classes (.jsonl), to predict how accurate they will be."
        ),
    ] = None,
    head: Annotated[
        Head, typer.Option(help="The method whose settings are chosen; of those with rankings.")
    ] = Head.WEIGHTED_MEAN,
    score_type: ScoreTypeOption = ScoreType.AUTO,
) -> None:
    """Let seen classes play new classes.

    The columns of some seen classes are left out, and their inputs are recognised by rankings,
    like inputs of new classes. The result: which sources and settings to use, the temperature that
    calibrates the probabilities, and how accurate the new classes will be.

    Example: rankshot rehearse seen.parquet --truth labels.csv --rankings rehearsal.jsonl
    --new-rankings rankings.jsonl -o settings.json
    """
    from rankshot.ranking import read_rankings
    from rankshot.zeroshot.files.head_settings import HEADS, HeadSettings, write_settings
    from rankshot.zeroshot.rehearsal.rehearsal import Rehearsal

    if head in {Head.DIRECT, Head.CONSE}:
        raise RankshotError(f"--head {head} uses similarities; rehearse it in Python: Rehearsal")
    if output is not None:
        check_writable(output, scores, truth, rankings, new_rankings)
    table, labels = _read_labelled(scores, truth, score_type)
    about = read_rankings(rankings)
    about_new = None if new_rankings is None else read_rankings(new_rankings)
    try:
        rehearsal = Rehearsal(HEADS[head](), verbose=True).fit(table, labels, about)
    except RankshotError as error:
        raise RankshotError(f"{rankings}, {truth} and {scores}: {error}") from None
    _print_trials(rehearsal)
    notes: dict[str, object] = {
        "rehearsed classes": rehearsal.classes_.tolist(),
        "their mean accuracy, with 95 % interval": list(rehearsal.accuracy_),
        "expected calibration error before and after": list(rehearsal.calibration_error_),
    }
    if about_new is not None:
        notes["predicted accuracy"] = list(_predict(rehearsal, about_new, new_rankings))
    gate = None
    if rehearsal.gate_ is not None:
        gate = {**asdict(rehearsal.gate_), "seen_temperature": rehearsal.seen_temperature_}
    settings = HeadSettings.of_head(
        rehearsal.head_, reference=rehearsal.use_reference_, sources=rehearsal.sources_, gate=gate
    )
    if output is not None:
        write_settings(settings, output, notes)
        say(f"settings written to {output}: use them with `rankshot classify --settings {output}`")


def _read_labelled(
    path: Path, truth: Path, score_type: ScoreType
) -> tuple[Scores, NDArray[np.object_]]:
    """Read a table of scores into memory, and the class of each input."""
    import numpy as np

    from rankshot.zeroshot.files.score_tables import open_scores
    from rankshot.zeroshot.files.truth import read_truth

    table = open_scores(path)
    batches: list[NDArray[np.floating]] = []
    ids: list[str] = []
    for found, batch in table.batches():
        n = len(ids)
        batches.append(batch.values)
        ids += [str(n + i) for i in range(len(batch))] if found is None else list(found)
    values = np.concatenate(batches)
    if score_type is ScoreType.AUTO:
        score_type = infer_score_type(batches[0], table)
    return build_scores(values, table, score_type, range(len(values))), read_truth(truth, ids)


def _predict(rehearsal: Rehearsal, rankings: Rankings, path: Path | None) -> tuple[float, ...]:
    """Predict the accuracy of the new classes, and print it."""
    try:
        found = rehearsal.predict_accuracy(rankings)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    n = format_count(len(rankings.target_names), "new class")
    say(f"predicted mean accuracy of the {n}: {found} (95% interval for these classes)")
    return found


def _print_trials(rehearsal: Rehearsal) -> None:
    """Print what was tried, and what was chosen."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rankshot.zeroshot.metrics import format_share

    n = format_count(len(rehearsal.classes_), "seen class")
    table = Table(title=f"Rehearsal with {n}")
    table.add_column("tried")
    table.add_column("accuracy", justify="right")
    for trial in rehearsal.trials_:
        table.add_row(Text(trial.what), str(trial.accuracy))
    console = Console()
    console.print(table)
    head = rehearsal.head_
    chosen = [f"k={head.k}"] if hasattr(head, "k") else []
    chosen += [f"decay={head.decay:g}"] if hasattr(head, "decay") else []
    chosen += [f"temperature={head.temperature:.3g}"]
    chosen += ["a reference" if rehearsal.use_reference_ else "no reference"]
    say(f"chosen: {', '.join(chosen)}", console)
    if rehearsal.sources_ != ("",):
        say(f"sources: {quote_names(rehearsal.sources_)}", console)
    say("A change is made only if it gains more than its standard error over classes.", console)
    before, after = rehearsal.calibration_error_
    say(f"expected calibration error: {before:.3f}; with this temperature {after:.3f}", console)
    if rehearsal.together_ is not None:
        new, seen, harmonic = map(format_share, rehearsal.together_)
        say(
            f"seen classes as answers, too (classify --classes all): {new} of the rehearsed and "
            f"{seen} of the other seen classes are right, harmonic mean {harmonic}",
            console,
        )
