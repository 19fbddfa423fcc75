"""From arrays back to names: orders, and what `Rankings` print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import format_count
from rankshot.ranking.encoding import Entries

NamedOrders = list[list[str | list[str]]]
"""Items of each ranking, best first; a tie is a list inside the list."""
ROWS_SHOWN = 6
PLACES_SHOWN = 8


def decode_orders(entries: Entries, items: tuple[str, ...]) -> NamedOrders:
    """Translate arrays back into lists of names, ties as lists inside the lists."""
    names = np.array(items, dtype=object)[entries.codes].tolist()
    places = entries.places.tolist()
    orders: NamedOrders = []
    for begin, end in pairwise(entries.starts.tolist()):
        groups: list[list[str]] = [[] for _ in range(places[end - 1] + 1)]
        for name, place in zip(names[begin:end], places[begin:end], strict=True):
            groups[place].append(name)
        orders.append([group[0] if len(group) == 1 else group for group in groups])
    return orders


def format_text(summary: str, rows: Sequence[tuple[str | None, str]], n: int) -> str:
    """Return a summary line and the first of ``n`` rankings, one per line."""
    lines = [f"Rankings: {summary}"]
    lines += [f"  {text}" if target is None else f"  {target}: {text}" for target, text in rows]
    if n > len(rows):
        lines.append(f"  … and {n - len(rows):,} more")
    return "\n".join(lines)


def format_html(summary: str, rows: Sequence[tuple[str | None, str]], n: int) -> str:
    """Return the same as a small table, for notebooks."""
    cells = "".join(
        f"<tr><td>{escape(target or '')}</td><td>{escape(text)}</td></tr>" for target, text in rows
    )
    more = "<tr><td></td><td>…</td></tr>" if n > len(rows) else ""
    return (
        f"<table><caption>Rankings: {escape(summary)}</caption>"
        f"<thead><tr><th>target</th><th>ranking</th></tr></thead>"
        f"<tbody>{cells}{more}</tbody></table>"
    )


def format_summary(n: int, n_items: int, labels: Mapping[str, Sequence[str]]) -> str:
    """Return how many rankings, items, targets, sources and raters there are."""
    parts = [f"{format_count(n, 'ranking')} of {format_count(n_items, 'item')}"]
    parts += [format_count(len(names), what) for what, names in labels.items() if names]
    return ", ".join(parts)


def format_rows(
    orders: NamedOrders,
    n_listed: NDArray[np.int64],
    lengths: NDArray[np.int64],
    is_subset: NDArray[np.bool_],
    weights: NDArray[np.float64],
) -> list[str]:
    """Return the text of each ranking: its order, and what is special about it."""
    texts = []
    for row, order in enumerate(orders):
        remarks = []
        if lengths[row] < n_listed[row]:
            remarks.append(f"first {lengths[row]}")
        if is_subset[row]:
            remarks.append("subset")
        if weights[row] != 1:
            remarks.append(f"weight {weights[row]:g}")
        texts.append(_order_text(order) + (f" ({', '.join(remarks)})" if remarks else ""))
    return texts


def _order_text(order: list[str | list[str]]) -> str:
    groups = [_tie_text(g) if isinstance(g, list) else g for g in order[:PLACES_SHOWN]]
    return " > ".join(groups + (["…"] if len(order) > PLACES_SHOWN else []))


def _tie_text(tie: list[str]) -> str:
    more = [f"{len(tie) - PLACES_SHOWN} more"] if len(tie) > PLACES_SHOWN else []
    return " = ".join(tie[:PLACES_SHOWN] + more)
