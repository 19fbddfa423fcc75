"""Parquet files of rankings: one ranking per row, with the fields of JSON lines as columns.

Names are read and written as numbers of a dictionary, so that no Python object is made per item.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, UnknownItemError, short_repr, suggest_item
from rankshot.core.files import NamedFile
from rankshot.core.tables import find_column, import_pyarrow, open_parquet, refuse_text_columns
from rankshot.core.validation import as_name, as_names, require_whole_number
from rankshot.ranking.construction import Kind, Where, validate_columns, validate_entries
from rankshot.ranking.entries import Entries, row_starts
from rankshot.ranking.rankings import Rankings

FIELDS = ("target", "ranking", "source", "rater", "weight", "kind", "k")
LABELS = ("target", "source", "rater")
ITEMS_KEY = b"rankshot.items"
"""The metadata in which a file names all its items, also those that no ranking lists."""
GROUP_ENTRIES = 2**22
"""Items listed in a row group that is written, and at most in one part of a file."""


def refuse_misspelt_field(field: str, where: str) -> None:
    """Raise for a field that is nearly one of ours: other fields are allowed, and ignored."""
    if field not in FIELDS and (close := get_close_matches(field.lower(), FIELDS, 1, cutoff=0.8)):
        raise RankshotError(f"{where}: field {short_repr(field)}: did you mean {close[0]!r}?")


# ---- Reading


def read_parquet(path: Path, items: Iterable[Any] | None, kind: Kind) -> Rankings:
    """Read all rankings of a Parquet file."""
    names = None if items is None else as_names(items)
    with open_parquet(path, dictionaries=True) as file:
        names = names or read_item_names(file, path)
        groups = range(file.num_row_groups)
        parts = list(iterate_row_groups(file, groups, names, path, kind))
    if not parts:
        raise RankshotError(f"{path}: no rankings in it")
    return join_portions(parts, names)


def join_portions(portions: list[Rankings], items: tuple[str, ...] | None) -> Rankings:
    """Join portions of files, over ``items`` or those that occur in any of them, sorted."""
    names = items or tuple(sorted({item for portion in portions for item in portion.items}))
    return Rankings.concatenate(portion.change_items(names) for portion in portions)


def read_item_names(file: Any, path: NamedFile) -> tuple[str, ...] | None:
    """Return the items that the metadata of a file name; None if they do not."""
    text = (file.metadata.metadata or {}).get(ITEMS_KEY)
    try:
        return None if text is None else as_names(json.loads(text))
    except ValueError:
        raise RankshotError(
            f"{path}: the metadata {ITEMS_KEY.decode()!r} is not a list of names"
        ) from None


def iterate_row_groups(
    file: Any,
    groups: Sequence[int],
    items: tuple[str, ...] | None,
    path: NamedFile,
    kind: Kind = "top",
) -> Iterator[Rankings]:
    """Yield the rankings of some row groups, over ``items`` or those that occur in the group."""
    columns = _require_columns(file.schema.to_arrow_schema(), path)
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    # One by one: PyArrow reads lists from several row groups only as text, and slowly.
    for group in groups:
        row = sum(sizes[:group])
        table = file.read_row_group(group, columns=columns, use_threads=False)
        for batch in table.to_batches():
            yield _RowReader(batch, row, path, kind).read(items)
            row += batch.num_rows


def _require_columns(schema: Any, path: NamedFile) -> list[str]:
    """Return the columns to read; raise for one of a wrong type, or that is nearly one of ours."""
    types = import_pyarrow().types
    for name in schema.names:
        refuse_misspelt_field(name, str(path))
    columns = [name for name in FIELDS if name in schema.names or name == "ranking"]
    kind_of = {name: schema.field(find_column(schema.names, name, path)).type for name in columns}
    lists = kind_of["ranking"]
    names = lists.value_type if _is_list(lists) else lists
    names = names.value_type if _is_list(names) else names
    if not _is_list(lists) or types.is_nested(names):
        raise RankshotError(f"{path}: column 'ranking' holds {lists}, not lists of names")
    for name, kind in kind_of.items():
        texts = (types.is_string, types.is_large_string, types.is_dictionary, types.is_null)
        if name in (*LABELS, "kind") and not any(is_text(kind) for is_text in texts):
            raise RankshotError(f"{path}: column {name!r} holds {kind}, not text")
    refuse_text_columns(schema, [name for name in ("weight", "k") if name in columns], path)
    return columns


class _RowReader:
    """Turns the rows of an Arrow table into `Rankings`; ``row`` is the number of the first.

    ``kind`` is that of rankings without one.
    """

    def __init__(self, batch: Any, row: int, path: NamedFile, kind: Kind) -> None:
        self._batch, self._row, self._path, self._kind = batch, row, path, kind
        self._compute = import_pyarrow("pyarrow.compute")

    def _where(self, row: int) -> str:
        return f"{self._path}: row {self._row + row}"

    def read(self, items: tuple[str, ...] | None) -> Rankings:
        values, places, starts = self._read_lists()

        def where(entry: int) -> str:
            return self._where(_owner(starts, entry))

        codes, names = _number_items(values, items, where)
        entries = validate_entries(Entries(codes, places, starts), names, self._where)
        rankings = Rankings(names, *entries, entries.sizes, *self._read_columns())
        return self._with_cut_ties(rankings)

    def _read_lists(self) -> tuple[Any, NDArray[np.int32], NDArray[np.int64]]:
        """Return the names in all lists, their places, and where each list starts."""
        groups, starts = self._flatten(self._batch.column("ranking"), "the ranking", self._where)
        places = _count_places(starts)
        if not _is_list(groups.type):
            return groups, places, starts

        def where(group: int) -> str:
            row = _owner(starts, group)
            return f"{self._where(row)}, place {group - starts[row] + 1}"

        values, group_starts = self._flatten(groups, "the tie", where)
        return values, np.repeat(places, np.diff(group_starts)), group_starts[starts]

    def _flatten(self, lists: Any, what: str, where: Where) -> tuple[Any, NDArray[np.int64]]:
        """Return the values of all lists, one after the other, and where each list starts."""
        sizes = _to_numbers(self._compute.list_value_length(lists), -1, np.int64)
        if np.any(sizes < 1):
            row = int(np.argmax(sizes < 1))
            raise RankshotError(
                f"{where(row)}: {what} is {'missing' if sizes[row] < 0 else 'empty'}"
            )
        return lists.flatten(), row_starts(sizes)

    def _read_columns(self) -> list[NDArray[Any]]:
        """Return the columns beside the lists: subset, weight, target, source, rater."""
        n, names = self._batch.num_rows, self._batch.schema.names
        weights = self._read_weights() if "weight" in names else None
        columns = list(validate_columns(n, weights=weights, kind=self._kind, where=self._where))
        if "kind" in names:
            kinds = self._read_labels("kind", ("top", "subset"))
            columns[0] = (kinds == "subset") | (columns[0] & (kinds != "top"))
        for i, name in enumerate(LABELS, 2):
            if name in names:
                columns[i] = self._read_labels(name)
        return columns

    def _read_weights(self) -> NDArray[np.float64]:
        column = self._batch.column("weight")
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise RankshotError(f"{self._where(row)}: the weight is missing")
        return _to_numbers(column, 1, np.float64)

    def _read_labels(self, name: str, allowed: Sequence[str] = ()) -> NDArray[np.object_]:
        column = self._batch.column(name)
        if import_pyarrow().types.is_null(column.type):
            return np.full(len(column), None, object)
        codes, values = _read_dictionary(column)
        for number, value in enumerate(values):
            if value not in allowed if allowed else value == "":
                rows = np.flatnonzero(codes == number)
                if rows.size:
                    rule = " or ".join(map(repr, allowed)) or "text or null"
                    raise RankshotError(
                        f"{self._where(int(rows[0]))}: {name} must be {rule}, "
                        f"not {short_repr(value)}"
                    )
        return np.array([*values, None], object)[codes]

    def _with_cut_ties(self, rankings: Rankings) -> Rankings:
        if "k" not in self._batch.schema.names or not len(rankings):
            return rankings
        column = self._batch.column("k")
        given = column.is_valid().to_numpy(zero_copy_only=False)
        numbers = np.where(given, _to_numbers(column, 0, np.float64), rankings.lengths)
        bad = ~((numbers >= 1) & (numbers <= rankings.n_listed) & (numbers == np.rint(numbers)))
        if bad.any():
            row = int(np.argmax(bad))
            most = int(rankings.n_listed[row])
            require_whole_number(f"{self._where(row)}: k", column[row].as_py(), most)
        return rankings.top(numbers.astype(np.int64))


def _is_list(kind: Any) -> bool:
    types = import_pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _owner(starts: NDArray[np.int64], entry: int) -> int:
    """Return the row that owns an entry."""
    return int(np.searchsorted(starts, entry, side="right")) - 1


def _count_places(starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return 0, 1, 2, … inside each row."""
    sizes = np.diff(starts)
    if sizes.size and np.all(sizes == sizes[0]):
        return np.tile(np.arange(sizes[0], dtype=np.int32), sizes.size)
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    return places.astype(np.int32)


