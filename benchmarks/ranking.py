"""The speed of the statistics of rankings, as ratios to other libraries in the same run.

Run it with ``make bench``: on one thread. Times are those of the processor (of exact Kemeny those
of the clock, as corankco starts a process), and every answer is compared with that of the other
library before its time counts. It fails if a ratio is below the limit in the last column.
"""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, NamedTuple

import choix
import corankco
import numpy as np
from corankco.algorithms.bioconsert import BioConsert
from corankco.algorithms.borda.borda import BordaCount
from corankco.algorithms.exact.exactalgorithmpulp import ExactAlgorithmPulp
from preflibtools.instances import OrdinalInstance
from prefsampling.ordinal import (
    mallows as prefsampling_mallows,
    plackett_luce as prefsampling_plackett_luce,
)
from scipy.stats import kendalltau, rankdata

import rankshot as rs


class Result(NamedTuple):
    work: str
    peer: str
    ours: float
    theirs: float
    at_least: float


def measure_time(
    work: Callable[[], Any], repeat: int = 1, clock: Callable[[], float] = process_time
) -> tuple[float, Any]:
    """Return the shortest time of some runs, and the answer."""
    return measure_in_turns(work, repeat=repeat, clock=clock)[0]


def measure_in_turns(
    *works: Callable[[], Any], repeat: int = 5, clock: Callable[[], float] = process_time
) -> list[tuple[float, Any]]:
    """Return the shortest time of each work, and its answer.

    The works take turns, so that a machine that becomes slower slows down all of them.
    """
    best, answers = np.full(len(works), np.inf), [None] * len(works)
    for _ in range(repeat):
        for nth, work in enumerate(works):
            begin = clock()
            answers[nth] = work()
            best[nth] = min(best[nth], clock() - begin)
    return list(zip(best.tolist(), answers, strict=True))


def plackett_luce_full(rng: np.random.Generator) -> Result:
    worths = rng.normal(size=40)
    orders = np.argsort(-(worths + rng.gumbel(size=(5000, 40))), axis=1)
    rankings = rs.Rankings.from_item_numbers(orders, items=range(40))
    data = [tuple(row) for row in orders.tolist()]
    (ours, model), (theirs, params) = measure_in_turns(
        lambda: rs.PlackettLuce(regularization=0).fit(rankings),
        lambda: choix.ilsr_rankings(40, data),
        repeat=3,
    )
    assert np.abs(model.log_worths_ - (params - params.mean())).max() < 1e-5
    return Result(
        "Plackett-Luce MLE, 5,000 full rankings of 40", "choix.ilsr_rankings", ours, theirs, 50
    )


def plackett_luce_top(rng: np.random.Generator) -> Result:
    worths = rng.normal(size=100)
    orders = np.argsort(-(worths + rng.gumbel(size=(500, 100))), axis=1)
    rankings = rs.Rankings.from_item_numbers(orders[:, :10], items=range(100))
    data = [(row[i], row[i + 1 :]) for row in orders.tolist() for i in range(10)]
    (ours, model), (theirs, params) = measure_in_turns(
        lambda: rs.PlackettLuce(regularization=0).fit(rankings),
        lambda: choix.ilsr_top1(100, data),
        repeat=3,
    )
    assert np.abs(model.log_worths_ - (params - params.mean())).max() < 1e-4
    return Result("Plackett-Luce MLE, 500 top-10 lists of 100", "choix.ilsr_top1", ours, theirs, 50)


def leaderboard_of_pairs(rng: np.random.Generator) -> Result:
    theta = rng.normal(size=100)
    first = rng.integers(0, 100, size=100_000)
    second = (first + rng.integers(1, 100, size=first.size)) % 100
    wins = rng.random(first.size) < 1 / (1 + np.exp(theta[second] - theta[first]))
    pairs = np.where(wins, [first, second], [second, first])
    votes = rs.Rankings.from_pairs(*pairs, items=range(100))
    model = rs.PlackettLuce(regularization=0)

    def make_board() -> rs.leaderboards.Leaderboard:
        board = rs.leaderboard(votes, model)
        assert board.rank_intervals.shape == (100, 2)
        return board

    data = list(zip(*pairs.tolist(), strict=True))
    (ours, board), (theirs, params) = measure_in_turns(
        make_board, lambda: choix.ilsr_pairwise(100, data)
    )
    peer = (params - params.mean())[[int(item) for item in board.items]]
    assert np.abs(board.log_worths - peer).max() < 1e-5
    work = "leaderboard with rank intervals, 100,000 pairs of 100"
    return Result(work, "choix.ilsr_pairwise, the fit alone", ours, theirs, 2)


