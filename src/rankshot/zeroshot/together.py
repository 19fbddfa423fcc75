r"""Old and new classes together: which inputs are of a new class, within a budget.

The classifier's first guess p is compared with each new class z. The log-odds are

.. math:: g_z(x) = N_z(x) - s_p(x)
          + r_z \left[ \tfrac12 (\ell_z - \ell_p) - \log P(p|x)
          + \tfrac12 \log \text{softmax}(\ell)_z - \ell_z \right]

- N is the log-posterior of the new classes, by rankings and examples (`ClassModel`), which includes
  r ℓ; s are the log-likelihoods of the seen classes, by the means of the reference. Without
  examples or a batch, the means of new classes are guesses by rankings, and log-likelihoods count
  half;
- ℓ are the log-posteriors of the default head, for seen classes as well: the ranking of a seen
  class p has only p itself. r is the weight of the rankings beside examples;
- log P(p|x) is the classifier's own log-probability of its first guess.

So g needs linear maps of the input, the first guess, and two softmaxes. A new class is predicted if
the largest g is above one threshold; otherwise the first guess is kept.

The threshold keeps a budget: at most so much accuracy on seen classes is lost in expectation. The
log-odds of each input of a reference are those without its fold, so that no input is judged by
means that know it (cross-conformal prediction).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax

from rankshot.zeroshot.class_means import (
    DENSITY_WEIGHT,
    ClassModel,
    Codes,
    Examples,
    Floats,
    Inputs,
    LinearMap,
    Reference,
    Unlabelled,
)
from rankshot.zeroshot.default_head import fit_linear_part, measure_baseline

SEEN_TEMPERATURE = 0.45
"""The temperature of standardised scores, for the classifier's own probabilities."""
THRESHOLD = 1.6
"""The threshold without a reference: the smallest of those tried with which at most .05 of all
accuracy on held-out seen classes is lost in the mean, and .1 on single data sets."""
THRESHOLD_BY_BATCH = 0.5
"""The same if a batch serves as the reference."""
FEATURE_WEIGHT = 1 / 6
"""The weight of features in the log-likelihood, where they tell new classes from seen ones. With
more, fewer inputs of new classes are found within the budget."""
NEVER = 1e9
"""A threshold that no log-odds exceed."""
N_FOLDS = 20
"""The reference is left out in this number of groups. A fit to fewer inputs is worse, so with fewer
groups less than the budget is used: five find .01 fewer inputs of held-out seen classes."""


class Decision(NamedTuple):
    """The log-odds of new classes against the first guess, as linear maps.

    Attributes
    ----------
    new, seen : LinearMap
        N and s.
    by_rankings, own : LinearMap
        ℓ of the new and of the seen classes.
    ranking_share : float
        r.
    """

    new: LinearMap
    seen: LinearMap
    by_rankings: LinearMap
    own: LinearMap
    ranking_share: float

    def log_odds(self, inputs: Inputs, first: Codes) -> Floats:
        """Return g, with one row per input, whose first guesses are ``first``."""
        rows = np.arange(len(first))
        by_rankings = self.by_rankings.evaluate(inputs)
        own = self.own.evaluate(inputs)[rows, first]
        log_first = log_softmax(inputs.f / SEEN_TEMPERATURE, axis=1)[rows, first]
        against = 0.5 * (own + logsumexp(by_rankings, axis=1)) + log_first
        seen = self.seen.evaluate(inputs)[rows, first]
        return np.asarray(
            self.new.evaluate(inputs) - seen[:, None] - self.ranking_share * against[:, None]
        )

    def misfit(self, inputs: Inputs, first: Codes) -> Floats:
        """Return how badly each input fits its first guess and the new classes, by rankings."""
        own = self.own.evaluate(inputs)[np.arange(len(first)), first]
        return np.asarray(-np.maximum(own, self.by_rankings.evaluate(inputs).max(axis=1)))


class Budget(NamedTuple):
    """What a threshold costs, as the folds of a reference show it.

    Attributes
    ----------
    threshold : float
        `NEVER` if there are too few inputs to predict any new class.
    loss : float
        The share of all inputs that are lost above it, by the folds.
    n_inputs : int
        The number of inputs that this rests on.
    """

    threshold: float
    loss: float
    n_inputs: int


