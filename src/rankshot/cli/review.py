"""``rankshot review``: a page where people check and correct what was recognised."""

from __future__ import annotations

from pathlib import Path

from rankshot.cli.printing import say
from rankshot.core.errors import InputError, format_count


def review(
    run: Path,
    /,
    *,
    inputs: Path | None = None,
    csv: Path | None = None,
    number: int = 20,
    host: str = "127.0.0.1",
    port: int = 0,
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
        Instead of a page, a table of the inputs whose labels help most, to fill in; rows that it
        has stay. Give it to --examples afterwards.
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
        from rankshot.review.suggestions import suggest_for_run

        require_ending(csv, (".csv",))
        n = suggest_for_run(opened, csv, number)
        say(f"{format_count(n, 'input')} to label in {csv}: fill in the column 'label', and give")
        say(f"  --examples {csv} to rankshot recognise or classify")
        return
    if not 0 <= port < 2**16:
        raise InputError("port", port, f"must be from 0 to {2**16 - 1}")
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
