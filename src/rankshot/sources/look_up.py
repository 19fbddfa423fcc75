"""What is done with names of classes: words to look up instead, misspellings, classes held out.

Where a class name is not a word, the user can say which words a source should look up instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from rankshot.core.errors import InputError, prefix_errors, quote_names, suggest_name
from rankshot.core.tables import read_batches
from rankshot.core.validation import as_names, require_whole_number, shuffle_names
from rankshot.sources.similarity import Similarity
from rankshot.sources.wordnet_nouns import is_sense, load_nouns, suggest_noun

Compare = Callable[[tuple[str, ...], tuple[str, ...]], Similarity]
"""The ``similarity`` of a source: from the names of targets and items to their similarities."""
CLASS, LOOK_UP = "class", "look_up"
"""The columns of a file of words to look up."""
FEWEST_RANKED = 2
"""Seen classes that must be left when others are rehearsed: fewer cannot be ranked."""


def compare_as(
    compare: Compare, targets: Iterable[object], items: Iterable[object], look_up: Mapping[str, str]
) -> Similarity:
    """Compare classes by words other than their names; the table keeps the names.

    Parameters
    ----------
    compare : callable
        The ``similarity`` of a source, such as ``WordNet().similarity``.
    targets, items : iterables of names
        The classes to compare.
    look_up : mapping of name to words
        The words that the source looks up instead of a name. Other names are looked up unchanged.
        Two classes may have the same words; they then have the same similarities.

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
    if odd := set(look_up) - {*target_names, *item_names}:
        name = min(odd)
        hint = suggest_name(name, target_names + item_names)
        raise InputError("look_up", name, f"is not a class{hint}")
    words = [[look_up.get(name, name) for name in names] for names in (target_names, item_names)]
    # Each text is looked up once, also where two classes share it.
    rows, columns = ({text: i for i, text in enumerate(dict.fromkeys(some))} for some in words)
    table = compare(tuple(rows), tuple(columns))
    cells = np.ix_([rows[text] for text in words[0]], [columns[text] for text in words[1]])
    values = table.values[cells]
    return Similarity(values, target_names, item_names, table.source, table.notes)


def read_look_up(path: str | Path, classes: Iterable[object]) -> dict[str, str]:
    r"""Read the words to look up for some classes from a CSV file with these two columns.

    Parameters
    ----------
    path : str or Path
        A CSV file with the header ``class,look_up`` and rows such as ``water_lilly,water lily``,
        or ``seal,seal.n.09`` with a WordNet sense. Other columns are ignored.
    classes : iterable of names
        All classes; the file may name some of them.

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
    look_up: dict[str, str] = {}
    rows = (
        (batch.where(row), *cells)
        for batch in read_batches(path, [CLASS, LOOK_UP], strip=True)
        for row, cells in enumerate(zip(*batch.texts, strict=True))
    )
    for where, name, words in rows:
        if not name and not words:
            # Spreadsheets write such lines for empty rows.
            continue
        problem = ""
        if name not in known:
            problem = f"is not a class{suggest_name(name, known)}"
        elif name in look_up:
            problem = "occurs twice"
        elif not words:
            problem = "has no words to look up"
        elif is_sense(words):
            with prefix_errors(where):
                load_nouns().synset(words)
        if problem:
            raise InputError("class", name, problem, where)
        look_up[name] = words
    return look_up


# ---- Spelling


def find_misspellings(names: Iterable[object]) -> dict[str, str]:
    """Return the names that may be misspelt, each with a WordNet noun as a suggestion.

    A name may be misspelt if WordNet does not have it, in the singular or the plural, but has a
    noun that differs by one letter: one too many, one missing, one different, or two neighbours
    exchanged. In a name of several words, this applies to each word that is not in WordNet. A
    number at the end of a name is ignored. Senses (``crane.n.04``), ids (``n02012849``) and
    synonyms separated by commas are never reported. If several nouns are equally near in spelling,
    the one whose meaning is nearest to another of the names is suggested.

    Parameters
    ----------
    names : iterable of names

    Examples
    --------
    >>> from rankshot.sources import find_misspellings
    >>> find_misspellings(["water_lilly", "sea_horses", "maple_tree", "labradore_retreiver"])
    {'water_lilly': 'water_lily', 'labradore_retreiver': 'labrador_retriever'}
    >>> find_misspellings(["okapy", "zebra"]), find_misspellings(["okapy", "approval"])
    ({'okapy': 'okapi'}, {'okapy': 'okay'})
    """
    nouns, names = load_nouns(), as_names(names, "names")
    lemmas = [lemma for name in names for lemma in nouns.spellings(name)[:1]]
    meant = [sense for lemma in lemmas for sense in nouns.senses(lemma)]
    suggestions = {name: suggest_noun(nouns, name, meant) for name in names}
    return {name: noun for name, noun in suggestions.items() if noun is not None}


def describe_unknown(
    unknown: Sequence[str], classes: Iterable[str], words: Mapping[str, str]
) -> str:
    """Return what a message says of those classes that no source knows; ``words`` are looked up."""
    near = find_misspellings(dict.fromkeys(words.get(name, name) for name in classes))
    looked_up = [words.get(name, name) for name in unknown]
    hints = [f"{word!r} may be {near[word]!r}" for word in looked_up if word in near]
    return f"no source knows {'; '.join([quote_names(unknown), *hints])}"


# ---- Rehearsal


def choose_rehearsed(
    classes: Iterable[object], which: int | Iterable[object], seed: int = 0
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choose seen classes to hold out, and return them and the others.

    The choice depends on the names and the seed alone: it is the same on every machine, for all
    sources, and in whatever order the classes are listed. With the same seed, a larger number
    adds classes to those of a smaller one.

    Parameters
    ----------
    classes : iterable of names
        The seen classes.
    which : int or iterable of names
        The number of classes to hold out, or their names.
    seed : int
        The seed of the random choice.

    Examples
    --------
    >>> from rankshot.sources import choose_rehearsed
    >>> choose_rehearsed(["tiger", "wolf", "seal", "bus", "tram"], 2)
    (('seal', 'bus'), ('tiger', 'wolf', 'tram'))
    >>> choose_rehearsed(["tiger", "wolf", "seal", "bus", "tram"], ["bus"])
    (('bus',), ('tiger', 'wolf', 'seal', 'tram'))
    """
    names = as_names(classes, "classes")
    if isinstance(which, Iterable):
        chosen = set(as_names(which, "which"))
        if odd := sorted(chosen - set(names)):
            raise InputError("which", odd[0], f"is not a seen class{suggest_name(odd[0], names)}")
        number = len(chosen)
    else:
        number = require_whole_number("which", which)
        seed = require_whole_number("seed", seed, least=0)
        chosen = set(shuffle_names(names, [seed, "rehearse"])[:number])
    if number > len(names) - FEWEST_RANKED:
        problem = f"leaves too few of {len(names)} seen classes to be ranked"
        hint = "hold out a third of them, and at least 5 where possible"
        raise InputError("which", number, problem, hint=hint)
    return (
        tuple(name for name in names if name in chosen),
        tuple(name for name in names if name not in chosen),
    )
