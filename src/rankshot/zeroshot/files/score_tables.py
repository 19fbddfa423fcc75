"""Tables of a classifier's scores: CSV and Parquet, read and written in batches.

Tables of scores may have millions of rows. So a table is never completely in memory: every call
of `ScoreTable.batches` reads the file again, one batch at a time. Large row groups of Parquet, as
most programs write them, are first copied to a temporary file.
"""

from __future__ import annotations

import json
import re
import sys
from array import array
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import other_library
from rankshot.core.columns import BATCH_CELLS, NumberCheck, Table, open_table, read_batches
from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    RankshotError,
    RowError,
    prefix_errors,
    quote_names,
)
from rankshot.core.files import require_ending
from rankshot.core.tables import (
    FEATURES,
    ID,
    LABEL,
    TABLE_ENDINGS,
    as_frame,
    as_text_array,
    frame_to_matrix,
    import_pyarrow,
    iterate_rows,
    open_parquet,
    open_writer,
)
from rankshot.core.validation import as_names, require_whole_number
from rankshot.zeroshot.scores import (
    LARGEST_SCORE,
    Kind,
    Scores,
    are_probabilities,
    as_floats,
    n_columns,
    warn_of_probabilities,
)

AUTO, LOGITS, PROBABILITIES = "auto", "logits", "probabilities"
ONE_VS_ONE: Literal["one-vs-one"] = "one-vs-one"
SCORE_TYPES = (
    *(AUTO, LOGITS, PROBABILITIES),
    *("one-vs-rest-logits", "one-vs-rest-probabilities", ONE_VS_ONE),
)
"""What the numbers in a table may be; with auto, the first rows tell."""
KIND_KEY, CLASSES_KEY = "rankshot.kind", "rankshot.classes"
"""The keys in the footer of a Parquet file that hold the kind of scores, and the seen classes."""
CLASS = "class "
"""What precedes the name of a class, in tables that we write, if another column has that name."""
RESERVED = re.compile(f"({CLASS})*({ID}|{FEATURES})")
RULE = NumberCheck(
    "scores must be finite numbers (a column of names must be called id)", LARGEST_SCORE
)
FEATURE_RULE = NumberCheck("features must be finite numbers")
Block = tuple[Sequence[str], Scores]
"""The ids of some rows, and their scores."""


class Header(NamedTuple):
    """What is known of a table before its rows are read.

    ``n_features`` is 0 if there are none, as in CSV, and ``n_rows`` None for CSV, where it is only
    known at the end. ``columns`` are those of scores, by their names in the file.
    """

    items: tuple[str, ...]
    kind: Kind
    has_ids: bool
    n_features: int
    n_rows: int | None
    columns: Sequence[str]


@dataclass(frozen=True)
class ScoreTable:
    """A file of scores, or a folder of ``parts``, of which only the headers have been read.

    ``score_type`` says what the numbers are; auto, if this is not known yet.
    """

    path: Path
    parts: tuple[Path, ...]
    header: Header
    batch_rows: int
    score_type: str = AUTO

    @property
    def items(self) -> tuple[str, ...]:
        """The seen classes."""
        return self.header.items

    def read(self) -> tuple[list[str], Scores]:
        """All ids, or row numbers in a table without ids, and all scores with features."""
        names: list[str] = []
        batches = []
        for ids, raw in self.batches(features=True):
            rows = range(len(names), len(names) + len(raw))
            names.extend(map(str, rows) if ids is None else ids)
            batches.append(build_scores(raw, self, rows))
        return names, Scores.concatenate(batches)

    def batches(
        self, *, features: bool = False
    ) -> Iterator[tuple[NDArray[np.object_] | None, Scores]]:
        """Yield the ids (None if the table has none) and the scores of all rows, in batches.

        Every call reads the file again. The scores have features if these are wanted, and if the
        table has some.

        Raises
        ------
        RankshotError
            Names the line (CSV) or the row (counted from 0) and the column of a score that is
            not a finite number; or ids that occur more than once, after the last row.
        """
        items, kind, has_ids, n_features, _, columns = self.header
        hashes = array("q")
        for batch in self._read_tables(features=features and n_features > 0):
            ids = as_text_array(batch.require_texts(ID)) if has_ids else None
            lists = None
            if features and n_features:
                lists = as_floats(batch.read_lists(FEATURES, FEATURE_RULE))
            values = batch.read_numbers(columns, RULE)
            yield ids, Scores.from_validated(values, items, kind, lists)
            hashes.extend(map(hash, () if ids is None else ids))
        # Hashes of 8 bytes need less memory than all ids.
        found = np.sort(np.frombuffer(hashes, np.int64)) if hashes else np.empty(0)
        if (found[1:] == found[:-1]).any():
            seen: set[str] = set()
            for batch in self._read_tables(features=False):
                for row, name in enumerate(batch.require_texts(ID)):
                    if name in seen:
                        batch.refuse("id", name, "occurs more than once", row)
                    seen.add(name)

    def _read_tables(self, *, features: bool) -> Iterator[Table]:
        columns = [*[ID][: self.header.has_ids], *self.header.columns, *[FEATURES][:features]]
        for path in self.parts:
            yield from read_batches(path, columns, self.batch_rows)


