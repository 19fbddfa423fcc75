"""Single inputs of a table of scores, by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

import numpy as np

from rankshot.cli.head_options import ScoresAre, as_scores_of, told_from
from rankshot.ranking.errors import RankshotError, listed
from rankshot.zeroshot.score_files import ScoreTable
from rankshot.zeroshot.scores import Scores


def inputs_named(
    table: ScoreTable, ids: Iterable[str], are: ScoresAre
) -> Iterator[tuple[str, Scores]]:
    """Yield the scores of some inputs, in the order of the table.

    Without ids in the table, an input is named by the number of its row.
    """
    wanted = set(ids)
    numbers = count()
    for batch in table.batches():
        are = told_from(batch.values, table) if are is ScoresAre.AUTO else are
        names = [str(next(numbers)) for _ in range(len(batch))]
        names = names if batch.ids is None else batch.ids.tolist()
        rows = [row for row, name in enumerate(names) if name in wanted]
        part = as_scores_of(batch.values[rows], table, are)
        for place, row in enumerate(rows):
            wanted.discard(names[row])
            yield names[row], part[np.array([place])]
        if not wanted:
            return
    raise RankshotError(f"{table.path}: there is no input {listed(sorted(wanted))}")


def first_names(table: ScoreTable, n: int) -> list[str]:
    """Return the names of the first inputs."""
    batch = next(table.batches())
    names = map(str, range(len(batch))) if batch.ids is None else batch.ids.tolist()
    return list(names)[:n]
