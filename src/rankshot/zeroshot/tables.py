"""Tables of scores and of predictions: CSV and Parquet, read and written in batches.

True labels, to evaluate predictions with, are read here as well.

Tables of scores may have millions of rows. So a table is never completely in memory: every call
of `ScoreTable.batches` reads the file again, one batch at a time. Large row groups of Parquet, as
most programs write them, are first copied to a temporary file.
"""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import other_library
from rankshot.core.columns import (
    BATCH_CELLS,
    NumberCheck,
    Table,
    name_row,
    open_table,
    read_batches,
)
from rankshot.core.errors import NO_VALUE, InputError, prefix_errors, quote_names, suggest_name
from rankshot.core.files import require_ending
from rankshot.core.tables import (
    FEATURES,
    ID,
    LABEL,
    TABLE_ENDINGS,
    PutRows,
    as_frame,
    as_text_array,
    frame_to_matrix,
    import_pyarrow,
    iterate_rows,
    open_parquet,
    open_writer,
)
from rankshot.core.validation import as_names, require_choice, require_whole_number
from rankshot.zeroshot.decide import REJECTED
from rankshot.zeroshot.scores import (
    KINDS,
    PROBABILITY_RULE,
    SCORE_RULE,
    Kind,
    Scores,
    are_probabilities,
    as_floats,
    log_probabilities,
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
        items, kind, texts, n_features, _, columns = self.header
        score_type = self.score_type if self.score_type != AUTO else self.guess_type() or LOGITS
        has_features = features and n_features > 0
        names = [*[ID][: ID in texts], *columns, *[FEATURES][:has_features]]
        hashes = [np.zeros(0, np.int64)]
        for part in self._read_parts(names):
            ids = lists = None
            values = part.read_numbers(columns, SCORE_RULE)
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
    kind = next((kind for kind in KINDS if score_type.startswith(kind)), header.kind)
    if kind != header.kind and ONE_VS_ONE in {kind, header.kind}:
        columns = "pair of classes" if header.kind == ONE_VS_ONE else "class"
        rule = f"does not match one column per {columns}"
        raise InputError("score_type", score_type, rule, where=str(path))
    rows = batch_rows or max(1, BATCH_CELLS // (len(header.columns) + header.n_features))
    return ScoreTable(path, tuple(parts), header._replace(kind=kind), rows, score_type)


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
        there = {*frame.columns} - {*(items or ())}
        ids, labels = (
            np.array([str(cell) for cell in frame[name].to_list()], kind) if name in there else None
            for name, kind in ((ID, object), (LABEL, str))
        )
        values = frame.drop([name for name in (ID, LABEL) if name in there])
        found = LabelledScores(Scores(frame_to_matrix(values), values.columns), ids, labels)
    elif items is None:
        hint = "name their classes: rs.Scores(values, names), or seen=names"
        rule = "must be Scores, a data frame or a file"
        raise InputError("scores", type(table).__name__, rule, hint=hint)
    else:
        array, C = as_floats(table), len(items)
        # Three classes have three pairs; then an array is interpreted as one column per class.
        paired = array.ndim == 2 and array.shape[1] == C * (C - 1) // 2 and array.shape[1] != C
        found = LabelledScores(Scores(array, items, ONE_VS_ONE if paired else "multiclass"))
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


def as_labels(labels: ArrayLike, n: int, parameter: str = "labels") -> NDArray[np.str_]:
    """The classes of n inputs, as text."""
    names = np.asarray(labels).astype(str)
    if names.shape != (n,):
        raise InputError(parameter, names.shape, f"must be one label for each of {n} inputs")
    return names


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


# -------------------------------------------------------------------- predictions

PROBABILITY = "probability"
DIGITS = 7
"""The significant digits of a probability in CSV: those of single precision, in which most models
compute."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """The content of a file of predictions: ids and labels (or `REJECTED`) of the inputs.

    ``targets`` are all L classes that could be predicted, in the order of the columns of ``proba``.
    """

    ids: NDArray[np.object_]
    labels: NDArray[np.object_]
    targets: tuple[str, ...]
    proba: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.ids)


@contextmanager
def open_predictions(
    path: str | Path,
    targets: Iterable[object],
    metadata: Mapping[str, str] | None = None,
    *,
    top: int | None = None,
) -> Iterator[PredictionWriter]:
    """Open a file of predictions, CSV or Parquet, for writing in batches.

    The columns are ``id``, ``label``, ``probability`` (of the label, or the largest one if the
    input was rejected) and one column ``P(class)`` per class. Probabilities have seven
    significant digits in CSV, and the precision of the first batch in Parquet.

    The file replaces an older one when the block ends. If an exception is raised in the block,
    the older file stays, and nothing else is left behind.

    Parameters
    ----------
    path : str or Path
        Ends in .csv or .parquet.
    targets : iterable of names
        The classes that may be predicted, in the order of the columns of probabilities.
    metadata : mapping of str to str, optional
        Metadata for the footer of a Parquet file. Entries may be added until the block ends.
    top : int, optional
        Write only this number of most probable classes per input: in place of the columns
        ``P(class)``, there are ``label_2``, …, and ``probability_2``, ….

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import open_predictions, read_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_predictions(folder + "/predictions.csv", ["cat", "truck"]) as writer:
    ...         writer.write(["x1", "x2"], ["cat", "truck"], [[.75, .25], [.5, .5]])
    ...     print((Path(folder) / "predictions.csv").read_text())
    ...     read_predictions(folder + "/predictions.csv").labels
    id,label,probability,P(cat),P(truck)
    x1,cat,0.75,0.75,0.25
    x2,truck,0.5,0.5,0.5
    <BLANKLINE>
    array(['cat', 'truck'], dtype=object)
    """
    path = Path(path)
    require_ending(path, TABLE_ENDINGS)
    names = as_names(targets, "targets")
    columns = [ID, LABEL, PROBABILITY, *(f"P({name})" for name in names)]
    if top is not None:
        top = min(require_whole_number("top", top), len(names))
        numbers = ["", *(f"_{i}" for i in range(2, top + 1))]
        columns = [ID, *(name + number for name in (LABEL, PROBABILITY) for number in numbers)]
    with open_writer(path, columns, metadata, digits=DIGITS) as put:
        writer = PredictionWriter(names, put, top)
        yield writer
        if writer.n_rows == 0:
            # The columns of a Parquet file are known from its first rows, even if these are none.
            writer.write([], [], np.empty((0, len(names)), np.float32))


def read_predictions(path: str | Path) -> Predictions:
    r"""Read a file that `open_predictions` wrote; its columns may be in any order.

    Parameters
    ----------
    path : str or Path
        A CSV or Parquet file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import read_predictions
    >>> text = "id,label,probability,P(cat),P(truck)\nx1,cat,0.75,0.75,0.25\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "predictions.csv")
    ...     _ = path.write_text(text)
    ...     found = read_predictions(path)
    >>> found.ids.tolist(), found.labels.tolist(), found.proba
    (['x1'], ['cat'], array([[0.75, 0.25]]))
    """
    table = open_table(path)
    found = [name for name in table.columns if name.startswith("P(") and name.endswith(")")]
    if not found:
        rule = f"must have one such as 'P(cat)' per class: {quote_names(table.columns)}"
        hint = "write all probabilities, not only the largest"
        table.refuse("columns", NO_VALUE, rule, hint=hint)
    with prefix_errors(path):
        targets = as_names([name[2:-1] for name in found], "the header")
    ids, labels = table.require_texts(ID), table.require_texts(LABEL)
    known = {*targets, REJECTED}
    for row, label in enumerate(labels):
        if label not in known:
            hint = suggest_name(label, targets)
            table.refuse("label", label, f"has no column 'P({label})'{hint}", row)
    proba = table.read_numbers(found, PROBABILITY_RULE)
    return Predictions(as_text_array(ids), as_text_array(labels), targets, proba)


# -------------------------------------------------------------------- writing


class PredictionWriter:
    """Validates predictions and writes them; `open_predictions` makes it."""

    def __init__(self, targets: tuple[str, ...], put: PutRows, top: int | None = None) -> None:
        self.targets, self._put, self._top, self.n_rows = targets, put, top, 0
        # A class may be called like rejected inputs.
        self._code = {REJECTED: -1} | {name: j for j, name in enumerate(targets)}

    def write(
        self, ids: Iterable[object] | None, labels: Iterable[object], proba: ArrayLike
    ) -> None:
        """Add some rows; without ids, the id of a row is its number in the file, from 0.

        The columns of ``proba`` are in the order that was given to `open_predictions`.
        """
        table = as_floats(np.asarray(proba))
        names = range(self.n_rows, self.n_rows + len(table)) if ids is None else ids
        texts, chosen = list(map(str, names)), list(map(str, labels))
        shape = (len(texts), len(self.targets))
        if table.shape != shape or len(chosen) != len(texts):
            rule = f"must have the shape {shape}, with as many labels ({len(chosen)})"
            raise InputError("proba", table.shape, rule)
        where = partial(name_row, "predictions", self.n_rows)
        PROBABILITY_RULE.refuse_first(table, where, self.targets.__getitem__)
        for row, label in enumerate(chosen):
            if label not in self._code:
                rule = f"is not one of the classes{suggest_name(label, self.targets)}"
                raise InputError("label", label, rule, where=where(row))
        rows, codes = np.arange(len(table)), np.array([self._code[x] for x in chosen], np.intp)
        codes = np.where(codes < 0, table.argmax(axis=1), codes)
        if self._top is None:
            self._put([texts, chosen], np.column_stack([table[rows, codes], table]))
        else:
            ranked = table.copy()
            ranked[rows, codes] = np.inf
            best = np.argsort(-ranked, axis=1, kind="stable")[:, : self._top]
            others = np.array(self.targets, object)[best[:, 1:]].T.tolist()
            self._put([texts, chosen, *others], np.take_along_axis(table, best, axis=1))
        self.n_rows += len(table)


# -------------------------------------------------------------------- true labels


def read_truth(
    path: str | Path, ids: Sequence[str], *, partial: bool = False
) -> NDArray[np.object_]:
    r"""Read the true labels of some inputs.

    Parameters
    ----------
    path : str or Path
        CSV or Parquet with a column ``label`` and optionally a column ``id``. With ids, the rows
        may be in any order, and ids that are not among the inputs are ignored. Without ids,
        the rows must be those of the inputs, in the same order.
    ids : sequence of str
        The ids of the inputs, as `read_predictions` returns them. The result has their order.
    partial : bool
        Whether some inputs may have no label. The result for these is an empty string.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import read_truth
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "truth.csv"
    ...     _ = path.write_text("id,label\nx2,truck\nx1,cat\n")
    ...     read_truth(path, ["x1", "x2"])
    array(['cat', 'truck'], dtype=object)
    """
    table = open_table(path)
    labels = [label if label.strip() else "" for label in table.read_texts(LABEL)[0]]
    if "" in labels and not partial:
        table.refuse("label", NO_VALUE, "is empty", labels.index(""))
    if ID in table.columns:
        row_of: dict[str, int] = {}
        for row, name in enumerate(table.require_texts(ID)):
            if (before := row_of.setdefault(name, row)) != row:
                table.refuse("id", name, f"is also in {table.where(before)}; remove one", row)
        labels = [labels[row_of[name]] if name in row_of else "" for name in ids]
    elif len(labels) != len(ids):
        rule = f"is the number of labels, but there are {len(ids)} inputs, and no column {ID!r}"
        table.refuse("labels", len(labels), rule)
    missing = [name for name, label in zip(ids, labels, strict=True) if not label]
    if missing and (not partial or len(missing) == len(ids)):
        rule = f"is an input without a label ({len(missing)} of {len(ids)} have none)"
        table.refuse("label", missing[0], rule)
    return as_text_array(labels)
