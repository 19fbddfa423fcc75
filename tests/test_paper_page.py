"""The pages on the paper: nothing is left out, what they name exists, numbers come from runs.

docs/results/ has all tables that ``rankshot reproduce`` wrote; the pages quote them.
"""

import importlib
import re
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
from docutils.utils.math.latex2mathml import tex2mathml

import rankshot as rs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAPER = (DOCS / "paper.md").read_text(encoding="utf-8")
RESULTS = (DOCS / "reproduction.md").read_text(encoding="utf-8")
DATA_SETS = {"CIFAR": "cifar", "Animals": "animals", "intents": "intents"}
# The paper is no part of the project, so what it numbers is listed here, in its order.
NUMBERED = (
    *("Equation 1", "Equation 2", "Figure 1", "Figure 2"),
    *(f"Equation {number}" for number in range(3, 18)),
    *("Table 1", "Figure 3", "Table 2", "Figure 4", "Equation 18"),
)
SHARE = re.compile(r"(?<![\d.])(?:\.\d{3}|1\.000)(?!\d)")


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def item_sections():
    """The text below each heading of level three, by its first two words."""
    parts = re.split(r"^#{2,3} (.+)$", PAPER, flags=re.MULTILINE)
    sections = zip(parts[1::2], parts[2::2], strict=True)
    return {title.split(":")[0]: text for title, text in sections}


def tables(text):
    """The rows of each table, the header first, as lists of cells."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    split = [[re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()] for table in found]
    return [[[cell.strip() for cell in row] for row in table] for table in split]


@cache
def run_page(dataset):
    return (DOCS / "results" / f"{dataset}.md").read_text(encoding="utf-8")


def run_table(dataset, title):
    """The rows of the table whose title starts so, without its header."""
    [[table]] = [
        tables(part)
        for part in re.split(r"^## ", run_page(dataset), flags=re.MULTILINE)
        if part.startswith(title)
    ]
    return table[2:]


def first_share(cell):
    found = SHARE.search(cell.split("; paper")[0])
    return float(found.group()) if found else None


# ---- Nothing of the paper is missing


def test_everything_that_the_paper_numbers_is_there_in_its_order():
    titles = re.findall(r"^### ((?:Equation|Table|Figure) \d+): \w", PAPER, re.MULTILINE)
    assert titles == list(NUMBERED)


@pytest.mark.parametrize("item", NUMBERED)
def test_every_item_has_its_code_and_its_test(item):
    section = item_sections()[item]
    assert re.search(r"^- Code: \[?`", section, re.MULTILINE)
    assert re.search(r"^- Test: `tests/", section, re.MULTILINE)
    if item.startswith("Equation"):
        assert "$$" in section
        assert f"::test_equation_{int(item.split()[1]):02d}_" in section


def test_every_formula_is_drawn():
    formulas = re.findall(r"\$\$(.+?)\$\$", PAPER, re.DOTALL)
    inline = re.findall(r"(?<!\$)\$([^$\n]+)\$(?!\$)", without_code(PAPER))
    assert len(formulas) >= 18
    for formula in formulas + inline:
        assert tex2mathml(formula.replace(r"\|", "|")).startswith("<math")


# ---- What is named exists


def find_name(name):
    """A public name, one of its attributes, or a dotted name of the package."""
    parts = name.removeprefix("rankshot.").split(".")
    found = rs
    for number, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError:
            found = importlib.import_module(".".join(["rankshot", *parts[: number + 1]]))
    return found


def test_every_function_that_is_named_can_be_imported():
    code = re.findall(r"^- Code: (.+)$", PAPER, re.MULTILINE)
    code += [row[-1] for table in tables(PAPER)[:1] for row in table[2:]]
    names = {name for line in code for name in re.findall(r"`([\w.]{2,})`", line)}
    assert len(names) > 30
    for name in sorted(names):
        assert find_name(name).__doc__, name
    links = re.findall(r"\[`([\w.]+)`\]\(api/generated/rankshot\.([\w.]+)\.rst\)", PAPER)
    assert len(links) > 40
    for name, page in links:
        assert f"{name.removeprefix('rankshot.')}.".startswith(f"{page}.")
        assert find_name(page).__doc__, page


def test_every_test_that_is_named_exists():
    named = set(re.findall(r"`(tests/[\w/.]+)::(\w+)`", PAPER))
    assert len(named) > 40
    for file, function in sorted(named):
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^def {function}\(", text, re.MULTILINE), f"{file}::{function}"


# ---- Numbers come from runs

ELSEWHERE = {
    ".005",  # the rule for changes of the default
    *(".006", ".011"),  # an example on the page computes them
}


@pytest.mark.parametrize("page", ["paper.md", "reproduction.md"])
def test_every_share_is_in_the_tables_of_a_run(page):
    text = without_code((DOCS / page).read_text(encoding="utf-8"))
    known = {share for dataset in DATA_SETS.values() for share in SHARE.findall(run_page(dataset))}
    computed = {share for part in SUMMARIES for share in SHARE.findall(part)}
    assert set(SHARE.findall(text)) - known - computed - ELSEWHERE == set()


def headlines(dataset):
    """The accuracies with settings chosen on seen classes: one by one, in a batch, with names."""
    rows = {row[0]: row[4] for row in run_table(dataset, "Better than the paper")}
    rows |= {row[0]: row[5] for row in run_table(dataset, "Peers")}
    support = "settings chosen on seen classes"
    names = (support, f"{support}, with the batch", "rankings, and similarity of name")
    return {SHARE.search(rows[name]).group() for name in names if name in rows}


@pytest.mark.parametrize("page", ["README.md", "docs/paper.md", "docs/reproduction.md"])
def test_a_column_of_a_data_set_has_numbers_of_its_run(page):
    checked = 0
    for header, *rows in tables((ROOT / page).read_text(encoding="utf-8")):
        for column, title in enumerate(header):
            for name, dataset in DATA_SETS.items():
                if name not in title:
                    continue
                known = set(SHARE.findall(run_page(dataset)))
                for row in rows:
                    assert set(SHARE.findall(row[column])) <= known, (title, row)
                    bold = set(re.findall(r"\*\*(\.\d{3})\*\*", row[column]))
                    assert bold <= headlines(dataset), (title, row)
                    checked += len(SHARE.findall(row[column]))
    assert checked >= 8


def test_tables_of_results_are_rows_of_the_runs():
    lines = {line for dataset in DATA_SETS.values() for line in run_page(dataset).splitlines()}
    quoted = [line for line in RESULTS.splitlines() if line.startswith("|")]
    others = [line for line in quoted if line not in lines and "[." in line]
    assert len(quoted) - len(others) > 130
    assert [line.split("|")[1].strip() for line in others] == [
        # The main table, the questions and the predicted accuracies have rows of their own.
        "rankshot, all settings chosen on seen classes, no data of new classes",
        "the same and the similarity of request and name",
        "rankshot, with the whole unlabelled test batch",
        *("`similar`", "`photographs`", "`contrast`", "`all`"),
        *("CIFAR", "Animals", "intents"),
    ]


def best(dataset, method, *, panel=False):
    """The best of a method, ours and the paper's."""
    rows = [
        row
        for row in run_table(dataset, "Table 2")
        if row[0] == method and row[1].startswith("panel") == panel
    ]
    cells = [cell for row in rows for cell in row[2:] if cell != "–"]
    paper = [float(cell.split("; paper ")[1]) for cell in cells if "; paper " in cell]
    return max(paper), max(map(first_share, cells))


