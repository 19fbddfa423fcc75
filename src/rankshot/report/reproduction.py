"""The page of a reproduction: the paper's tables and figures, with our results beside the paper's.

The template does no arithmetic: all texts and charts are made here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rankshot.experiments.class_maps import SemanticMap
from rankshot.experiments.ranking_cells import RankingCells
from rankshot.experiments.reproduction import PaperFigures
from rankshot.experiments.result_tables import OursAndPaper, ResultTable, Value, format_value
from rankshot.experiments.two_classes import two_class_table
from rankshot.ranking.maps import Group
from rankshot.report.page import render_template
from rankshot.report.paper_figures import (
    MAX_NUMBERED,
    draw_cells,
    draw_semantic_map,
    draw_tree,
    draw_two_classes,
    format_ranking,
    map_legend,
    two_class_lines,
)
from rankshot.report.svg import Html
from rankshot.report.texts import format_percent
from rankshot.zeroshot.metrics import Interval, format_share

DATASETS = {"cifar": "CIFAR", "animals": "Animals with Attributes"}
NO_PLOT = Html()


# ---- Page


def render_reproduction(
    title: str, lead: str, tables: Sequence[ResultTable], figures: PaperFigures | None
) -> str:
    """Return tables and figures as an HTML page: no script, nothing loaded from elsewhere.

    Parameters
    ----------
    title, lead : str
        The heading, and some sentences below it.
    tables : sequence of ResultTable
        Shown in this order, before the figures.
    figures : PaperFigures or None

    Raises
    ------
    RankshotError
        If Jinja2 is not installed.

    Examples
    --------
    >>> from rankshot.report import render_reproduction
    >>> page = render_reproduction("Our results", "On the embedded data.", tables=[], figures=None)
    >>> "<h1>Our results</h1>" in page
    True
    """
    formatted = [format_table(table, f"table-{i}") for i, table in enumerate(tables, start=1)]
    drawn = [] if figures is None else format_figures(figures)
    return render_template(
        "reproduction.html",
        title=title,
        lead=lead,
        contents=[
            *((table.id, table.name) for table in formatted),
            *((figure.id, figure.name) for figure in drawn),
        ],
        tables=formatted,
        figures=drawn,
    )


# ---- Tables


class FormattedCell(NamedTuple):
    """A cell: a number, its interval and the paper's number, as texts; or words only."""

    text: str
    interval: str = ""
    paper: str = ""
    is_text: bool = False


class FormattedRow(NamedTuple):
    """A row: its cells, and its labels, each with whether it repeats the label above."""

    labels: list[tuple[str, bool]]
    cells: list[FormattedCell]


@dataclass(frozen=True)
class FormattedTable:
    """A table as texts; ``columns`` are headings, each with whether its cells are words."""

    id: str
    name: str
    title: str
    labels: tuple[str, ...]
    columns: list[tuple[str, bool]]
    rows: list[FormattedRow]
    notes: tuple[str, ...]


def format_table(table: ResultTable, id_: str) -> FormattedTable:
    """Return a table as texts."""
    n = table.n_labels
    cells = [[format_cell(value) for value in row[n:]] for row in table.rows]
    words = [any(row[column].is_text for row in cells) for column in range(len(table.columns) - n)]
    above: tuple[Value, ...] = ()
    rows = []
    for row, views in zip(table.rows, cells, strict=True):
        # A label repeats the one above only if all labels before it do so too.
        labels = [(str(row[i]), row[: i + 1] == above[: i + 1]) for i in range(n)]
        rows.append(FormattedRow(labels, views))
        above = row
    heads = list(zip(table.columns[n:], words, strict=True))
    name = table.name[:1].upper() + table.name[1:]
    return FormattedTable(id_, name, table.title, table.columns[:n], heads, rows, table.notes)


def format_cell(value: Value) -> FormattedCell:
    """Return a cell as texts.

    Examples
    --------
    >>> from rankshot.experiments.result_tables import OursAndPaper
    >>> from rankshot.report.reproduction import format_cell
    >>> from rankshot.zeroshot.metrics import Interval
    >>> format_cell(OursAndPaper(Interval(0.445, 0.43, 0.461), 0.395))
    FormattedCell(text='.445', interval='.430–.461', paper='.395', is_text=False)
    """
    match value:
        case OursAndPaper(ours, paper):
            return format_cell(ours)._replace(paper="" if paper is None else format_share(paper))
        case Interval(estimate, low, high):
            return FormattedCell(
                format_share(estimate), f"{format_share(low)}–{format_share(high)}"
            )
        case str():
            return FormattedCell(value, is_text=True)
        case int():
            return FormattedCell(f"{value:,}")
    return FormattedCell(format_value(value))


# ---- Figures


class Panel(NamedTuple):
    """One of several charts side by side."""

    heading: str
    chart: Html


class NumberedCell(NamedTuple):
    """A cell that has a number in the chart."""

    ranking: str
    share: str
    transitive: bool


@dataclass(frozen=True)
class FormattedFigure:
    """A figure as texts and charts; parts that a figure does not have are empty."""

    id: str
    name: str
    title: str
    caption: str
    panels: Sequence[Panel] = ()
    legend: Sequence[Group] = ()
    cells: Sequence[NumberedCell] = ()
    lines: Sequence[str] = ()
    plot: Html = NO_PLOT
    table: FormattedTable | None = None


def format_figures(figures: PaperFigures) -> list[FormattedFigure]:
    """Return the four figures. Their captions say what differs from the paper."""
    return [
        _format_class_figure(figures),
        _format_cell_figure(figures),
        _format_source_figure(figures),
        _format_two_class_figure(figures),
    ]


