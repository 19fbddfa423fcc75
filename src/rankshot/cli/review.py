"""``rankshot review``: a page where people check and correct what was recognised."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from rankshot import core, ranking, zeroshot
from rankshot.cli.console import refuse, require_packages, require_port, say
from rankshot.cli.heads import (
    HeadOptions,
    open_table,
    read_examples,
    read_labels,
    read_more,
    read_new_rankings,
    require_new,
)
from rankshot.core.errors import quote_names

if TYPE_CHECKING:
    from rankshot.review.serve import Reviewed
    from rankshot.zeroshot.files.score_tables import ScoreTable

FOLDER, ENDING = "review", ".rankshot-review"


def review(
    source: Path,
    *,
    options: Annotated[HeadOptions, "rankings settings reference classes examples evidence"],
    inputs: Path | None = None,
    folder: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    overwrite: bool = False,
    open_browser: bool = False,
) -> None:
    """Check and correct predictions on a web page.

    The page shows the inputs by predicted class, those whose labels help most, or a random sample,
    which estimates how many predictions are correct. Labels are saved at once, and the head learns
    from them after each pause. Predictions, labels (for --examples) and the head are kept in the
    folder, and can be downloaded from the page. The page is served until Ctrl-C, to this machine
    only.

    Example: rankshot review photos.rankshot-run

    Example: rankshot review scores.parquet --rankings rankings.jsonl --inputs clips/

    Parameters
    ----------
    source
        The folder that `rankshot recognise` keeps; or a table of scores (.csv, .parquet),
        with --rankings.
    inputs
        The inputs to show or play: a folder of images or sounds, where the id of an input is
        the path of its file below the folder, with or without the extension; or a table with
        columns id and text, or id and path. The default is what `rankshot recognise` read. For
        other inputs, the largest scores are shown.
    folder
        Where labels and results are kept. The default is the subfolder review of the folder of the
        run, or a folder next to the table of scores, such as scores.rankshot-review.
    host
        The address to listen on. With 0.0.0.0, other machines on the network can reach the page:
        then set the environment variable RANKSHOT_REVIEW_TOKEN to a secret of 16 characters or
        more.
    port
        The port to listen on. With 0, a free port is chosen.
    overwrite
        Replace results in the folder that were not written by this command, or were changed since.
    open_browser
        Open the page in the browser.
    """
    require_packages("cli", "fastapi jinja2 PIL uvicorn")
    from rankshot.review.serve import serve_review

    require_port(port)
    source.stat()  # A missing one is named, not its ending.
    from rankshot.recognition.run_folder import MANIFEST

    is_run = (source / MANIFEST).is_file()
    refuse(
        source.is_dir() and not is_run and not any(source.glob("*.parquet")),
        f"{source}: is not a folder of `rankshot recognise`, and has no scores",
    )
    found = _read_run(source, options, inputs) if is_run else _read_table(source, options, inputs)
    kept = folder or (source / FOLDER if is_run else source.with_suffix(ENDING))
    serve_review(
        found,
        kept,
        title=(inputs or source).resolve().name,
        host=host,
        port=port,
        overwrite=overwrite,
        open_browser=open_browser,
        say=say,
    )


def _read_run(folder: Path, options: HeadOptions, inputs: Path | None) -> Reviewed:
    """Read what `rankshot recognise`, or `Recognition.save`, wrote."""
    from rankshot.recognition import open_run
    from rankshot.review.serve import review_run

    given = next(iter(options.files), "")
    refuse(options.files, f"{folder}: has all that is needed; leave out --{given}")
    run = open_run(folder)
    if run.changed:
        say(f"{folder}: changed since the run: {quote_names(run.changed)}")
    return review_run(run, inputs)


def _read_table(scores: Path, options: HeadOptions, inputs: Path | None) -> Reviewed:
    """Read a table of scores and its rankings."""
    refuse(
        options.rankings is None, f"{scores}: give --rankings FILE, the rankings of the new classes"
    )
    table = open_table(scores, options)
    new = read_new_rankings(cast("Path", options.rankings), table)
    without = replace(options, examples=None)
    reference, _, table = read_more(without, table, new)
    return _read_scores(table, options.examples, options.settings, (new, reference, False), inputs)


def _read_scores(
    table: ScoreTable,
    examples: Path | None,
    settings: zeroshot.Settings,
    about: tuple[ranking.Rankings, zeroshot.Scores | None, bool],
    place: Path | None,
    takes: object = None,
) -> Reviewed:
    """Read all scores, and the labels that are known."""
    from rankshot.review.learning import Learner
    from rankshot.review.serve import find_reviewed

    rankings, reference, is_joint = about

    ids, scores = table.read()
    given: dict[str, str] = {}
    others = None
    if examples is not None and core.ID in core.read_columns(examples)[0]:
        labels = read_labels(examples)
        require_new(labels.values(), table.items, rankings.target_names)
        given = {name: label.name for name, label in labels.items()}
        unknown = sorted(given.keys() - {*ids})
        refuse(unknown, f"{examples}: {quote_names(unknown)} not found in {table.path}")
    elif examples is not None:
        others, _ = read_examples(examples, table, "auto", rankings.target_names)
    known = zeroshot.Knowledge(rankings, reference, others, scores)
    learner = Learner(known, replace(settings, batch=is_joint))
    return find_reviewed(learner, ids, place, given, table.score_type, takes)