def test_the_best_of_table_2():
    [rows] = [table[2:] for table in tables(PAPER) if table[0][0] == "method and rankings"]
    methods = ("Direct Similarity", "Deterministic Ranking", *["Probabilistic Ranking"] * 2)
    for (_, *cells), method, panel in zip(rows, methods, (False, False, False, True), strict=True):
        for cell, dataset in zip(cells, ("cifar", "animals"), strict=True):
            assert tuple(map(float, cell.split(" → "))) == best(dataset, method, panel=panel)


def test_result_1_and_figure_4():
    nearest = {row[0]: row[1] for row in run_table("animals", "Result 1: leave-one-out 1")}
    named = {"Euclidean, normalised": "Euclidean, normalized"}
    for name, cell in tables(item_sections()["Result 1"])[0][2:]:
        paper, ours = cell.split(" → ")
        row = nearest[named.get(name, name.replace("Kendall,", "Kendall, Hausdorff,"))]
        assert first_share(row) == float(ours)
        assert float(row.split("; paper ")[1]) == float(paper)
    for model, k, *cells in tables(item_sections()["Result 1"])[1][2:]:
        for cell, dataset in zip(cells, ("animals", "cifar"), strict=True):
            rows = run_table(dataset, "Result 1: leave-one-out Bayes")
            [row] = [row for row in rows if row[0] == model]
            found = row[1 + (2, 5, 10).index(int(k))]
            paper, ours = cell.split(" → ")
            assert first_share(found) == float(ours)
            assert float(found.split("; paper ")[1]) == float(paper)
    pairs = {row[0]: row[1] for row in run_table("cifar", "Figure 4")}
    for name, cell in tables(item_sections()["Figure 4"])[0][2:]:
        assert first_share(pairs[name.replace(", ", " or ")]) == float(cell.split(" → ")[1])


SUMMARIES = re.findall(r"(makes the mean calibration error.*?\.) |(\d+ of the \d+ .*)", RESULTS)
SUMMARIES = ["".join(parts) for parts in SUMMARIES] + re.findall(
    r"^rows, the root mean square.*$", RESULTS, re.MULTILINE
)


def test_the_mean_calibration_errors():
    text = SUMMARIES[0]
    for name, dataset in DATA_SETS.items():
        rows = [row for row in run_table(dataset, "Calibration") if "Prob" not in row[0]]
        before = fmean(float(row[3]) for row in rows if row[1].startswith("none"))
        after = fmean(float(row[3]) for row in rows if row[1].startswith("temperature"))
        said = re.search(rf"(\.\d+) to (\.\d+) on {name}", text).groups()
        assert tuple(map(float, said)) == pytest.approx((before, after), abs=0.0011)


def test_how_good_predicted_accuracies_were():
    errors, rehearsed = {}, []
    inside = 0
    for dataset in DATA_SETS.values():
        rows = run_table(dataset, "The accuracy on new classes")
        inside += sum(row[4] == "yes" for row in rows)
        shares = [[first_share(cell) for cell in row[1:4]] for row in rows]
        errors[dataset] = [predicted - found for _, predicted, found in shares]
        rehearsed += [before - found for before, _, found in shares]
    every = [error for some in errors.values() for error in some]
    _, intervals, squares = SUMMARIES
    assert intervals.startswith(f"{inside} of the {len(every)} intervals")
    said = re.findall(r"-?\.\d{3}", intervals)
    assert list(map(float, said)) == pytest.approx(list(map(fmean, errors.values())), abs=0.0011)
    roots = [fmean(e**2 for e in some) ** 0.5 for some in (every, rehearsed)]
    assert list(map(float, SHARE.findall(squares))) == pytest.approx(roots, abs=0.0011)
