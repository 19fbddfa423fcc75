"""Jobs: a map from files to files, in this process, in many processes, or on a cluster.

A task reads one part of the input and writes one Parquet file, beside its target, which is then
renamed. The footer of that file has the *key* of the part: the name, size and time of its input,
and the settings of the job. If a job is interrupted, the same call does the parts that have no
output with the right key.

Recovery, retries and scheduling are those of the executor: any `concurrent.futures.Executor`, such
as ``dask.distributed.Client(...).get_executor()`` for a cluster.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, as_completed
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from joblib import cpu_count
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    OutputError,
    RankshotError,
    prefix_errors,
    quote_names,
)
from rankshot.core.files import (
    hash_file,
    remove_leftovers,
    replace_path,
    require_regular,
)
from rankshot.core.tables import TABLE_ENDINGS, open_parquet
from rankshot.core.validation import require_choice, require_number, require_whole_number
from rankshot.sources.names import read_class_labels
from rankshot.zeroshot.class_rankings import as_rankings
from rankshot.zeroshot.decide import REJECTED, label_or_reject
from rankshot.zeroshot.joint_head import JointHead, load_head
from rankshot.zeroshot.knowledge import Knowledge
from rankshot.zeroshot.linear_head import LinearHead
from rankshot.zeroshot.tables import (
    AUTO,
    LOGITS,
    ONE_VS_ONE,
    PROBABILITIES,
    SCORE_TYPES,
    open_predictions,
    open_scores,
)

__all__ = ["JobRun", "Part", "classify", "list_parts", "map_files"]
ENDING, HEAD = ".parquet", ".rankshot"
ON_ERROR = ("stop", "skip")
KEY, SETTINGS, SUMMARY = "rankshot.input", "rankshot.settings", "rankshot.summary"
"""The keys in the footer of an output part."""
SMALL_BYTES = 2**28
"""One process classifies less than this before others have started: two took three times its CPU
for 270,000 rows of 100 scores."""

Task = Callable[[Any, Path, dict[str, str]], None]
"""Reads the source of a part and writes a Parquet file whose footer has the metadata. The task may
add a JSON object, ``metadata[SUMMARY]``, which the job collects."""


@dataclass(frozen=True)
class Part:
    """A part of the input of a job.

    Attributes
    ----------
    name : str
        The name of its output, without an ending; may have folders, as in ``may/a``.
    source : object
        What the task reads: usually the path of a file.
    version : str
        Changes with the source, such as the size and the time of the file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot.jobs import Part
    >>> Part("may", Path("scores/may.csv"), "1").name
    'may'
    """

    name: str
    source: Any
    version: str


Call = tuple[Part, Path, dict[str, str]]
"""A part, its output, and the metadata of this."""


@dataclass
class JobRun:
    """The state of a job, and its results.

    Attributes
    ----------
    n_parts : int
        The number of parts of the input.
    n_done, n_kept : int
        The number of parts processed in this run, and finished in earlier runs.
    summaries : dict
        What the tasks say of the finished parts, by the names of the parts.
    failed : list of (str, str)
        With ``on_error="skip"``, the parts without output, and the reasons.

    Examples
    --------
    >>> from rankshot.jobs import JobRun
    >>> run = JobRun(n_parts=2, summaries={"may": {"n_rows": 5, "counts": {"cat": 5}}})
    >>> run.n_rows, run.counts
    (5, Counter({'cat': 5}))
    """

    n_parts: int
    n_done: int = 0
    n_kept: int = 0
    summaries: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """The rows of all finished parts."""
        return sum(summary.get("n_rows", 0) for summary in self.summaries.values())

    @property
    def counts(self) -> Counter[str]:
        """The sum of the tasks' counts, such as the inputs per class."""
        every = (Counter(summary.get("counts", {})) for summary in self.summaries.values())
        return sum(every, Counter[str]())

    @property
    def skipped(self) -> list[tuple[str, str, bool]]:
        """What the tasks left out: the id, the reason, and whether it is one of the inputs."""
        every = (self.summaries[name].get("skipped", []) for name in sorted(self.summaries))
        return [tuple(one) for some in every for one in some]


