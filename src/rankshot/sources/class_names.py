"""Names of classes: words to look them up by, other spellings, and the choice of some.

A class name is often no word: it has a number at its end, it is an abbreviation, or it is
misspelt. The user can say which words a source should look up instead.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.tables import find_column, read_csv_rows
from rankshot.core.validation import as_names, require_whole_number, shuffle_names
from rankshot.sources.similarity import Similarity
from rankshot.sources.wordnet_nouns import is_sense, load_nouns, suggest_noun

Compare = Callable[[tuple[str, ...], tuple[str, ...]], Similarity]
"""The ``similarity`` of a source: from the names of targets and items to their similarities."""
CLASS, LOOK_UP = "class", "look_up"
"""The columns of a file of words to look up."""
FEWEST_RANKED = 2
"""Seen classes that must be left when others are rehearsed: fewer cannot be ranked."""
_QUALIFIER = re.compile(r"(?<=\S)\s*\([^()]*\)$")
"""What tells two classes of the same word apart, as in crane (bird)."""
_SEPARATOR = re.compile(r"[_\s]|(?<=\w)[-+](?=\w)")
"""What may stand between the words of a name. The signs of "C++" and "-1" are not separators."""


def compare_as(
    compare: Compare, targets: Iterable[Any], items: Iterable[Any], look_up: Mapping[str, str]
) -> Similarity:
    """Compare classes by other words than their names; the table keeps the names.

    Parameters
    ----------
    compare : callable
        The ``similarity`` of a source, such as ``WordNet().similarity``.
    targets, items : iterables of names
        The classes to compare.
    look_up : mapping of name to words
        The words that the source gets in place of a name. Other names are looked up as they are.
        Two classes may have the same words; then they have the same similarities.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.sources import compare_as
    >>> words = {"water_lilly": "water lily", "T9": "tank"}
    >>> compare_as(rs.WordNet().similarity, ["water_lilly"], ["T9", "daisy"], words).to_rankings()
    Rankings: 1 ranking of 2 items, 1 target, 1 source
      water_lilly: daisy > T9
    """
    target_names, item_names = as_names(targets, "targets"), as_names(items)
    if not isinstance(look_up, Mapping):
        raise RankshotError(f"look_up must map names to words, not be {short_repr(look_up)}")
    for name, words in look_up.items():
        if name not in target_names and name not in item_names:
            hint = suggest_name(name, target_names + item_names)
            raise RankshotError(f"words to look up: no class {name!r}{hint}")
        if not isinstance(words, str) or not words.strip():
            raise RankshotError(f"the words to look up for {name!r} are {short_repr(words)}")
    rows, target_words = _number_words(target_names, look_up)
    columns, item_words = _number_words(item_names, look_up)
    table = compare(target_words, item_words)
    values = table.values[np.ix_(rows, columns)]
    return Similarity(values, target_names, item_names, table.source, table.notes)


def _number_words(
    names: tuple[str, ...], look_up: Mapping[str, str]
) -> tuple[list[int], tuple[str, ...]]:
    """Return the number of the words of each name, and the words, each once."""
    words = [look_up.get(name, name) for name in names]
    number = {word: i for i, word in enumerate(dict.fromkeys(words))}
    return [number[word] for word in words], tuple(number)


def split_synonyms(name: str) -> list[str]:
    """Return the words that a class name consists of, for a source that knows words only.

    Examples
    --------
    >>> for name in ("goldfish, Carassius auratus", "sea_lion.n.01", "n02084071", "crane (bird)"):
    ...     print(split_synonyms(name))
    ['goldfish', 'Carassius auratus']
    ['sea_lion']
    ['dog', 'canis_familiaris', 'domestic_dog']
    ['crane']
    """
    if is_sense(name):
        word, _, _ = name.lower().rpartition(".n.")
        if word:
            return [word]
        nouns = load_nouns()
        return nouns.words(nouns.synset(name)) if nouns.has_id(name) else [name]
    words = [_QUALIFIER.sub("", word.strip()) for word in name.split(",") if word.strip()]
    return words or [name]


def read_look_up(path: str | Path, classes: Iterable[Any]) -> dict[str, str]:
    r"""Read the words to look up for some classes from a CSV file with these two columns.

    Parameters
    ----------
    path : str or Path
        The first line is ``class,look_up``. The others are such as ``water_lilly,water lily``.
    classes : iterable of names
        All classes; the file may name some of them.

    Raises
    ------
    RankshotError
        Names the file and the line of a name that is no class, or that has no words.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.sources import read_look_up
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "names.csv")
    ...     _ = path.write_text("class,look_up\nwater_lilly,water lily\n")
    ...     read_look_up(path, ["rose", "water_lilly"])
    {'water_lilly': 'water lily'}
    """
    path = Path(path)
    known = as_names(classes, "classes")
    rows = read_csv_rows(path)
    line, header = next(rows)
    if not {CLASS, LOOK_UP} <= set(header):
        raise RankshotError(
            f"{path}:{line}: the first line must name the columns, {CLASS},{LOOK_UP}; it is "
            f"{short_repr(','.join(header))}"
        )
    name_column, words_column = (find_column(header, name, path) for name in (CLASS, LOOK_UP))
    look_up: dict[str, str] = {}
    for line, row in rows:
        name, words = row[name_column].strip(), row[words_column].strip()
        if not any(cell.strip() for cell in row):
            # Spreadsheets write such lines for empty rows.
            continue
        if name not in known:
            raise RankshotError(f"{path}:{line}: no class {name!r}{suggest_name(name, known)}")
        if name in look_up:
            raise RankshotError(f"{path}:{line}: the class {name!r} occurs twice")
        if not words:
            raise RankshotError(f"{path}:{line}: the class {name!r} has no words to look up")
        look_up[name] = words
    return look_up


# ---- Spelling


def find_misspellings(names: Iterable[Any]) -> dict[str, str]:
    """Return the names that may be misspelt, each with a noun of WordNet that may be meant.

    A name may be misspelt if WordNet does not have it, in the singular or the plural, but has a
    noun that differs by one letter: one too many, one missing, another one, or two neighbours
    exchanged. In a name of several words, each word that WordNet does not have may differ so. A
    number at the end of a name is ignored. Senses (``crane.n.04``), ids (``n02012849``) and
    synonyms separated by commas are never reported.

    Examples
    --------
    >>> from rankshot.sources import find_misspellings
    >>> find_misspellings(["water_lilly", "sea_horses", "maple_tree", "labradore_retreiver"])
    {'water_lilly': 'water_lily', 'labradore_retreiver': 'labrador_retriever'}
    """
    nouns = load_nouns()
    suggestions = {name: suggest_noun(nouns, name) for name in as_names(names, "names")}
    return {name: noun for name, noun in suggestions.items() if noun is not None}


class NameMatcher:
    """Finds the class that is meant by a name in another spelling.

    Case, and what separates the words of a name, do not matter, nor does the plural. A name that
    fits several classes equally well is not decided.

    Examples
    --------
    >>> matcher = NameMatcher(["tiger", "sea_lion", "Turkey", "turkey"])
    >>> [matcher.match(name) for name in ("Tigers", "sea lion", "turkey", "lynx")]
    [['tiger'], ['sea_lion'], ['turkey'], []]
    >>> matcher.match("TURKEY"), matcher.match("sea_loin"), matcher.match_misspelt("sea_loin")
    (['Turkey', 'turkey'], [], ['sea_lion'])
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = dict.fromkeys(names)
        self._by_letters: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            self._by_letters[reduce_name(name)].append(name)

    def match(self, name: str) -> list[str]:
        """Return the class that a name means; none, or several, if that cannot be said."""
        if name in self.names:
            return [name]
        letters = reduce_name(name)
        return (
            self._by_letters.get(letters)
            or self._find_all(self._by_letters, _singulars(name))
            or self._by_singular.get(letters)
            or []
        )

    def match_misspelt(self, name: str) -> list[str]:
        """Return the class that a misspelt name may mean; see `find_misspellings`."""
        noun = suggest_noun(load_nouns(), name)
        return [] if noun is None else self.match(noun)

    @cached_property
    def _by_singular(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            for letters in _singulars(name):
                found[letters].append(name)
        return found

    def _find_all(self, known: Mapping[str, list[str]], forms: Iterable[str]) -> list[str]:
        return [name for letters in forms for name in known.get(letters, [])]


def reduce_name(name: str) -> str:
    """Return the letters of a name: without case and separators."""
    return _SEPARATOR.sub("", name.casefold())


def _singulars(name: str) -> list[str]:
    return list(dict.fromkeys(map(reduce_name, load_nouns().singulars(name.casefold()))))


# ---- Rehearsal


def choose_rehearsed(
    classes: Iterable[Any], which: int | Iterable[Any], seed: int = 0
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choose seen classes that play new ones, and return them and the others.

    The choice depends on the names and the seed alone: it is the same on every machine, for all
    sources, and in whatever order the classes are listed. The first 10 of 20 are the 10 that are
    chosen with the same seed.

    Parameters
    ----------
    classes : iterable of names
        The seen classes.
    which : int or iterable of names
        How many are rehearsed, or which.
    seed : int
        Another seed chooses others.

    Returns
    -------
    rehearsed, others : tuples of names
        The classes that play new ones, and those that are ranked for them.

    Examples
    --------
    >>> from rankshot.sources import choose_rehearsed
    >>> choose_rehearsed(["tiger", "wolf", "seal", "bus", "tram"], 2)
    (('seal', 'bus'), ('tiger', 'wolf', 'tram'))
    >>> choose_rehearsed(["tiger", "wolf", "seal", "bus", "tram"], ["bus"])
    (('bus',), ('tiger', 'wolf', 'seal', 'tram'))
    """
    names = as_names(classes, "classes")
    if len(names) <= FEWEST_RANKED:
        raise RankshotError(f"{len(names)} seen classes are too few to rehearse: 3 are needed")
    if isinstance(which, Iterable):
        chosen = set(as_names(which, "the classes to rehearse"))
        for name in chosen:
            if name not in names:
                raise RankshotError(f"rehearse: no seen class {name!r}{suggest_name(name, names)}")
        _require_others(len(chosen), len(names))
    else:
        number = require_whole_number("the number of rehearsed classes", which)
        _require_others(number, len(names))
        seed = require_whole_number("seed", seed, least=0)
        chosen = set(shuffle_names(names, [seed, "rehearse"])[:number])
    return (
        tuple(name for name in names if name in chosen),
        tuple(name for name in names if name not in chosen),
    )


def _require_others(rehearsed: int, seen: int) -> None:
    if rehearsed > seen - FEWEST_RANKED:
        raise RankshotError(
            f"{rehearsed} of {seen} seen classes cannot be rehearsed: too few are left to be "
            f"ranked. Take {min(max(seen // 3, 5), seen - FEWEST_RANKED)}: a third of them, and at "
            "least 5 where possible"
        )
