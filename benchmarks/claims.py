"""How often the claims of leaderboards hold: simulations, written to docs/results/claims.md.

``make claims`` runs them; ``benchmarks/claims_0.3.json`` has the same numbers for version 0.3.0.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import rankshot as rs

PAGE = Path(__file__).parents[1] / "docs" / "results" / "claims.md"
BEFORE = Path(__file__).with_name("claims_0.3.json")
HAS_LOOKS = "looks" in rs.leaderboard.__kwdefaults__
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
Draw = Callable[[np.random.Generator], dict[str, Any]]


def names(C: int) -> list[str]:
    return [f"i{i:03}" for i in range(C)]


def draw_pairs(rng: np.random.Generator, n: int, C: int, chances: Any = None) -> tuple[Any, Any]:
    a = rng.choice(C, n, p=chances)
    b = rng.choice(C, n, p=chances)
    while (same := a == b).any():
        b[same] = rng.choice(C, int(same.sum()), p=chances)
    return a, b


def to_votes(a: Any, b: Any, first_wins: Any, C: int, **labels: Any) -> rs.Rankings:
    every = names(C)
    winner, loser = np.where(first_wins, a, b), np.where(first_wins, b, a)
    pairs = ([every[i] for i in x] for x in (winner, loser))
    return rs.Rankings.from_pairs(*pairs, items=every, **labels)


def vote(
    rng: np.random.Generator, theta: Any, n: int, *, chances: Any = None, lean: float = 0.0
) -> dict[str, Any]:
    """Independent votes; ``lean`` is what it is worth to be on the left."""
    a, b = draw_pairs(rng, n, theta.size, chances)
    wins = rng.random(n) < expit(theta[a] - theta[b] + lean)
    return {"votes": to_votes(a, b, wins, theta.size), "theta": theta}


def ask_all(theta: Any, std: float) -> Any:
    """The log-worths that fit what all people vote, whose tastes have this deviation."""
    mean = expit((theta[:, None] - theta)[..., None] + std * np.sqrt(2) * NODES) @ NODE_WEIGHTS
    mean /= NODE_WEIGHTS.sum()
    np.fill_diagonal(mean, 0)
    everybody = rs.Rankings.from_pair_counts(mean, items=names(theta.size))
    return rs.PlackettLuce(regularization=0).fit(everybody).log_worths_


def vote_by_taste(
    rng: np.random.Generator, taste: Any, rater: Any, pairs: Any = None, *, unnamed: float = 0.0,
    target: str | None = None,
) -> rs.Rankings:  # fmt: skip
    """Votes of raters, given by number, who each have log-worths of their own."""
    a, b = draw_pairs(rng, rater.size, taste.shape[1]) if pairs is None else pairs
    wins = rng.random(rater.size) < expit(taste[rater, a] - taste[rater, b])
    lost = rng.random(rater.size) < unnamed
    who = [None if gone else f"p{i}" for i, gone in zip(rater, lost, strict=True)]
    return to_votes(a, b, wins, taste.shape[1], raters=who, targets=target)


def make_board(votes: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rs.leaderboard(votes, **{"min_votes": 0, **options})


def vote_by_raters(
    rng: np.random.Generator, volumes: list[int], *, spread: float = 0.5, std: float = 0.8,
    C: int = 6, unnamed: float = 0.0, target: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Raters with tastes of their own; the truth is what all people would vote."""
    theta = spread * rng.normal(size=C)
    taste = theta + std * rng.normal(size=(len(volumes), C))
    rater = np.repeat(np.arange(len(volumes)), volumes)
    votes = vote_by_taste(rng, taste, rater, unnamed=unnamed, target=target)
    return {"votes": votes, "theta": ask_all(theta, std)}


def vote_by_prompts(rng: np.random.Generator) -> dict[str, Any]:
    theta, C, n = 0.5 * rng.normal(size=6), 6, 1000
    who, prompt = rng.integers(0, 20, n), rng.integers(0, 30, n)
    taste = theta + 0.6 * (rng.normal(size=(20, C))[who] + rng.normal(size=(30, C))[prompt])
    a, b = draw_pairs(rng, n, C)
    row = np.arange(n)
    wins = rng.random(n) < expit(taste[row, a] - taste[row, b])
    every = names(C)
    table = {
        "model_a": [every[i] for i in a], "model_b": [every[i] for i in b],
        "winner": np.where(wins, "model_a", "model_b").tolist(),
        "judge": [f"p{i}" for i in who], "question_id": [f"q{i}" for i in prompt],
    }  # fmt: skip
    return {"votes": table, "theta": ask_all(theta, 0.6 * np.sqrt(2))}


