"""The page: complete, well formed, escaped, small, and readable in light and dark."""

import math
import re
import sys
from dataclasses import fields, replace
from importlib.resources import files

import numpy as np
import pytest
from html_walker import HOSTILE, Walker, check_accessible, check_same_markup, check_self_contained
from report_samples import EVALUATION, EXAMPLE, summary

from rankshot import RankshotError
from rankshot.experiments.result_tables import Comparison, ComparisonRow
from rankshot.report.contents import ClassMap, Evaluation, ExplainedInput, Report
from rankshot.report.page import render_report, write_page
from rankshot.report.sections import (
    find_hardest_pairs,
    find_largest_confusions,
    format_comparison,
    format_evaluation,
)
from rankshot.zeroshot.explanation import Explanation
from rankshot.zeroshot.metrics import Interval

COMPARISON = Comparison(
    ("one-vs-rest", "multiclass"),
    (
        ComparisonRow("DS", "mean", (Interval(0.311, 0.302, 0.321), None)),
        ComparisonRow("PR", "crowd", (Interval(0.411, 0.402, 0.423), Interval(0.445, 0.43, 0.461))),
        ComparisonRow("DS", "crowd", (Interval(0.322, 0.312, 0.332), None)),
        ComparisonRow("PR", "all", (Interval(0.401, 0.39, 0.413), Interval(0.445, 0.431, 0.462))),
    ),
    "Accuracy on CIFAR.",
)
SUMMARY = summary(
    "cat",
    ("leopard", ("tiger", "lion"), "fox"),
    concordance=0.712,
    mean_distance=2.345,
    disagreement=(("WordNet", 1.5), ("GloVe", 4.25)),
)
MAP = ClassMap(("cat, GloVe", "dog, GloVe"), ("cat", "dog"), (0.0, 1.0), (0.0, 0.5), "By MDS.")
FULL = Report(
    title="Ten new classes",
    lead="What came out.",
    facts=(("Test images", "10,000"),),
    comparison=COMPARISON,
    consensuses=(SUMMARY,),
    map=MAP,
    evaluation=EVALUATION,
    explanations=(EXAMPLE,),
    notes=("Intervals are Wilson's.",),
)
SECTIONS = {
    "comparison": "comparison",
    "consensuses": "consensus",
    "map": "map",
    "evaluation": "evaluation",
    "explanations": "explanations",
    "notes": "notes",
}


# ---- What is there


def test_every_number_and_name_is_on_the_page():
    text = Walker(render_report(FULL)).text
    wanted = """
        Ten new classes|What came out.|Test images|10,000|Intervals are Wilson's.
        one-vs-rest|multiclass|.311|.302–.321|.411|.402–.423|.445|.430–.461|.322|.312–.332
        .401|.390–.413|.431–.462|n/a|Accuracy on CIFAR.
        leopard|tiger = lion|fox|.712|2.35|1.50|4.25|WordNet
        cat, GloVe (cat)|dog, GloVe (dog)|By MDS.
        .617|.571–.658|50.0%|70.0%|51|27|24|33|77|43|87|52.3%|41.2%|1,234|86.7%|78.9%|56
        .083|1.62|Top-2 accuracy|.834|110|102
        image 17|62.3%|✗ wrong|The true class is dog|+1.27|−0.41|+0.330|21.4%|7.1%
    """
    missing = [w for line in wanted.split("\n") for w in line.strip().split("|") if w not in text]
    assert missing == []


def test_the_order_of_a_consensus_counts_ties_as_places():
    page = Walker(render_report(Report("t", consensuses=(SUMMARY,))))
    assert [li["value"] for li in page.all("li") if "value" in li] == ["1", "2", "4"]


def test_the_best_are_marked_ties_included():
    methods = format_comparison(COMPARISON)["methods"]
    bold = {
        (method, source, column)
        for method, rows in methods.items()
        for source, cells in rows
        for column, cell in enumerate(cells)
        if cell and cell.best_of_method
    }
    assert bold == {("DS", "crowd", 0), ("PR", "crowd", 1), ("PR", "all", 1)}
    page = render_report(Report("t", comparison=COMPARISON))
    assert page.count("<strong>") == 3
    assert page.count('<span class="badge">best</span>') == 2
    # The rows of a method are together, in whatever order they were given.
    text = Walker(page).text
    assert text.index("DS") < text.index(".311") < text.index(".322") < text.index("PR")