def kendall_full(rng: np.random.Generator) -> Result:
    places = np.argsort(rng.random((2000, 100)), axis=1) + 1
    rankings = rs.Rankings.from_positions(places, items=range(100))
    ours, distance = measure_time(lambda: rs.kendall_distance(rankings), repeat=3)
    pairs = rng.integers(0, 2000, size=(1000, 2)).tolist()
    theirs, taus = measure_time(
        lambda: [kendalltau(places[i], places[j]).statistic for i, j in pairs]
    )
    expected = np.round(100 * 99 / 4 * (1 - np.array(taus)))
    assert np.array_equal(distance[tuple(np.transpose(pairs))], expected)
    scaled = theirs * 2000**2 / len(pairs)
    return Result(
        "Kendall distances, 2,000 x 2,000 rankings of 100",
        "scipy.stats.kendalltau, sampled",
        ours,
        scaled,
        1000,
    )


def hausdorff_by_pairs(a: list[int], b: list[int], k: int) -> int:
    """Return the distance by its definition: opposite pairs, and pairs tied in one list alone."""
    opposite = tied_a = tied_b = 0
    for i in range(len(a)):
        for j in range(i):
            in_a = min(a[i], k + 1) - min(a[j], k + 1)
            in_b = min(b[i], k + 1) - min(b[j], k + 1)
            if in_a * in_b < 0:
                opposite += 1
            elif in_a == 0 != in_b:
                tied_a += 1
            elif in_b == 0 != in_a:
                tied_b += 1
    return opposite + max(tied_a, tied_b)


def critchlow_by_sets(a: list[int], b: list[int], k: int) -> float:
    """Return the closed formula (the paper's equation 5, corrected), by a loop over items."""
    n = len(a)
    both = [i for i in range(n) if a[i] <= k and b[i] <= k]
    only_a = [i for i in range(n) if a[i] <= k < b[i]]
    only_b = [i for i in range(n) if b[i] <= k < a[i]]
    inverted = sum(a[i] < a[j] and b[i] > b[j] for i in both for j in both)
    shared = len(only_a) * (n + k - (len(only_a) - 1) / 2)
    return inverted + shared - sum(a[i] for i in only_a) - sum(b[i] for i in only_b)


def kendall_top(rng: np.random.Generator) -> list[Result]:
    places = np.argsort(rng.random((2000, 100)), axis=1) + 1
    rankings = rs.Rankings.from_positions(places, items=range(100))
    ours, distance = measure_time(lambda: rs.kendall_distance(rankings, k=10), repeat=3)
    rows = places.tolist()
    results = []
    for name, loop, n, at_least in (
        ("a loop over the definition, sampled", hausdorff_by_pairs, 100, 1000),
        ("a loop over the closed formula, sampled", critchlow_by_sets, 5000, 0),
    ):
        pairs = rng.integers(0, 2000, size=(n, 2)).tolist()
        theirs, values = measure_time(
            lambda loop=loop, pairs=pairs: [loop(rows[i], rows[j], 10) for i, j in pairs]
        )
        assert np.array_equal(distance[tuple(np.transpose(pairs))], values)
        scaled = theirs * 2000**2 / len(pairs)
        results.append(Result("top-10 Kendall, the same", name, ours, scaled, at_least))
    return results


def votes(n: int, n_items: int, spread: float, seed: int) -> tuple[rs.Rankings, corankco.Dataset]:
    center = rs.Mallows.from_center(range(n_items), spread)
    sample = center.sample(n, random_state=seed)
    dataset = corankco.Dataset.from_raw_list(
        [[{int(x)} for x in order] for order in sample.orders()]
    )
    return sample, dataset


SCHEME = corankco.ScoringScheme.get_unifying_scoring_scheme()


def kemeny_exact() -> Result:
    sample, dataset = votes(50, 40, 0.02, seed=1)
    ours, found = measure_time(lambda: rs.kemeny(sample, "exact"), clock=perf_counter)
    theirs, peer = measure_time(
        lambda: ExactAlgorithmPulp().compute_consensus_rankings(dataset, SCHEME, True),
        clock=perf_counter,
    )
    assert found.optimal
    assert found.score == peer.kemeny_score
    return Result(
        "exact Kemeny, 50 rankings of 40, spread .02",
        "corankco.ExactAlgorithmPulp",
        ours,
        theirs,
        200,
    )


def kemeny_exact_large() -> str:
    sample, _ = votes(50, 100, 0.02, seed=2)
    ours, found = measure_time(lambda: rs.kemeny(sample, "exact"))
    assert found.optimal
    return (
        f"exact Kemeny, 50 rankings of 100, spread .02: no peer can; {ours:.2f} s, "
        f"score {found.score:g}, bound {found.bound:g}, proven"
    )


