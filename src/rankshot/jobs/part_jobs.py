"""A job over the parts of a dataset: its output folder, its manifest, and what is done with a part.

The output is a folder with one Parquet part for each part of the input. Its manifest,
``_rankshot.json``, describes the job (head, model, settings) and lists the parts of the input with
their versions. A second start reads it: the same job goes on, another one is refused. An output
part is complete or not there, and says in its footer which job wrote it from which version of its
input: so only what is missing is done, and a part that is done twice has the same bytes.
"""

from __future__ import annotations

import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from socket import gethostname
from threading import Lock
from typing import Any, ClassVar, Protocol

from rankshot.core.errors import OutputError, RankshotError, quote_names
from rankshot.core.files import DISK_ERRORS, has_pattern
from rankshot.core.tables import open_csv_writer
from rankshot.jobs.storage import (
    Part,
    Record,
    compute_checksum,
    fetch_part,
    find_version,
    follow_links,
    is_visible,
    join_address,
    list_files,
    new_part,
    read_bytes,
    read_footer,
    read_id_hashes,
    remove_files,
    require_unchanged,
    write_text,
)
from rankshot.recognition.inputs import Skipped
from rankshot.recognition.model import fingerprint

MANIFEST, RECORDS = "_rankshot.json", "_checksums.json"
FAILED, SKIPPED = "_failed.csv", "_skipped.csv"
RUNNING, PROCESSES = "_running.json", Path("/proc")
"""What is in an output folder beside the parts."""
FORMAT, VERSION = "rankshot parts", 3
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
    record : Record, optional
        What the job keeps about the part.
    id_hashes : bytes
        The numbers of its ids, from `read_id_hashes`.
    """

    n_rows: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    skipped: Sequence[Skipped] = ()
    was_finished: bool = False
    problem: str = ""
    ends_job: bool = False
    killed: bool = False
    record: Record | None = None
    id_hashes: bytes = b""


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

    def compute_checksum(self, source: Any) -> str:
        """Return a checksum of ``source``, the content of a part."""
        return compute_checksum(source)

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
                raise JobError(f"a worker cannot start: {error}") from None
        return _loaded[key]


def do_part(
    part: Part, *, job: PartJob, key: str, content: bytes, output: str, verify: bool = False
) -> Work:
    """Do one part, unless it is finished; ``verify`` trusts no time of change.

    It is tried again after an error of its storage; what is wrong then, as any other error, is part
    of the result.
    """
    target = join_address(output, output_name(part.name))
    for _ in range(N_TRIALS):
        try:
            # A worker that came later may see another disk.
            require_own(output, key)
            if (finished := _find_finished(part, job, key, target, verify=verify)) is not None:
                job.accept(finished)
                return finished
            loaded = keep_loaded(key, lambda: job.load(content))
            with fetch_part(part) as source, new_part(target) as path:
                metadata = {JOB_KEY: key, INPUT_KEY: job.compute_checksum(source)}
                work = job.run(loaded, part, source, path, dict(metadata))
                require_unchanged(part)
                # A task of a job that was stopped may still be running.
                require_own(output, key)
                checksum, id_hashes = compute_checksum(path), read_id_hashes(str(path))
            record = Record(part.version, metadata[INPUT_KEY], find_version(target), checksum)
            return replace(work, record=record, id_hashes=id_hashes)
        except Exception as error:  # noqa: BLE001 (one part must not end the others)
            failed = judge_error(error, part)
            if failed.ends_job or not isinstance(error, OSError):
                break
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


def read_checksum(part: Part, job: PartJob) -> str:
    """Return the checksum of a part, which is fetched for it."""
    with fetch_part(part) as source:
        return job.compute_checksum(source)


def _find_finished(part: Part, job: PartJob, key: str, target: str, *, verify: bool) -> Work | None:
    """Return what an earlier run has done with a part, if input and output are as they were.

    Contents are read only if a version is not the one that the job keeps. A client that was killed
    has kept nothing about the last parts: then the output has the checksums of its pages.
    """
    version, record = find_version(target), part.record
    if not version:
        return None
    if verify or record is None or (part.version, version) != (record[0], record[2]):
        checksums = read_checksum(part, job), compute_checksum(target)
        found = Record(part.version, checksums[0], version, checksums[1])
        if record is None and read_footer(target, read_pages=True) is None:
            return None
        if record is not None and found[1::2] != record[1::2]:
            return None
        record = found
    metadata = {JOB_KEY: key, INPUT_KEY: record.input_checksum}
    # A damaged page of ids, whatever the time of change says, is found here.
    with suppress(RankshotError):
        if (finished := read_finished(target, metadata)) is not None:
            return replace(finished, record=record, id_hashes=read_id_hashes(target))
    return None


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
        The parts that have no output, and the reasons.
    n_repeated_ids : int
        The number of rows whose id occurs in an earlier row. With more than 67 million rows, it is
        estimated from a part of the ids.

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
    n_repeated_ids: int = 0

    @property
    def n_finished(self) -> int:
        """The number of parts that have an output."""
        return self.n_done + self.n_resumed

    def count_reasons(self, *, is_input: bool = True) -> Counter[str]:
        """Count the reasons why inputs (``is_input``), or other files, were skipped."""
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
        stale -= {
            name
            for part in parts
            if (name := output_name(part.name)) in stale
            and _has_same_content(part, job, join_address(output, name))
        }
    if stale and not (again or update):
        now = {output_name(part.name) for part in parts}
        told = [
            f"{quote_names(sorted(some), 3)} {what}"
            for some, what in ((stale & now, "changed"), (stale - now, "vanished"))
            if some
        ]
        raise RankshotError(
            f"{output}: since the last run, {' and '.join(told)}; update=True processes "
            "changed parts again, and removes the output of parts that no longer exist"
        )
    return stale


def _has_same_content(part: Part, job: PartJob, target: str) -> bool:
    """Return whether only the time of a part has changed since its output was written."""
    with suppress(RankshotError, OSError):
        return read_finished(target, {INPUT_KEY: read_checksum(part, job)}) is not None
    return False


@contextmanager
def open_output(
    output: str,
    description: Mapping[str, object],
    parts: Sequence[Part],
    stale: set[str],
    notify: Callable[[str], None],
) -> Iterator[None]:
    """Remove stale output parts, as `check_output` found them, and write the manifest of a job.

    A note in the output names this process until the block ends. If there is one of another
    process, this is said: two clients that do the same job do no harm, but all work twice.
    """
    remove_files(output, sorted(stale))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": fingerprint(description),
        "job": dict(description),
        "parts": {part.name: part.version for part in parts},
    }
    write_text(join_address(output, MANIFEST), json.dumps(manifest, indent=0))
    address, own = join_address(output, RUNNING), [gethostname(), os.getpid()]
    with suppress(ValueError, TypeError):
        host, process = json.loads(read_bytes(address) or b"[]")
        # On this machine, a process that was killed can be told from one that works.
        is_dead = host == own[0] and PROCESSES.exists() and not (PROCESSES / str(process)).exists()
        if [host, process] != own and not is_dead:
            notify(
                f"{output}: process {process} on {host} is running the same job, unless it was "
                "killed; two clients do all work twice: stop one of them"
            )
    write_text(address, json.dumps(own))
    try:
        yield
    finally:
        with suppress(OutputError, OSError):
            if read_bytes(address) == json.dumps(own).encode():
                remove_files(output, [RUNNING])


def require_output(output: str, dataset: str, parts: Sequence[Part] = ()) -> None:
    """Refuse the name of a file, and an output in the dataset, where it would become a part."""
    if output.endswith((".csv", ".npz", PART_ENDING)):
        raise RankshotError(
            f"{output}: the output is a folder of many parts; give a name without an extension"
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


def read_records(output: str, key: str) -> dict[str, Record]:
    """Return what the job with a fingerprint keeps about its parts, by their names."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        kept = json.loads(read_bytes(join_address(output, RECORDS)) or b"")
        if kept["job"] == key:
            return {name: Record(*record) for name, record in kept["parts"].items()}
    return {}


def write_records(output: str, key: str, records: Mapping[str, Record]) -> None:
    """Write what a job keeps about its parts."""
    kept = {"job": key, "parts": dict(sorted(records.items()))}
    write_text(join_address(output, RECORDS), json.dumps(kept, indent=0))


def _require_same_job(output: str, before: Mapping[str, object], now: Mapping[str, object]) -> None:
    told = []
    for name in {**before, **now}:
        was, value = before.get(name), now.get(name)
        is_hash = any(isinstance(one, str) and len(one) >= 64 for one in (was, value))
        if was != value:
            told.append(f"another {name}" if is_hash else f"{name} was {was}, is now {value}")
    if told:
        raise RankshotError(
            f"{output}: belongs to another job ({'; '.join(told)}); give another output, or remove "
            "this one (again=True)"
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
            f"{output}: another job has started there since this one; parts may come from either, "
            "until one of them is started over (again=True)"
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
