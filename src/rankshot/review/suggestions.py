"""The inputs whose labels help most, as a table to fill in."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np

from rankshot.core.errors import InputError
from rankshot.core.files import replace_file
from rankshot.core.tables import ID, LABEL, iterate_rows, open_csv_writer
from rankshot.core.validation import require_whole_number
from rankshot.recognition.run_folder import Run
from rankshot.zeroshot.suggestions import suggest

GUESS, PROBABILITY = "guess", "probability"


def suggest_for_run(run: Run, path: Path, number: int = 20) -> int:
    """Add inputs of a run to a table to fill in; return how many of its rows have no label.

    All rows that the table has stay as they are, with all their columns. It gets rows for inputs
    with known labels, and for suggested inputs until ``number`` rows have no label.

    Parameters
    ----------
    run : Run
        What `open_run` has read.
    path : Path
        A CSV file, with columns id and label if it exists.
    number : int
        The number of rows without a label, or fewer if there are fewer inputs.
    """
    require_whole_number("number", number)
    scores, ids, known = run.knowledge.batch, [str(name) for name in run.ids], run.labelled
    assert scores is not None  # noqa: S101 (a run always has scores)
    columns, rows = [ID, GUESS, PROBABILITY, LABEL], []
    if path.exists():
        with closing(iterate_rows(path)) as lines:
            columns, *rows = [cells for _, cells in lines]
        for name in (ID, LABEL):
            if name not in columns:
                hint = "it is not replaced; give another name"
                raise InputError("csv", str(path), f"has no column {name}", hint=hint)
    id_at, label_at = columns.index(ID), columns.index(LABEL)
    listed = {row[id_at] for row in rows}
    n_open = sum(not row[label_at].strip() for row in rows)
    chosen = [row for row, name in enumerate(ids) if name in known and name not in listed]
    left = np.array([row for row, name in enumerate(ids) if name not in listed | {*known}], int)
    if left.size and number > n_open:
        chosen += suggest(scores, number - n_open, among=left).tolist()
    best = run.proba.max(axis=1)
    for row in chosen:
        values = {ID: ids[row], GUESS: str(run.labels[row]), PROBABILITY: f"{best[row]:.3f}"}
        values[LABEL] = known.get(ids[row], "")
        rows.append([values.get(name, "") for name in columns])
    n_open = sum(not row[label_at].strip() for row in rows)
    if n_open == 0:
        raise InputError("csv", str(path), "has a label for every input")
    with replace_file(path) as stream:
        open_csv_writer(stream).writerows([columns, *rows])
    return n_open
