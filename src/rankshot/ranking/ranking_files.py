"""Files of rankings: JSON lines, Parquet and PrefLib's formats; tables of votes and of ballots.

A Parquet file has one ranking per row, with the fields of JSON lines as columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TextIO

from rankshot.core.arrays import row_blocks
from rankshot.core.columns import (
    COLUMN_ENDINGS,
    MISSING,
    Table,
    open_table,
    read_batches,
)
from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    prefix_errors,
    quote_names,
    suggest_name,
)
from rankshot.core.files import PACKED, replace_file, require_ending
from rankshot.core.tables import find_column
from rankshot.core.validation import as_names, require_choice, require_whole_number
from rankshot.ranking.ballots import LAYOUTS, read_ballots
from rankshot.ranking.column_meanings import ROLES, Meanings, Reading
from rankshot.ranking.construction import LIST_TYPES, Kind
from rankshot.ranking.preflib import PREFLIB_ENDINGS, read_preflib, write_preflib
from rankshot.ranking.rankings import Rankings, require_rankings
from rankshot.ranking.votes import Votes, is_votes, read_votes

ROWS_AT_ONCE = 20_000
"""Lines and rows are converted to arrays in portions: a large file is never held as objects."""
JSONL_ENDINGS = (".jsonl", ".ndjson")
ENDINGS = (*JSONL_ENDINGS, *PREFLIB_ENDINGS)
"""What is written."""
FIELDS = ("target", "ranking", "source", "rater", "weight", "kind", "k")
VOTE_ARGUMENTS = {name for name, role in ROLES.items() if role.tables == "votes"} - {"cluster"}
BALLOT_ARGUMENTS = {name for name, role in ROLES.items() if role.tables == "ballots"}
COLUMN_ARGUMENTS = VOTE_ARGUMENTS | BALLOT_ARGUMENTS | {"rater", "weight", "count", "outcomes"}
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
        By default those that occur in the file, sorted; for PrefLib files all items that the file
        names. From a table of places or scores, only the columns of these items are read.
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
        What to do with rows of a table that cannot be read: raise an error, or skip them with a
        warning that counts them and shows the first. Ambiguous tables always raise an error.
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
    given = {**(columns or {}), **named}
    named = {name: value for name, value in given.items() if value is not None}
    require_arguments(named, COLUMN_ARGUMENTS)
    beside = {"covariates": covariates, "cluster": cluster if isinstance(cluster, str) else None}
    if (tables := _open_orders(source)) is not None:
        name = str(source) if isinstance(source, (str, Path)) else "table"
        rater = named.pop("rater", None)
        unused = {"layout": layout, "ignore": ignore, "missing": missing, **named, **beside}
        unused["on_error"] = None if on_error == "stop" else on_error
        _refuse_unused(unused, "applies to tables of votes or ballots, not rankings", name)
        if Path(name).suffix in PREFLIB_ENDINGS:
            return Votes(read_preflib(Path(name), items, kind or "top"))
        return _read_orders(tables, name, items, kind, rater)
    ignored, outcomes = split_names(ignore), named.pop("outcomes", None)
    table = open_table(source, read_missing(missing), on_error)
    of_votes = {*named} & VOTE_ARGUMENTS or outcomes or covariates
    roles = {**named, "cluster": beside["cluster"]}
    found = Meanings(table, roles, ignored, items, is_complete=columns is not None)
    if layout == "votes" or of_votes or (layout is None and is_votes(table)):
        more = {name: named[name] for name in {*named} & BALLOT_ARGUMENTS}
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
        roles = quote_names(sorted(COLUMN_ARGUMENTS), 20)
        rule = f"is unknown{suggest_name(name, known)}; a table has {roles}"
        raise InputError(name, NO_VALUE, rule)


def split_names(names: str | Iterable[str] | None) -> list[str] | None:
    """Names that are separated by commas, or listed."""
    if names is None or not isinstance(names, str):
        return None if names is None else [*names]
    return [name.strip() for name in names.split(",") if name.strip()]


def read_missing(missing: str | Iterable[str] | None) -> set[str]:
    """Texts of missing cells: the usual ones and those given, or only empty cells if given none."""
    given = split_names(missing)
    return {""} if given == [] else MISSING | {*(given or ())}


def _open_orders(source: object) -> Iterator[Table] | None:
    """Tables of rankings, one per row, some at a time; None for a table of votes or ballots."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        ending = require_ending(path, dict.fromkeys((*ENDINGS, *COLUMN_ENDINGS)))
        if ending in PREFLIB_ENDINGS:
            return iter(())
        if ending.removesuffix(PACKED) not in (*JSONL_ENDINGS, ".parquet"):
            return None
        first = next(read_batches(path, batch_rows=1), None)
        return read_batches(path, batch_rows=ROWS_AT_ONCE) if _has_orders(first) else None
    table = open_table(source, nested=True)
    return iter([table]) if _has_orders(table) else None