def test_without_missing_cells_there_is_no_word_of_them():
    rows = tuple(row for row in COMPARISON.rows if row.method == "PR")
    text = Walker(render_report(Report("t", comparison=replace(COMPARISON, rows=rows)))).text
    assert "n/a" not in text


def test_bars_are_as_long_as_their_numbers():
    page = render_report(Report("t", explanations=(EXAMPLE,)))
    # Two-sided: the longest fills half the track.
    assert re.findall(r'class="bar (\w+)" style="width:([\d.]+)%', page) == [
        ("for", "50.00"),
        ("against", f"{50 * 0.41 / 1.27:.2f}"),
        ("for", "50.00"),
    ]
    assert re.findall(r'class="bar" style="width:([\d.]+)%', page) == ["21.40", "7.10"]


def test_heat_is_by_row_and_starts_at_random_guessing():
    section = format_evaluation(EVALUATION)
    # 51, 27, 24 of 102; 33, 77 of 110; a class without inputs.
    assert section["confusion"] == [
        ("cat", [("h5", "51"), ("h2", "27"), ("h2", "24")]),
        ("dog", [("h3", "33"), ("h6", "77"), ("h0", "0")]),
        ("ship", [("h0", "0")] * 3),
    ]
    assert section["pairwise"][1] == ("dog", [("below", "43"), ("", ""), ("h0", "50")])
    # Lowest first, NaN last; all classes that it was most often confused with are named.
    lines = section["class_lines"]
    assert [line.bar.name for line in lines] == ["cat", "dog", "ship"]
    assert [line.confused_with for line in lines] == [("dog",), ("cat",), ()]
    tied = replace(EVALUATION, confusion=np.array([[9, 2, 2], [0, 1, 0], [0, 0, 1]]))
    assert format_evaluation(tied)["class_lines"][0].confused_with == ("dog", "ship")


@pytest.mark.parametrize("truth", [None, "cat", "dog"])
def test_right_and_wrong_are_shown_only_if_the_truth_is_given(truth):
    text = Walker(render_report(Report("t", explanations=(replace(EXAMPLE, truth=truth),)))).text
    assert ("✓ right" in text) == (truth == "cat")
    assert ("✗ wrong" in text) == (truth == "dog")


def test_a_log_loss_may_be_infinite():
    report = Report("t", evaluation=replace(EVALUATION, log_loss=math.inf))
    assert "Log loss∞" in Walker(render_report(report)).text.replace(" ", "").replace(
        "Logloss", "Log loss"
    )


# ---- Form


@pytest.mark.parametrize("left_out", [None, *SECTIONS])
def test_sections_and_contents_agree(left_out):
    report = FULL
    if left_out:
        empty = next(field.default for field in fields(Report) if field.name == left_out)
        report = replace(FULL, **{left_out: empty})
    page = Walker(render_report(report))
    expected = [key for name, key in SECTIONS.items() if name != left_out]
    assert [section["id"] for section in page.all("section")] == expected
    assert [a["href"] for a in page.all("a")] == [f"#{key}" for key in expected]


def test_the_first_screen_tells_what_the_page_is_for():
    assert "how well a zero-shot classifier recognises new classes" in render_report(Report("t"))


def test_a_page_without_sections_has_no_contents():
    page = Walker(render_report(Report("Just a title", comparison=Comparison(("a",), ()))))
    assert "Just a title" in page.text
    assert page.all("nav") == page.all("section") == page.all("dl") == []


def test_nothing_is_loaded_from_elsewhere_and_nothing_runs():
    check_self_contained(render_report(FULL))


def test_tables_and_charts_are_named_for_those_who_cannot_see_them():
    check_accessible(Walker(render_report(FULL)))