class Batch(NamedTuple):
    """Inputs of both groups without labels, with log-odds that do not know them.

    Attributes
    ----------
    inputs : Inputs
    log_odds : ndarray of shape (n, L)
        Of these inputs.
    reference : ndarray of shape (N, L)
        Of those of the reference, by cross-validation.
    """

    inputs: Inputs
    log_odds: Floats
    reference: Floats

    def weigh(self) -> Unlabelled:
        """Return the probability that each input is of each new class.

        An input is new with a probability of max(0, 1 - F / G), where F and G are the shares of the
        reference and of the batch whose log-odds are at least its own. So a batch that has no more
        high log-odds than the reference changes nothing.
        """
        usual, own = self.reference.max(axis=1), self.log_odds.max(axis=1)
        F = (1 + len(usual) - np.searchsorted(np.sort(usual), own)) / (1 + len(usual))
        G = 1 - np.searchsorted(np.sort(own), own) / len(own)
        is_new = np.maximum(0.0, 1 - F / G)
        return Unlabelled(self.inputs, softmax(self.log_odds, axis=1) * is_new[:, None])

    def join(self, inputs: Inputs, left: NDArray[np.bool_]) -> Batch:
        """Return the batch with a fold of the reference.

        An input of the fold is judged by means that know it as much as they know those of the
        batch. Otherwise, the loss of the batch would be larger than that of the reference.
        """
        log_odds = np.concatenate([self.log_odds, self.reference[left]])
        return Batch(self.inputs.plus(inputs), log_odds, self.reference[~left])


@dataclass(frozen=True)
class DecisionData:
    """All that a decision is fitted to.

    Attributes
    ----------
    weights : ndarray of shape (L, C)
        Of the rankings.
    reference : Reference, optional
    examples : Examples, optional
    batch : Batch, optional
    """

    weights: Floats
    reference: Reference | None = None
    examples: Examples | None = None
    batch: Batch | None = None

    def fit(self) -> Decision:
        """Return the log-odds, without a threshold."""
        (L, C), reference = self.weights.shape, self.reference
        baseline = None if reference is None else measure_baseline(reference.inputs.f)
        n_features = 0 if reference is None else reference.inputs.features.shape[1]

        def head(weights: Floats) -> LinearMap:
            part = fit_linear_part(weights, baseline, 1.0)
            none = np.zeros((len(weights), n_features))
            return LinearMap(part.slopes, part.rank_slopes, none, part.offsets)

        by_rankings, own = head(self.weights), head(np.eye(C))
        own = own._replace(rank_slopes=np.zeros((C, 0)))
        if reference is None:
            nothing = LinearMap(*(np.zeros_like(part) for part in own))
            return Decision(by_rankings, nothing, by_rankings, own, 1.0)
        unlabelled = None if self.batch is None else self.batch.weigh()
        nowhere = np.zeros(0, np.intp)
        few = self.examples or Examples(reference.inputs.take(nowhere), nowhere)
        model = ClassModel(self.weights, by_rankings, reference, few, unlabelled, FEATURE_WEIGHT)
        new, seen = model.fit_maps(1.0 if self.examples or self.batch else DENSITY_WEIGHT)
        new = new.plus(by_rankings, np.full(L, model.ranking_share))
        return Decision(
            new, seen._replace(rank_slopes=np.zeros((C, 0))), by_rankings, own, model.ranking_share
        )

    def cross_validate(self) -> tuple[Floats, Floats]:
        """Return the log-odds and the misfit of each input of the reference, without its fold."""
        inputs, first = cast("Reference", self.reference)
        # Neighbouring rows may be related, so the folds are drawn at random.
        fold = np.random.default_rng(0).permutation(len(first)) % N_FOLDS
        log_odds, misfit = np.empty((len(first), len(self.weights))), np.empty(len(first))
        for j in range(min(N_FOLDS, len(first))):
            left, kept = fold == j, np.flatnonzero(fold != j)
            batch = self.batch and self.batch.join(inputs.take(left), left)
            rest = replace(self, reference=Reference(inputs.take(kept), first[kept]), batch=batch)
            decision = rest.fit()
            log_odds[left] = decision.log_odds(inputs.take(left), first[left])
            misfit[left] = decision.misfit(inputs.take(left), first[left])
        return log_odds, misfit

    def use_batch(self, inputs: Inputs, first: Codes) -> DecisionData:
        """Return the same with a batch of inputs of both groups, whose first guesses are known."""
        log_odds = self.fit().log_odds(inputs, first)
        return replace(self, batch=Batch(inputs, log_odds, self.cross_validate()[0]))


