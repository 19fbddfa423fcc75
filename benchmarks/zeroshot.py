"""Time and memory of fitted heads, against the matrix product and log-softmax that they contain.

Run with ``make bench``, in one thread; results are checked before they are timed. The benchmark
fails if a `LinearHead` without the bonus for ranks takes more than 2.5 times as long as the product
and the log-softmax, if the default head takes longer than a linear classifier, or if memory is more
than 1.5 times the input and the output. ``--small`` has fewer inputs, to try the script;
times are then printed, and nothing fails.
"""

import argparse
import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot.zeroshot.default_head import PLACE_BONUS

LIMIT = 2.5
"""The largest ratio to a product and a log-softmax, without ranks: 2 on an idle machine."""
SHARE_OF_CLASSIFIER = 1.0
"""The largest ratio of the default head to a linear classifier with 512 features."""
MEMORY = 1.5
"""The largest ratio of memory to that of the input and the output."""
SIZES = [(20_000, 1000, 40), (200_000, 100, 10)]
"""Inputs, seen classes, new classes."""
SMALLER = 50
"""With ``--small`` there are this many times fewer inputs."""


def draw_rankings(
    n_seen: int, n_new: int, rng: np.random.Generator, k: int = 10, raters: int = 8
) -> rs.Rankings:
    items = [f"seen{i:04}" for i in range(n_seen)]
    targets = [f"new{z:04}" for z in range(n_new) for _ in range(raters)]
    orders = [[items[i] for i in rng.permutation(n_seen)[:k]] for _ in targets]
    return rs.Rankings.from_orders(orders, items=items, targets=targets)


def draw_scores(n: int, items: tuple[str, ...], rng: np.random.Generator) -> rs.Scores:
    return rs.Scores(3 * rng.standard_normal((n, len(items)), np.float32), items)


def measure(*works: Callable[[], Any], repeat: int) -> list[float]:
    """Return the least CPU times: other processes of the machine do not count.

    The works take turns, so that a machine that becomes slower slows down all of them.
    """

    def run(work: Callable[[], Any]) -> float:
        begin = process_time()
        work()
        return process_time() - begin

    return np.min([[run(work) for work in works] for _ in range(repeat)], axis=0).tolist()


def check(head: rs.LinearHead, scores: rs.Scores) -> None:
    """Compare some results with the formula in plain NumPy and double precision."""
    few = scores.values[:50].astype(np.float64)
    f = (few - few.mean(axis=1, keepdims=True)) / few.std(axis=1, keepdims=True)
    values = f @ head.slopes.T + head.offsets
    if head.rank_slopes.size:
        bonus = np.zeros_like(few)
        largest = np.argsort(-few, axis=1)[:, : len(PLACE_BONUS)]
        np.put_along_axis(bonus, largest, np.array([PLACE_BONUS]), axis=1)
        values += bonus @ head.rank_slopes.T
    expected = log_softmax(values / head.temperature, axis=1)
    assert np.abs(head.log_proba(few) - expected).max() < 1e-9
    assert np.abs(head.log_proba(scores[:50]) - expected).max() < 1e-3


def compare_with_product(
    n: int, n_seen: int, n_new: int, rng: np.random.Generator, repeat: int
) -> float:
    """Print the times of heads; return the ratio of one without ranks to the product."""
    fitted = rs.WeightedMean().fit(draw_rankings(n_seen, n_new, rng))
    ranks, joint = fitted.head_, rs.zeroshot.SeenAndNew(fitted).fit().head_
    plain = rs.LinearHead(ranks.seen, ranks.classes, ranks.slopes, ranks.offsets)
    scores = draw_scores(n, ranks.seen, rng)
    weights = ranks.slopes.T.astype(np.float32)
    check(plain, scores)
    check(ranks, scores)
    base, *times = measure(
        lambda: log_softmax(scores.values @ weights, axis=1),
        *(lambda head=head: head.log_proba(scores) for head in (plain, ranks, joint)),
        repeat=repeat,
    )
    print(f"{n:,} inputs x {n_seen:,} seen classes, {n_new} new classes, float32")
    print(f"  {'product and log-softmax':42} {base:8.3f} s")
    names = "LinearHead, scores alone", "LinearHead, with ranks", "JointHead, seen and new classes"
    for name, seconds in zip(names, times, strict=True):
        print(f"  {name:42} {seconds:8.3f} s, {seconds / base:5.1f} times", flush=True)
    return times[0] / base


def compare_with_classifier(n: int, rng: np.random.Generator, repeat: int) -> float:
    """Return the time of the default head as a share of that of a linear classifier."""
    n_seen, n_features = 1000, 512
    classifier = LogisticRegression()
    classifier.classes_ = np.arange(n_seen)
    classifier.coef_ = rng.standard_normal((n_seen, n_features), np.float32) / 10
    classifier.intercept_ = np.zeros(n_seen, np.float32)
    X = rng.standard_normal((n, n_features), np.float32)
    fitted = rs.WeightedMean().fit(draw_rankings(n_seen, 40, rng))
    scores = classifier.decision_function(X)
    ours, theirs = measure(
        lambda: fitted.log_proba(scores), lambda: classifier.predict_log_proba(X), repeat=repeat
    )
    print(
        f"LogisticRegression.predict_log_proba, {n:,} inputs, {n_seen:,} classes, {n_features} "
        f"features: {theirs:.3f} s. WeightedMean of its scores, 40 new classes: {ours:.3f} s, "
        f"share {ours / theirs:.2f} (at most {SHARE_OF_CLASSIFIER})"
    )
    return ours / theirs


def measure_memory(n: int, rng: np.random.Generator) -> float:
    """Return the peak of memory as a multiple of the input and the output."""
    head = rs.WeightedMean().fit(draw_rankings(1000, 1000, rng, raters=1)).head_
    scores = draw_scores(n, head.seen, rng)
    head.log_proba(scores[:10])
    tracemalloc.start()
    result = head.log_proba(scores)
    peak = tracemalloc.get_traced_memory()[1] + scores.values.nbytes
    tracemalloc.stop()
    share = peak / (scores.values.nbytes + result.nbytes)
    print(
        f"Memory for {n:,} inputs, 1,000 seen and 1,000 new classes: {share:.2f} times the input "
        f"and the output (at most {MEMORY})"
    )
    return share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="fewer inputs, to try the script")
    is_small = parser.parse_args().small
    rng, repeat = np.random.default_rng(0), 2 if is_small else 7
    factor = SMALLER if is_small else 1
    ratios = [compare_with_product(n // factor, *sizes, rng, repeat) for n, *sizes in SIZES]
    share = compare_with_classifier(10_000 // factor, rng, repeat)
    memory = measure_memory(10_000 // factor, rng)
    fails = max(ratios) > LIMIT or share > SHARE_OF_CLASSIFIER or memory > MEMORY
    if fails and not is_small:
        raise SystemExit("a claim does not hold in this run")


if __name__ == "__main__":
    main()
