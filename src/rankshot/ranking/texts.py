"""Rankings as text and as a small table of HTML.

Both are a summary and the first rankings.
"""

from __future__ import annotations

from html import escape
from typing import Any

from rankshot.core.errors import format_count

Rankings = Any
"""The class is in a file that imports this one."""
ROWS_SHOWN = 6
PLACES_SHOWN = 8


def to_text(rankings: Rankings) -> str:
    """Return a summary line and the first rankings, one per line."""
    lines = [f"Rankings: {_summary(rankings)}"]
    shown = rankings[:ROWS_SHOWN]
    for row, order in enumerate(shown.orders()):
        target = f"{shown.targets[row]}: " if shown.targets[row] is not None else ""
        lines.append(f"  {target}{_order_text(order)}{_remark(shown, row)}")
    if len(rankings) > ROWS_SHOWN:
        lines.append(f"  … and {len(rankings) - ROWS_SHOWN:,} more")
    return "\n".join(lines)


def to_html(rankings: Rankings) -> str:
    """Return the same as a small table, for notebooks.

    Names can hold any character, so they are escaped.
    """
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
    parts = [
        f"{format_count(len(rankings), 'ranking')} of {format_count(rankings.n_items, 'item')}"
    ]
    for names, what in (
        (rankings.target_names, "target"),
        (rankings.source_names, "source"),
        (rankings.rater_names, "rater"),
    ):
        if names:
            parts.append(format_count(len(names), what))
    return ", ".join(parts)


def _order_text(order: list[str | list[str]]) -> str:
    groups = [_tie_text(g) if isinstance(g, list) else g for g in order[:PLACES_SHOWN]]
    return " > ".join(groups + (["…"] if len(order) > PLACES_SHOWN else []))


def _tie_text(tie: list[str]) -> str:
    more = [f"{len(tie) - PLACES_SHOWN} more"] if len(tie) > PLACES_SHOWN else []
    return " = ".join(tie[:PLACES_SHOWN] + more)


def _remark(rankings: Rankings, row: int) -> str:
    remarks = []
    if rankings.lengths[row] < rankings.n_listed[row]:
        remarks.append(f"first {rankings.lengths[row]}")
    if rankings.is_subset[row]:
        remarks.append("subset")
    if rankings.weights[row] != 1:
        remarks.append(f"weight {rankings.weights[row]:g}")
    return f" ({', '.join(remarks)})" if remarks else ""