def _format_class_figure(figures: PaperFigures) -> FormattedFigure:
    panels = [Panel("WordNet", draw_tree(figures.tree))]
    panels += [
        Panel(points.name, draw_semantic_map(points, labels=True)) for points in figures.word_maps
    ]
    whose = (
        "the same classes as in the paper"
        if figures.tree.dataset == "cifar"
        else "the paper shows those of CIFAR"
    )
    caption = (
        f"The {len(figures.tree.senses)} new classes of {_dataset_name(figures)} ({whose}) by "
        "three sources. The tree is from WordNet 3.0. Words with a single branch are left out. If "
        "a word has several parents in WordNet, the tree follows the first. The maps show 1 − "
        "similarity by classical multidimensional scaling: Wu and Palmer’s similarity on the same "
        "tree, and the cosine of GloVe’s word vectors; the paper uses the vectors of Huang et al. "
        "(2012). Only the distances on a map have a meaning; the axes have none."
        f"{_describe_left_out(figures.word_maps)}"
    )
    return FormattedFigure(
        "figure-1", "Figure 1", "Figure 1: the same classes by three sources", caption, panels
    )


def _format_cell_figure(figures: PaperFigures) -> FormattedFigure:
    found = figures.cells
    rows, columns = found.grid.shape
    numbered = found.cells[:MAX_NUMBERED]
    caption = (
        f"{len(found.classes)} seen classes of {_dataset_name(figures)} in the plane of linear "
        f"discriminant analysis, and the {len(found.coef)} lines that separate pairs of classes "
        "(linear support vector machines, trained in this plane). The marks are held-out inputs. A "
        "cell has the colour of the class that it ranks first. On a grid of "
        f"{columns} by {rows} points there are {len(found.cells)} cells. The {len(numbered)} "
        f"largest are numbered, and their rankings are listed. {_describe_cycles(found)} The paper "
        "seems to use the classes of CIFAR-10 without cat and truck. These eight classes, the "
        "plane and the classifiers are our choice."
    )
    cells = [
        NumberedCell(
            format_ranking(cell.ranking),
            format_percent(cell.n_points / found.grid.size),
            cell.transitive,
        )
        for cell in numbered
    ]
    return FormattedFigure(
        "figure-2",
        "Figure 2",
        "Figure 2: lines between classes define rankings",
        caption,
        [Panel("", draw_cells(found))],
        cells=cells,
    )


def _describe_cycles(found: RankingCells) -> str:
    if not found.share_not_transitive:
        return "In every cell the pairs agree on a ranking, as the paper says."
    return (
        f"In the hatched {format_percent(found.share_not_transitive)} of the plane, the winners of "
        "pairs form a cycle (a beats b, b beats c, c beats a); classes that win the same number of "
        "pairs are tied. The paper argues by the triangle inequality that there are none. That "
        "is true for distances to the classes, but not for lines that are trained independently."
    )


def _format_source_figure(figures: PaperFigures) -> FormattedFigure:
    maps = figures.source_maps
    sources = list(dict.fromkeys(maps[0].sources))
    whose = "as in the paper" if figures.tree.dataset == "animals" else "the paper shows Animals"
    caption = (
        f"Each mark is one new class of {_dataset_name(figures)} ({whose}) by one source: its "
        f"similarities to all seen classes. The sources are {', '.join(sources)}; the paper has "
        "WordNet, Wikipedia and three search engines. The sources agree on a class if its marks "
        "are close together and far from those of other classes. The maps show three distances by "
        "classical multidimensional scaling: between the similarities, between the similarities "
        "divided by the sum of their absolute values, and between the first two places of the "
        "rankings. If items are tied, Kendall’s distance is the mean over the orders that the tie "
        "allows. The paper takes the maximum, which puts WordNet far from all other sources, "
        "because it has many ties."
        f"{_describe_left_out(maps)}"
    )
    return FormattedFigure(
        "figure-3",
        "Figure 3",
        "Figure 3: the sources, by three distances",
        caption,
        [Panel(points.name, draw_semantic_map(points, labels=False)) for points in maps],
        map_legend(maps[0]),
    )


def _format_two_class_figure(figures: PaperFigures) -> FormattedFigure:
    found = figures.two_classes
    if figures.tree.dataset == "cifar":
        whose = (
            "The pairs were fixed in advance, not selected by results. The paper’s text has "
            "numbers for three of them: about .95 for automobile – deer, deer – ship and "
            "cat – truck"
        )
    else:
        whose = (
            "The paper has this figure for CIFAR only. The pairs were selected by the panel’s "
            "rankings, not by results: the most similar pairs and the least similar pairs"
        )
    caption = (
        "The accuracy if each input has to be one of two new classes. Random guessing gives one "
        f"half. {whose}. The last line is the mean over all {found.n_pairs} pairs. The line "
        "through a mark is its 95% bootstrap interval."
    )
    return FormattedFigure(
        "figure-4",
        "Figure 4",
        "Figure 4: two classes at a time",
        caption,
        legend=[Group(kind, name, 0) for kind, name in enumerate(found.methods)],
        lines=[row.label for row in two_class_lines(found)],
        plot=draw_two_classes(found),
        table=format_table(two_class_table(found), "figure-4-table"),
    )


def _dataset_name(figures: PaperFigures) -> str:
    return DATASETS.get(figures.tree.dataset, figures.tree.dataset)


def _describe_left_out(maps: Sequence[SemanticMap]) -> str:
    """Return a sentence with the number of missing points of each source."""
    counts = Counter(
        source for source, _ in dict.fromkeys(pair for m in maps for pair in m.left_out)
    )
    if not counts:
        return ""
    parts = ", ".join(f"{n} of {source}" for source, n in counts.items())
    return f" Left out, because the source does not contain the class: {parts}."
