"""Files of rankings: JSON lines, Parquet and PrefLib's formats; tables of votes and of ballots.

A Parquet file has one ranking per row, with the fields of JSON lines as columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from difflib import get_close_matches
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from rankshot.core.arrays import row_blocks
from rankshot.core.columns import (
    COLUMN_ENDINGS,
    MISSING,
    find_readable,
    name_line,
    name_row,
    open_table,
    warn_of_skipped,
)
from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    prefix_errors,
    quote_names,
    suggest_name,
)
from rankshot.core.files import PACKED, read_lines, replace_file, require_ending
from rankshot.core.tables import as_frame, find_column, import_pyarrow, open_parquet
from rankshot.core.validation import as_names, require_choice, require_whole_number
from rankshot.ranking.ballots import LAYOUTS, read_ballots
from rankshot.ranking.column_meanings import Meanings, Reading, find_role
from rankshot.ranking.construction import Kind, Where
from rankshot.ranking.preflib import PREFLIB_ENDINGS, read_preflib, write_preflib
from rankshot.ranking.rankings import Rankings, require_rankings
from rankshot.ranking.votes import Votes, is_votes, read_votes

ROWS_AT_ONCE = 20_000
"""Lines and rows are converted to arrays in portions: a large file is never held as objects."""
JSONL_ENDINGS = (".jsonl", ".ndjson")
ENDINGS = (*JSONL_ENDINGS, ".parquet", *PREFLIB_ENDINGS)
FIELDS = ("target", "ranking", "source", "rater", "weight", "kind", "k")
LABELS = ("target", "source", "rater")
ITEMS_KEY = b"rankshot.items"
"""The metadata in which a file names all its items, also those that no ranking lists."""
SHARED_ARGUMENTS = {"rater", "weight", "count"}
VOTE_ARGUMENTS = {"a", "b", "winner", "loser", "tie", "category", "id", "outcomes"}
BALLOT_ARGUMENTS = {"target", "item", "rank", "score"}
COLUMN_ARGUMENTS = SHARED_ARGUMENTS | VOTE_ARGUMENTS | BALLOT_ARGUMENTS
TABLE_ARGUMENTS = COLUMN_ARGUMENTS | {"kind", "layout", "ignore", "missing", "on_error"}
"""What names the columns of a table, and says how to read them."""


def read_rankings(
    path: object,
    items: Iterable[object] | None = None,
    *,
    kind: Kind | None = None,
    layout: Literal["votes", "orders", "places", "scores"] | None = None,
    ignore: str | Iterable[str] | None = None,
    missing: str | Iterable[str] | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    columns: Mapping[str, str] | None = None,
    **named: str,
) -> Rankings:
    """Read rankings, ballots or votes: JSON lines, CSV, Parquet, PrefLib, or a data frame.

    Parameters
    ----------
    path : str, Path, data frame, list of dict or dict of lists
        In JSON lines, one ranking per line, such as
        ``{"target": "cat", "ranking": ["leopard", ["tiger", "lion"], "fox"], "weight": 1}``.
        ``target``, ``source``, ``rater``, ``weight``
        and ``kind`` (``"top"``, the default, or ``"subset"``) are optional; other fields are
        ignored. ``k`` means that only the first k of the listed items are ordered; it is needed
        where k cuts a tie.

        A Parquet file has the same fields as columns: ``ranking`` is a list of names or, with
        ties, a list of lists of names. Null means that a field is left out; a weight must be a
        number.

        Everything else is a table (.csv, .tsv, .json and .jsonl, each also with .gz; .parquet; a
        data frame; a `datasets.Dataset`; or records) of votes between two items
        (`leaderboards.read_votes`) or of ballots.
        Columns are separated by commas, semicolons or tabs. Ballots are either wide, with one row
        per rater and one column per place (``first``, ``2nd``, ``rank3``) or per item; or long,
        with the columns ``rater``, ``item`` and ``rank`` or ``score``. Columns of raters
        (``rater``, ``judge``, ``user_id``, ``name``, ...), ``target``, ``weight`` and ``count`` are
        optional. NA, NaN, null and the like are missing cells. A table that may mean two things is
        an `InputError` that names the argument for each.
    items : iterable of names, optional
        All items that could be ranked, in the desired order, such as a classifier's ``classes_``.
        By default those that occur in the file, sorted; for PrefLib files, and Parquet files that
        `write_rankings` wrote, all items that the file names. From a table of places or scores,
        only the columns of these items are read.
    kind : {"top", "subset"}, optional
        The kind of rankings for which the file does not specify one (PrefLib files never do):
        top-K rankings (the default) or subset rankings.
    layout : {"votes", "orders", "places", "scores"}, optional
        The content of a table: votes; ballots with the items in order, best first; or one column
        per item with its place (1 is best, 0 or empty is not listed) or its score (the highest is
        best, empty is not compared). It is needed if numbers in the columns of items could be
        either places or scores.
    ignore : str or list of str, optional
        Columns that are not used. For ballots, an empty string means that there are none: all
        columns are places or items, whatever their names.
    missing : str or list of str, optional
        Further values of missing cells, such as "-99". An empty string means that only empty cells
        are missing, and that NA and null are names.
    on_error : {"stop", "skip"}
        What to do with rows of a table, or lines of rankings, that cannot be read: raise an error,
        or skip them with a warning that counts them and shows the first. Ambiguous tables always
        raise an error.
    columns : dict, optional
        All columns that are used, by their roles, such as ``{"a": "left", "b": "right", "winner":
        "better"}``; nothing is guessed then.
    **named : str
        The columns of some roles, if they do not have the usual names: those of
        `leaderboards.read_votes`; and for ballots ``rater``, ``target``, ``weight``, ``count``, and
        in the long form ``item`` and ``rank`` or ``score``.

    Raises
    ------
    RankshotError
        If the file cannot be read; the message names the file and the line or row.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> line = '{"target": "cat", "ranking": ["leopard", ["tiger", "lion"], "fox"]}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rankings.jsonl")
    ...     _ = path.write_text(line)
    ...     rs.read_rankings(path)
    Rankings: 1 ranking of 4 items, 1 target
      cat: leopard > lion = tiger > fox
    """
    more: dict[str, Any] = {"ignore": ignore, "missing": missing, "on_error": on_error, **named}
    return read_source(path, items, kind, layout, columns=columns, **more).rankings


def read_source(
    source: object,
    items: Iterable[object] | None = None,
    kind: Kind | None = None,
    layout: str | None = None,
    *,
    ignore: str | Iterable[str] | None = None,
    missing: str | Iterable[str] | None = None,
    on_error: str = "stop",
    columns: Mapping[str, str] | None = None,
    covariates: tuple[str, ...] = (),
    cluster: str | bool = False,
    **named: Any,
) -> Votes:
    """Rankings, ballots or votes, with what was read beside them, and how.

    ``covariates`` and ``cluster`` are those of `read_votes`.
    """
    if kind is not None:
        require_choice("kind", kind, ("top", "subset"))
    if layout is not None:
        require_choice("layout", layout, LAYOUTS)
    skips = require_choice("on_error", on_error, ("stop", "skip")) == "skip"
    given = {**(columns or {}), **named}
    named = {name: value for name, value in given.items() if value is not None}
    require_arguments(named, COLUMN_ARGUMENTS)
    beside = {"covariates": covariates, "cluster": cluster if isinstance(cluster, str) else None}
    path = Path(source) if isinstance(source, (str, Path)) and has_rankings(Path(source)) else None
    records = None if path else _find_records(source)
    if path or records is not None:
        reader = _RecordReader(str(path or "table"), items, kind, named.pop("rater", None))
        unused = {"layout": layout, "ignore": ignore, "missing": missing, **named, **beside}
        rule = "applies to tables of votes or ballots, not rankings"
        _refuse_unused(unused, rule, reader.name)
        if path and path.suffix in {".parquet", *PREFLIB_ENDINGS}:
            rule = f"applies to tables and JSON lines, not {path.suffix}"
            _refuse_unused({"on_error": on_error if skips else None}, rule, reader.name)
        if path and path.suffix in PREFLIB_ENDINGS:
            return Votes(read_preflib(path, items, kind or "top"))
        if path and path.suffix == ".parquet":
            return reader.read(reader.iterate_parquet(path))
        if path:
            return reader.read(_iterate_lines(path), skips=skips)
        return reader.read([(records or [], partial(name_row, reader.name, 0))])
    ignored, outcomes = split_names(ignore), named.pop("outcomes", None)
    table = open_table(source, read_missing(missing), on_error)
    of_votes = {*named} & VOTE_ARGUMENTS or outcomes or covariates
    roles = {**named, "cluster": beside["cluster"]}
    found = Meanings(table, roles, ignored, items, is_complete=columns is not None)
    if layout == "votes" or of_votes or (layout is None and is_votes(table)):
        more = {name: named[name] for name in {*named} - VOTE_ARGUMENTS - SHARED_ARGUMENTS}
        _refuse_unused(more, "applies to ballots, but these are votes", str(table))
        if layout not in {None, "votes"}:
            rule = f"applies to votes, not to layout={layout!r}"
            _refuse_unused({**named, "outcomes": outcomes, **beside}, rule, str(table))
        return read_votes(found, outcomes, covariates, has_cluster=bool(cluster))
    _refuse_unused(beside, "must be of a table of votes between two items", str(table))
    rankings, reading = read_ballots(found, kind or "top", layout, has_missing=missing is not None)
    return Votes(rankings, reading=reading)


def _refuse_unused(arguments: Mapping[str, object], rule: str, where: str) -> None:
    for name, value in arguments.items():
        if value is not None and value != ():
            raise InputError(name, value, rule, where=where)


def require_arguments(arguments: Iterable[str], known: set[str]) -> None:
    """Raise for an argument that is not one of a table."""
    if unknown := {*arguments} - known:
        name = min(unknown)
        raise InputError(
            name,
            NO_VALUE,
            f"is unknown{suggest_name(name, known)}; a table has "
            f"{quote_names(sorted(COLUMN_ARGUMENTS), 20)}",
        )


def split_names(names: str | Iterable[str] | None) -> list[str] | None:
    """Names that are separated by commas, or listed."""
    if names is None or not isinstance(names, str):
        return None if names is None else [*names]
    return [name.strip() for name in names.split(",") if name.strip()]


def read_missing(missing: str | Iterable[str] | None) -> set[str]:
    """Texts of missing cells: the usual ones and those given, or only empty cells if given none."""
    given = split_names(missing)
    return {""} if given == [] else MISSING | {*(given or ())}


def _find_records(table: object) -> list[Any] | None:
    """Records of a data frame, or of what looks like one, if it has rankings as lists."""
    if isinstance(table, (list, tuple)):
        return [*table] if table and isinstance(table[0], dict) and "ranking" in table[0] else None
    frame = None if isinstance(table, (str, Path, dict)) else as_frame(table)
    if frame is None or "ranking" not in frame.columns or not len(frame):
        return None
    records = frame.rows(named=True)
    for record in records if isinstance(records[0]["ranking"], (list, np.ndarray)) else ():
        record["ranking"] = [
            x.tolist() if isinstance(x, np.ndarray) else x for x in record["ranking"]
        ]
    return records if isinstance(records[0]["ranking"], list) else None


def has_rankings(path: Path) -> bool:
    """Whether a file has one ranking per line or row, and is not a table of votes or ballots."""
    ending = require_ending(path, dict.fromkeys((*ENDINGS, *COLUMN_ENDINGS)))
    if ending in PREFLIB_ENDINGS:
        return True
    if ending == ".parquet":
        with open_parquet(path) as file:
            schema = file.schema_arrow
        # A table has other columns than lists.
        return "ranking" in map(str.strip, schema.names) or all(map(_is_list, schema.types))
    if ending.removesuffix(PACKED) not in JSONL_ENDINGS:
        return False
    with closing(read_lines(path)) as lines:
        _, first = next(lines, (0, "{}"))
    # A table has no lists; what is not JSON is an error of the reader of rankings.
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return True
    cells = record.values() if isinstance(record, dict) else ()
    return isinstance(record, dict) and (
        "ranking" in record or not any(isinstance(x, str) for x in cells)
    )


def write_rankings(rankings: Rankings, path: str | Path) -> None:
    """Write rankings as JSON lines (.jsonl), Parquet or PrefLib (.soc, .soi, .toc, .toi).

    The file is written under another name and then renamed, so that it is never incomplete. A JSON
    lines file names only the items that are listed: to read the same rankings back, give
    `read_rankings` the same ``items``. Parquet files hold everything about a ranking and all
    items. A PrefLib file also names all items, but cannot hold targets (at
    most one is allowed), sources or raters; these are left out.

    Parameters
    ----------
    rankings : Rankings
    path : str or Path
        The file to write; its extension determines the format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["leopard", ["tiger", "lion"]]], targets="cat")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.jsonl"
    ...     rs.write_rankings(votes, path)
    ...     print(path.read_text().strip())
    ...     again = rs.read_rankings(path)
    {"target": "cat", "ranking": ["leopard", ["lion", "tiger"]]}
    >>> again == votes
    True
    """
    path = Path(path)
    require_rankings(rankings)
    if len(rankings) == 0:
        raise InputError(
            "rankings", NO_VALUE, "are none: there is nothing to write", where=str(path)
        )
    require_ending(path, ENDINGS)
    with replace_file(path) as stream:
        if path.suffix == ".parquet":
            write_parquet(rankings, stream.buffer)
        elif path.suffix in JSONL_ENDINGS:
            write_jsonl(rankings, stream)
        else:
            write_preflib(rankings, stream, path)


# ---- Records: a ranking as a line of JSON, or a row of Parquet or of a data frame


_Portion = tuple[list[Any], Where]
"""Some records, and how they are called in messages."""


class _RecordReader:
    """Reads rankings from records, and notes their fields.

    Parameters
    ----------
    name : str
        The file, for messages.
    items, kind
        As for `read_rankings`.
    rater : str, optional
        The field that says who gave a ranking.
    """

    def __init__(
        self, name: str, items: Iterable[object] | None, kind: Kind | None, rater: str | None
    ) -> None:
        self.name, self._kind, self._rater = name, kind, rater
        self._items = None if items is None else as_names(items)
        self._fields: dict[str, None] = {}

    def read(self, portions: Iterable[_Portion], *, skips: bool = False) -> Votes:
        """Rankings of all records, over the given items or those that occur in any, sorted.

        With ``skips``, a warning counts those that cannot be read.
        """
        parts: list[Rankings] = []
        problems: list[str] = []
        n = 0
        for records, where in portions:
            n += len(records)
            rows: list[int] = [*range(len(records))]
            if skips:
                rows, odd = find_readable(rows, lambda some: self._build(some, records, where))  # noqa: B023
                problems += [text for _, text in odd]
            if rows:
                parts.append(self._build(rows, records, where))
                if self._kind is None:
                    # Not a matter of single records: none is skipped for it.
                    self._require_kinds(rows, records, where, {*parts[-1].items})
        if not parts:
            rule = "contains no rankings"
            if problems:
                rule = f"has no line that can be read; the first: {problems[0]}"
            raise InputError("file", NO_VALUE, rule, where=self.name)
        if problems:
            warn_of_skipped(len(problems), n, problems)
        names = self._items or tuple(sorted({item for part in parts for item in part.items}))
        rankings = Rankings.concatenate(part.change_items(names) for part in parts)
        rater = self._find_rater()
        roles = {name: "rater" if name == rater else name for name in self._fields}
        used = {name: role for name, role in roles.items() if role in FIELDS}
        unused = tuple(name for name in self._fields if name not in used)
        return Votes(rankings, reading=Reading("rankings", used, unused))

    def _build(self, rows: Sequence[int], records: list[Any], all_where: Where) -> Rankings:
        """Rankings of some records; a field that is null is left out."""

        def where(i: int) -> str:
            return all_where(rows[i])

        some = [records[row] for row in rows]
        for i, record in enumerate(some):
            if isinstance(record, InputError):
                record.where = where(i)
                raise record
            if type(record) is not dict or type(record.get("ranking")) is not list:
                rule = 'must be an object with a list "ranking"'
                raise InputError("line", record, rule, where=where(i))
            if new := record.keys() - self._fields.keys():
                for field in new:
                    _refuse_misspelt_field(field, where(i))
                self._fields |= dict.fromkeys(record)

        def column(field: str, default: Any = None) -> list[Any]:
            return [default if (x := record.get(field)) is None else x for record in some]

        rankings = Rankings.from_orders(
            column("ranking"),
            items=self._items,
            targets=column("target"),
            sources=column("source"),
            raters=column(self._find_rater()),
            weights=column("weight", 1),
            kind=column("kind", self._kind or "top"),
            where=where,
        )
        ks = column("k")
        if set(ks) == {None}:
            return rankings
        return rankings.top(_read_lengths(ks, rankings, where))

    def iterate_parquet(self, path: Path) -> Iterator[_Portion]:
        """Yield the rows of a Parquet file, which may name all items."""
        with open_parquet(path) as file:
            self._items = self._items or _read_item_names(file, path)
            self._fields |= dict.fromkeys(file.schema_arrow.names)
            columns = [*_find_fields(file.schema_arrow, path), *([self._rater] * bool(self._rater))]
            begin = 0
            groups = (file.read_row_group(i, columns) for i in range(file.num_row_groups))
            for batch in chain.from_iterable(group.to_batches(ROWS_AT_ONCE) for group in groups):
                yield batch.to_pylist(), partial(name_row, path, begin)
                begin += batch.num_rows

    def _find_rater(self) -> str:
        """Name of the field that says who gave a ranking: "rater", or one with such a name."""
        if self._rater is not None:
            find_column([*self._fields], self._rater, self.name)
            return self._rater
        people = [field for field in self._fields if find_role(field) == "rater"]
        if len(people) > 1 and "rater" not in people:
            raise InputError(
                "rater", ", ".join(people), "may all say who gave a ranking", where=self.name,
                hint=f"choose with {' or '.join(f'rater={name!r}' for name in people)}",
            )  # fmt: skip
        return people[0] if people and "rater" not in people else "rater"

    def _require_kinds(
        self, rows: list[int], records: list[Any], where: Where, items: set[str]
    ) -> None:
        """Raise for a ranking of some items that were shown, if it does not say what it is."""
        for row in rows:
            shown = records[row].get("shown")
            is_part = type(shown) is list and not items <= {*map(str, shown)}
            if is_part and "kind" not in records[row]:
                raise InputError(
                    "kind",
                    NO_VALUE,
                    'must be given: "shown" does not have all items. The others may come after the '
                    'ranking (kind="top") or may not have been compared (kind="subset")',
                    where=where(row),
                    hint='pass kind=, or add a field "kind" to the file',
                )


def _read_lengths(ks: list[Any], rankings: Rankings, where: Where) -> NDArray[np.int64]:
    """How many of the listed items are ordered: k, or all."""
    lengths = rankings.lengths.copy()
    for row, (k, most) in enumerate(zip(ks, rankings.n_listed.tolist(), strict=True)):
        if k is not None:
            with prefix_errors(where(row)):
                # Programs without missing whole numbers write floats.
                whole = int(k) if isinstance(k, float) and k.is_integer() else k
                lengths[row] = require_whole_number("k", whole, most)
    return lengths


def _iterate_lines(path: Path) -> Iterator[_Portion]:
    """Yield the records of JSON lines, and an error in place of what is not JSON."""
    decode = json.JSONDecoder().decode
    with closing(read_lines(path)) as lines:
        for portion in iter(lambda: list(islice(lines, ROWS_AT_ONCE)), []):
            records: list[Any] = []
            for _, line in portion:
                try:
                    records.append(decode(line))
                except (ValueError, RecursionError) as error:
                    records.append(InputError("line", line, f"is not JSON ({error})"))
            yield records, partial(name_line, path, [number for number, _ in portion])


def _refuse_misspelt_field(field: str, where: str) -> None:
    """Raise for a field that is nearly one of ours: other fields are allowed, and ignored."""
    if field not in FIELDS and (close := get_close_matches(field.lower(), FIELDS, 1, cutoff=0.8)):
        raise InputError("field", field, f"is unknown: did you mean {close[0]!r}?", where=where)


def _iterate_records(rankings: Rankings) -> Iterator[dict[str, Any]]:
    """Yield a record of each ranking; default values (weight 1, top-K, no rater) are left out."""
    cut = rankings.lengths < rankings.n_listed
    for row, order in enumerate(rankings.orders()):
        weight = float(rankings.weights[row])
        fields = {
            "target": rankings.targets[row],
            "ranking": order,
            "k": int(rankings.lengths[row]) if cut[row] else None,
            "kind": "subset" if rankings.is_subset[row] else None,
            "source": rankings.sources[row],
            "rater": rankings.raters[row],
            "weight": None if weight == 1 else int(weight) if weight.is_integer() else weight,
        }
        yield {name: value for name, value in fields.items() if value is not None}


def write_jsonl(rankings: Rankings, stream: TextIO) -> None:
    """Write rankings, one per line."""
    for rows in row_blocks(len(rankings), 1, ROWS_AT_ONCE):
        stream.writelines(
            json.dumps(record, ensure_ascii=False) + "\n"
            for record in _iterate_records(rankings[rows])
        )


# ---- Parquet


def _read_item_names(file: Any, path: Path) -> tuple[str, ...] | None:
    """Items that the metadata of a file name; None if they do not."""
    text = (file.metadata.metadata or {}).get(ITEMS_KEY)
    try:
        return None if text is None else as_names(json.loads(text))
    except ValueError:
        raise InputError(
            "metadata", ITEMS_KEY.decode(), "is not a list of names", where=str(path)
        ) from None


def _find_fields(schema: Any, path: Path) -> list[str]:
    """Columns to read; an error for one that is nearly one of ours, and for rankings of a type."""
    for name in schema.names:
        _refuse_misspelt_field(name, str(path))
    kind = schema.field(find_column(schema.names, "ranking", path)).type
    if not _is_list(kind):
        raise InputError(
            "ranking", NO_VALUE, f"must be a column of lists of names, not {kind}", where=str(path)
        )
    return [name for name in schema.names if name in FIELDS or find_role(name) == "rater"]


def _is_list(kind: Any) -> bool:
    """Whether a type of Arrow is that of lists."""
    types = import_pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def write_parquet(rankings: Rankings, stream: BinaryIO) -> None:
    """Write rankings, one per row; columns that would only hold default values are left out."""
    arrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
    text, ties = arrow.string(), rankings.has_ties
    fields = {
        "ranking": (arrow.list_(arrow.list_(text) if ties else text), True),
        **{name: (text, bool(getattr(rankings, f"{name}_names"))) for name in LABELS},
        "weight": (arrow.float64(), bool(np.any(rankings.weights != 1))),
        "kind": (text, bool(rankings.is_subset.any())),
        "k": (arrow.int64(), bool(np.any(rankings.lengths < rankings.n_listed))),
    }
    schema = arrow.schema([(name, kind) for name, (kind, is_used) in fields.items() if is_used])
    # Without the schema of Arrow, other programs read plain lists of text.
    options = {"store_schema": False, "write_page_checksum": True}
    with parquet.ParquetWriter(stream, schema, **options) as writer:
        writer.add_key_value_metadata({ITEMS_KEY: json.dumps(rankings.items)})
        for rows in row_blocks(len(rankings), 1, ROWS_AT_ONCE):
            records = [{"kind": "top", **x} for x in _iterate_records(rankings[rows])]
            for record in records:
                record["weight"] = float(record.get("weight", 1))
                if ties:
                    order = record["ranking"]
                    record["ranking"] = [x if isinstance(x, list) else [x] for x in order]
            writer.write_table(arrow.Table.from_pylist(records, schema))
