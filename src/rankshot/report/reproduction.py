"""The page of a reproduction: the paper's tables and figures, ours beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rankshot.experiments.class_maps import SemanticMap
from rankshot.experiments.ranking_cells import RankingCells
from rankshot.experiments.reproduction import PaperFigures
from rankshot.experiments.tables import OursAndPaper, ResultTable, Value, format_share, format_value
from rankshot.experiments.two_classes import two_class_table
from rankshot.report.charts import Group
from rankshot.report.page import rendered, write_page
from rankshot.report.paper_figures import (
    NUMBERED,
    cells_drawing,
    labelled_map,
    map_legend,
    marked_map,
    ranking_text,
    tree_drawing,
    two_class_drawing,
    two_class_lines,
)
from rankshot.report.svg import Html
from rankshot.report.texts import percent_text
from rankshot.zeroshot.metrics import Interval

DATASETS = {"cifar": "CIFAR", "animals": "Animals with Attributes"}
NO_PLOT = Html()


# -------------------- report.reproduction_sections
# From tables and figures of a reproduction to what its template writes.
#
# The template has no arithmetic: texts and drawings are settled here.


# -------------------------------------------------------------------- tables


class CellView(NamedTuple):
    """A cell: a figure, its interval and the paper's figure, as texts; or words alone."""

    text: str
    interval: str = ""
    paper: str = ""
    is_text: bool = False


class RowView(NamedTuple):
    """A row: its labels, each with whether it only repeats the one above, and its cells."""

    labels: list[tuple[str, bool]]
    cells: list[CellView]


@dataclass(frozen=True)
class TableView:
    """A table as the template writes it; a column of words is aligned as words are."""

    id: str
    name: str
    title: str
    labels: tuple[str, ...]
    columns: list[tuple[str, bool]]
    rows: list[RowView]
    notes: tuple[str, ...]


def table_view(table: ResultTable, id_: str) -> TableView:
    """Return a table with its cells as texts."""
    n = table.n_labels
    cells = [[cell_view(value) for value in row[n:]] for row in table.rows]
    words = [any(row[column].is_text for row in cells) for column in range(len(table.columns) - n)]
    above: tuple[Value, ...] = ()
    rows = []
    for row, views in zip(table.rows, cells, strict=True):
        # A label repeats the one above where all labels before it do, too.
        labels = [(str(row[i]), row[: i + 1] == above[: i + 1]) for i in range(n)]
        rows.append(RowView(labels, views))
        above = row
    heads = list(zip(table.columns[n:], words, strict=True))
    name = table.name[:1].upper() + table.name[1:]
    return TableView(id_, name, table.title, table.columns[:n], heads, rows, table.notes)


def cell_view(value: Value) -> CellView:
    """Return a cell as texts.

    Examples
    --------
    >>> from rankshot.experiments.tables import Compared
    >>> from rankshot.report.reproduction import cell_view
    >>> from rankshot.zeroshot.metrics import Interval
    >>> cell_view(Compared(Interval(0.445, 0.43, 0.461), 0.395))
    CellView(text='.445', interval='.430–.461', paper='.395', is_text=False)
    """
    match value:
        case OursAndPaper(ours, paper):
            return cell_view(ours)._replace(paper="" if paper is None else format_share(paper))
        case Interval(estimate, low, high):
            return CellView(format_share(estimate), f"{format_share(low)}–{format_share(high)}")
        case str():
            return CellView(value, is_text=True)
        case int():
            return CellView(f"{value:,}")
    return CellView(format_value(value))


# -------------------------------------------------------------------- figures


class Panel(NamedTuple):
    """One of several drawings that stand side by side."""

    heading: str
    drawing: Html


class NumberedCell(NamedTuple):
    """A cell that has a number in the drawing."""

    ranking: str
    share: str
    transitive: bool


@dataclass(frozen=True)
class FigureView:
    """A figure as the template writes it; what a figure does not have is empty."""

    id: str
    name: str
    title: str
    caption: str
    panels: Sequence[Panel] = ()
    legend: Sequence[Group] = ()
    cells: Sequence[NumberedCell] = ()
    lines: Sequence[str] = ()
    plot: Html = NO_PLOT
    table: TableView | None = None


def figure_views(figures: PaperFigures) -> list[FigureView]:
    """Return the four figures, each with a caption that says what is ours and what differs."""
    return [_first(figures), _second(figures), _third(figures), _fourth(figures)]


def _first(figures: PaperFigures) -> FigureView:
    panels = [Panel("WordNet", tree_drawing(figures.tree))]
    panels += [Panel(points.name, labelled_map(points)) for points in figures.word_maps]
    whose = (
        "the same classes as in the paper"
        if figures.tree.dataset == "cifar"
        else "the paper draws those of CIFAR"
    )
    caption = (
        f"The {len(figures.tree.senses)} unseen classes of {_dataset(figures)} ({whose}) by three "
        "sources. The tree is WordNet 3.0’s; words with a single branch are left out, and where "
        "WordNet has several words above one, the first is followed. The maps are by classical "
        "scaling of 1 − similarity: Wu and Palmer’s measure on the same tree, and the cosine of "
        "GloVe’s word vectors, where the paper has those of Huang et al. (2012). Only distances "
        f"mean something on a map, the axes do not.{_left_out(figures.word_maps)}"
    )
    return FigureView(
        "figure-1", "Figure 1", "Figure 1: the same classes by three sources", caption, panels
    )


