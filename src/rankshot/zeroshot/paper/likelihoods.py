"""P(π|x), the probability of rankings under the scores of a classifier, and the sum over all π.

Scores with one column per class define a Plackett-Luce model of rankings, one-vs-one scores a
Babington-Smith model. The r-th place may have the weight r^-decay; with 0, all have the same, as in
the paper. A tied ranking has the mean probability over the orders that it allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import comb, perm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_softmax, logsumexp

from rankshot.core.arrays import BLOCK_CELLS, row_blocks
from rankshot.core.errors import InputError
from rankshot.core.validation import Seed
from rankshot.ranking.matrices import iterate_choices
from rankshot.ranking.models.babington_smith import (
    BabingtonSmith,
    log_sum_of_choices,
    require_affordable,
)
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.models.tie_integral import tied_log_prob
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.scores import Scores, pair_columns, sum_pairs

Doubles = NDArray[np.float64]
Ints = NDArray[np.integer]
RankingModel = PlackettLuce | Mallows | BabingtonSmith
"""A prior."""
LEAST_TOTAL = 1e-290
"""Sums of worths below this (the largest worth is 1) may have lost terms by underflow."""
MAX_RANKINGS = 20_000
"""Up to this number of rankings, the sum over rankings is computed by enumeration."""


def log_prob_given_scores(rankings: Rankings, table: Scores, decay: float) -> Doubles:
    """Log P(π|x), up to a constant of each input: one row per input, one column per ranking.

    By scores of classes, rankings of different lengths can be compared: each is divided by its
    probability where all scores are equal.
    """
    if table.pairs is not None:
        return babington_smith(rankings, np.asarray(table.pairs, np.float64), decay)
    log_prob = plackett_luce(rankings, np.asarray(table.values, np.float64), decay)
    return log_prob - plackett_luce(rankings, np.zeros((1, rankings.n_items)), decay)


def plackett_luce(rankings: Rankings, scores: Doubles, decay: float = 0.0) -> Doubles:
    r"""Log P(π|x) from one score per class, by equation 14 of Hamm and Belkin (2015).

    .. math:: P(\pi|x) = \prod_{i=1}^K \frac{e^{f_{\pi^{-1}(i)}(x)}}
              {\sum_{j \ge i} e^{f_{\pi^{-1}(j)}(x)}}

    The total worth of the later items is added up from the last place to the first. It is never the
    total minus the items already placed: that difference cancels for a confident classifier.
    """
    f = scores - scores.max(axis=1, keepdims=True)
    worths, result = np.exp(f), np.zeros((len(rankings), len(f)))
    for number, ranking in enumerate(rankings):
        # A subset ranking compares the items that it lists alone.
        is_later = np.full(rankings.n_items, not ranking.is_subset[0])
        is_later[ranking.codes] = True
        choices = list(_weigh_choices(ranking, decay))
        is_later[np.concatenate([items for items, _, _ in choices])] = False
        later = _log_total(f, worths, is_later)
        for items, taken, weight in reversed(choices):
            own = f[:, items]
            if len(items) == 1:
                total = np.logaddexp(later, own[:, 0])
                log_prob = own[:, 0] - total
            else:
                total = np.logaddexp(later, logsumexp(own, axis=1))
                # The integral is of sets; one of their orders is as probable as any other.
                by_set = tied_log_prob(own.T, later, taken) if np.isfinite(later[0]) else 0.0
                log_prob = by_set - _log_ways(len(items), taken)
            result[number] += weight * log_prob
            later = total
    return result.T


def babington_smith(rankings: Rankings, pairs: Doubles, decay: float = 0.0) -> Doubles:
    r"""Log P(π|x) from one score per pair of classes, f_ij = -f_ji, up to a constant of each input.

    .. math:: P(\pi|x) \propto \prod_{i=1}^K \prod_{j > i} e^{f_{\pi^{-1}(i) \pi^{-1}(j)}(x)}

    This is equation 15 of Hamm and Belkin (2015). The constant differs between rankings of
    different lengths, so all rankings must have one length.
    """
    lengths = np.where(rankings.is_subset, 0, rankings.lengths)
    if len({*lengths.tolist()}) > 1 or not lengths.all():
        row = int(np.argmin(lengths))
        raise InputError(
            "rankings",
            "subset" if rankings.is_subset[row] else int(lengths[row]),
            "must be top-K rankings of one length, for one-vs-one scores",
            where=f"ranking {row} (of {rankings.targets[row]!r})",
            hint="use a smaller k, or scores with one column per class",
        )
    pair, sign = pair_columns(rankings.n_items)
    totals, result = sum_pairs(pairs, rankings.n_items), np.zeros((len(pairs), len(rankings)))
    for column, ranking in enumerate(rankings):
        placed = np.zeros(0, np.intp)
        for items, taken, weight in _weigh_choices(ranking, decay):
            g, before, tied = len(items), np.ix_(items, placed), np.ix_(items, items)
            require_affordable(g, taken)
            cells = g * len(placed) + max(comb(g, m) for m in range(1, taken + 1)) + g * g
            for rows in row_blocks(len(pairs), cells, BLOCK_CELLS // 4):
                f = pairs[rows]
                sums = totals[rows][:, items] - (f[:, pair[before]] * sign[before]).sum(axis=2)
                part = sums[:, 0]
                if g > 1:
                    log_odds = np.moveaxis(f[:, pair[tied]] * sign[tied], 0, 2)
                    part = log_sum_of_choices(log_odds, sums.T, taken) - _log_ways(g, taken)
                result[rows, column] += weight * part
            placed = np.append(placed, items)
    return result


def _weigh_choices(ranking: Rankings, decay: float) -> Iterator[tuple[Ints, int, float]]:
    """The items that come next, how many of them count, and the mean weight of their places."""
    place = 1.0
    for items, taken in iterate_choices(ranking):
        yield items, taken, float(np.mean((place + np.arange(taken)) ** -decay))
        place += taken


def _log_total(f: Doubles, worths: Doubles, is_in: NDArray[np.bool_]) -> Doubles:
    """The log of the total worth of some items."""
    total = worths @ is_in
    with np.errstate(divide="ignore"):
        log_total = np.log(total)
    # Where sums underflow, logarithms are added.
    if is_in.any() and (lost := total < LEAST_TOTAL).any():
        log_total[lost] = logsumexp(f[np.ix_(lost, is_in)], axis=1)
    return np.asarray(log_total)


def _log_ways(size: int, taken: int) -> float:
    """The log of the number of orders of ``taken`` of some tied items."""
    return float(gammaln(size + 1) - gammaln(size - taken + 1))


# ---- The sum over rankings


class PosteriorSum(NamedTuple):
    """P(z|x), with one row per input, and its standard error: 0 if the sum is exact."""

    proba: Doubles
    standard_error: Doubles


def sum_over_rankings(
    priors: Sequence[RankingModel], table: Scores, k: int, n_samples: int, random_state: Seed
) -> PosteriorSum:
    r"""Σ_π P(π|x) P(z|π) over the top-k rankings π, with P(z|π) = P(π|z) / Σ_z' P(π|z').

    This is equation 7 of Hamm and Belkin (2015) with a uniform P(z); ``priors`` has P(π|z) of each
    new class. If there are too many rankings, the sum is replaced by the mean of P(z|π) over
    rankings sampled from P(π|x). The samples are exact, and the same random numbers are used for
    all inputs, so that the result of one input does not depend on the others.
    """
    models = [_model_given(row, table) for row in np.asarray(table.columns, np.float64)]
    proba, error = np.zeros((2, len(models), len(priors)))
    every = None
    if perm(len(table.items), k) <= MAX_RANKINGS:
        lists = np.array([*permutations(range(len(table.items)), k)])
        every = Rankings.from_item_numbers(lists, items=table.items)
        posteriors = posteriors_given(every, priors)
    for i, model in enumerate(models):
        if every is not None:
            proba[i] = posteriors @ np.exp(model.log_prob(every))
        else:
            posteriors = posteriors_given(model.sample(n_samples, k, random_state), priors)
            proba[i] = posteriors.mean(axis=1)
            error[i] = posteriors.std(axis=1, ddof=1) / np.sqrt(n_samples)
    return PosteriorSum(proba, error)


def _model_given(scores: Doubles, table: Scores) -> PlackettLuce | BabingtonSmith:
    """P(π|x) of one input as a model of rankings."""
    if table.pairs is None:
        return PlackettLuce()._with_log_worths(table.items, scores)
    f = np.zeros((len(table.items),) * 2)
    f[np.triu_indices(len(f), 1)] = scores
    # Equation 13 has the scores as f, which is half the log-odds.
    return BabingtonSmith.from_log_odds(2 * (f - f.T), items=table.items)


def posteriors_given(rankings: Rankings, priors: Sequence[RankingModel]) -> Doubles:
    """P(z|π), with one row per new class and one column per ranking."""
    log_prob = np.array([model.log_prob(rankings) for model in priors])
    # A ranking that has probability 0 for all classes is evidence for none of them.
    log_prob[:, np.isneginf(log_prob).all(axis=0)] = 0.0
    return np.asarray(np.exp(log_softmax(log_prob, axis=0)))
