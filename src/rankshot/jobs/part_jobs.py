"""A job over the parts of a dataset: its output folder, its manifest, and what is done with a part.

The output is a folder with one Parquet part for each part of the input. Its manifest,
``_rankshot.json``, describes the job (head, model, settings) and lists the parts of the input with
their versions. A second start reads it: the same job goes on, another one is refused. An output
part is complete or not there, and its footer names the job that wrote it and the version of its
input: so only what is missing is done, and a part that is done twice has the same bytes.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any, ClassVar, Protocol

from rankshot.core.errors import OutputError, RankshotError, quote_names
from rankshot.core.files import DISK_ERRORS
from rankshot.core.tables import open_csv_writer
from rankshot.inference.inputs import Skipped
from rankshot.inference.model import fingerprint
from rankshot.jobs.storage import (
    Part,
    fetch_part,
    follow_links,
    has_pattern,
    is_visible,
    join_address,
    list_files,
    new_part,
    read_bytes,
    read_footer,
    remove_files,
    require_unchanged,
    write_text,
)

MANIFEST, FAILED, SKIPPED = "_rankshot.json", "_failed.csv", "_skipped.csv"
"""What is in an output folder beside the parts."""
FORMAT, VERSION = "rankshot parts", 4
PART_ENDING = ".parquet"
JOB_KEY, INPUT_KEY, WORK_KEY = "rankshot.job", "rankshot.input", "rankshot.work"
"""The keys in the footer of an output part."""
N_TRIALS = 3
"""How often a part is tried if its storage fails."""


class JobError(RankshotError):
    """What concerns all parts, such as a model or a folder that a worker cannot read."""


def output_name(name: str) -> str:
    """Return the name of the output part of an input part."""
    return str(PurePosixPath(name).with_suffix(PART_ENDING))


# -------------------------------------------------------------------- what is done with a part


@dataclass(frozen=True)
class Work:
    """What became of a part.

    Attributes
    ----------
    n_rows : int
        The rows of the output part.
    counts : mapping of str to int
        Sums that the job keeps of them, such as the rows of each class.
    skipped : sequence of Skipped
        What is in the input, and not in the output.
    was_finished : bool
        Whether an earlier run has done it.
    problem : str
        Why there is no output.
    ends_job : bool
        Whether all other parts have this problem as well.
    killed : bool
        Whether workers died with this part, or with others that they had.
    """

    n_rows: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    skipped: Sequence[Skipped] = ()
    was_finished: bool = False
    problem: str = ""
    ends_job: bool = False
    killed: bool = False


class PartJob(Protocol):
    """What is done with each part; it is sent to the workers."""

    use_gpu: ClassVar[bool] = False
    """Whether only workers that declare a GPU are used, if there are any."""

    @property
    def description(self) -> Mapping[str, object]:
        """What the result depends on (head, settings), by names that a user knows; for JSON."""

    def load(self, content: bytes) -> object:
        """Return what all parts need (a head, a model); called once in each worker process."""

    def run(
        self, loaded: Any, part: Part, source: Any, target: Path, metadata: dict[str, str]
    ) -> Work:
        """Read ``source``, the content of the part, and write the Parquet file ``target``.

        The same input must give the same bytes. The target must have the metadata in its footer,
        and in addition what `format_work` returns.
        """

    def accept(self, work: Work) -> None:  # noqa: ARG002
        """Take note of a part that an earlier run has finished."""
        return


def format_work(counts: Mapping[str, int], skipped: Sequence[Skipped] = ()) -> dict[str, str]:
    """Return metadata for a footer, from which a second start reads what was done."""
    return {WORK_KEY: json.dumps([counts, skipped], sort_keys=True)}


def read_finished(target: str, metadata: Mapping[str, str]) -> Work | None:
    """Return what an output part holds, if this job wrote it completely from the same input."""
    n_rows, footer = read_footer(target) or (0, {})
    if not metadata.items() <= footer.items():
        return None
    counts, skipped = json.loads(footer[WORK_KEY])
    return Work(n_rows, counts, [Skipped(*one) for one in skipped], was_finished=True)


_loaded: dict[str, object] = {}
"""What the last job needs in this process, by the fingerprint of the job."""
_lock = Lock()


def keep_loaded(key: str, load: Callable[[], object], *, again: bool = False) -> object:
    """Return what a job needs, which this process keeps until another job comes."""
    with _lock:
        if again or key not in _loaded:
            _loaded.clear()
            try:
                _loaded[key] = load()
            except RankshotError as error:
                raise JobError(f"a worker cannot begin: {error}") from None
        return _loaded[key]


def do_part(part: Part, *, job: PartJob, key: str, content: bytes, output: str) -> Work:
    """Do one part, unless it is finished.

    It is tried again after an error of its storage; what is wrong then, as any other error, is part
    of the result.
    """
    target = join_address(output, output_name(part.name))
    metadata = {JOB_KEY: key, INPUT_KEY: _describe_input(part)}
    for _ in range(N_TRIALS):
        try:
            # A worker that came later may see another disk.
            require_own(output, key)
            if (finished := read_finished(target, metadata)) is not None:
                job.accept(finished)
                return finished
            loaded = keep_loaded(key, lambda: job.load(content))
            with fetch_part(part) as source, new_part(target) as path:
                work = job.run(loaded, part, source, path, dict(metadata))
                require_unchanged(part)
                # A task of a job that was stopped may still be running.
                require_own(output, key)
        except Exception as error:  # noqa: BLE001 (one part must not end the others)
            failed = judge_error(error, part)
            if failed.ends_job or not isinstance(error, OSError):
                break
        else:
            return work
    return failed


def judge_error(error: BaseException, part: Part | None = None) -> Work:
    """Return why a part has no output, and whether the others have the same problem."""
    if isinstance(error, RankshotError):
        return Work(problem=str(error), ends_job=isinstance(error, (OutputError, JobError)))
    if isinstance(error, ImportError):
        return Work(problem=f"a worker has no {error.name}: {error}", ends_job=True)
    if part is not None and isinstance(error, OSError) and error.errno in DISK_ERRORS:
        return Work(problem=f"{part.address}: {error}", ends_job=True)
    return Work(problem=f"{type(error).__name__}: {error}")


def _describe_input(part: Part) -> str:
    return f"{part.name} {part.version}"


# -------------------------------------------------------------------- what was done


@dataclass
class PartsRun:
    """The progress and the results of a job.

    Attributes
    ----------
    n_parts : int
        The number of parts of the dataset.
    n_done, n_resumed : int
        The number of parts processed in this run, and in earlier runs.
    n_rows, n_new_rows : int
        The number of rows in all output parts, and in those processed in this run.
    counts : Counter of str
        Counts that the job keeps, summed over all output parts.
    skipped : list of Skipped
        Inputs without scores, each with the reason.
    elapsed : float
        The time since the job began, in seconds.
    failed : list of (str, str)
        The parts without an output, each with the reason.

    Examples
    --------
    >>> from rankshot.jobs import PartsRun
    >>> run = PartsRun(n_parts=3, n_done=2, n_rows=2000, failed=[("may.csv", "no such column")])
    >>> run.n_finished, run.failed
    (2, [('may.csv', 'no such column')])
    """

    n_parts: int
    n_done: int = 0
    n_resumed: int = 0
    n_rows: int = 0
    n_new_rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    skipped: list[Skipped] = field(default_factory=list)
    elapsed: float = 0.0
    failed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def n_finished(self) -> int:
        """The number of parts that have an output."""
        return self.n_done + self.n_resumed

    def count_reasons(self, *, is_input: bool = True) -> Counter[str]:
        """Return how often each reason occurs among skipped inputs (``is_input``) or the rest."""
        # Some reasons name sizes and the like, and would all be different.
        return Counter(
            one.reason.partition(" (")[0] for one in self.skipped if one.is_input == is_input
        )

    def add(self, name: str, work: Work) -> None:
        """Add the part ``name`` and what became of it, ``work``."""
        if work.problem:
            self.failed.append((name, work.problem))
            return
        self.n_rows += work.n_rows
        self.counts.update(work.counts)
        self.n_resumed += work.was_finished
        self.n_done += not work.was_finished
        self.n_new_rows += 0 if work.was_finished else work.n_rows


# -------------------------------------------------------------------- the output folder


def check_output(
    output: str, job: PartJob, parts: Sequence[Part], *, again: bool = False, update: bool = False
) -> set[str]:
    """Return the output parts to remove before a job begins; refuse the output of another job.

    ``again`` removes all output parts, also those of another job; ``update`` removes those of
    parts that changed or vanished.
    """
    first: dict[str, Part] = {}
    for part in parts:
        if (other := first.setdefault(output_name(part.name), part)) is not part:
            raise RankshotError(
                f"{part.address}: would get the same output file as {other.address}, "
                f"{output_name(part.name)!r}; rename one of them"
            )
    present = list_files(output)
    kept = read_manifest(output)
    own = set() if kept is None else set(map(output_name, kept[1]))
    if foreign := sorted({name for name in present if is_visible(name)} - own):
        why = "the job there has no such part" if kept else "it does not belong to a rankshot job"
        raise RankshotError(
            f"{output}: is not empty ({quote_names(foreign, 3)}), and {why}; give another output, "
            "or remove what is there"
        )
    if kept is None:
        return set()
    stale = own & set(present)
    if not again:
        _require_same_job(output, kept[0], job.description)
        versions = {part.name: part.version for part in parts}
        # A part without an output, such as one that failed, may well have changed.
        stale &= {output_name(name) for name, old in kept[1].items() if versions.get(name) != old}
    if stale and not (again or update):
        now = {output_name(part.name) for part in parts}
        told = [
            f"{quote_names(sorted(some), 3)} {what}"
            for some, what in ((stale & now, "changed"), (stale - now, "vanished"))
            if some
        ]
        raise RankshotError(
            f"{output}: since they were done, {' and '.join(told)}; update=True processes "
            "changed parts again, and removes the output of parts that no longer exist"
        )
    return stale


def open_output(
    output: str, description: Mapping[str, object], parts: Sequence[Part], stale: set[str]
) -> None:
    """Remove stale output parts, as `check_output` found them, and write the manifest of a job."""
    remove_files(output, sorted(stale))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": fingerprint(description),
        "job": dict(description),
        "parts": {part.name: part.version for part in parts},
    }
    write_text(join_address(output, MANIFEST), json.dumps(manifest, indent=0))


def require_output(output: str, dataset: str, parts: Sequence[Part] = ()) -> None:
    """Refuse the name of a file, and an output in the dataset, where it would become a part."""
    if output.endswith((".csv", ".npz", PART_ENDING)):
        raise RankshotError(
            f"{output}: the output is a folder of many parts; give a name without an ending"
        )
    # Another name of a folder, by a link or by two points, is the same folder.
    root = parts[0].address.removesuffix(parts[0].name).rstrip("/") if parts else dataset
    root, folder = f"{follow_links(root)}/", f"{follow_links(output)}/"
    is_folder = not has_pattern(dataset) and not (parts and parts[0].address == dataset)
    inside = [part.name for part in parts if f"{root}{part.name}".startswith(folder)]
    if inside or folder == root or (is_folder and folder.startswith(root)):
        raise RankshotError(
            f"{output}: is the dataset itself, or inside it ({[*inside, root][0]}); give another "
            "output"
        )


def read_manifest(output: str) -> tuple[dict[str, object], dict[str, str]] | None:
    """Return the description of the job of a folder, and the versions of its parts by name."""
    address = join_address(output, MANIFEST)
    content = read_bytes(address)
    if content is None:
        return None
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        manifest = json.loads(content)
        if manifest["format"] == FORMAT and manifest["version"] == VERSION:
            return dict(manifest["job"]), dict(manifest["parts"])
    raise RankshotError(
        f"{address}: damaged, or written by another version of rankshot; give another output"
    )


def _require_same_job(output: str, before: Mapping[str, object], now: Mapping[str, object]) -> None:
    told = []
    for name in {**before, **now}:
        was, value = before.get(name), now.get(name)
        is_hash = any(isinstance(one, str) and len(one) >= 64 for one in (was, value))
        if was != value:
            told.append(f"another {name}" if is_hash else f"{name} was {was}, is {value}")
    if told:
        raise RankshotError(
            f"{output}: belongs to another job ({'; '.join(told)}); give another output, or remove "
            "this one"
        )


def require_own(output: str, key: str) -> None:
    """Refuse to write if the output folder belongs to another job than that of a fingerprint.

    Workers ask this before each part. The fingerprint is near the beginning, so that a list of
    many parts is not read.
    """
    begin = read_bytes(join_address(output, MANIFEST), n=400)
    if begin is None:
        raise OutputError(
            f"{output}: a worker does not see {MANIFEST} there; give folders that all machines "
            "share, or an address such as s3://"
        )
    if key.encode() not in begin:
        raise OutputError(
            f"{output}: another job has started there since, so the folder may contain parts of "
            "both: remove the folder and start again"
        )


def write_list(
    folder: str, name: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Write a list beside the parts; remove an older one if there are no rows."""
    if not rows:
        remove_files(folder, [name])
        return
    text = io.StringIO()
    open_csv_writer(text).writerows([header, *rows])
    write_text(join_address(folder, name), text.getvalue())


def write_skipped(folder: str, name: str, skipped: Sequence[Skipped]) -> None:
    """List what was skipped, and why."""
    rows = [(one.id, one.reason, "yes" if one.is_input else "no") for one in skipped]
    write_list(folder, name, ["id", "reason", "input"], rows)
