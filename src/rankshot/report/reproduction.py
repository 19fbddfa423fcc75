"""The page of a reproduction: the paper's tables and figures, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rankshot.experiments.paper_figures import PaperFigures
from rankshot.experiments.tables import ResultTable
from rankshot.report.page import rendered, write_page
from rankshot.report.reproduction_sections import figure_views, table_view


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
