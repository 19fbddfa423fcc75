"""``rankshot review``: a page where people check and correct what was recognised."""

from __future__ import annotations

import os
import secrets
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

from rankshot import core, ranking, zeroshot
from rankshot.cli.console import refuse, require_packages, require_port, say
from rankshot.cli.heads import (
    HeadOptions,
    add_evidence,
    open_table,
    read_examples,
    read_labels,
    read_more,
    read_new_rankings,
    read_rankings_of,
    require_new,
)
from rankshot.cli.recognise import INPUTS, LABELLED, MANIFEST, VERSION, read_run
from rankshot.core.errors import format_count, quote_names
from rankshot.core.files import lock_folder

if TYPE_CHECKING:
    from rankshot.review.learning import Learner
    from rankshot.zeroshot.files.score_tables import ScoreTable

TOKEN = "RANKSHOT_REVIEW_TOKEN"  # noqa: S105 (the name of the variable, not a token)
FOLDER, ENDING, JOURNAL = "review", ".rankshot-review", "review.jsonl"


def review(
    source: Path,
    *,
    options: Annotated[HeadOptions, "rankings settings reference classes examples evidence"],
    inputs: Path | None = None,
    folder: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
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
        The folder that `rankshot recognise` keeps; or a table of scores (.csv, .parquet, .npz),
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
    open_browser
        Open the page in the browser.
    """
    require_packages("cli", "fastapi jinja2 PIL uvicorn")
    from rankshot.review.app import create_app
    from rankshot.review.inputs import ShownInputs
    from rankshot.review.results import Results
    from rankshot.review.session import Journal, Review
    from rankshot.web.server import is_loopback, open_port, serve

    require_port(port)
    token = os.environ.get(TOKEN)
    refuse(
        token is None and not is_loopback(host),
        f"--host {host}: others could reach the page; set {TOKEN} in the environment, for example "
        "to the output of python -c 'import secrets; print(secrets.token_hex())'",
    )
    token = token or secrets.token_urlsafe(32)
    source.stat()  # A missing one is named, not its ending.
    is_run = (source / MANIFEST).is_file()
    refuse(
        source.is_dir() and not is_run and not any(source.glob("*.parquet")),
        f"{source}: is not a folder of `rankshot recognise`, and has no scores",
    )
    found = _read_run(source, options) if is_run else _read_table(source, options)
    place = inputs or found.inputs
    about = () if inputs else (found.takes, found.versions)
    shown = ShownInputs(found.ids, found.learner.scores, place, *about)
    notes = [] if place is None else shown.check(place)
    kept = folder or (source / FOLDER if is_run else source.with_suffix(ENDING))
    kept.mkdir(parents=True, exist_ok=True)
    with (
        lock_folder(kept, "end it, or give another --folder"),
        open_port(host, port) as listening,
        closing(Journal(kept / JOURNAL)) as journal,
        closing(Review(found.learner, found.ids, journal, found.given)) as work,
    ):
        work.notes += notes
        for note in work.notes:
            say(note)
        results = Results(work, shown, kept, found.score_type)
        results.write_all()
        work.start(results.write_all)
        name, own_port = f"[{host}]" if ":" in host else host, listening.getsockname()[1]
        hosts = None
        # Who sets a token may serve the page by a proxy, under any name.
        if is_loopback(host) and TOKEN not in os.environ:
            hosts = {f"{each}:{own_port}" for each in ("127.0.0.1", "localhost", "[::1]", name)}
        title = (place or source).resolve().name
        app = create_app(work, shown, results, token=token, title=title, hosts=hosts)
        address = f"http://{name}:{own_port}/?token="
        labelled = format_count(len(work.labels), "label")
        say(f"{format_count(len(work.ids), 'input')}, {labelled} so far; kept in {kept}")
        # A secret from the environment is not printed.
        say(f"Open {address}{token if TOKEN not in os.environ else f'${TOKEN}'}")
        say("Press Ctrl-C to stop. All labels are saved.")
        if open_browser:
            import webbrowser

            webbrowser.open(address + token)
        serve(app, listening)
        results.write_all()


class Found(NamedTuple):
    """What is reviewed: how the head learns, ids, known labels, and the inputs."""

    learner: Learner
    ids: list[str]
    score_type: str
    given: dict[str, str]
    inputs: Path | None = None
    takes: object = None
    versions: dict[str, str] | None = None


def _read_run(run: Path, options: HeadOptions) -> Found:
    """Read what `rankshot recognise` kept."""
    from rankshot.zeroshot.class_rankings import only_new

    refuse(
        options.files, f"{run}: has all that is needed; leave out --{next(iter(options.files), '')}"
    )
    about = read_run(run)
    head = zeroshot.load_head(about.head)
    table = replace(zeroshot.open_scores(run / "scores"), score_type=about.score_type)
    table = add_evidence(table.keep(), about.evidence)
    new = only_new(read_rankings_of(about.rankings, table, quiet=True))
    reference = None
    if (run / LABELLED).is_dir():
        labelled = zeroshot.open_scores(run / LABELLED)
        reference = replace(labelled, score_type=about.score_type).read()[1]
    place = about.inputs if about.inputs.exists() else None
    if place is None:
        say(f"{about.inputs}: the inputs no longer exist; give their new place with --inputs")
    settings = zeroshot.Settings.from_json(head.inner.about["settings"])
    is_joint = "changed" in head.inner.about.get("batch", {})
    found = _read_scores(table, about.examples, settings, new, reference, is_joint=is_joint)
    versions = None
    if (run / INPUTS).is_file():
        versions = dict(zip(*core.read_table(run / INPUTS, [core.ID, VERSION]).texts, strict=True))
    return found._replace(inputs=place, takes=about.takes, versions=versions)


def _read_table(scores: Path, options: HeadOptions) -> Found:
    """Read a table of scores and its rankings."""
    refuse(
        options.rankings is None, f"{scores}: give --rankings FILE, the rankings of the new classes"
    )
    table = open_table(scores, options)
    new = read_new_rankings(cast("Path", options.rankings), table)
    without = replace(options, examples=None)
    reference, _, table = read_more(without, table, new)
    return _read_scores(table, options.examples, options.settings, new, reference)


def _read_scores(
    table: ScoreTable,
    examples: Path | None,
    settings: zeroshot.Settings,
    rankings: ranking.Rankings,
    reference: zeroshot.Scores | None,
    *,
    is_joint: bool = False,
) -> Found:
    """Read all scores, and the labels that are known."""
    from rankshot.review.learning import Learner

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
    learner = Learner(scores, settings, rankings, reference, is_joint, others)
    return Found(learner, ids, table.score_type, given)