def vote_with_bots(rng: np.random.Generator) -> dict[str, Any]:
    """A tenth of the raters give half of the votes, at random."""
    rater = np.repeat(np.arange(50), [20] * 45 + [180] * 5)
    taste = np.where(np.arange(50)[:, None] < 45, 0.8 * rng.normal(size=(50, 6)), 0.0)
    return {"votes": vote_by_taste(rng, taste, rater), "theta": np.zeros(6)}


def vote_apart(rng: np.random.Generator) -> dict[str, Any]:
    """Two groups that no vote connects; claims within them can be true."""
    theta = np.concatenate([0.5 * rng.normal(size=4), 0.5 * rng.normal(size=4)])
    a, b = draw_pairs(rng, 400, 4)
    group = 4 * rng.integers(0, 2, 400)
    a, b = a + group, b + group
    wins = rng.random(400) < expit(theta[a] - theta[b])
    return {"votes": to_votes(a, b, wins, 8), "theta": theta, "groups": np.repeat([0, 1], 4)}


def vote_with_ties(rng: np.random.Generator, theta: Any, n: int) -> dict[str, Any]:
    a, b = draw_pairs(rng, n, theta.size)
    d = theta[a] - theta[b]
    shares = np.stack([np.exp(d / 2), np.exp(-d / 2), np.full(n, 0.8)])
    u = rng.random(n) * shares.sum(axis=0)
    every, wins = names(theta.size), u < shares[0]
    winner, loser = np.where(wins, a, b), np.where(wins, b, a)
    pairs = ([every[i] for i in x] for x in (winner, loser))
    votes = rs.Rankings.from_pairs(*pairs, items=every, ties=u > shares[0] + shares[1])
    return {"votes": votes, "theta": theta}


def rank(rng: np.random.Generator, n: int, k: int | None, spread: float = 1.0) -> dict[str, Any]:
    theta = spread * rng.normal(size=8)
    model = rs.PlackettLuce.from_worths(dict(zip(names(8), np.exp(theta), strict=True)))
    return {"votes": model.sample(n, k, rng), "theta": theta}


def share_out(n_raters: int, n: int) -> list[int]:
    shares = 1 / np.arange(1, n_raters + 1)
    return np.maximum(1, np.round(n * shares / shares.sum())).astype(int).tolist()


def one_judge(rng: np.random.Generator) -> dict[str, Any]:
    """The truth is what this judge thinks."""
    theta = 0.5 * rng.normal(size=6)
    found = vote(rng, theta, 400)
    votes = found["votes"]
    same = rs.Rankings.concatenate([votes])
    return {"votes": _with_raters(same, ["judge"] * len(same)), "theta": theta}


def _with_raters(votes: rs.Rankings, raters: list[str]) -> rs.Rankings:
    return replace(votes, raters=np.array(raters, object))