def _second(figures: PaperFigures) -> FigureView:
    found = figures.cells
    rows, columns = found.grid.shape
    numbered = found.cells[:NUMBERED]
    caption = (
        f"{len(found.classes)} seen classes of {_dataset(figures)} in the plane of linear "
        f"discriminant analysis, and the {len(found.coef)} lines that separate each two of them "
        "(linear support vector machines, trained in that plane). The marks are inputs that "
        "nothing was trained on. A cell has the colour of the class that it ranks first. On a grid "
        f"of {columns} by {rows} points there are {len(found.cells)} cells; the {len(numbered)} "
        f"largest have numbers, and their rankings are listed. {_circles(found)} The paper seems "
        "to draw the classes of CIFAR-10 other than cat and truck; these eight, the plane and the "
        "classifiers are our choice."
    )
    cells = [
        NumberedCell(
            ranking_text(cell.ranking),
            percent_text(cell.n_points / found.grid.size),
            cell.transitive,
        )
        for cell in numbered
    ]
    return FigureView(
        "figure-2",
        "Figure 2",
        "Figure 2: lines between classes make rankings",
        caption,
        [Panel("", cells_drawing(found))],
        cells=cells,
    )


def _circles(found: RankingCells) -> str:
    if not found.share_not_transitive:
        return "In every cell the pairs agree on a ranking, as the paper says."
    return (
        f"Hatched is {percent_text(found.share_not_transitive)} of the plane: there the winners of "
        "pairs form a circle (a beats b, b beats c, c beats a), and classes that win equally many "
        "pairs tie. The paper takes it that there is none, by the triangle inequality; that holds "
        "for distances to the classes, but not for lines that are each trained alone."
    )


def _third(figures: PaperFigures) -> FigureView:
    maps = figures.source_maps
    sources = list(dict.fromkeys(maps[0].sources))
    whose = "as in the paper" if figures.tree.dataset == "animals" else "the paper draws Animals"
    caption = (
        f"Each mark is what one source says of one unseen class of {_dataset(figures)} ({whose}): "
        f"its similarities to all seen classes. The sources are {', '.join(sources)}; the paper "
        "has WordNet, Wikipedia and three search engines. Where the marks of a class are near one "
        "another, and far from those of other classes, sources agree. Classical scaling of three "
        "distances: of the numbers as they are, of the numbers divided by the sum of their "
        "absolute values, and of the order of the first two alone. Where items tie, Kendall’s "
        "distance is the mean over the orders that the tie allows; the paper’s takes the worst of "
        "them, by which WordNet, full of ties, is far from everything."
        f"{_left_out(maps)}"
    )
    return FigureView(
        "figure-3",
        "Figure 3",
        "Figure 3: what sources say, by three distances",
        caption,
        [Panel(points.name, marked_map(points)) for points in maps],
        map_legend(maps[0]),
    )


def _fourth(figures: PaperFigures) -> FigureView:
    found = figures.two_classes
    if figures.tree.dataset == "cifar":
        whose = (
            "The pairs were fixed beforehand, never chosen by a result. The paper’s text has "
            "figures for three of them: about .95 for automobile – deer, deer – ship and "
            "cat – truck"
        )
    else:
        whose = (
            "The paper has this figure for CIFAR alone. The pairs were chosen by the panel’s "
            "rankings, never by a result: those that are most alike, and those that are least"
        )
    caption = (
        "How often the right one of two unseen classes is found, where only those two could be; "
        f"one half is a blind guess. {whose}. The last line is the mean over all {found.n_pairs} "
        "pairs. The line through a mark is its 95% bootstrap interval."
    )
    return FigureView(
        "figure-4",
        "Figure 4",
        "Figure 4: two classes at a time",
        caption,
        legend=[Group(kind, name, 0) for kind, name in enumerate(found.methods)],
        lines=[row.label for row in two_class_lines(found)],
        plot=two_class_drawing(found),
        table=table_view(two_class_table(found), "figure-4-table"),
    )


def _dataset(figures: PaperFigures) -> str:
    return DATASETS.get(figures.tree.dataset, figures.tree.dataset)


def _left_out(maps: Sequence[SemanticMap]) -> str:
    """Say how many points are missing, and by whom."""
    counts = Counter(
        source for source, _ in dict.fromkeys(pair for m in maps for pair in m.left_out)
    )
    if not counts:
        return ""
    parts = ", ".join(f"{n} of {source}" for source, n in counts.items())
    return f" Left out, because the source knows nothing of the class: {parts}."


# -------------------- report.reproduction
# The page of a reproduction: the paper's tables and figures, ours beside the paper's.


def write_reproduction(
    path: str | Path,
    title: str,
    lead: str,
    tables: Sequence[ResultTable],
    figures: PaperFigures,
) -> None:
    """Write tables and figures as a page of HTML: one file that needs nothing else.

    The file appears whole or not at all: it is written beside its place and then renamed.

    Parameters
    ----------
    path : str or Path
    title, lead : str
        The heading, and some sentences under it.
    tables : sequence of ResultTable
        Shown in this order, before the figures.
    figures : PaperFigures

    Raises
    ------
    RankshotError
        If Jinja2 is not installed, or the file cannot be written.
    """
    write_page(render_reproduction(title, lead, tables, figures), path)


def render_reproduction(
    title: str, lead: str, tables: Sequence[ResultTable], figures: PaperFigures
) -> str:
    """Return the page as text: no script, nothing loaded from elsewhere."""
    return rendered(
        "reproduction.html",
        title=title,
        lead=lead,
        tables=[table_view(table, f"table-{i}") for i, table in enumerate(tables, start=1)],
        figures=figure_views(figures),
    )
