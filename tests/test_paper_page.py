"""The pages on the paper: nothing is left out, what they name exists, numbers come from runs.

docs/results/ has all tables that ``rankshot reproduce`` wrote; the pages quote them.
"""

import importlib
import re
from functools import cache
from pathlib import Path

import rankshot as rs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAPER = (DOCS / "paper.md").read_text(encoding="utf-8")
RESULTS = (DOCS / "reproduction.md").read_text(encoding="utf-8")
# The paper is no part of the project, so what it numbers is listed here, in its order.
NUMBERED = (
    *("Equation 1", "Equation 2", "Figure 1", "Figure 2"),
    *(f"Equation {number}" for number in range(3, 18)),
    *("Table 1", "Figure 3", "Table 2", "Figure 4", "Equation 18"),
)
SHARE = re.compile(r"(?<![\d.])(?:\.\d{3}|1\.000)(?!\d)")


def tables(text):
    """The rows of each table, the header first, as lists of cells."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    split = [[re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()] for table in found]
    return [[[cell.strip() for cell in row] for row in table] for table in split]


@cache
def run_page(dataset):
    return (DOCS / "results" / f"{dataset}.md").read_text(encoding="utf-8")


def run_table(dataset, title):
    """The rows of the table whose title starts so, without its header."""
    [[table]] = [
        tables(part)
        for part in re.split(r"^## ", run_page(dataset), flags=re.MULTILINE)
        if part.startswith(title)
    ]
    return table[2:]


def first_share(cell):
    found = SHARE.search(cell.split("; paper")[0])
    return float(found.group()) if found else None


# ---- Nothing of the paper is missing


def test_everything_that_the_paper_numbers_is_there_in_its_order():
    titles = re.findall(r"^### ((?:Equation|Table|Figure) \d+): \w", PAPER, re.MULTILINE)
    assert titles == list(NUMBERED)


# ---- What is named exists


def find_name(name):
    """A public name, one of its attributes, or a dotted name of the package."""
    if name.startswith("reproduction."):
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)
    parts = name.removeprefix("rankshot.").split(".")
    found = rs
    for number, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(["rankshot", *parts[: number + 1]]))
    return found


def test_every_function_that_is_named_can_be_imported():
    code = re.findall(r"^- Code: (.+)$", PAPER, re.MULTILINE)
    code += [row[-1] for table in tables(PAPER)[:1] for row in table[2:]]
    names = {name for line in code for name in re.findall(r"`([\w.]{2,})`", line)}
    assert len(names) > 30
    for name in sorted(names):
        assert find_name(name).__doc__, name
    links = re.findall(r"\[`([\w.]+)`\]\(api/generated/rankshot\.([\w.]+)\.rst\)", PAPER)
    assert len(links) > 40
    for name, page in links:
        assert f"{name.removeprefix('rankshot.')}.".startswith(f"{page}.")
        assert find_name(page).__doc__, page


def test_every_test_that_is_named_exists():
    named = set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", PAPER))
    assert len(named) > 40
    for file, function in sorted(named):
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {function}\(", text, re.MULTILINE), f"{file}::{function}"


# ---- Numbers come from runs


def best(dataset, method, *, panel=False):
    """The best of a method, ours and the paper's."""
    rows = [
        row
        for row in run_table(dataset, "Table 2")
        if row[0] == method and row[1].startswith("panel") == panel
    ]
    cells = [cell for row in rows for cell in row[2:] if cell != "–"]
    paper = [float(cell.split("; paper ")[1]) for cell in cells if "; paper " in cell]
    return max(paper), max(map(first_share, cells))


SUMMARIES = re.findall(r"(makes the mean calibration error.*?\.) |(\d+ of the \d+ .*)", RESULTS)
SUMMARIES = ["".join(parts) for parts in SUMMARIES] + re.findall(
    r"^rows, the root mean square.*$", RESULTS, re.MULTILINE
)
