"""The sum over all rankings, which the paper left out, compared with the paper's classifier."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_whole_number
from rankshot.datasets.demo import K
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.paper.ranking_methods import ProbabilisticRanking, RankingModel
from rankshot.zeroshot.scores import Scores
from reproduction.benchmark import Task
from reproduction.bootstrap import Bootstrap
from reproduction.paper_methods import paper_head
from reproduction.result_tables import ResultTable, Value

Labels = NDArray[np.str_]
DRAWS = (100, 1_000)
"""How many rankings are drawn for each input."""
N_INPUTS = 2_000
"""How many inputs are classified: with 1,000 draws, one takes some milliseconds."""
SEED = 20150701
CONSENSUS = "consensus"


class TimedPredictions(NamedTuple):
    """The predictions of a head, and how long they took."""

    labels: Labels
    standard_error: float | None
    seconds: float


def full_sum_table(
    scores: Scores, task: Task, truth: Labels, *, n_inputs: int = N_INPUTS
) -> ResultTable:
    """Compare equation 7, summed over rankings, with the paper's classifier, equation 16.

    Both use the same priors, fitted to the panel, and the same inputs, a fixed random sample.
    """
    if scores.kind != "multiclass":
        raise RankshotError(f"scores must be multiclass scores, not {scores.kind} scores")
    if len(truth) != len(scores):
        raise RankshotError(f"scores have {len(scores)} rows, but truth has {len(truth)} labels")
    drawn = sample_rows(len(scores), n_inputs)
    some, labels = scores[drawn], truth[drawn]
    bootstrap = Bootstrap(labels)
    rows: list[tuple[Value, ...]] = []
    for prior in (PlackettLuce(), Mallows()):
        paper = classify_by_consensus(prior, task, some)
        answers = {CONSENSUS: paper}
        for n in DRAWS:
            answers[f"sum, {n:,} draws"] = classify_by_sum(prior, task, some, n)
        for name, found in answers.items():
            correct = (found.labels == labels).astype(np.float64)
            gain = correct - (paper.labels == labels)
            rows.append(
                (
                    _prior_name(prior),
                    name,
                    bootstrap.interval(correct),
                    None if name == CONSENSUS else bootstrap.interval(gain),
                    found.standard_error,
                    _microseconds(found.seconds / len(labels)),
                )
            )
    return ResultTable(
        "full sum",
        f"The full sum over rankings: the panel's rankings, a multiclass classifier, K = {K}",
        (
            "prior",
            "posterior",
            "accuracy",
            "gain over the consensus",
            "standard error of P(z|x)",
            "µs per input",
        ),
        tuple(rows),
        _notes(len(labels), len(scores)),
        n_labels=2,
    )


def sample_rows(n: int, n_inputs: int) -> NDArray[np.intp]:
    """Return the row numbers of a fixed random sample, in ascending order."""
    if require_whole_number("n_inputs", n_inputs) >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(SEED).choice(n, n_inputs, replace=False))


def classify_by_consensus(prior: RankingModel, task: Task, scores: Scores) -> TimedPredictions:
    """Classify by the consensus ranking of each target: the most probable one under its prior."""
    head = paper_head(prior).fit(task.panel)
    start = perf_counter()
    labels = head.predict(scores)
    return TimedPredictions(labels, None, perf_counter() - start)


def classify_by_sum(
    prior: RankingModel, task: Task, scores: Scores, n_samples: int
) -> TimedPredictions:
    """Classify by the sum over all rankings, each weighted by its probability given the input."""
    head = ProbabilisticRanking(
        k=K, prior=prior, posterior="sum", n_samples=n_samples, random_state=SEED
    ).fit(task.panel)
    start = perf_counter()
    proba, error = head.sum_over_rankings(scores)
    labels = head.classes_[most_probable(proba)]
    return TimedPredictions(labels, float(error.mean()), perf_counter() - start)


def _microseconds(seconds: float) -> int:
    """Return a time in whole microseconds."""
    return max(1, round(1e6 * seconds))


def _prior_name(prior: RankingModel) -> str:
    return "Plackett-Luce" if isinstance(prior, PlackettLuce) else "Mallows"


def _notes(n: int, n_all: int) -> tuple[str, ...]:
    which = (
        f"All {n:,} inputs" if n == n_all else f"{n:,} of {n_all:,} inputs, drawn once at random"
    )
    inputs = (
        f"{which}, the same for every row. Intervals are 95% intervals from 1,000 resamples "
        "within each class; the gain is measured on the same inputs."
    )
    methods = (
        "The consensus is the paper's classifier (equation 16). The sum is its equation 7, which "
        "the paper found to be worse and left out. Rankings are drawn exactly from P(π|x), without "
        "a Markov chain. The standard error is the Monte Carlo error, averaged over inputs and "
        "targets."
    )
    return inputs, methods, "Times are those of one run on one machine, without fitting."
