"""``rankshot recognise``: from a model and images, or texts, to new classes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from rankshot import recognition
from rankshot.cli.printing import (
    FileOrName,
    Input,
    Output,
    ScoreType,
    parse_share,
    print_table,
    remember_output,
    require_output,
    say,
)
from rankshot.core.errors import NO_VALUE, InputError, format_count

ROWS_SHOWN = 8
Batch = Literal["auto", "yes", "no"]
Share = Annotated[float | None, Parameter(converter=lambda _, words: parse_share(words[0].value))]
BATCH: dict[str, bool | Literal["auto"]] = {"auto": "auto", "yes": True, "no": False}


def recognise(
    inputs: Input,
    /,
    *,
    model: FileOrName | None = None,
    new: FileOrName | None = None,
    rankings: Input | None = None,
    source: list[str] | None = None,
    seen: FileOrName | None = None,
    preprocessing: FileOrName | None = None,
    reference: Input | None = None,
    rehearse: Annotated[bool, Parameter(negative="--no-rehearse")] = True,
    examples: Input | None = None,
    settings: Input | None = None,
    classes: Literal["new", "all"] = "new",
    seen_loss: Share = None,
    none: bool = False,
    batch: Batch = "auto",
    score_type: ScoreType = "auto",
    on_error: Literal["stop", "skip"] = "stop",
    folder: Path | None = None,
    overwrite: bool = False,
    output: Output = None,
) -> None:
    """Recognise new classes in images or texts with your own model.

    It uses whatever files you give, and prints each choice with its reason. The results are kept in
    a folder, which `rankshot review`, `report`, `doctor` and `export` open.

    Example: rankshot recognise photos/ --model efficientnet-lite0 --new "okapi, menorah"
    -o predictions.csv

    Parameters
    ----------
    inputs
        A folder of images (subfolders included), an image, a list of paths or texts (.txt, one per
        line), or a table with a column text or path (.csv, .jsonl); without --model, a table of
        scores (.csv, .parquet).
    model
        A network (.onnx), a transformers model, a scikit-learn pipeline (.skops), or
        efficientnet-lite0, which was trained on ImageNet.
    new
        The new classes: names separated by commas, or a file with one name per line.
    rankings
        Rankings of the seen classes for each new class (.jsonl, .parquet), instead of --new.
    source
        Where the rankings of names come from, as for `rankshot rank`; may be repeated. The default
        is answers to the prompts in the folder of the run, then the dictionary, then WordNet.
    seen
        The names of the model's classes in their order: a file, or imagenet-1k. Not needed if they
        are in the model.
    preprocessing
        How images are preprocessed: imagenet, efficientnet-lite, clip, or a file.
    reference
        Inputs of seen classes that were not used for training: a folder with one subfolder of
        images per class, or a table, perhaps with a column label.
    rehearse
        Hold out classes of a reference with labels, to choose settings and forecast the accuracy.
    examples
        The classes of some inputs (columns id and label, or an export of Label Studio), or labelled
        inputs of new classes.
    settings
        Settings that `rankshot doctor --rehearse -o` wrote (.json).
    classes
        What may be predicted: new classes only, or new and seen classes.
    seen_loss
        With --classes all, how much accuracy on seen classes may be lost, such as 2%.
    none
        Also predict "none of these".
    batch
        Whether all inputs are classified jointly; with auto, if there are five or more per class.
    score_type
        What the numbers of a table of scores are. With auto, this is inferred from the first rows.
    on_error
        What to do with inputs that cannot be read: stop, or leave them out and name them.
    folder
        The folder of the run. The default is beside the output, such as photos.rankshot-run.
    overwrite
        Replace the output, or files in the folder, although a person may have changed them.
    output
        The predictions to write (.csv, .parquet).
    """
    from rankshot.zeroshot import Settings

    parent = Path() if output is None else output.parent
    run = folder or parent / f"{inputs.resolve().name}.rankshot-run"
    endings = (".csv", ".parquet")
    require_output(output, endings, inputs, rankings, examples, overwrite=overwrite, run=run)
    if (new is None) == (rankings is None):
        hint = 'give --new "okapi, menorah", or --rankings FILE'
        raise InputError("new", NO_VALUE, "must be given" if new is None else "is given", hint=hint)
    given: Any = rankings
    if new is not None:
        from rankshot.cli.rank import read_new

        given = read_new(new)
        source = source or _find_answers(run)
    found = recognition.recognise(
        inputs,
        given,
        model=model,
        seen=seen,
        preprocessing=preprocessing,
        source=source,
        reference=reference,
        rehearse=rehearse,
        examples=examples,
        classes=classes,
        seen_loss=seen_loss,
        none=none,
        batch=BATCH[batch],
        on_error=on_error,
        settings=None if settings is None else Settings.read(settings),
        score_type=score_type,
    )
    print_recognition(found, output or run / "predictions.csv")
    if new is not None:
        from rankshot.cli.rank import print_rankings

        names = [name for name in given if name in found.knowledge.rankings.target_names]
        print_rankings(found.knowledge.rankings, names[:ROWS_SHOWN])
        if len(names) > ROWS_SHOWN:
            say(f"and {len(names) - ROWS_SHOWN:,} more in {run / 'rankings.jsonl'}")
    found.save(run, overwrite=overwrite)
    if found.predicted is not None:
        say(f"forecast of the accuracy on new classes, with its 95% interval: {found.predicted}")
    for note in found.notes:
        say(note)
    if output is not None:
        found.write(output)
        remember_output(output, run)
        say(f"{format_count(len(found.ids), 'prediction')} written to {output}")
    say(f"kept in {run}. Next:")
    for words in (["review", run], ["report", run, "-o", "report.html"], ["doctor", run]):
        say(f"  rankshot {shlex.join(map(str, words))}")
    if new is not None and source is None:
        from rankshot.cli.rank import write_prompts

        write_prompts(run / "prompts", given, found.knowledge.seen)


def print_recognition(found: recognition.Recognition, rest: Path) -> None:
    """Print the first predictions, and where the rest is."""
    best = found.head.top(found.inputs.scores[:ROWS_SHOWN], min(2, len(found.head.classes_)))
    rows = [
        [name, *(text for one, p in zip(names, proba, strict=True) for text in (one, f"{p:.2f}"))]
        for name, names, proba in zip(found.ids, best.labels, best.proba, strict=False)
    ]
    columns = ["input", "*class", ">probability", "second", ">probability"]
    print_table(None, columns[: len(rows[0])], rows)
    if len(found.ids) > ROWS_SHOWN:
        say(f"and {len(found.ids) - ROWS_SHOWN:,} more in {rest}")


def _find_answers(run: Path) -> list[str] | None:
    """The answers to the prompts of an earlier run, as a source."""
    answers = run / "prompts" / "answers"
    return [f"answers:{answers}"] if any(answers.glob("*.txt")) else None
