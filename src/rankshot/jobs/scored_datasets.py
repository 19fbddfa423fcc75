"""`score`: a model over many inputs, on processes or a cluster, into a dataset of scores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

from rankshot.core.errors import RankshotError, format_count
from rankshot.core.files import replace_file
from rankshot.core.validation import require_choice, require_whole_number
from rankshot.inference.inputs import JSON_ENDINGS, Entries, Input, Skipped, open_inputs
from rankshot.inference.models import open_model
from rankshot.inference.preprocessing import Preprocessing
from rankshot.inference.score_runs import NAMES, describe_plan, find_change, write_skipped
from rankshot.inference.scoring import (
    BATCH,
    ON_ERROR,
    Classes,
    ScoringPlan,
    nothing_scored,
    plan_scoring,
    set_preprocessing,
)
from rankshot.jobs.connections import (
    Notify,
    count_slots,
    errors_of_connection,
    import_distributed,
    require_one_way,
    require_workers,
    use_workers,
)
from rankshot.jobs.manifests import fingerprint, refuse_inside
from rankshot.jobs.part_jobs import PartsRun, run_parts
from rankshot.jobs.part_tasks import JobError, Work, format_counts, load_once
from rankshot.jobs.storage import (
    PackedPart,
    Part,
    as_address,
    fetch_part,
    follow_links,
    has_pattern,
    is_address,
    join_address,
    list_files,
    list_parts,
    new_part,
    remove_files,
)
from rankshot.sources.names.labels import ClassLabels
from rankshot.zeroshot.files.score_tables import Block, require_score_file, write_score_table

PART_INPUTS = 1000
"""The number of inputs of a part, about."""
FEW_PARTS = 64
"""Parts are shorter if there would be fewer of them. The number of workers has no influence: with
another one, a second start finds the same parts."""
GPU = "GPU"
"""The resource that workers with a GPU declare, as in ``dask worker --resources GPU=1``."""
FIRST_PARTS = 5
"""What the first scores tell is found in the first of so many parts that has any."""
SKIPPED, BESIDE = "skipped: ", "not inputs: "
"""How the names of counts begin: a reason comes after it."""
SKIPPED_FOLDER = "_skipped"
"""In the output: a list of the skipped inputs of each part that has some."""


def score(
    model: Any,
    inputs: str | Path,
    output: str | Path,
    classes: Classes | None = None,
    *,
    preprocessing: Preprocessing | str | Path | Mapping[str, Any] | None = None,
    client: Any = None,
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
    r"""Write the scores of a model for many inputs as a dataset, which `classify` takes.

    Each worker process of Dask opens the model once. If workers declare the resource ``GPU``, as
    in ``dask worker --resources GPU=1``, only these are used, with one part at a time per GPU. The
    scores are those of `score_to_file` with the same batch size. Parts are written, and the job
    goes on after it was stopped, as in `classify`.

    Parameters
    ----------
    model : str or Path
        A model that the workers can open: a file in a folder that all machines share, a name on
        the hub, or ``"efficientnet-lite0"``.
    inputs : str or Path
        A folder of pictures, a list or a table, as for `rankshot.inference.score`, in a folder
        that all machines share; they are divided into parts of about 1,000 inputs. Or, for a model
        of texts, a dataset of tables (.csv, .jsonl): a folder, a pattern, or an address such as
        ``s3://bucket/texts``. Each table is a part; if it has no ids, they are ``PART:ROW``.
    output : str or Path
        A folder, or its address. What was skipped is listed in ``_skipped`` in it.
    classes, preprocessing, batch_size, column, id_column
        As for `rankshot.inference.score`.
    client, scheduler, workers, again, update, progress, notify
        As for `classify`.
    on_error : {"raise", "skip"}
        With ``"skip"``, inputs that cannot be read are skipped, and parts that cannot be done are
        listed in ``_failed.csv``. With ``"raise"``, both end the job.

    Returns
    -------
    PartsRun
        Its ``counts`` are the reasons of what was skipped.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import distributed, skops.io
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> from rankshot.jobs import score
    >>> pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    >>> pipeline = pipeline.fit(["play a song", "rain or sun"], ["music", "weather"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     skops.io.dump(pipeline, folder + "/intents.skops")
    ...     texts = Path(folder, "texts")
    ...     texts.mkdir()
    ...     for month in ("may", "june"):
    ...         _ = (texts / f"{month}.csv").write_text("text\nplay it\nwill it rain\n")
    ...     with distributed.Client(processes=False, dashboard_address="127.0.0.1:0") as client:
    ...         run = score(folder + "/intents.skops", texts, folder + "/scores", client=client)
    ...     parts = sorted(path.name for path in Path(folder, "scores").glob("*.parquet"))
    >>> run.n_rows, parts
    (4, ['june.parquet', 'may.parquet'])
    """
    require_choice("on_error", on_error, ON_ERROR)
    require_whole_number("batch_size", batch_size)
    require_one_way(client, scheduler, workers)
    plan = model if isinstance(model, ScoringPlan) else plan_scoring(model, classes, preprocessing)
    opened, target = plan.model, as_address(output)
    if opened.source is None:
        raise RankshotError(
            f"{opened.name}: workers open the model themselves; give a file or a name, not an "
            "object in memory"
        )
    require_score_file(Path(target, "part.parquet"), plan.classes.names, opened.kind)
    is_listed = not _is_dataset(str(inputs), plan)
    parts: Sequence[Part]
    if is_listed:
        parts = _list_inputs(inputs, plan, target, batch_size, column, id_column)
    else:
        parts = list_parts(as_address(inputs), (".csv", *JSON_ENDINGS))
        refuse_inside(target, as_address(inputs), parts)
    job = _ScoreJob(
        model=opened.source,
        preprocessing=opened.preprocessing if opened.prepare is None else None,
        plan=describe_plan(plan),
        is_listed=is_listed,
        batch_size=batch_size,
        on_error=on_error,
        column=column,
        id_column=id_column,
        output=target,
    )
    content = json.dumps(plan.classes.names).encode()
    notify(f"{inputs}: {format_count(len(parts), 'part')}")
    with use_workers(client, scheduler, workers, len(parts), target, notify) as found:
        require_workers(found, None, notify)
        resource = GPU if count_slots(found, GPU) else None
        run = run_parts(
            found,
            _try_first_batch(found, job, content, parts, resource),
            content,
            parts,
            target,
            again=again,
            update=update,
            stop_on_error=on_error == "raise",
            resource=resource,
            progress=progress,
            notify=notify,
        )
    lists = join_address(target, SKIPPED_FOLDER)
    # Lists of parts that have vanished since an earlier start.
    remove_files(lists, sorted({*list_files(lists)} - {f"{part.stem}.csv" for part in parts}))
    return run


def _is_dataset(inputs: str, plan: ScoringPlan) -> bool:
    """Return whether inputs are a dataset of tables, each of which is a part."""
    if not (is_address(inputs) or has_pattern(inputs)):
        return plan.model.takes == "texts" and Path(inputs).is_dir()
    if plan.model.takes != "texts":
        raise RankshotError(
            f"{inputs}: datasets of tables are for models of texts; give pictures as a folder, or "
            "as a list of paths (.txt, .csv, .jsonl), that all machines share"
        )
    return True


# -------------------------------------------------------------------- parts of listed inputs


def _list_inputs(
    inputs: str | Path,
    plan: ScoringPlan,
    output: str,
    batch_size: int,
    column: str | None,
    id_column: str | None,
) -> list[PackedPart]:
    """Return lists of inputs as parts, each of which begins with a batch."""
    if Path(inputs).is_dir() and Path(follow_links(output)).is_relative_to(Path(inputs).resolve()):
        raise RankshotError(f"{output}: is inside of {inputs}; give an output outside of it")
    found = open_inputs(inputs, plan.model.takes, column, id_column)
    lines: Iterator[str] = map(_format_entry, found)
    first = list(islice(lines, FEW_PARTS * PART_INPUTS))
    if not first:
        raise nothing_scored(found, [])
    wanted = min(PART_INPUTS, -(-len(first) // FEW_PARTS))
    size = -(-wanted // batch_size) * batch_size
    lines = chain(first, lines)
    texts = iter(lambda: "".join(islice(lines, size)), "")
    return [PackedPart.pack(f"part-{number:06d}.jsonl", text) for number, text in enumerate(texts)]


def _format_entry(entry: Input | Skipped) -> str:
    """Return a line of JSON; for a file, with its size and time, so that changes are noticed."""
    found: dict[str, Any] = entry._asdict()
    if isinstance(entry, Input) and isinstance(entry.value, Path):
        path = entry.value.absolute()
        found = {"id": entry.id, "path": str(path)}
        if path.exists():
            status = path.stat()
            found |= {"size": status.st_size, "time": status.st_mtime_ns}
    return json.dumps(found) + "\n"


def _parse_entries(path: Path) -> Entries:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            found = json.loads(line)
            if "reason" in found:
                yield Skipped(**found)
            elif "path" not in found:
                yield Input(**found)
            elif "size" in found and not Path(found["path"]).exists():
                raise JobError(
                    f"{found['path']}: a worker cannot find it, but it was there when the job "
                    "began; inputs must be in a folder that all machines share"
                )
            else:
                yield Input(found["id"], Path(found["path"]))


# -------------------------------------------------------------------- on a worker


class _Opened(NamedTuple):
    """A plan, and a lock: a model does one part at a time, on all its cores or its GPU."""

    plan: ScoringPlan
    lock: Any


_opened: dict[str, _Opened] = {}
"""The last model of this process."""
_opening = Lock()


@dataclass(frozen=True)
class _ScoreJob:
    """What the workers do with a part of the inputs; see `PartJob`."""

    model: str
    preprocessing: Preprocessing | None
    plan: Mapping[str, Any]
    is_listed: bool
    batch_size: int
    on_error: str
    column: str | None
    id_column: str | None
    output: str
    has_probabilities: bool | None = None

    @property
    def description(self) -> Mapping[str, Any]:
        return {
            "command": "score",
            **{NAMES[key]: value for key, value in self.plan.items() if key in NAMES},
            "batch": self.batch_size,
            "on error": self.on_error,
            "column": self.column,
            "id column": self.id_column,
            "probabilities": self.has_probabilities,
        }

    def load(self, content: bytes) -> _Opened:
        key = fingerprint(self.plan)
        with _opening:
            if key not in _opened:
                _opened.clear()
                _opened[key] = _Opened(self._open(json.loads(content)), Lock())
            return _opened[key]

    def _open(self, names: list[str]) -> ScoringPlan:
        opened = set_preprocessing(open_model(self.model), self.preprocessing)
        own = tuple((name,) for name in names)
        plan = ScoringPlan(
            opened, ClassLabels(tuple(names), (None,) * len(names), own, tuple(names))
        )
        if changed := find_change(self.plan, describe_plan(plan)):
            raise RankshotError(f"{self.model}: not the same {changed} as where the job began")
        return plan

    def run(
        self, loaded: _Opened, part: Part, source: Path, target: Path, metadata: dict[str, str]
    ) -> Work:
        skipped: list[Skipped] = []
        counts: dict[str, int] = {}
        plan = replace(loaded.plan, has_probabilities=self.has_probabilities)
        batches = plan.run(self.read(part, source), self.batch_size, self.on_error)

        def blocks() -> Iterator[Block]:
            for batch in batches:
                skipped.extend(batch.skipped)
                yield batch.ids, batch.values
            counts.update(self._list_skipped(part, skipped))
            metadata.update(format_counts(counts))

        begin = perf_counter()
        with loaded.lock, closing(batches):
            waited = perf_counter()
            n_rows = write_score_table(
                target, plan.classes.names, blocks, metadata=metadata, allow_empty=True
            )
            seconds = {"waiting": waited - begin, "scoring": perf_counter() - waited}
        return Work(n_rows, counts, seconds)

    def read(self, part: Part, source: Path) -> Entries:
        """Yield the inputs of a part."""
        if self.is_listed:
            return _parse_entries(source)
        prefix = f"{part.stem}:"
        return iter(open_inputs(source, "texts", self.column, self.id_column, prefix))

    def _list_skipped(self, part: Part, skipped: Sequence[Skipped]) -> dict[str, int]:
        """Write what was skipped beside the parts; return how often each reason occurs."""
        name = f"{SKIPPED_FOLDER}/{part.stem}.csv"
        if not skipped:
            remove_files(self.output, [name])
            return {}
        with new_part(join_address(self.output, name)) as path, replace_file(path) as stream:
            reasons, others = write_skipped(stream, skipped)
        named = {f"{SKIPPED}{reason}": n for reason, n in reasons.items()}
        return named | {f"{BESIDE}{reason}": n for reason, n in others.items()}


def _score_first_batch(job: _ScoreJob, content: bytes, part: Part) -> bool | None:
    """Return whether the scores of the first inputs are probabilities; None without any scores."""
    opened: _Opened = load_once(job, fingerprint(job.description), content)
    plan = replace(opened.plan)
    with (
        opened.lock,
        fetch_part(part) as source,
        closing(plan.run(job.read(part, source), job.batch_size, job.on_error)) as batches,
    ):
        while plan.has_probabilities is None and next(batches, None) is not None:
            pass
    return plan.has_probabilities


def _try_first_batch(
    client: Any, job: _ScoreJob, content: bytes, parts: Sequence[Part], resource: str | None
) -> _ScoreJob:
    """Return the job with what the first scores tell: whether all of them are probabilities.

    If a worker has no access to the model or to the inputs, or if no scores can be had, this is
    reported before anything is written.
    """
    problem: RankshotError | None = None
    resources = None if resource is None else {resource: 1}
    for part in parts[:FIRST_PARTS]:
        task = client.submit(
            _score_first_batch, job, content, part, resources=resources, pure=False
        )
        try:
            found = task.result()
        except RankshotError as error:
            if isinstance(error, JobError) or job.on_error == "raise":
                raise
            # Another part may be good, and the job names the bad ones.
            problem = problem or error
        except import_distributed().KilledWorker:
            raise RankshotError(
                f"{job.model}: workers died when they ran it; does it fit into their memory?"
            ) from None
        except errors_of_connection() as error:
            raise RankshotError(f"the scheduler is lost ({error}); nothing was begun") from None
        else:
            if found is not None:
                return replace(job, has_probabilities=found)
    if problem is not None:
        raise problem
    return job