SKEWED = np.geomspace(30, 1, 10) / np.geomspace(30, 1, 10).sum()
DESIGNS: dict[str, Draw] = {
    "equal items, independent votes": lambda rng: vote(rng, np.zeros(8), 400),
    "equal items, few votes": lambda rng: vote(rng, np.zeros(8), 80),
    "different items, independent votes": lambda rng: vote(rng, rng.normal(size=8), 400),
    "one item far ahead": lambda rng: vote(rng, np.append(5.0, 0.5 * rng.normal(size=7)), 200),
    "two equal items far ahead": lambda rng: vote(rng, np.append([5, 5], np.zeros(5)), 200),
    "one judge": one_judge,
    "2 raters, unequal": lambda rng: vote_by_raters(rng, share_out(2, 150)),
    "5 raters, unequal": lambda rng: vote_by_raters(rng, share_out(5, 500)),
    "20 raters, unequal": lambda rng: vote_by_raters(rng, share_out(20, 1000)),
    "equal items, 5 raters": lambda rng: vote_by_raters(rng, [40] * 5, spread=0.0),
    "equal items, 20 raters": lambda rng: vote_by_raters(rng, [50] * 20, spread=0.0),
    "20 raters, half anonymous": lambda rng: vote_by_raters(rng, [50] * 20, unnamed=0.5),
    "bots among raters, equal items": vote_with_bots,
    "20 judges, 30 prompts": vote_by_prompts,
    "100 items, 1,000 votes, equal": lambda rng: vote(rng, np.zeros(100), 1000),
    "two groups, not connected": vote_apart,
    "popularity 30:1": lambda rng: vote(rng, rng.normal(size=10), 600, chances=SKEWED),
    "position bias": lambda rng: vote(rng, 0.5 * rng.normal(size=8), 600, lean=0.5),
    "ties": lambda rng: vote_with_ties(rng, rng.normal(size=8), 300),
    "equal items, ties": lambda rng: vote_with_ties(rng, np.zeros(8), 300),
    "full rankings": lambda rng: rank(rng, 30, None),
    "top-3 rankings": lambda rng: rank(rng, 60, 3),
    "equal items, full rankings": lambda rng: rank(rng, 30, None, 0.0),
    "equal items, top-3 rankings": lambda rng: rank(rng, 60, 3, 0.0),
}
FEWER = {"100 items, 1,000 votes, equal": 20}
"""Designs that take longer are repeated less often, by this factor."""


def examine(board: Any, theta: Any, groups: Any = None) -> dict[str, float]:
    """Return whether a board's claims hold."""
    truth = theta[[int(item[1:]) for item in board.items]]
    C = len(truth)
    i, j = np.triu_indices(C, 1)
    comparable = np.ones(i.size, bool)
    if groups is not None:
        of = groups[[int(item[1:]) for item in board.items]]
        comparable = of[i] == of[j]
    inside = []
    some = np.random.default_rng(0).permutation(np.flatnonzero(comparable))[:60]
    for a, b in zip(i[some], j[some], strict=True):
        low, high = board.compare(board.items[a], board.items[b]).interval
        inside.append(low <= truth[a] - truth[b] <= high)
    # The model fits what all people vote only nearly where tastes differ.
    gap = truth[:, None] - truth
    false = board.clearly_better & (gap <= 1e-9)
    if groups is not None:
        false &= of[:, None] == of
    best = 1 + (gap.T > 1e-9).sum(axis=1)
    worst = C - (gap > 1e-9).sum(axis=1)
    ranks = board.rank_intervals
    holds = (ranks[:, 0] <= worst) & (ranks[:, 1] >= best)
    if groups is not None:
        holds[:] = True
    return {"intervals": float(np.mean(inside)), "ranks": float(np.mean(holds)),
            "false": float(false.any())}  # fmt: skip


def simulate(name: str, seed: int) -> dict[str, float]:
    drawn = DESIGNS[name](np.random.default_rng(seed))
    return examine(make_board(drawn["votes"]), drawn["theta"], drawn.get("groups"))


# ---- Evidence that grows


def power(task: tuple[float, bool], seed: int) -> dict[str, float]:
    """One item ahead of two equal ones, 40 votes per pair, independent or by ten raters."""
    worth, by_raters = task
    rng = np.random.default_rng(seed)
    pairs = np.repeat([[0, 1], [0, 2], [1, 2]], 40, axis=0).T
    rater = np.tile(np.arange(10), 12)
    taste = 0.5 * by_raters * rng.normal(size=(10, 3)) + [worth, 0.0, 0.0]
    board = make_board(vote_by_taste(rng, taste, rater, pairs, unnamed=1 - by_raters))
    at = [board.items.index(name) for name in names(3)]
    clear = board.clearly_better[np.ix_(at, at)]
    return {"power": float(clear[0, 1:].mean()), "false": float(clear[1, 2] or clear[2, 1])}


# ---- Looking until it is significant


