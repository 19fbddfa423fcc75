"""The Plackett-Luce log-likelihood of rankings, its gradient and its information."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import wrightomega

from rankshot.core.blocks import row_blocks
from rankshot.core.progress import ProgressLine
from rankshot.ranking.choices import Stages, TiedChoice, TiedStages, stages_of
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
BLOCK_CELLS = 1 << 15
"""Arrays of 256 kB: they stay in the cache, and taking them costs no page faults."""
SAFE_RANGE = 300.0
"""Log-worths farther apart than this are summed as logarithms, which takes longer: the square
of a worth must not underflow."""


# -------------------- ranking.plackett_luce_likelihood
# The Plackett-Luce log-likelihood of rankings, its gradient and its information.


class Likelihood:
    """What the solvers ask of the data.

    The derivative in the log-worth of item i is ``wins[i] - expected[i]``: how often it was
    chosen less how often it should have been. Everything below is a running sum along the
    rankings, so one evaluation costs as much as reading them a few times.

    Attributes
    ----------
    wins : ndarray of shape (C,)
        The weight of the rankings that list each item among their first K.
    """

    def __init__(self, rankings: Rankings) -> None:
        rankings = rankings[rankings.weights > 0]
        self.n_items = rankings.n_items
        self._blocks = [
            _Block(stages_of(rankings[rows]), rankings.weights[rows])
            for rows in row_blocks(len(rankings), self.n_items, BLOCK_CELLS)
        ]
        self._single_wins: Floats = np.sum([block.single_wins for block in self._blocks], axis=0)
        tied_wins = np.sum([block.tied_wins for block in self._blocks], axis=0)
        self.wins: Floats = self._single_wins + tied_wins

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood, and the expected number of times each item is chosen."""
        theta = theta - theta.max()
        value = float(self._single_wins @ theta)
        expected = np.zeros(self.n_items)
        for block in self._blocks:
            part, chosen = block.value_and_expected(theta)
            value += part
            expected += chosen
        return value, expected

    def information(self, theta: Floats) -> Floats:
        """Return minus the matrix of second derivatives."""
        theta = theta - theta.max()
        return np.asarray(sum(block.information(theta) for block in self._blocks))


