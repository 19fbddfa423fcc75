"""The page: a report as one HTML file that needs nothing else."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from rankshot import __version__
from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.text_files import replace_file
from rankshot.report.contents import Report
from rankshot.report.sections import (
    comparison_section,
    consensus_section,
    evaluation_section,
    explanation_section,
    map_section,
)
from rankshot.report.svg import Html, legend_mark, mark_definitions
from rankshot.report.texts import cut


def render(report: Report) -> str:
    """Return a report as a page of HTML: one file, no script, nothing loaded from elsewhere.

    Parameters
    ----------
    report : Report
        Sections that are None or empty are left out.

    Raises
    ------
    RankshotError
        If Jinja2 is not installed.

    Examples
    --------
    >>> from rankshot.report.contents import Report
    >>> from rankshot.report.page import render
    >>> page = render(Report("Cats & dogs", notes=("A remark.",)))
    >>> "<h1>Cats &amp; dogs</h1>" in page, "A remark." in page
    (True, True)
    """
    found: list[tuple[str, str, Any]] = []
    if report.comparison is not None and report.comparison.rows:
        found.append(("comparison", "Comparison", comparison_section(report.comparison)))
    if report.consensuses:
        found.append(("consensus", "Consensus", consensus_section(report.consensuses)))
    if report.map is not None:
        found.append(("map", "Map", map_section(report.map)))
    if report.evaluation is not None:
        found.append(("evaluation", "Evaluation", evaluation_section(report.evaluation)))
    if report.explanations:
        found.append(("explanations", "Explanations", explanation_section(report.explanations)))
    if report.notes:
        found.append(("notes", "Notes", None))
    return rendered(
        "template.html",
        report=report,
        sections=[(key, heading) for key, heading, _ in found],
        **{key: section for key, _, section in found},
    )


def write_report(report: Report, path: str | Path) -> None:
    """Write a report as a page of HTML.

    The file appears whole or not at all: it is written beside its place and then renamed.
    """
    write_page(render(report), path)


def write_page(page: str, path: str | Path) -> None:
    """Write a page: whole, or not at all."""
    path = Path(path)
    try:
        with replace_file(path) as stream:
            stream.write(page)
    except UnicodeEncodeError as error:
        odd = short_repr(error.object[error.start : error.end])
        raise RankshotError(f"{path}: UTF-8 cannot hold the character {odd}") from None


def require_jinja2() -> Any:
    """Return Jinja2, or say how to install it."""
    try:
        return import_module("jinja2")
    except ImportError:
        raise RankshotError("reports need Jinja2: pip install 'rankshot[report]'") from None


def rendered(template: str, **values: Any) -> str:
    """Return a template of ours, filled in: styled, escaped, nothing loaded from elsewhere."""
    jinja2 = require_jinja2()
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"cut": cut, "legend_mark": legend_mark}
    page: str = environment.from_string(_packaged(template)).render(
        style=Html(_packaged("style.css")), marks=mark_definitions(), version=__version__, **values
    )
    return page


def _packaged(name: str) -> str:
    return (files("rankshot.report") / name).read_text(encoding="utf-8")
