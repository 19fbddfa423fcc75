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
GROWTH = 1.3
"""By how much a step of EM grows if the last one was good."""
TINY = 1e-300
"""Smaller memberships have no logarithm to go on from."""
SHORT_RUN = 5
"""Iterations after which the better half of the starts is kept."""


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
        The number of random starts. Each runs for a few iterations, then the better half
        continues, and so on; only the best one runs until convergence.
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
        sample = merge_equal(rankings)
        self.n_raters_ = float(sample.counts.sum())
        # Sums of weights are not exact.
        if self.n_groups > max(1.0, self.n_raters_ * (1 + 1e-9)):
            rule = f"needs at least as many raters, but there are {self.n_raters_:g}"
            raise InputError("n_groups", self.n_groups, rule)
        model = PlackettLuce() if self.model is None else self.model
        if not isinstance(model, (PlackettLuce, Mallows)):
            raise InputError("model", model, "must be PlackettLuce() or Mallows()")
        em = EM(sample, model, self.n_groups)
        run = self._run(em)
        if not run.has_converged(self.tol):
            warn_of_convergence(
                f"EM did not converge in {len(run.history)} iterations: raise max_iter or tol",
                stacklevel=2,
            )
        state = em.step(run.state, run.state.memberships, to_the_end=True)
        run.history.append(state.objective)
        by_size = np.argsort(-state.shares, kind="stable")
        self.items_ = rankings.items
        self.models_ = [state.models[g] for g in by_size]
        self.weights_ = state.shares[by_size]
        self.history_ = np.array(run.history)
        self.n_iter_ = len(run.history)
        self.log_likelihood_ = state.log_likelihood
        # Worths or a centre, and the spread of Mallows' model.
        n_own = int(alike_items(sample.rankings).max()) + isinstance(self.models_[0], Mallows)
        self.n_parameters_ = self.n_groups * (n_own + 1) - 1
        self.bic_ = -2 * self.log_likelihood_ + self.n_parameters_ * float(np.log(self.n_raters_))
        return self

    def _run(self, em: EM) -> Run:
        """Run all starts, the better half of them twice as long, and so on; then one to the end."""
        rng = require_generator(self.random_state)
        n_starts = self.n_starts if self.n_groups > 1 else 1
        # Random memberships find groups that no single rater stands for.
        starts = [
            em.start_at_random if i % 3 == 2 else em.start_from_raters for i in range(n_starts)
        ]
        runs, n_iter = [Run(start(rng)) for start in starts], SHORT_RUN
        while len(runs) > 1:
            for run in runs:
                run.go_on(em, min(n_iter, self.max_iter), self.tol)
            runs = sorted(runs, key=lambda run: -run.state.objective)[: len(runs) // 2]
            n_iter *= 2
        runs[0].go_on(em, self.max_iter, self.tol)
        return runs[0]

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


# ---- EM: the two steps, and the starts


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

    def __init__(self, sample: Sample, model: PlackettLuce | Mallows, n_groups: int) -> None:
        self.sample, self.model, self.n_groups = sample, model, n_groups
        weights = sample.rankings.weights
        shared = SHARED_WEIGHT if n_groups > 1 else 0.0
        self.shared = shared * weights / weights.sum()

    def evaluate(self, models: list[Any], log_probs: Floats, shares: Floats) -> State:
        """E step: the probability of each group for each unit."""
        joint = self.sample.copies @ log_probs + log_shares(shares)
        total = logsumexp(joint, axis=1)
        log_likelihood = float(self.sample.counts @ total)
        objective = log_likelihood + float((self.shared @ log_probs).sum())
        objective -= sum(map(_find_penalty, models))
        memberships = np.exp(joint - total[:, None])
        return State(models, shares, log_probs, memberships, log_likelihood, objective)

    def _weigh(self, memberships: Floats) -> tuple[Floats, Floats]:
        """The weight of each ranking in each group, and the shares of the groups."""
        counted = self.sample.counts[:, None] * memberships
        weights = self.sample.copies.T @ counted + self.shared[:, None]
        return weights, counted.sum(axis=0) / self.sample.counts.sum()

    def step(self, state: State, memberships: Floats, *, to_the_end: bool = False) -> State:
        """M step with some memberships, then E step.

        One step of Newton's method is enough of an M step (generalised EM), except for the last.
        """
        weights, shares = self._weigh(memberships)
        models, log_probs = list(state.models), state.log_probs.copy()
        for g, last in enumerate(state.models):
            model, column = self._fit(weights[:, g], None if to_the_end else last)
            gain = weights[:, g] @ (column - log_probs[:, g])
            if gain >= _find_penalty(model) - _find_penalty(last):
                models[g], log_probs[:, g] = model, column
        return self.evaluate(models, log_probs, shares)

    def _fit(
        self, weights: Floats, last: PlackettLuce | Mallows | None = None
    ) -> tuple[PlackettLuce | Mallows, Floats]:
        """The model of the rankings with these weights, and their log-probabilities.

        A model of worths takes one step of Newton's method from the ``last`` one, if there is one.
        """
        rankings = replace(self.sample.rankings, weights=weights)
        if isinstance(last, PlackettLuce):
            model: PlackettLuce | Mallows = last.improve(rankings)
        else:
            model = clone(self.model).fit(rankings)
        return model, model.log_prob(rankings)

    def start_at_random(self, rng: np.random.Generator) -> State:
        """Start with random memberships."""
        memberships = rng.dirichlet(np.ones(self.n_groups), len(self.sample.counts))
        weights, shares = self._weigh(memberships)
        models, columns = zip(*map(self._fit, weights.T), strict=True)
        return self.evaluate(list(models), np.column_stack(columns), shares)

    def start_from_raters(self, rng: np.random.Generator) -> State:
        """Start with groups around units that are far apart, as k-means++ does.

        The next unit is drawn in proportion to how much less probable it is, in the groups so
        far, than the most probable unit.
        """
        rankings, copies, counts = self.sample
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


def _find_penalty(model: PlackettLuce | Mallows) -> float:
    """What the fit of a model took from the log-likelihood."""
    if isinstance(model, Mallows):
        return 0.0
    return float(model.regularization / 2 * np.sum(model.log_worths_**2))


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


class Sample(NamedTuple):
    """Rankings without repetitions, and who gave them.

    Attributes
    ----------
    rankings : Rankings
        The different rankings, with their total weights.
    copies : csr_array of shape (units, rankings)
        How often a unit, a rater or a ranking, gave each of them.
    counts : ndarray of shape (units,)
        How many equal units each one stands for.
    """

    rankings: Rankings
    copies: csr_array
    counts: Floats


def merge_equal(rankings: Rankings) -> Sample:
    """Merge equal rankings, and equal units that have one ranking each."""
    rankings = keep_counted(rankings)
    rankings = replace(rankings, targets=np.full(len(rankings), None, object))
    unit, exponents, counts = assign_units(rankings)
    merged, number = merge_copies(rankings)
    # Units with a single ranking that counts once are equal if their rankings are.
    single = (np.bincount(unit)[unit] == 1) & (exponents == 1)
    many, other = np.unique(unit[~single], return_inverse=True)
    kinds, kind = np.unique(number[single], return_inverse=True)
    row = np.empty(len(rankings), np.intp)
    row[single], row[~single] = kind, len(kinds) + other
    alike = np.bincount(kind, counts[unit[single]], minlength=len(kinds))
    shape = (len(kinds) + len(many), len(merged))
    copies = np.where(single, 0.0, exponents)
    entries = csr_array((copies, (row, number)), shape=shape)
    entries += csr_array((np.ones(len(kinds)), (np.arange(len(kinds)), kinds)), shape=shape)
    entries.eliminate_zeros()
    return Sample(merged, entries, np.append(alike, np.ones(len(many))))
