"""Put the measured accuracies into README, the first page and the guide.

    python scripts/fill_accuracies.py

``docs/results/accuracies.md`` lists every accuracy on these pages, in the order of the pages, with
the file, the table, the row and the column that it comes from. After a new run, this script writes
the new numbers; ``tests/site/test_accuracies.py`` fails if a page and its files differ, or if a
number is not on the list.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
LIST = RESULTS / "accuracies.md"
ACCURACY = re.compile(r"(?<![\w.])\.\d{3}\b")
FENCE = re.compile(r"^( *)(`{3,})[^\n]*\n.*?^\1\2$", re.MULTILINE | re.DOTALL)
OTHERS = {"survey": "shares of flagged participants", "votes": "a certainty"}
"""Pages of the guide whose numbers are not accuracies."""


class Origin(NamedTuple):
    """Where an accuracy comes from: a file in docs/results, and a cell of one of its tables."""

    file: str
    table: str
    row: str
    column: str


def read_cells(line):
    """Return the cells of a row of a table."""
    return [cell.strip().strip("*") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def find_number(origin):
    """Return the number in a cell, without its interval."""
    text = (RESULTS / f"{origin.file}.md").read_text("utf-8")
    parts = [part for part in re.split(r"\n## ", text) if part.startswith(origin.table)]
    if len(parts) != 1:
        raise ValueError(f"{origin.file}.md has {len(parts)} tables {origin.table!r}")
    header, _, *rows = [read_cells(line) for line in parts[0].splitlines() if line.startswith("|")]
    found = [cells for cells in rows if " | ".join(cells).startswith(f"{origin.row} |")]
    if len(found) != 1:
        raise ValueError(f"{origin}: {len(found)} rows")
    return found[0][header.index(origin.column)].split()[0]


def read_list():
    """Return the origins of the numbers of each page, in their order."""
    origins = {page: [] for page in list_pages()}
    for line in LIST.read_text("utf-8").splitlines():
        if line.startswith("| ") and ".md |" in line:
            page, *origin = read_cells(line)
            origins[page].append(Origin(*origin))
    return origins


def list_pages():
    """Return the pages with accuracies, by their paths from the root."""
    guide = sorted((ROOT / "docs" / "guide").glob("*.md"))
    names = [path.relative_to(ROOT).as_posix() for path in guide if path.stem not in OTHERS]
    return ["README.md", "docs/index.md", *names]


def fill_page(text, origins):
    """Return a page with the numbers of its origins; code stays as it is."""
    code = [match.span() for match in FENCE.finditer(text)]
    places = [
        match.span()
        for match in ACCURACY.finditer(text)
        if not any(start <= match.start() < end for start, end in code)
    ]
    if len(places) != len(origins):
        raise ValueError(f"{len(places)} accuracies, but {len(origins)} on the list")
    for (start, end), origin in reversed(list(zip(places, origins, strict=True))):
        text = text[:start] + find_number(origin) + text[end:]
    return text


def main():
    """Write all pages that change."""
    for page, origins in read_list().items():
        path = ROOT / page
        before = path.read_text("utf-8")
        try:
            after = fill_page(before, origins)
        except ValueError as error:
            raise SystemExit(f"{page}: {error}") from None
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{page} changed")


if __name__ == "__main__":
    main()
