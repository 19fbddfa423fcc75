"""Time and memory of a head, compared with a softmax of the same scores.

Run with ``make bench``, in one thread; the answers are checked before they are timed. Ratios to a
softmax are claimed for the default head `WeightedMean` and for `ProbabilisticRanking` (eight
rankings of ten places per target), and for the paper's head (one consensus per target, K = 4, equal
weights of all places). The default head is also compared with the time that the classifier itself
takes.
"""

import tracemalloc
from collections.abc import Callable
from platform import machine
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

import rankshot as rs
from rankshot.core.newton import maximize
from rankshot.datasets import load_imagenet
from rankshot.ranking.models.plackett_luce import Likelihood, first_items
from rankshot.zeroshot.default_head import PLACE_BONUS

AT_MOST = (
    {"default": 1.0, "probabilistic": 3.0, "paper": 1.25}
    if machine() == "x86_64"
    else {"default": 1.0, "probabilistic": 4.5, "paper": 1.75}
)
"""The largest ratios to a softmax. NumPy's float32 exp and log are vectorised on x86 only. On ARM a
softmax is nothing but exp, and plain NumPy without any checks needs 1.43 for the paper's head."""

SHARE_OF_CLASSIFIER = 0.5
"""The largest ratio of the default head to a linear classifier with 512 features."""
PAPER = {"k": 4, "posterior": "consensus", "decay": 0}
"""The paper's head."""


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


def best_of(*works: Callable[[], Any], repeat: int = 21) -> list[float]:
    """Return the least CPU times: other processes of the machine do not count.

    The works take turns, so that a machine that becomes slower slows down all of them.
    """
    return np.min([[cpu_time(work) for work in works] for _ in range(repeat)], axis=0).tolist()


def cpu_time(work: Callable[[], Any]) -> float:
    begin = process_time()
    work()
    return process_time() - begin


def check(head: Any, scores: np.ndarray) -> None:
    """Compare some answers with the formula in plain NumPy and double precision."""
    few = scores[:50].astype(np.float64)
    if isinstance(head, rs.WeightedMean):
        expected = log_softmax(log_posteriors(head, few) / head.head_.temperature, axis=1)
    else:
        expected = log_softmax(log_prob_of_rankings(head, few) / head.temperature_, axis=1)
    assert np.abs(head.log_proba(few) - expected).max() < 1e-9
    assert np.abs(head.log_proba(scores[:50]) - expected).max() < 1e-3


def log_posteriors(head: Any, few: np.ndarray) -> np.ndarray:
    """Return the log-posteriors of `WeightedMean` without a reference, for strict rankings."""
    items = head.rankings_.items
    weights = np.zeros((len(head.classes_), len(items)))
    for order, target in zip(head.rankings_.orders(), head.rankings_.targets, strict=True):
        shares = np.arange(1.0, len(order) + 1) ** -head.decay
        for share, name in zip(shares / shares.sum(), order, strict=True):
            weights[head.classes_ == target, items.index(name)] += share
    centered = weights - weights.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centered, axis=1, keepdims=True)
    f = (few - few.mean(axis=1, keepdims=True)) / few.std(axis=1, keepdims=True)
    bonus = np.zeros_like(few)
    largest = np.argsort(-few, axis=1)[:, : len(PLACE_BONUS)]
    np.put_along_axis(bonus, largest, np.array([PLACE_BONUS]), axis=1)
    return f @ (weights / length).T + bonus @ (weights / length**0.5).T / np.mean(length**0.5)


def log_prob_of_rankings(head: Any, few: np.ndarray) -> np.ndarray:
    """Return the mean log-probability of the rankings of each target, or of its consensus."""
    compared = head.rankings_ if head.posterior == "mean" else head.consensus_
    expected = np.zeros((len(few), len(head.classes_)))
    for order, target in zip(compared.orders(), compared.targets, strict=True):
        left, z = few.copy(), np.flatnonzero(head.classes_ == target)
        share = 1 / (compared.targets == target).sum()
        for place, name in enumerate(order, 1):
            item = head.items_.index(name)
            expected[:, z] += share * place**-head.decay * log_softmax(left, axis=1)[:, [item]]
            left[:, item] = -np.inf
    return expected


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
        ours, theirs = best_of(
            lambda s=scores: head.log_proba(s), lambda s=scores: softmax(s, axis=1)
        )
        ratio = ours / theirs
        right &= ratio <= AT_MOST["paper"]
        print(
            f"  200,000 inputs of float32, scores with standard deviation {std:g}, 10 targets: "
            f"{ours:.3f} s, softmax {theirs:.3f} s, ratio {ratio:.2f} "
            f"(at most {AT_MOST['paper']})"
        )
    return right