def look(task: tuple[str, int], seed: int) -> dict[str, float]:
    """Eight equal items: batches of 20 votes on ``next_pairs``, or 16 looks at random votes."""
    how, n_most = task
    rng = np.random.default_rng(seed)
    C, batch = 8, 20 if how == "next_pairs" else n_most // 16
    a, b = draw_pairs(rng, 40, C)
    false = 0.0
    options = {"looks": "guided" if how == "next_pairs" else "many"} if HAS_LOOKS else {}
    while True:
        wins = np.random.default_rng((seed, 1)).random(n_most + 50)[: a.size] < 0.5
        board = make_board(to_votes(a, b, wins, C), **options)
        false = max(false, float(board.clearly_better.any()))
        if a.size >= n_most:
            break
        if how == "next_pairs":
            chosen = board.next_pairs(batch)
            more = np.array([[int(x[1:]) for x in pair] for pair in chosen]).T
        else:
            more = np.array(draw_pairs(rng, batch, C))
        a, b = np.append(a, more[0]), np.append(b, more[1])
    i, j = np.triu_indices(C, 1)
    ends = [
        board.compare(board.items[x], board.items[y]).interval for x, y in zip(i, j, strict=True)
    ]
    inside = float(np.mean([low <= 0 <= high for low, high in ends]))
    return {"intervals": inside, "false": false}


# ---- Raters


def flag(task: tuple[float, int, bool], seed: int) -> dict[str, float]:
    """Twenty raters; an honest one is flagged, or the one who votes at random."""
    spread, volume, has_bot = task
    rng = np.random.default_rng(seed)
    taste = np.tile(spread * rng.normal(size=6), (20, 1))
    taste[0] *= not has_bot
    votes = vote_by_taste(rng, taste, np.repeat(np.arange(20), volume))
    room = getattr(rs, "leaderboards", rs.ranking)
    table = getattr(room, "rater_agreement", None) or rs.ranking.rater_reliability
    p = {each.rater: each.p_value for each in table(votes)}
    bot = p.pop("p0") < 0.05
    return {"honest": float(min(p.values()) < 0.05), "bot": float(bot)}


def weigh(volume: int, seed: int) -> dict[str, float]:
    """What ``weigh_raters=True`` did to twenty honest raters and equal items."""
    rng = np.random.default_rng(seed)
    votes = vote_by_taste(rng, np.zeros((20, 6)), np.repeat(np.arange(20), volume))
    return examine(make_board(votes, weigh_raters=True), np.zeros(6))


# ---- All of them

WORTHS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
RATERS = [
    (s, n, bot) for s in (0.0, 1.0) for n in (20, 50, 200) for bot in (False, True) if s or not bot
]