class Together(NamedTuple):
    """The decision between old and new classes, with its threshold.

    Attributes
    ----------
    parts : tuple of Decision and ndarray of bool
        The log-odds, and the new classes that they are for. If only some classes have examples,
        the others have the log-odds that they would have without any.
    thresholds : ndarray of shape (L,)
        For each class; equal for all classes of a part.
    none : float
        The threshold of the misfit, above which an input is of none of the classes.
    budget : Budget or None
        What the thresholds cost, if a reference shows it.
    """

    parts: tuple[tuple[Decision, NDArray[np.bool_]], ...]
    thresholds: Floats
    none: float = NEVER
    budget: Budget | None = None


def fit_together(
    known: DecisionData, counts: NDArray[np.bool_], budget: float, *, none: bool = False
) -> Together:
    """Return the decision that loses at most a share ``budget`` in expectation.

    Parameters
    ----------
    known : DecisionData
        With a reference.
    counts : ndarray of bool
        The inputs of the reference that can be lost: see `find_threshold`.
    budget : float
    none : bool
        Whether half of the budget is for inputs of none of the classes.
    """
    L = len(known.weights)
    decision = known.fit()
    log_odds, misfit = known.cross_validate()
    rejected = NEVER
    if none:
        budget /= 2
        rejected = find_threshold(misfit, counts, budget).threshold
    has = np.isin(np.arange(L), [] if known.examples is None else known.examples.codes)
    if has.all() or not has.any():
        spent = find_threshold(log_odds.max(axis=1), counts, budget)
        parts = ((decision, np.ones(L, bool)),)
        return Together(parts, np.full(L, spent.threshold), rejected, spent)
    plain = replace(known, examples=None)
    without = plain.fit()
    by_rankings, _ = plain.cross_validate()
    # The classes with examples get the part of the budget that they would have without any, so
    # what the others lose does not depend on examples.
    spent = find_threshold(by_rankings.max(axis=1), counts, budget)
    above = counts & (by_rankings.max(axis=1) > spent.threshold)
    own = int(has[by_rankings[above].argmax(axis=1)].sum())
    largest = np.sort(log_odds[counts][:, has].max(axis=1))[::-1]
    shift = np.zeros(L)
    if abs(spent.threshold) < NEVER:
        shift[has] = largest[min(own, len(largest) - 1)] - spent.threshold
    largest_of_all = (np.where(has, log_odds, by_rankings) - shift).max(axis=1)
    spent = find_threshold(largest_of_all, counts, budget, n_chosen=2)
    return Together(((decision, has), (without, ~has)), spent.threshold + shift, rejected, spent)


def expect_together(known: DecisionData, budget: float, *, none: bool) -> Together:
    """Return the decision without a reference, which guarantees nothing.

    Rankings alone decide, or the reference is a batch of both groups. Then the largest misfits may
    be of inputs of none of the classes: half of the budget, as in `fit_together`.
    """
    L, rejected = len(known.weights), NEVER
    if known.reference is None:
        parts = ((DecisionData(known.weights).fit(), np.ones(L, bool)),)
        return Together(parts, np.full(L, THRESHOLD))
    if none:
        misfit = known.cross_validate()[1]
        rejected = find_threshold(misfit, np.ones(len(misfit), bool), budget / 2).threshold
    parts = ((known.fit(), np.ones(L, bool)),)
    return Together(parts, np.full(L, THRESHOLD_BY_BATCH), rejected)


def find_threshold(
    log_odds: Floats, counts: NDArray[np.bool_], budget: float, n_chosen: int = 1
) -> Budget:
    """Return the smallest threshold that loses at most a share ``budget`` in expectation.

    If the next input is exchangeable with the n inputs, it is above the k-th largest of them with a
    probability of at most k / (n + 1). So k is budget · (n + 1), rounded down.

    Parameters
    ----------
    log_odds : ndarray of shape (n,)
        The largest ones of each input of the reference, by means that do not know it.
    counts : ndarray of bool
        The inputs that can be lost: those whose first guess is correct, or all if this is unknown.
    budget : float
    n_chosen : int
        How many numbers are chosen by these inputs; each one after the first costs one of k.
    """
    n = len(log_odds)
    k = int(np.floor(budget * (n + 1) + 1e-9)) + 1 - n_chosen
    lost = np.sort(log_odds[counts])[::-1]
    if k < 1:
        return Budget(NEVER, 0.0, n)
    threshold = float(lost[k - 1]) if k <= len(lost) else -NEVER
    return Budget(threshold, float((lost > threshold).sum()) / n, n)