def several_rankings(rng: np.random.Generator) -> bool:
    """Print the time for eight rankings per target that are not merged."""
    rankings = rankings_of(100, 10, 10, rng, raters=8)
    scores = (3 * rng.normal(size=(200_000, 100))).astype(np.float32)
    usual = rng.normal(size=(1000, 100)).astype(np.float32)
    print("8 rankings of 10 places per target, 200,000 inputs of float32, 100 items, 10 targets")
    right = True
    for name, head, reference in (
        ("default", rs.WeightedMean(), None),
        ("default", rs.WeightedMean(), usual),
        ("probabilistic", rs.ProbabilisticRanking(), None),
    ):
        head.fit(rankings, **({} if reference is None else {"reference": reference}))
        if reference is None:
            check(head, scores)
        ours, theirs = best_of(lambda h=head: h.log_proba(scores), lambda: softmax(scores, axis=1))
        ratio = ours / theirs
        right &= ratio <= AT_MOST[name]
        print(
            f"  {head}{'' if reference is None else ' with a reference'}: {ours:.3f} s, softmax "
            f"{theirs:.3f} s, ratio {ratio:.2f} (at most {AT_MOST[name]})"
        )
    return right


def against_classifier(rng: np.random.Generator) -> bool:
    """Compare the default head with what the classifier itself takes for its probabilities."""
    n, n_items, n_features = 10_000, 1000, 512
    classifier = LogisticRegression()
    classifier.classes_ = np.arange(n_items)
    classifier.coef_ = rng.standard_normal((n_items, n_features), np.float32) / 10
    classifier.intercept_ = np.zeros(n_items, np.float32)
    X = rng.standard_normal((n, n_features), np.float32)
    scores = classifier.decision_function(X)
    head = rs.WeightedMean().fit(rankings_of(n_items, 40, 15, rng))
    check(head, scores)
    referred = rs.WeightedMean().fit(head.rankings_, reference=scores[:2000])
    ours, with_reference, theirs = best_of(
        lambda: head.log_proba(scores),
        lambda: referred.log_proba(scores),
        lambda: classifier.log_proba(X),
    )
    share = max(ours, with_reference) / theirs
    print(
        f"LogisticRegression.predict_log_proba, {n:,} inputs, {n_items:,} classes, {n_features} "
        f"features, float32: {theirs:.3f} s. WeightedMean of its scores, 40 targets: {ours:.3f} s, "
        f"with a reference {with_reference:.3f} s, share {share:.2f} "
        f"(at most {SHARE_OF_CLASSIFIER})"
    )
    return share <= SHARE_OF_CLASSIFIER


def growth(rng: np.random.Generator) -> None:
    print("Cost of the paper's head by inputs and targets (100 items, K=4, float32)")
    for n, targets in ((50_000, 10), (100_000, 10), (200_000, 10), (50_000, 100), (50_000, 1000)):
        head = head_of(100, targets, rng)
        scores = rng.normal(size=(n, 100)).astype(np.float32)
        [seconds] = best_of(lambda h=head, s=scores: h.log_proba(s), repeat=3)
        print(
            f"  {n:,} inputs, {targets:,} targets: {seconds:.3f} s, "
            f"{seconds / n / targets * 1e9:.0f} ns per input and target"
        )


def ties(rng: np.random.Generator) -> None:
    """Compare `ProbabilisticRanking` on WordNet's tied rankings and on strict lists of ten."""
    data = load_imagenet()
    scores = np.tile(data.scores.values, (8, 1))
    names = data.rankings.target_names
    table = rs.WordNet().similarity(names, data.scores.items)
    tied = rs.ProbabilisticRanking().fit(table.to_rankings())
    orders = [rng.permutation(data.scores.items)[:10].tolist() for _ in names]
    lists = rs.Rankings.from_orders(orders, items=data.scores.items, targets=names)
    strict = rs.ProbabilisticRanking().fit(lists)
    seconds = best_of(lambda: tied.log_proba(scores), lambda: strict.log_proba(scores), repeat=3)
    print(
        f"Ties, ProbabilisticRanking: WordNet's rankings of {len(names)} targets, 1,000 items, "
        f"{len(scores):,} inputs: "
        f"{seconds[0]:.3f} s, {peak_of(lambda: tied.log_proba(scores)):.0f} MB; strict "
        f"lists of ten: {seconds[1]:.3f} s, ratio {seconds[0] / seconds[1]:.1f}"
    )


def many_rankings(rng: np.random.Generator) -> None:
    """Time two heads at 1,000 items, 100 targets and 8 rankings of each."""
    rankings = rankings_of(1000, 100, 10, rng, raters=8)
    scores = (3 * rng.standard_normal((10_000, 1000))).astype(np.float32)
    for head in (rs.WeightedMean(), rs.ProbabilisticRanking()):
        check(head.fit(rankings), scores)
        ours, theirs = best_of(
            lambda h=head: h.log_proba(scores), lambda: softmax(scores, axis=1), repeat=3
        )
        print(
            f"{head}, 1,000 items, 100 targets, 8 rankings of each: 10,000 inputs in {ours:.2f} s, "
            f"{peak_of(lambda h=head: h.log_proba(scores)):.0f} MB besides the scores; "
            f"softmax {theirs:.2f} s, ratio {ours / theirs:.1f}"
        )


