"""Every accuracy on the pages was measured: it is in docs/results."""

import runpy

import pytest
from markdown_fences import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "fill_accuracies.py"))
OTHERS = {"votes", "leaderboards", "rankings"}
"""Pages of the guide whose numbers are not accuracies."""
PAGES = [
    "README.md",
    *(
        f"docs/guide/{path.name}"
        for path in sorted((ROOT / "docs" / "guide").glob("*.md"))
        if path.stem not in OTHERS
    ),
]


def test_the_readme_has_the_tables_of_the_measurements():
    text = SCRIPT["README"].read_text(encoding="utf-8")
    assert SCRIPT["fill_page"](text) == text, "python scripts/fill_accuracies.py"


@pytest.mark.parametrize("page", PAGES)
def test_every_accuracy_was_measured(page):
    measured = set()
    for path in SCRIPT["RESULTS"].glob("*.md"):
        measured |= set(SCRIPT["ACCURACY"].findall(path.read_text(encoding="utf-8")))
    there = SCRIPT["find_accuracies"]((ROOT / page).read_text(encoding="utf-8"))
    assert set(there) <= measured
