"""The page of a leaderboard: ratings, categories, pairs, raters, and how to read them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from rankshot.core import open_csv_writer
from rankshot.core.errors import format_count
from rankshot.core.files import replace_file, require_ending
from rankshot.leaderboards.board import Leaderboard
from rankshot.leaderboards.misfit import LEAST_VOTES, rater_agreement
from rankshot.leaderboards.rows import Standing
from rankshot.pages.page import (
    Card,
    format_matrix,
    format_percent,
    render_page,
    write_page,
)

MOST_IN_MAP = 30
"""Items of a heat map."""
FIRST_ROWS = 10
"""Pairs in a list."""
MOST_JUDGES = 50
"""Judges whose votes can be shown alone: those with the most votes."""
MAX_NAMED = 5
"""Items that a sentence names."""


def render_board(
    board: Leaderboard, *, title: str = "Leaderboard", notes: Iterable[str] = ()
) -> str:
    """Return a leaderboard as an HTML page: one file, nothing loaded from elsewhere.

    A small script sorts and searches the table of ratings; without it, all rows are there.

    Parameters
    ----------
    board : Leaderboard
        With its categories, if it has any.
    title : str
    notes : iterable of str
        Remarks at the end.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.leaderboards import render_board
    >>> votes = rs.Rankings.from_orders([["tea", "cocoa"], ["cocoa", "tea"]], weights=[30, 10])
    >>> page = render_board(rs.leaderboard(votes), title="Drinks & more")
    >>> "<h1>Drinks &amp; more</h1>" in page, "tea is clearly better than" in page
    (True, True)
    """
    votes = board.source
    raters = rater_agreement(votes) if board.n_raters and votes.are_pairs else []
    sections = {
        "ratings": _format_ratings(board),
        "categories": _format_categories(board) if board.categories else None,
        "pairs": _format_pairs(board) if len(board) > 1 else None,
        "covariates": _format_effects(board),
        "raters": raters,
    }
    beats = board.clearly_better
    facts = [("Items", f"{len(board):,}"), (f"{board.counted}s", f"{board.weight:,.12g}")]
    if board.n_raters:
        facts.append(("Raters", f"{board.n_raters:,}"))
    script = files("rankshot.pages").joinpath("templates", "board.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render_page(
        "board.html",
        title=title,
        verdict=_write_verdict(board),
        warnings=list_warnings(board),
        level=f"{100 * board.level:g}%",
        # Some item is not last, and better than nobody.
        lonely=np.any(board.rank_intervals[:, 1] < len(board), where=~beats.any(axis=1)),
        cards=[Card(label.capitalize(), value) for label, value in facts],
        board=board,
        judges=_count_by_judge(board),
        notes=[*notes, *board.iterate_notes(), *([board.reading] if board.reading else [])],
        contents=[(key, key.capitalize()) for key, value in sections.items() if value],
        script=script,
        script_hash=f"sha256-{digest}",
        **sections,
    )


def save_board(board: Leaderboard, path: str | Path) -> None:
    """Write a leaderboard: its page (.html), all numbers (.json), or the table (.csv).

    Parameters
    ----------
    board : Leaderboard
    path : str or Path

    Examples
    --------
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
    >>> rs.leaderboards.save_board(rs.leaderboard(votes), "board.csv")
    >>> Path("board.csv").read_text()[:20]
    'rank,item,rating,low'
    """
    path = Path(path)
    ending = require_ending(path, (".html", ".json", ".csv"))
    if ending == ".html":
        write_page(render_board(board), path)
        return
    with replace_file(path) as stream:
        if ending == ".json":
            json.dump(board.to_dict(), stream, indent=1, ensure_ascii=False)
            stream.write("\n")
            return
        writer = open_csv_writer(stream)
        boards = {"": board} if not board.categories else {"all": board, **board.categories}
        category = ["category"] if board.categories else []
        writer.writerow([*category, *Standing._fields])
        for name, each in boards.items():
            writer.writerows([*([name] if category else []), *row] for row in each)


def list_warnings(board: Leaderboard) -> list[str]:
    """Return what limits the claims of a board and its categories, each once."""
    named = [("", board), *board.categories.items()]
    texts = [(name, text) for name, each in named for text in each.warnings]
    overall = {text for name, text in texts if not name}
    return [
        f"{name}: {text}" if name else text[:1].upper() + text[1:]
        for name, text in texts
        if not (name and text in overall)
    ]


def _write_verdict(board: Leaderboard) -> str:
    first, others = board.items[0], board.items[1:]
    if not others:
        return f"{first} is the only item."
    # Whose votes these are, if errors do not allow for other raters.
    n = 0 if board.n_raters else len(board.source.rankings.rater_names)
    for_whom = f"In the votes of {'this one rater' if n == 1 else 'these raters'}, " if n else ""
    beaten = [
        item for item, clear in zip(board.items, board.clearly_better[0], strict=True) if clear
    ]
    if len(beaten) == len(others):
        return f"{for_whom}{first} is clearly better than {_name(beaten, 'and')}."
    rest = _name([item for item in others if item not in beaten], "or")
    if not beaten:
        return f"{for_whom}{first} leads, but is not clearly better than {rest}."
    share = f"{len(beaten):,} of {len(others):,} others"
    text = f"{for_whom}{first} leads. It is clearly better than {share}, "
    return f"{text}but not clearly better than {rest}."


def _name(items: list[str], word: str) -> str:
    """Return names with a word before the last one, or before the number of further ones."""
    n_more = len(items) - MAX_NAMED
    parts = [*items[:MAX_NAMED], f"{n_more:,} more"] if n_more > 0 else items
    if len(parts) < 2:
        return parts[0] if parts else "no other"
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def _format_ratings(board: Leaderboard) -> list[tuple[Any, ...]]:
    rows, clear = list(board), board.clearly_better
    ends = np.array([(row.low, row.high, row.rating) for row in rows])
    # Few wide intervals do not shrink all others.
    width = ends[:, 1] - ends[:, 0]
    margin = float(np.median(width[np.isfinite(width)])) if np.isfinite(width).any() else 1.0
    least, most = ends[:, 2].min() - margin, ends[:, 2].max() + margin
    bars = 100 * (np.clip(ends, least, most) - least) / ((most - least) or 1.0)
    better = [_name([board.items[j] for j in np.flatnonzero(x)], "and") for x in clear]
    cells = zip(rows, board.iterate_rows(), better, bars.tolist(), strict=True)
    return [(*three, *bar) for *three, bar in cells]


def _count_by_judge(board: Leaderboard) -> list[dict[str, object]]:
    """Return the votes of each item by each judge, and the share that it won."""
    source = board.source
    if not board.n_raters or not source.are_pairs:
        return []
    rankings = source.rankings
    count = Counter(rankings.raters.tolist())
    count.pop(None, None)
    names = sorted(dict(count.most_common(MOST_JUDGES)))
    number = {name: i for i, name in enumerate(names)}
    judge = np.array([number.get(who, -1) for who in rankings.raters])[rankings.entry_rows]
    place = {item: i for i, item in enumerate(board.items)}
    item = np.array([place.get(item, -1) for item in rankings.items])[rankings.codes]
    weights = rankings.weights[rankings.entry_rows]
    scores = np.where(rankings.rows_with_ties[:, None], 0.5, [1.0, 0.0]).ravel()
    kept = (judge >= 0) & (item >= 0)
    votes, won = np.zeros((2, len(names), len(board)))
    np.add.at(votes, (judge[kept], item[kept]), weights[kept])
    np.add.at(won, (judge[kept], item[kept]), (weights * scores)[kept])
    return [
        {"name": name, "votes": [
            [round(float(n), 2), round(float(x / n), 3)] if n else None
            for n, x in zip(votes[i], won[i], strict=True)
        ]}
        for i, name in enumerate(names)
    ]  # fmt: skip


def _format_pairs(board: Leaderboard) -> dict[str, object]:
    """Return observed wins as a heat map, and the pairs that the ratings do not explain."""
    both = board.wins + board.wins.T + board.ties
    found = board.misfits()
    tested = [each for each in found if not np.isnan(each.p_value)]
    odd = [each for each in tested if each.p_value < 1 - board.level]
    pairs = [
        (each.first, each.second, f"{each.votes:,.6g}", format_percent(each.observed, 0),
         format_percent(each.expected, 0), f"{each.p_value:.2g}")
        for each in odd[:FIRST_ROWS]
    ]  # fmt: skip
    n = min(len(board), MOST_IN_MAP)
    shown = both[:n, :n]
    matrix = None
    if np.median(shown[np.triu_indices(n, 1)]) >= LEAST_VOTES:
        observed = np.where(shown >= LEAST_VOTES, board.observed_win_rates[:n, :n], np.nan)
        texts = [["" if np.isnan(x) else f"{100 * x:.0f}" for x in row] for row in observed]
        matrix = format_matrix(board.items[:n], observed, texts)
    next_pairs = list(dict.fromkeys(board.next_pairs(FIRST_ROWS)))
    return {
        "matrix": matrix, "pairs": pairs, "next": next_pairs, "shown": n, "least": LEAST_VOTES,
        "n_odd": len(odd), "tested": format_count(len(tested), "pair") if tested else "",
        "smallest": f"{tested[0].p_value:.2g}" if tested else "",
    }  # fmt: skip


def _format_categories(board: Leaderboard) -> dict[str, object]:
    boards = {"all": board, **board.categories}
    cells = {
        name: {row[1]: f"{row[2]} ({row[3]})" for row in each.iterate_rows()}
        for name, each in boards.items()
    }
    items = dict.fromkeys(item for each in boards.values() for item in each.items)
    table = [(item, *(cells[name].get(item, "–") for name in boards)) for item in items]
    return {"names": list(boards), "table": table}


def _format_effects(board: Leaderboard) -> dict[str, object] | None:
    boards = {"all" if board.categories else "effect": board, **board.categories}
    table = []
    for name in board.effects:
        found = [each.effects.get(name) for each in boards.values()]
        texts = (
            f"{x.value:.3g} ({x.interval[0]:.3g} to {x.interval[1]:.3g})" if x else "–"
            for x in found
        )
        table.append((name, *texts))
    return {"names": list(boards), "table": table} if table else None
