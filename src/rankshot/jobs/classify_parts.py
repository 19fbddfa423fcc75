"""`classify`: a head over a dataset of scores in many parts, on processes or a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, format_count
from rankshot.core.validation import require_choice, require_number, require_whole_number
from rankshot.jobs.executors import WORKER_SECONDS, Notify, Progress, Rules, Workers, run_parts
from rankshot.jobs.part_jobs import PartJob, PartsRun, Work, format_work, require_output
from rankshot.jobs.storage import Part, as_address, fetch_part, list_parts
from rankshot.recognition.scoring import ON_ERROR
from rankshot.zeroshot.decide import REJECTED, Predictor
from rankshot.zeroshot.files.predictions import classify_to_file
from rankshot.zeroshot.files.score_tables import (
    AUTO,
    LOGITS,
    PROBABILITIES,
    SCORE_TYPES,
    guess_score_type,
    name_by_columns,
    open_scores,
    require_score_type,
)
from rankshot.zeroshot.knowledge import load_head

MAX_BAD_PARTS = 5
"""If this many parts cannot be read before one that can, the job does not begin."""


def classify(
    dataset: str | Path,
    head: str | Path,
    output: str | Path,
    *,
    executor: object = None,
    scheduler: str | None = None,
    workers: int | None = None,
    wait_for_workers: float = WORKER_SECONDS,
    score_type: str = AUTO,
    reject_below: float | None = None,
    top: int | None = None,
    again: bool = False,
    update: bool = False,
    verify: bool = False,
    on_error: str = "skip",
    progress: Progress | None = None,
    notify: Notify = lambda _: None,
) -> PartsRun:
    r"""Classify a dataset of scores: one part of predictions for each part of scores.

    The parts are processed in this process, in other processes, or on a Dask cluster. Each output
    part is written completely or not at all. If the job is interrupted, the same call resumes with
    the unfinished parts. Parts that cannot be classified are listed in ``_failed.csv`` in the
    output; the job continues with the others.

    Parameters
    ----------
    dataset : str or Path
        A folder (with its subfolders), a pattern such as ``scores/*.parquet``, or an fsspec address
        such as ``s3://bucket/scores``. Its parts are tables of scores, .parquet or .csv. In a table
        without a column ``id``, the ids are ``PART:ROW``.
    head : str or Path
        A fitted head, as written by ``head.save`` or ``rankshot fit``.
    output : str or Path
        A folder, or its address. ``_rankshot.json`` in this folder describes the job; if it
        belongs to a different job, an error is raised.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Processes the parts; it is not closed. By default, parts are processed in this process.
    scheduler : str, optional
        Instead of an executor, the address of a Dask scheduler.
    workers : int, optional
        Instead of both, the number of local processes, which Dask starts. A script that starts
        processes must be guarded by ``if __name__ == "__main__"``.
    wait_for_workers : float
        How many seconds to wait if a scheduler has no workers. Workers stop with their scheduler:
        if you restart it, restart them as well.
    score_type : str
        What the scores are, such as ``"logits"``. With ``"auto"``, it is the type that the head
        was fitted for; if that is unknown, it is guessed from the first part.
    reject_below : float, optional
        Inputs for which no class reaches this probability are labelled ``rejected``.
    top : int, optional
        Write only this number of most probable classes per input; see `open_predictions`.
    again : bool
        Remove all existing predictions, including those of another job, and start over.
    update : bool
        Process changed parts again, and remove the predictions of parts that no longer exist.
    verify : bool
        Read all inputs and outputs of finished parts again, and reprocess those whose contents do
        not match their checksums. By default, only files with a different size or modification time
        are read.
    on_error : {"skip", "stop"}
        What to do if a part cannot be classified: list it and process the others, or raise an
        error.
    progress : callable, optional
        Called with the `PartsRun` after each part.
    notify : callable, optional
        Called with messages for the user, for example if the connection to the scheduler is lost.

    Returns
    -------
    PartsRun
        ``counts`` holds the number of rows per class, and ``failed`` the parts without
        predictions.

    Raises
    ------
    RankshotError
        If the dataset, the head or the output is invalid.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> from rankshot.jobs import classify
    >>> from rankshot.zeroshot import read_predictions
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "bus"], ["bus", "leopard"]], targets=["cat", "truck"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scores = Path(folder, "scores")
    ...     scores.mkdir()
    ...     for month in ("may", "june"):
    ...         _ = (scores / f"{month}.csv").write_text("leopard,bus\n2.5,-1\n0,1.5\n")
    ...     rs.WeightedMean().fit(rankings).save(folder + "/new.rankshot")
    ...     run = classify(scores, folder + "/new.rankshot", folder + "/out")
    ...     ids = read_predictions(folder + "/out/may.parquet").ids
    >>> run.n_rows, dict(run.counts), run.failed, ids
    (4, {'cat': 2, 'truck': 2}, [], array(['may:0', 'may:1'], dtype=object))
    """
    require_choice("score_type", score_type, SCORE_TYPES)
    require_choice("on_error", on_error, ON_ERROR)
    if reject_below is not None:
        require_number("reject_below", reject_below, least=0, most=1)
    if top is not None:
        require_whole_number("top", top)
    content = Path(head).read_bytes()
    source, target = as_address(dataset), as_address(output)
    parts = list_parts(source)
    require_output(target, source, parts)
    model = load_head(head)
    if model.evidence_classes_:
        raise RankshotError(
            f"{head}: needs evidence of each input, which a dataset of many parts does not have; "
            "classify one table"
        )
    if reject_below is not None and REJECTED in model.classes_:
        raise RankshotError(f"reject_below: a class is called {REJECTED!r}; rename it")
    job = _ClassifyJob(
        head=sha256(content).hexdigest(),
        head_name=str(head),
        score_type=_find_score_type(parts, model, str(head), score_type),
        is_given=score_type != AUTO,
        reject_below=reject_below,
        top=top,
    )
    n_parts = format_count(len(parts), "part")
    notify(f"{source}: {n_parts}; the scores are interpreted as {job.score_type}")
    where = Workers(executor, scheduler, workers, wait_for_workers)
    rules = Rules(again, update, verify, on_error, progress, notify)
    return run_parts(job, content, parts, target, where, rules)


@dataclass(frozen=True)
class _ClassifyJob(PartJob):
    """What the workers do with a part of scores."""

    head: str
    head_name: str
    score_type: str
    is_given: bool
    reject_below: float | None
    top: int | None

    @property
    def description(self) -> Mapping[str, object]:
        return {
            "command": "classify",
            "head": self.head,
            "score type": self.score_type,
            "reject below": self.reject_below,
            "top": self.top,
        }

    def load(self, content: bytes) -> Predictor:
        with TemporaryDirectory(prefix="rankshot-") as folder:
            path = Path(folder, "copy.rankshot")
            path.write_bytes(content)
            return load_head(path)

    def run(
        self, loaded: Predictor, part: Part, source: Any, target: Path, metadata: dict[str, str]
    ) -> Work:
        table = replace(open_scores(source, allow_empty=True), score_type=self.score_type)
        head, _ = name_by_columns(loaded, table, self.head_name)

        def check_first(values: NDArray[np.floating]) -> None:
            """Refuse a part whose first scores do not look like those of the first part."""
            found = guess_score_type(values, table)
            if not self.is_given and {found, self.score_type} == {LOGITS, PROBABILITIES}:
                raise RankshotError(
                    f"{table.path}: the scores look like {found}, and those of the dataset are "
                    f"interpreted as {self.score_type}; if all are {self.score_type}, pass it "
                    "(score_type)"
                )

        counts = classify_to_file(
            table,
            head,
            target,
            self.reject_below,
            self.top,
            id_prefix=f"{part.stem}:",
            check_first=check_first,
            describe=lambda counts: {**metadata, **format_work(counts)},
        )
        return Work(counts.total(), counts)


def _find_score_type(parts: Sequence[Part], head: Predictor, origin: str, given: str) -> str:
    """Return the type of the scores: from the first part with rows, which must also fit the head.

    Bad parts are passed over, since the job names them; but not many, since a wrong head or
    dataset should be told at once.
    """
    fitted = head.inner.about.get("score_type")
    problems: list[RankshotError] = []
    for part in parts:
        try:
            with fetch_part(part) as source:
                table = open_scores(source, allow_empty=True)
                name_by_columns(head, table, origin)
                first = next(table.batches(), None)
                if first is None:
                    continue
                values = first[1].values
                if fitted is not None:
                    require_score_type(values, table, given, fitted, origin)
                    return str(fitted)
                return guess_score_type(values, table) if given == AUTO else given
        except RankshotError as error:
            problems.append(error)
            if len(problems) == MAX_BAD_PARTS:
                break
    if problems:
        raise problems[0]
    return str(fitted or (LOGITS if given == AUTO else given))
