"""The sum over all rankings, P(z|x) = Σ_π P(π|x) P(z|π): enumerated, or sampled exactly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import perm
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import Seed
from rankshot.ranking.babington_smith import BabingtonSmith
from rankshot.ranking.plackett_luce import PlackettLuce, first_items
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.prior import RankingModel
from rankshot.zeroshot.scorers import PlackettLuceScorer, Scorers
from rankshot.zeroshot.scores import Kind

Floats = NDArray[np.float64]
MAX_RANKINGS = 20_000
"""Up to so many rankings are gone through one by one."""


class PosteriorSum(NamedTuple):
    """P(z|x), a row an input, and its standard error: 0 where the sum is exact."""

    proba: Floats
    standard_error: Floats


class SumOverRankings:
    r"""Σ_π P(π|x) P(z|π) over the top-k rankings π, with P(z|π) = P(π|z) / Σ_z' P(π|z').

    The paper's equation 7 with a uniform P(z). Where the rankings are too many, the mean of
    P(z|π) over rankings drawn from P(π|x) takes the place of the sum. They are drawn exactly:
    for Plackett-Luce, item i rings at log-time -f_i - g_i, g_i following Gumbel's law, and the
    first k to ring are the list. The same g serve all inputs, so that the answer to one does
    not depend on the others.

    Parameters
    ----------
    models : sequence of ranking models
        P(π|z), one a target.
    items : tuple of str
    k : int
    n_samples : int
    random_state : int, Generator or None
    """

    def __init__(
        self,
        models: Sequence[RankingModel],
        items: tuple[str, ...],
        k: int,
        n_samples: int,
        random_state: Seed,
    ) -> None:
        if (
            isinstance(n_samples, bool)
            or not isinstance(n_samples, int | np.integer)
            or n_samples < 2
        ):
            raise RankshotError(f"n_samples must be 2 or more, not {short_repr(n_samples)}")
        self.models, self.items, self.k, self.n_samples = models, items, k, n_samples
        self.exact = perm(len(items), k) <= MAX_RANKINGS
        if self.exact:
            lists = np.array(list(permutations(range(len(items)), k)), np.int32)
            self._all = Rankings.from_item_numbers(lists, items=items, trusted=True)
            self._log_posteriors = self._of_targets(self._all)
            self._scorers = Scorers(self._all)
        else:
            rng = np.random.default_rng(random_state)
            self._log_times = np.log(rng.standard_exponential((n_samples, len(items))))
            self._seed = int(rng.integers(2**32))

    @property
    def cells_per_input(self) -> int:
        """How many numbers are computed for an input, roughly."""
        return len(self._all) if self.exact else self.n_samples * len(self.items)

    def log_proba_by_target(
        self, values: NDArray[np.floating], kind: Kind
    ) -> tuple[Floats, Floats]:
        """Return log P(z|x) and the standard error of P(z|x), a row a target."""
        scores = np.asarray(values, np.float64)
        if self.exact:
            log_proba = self._enumerated(scores, kind)
            return log_proba, np.zeros(log_proba.shape)
        draw = self._draw_by_pairs if kind == "one-vs-one" else self._draw
        lists = np.concatenate([draw(row) for row in scores])
        # Likely rankings are drawn over and over.
        distinct, which = np.unique(lists, axis=0, return_inverse=True)
        rankings = Rankings.from_item_numbers(distinct, items=self.items, trusted=True)
        log_posteriors = self._of_targets(rankings)[:, which.ravel()]
        by_input = log_posteriors.reshape(len(self.models), len(scores), self.n_samples)
        log_proba = logsumexp(by_input, axis=2) - np.log(self.n_samples)
        spread = np.exp(by_input).std(axis=2, ddof=1)
        return log_proba, spread / np.sqrt(self.n_samples)

    def _of_targets(self, rankings: Rankings) -> Floats:
        """Return log P(z|π), a row a target and a column a ranking."""
        plackett_luce = [model for model in self.models if isinstance(model, PlackettLuce)]
        if len(plackett_luce) == len(self.models):
            # All models at once, as if each were an input.
            worths = np.array([model.log_worths_ for model in plackett_luce])
            log_likelihoods = np.asarray(PlackettLuceScorer(rankings).log_prob(worths))
        else:
            log_likelihoods = np.array([model.log_prob(rankings) for model in self.models])
        # A ranking that no target could have speaks for none of them.
        log_likelihoods[:, np.isneginf(log_likelihoods).all(axis=0)] = 0.0
        return np.asarray(log_softmax(log_likelihoods, axis=0))

    def _enumerated(self, values: Floats, kind: Kind) -> Floats:
        log_prob = self._scorers.get_scorer(kind).log_prob_by_ranking(values)
        log_prob -= logsumexp(log_prob, axis=0)
        return np.array([logsumexp(log_prob + z[:, None], axis=0) for z in self._log_posteriors])

    def _draw(self, scores: Floats) -> NDArray[np.integer]:
        return first_items(self._log_times - scores, self.k)

    def _draw_by_pairs(self, scores: Floats) -> NDArray[np.integer]:
        C = len(self.items)
        log_odds = np.zeros((C, C))
        log_odds[np.triu_indices(C, 1)] = scores
        model = BabingtonSmith.from_log_odds(log_odds - log_odds.T, items=self.items)
        return model.sample(self.n_samples, self.k, self._seed).entries.reshape(-1, self.k)
