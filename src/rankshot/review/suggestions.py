"""The inputs whose labels help most, as a table to fill in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError
from rankshot.core.files import replace_file
from rankshot.core.tables import ID, LABEL, iterate_rows, open_csv_writer
from rankshot.core.validation import require_whole_number
from rankshot.recognition.run_folder import Run
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.suggestions import choose_diverse

GUESS, PROBABILITY = "guess", "probability"


def add_suggestions(
    path: Path,
    ids: Sequence[str],
    scores: Scores,
    guesses: Sequence[str] | NDArray[np.str_],
    proba: Sequence[float] | NDArray[np.floating],
    *,
    number: int = 20,
    labels: Mapping[str, str] | None = None,
) -> int:
    """Add inputs to label to a table; return how many of its rows have no label.

    All rows that the table has stay as they are, with all their columns. It gets rows for inputs
    with known labels, and for suggested inputs until ``number`` rows have no label.

    Parameters
    ----------
    path : Path
        A CSV file, with columns id and label if it exists.
    ids : sequence of str
        The ids of all inputs.
    scores : Scores
        What tells the inputs apart.
    guesses, proba
        The most probable class of each input, and its probability.
    number : int
        The number of rows without a label, or fewer if there are fewer inputs.
    labels : mapping of id to label, optional
        Labels that are known from elsewhere.
    """
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
    own = {row[id_at] for row in rows if row[label_at].strip()}
    known = dict(labels or {})
    left = np.array([row for row, name in enumerate(ids) if name not in listed | {*known}], int)
    n_open = len(rows) - len(own)
    chosen = [row for row, name in enumerate(ids) if name in known and name not in listed]
    if left.size and number > n_open:
        chosen += choose_diverse(scores, left, number - n_open).tolist()
    for row in chosen:
        values = {ID: ids[row], GUESS: str(guesses[row]), PROBABILITY: f"{proba[row]:.3f}"}
        values[LABEL] = known.get(ids[row], "")
        rows.append([values.get(name, "") for name in columns])
    with replace_file(path) as stream:
        open_csv_writer(stream).writerows([columns, *rows])
    return sum(not row[label_at].strip() for row in rows)


def suggest_for_run(run: Run, path: Path, number: int = 20) -> int:
    """Add inputs of a run to a table to fill in; return how many of its rows have no label.

    Parameters
    ----------
    run : Run
        What `open_run` has read.
    path : Path
        A CSV file; rows that it has stay.
    number : int
        How many rows without a label the table will have.
    """
    require_whole_number("number", number)
    scores, ids = run.knowledge.batch, [str(name) for name in run.ids]
    assert scores is not None  # noqa: S101 (a run always has scores)
    best = run.proba.max(axis=1)
    n = add_suggestions(path, ids, scores, run.labels, best, number=number, labels=run.labelled)
    if n == 0:
        raise InputError("csv", str(path), "has a label for every input")
    return n
