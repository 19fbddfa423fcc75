"""``rankshot report``: what was predicted, on one page; or why, for some inputs."""

from __future__ import annotations

from pathlib import Path

from rankshot.cli.printing import Output, remember_output, require_output, say
from rankshot.core.errors import NO_VALUE, InputError


def report(
    run: Path,
    /,
    *,
    truth: Path | None = None,
    id: list[str] | None = None,  # noqa: A002
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
    id
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

    if id is not None:
        found = explain_run(open_run(run), id, target=new_class, against=against)
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
