"""The page: a report as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rankshot import __version__
from rankshot.core.errors import format_count
from rankshot.core.files import replace_file
from rankshot.core.validation import require_module
from rankshot.pages.contents import MethodComparison, Report, SimilarClasses
from rankshot.pages.explanations import format_explanations
from rankshot.pages.formatting import Bar, format_name, format_percent, format_range, shorten
from rankshot.pages.images import ShownInput
from rankshot.pages.predictions import (
    find_lowest_pairs,
    format_calibration,
    format_classes,
    format_confusions,
    format_overview,
    list_cards,
    suggest_step,
    write_headline,
)
from rankshot.ranking.distances import compare_common_items
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_agreement import TargetSummary, summarize_target

FIRST_IMAGES = 6
"""Images that are not folded."""


def render_report(report: Report) -> str:
    """Return a report as an HTML page: one file, no script, nothing loaded from elsewhere.

    Needs Jinja2.

    Parameters
    ----------
    report : Report

    Examples
    --------
    >>> from rankshot.pages import Report, render_report
    >>> page = render_report(Report("Cats & dogs", notes=("A remark.",)))
    >>> "<h1>Cats &amp; dogs</h1>" in page, "A remark." in page
    (True, True)
    """
    evaluation, comparison = report.evaluation, report.comparison
    result = evaluation or report.overview
    # Results come first; how they came about is folded.
    parts: list[tuple[str, Callable[[Any], Any], Any]] = [
        ("predictions", format_overview, report.overview),
        ("images", format_gallery, report.gallery),
        ("confusions", format_confusions, evaluation),
        ("classes", format_classes, evaluation),
        ("calibration", format_calibration, evaluation and evaluation.calibration),
        ("explanations", format_explanations, report.explanations),
        ("similar_classes", format_similar_classes, report.similar),
        ("consensus", format_consensus, report.consensuses),
        ("comparison", format_comparison, comparison and comparison.rows and comparison),
        ("about_this_report", tuple, report.settings or report.notes),
    ]
    sections = {key: form(content) for key, form, content in parts if content}
    folds = {
        "consensus": format_count(len(report.consensuses), "class"),
        "comparison": format_count(len(comparison.by_method()) if comparison else 0, "method"),
    }
    return render_page(
        "report.html",
        title=report.title,
        report=report,
        contents=[(key, key.replace("_", " ").capitalize()) for key in sections],
        folds=folds,
        headline=write_headline(report),
        cards=[*report.cards, *(list_cards(result) if result else [])],
        step=suggest_step(result) if result else "",
        **sections,
    )


def render_page(template: str, **values: object) -> str:
    """Return the page of a template."""
    environment = _make_environment(require_module("jinja2", "reports", "cli"))
    page: str = environment.get_template(template).render(
        date=f"{datetime.now(UTC):%Y-%m-%d}", **values
    )
    return page


def write_page(page: str, path: str | Path) -> None:
    """Write a page to a file.

    Parameters
    ----------
    page : str
        As `render_report` returns it.
    path : str or Path
        An HTML file; an old one is replaced, or stays as it was if writing fails.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot.pages import Report, render_report, write_page
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "report.html")
    ...     write_page(render_report(Report("Cats and dogs")), path)
    ...     path.read_text()[:15]
    '<!doctype html>'
    """
    with replace_file(Path(path)) as stream:
        stream.write(page)


@cache
def _make_environment(jinja2: Any) -> Any:
    """Return the environment of the templates, which compiles each of them once."""
    homes = [("rankshot.pages", "templates"), ("rankshot.web", "static")]
    environment = jinja2.Environment(
        # The colours are those of the pages of surveys and reviews.
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(*home) for home in homes]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (shorten, format_name, format_percent, format_range):
        environment.filters[function.__name__] = function
    environment.globals["version"] = __version__
    return environment


def format_comparison(comparison: MethodComparison) -> dict[str, object]:
    """Return the rows by method, and the best estimate."""
    best = max(row.accuracy.estimate for row in comparison.rows)
    return {"caption": comparison.caption, "methods": comparison.by_method(), "best": best}


def format_gallery(inputs: Sequence[ShownInput]) -> dict[str, object]:
    """Return the inputs that are shown first, and those that are folded."""
    explained = any(one.supporters for one in inputs)
    first, others = inputs[:FIRST_IMAGES], inputs[FIRST_IMAGES:]
    return {"first": first, "others": others, "explained": explained}


# ---- Consensus of each class

MAX_SUMMARIES = 40
MAX_PLACES = 12


def summarize_rankings(
    rankings: Rankings, consensus: Rankings, k: int
) -> tuple[TargetSummary, ...]:
    """Summarise the rankings of each target around a given consensus.

    Parameters
    ----------
    rankings : Rankings
    consensus : Rankings
        One ranking per target, such as ``consensus_`` of a head.
    k : int
        How many places are compared.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.pages import summarize_rankings
    >>> votes = rs.Rankings.from_orders(
    ...     [["lion", "fox"], ["fox", "lion"], ["lion", "bus"]], items=["bus", "fox", "lion"],
    ...     targets="cat", raters=["ann", "bob", "cy"])
    >>> head = rs.ProbabilisticRanking(k=2, posterior="consensus").fit(votes)
    >>> brief = summarize_rankings(votes, head.consensus_, k=2)[0]
    >>> brief.order, brief.disagreement[0]
    (('lion', 'fox'), ('bob', 0.3333333333333333))
    """
    return tuple(
        summarize_target(target, theirs, consensus.select(target=target), k)
        for target, theirs in rankings.by_target().items()
    )


def format_consensus(summaries: Sequence[TargetSummary]) -> dict[str, object]:
    """Return the summaries, and a note if some are left out."""
    selected, note = summaries, ""
    if len(summaries) > MAX_SUMMARIES:
        measured = [summary for summary in summaries if summary.concordance is not None]
        measured.sort(key=lambda summary: (summary.concordance, summary.target))
        which = "with the lowest agreement " if measured else ""
        selected = (measured or summaries)[:MAX_SUMMARIES]
        note = f"Only {len(selected)} of {len(summaries):,} classes {which}are shown."
    return {"summaries": [_format_summary(one) for one in selected], "note": note}


def _format_summary(summary: TargetSummary) -> dict[str, object]:
    groups = [place if isinstance(place, tuple) else (place,) for place in summary.order]
    # A tie of two items in the second place is followed by the fourth place.
    numbers = np.cumsum([1, *(len(group) for group in groups)]).tolist()
    W, distance = summary.concordance, summary.mean_distance
    return {
        "target": summary.target or "(all)",
        "places": list(zip(numbers, groups[:MAX_PLACES], strict=False)),
        "more_places": max(len(groups) - MAX_PLACES, 0),
        "concordance": "" if W is None else format_percent(W),
        "concordance_length": W or 0.0,
        "mean_distance": "" if distance is None else format_percent(distance),
    }


# ---- Similar classes

MAX_SIMILAR = 10
MAX_COMPARED = 1000
"""Classes of which every pair is compared."""


def find_similar_classes(consensus: Rankings, k: int) -> SimilarClasses | None:
    """Find the pairs of targets with the smallest distances between the first k places.

    The result is None if no two targets have anything in common. With more than 1,000 targets, only
    the first 1,000 are compared.

    Parameters
    ----------
    consensus : Rankings
        One ranking per target.
    k : int
        How many places are compared.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.pages import find_similar_classes
    >>> rankings = rs.Rankings.from_orders(
    ...     [["fox", "cat", "bus"], ["cat", "fox", "bus"], ["bus", "cat", "fox"]],
    ...     targets=["dog", "wolf", "car"])
    >>> found = find_similar_classes(rankings, k=3)
    >>> [(*names, round(distance, 2)) for *names, distance in found.pairs]
    [('dog', 'wolf', 0.33), ('car', 'wolf', 0.67)]
    """
    compared = consensus[:MAX_COMPARED]
    names = [str(name) for name in compared.targets]
    distance = compare_common_items(compared, k=k)
    # The order inside a tie is unknown, so a ranking with ties has a distance from itself.
    own = distance.diagonal()
    excess = np.maximum(distance - (own[:, None] + own) / 2, 0.0)
    distance = np.where(distance < 1, excess, distance)
    # Each pair once, in alphabetical order; at distance 1, two classes have nothing in common.
    by_name = np.argsort(np.argsort(np.array(names), kind="stable"))
    is_pair = (by_name[:, None] < by_name) & (distance < 1)
    pairs = tuple(
        (names[i], names[j], float(distance[i, j]))
        for i, j in find_lowest_pairs(np.where(is_pair, distance, np.nan), names)[:MAX_SIMILAR]
    )
    return SimilarClasses(pairs, len(compared), len(consensus), k) if pairs else None


def format_similar_classes(similar: SimilarClasses) -> dict[str, object]:
    """Return the pairs, and a note if some classes were not compared."""
    note = ""
    if similar.n_compared < similar.n_classes:
        note = (
            f"Only the first {similar.n_compared:,} of {similar.n_classes:,} classes were compared."
        )
    pairs = [(Bar(a, format_percent(1 - far), 1 - far), b, "") for a, b, far in similar.pairs]
    return {"pairs": pairs, "k": similar.k, "note": note}
