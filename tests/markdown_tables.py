"""The tables of Markdown pages."""

import re


def read_rows(text):
    """Return the cells of all rows of tables, without what makes them bold."""
    rows = [re.split(r"(?<!\\)\|", line) for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip().strip("*") for cell in row[1:-1]] for row in rows]
