"""Tables of results: the same rows for the terminal, the report, Markdown and a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankshot.core.errors import RankshotError, format_share, short_repr
from rankshot.core.files import replace_file
from rankshot.zeroshot.metrics import Interval

PAGE = Path(__file__).parents[1] / "docs" / "results" / "accuracies.md"
"""The page of all accuracies, one section for each subject."""
FIRST_PAGE = {
    "cifar, multiclass": "images (CIFAR-10)",
    "animals, multiclass": "animals (AwA)",
    "intents, multiclass": "requests (CLINC150)",
    "sounds published": "sounds (ESC-50)",
    "languages": "languages",
    "programming languages": "programming languages",
    "letters": "letters",
}
"""The beginnings of the names of tasks, and the columns of the tables of the first page."""


class OursAndPaper(NamedTuple):
    """Our number and the paper's number of the same cell; None where there is none."""

    ours: Interval | float | None
    paper: float | None


Value = str | int | float | Interval | OursAndPaper | None
"""The value of a cell. None is an impossible cell, which is displayed as a dash."""


@dataclass(frozen=True)
class ResultTable:
    """A table of results."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()
    n_labels: int = 1

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise RankshotError(
                    f"{self.name}: row {number} has {len(row)} values for "
                    f"{len(self.columns)} columns"
                )
            if not all(isinstance(label, str) for label in row[: self.n_labels]):
                raise RankshotError(
                    f"{self.name}: row {number}: the first {self.n_labels} values must be texts"
                )

    def row(self, *labels: str) -> tuple[Value, ...]:
        """Return the values of the row with these labels."""
        for row in self.rows:
            if row[: self.n_labels] == labels:
                return row[self.n_labels :]
        raise RankshotError(f"{self.name}: no row {short_repr(labels)}")


def average_by_domain(found: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return what was found for each task, as means over the tasks of each column of README."""
    columns: dict[str, list[Mapping[str, float]]] = {}
    for task, values in found.items():
        for start, column in FIRST_PAGE.items():
            if task.startswith(start) and "held-out" not in task:
                columns.setdefault(column, []).append(values)
    return {
        column: {name: sum(one[name] for one in some) / len(some) for name in some[0]}
        for column, some in columns.items()
    }


def mark_largest(rows: Sequence[tuple[Value, ...]], n_first: int) -> Iterator[tuple[Value, ...]]:
    """Yield the rows with the largest of the first ones, and of the others, in bold."""
    for part in (rows[:n_first], rows[n_first:]):
        table = np.array([[float(str(x)) for x in row[1:]] for row in part])
        largest = table.round(3) == table.round(3).max(axis=0)
        for row, bold in zip(part, largest, strict=True):
            texts = [
                f"**{format_share(float(str(x)))}**" if b else format_share(float(str(x)))
                for x, b in zip(row[1:], bold, strict=True)
            ]
            yield (row[0], *texts)


def format_value(value: Value) -> str:
    """Return a cell as text: a number with its interval, and the paper's number."""
    match value:
        case None:
            return "–"
        case OursAndPaper():
            ours = format_value(value.ours)
            return ours if value.paper is None else f"{ours}; paper {format_share(value.paper)}"
        case float():
            return format_share(value)
    return str(value)


def format_markdown(table: ResultTable) -> str:
    """Return a table in Markdown, with its notes below."""
    lines = [f"### {table.title}", "", _markdown_row(table.columns)]
    lines.append(_markdown_row(["---"] * len(table.columns)))
    lines += [_markdown_row([format_value(value) for value in row]) for row in table.rows]
    return "\n".join([*lines, "", *(f"- {note}" for note in table.notes)]).rstrip() + "\n"


def _markdown_row(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def write_markdown(tables: Iterable[ResultTable], path: Path) -> None:
    """Write all tables as Markdown."""
    with replace_file(path) as stream:
        stream.write("\n".join(map(format_markdown, tables)))


def write_section(page: Path, name: str, tables: Iterable[ResultTable]) -> None:
    """Write tables between the two comments of a section of a page; the rest stays as it is."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    text = page.read_text("utf-8")
    before, is_there, rest = text.partition(begin)
    _, is_closed, after = rest.partition(end)
    if not (is_there and is_closed):
        raise RankshotError(f"{page} has no section {name!r}")
    with replace_file(page) as stream:
        body = "\n".join(map(format_markdown, tables))
        stream.write(f"{before}{begin}\n\n{body}\n{end}{after}")


def write_csv(tables: Iterable[ResultTable], path: Path) -> None:
    """Write all tables to one CSV file, one line per cell with a number."""
    with replace_file(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["table", "row", "column", "value", "low", "high", "paper"])
        for table in tables:
            writer.writerows(_lines(table))


def _lines(table: ResultTable) -> Iterator[tuple[str | float, ...]]:
    for row in table.rows:
        label = " | ".join(str(part) for part in row[: table.n_labels])
        for column, value in zip(
            table.columns[table.n_labels :], row[table.n_labels :], strict=True
        ):
            ours, paper = value if isinstance(value, OursAndPaper) else (value, None)
            printed = "" if paper is None else paper
            if isinstance(ours, Interval):
                yield table.name, label, column, ours.estimate, ours.low, ours.high, printed
            elif isinstance(ours, int | float):
                yield table.name, label, column, ours, "", "", printed
            elif paper is not None:
                yield table.name, label, column, "", "", "", printed
