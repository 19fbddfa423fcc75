"""`score`: a model over many inputs, in one process or many, into a dataset or one table."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, cast

from scipy.sparse import issparse

from rankshot.core.errors import RankshotError, format_count
from rankshot.core.files import has_pattern, is_address
from rankshot.core.tables import ID, open_parquet
from rankshot.core.validation import require_choice, require_whole_number
from rankshot.jobs.executors import WORKER_SECONDS, Notify, Progress, Rules, Workers, run_parts
from rankshot.jobs.part_jobs import (
    FAILED,
    MANIFEST,
    RECORDS,
    SKIPPED,
    WORK_KEY,
    JobError,
    PartJob,
    PartsRun,
    Work,
    format_work,
    keep_loaded,
    output_name,
    read_checksum,
    read_manifest,
    read_records,
    require_output,
    write_skipped,
)
from rankshot.jobs.storage import (
    PackedPart,
    Part,
    as_address,
    compute_checksum,
    fetch_part,
    join_address,
    list_parts,
    read_footer,
    write_text,
)
from rankshot.recognition.any_model import open_model
from rankshot.recognition.images import Preprocessing
from rankshot.recognition.inputs import (
    JSON_ENDINGS,
    Entries,
    Input,
    Skipped,
    find_version,
    fingerprint_entries,
    open_inputs,
)
from rankshot.recognition.model import fingerprint, fingerprint_files
from rankshot.recognition.scoring import (
    BATCH,
    ON_ERROR,
    Classes,
    ScoringPlan,
    nothing_scored,
    plan_scoring,
    refuse_skipped,
    set_preprocessing,
)
from rankshot.sources.names import ClassLabels
from rankshot.zeroshot.files.score_tables import (
    ENDINGS,
    Block,
    open_scores,
    require_score_file,
    write_score_table,
)

INPUT_ENDINGS = (".csv", *JSON_ENDINGS)
PART_INPUTS = 1000
"""The number of inputs of a part, about."""
MIN_PARTS, MIN_BATCHES = 8, 16
"""Parts are shorter if there would be fewer of them, but have at least this many batches: the
images of a part are decoded while the model computes, except those of its first batch. The number
of workers has no influence: with another one, a second start finds the same parts."""
BLOCK_SCORES = 2**20
"""Scores and features that are collected before they are written."""
FIRST_PARTS = 5
"""What the first scores tell is found in the first of these parts that has any."""
ORIGIN = "_origin.json"
"""The file in a folder of parts that tells people what the scores are from."""
PROBABILITIES = "probabilities"
"""The count of rows whose scores are the logarithms of probabilities."""


def score(
    model: object,
    inputs: object,
    output: str | Path,
    classes: Classes | None = None,
    *,
    preprocessing: Preprocessing | str | Path | Mapping[str, object] | None = None,
    features: bool = True,
    executor: object = None,
    scheduler: str | None = None,
    workers: int | None = None,
    wait_for_workers: float = WORKER_SECONDS,
    batch_size: int = BATCH,
    on_error: str = "stop",
    again: bool = False,
    update: bool = False,
    verify: bool = False,
    progress: Progress | None = None,
    notify: Notify = lambda _: None,
) -> PartsRun:
    r"""Write the scores of a model for any number of inputs, as a dataset or as one table.

    A dataset is a folder of Parquet parts, which `classify` takes. A part is written when it is
    done, completely or not at all. If the job is stopped for any reason, the same call resumes with
    the parts that are not finished; if all are, nothing is done. (A function has no fingerprint by
    which it could be recognised: it is always run from the start.)

    Each worker process opens the model once. If Dask workers declare the resource ``GPU``, as in
    ``dask worker --resources GPU=1``, only these are used, with one part at a time per GPU. The
    scores are bit-identical wherever they are computed.

    Parameters
    ----------
    model, classes, preprocessing, features, batch_size
        As for `rankshot.recognition.score`. CSV files have no features, and sparse features, such
        as word counts, are not written. Workers open the model themselves: with workers, it must
        be a file in a folder that all machines share, a name on the hub, or
        ``"efficientnet-lite0"``.
    inputs : str, Path, sequence, ndarray or InputParts
        As for `rankshot.recognition.score`; they are divided into parts of up to about 1,000
        inputs. Or, for a text model, a dataset of tables (.csv, .jsonl): a folder, a pattern, or an
        address such as ``s3://bucket/texts``. Each table is a part; if it has no ids, they are
        ``PART:ROW``. Or the result of `list_inputs`.
    output : str or Path
        A folder, or its address, for a dataset: what was skipped is listed in ``_skipped.csv`` in
        it. Or one table (.csv, .parquet), into which the parts are joined at the end; what
        was skipped is then listed next to it, as in ``scores.skipped.csv``.
    executor, scheduler, workers, wait_for_workers, again, update, verify, progress, notify
        As for `classify`.
    on_error : {"stop", "skip"}
        With ``"skip"``, inputs that cannot be read are skipped, and parts that cannot be processed
        are listed in ``_failed.csv``. With ``"stop"``, both end the job.

    Returns
    -------
    PartsRun
        ``skipped`` lists the inputs without scores.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.jobs import score
    >>> count = lambda texts: [[text.count(c) for c in "ab"] for text in texts]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     run = score(count, ["banana", "bb"], path, ["a", "b"])
    ...     print(run.n_rows, path.read_text().split())
    2 ['id,a,b', '0,3.0,1.0', '1,0.0,2.0']
    """
    target = as_address(output)
    is_table = target.endswith(ENDINGS) and not is_address(target)
    table = Path(target) if is_table else Path(target, "part.parquet")
    plan = model if isinstance(model, ScoringPlan) else plan_scoring(model, classes, preprocessing)
    features = features and plan.features and table.suffix != ".csv"
    plan, names = replace(plan, features=features), plan.classes.names
    keep = output if update else None
    listed = inputs
    if not isinstance(listed, InputParts):
        listed = list_inputs(plan, inputs, batch_size, keep)
    require_choice("on_error", on_error, ON_ERROR)
    require_score_file(table, names, plan.model.kind)
    folder = f"{table}.parts" if is_table else target
    require_output(folder, as_address(listed.name), listed.parts if listed.are_tables else ())
    job = _ScoreJob(
        plan.model.source,
        plan.model.preprocessing if plan.model.prepare is None else None,
        plan.identity,
        listed._replace(parts=()),
        on_error,
    )
    again = again or plan.model.fingerprint is None
    one_table = _OneTable(table, job, listed.parts) if is_table else None
    if one_table and not (again or verify):
        finished = one_table.find_finished(is_begun=Path(folder).exists())
        if finished is not None:
            return finished
    where = Workers(executor, scheduler, workers, wait_for_workers)
    in_process = where.are_here or isinstance(executor, ThreadPoolExecutor)
    if plan.model.source is None and not in_process:
        raise RankshotError(
            f"{plan.model.name}: workers open the model themselves; give a file or a name, not an "
            "object in memory"
        )
    keep_loaded(fingerprint(job.description), lambda: plan, again=True)
    if not where.are_here:
        notify(f"{listed.name}: {format_count(len(listed.parts), 'part')}")
        job.score_first_batch(plan, listed.parts)
    try:
        rules = Rules(again, update, verify, "stop" if is_table else on_error, progress, notify)
        run = run_parts(job, json.dumps(names).encode(), listed.parts, folder, where, rules)
    except BaseException:
        # Nothing is left behind if no part was done.
        if {path.name for path in Path(folder).glob("*")} <= {MANIFEST, RECORDS, FAILED, SKIPPED}:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if not run.n_rows and not run.failed:
        raise nothing_scored(listed.name, run.skipped)
    if one_table:
        one_table.join_parts(folder, plan, run)
    else:
        write_text(join_address(folder, ORIGIN), json.dumps(_describe_origin(plan, run)))
    return run


# -------------------------------------------------------------------- the parts of the inputs


class InputParts(NamedTuple):
    """Inputs that were listed, once, as the parts of a job; `list_inputs` makes them."""

    name: str
    parts: Sequence[Part]
    batch_size: int
    are_tables: bool = False


def list_inputs(
    plan: ScoringPlan,
    inputs: object,
    batch_size: int = BATCH,
    keep: str | Path | None = None,
) -> InputParts:
    """Return the inputs as parts: tables of texts, or lists, each of which begins with a batch.

    If inputs were added or have changed since an earlier job wrote the folder ``keep``, the parts
    of this job with inputs that are as they were stay, and all other inputs are in new parts.
    """
    require_whole_number("batch_size", batch_size)
    if isinstance(inputs, (str, Path)) and _is_dataset(str(inputs), plan):
        parts = list_parts(as_address(inputs), INPUT_ENDINGS)
        return InputParts(str(inputs), parts, batch_size, are_tables=True)
    found = open_inputs(inputs, plan.model.takes)
    packed = _divide(iter(found), batch_size)
    if not any(isinstance(one, Input) for one in found):
        raise nothing_scored(found.name, [one for one in found if isinstance(one, Skipped)])
    if keep is not None and Path(keep).is_dir():
        packed = _keep_parts(packed, found, Path(keep), batch_size)
    return InputParts(found.name, packed, batch_size)


def _divide(entries: Entries, batch_size: int, first_number: int = 0) -> list[Part]:
    """Return entries as parts, with numbers as names."""
    first = list(islice(entries, MIN_PARTS * PART_INPUTS))
    wanted = min(PART_INPUTS, max(MIN_BATCHES * batch_size, -(-len(first) // MIN_PARTS)))
    size = -(-wanted // batch_size) * batch_size
    entries = chain(first, entries)
    packed: list[Part] = []
    while group := list(islice(entries, size)):
        packed.append(_pack(f"part-{first_number + len(packed):06d}", group))
    return packed


def _keep_parts(
    packed: list[Part], found: Iterable[Input | Skipped], folder: Path, batch_size: int
) -> list[Part]:
    """Return the parts of an earlier job whose inputs are the same, and new parts of the rest."""
    _, old = read_manifest(as_address(folder)) or ({}, {})
    done = [name for name in old if (folder / output_name(name)).is_file()]
    now = {part.name: part.version for part in packed}
    if all(now.get(name) == old[name] for name in done):
        return packed
    by_id: dict[str, list[Input | Skipped]] = {}
    for one in found:
        by_id.setdefault(one.id, []).append(one)
    kept: list[Part] = []
    for name in done:
        ids = _read_ids(folder / output_name(name))
        part = _pack(name, [one for id_ in ids for one in by_id.get(id_, ())])
        if part.version == old[name]:
            kept.append(part)
            for id_ in ids:
                by_id.pop(id_, None)
    rest = (one for some in by_id.values() for one in some)
    first_number = 1 + max(int(name.rpartition("-")[2]) for name in old)
    return kept + _divide(rest, batch_size, first_number)


def _read_ids(part: Path) -> set[str]:
    """Return the ids of the inputs of a part, scored or skipped."""
    counts_and_skipped = (read_footer(str(part)) or (0, {}))[1].get(WORK_KEY, "[{}, []]")
    with open_parquet(part) as file:
        ids = file.read([ID])[ID].to_pylist()
    return {*ids, *(Skipped(*one).id for one in json.loads(counts_and_skipped)[1])}


def _is_dataset(inputs: str, plan: ScoringPlan) -> bool:
    """Return whether inputs are a dataset of tables, each of which is a part."""
    if not (is_address(inputs) or has_pattern(inputs)):
        # A folder of images, for a text model, is refused by `open_inputs`.
        return plan.model.takes == "texts" and any(
            path.suffix in INPUT_ENDINGS for path in Path(inputs).rglob("*.*")
        )
    if plan.model.takes != "texts":
        raise RankshotError(
            f"{inputs}: only text models accept datasets of tables; give images as a folder, or "
            "as a list of paths (.txt, .csv, .jsonl), that all machines share"
        )
    return True


def _pack(name: str, entries: Sequence[Input | Skipped]) -> PackedPart:
    """Return a part with some entries; its version changes with their texts, or sizes and times."""
    packed: list[Input | Skipped] = []
    for one in entries:
        entry = one
        if isinstance(one, Input) and isinstance(one.value, Path):
            entry = Input(one.id, one.value.absolute())
            try:
                entry.value.stat()
            except OSError as error:
                entry = Skipped(one.id, error.strerror or "cannot be read")
        packed.append(entry)
    are_short = not any(isinstance(one, Input) and hasattr(one.value, "tobytes") for one in packed)
    version = fingerprint_entries(packed, find_version)
    return PackedPart.pack(name, packed, version, compress=are_short)


def _read_packed(packed: Sequence[Input | Skipped]) -> Entries:
    for one in packed:
        if isinstance(one, Input) and isinstance(one.value, Path) and not one.value.exists():
            raise JobError(
                f"{one.value}: a worker cannot find this file, although it existed when the job "
                "began; inputs must be in a folder that all machines share"
            )
        yield one


# -------------------------------------------------------------------- the job


_model_lock = Lock()
"""A model does one part at a time, on all its cores or its GPU."""


@dataclass
class _ScoreJob(PartJob):
    """What is done with a part of the inputs."""

    use_gpu = True
    source: str | None
    preprocessing: Preprocessing | None
    plan: Mapping[str, object]
    listed: InputParts
    on_error: str
    has_probabilities: bool | None = None

    @property
    def description(self) -> Mapping[str, object]:
        return {"command": "score", **self.plan, "batch": self.listed.batch_size}

    def load(self, content: bytes) -> ScoringPlan:
        opened = set_preprocessing(open_model(self.source), self.preprocessing)
        names = tuple(json.loads(content))
        plan = ScoringPlan(
            opened, ClassLabels.from_names(names), features=bool(self.plan["features"])
        )
        for what, value in plan.identity.items():
            if value != self.plan[what]:
                raise RankshotError(f"{self.source}: the {what} here is not that of the job")
        return plan

    def compute_checksum(self, source: Any) -> str:
        """Return a checksum of a table, or of all inputs of a list."""
        if self.listed.are_tables:
            return super().compute_checksum(source)
        return fingerprint_entries(source, compute_checksum)

    def accept(self, work: Work) -> None:
        """Take from finished parts what the scores are; an input that was skipped is an error."""
        if self.on_error == "stop":
            refuse_skipped(work.skipped)
        if self.has_probabilities is None and work.n_rows:
            self.has_probabilities = PROBABILITIES in work.counts

    def run(
        self,
        loaded: ScoringPlan,
        part: Part,
        source: object,
        target: Path,
        metadata: dict[str, str],
    ) -> Work:
        skipped: list[Skipped] = []
        counts: dict[str, int] = {}
        plan = replace(loaded, has_probabilities=self.has_probabilities)

        def blocks() -> Generator[Block, None, None]:
            n_rows = 0
            entries = self.read_entries(part, source)
            for ids, scores in plan.score(
                entries, self.listed.batch_size, self.on_error, skipped, BLOCK_SCORES
            ):
                n_rows += len(ids)
                # Sparse features would be thousands of zeros in a file.
                yield ids, replace(scores, features=None) if issparse(scores.features) else scores
            if plan.has_probabilities:
                counts[PROBABILITIES] = n_rows
            metadata.update(format_work(counts, skipped))

        names, kind = plan.classes.names, plan.model.kind
        with _model_lock, closing(blocks()) as found:
            n_rows = write_score_table(target, names, found, kind, metadata)
        # In one process, parts are done in order: the first scores tell for all what they are.
        self.has_probabilities = plan.has_probabilities
        return Work(n_rows, counts, skipped)

    def read_entries(self, part: Part, source: Any) -> Entries:
        """Return the inputs of a part."""
        if self.listed.are_tables:
            return iter(open_inputs(source, "texts", f"{part.stem}:"))
        return _read_packed(source)

    def score_first_batch(self, plan: ScoringPlan, parts: Sequence[Part]) -> None:
        """Find, for all parts, whether the first scores are probabilities."""
        plan = replace(plan, has_probabilities=None)
        for part in parts[:FIRST_PARTS]:
            # Another part may be good, and the job names the bad ones.
            with (
                suppress(*[RankshotError] if self.on_error == "skip" else []),
                fetch_part(part) as source,
                closing(
                    plan.run(self.read_entries(part, source), self.listed.batch_size, self.on_error)
                ) as batches,
            ):
                while plan.has_probabilities is None and next(batches, None) is not None:
                    pass
        self.has_probabilities = plan.has_probabilities


# -------------------------------------------------------------------- one table


class _OneTable(NamedTuple):
    """A table of all inputs; a file beside it says which job wrote it, from which inputs."""

    path: Path
    job: _ScoreJob
    parts: Sequence[Part]

    def join_parts(self, folder: str, plan: ScoringPlan, run: PartsRun) -> None:
        """Make the table of the parts in a folder, and remove these."""
        path = self.path
        job = fingerprint(self.job.description)
        batches = open_scores(folder).batches(features=True)
        blocks = ((cast("Any", ids).tolist(), scores) for ids, scores in batches)
        write_skipped(str(path.parent), path.with_suffix(".skipped.csv").name, run.skipped)
        write_score_table(path, plan.classes.names, blocks, plan.model.kind)
        about = {
            "job": job,
            "versions": [part.version for part in self.parts],
            "contents": [record.input_checksum for record in read_records(folder, job).values()],
            "table": fingerprint_files([path]),
            "run": {"n_rows": run.n_rows, "counts": run.counts, "skipped": run.skipped},
        }
        write_text(f"{path}.json", json.dumps({**about, **_describe_origin(plan, run)}))
        shutil.rmtree(folder)

    def find_finished(self, *, is_begun: bool) -> PartsRun | None:
        """Return what the same job has done, if its table is there; refuse to replace another one.

        A file of which nothing is known is replaced, and a job that was begun goes on.
        """
        try:
            kept = json.loads(Path(f"{self.path}.json").read_text(encoding="utf-8"))
            is_as_written = kept["table"] == fingerprint_files([self.path])
            # If times have changed, the contents may still be the same.
            is_same = kept["job"] == fingerprint(self.job.description) and (
                kept["versions"] == [part.version for part in self.parts]
                or kept["contents"] == [read_checksum(part, self.job) for part in self.parts]
            )
            n, done = len(self.parts), kept["run"]
            run = PartsRun(n, n_resumed=n, n_rows=done["n_rows"], counts=Counter(done["counts"]))
            run.skipped += [Skipped(*one) for one in done["skipped"]]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if is_same and is_as_written:
            self.job.accept(Work(skipped=run.skipped))
            return run
        if is_begun:
            return None
        other = "has the scores of another model, or of other settings or inputs"
        why = "was changed after the job that wrote it" if is_same else other
        raise RankshotError(
            f"{self.path}: {why}; give another output, or begin again, which replaces it "
            "(again=True)"
        )


def _describe_origin(plan: ScoringPlan, run: PartsRun) -> dict[str, Any]:
    return {"origin": plan.origin, "skipped": run.count_reasons()}


def read_origin(scores: Path) -> dict[str, str]:
    """Return what a job of `score` tells people of its table or folder; nothing of another one."""
    try:
        path = scores / ORIGIN if scores.is_dir() else Path(f"{scores}.json")
        kept = json.loads(path.read_text(encoding="utf-8"))
        counts = [f"{n:,} {reason}" for reason, n in kept["skipped"].items()]
        return {**kept["origin"], "skipped inputs": ", ".join(counts) or "none"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