@dataclass
class _Block:
    stages: Stages
    weights: Floats

    def __post_init__(self) -> None:
        C = len(self.stages.order)
        self.n_items = C
        self.order = self.stages.order
        # Nothing happens below the last choice: short lists of many items cost less.
        last = np.flatnonzero(self.stages.chosen.any(axis=1)).max(initial=0)
        self.depth = 1 + max([int(last), *(int(tie.end.max()) for tie in self.stages.ties)])
        self.chosen = self.stages.chosen[: self.depth]
        self.single_wins = np.bincount(
            self.order[: self.depth].ravel(), (self.chosen * self.weights).ravel(), minlength=C + 1
        )[:C]
        self.tied_wins = np.zeros(C)
        for tie in self.stages.ties:
            np.add.at(self.tied_wins, tie.members, self.weights[tie.column][:, None])

    def _remaining(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the worths in order, and the total worth of each item and all that follow."""
        worths = np.append(np.exp(theta), 0.0).take(self.order)
        remaining = np.zeros((self.n_items + 1, worths.shape[1]))
        remaining[:-1] = worths
        _add_up(remaining[::-1])
        return worths, remaining

    def _totals(self, remaining: Floats) -> Floats:
        """Return what each single choice was made from, and 1 where there was none."""
        return np.where(self.chosen, remaining[: self.depth], 1.0)

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        if np.ptp(theta) > SAFE_RANGE:
            return self._value_and_expected_by_logs(theta)
        C = self.n_items
        worths, remaining = self._remaining(theta)
        totals = self._totals(remaining)
        log_totals = np.log(totals).sum(axis=0)
        value = -float(self.weights @ (log_totals + self.stages.log_ways))
        rate = self.chosen * self.weights
        rate /= totals
        expected = np.zeros(C)
        for tie in self.stages.ties:
            weight = self.weights[tie.column]
            total = remaining[tie.end, tie.column]
            choice = TiedChoice(theta[tie.members], np.log(total), tie.taken)
            value += float(weight @ choice.log_prob)
            np.add.at(expected, tie.members, weight[:, None] * (1 - choice.gradient))
            # For what comes later a tie is a choice from it that somebody else has won.
            np.add.at(rate, (tie.end, tie.column), weight * choice.gradient.sum(axis=1) / total)
        _add_up(rate)
        worths[: self.depth] *= rate
        worths[self.depth :] *= rate[-1]
        expected += np.bincount(self.order.ravel(), worths.ravel(), minlength=C + 1)[:C]
        return value, expected

    def _log_remaining(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the logs of what `_remaining` returns."""
        log_worths = np.append(theta, -np.inf).take(self.order)
        remaining = np.full((self.n_items + 1, log_worths.shape[1]), -np.inf)
        np.logaddexp.accumulate(log_worths[::-1], axis=0, out=remaining[-2::-1])
        return log_worths, remaining

    def _value_and_expected_by_logs(self, theta: Floats) -> tuple[float, Floats]:
        """Return the same as `value_and_expected`, by ratios that are never larger than 1.

        Σ 1/S over the stages so far is kept as a multiple of 1/S at the last of them.
        """
        C = self.n_items
        log_worths, remaining = self._log_remaining(theta)
        log_totals = np.where(self.stages.chosen, remaining[:-1], 0.0).sum(axis=0)
        value = -float(self.weights @ (log_totals + self.stages.log_ways))
        choices = self.stages.chosen * self.weights
        expected = np.zeros(C)
        for tie in self.stages.ties:
            weight = self.weights[tie.column]
            rest = remaining[tie.end, tie.column]
            choice = TiedChoice(theta[tie.members], rest, tie.taken)
            value += float(weight @ choice.log_prob)
            np.add.at(expected, tie.members, weight[:, None] * (1 - choice.gradient))
            np.add.at(choices, (tie.end, tie.column), weight * choice.gradient.sum(axis=1))
        _carry_down(choices, np.exp(_difference(remaining[1:-1], remaining[:-2])))
        shares = np.exp(_difference(log_worths, remaining[:-1])) * choices
        expected += np.bincount(self.order.ravel(), shares.ravel(), minlength=C + 1)[:C]
        return value, expected

    def information(self, theta: Floats) -> Floats:
        r"""Sum diag(p) - p pᵀ over the choices.

        The p_a p_b of one ranking sum to v_a v_b Σ 1/S² over the stages at which both remain.
        That running sum grows along the ranking, so it is the smaller of the sums at a and b.
        """
        both = self._both_by_logs(theta) if np.ptp(theta) > SAFE_RANGE else self._both(theta)
        # At every stage the chances of all that remain add up to one.
        information = np.diag(both.sum(axis=1)) - both
        if self.stages.ties:
            _, remaining = self._log_remaining(theta)
            for tie in self.stages.ties:
                information -= self._tie_hessian(theta, remaining, tie)
        return information

    def _both(self, theta: Floats) -> Floats:
        """Return Σ p_a p_b over the single choices."""
        C = self.n_items
        _, remaining = self._remaining(theta)
        rate = self.chosen * self.weights
        rate /= self._totals(remaining) ** 2
        _add_up(rate)
        running = np.zeros((C + 1, len(self.weights)))
        column = np.arange(len(self.weights))
        running[self.order[: self.depth], column] = rate
        running[self.order[self.depth :], column] = rate[-1]
        overlap = np.empty((C, C))
        for a in range(C):
            overlap[a, a:] = np.minimum(running[a], running[a:C]).sum(axis=1)
            overlap[a:, a] = overlap[a, a:]
        v = np.exp(theta)
        return np.asarray(v[:, None] * v * overlap)

    def _both_by_logs(self, theta: Floats) -> Floats:
        """Return the same, of worths that are too far apart to be squared."""
        C, n = self.n_items, len(self.weights)
        _, remaining = self._log_remaining(theta)
        choices = self.stages.chosen * self.weights
        _carry_down(choices, np.exp(2 * _difference(remaining[1:-1], remaining[:-2])))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_rate = np.where(choices > 0, np.log(choices) - 2 * remaining[:-1], -np.inf)
        running = np.full((C + 1, n), -np.inf)
        running[self.order, np.arange(n)] = log_rate
        both = np.empty((C, C))
        for a in range(C):
            log_overlap = np.minimum(running[a], running[:C])
            both[a] = np.exp(log_overlap + (theta[a] + theta)[:, None]).sum(axis=1)
        return both

    def _tie_hessian(self, theta: Floats, remaining: Floats, tie: TiedStages) -> Floats:
        """Return the second derivatives of a tie, in the group's worths and the others' total."""
        C, g = self.n_items, tie.size
        weight = self.weights[tie.column]
        rest = remaining[tie.end, tie.column]
        choice = TiedChoice(theta[tie.members], rest, tie.taken)
        stage = np.arange(len(rest))[:, None]
        later = np.arange(C)[:, None] >= tie.end
        shares = np.zeros((C + 1, len(rest)))
        shares[self.order[:, tie.column], stage.T] = later
        # Only what comes later has a share; of the others the ratio may be huge.
        ratio = np.where(shares[:C] > 0, theta[:, None] - rest, -np.inf)
        shares = np.exp(ratio)
        slope = -choice.gradient.sum(axis=1)
        hessian: Floats = (shares * (weight * (choice.hessian[:, g, g] - slope))) @ shares.T
        hessian[np.diag_indices(C)] += shares @ (weight * slope)
        mixed = np.zeros((len(rest), C))
        mixed[stage, tie.members] = weight[:, None] * choice.hessian[:, :g, g]
        cross = shares @ mixed
        hessian += cross + cross.T
        own = weight[:, None, None] * choice.hessian[:, :g, :g]
        np.add.at(hessian, (tie.members[:, :, None], tie.members[:, None, :]), own)
        return hessian


def _add_up(rows: Floats) -> None:
    """Turn rows into their running sums, in place.

    A loop over rows: unlike ``np.cumsum`` along this axis, it adds whole rows at a time.
    """
    for above, row in pairwise(rows):
        np.add(row, above, out=row)


def _carry_down(rows: Floats, shrink: Floats) -> None:
    """Add to every row, in place, what the rows above have come to, shrunk on the way."""
    for p in range(1, len(rows)):
        rows[p] += rows[p - 1] * shrink[p - 1]


def _difference(a: Floats, b: Floats) -> Floats:
    """Return a - b of logarithms, where nothing less nothing is nothing."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(a), -np.inf, a - b)


# -------------------- ranking.plackett_luce_solvers
# Three ways to the same maximum of the penalised Plackett-Luce likelihood.
#
# All maximise  value(θ) - regularization/2 Σ θ_i²  over log-worths θ, and stop when what is left
# to gain is estimated at less than ``tol``.


class Solver(Protocol):
    """From the data to log-worths, the iterations it took, and whether they were enough."""

    def __call__(
        self,
        likelihood: Likelihood,
        regularization: float,
        tol: float,
        max_iter: int,
        line: ProgressLine,
    ) -> tuple[Floats, int, bool]:
        """Solve."""


def solve_newton(
    likelihood: Likelihood, regularization: float, tol: float, max_iter: int, line: ProgressLine
) -> tuple[Floats, int, bool]:
    """Newton's method with step halving, after one step of `solve_mm` from equal worths."""
    theta = np.zeros(likelihood.n_items)
    _, expected = likelihood.value_and_expected(theta)
    theta = mm_step(theta, likelihood.wins, expected, regularization)
    value, expected = _penalized(likelihood, theta, regularization)
    gain, fresh_enough = np.inf, 0.0
    for iteration in range(1, max_iter + 1):
        gradient = likelihood.wins - expected - regularization * theta
        # A curvature is worth keeping while it still makes the gains fall a hundredfold.
        if gain > fresh_enough:
            factor = _curvature(likelihood.information(theta), regularization)
            gain = np.inf
        fresh_enough = gain / 100
        step = cho_solve(factor, gradient)
        gain = float(gradient @ step) / 2
        line.update(f"iteration {iteration}, log-likelihood {value:.6f}, to gain {gain:.1e}")
        theta, value, expected = _climb(likelihood, regularization, theta, value, step)
        if gain <= tol:
            return theta, iteration, True
    return theta, max_iter, False


def _curvature(information: Floats, regularization: float) -> tuple[Floats, bool]:
    """Factor the penalised information, lifted where it is not positive.

    Ties that K cuts can make the likelihood bend the wrong way; shorter steps uphill do then.
    """
    C = len(information)
    curvature = information + regularization * np.eye(C)
    if regularization == 0:
        # Scaling all worths changes nothing: pin that direction with a curvature of its own.
        curvature += max(np.trace(curvature), np.finfo(float).tiny) / C**2
    lift = 0.0
    while True:
        try:
            return cho_factor(curvature + lift * np.eye(C))  # type: ignore[no-any-return]
        except LinAlgError:
            lift = max(10 * lift, 1e-6 * float(np.abs(np.diag(curvature)).max()))


def _climb(
    likelihood: Likelihood, regularization: float, theta: Floats, value: float, step: Floats
) -> tuple[Floats, float, Floats]:
    """Take the step, halved until it does not lead down (but for rounding)."""
    least = value - 1e-13 * abs(value)
    scale = 1.0
    while True:
        trial = theta + scale * step
        trial_value, expected = _penalized(likelihood, trial, regularization)
        if trial_value >= least or scale < 1e-10:
            return trial, trial_value, expected
        scale /= 2


def solve_mm(
    likelihood: Likelihood, regularization: float, tol: float, max_iter: int, line: ProgressLine
) -> tuple[Floats, int, bool]:
    """Hunter's minorisation-maximisation: every step climbs, none is large.

    The gains shrink by a steady factor, which tells how much is still to come.
    """
    theta = np.zeros(likelihood.n_items)
    value, expected = _penalized(likelihood, theta, regularization)
    last_gain = np.inf
    next_check = 3
    for iteration in range(1, max_iter + 1):
        theta = mm_step(theta, likelihood.wins, expected, regularization)
        new_value, expected = _penalized(likelihood, theta, regularization)
        gain, value = new_value - value, new_value
        ratio = min(gain / last_gain, 1.0) if last_gain > 0 else 0.0
        to_come = gain * ratio / (1 - ratio) if ratio < 1 else np.inf
        last_gain = gain
        line.update(f"iteration {iteration}, log-likelihood {value:.6f}, to gain {to_come:.1e}")
        rounding = 8 * np.finfo(float).eps * abs(value)
        if iteration >= next_check and (gain <= rounding or to_come <= tol):
            # Steps that have become too small to see can still have a long way to go.
            gradient = likelihood.wins - expected - regularization * theta
            factor = _curvature(likelihood.information(theta), regularization)
            if float(gradient @ cho_solve(factor, gradient)) / 2 <= max(tol, rounding):
                return theta, iteration, True
            next_check = 2 * iteration
    return theta, max_iter, False


def mm_step(theta: Floats, wins: Floats, expected: Floats, regularization: float) -> Floats:
    """Maximise the minorising function, one log-worth at a time.

    With exposure d_i = expected_i / v_i, the maximum is where wins_i - d_i e^θ - η θ = 0:
    Hunter's v_i = wins_i / d_i without the penalty η, Wright's omega function with it.
    """
    new = np.zeros_like(theta)
    # An item that was never there to be chosen is known by the penalty alone.
    seen = expected > 0
    log_exposure = np.log(expected[seen]) - theta[seen]
    if regularization == 0:
        new[seen] = np.log(wins[seen]) - log_exposure
    else:
        log_scaled = log_exposure - np.log(regularization)
        omega = wrightomega(wins[seen] / regularization + log_scaled)
        new[seen] = np.log(omega) - log_scaled
    # The likelihood does not see a common shift, and the penalty is least without one.
    return np.asarray(new - new.mean())


def solve_lbfgs(
    likelihood: Likelihood, regularization: float, tol: float, max_iter: int, line: ProgressLine
) -> tuple[Floats, int, bool]:
    """SciPy's L-BFGS-B, on log-worths scaled by how often each item is chosen."""
    start = np.zeros(likelihood.n_items)
    first, expected = _penalized(likelihood, start, regularization)
    scale = 1 / np.sqrt(expected + regularization)
    iteration = 0

    def negative(scaled: Floats) -> tuple[float, Floats]:
        theta = scale * scaled
        value, expected = _penalized(likelihood, theta, regularization)
        gradient = likelihood.wins - expected - regularization * theta
        # Near zero at the start, numbers keep their digits where it matters.
        return first - value, -scale * gradient

    def count(intermediate_result: object) -> None:
        nonlocal iteration
        iteration += 1
        value = first - float(intermediate_result.fun)  # type: ignore[attr-defined]
        line.update(f"iteration {iteration}, log-likelihood {value:.6f}")

    result = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=count,
        options={
            "maxiter": max_iter,
            "maxfun": 4 * max_iter,
            "ftol": 0.0,
            "gtol": 1e-9,
            "maxcor": 20,
        },
    )
    theta = scale * result.x
    # A line search that rounding has stopped is as converged as the numbers allow.
    _, gradient = negative(result.x)
    return (
        theta - theta.mean(),
        iteration,
        bool(gradient @ gradient <= max(tol, 1e-12 * abs(first))),
    )


def _penalized(
    likelihood: Likelihood, theta: Floats, regularization: float
) -> tuple[float, Floats]:
    value, expected = likelihood.value_and_expected(theta)
    return value - regularization / 2 * float(theta @ theta), expected
