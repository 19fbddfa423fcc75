"""The sum over all rankings, P(z|x) = Σ_π P(π|x) P(z|π), by enumeration or by exact samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import perm
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from rankshot.ranking.models.babington_smith import BabingtonSmith
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.paper.likelihoods import PlackettLuceScorer, log_prob_given_scores
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
MAX_RANKINGS = 20_000
"""Up to this number of rankings the sum is computed by enumeration."""


class PosteriorSum(NamedTuple):
    """P(z|x), with one row per input, and its standard error: 0 if the sum is exact."""

    proba: Floats
    standard_error: Floats


class SumOverRankings:
    r"""Σ_π P(π|x) P(z|π) over the top-k rankings π, with P(z|π) = P(π|z) / Σ_z' P(π|z').

    This is equation 7 of Hamm and Belkin (2015) with a uniform P(z). If there are too many
    rankings, the sum is replaced by the mean of P(z|π) over rankings sampled from P(π|x). The
    samples are exact: one item after the other is drawn from the items left, with the probabilities
    that the scores give them. The same random numbers are used for all inputs, so that the result
    of one input does not depend on the others.

    ``models`` has P(π|z) of each new class. The rankings are sampled from ``log_uniform``, of shape
    (k, n_samples), and for one-vs-one scores by ``seed``; without, all rankings are enumerated.
    """

    def __init__(
        self,
        models: Sequence[PlackettLuce | Mallows | BabingtonSmith],
        items: tuple[str, ...],
        k: int,
        log_uniform: Floats | None,
        seed: int | None,
    ) -> None:
        self._items, self._k, self._log_uniform, self._seed = items, k, log_uniform, seed
        self._models = models
        if log_uniform is None:
            lists = np.array(list(permutations(range(len(items)), k)), np.int32)
            self._log_posteriors = self._log_target_given(lists)
            self._lists = Rankings.from_item_numbers(lists, items=items, trusted=True)

    @property
    def cells_per_input(self) -> int:
        """Roughly the number of cells that are computed for each input."""
        if self._log_uniform is None:
            return perm(len(self._items), self._k)
        return self._log_uniform.size

    def log_proba(self, table: Scores) -> tuple[Floats, Floats]:
        """Log P(z|x) and the standard error of P(z|x), with one row per class."""
        if self._log_uniform is None:
            log_prob = log_softmax(log_prob_given_scores(self._lists, table), axis=1)
            # The largest terms are 1, so what underflows is below 1e-300.
            with np.errstate(divide="ignore"):
                log_proba = np.log(np.exp(self._log_posteriors) @ np.exp(log_prob.T))
            return log_proba, np.zeros(log_proba.shape)
        if table.pairs is not None:
            lists = [self._sample_by_pairs(row) for row in np.asarray(table.pairs, np.float64)]
        else:
            scores = np.asarray(table.values, np.float64)
            lists = [draw_lists(row, self._log_uniform) for row in scores]
        return self._average(np.stack(lists))

    def _average(self, lists: Ints) -> tuple[Floats, Floats]:
        """The mean and its error of P(z|π) over rankings of shape (inputs, samples, k)."""
        n, n_samples, k = lists.shape
        log_posteriors = self._log_target_given(lists.reshape(-1, k)).reshape(-1, n, n_samples)
        log_proba = logsumexp(log_posteriors, axis=2) - np.log(n_samples)
        variance = np.exp(log_posteriors).var(axis=2, ddof=1)
        return log_proba, np.sqrt(variance / n_samples)

    def _log_target_given(self, lists: Ints) -> Floats:
        """Log P(z|π), with one row per new class and one column per list of items."""
        rankings = Rankings.from_item_numbers(lists, items=self._items, trusted=True)
        worths = [model.log_worths_ for model in self._models if isinstance(model, PlackettLuce)]
        if len(worths) == len(self._models):
            # All models at once, up to a constant of each list.
            log_prob = PlackettLuceScorer(rankings).log_prob_of(np.array(worths))
        else:
            log_prob = np.array([model.log_prob(rankings) for model in self._models])
        # A ranking that has probability 0 for all classes is evidence for none of them.
        log_prob[:, np.isneginf(log_prob).all(axis=0)] = 0.0
        return np.asarray(log_softmax(log_prob, axis=0))

    def _sample_by_pairs(self, scores: Floats) -> Ints:
        C, (k, n_samples) = len(self._items), np.shape(cast("Any", self._log_uniform))
        f = np.zeros((C, C))
        f[np.triu_indices(C, 1)] = scores
        # Equation 13 has the scores as f, which is half the log-odds.
        model = BabingtonSmith.from_log_odds(2 * (f - f.T), items=self._items)
        return model.sample(n_samples, k, self._seed).codes.reshape(-1, k)


# ---- Samples of Plackett-Luce


def draw_lists(scores: Floats, log_uniform: Floats) -> NDArray[np.intp]:
    """Draw lists of items by scores, one row per list, one item after the other.

    The items are sorted by score, and T_j is the total worth of item j and all after it. A
    uniform share u of the worth M of the items left is taken, from the last item on, and the item
    where it ends is drawn. All sums are of positive numbers, kept as logarithms, so the draws are
    right for scores of any range. ``log_uniform`` has logarithms of k n uniform random numbers.
    """
    C, (k, n) = len(scores), log_uniform.shape
    by_score = np.argsort(-scores, kind="stable")
    log_worths = scores[by_score] - scores[by_score[0]]
    log_tail = np.full(C + 1, -np.inf)
    np.logaddexp.accumulate(log_worths[::-1], out=log_tail[-2::-1])
    ascending = log_tail[-2::-1].copy()
    drawn = np.empty((k, n), np.intp)
    for stage in range(k):
        gone = np.sort(drawn[:stage], axis=0)
        end = _log_left(log_tail, gone) + log_uniform[stage]
        for item in gone[::-1]:
            passed = end > log_tail[item + 1]
            end = np.where(passed, np.logaddexp(end, log_worths[item]), end)
        # The end is at most T_0, except by rounding.
        found = C - 1 - np.minimum(np.searchsorted(ascending, end), C - 1)
        # By rounding, the end may be in an item that is gone: take the next one.
        while (clash := (found == gone).any(axis=0)).any():
            found[clash] = (found[clash] + 1) % C
        drawn[stage] = found
    return np.asarray(by_score[drawn.T])


def _log_left(log_tail: Floats, gone: NDArray[np.intp]) -> Floats:
    """Log M, added up over the stretches between the sorted items that are gone.

    A stretch is T_a - T_b. Its items are worth at least as much as item b, so few digits cancel.
    """
    result = np.full(gone.shape[1], -np.inf)
    begin = np.zeros(gone.shape[1], np.intp)
    for item in gone:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(begin == item, 0.0, log_tail[item] - log_tail[begin])
            stretch = log_tail[begin] + np.log(-np.expm1(ratio))
        result = np.logaddexp(result, np.where(begin == item, -np.inf, stretch))
        begin = item + 1
    return np.asarray(np.logaddexp(result, log_tail[begin]))