def kemeny_insertion() -> Result:
    sample, dataset = votes(500, 100, 0.02, seed=3)
    small = votes(5, 10, 0.1, seed=0)[1]
    BioConsert().compute_consensus_rankings(small, SCHEME, True)  # compiles on first use
    (ours, found), (theirs, peer) = measure_in_turns(
        lambda: rs.kemeny(sample, "insertion"),
        lambda: BioConsert().compute_consensus_rankings(dataset, SCHEME, True),
        repeat=3,
    )
    assert found.score <= peer.kemeny_score
    work = f"Kemeny by insertion, 500 rankings of 100: {found.score:g} to {peer.kemeny_score:g}"
    return Result(work, "corankco.BioConsert", ours, theirs, 50)


def few_votes() -> list[Result]:
    """Measure what a call costs for a handful of rankings.

    corankco starts a process for each exact answer. pref_voting, which needs another NumPy and is
    not measured here, is much faster than corankco on so few rankings.
    """
    sample, dataset = votes(10, 5, 0.1, seed=4)
    kemeny, found = measure_time(lambda: rs.kemeny(sample, "exact"), repeat=50, clock=perf_counter)
    theirs, peer = measure_time(
        lambda: ExactAlgorithmPulp().compute_consensus_rankings(dataset, SCHEME, True),
        repeat=3,
        clock=perf_counter,
    )
    assert found.score == peer.kemeny_score
    work = "10 rankings of 5: {}"
    results = [
        Result(work.format("exact Kemeny"), "corankco.ExactAlgorithmPulp", kemeny, theirs, 2)
    ]
    (borda, found), (theirs, peer) = measure_in_turns(
        lambda: rs.borda(sample),
        lambda: BordaCount().compute_consensus_rankings(dataset, SCHEME, True),
        repeat=50,
    )
    groups = [{str(item) for item in bucket} for bucket in peer.consensus_rankings[0]]
    assert groups == [{x} if isinstance(x, str) else set(x) for x in found.order]
    return [*results, Result(work.format("Borda"), "corankco.BordaCount", borda, theirs, 2)]


def borda_long(rng: np.random.Generator) -> Result:
    rankings = rs.Rankings.from_item_numbers(
        np.argsort(rng.random((200, 10_000)), axis=1), items=range(10_000)
    )
    places = rankings.positions()
    (ours, found), (theirs, mean) = measure_in_turns(
        lambda: rs.borda(rankings), lambda: rankdata(places, axis=1).mean(axis=0)
    )
    first = found.order[0] if isinstance(found.order[0], str) else found.order[0][0]
    assert mean[int(first)] == mean.min()
    work = "Borda, 200 rankings of 10,000"
    return Result(work, "mean of scipy.stats.rankdata", ours, theirs, 2)


def read_by_peer(path: str) -> OrdinalInstance:
    peer = OrdinalInstance()
    peer.parse_file(path)
    return peer


def preflib_files(rng: np.random.Generator) -> list[Result]:
    results = []
    for ending, name, tables in (
        (".soc", "strict", np.argsort(rng.random((17_000, 20)), axis=1)),
        (".toc", "with ties", rng.integers(0, 8, (17_000, 20))),
    ):
        rankings = rs.Rankings.from_scores(tables, items=range(20))
        with TemporaryDirectory() as folder:
            path = f"{folder}/votes{ending}"
            rs.write_rankings(rankings, path)
            (ours, found), (theirs, peer) = measure_in_turns(
                partial(rs.read_rankings, path), partial(read_by_peer, path)
            )
        assert peer.num_voters == found.weights.sum() == 17_000
        first = tuple(
            tuple(int(name) + 1 for name in (group if isinstance(group, list) else [group]))
            for group in found.orders()[0]
        )
        assert sorted(map(sorted, peer.orders[0])) == sorted(map(sorted, first))
        work = f"reading 340,000 entries of PrefLib's {ending} ({name})"
        results.append(Result(work, "preflibtools", ours, theirs, 0.5))
    return results


