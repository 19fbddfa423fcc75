"""`score`: a model over many inputs, in one process or many, into a dataset or one table."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np

from rankshot.core.errors import RankshotError, format_count
from rankshot.core.files import replace_file
from rankshot.core.tables import ID, import_pyarrow
from rankshot.core.validation import require_choice, require_whole_number
from rankshot.inference.inputs import (
    JSON_ENDINGS,
    Entries,
    Input,
    Skipped,
    describe_entry,
    open_inputs,
)
from rankshot.inference.model import fingerprint_files, open_model
from rankshot.inference.pictures import Preprocessing
from rankshot.inference.scoring import (
    BATCH,
    ON_ERROR,
    Classes,
    ScoringPlan,
    nothing_scored,
    plan_scoring,
    refuse_skipped,
    set_preprocessing,
)
from rankshot.jobs.executors import Notify, Pool, open_pool, run_parts
from rankshot.jobs.part_jobs import (
    FAILED,
    MANIFEST,
    SKIPPED,
    JobError,
    PartsRun,
    Work,
    fingerprint,
    format_work,
    keep_loaded,
    load_once,
    read_manifest,
    refuse_inside,
    require_folder_name,
    write_skipped,
)
from rankshot.jobs.storage import (
    PackedPart,
    Part,
    as_address,
    fetch_part,
    follow_links,
    has_pattern,
    is_address,
    list_parts,
)
from rankshot.sources.names.labels import ClassLabels
from rankshot.zeroshot.files.score_tables import (
    ENDINGS,
    Block,
    require_score_file,
    write_score_table,
)

TABLE_ENDINGS = (".csv", *JSON_ENDINGS)
PART_INPUTS = 1000
"""The number of inputs of a part, about."""
MIN_PARTS, MIN_BATCHES = 8, 8
"""Parts are shorter if there would be fewer of them, but not than so many batches: the pictures of
a part are decoded while the model computes, except those of its first batch. The number of workers
has no influence: with another one, a second start finds the same parts."""
BLOCK_SCORES = 2**20
"""So many scores are collected before they are written."""
FIRST_PARTS = 5
"""What the first scores tell is found in the first of so many parts that has any."""
PRECISION_KEY = "rankshot.precision"
"""The key in the footer of a part that is to be joined: float32 or float64."""
PROBABILITIES = "probabilities"
"""The count of rows whose scores are the logarithms of probabilities."""


def score(
    model: Any,
    inputs: Any,
    output: str | Path,
    classes: Classes | None = None,
    *,
    preprocessing: Preprocessing | str | Path | Mapping[str, Any] | None = None,
    executor: Any = None,
    scheduler: str | None = None,
    workers: int | None = None,
    batch_size: int = BATCH,
    on_error: str = "raise",
    column: str | None = None,
    id_column: str | None = None,
    again: bool = False,
    update: bool = False,
    progress: Callable[[PartsRun], None] | None = None,
    notify: Notify = lambda _: None,
) -> PartsRun:
    r"""Write the scores of a model for any number of inputs, as a dataset or as one table.

    A dataset is a folder of Parquet parts, which `classify` takes. A part is written when it is
    done, completely or not at all. If the job is stopped in whatever way, the same call goes on
    with the parts that are not finished; if all are, nothing is done. (A function has no
    fingerprint by which it could be recognised: it is always run from the start.)

    Each worker process opens the model once. If workers of Dask declare the resource ``GPU``, as
    in ``dask worker --resources GPU=1``, only these are used, with one part at a time per GPU. The
    scores are the same, to the last bit, wherever they are computed.

    Parameters
    ----------
    model, classes, preprocessing, batch_size, column, id_column
        As for `rankshot.inference.score`. Workers open the model themselves: it is then a file in
        a folder that all machines share, a name on the hub, or ``"efficientnet-lite0"``.
    inputs : str, Path, sequence or ndarray
        As for `rankshot.inference.score`; they are divided into parts of up to about 1,000 inputs.
        Or, for a model of texts, a dataset of tables (.csv, .jsonl): a folder, a pattern, or an
        address such as ``s3://bucket/texts``. Each table is a part; if it has no ids, they are
        ``PART:ROW``.
    output : str or Path
        A folder, or its address, for a dataset: what was skipped is listed in ``_skipped.csv`` in
        it. Or one table (.csv, .parquet, .npz), into which the parts are joined at the end; what
        was skipped is then listed beside it, as in ``scores.skipped.csv``.
    executor, scheduler, workers, again, update, progress, notify
        As for `classify`.
    on_error : {"raise", "skip"}
        With ``"skip"``, inputs that cannot be read are skipped, and parts that cannot be done are
        listed in ``_failed.csv``. With ``"raise"``, both end the job.

    Returns
    -------
    PartsRun
        Its ``skipped`` are the inputs without scores.

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
    plan = model if isinstance(model, ScoringPlan) else plan_scoring(model, classes, preprocessing)
    listed = list_inputs(plan, inputs, column, id_column, batch_size)
    return score_inputs(
        plan,
        listed,
        output,
        executor=executor,
        scheduler=scheduler,
        workers=workers,
        on_error=on_error,
        again=again,
        update=update,
        progress=progress,
        notify=notify,
    )


