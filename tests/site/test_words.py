"""The guide stays short, and its English plain."""

import re

import pytest
from markdown_fences import ROOT, find_pages

GUIDE = sorted((ROOT / "docs" / "guide").glob("*.md"))
DOORS = ("classifier", "votes", "analyse_rankings")
FOREIGN = {
    r"\bis no (?:\w+ )?(?:of|word|list|share|method)\b": "is not a",
    r"play(?:ed|s)? new ones": "are held out",
    r"speaks? for": "supports",
    r"(?:is|are) taken as": "is interpreted as",
    r"\bhow sure\b": "how certain",
    r"\bso many\b": "this many",
    r"\b(?:model|models|arrays) of (?:transformers|torch)\b": "a transformers model",
    r"\btelephone": "phone",
    r", too\b": "as well",
    r"what came out": "the result",
    r"\b(?:is|are) refused\b": "raises an error",
    r"(?<![</`\[])\bpictures?\b": "image or plot",
    r"\bin no order\b": "in unspecified order",
    r"\bnobody new\b": "no new participants",
    r"\bdecided (?:alone|together)\b": "classified independently, jointly",
    r"\bthe one\b[^.]{1,60}\bthe other\b": "the first, the second",
    r"\b(?:is|are|rank|vote) alike\b": "similar",
    r"(?:^|[.:] )Of (?:a|an|the)\b": "From, for",
}
"""Patterns that a native writer would not use, and what to write instead."""


def read_prose(path):
    """Return the text of a page without code, comments, addresses and directives."""
    text = re.sub(
        r"^( *)(`{3,})[^\n]*\n.*?^\1\2$",
        "",
        path.read_text("utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    text = re.sub(
        r"<!--.*?-->|^:::+[^\n]*$|^:\w+:[^\n]*$", "", text, flags=re.MULTILINE | re.DOTALL
    )
    return re.sub(r"\]\([^)]*\)", "]", text)


def count_words(path):
    return sum(bool(re.search(r"\w", word)) for word in read_prose(path).split())


def test_the_guide_is_short():
    words = {path.stem: count_words(path) for path in GUIDE}
    assert {name: n for name, n in words.items() if n > 1500} == {}
    assert {name: words[name] for name in DOORS if words[name] > 800} == {}
    assert sum(words.values()) < 22_000


def test_the_readme_is_short():
    assert count_words(ROOT / "README.md") < 650


@pytest.mark.parametrize("page", find_pages())
def test_sentences_are_plain_english(page):
    prose = read_prose(ROOT / page)
    found = [
        (match[0], better)
        for pattern, better in FOREIGN.items()
        if (match := re.search(pattern, prose))
    ]
    assert found == []
