"""Single inputs of a table of scores, by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rankshot.cli.score_kinds import ScoresAre, as_scores_of, told_from
from rankshot.ranking.errors import RankshotError, listed
from rankshot.zeroshot.score_files import ScoreTable
from rankshot.zeroshot.scores import Scores


def inputs_named(
    table: ScoreTable, ids: Iterable[str], are: ScoresAre
) -> Iterator[tuple[str, Scores]]:
    """Yield the scores of some inputs, in the order of the table.

    Without ids in the table, an input is named by the number of its row. Of inputs that share an
    id, the first counts.
    """
    wanted = set(ids)
    first = 0
    for batch in table.batches():
        are = told_from(batch.values, table) if are is ScoresAre.AUTO else are
        numbers = range(first, first + len(batch))
        names = map(str, numbers) if batch.ids is None else batch.ids
        for row, name in enumerate(names):
            if name in wanted:
                wanted.remove(name)
                yield name, as_scores_of(batch.values[[row]], table, are, [numbers[row]])
        if not wanted:
            return
        first += len(batch)
    rule = "" if table.has_ids else "; without a column id, inputs are numbered from 0"
    raise RankshotError(f"{table.path}: there is no input {listed(sorted(wanted))}{rule}")


def first_names(table: ScoreTable, n: int) -> list[str]:
    """Return the names of the first inputs."""
    batch = next(table.batches())
    names = map(str, range(len(batch))) if batch.ids is None else batch.ids.tolist()
    return list(names)[:n]