def list_tasks(n: int) -> Iterator[tuple[str, Any, int]]:
    for name in DESIGNS:
        yield f"design|{name}", partial(simulate, name), max(n // FEWER.get(name, 1), 10)
    for by_raters in (False, True):
        for worth in WORTHS:
            key = f"power|{worth:g}|{'10 raters' if by_raters else 'independent'}"
            yield key, partial(power, (worth, by_raters)), n
    for task in (("next_pairs", 360), ("next_pairs", 1000), ("random", 1000)):
        yield f"look|{task[0]}|{task[1]}", partial(look, task), max(n // 2, 10)
    for task in RATERS:
        yield f"flag|{task[0]:g}|{task[1]}|{task[2]}", partial(flag, task), n
    if not HAS_LOOKS:
        for volume in (20, 50, 200):
            yield f"weigh|{volume}", partial(weigh, volume), max(n // 2, 10)


def run_chunk(key: str, n: int, seeds: range) -> list[dict[str, float]]:
    function = next(f for name, f, _ in list_tasks(n) if name == key)
    return [function(seed) for seed in seeds]


def measure(n: int, only: str) -> dict[str, dict[str, float]]:
    chunks = [
        (key, n, range(start, min(start + 25, m)))
        for key, _, m in list_tasks(n) if only in key for start in range(0, m, 25)
    ]  # fmt: skip
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(run_chunk, *zip(*chunks, strict=True)))
    rows: dict[str, list[dict[str, float]]] = {}
    for (key, _, _), results in zip(chunks, found, strict=True):
        rows.setdefault(key, []).extend(results)
    return {
        key: {"n": len(each), **{name: float(np.mean([x[name] for x in each])) for name in each[0]}}
        for key, each in rows.items()
    }


def format_share(found: dict[str, float] | None, name: str) -> str:
    return "-" if found is None or name not in found else f"{found[name]:.3f}".replace("0.", ".")


def make_table(
    head: list[str], rows: list[tuple[str, str]], columns: list[str], runs: list[dict[str, Any]]
) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for title, key in rows:
        cells = [format_share(run.get(key), column) for column in columns for run in runs]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return [*lines, ""]


def write_page(found: dict[str, Any], before: dict[str, Any], path: Path) -> None:
    runs = [before, found]
    n = {key: int(each["n"]) for key, each in found.items()}
    both = ["0.3", "now"]
    designs = [(name, f"design|{name}") for name in DESIGNS]
    kinds = [("independent", "independent votes"), ("10 raters", "10 raters")]
    powers = [
        (f"{worth:g}, {title}", f"power|{worth:g}|{kind}")
        for kind, title in kinds for worth in WORTHS
    ]  # fmt: skip
    looks = [
        ("next_pairs in batches of 20, 360 votes", "look|next_pairs|360"),
        ("the same, 1,000 votes", "look|next_pairs|1000"),
        ("16 looks at random votes, 1,000 votes", "look|random|1000"),
    ]
    flags = [
        (f"{'equal' if not s else 'different'} items, {v} votes each{', one random' * bot}",
         f"flag|{s:g}|{v}|{bot}")
        for s, v, bot in RATERS
    ]  # fmt: skip
    weighed = [(f"{v} votes each", f"weigh|{v}") for v in (20, 50, 200)]
    lines = [
        "# Do the claims of leaderboards hold?",
        "",
        "`make claims` writes this page (`benchmarks/claims.py`); the columns \"0.3\" are from the",
        "same program with version 0.3.0. Each board claims with 95%: intervals should hold .95 of",
        "the differences, ranks .95 of the true ranks or more, and at most .05 of the boards",
        f"should make any false claim. {n['design|ties']} boards per row (ten for 100 items): the",
        f"standard error of .05 is {np.sqrt(0.05 * 0.95 / n['design|ties']):.3f}.",
        "",
        "## Designs",
        "",
        "Intervals of differences, rank intervals, and boards with any false \"clearly better\".",
        "Raters have tastes of their own. Version 0.3 did not use the column of prompts. With a",
        "position bias of .5 log-odds that is no covariate, log-worths shrink a little.",
        "",
        *make_table(
            ["design", *(f"{x}, {v}" for x in ("intervals", "ranks", "false") for v in both)],
            designs, ["intervals", "ranks", "false"], runs,
        ),
        "## An item far ahead",
        "",
        "One item is this much (log-odds) ahead of two equal ones; 40 votes per pair. How often it",
        "is found to be better than each of them (power), and how often the equal ones are told",
        "apart. A Wald test finds less the more evidence there is.",
        "",
        *make_table(
            ["ahead by", *(f"{x}, {v}" for x in ("power", "false claims") for v in both)],
            powers, ["power", "false"], runs,
        ),
        "## Looking until it is significant",
        "",
        "Eight equal items, and a board after each batch of votes; false claims at any look, and",
        'intervals at the last one. Now with `looks="guided"` for chosen pairs and `looks="many"`',
        f"for random ones ({n['look|random|1000']} runs).",
        "",
        *make_table(
            ["votes", *(f"{x}, {v}" for x in ("false claims", "intervals") for v in both)],
            looks, ["false", "intervals"], runs,
        ),
        "## Raters",
        "",
        "Twenty raters. How often any honest one is marked, and how often the one who votes at",
        "random is.",
        "",
        *make_table(
            ["votes", *(f"{x}, {v}" for x in ("an honest rater", "the random one") for v in both)],
            flags, ["honest", "bot"], runs,
        ),
        "With 600 other boards, an honest rater is marked in .052 of those with different items",
        "and 200 votes each, and intervals of the design with 20 unequal raters hold .944.",
        "",
        "`weigh_raters=True`, which version 0.3 had, with twenty honest raters and equal items. It",
        "is gone:",
        "",
        *make_table(
            ["votes", "false claims", "intervals"], weighed, ["false", "intervals"], [before]
        ),
    ]  # fmt: skip
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=100, help="boards per design")
    parser.add_argument("--json", type=Path, help="write the numbers, and no page")
    options = parser.parse_args()
    found = measure(options.n, "")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return
    write_page(found, json.loads(BEFORE.read_text("utf-8")), PAGE)
    wrong = {key: each["false"] for key, each in found.items() if each.get("false", 0) > LIMIT}
    if wrong:
        raise SystemExit(f"more false claims than 5% and chance: {wrong}")


LIMIT = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)
"""More false claims than this are not chance, in 100 boards or more."""


if __name__ == "__main__":
    main()