# -------------------------------------------------------------------- the parts of the inputs


class InputParts(NamedTuple):
    """Inputs that were listed, once, as the parts of a job; `list_inputs` makes them."""

    name: str
    parts: Sequence[Part]
    batch_size: int
    column: str | None
    id_column: str | None
    are_tables: bool = False


def list_inputs(
    plan: ScoringPlan,
    inputs: Any,
    column: str | None = None,
    id_column: str | None = None,
    batch_size: int = BATCH,
) -> InputParts:
    """Return the inputs as parts: tables of texts, or lists, each of which begins with a batch.

    Raises
    ------
    RankshotError
        If the model does not take such inputs, or if there are none.
    """
    require_whole_number("batch_size", batch_size)
    if isinstance(inputs, (str, Path)) and _is_dataset(str(inputs), plan):
        parts = list_parts(as_address(inputs), TABLE_ENDINGS)
        return InputParts(str(inputs), parts, batch_size, column, id_column, are_tables=True)
    found = open_inputs(inputs, plan.model.takes, column, id_column)
    entries = iter(found)
    first = list(islice(entries, MIN_PARTS * PART_INPUTS))
    if not any(isinstance(one, Input) for one in first):
        first += entries
        if not any(isinstance(one, Input) for one in first):
            raise nothing_scored(found.name, [one for one in first if isinstance(one, Skipped)])
    wanted = min(PART_INPUTS, max(MIN_BATCHES * batch_size, -(-len(first) // MIN_PARTS)))
    size = -(-wanted // batch_size) * batch_size
    entries = chain(first, entries)
    groups = iter(lambda: list(islice(entries, size)), [])
    packed = [_pack(f"part-{number:06d}", group) for number, group in enumerate(groups)]
    return InputParts(found.name, packed, batch_size, column, id_column)


def _is_dataset(inputs: str, plan: ScoringPlan) -> bool:
    """Return whether inputs are a dataset of tables, each of which is a part."""
    if not (is_address(inputs) or has_pattern(inputs)):
        # A folder of pictures, for a model of texts, is refused by `open_inputs`.
        return plan.model.takes == "texts" and any(
            path.suffix in TABLE_ENDINGS for path in Path(inputs).rglob("*.*")
        )
    if plan.model.takes != "texts":
        raise RankshotError(
            f"{inputs}: datasets of tables are for models of texts; give pictures as a folder, or "
            "as a list of paths (.txt, .csv, .jsonl), that all machines share"
        )
    return True


def _pack(name: str, entries: Sequence[Input | Skipped]) -> PackedPart:
    """Return a part with some entries; its version changes with their texts, or sizes and times."""
    described = [describe_entry(one) for one in entries]
    packed = [
        Input(one.id, one.value.absolute())
        if isinstance(one, Input) and isinstance(one.value, Path)
        else one
        for one in entries
    ]
    were_there = [about[-1] != "missing" for about in described]
    return PackedPart.pack(name, (packed, were_there), fingerprint(described))


def _read_packed(packed: Sequence[Input | Skipped], were_there: Sequence[bool]) -> Entries:
    for one, was_there in zip(packed, were_there, strict=True):
        value = one.value if isinstance(one, Input) else None
        if was_there and isinstance(value, Path) and not value.exists():
            raise JobError(
                f"{value}: a worker cannot find it, but it was there when the job began; "
                "inputs must be in a folder that all machines share"
            )
        yield one


# -------------------------------------------------------------------- the job


def score_inputs(
    plan: ScoringPlan,
    listed: InputParts,
    output: str | Path,
    *,
    executor: Any = None,
    scheduler: str | None = None,
    workers: int | None = None,
    on_error: str = "raise",
    again: bool = False,
    update: bool = False,
    progress: Callable[[PartsRun], None] | None = None,
    notify: Notify = lambda _: None,
) -> PartsRun:
    """Write the scores of inputs that `list_inputs` has listed; see `score`."""
    require_choice("on_error", on_error, ON_ERROR)
    target = as_address(output)
    table = Path(target) if target.endswith(ENDINGS) else None
    if is_address(target):
        require_folder_name(target)
    names = plan.classes.names
    require_score_file(table or Path(target, "part.parquet"), names, plan.model.kind)
    _refuse_inside(target, listed)
    folder = target if table is None else f"{table}.parts"
    job = _ScoreJob.from_plan(plan, listed, on_error, are_rows=table is not None)
    key = fingerprint([job.description, [part.version for part in listed.parts]])
    again = again or plan.model.fingerprint is None
    if table is not None and not again:
        finished = _find_finished(table, key, len(listed.parts), is_begun=Path(folder).exists())
        if finished is not None:
            job.accept(Work(skipped=finished.skipped))
            return finished
    keep_loaded(job, plan)
    content = json.dumps(names).encode()
    with (
        _remove_if_empty(folder),
        open_pool(
            executor, scheduler, workers, len(listed.parts), folder, notify, use_gpu=True
        ) as pool,
    ):
        if not pool.is_here:
            notify(f"{listed.name}: {format_count(len(listed.parts), 'part')}")
            job.has_probabilities = _try_first_parts(pool, job, content, listed.parts)
        run = run_parts(
            job,
            content,
            listed.parts,
            folder,
            pool,
            again=again,
            update=update,
            stop_on_error=on_error == "raise" or table is not None,
            progress=progress,
            notify=notify,
        )
    if not run.n_rows and not run.failed:
        raise nothing_scored(listed.name, run.skipped)
    if table is not None:
        _join_parts(Path(folder), table, plan, run, key)
    return run


@contextmanager
def _remove_if_empty(folder: str) -> Iterator[None]:
    """After an error, leave nothing behind if no part was done."""
    try:
        yield
    except BaseException:
        place = Path(folder)
        if place.is_dir() and {path.name for path in place.iterdir()} <= {
            MANIFEST,
            FAILED,
            SKIPPED,
        }:
            shutil.rmtree(place, ignore_errors=True)
        raise


def _refuse_inside(output: str, listed: InputParts) -> None:
    """Refuse an output among the inputs, which would change with it."""
    if listed.are_tables:
        refuse_inside(output, as_address(listed.name), listed.parts)
    elif Path(listed.name).is_dir() and Path(follow_links(output)).is_relative_to(
        Path(listed.name).resolve()
    ):
        raise RankshotError(f"{output}: is inside of {listed.name}; give an output outside of it")


def describe_plan(plan: ScoringPlan) -> dict[str, Any]:
    """Return what the score of an input depends on, by names that a user knows."""
    model = plan.model
    return {
        "model": model.fingerprint,
        # All digits; the text for people has four.
        "preprocessing": repr(model.preprocessing) if model.takes == "pictures" else None,
        "classes": fingerprint(plan.classes.names),
    }


def require_same_plan(folder: Path, plan: ScoringPlan) -> None:
    """Refuse a folder of parts that are the scores of another model."""
    kept = read_manifest(str(folder.absolute()))
    now = describe_plan(plan)
    for what in now:
        if kept is not None and kept[0].get(what) != now[what]:
            name = what if what == "model" else f"model, with other {what}"
            raise RankshotError(f"{folder}: keeps the scores of another {name}")


_model_lock = Lock()
"""A model does one part at a time, on all its cores or its GPU."""


@dataclass
class _ScoreJob:
    """What is done with a part of the inputs; see `PartJob`."""

    name: str
    source: str | None
    preprocessing: Preprocessing | None
    plan: Mapping[str, Any]
    are_tables: bool
    batch_size: int
    on_error: str
    column: str | None
    id_column: str | None
    are_rows: bool
    has_probabilities: bool | None = None

    @classmethod
    def from_plan(
        cls, plan: ScoringPlan, listed: InputParts, on_error: str, *, are_rows: bool
    ) -> _ScoreJob:
        model = plan.model
        return cls(
            model.name,
            model.source,
            model.preprocessing if model.prepare is None else None,
            describe_plan(plan),
            listed.are_tables,
            listed.batch_size,
            on_error,
            listed.column,
            listed.id_column,
            are_rows,
        )

    @property
    def description(self) -> Mapping[str, Any]:
        return {
            "command": "score",
            **self.plan,
            "batch": self.batch_size,
            "column": self.column,
            "id column": self.id_column,
        }

    @property
    def load_key(self) -> str:
        return fingerprint(self.plan)

    def load(self, content: bytes) -> ScoringPlan:
        if self.source is None:
            raise RankshotError(
                f"{self.name}: workers open the model themselves; give a file or a name, not an "
                "object in memory"
            )
        opened = set_preprocessing(open_model(self.source), self.preprocessing)
        names = tuple(json.loads(content))
        labels = ClassLabels(names, (None,) * len(names), tuple((name,) for name in names), names)
        plan = ScoringPlan(opened, labels)
        for what, value in describe_plan(plan).items():
            if value != self.plan[what]:
                raise RankshotError(f"{self.source}: not the same {what} as where the job began")
        return plan

    def accept(self, work: Work) -> None:
        """Take from finished parts what the scores are; an input that was skipped is an error."""
        if self.on_error == "raise":
            refuse_skipped(work.skipped)
        if self.has_probabilities is None and work.n_rows:
            self.has_probabilities = PROBABILITIES in work.counts

    def run(
        self, loaded: ScoringPlan, part: Part, source: Any, target: Path, metadata: dict[str, str]
    ) -> Work:
        skipped: list[Skipped] = []
        counts: dict[str, int] = {}
        plan = replace(loaded, has_probabilities=self.has_probabilities)
        batches = plan.run(self.read(part, source), self.batch_size, self.on_error)

        def blocks() -> Iterator[Block]:
            n_rows = 0
            ids: list[str] = []
            values: list[Any] = []
            # Parquet takes long for many columns of few rows.
            for batch in batches:
                skipped.extend(batch.skipped)
                ids += batch.ids
                values += [batch.values] if batch.ids else []
                if len(ids) * len(plan.classes.names) > BLOCK_SCORES:
                    n_rows += len(ids)
                    yield ids, np.concatenate(values)
                    ids, values = [], []
            if ids:
                n_rows += len(ids)
                yield ids, np.concatenate(values)
            if plan.has_probabilities:
                counts[PROBABILITIES] = n_rows
            metadata.update(format_work(counts, skipped))

        begin = perf_counter()
        with _model_lock, closing(batches):
            waited = perf_counter()
            if self.are_rows:
                n_rows = _write_rows(target, blocks(), metadata)
            else:
                n_rows = write_score_table(
                    target, plan.classes.names, blocks, plan.model.kind, metadata
                )
            seconds = {"waiting": waited - begin, "scoring": perf_counter() - waited}
        # In one process, parts are done in order: the first scores tell for all what they are.
        self.has_probabilities = plan.has_probabilities
        return Work(n_rows, counts, skipped, seconds)

    def read(self, part: Part, source: Any) -> Entries:
        """Yield the inputs of a part."""
        if not self.are_tables:
            return _read_packed(*source)
        return iter(open_inputs(source, "texts", self.column, self.id_column, f"{part.stem}:"))


def _score_first_batch(job: _ScoreJob, content: bytes, part: Part) -> bool | None:
    """Return whether the scores of the first inputs are probabilities; None without any scores."""
    plan: ScoringPlan = replace(load_once(job, content), has_probabilities=None)
    with (
        _model_lock,
        fetch_part(part) as source,
        closing(plan.run(job.read(part, source), job.batch_size, job.on_error)) as batches,
    ):
        while plan.has_probabilities is None and next(batches, None) is not None:
            pass
    return plan.has_probabilities


def _try_first_parts(
    pool: Pool, job: _ScoreJob, content: bytes, parts: Sequence[Part]
) -> bool | None:
    """Return what the first scores tell for all parts: whether they are probabilities.

    If a worker has no access to the model or to the inputs, or if no scores can be had, this is
    reported before anything is written.
    """
    problem: RankshotError | None = None
    for part in parts[:FIRST_PARTS]:
        try:
            found: bool | None = pool.call(_score_first_batch, job, content, part)
        except RankshotError as error:
            if isinstance(error, JobError) or job.on_error == "raise":
                raise
            # Another part may be good, and the job names the bad ones.
            problem = problem or error
        else:
            if found is not None:
                return found
    if problem is not None:
        raise problem
    return None


# -------------------------------------------------------------------- one table


def _write_rows(target: Path, blocks: Iterable[Block], metadata: Mapping[str, str]) -> int:
    """Write scores until they are joined into a table: the bytes of a row are one cell.

    A Parquet file with a column per class takes ten times as long to write, and to read again.
    """
    arrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
    writer, dtype, n_rows = None, np.dtype(np.float32), 0
    with target.open("wb") as stream:
        try:
            for ids, values in chain(blocks, [([], np.empty((0, 1), np.float32))]):
                if writer is None:
                    dtype, cell = values.dtype, arrow.binary(values.shape[1] * values.itemsize)
                    writer = parquet.ParquetWriter(
                        stream,
                        arrow.schema([(ID, arrow.string()), ("scores", cell)]),
                        compression="none",
                        use_dictionary=False,
                        write_statistics=False,
                        write_page_checksum=True,
                    )
                if len(ids):
                    content = arrow.py_buffer(np.ascontiguousarray(values, dtype))
                    rows = arrow.FixedSizeBinaryArray.from_buffers(cell, len(ids), [None, content])
                    texts = arrow.array(ids, arrow.string())
                    writer.write_table(arrow.table([texts, rows], writer.schema))
                    n_rows += len(ids)
            cast("Any", writer).add_key_value_metadata({**metadata, PRECISION_KEY: dtype.str})
        finally:
            # A writer that is not closed would write when it is deleted.
            if writer is not None:
                writer.close()
    return n_rows


def _read_rows(part: Path) -> Iterator[Block]:
    """Yield what `_write_rows` has written."""
    parquet = import_pyarrow("pyarrow.parquet")
    try:
        with part.open("rb") as stream:
            file = parquet.ParquetFile(stream, page_checksum_verification=True)
            dtype = np.dtype(file.metadata.metadata[PRECISION_KEY.encode()].decode())
            for i in range(file.num_row_groups):
                for batch in file.read_row_group(i).to_batches():
                    ids, rows = batch.columns
                    place = rows.offset * rows.type.byte_width
                    size = len(rows) * rows.type.byte_width // dtype.itemsize
                    values = np.frombuffer(rows.buffers()[1], dtype, size, place)
                    yield ids.to_pylist(), values.reshape(len(rows), -1)
    except (import_pyarrow().ArrowException, OSError) as error:
        raise RankshotError(
            f"{part}: was damaged after it was written ({error}); remove it, and begin again"
        ) from None


def _list_beside(table: Path) -> Path:
    return table.with_suffix(".skipped.csv")


def _join_parts(folder: Path, table: Path, plan: ScoringPlan, run: PartsRun, key: str) -> None:
    """Make one table of the parts, and remove them; a file beside it says what was done."""

    def read_blocks() -> Iterator[Block]:
        for part in sorted(folder.rglob("*.parquet")):
            yield from _read_rows(part)

    write_skipped(str(table.parent), _list_beside(table).name, run.skipped)
    write_score_table(table, plan.classes.names, read_blocks, plan.model.kind)
    with replace_file(Path(f"{table}.json")) as stream:
        done = {"n_rows": run.n_rows, "counts": run.counts, "skipped": run.skipped}
        json.dump({"job": key, "table": fingerprint_files([table]), "run": done}, stream)
    shutil.rmtree(folder)


def _find_finished(table: Path, key: str, n_parts: int, *, is_begun: bool) -> PartsRun | None:
    """Return what the same job has done, if its table is there; refuse to replace another one.

    A file of which nothing is known is replaced, and a job that was begun goes on.
    """
    try:
        kept = json.loads(Path(f"{table}.json").read_text(encoding="utf-8"))
        is_same, is_as_written = kept["job"] == key, kept["table"] == fingerprint_files([table])
        n_rows, counts = kept["run"]["n_rows"], Counter(kept["run"]["counts"])
        skipped = [Skipped(*one) for one in kept["run"]["skipped"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if is_same and is_as_written:
        run = PartsRun(n_parts, n_resumed=n_parts, n_rows=n_rows)
        run.counts, run.skipped = counts, skipped
        return run
    if is_begun:
        return None
    why = "was changed after the job that wrote it" if is_same else "has the scores of another job"
    raise RankshotError(
        f"{table}: {why} (another model, preprocessing, classes or inputs); give another output, "
        "or begin again, which replaces it (again=True)"
    )
