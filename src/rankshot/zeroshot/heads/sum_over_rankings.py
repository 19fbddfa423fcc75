"""The sum over all rankings, P(z|x) = Σ_π P(π|x) P(z|π), by enumeration or by exact samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import perm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from rankshot.core.validation import Seed, require_whole_number
from rankshot.ranking.babington_smith import BabingtonSmith
from rankshot.ranking.plackett_luce import PlackettLuce, first_items
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.prior import RankingModel
from rankshot.zeroshot.scorers import PlackettLuceScorer, Scorers
from rankshot.zeroshot.scores import Kind

Floats = NDArray[np.float64]
MAX_RANKINGS = 20_000
"""Up to this number of rankings the sum is computed by enumeration."""


class PosteriorSum(NamedTuple):
    """P(z|x), with one row per input, and its standard error: 0 if the sum is exact."""

    proba: Floats
    standard_error: Floats


class SumOverRankings:
    r"""Σ_π P(π|x) P(z|π) over the top-k rankings π, with P(z|π) = P(π|z) / Σ_z' P(π|z').

    This is the paper's equation 7 with a uniform P(z). If there are too many rankings, the sum is
    replaced by the mean of P(z|π) over rankings sampled from P(π|x). The samples are exact: for
    Plackett-Luce, item i arrives at the log-time -f_i - g_i, where g_i has a Gumbel distribution,
    and the first k items that arrive are the ranking. The same g are used for all inputs, so that
    the result of one input does not depend on the others.

    Parameters
    ----------
    models : sequence of ranking models
        P(π|z), one model per new class.
    items : tuple of str
        The seen classes.
    k : int
        The length of the rankings π.
    n_samples : int
        The number of samples for each input.
    random_state : int, Generator or None
        The seed of the samples.
    """

    def __init__(
        self,
        models: Sequence[RankingModel],
        items: tuple[str, ...],
        k: int,
        n_samples: int,
        random_state: Seed,
    ) -> None:
        n_samples = require_whole_number("n_samples", n_samples, least=2)
        self.models, self.items, self.k, self.n_samples = models, items, k, n_samples
        self.exact = perm(len(items), k) <= MAX_RANKINGS
        if self.exact:
            lists = np.array(list(permutations(range(len(items)), k)), np.int32)
            self._all = Rankings.from_item_numbers(lists, items=items, trusted=True)
            self._log_posteriors = self._log_target_given(self._all)
            self._scorers = Scorers(self._all)
        else:
            rng = np.random.default_rng(random_state)
            self._log_times = np.log(rng.standard_exponential((n_samples, len(items))))
            self._seed = int(rng.integers(2**32))

    @property
    def cells_per_input(self) -> int:
        """Roughly the number of cells that are computed for each input."""
        return len(self._all) if self.exact else self.n_samples * len(self.items)

    def log_proba_by_target(
        self, values: NDArray[np.floating], kind: Kind
    ) -> tuple[Floats, Floats]:
        """Return log P(z|x) and the standard error of P(z|x), with one row per class."""
        scores = np.asarray(values, np.float64)
        if self.exact:
            log_proba = self._enumerate(scores, kind)
            return log_proba, np.zeros(log_proba.shape)
        sample = self._sample_by_pairs if kind == "one-vs-one" else self._sample
        lists = np.concatenate([sample(row) for row in scores])
        # Probable rankings are sampled many times.
        distinct, which = np.unique(lists, axis=0, return_inverse=True)
        rankings = Rankings.from_item_numbers(distinct, items=self.items, trusted=True)
        log_posteriors = self._log_target_given(rankings)[:, which.ravel()]
        by_input = log_posteriors.reshape(len(self.models), len(scores), self.n_samples)
        log_proba = logsumexp(by_input, axis=2) - np.log(self.n_samples)
        std = np.exp(by_input).std(axis=2, ddof=1)
        return log_proba, std / np.sqrt(self.n_samples)

    def _log_target_given(self, rankings: Rankings) -> Floats:
        """Return log P(z|π), with one row per class and one column per ranking."""
        plackett_luce = [model for model in self.models if isinstance(model, PlackettLuce)]
        if len(plackett_luce) == len(self.models):
            # All models at once: the log-worths of each are like the scores of an input.
            worths = np.array([model.log_worths_ for model in plackett_luce])
            log_likelihoods = np.asarray(PlackettLuceScorer(rankings).log_prob(worths))
        else:
            log_likelihoods = np.array([model.log_prob(rankings) for model in self.models])
        # A ranking that has probability 0 for all classes is evidence for none of them.
        log_likelihoods[:, np.isneginf(log_likelihoods).all(axis=0)] = 0.0
        return np.asarray(log_softmax(log_likelihoods, axis=0))

    def _enumerate(self, values: Floats, kind: Kind) -> Floats:
        log_prob = self._scorers.get_scorer(kind).log_prob_by_group(values)
        log_prob -= logsumexp(log_prob, axis=0)
        return np.array([logsumexp(log_prob + z[:, None], axis=0) for z in self._log_posteriors])

    def _sample(self, scores: Floats) -> NDArray[np.integer]:
        return first_items(self._log_times - scores, self.k)

    def _sample_by_pairs(self, scores: Floats) -> NDArray[np.integer]:
        C = len(self.items)
        log_odds = np.zeros((C, C))
        log_odds[np.triu_indices(C, 1)] = scores
        model = BabingtonSmith.from_log_odds(log_odds - log_odds.T, items=self.items)
        return model.sample(self.n_samples, self.k, self._seed).codes.reshape(-1, self.k)
