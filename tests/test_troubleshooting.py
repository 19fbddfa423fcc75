"""The messages that docs/guide/troubleshooting.md quotes are those that the source still has."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text(encoding="utf-8")
# The shell prints these two.
NOT_OURS = ("command not found", "no matches found")
MESSAGES = [
    text
    for text in re.findall(r"^```{code-block} none\n(.+?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    if not any(words in text for words in NOT_OURS)
]
# Values, which differ from case to case: files and lines, names in quotes, numbers, and what other
# programs say: in parentheses, or the words of the openai client.
VALUES = (
    r"\w+Warning: |^rankshot: [A-Z][^:]+:|Expected [^;]+|\([A-Z].*\)|'[^']*'"
    r"|[\w./:]+[.:][\w/]*|\d[\d,.]*|Connection error"
)
AT_THE_ENDS = " (){};:,.'\""


def list_literals(path):
    """Return the texts in a module, without its docstrings; templates are cut at their values."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in docstrings
        for part in node.value.split("{}")
    ]


@pytest.fixture(scope="module")
def texts():
    """Return the texts in the source, the longest first."""
    paths = sorted((ROOT / "src" / "rankshot").rglob("*.py"))
    found = {text.strip(AT_THE_ENDS) for path in paths for text in list_literals(path)}
    return sorted(found, key=len, reverse=True)


def test_the_page_has_many_messages_and_none_twice():
    assert len(MESSAGES) >= 25
    assert len(set(MESSAGES)) == len(MESSAGES)


@pytest.mark.parametrize("message", MESSAGES)
def test_the_words_of_a_message_are_in_the_source(message, texts):
    left = message
    for phrase in (text for text in texts if " " in text):
        left = left.replace(phrase, " ")
    words = set(re.findall(r"[A-Za-z-]{3,}", re.sub(VALUES, " ", left)))
    # A word between two values is a text of its own; names of options and extras are no texts.
    unknown = {word for word in words - set(texts) if not word.startswith("--")}
    assert not unknown, "the source has other words now"