def pairs_with_ties(rng: np.random.Generator) -> list[Result]:
    """100,000 votes between two of 100 items, a fifth of them ties."""
    n, C = 100_000, 100
    names = np.array([f"model-{i}" for i in range(C)])
    theta = rng.normal(size=C)
    first = rng.integers(0, C, n)
    second = (first + rng.integers(1, C, n)) % C
    weights = np.stack([theta[first], theta[second], (theta[first] + theta[second]) / 2 - 0.5])
    outcome = np.argmax(weights + rng.gumbel(size=(3, n)), axis=0)
    winner, loser = np.where(outcome == 1, [second, first], [first, second])
    ties = outcome == 2
    (ours, rankings), (theirs, (items, _)) = measure_in_turns(
        lambda: rs.Rankings.from_pairs(names[winner], names[loser], ties=ties),
        lambda: np.unique([names[winner], names[loser]], return_inverse=True),
    )
    assert rankings.items == tuple(items)
    work = "100,000 pairs of names to rankings"
    results = [Result(work, "np.unique of the names", ours, theirs, 1)]
    decided = list(zip(winner[~ties].tolist(), loser[~ties].tolist(), strict=True))
    (ours, board), (theirs, params) = measure_in_turns(
        lambda: rs.leaderboard(rankings, rs.PlackettLuce(regularization=0)),
        lambda: choix.ilsr_pairwise(C, decided),
    )
    log_worths = board.log_worths[[board.items.index(name) for name in names]]
    assert np.abs(log_worths - theta + theta.mean()).max() < 0.25
    assert np.abs(log_worths - params + params.mean()).max() < 0.25
    assert abs(np.log(board.tie_parameter) + 0.5) < 0.05
    work = "leaderboard, 100,000 pairs with ties of 100"
    results.append(Result(work, "choix.ilsr_pairwise without the ties", ours, theirs, 1))

    return results


def require_same_mean(ours: rs.Rankings, theirs: np.ndarray, center: list[int]) -> None:
    """Require the same mean distance from a centre of two samples, within five errors."""
    peer = rs.Rankings.from_item_numbers(np.asarray(theirs), items=ours.items)
    at = rs.Rankings.from_orders([center], items=ours.items)
    one, two = (rs.kendall_distance(r[:2000], at)[:, 0] for r in (ours, peer))
    error = np.sqrt(one.var() / one.size + two.var() / two.size)
    assert abs(one.mean() - two.mean()) < 5 * error


def samples(rng: np.random.Generator) -> list[Result]:
    n, few = 100_000, 1000
    theta = rng.normal(size=100)
    by_worth = np.argsort(-theta).tolist()
    model = rs.PlackettLuce.from_worths(dict(enumerate(np.exp(theta).tolist())))
    ours, drawn = measure_time(lambda: model.sample(n, random_state=0))
    work = "100,000 Plackett-Luce samples of 100 items"
    np.random.seed(0)  # noqa: NPY002 - choix draws from NumPy's global generator
    theirs, peer = measure_time(lambda: choix.generate_rankings(theta, few, size=100))
    require_same_mean(drawn, np.array(peer), by_worth)
    results = [Result(work, "choix.generate_rankings, sampled", ours, theirs * n / few, 20)]
    theirs, peer = measure_time(
        lambda: prefsampling_plackett_luce(few, 100, np.exp(theta).tolist(), seed=0)
    )
    require_same_mean(drawn, peer, by_worth)
    results.append(Result(work, "prefsampling, sampled", ours, theirs * n / few, 20))

    model = rs.Mallows.from_center(range(100), 0.1)
    ours, drawn = measure_time(lambda: model.sample(n, random_state=0))
    theirs, peer = measure_time(lambda: prefsampling_mallows(few, 100, np.exp(-0.1), seed=0))
    require_same_mean(drawn, peer, list(range(100)))
    work = "100,000 Mallows samples of 100 items"
    return [*results, Result(work, "prefsampling, sampled", ours, theirs * n / few, 20)]


def show_header() -> None:
    print(f"{'work':<63}{'against':<42}{'ours, s':>9}{'theirs, s':>11}{'ratio':>11}{'at least':>9}")


def show(result: Result) -> bool:
    """Print a result; return whether it is as fast as it should be."""
    ratio = result.theirs / result.ours
    wanted = f"{result.at_least:,g}x" if result.at_least else "-"
    verdict = "" if ratio >= result.at_least else "  BELOW"
    print(
        f"{result.work:<63}{result.peer:<42}{result.ours:>9.4f}{result.theirs:>11.2f}"
        f"{ratio:>10,.{1 if ratio < 10 else 0}f}x{wanted:>9}{verdict}",
        flush=True,
    )
    return not verdict


def show_all(parts: Iterable[Callable[[], Result | list[Result]]]) -> None:
    """Measure and print; exit with an error if something is slower than it should be."""
    show_header()
    slow = []
    for part in parts:
        found = part()
        results = [found] if isinstance(found, Result) else found
        slow += [result.work for result in results if not show(result)]
    if slow:
        sys.exit(f"too slow: {'; '.join(slow)}")


def main() -> None:
    rng = np.random.default_rng(0)
    drawn = (
        plackett_luce_full, plackett_luce_top, leaderboard_of_pairs, kendall_full, kendall_top,
        borda_long, pairs_with_ties, samples, preflib_files,
    )  # fmt: skip
    print(kemeny_exact_large(), flush=True)
    show_all([*(partial(part, rng) for part in drawn), kemeny_exact, kemeny_insertion, few_votes])


if __name__ == "__main__":
    main()