def map_files(
    task: Task,
    parts: Sequence[Part],
    output: str | Path,
    settings: Mapping[str, object],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    on_error: str = "stop",
) -> JobRun:
    """Run a task for each part that is not finished, and write a folder of Parquet files.

    Parameters
    ----------
    task : callable
        Called as ``task(part.source, target, metadata)``. With processes or a cluster, it must be
        picklable: a function of a module, perhaps in `functools.partial`.
    parts : sequence of Part
        The input, such as from `list_parts`.
    output : str or Path
        The folder to write. Files of another job in it are refused.
    settings : mapping
        What the output depends on beside the input, as JSON: with other settings, it is another
        job.
    executor : concurrent.futures.Executor, optional
        Runs the tasks; it is not closed. On a cluster, its machines share the folders.
    workers : int, optional
        Instead of an executor, the number of local processes; one is this process. By default, as
        many as there are cores. A script that starts processes must be guarded by
        ``if __name__ == "__main__"``.
    overwrite : bool
        Start over: replace all output in the folder, also that of another job.
    on_error : {"stop", "skip"}
        What to do if a part fails: raise the error, or continue and collect it in ``failed``.

    Returns
    -------
    JobRun

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from rankshot.jobs import list_parts, map_files
    >>> def count_lines(source, target, metadata):
    ...     n = len(source.read_text().splitlines())
    ...     table = pa.table({"lines": [n]})
    ...     pq.write_table(table.replace_schema_metadata(metadata), target)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("one" + chr(10) + "two")
    ...     parts = list_parts(folder, [".txt"])
    ...     run = map_files(count_lines, parts, folder + "-out", {}, workers=1)
    ...     again = map_files(count_lines, parts, folder + "-out", {}, workers=1)
    >>> run.n_done, again.n_done, again.n_kept
    (1, 0, 1)
    """
    require_choice("on_error", on_error, ON_ERROR)
    if workers is not None:
        require_whole_number("workers", workers)
    text = json.dumps(settings, sort_keys=True)
    run = JobRun(len(parts))
    todo = _find_unfinished(Path(output), parts, text, run, overwrite=overwrite)
    # Without a terminal, there is no progress bar.
    with (
        tqdm(total=len(parts), initial=run.n_kept, unit="part", disable=None) as bar,
        closing(_run_all(partial(_run_part, task), todo, executor, workers)) as outcomes,
    ):
        for part, outcome in outcomes:
            try:
                summary = outcome()
            except BrokenExecutor as error:
                raise RankshotError(
                    f"{output}: a worker process ended without a result ({error}); it may lack "
                    "memory. The same call continues with the parts that are not finished"
                ) from None
            except Exception as error:
                if on_error == "stop" or isinstance(error, OutputError):
                    raise
                is_ours = isinstance(error, RankshotError)
                reason = str(error) if is_ours else f"{type(error).__name__}: {error}"
                run.failed.append((part.name, reason))
            else:
                run.summaries[part.name] = summary
                run.n_done += 1
            bar.update()
    run.failed.sort()
    return run


def write_table(task: Task, source: object, target: Path) -> JobRun:
    """Write one file by a task, which replaces it."""
    metadata: dict[str, str] = {}
    task(source, target, metadata)
    return JobRun(1, 1, summaries={target.stem: json.loads(metadata[SUMMARY])})


