"""WordNet as a source of similarities, offline, with the senses chosen and said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.names import as_names
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.wordnet_nouns import MEASURES, Nouns, load_nouns
from rankshot.semantics.wordnet_senses import (
    SenseCandidates,
    choose_senses,
    find_candidates,
    require_categories,
)

ROW, MARGIN, CURVE = 22, 12, 44
LETTER = 7.6
"""Pixels for a letter of 13-point type, on the wide side."""


# -------------------- semantics.wordnet
# WordNet as a source of similarities, offline, with the senses chosen and said.


@dataclass(frozen=True)
class Sense:
    """The sense that a name was taken in.

    Attributes
    ----------
    name : str
        WordNet's name of it, such as ``leopard.n.02``.
    category : str
        Its lexical category, such as ``animal``.
    kind_of : str
        The first word of what it is a kind of.
    others : tuple of str
        The other senses that the name could have had.
    note : str or None
        How the name was looked up, if not as it stands.
    """

    name: str
    category: str
    kind_of: str
    others: tuple[str, ...]
    note: str | None

    def __str__(self) -> str:
        return f"{self.name} ({self.category}, a kind of {self.kind_of})"


class WordNet:
    """Similarities from the noun hierarchy of WordNet 3.0, which comes with the package.

    Which sense of a name is meant matters more than the measure. It can be pinned by name,
    restricted by category, and is otherwise chosen by the company that the name keeps: all
    targets and items together (see `choose_together`). `senses` says what was taken.

    Parameters
    ----------
    measure : {"path", "lch", "wup", "resnik", "lin", "jcn"}
        Path length; Leacock-Chodorow; Wu-Palmer; and three by information content, from how
        often senses were tagged: Resnik, Lin, Jiang-Conrath.
    senses : mapping of name to sense, optional
        Pins, such as ``{"seal": "seal.n.09"}``; also for names that WordNet does not have.
    categories : iterable of str, optional
        Only senses of these lexical categories, such as ``["animal"]``, are considered.

    Examples
    --------
    >>> import rankshot as rs
    >>> animals = ["leopard", "seal", "mole", "otter", "wolf"]
    >>> wordnet = rs.WordNet()
    >>> print(wordnet.senses(["tiger", *animals])["seal"])
    seal.n.09 (animal, a kind of pinniped_mammal)
    >>> wordnet.similarity(["tiger"], animals).to_rankings()
    Rankings: 1 ranking of 5 items, 1 target, 1 source
      tiger: leopard > otter = wolf > mole > seal
    """

    def __init__(
        self,
        measure: str = "path",
        *,
        senses: Mapping[str, str] | None = None,
        categories: Iterable[str] | None = None,
    ) -> None:
        if not isinstance(measure, str) or measure not in MEASURES:
            raise RankshotError(f"measure must be one of {', '.join(MEASURES)}, not {measure!r}")
        if senses is not None and not isinstance(senses, Mapping):
            raise RankshotError(f"senses must map names to senses, not be {short_repr(senses)}")
        self.measure = measure
        self.pins = dict(senses or {})
        self.categories = require_categories(categories)

    def senses(self, names: Iterable[Any]) -> dict[str, Sense]:
        """Return the sense of each of the names, chosen by the company of the others."""
        nouns = load_nouns()
        options, unknown = [], []
        for name in as_names(names, "names"):
            try:
                options.append(self._candidates(nouns, name))
            except RankshotError as error:
                unknown.append(str(error))
        if unknown:
            more = f"; and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise RankshotError(
                f"{'; '.join(unknown[:5])}{more}. A name can be pinned to a sense of another word"
            )
        found: dict[str, Sense] = {}
        for option, synset in zip(options, choose_senses(nouns, options), strict=True):
            parents = nouns.parents(synset)
            others = tuple(nouns.name(other) for other in option.synsets if other != synset)
            kind_of = nouns.word(parents[0]) if parents else "everything"
            found[option.name] = Sense(
                nouns.name(synset), nouns.category(synset), kind_of, others, option.note
            )
        return found

    def _candidates(self, nouns: Nouns, name: str) -> SenseCandidates:
        if name in self.pins:
            return SenseCandidates(name, (nouns.synset(self.pins[name]),), (1,), None)
        return find_candidates(nouns, name, self.categories)

    def similarity(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Return the table of similarities; its notes say which sense of each name was taken."""
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        for name in self.pins:
            if name not in target_names and name not in item_names:
                raise RankshotError(
                    f"{name!r} is pinned, but is neither a target nor an item"
                    f"{suggest_name(name, target_names + item_names)}"
                )
        nouns = load_nouns()
        senses = self.senses(dict.fromkeys(target_names + item_names))
        number = {name: nouns.synset(sense.name) for name, sense in senses.items()}
        values = MEASURES[self.measure](
            nouns, [number[name] for name in target_names], [number[name] for name in item_names]
        )
        notes = [f"{name}: {sense}" for name, sense in senses.items()]
        notes += [sense.note for sense in senses.values() if sense.note]
        return Similarity(values, target_names, item_names, f"wordnet-{self.measure}", notes)


# -------------------- semantics.hierarchy
# A picture of where names stand in WordNet's hierarchy: the paper's Figure 1, left.


@dataclass
class Branch:
    """A part of the tree: a word of WordNet or a name given, and what hangs below it."""

    label: str
    is_name: bool
    below: list[Branch] = field(default_factory=list)


class Hierarchy:
    """The names given and what they are kinds of, as a tree.

    Chains without a fork are left out; where a sense has several hypernyms, the first is taken.

    Examples
    --------
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
        """Return the tree as a picture in SVG, from left to right; the names given are bold."""
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
    """Follow the common way down to the first fork, and branch there."""
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
        # Two names of one sense are one branch.
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
    """Draw a branch below ``top``; return where it ends, and its depth."""
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