def _has_orders(table: Table | None) -> bool:
    """Whether a table has a column of lists, which are rankings."""
    return (
        table is not None
        and "ranking" in table.columns
        and isinstance(table.read_values("ranking")[0], LIST_TYPES)
    )


def write_rankings(rankings: Rankings, path: str | Path) -> None:
    """Write rankings as JSON lines (.jsonl) or PrefLib (.soc, .soi, .toc, .toi).

    The file is written under another name and then renamed, so that it is never incomplete. A JSON
    lines file names only the items that are listed: to read the same rankings back, give
    `read_rankings` the same ``items``. A PrefLib file names all items, but cannot hold targets (at
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
        rule = "are none: there is nothing to write"
        raise InputError("rankings", NO_VALUE, rule, where=str(path))
    require_ending(path, ENDINGS)
    with replace_file(path) as stream:
        if path.suffix in JSONL_ENDINGS:
            for rows in row_blocks(len(rankings), 1, ROWS_AT_ONCE):
                write_jsonl(rankings[rows], stream)
        else:
            write_preflib(rankings, stream, path)


# ---- Records: a ranking as a line of JSON, or a row of Parquet or of a data frame


def _read_orders(
    tables: Iterable[Table],
    name: str,
    items: Iterable[object] | None,
    kind: Kind | None,
    rater: str | None,
) -> Votes:
    """Rankings in all tables, over the given items or those that occur in any, sorted."""
    listed = None if items is None else as_names(items)
    parts: list[Rankings] = []
    used: dict[str, str] = {}
    columns: dict[str, None] = {}
    for table in tables:
        own = rater or "rater"
        meanings = Meanings(table, {"rater": own} if own in table.columns else {})
        for field in table.columns:
            if field in FIELDS and field != "rater":
                meanings.use(field, field)
            elif close := {*get_close_matches(field.lower(), FIELDS, 1, cutoff=0.8)} - {field}:
                table.refuse("field", field, f"is unknown: did you mean {close.pop()!r}?")
        if rater is None or own in table.columns:
            meanings.find("rater", is_sure=True)
        used |= meanings.used
        columns |= dict.fromkeys(table.columns)
        parts.append(_build(table, meanings.used, listed, kind))
    if rater is not None:
        find_column([*columns], rater, name)
    every = listed or tuple(sorted({item for part in parts for item in part.items}))
    rankings = Rankings.concatenate(part.change_items(every) for part in parts)
    unused = tuple(column for column in columns if column not in used)
    return Votes(rankings, reading=Reading("rankings", used, unused))


def _build(
    table: Table, used: Mapping[str, str], items: tuple[str, ...] | None, kind: Kind | None
) -> Rankings:
    """Rankings of a table; a field that is null is left out."""
    fields = {role: table.read_values(name) for name, role in used.items()}
    orders = fields["ranking"]

    def read(field: str, default: Any = None) -> list[Any]:
        return [default if x is None else x for x in fields.get(field, [None] * len(orders))]

    rankings = Rankings.from_orders(
        orders,
        items=items,
        targets=read("target"),
        sources=read("source"),
        raters=read("rater"),
        weights=read("weight", 1),
        kind=read("kind", kind or "top"),
        where=table.where,
    )
    if kind is None and "shown" in table.columns:
        _require_kinds(table, read("kind"), rankings.items)
    lengths = rankings.lengths.copy()
    for row, k in enumerate(read("k")):
        if k is not None:
            with prefix_errors(table.where(row)):
                # Programs without missing whole numbers write floats.
                whole = int(k) if isinstance(k, float) and k.is_integer() else k
                lengths[row] = require_whole_number("k", whole, int(rankings.n_listed[row]))
    return rankings.top(lengths)


def _require_kinds(table: Table, kinds: list[Any], items: tuple[str, ...]) -> None:
    """Raise for a ranking of some items that were shown, if it does not say what it is."""
    for row, (shown, kind) in enumerate(zip(table.read_values("shown"), kinds, strict=True)):
        if kind is None and isinstance(shown, list) and not {*items} <= {*map(str, shown)}:
            table.refuse(
                "kind", NO_VALUE, 'must be given: "shown" does not have all items. The others may '
                "come after the ranking (top) or may not have been compared (subset)", row,
                hint='add a field "kind" to the file', choices={"kind": ("top", "subset")},
            )  # fmt: skip


def write_jsonl(rankings: Rankings, stream: TextIO) -> None:
    """Write rankings, one per line; default values (weight 1, top-K, no rater) are left out."""
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
        record = {name: value for name, value in fields.items() if value is not None}
        stream.write(json.dumps(record, ensure_ascii=False) + "\n")
