"""The page of a reproduction: all figures and tables on it, drawn where they belong, escaped."""

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from html_walker import HOSTILE, Walker, check_accessible, check_same_markup, check_self_contained
from reproduction.benchmark import load_benchmark
from reproduction.class_maps import ClassTree, TreeNode
from reproduction.page import format_table, render_reproduction
from reproduction.paper_figures import (
    SQUARE,
    cell_polygon,
    chord,
    draw_cells,
    draw_semantic_map,
    draw_tree,
    map_legend,
    scale_lines,
)
from reproduction.ranking_cells import ON_A_LINE
from reproduction.reproduction import build_paper_figures
from reproduction.result_tables import OursAndPaper, ResultTable
from reproduction.two_classes import MethodScores

from rankshot import RankshotError
from rankshot.datasets import load_cifar
from rankshot.report.page import write_page
from rankshot.zeroshot.metrics import Interval


@pytest.fixture(scope="module")
def figures():
    study = load_benchmark(load_cifar())
    truth, classes = study.data.new_label, np.array(study.data.new_classes)
    noise = np.random.default_rng(0).normal(size=(len(truth), 10))
    own = truth[:, None] == classes
    names = tuple(classes.tolist())
    methods = {f"method {i}": MethodScores(noise + i * own, names) for i in (1, 2)}
    return build_paper_figures(study, methods)


TABLE = ResultTable(
    "table 2",
    "Table 2: what came out",
    ("method", "source", "one-vs-rest", "multiclass", "remark", "inputs"),
    (
        (
            *("DS", "mean", OursAndPaper(Interval(0.311, 0.302, 0.321), 0.287)),
            *(OursAndPaper(None, 0.316), "slow & sure", 4000),
        ),
        ("DS", "GloVe", None, 0.25, "", 17),
        ("PR", "GloVe", Interval(0.4, 0.39, 0.41), OursAndPaper(0.445, None), "quick", 0),
    ),
    ("A whole sentence.",),
    n_labels=2,
)


@pytest.fixture(scope="module")
def page(figures):
    return render_reproduction("Measured again", "What we found.", [TABLE], figures)


# ---- The page


def test_every_table_and_figure_is_there_and_in_the_contents(figures):
    tables = (TABLE, replace(TABLE, name="peers"))
    page = Walker(render_reproduction("Measured again", "What we found.", tables, figures))
    expected = ["table-1", "table-2", "figure-1", "figure-2", "figure-3", "figure-4"]
    assert [section["id"] for section in page.all("section")] == expected
    assert [a["href"] for a in page.all("a")] == [f"#{key}" for key in expected]
    for text in (
        *("Measured again", "What we found.", "Peers", "A whole sentence.", "4,000"),
        *(".311 .302–.321 paper .287", "– paper .316", ".250", ".400 .390–.410", "slow & sure"),
        *("airplane", "motor vehicle", "Wu & Palmer", "GloVe 100d", "Huang et al. (2012)"),
        *("cat – dog", "all 45 pairs", "method 1", "pickup_truck", "cells"),
    ):
        assert text in page.text, text


def test_what_the_paper_says_is_beside_ours_and_nothing_else_is():
    view = format_table(TABLE, "t")
    cells = [[tuple(cell) for cell in row.cells] for row in view.rows]
    assert cells[0] == [
        (".311", ".302–.321", ".287", False),
        ("–", "", ".316", False),
        ("slow & sure", "", "", True),
        ("4,000", "", "", False),
    ]
    assert cells[1][:2] == [("–", "", "", False), (".250", "", "", False)]
    assert cells[2][1] == (".445", "", "", False)
    assert [words for _, words in view.columns] == [False, False, True, False]
    # The method of the second row is that of the first; the same source in the third is not.
    again = [[repeated for _, repeated in row.labels] for row in view.rows]
    assert again == [[False, False], [True, False], [False, False]]


def test_nothing_is_loaded_from_elsewhere_and_nothing_runs(page):
    check_self_contained(page)
    assert len(page.encode()) < 400_000


def test_tables_and_charts_are_named_for_those_who_cannot_see_them(page):
    walked = Walker(page)
    check_accessible(walked)
    assert len(walked.all("table")) == 2
    assert len(walked.all("figcaption")) == len(walked.all("figure")) == 4
    scrolled = [div for div in walked.all("div") if div.get("class") == "scroll"]
    assert len(scrolled) == len(walked.all("table"))


# ---- Hostile names


def everywhere(figures, name):
    """Return tables and figures with a name at every place that takes one."""
    names = [f"{name}{i}" for i in range(10)]
    given = dict(zip(sorted(set(figures.source_maps[0].targets)), names, strict=True))

    def renamed(points):
        targets = tuple(given[target] for target in points.targets)
        sources = (name,) * len(points.sources)
        left_out = ((name, name),)
        return replace(points, name=name, targets=targets, sources=sources, left_out=left_out)

    cells = figures.cells
    eight = dict(zip(cells.classes, names, strict=False))

    def ranked(one):
        return tuple(eight[o] for o in one) if isinstance(one, tuple) else eight[one]

    some = [replace(cell, ranking=tuple(map(ranked, cell.ranking))) for cell in cells.cells]
    labels = np.array([eight[label] for label in cells.input_labels])
    two = figures.two_classes
    table = ResultTable(name, name, (name, name), ((name, name),), (name,))
    hostile = replace(
        figures,
        tree=ClassTree(
            name,
            TreeNode(name, is_class=False, below=tuple(TreeNode(n, is_class=True) for n in names)),
            tuple((n, name) for n in names),
        ),
        word_maps=tuple(map(renamed, figures.word_maps)),
        source_maps=tuple(map(renamed, figures.source_maps)),
        cells=replace(cells, classes=tuple(eight.values()), cells=tuple(some), input_labels=labels),
        two_classes=replace(
            two,
            methods=(name, name + "!"),
            pairs=tuple((name, name) for _ in two.pairs),
        ),
    )
    return render_reproduction(name, name, [table], hostile)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_and_never_markup(figures, name):
    odd = Walker(everywhere(figures, name))
    check_same_markup(odd, Walker(everywhere(figures, "a" * len(name))))
    assert odd.text.count(name) > 100


