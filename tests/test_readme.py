"""What the README claims beyond its code, which tests/site/test_commands.py and doctests run."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from markdown_tables import read_rows

ROOT = Path(__file__).parents[1]


def test_the_percentages_in_the_picture_come_from_its_scores_and_rankings():
    picture = (ROOT / "docs" / "images" / "idea.svg").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", picture.replace("</text>", "\n").replace("&gt;", ">"))
    orders = {
        target: [item.strip() for item in order.split(">")]
        for target, order in re.findall(r"^\s*(\w+): (.+ > .+)$", text, re.MULTILINE)
    }
    shares = {"leopard": 46, "tiger": 28, "wolf": 15, "bus": 5, "tank": 4, "lawn mower": 2}
    for share in (*shares.values(), 56, 42, 2):
        assert f">{share} %<" in picture
    rankings = rs.Rankings.from_orders(list(orders.values()), items=shares, targets=list(orders))
    head = rs.WeightedMean().fit(rankings)
    proba = head.predict_proba(np.log([list(shares.values())]))[0]
    assert head.classes_.tolist() == ["cat", "dog", "truck"]
    assert (100 * proba).round().tolist() == [56, 42, 2]


# ---- Numbers are those of the runs on three data sets

RUNS = ("cifar", "animals", "intents")


def find_result(run, heading, row, column):
    """Return a number of a table of a run, without its interval."""
    text = (ROOT / "docs" / "results" / f"{run}.md").read_text(encoding="utf-8")
    (table,) = [part for part in text.split("\n## ") if part.startswith(heading)]
    header, _, *rows = read_rows(table)
    (found,) = [cells for cells in rows if row in " | ".join(cells)]
    return found[header.index(column)].split()[0]


def find_by_examples(row, column):
    heading = "Accuracy against labelled examples"
    return [find_result(run, heading, row, column) for run in RUNS]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_table_of_accuracies_is_that_of_the_runs(page):
    rows = {cells[0]: cells[1:] for cells in read_rows((ROOT / page).read_text(encoding="utf-8"))}
    measured = {
        "Hamm and Belkin": find_by_examples("the paper's method", "0"),
        "rankshot**, rankings": find_by_examples("rankings and examples, features", "0"),
        "5 labelled examples": find_by_examples("examples alone", "5"),
        "rankshot and the 5": find_by_examples("rankings and examples, features", "5"),
    }
    for name, numbers in measured.items():
        (shown,) = [cells for row, cells in rows.items() if row.startswith(name)]
        assert shown == numbers, name


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_sentence_encoder_is_that_of_the_runs(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for column in ("evidence alone", "both"):
        row = "new classes | sentence encoder"
        assert find_result("intents", "Another model's opinion", row, column) in text


def test_the_guide_quotes_the_runs():
    text = (ROOT / "docs" / "guide" / "sources.md").read_text(encoding="utf-8")
    rows = {cells[0]: cells[1:] for cells in read_rows(text)}
    heading, column = "The accuracy on new classes", "new classes, mean over classes"
    sources = {
        "language-model panel, all questions": "settings chosen on seen classes",
        "GloVe, 50 dimensions": "GloVe",
        "WordNet": "WordNet",
    }
    for name, source in sources.items():
        for run, shown in zip(RUNS, rows[name], strict=True):
            if shown != "–":
                assert shown == find_result(run, heading, f"{source} | .", column)


@pytest.mark.parametrize(
    "page",
    ["README.md", *(f"docs/{name}.md" for name in ("index", "paper", "reproduction"))]
    + [f"docs/guide/{name}.md" for name in ("examples", "rehearsal", "sources", "zeroshot")],
)
def test_every_accuracy_is_in_the_tables_of_the_runs(page):
    """A new run moves the tables, and with them what these pages claim."""
    number = re.compile(r"(?<![\w.])\.\d{3}\b")
    tables = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "results").glob("*.md")
    )
    text = re.sub(
        r"^```.+?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    chance = {".100"}
    assert set(number.findall(text)) - set(number.findall(tables)) - chance == set()


def test_every_link_and_picture_leads_to_a_file_wherever_the_page_is_read():
    """PyPI shows the page without the files beside it, so no link is relative."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"].removeprefix("https://github.com")
    links = [a or b for a, b in re.findall(r"\]\(([^)#]+)|(?:href|src)=\"([^\"]+)\"", text)]
    base = (
        rf"https://(?:github\.com{repository}/blob|raw\.githubusercontent\.com{repository})/main/"
    )
    files = [re.sub(base, "", link) for link in links]
    assert len(files) > 20
    assert [file for file in files if not (ROOT / file).is_file()] == []
