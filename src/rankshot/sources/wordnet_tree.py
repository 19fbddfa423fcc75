"""`Hierarchy`: where names are in WordNet's hierarchy, as a tree (the paper's Figure 1, left)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

from rankshot.sources.wordnet import WordNet
from rankshot.sources.wordnet_nouns import Nouns, load_nouns

ROW, MARGIN, CURVE = 22, 12, 44
"""Pixels of the SVG picture: the height of a row, the margin, and the width of a curve."""
LETTER = 7.6
"""Pixels for a letter of 13-point type, rather too many than too few."""


@dataclass
class Branch:
    """A node of the tree: a word of WordNet, or one of the given names, and its children."""

    label: str
    is_name: bool
    below: list[Branch] = field(default_factory=list)


class Hierarchy:
    """A tree of some names and of the WordNet senses that they are kinds of.

    Chains without a fork are shortened. Where a sense has several hypernyms, the first is taken.

    Parameters
    ----------
    names : iterable of names
        The names, such as classes.
    wordnet : WordNet, optional
        Says which sense of each name is meant; by default a new `WordNet`.

    Examples
    --------
    >>> from rankshot import Hierarchy
    >>> print(Hierarchy(["cat", "dog", "truck", "ship"]))
    whole
    ├── carnivore
    │   ├── cat
    │   └── dog
    └── vehicle
        ├── truck
        └── ship
    """

    def __init__(self, names: Iterable[Any], wordnet: WordNet | None = None) -> None:
        nouns = load_nouns()
        senses = (wordnet or WordNet()).senses(names)
        paths = {
            name: _path_from_root(nouns, nouns.synset(sense.name)) for name, sense in senses.items()
        }
        self.root = _build_branch(nouns, paths, depth=0)

    def __str__(self) -> str:
        return "\n".join([self.root.label, *_draw_lines(self.root, "")])

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def to_svg(self) -> str:
        """Return the tree as an SVG picture, from left to right; the given names are bold."""
        shapes: list[str] = []
        step = CURVE + round(LETTER * max(len(label) for label in _labels(self.root)))
        height, depth = _draw_svg(self.root, 0, 0, step, shapes)
        width = MARGIN * 2 + step * (depth + 1) - CURVE
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + MARGIN}" '
            f'viewBox="0 0 {width} {height + MARGIN}" font-family="sans-serif" font-size="13" '
            f'role="img" aria-label="WordNet hierarchy">{"".join(shapes)}</svg>'
        )


def _path_from_root(nouns: Nouns, synset: int) -> list[int]:
    way = [synset]
    while parents := nouns.parents(way[-1]):
        way.append(parents[0])
    return way[::-1]


def _build_branch(nouns: Nouns, paths: dict[str, list[int]], depth: int) -> Branch:
    """Follow the common path down to the first fork, and branch there."""
    while True:
        here = [name for name, way in paths.items() if len(way) == depth + 1]
        branches: dict[int, dict[str, list[int]]] = {}
        for name, way in paths.items():
            if len(way) > depth + 1:
                branches.setdefault(way[depth + 1], {})[name] = way
        if here or len(branches) != 1:
            break
        depth += 1
    below = [_build_branch(nouns, some, depth + 1) for some in branches.values()]
    if here:
        # Names of the same sense share a branch.
        return Branch(" = ".join(here), is_name=True, below=below)
    any_way = next(iter(paths.values()))
    return Branch(nouns.word(any_way[depth]), is_name=False, below=below)


def _draw_lines(branch: Branch, indent: str) -> Iterator[str]:
    for i, child in enumerate(branch.below):
        last = i == len(branch.below) - 1
        yield f"{indent}{'└── ' if last else '├── '}{child.label}"
        yield from _draw_lines(child, indent + ("    " if last else "│   "))


def _labels(branch: Branch) -> Iterator[str]:
    yield branch.label
    for child in branch.below:
        yield from _labels(child)


def _draw_svg(
    branch: Branch, top: int, depth: int, step: int, shapes: list[str]
) -> tuple[int, int]:
    """Draw a branch below ``top``; return its lower end and its depth."""
    x = MARGIN + step * depth
    bottom, deepest = top, depth
    middles: list[float] = []
    for child in branch.below:
        begin = bottom
        bottom, reached = _draw_svg(child, bottom, depth + 1, step, shapes)
        deepest = max(deepest, reached)
        middles.append((begin + bottom) / 2)
    bottom = max(bottom, top + ROW)
    middle = (top + bottom) / 2
    right, low = x + step, middle + ROW / 4
    shapes.extend(
        f'<path d="M{right - CURVE + 4},{low} C{right - 18},{low} {right - 28},{y + ROW / 4} '
        f'{right - 4},{y + ROW / 4}" fill="none" stroke="#888"/>'
        for y in middles
    )
    look = 'font-weight="bold" fill="#111"' if branch.is_name else 'fill="#555"'
    label = escape(branch.label.replace("_", " "))
    shapes.append(f'<text x="{x}" y="{middle + ROW / 2}" {look}>{label}</text>')
    return bottom, deepest
