"""EM for mixtures of models of rankings: the two steps, and the starts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import clone

from rankshot.ranking.models.babington_smith import BabingtonSmith
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.units import Sample
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
SHARED_WEIGHT = 0.01
"""The total weight with which all rankings count in every group, so that no group, however small,
makes a ranking impossible."""
GROWTH = 1.3
"""By how much a step of EM grows if the last one was good."""
TINY = 1e-300
"""Smaller memberships have no logarithm to go on from."""


class State(NamedTuple):
    """A fit: the models and shares of the groups, and what they say of the rankings."""

    models: list[Any]
    shares: Floats
    log_probs: Floats
    memberships: Floats
    log_likelihood: float
    objective: float


class EM:
    """The two steps of EM for a sample, and where they start."""

    def __init__(self, sample: Sample, model: Any, n_groups: int) -> None:
        self.sample, self.model, self.n_groups = sample, model, n_groups
        weights = sample.rankings.weights
        shared = SHARED_WEIGHT if n_groups > 1 else 0.0
        self.shared = shared * weights / weights.sum()

    def _fit(self, weights: Floats) -> Any:
        return clone(self.model).fit(replace(self.sample.rankings, weights=weights))

    def evaluate(self, models: list[Any], log_probs: Floats, shares: Floats) -> State:
        """E step: the probability of each group for each unit."""
        joint = self.sample.copies @ log_probs + log_shares(shares)
        total = logsumexp(joint, axis=1)
        log_likelihood = float(self.sample.counts @ total)
        objective = log_likelihood + sum(
            float(self.shared @ log_probs[:, g]) - penalty(model) for g, model in enumerate(models)
        )
        memberships = np.exp(joint - total[:, None])
        return State(models, shares, log_probs, memberships, log_likelihood, objective)

    def _weigh(self, memberships: Floats) -> tuple[Floats, Floats]:
        """Return the weight of each ranking in each group, and the shares of the groups."""
        counted = self.sample.counts[:, None] * memberships
        weights = self.sample.copies.T @ counted + self.shared[:, None]
        return weights, counted.sum(axis=0) / self.sample.counts.sum()

    def step(self, state: State, memberships: Floats) -> State:
        """M step with some memberships, then E step."""
        weights, shares = self._weigh(memberships)
        models, log_probs = list(state.models), state.log_probs.copy()
        for g, last in enumerate(state.models):
            new = self._fit(weights[:, g])
            new_log_probs = new.log_prob(self.sample.rankings)
            gain = weights[:, g] @ (new_log_probs - log_probs[:, g])
            if gain >= penalty(new) - penalty(last):
                models[g], log_probs[:, g] = new, new_log_probs
        return self.evaluate(models, log_probs, shares)

    def start_at_random(self, rng: np.random.Generator) -> State:
        """Start with random memberships."""
        memberships = rng.dirichlet(np.ones(self.n_groups), len(self.sample.counts))
        weights, shares = self._weigh(memberships)
        models = [self._fit(weights[:, g]) for g in range(self.n_groups)]
        return self.evaluate(models, log_probs_of(models, self.sample.rankings), shares)

    def start_from_raters(self, rng: np.random.Generator) -> State:
        """Start with groups around units that are far apart, as k-means++ does.

        The next unit is drawn in proportion to how much less probable it is, in the groups so
        far, than the most probable unit.
        """
        copies, counts = self.sample.copies, self.sample.counts
        models: list[Any] = []
        columns: list[Floats] = []
        chance = counts
        for _ in range(self.n_groups):
            seed = rng.choice(len(counts), p=chance / chance.sum())
            models.append(self._fit(self._around(copies[[seed]].toarray()[0])))
            columns.append(models[-1].log_prob(self.sample.rankings))
            best = (copies @ np.column_stack(columns)).max(axis=1)
            chance = counts * (best.max() - best)
            if not chance.any():
                chance = counts
        shares = np.full(self.n_groups, 1 / self.n_groups)
        return self.evaluate(models, np.column_stack(columns), shares)

    def _around(self, copies: Floats) -> Floats:
        """Return weights of rankings: two thirds for those of one unit, one third for all."""
        weights = self.sample.rankings.weights
        return np.asarray(2 * copies / copies.sum() + weights / weights.sum())


class Run:
    """EM from one start, so far, with steps that grow as long as they succeed.

    A plain EM step goes from the memberships that the models were fitted with to those that the
    models imply. Near the end it is much too short, so it is taken several times as long, in
    logarithms (Salakhutdinov and Roweis 2003). If that does not raise the objective, the plain step
    is taken.
    """

    def __init__(self, start: State) -> None:
        self.state = start
        self.history: list[float] = []
        self._used = start.memberships
        self._stretch = 1.0

    def go_on(self, em: EM, n_iter: int, tol: float) -> None:
        """Continue up to the given number of iterations."""
        while len(self.history) < n_iter and not self.has_converged(tol):
            memberships = _stretch(self._used, self.state.memberships, self._stretch)
            trial = em.step(self.state, memberships)
            if trial.objective >= self.state.objective:
                self._stretch *= GROWTH
            else:
                memberships = self.state.memberships
                trial = em.step(self.state, memberships)
                self._stretch = max(1.0, self._stretch / 2)
            self.state, self._used = trial, memberships
            self.history.append(trial.objective)

    def has_converged(self, tol: float) -> bool:
        """Tell whether the last two iterations gained little."""
        return len(self.history) > 2 and self.history[-1] - self.history[-3] <= tol


def _stretch(before: Floats, after: Floats, length: float) -> Floats:
    """Go from some memberships to others, and on in the same direction, in logarithms."""
    if length == 1:
        return after
    logs = np.log(np.maximum([before, after], TINY))
    moved = logs[0] + length * (logs[1] - logs[0])
    return np.asarray(np.exp(moved - logsumexp(moved, axis=1, keepdims=True)))


def log_probs_of(models: list[Any], rankings: Rankings) -> Floats:
    """Return the log-probability of each ranking, one column per model."""
    return np.column_stack([model.log_prob(rankings) for model in models])


def log_shares(shares: Floats) -> Floats:
    """Return logarithms; a group may be empty."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares))


def penalty(model: Any) -> float:
    """Return what the fit of a model took from the log-likelihood."""
    if isinstance(model, Mallows):
        return 0.0
    if isinstance(model, BabingtonSmith):
        # Each pair is twice in the table.
        return model.regularization / 4 * float(np.sum(model.log_odds_**2))
    return float(model.regularization / 2 * np.sum(model.log_worths_**2))
