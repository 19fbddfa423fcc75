"""Put the measured accuracies into README and the first page.

    python scripts/fill_accuracies.py

The table between the comments ``begin accuracies`` and ``end accuracies`` of these pages is the
first table of ``docs/results/accuracies.md``. ``tests/site/test_accuracies.py`` fails if they
differ, or if a page has an accuracy that is not in ``docs/results``.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGES = ("README.md", "docs/index.md")
ACCURACY = re.compile(r"(?<![\w.])\.\d{3}\b")
FENCE = re.compile(r"^( *)(`{3,})[^\n]*\n.*?^\1\2$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"(<!-- begin accuracies -->\n).*?(<!-- end accuracies -->)", re.DOTALL)


def read_table():
    """Return the first table of all accuracies."""
    lines = (RESULTS / "accuracies.md").read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| "))
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
    return "\n".join(lines[start:end])


def fill_page(text):
    """Return a page with the table."""
    return BLOCK.sub(lambda match: f"{match[1]}\n{read_table()}\n\n{match[2]}", text)


def find_accuracies(text):
    """Return the accuracies on a page, outside of code."""
    return ACCURACY.findall(FENCE.sub("", text))


def main():
    """Write all pages that change."""
    for page in PAGES:
        path = ROOT / page
        before = path.read_text("utf-8")
        after = fill_page(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"{page} changed")


if __name__ == "__main__":
    main()
