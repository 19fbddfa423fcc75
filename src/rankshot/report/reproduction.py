"""The page of a reproduction: the paper's tables and figures, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from rankshot import __version__
from rankshot.experiments.paper_figures import PaperFigures
from rankshot.experiments.tables import ResultTable
from rankshot.ranking.errors import RankshotError, shown
from rankshot.ranking.files import replacing
from rankshot.report.page import require_jinja2
from rankshot.report.reproduction_sections import figure_views, table_view
from rankshot.report.svg import Html, legend_mark, mark_definitions
from rankshot.report.texts import cut


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
    path = Path(path)
    page = render_reproduction(title, lead, tables, figures)
    try:
        with replacing(path) as stream:
            stream.write(page)
    except UnicodeEncodeError as error:
        odd = shown(error.object[error.start : error.end])
        raise RankshotError(f"{path}: UTF-8 cannot hold the character {odd}") from None


def render_reproduction(
    title: str, lead: str, tables: Sequence[ResultTable], figures: PaperFigures
) -> str:
    """Return the page as text: no script, nothing loaded from elsewhere."""
    jinja2 = require_jinja2()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"cut": cut, "legend_mark": legend_mark}
    page: str = environment.from_string(_packaged("reproduction.html")).render(
        title=title,
        lead=lead,
        tables=[table_view(table, f"table-{i}") for i, table in enumerate(tables, start=1)],
        figures=figure_views(figures),
        style=Html(_packaged("style.css")),
        marks=mark_definitions(),
        version=__version__,
    )
    return page


def _packaged(name: str) -> str:
    return (files("rankshot.report") / name).read_text(encoding="utf-8")
