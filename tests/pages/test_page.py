"""The page: complete, well formed, escaped, small, and readable in light and dark."""

import re
from dataclasses import replace

import pytest
from html_walker import HOSTILE, Walker, check_accessible, check_same_markup, check_self_contained
from report_samples import EVALUATION, EXAMPLE, SHOWN, THUMBNAIL, summary

from rankshot.pages import Card, Report, render_report
from rankshot.pages.explanations import ShownInput
from rankshot.pages.predictions import PredictionOverview
from rankshot.zeroshot.explanation import Explanation
from rankshot.zeroshot.metrics import Interval

COMPARISON = {
    "DS": {"mean": Interval(0.311, 0.302, 0.321), "crowd": Interval(0.322, 0.312, 0.332)},
    "PR": {"crowd": Interval(0.445, 0.43, 0.461)},
}
SUMMARY = summary(
    "cat",
    ("leopard", ("tiger", "lion"), "fox"),
    concordance=0.712,
    mean_distance=0.2345,
    disagreement=(("WordNet", 1.5), ("GloVe", 4.25)),
)
OVERVIEW = PredictionOverview(
    {"cat": 1234, "dog": 5}, 1240, 0.876, (("0–50%", 240), ("50–100%", 1000))
)
FULL = Report(
    title="Ten new classes",
    lead="Rankings of seen classes.",
    forecast=Interval(0.6, 0.5, 0.7),
    cards=(Card("Test images", "10,000", "of all classes"),),
    comparison=COMPARISON,
    evaluation=EVALUATION,
    overview=OVERVIEW,
    inputs=(SHOWN, EXAMPLE),
    consensuses=(SUMMARY,),
    similar=(("cat", "dog", 0.456), ("ship", "truck", 0.567)),
    settings=(("--k", "17 places"),),
    notes=("Intervals are Wilson's.",),
)
SECTIONS = {
    "images": "inputs",
    "predictions": "overview",
    "confusions": "evaluation",
    "classes": "evaluation",
    "calibration": "evaluation",
    "explanations": "inputs",
    "similar_classes": "similar",
    "consensus": "consensuses",
    "comparison": "comparison",
    "about_this_report": "settings",
}
"""By the id of each section, in the order of the page: what it is made of."""


@pytest.fixture(scope="module")
def full():
    return render_report(FULL)


# ---- What is there


def test_every_number_and_name_is_on_the_page(full):
    text = Walker(full).text
    wanted = """
        Ten new classes|of 3 new classes
        61.7%|57.1–65.8%|33.3%|60.0% (50.0–70.0%)|Rankings of seen classes.
        Test images|10,000|of all classes|31.1%|30.2–32.1%|44.5%|43.0–46.1%
        leopard|tiger = lion|fox|71.2%|23.4%|Intervals are Wilson's.
        54.4%|43.3%
        50.0%|70.0%|51|27|24|33|77|1,234|56|n/a
        cat 33×
        11.0%|110|102|1,000|50–100%
        17 places
        image 17|62.3%|✗ wrong|The true class is dog|×3.6|÷1.5|×1.4|21.4%|7.1%
        Why cat rather than the average class
        image 23|34.5%|lynx|true: dog|1 of 1,240 inputs are shown
    """
    missing = [w for line in wanted.split("\n") for w in line.strip().split("|") if w not in text]
    assert missing == []


# ---- Form


def test_sections_and_contents_agree(full):
    less = render_report(replace(FULL, comparison=None, evaluation=None))
    for text, left_out in ((full, set()), (less, {"comparison", "evaluation"})):
        page = Walker(text)
        expected = [key for key, name in SECTIONS.items() if name not in left_out]
        assert [section["id"] for section in page.all("section")] == expected
        assert [a["href"] for a in page.all("a")] == [f"#{key}" for key in expected]


def test_results_are_open_and_how_they_came_about_is_folded(full):
    folded = re.findall(r'<details class="fold">\n<summary><h2 id="(\w+)-heading"', full)
    assert folded == ["consensus", "comparison"]


def test_nothing_is_loaded_and_all_is_named_for_those_who_cannot_see(full):
    check_self_contained(full)
    check_accessible(Walker(full))


def everywhere(name):
    """Return a report with a name at every place that takes one."""
    other = name + " (other)"
    items = ((name, 1.0), (other, 0.5))
    why = Explanation(name, 0.5, other, items, ((name, 1.0),), ((other, 0.5),), (name,))
    shown = ShownInput(name, name, 0.5, other, THUMBNAIL, (name, other), why)
    return Report(
        name,
        name,
        name,
        cards=(Card(name, name, name),),
        comparison={name: {name: Interval(0.5, 0.4, 0.6)}},
        evaluation=replace(EVALUATION, classes=(name, other, "ship")),
        overview=OVERVIEW._replace(counts={name: 3, other: 1}),
        inputs=(shown,),
        consensuses=(summary(name, (name, (name, other)), 0.5, 1.0, ((name, 1.0),)),),
        similar=((name, other, 0.5),),
        settings=((name, name),),
        notes=(name,),
    )


def test_names_are_text_and_never_markup():
    # Longer names would be shortened.
    name = f"猫 <script>{HOSTILE[4]}{HOSTILE[2]}{HOSTILE[3][:11]}"
    page = render_report(everywhere(name))
    check_self_contained(page)
    plain = render_report(everywhere(re.sub("[!-~]", "a", name)))
    check_same_markup(Walker(page), Walker(plain))
    assert Walker(page).text.count(name) > 20


def test_long_names_are_shortened_with_a_tooltip():
    name = "".join(f"part{i}" for i in range(40))
    page = render_report(Report("t", consensuses=(summary(name, (name,)),)))
    assert f'title="{name}"' in page
    assert name not in Walker(page).text
    assert name[:79] + "…" in Walker(page).text