def _run_part(task: Task, part: Part, target: Path, metadata: dict[str, str]) -> dict[str, Any]:
    """Write one part; runs in the worker."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with replace_path(target) as temporary:
        task(part.source, temporary, metadata)
    summary: dict[str, Any] = json.loads(metadata.get(SUMMARY, "{}"))
    return summary


def _run_all(
    run_one: Callable[..., Any], calls: Sequence[Call], pool: Executor | None, workers: int | None
) -> Generator[tuple[Part, Callable[[], dict[str, Any]]], None, None]:
    """Yield each part when it is done, with a function that returns or raises the outcome.

    Without an executor, processes are started, which end with the generator; or there are none.
    """
    n = min(workers or cpu_count(), len(calls))
    with ExitStack() as stack:
        if pool is None and n > 1:
            n_threads = max(1, cpu_count() // n)
            pool = ProcessPoolExecutor(n, get_context("spawn"), _start_worker, (n_threads,))
            stack.enter_context(pool)
        if pool is None:
            yield from ((call[0], partial(run_one, *call)) for call in calls)
            return
        futures = {pool.submit(run_one, *call): call[0] for call in calls}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result
        finally:
            for future in futures:
                future.cancel()


def _start_worker(n_threads: int) -> None:
    threadpool_limits(n_threads)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker if the process that started it is killed."""
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(1)


# -------------------------------------------------------------------- the output folder


def _find_unfinished(
    folder: Path, parts: Sequence[Part], settings: str, run: JobRun, *, overwrite: bool
) -> list[Call]:
    """Add the finished parts to the run and return the others; refuse the output of another job.

    Outputs of parts that no longer exist are removed.
    """
    kept, todo = list_outputs(folder), list[Call]()
    foreign = [footer[SETTINGS] for footer in kept.values() if footer[SETTINGS] != settings]
    if foreign and not overwrite:
        before, now = json.loads(foreign[0]), json.loads(settings)
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        rule = f"has the output of another job (other {', '.join(names)})"
        hint = "give another output"
        raise InputError("output", NO_VALUE, rule, str(folder), hint, {"overwrite": True})
    for part in parts:
        target = folder / f"{part.name}{ENDING}"
        metadata = {KEY: f"{part.name} {part.version}", SETTINGS: settings}
        footer = kept.pop(target, {})
        if not overwrite and metadata.items() <= footer.items():
            run.summaries[part.name] = json.loads(footer.get(SUMMARY, "{}"))
            run.n_kept += 1
        else:
            todo.append((part, target, metadata))
    for path in kept:
        path.unlink()
    for subfolder in {folder, *((folder / part.name).parent for part in parts)}:
        if subfolder.is_dir():
            remove_leftovers(subfolder)
    return todo


def list_outputs(folder: Path) -> dict[Path, dict[str, str]]:
    """Return the footers of a job's output, by file; raise for files that no job has written."""
    kept = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_dir() or not _is_visible(path.relative_to(folder)):
            continue
        pairs: dict[bytes, bytes] = {}
        # What is no Parquet file has no footer.
        with suppress(RankshotError), open_parquet(path) as file:
            pairs = file.metadata.metadata or {}
        if SETTINGS.encode() not in pairs:
            hint = "give another output, or remove what is there"
            raise InputError("output", path.name, "was not written by a job", str(folder), hint)
        ours = [pair for pair in pairs.items() if pair[0].startswith(b"rankshot")]
        kept[path] = {key.decode(): value.decode() for key, value in ours}
    return kept


# -------------------------------------------------------------------- the parts


def list_parts(dataset: str | Path, endings: Iterable[str] = TABLE_ENDINGS) -> list[Part]:
    """Return the files of a folder with all its subfolders, or a single file.

    Parameters
    ----------
    dataset : str or Path
        The folder or file.
    endings : iterable of str
        How the names of parts end.

    Returns
    -------
    list of Part
        Sorted by name; names that begin with ``_`` or ``.`` are left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.jobs import list_parts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("may.csv", "june.csv", "_notes.csv"):
    ...         _ = Path(folder, name).write_text("a,b")
    ...     [part.name for part in list_parts(folder)]
    ['june', 'may']
    """
    endings, root = tuple(endings), Path(dataset)
    if not root.exists():
        raise InputError("dataset", NO_VALUE, "does not exist", where=str(dataset))
    found = [Path(place, name) for place, _, names in os.walk(root) for name in names]
    if root.is_file():
        root, found = root.parent, [root]
    found = sorted(path for path in found if _is_visible(path.relative_to(root)))
    paths = [path for path in found if path.name.endswith(endings)]
    if not paths:
        there = f"; there is {quote_names([path.name for path in found], 3)}" if found else ""
        rule = f"has no files that end in {', '.join(endings)}{there}"
        raise InputError("dataset", NO_VALUE, rule, where=str(dataset))
    # Parts but for the case of their ending, or because they are compressed.
    alike = tuple(f"{ending}{more}" for ending in endings for more in ("", ".gz", ".zip", ".zst"))
    others = [path.name for path in found if not path.name.endswith(endings)]
    if missed := [name for name in others if name.lower().endswith(alike)]:
        rule = f"would be left out: parts end in {', '.join(endings)}"
        hint = "rename or unpack it, or move it elsewhere"
        raise InputError("dataset", missed[0], rule, str(dataset), hint)
    parts: dict[str, Part] = {}
    for path in paths:
        part = Part(path.relative_to(root).with_suffix("").as_posix(), path, find_version(path))
        if (other := parts.setdefault(part.name, part)) is not part:
            rule = f"would get the same output file as {other.source}"
            raise InputError("dataset", NO_VALUE, rule, where=str(path))
    return list(parts.values())


