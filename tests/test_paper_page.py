"""The page on the paper: nothing is left out, and what it names exists."""

import importlib
import pydoc
import re
from pathlib import Path

import rankshot as rs
from markdown_tables import read_rows

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAPER = (DOCS / "paper.md").read_text(encoding="utf-8")
# The paper is no part of the project, so what it numbers is listed here, in its order.
NUMBERED = (
    *("Equation 1", "Equation 2", "Figure 1", "Figure 2"),
    *(f"Equation {number}" for number in range(3, 18)),
    *("Table 1", "Figure 3", "Table 2", "Figure 4", "Equation 18"),
)


def test_everything_that_the_paper_numbers_is_there_in_its_order():
    titles = re.findall(r"^### ((?:Equation|Table|Figure) \d+): \w", PAPER, re.MULTILINE)
    assert titles == list(NUMBERED)


def find_name(name):
    """A public name, one of its attributes, or a dotted name of the package."""
    if name.startswith("reproduction."):
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)
    if name.startswith("rankshot_survey."):
        return pydoc.locate(name)
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
    first_table = re.search(r"(?:^\|.*\n)+", PAPER, re.MULTILINE)[0]
    code += [row[-1] for row in read_rows(first_table)[2:]]
    names = {name for line in code for name in re.findall(r"`([\w.]{2,})`", line)}
    assert len(names) > 30
    for name in sorted(names):
        assert find_name(name).__doc__, name


def test_every_test_that_is_named_exists():
    named = set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", PAPER))
    assert len(named) > 40
    for file, function in sorted(named):
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {function}\(", text, re.MULTILINE), f"{file}::{function}"
