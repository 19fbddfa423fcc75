"""Time and memory of a head, compared with a softmax of the same scores.

Run with ``make bench``, in one thread; the answers are checked before they are timed. The claimed
ratios are those of the paper's head: one consensus per target, K = 4, equal weights of all places.
"""

import tracemalloc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

import rankshot as rs
from rankshot.datasets import class_names, load_similarities

AT_MOST = 1.25
"""The largest ratio of the time of the paper's head to that of a softmax of the same scores."""

PAPER = {"k": 4, "posterior": "consensus", "decay": 0}
"""The paper's head; the default head takes the mean over all rankings, and K = 10."""


def rankings_of(
    n_items: int, n_targets: int, k: int, rng: np.random.Generator, raters: int = 1
) -> rs.Rankings:
    items = [f"item{i}" for i in range(n_items)]
    targets = [f"target{z:04}" for z in range(n_targets) for _ in range(raters)]
    orders = [[items[i] for i in rng.permutation(n_items)[:k]] for _ in targets]
    return rs.Rankings.from_orders(orders, items=items, targets=targets)


def head_of(n_items: int, n_targets: int, rng: np.random.Generator) -> Any:
    """Return the paper's head, fitted to one ranking per target."""
    return rs.ProbabilisticRanking(**PAPER).fit(rankings_of(n_items, n_targets, 4, rng))


def best_of(work: Callable[[], Any], repeat: int = 7) -> float:
    best = np.inf
    for _ in range(repeat):
        begin = perf_counter()
        work()
        best = min(best, perf_counter() - begin)
    return best


def check(head: Any, scores: np.ndarray) -> None:
    """Compare some answers with the formula in plain NumPy and double precision."""
    few = scores[:50].astype(np.float64)
    compared = head.rankings_ if head.posterior == "mean" else head.consensus_
    expected = np.zeros((len(few), len(head.classes_)))
    for order, target in zip(compared.orders(), compared.targets, strict=True):
        left, z = few.copy(), np.flatnonzero(head.classes_ == target)
        share = 1 / (compared.targets == target).sum()
        for place, name in enumerate(order, 1):
            item = head.items_.index(name)
            expected[:, z] += share * place**-head.decay * log_softmax(left, axis=1)[:, [item]]
            left[:, item] = -np.inf
    expected = log_softmax(expected, axis=1)
    assert np.abs(head.predict_log_proba(few) - expected).max() < 1e-9
    assert np.abs(head.predict_log_proba(scores[:50]) - expected).max() < 1e-3


def against_softmax(rng: np.random.Generator) -> bool:
    print(
        "ProbabilisticRanking(k=4, posterior='consensus', decay=0).predict_log_proba against "
        "scipy.special.softmax, 100 items"
    )
    head = head_of(100, 10, rng)
    right = True
    for std in (3.0, 10.0):
        scores = (std * rng.normal(size=(200_000, 100))).astype(np.float32)
        check(head, scores)
        ours = best_of(lambda s=scores: head.predict_log_proba(s))
        theirs = best_of(lambda s=scores: softmax(s, axis=1))
        ratio = ours / theirs
        right &= ratio <= AT_MOST
        print(
            f"  200,000 inputs of float32, scores with standard deviation {std:g}, 10 targets: "
            f"{ours:.3f} s, softmax {theirs:.3f} s, ratio {ratio:.2f} (at most {AT_MOST})"
        )
    return right


def default_head(rng: np.random.Generator) -> None:
    """Print the time for eight rankings per target that are not merged; no ratio is claimed."""
    head = rs.ProbabilisticRanking().fit(rankings_of(100, 10, 10, rng, raters=8))
    scores = (3 * rng.normal(size=(200_000, 100))).astype(np.float32)
    check(head, scores)
    ours = best_of(lambda: head.predict_log_proba(scores), repeat=3)
    theirs = best_of(lambda: softmax(scores, axis=1), repeat=3)
    print(
        f"The default head, the mean of 8 rankings per target, K=10, decay .5: 200,000 inputs of "
        f"float32, 10 targets: {ours:.3f} s, softmax {theirs:.3f} s, ratio {ours / theirs:.1f}"
    )


def growth(rng: np.random.Generator) -> None:
    print("Cost of the paper's head by inputs and targets (100 items, K=4, float32)")
    for n, targets in ((50_000, 10), (100_000, 10), (200_000, 10), (50_000, 100), (50_000, 1000)):
        head = head_of(100, targets, rng)
        scores = rng.normal(size=(n, 100)).astype(np.float32)
        seconds = best_of(lambda h=head, s=scores: h.predict_log_proba(s), repeat=3)
        print(
            f"  {n:,} inputs, {targets:,} targets: {seconds:.3f} s, "
            f"{seconds / n / targets * 1e9:.0f} ns per input and target"
        )


def ties(rng: np.random.Generator) -> None:
    seen, new = class_names("cifar")
    table = load_similarities()["WordNet"].select(new, seen)
    head = rs.ProbabilisticRanking(**PAPER).fit(table.to_rankings())
    scores = (3 * rng.normal(size=(2000, 100))).astype(np.float32)
    seconds = best_of(lambda: head.predict_log_proba(scores), repeat=3)
    print(
        f"Ties: the paper's head, WordNet's rankings of 10 targets, 2,000 inputs: {seconds:.2f} s, "
        f"{seconds / len(scores) * 1e3:.2f} ms per input"
    )


def memory(rng: np.random.Generator) -> bool:
    head = head_of(1000, 1000, rng)
    scores = rng.normal(size=(10_000, 1000)).astype(np.float32)
    head.predict_log_proba(scores[:10])
    tracemalloc.start()
    answer = head.predict_log_proba(scores)
    peak = tracemalloc.get_traced_memory()[1] + scores.nbytes
    tracemalloc.stop()
    share = peak / (scores.nbytes + answer.nbytes)
    print(
        f"Memory for 10,000 inputs, 1,000 targets of 1,000 items: {share:.2f} times input plus "
        "output (at most 2)"
    )
    return share <= 2


def main() -> None:
    rng = np.random.default_rng(0)
    right = against_softmax(rng)
    default_head(rng)
    growth(rng)
    ties(rng)
    right &= memory(rng)
    if not right:
        raise SystemExit("a claim does not hold in this run")


if __name__ == "__main__":
    main()
