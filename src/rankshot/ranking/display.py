"""How `Rankings` look on the screen and in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankshot.ranking.rankings import Rankings

ROWS_SHOWN = 6
PLACES_SHOWN = 8


def as_text(rankings: Rankings) -> str:
    """Return a summary line and the first rankings, one a line."""
    lines = [f"Rankings: {_summary(rankings)}"]
    shown = rankings[:ROWS_SHOWN]
    for row, order in enumerate(shown.orders()):
        target = f"{shown.targets[row]}: " if shown.targets[row] is not None else ""
        lines.append(f"  {target}{_order_text(order)}{_remark(shown, row)}")
    if len(rankings) > ROWS_SHOWN:
        lines.append(f"  … and {len(rankings) - ROWS_SHOWN:,} more")
    return "\n".join(lines)


def as_html(rankings: Rankings) -> str:
    """Return the same as a small table."""
    shown = rankings[:ROWS_SHOWN]
    rows = "".join(
        f"<tr><td>{escape(shown.targets[row] or '')}</td>"
        f"<td>{escape(_order_text(order) + _remark(shown, row))}</td></tr>"
        for row, order in enumerate(shown.orders())
    )
    more = "<tr><td></td><td>…</td></tr>" if len(rankings) > ROWS_SHOWN else ""
    return (
        f"<table><caption>Rankings: {escape(_summary(rankings))}</caption>"
        f"<thead><tr><th>target</th><th>ranking</th></tr></thead>"
        f"<tbody>{rows}{more}</tbody></table>"
    )


def _summary(rankings: Rankings) -> str:
    parts = [f"{counted(len(rankings), 'ranking')} of {counted(rankings.n_items, 'item')}"]
    for names, what in (
        (rankings.target_names, "target"),
        (rankings.source_names, "source"),
        (rankings.rater_names, "rater"),
    ):
        if names:
            parts.append(counted(len(names), what))
    return ", ".join(parts)


def counted(number: int, what: str) -> str:
    """Return a number of things in words: 1 ranking, 2 rankings."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _order_text(order: list[str | list[str]]) -> str:
    groups = [" = ".join(g) if isinstance(g, list) else g for g in order[:PLACES_SHOWN]]
    return " > ".join(groups + (["…"] if len(order) > PLACES_SHOWN else []))


def _remark(rankings: Rankings, row: int) -> str:
    remarks = []
    if rankings.lengths[row] < rankings.n_listed[row]:
        remarks.append(f"first {rankings.lengths[row]}")
    if rankings.is_subset[row]:
        remarks.append("subset")
    if rankings.weights[row] != 1:
        remarks.append(f"weight {rankings.weights[row]:g}")
    return f" ({', '.join(remarks)})" if remarks else ""
