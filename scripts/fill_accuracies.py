"""Put the measured accuracies into the README.

    python scripts/fill_accuracies.py

A table between the comments ``begin SECTION`` and ``end SECTION`` is the first table of this
section of ``docs/results/accuracies.md``, with rows for its columns.
``tests/site/test_accuracies.py`` fails if they differ, or if a page has an accuracy that is not in
``docs/results``.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
README = ROOT / "README.md"
ACCURACY = re.compile(r"(?<![\w.])\.\d{3}\b")
FENCE = re.compile(r"^( *)(`{3,})[^\n]*\n.*?^\1\2$", re.MULTILINE | re.DOTALL)
SECTIONS = ("overview", "together")


def read_table(section):
    """Return the first table of a section of all accuracies, its columns as rows."""
    text = (RESULTS / "accuracies.md").read_text("utf-8").partition(f"<!-- begin {section} -->")[2]
    lines = re.search(r"(^\|.*\n)+", text, re.MULTILINE)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head, *rows = zip(cells[0], *cells[2:], strict=True)
    table = [("", *head[1:]), ("---", *("--:" for _ in head[1:])), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


def fill_page(text):
    """Return a page with the tables."""
    for section in SECTIONS:
        begin, end = f"<!-- begin {section} -->", f"<!-- end {section} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n\n{read_table(section)}\n\n{end}{rest.partition(end)[2]}"
    return text


def find_accuracies(text):
    """Return the accuracies on a page, outside of code."""
    return ACCURACY.findall(FENCE.sub("", text))


def main():
    """Write the README, if it changes."""
    before = README.read_text("utf-8")
    after = fill_page(before)
    if after != before:
        README.write_text(after, encoding="utf-8")
        print("README.md changed")


if __name__ == "__main__":
    main()
