"""The reference: every public name is on one page, and is documented with an example that runs."""

import ast
import builtins
import doctest
import inspect
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import rankshot as rs
from rankshot.sources import read_look_up
from rankshot.zeroshot import open_scores, read_predictions, read_truth

DOCS = Path(__file__).parents[1] / "docs"
if not DOCS.is_dir():
    pytest.skip("the documentation is not here", allow_module_level=True)
numpydoc = pytest.importorskip("numpydoc.docscrape")
sys.path.insert(0, str(DOCS / "_extensions"))
from name_links import Links  # noqa: E402
from reference import list_members, public_names  # noqa: E402


def unwrap(found):
    """The function behind a property, a class method or a static method."""
    for attribute in ("fget", "func", "__func__"):
        found = getattr(found, attribute, found)
    return inspect.unwrap(found)


NAMES = public_names()
CALLABLE = {name: found for name, found in NAMES.items() if callable(found)}
CLASSES = {name: found for name, found in CALLABLE.items() if inspect.isclass(found)}
MEMBERS = {
    f"{name}.{member}": inspect.getattr_static(found, member)
    for name, found in CLASSES.items()
    for members in list_members(found).values()
    for member in members
}
FUNCTIONS = {name: unwrap(found) for name, found in MEMBERS.items()}
ERRORS = {name for name, found in CLASSES.items() if issubclass(found, Exception)}


def names_on(page):
    text = page.read_text("utf-8")
    blocks = re.findall(r"autosummary::\n(?: +:.*\n)*\n((?: +\S+\n)+)", text)
    here = re.findall(r"^\.\. auto(?:class|data|exception|function):: (\S+)$", text, re.MULTILINE)
    return [*(f"rankshot.{name}" for name in " ".join(blocks).split()), *here]


def test_every_public_name_is_on_one_page():
    counts = Counter(name for page in (DOCS / "api").glob("*.md") for name in names_on(page))
    assert set(NAMES) - set(counts) == set()
    assert set(counts) - set(NAMES) == set()
    assert [name for name, count in counts.items() if count > 1] == []


def test_what_people_type_is_on_the_first_page():
    page = (DOCS / "api" / "index.md").read_text("utf-8")
    tables = re.findall(r"^\| .+ \| (`.+`) \|", page, re.MULTILINE)
    named = re.findall(r"`(\w+)`", "".join(tables))
    assert sorted(named) == sorted(rs.__all__)
    assert f"all {len(named)} names" in page


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("kemeny", "rankshot.kemeny"),
        ("rs.kemeny(votes)", "rankshot.kemeny"),
        ("load_panel", "rankshot.datasets.load_panel"),
        ("Rankings.from_pairs", "rankshot.Rankings.from_pairs"),
        ("Leaderboard.items", "rankshot.leaderboards.Leaderboard"),
        ("PlackettLuce().fit(…).mode_", "rankshot.PlackettLuce"),
        ("rankshot rank --k 5", "api/command#rankshot-rank"),
        # In two packages, a plain word, or unknown.
        ("score", None),
        ("jobs.classify", "rankshot.jobs.classify"),
        ("accuracy", None),
        ("metrics.reliability", "rankshot.zeroshot.metrics.reliability"),
        ("rankshot COMMAND", None),
        ("rankings.jsonl", None),
        ("k", None),
    ],
)
def test_names_in_code_font_are_links(text, target):
    assert Links().find(text) == target


def test_every_public_name_has_an_example():
    without = [
        name
        for name, found in CALLABLE.items()
        if ">>>" not in (inspect.getdoc(found) or "").partition("Examples\n--------\n")[2]
    ]
    assert without == []


def find_free_names(code):
    """The names that a piece of code uses and does not define or import."""
    defined, used = set(dir(builtins)), set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
                defined.add(name)
            case ast.alias(name=name, asname=other):
                defined.add((other or name).split(".")[0])
    return used - defined


def test_an_example_imports_all_that_it_uses():
    """So that a reader can copy it."""
    parser = doctest.DocTestParser()
    free = {
        name: find_free_names("".join(each.source for each in parser.get_examples(text)))
        for name, found in (CALLABLE | FUNCTIONS).items()
        if (text := inspect.getdoc(found))
    }
    assert {name: names for name, names in free.items() if names} == {}


def listed(document, section):
    names = (name for entry in document[section] for name in entry.name.split(","))
    return [name.strip().lstrip("*") for name in names]


def find_entries(name):
    """The parameters and attributes that a class documents, its methods included."""
    texts = [
        NAMES[name],
        *(found for each, found in FUNCTIONS.items() if each.startswith(f"{name}.")),
    ]
    documents = [numpydoc.NumpyDocString(inspect.getdoc(text) or "") for text in texts]
    sections = ("Parameters", "Other Parameters", "Attributes")
    return {each for text in documents for section in sections for each in listed(text, section)}


def parameters(found):
    return [name for name in inspect.signature(found).parameters if name not in {"self", "cls"}]


ENTRIES = {name: find_entries(name) for name in CLASSES}


def find_wrong_parameters(name, found):
    """What is wrong with the parameters of a docstring, or None.

    Every parameter of a public function or class has an entry; a class that users read and do not
    make has it among its attributes. A method lists all of its parameters or none.
    """
    document = numpydoc.NumpyDocString(inspect.getdoc(found))
    taken = [] if name in ERRORS else [each for each in parameters(found) if each[0] != "_"]
    told = listed(document, "Parameters") + listed(document, "Other Parameters")
    if inspect.isclass(found) and not told:
        told = [each for each in listed(document, "Attributes") if each in taken]
    if sorted(told) == sorted(taken):
        return None
    if name in NAMES or told:
        return f"{name} takes {taken} and documents {told}"
    # None: where the class documents a parameter of this name, in its own docstring or in that of
    # another method, or where up to three are named in the sentences of the method.
    own = [each for each in taken if each not in ENTRIES[name.rpartition(".")[0]]]
    named = [each for each in own if re.search(rf"``{each}\b", inspect.getdoc(found))]
    missing = [each for each in own if each not in named[:3]]
    return f"{name} does not document {', '.join(missing)}" if missing else None


def test_the_parameters_of_docstrings_are_those_of_the_signatures():
    wrong = [
        find_wrong_parameters(name, found)
        for name, found in (CALLABLE | FUNCTIONS).items()
        if found.__module__.startswith("rankshot")
    ]
    assert [line for line in wrong if line] == []


# ---- File formats

PHOTOS = ["photo1.jpg", "photo2.jpg"]
CHECKS = {
    "rankings.jsonl": lambda path: len(rs.read_rankings(path)) == 3,
    "election.soi": lambda path: rs.read_rankings(path).weights.tolist() == [5, 2],
    "votes.csv": lambda path: len(rs.read_rankings(path)) == 3,
    "scores.csv": lambda path: open_scores(path).items == ("bus", "leopard", "tiger"),
    "predictions.csv": lambda path: read_predictions(path).ids.tolist() == PHOTOS,
    "truth.csv": lambda path: read_truth(path, PHOTOS).tolist() == ["cat", "truck"],
    "similarities.csv": lambda path: rs.sources.read_similarity(path).values.shape == (2, 3),
    "names.csv": lambda path: read_look_up(path, ["water_lilly"]) != {},
}


def test_the_files_on_the_page_of_formats_are_read(tmp_path):
    page = (DOCS / "api" / "files.md").read_text("utf-8")
    files = dict(re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    assert set(files) == set(CHECKS)
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert CHECKS[name](tmp_path / name), name
