"""Every accuracy in README, on the first page and in the guide is that of its file."""

import runpy

import pytest
from markdown_fences import ROOT

SCRIPT = runpy.run_path(str(ROOT / "scripts" / "fill_accuracies.py"))
ORIGINS = SCRIPT["read_list"]()


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
