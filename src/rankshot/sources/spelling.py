"""Spelling: what two ways to write a name have in common, and corrections by one letter."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from itertools import product
from math import prod
from string import ascii_lowercase

LONGEST_NAME = 80
"""Letters of a name that is corrected: the time grows with their square."""
FEWEST_LETTERS = 4
"""Letters of a word that is corrected: with fewer, most strings are near a noun."""
MAX_SPELLINGS = 100
"""How many combinations of corrected words are tried for one name."""
_SPELLINGS = """grey/gray colour/color tyre/tire plough/plow fibre/fiber aeroplane/airplane
armour/armor aluminium/aluminum centre/center theatre/theater harbour/harbor mould/mold
jewellery/jewelry pyjama/pajama moustache/mustache axe/ax doughnut/donut yoghurt/yogurt
omelette/omelet odour/odor"""
VARIANTS = dict(pair.split("/") for pair in _SPELLINGS.split())
"""British and American spellings."""
ENDINGS = ("ing", "ers", "er", "es", "ed", "s")
FILLERS = {"a", "an", "and", "etc", "in", "of", "on", "or", "the", "with"}
_SIGN = re.compile(r"(?<=\w)[-+](?=\w)")
"""Signs that separate words. Those of "C++" and "-1" do not."""
_BREAK = re.compile(r"[-_+\s]+")
WORD = re.compile(r"[^\W_]+")
"""Letters and digits."""


def reduce_name(name: str) -> str:
    """Return the letters of a name: without case and separators."""
    text = name.casefold()
    text = _SIGN.sub("", text) if "-" in text or "+" in text else text
    return "".join(text.replace("_", " ").split())


def reduce_letters(name: str) -> str:
    """Return the letters of a name, in American spelling and without apostrophes."""
    letters = reduce_name(name).replace("'", "").replace("’", "")
    for british, american in VARIANTS.items():
        letters = letters.replace(british, american)
    return letters


def split_words(name: str) -> list[str]:
    """Return the words of a name in lower case."""
    return [word for word in _BREAK.split(name.lower()) if word]


def stem_words(name: str) -> list[str]:
    """Return the words of a name without their endings: ``clock_alarms`` has clock and alarm."""
    stems = []
    for word in WORD.findall(name.casefold().replace("_", " ")):
        ending = next((e for e in ENDINGS if word.endswith(e) and len(word) - len(e) >= 3), "")
        stem = word.removesuffix(ending)
        stem = stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem
        stems += [] if word in FILLERS else [reduce_letters(stem).rstrip("e")]
    return stems


# ---- Corrections


def correct_words(
    words: Sequence[str], known: Container[str], is_word: Callable[[str], bool]
) -> set[str]:
    """Return the ``known`` names that differ from some words by one letter.

    Names are joined words. If there is none, each of the words that are unknown may differ.
    """
    near = {
        text
        for i, word in enumerate(words)
        for edit in _edit_once(word)
        if (text := "".join([*words[:i], edit, *words[i + 1 :]])) in known
    }
    if near or len(words) == 1:
        return near
    choices = [[word] if is_word(word) else [*filter(is_word, _edit_once(word))] for word in words]
    if prod(map(len, choices)) > MAX_SPELLINGS:
        return set()
    return {text for text in map("".join, product(*choices)) if text in known}


def _edit_once(word: str) -> set[str]:
    """Return all texts that differ from a word by one letter, or by the order of two.

    Digits stay, and a short word has none.
    """
    if sum(map(str.isalpha, word)) < FEWEST_LETTERS:
        return set()
    halves = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    dropped = {left + right[1:] for left, right in halves if right}
    swapped = {left + right[1] + right[0] + right[2:] for left, right in halves if len(right) > 1}
    replaced = {left + c + right[1:] for left, right in halves if right for c in ascii_lowercase}
    inserted = {left + c + right for left, right in halves for c in ascii_lowercase}
    digits = _list_digits(word)
    texts = dropped | swapped | replaced | inserted
    return {text for text in texts - {word} if not digits or _list_digits(text) == digits}


def _list_digits(text: str) -> list[str]:
    return [letter for letter in text if letter.isdigit()]
