"""Tables of ballots: items in order, or a place or a score of each item, in wide or long form.

A wide table has one row per rater; a long one has a row for each item of a rater. A column that may
be something else than a place or an item, and numbers that may be places or scores, are errors
which name the option that decides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankshot.core.columns import Coded, RowChecks, Table, plain_name
from rankshot.core.errors import InputError, quote_names, short_repr
from rankshot.ranking.column_meanings import Meanings, Reading, find_role
from rankshot.ranking.construction import (
    Entries,
    Kind,
    find_first,
    number_items,
    number_rows,
    rank_entries,
    row_starts,
    validate_columns,
)
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.votes import check_known, read_weights

LAYOUTS = {
    "votes": "votes between two items",
    "orders": "items in order, best first",
    "places": "places, 1 is best",
    "scores": "scores, the highest is best",
}
BESIDE = {
    "age", "sex", "gender", "region", "country", "city", "state", "zip", "zipcode", "postcode",
    "income", "education", "occupation", "party", "duration", "durationinseconds", "startdate",
    "enddate", "recordeddate", "status", "progress", "finished", "ipaddress", "comment",
    "comments", "language", "userlanguage", "group", "condition", "year", "month", "wave", "n",
    "row", "index", "number", "collectorid", "total", "times", "locationlatitude", "category",
    "locationlongitude", "distributionchannel",
}  # fmt: skip
"""Names of columns that are seldom items, as `plain_name` writes them; so are those of raters,
prompts, ties and times."""
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
)  # fmt: skip
PLACE = re.compile(
    r"(?:(?P<before>rank(?:ed|ing)?|place|position|choice|pref(?:erence)?|top|vote|no|#)[\s_.#:-]*)?"
    rf"(?:(?P<number>\d+)(?P<end>st|nd|rd|th)?|(?P<word>{'|'.join(ORDINALS)}))"
    r"[\s_.-]*(?P<after>rank|place|choice|pref(?:erence)?|vote)?"
)
FEW_BALLOTS = 5
"""In fewer ballots, a column may be far from all others by chance."""
OTHER_TABLES = (
    "For votes between two items, name the columns with a=, b= and winner=; for one row per item "
    "of a rater, with rater=, item= and rank= or score="
)
CODES = (-1, -8, -9, -88, -98, -99, -999, -9999, 88, 98, 99, 888, 999, 9999)
"""Numbers that stand for missing values in SPSS and others."""
CODE_RATIO = 5
"""Such a positive number is suspected if it is this many times larger than all others."""


class _Listed(NamedTuple):
    """What ballots list, item by item: the ballot, its row, the item and its value, least first."""

    ballots: NDArray[np.int64]
    rows: NDArray[np.int64]
    codes: NDArray[np.integer]
    labels: list[str]
    values: NDArray[np.float64]

    def take(self, which: NDArray[Any]) -> _Listed:
        """Some of them."""
        ballots, rows, codes, labels, values = self
        return _Listed(ballots[which], rows[which], codes[which], labels, values[which])


def read_ballots(
    meanings: Meanings, kind: Kind, layout: str | None, *, has_missing: bool
) -> tuple[Rankings, Reading]:
    """Read ballots, one row per rater or per item of a rater; say how they were read."""
    table, known = meanings.table, meanings.items
    target, weight = meanings.find("target"), meanings.find("weight")
    item, value, role = _find_long(meanings)
    count = meanings.find("count", is_sure=not item and "count" not in meanings.named)
    # A lone column has the ballots, whatever its name.
    is_alone = not item and len(meanings.free()) == 1 and "rater" not in meanings.named
    others = () if meanings.is_all_used else ("name", "id")
    rater = None if is_alone else meanings.find("rater", *others)
    beside = {"raters": rater, "targets": target}
    labels = {what: table.read_coded(name)[0] for what, name in beside.items() if name}
    checks = RowChecks(table, table.read_coded(table.columns[0])[0].codes.size)
    if item:
        layout = layout or ("scores" if role == "score" else "places")
        listed, columns = _read_long(meanings, item, value, layout, checks, labels), None
    else:
        listed, layout, columns = _read_wide(meanings, layout, checks)
    if layout != "orders":
        listed = _take_listed(listed, layout, table, value, checks, has_missing=has_missing)
    if not item:
        is_empty = np.bincount(listed.rows, minlength=checks.kept.size) == 0
        checks.check(is_empty, "lists no item")
    if known and columns is None:
        check_known(listed.labels, listed.codes, listed.rows, known, checks)
    listed = listed.take(checks.kept[listed.rows])
    _check_copies(listed, checks, [*labels.values()] if item else [])
    weights = read_weights(table, weight, count, checks)
    checks.finish()
    listed = listed.take(checks.kept[listed.rows])
    if not listed.rows.size:
        table.refuse(value or "ballots", "", "must not be empty in all rows")
    names, codes = number_items(listed.labels, listed.codes, columns or known)
    _, first, ballots = np.unique(listed.ballots, return_index=True, return_inverse=True)
    rows, entries = listed.rows[first], rank_entries(ballots, codes, listed.values, first.size)
    is_partial = layout == "scores" and bool(np.any(entries.sizes < len(names)))
    more: dict[str, Any] = {what: each.select(rows).expand(None) for what, each in labels.items()}
    metadata = validate_columns(
        rows.size, weights=weights[rows], kind="subset" if is_partial else kind, **more
    )
    rankings = Rankings(names, *entries, entries.sizes, *metadata)
    return rankings.with_items(known) if known else rankings, meanings.finish(layout)


def _check_copies(listed: _Listed, checks: RowChecks, by: list[Coded]) -> None:
    """Check that no ballot lists an item twice; ``by`` says whose ballot a row is of."""
    again = np.ones(listed.rows.size, bool)
    number = listed.ballots * len(listed.labels) + listed.codes
    again[np.unique(number, return_index=True)[1]] = False

    def describe(entry: int) -> InputError:
        who = f" by {quote_names([each.text(listed.rows[entry]) for each in by])}" if by else ""
        hint = "distinguish a rater's rankings with target=" if by else ""
        rule = f"is listed more than once{who}"
        return InputError("item", listed.labels[listed.codes[entry]], rule, hint=hint)

    checks.check_entries(again, listed.rows, describe)


def parse_place(name: str) -> tuple[int, bool] | None:
    """Place that a name is of, and whether it cannot be the number of an item.

    Examples
    --------
    >>> [parse_place(name) for name in ("Third choice", "2nd", "rank_1", "4", "tea")]
    [(3, True), (2, True), (1, False), (4, False), None]
    """
    match = PLACE.fullmatch(name.strip().lower())
    if match is None:
        return None
    number, end, word = match["number"], match["end"], match["word"]
    choice = "choice" in {match["before"], match["after"]}
    place = int(number) if number else ORDINALS.index(word) + 1
    return place, bool(word or end or choice)


# ---- One row for each item of a rater


def _find_long(meanings: Meanings) -> tuple[str | None, str | None, str]:
    """Columns of items and of their places or scores, and which; none in a wide table."""
    items, values = meanings.match("item"), []
    for role in ("rank", "score"):
        values += [(name, role) for name in meanings.match(role)]
    named = [each for each in values if each[1] in meanings.named]
    if not items or not values:
        return None, None, ""
    if len(values) > 1 and not named:
        choices = {role: name for name, role in reversed(values)}
        rule = "may be ranks (1 is best) or scores (the highest is best)"
        meanings.table.refuse("rank", ", ".join(name for name, _ in values), rule, choices=choices)
    value, role = (named or values)[0]
    return meanings.use(items[0], "item"), meanings.use(value, role), role


def _read_long(
    meanings: Meanings,
    item: str,
    value: str | None,
    layout: str,
    checks: RowChecks,
    labels: dict[str, Coded],
) -> _Listed:
    """Ballots with one row for each item of a rater, and its place or score."""
    table = meanings.table
    if layout == "orders":
        table.refuse("layout", layout, f"does not suit one row per item, {item!r}")
    if not labels:
        table.refuse(
            "rater", ", ".join(table.columns), "must name one of the columns",
            hint=f"each row has one item, {item!r}, and its {value!r}: rater= or target= say which "
            "rows are one ranking",
        )  # fmt: skip
    items, cells = table.read_coded(item, str(value))
    meanings.refuse_no_items(item, items.labels)
    numbers = _read_numbers(table, str(value), cells, layout, checks)
    checks.check(items.is_empty, f"has no {item!r}")
    group = number_rows([each.codes for each in labels.values()], numbers.size)
    # Ballots are in the order in which they begin.
    begins = find_first(group)[group]
    return _Listed(begins, np.arange(numbers.size), items.codes, items.labels, numbers)


# ---- One row per rater: the columns are places, or items


def _read_wide(
    meanings: Meanings, layout: str | None, checks: RowChecks
) -> tuple[_Listed, str, tuple[str, ...] | None]:
    """What each row lists, the layout, and the columns of items, if they are items."""
    table, known, is_inferred = meanings.table, meanings.items, layout is None
    columns = meanings.free()
    if known and layout != "orders" and {*known} <= {*columns}:
        columns = list(known)
    read = zip(columns, table.read_coded(*columns), strict=True)
    cells = {name: x for name, x in read if not _are_row_numbers(name, x)}
    if not cells:
        table.refuse("columns", ", ".join(table.columns), "must have places or items")
    layout = layout or _recognise(table, cells)
    meanings.used |= dict.fromkeys(cells, "place" if layout == "orders" else "item")
    if layout == "orders":
        if len(cells) == 1:
            return _split_cells(meanings, *cells.popitem()), layout, None
        return _read_places(meanings, cells, is_inferred=is_inferred), layout, None
    numbers = np.column_stack(
        [_read_numbers(table, name, column, layout, checks) for name, column in cells.items()]
    )
    if not (meanings.are_chosen or known):
        _refuse_doubtful(table, cells)
        _require_alike(table, cells, numbers, layout)
    n, n_items = numbers.shape
    rows, codes = np.repeat(np.arange(n), n_items), np.tile(np.arange(n_items), n)
    return _Listed(rows, rows, codes, [*cells], numbers.ravel()), layout, tuple(cells)


def _recognise(table: Table, cells: dict[str, Coded]) -> str:
    """Layout of a wide table; raise if it may be read in two ways."""
    texts = [name for name, column in cells.items() if table.parse_numbers(column)[1].any()]
    places = [parse_place(name) for name in cells]
    if texts:
        if all(map(_has_ordinals, cells.values())) and not all(places):
            return "places"
        if len(texts) < len(cells) and not any(places):
            _refuse_columns(table, "hold text beside columns of numbers", texts, OTHER_TABLES)
        return "orders"
    if all(places) and all(place[1] for place in places if place):
        return "orders"
    may = "may be places (1 is best) or scores (the highest is best)"
    may += f", or items of the places {quote_names(cells, 3)}" if all(places) else ""
    choices = ("places", "scores", "orders")[: 3 if all(places) else 2]
    hint = "a classifier's scores are not ballots, but what `recognise` reads"
    raise InputError("layout", "numbers", may, str(table), hint, {"layout": choices})


def _refuse_doubtful(table: Table, cells: Iterable[str]) -> None:
    """Raise for columns that may be something else than items."""
    if doubtful := [name for name in cells if plain_name(name) in BESIDE or find_role(name)]:
        _refuse_columns(table, "may be items, or something else", doubtful)


def _refuse_columns(table: Table, what: str, columns: list[str], more: str = "") -> NoReturn:
    hint = f"leave out columns that are not items, or none; rater= names that of raters. {more}"
    table.refuse(
        "ignore", listed := ",".join(columns), what, hint=hint, choices={"ignore": (listed, "")}
    )


def _read_places(meanings: Meanings, cells: dict[str, Coded], *, is_inferred: bool) -> _Listed:
    """Items of each row, in the order of the columns of places."""
    table, known = meanings.table, meanings.items or ()
    places = {name: place[0] for name in cells if (place := parse_place(name))}
    items = {label for column in cells.values() for label in column.labels}
    if same := [name for name in cells if name in items and name not in places]:
        table.refuse(
            "columns", ", ".join(same), "names columns, and is in the ballots as well",
            hint="add a header above the first ballot, such as 1,2,3 or rater,1,2,3",
        )  # fmt: skip
    if places and len(places) < len(cells):
        others = [name for name in cells if name not in places]
        _refuse_columns(table, f"may be places, as {quote_names([*places], 3)} are", others)
    if not places and is_inferred:
        table.refuse(
            "layout", ", ".join(cells), "names columns that are not places",
            hint="layout='orders' reads them as places, the best on the left; columns of items "
            f"must have numbers. {OTHER_TABLES}",
        )  # fmt: skip
    if not places and not (meanings.are_chosen or known):
        _refuse_doubtful(table, cells)
    if len({*places.values()}) < len(places):
        table.refuse("layout", ", ".join(cells), "names a place twice")
    for name, column in cells.items():
        meanings.refuse_no_items(name, column.labels)
    for label in sorted(items - {*known}):
        if ">" in label or len(label.split("=")) > 1:
            _refuse_several(table, label)
    order = sorted(cells, key=lambda name: places.get(name, 0))
    return _list_items([cells[name] for name in order], lambda text: [[text]])


def _refuse_several(table: Table, label: str) -> NoReturn:
    table.refuse(
        "items", short_repr(label), "may be one item, or several in one cell",
        hint="name all items with items=, or write ballots in one column, such as tea > beer = "
        "juice, or items in cells of their own",
    )  # fmt: skip


def _split_cells(meanings: Meanings, name: str, column: Coded) -> _Listed:
    """Items of a single column, such as ``tea > beer = juice`` or ``tea;beer;``."""
    texts = [x for x in column.labels if x]
    sign = next((sign for sign in ">;" if any(sign in x for x in texts)), None)
    ambiguous = [x for x in texts if sign != ">" and any(mark in x for mark in ",|/\t")]
    if ambiguous and not {*ambiguous} <= {*(meanings.items or ())}:
        _refuse_several(meanings.table, ambiguous[0])

    def split(text: str) -> list[list[str]]:
        parts = [x.strip() for x in text.split(sign)] if sign else [text]
        return [[x.strip() for x in part.split("=")] for part in parts if part]

    meanings.refuse_no_items(name, [x for text in texts for tie in split(text) for x in tie])
    return _list_items([column], split)


def _list_items(columns: list[Coded], split: Callable[[str], list[list[str]]]) -> _Listed:
    """Items of the cells of columns, the best first; ``split`` returns those of a cell, in ties."""
    number: defaultdict[str, int] = defaultdict(count().__next__)
    cells = []
    for j, column in enumerate(columns):
        # The items of each label one after another, with their places.
        ties = [split(text) if text else [] for text in column.labels]
        listed = [(number[x], j + k) for each in ties for k, tie in enumerate(each) for x in tie]
        starts = row_starts(np.array([sum(map(len, each)) for each in ties]))
        codes, places = np.array(listed, np.int32).reshape(-1, 2).T
        cells.append(Entries(codes, places, starts).take(column.codes.astype(np.intp)))
    rows = np.concatenate([each.rows for each in cells])
    every = Entries.concatenate(cells)
    return _Listed(rows, rows, every.codes, [*number], every.places.astype(float))


def _read_numbers(
    table: Table, name: str, cells: Coded, layout: str, checks: RowChecks
) -> NDArray[np.float64]:
    """Places or scores in a column."""
    numbers, is_text = table.parse_numbers(cells)
    if is_text.any() and layout == "places" and _has_ordinals(cells):
        read = [parse_place(x) for x in cells.labels]
        return np.array([x[0] if x else np.nan for x in read])[cells.codes]
    rule = (
        f"is not one of the {layout}, which are numbers. Leave out a column that is not an item "
        f"with ignore={name!r}, name that of raters with rater=, and if the cells are names in "
        "order, give layout='orders'"
    )
    checks.check_cells(is_text, name, cells, rule)
    if layout == "places":
        rule = "is not a place: 1 is the best, and 0 or an empty cell means that it is not listed"
        checks.check_cells((numbers < 0) | np.isinf(numbers), name, cells, rule)
    return numbers


def _require_alike(
    table: Table, cells: dict[str, Coded], numbers: NDArray[np.float64], layout: str
) -> None:
    """Raise for a column of numbers that is far from all others."""
    low, high = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    if np.isfinite(low).sum() < 3 or len(numbers) < (2 if layout == "places" else FEW_BALLOTS):
        return
    for j in map(int, (np.nanargmax(low), np.nanargmin(high))):
        least, most = np.nanmin(np.delete(low, j)), np.nanmax(np.delete(high, j))
        if max(low[j] - most, least - high[j]) > most - least:
            what = "has numbers unlike all other columns: it may be an item, or something else"
            _refuse_columns(table, what, [[*cells][j]])


# ---- Numbers of items


def _take_listed(
    listed: _Listed,
    layout: str,
    table: Table,
    column: str | None,
    checks: RowChecks,
    *,
    has_missing: bool,
) -> _Listed:
    """Items with a place or a score, the best with the least value.

    The numbers are those of a ``column``, or of one column per item.
    """
    numbers = listed.values
    if not has_missing:
        _refuse_codes(table, listed, column)
        kept = checks.kept[listed.rows]
        # One 0 in each ballot, with 1, 2, … after it, may be the best place.
        zeros, ones, n = (
            np.bincount(listed.ballots[kept], which[kept])
            for which in (numbers == 0, numbers == 1, np.ones(numbers.size))
        )
        if layout == "places" and n.size and np.all(((zeros == 1) & (ones > 0))[n > 0]):
            table.refuse(
                "missing", "0", "may be the best place, or an item that is not listed",
                hint="count places from 1, or say that such items are not listed",
                choices={"missing": "0"},
            )  # fmt: skip
    is_listed = numbers > 0 if layout == "places" else ~np.isnan(numbers)
    sign = 1 if layout == "places" else -1
    return listed._replace(values=sign * numbers).take(is_listed)


def _refuse_codes(table: Table, listed: _Listed, column: str | None) -> None:
    """Raise for a number that may stand for a missing value."""
    numbers = listed.values
    values = np.unique(numbers[np.isfinite(numbers)])
    is_code = np.isin(values, CODES)
    rest = values[~is_code]
    for code in values[is_code] if rest.size else ():
        if rest.min() >= 0 if code < 0 else CODE_RATIO * rest.max() < code:
            i = int(np.argmax(numbers == code))
            name = column or listed.labels[listed.codes[i]]
            table.refuse(
                "missing", f"{code:g}", f"in {name!r} may be a number or a missing value",
                int(listed.rows[i]), choices={"missing": (f"{code:g}", "")},
            )  # fmt: skip


def _has_ordinals(cells: Coded) -> bool:
    """Whether the cells are places in words, such as 1st or "second choice"."""
    return all(not x or (parse_place(x) or (0, False))[1] for x in cells.labels)


def _are_row_numbers(name: str, cells: Coded) -> bool:
    """Whether a column without a name, as R and pandas write it, counts the rows."""
    if name and plain_name(name) != "unnamed0":
        return False
    numbers = [*map(str, range(len(cells.codes) + 1))]
    return cells.expand().tolist() in (numbers[:-1], numbers[1:])
