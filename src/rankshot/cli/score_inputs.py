"""Tables that commands read: scores, names of their columns, examples and evidence.

The columns of a table of scores keep their names. Rankings, similarities, a reference and true
classes may spell them in another way. Exact names cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from rankshot import ranking, zeroshot
from rankshot.cli.console import refuse, say
from rankshot.core.errors import (
    RankshotError,
    UnknownItemError,
    format_count,
    quote_names,
    short_repr,
)
from rankshot.core.files import require_ending

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankshot.core.tables import Batch
    from rankshot.zeroshot.files.score_tables import ScoreTable

ScoreType = Literal[
    "auto",
    "logits",
    "probabilities",
    "one-vs-rest-logits",
    "one-vs-rest-probabilities",
    "one-vs-one",
]
"""What the numbers in a table of scores are: the choices of --score-type."""


def infer_score_type(
    table: ScoreTable, given: ScoreType, values: NDArray[np.floating] | None = None
) -> ScoreTable:
    """Return a table with the type that was given or, for auto, that of the first rows; print it.

    ``values`` are the first rows, if they are not in the table.
    """
    from rankshot.zeroshot.files.score_tables import AUTO, LOGITS, guess_score_type

    if given != AUTO or table.score_type != AUTO:
        return table if given == AUTO else replace(table, score_type=given)
    if values is None:
        values = next(table.batches())[1].values
    score_type = guess_score_type(values, table)
    remark = "see --score-type"
    if score_type == LOGITS and values.min() >= 0 and values.max() <= 1:
        remark = (
            "although all are between 0 and 1: if they are probabilities whose rows do not add up "
            "to 1 because they were rounded, write more digits; if each is the probability of a "
            "separate yes-no question, give --score-type one-vs-rest-probabilities"
        )
    say(f"{table.path}: the scores are interpreted as {score_type} ({remark})")
    return replace(table, score_type=score_type)


def read_scores(table: ScoreTable) -> tuple[list[str], zeroshot.Scores]:
    """Return all ids, or row numbers in a table without ids, and all scores with features."""
    names, batches = zip(*table.inputs(features=True), strict=True)
    return [*chain.from_iterable(names)], zeroshot.Scores.concatenate(batches)


def find_rows(
    table: ScoreTable, ids: Collection[str], where: Callable[[str], str] = lambda _: "input "
) -> dict[str, zeroshot.Scores]:
    """Return the scores of some inputs, in the order of the table.

    In a table without ids, the id of an input is the number of its row. ``where`` says how an
    error about an id begins.
    """
    found: dict[str, zeroshot.Scores] = {}
    for names, batch in table.inputs(features=True):
        for i, name in enumerate(names):
            if name in ids and name not in found:
                found[name] = batch[[i]]
        if len(found) == len(ids):
            return found
    missing = [name for name in ids if name not in found]
    rule = "without a column id, inputs are numbered from 0"
    if table.has_ids:
        rule = f"the first ids are {quote_names(read_first_ids(table, 3))}"
    raise RankshotError(
        f"{where(missing[0])}{quote_names(missing)} not found in {table.path}; {rule}"
    )


def read_first_ids(table: ScoreTable, n: int) -> Sequence[str]:
    """Return the ids of the first n inputs, or their row numbers in a table without ids."""
    return next(table.inputs())[0][:n]


# ---- Names of columns


def match_columns(
    names: Iterable[str], table: ScoreTable, where: Path, *, quiet: bool = False
) -> dict[str, str]:
    """Return the column that each name means, for names that are not columns; print an example.

    Names that mean no column, or several, are left out. ``where`` is the file of the names.
    """
    from rankshot.zeroshot.files.score_tables import find_columns

    found = find_columns(names, table, where)
    if not quiet:
        say_matched(found, table, where)
    return found


def say_matched(found: dict[str, str], table: ScoreTable, where: Path) -> None:
    """Print how many names were matched to columns of another spelling, and an example."""
    if found:
        name, column = next(iter(found.items()))
        say(
            f"{where}: {format_count(len(found), 'name')} matched to the columns of {table.path}, "
            f"for example {name!r} to {column!r}"
        )


def read_rankings_of(path: Path, table: ScoreTable, *, quiet: bool = False) -> ranking.Rankings:
    """Read rankings of the classes of a table of scores."""
    try:
        return ranking.read_rankings(path, items=table.items)
    except UnknownItemError as error:
        problem = error
    found = ranking.read_rankings(path)
    # A target that is not an item is a new class, even if a seen class has its name as a synonym.
    rankings = rename(found, match_columns(found.items, table, path, quiet=quiet))
    columns = f"items must be columns of {table.path}"
    if rankings is found:
        raise RankshotError(f"{problem}; {columns}") from None
    try:
        return rankings.change_items(table.items)
    except UnknownItemError as error:
        raise RankshotError(f"{path}: {error}; {columns}") from None


def rename(rankings: ranking.Rankings, column_of: dict[str, str]) -> ranking.Rankings:
    """Return rankings with other names of some items and targets."""
    from rankshot.core.tables import as_text_array
    from rankshot.zeroshot.files.score_tables import rename_all

    if not column_of:
        return rankings
    targets = [column_of.get(name, name) for name in rankings.targets]
    return replace(
        rankings, items=rename_all(rankings.items, column_of), targets=as_text_array(targets)
    )


# ---- Examples

WORDS = Path("words")
"""In place of a file: the words of texts and of the names of classes are compared."""
GUESS, PROBABILITY = "guess", "probability"
EXAMPLES = "examples"
"""The entry of what a saved head is from that has the ids of its examples."""
MOST_SAMPLED = 20_000
"""The inputs that tell how much evidence counts, and that refine a batch; of more inputs, some are
taken evenly."""


class Label(NamedTuple):
    """The class of an example, and the file and row that say it."""

    name: str
    where: str


def read_labels(path: Path) -> dict[str, Label]:
    """Return the labels of inputs by id; rows that have none yet are left out."""
    from rankshot.core.tables import ID, LABEL, read_table

    table = read_table(path, [ID, LABEL])
    found: dict[str, Label] = {}
    for row, label in _filled_in(table, 1).items():
        name = table.texts[0][row]
        refuse(not name, f"{label.where}: the id is empty")
        before = found.setdefault(name, label)
        refuse(
            before.name != label.name,
            f"{label.where}: the input {short_repr(name)} is {label.name!r} here and "
            f"{before.name!r} in {before.where}; keep one of the two rows",
        )
    return found


def list_example_ids(path: Path) -> list[str]:
    """Return the ids of examples; none if the file has scores of its own and no ids."""
    from rankshot.core.tables import ID, read_columns

    return [*read_labels(path)] if ID in read_columns(path)[0] else []


def _filled_in(table: Batch, column: int) -> dict[int, Label]:
    """Return the labels of the rows that have one."""
    labels = {
        row: Label(text.strip(), table.where(row))
        for row, text in enumerate(table.texts[column])
        if text.strip()
    }
    refuse(
        not labels,
        f"{table.path}: no label is filled in; write the classes of some inputs into the column "
        f"{table.names[column]!r}",
    )
    return labels


def require_new(labels: Collection[Label], seen: Collection[str], ranked: Collection[str]) -> None:
    """Refuse labels that are seen classes, or look like misspelled names of new ones."""
    from rankshot.zeroshot.examples import describe_bad_label

    for label in labels:
        problem = describe_bad_label(label.name, seen, ranked)
        refuse(problem, f"{label.where}: {problem}")
    if unranked := sorted({label.name for label in labels} - set(ranked)):
        say(f"examples: these classes have examples but no ranking: {quote_names(unranked)}")


def read_examples(
    path: Path, scores: ScoreTable, given: ScoreType, ranked: Collection[str]
) -> tuple[tuple[zeroshot.Scores, NDArray[np.str_]], ScoreTable]:
    """Return the scores and classes of examples, and the table with the type of its scores.

    The file names inputs of a table of scores by their ids, or has scores of its own.
    """
    import numpy as np

    from rankshot.core.tables import LABEL, TABLE_ENDINGS, read_table
    from rankshot.zeroshot.files.score_tables import RULE, build_scores

    require_ending(path, TABLE_ENDINGS)
    columns = _find_own_scores(path, scores)
    if columns:
        batch = read_table(path, [LABEL], columns, rule=RULE)
        found = _filled_in(batch, 0)
        labels, rows = list(found.values()), list(found)
        table = replace(scores, path=path, evidence=None)
        table = infer_score_type(table, given, batch.numbers[rows])
        scores = replace(scores, score_type=table.score_type)
        raw = zeroshot.Scores.from_validated(batch.numbers[rows], scores.items, scores.kind)
        found_scores = build_scores(raw, table, rows)
    else:
        refuse(
            scores.n_rows == 0,
            f"{path}: has ids and no scores; give a table of the inputs' scores as --seen, or "
            "examples with the columns of scores and a column label",
        )
        by_id = read_labels(path)
        scores = infer_score_type(scores, given)
        place_of = find_rows(scores, by_id, lambda name: f"{by_id[name].where}: ")
        labels = list(by_id.values())
        found_scores = zeroshot.Scores.concatenate([place_of[name] for name in by_id])
    require_new(labels, scores.items, ranked)
    return (found_scores, np.array([label.name for label in labels])), scores


def _find_own_scores(path: Path, scores: ScoreTable) -> list[str]:
    """Return the columns of a file that are the seen classes; none if it only has labels."""
    from rankshot.core.tables import ID, LABEL, find_column, read_columns

    columns, _ = read_columns(path)
    find_column(columns, LABEL, path)
    others = [name for name in columns if name not in {ID, LABEL, GUESS, PROBABILITY}]
    if scores.kind == "one-vs-one" or not others:
        return []
    match = match_columns(others, scores, path, quiet=True)
    column_of = {match.get(name, name): name for name in others}
    missing = [name for name in scores.items if name not in column_of]
    refuse(
        missing and len(missing) < len(scores.items),
        f"{path}: examples with scores of their own need all columns of {scores.path}; it has no "
        f"column {quote_names(missing)}",
    )
    return [] if missing else [column_of[name] for name in scores.items]


# ---- Evidence


def add_evidence(table: ScoreTable, path: Path | None) -> ScoreTable:
    """Return a table of scores with what another model says of each input, matched by id."""
    from rankshot.zeroshot.files.score_tables import LOGITS, PROBABILITIES, guess_score_type

    if path is None:
        return table
    refuse(
        path == WORDS,
        "--evidence words needs the texts, which only `rankshot recognise` reads; give a table of "
        "evidence instead",
    )
    refuse(
        table.n_rows == 0,
        f"{path}: the weight of evidence is estimated from scores; give the scores of the same "
        "inputs with --seen FILE",
    )
    given = zeroshot.open_scores(path)
    refuse(
        given.kind == "one-vs-one", f"{path}: evidence needs one column per new class, not per pair"
    )
    first = next(given.batches())[1].values
    are_shares = guess_score_type(first, given) == PROBABILITIES
    names, read = read_scores(replace(given, score_type=PROBABILITIES if are_shares else LOGITS))
    row_of = {name: row for row, name in enumerate(names)}
    ids = [name for names, _ in table.inputs() for name in names]
    if missing := [name for name in ids if name not in row_of]:
        rule = "" if given.has_ids else "; without a column id, rows are numbered from 0"
        raise RankshotError(
            f"{path}: evidence is missing for {len(missing):,} of the "
            f"{format_count(len(ids), 'input')} in {table.path}: {quote_names(missing)}{rule}"
        )
    if are_shares:
        say(f"{path}: the evidence is interpreted as probabilities")
    return replace(table, evidence=read[[row_of[name] for name in ids]])


def sample_scores(
    table: ScoreTable, n: int | None = None, *, features: bool = False
) -> zeroshot.Scores:
    """Return the scores of all n inputs with their evidence, or of some of many."""
    import numpy as np

    n = len(table.evidence or ()) if n is None else n
    wanted = np.unique(np.linspace(0, n - 1, min(n, MOST_SAMPLED)).astype(int))
    chosen, first = [], 0
    for _, batch in table.inputs(features=features):
        here = wanted[(wanted >= first) & (wanted < first + len(batch))]
        chosen.append(batch[here - first])
        first += len(batch)
    return zeroshot.Scores.concatenate(chosen)
