"""A model over many inputs: scores in one table, or in a folder of parts."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path

from scipy.sparse import issparse

from rankshot.core.files import replace_file, require_own
from rankshot.core.tables import TABLE_ENDINGS, open_csv_writer
from rankshot.jobs import (
    SUMMARY,
    JobRun,
    Part,
    find_version,
    map_files,
    require_outside,
    write_table,
)
from rankshot.recognition.images import Preprocessing
from rankshot.recognition.inputs import Entries, Input, Model, Skipped, open_inputs
from rankshot.recognition.scoring import (
    BATCH,
    Classes,
    nothing_scored,
    prepare_model,
    run_model,
)
from rankshot.zeroshot.tables import Block, require_score_file, write_score_table

PART_INPUTS = 1000
"""The number of inputs of a part, or a few more: a part ends with a whole batch."""
BLOCK_SCORES = 2**20
"""Scores and features that are collected before they are written."""
SKIPPED = "_skipped.csv"
"""The file in a folder of parts that tells what was skipped."""


def write_scores(
    model: object,
    inputs: object,
    output: str | Path,
    seen: Classes | None = None,
    *,
    preprocessing: Preprocessing | str | Path | Mapping[str, object] | None = None,
    features: bool = True,
    batch_size: int = BATCH,
    on_error: str = "stop",
    overwrite: bool = False,
) -> JobRun:
    r"""Write the scores of a model for any number of inputs, as one table or a folder of parts.

    If the output is a folder, a job that was interrupted continues with the parts that are not
    finished when the same call is made again. (A function has no fingerprint by which it could be
    recognised: it is always run from the start.)

    Parameters
    ----------
    model, seen, preprocessing, features, batch_size
        As for `rankshot.recognition.score`. CSV files have no features, and sparse features, such
        as word counts, are not written.
    inputs : str, Path, sequence or ndarray
        As for `rankshot.recognition.score`.
    output : str or Path
        One table (.csv, .parquet); what was skipped is then listed next to it, as in
        ``scores.skipped.csv``. Or a folder of Parquet parts of about 1,000 inputs, which
        `classify` takes: what was skipped is listed in ``_skipped.csv`` in it.
    on_error : {"stop", "skip"}
        With ``"skip"``, inputs that cannot be read are skipped and listed, and parts that fail are
        in ``failed``. With ``"stop"``, both end the job.
    overwrite : bool
        Replace a table, or the parts of another job.

    Returns
    -------
    JobRun
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
    ready = prepare_model(model, seen, preprocessing, features=features)
    require_score_file(target if is_table else target / "part.parquet", ready.kind)
    entries = open_inputs(inputs, ready.takes)
    task = partial(_write_scores, ready, batch_size, on_error)
    if is_table:
        listed = target.with_suffix(".skipped.csv")
        for path in (target, listed):
            require_own(path, overwrite=overwrite)
        run = write_table(partial(task, required=inputs), entries, target)
        _write_skipped(listed, run)
        return run
    parts = _divide(entries, batch_size)
    require_outside(target, inputs)
    # The first batch says for all parts whether scores are probabilities.
    every = chain.from_iterable(part.source for part in parts)
    with closing(run_model(ready, every, batch_size, "skip", [], 0)) as blocks:
        next(blocks, None)
    run = map_files(
        task,
        parts,
        target,
        {
            "command": "score",
            **ready.about,
            "weights": ready.fingerprint,
            "classes": sha256(repr(ready.classes.names).encode()).hexdigest(),
            "features": ready.run_with_features is not None,
            "batch": batch_size,
        },
        workers=1,
        # A function cannot be recognised again.
        overwrite=overwrite or ready.fingerprint is None,
        on_error=on_error,
    )
    if not run.n_rows and not run.failed:
        raise nothing_scored(inputs, [Skipped(*one) for one in run.skipped])
    _write_skipped(target / SKIPPED, run)
    return run


def _write_skipped(path: Path, run: JobRun) -> None:
    """List what was skipped, and why; remove an older list if nothing was."""
    if not run.skipped:
        path.unlink(missing_ok=True)
        return
    with replace_file(path) as stream:
        writer = open_csv_writer(stream)
        writer.writerow(["id", "reason", "input"])
        for name, reason, is_input in run.skipped:
            writer.writerow((name, reason, "yes" if is_input else "no"))


# -------------------------------------------------------------------- the parts of the inputs


def _divide(entries: Entries, batch_size: int) -> list[Part]:
    """Return entries as parts, with numbers as names; each begins with a batch."""
    size = -(-PART_INPUTS // batch_size) * batch_size
    parts: list[Part] = []
    while group := list(islice(entries, size)):
        parts.append(_make_part(f"part-{len(parts):06d}", group))
    return parts


def _make_part(name: str, entries: Sequence[Input | Skipped]) -> Part:
    """Return a part with some entries; its version changes with their texts, or sizes and times."""
    digest = sha256()
    for one in entries:
        about: object = one
        if isinstance(one, Input) and isinstance(one.value, Path):
            about = one.id, find_version(one.value) if one.value.exists() else ""
        elif isinstance(one, Input) and hasattr(one.value, "tobytes"):
            about = one.id, sha256(one.value.tobytes()).hexdigest()
        digest.update(repr(about).encode(errors="surrogatepass"))
    return Part(name, entries, digest.hexdigest())


def _write_scores(
    model: Model,
    batch_size: int,
    on_error: str,
    entries: Iterable[Input | Skipped],
    target: Path,
    metadata: dict[str, str],
    required: object = None,
) -> None:
    """Write scores to a file; if inputs are ``required``, an error says that there are none."""

    def blocks() -> Generator[Block, None, None]:
        n_rows, skipped = 0, list[Skipped]()
        found = run_model(model, iter(entries), batch_size, on_error, skipped, BLOCK_SCORES)
        with closing(found):
            for ids, scores in found:
                n_rows += len(ids)
                # Sparse features would be thousands of zeros in a file.
                yield ids, scores.with_blocks() if issparse(scores.features) else scores
        if required is not None and not n_rows:
            raise nothing_scored(required, skipped)
        metadata[SUMMARY] = json.dumps({"n_rows": n_rows, "skipped": skipped})

    with closing(blocks()) as found:
        write_score_table(target, model.classes.names, found, model.kind, metadata)