def open_scores(
    path: str | Path,
    batch_rows: int | None = None,
    *,
    allow_empty: bool = False,
    labelled: bool = False,
) -> ScoreTable:
    r"""Open a table of a classifier's scores: CSV or Parquet.

    Scores in float32 stay float32 (in Parquet, if all columns are); all others become float64.

    Parameters
    ----------
    path : str or Path
        CSV and Parquet have one column per seen class, named by it (``class id`` for a class that
        is called ``id``), and optionally a column ``id``. A folder of Parquet parts is read as one
        table. Features, by which labelled examples are compared, are a column ``features`` of lists
        of numbers in Parquet; CSV has none. Parquet files that `rankshot.recognition.write_scores`
        wrote may be one-vs-one.
    batch_rows : int, optional
        The maximum number of rows in a batch. By default, a batch has about a million scores.
    allow_empty : bool
        Accept a Parquet file without rows: a part of a dataset may have none.
    labelled : bool
        Whether a column ``label`` has names, and is not a class.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import open_scores
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.csv"
    ...     _ = path.write_text("id,leopard,bus\nx1,2.5,-1\nx2,0,1e-3\n")
    ...     for ids, scores in open_scores(path).batches():
    ...         print(scores.items, ids, scores.values.tolist())
    ('leopard', 'bus') ['x1' 'x2'] [[2.5, -1.0], [0.0, 0.001]]
    """
    path = Path(path)
    if batch_rows is not None:
        batch_rows = require_whole_number("batch_rows", batch_rows)
    parts = _list_parts(path)
    headers = [_read_header(part, {LABEL} if labelled else set()) for part in parts]
    # A part without rows, because all inputs were skipped, does not know its features.
    header = next((one for one in headers if one.n_rows != 0), headers[0])
    for part, one in zip(parts, headers, strict=True):
        if one[: 3 if one.n_rows == 0 else 4] != header[: 3 if one.n_rows == 0 else 4]:
            rule = "differ from those of the first table"
            raise InputError("columns", NO_VALUE, rule, where=str(part))
    if header.n_rows == 0 and not (allow_empty or path.is_dir()):
        raise InputError("table", NO_VALUE, "has no rows", where=str(path))
    cells = n_columns(len(header.items), header.kind) + header.n_features
    rows = min(batch_rows or max(1, BATCH_CELLS // cells), sys.maxsize)
    return ScoreTable(path, tuple(parts), header, rows)


def _list_parts(path: Path) -> list[Path]:
    """File, or the parts of a dataset in a folder, sorted by name."""
    if not path.is_dir():
        if path.suffix not in TABLE_ENDINGS and not path.exists():
            raise InputError("path", NO_VALUE, "does not exist", where=str(path))
        require_ending(path, TABLE_ENDINGS)
        return [path]
    names = sorted(part.relative_to(path) for part in path.rglob("*.parquet"))
    parts = [path / name for name in names if not str(name).startswith(("_", "."))]
    if not parts:
        rule = "has no parts (.parquet) of a table of scores"
        raise InputError("scores", NO_VALUE, rule, where=str(path))
    return parts


def _read_header(path: Path, beside: set[str]) -> Header:
    kind: Kind = "multiclass"
    if path.suffix != ".parquet":
        with closing(iterate_rows(path)) as rows:
            columns, n_rows = next(rows)[1], None if next(rows, None) else 0
        columns = [name for name in columns if name not in beside]
        names = _find_columns(columns, path)
        return Header(_name_classes(names), kind, ID in columns, 0, n_rows, names)
    types = import_pyarrow().types
    with open_parquet(path) as file:
        columns, n_rows = list(file.schema_arrow.names), file.metadata.num_rows
        metadata = file.metadata.metadata or {}
        n_features = 0
        # A class may have this name, but then it has numbers.
        if columns.count(FEATURES) == 1:
            found = file.schema_arrow.field(FEATURES).type
            if types.is_fixed_size_list(found):
                n_features = found.list_size
            elif types.is_list(found) and n_rows:
                n_features = len(next(file.iter_batches(1, columns=[FEATURES])).column(0)[0])
    names = _find_columns(
        [x for x in columns if x not in beside and (x != FEATURES or not n_features)], path
    )
    items = _name_classes(names)
    if KIND_KEY.encode() in metadata:
        kind = metadata[KIND_KEY.encode()].decode()
        items = tuple(json.loads(metadata[CLASSES_KEY.encode()]))
    return Header(items, kind, ID in columns, n_features, n_rows, names)


def _name_columns(items: Sequence[str], kind: Kind) -> Sequence[str]:
    """Names of the columns of scores: classes, or pairs of them."""
    if kind == ONE_VS_ONE:
        return [" | ".join(pair) for pair in combinations(items, 2)]
    return [f"{CLASS}{item}" if RESERVED.fullmatch(item) else item for item in items]


def _name_classes(columns: Iterable[str]) -> tuple[str, ...]:
    """Names of the classes, as `_name_columns` was given them."""
    return tuple(name.removeprefix(CLASS) if RESERVED.fullmatch(name) else name for name in columns)


def _find_columns(columns: Sequence[str], path: Path) -> tuple[str, ...]:
    """Names of the columns of seen classes: all columns except ``id``."""
    items = [name for name in columns if name != ID]
    if not items or len(columns) - len(items) > 1:
        rule = f"must be one per seen class, and at most one named {ID!r}: {quote_names(columns)}"
        raise InputError("columns", NO_VALUE, rule, where=str(path))
    if "" in columns:
        hint = f"write the index of pandas with index_label={ID!r}, or leave it out (index=False)"
        number = columns.index("") + 1
        raise InputError("column", number, "has no name", where=str(path), hint=hint)
    with prefix_errors(path):
        return as_names(items, "the header")


# -------------------------------------------------------------------- the door


class LabelledScores(NamedTuple):
    """The scores of a table, and its columns id and label; None for those that it lacks."""

    scores: Scores
    ids: NDArray[np.object_] | None = None
    labels: NDArray[np.str_] | None = None


def as_scores(scores: Scores | ArrayLike | Path, items: tuple[str, ...]) -> Scores:
    """`Scores` of ``items`` from what a caller passes.

    A plain array has one column per item, in their order, or one per pair. The columns of a data
    frame and of a file are matched by name.
    """
    return read_scores(scores, items).scores.with_items(items)


def read_scores(
    table: Any, items: Sequence[str] | None = None, score_type: str = AUTO
) -> LabelledScores:
    """Scores from `Scores`, a file (CSV, Parquet, a folder of parts), a data frame or an array.

    ``items`` name the columns of an array. Arrays and data frames have logits; the numbers of a
    file may be of any ``score_type``.
    """
    if isinstance(table, Scores):
        return LabelledScores(table)
    if isinstance(table, (str, Path)):
        return _read_file(Path(table), score_type)
    frame = None if other_library(table) is not None else as_frame(table)
    if frame is not None:
        texts = [
            name for name in (ID, LABEL) if name in frame.columns and name not in (items or ())
        ]
        values = frame.drop(texts)
        ids, labels = (
            np.array([str(cell) for cell in frame[name].to_list()], kind) if name in texts else None
            for name, kind in ((ID, object), (LABEL, str))
        )
        found = LabelledScores(Scores(frame_to_matrix(values), values.columns), ids, labels)
    elif items is None:
        rule, hint = "must be Scores, a data frame or a file", "rs.Scores(values, seen classes)"
        raise InputError("scores", type(table).__name__, rule, hint=hint)
    else:
        array, C = as_floats(table), len(items)
        # Three classes have three pairs; then an array is interpreted as one column per class.
        paired = array.ndim == 2 and array.shape[1] == C * (C - 1) // 2 and array.shape[1] != C
        found = LabelledScores(Scores(array, items, ONE_VS_ONE if paired else "multiclass"))
    warn_of_probabilities(found.scores)
    return found


def _read_file(path: Path, score_type: str) -> LabelledScores:
    labels = None
    if not path.is_dir() and LABEL in (file := open_table(path)).columns:
        labels = np.array([name.strip() for name in file.read_texts(LABEL)[0]])
    table = open_scores(path, labelled=labels is not None)
    if score_type == AUTO:
        score_type = guess_score_type(next(table.batches())[1].columns, table)
    names, scores = replace(table, score_type=score_type).read()
    return LabelledScores(scores, np.array(names, object), labels)


def read_labelled(given: Any) -> tuple[Any, Any]:
    """Scores and labels from a pair, or from a table with a column of labels.

    An array stays as it is, because its columns have no names. Without labels, these are None. Rows
    without a label in their column are left out.
    """
    table, labels = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if isinstance(table, (str, Path)) or as_frame(table) is not None:
        found = read_scores(table)
        table = found.scores
        if labels is None and found.labels is not None:
            there = found.labels != ""
            table, labels = table[there], found.labels[there]
    return table, labels


# -------------------------------------------------------------------- writing


def require_score_file(path: Path, kind: Kind = "multiclass") -> None:
    """Raise if a file of this name cannot hold such scores."""
    ending = require_ending(path, TABLE_ENDINGS)
    if ending == ".parquet":
        import_pyarrow("pyarrow.parquet")
    elif kind == ONE_VS_ONE:
        rule = "must end in .parquet: one-vs-one scores have a column per pair"
        raise InputError("path", NO_VALUE, rule, where=str(path))


def write_score_table(
    path: str | Path,
    items: Sequence[str],
    blocks: Iterable[Block],
    kind: Kind = "multiclass",
    metadata: dict[str, str] | None = None,
) -> int:
    """Write a table of scores as CSV or Parquet, with a column of ids; return its rows.

    An older file is replaced when all rows are written. ``blocks`` are the ids and scores of some
    rows at a time. CSV stores neither the kind nor features. ``metadata`` goes into the footer of
    a Parquet file after the last block.
    """
    path = Path(path)
    require_score_file(path, kind)
    n = 0
    own = {} if kind == "multiclass" else {KIND_KEY: kind, CLASSES_KEY: json.dumps(items)}
    columns = [ID, *_name_columns(items, kind)]
    about = ChainMap(own, {} if metadata is None else metadata)
    with open_writer(path, columns, about) as put:
        for ids, scores in blocks:
            if len(ids):
                put([ids], scores.columns, scores.features)
                n += len(ids)
        if n == 0:
            put([[]], np.empty((0, len(columns) - 1), np.float32))
    return n


# -------------------------------------------------------------------- score types


def guess_score_type(values: NDArray[np.floating], table: ScoreTable) -> str:
    """Score type that the first rows of a table look like."""
    if table.header.kind == ONE_VS_ONE:
        return ONE_VS_ONE
    if are_probabilities(values, 100):
        rule = "look like percentages: divide them by 100, or give the score type logits"
        raise InputError("scores", NO_VALUE, rule, where=str(table.path))
    return PROBABILITIES if are_probabilities(values) else LOGITS


def build_scores(raw: Scores, table: ScoreTable, rows: Sequence[int]) -> Scores:
    """Scores of a table as they were read, on a logarithmic scale.

    ``rows`` are the numbers of the rows in the table.
    """
    score_type = table.score_type
    kind: Kind = "one-vs-rest" if score_type.startswith("one-vs-rest") else table.header.kind
    # Three classes have three pairs.
    if score_type == ONE_VS_ONE and raw.columns.shape[1] == n_columns(len(table.items), ONE_VS_ONE):
        kind = ONE_VS_ONE
    if kind != ONE_VS_ONE and ONE_VS_ONE in {score_type, table.header.kind}:
        columns = "pair of classes" if table.header.kind == ONE_VS_ONE else "class"
        rule = f"does not match one column per {columns}"
        raise InputError("score_type", score_type, rule, where=str(table.path))
    is_log = not score_type.endswith(PROBABILITIES)
    make = Scores.from_validated if is_log else Scores.from_probabilities
    try:
        scores = make(raw.columns, table.items, kind)
    except RowError as error:
        row, path = rows[error.row], table.path
        where = open_table(path).where(row) if path.suffix == ".csv" else f"{path}: row {row}"
        raise RankshotError(
            f"{where}{error.problem}; if they were rounded, write more digits; if some classes "
            "were left out, divide each row by its sum; otherwise, give the correct score type "
            "(one-vs-rest-probabilities for separate yes-no questions)"
        ) from None
    return scores if raw.features is None else scores.with_blocks(features=raw.features)
