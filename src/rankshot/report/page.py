"""The page: a report as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from rankshot import __version__
from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.files import replace_file
from rankshot.report.contents import Report
from rankshot.report.evaluation_sections import (
    format_accuracy,
    format_calibration,
    format_classes,
    format_confusions,
    format_overview,
)
from rankshot.report.gallery import format_gallery
from rankshot.report.sections import (
    format_comparison,
    format_consensus,
    format_explanations,
    format_map,
    format_sources,
)
from rankshot.report.svg import Html, define_marks, draw_legend_mark, element
from rankshot.report.texts import shorten
from rankshot.zeroshot.metrics import format_share

MAX_WITHOUT_TOOLTIP = 12
"""A longer name gets a tooltip, because a narrow column may hide a part of it."""
FEW = 12
"""Sections about at most this many classes are open at first."""


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
    >>> from rankshot.report import Report, render_report
    >>> page = render_report(Report("Cats & dogs", notes=("A remark.",)))
    >>> "<h1>Cats &amp; dogs</h1>" in page, "A remark." in page
    (True, True)
    """
    sections = _format_sections(report)
    return render_template(
        "report.html",
        title=report.title,
        lead=report.lead,
        contents=[(key, key.capitalize()) for key in sections],
        folds=_describe_folds(report),
        facts=report.facts,
        **sections,
    )


def _format_sections(report: Report) -> dict[str, Any]:
    """Return the sections that there are, in their order on the page: results first."""
    evaluation, comparison = report.evaluation, report.comparison
    if comparison is not None and not comparison.rows:
        comparison = None
    gallery = report.gallery if report.gallery and report.gallery.inputs else None
    sections: list[tuple[str, Callable[[Any], Any], Any]] = [
        ("comparison", format_comparison, comparison),
        ("accuracy", format_accuracy, evaluation),
        ("predictions", format_overview, report.overview),
        ("pictures", format_gallery, gallery),
        ("confusions", format_confusions, evaluation),
        ("classes", format_classes, evaluation),
        ("explanations", format_explanations, report.explanations or None),
        ("calibration", format_calibration, evaluation),
        ("consensus", format_consensus, report.consensuses or None),
        ("sources", format_sources, report.sources),
        ("map", format_map, report.map),
        ("settings", tuple, report.settings or None),
        ("notes", tuple, report.notes or None),
    ]
    return {key: form(content) for key, form, content in sections if content is not None}


def _describe_folds(report: Report) -> dict[str, tuple[str, bool]]:
    """Return the sections that can be folded: what is in them, and whether they are open."""
    folds = {"settings": ("", False)}
    if report.evaluation is not None:
        error = format_share(report.evaluation.calibration.expected_calibration_error)
        small = len(report.evaluation.classes) <= FEW
        folds["calibration"] = (f"calibration error {error}", small)
    n = len(report.consensuses)
    folds["consensus"] = (f"{n:,} classes", n <= FEW)
    if report.sources is not None:
        folds["sources"] = (f"{len(report.sources.lines)} compared", n <= FEW)
    if report.map is not None:
        n_groups = len(set(report.map.groups))
        folds["map"] = (f"{len(report.map.names):,} rankings", n_groups <= FEW)
    return folds


def write_page(page: str, path: str | Path) -> None:
    """Write a page to a file. If this fails, an old file stays as it was.

    Parameters
    ----------
    page : str
        The page, as `render_report` returns it.
    path : str or Path
        The file to write.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot.report import Report, render_report, write_page
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "report.html")
    ...     write_page(render_report(Report("Cats and dogs")), path)
    ...     path.read_text()[:15]
    '<!doctype html>'
    """
    if not str(page).startswith("<"):
        raise RankshotError(
            f"the page must be HTML, not {short_repr(page)}: write_page(page, path) takes the page "
            "first"
        )
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
