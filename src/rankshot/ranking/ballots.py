"""Tables of ballots: items in order, or a place or a score of each item, in wide or long form.

A wide table has one row per rater; a long one has a row for each item of a rater. A column that may
be something else than a place or an item, and numbers that may be places or scores, are errors
which name the option that decides.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankshot.core.columns import Coded, RowChecks, Table, plain_name
from rankshot.core.errors import InputError, quote_names, short_repr
from rankshot.core.validation import as_names
from rankshot.ranking.column_meanings import (
    NO_ITEMS,
    Meanings,
    Reading,
    find_role,
    refuse_cells,
    refuse_no_items,
)
from rankshot.ranking.construction import (
    Entries,
    Kind,
    count_places,
    find_first,
    number_items,
    number_rows,
    rank_sorted,
    row_starts,
    validate_columns,
)
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.votes import NAMED, check_known, read_weights

LAYOUTS = {
    "votes": "votes between two items",
    "orders": "items in order, best first",
    "places": "places, 1 is best",
    "scores": "scores, the highest is best",
}
ITEMS = (*NAMED, "alternative", "product", "item_name", "item_id")
RANKS = ("rank", "place", "position", "ranking")
SCORES = ("score", "rating", "points", "grade")
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
COUNTS = ("count", "freq", "frequency")
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
    meanings: Meanings,
    items: Iterable[object] | None,
    kind: Kind,
    layout: str | None,
    *,
    has_missing: bool,
) -> tuple[Rankings, Reading]:
    """Read ballots, one row per rater or per item of a rater; say how they were read."""
    table, named = meanings.table, meanings.named
    target, weight = meanings.find("target"), meanings.find("weight")
    known = None if items is None else as_names(items)
    value = _find_value(meanings)
    item = meanings.find_one(ITEMS, "item") if value else None
    is_long = bool(item and value)
    find_count = is_long or "count" in named
    count = meanings.find("count") if find_count else meanings.find_one(COUNTS, "count")
    if not is_long:
        for name in (item, value):
            meanings.used.pop(name or "", None)
    # A lone column has the ballots, whatever its name.
    is_alone = not is_long and len(meanings.free()) == 1 and "rater" not in named
    others = () if meanings.is_all_used else ("name", "id", "response_id")
    rater = None if is_alone else meanings.find("rater", others)
    beside = {"raters": rater, "targets": target}
    labels = {what: table.read_coded(name)[0] for what, name in beside.items() if name}
    checks = RowChecks(table, table.read_coded(table.columns[0])[0].codes.size)
    columns = None
    if item and value:
        layout = layout or ("scores" if meanings.used[value] == "score" else "places")
        listed = _read_long(table, item, value, layout, known, checks, labels)
    else:
        wide = _WideTable(meanings, layout, known=known, checks=checks)
        listed, layout = wide.read(), wide.layout
        role = {"orders": "place"}.get(layout, "item")
        meanings.used |= dict.fromkeys(wide.cells, role)
        columns = None if layout == "orders" else tuple(wide.cells)
    if layout != "orders":
        listed = _take_listed(
            listed, layout, table, value if is_long else None, checks, has_missing=has_missing
        )
    if not is_long:
        is_empty = np.bincount(listed.rows, minlength=checks.kept.size) == 0
        checks.check(is_empty, lambda _: "the ranking is empty")
    if known and columns is None:
        check_known(listed.labels, listed.codes, listed.rows, known, checks)
    by = [*labels.values()] if is_long else []
    _check_copies(listed, checks, by)
    weights = read_weights(table, weight, count, checks)
    checks.finish()
    listed = listed.take(checks.kept[listed.rows])
    if not listed.rows.size:
        raise InputError(value or "ballots", "", "must not be empty in all rows", str(table))
    names, entries, rows = _rank(listed, columns or known, table)
    is_partial = layout == "scores" and bool(np.any(entries.sizes < len(names)))
    more: dict[str, Any] = {what: each.select(rows).expand(None) for what, each in labels.items()}
    metadata = validate_columns(
        rows.size, weights=weights[rows], kind="subset" if is_partial else kind, **more
    )
    rankings = Rankings(names, *entries, entries.sizes, *metadata)
    return rankings.with_items(known) if known else rankings, meanings.finish(layout)


def _rank(
    listed: _Listed, items: tuple[str, ...] | None, table: Table
) -> tuple[tuple[str, ...], Entries, NDArray[np.int64]]:
    """Items, what each ballot lists, the least values first, and a row of each ballot."""
    listed = listed.take(np.lexsort((listed.values, listed.ballots)))
    firsts = np.flatnonzero(np.diff(listed.ballots, prepend=-1))
    starts = np.append(firsts, listed.rows.size)
    names, codes = number_items(
        listed.labels, listed.codes, items, lambda i: table.where(int(listed.rows[i]))
    )
    entries = Entries(codes, rank_sorted(listed.values, starts), starts).sort_ties()
    return names, entries, listed.rows[firsts]


def _check_copies(listed: _Listed, checks: RowChecks, by: list[Coded]) -> None:
    """Check that no ballot lists an item twice; ``by`` says whose ballot a row is of."""
    some = np.flatnonzero(checks.kept[listed.rows])
    pairs = [listed.ballots[some], listed.codes[some]]
    again = np.ones(some.size, bool)
    again[find_first(number_rows(pairs, some.size))] = False
    item_of = dict(
        zip(listed.rows[some[again]].tolist(), listed.codes[some[again]].tolist(), strict=True)
    )
    is_bad = np.zeros(checks.kept.size, bool)
    is_bad[[*item_of]] = True

    def describe(row: int) -> InputError:
        who = f" by {quote_names([each.text(row) for each in by])}" if by else ""
        hint = "distinguish a rater's rankings with target=" if by else ""
        rule = f"is listed more than once{who}"
        return InputError("item", listed.labels[item_of[row]], rule, hint=hint)

    checks.check(is_bad, describe)


def _find_value(meanings: Meanings) -> str | None:
    """Column of places or scores in a long table."""
    for role in ("rank", "score"):
        if role in meanings.named:
            return meanings.use(meanings.named[role], role)
    values = meanings.list_named((*RANKS, *SCORES))
    if len(values) > 1 and meanings.list_named(ITEMS):
        raise InputError(
            "rank", ", ".join(values), "may be ranks (1 is best) or scores (the highest is best)",
            where=str(meanings.table),
            hint=f"choose with {' or '.join(f'{_find_role(x)}={x!r}' for x in values)}",
        )  # fmt: skip
    return meanings.use(values[0], _find_role(values[0])) if values else None


def _find_role(name: str) -> str:
    return "score" if plain_name(name) in SCORES else "rank"


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


class _WideTable:
    """Ballots with one row per rater: the columns are places, or items."""

    def __init__(
        self,
        meanings: Meanings,
        layout: str | None,
        *,
        known: tuple[str, ...] | None,
        checks: RowChecks,
    ) -> None:
        self._table, self._known, self._checks = meanings.table, known, checks
        self._is_decided, self._is_inferred = (
            meanings.are_chosen or known is not None,
            layout is None,
        )
        columns = meanings.free()
        if known and layout != "orders" and {*known} <= {*columns}:
            columns = list(known)
        read = zip(columns, self._table.read_coded(*columns), strict=True)
        self.cells = {name: x for name, x in read if not _are_row_numbers(name, x)}
        if not self.cells:
            listed = ", ".join(self._table.columns)
            raise InputError("columns", listed, "must have places or items", where=str(self._table))
        self.layout = layout or self._recognise()

    def read(self) -> _Listed:
        """What each row lists."""
        if self.layout == "orders":
            return self._split_cells() if len(self.cells) == 1 else self._read_places()
        numbers = self._read_numbers()
        if not self._is_decided:
            self._refuse_columns()
            self._require_alike(numbers)
        n, n_items = numbers.shape
        rows, codes = np.repeat(np.arange(n), n_items), np.tile(np.arange(n_items), n)
        return _Listed(rows, rows, codes, [*self.cells], numbers.ravel())

    # ---- What the cells are

    def _recognise(self) -> str:
        """Layout; raise if the table may be read in two ways."""
        parse = self._table.parse_numbers
        texts = [name for name, cells in self.cells.items() if parse(cells)[1].any()]
        numbers = [name for name in self.cells if name not in texts]
        places = [parse_place(name) for name in self.cells]
        if texts:
            if all(map(_has_ordinals, self.cells.values())) and not all(places):
                return "places"
            if numbers and not any(places):
                self._refuse("hold text beside columns of numbers", texts, OTHER_TABLES)
            return "orders"
        if all(places) and all(place[1] for place in places if place):
            return "orders"
        may = "may be places (1 is best, layout='places') or scores (the highest is best, "
        may += "layout='scores')"
        if all(places):
            may += f", or items of the places {quote_names(self.cells, 3)} (layout='orders')"
        raise InputError("layout", "numbers", may, where=str(self._table), hint="choose one")

    def _refuse_columns(self) -> None:
        """Raise for columns that may be something else than items."""
        doubtful = [name for name in self.cells if plain_name(name) in BESIDE or find_role(name)]
        if doubtful and not self._is_decided:
            self._refuse("may be items, or something else", doubtful)

    def _refuse(self, what: str, columns: list[str], more: str = "") -> NoReturn:
        listed = ",".join(columns)
        raise InputError(
            "ignore", listed, what, where=str(self._table),
            hint=f"ignore={listed!r} leaves out columns that are not items; if all are, give "
            f"ignore=''; rater= names the column of raters. {more}".rstrip(),
        )  # fmt: skip

    # ---- Items in order

    def _read_places(self) -> _Listed:
        """Items of each row, in the order of the columns of places."""
        cells = self.cells
        self._require_header()
        places = {name: place[0] for name in cells if (place := parse_place(name))}
        if places and len(places) < len(cells):
            others = [name for name in cells if name not in places]
            self._refuse(f"may be places, as {quote_names([*places], 3)} are", others)
        if not places and self._is_inferred:
            raise InputError(
                "layout", ", ".join(cells), "names columns that are not places",
                where=str(self._table),
                hint="layout='orders' reads them as places, the best on the left; columns of "
                f"items must have numbers. {OTHER_TABLES}",
            )  # fmt: skip
        if not places:
            self._refuse_columns()
        if len({*places.values()}) < len(places):
            raise InputError(
                "layout", ", ".join(cells), "names a place twice", where=str(self._table)
            )
        for name, column in cells.items():
            refuse_no_items(self._table, name, column, {*(self._known or ())})
        order = sorted(cells, key=lambda name: places.get(name, 0))
        ties = self._find_ties()
        return _list_items([cells[name] for name in order], lambda text: [ties.get(text, [text])])

    def _require_header(self) -> None:
        """Raise if the columns have the names of items: then the first row is a ballot."""
        items = {name for cells in self.cells.values() for name in cells.labels}
        same = [name for name in self.cells if name in items and parse_place(name) is None]
        if same:
            raise InputError(
                "columns", ", ".join(same), "names columns, and is in the ballots as well",
                where=f"{self._table}:1", hint="add a header above the first ballot, such as "
                "1,2,3 or rater,1,2,3",
            )  # fmt: skip

    def _find_ties(self) -> dict[str, list[str]]:
        """Ties that cells such as ``tea=beer`` stand for."""
        labels = {label for cells in self.cells.values() for label in cells.labels}
        names = {*self._known} if self._known else labels
        ties: dict[str, list[str]] = {}
        for label in sorted(labels - {*(self._known or ())}):
            parts = [part.strip() for part in label.split("=")]
            if len(parts) > 1 and {*parts} <= names:
                ties[label] = parts
            elif len(parts) > 1 or ">" in label:
                self._refuse_cell(label)
        return ties

    def _refuse_cell(self, label: str) -> NoReturn:
        raise InputError(
            "items", short_repr(label), "may be one item, or several in one cell",
            where=str(self._table), hint="name all items with items=, or separate items by '>', "
            "best first, or write them in cells of their own",
        )  # fmt: skip

    def _split_cells(self) -> _Listed:
        """Items of a single column, such as ``tea > beer = juice`` or ``tea;beer;``."""
        ((name, cells),) = self.cells.items()
        texts = [x for x in cells.labels if x]
        sign = next((sign for sign in ">;" if any(sign in x for x in texts)), None)
        ambiguous = [x for x in texts if sign != ">" and any(mark in x for mark in ",|/\t")]
        if ambiguous and not {*ambiguous} <= {*(self._known or ())}:
            self._refuse_cell(ambiguous[0])

        def split(text: str) -> list[list[str]]:
            parts = [x.strip() for x in text.split(sign)] if sign else [text]
            return [[x.strip() for x in part.split("=")] for part in parts if part]

        for item in {x for text in texts for tie in split(text) for x in tie}:
            if plain_name(item) in NO_ITEMS and item not in (self._known or ()):
                refuse_cells(self._table, name, item, "an item, or none")
        return _list_items([cells], split)

    # ---- Numbers of items

    def _read_numbers(self) -> NDArray[np.float64]:
        columns = []
        for name, cells in self.cells.items():
            numbers, is_text = self._table.parse_numbers(cells)
            if is_text.any() and self.layout == "places" and _has_ordinals(cells):
                read = [parse_place(x) for x in cells.labels]
                numbers = np.array([x[0] if x else np.nan for x in read])[cells.codes]
            else:
                rule = (
                    f"{self.layout} must be numbers. Use ignore={name!r} to leave out a column "
                    "that is not an item, and rater= to name the column of raters; if the cells "
                    "are names in order, give layout='orders'"
                )
                self._checks.check_cells(is_text, name, cells, rule)
            if self.layout == "places":
                rule = "1 is the best place, and 0 or an empty cell means that it is not listed"
                self._checks.check_cells((numbers < 0) | np.isinf(numbers), name, cells, rule)
            columns.append(numbers)
        return np.column_stack(columns)

    def _require_alike(self, numbers: NDArray[np.float64]) -> None:
        """Raise for a column that is far from all others, or that has larger numbers than places.

        Without it, all rows are 1, 2, …
        """
        n_columns = numbers.shape[1]
        low, high = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
        if np.isfinite(low).sum() < 3:
            return
        j, odd = int(np.nanargmax(high)), []
        if self.layout == "places" and high[j] > n_columns:
            odd = [j] if _are_places(np.delete(numbers, j, axis=1)) else []
        if len(numbers) >= FEW_BALLOTS:
            for j in (int(np.nanargmax(low)), int(np.nanargmin(high))):
                least, most = np.nanmin(np.delete(low, j)), np.nanmax(np.delete(high, j))
                odd += [j] if max(low[j] - most, least - high[j]) > most - least else []
        if odd:
            what = "has numbers unlike all other columns: it may be an item, or something else"
            self._refuse(what, [[*self.cells][odd[0]]])


def _list_items(columns: list[Coded], split: Callable[[str], list[list[str]]]) -> _Listed:
    """Items of the cells of columns, the best first; ``split`` returns those of a cell, in ties."""
    number: dict[str, int] = {}
    rows, codes, values = [], [], []
    for j, column in enumerate(columns):
        # The items of each label one after another, with their places.
        items, places, sizes = array("q"), array("q"), array("q")
        for text in column.labels:
            ties = split(text) if text else []
            for k, tie in enumerate(ties):
                items.extend(number.setdefault(x, len(number)) for x in tie)
                places.extend([j + k] * len(tie))
            sizes.append(sum(map(len, ties)))
        per_label = np.array(sizes)
        n_listed = per_label[column.codes]
        begins = (np.cumsum(per_label) - per_label)[column.codes]
        gather = np.repeat(begins, n_listed) + count_places(row_starts(n_listed))
        rows.append(np.repeat(np.arange(n_listed.size), n_listed))
        codes.append(np.array(items)[gather])
        values.append(np.array(places, float)[gather])
    row = np.concatenate(rows)
    return _Listed(row, row, np.concatenate(codes), [*number], np.concatenate(values))


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
            raise InputError(
                "missing", "0", "may be the best place, or an item that is not listed",
                where=str(table), hint="give missing='0' if such items are not listed; otherwise "
                "count places from 1",
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
    for code in values[is_code]:
        top = rest.max(initial=0.0)
        is_odd = rest.min(initial=0.0) >= 0 if code < 0 else CODE_RATIO * top < code
        if rest.size and is_odd:
            i = int(np.argmax(numbers == code))
            name = column or listed.labels[listed.codes[i]]
            raise InputError(
                "missing", f"{code:g}", f"in {name!r} may be a number or a missing value",
                where=table.where(int(listed.rows[i])),
                hint=f"give missing='{code:g}', or missing='' if all are numbers",
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


def _are_places(numbers: NDArray[np.float64]) -> bool:
    """Whether each row has the numbers 1, 2, … and otherwise zeros or empty cells."""
    places = np.sort(np.where(numbers > 0, numbers, np.inf), axis=1)
    counted = np.isin(places, np.inf) | (places == np.arange(1, numbers.shape[1] + 1))
    return bool(counted.all() and not np.any(numbers < 0))


def _read_long(
    table: Table,
    item: str,
    value: str,
    layout: str,
    known: tuple[str, ...] | None,
    checks: RowChecks,
    labels: dict[str, Coded],
) -> _Listed:
    """Ballots with one row for each item of a rater, and its place or score."""
    if layout == "orders":
        raise InputError(
            "layout", layout, f"does not suit one row per item, {item!r}", where=str(table)
        )
    if not labels:
        raise InputError(
            "rater", ", ".join(table.columns), "must name one of the columns", where=str(table),
            hint=f"each row has one item, {item!r}, and its {value!r}: rater= or target= say which "
            "rows are one ranking",
        )  # fmt: skip
    items, cells = table.read_coded(item, value)
    refuse_no_items(table, item, items, {*(known or ())})
    numbers, is_text = table.parse_numbers(cells)
    checks.check_cells(is_text | np.isinf(numbers), value, cells, "expected a number")
    checks.check(items.is_empty, lambda _: f"{item!r} is empty")
    if layout == "places":
        checks.check(numbers < 0, lambda _: f"{value!r} is below 0; 1 is the best place")
    group = number_rows([each.codes for each in labels.values()], numbers.size)
    # Ballots are in the order in which they begin.
    begins = find_first(group)[group]
    return _Listed(begins, np.arange(numbers.size), items.codes, items.labels, numbers)
