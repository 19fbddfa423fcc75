"""``rankshot review``, ``report``, ``doctor`` and ``export``: what is done with a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import Port

from rankshot.cli.printing import (
    Input,
    Output,
    RequiredOutput,
    remember_output,
    require_output,
    say,
)
from rankshot.core.errors import NO_VALUE, InputError, format_count


def review(
    run: Input,
    /,
    *,
    inputs: Input | None = None,
    csv: Path | None = None,
    number: int = 20,
    host: str = "127.0.0.1",
    port: Port = 0,
    overwrite: bool = False,
    open_browser: bool = False,
) -> None:
    """Check and correct predictions on a web page, or in a table.

    The page shows the inputs by predicted class, those whose labels help most, or a random sample,
    which estimates how many predictions are correct. Labels are saved at once, and the head learns
    from them after each pause. Labels, predictions and the head are kept in the subfolder review of
    the run. The page is served until Ctrl-C, to this machine only.

    Example: rankshot review photos.rankshot-run

    Parameters
    ----------
    run
        The folder that `rankshot recognise` keeps.
    inputs
        The inputs to show or play: a folder of images or sounds, where the id of an input is the
        path of its file; or a table with columns id and text, or id and path. The default is what
        `recognise` read.
    csv
        Instead of a page, a new table of the inputs whose labels help most, to fill in. Give it to
        --examples afterwards.
    number
        How many rows of the table are to be filled in.
    host
        The address to listen on. With 0.0.0.0, other machines can reach the page: then set the
        environment variable RANKSHOT_REVIEW_TOKEN to a secret of 16 characters or more.
    port
        The port to listen on. With 0, a free port is chosen.
    overwrite
        Replace results in the folder that were changed since they were written.
    open_browser
        Open the page in the browser.
    """
    from rankshot.recognition import open_run

    opened = open_run(run)
    if csv is not None:
        from rankshot.core.files import require_ending
        from rankshot.review.learning import suggest_for_run

        require_ending(csv, (".csv",))
        n = suggest_for_run(opened, csv, number)
        say(f"{format_count(n, 'input')} to label in {csv}: fill in the column 'label', and give")
        say(f"  --examples {csv} to rankshot recognise or classify")
        return
    from rankshot.review.serve import review_run, serve_review

    serve_review(
        review_run(opened, inputs),
        run / "review",
        title=run.resolve().name.removesuffix(".rankshot-run"),
        host=host,
        port=port,
        overwrite=overwrite,
        open_browser=open_browser,
        say=say,
    )


def report(
    run: Input,
    /,
    *,
    truth: Input | None = None,
    ids: Annotated[list[str] | None, Parameter(name="--id")] = None,
    new_class: str | None = None,
    against: str | None = None,
    overwrite: bool = False,
    output: Output = None,
) -> None:
    """Write an HTML page about predictions and their accuracy, or explain some.

    The page is one self-contained file. It begins with the accuracy, or the forecast; then come
    images, confusions, calibration, the accuracy of each class, and explanations of some
    predictions by the seen classes that support them. Labelled examples are not used to measure the
    accuracy.

    Example: rankshot report photos.rankshot-run --truth labels.csv -o report.html

    Example: rankshot report photos.rankshot-run --id cat-17.jpg --against dog

    Parameters
    ----------
    run
        The folder that `rankshot recognise` keeps; or predictions (.csv, .parquet).
    truth
        A table of the true classes: with columns id and label, or with a column label alone and the
        same rows. If only some inputs have a label, only these are reported.
    ids
        Explain this input instead of writing a page; may be repeated.
    new_class
        The class to explain. The default is the predicted class.
    against
        The class to compare with. The default is the average over all classes.
    overwrite
        Replace a page that is not of this run, or was changed.
    output
        The page to write (.html).
    """
    from rankshot import pages
    from rankshot.recognition import open_run
    from rankshot.recognition.run_report import explain_run, report_predictions, report_run

    if ids is not None:
        found = explain_run(open_run(run), ids, target=new_class, against=against)
        for name, why in found.items():
            say(f"{name}: {why}\n")
        return
    if output is None:
        raise InputError("output", NO_VALUE, "must be given", hint="-o FILE.html, or --id")
    require_output(output, (".html", ".htm"), truth, overwrite=overwrite, run=run)
    page = report_run(open_run(run), truth) if run.is_dir() else report_predictions(run, truth)
    pages.write_page(pages.render_report(page), output)
    remember_output(output, run)
    say(f"report written to {output}")


def doctor(
    run: Input, /, *, rehearse: bool = False, overwrite: bool = False, output: Output = None
) -> None:
    """Check a run and list what would help; or show what a saved head contains.

    It prints what the network predicts, how well the reference covers the seen classes, new classes
    with similar rankings, and the next steps, the most useful first, each with its command. With
    --rehearse, seen classes are held out to choose settings and to forecast the accuracy.

    Example: rankshot doctor photos.rankshot-run

    Example: rankshot doctor photos.rankshot-run --rehearse -o settings.json

    Parameters
    ----------
    run
        The folder that `rankshot recognise` keeps, or a saved head (.rankshot).
    rehearse
        Hold out seen classes once more. This needs a reference with labels, and rankings of seen
        classes.
    overwrite
        Replace settings that are not of this run, or were changed.
    output
        The settings to write (.json), for `rankshot recognise --settings`.
    """
    from rankshot.recognition.run_report import describe_head, examine_run, rehearse_run

    require_output(output, (".json",), run, overwrite=overwrite, run=run)
    if run.suffix == ".rankshot" and run.is_file():
        for line in describe_head(run):
            say(line)
        return
    if rehearse:
        forecast = rehearse_run(run)
        for line in forecast.describe():
            say(line)
        if output is not None:
            forecast.settings.write(output)
            remember_output(output, run)
            say(f"settings written to {output}")
        return
    if output is not None:
        raise InputError("rehearse", NO_VALUE, "must be given with output")
    lines, steps = examine_run(run)
    for line in lines:
        say(line)
    say("what would help most next")
    for number, (text, words) in enumerate(steps, 1):
        say(f"  {number}. {text}\n     rankshot {shlex.join(map(str, words))}")


def export(
    source: Input,
    /,
    *,
    output: RequiredOutput,
    attach: Path | None = None,
    note: str = "",
    overwrite: bool = False,
) -> None:
    """Write the head of a run as one file: .rankshot, or .onnx.

    A .rankshot file is for `rankshot classify --head` and `load_head`. An .onnx file maps scores to
    probabilities, or is a whole network with new classes (--attach).

    Example: rankshot export photos.rankshot-run -o new-classes.rankshot

    Example: rankshot export photos.rankshot-run --attach network.onnx -o with-new-classes.onnx

    Parameters
    ----------
    source
        The folder that `rankshot recognise` keeps, or a saved head (.rankshot).
    output
        The file to write (.rankshot, .onnx).
    attach
        A network (.onnx, or efficientnet-lite0) whose outputs are the scores: the head becomes part
        of it.
    note
        A note for users of a .rankshot file.
    overwrite
        Replace a file that is not of this run, or was changed.
    """
    from rankshot import zeroshot
    from rankshot.recognition import open_run
    from rankshot.recognition.models import BUILT_IN, BUILT_IN_FILE

    if attach is not None and str(attach) == BUILT_IN and not attach.exists():
        attach = BUILT_IN_FILE
    require_output(output, (".rankshot", ".onnx"), source, attach, overwrite=overwrite, run=source)
    head = zeroshot.load_head(source) if source.is_file() else open_run(source).head
    classes = format_count(len(head.classes_), "class")
    if output.suffix == ".onnx":
        difference = zeroshot.export_onnx(head, output, network=attach)
        remember_output(output, source)
        say(f"{classes} written to {output}; largest difference {difference:.1e}")
        return
    if attach is not None:
        raise InputError("attach", str(attach), "needs an output that ends in .onnx")
    head.save(output, provenance={"note": note} if note else None)
    remember_output(output, source)
    say(f"{classes} written to {output}; next: rankshot classify SCORES --head {output}")
