"""The reference: every public name is on one page, and is documented with an example that runs."""

import inspect
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)
numpydoc = pytest.importorskip("numpydoc.docscrape")
sys.path.insert(0, str(DOCS / "_extensions"))
from reference import list_members, public_names  # noqa: E402

NAMES = public_names()
CALLABLE = {name: found for name, found in NAMES.items() if callable(found)}
CLASSES = {name: found for name, found in CALLABLE.items() if inspect.isclass(found)}
MEMBERS = {
    f"{name}.{member}": inspect.getattr_static(found, member)
    for name, found in CLASSES.items()
    for members in list_members(found).values()
    for member in members
}
ERRORS = {name for name, found in CLASSES.items() if issubclass(found, Exception)}


def unwrap(found):
    """The function behind a property, a class method or a static method."""
    for attribute in ("fget", "func", "__func__"):
        found = getattr(found, attribute, found)
    return inspect.unwrap(found)


def names_on(page):
    blocks = re.findall(r"autosummary::\n(?: +:.*\n)*\n((?: +\S+\n)+)", page.read_text("utf-8"))
    return [f"rankshot.{name}" for block in blocks for name in block.split()]


def test_every_public_name_is_on_one_page():
    counts = Counter(name for page in (DOCS / "api").glob("*.md") for name in names_on(page))
    assert set(NAMES) - set(counts) == set()
    assert set(counts) - set(NAMES) == set()
    assert [name for name, count in counts.items() if count > 1] == []


def test_the_index_lists_every_page():
    index = (DOCS / "api" / "index.md").read_text("utf-8")
    pages = {page.stem for page in (DOCS / "api").glob("*.md")} - {"index"}
    assert set(re.findall(r"\]\((\w+)\.md\)", index)) == pages
    assert set(re.findall(r"^\w+$", index[index.index("{toctree}") :], re.MULTILINE)) == pages


def test_every_public_name_has_an_example():
    without = [
        name
        for name, found in CALLABLE.items()
        if ">>>" not in (inspect.getdoc(found) or "").partition("Examples\n--------\n")[2]
    ]
    assert without == []


def test_every_method_and_property_is_documented():
    assert [name for name, found in MEMBERS.items() if not inspect.getdoc(unwrap(found))] == []


def listed(document, section):
    names = (name for entry in document[section] for name in entry.name.split(","))
    return [name.strip().lstrip("*") for name in names]


def parameters(found):
    return [name for name in inspect.signature(found).parameters if name not in {"self", "cls"}]


def find_wrong_parameters(name, found):
    """What is wrong with the parameters of a docstring, or None.

    A class that users read and do not make lists attributes. A function with one or two
    parameters may tell of them in its sentences.
    """
    document = numpydoc.NumpyDocString(inspect.getdoc(found))
    taken = [] if name in ERRORS else parameters(found)
    told = listed(document, "Parameters") + listed(document, "Other Parameters")
    if inspect.isclass(found) and not told:
        missing = [each for each in taken if each not in listed(document, "Attributes")]
        return f"{name} has no attribute {', '.join(missing)}" if missing else None
    if told and told != taken:
        return f"{name} takes {taken} and documents {told}"
    if name in NAMES and not told and len(taken) > 2:
        return f"{name} documents no parameters"
    return None


def test_the_parameters_of_docstrings_are_those_of_the_signatures():
    ours = {
        name: found
        for name, found in (CALLABLE | {name: unwrap(found) for name, found in MEMBERS.items()}).items()
        if found.__module__.startswith("rankshot")
    }
    wrong = [find_wrong_parameters(name, found) for name, found in ours.items()]
    assert [line for line in wrong if line] == []
