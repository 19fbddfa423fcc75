"""A review from its beginning to its end: what is reviewed, and the page while it is served."""

from __future__ import annotations

import os
import secrets
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rankshot.core.errors import InputError, format_count, quote_names
from rankshot.core.files import lock_folder
from rankshot.recognition.run_folder import Run
from rankshot.review.app import create_app
from rankshot.review.inputs import ShownInputs, find_inputs
from rankshot.review.learning import Learner
from rankshot.review.results import Results
from rankshot.review.session import Journal, Review
from rankshot.web.guards import is_loopback
from rankshot.web.server import open_port, serve
from rankshot.zeroshot.knowledge import Knowledge

TOKEN = "RANKSHOT_REVIEW_TOKEN"  # noqa: S105 (the name of the variable, not a token)
JOURNAL = "review.jsonl"


class Reviewed(NamedTuple):
    """What is reviewed: how the head learns, the inputs, labels by id, and remarks."""

    learner: Learner
    inputs: ShownInputs
    labels: Mapping[str, str]
    notes: tuple[str, ...]


def review_run(run: Run, place: Path | None = None) -> Reviewed:
    """Collect what a run folder has: it is reviewed as it was recognised.

    Parameters
    ----------
    run : Run
    place : Path, optional
        Where the inputs are now, if they have been moved without the run.
    """
    is_joint = "changed" in run.head.inner.about.get("batch", {})
    known = run.knowledge
    if run.labelled:
        # Examples that are inputs can be corrected on the page.
        known = Knowledge(known.rankings, known.reference, batch=known.batch)
    learner = Learner(known, replace(run.settings, batch=is_joint))
    ids = [str(name) for name in run.ids]
    takes = run.model.get("takes")
    values = run.read_inputs() if place is None else find_inputs(ids, place, takes)
    inputs = ShownInputs(ids, learner.scores, values)
    notes: tuple[str, ...] = ()
    if (missing := inputs.missing) and (place is not None or run.inputs is not None):
        what = f"{len(missing):,} of {format_count(len(ids), 'input')} not found"
        notes = (f"{what}; their scores are shown: {quote_names(missing)}",)
    if place is not None and len(missing) == len(ids):
        hint = f"ids must be paths below this folder, or ids of this file: {quote_names(missing)}"
        raise InputError("inputs", str(place), "has none of the inputs", hint=hint)
    return Reviewed(learner, inputs, run.labelled, notes)


def serve_review(
    reviewed: Reviewed,
    folder: Path,
    *,
    title: str,
    host: str,
    port: int,
    overwrite: bool,
    open_browser: bool,
    say: Callable[[str], object],
) -> None:
    """Serve the page of a review until it is interrupted.

    Parameters
    ----------
    reviewed : Reviewed
    folder : Path
        Where decisions and results are kept.
    title : str
        The heading of the page.
    host, port
        The address to listen on; with port 0, a free one is chosen.
    overwrite : bool
        Whether results in the folder that a person has written or changed are replaced.
    open_browser : bool
        Open the page in the browser.
    say : callable
        Gets lines of text for the person who started this.
    """
    token = os.environ.get(TOKEN)
    if token is None and not is_loopback(host):
        hint = f"set the environment variable {TOKEN} to a long secret"
        raise InputError("host", host, "can be reached by others without a token", hint=hint)
    learner, inputs, labels, notes = reviewed
    folder.mkdir(parents=True, exist_ok=True)
    with (
        lock_folder(folder, "end it, or give another --folder"),
        open_port(host, port) as listening,
        closing(Journal(folder / JOURNAL)) as journal,
        closing(Review(learner, inputs.ids, journal, labels)) as review,
    ):
        results = Results(review, folder, overwrite=overwrite)
        review.notes += notes
        for note in review.notes:
            say(note)
        results.write_all()
        review.start(results.write_all)
        name, own_port = f"[{host}]" if ":" in host else host, listening.getsockname()[1]
        hosts = None
        # Who sets a token may serve the page by a proxy, under any name.
        if token is None:
            hosts = {f"{each}:{own_port}" for each in ("127.0.0.1", "localhost", "[::1]", name)}
        secret = token or secrets.token_urlsafe(32)
        app = create_app(review, inputs, results, token=secret, title=title, hosts=hosts)
        address = f"http://{name}:{own_port}/?token="
        labelled = format_count(len(review.labels), "label")
        say(f"{format_count(len(review.ids), 'input')}, {labelled} so far; kept in {folder}")
        # A secret from the environment is not printed.
        say(f"Open {address}{secret if token is None else f'${TOKEN}'}")
        say("Press Ctrl-C to stop. All labels are saved.")
        if open_browser:
            webbrowser.open(address + secret)
        serve(app, listening)
        results.write_all()
