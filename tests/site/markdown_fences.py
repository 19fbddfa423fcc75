"""The fenced blocks of the pages: where each is, its language, and what is said about it.

A comment in the line before a fence says what else than running it is done with it:

- ``<!-- not run: REASON -->``: it is not run.
- ``<!-- output -->``: it is what the block before prints. ``...`` stands for anything.
  ``<!-- output: rounded -->``: numbers are rounded to three digits after the point.
- ``<!-- file: NAME -->``: it is a file of this name, and is read as its ending says.
- ``<!-- from: RUN -->``: it is the output of another run, which is named.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GENERATED = {"_build", "gallery", "generated"}
COMMENT = re.compile(r"<!-- (output|not run|from|file)(?:: (.+))? -->")


class Fence(NamedTuple):
    """A fenced block; ``note`` and ``reason`` are those of the comment before it."""

    page: str
    line: int
    section: str
    language: str
    text: str
    note: str | None
    reason: str | None

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def find_pages():
    """Return the pages of the site, of the survey and at the root, by their paths from there."""
    docs = [
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not GENERATED & set(path.relative_to(ROOT / "docs").parts)
    ]
    survey = [ROOT / "survey" / "README.md", *sorted((ROOT / "survey" / "docs").glob("*.md"))]
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *docs, *survey]
    return [path.relative_to(ROOT).as_posix() for path in paths]


def read_fences(page):
    """Return the fenced blocks of a page, in order."""
    return parse_fences((ROOT / page).read_text(encoding="utf-8"), page)


def parse_fences(text, page="page.md"):
    fences, section, before, block = [], "", "", None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"( *)(`{3,})(.*)$", line)
        if block is None and mark:
            said = COMMENT.fullmatch(before.strip())
            note, reason = said.groups() if said else (None, None)
            block = (len(mark[1]), mark[2], [])
            head = (page, number, section, mark[3].strip())
        elif block is None:
            section = line.lstrip("#").strip() if re.match("#+ ", line) else section
            before = line
        elif line.strip() == block[1]:
            fences.append(Fence(*head, "\n".join(block[2]) + "\n", note, reason))
            block, before = None, ""
        else:
            block[2].append(line[min(block[0], len(line) - len(line.lstrip())) :])
    if block is not None:
        raise AssertionError(f"{page}:{head[1]}: the fence is not closed")
    return fences