def _to_numbers(column: Any, missing: int, kind: type) -> NDArray[Any]:
    arrow = import_pyarrow()
    numbers = column.cast(arrow.from_numpy_dtype(kind), safe=False).fill_null(missing)
    return np.asarray(numbers.to_numpy(zero_copy_only=False))


def _read_dictionary(column: Any) -> tuple[NDArray[np.int32], list[Any]]:
    """Return the number of each value, -1 where it is missing, and the values."""
    if not import_pyarrow().types.is_dictionary(column.type):
        column = column.dictionary_encode()
    return _to_numbers(column.indices, -1, np.int32), column.dictionary.to_pylist()


def _number_items(
    values: Any, items: tuple[str, ...] | None, where: Where
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return the item number of each value, and the items: by default those that occur."""
    numbers, labels = _read_dictionary(values)
    # Missing values have the number -1, the last one here.
    names = [as_name(label) for label in (*labels, None)]
    if items is None:
        used = np.bincount(numbers[numbers >= 0], minlength=len(labels))
        items = tuple(sorted({name for name, n in zip(names, used, strict=False) if name and n}))
    code = {name: i for i, name in enumerate(items)}
    recode = np.array([-1 if name is None else code.get(name, -1) for name in names], np.int32)
    codes = np.take(recode, numbers, mode="wrap")
    if codes.min(initial=0) < 0:
        first = int(np.argmax(codes < 0))
        name = names[numbers[first]]
        if name is None:
            label = [*labels, None][numbers[first]]
            raise RankshotError(f"{where(first)}: an item must be a name, not {short_repr(label)}")
        raise UnknownItemError(
            f"{where(first)}: unknown item {short_repr(name)}{suggest_item(name, items)}"
        )
    return codes, items


# ---- Writing


def put_rankings(rankings: Rankings, stream: BinaryIO) -> None:
    """Write rankings, one per row; columns that would only hold default values are left out."""
    parquet = import_pyarrow("pyarrow.parquet")
    table = _to_table(rankings)
    # Without the schema of Arrow, other programs read plain lists of text.
    with parquet.ParquetWriter(stream, table.schema, store_schema=False) as writer:
        writer.add_key_value_metadata({ITEMS_KEY: json.dumps(rankings.items)})
        rows = GROUP_ENTRIES * len(rankings) // max(1, rankings.codes.size)
        writer.write_table(table, row_group_size=max(1, rows))


def _to_table(rankings: Rankings) -> Any:
    arrow = import_pyarrow()
    columns = {"ranking": _to_lists(rankings)}
    for name in LABELS:
        labels = arrow.array(getattr(rankings, f"{name}s"), arrow.string())
        if labels.null_count < len(rankings):
            columns[name] = labels
    if np.any(rankings.weights != 1):
        columns["weight"] = arrow.array(rankings.weights)
    if rankings.is_subset.any():
        is_subset = arrow.array(rankings.is_subset.astype(np.int8))
        columns["kind"] = arrow.DictionaryArray.from_arrays(is_subset, ["top", "subset"])
    whole = rankings.lengths == rankings.n_listed
    if not whole.all():
        columns["k"] = arrow.array(rankings.lengths, mask=whole)
    return arrow.table(columns)


def _to_lists(rankings: Rankings) -> Any:
    """Return the names of each ranking in a list; in lists of lists if there are ties."""
    arrow = import_pyarrow()
    names = arrow.array(rankings.items, arrow.string())
    values = arrow.DictionaryArray.from_arrays(arrow.array(rankings.codes), names)
    if not rankings.has_ties:
        return arrow.LargeListArray.from_arrays(arrow.array(rankings.starts), values)
    is_first = rankings.lists.group_starts()
    groups = arrow.LargeListArray.from_arrays(arrow.array(np.flatnonzero(is_first)), values)
    group_number = np.cumsum(is_first) - 1
    return arrow.LargeListArray.from_arrays(arrow.array(group_number[rankings.starts]), groups)