def everywhere(name):
    """Return a report with a name at every place that takes one."""
    other = name + " (other)"
    why = Explanation(name, 0.5, None, ((name, 1.0),), ((name, 1.0),), ((other, 0.5),))
    return Report(
        name,
        name,
        ((name, name),),
        Comparison((name,), (ComparisonRow(name, name, (Interval(0.5, 0.4, 0.6),)),), name),
        (summary(name, (name, (name, other)), 0.5, 1.0, ((name, 1.0),)),),
        ClassMap((name, other), (name, other), (0.0, 1.0), (0.0, 1.0), name),
        replace(EVALUATION, classes=(name, other, "ship")),
        (ExplainedInput(name, why, other),),
        (name,),
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_and_never_markup(name):
    odd = Walker(render_report(everywhere(name)))
    check_same_markup(odd, Walker(render_report(everywhere("a" * len(name)))))
    assert odd.text.count(name) > 20


def test_long_names_are_shortened_with_a_tooltip():
    name = "".join(f"part{i}" for i in range(40))
    page = render_report(Report("t", consensuses=(summary(name, (name,)),)))
    assert f'title="{name}"' in page
    assert name not in Walker(page).text
    assert name[:79] + "…" in Walker(page).text
    endless = "x" * 1_000_000
    short = replace(everywhere(endless), title="t", lead="", facts=(), notes=())
    short = replace(short, map=None, comparison=None, evaluation=None)
    assert len(render_report(short)) < 100_000


# ---- Large results


def large_report(rng, L=1000):
    names = tuple(f"class number {i}" for i in range(L))
    confusion = rng.poisson(0.05, size=(L, L))
    confusion[17, 23], confusion[5, 6] = 99, 98
    pairwise = rng.uniform(0.6, 1, size=(L, L))
    pairwise[41, 42] = pairwise[42, 41] = 0.123
    np.fill_diagonal(pairwise, np.nan)
    raters = tuple((f"rater {i}", float(i)) for i in range(500))
    cards = tuple(
        summary(name, names, 0.5 - 0.4 * (i >= L - 40), 3.0, raters) for i, name in enumerate(names)
    )
    points = tuple(f"{name}, {source}" for name in names for source in range(5))
    x, y = rng.normal(size=(2, 5 * L))
    contributions = tuple(
        (name, float(p)) for name, p in zip(names, rng.normal(size=L), strict=True)
    )
    explanation = Explanation(names[0], 0.5, None, contributions, contributions, ())
    return Report(
        "Large",
        consensuses=cards,
        map=ClassMap(points, tuple(n for n in names for _ in range(5)), tuple(x), tuple(y)),
        evaluation=Evaluation(
            names,
            Interval(0.5, 0.4, 0.6),
            tuple(np.linspace(0, 1, L)),
            (1,) * L,
            confusion,
            pairwise,
            ((0.5, 0.5, 10),),
            0.0,
            1.0,
        ),
        explanations=(ExplainedInput("an input", explanation),) * 100,
    )


def test_a_thousand_classes_fit_on_a_page_and_it_says_what_is_shown(rng):
    page = render_report(large_report(rng))
    assert len(page.encode()) < 3_000_000
    text = Walker(page).text
    for sentence in (
        "Only the 40 of 1,000 classes with the lowest agreement are shown.",
        "Only the 40 largest of 1,000 groups are named",
        "Of 5,000 points, one in 3 is drawn.",
        "Only the 40 of 1,000 classes with the lowest accuracy are shown.",
        "These are the 40 most frequent confusions.",
        "the 40 hardest pairs",
        "Only the first 24 of 100 inputs are shown.",
        "and 988 more places",
        "and 490 more with smaller distances",
        "Sum of the 988 smaller contributions: ",
        "class number 17class number 23 99",
        "class number 41class number 42 12.3%",
    ):
        assert sentence.replace(" ", "") in text.replace(" ", ""), sentence
    targets = re.findall(r'<article class="card">\s*<h3><span[^>]*>class number (\d+)<', page)
    assert sorted(map(int, targets)) == list(range(960, 1000))


def test_the_largest_confusions_and_hardest_pairs_do_not_depend_on_the_order_of_classes(rng):
    L = 60
    classes = np.array([f"c{i}" for i in range(L)])
    confusion = rng.integers(0, 3, size=(L, L))
    two_class = rng.integers(5, 10, size=(L, L)) / 10
    two_class = np.maximum(two_class, two_class.T)
    np.fill_diagonal(two_class, np.nan)
    order = rng.permutation(L)
    shuffled = np.ix_(order, order)

    def named(pairs, names):
        return [(names[i], names[j]) for i, j in pairs]

    assert named(find_largest_confusions(confusion, classes), classes) == named(
        find_largest_confusions(confusion[shuffled], classes[order]), classes[order]
    )
    wrong = [
        (-confusion[i, j], classes[i], classes[j])
        for i in range(L)
        for j in range(L)
        if i != j and confusion[i, j]
    ]
    expected = [(a, b) for _, a, b in sorted(wrong)[:40]]
    assert named(find_largest_confusions(confusion, classes), classes) == expected
    values = [two_class[pair] for pair in find_hardest_pairs(two_class, classes)]
    upper = two_class[np.triu_indices(L, k=1)]
    assert values == sorted(upper)[:40]
    found = [set(pair) for pair in named(find_hardest_pairs(two_class, classes), classes)]
    again = find_hardest_pairs(two_class[shuffled], classes[order])
    assert [set(pair) for pair in named(again, classes[order])] == found


def test_forty_classes_are_shown_in_full(rng):
    def evaluation(L):
        return Evaluation(
            tuple(f"c{i}" for i in range(L)),
            Interval(0.5, 0.4, 0.6),
            (0.5,) * L,
            (L,) * L,
            np.ones((L, L), int),
            np.full((L, L), 0.5),
            (),
            0.0,
            1.0,
        )

    assert render_report(Report("t", evaluation=evaluation(40))).count('<table class="matrix') == 2
    assert render_report(Report("t", evaluation=evaluation(41))).count('<table class="matrix') == 0
    render_report(Report("t", evaluation=evaluation(1)))


# ---- Colours


def luminance(color):
    channels = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    dark, light = sorted(map(luminance, (a, b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_contrast_is_enough_for_weak_eyes(mode):
    """WCAG 2.2, level AA: 4.5 for text, 3 for marks."""
    style = (files("rankshot.report") / "templates" / "style.css").read_text("utf-8")
    light, dark = re.findall(r":root \{([^}]*)\}", style)[:2]
    colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", light if mode == "light" else dark))
    assert len(colors) > 25
    behind = [colors["paper"], colors["surface"]]
    for text in ("ink", "muted", "accent", "good", "bad"):
        assert min(contrast(colors[text], b) for b in behind) >= 4.5, text
    for fill in ("below", "best", *(f"h{i}" for i in range(10))):
        assert contrast(colors["ink"], colors[fill]) >= 4.5, fill
    assert contrast(colors["muted"], colors["best"]) >= 4.5
    assert contrast(colors["accent"], colors["best"]) >= 4.5
    for mark in ("accent", "against", *(f"c{i}" for i in range(8))):
        assert contrast(colors[mark], colors["surface"]) >= 3, mark
        assert contrast(colors[mark], colors["track"]) >= 3, mark


# ---- Files and errors


def test_a_report_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    write_page(render_report(FULL), path)
    assert path.read_text(encoding="utf-8") == render_report(FULL)
    with pytest.raises(RankshotError, match=r"report\.html: UTF-8 cannot encode .*udc80"):
        write_page(render_report(Report("\udc80")), path)
    assert path.read_text(encoding="utf-8") == render_report(FULL)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(RankshotError, match="cannot write there"):
        write_page(render_report(FULL), tmp_path / "nowhere" / "report.html")


def test_a_missing_template_engine_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(RankshotError, match=r"pip install 'rankshot\[report\]'"):
        render_report(FULL)


def test_rounding_beyond_0_and_1_is_let_pass():
    row = ComparisonRow("DS", "mean", (Interval(1.0, 0.9, 1 + 1e-16), Interval(0.0, -1e-17, 0.1)))
    text = Walker(render_report(Report("t", comparison=Comparison(("a", "b"), (row,))))).text
    assert ".900–1.000" in text
    assert ".000–.100" in text
