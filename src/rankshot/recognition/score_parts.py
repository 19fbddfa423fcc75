"""A model over many inputs: scores in a folder of parts, or in one table."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from scipy.sparse import issparse

from rankshot.core.errors import NO_VALUE, InputError, RankshotError
from rankshot.core.files import has_pattern, hash_file, replace_file, require_own
from rankshot.core.tables import TABLE_ENDINGS, open_csv_writer
from rankshot.core.validation import require_choice, require_whole_number
from rankshot.jobs import (
    SUMMARY,
    JobRun,
    Part,
    Progress,
    list_outputs,
    list_parts,
    map_files,
    require_outside,
)
from rankshot.recognition.any_model import open_model
from rankshot.recognition.images import Preprocessing
from rankshot.recognition.inputs import (
    Entries,
    Input,
    Skipped,
    find_version,
    fingerprint_entries,
    open_inputs,
)
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
    Block,
    open_scores,
    require_score_file,
    write_score_table,
)

INPUT_ENDINGS = (".csv", ".jsonl", ".ndjson")
PART_INPUTS = 1000
"""The number of inputs of a part, about."""
MIN_PARTS, MIN_BATCHES = 8, 16
"""Parts are shorter if there would be fewer of them, but have at least this many batches: the
images of a part are decoded while the model computes, except those of its first batch. The number
of workers has no influence: with another one, a second start finds the same parts."""
BLOCK_SCORES = 2**20
"""Scores and features that are collected before they are written."""
SKIPPED = "_skipped.csv"
"""The file in a folder of parts that tells what was skipped."""
PROBABILITIES = "probabilities"
"""The count of rows whose scores are the logarithms of probabilities."""


def write_scores(
    model: object,
    inputs: object,
    output: str | Path,
    seen: Classes | None = None,
    *,
    preprocessing: Preprocessing | str | Path | Mapping[str, object] | None = None,
    features: bool = True,
    executor: Executor | None = None,
    workers: int | None = 1,
    batch_size: int = BATCH,
    on_error: str = "stop",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ScoringRun:
    r"""Write the scores of a model for any number of inputs, as a folder of parts or one table.

    If the job is interrupted, the same call continues with the parts that are not finished. (A
    function has no fingerprint by which it could be recognised: it is always run from the start.)
    Each worker process opens the model once.

    Parameters
    ----------
    model, seen, preprocessing, features, batch_size
        As for `rankshot.recognition.score`. CSV files have no features, and sparse features, such
        as word counts, are not written. Workers open the model themselves: with workers, it must be
        a file in a folder that all machines share, a name on the hub, or ``"efficientnet-lite0"``.
    inputs : str, Path, sequence or ndarray
        As for `rankshot.recognition.score`; they are divided into parts of up to about 1,000.
        Or, for a text model, a folder or a pattern of tables (.csv, .jsonl). Each table is a part;
        if it has no ids, they are ``PART:ROW``.
    output : str or Path
        A folder of Parquet parts, which `classify` takes: what was skipped is listed in
        ``_skipped.csv`` in it. Or one table (.csv, .parquet), into which the parts are joined at
        the end; what was skipped is then listed next to it, as in ``scores.skipped.csv``.
    executor, workers, overwrite, progress
        As for `rankshot.jobs.map_files`; by default, this process runs the model.
    on_error : {"stop", "skip"}
        With ``"skip"``, inputs that cannot be read are skipped and listed, and parts that fail are
        in ``failed``. With ``"stop"``, both end the job.

    Returns
    -------
    ScoringRun
        ``skipped`` lists the inputs without scores.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.recognition import write_scores
    >>> count = lambda texts: [[text.count(c) for c in "ab"] for text in texts]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     run = write_scores(count, ["banana", "bb"], path, ["a", "b"])
    ...     print(run.n_rows, path.read_text().split())
    2 ['id,a,b', '0,3.0,1.0', '1,0.0,2.0']
    """
    target = Path(output).absolute()
    is_table = target.suffix in TABLE_ENDINGS
    features = features and target.suffix != ".csv"
    plan = plan_scoring(model, seen, preprocessing, features=features)
    listed = _list_inputs(plan, inputs, batch_size)
    require_choice("on_error", on_error, ON_ERROR)
    require_score_file(
        target if is_table else target / "part.parquet", plan.classes.names, plan.model.kind
    )
    folder = Path(f"{target}.parts") if is_table else target
    if not is_table:
        require_outside(folder, listed.name, listed.parts)
    # A function cannot be recognised again.
    again = overwrite or plan.model.fingerprint is None
    settings = {"command": "score", **plan.identity, "batch": listed.batch_size}
    one_table = _OneTable(target, settings, listed.parts) if is_table else None
    if one_table:
        one_table.require_own(overwrite=overwrite)
        if not (again or folder.exists()) and (finished := one_table.find_finished()) is not None:
            if on_error == "stop":
                refuse_skipped(finished.skipped)
            return finished
    open_plan = _share_plan(plan, in_process=executor is None and workers == 1)
    task = _ScoreTask(
        open_plan, listed, on_error, _are_probabilities(plan, listed, on_error, folder)
    )
    jobs = map_files(
        task,
        [_as_task_source(part) for part in listed.parts],
        folder,
        settings,
        executor=executor,
        workers=workers,
        overwrite=again,
        on_error="stop" if is_table else on_error,
        progress=progress,
    )
    run = ScoringRun(**vars(jobs))
    if on_error == "stop":
        refuse_skipped(run.skipped)
    if not run.n_rows and not run.failed:
        for path in list_outputs(folder):
            path.unlink()
        raise nothing_scored(listed.name, run.skipped)
    if one_table:
        one_table.join_parts(folder, plan, run)
    else:
        _write_skipped(folder / SKIPPED, run.skipped)
    return run


@dataclass
class ScoringRun(JobRun):
    """The state of a job that writes scores, and its results.

    Attributes
    ----------
    n_parts, n_done, n_kept, n_new_rows, summaries, failed
        As in `rankshot.jobs.JobRun`.
    skipped : list of Skipped
        The inputs without scores, each with the reason.

    Examples
    --------
    >>> from rankshot.recognition import ScoringRun
    >>> run = ScoringRun(1, summaries={"a": {"skipped": [["x.png", "not an image (PNG)", True]]}})
    >>> run.count_reasons()
    Counter({'not an image': 1})
    """

    @property
    def skipped(self) -> list[Skipped]:
        """The inputs without scores, each with the reason."""
        every = [self.summaries[name].get("skipped", []) for name in sorted(self.summaries)]
        return [Skipped(*one) for some in every for one in some]

    def count_reasons(self, *, is_input: bool = True) -> Counter[str]:
        """Count the reasons why inputs (``is_input``), or other files, were skipped."""
        # Some reasons name sizes and the like, and would all be different.
        return Counter(
            one.reason.partition(" (")[0] for one in self.skipped if one.is_input == is_input
        )


# -------------------------------------------------------------------- the parts of the inputs


class InputParts(NamedTuple):
    """Inputs that were listed, once, as the parts of a job."""

    name: str
    parts: Sequence[Part]
    batch_size: int
    are_tables: bool = False


def _list_inputs(plan: ScoringPlan, inputs: object, batch_size: int) -> InputParts:
    """The inputs as parts: tables of texts, or lists, each of which begins with a batch."""
    require_whole_number("batch_size", batch_size)
    if isinstance(inputs, (str, Path)) and _is_dataset(str(inputs), plan):
        parts = list_parts(inputs, INPUT_ENDINGS)
        return InputParts(str(inputs), parts, batch_size, are_tables=True)
    found = open_inputs(inputs, plan.model.takes)
    parts = _divide(iter(found), batch_size)
    if not any(isinstance(one, Input) for one in found):
        raise nothing_scored(found.name, [one for one in found if isinstance(one, Skipped)])
    return InputParts(found.name, parts, batch_size)


def _divide(entries: Entries, batch_size: int) -> list[Part]:
    """Return entries as parts, with numbers as names."""
    first = list(islice(entries, MIN_PARTS * PART_INPUTS))
    wanted = min(PART_INPUTS, max(MIN_BATCHES * batch_size, -(-len(first) // MIN_PARTS)))
    size = -(-wanted // batch_size) * batch_size
    entries = chain(first, entries)
    parts: list[Part] = []
    while group := list(islice(entries, size)):
        parts.append(_make_part(f"part-{len(parts):06d}", group))
    return parts


def _is_dataset(inputs: str, plan: ScoringPlan) -> bool:
    """Return whether inputs are a dataset of tables, each of which is a part."""
    if not has_pattern(inputs):
        # A folder of images, for a text model, is refused by `open_inputs`.
        return plan.model.takes == "texts" and any(
            path.suffix in INPUT_ENDINGS for path in Path(inputs).rglob("*.*")
        )
    if plan.model.takes != "texts":
        raise InputError(
            "inputs",
            NO_VALUE,
            "is a pattern of tables, which only text models accept",
            where=str(inputs),
            hint="give images as a folder, or as a list of paths (.txt, .csv, .jsonl)",
        )
    return True


def _make_part(name: str, entries: Sequence[Input | Skipped]) -> Part:
    """Return a part with some entries; its version changes with their texts, or sizes and times."""
    absolute: list[Input | Skipped] = []
    for one in entries:
        entry = one
        if isinstance(one, Input) and isinstance(one.value, Path):
            entry = Input(one.id, one.value.absolute())
            try:
                entry.value.stat()
            except OSError as error:
                entry = Skipped(one.id, error.strerror or "cannot be read")
        absolute.append(entry)
    return Part(name, tuple(absolute), fingerprint_entries(absolute, find_version))


def _as_task_source(part: Part) -> Part:
    source = part.source.absolute() if isinstance(part.source, Path) else part.source
    return Part(part.name, (part.name, source), part.version)


# -------------------------------------------------------------------- the task


def _share_plan(plan: ScoringPlan, *, in_process: bool) -> Callable[[], ScoringPlan]:
    """What gives workers the plan: they open the model themselves."""
    if in_process:
        return lambda: plan
    if plan.model.source is None:
        rule = "is an object in memory, but workers open the model themselves"
        raise InputError("model", plan.model.name, rule, hint="give a file or a name")
    own = plan.model.preprocessing if plan.model.prepare is None else None
    return _PlanOpener(plan.model.source, own, plan.classes.names, plan.identity)


@dataclass(frozen=True)
class _PlanOpener:
    """Opens the model in a worker process, which keeps it."""

    source: str
    preprocessing: Preprocessing | None
    names: tuple[str, ...]
    identity: Mapping[str, object]

    def __call__(self) -> ScoringPlan:
        key = json.dumps(self.identity, sort_keys=True)
        with _opening:
            if key not in _plans:
                _plans.clear()
                _plans[key] = self.open()
            return _plans[key]

    def open(self) -> ScoringPlan:
        opened = set_preprocessing(open_model(self.source), self.preprocessing)
        classes = ClassLabels.from_names(self.names)
        plan = ScoringPlan(opened, classes, features=bool(self.identity["features"]))
        for what, value in plan.identity.items():
            if value != self.identity[what]:
                raise InputError("model", self.source, f"has another {what} here than in the job")
        return plan


_opening = Lock()
_plans: dict[str, ScoringPlan] = {}
"""The model of the last job in this process, by its identity."""


@dataclass(frozen=True)
class _ScoreTask:
    """Writes the scores of one part of the inputs."""

    open_plan: Callable[[], ScoringPlan]
    listed: InputParts
    on_error: str
    has_probabilities: bool | None

    def __getstate__(self) -> dict[str, Any]:
        # A worker needs its own part alone.
        return {**self.__dict__, "listed": self.listed._replace(parts=())}

    def __call__(self, source: tuple[str, Any], target: Path, metadata: dict[str, str]) -> None:
        plan = replace(self.open_plan(), has_probabilities=self.has_probabilities)
        skipped: list[Skipped] = []

        def blocks() -> Generator[Block, None, None]:
            n_rows = 0
            entries = _read_entries(source, self.listed)
            for ids, scores in plan.score(
                entries, self.listed.batch_size, self.on_error, skipped, BLOCK_SCORES
            ):
                n_rows += len(ids)
                # Sparse features would be thousands of zeros in a file.
                yield ids, scores.with_blocks() if issparse(scores.features) else scores
            counts = {PROBABILITIES: n_rows} if plan.has_probabilities else {}
            summary = {"n_rows": n_rows, "counts": counts, "skipped": skipped}
            metadata[SUMMARY] = json.dumps(summary)

        with closing(blocks()) as found:
            write_score_table(target, plan.classes.names, found, plan.model.kind, metadata)


def _read_entries(source: tuple[str, Any], listed: InputParts) -> Entries:
    name, content = source
    if listed.are_tables:
        return iter(open_inputs(content, "texts", f"{name}:"))
    return _require_files(content)


def _require_files(entries: Iterable[Input | Skipped]) -> Entries:
    for one in entries:
        if isinstance(one, Input) and isinstance(one.value, Path) and not one.value.exists():
            raise InputError(
                "inputs",
                NO_VALUE,
                "cannot be found, although it existed when the job began",
                where=str(one.value),
                hint="inputs must be in a folder that all machines share",
            )
        yield one


def _are_probabilities(
    plan: ScoringPlan, listed: InputParts, on_error: str, folder: Path
) -> bool | None:
    """Return, for all parts, whether the first scores are probabilities."""
    for footer in list_outputs(folder).values():
        summary = json.loads(footer.get(SUMMARY, "{}"))
        if summary.get("n_rows"):
            return PROBABILITIES in summary["counts"]
    plan = replace(plan, has_probabilities=None)
    for part in listed.parts:
        entries = _read_entries((part.name, part.source), listed)
        # Another part may be good, and the job names the bad ones.
        with (
            suppress(*[RankshotError] if on_error == "skip" else []),
            closing(plan.run(entries, listed.batch_size, on_error)) as batches,
        ):
            while plan.has_probabilities is None and next(batches, None) is not None:
                pass
        if plan.has_probabilities is not None:
            break
    return plan.has_probabilities


# -------------------------------------------------------------------- one table


class _OneTable(NamedTuple):
    """A table of all inputs; a file beside it says which job wrote it, from which inputs."""

    path: Path
    settings: Mapping[str, object]
    parts: Sequence[Part]

    @property
    def files(self) -> tuple[Path, Path]:
        """The table, and the list of what was skipped."""
        return self.path, self.path.with_suffix(".skipped.csv")

    @property
    def manifest(self) -> Path:
        """What the table is from, and the hashes of the files."""
        return Path(f"{self.path}.json")

    def require_own(self, *, overwrite: bool) -> None:
        """Refuse to replace files that a person has written or changed."""
        for path in self.files:
            require_own(path, self.manifest, overwrite=overwrite)

    @property
    def key(self) -> str:
        """What the table depends on."""
        versions = [[part.name, part.version] for part in self.parts]
        return sha256(json.dumps([self.settings, versions], sort_keys=True).encode()).hexdigest()

    def join_parts(self, folder: Path, plan: ScoringPlan, run: ScoringRun) -> None:
        """Make the table of the parts in a folder, and remove these."""
        path, skipped = self.files
        batches = open_scores(folder).batches(features=True)
        blocks = (([] if ids is None else ids.tolist(), scores) for ids, scores in batches)
        _write_skipped(skipped, run.skipped)
        write_score_table(path, plan.classes.names, blocks, plan.model.kind)
        files = {file.name: hash_file(file) for file in self.files if file.exists()}
        about = {"key": self.key, "files": files, "summaries": run.summaries}
        with replace_file(self.manifest) as stream:
            json.dump(about, stream)
        shutil.rmtree(folder)

    def find_finished(self) -> ScoringRun | None:
        """What the same job has done, if its table is there; that of another job is refused."""
        if not self.path.exists():
            return None
        try:
            kept = json.loads(self.manifest.read_text(encoding="utf-8"))
            if kept["key"] == self.key:
                n = len(self.parts)
                return ScoringRun(n, n_kept=n, summaries=kept["summaries"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise InputError(
            "output",
            NO_VALUE,
            "exists, and is not the result of this job",
            where=str(self.path),
            hint="give another output",
            choices={"overwrite": True},
        )


def _write_skipped(path: Path, skipped: Sequence[Skipped]) -> None:
    """List what was skipped, and why; remove an older list if nothing was."""
    if not skipped:
        path.unlink(missing_ok=True)
        return
    with replace_file(path) as stream:
        writer = open_csv_writer(stream)
        writer.writerow(["id", "reason", "input"])
        writer.writerows((one.id, one.reason, "yes" if one.is_input else "no") for one in skipped)
