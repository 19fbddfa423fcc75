"""The speed of Plackett-Luce fits of short lists, equal lists and few lists, against choix.

Run it with ``make bench``. Times are those of the processor, on one thread, and answers are
compared before they count.
"""

from collections.abc import Callable
from time import process_time
from typing import Any

import choix
import numpy as np

import rankshot as rs
from ranking import Result, measure_time, show, show_header


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
    ours, model = measure_time(
        lambda: rs.PlackettLuce(regularization=0).fit(rankings), repeat=3, clock=process_time
    )
    theirs, params = measure_time(lambda: peer(1000, data), clock=process_time)
    assert np.abs(model.log_worths_ - (params - params.mean())).max() < 1e-5
    return Result(
        f"Plackett-Luce MLE, {n:,} {what} of 1,000", f"choix.{peer.__name__}", ours, theirs, 5
    )


def equal_lists(rng: np.random.Generator) -> Result:
    worths = 0.3 * rng.normal(size=20)
    lists = np.argsort(-(worths + rng.gumbel(size=(1_000_000, 20))), axis=1)[:, :3]
    rankings = rs.Rankings.from_item_numbers(lists, items=range(20))
    ours, model = measure_time(
        lambda: rs.PlackettLuce(regularization=0).fit(rankings), repeat=3, clock=process_time
    )
    some = rng.integers(0, len(lists), 10_000)
    complete = [(row, np.setdiff1d(np.arange(20), row).tolist()) for row in lists[some].tolist()]
    data = [(row[i], row[i + 1 :] + rest) for row, rest in complete for i in range(3)]
    theirs, params = measure_time(lambda: choix.ilsr_top1(20, data), clock=process_time)
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
    ours, models = measure_time(
        lambda: [rs.PlackettLuce(regularization=0).fit(rankings) for _ in range(times)],
        repeat=5,
        clock=process_time,
    )
    theirs, params = measure_time(
        lambda: [choix.ilsr_rankings(5, data) for _ in range(times)], repeat=5, clock=process_time
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
        lambda: [rs.PlackettLuce().fit(many) for _ in range(times)], repeat=3, clock=process_time
    )
    data = [(item, list(range(item + 1, 1000))) for item in order]
    theirs, params = measure_time(
        lambda: choix.opt_top1(1000, data, alpha=0.005, method="BFGS"), clock=process_time
    )
    assert np.abs(found[0].log_worths_ - (params - params.mean())).max() < 1e-2
    assert len(rs.PlackettLuce().fit(few).worths_) == 11
    return Result(
        "Plackett-Luce, one top-10 list of 1,000", "choix.opt_top1", ours / times, theirs, 20
    )


def main() -> None:
    rng = np.random.default_rng(1)
    show_header()
    show(subsets(rng, 20_000, 2, "pairs", choix.ilsr_pairwise))
    show(subsets(rng, 5_000, 3, "triples", choix.ilsr_rankings))
    show(subsets(rng, 5_000, 10, "lists of 10", choix.ilsr_rankings))
    show(equal_lists(rng))
    show(few_lists(rng))
    show(one_list())


if __name__ == "__main__":
    main()