def _is_visible(path: Path) -> bool:
    return not any(step.startswith(("_", ".")) for step in path.parts)


def find_version(path: Path) -> str:
    """Return the size and the time of a file."""
    status = path.stat()
    return f"{status.st_size}-{status.st_mtime_ns}"


def require_outside(output: str | Path, dataset: object) -> None:
    """Refuse an output folder inside the dataset, or around it."""
    folder = Path(output).resolve()
    if folder.suffix in TABLE_ENDINGS:
        rule = "must be a folder: give a name without an extension"
        raise InputError("output", NO_VALUE, rule, where=str(output))
    root = Path(dataset).resolve() if isinstance(dataset, (str, Path)) else None
    if root and ((root.is_dir() and folder.is_relative_to(root)) or root.is_relative_to(folder)):
        rule = "is the dataset itself, inside it or around it"
        raise InputError("output", NO_VALUE, rule, where=str(output))


# -------------------------------------------------------------------- classify


def classify(
    scores: str | Path,
    head: str | Path,
    output: str | Path,
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    score_type: str = AUTO,
    reject_below: float | None = None,
    top: int | None = None,
    overwrite: bool = False,
    on_error: str = "stop",
) -> JobRun:
    r"""Classify tables of scores by a head: one table, or many in parts.

    The parts of an interrupted job that are finished are kept when the same call is made again;
    parts that have changed are processed again.

    Parameters
    ----------
    scores : str or Path
        A table (.parquet or .csv); or many: a folder (with its subfolders). In a table without a
        column ``id``, the ids are the numbers of the rows, in many tables ``PART:ROW``.
    head : str or Path
        A fitted head (.rankshot), as written by ``head.save`` or ``rankshot export``; or rankings
        of the seen classes for each new class, from which a head is made.
    output : str or Path
        The predictions to write (.parquet or .csv); for many tables, a folder.
    score_type : str
        What the scores are, such as ``"logits"``. With ``"auto"``, it is the type that the head
        was fitted for; if that is unknown, it is guessed from the first part.
    reject_below : float, optional
        Inputs for which no class reaches this probability are labelled ``rejected``.
    top : int, optional
        Write only this number of most probable classes per input; see `open_predictions`.
    executor, workers, overwrite, on_error
        For many tables, as for `map_files`. By default, a small dataset is classified in this
        process.

    Returns
    -------
    JobRun
        ``counts`` holds the number of rows per class.

    Raises
    ------
    RankshotError
        If the scores, the head or the output is invalid.

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
    >>> run.n_rows, dict(run.counts), ids
    (4, {'cat': 2, 'truck': 2}, array(['may:0', 'may:1'], dtype=object))
    """
    require_choice("score_type", score_type, SCORE_TYPES)
    if reject_below is not None:
        require_number("reject_below", reject_below, least=0, most=1)
    path = Path(head).absolute()
    require_regular(path, "head")
    parts = list_parts(scores)
    items = open_scores(parts[0].source, allow_empty=True).items if path.suffix != HEAD else ()
    key = hash_file(path)
    fitted = _open_head(path, items, key)
    if fitted.inner.evidence:
        rule = "needs evidence of each input, which tables of scores do not have"
        raise InputError("head", NO_VALUE, rule, where=str(head))
    if reject_below is not None and REJECTED in fitted.classes_:
        rule = f"needs a label, but a class is called {REJECTED!r}: rename it"
        raise InputError("reject_below", reject_below, rule)
    own = fitted.inner.about.get("score_type")
    if own is not None and score_type not in {AUTO, own}:
        rule = f"is not that of the head, which was fitted for {own}"
        raise InputError("score_type", score_type, rule, where=str(head))
    is_given, score_type = score_type != AUTO, str(own or score_type)
    settings: dict[str, Any] = {
        "head": key,
        "score_type": _guess_score_type(parts) if score_type == AUTO else score_type,
        "reject_below": reject_below,
        "top": top,
    }
    task = partial(_classify_part, path, items, settings, is_given)
    if Path(scores).is_file():
        return write_table(task, ("", Path(scores)), Path(output))
    require_outside(output, scores)
    is_small = sum(part.source.stat().st_size for part in parts) < SMALL_BYTES
    return map_files(
        task,
        [replace(part, source=(f"{part.name}:", part.source.absolute())) for part in parts],
        output,
        settings,
        executor=executor,
        workers=1 if workers is None and is_small else workers,
        overwrite=overwrite,
        on_error=on_error,
    )


