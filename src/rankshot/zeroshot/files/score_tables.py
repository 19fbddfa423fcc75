"""Tables of a classifier's scores: CSV and Parquet, read and written in batches.

Tables of scores may have millions of rows. So a table is never completely in memory: every call
of `ScoreTable.batches` reads the file again, one batch at a time. Large row groups of Parquet, as
most programs write them, are first copied to a temporary file.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import other_library
from rankshot.core.columns import BATCH_CELLS, NumberCheck, Table, read_batches
from rankshot.core.errors import NO_VALUE, InputError, prefix_errors, quote_names
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
from rankshot.core.validation import as_names, require_choice, require_whole_number
from rankshot.zeroshot.scores import (
    LARGEST_SCORE,
    Kind,
    Scores,
    are_probabilities,
    as_floats,
    log_probabilities,
    n_columns,
    name_columns,
    require_probabilities,
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
RESERVED = re.compile(f"({CLASS})*({ID}|{LABEL}|{FEATURES})")
RULE = NumberCheck(
    "scores must be finite numbers (a column of names must be called id)", LARGEST_SCORE
)
FEATURE_RULE = NumberCheck("features must be finite numbers")
Block = tuple[Sequence[str], Scores]
"""The ids of some rows, and their scores."""


class Header(NamedTuple):
    """What is known of a table before its rows are read.

    ``texts`` are those of the columns id and label that it has. ``n_features`` is 0 if there are
    none, as in CSV, and ``n_rows`` None for CSV, where it is only known at the end. ``columns`` are
    those of scores, by their names in the file.
    """

    items: tuple[str, ...]
    kind: Kind
    texts: tuple[str, ...]
    n_features: int
    n_rows: int | None
    columns: Sequence[str]


class LabelledScores(NamedTuple):
    """The scores of a table, and its columns id and label; None for those that it lacks."""

    scores: Scores
    ids: NDArray[np.object_] | None = None
    labels: NDArray[np.str_] | None = None


@dataclass(frozen=True)
class ScoreTable:
    """A file of scores, or a folder of ``parts``, of which only the headers have been read.

    ``score_type`` says what the numbers are.
    """

    path: Path
    parts: tuple[Path, ...]
    header: Header
    batch_rows: int
    score_type: str

    @property
    def items(self) -> tuple[str, ...]:
        """The seen classes."""
        return self.header.items

    def guess_type(self) -> str | None:
        """The type that the first rows look like; None if there are none."""
        first = next(replace(self, score_type=LOGITS).batches(), None)
        if first is None or self.header.kind == ONE_VS_ONE:
            return None if first is None else ONE_VS_ONE
        values = first[1].columns
        if are_probabilities(values, 100):
            rule = "look like percentages: divide them by 100, or give the score type logits"
            raise InputError("scores", NO_VALUE, rule, where=str(self.path))
        return PROBABILITIES if are_probabilities(values) else LOGITS

    def read(self) -> LabelledScores:
        """All scores with features; their ids, or else the numbers of the rows; and the labels."""
        names, scores = zip(*self.batches(features=True), strict=True)
        whole, labels = Scores.concatenate(scores), None
        ids = np.arange(len(whole)).astype(str).astype(object)
        if ID in self.header.texts:
            ids = np.concatenate(names)
        if LABEL in self.header.texts:
            rows = [part.read_texts(LABEL)[0] for part in self._read_parts([LABEL])]
            labels = np.array([name.strip() for some in rows for name in some])
        return LabelledScores(whole, ids, labels)

    def batches(
        self, *, features: bool = False
    ) -> Iterator[tuple[NDArray[np.object_] | None, Scores]]:
        """Yield the ids (None if the table has none) and the scores of all rows, in batches.

        Every call reads the file again. The scores are on a logarithmic scale. They have features
        if these are wanted, and if the table has some.

        Raises
        ------
        InputError
            Names the line (CSV) or the row (counted from 0) and the column of a score that is
            not a finite number; or an id that occurs more than once, after the last row.
        """
        items, _, texts, n_features, _, columns = self.header
        score_type = self.score_type
        if score_type == AUTO:
            score_type = self.guess_type() or LOGITS
        kind, has_features = self._find_kind(score_type), features and n_features > 0
        names = [*[ID][: ID in texts], *columns, *[FEATURES][:has_features]]
        hashes = [np.zeros(0, np.int64)]
        for part in self._read_parts(names):
            ids = lists = None
            values = part.read_numbers(columns, RULE)
            if score_type.endswith(PROBABILITIES):
                require_probabilities(values, items, kind, part.where)
                values = log_probabilities(values, kind, np)
            if ID in texts:
                ids = as_text_array(part.require_texts(ID))
                # Hashes of 8 bytes need less memory than all ids.
                hashes.append(np.fromiter(map(hash, ids), np.int64))
            if has_features:
                lists = as_floats(part.read_lists(FEATURES, FEATURE_RULE))
            yield ids, Scores.from_validated(values, items, kind, lists)
        found = np.sort(np.concatenate(hashes))
        if repeated := {*found[1:][found[1:] == found[:-1]].tolist()}:
            for part in self._read_parts([ID]):
                for row, name in enumerate(part.require_texts(ID)):
                    if hash(name) in repeated:
                        part.refuse("id", name, "occurs more than once", row)

    def _find_kind(self, score_type: str) -> Kind:
        kind = self.header.kind
        if score_type == ONE_VS_ONE != kind or score_type.startswith("one-vs-rest"):
            if ONE_VS_ONE in {kind, score_type}:
                columns = "pair of classes" if kind == ONE_VS_ONE else "class"
                rule = f"does not match one column per {columns}"
                raise InputError("score_type", score_type, rule, where=str(self.path))
            kind = "one-vs-rest"
        return kind

    def _read_parts(self, columns: Sequence[str]) -> Iterator[Table]:
        for path in self.parts:
            yield from read_batches(path, columns, self.batch_rows)


def open_scores(
    path: str | Path,
    batch_rows: int | None = None,
    *,
    score_type: str = LOGITS,
    allow_empty: bool = False,
) -> ScoreTable:
    r"""Open a table of a classifier's scores: CSV or Parquet.

    Scores in float32 stay float32 (in Parquet, if all columns are); all others become float64.

    Parameters
    ----------
    path : str or Path
        CSV and Parquet have one column per seen class, named by it (``class id`` for a class that
        is called ``id``), and optionally the columns ``id`` and ``label``, which are texts. A
        folder of Parquet parts is read as one table. Features, by which labelled examples are
        compared, are a column ``features`` of lists of numbers in Parquet; CSV has none. Parquet
        files that `rankshot.recognition.write_scores` wrote may be one-vs-one.
    batch_rows : int, optional
        The maximum number of rows in a batch. By default, a batch has about a million scores.
    score_type : str
        What the numbers are: ``"logits"``, ``"probabilities"``, ``"one-vs-rest-logits"``,
        ``"one-vs-rest-probabilities"``, ``"one-vs-one"``, or ``"auto"``: the first rows tell.
    allow_empty : bool
        Accept a table without rows: a part of a dataset may have none.

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
    require_choice("score_type", score_type, SCORE_TYPES)
    if batch_rows is not None:
        batch_rows = require_whole_number("batch_rows", batch_rows)
    parts = _list_parts(path)
    headers = [_read_header(part) for part in parts]
    # A part without rows, because all inputs were skipped, does not know its features.
    header = next((one for one in headers if one.n_rows != 0), headers[0])
    for part, one in zip(parts, headers, strict=True):
        n_compared = 3 if one.n_rows == 0 else 4
        if one[:n_compared] != header[:n_compared]:
            rule = "differ from those of the first table"
            raise InputError("columns", NO_VALUE, rule, where=str(part))
    if header.n_rows == 0 and not allow_empty:
        raise InputError("table", NO_VALUE, "has no rows", where=str(path))
    cells = n_columns(len(header.items), header.kind) + header.n_features
    rows = batch_rows or max(1, BATCH_CELLS // cells)
    return ScoreTable(path, tuple(parts), header, rows, score_type)


def _list_parts(path: Path) -> list[Path]:
    """File, or the parts of a dataset in a folder, sorted by name."""
    if not path.is_dir():
        require_ending(path, TABLE_ENDINGS)
        return [path]
    names = sorted(part.relative_to(path) for part in path.rglob("*.parquet"))
    parts = [path / name for name in names if not str(name).startswith(("_", "."))]
    if not parts:
        rule = "has no parts (.parquet) of a table of scores"
        raise InputError("scores", NO_VALUE, rule, where=str(path))
    return parts


def _read_header(path: Path) -> Header:
    metadata: dict[bytes, bytes] = {}
    beside, n_features = [ID, LABEL], 0
    if path.suffix == ".parquet":
        with open_parquet(path) as file:
            columns, n_rows = list(file.schema_arrow.names), file.metadata.num_rows
            metadata = file.metadata.metadata or {}
            # A class may have this name, but then it has numbers.
            types = dict(zip(columns, file.schema_arrow.types, strict=True))
            if "list" in str(types.get(FEATURES)):
                beside.append(FEATURES)
                if first := next(file.iter_batches(1, columns=[FEATURES]), None):
                    n_features = len(first.column(0)[0])
    else:
        with closing(iterate_rows(path)) as rows:
            columns, n_rows = next(rows)[1], None if next(rows, None) else 0
    if "" in columns:
        hint = f"write the index of pandas with index_label={ID!r}, or leave it out (index=False)"
        number = columns.index("") + 1
        raise InputError("column", number, "has no name", where=str(path), hint=hint)
    names = tuple(name for name in columns if name not in beside)
    if not names:
        rule = f"must be one per seen class: {quote_names(columns)}"
        raise InputError("columns", NO_VALUE, rule, where=str(path))
    with prefix_errors(path):
        as_names(columns, "the header")
    kind: Any = metadata.get(KIND_KEY.encode(), b"multiclass").decode()
    items = tuple(x.removeprefix(CLASS) if RESERVED.fullmatch(x) else x for x in names)
    if kind == ONE_VS_ONE:
        items = tuple(json.loads(metadata[CLASSES_KEY.encode()]))
    texts = tuple(name for name in (ID, LABEL) if name in columns)
    return Header(items, kind, texts, n_features, n_rows, names)


# -------------------------------------------------------------------- the door


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
        return open_scores(table, score_type=score_type).read()
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
    else:
        array, C = as_floats(table), len(items or ())
        # Three classes have three pairs; then an array is interpreted as one column per class.
        paired = array.ndim == 2 and array.shape[1] == C * (C - 1) // 2 and array.shape[1] != C
        found = LabelledScores(Scores(array, items or (), ONE_VS_ONE if paired else "multiclass"))
    warn_of_probabilities(found.scores)
    return found


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
    names = [f"{CLASS}{item}" if RESERVED.fullmatch(item) else item for item in items]
    columns = [ID, *(names if kind != ONE_VS_ONE else name_columns(items, kind))]
    about = ChainMap(own, {} if metadata is None else metadata)
    with open_writer(path, columns, about) as put:
        for ids, scores in blocks:
            if len(ids):
                put([ids], scores.columns, scores.features)
                n += len(ids)
        if n == 0:
            put([[]], np.empty((0, len(columns) - 1), np.float32))
    return n
