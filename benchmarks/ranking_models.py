"""The speed of Plackett-Luce fits of short lists, equal lists and few lists, against choix; of
leaderboards from a file of votes, against pandas and evalica; of covariates, against scikit-learn.

Run it with ``make bench``. Times are those of the processor, on one thread, and answers are
compared before they count.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import choix
import evalica
import numpy as np
import pandas as pd
from scipy.sparse import csr_array, hstack
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from ranking import Result, measure_in_turns, measure_time, show_all

FILES = {20_000: 1.0, 200_000: 1.0, 2_000_000: 1.4}
"""How many votes files have, and how fast a board is at least."""


def draw_subsets(rng: np.random.Generator, n: int, k: int, C: int) -> np.ndarray:
    """Draw rankings of k of C items whose worths differ little, so that all are connected."""
    lists = np.argsort(rng.random((n, C)), axis=1)[:, :k]
    noisy = 0.3 * rng.normal(size=C)[lists] + rng.gumbel(size=lists.shape)
    return np.take_along_axis(lists, np.argsort(-noisy, axis=1), axis=1)


def subsets(
    rng: np.random.Generator, n: int, k: int, what: str, peer: Callable[..., Any]
) -> Result:
    lists = draw_subsets(rng, n, k, 1000)
    data = [tuple(row) for row in lists.tolist()]
    rankings = rs.Rankings.from_orders(data, items=range(1000), kind="subset")
    ours, model = measure_time(lambda: rs.PlackettLuce(regularization=0).fit(rankings), repeat=3)
    theirs, params = measure_time(lambda: peer(1000, data))
    assert np.abs(model.log_worths_ - (params - params.mean())).max() < 1e-5
    return Result(
        f"Plackett-Luce MLE, {n:,} {what} of 1,000", f"choix.{peer.__name__}", ours, theirs, 2
    )


def equal_lists(rng: np.random.Generator) -> Result:
    worths = 0.3 * rng.normal(size=20)
    lists = np.argsort(-(worths + rng.gumbel(size=(1_000_000, 20))), axis=1)[:, :3]
    rankings = rs.Rankings.from_item_numbers(lists, items=range(20))
    ours, model = measure_time(lambda: rs.PlackettLuce(regularization=0).fit(rankings), repeat=3)
    some = rng.integers(0, len(lists), 10_000)
    complete = [(row, np.setdiff1d(np.arange(20), row).tolist()) for row in lists[some].tolist()]
    data = [(row[i], row[i + 1 :] + rest) for row, rest in complete for i in range(3)]
    theirs, params = measure_time(lambda: choix.ilsr_top1(20, data))
    fitted = rs.PlackettLuce(regularization=0).fit(rankings[some])
    assert np.abs(fitted.log_worths_ - (params - params.mean())).max() < 1e-5
    assert np.abs(model.log_worths_ - fitted.log_worths_).max() < 0.2
    return Result(
        "Plackett-Luce MLE, 1,000,000 top-3 lists of 20, 6,840 distinct",
        "choix.ilsr_top1, sampled",
        ours,
        theirs * len(lists) / some.size,
        100,
    )


def few_lists(rng: np.random.Generator) -> Result:
    lists = np.argsort(rng.random((10, 5)), axis=1)
    rankings = rs.Rankings.from_item_numbers(lists, items=range(5))
    data = [tuple(row) for row in lists.tolist()]
    times = 100
    (ours, models), (theirs, params) = measure_in_turns(
        lambda: [rs.PlackettLuce(regularization=0).fit(rankings) for _ in range(times)],
        lambda: [choix.ilsr_rankings(5, data) for _ in range(times)],
    )
    assert np.abs(models[0].log_worths_ - (params[0] - params[0].mean())).max() < 1e-5
    return Result(
        "Plackett-Luce MLE, 10 rankings of 5, 100 times", "choix.ilsr_rankings", ours, theirs, 1
    )


def one_list() -> Result:
    """Unlisted items share one worth: a list of 10 of 1,000 items takes as long as one of 11."""
    order = list(range(10))
    many, few = (rs.Rankings.from_orders([order], items=range(C)) for C in (1000, 11))
    times = 20
    ours, found = measure_time(
        lambda: [rs.PlackettLuce().fit(many) for _ in range(times)], repeat=3
    )
    data = [(item, list(range(item + 1, 1000))) for item in order]
    theirs, params = measure_time(lambda: choix.opt_top1(1000, data, alpha=0.005, method="BFGS"))
    assert np.abs(found[0].log_worths_ - (params - params.mean())).max() < 1e-2
    assert len(rs.PlackettLuce().fit(few).worths_) == 11
    return Result(
        "Plackett-Luce, one top-10 list of 1,000", "choix.opt_top1", ours / times, theirs, 20
    )


def draw_votes(rng: np.random.Generator, n: int, C: int) -> pd.DataFrame:
    """Draw votes with ties by judges, and the differences of four features."""
    theta, X = rng.normal(size=C), rng.normal(size=(n, 4))
    a = rng.integers(0, C, n)
    b = (a + rng.integers(1, C, n)) % C
    chance = 1 / (1 + np.exp(theta[b] - theta[a] - X @ [0.3, -0.2, 0.1, 0.0]))
    outcome = np.where(rng.random(n) < 0.15, 2, rng.random(n) > chance)
    names = np.array([f"model {i:03}" for i in range(C)])
    words = np.array(["model_a", "model_b", "tie"])
    votes = pd.DataFrame({"model_a": names[a], "model_b": names[b], "winner": words[outcome]})
    votes["judge"] = np.char.add("judge ", rng.integers(0, n // 50, n).astype(str))
    return votes.join(pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"]))


def from_file(rng: np.random.Generator, n: int, at_least: float) -> Result:
    """A board with intervals, clustered by judge, against ratings without intervals."""
    winners = {"model_a": evalica.Winner.X, "model_b": evalica.Winner.Y, "tie": evalica.Winner.Draw}

    def peer(path: Path) -> Any:
        votes = pd.read_csv(path)
        return evalica.bradley_terry(votes.model_a, votes.model_b, votes.winner.map(winners))

    def board(path: Path) -> rs.leaderboards.Leaderboard:
        return rs.leaderboard(path, rs.PlackettLuce(regularization=1e-6), ties="half")

    with TemporaryDirectory() as folder:
        path = Path(folder, "votes.csv")
        draw_votes(rng, n, 200).drop(columns=["x0", "x1", "x2", "x3"]).to_csv(path, index=False)
        rs.leaderboard(path)
        (ours, found), (theirs, ratings) = measure_in_turns(
            partial(board, path), partial(peer, path)
        )
    theta = np.log(ratings.scores[list(found.items)].to_numpy())
    assert np.abs(found.log_worths - (theta - theta.mean())).max() < 0.01
    work = f"leaderboard from CSV, {n:,} votes of 200 by judges"
    return Result(work, "pandas and evalica, no intervals", ours, theirs, at_least)


def from_lines(rng: np.random.Generator) -> Result:
    """JSON lines of votes take at most three times as long as the same votes in CSV."""
    with TemporaryDirectory() as folder:
        table, lines = (Path(folder, f"votes.{ending}") for ending in ("csv", "jsonl"))
        votes = draw_votes(rng, 200_000, 200).drop(columns=["x0", "x1", "x2", "x3"])
        votes.to_csv(table, index=False)
        votes.to_json(lines, orient="records", lines=True)
        (ours, found), (theirs, same) = measure_in_turns(
            partial(rs.leaderboards.read_votes, lines), partial(rs.leaderboards.read_votes, table)
        )
    assert found.rankings == same.rankings
    return Result("200,000 votes in JSON lines, read", "the same in CSV", ours, theirs, 1 / 3)


def from_start(rng: np.random.Generator) -> Result:
    """The same in new processes: a short run is mostly imports."""
    peer = (
        "import sys, evalica, pandas as pd; v = pd.read_csv(sys.argv[1]); W = evalica.Winner; "
        "w = v.winner.map({'model_a': W.X, 'model_b': W.Y, 'tie': W.Draw}); "
        "evalica.bradley_terry(v.model_a, v.model_b, w)"
    )
    own = "import sys, rankshot as rs; rs.leaderboard(sys.argv[1], ties='half')"

    def run(code: str, path: Path) -> None:
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)

    def children() -> float:
        times = os.times()
        return times.children_user + times.children_system

    with TemporaryDirectory() as folder:
        path = Path(folder, "votes.csv")
        draw_votes(rng, 20_000, 200).to_csv(path, index=False)
        (ours, _), (theirs, _) = measure_in_turns(
            partial(run, own, path), partial(run, peer, path), clock=children
        )
    work = "leaderboard from CSV, 20,000 votes, with imports"
    return Result(work, "pandas and evalica, with imports", ours, theirs, 1)


def with_covariates(rng: np.random.Generator) -> Result:
    votes = draw_votes(rng, 200_000, 100)
    votes = votes[votes.winner != "tie"].reset_index(drop=True)
    names = ["x0", "x1", "x2", "x3"]

    def peer() -> LogisticRegression:
        codes, items = pd.factorize(pd.concat([votes.model_a, votes.model_b]), sort=True)
        n, rows = len(votes), np.arange(len(votes))
        signs = np.repeat([1.0, -1.0], n)
        sides = csr_array((signs, (np.tile(rows, 2), codes)), shape=(n, len(items)))
        X = csr_array(hstack([sides, csr_array(votes[names].to_numpy())]))
        model = LogisticRegression(C=100.0, fit_intercept=False, tol=1e-8, max_iter=1000)
        return model.fit(X, votes.winner == "model_a")

    (ours, board), (theirs, model) = measure_in_turns(
        lambda: rs.leaderboard(votes, covariates=names), peer, repeat=3
    )
    effects = [board.effects[name].value for name in names]
    assert np.abs(model.coef_[0, -4:] - effects).max() < 1e-3
    return Result(
        "votes with four covariates, 170,000 of 100, with errors", "LogisticRegression, no errors",
        ours, theirs, 1,
    )  # fmt: skip


def main() -> None:
    rng = np.random.default_rng(1)
    show_all(
        [
            partial(subsets, rng, 20_000, 2, "pairs", choix.ilsr_pairwise),
            partial(subsets, rng, 5_000, 3, "triples", choix.ilsr_rankings),
            partial(subsets, rng, 5_000, 10, "lists of 10", choix.ilsr_rankings),
            partial(equal_lists, rng),
            partial(few_lists, rng),
            one_list,
            *(partial(from_file, rng, n, least) for n, least in FILES.items()),
            partial(from_lines, rng),
            partial(from_start, rng),
            partial(with_covariates, rng),
        ]
    )


if __name__ == "__main__":
    main()
