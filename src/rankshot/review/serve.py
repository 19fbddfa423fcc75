"""A review from its beginning to its end: what is reviewed, and the page while it is served."""

from __future__ import annotations

import os
import secrets
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rankshot.core.errors import InputError, format_count, quote_names
from rankshot.core.files import lock_folder
from rankshot.recognition.run_folder import Run
from rankshot.review.app import create_app
from rankshot.review.inputs import ShownInputs
from rankshot.review.journal import Journal
from rankshot.review.learning import Learner
from rankshot.review.results import Results
from rankshot.review.session import Review
from rankshot.web.guards import is_loopback
from rankshot.web.server import open_port, serve
from rankshot.zeroshot.knowledge import Knowledge

TOKEN = "RANKSHOT_REVIEW_TOKEN"  # noqa: S105 (the name of the variable, not a token)
JOURNAL = "review.jsonl"


@dataclass(frozen=True)
class Reviewed:
    """What is reviewed.

    Attributes
    ----------
    learner : Learner
        How the head learns from labels.
    ids : list of str
        The ids of the inputs.
    score_type : str
        That of the scores, for the saved head.
    inputs : ShownInputs
        What is shown of them.
    labels : dict of id to label
        Labels that are known.
    notes : tuple of str
        Sentences about inputs that are missing.
    """

    learner: Learner
    ids: list[str]
    score_type: str
    inputs: ShownInputs
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def find_reviewed(
    learner: Learner,
    ids: list[str],
    place: Path | None = None,
    labels: Mapping[str, str] | None = None,
    score_type: str = "logits",
    takes: Any = None,
) -> Reviewed:
    """Collect what is reviewed, with the inputs of a folder or a file."""
    inputs = ShownInputs(ids, learner.scores)
    notes: tuple[str, ...] = ()
    if place is not None:
        inputs = ShownInputs.open(ids, learner.scores, place, takes)
        notes = tuple(inputs.check(place))
    return Reviewed(learner, ids, score_type, inputs, labels or {}, notes)


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
    if place is not None or run.inputs is None:
        return find_reviewed(learner, ids, place, run.labelled, takes=run.model.get("takes"))
    values = {name: value for name, (value, _) in run.read_inputs().items()}
    hashes = {name: digest for name, (_, digest) in run.read_inputs().items()}
    there = {name: one for name, one in values.items() if isinstance(one, str) or one.is_file()}
    folders = [one.parent for one in there.values() if isinstance(one, Path)]
    root = Path(os.path.commonpath(folders)) if folders else None
    inputs = ShownInputs(ids, learner.scores, there, root, hashes)
    gone: tuple[str, ...] = ()
    if missing := sorted(values.keys() - there.keys()):
        what = f"{len(missing):,} of {format_count(len(ids), 'input')} are no longer there"
        gone = (f"{what}; their scores are shown: {quote_names(missing)}",)
    return Reviewed(learner, ids, "logits", inputs, run.labelled, notes=gone)


def serve_review(
    reviewed: Reviewed,
    folder: Path,
    *,
    title: str,
    host: str = "127.0.0.1",
    port: int = 0,
    overwrite: bool = False,
    open_browser: bool = False,
    say: Callable[[str], object] = print,
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
        hint = f"set {TOKEN}, for example to that of python -c 'import secrets; "
        hint += "print(secrets.token_hex())'"
        raise InputError("host", host, "can be reached by others without a token", hint=hint)
    inputs = reviewed.inputs
    folder.mkdir(parents=True, exist_ok=True)
    with (
        lock_folder(folder, "end it, or give another --folder"),
        open_port(host, port) as listening,
        closing(Journal(folder / JOURNAL)) as journal,
        closing(Review(reviewed.learner, reviewed.ids, journal, reviewed.labels)) as review,
    ):
        results = Results(review, inputs, folder, reviewed.score_type, overwrite=overwrite)
        review.notes += reviewed.notes
        for note in review.notes:
            say(note)
        results.write_all()
        review.start(results.write_all)
        name, own_port = f"[{host}]" if ":" in host else host, listening.getsockname()[1]
        hosts = None
        # Who sets a token may serve the page by a proxy, under any name.
        if is_loopback(host) and token is None:
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