def memory(rng: np.random.Generator) -> bool:
    head = head_of(1000, 1000, rng)
    scores = rng.normal(size=(10_000, 1000)).astype(np.float32)
    head.log_proba(scores[:10])
    peak = 1e6 * peak_of(lambda: head.log_proba(scores)) + scores.nbytes
    share = peak / (scores.nbytes + len(scores) * len(head.classes_) * scores.itemsize)
    print(
        f"Memory for 10,000 inputs, 1,000 targets of 1,000 items: {share:.2f} times input plus "
        "output (at most 2)"
    )
    return share <= 2


class Work(NamedTuple):
    """Some work at 1,000 seen classes, and the same by a slow definition, on a part of the data."""

    name: str
    ours: Callable[[], Any]
    slow_name: str
    slow: Callable[[], Any]
    share: float
    """The part of the data that the slow definition gets."""


def peak_of(work: Callable[[], Any]) -> float:
    """Return the most memory that was taken at a time, in MB."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def fit_every_item(rankings: rs.Rankings) -> np.ndarray:
    """Fit Plackett-Luce with one parameter per item; alike items are not merged.

    Newton's steps are solved exactly, with the whole matrix, until almost nothing is left to gain:
    so items that all rankings treat alike stay alike.
    """
    likelihood = Likelihood(rankings)
    found = maximize(
        likelihood.evaluate,
        likelihood.information,
        np.zeros(rankings.n_items),
        ridge=0.01,
        invariant=np.ones(rankings.n_items),
        tol=1e-13,
    )
    return found.parameters


def draw_by_clocks(scores: np.ndarray, n: int, k: int) -> np.ndarray:
    """Draw lists with one exponential clock per item and list."""
    rng = np.random.default_rng(0)
    times = np.log(rng.standard_exponential((n, scores.shape[1])))
    return np.array([first_items(times - row, k) for row in scores])


def two_sources() -> tuple[Any, rs.Rankings]:
    """Return scores of 1,000 seen classes, and rankings by WordNet (ties) and a rater (strict)."""
    data = load_imagenet()
    table = rs.WordNet().similarity(data.rankings.target_names, data.scores.items)
    wordnet = table.to_rankings().top(10)
    return data.scores, rs.Rankings.concatenate([wordnet, data.rankings])


def many_items() -> None:
    scores, rankings = two_sources()
    by_target = rankings.by_target()
    few = list(by_target.values())[:2]
    wordnet = rankings[:20]
    head = rs.ProbabilisticRanking(k=2, posterior="sum", random_state=0).fit(rankings)
    fitted = rs.PlackettLuce().fit(few[0]).log_worths_
    assert np.abs(fitted - fit_every_item(few[0])).max() < 1e-4
    works = [
        Work(
            "Plackett-Luce fits to two top-10 lists, 20 targets",
            lambda: [rs.PlackettLuce().fit(theirs) for theirs in by_target.values()],
            "one parameter per item",
            lambda: [fit_every_item(theirs) for theirs in few],
            len(few) / len(by_target),
        ),
        Work(
            "sum over top-2 rankings, 1,000 samples, 280 inputs, 20 targets",
            lambda: head.predict_proba(scores),
            "one clock per item and sample, draws alone",
            lambda: draw_by_clocks(scores.values[:10], 1000, 2),
            10 / 280,
        ),
    ]
    print("1,000 seen classes: time and memory, and the same by a slow definition (sampled)")
    for work in works:
        [ours], [slow] = best_of(work.ours, repeat=3), best_of(work.slow, repeat=1)
        slow /= work.share
        print(
            f"  {work.name}: {ours:.2f} s, {peak_of(work.ours):.0f} MB; {work.slow_name}: "
            f"{slow:.0f} s, {peak_of(work.slow):.0f} MB; ratio {slow / ours:,.0f}",
            flush=True,
        )
    deterministic = rs.zeroshot.paper.DeterministicRanking().fit(wordnet)
    seconds, softmax_seconds = best_of(
        lambda: deterministic.predict_proba(scores), lambda: softmax(scores.values, axis=1)
    )
    print(
        f"  DeterministicRanking with ties, 280 inputs, 20 targets: {seconds:.2f} s, "
        f"{seconds / len(scores) * 1e3:.2f} ms per input, "
        f"{peak_of(lambda: deterministic.predict_proba(scores)):.0f} MB; softmax "
        f"{softmax_seconds:.4f} s, ratio {seconds / softmax_seconds:.0f}"
    )


def main() -> None:
    rng = np.random.default_rng(0)
    right = against_softmax(rng)
    right &= several_rankings(rng)
    right &= against_classifier(rng)
    growth(rng)
    ties(rng)
    many_rankings(rng)
    right &= memory(rng)
    many_items()
    if not right:
        raise SystemExit("a claim does not hold in this run")


if __name__ == "__main__":
    main()
