"""How fast inputs are classified, against the softmax that any classifier pays for anyway.

Run with ``make bench``: one thread, and the answers are checked before their time counts.
"""

import tracemalloc
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

import rankshot as rs
from rankshot.datasets.cifar import cifar10_classes, cifar100_classes
from rankshot.datasets.similarities import load_similarities

AT_MOST = 1.25
"""How many times a softmax of the same scores the classification may take."""


def head_of(n_items: int, n_targets: int, k: int, rng: np.random.Generator) -> Any:
    items = [f"item{i}" for i in range(n_items)]
    orders = [[items[i] for i in rng.permutation(n_items)[:k]] for _ in range(n_targets)]
    targets = [f"target{z:04}" for z in range(n_targets)]
    rankings = rs.Rankings.from_orders(orders, items=items, targets=targets)
    return rs.ProbabilisticRanking(k=k).fit(rankings)


def best_of(work: Callable[[], Any], repeat: int = 7) -> float:
    best = np.inf
    for _ in range(repeat):
        begin = perf_counter()
        work()
        best = min(best, perf_counter() - begin)
    return best


def check(head: Any, scores: np.ndarray) -> None:
    """Hold some answers to the formula, in double precision and plain NumPy."""
    few = scores[:50].astype(np.float64)
    lists = head.consensus_.entries.reshape(len(head.classes_), -1)
    expected = np.zeros((len(few), len(lists)))
    for z, items in enumerate(lists):
        left = few.copy()
        for item in items:
            expected[:, z] += log_softmax(left, axis=1)[:, item]
            left[:, item] = -np.inf
    expected = log_softmax(expected, axis=1)
    assert np.abs(head.predict_log_proba(few) - expected).max() < 1e-9
    assert np.abs(head.predict_log_proba(scores[:50]) - expected).max() < 1e-3


def against_softmax(rng: np.random.Generator) -> bool:
    print("ProbabilisticRanking.predict_log_proba against scipy.special.softmax, 100 items, K=4")
    head = head_of(100, 10, 4, rng)
    right = True
    for gap in (3.0, 10.0):
        scores = (gap * rng.normal(size=(200_000, 100))).astype(np.float32)
        check(head, scores)
        ours = best_of(lambda s=scores: head.predict_log_proba(s))
        theirs = best_of(lambda s=scores: softmax(s, axis=1))
        ratio = ours / theirs
        right &= ratio <= AT_MOST
        print(
            f"  200,000 inputs of float32, scores spread by {gap:g}, 10 targets: {ours:.3f} s, "
            f"softmax {theirs:.3f} s, ratio {ratio:.2f} (at most {AT_MOST})"
        )
    return right


def growth(rng: np.random.Generator) -> None:
    print("Cost by inputs and targets (100 items, K=4, float32)")
    for n, targets in ((50_000, 10), (100_000, 10), (200_000, 10), (50_000, 100), (50_000, 1000)):
        head = head_of(100, targets, 4, rng)
        scores = rng.normal(size=(n, 100)).astype(np.float32)
        seconds = best_of(lambda h=head, s=scores: h.predict_log_proba(s), repeat=3)
        print(
            f"  {n:,} inputs, {targets:,} targets: {seconds:.3f} s, "
            f"{seconds / n / targets * 1e9:.0f} ns an input and target"
        )


def ties(rng: np.random.Generator) -> None:
    table = load_similarities()["WordNet"].select(cifar10_classes(), cifar100_classes())
    head = rs.ProbabilisticRanking(k=4).fit(table.to_rankings())
    scores = (3 * rng.normal(size=(2000, 100))).astype(np.float32)
    seconds = best_of(lambda: head.predict_log_proba(scores), repeat=3)
    print(
        f"Ties: WordNet's rankings of 10 targets, K=4, 2,000 inputs: {seconds:.2f} s, "
        f"{seconds / len(scores) * 1e3:.2f} ms an input"
    )


def memory(rng: np.random.Generator) -> bool:
    head = head_of(1000, 1000, 4, rng)
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
    growth(rng)
    ties(rng)
    right &= memory(rng)
    if not right:
        raise SystemExit("a claim does not hold in this run")


if __name__ == "__main__":
    main()
