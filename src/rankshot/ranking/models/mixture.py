"""Mixtures: raters who disagree are described by several groups, each with its own model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp

from rankshot.core.errors import InputError
from rankshot.core.estimators import Estimator, check_is_fitted, clone, warn_of_convergence
from rankshot.core.validation import Seed, require_generator, require_number, require_whole_number
from rankshot.ranking.construction import number_labels
from rankshot.ranking.matrices import alike_items
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import (
    Rankings,
    keep_counted,
    merge_copies,
    require_one_subject,
    require_rankings,
)

Floats = NDArray[np.float64]
SHARED_WEIGHT = 0.01
"""The total weight with which all rankings count in every group, so that no group, however small,
makes a ranking impossible."""
SHORT_RUN = 10
"""Iterations after which the best start is kept."""


class RankingMixture(Estimator):
    r"""A mixture of Plackett-Luce or Mallows models: groups of raters, fitted by EM.

    Each rater belongs to one of G groups and ranks according to the model of that group; a ranking
    without a rater is a rater of its own. The joint probability of all rankings by a rater is

    .. math:: P(\pi_1, \ldots, \pi_m) = \sum_{g=1}^G w_g \prod_{i=1}^m P(\pi_i; \text{group } g)

    Parameters
    ----------
    model : PlackettLuce or Mallows, optional
        The model of a group; `PlackettLuce` by default. A copy is fitted to each group.
    n_groups : int
        The number of groups, G. The best number is the one with the smallest ``bic_``.
    n_starts : int
        The number of random starts. Each runs for ten iterations; the best one then runs until
        convergence.
    tol : float
        Stop when the last two iterations together increased the log-likelihood by less than this.
    max_iter : int
        The maximum number of iterations; a warning is issued if EM has not converged by then.
    random_state : int or numpy.random.Generator, optional

    Attributes
    ----------
    items_ : tuple of str
    models_ : list
        The fitted model of each group, the largest group first.
    weights_ : ndarray of shape (G,)
        The share of each group; they add up to one.
    log_likelihood_ : float
        The log-likelihood of the rankings that were fitted, without any penalty.
    history_ : ndarray
        The penalised log-likelihood after each iteration of the best start.
    n_raters_ : float
        The number of raters, including each ranking without a rater.
    n_parameters_ : int
        The number of parameters: G - 1 shares, and the parameters of each model. Items at the same
        level in every ranking share one parameter, and the centre of a Mallows model is counted
        like worths.
    bic_ : float
        -2 ``log_likelihood_`` + ``n_parameters_`` log ``n_raters_``: smaller is better. It tends to
        choose too few groups if rankings are short or few.
    n_iter_ : int

    Notes
    -----
    A ranking of weight w is treated as w rankings: by the same rater, or by w raters if it has
    none.

    In every group, all rankings together get an additional weight of 0.01, so that the model of a
    small group exists. With one group nothing is added: the fit is that of the model.

    References
    ----------
    Murphy and Martin (2003), Mixtures of distance-based models for ranking data. Computational
    Statistics & Data Analysis 41.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["tea", "juice", "beer"], ["tea", "beer", "juice"], ["beer", "juice", "tea"]],
    ...     items=["beer", "juice", "tea"], weights=[40, 20, 30])
    >>> mixture = rs.RankingMixture(rs.Mallows(), random_state=0).fit(votes)
    >>> mixture.weights_.round(2)
    array([0.67, 0.33])
    >>> [model.center_ for model in mixture.models_]
    [('tea', 'juice', 'beer'), ('beer', 'juice', 'tea')]
    >>> mixture.predict(votes)
    array([0, 0, 1])
    """

    def __init__(
        self,
        model: PlackettLuce | Mallows | None = None,
        n_groups: int = 2,
        *,
        n_starts: int = 10,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Seed = None,
    ) -> None:
        self.model = model
        self.n_groups = n_groups
        self.n_starts = n_starts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, rankings: Rankings) -> RankingMixture:
        """Find the groups, and estimate the model of each.

        Parameters
        ----------
        rankings : Rankings
            Rankings that the model accepts; their weights are used.
        """
        rankings = require_one_subject(rankings)
        require_whole_number("n_groups", self.n_groups)
        require_whole_number("n_starts", self.n_starts)
        require_whole_number("max_iter", self.max_iter)
        require_number("tol", self.tol, above=0, below=np.inf)
        model = PlackettLuce() if self.model is None else self.model
        if not isinstance(model, (PlackettLuce, Mallows)):
            raise InputError("model", model, "must be PlackettLuce() or Mallows()")
        em, rng = EM(rankings, model, self.n_groups), require_generator(self.random_state)
        self.n_raters_ = float(em.counts.sum())
        # Sums of weights are not exact.
        if self.n_groups > max(1.0, self.n_raters_ * (1 + 1e-9)):
            rule = f"needs at least as many raters, but there are {self.n_raters_:g}"
            raise InputError("n_groups", self.n_groups, rule)
        n_starts = self.n_starts if self.n_groups > 1 else 1
        starts = [
            em.run([em.start(rng)], min(SHORT_RUN, self.max_iter), self.tol)
            for _ in range(n_starts)
        ]
        best = max(starts, key=lambda states: states[-1].objective)
        states = em.run(best, self.max_iter, self.tol)
        if not has_converged(states, self.tol):
            warn_of_convergence(
                f"EM did not converge in {self.max_iter} iterations: raise max_iter or tol",
                stacklevel=2,
            )
        state = states[-1]
        by_size = np.argsort(-state.shares, kind="stable")
        self.items_ = rankings.items
        self.models_ = [state.models[g] for g in by_size]
        self.weights_ = state.shares[by_size]
        self.history_ = np.array([each.objective for each in states[1:]])
        self.n_iter_ = len(self.history_)
        self.log_likelihood_ = state.log_likelihood
        # Worths or a centre, and the spread of Mallows' model.
        n_own = int(alike_items(em.rankings).max()) + isinstance(self.models_[0], Mallows)
        self.n_parameters_ = self.n_groups * (n_own + 1) - 1
        self.bic_ = -2 * self.log_likelihood_ + self.n_parameters_ * float(np.log(self.n_raters_))
        return self

    def log_prob(self, rankings: Rankings) -> Floats:
        """Log-probability of each ranking, if nothing is known about its rater."""
        check_is_fitted(self)
        rankings = require_rankings(rankings).with_items(self.items_)
        joint = log_probs_of(self.models_, rankings) + log_shares(self.weights_)
        return np.asarray(logsumexp(joint, axis=1))

    def predict_proba(self, rankings: Rankings) -> Floats:
        """Probability of each group, one row per ranking.

        All rankings by a rater are used, and have the same row. Rankings that are impossible in
        every group give no information about the group: their row is ``weights_``.
        """
        check_is_fitted(self)
        rankings = require_rankings(rankings).with_items(self.items_)
        unit, exponents, _ = assign_units(rankings)
        log_probs = log_probs_of(self.models_, rankings)
        # A ranking of weight 0 says nothing, even if it is impossible.
        log_probs *= np.where(exponents > 0, exponents, 1.0)[:, None]
        log_probs[exponents == 0] = 0.0
        joint = np.tile(log_shares(self.weights_), (int(unit.max(initial=-1)) + 1, 1))
        np.add.at(joint, unit, log_probs)
        possible = (joint > -np.inf).any(axis=1, keepdims=True)
        joint = np.where(possible, joint, log_shares(self.weights_))
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True))[unit])

    def predict(self, rankings: Rankings) -> NDArray[np.intp]:
        """Number of the most probable group, one per ranking; 0 is the largest."""
        return np.asarray(self.predict_proba(rankings).argmax(axis=1))


# ---- EM: the start, and the two steps


class State(NamedTuple):
    """A fit: the models and shares of the groups, and what they say of the rankings."""

    models: list[Any]
    shares: Floats
    log_probs: Floats
    memberships: Floats
    log_likelihood: float
    objective: float


class EM:
    """Where EM starts, and its two steps.

    Attributes
    ----------
    rankings : Rankings
        The different rankings, with their total weights.
    copies : csr_array of shape (units, rankings)
        How often a unit, a rater or a ranking, gave each of them.
    counts : ndarray of shape (units,)
        How many equal units each one stands for.
    """

    def __init__(self, rankings: Rankings, model: PlackettLuce | Mallows, n_groups: int) -> None:
        self.model, self.n_groups = model, n_groups
        counted = keep_counted(rankings)
        counted = replace(counted, targets=np.full(len(counted), None, object))
        unit, exponents, self.counts = assign_units(counted)
        self.rankings, number = merge_copies(counted)
        shape = len(self.counts), len(self.rankings)
        self.copies = csr_array((exponents, (unit, number)), shape=shape)
        weights = self.rankings.weights
        shared = SHARED_WEIGHT if n_groups > 1 else 0.0
        self.shared = shared * weights / weights.sum()

    def start(self, rng: np.random.Generator) -> State:
        """Start with groups around units that are far apart, as k-means++ does.

        The next unit is drawn in proportion to how much less probable it is, in the groups so
        far, than the most probable unit.
        """
        rankings, copies, counts = self.rankings, self.copies, self.counts
        everybody = rankings.weights / rankings.weights.sum()
        models: list[Any] = []
        columns: list[Floats] = []
        chance = counts
        for _ in range(self.n_groups):
            seed = rng.choice(len(counts), p=chance / chance.sum())
            own = copies[[seed]].toarray()[0]
            # Two thirds of the weight for the rankings of this unit, one third for all.
            model, column = self._fit(2 * own / own.sum() + everybody)
            models.append(model)
            columns.append(column)
            best = (copies @ np.column_stack(columns)).max(axis=1)
            chance = counts * (best.max() - best)
            if not chance.any():
                chance = counts
        shares = np.full(self.n_groups, 1 / self.n_groups)
        return self.evaluate(models, np.column_stack(columns), shares)

    def run(self, states: list[State], n_iter: int, tol: float) -> list[State]:
        """Add the states of further iterations, up to the given number of them."""
        states = list(states)
        while len(states) <= n_iter and not has_converged(states, tol):
            states.append(self.step(states[-1]))
        return states

    def evaluate(self, models: list[Any], log_probs: Floats, shares: Floats) -> State:
        """E step: the probability of each group for each unit."""
        joint = self.copies @ log_probs + log_shares(shares)
        total = logsumexp(joint, axis=1)
        log_likelihood = float(self.counts @ total)
        objective = log_likelihood + float((self.shared @ log_probs).sum())
        objective -= sum(map(_find_penalty, models))
        memberships = np.exp(joint - total[:, None])
        return State(models, shares, log_probs, memberships, log_likelihood, objective)

    def step(self, state: State) -> State:
        """M step, then E step."""
        counted = self.counts[:, None] * state.memberships
        weights = self.copies.T @ counted + self.shared[:, None]
        models, log_probs = list(state.models), state.log_probs.copy()
        for g, last in enumerate(state.models):
            model, column = self._fit(weights[:, g])
            # The search for a centre may end at a worse one.
            gain = weights[:, g] @ (column - log_probs[:, g])
            if gain >= _find_penalty(model) - _find_penalty(last):
                models[g], log_probs[:, g] = model, column
        shares = counted.sum(axis=0) / self.counts.sum()
        return self.evaluate(models, log_probs, shares)

    def _fit(self, weights: Floats) -> tuple[PlackettLuce | Mallows, Floats]:
        """The model of the rankings with these weights, and their log-probabilities."""
        rankings = replace(self.rankings, weights=weights)
        model = clone(self.model).fit(rankings)
        return model, model.log_prob(rankings)


def has_converged(states: list[State], tol: float) -> bool:
    """Tell whether the last two iterations gained little."""
    return len(states) > 3 and states[-1].objective - states[-3].objective <= tol


def _find_penalty(model: PlackettLuce | Mallows) -> float:
    """What the fit of a model took from the log-likelihood."""
    if isinstance(model, Mallows):
        return 0.0
    return float(model.regularization / 2 * np.sum(model.log_worths_**2))


def log_probs_of(models: list[PlackettLuce | Mallows], rankings: Rankings) -> Floats:
    """Log-probability of each ranking, one column per model."""
    return np.column_stack([model.log_prob(rankings) for model in models])


def log_shares(shares: Floats) -> Floats:
    """Logarithms; a group may be empty."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares))


# ---- Raters, or single rankings, as units that are grouped or drawn


def assign_units(rankings: Rankings) -> tuple[NDArray[np.intp], Floats, Floats]:
    """Units of rankings: raters with all of theirs, or each ranking."""
    rater, weights = number_labels(rankings.raters), rankings.weights
    owned, n_raters = rater > 0, int(rater.max(initial=0))
    unit = np.where(owned, rater, n_raters + np.cumsum(~owned)) - 1
    return unit, np.where(owned, weights, 1.0), np.append(np.ones(n_raters), weights[~owned])
