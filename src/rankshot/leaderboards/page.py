"""The page of a leaderboard: ratings, pairs, categories, raters, and how to read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from rankshot.leaderboards.board import Leaderboard
from rankshot.leaderboards.fit import Leaderboards
from rankshot.leaderboards.raters import RaterReliability
from rankshot.pages.contents import Card
from rankshot.pages.formatting import format_percent
from rankshot.pages.page import render_page
from rankshot.pages.predictions import MAX_LINES, format_matrix

FIRST_ROWS = 30
"""Items of a table that are not folded, and of a heat map."""
FIRST_PAIRS = 10
MAX_NAMED = 5
"""Items that a sentence names."""


def render_board(
    boards: Leaderboard | Mapping[str, Leaderboard],
    *,
    title: str = "Leaderboard",
    raters: Iterable[RaterReliability] = (),
    notes: Iterable[str] = (),
) -> str:
    """Return a leaderboard as an HTML page: one file, no script, nothing loaded from elsewhere.

    Parameters
    ----------
    boards : Leaderboard or dict of Leaderboard
        One board, or one for each category; the first one is shown in full.
    title : str
    raters : iterable of RaterReliability
        From `rankshot.leaderboards.rater_reliability`.
    notes : iterable of str
        Remarks at the end, such as warnings.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.leaderboards import render_board
    >>> votes = rs.Rankings.from_orders([["tea", "cocoa"], ["cocoa", "tea"]], weights=[30, 10])
    >>> page = render_board(rs.leaderboard(votes), title="Drinks & more")
    >>> "<h1>Drinks &amp; more</h1>" in page, "tea is clearly better than" in page
    (True, True)
    """
    named = {"": boards} if isinstance(boards, Leaderboard) else dict(boards)
    board = next(iter(named.values()))
    rows = sorted(raters, key=lambda each: (each.p_value, each.reliability))
    sections = {
        "ratings": _format_ratings(board),
        "pairs": _format_pairs(board) if len(board) > 1 else None,
        "categories": _format_categories(named) if len(named) > 1 else None,
        "covariates": _format_effects(named),
        "raters": rows
        and {
            "first": rows[:FIRST_PAIRS],
            "others": rows[FIRST_PAIRS:MAX_LINES],
            "total": len(rows),
        },
    }
    cards = [Card("Items", f"{len(board):,}"), Card("Votes", f"{board.weight:,.12g}")]
    if board.n_raters:
        cards.append(Card("Raters", f"{board.n_raters:,}"))
    return render_page(
        "board.html",
        title=title,
        verdict=_write_verdict(board),
        reading=_explain(board),
        cards=cards,
        board=board,
        category=next(iter(named)),
        notes=[*notes, *board.iterate_notes()],
        contents=[(key, key.capitalize()) for key, value in sections.items() if value],
        **sections,
    )


def _write_verdict(board: Leaderboard) -> str:
    first, others = board.items[0], board.items[1:]
    beaten = [
        item for item, clear in zip(board.items, board.clearly_better[0], strict=True) if clear
    ]
    if not others:
        return f"{first} is the only item."
    if len(beaten) == len(others):
        return f"{first} is clearly better than {_name(beaten)}."
    rest = _name([item for item in others if item not in beaten])
    if not beaten:
        return f"{first} leads, but is not clearly better than {rest}."
    text = f"{first} leads. It is clearly better than {len(beaten):,} of {len(others):,} others, "
    return f"{text}but not clearly better than {rest}."


def _name(items: list[str]) -> str:
    more = f" and {len(items) - MAX_NAMED:,} more" if len(items) > MAX_NAMED else ""
    return ", ".join(items[:MAX_NAMED]) + more


def _explain(board: Leaderboard) -> list[str]:
    """Return how to read the page, in four sentences."""
    gap = 58.0 if board.scale == "elo" else 1 / 3
    wins = 10 / (1 + np.exp(-gap / board.unit))
    points = f"{gap:.0f} points" if board.scale == "elo" else f"{gap:.2f}"
    tied = " of the votes that are not ties" if board.tie_parameter else ""
    level = f"{100 * board.level:g}%"
    together = "all of these claims hold together with a probability of at least"
    preliminary = "Grey items are preliminary: their intervals are wide, or contain all ratings"
    return [
        f"A difference of {points}: the first wins about {wins:.0f} of 10{tied}.",
        f"The {level} intervals are for a comparison of two items that you choose beforehand.",
        f"Better counts the items that an item is clearly better than; {together} {level}.",
        f"Ranks contain the true rank with a probability of at least {level}. {preliminary}.",
    ]


def find_preliminary(board: Leaderboard) -> NDArray[np.bool_]:
    """Return which items have intervals that are too wide to say much."""
    low, high = board.comparison_intervals.T
    spans_all = (low <= board.log_worths.min()) & (high >= board.log_worths.max())
    return np.asarray((high - low > 2 * np.median(high - low)) | (spans_all & (len(board) > 2)))


def _format_ratings(board: Leaderboard) -> dict[str, object]:
    rows, clear = list(board), board.clearly_better
    low = min(row.low for row in rows)
    length = max(row.high for row in rows) - low or 1.0
    cells = []
    for i, (row, texts, grey) in enumerate(
        zip(rows, board.iterate_rows(), find_preliminary(board), strict=True)
    ):
        better = [board.items[j] for j in np.flatnonzero(clear[i])]
        bar = [100 * (value - low) / length for value in (row.low, row.high, row.rating)]
        cells.append((row.item, texts, grey, _name(better) or "no other", *bar))
    return {"first": cells[:FIRST_ROWS], "others": cells[FIRST_ROWS:]}


def _format_pairs(board: Leaderboard) -> dict[str, object]:
    """Return the observed and expected wins: a heat map, and the pairs that differ most."""
    observed, expected = board.observed_win_rates, board.win_rates
    both = board.wins + board.wins.T + board.ties
    error = np.sqrt(expected * (1 - expected) / np.where(both > 0, both, np.nan))
    z = np.triu(np.nan_to_num(np.abs(observed - expected) / error), 1)
    order = np.argsort(-z, axis=None)[: min(FIRST_PAIRS, int((z > 0).sum()))]
    pairs = [
        (board.items[i], board.items[j], f"{both[i, j]:,.6g}", format_percent(observed[i, j], 0),
         format_percent(expected[i, j], 0))
        for i, j in zip(*np.unravel_index(order, z.shape), strict=True)
    ]  # fmt: skip
    n = min(len(board), FIRST_ROWS)
    part = observed[:n, :n]
    texts = [["" if np.isnan(x) else f"{100 * x:.0f}" for x in row] for row in part]
    matrix = format_matrix(board.items[:n], part, texts)
    next_pairs = list(dict.fromkeys(board.next_pairs(FIRST_PAIRS)))
    return {"matrix": matrix, "pairs": pairs, "next": next_pairs, "shown": n}


def _format_categories(boards: dict[str, Leaderboard]) -> dict[str, object]:
    digits = 0 if next(iter(boards.values())).scale == "elo" else 2
    ratings = [board.ratings for board in boards.values()]
    items = list(dict.fromkeys(item for board in boards.values() for item in board.items))
    table = [
        (item, *(f"{of[item]:.{digits}f}" if item in of else "–" for of in ratings))
        for item in items
    ]
    found = [each for each in Leaderboards(boards).differences() if each.p_value < 0.05]
    clear = [f"{each.item} in {each.category}: {each.difference:+.{digits}f}" for each in found]
    return {"names": list(boards), "table": table, "differences": clear}


def _format_effects(boards: dict[str, Leaderboard]) -> dict[str, object] | None:
    names = dict.fromkeys(name for board in boards.values() for name in board.effects)
    table = []
    for name in names:
        found = [board.effects[name] for board in boards.values()]
        texts = (f"{x.value:.3g} ({x.interval[0]:.3g} to {x.interval[1]:.3g})" for x in found)
        table.append((name, *texts))
    return {"names": [name or "effect" for name in boards], "table": table} if table else None
