"""The page: a report as one HTML file that needs nothing else."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from rankshot import __version__
from rankshot.core.errors import RankshotError
from rankshot.core.text_files import replace_file
from rankshot.report.contents import Report
from rankshot.report.sections import (
    format_comparison,
    format_consensus,
    format_evaluation,
    format_explanations,
    format_map,
)
from rankshot.report.svg import Html, define_marks, draw_legend_mark, element
from rankshot.report.texts import shorten

MAX_WITHOUT_TOOLTIP = 12
"""A longer name gets a tooltip, because a narrow column may hide a part of it."""


def render_report(report: Report) -> str:
    """Return a report as an HTML page: one file, no script, nothing loaded from elsewhere.

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
    >>> from rankshot.report.page import render_report
    >>> page = render_report(Report("Cats & dogs", notes=("A remark.",)))
    >>> "<h1>Cats &amp; dogs</h1>" in page, "A remark." in page
    (True, True)
    """
    sections: dict[str, Any] = {}
    if report.comparison is not None and report.comparison.rows:
        sections["comparison"] = format_comparison(report.comparison)
    if report.consensuses:
        sections["consensus"] = format_consensus(report.consensuses)
    if report.map is not None:
        sections["map"] = format_map(report.map)
    if report.evaluation is not None:
        sections["evaluation"] = format_evaluation(report.evaluation)
    if report.explanations:
        sections["explanations"] = format_explanations(report.explanations)
    if report.notes:
        sections["notes"] = report.notes
    return render_template(
        "report.html",
        title=report.title,
        lead=report.lead,
        contents=[(key, key.capitalize()) for key in sections],
        facts=report.facts,
        **sections,
    )


def write_page(page: str, path: str | Path) -> None:
    """Write a page to a file. If this fails, an old file stays as it was."""
    with replace_file(Path(path)) as stream:
        stream.write(page)


def require_jinja2() -> Any:
    """Return the module Jinja2, or raise an error that says how to install it."""
    try:
        return import_module("jinja2")
    except ImportError:
        raise RankshotError("reports need Jinja2: pip install 'rankshot[report]'") from None


def render_template(template: str, **values: Any) -> str:
    """Return a page from one of the templates, which all extend ``base.html``.

    Parameters
    ----------
    template : str
        The name of a file in ``report/templates``.
    **values
        The base template needs ``title``, ``lead`` and ``contents``: pairs of an id and a heading.
    """
    page: str = _make_environment(require_jinja2()).get_template(template).render(values)
    return page


@cache
def _make_environment(jinja2: Any) -> Any:
    """Return the environment of the templates, which compiles each of them once."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rankshot.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (shorten, format_name, draw_legend_mark):
        environment.filters[function.__name__] = function
    environment.globals |= {"version": __version__, "define_marks": define_marks}
    return environment


def format_name(text: object) -> Html:
    """Return a name of any length and in any script, shortened, with a tooltip if it is long."""
    name = str(text)
    tooltip = {"title": shorten(name, 300)} if len(name) > MAX_WITHOUT_TOOLTIP else {}
    return element("span", shorten(name, 80), class_="name", **tooltip)