# ---- Drawings


def test_a_cell_takes_as_much_room_as_it_has_points(figures):
    found = figures.cells
    lines = scale_lines(found)
    areas = []
    for cell in found.cells:
        x, y = cell_polygon(cell, *lines).T
        areas.append(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)
    shares = np.array([cell.n_points for cell in found.cells]) / found.grid.size
    np.testing.assert_allclose(areas, shares, atol=2e-3)
    # What the grid misses are splinters.
    assert 0.995 < sum(areas) <= 1 + 1e-9


def test_the_drawing_has_the_grid_the_right_way_up(figures, rng):
    found = figures.cells
    coef, intercept = scale_lines(found)
    rows, columns = found.grid.shape
    for i, j in zip(rng.integers(rows, size=50), rng.integers(columns, size=50), strict=True):
        number = found.grid[i, j]
        if number != ON_A_LINE:
            # Rows of the grid go up, places in a drawing go down.
            place = np.array([(j + 0.5) / columns, 1 - (i + 0.5) / rows])
            signs = np.sign(coef @ place + intercept)
            assert tuple(signs.astype(int)) == found.cells[number].signs


def test_the_cells_are_drawn_with_lines_inputs_numbers_and_hatchings(figures):
    svg = ET.fromstring(draw_cells(figures.cells))
    assert len(list(svg.iter("polygon"))) == len(figures.cells.cells)
    drawn = [line for line in svg.iter("line") if line.get("class") == "pair-line"]
    crossing = [
        chord(SQUARE, w, b) is not None for w, b in zip(*scale_lines(figures.cells), strict=True)
    ]
    assert len(drawn) == sum(crossing) <= 28
    assert len(list(svg.iter("use"))) == len(figures.cells.inputs)
    numbers = [text.text for text in svg.iter("text") if text.get("class") == "cell-number"]
    assert numbers == [str(i) for i in range(1, 9)]
    hatched = [path for path in svg.iter("path") if path.get("class") == "hatching"]
    assert len(hatched) == sum(not cell.transitive for cell in figures.cells.cells) > 0


def test_a_chord_is_where_a_line_is_inside():
    np.testing.assert_allclose(
        sorted(chord(SQUARE, np.array([1.0, 1.0]), -0.5).tolist()), [[0, 0.5], [0.5, 0]]
    )
    assert chord(SQUARE, np.array([1.0, 1.0]), -3.0) is None


def mark_of(use):
    return use.get("href"), use.get("class")


def test_classes_have_the_same_mark_in_the_tree_and_on_all_maps(figures):
    marks = {}
    for points, labels in (
        *((points, True) for points in figures.word_maps),
        *((points, False) for points in figures.source_maps),
    ):
        svg = ET.fromstring(draw_semantic_map(points, labels=labels))
        assert bool(list(svg.iter("text"))) == labels
        uses = list(svg.iter("use"))
        assert len(uses) == len(points.targets)
        for target, use in zip(points.targets, uses, strict=True):
            assert marks.setdefault(target, mark_of(use)) == mark_of(use)
    # Ten classes have ten marks by their form alone, without their colours.
    assert len(set(marks.values())) == len(marks) == 10
    assert [group.name for group in map_legend(figures.source_maps[0])] == list(marks)
    tree = ET.fromstring(draw_tree(figures.tree))
    names = [node.label for _, node in figures.tree.root.walk() if node.is_class]
    assert {n: mark_of(use) for n, use in zip(names, tree.iter("use"), strict=True)} == marks


def test_the_tree_has_one_line_per_node_and_a_description(figures):
    svg = ET.fromstring(draw_tree(figures.tree))
    nodes = list(figures.tree.root.walk())
    texts = ["".join(text.itertext()) for text in svg.iter("text")]
    assert len(texts) == len(nodes)
    # Each name is there twice: as a tooltip and as text.
    assert "airplane" * 2 in texts
    assert svg.find("desc").text == str(figures.tree)
    # Every node but the first hangs on a branch that ends at its own height.
    middles = [f"{round(100 * (row + 0.5) / len(nodes), 2):g}%" for row in range(len(nodes))]
    ends = {line.get("y2") for line in svg.iter("line")}
    assert ends == set(middles[1:])


# ---- Files


def test_a_page_is_written_whole_or_not_at_all(figures, page, tmp_path):
    path = tmp_path / "page.html"
    write_page(page, path)
    assert path.read_text(encoding="utf-8") == page
    with pytest.raises(RankshotError, match=r"page\.html: UTF-8 cannot encode .*udc80"):
        write_page(render_reproduction("\udc80", "", [], figures), path)
    assert path.read_text(encoding="utf-8") == page
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_template_engine_says_what_to_install(figures, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(RankshotError, match=r"pip install 'rankshot\[report\]'"):
        render_reproduction("Measured again", "", [], figures)
