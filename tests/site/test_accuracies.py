"""Every accuracy on the pages is that of its file in docs/results."""

import runpy

import pytest
from markdown_fences import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "fill_accuracies.py"))
ORIGINS = SCRIPT["read_list"]()
DATA = ("cifar", "animals", "intents")


@pytest.mark.parametrize("page", ORIGINS)
def test_a_page_has_the_numbers_of_its_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    try:
        filled = SCRIPT["fill_page"](text, ORIGINS[page])
    except ValueError as error:
        pytest.fail(f"{page}: {error}; see docs/results/accuracies.md")
    assert text == filled, "python scripts/fill_accuracies.py"


def test_a_number_that_differs_or_is_not_listed_is_found():
    fill, origins = SCRIPT["fill_page"], ORIGINS["README.md"][:1]
    right = SCRIPT["find_number"](origins[0])
    assert fill(f"It reaches {right}.", origins) == f"It reaches {right}."
    assert fill("It reaches .999.", origins) == f"It reaches {right}."
    with pytest.raises(ValueError, match="2 accuracies, but 1 on the list"):
        fill("It reaches .999, not .998.", origins)
    # The output of code is not a number of the page.
    assert fill("```\n.999\n```\n.999", origins).startswith("```\n.999\n```")


def list_research_numbers(text):
    """Yield each accuracy outside of code, and the data set of its column or None."""
    header = None
    for line in SCRIPT["FENCE"].sub("", text).splitlines():
        cells = SCRIPT["read_cells"](line) if line.startswith("|") else [line]
        header = (header or cells) if line.startswith("|") else None
        for name, cell in zip(header or [""], cells, strict=False):
            data = next((data for data in DATA if data in name.casefold()), None)
            yield from ((number, data) for number in SCRIPT["ACCURACY"].findall(cell))


@pytest.mark.parametrize("page", ["reproduction.md", "paper.md"])
def test_accuracies_about_the_paper_are_in_the_results_of_their_data(page):
    found = {
        path.stem: set(SCRIPT["ACCURACY"].findall(path.read_text(encoding="utf-8")))
        for path in SCRIPT["RESULTS"].glob("*.md")
    }
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    numbers = list(list_research_numbers(text))
    assert len(numbers) > 50
    for number, data in numbers:
        assert number in (set.union(*found.values()) if data is None else found[data]), (
            f"{number} is not in docs/results ({data or 'any file'})"
        )