@lru_cache(maxsize=1)
def _open_head(
    path: Path,
    items: tuple[str, ...],
    key: str,  # noqa: ARG001 (a changed file is read again)
) -> LinearHead | JointHead:
    """A head, which a worker process opens once."""
    if path.suffix == HEAD:
        return load_head(path)
    return Knowledge(as_rankings(path, items)).fit()


def _classify_part(
    head: Path,
    items: tuple[str, ...],
    settings: Mapping[str, Any],
    is_given: bool,  # noqa: FBT001 (a job passes it by position)
    source: tuple[str, Path],
    target: Path,
    metadata: dict[str, str],
) -> None:
    """Write the predictions for one table of scores, whose ids get a prefix if they are rows."""
    prefix, path = source
    # A part of a dataset may have no rows.
    table = open_scores(path, score_type=settings["score_type"], allow_empty=bool(prefix))
    found, wanted = table.guess_type(), table.score_type
    is_odd = not is_given and {found, wanted} == {LOGITS, PROBABILITIES}
    if is_odd or found == ONE_VS_ONE != wanted:
        rule = f"is what the scores look like, and {wanted} are expected"
        hint = f"if they are {wanted}, give this score type" if is_odd else ""
        raise InputError("score_type", found, rule, str(path), hint)
    fitted = _open_head(head, items, settings["head"])
    if not {*fitted.inner.seen} <= {*table.items}:
        with prefix_errors(head, path):
            seen = read_class_labels(table.items).match_all(fitted.inner.seen)
            fitted = fitted.rename_seen(seen)
    counts: Counter[str] = Counter()
    with open_predictions(target, fitted.classes_, metadata, top=settings["top"]) as writer:
        for ids, batch in table.batches(features=fitted.inner.n_features > 0):
            rows = range(writer.n_rows, writer.n_rows + len(batch))
            with prefix_errors(head, path):
                log_proba = fitted.log_proba(batch)
            labels = label_or_reject(log_proba, fitted.classes_, settings["reject_below"])
            counts.update(labels.tolist())
            names = (f"{prefix}{row}" for row in rows) if ids is None else ids
            writer.write(names, labels, np.exp(log_proba))
        metadata[SUMMARY] = json.dumps({"n_rows": counts.total(), "counts": counts})


def _guess_score_type(parts: Sequence[Part]) -> str:
    """The type of the scores in the first part that has rows."""
    for part in parts:
        # A bad part is named when its turn comes.
        with suppress(RankshotError):
            if found := open_scores(part.source, allow_empty=True).guess_type():
                return found
    return LOGITS
