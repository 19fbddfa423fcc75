"""Kemeny's consensus from the matrix of precedences: by local search, and with proof.

An order is an array of item numbers, best first; ``W[i, j]`` is the weight of the rankings
that place i before j. The searches start from the order 0, 1, 2, …
"""

from __future__ import annotations

from collections.abc import Callable
from graphlib import TopologicalSorter
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

from rankshot.core.progress import ProgressLine

Floats = NDArray[np.float64]
Items = NDArray[np.intp]
MAX_SWAPS = 1000
"""The paper's limit for the adjacent search."""
STRETCH = 12
"""How many neighbouring items `insertion_search` shuffles at a time."""
LEAST_GAIN = 1e-12
"""Gains smaller than this fraction of the largest weight are rounding errors."""
TOLERANCE = 1e-6
"""The accuracy of the linear solver."""
ROWS_PER_ITEM = 50
"""The most new constraints per item in a round: more only slow down the solver."""


# ---- Local search


def reversed_weight(W: Floats, order: Items) -> float:
    """Return Kemeny's score: the weight of all pairs that the order reverses."""
    return float(np.tril(W[np.ix_(order, order)], -1).sum())


def adjacent_search(W: Floats) -> Items:
    """Swap the two neighbours that lower the score most, until none does (the paper's search)."""
    order = np.arange(len(W))
    excess = W.T - W
    for _ in range(MAX_SWAPS):
        gain = excess[order[:-1], order[1:]]
        best = int(np.argmax(gain)) if gain.size else 0
        if not gain.size or gain[best] <= LEAST_GAIN * excess.max():
            break
        order[best], order[best + 1] = order[best + 1], order[best]
    return order


def improve_by_insertion(W: Floats, order: Items) -> Items:
    """Move single items to where they cost least, until no move lowers the score."""
    order = order.copy()
    _insert_until_stable(W - W.T, order, np.random.default_rng(0))
    return order


def insertion_search(W: Floats) -> Items:
    """Move single items to where they cost least, and shuffle parts of the order.

    After the first local optimum, `STRETCH` neighbours are shuffled and their items are moved
    again; the result is kept unless it is worse. The random numbers are seeded: the same
    precedences always give the same order.
    """
    C = len(W)
    rng = np.random.default_rng(0)
    excess = W - W.T
    order = np.arange(C)
    _insert_until_stable(excess, order, rng)
    for _ in range(C // 2):
        order = _shuffle_stretch(excess, order, rng)
    _insert_until_stable(excess, order, rng)
    return order


def _insert_until_stable(excess: Floats, order: Items, rng: np.random.Generator) -> None:
    while _insert_items(excess, order, rng.permutation(len(order)).tolist()) > 0:
        pass


def _insert_items(excess: Floats, order: Items, items: list[int]) -> float:
    """Move each of ``items`` to its best place, one by one and in place; return the gain.

    The cost of an item behind the first r others is the sum of its excesses over them.
    """
    gained = 0.0
    least_gain = LEAST_GAIN * len(order) * float(excess.max())
    for item in items:
        cost = excess[item].take(order).cumsum()
        here = int((order == item).argmax())
        best = int(cost.argmin())
        least = float(cost[best])
        if least >= 0:
            best, least = -1, 0.0
        gain = float(cost[here]) - least
        if gain <= least_gain:
            continue
        gained += gain
        if best < here:
            order[best + 2 : here + 1] = order[best + 1 : here].copy()
            order[best + 1] = item
        else:
            order[here:best] = order[here + 1 : best + 1].copy()
            order[best] = item
    return gained


def _shuffle_stretch(excess: Floats, order: Items, rng: np.random.Generator) -> Items:
    trial = order.copy()
    begin = int(rng.integers(0, max(len(order) - STRETCH, 0) + 1))
    stretch = trial[begin : begin + STRETCH]
    before = _stretch_cost(excess, stretch)
    rng.shuffle(stretch)
    loss = _stretch_cost(excess, stretch) - before
    items = stretch.tolist()
    while (gained := _insert_items(excess, trial, items)) > 0:
        loss -= gained
    return trial if loss <= 0 else order


def _stretch_cost(excess: Floats, stretch: Items) -> float:
    # The excess of a pair has both of its sides, so the sum counts it twice.
    return float(np.tril(excess[np.ix_(stretch, stretch)], -1).sum()) / 2


def settle_ties(W: Floats, order: Items) -> Items:
    """Swap neighbours that the rankings do not tell apart into ascending order.

    If few rankings are merged, many orders have the best score. Without this, the one that is
    found would depend on the path of the search.
    """
    order = order.copy()
    excess = np.abs(W - W.T)
    indifferent = excess <= LEAST_GAIN * max(float(excess.max(initial=0)), 1e-300)
    swapped = True
    while swapped:
        swapped = False
        for first in (0, 1):
            left = order[first : len(order) - 1 : 2]
            right = order[first + 1 :: 2]
            swap = np.flatnonzero((left > right) & indifferent[left, right])
            left[swap], right[swap] = right[swap], left[swap]
            swapped |= swap.size > 0
    return order


# ---- Proof, by linear and integer programming (SciPy's HiGHS)
#
# A variable x_ij is 1 if i comes before j. An order satisfies x_ij + x_jk - x_ik ∈ {0, 1} for
# every triple. There are C³/6 of these constraints, and hardly any is active. The linear solver
# starts without them, adds those that its solution violates, and repeats. The solution is nearly
# always integral; if it is not, the same constraints go to the integer solver.


def solve_exactly(
    W: Floats, *, time_limit: float | None = None, verbose: bool = False
) -> tuple[Items, float]:
    """Return an order, and by how much at most its score exceeds the best: 0 is a proof.

    If a majority prefers every item of one group to every item of another, some best order
    places the first group before the second (the extended Condorcet principle). Each group is
    then solved separately.
    """
    deadline = np.inf if time_limit is None else monotonic() + time_limit
    order: list[Items] = []
    gap = 0.0
    with ProgressLine("kemeny", enabled=verbose) as line:
        for group in majority_groups(W):
            best, excess = _solve_group(W[np.ix_(group, group)], deadline, line.update)
            order.append(group[best])
            gap += excess
    return np.concatenate(order), gap


def majority_groups(W: Floats) -> list[Items]:
    """Split the items into groups, best first; no strict majority prefers a later group."""
    beats = W > W.T
    count, label = connected_components(csr_array(beats), connection="strong")
    if count == 1:
        return [np.arange(len(W))]
    graph: dict[int, set[int]] = {number: set() for number in range(count)}
    winners, losers = np.nonzero(beats)
    for winner, loser in np.unique(np.column_stack([label[winners], label[losers]]), axis=0):
        if winner != loser:
            graph[int(loser)].add(int(winner))
    return [np.flatnonzero(label == number) for number in TopologicalSorter(graph).static_order()]


def _solve_group(W: Floats, deadline: float, report: Callable[[str], None]) -> tuple[Items, float]:
    """Solve one irreducible problem: an order, and how far from the best it may be."""
    # Scale the weights to the size that the solver's tolerances are meant for.
    scale = float(W.max()) if W.size and W.max() > 0 else 1.0
    order = insertion_search(W)
    score = reversed_weight(W, order)
    program = _Program(W / scale, step=_common_step(W) / scale)
    bound = program.floor
    x = program.majority()
    integer = False
    while program.gap(score / scale, bound) > 0:
        rows_added = program.add_violated(x, deadline)
        if rows_added is None:
            break
        if rows_added == 0:
            if integer or _is_integral(x):
                break
            integer = True
        solution = program.solve(integer=integer, seconds=deadline - monotonic())
        if solution is None:
            break
        x, least = solution
        bound = max(bound, least)
        rounded = improve_by_insertion(W, program.sort_items(x))
        if (rounded_score := reversed_weight(W, rounded)) < score:
            order, score = rounded, rounded_score
        report(f"{len(W)} items, {program.n_rows} rows, bound {bound * scale:.2f} of {score:g}")
    return order, scale * program.gap(score / scale, bound)


def _is_integral(x: Floats) -> bool:
    return bool(np.all(np.minimum(x, 1 - x) < TOLERANCE))


class _Program:
    """Minimise Σ_{i<j} cost_ij x_ij + constant over 0 ≤ x ≤ 1 and the rows added so far."""

    def __init__(self, W: Floats, step: float) -> None:
        self.n_items = len(W)
        self.i, self.j = np.triu_indices(self.n_items, 1)
        self.number = np.zeros((self.n_items, self.n_items), int)
        self.number[self.i, self.j] = np.arange(self.i.size)
        self.cost = W[self.j, self.i] - W[self.i, self.j]
        self.constant = float(W[self.i, self.j].sum())
        self.floor = self.constant + float(np.minimum(self.cost, 0).sum())
        self.step = step
        self.rows = csr_array((0, self.i.size))
        self.limits = np.zeros(0)

    @property
    def n_rows(self) -> int:
        return len(self.limits)

    def majority(self) -> Floats:
        """Return the best x without any row: every pair by its majority."""
        return (self.cost <= 0).astype(float)

    def gap(self, score: float, bound: float) -> float:
        """Return by how much at most a score exceeds the best, given a bound on all of them.

        Scores differ by whole steps, so a bound is raised to the next possible score.
        """
        if self.step == 0:
            return max(score - bound * (1 + TOLERANCE), 0.0)
        least = np.ceil((bound - self.floor) / self.step - TOLERANCE)
        return self.step * max(float(np.rint((score - self.floor) / self.step) - least), 0.0)

    def sort_items(self, x: Floats) -> Items:
        """Sort the items by how many others they precede; exact if x is an order."""
        precede = np.zeros((self.n_items, self.n_items))
        precede[self.i, self.j] = x
        precede[self.j, self.i] = 1 - x
        return np.argsort(-precede.sum(axis=1), kind="stable")

    def add_violated(self, x: Floats, deadline: float) -> int | None:
        """Add the constraints of the triples that x violates, and return how many.

        None means that the time limit was reached before all triples were checked.
        """
        most = ROWS_PER_ITEM * self.n_items
        triples = self._violated_triples(x, deadline)
        if triples is None:
            return None
        i, j, k, excess = triples
        if i.size > most:
            worst = np.argsort(-np.abs(excess), kind="stable")[:most]
            i, j, k, excess = i[worst], j[worst], k[worst], excess[worst]
        sign = np.sign(excess)
        columns = np.column_stack([self.number[i, j], self.number[j, k], self.number[i, k]])
        values = sign[:, None] * np.array([1.0, 1.0, -1.0])
        starts = np.arange(0, columns.size + 1, 3)
        new = csr_array((values.ravel(), columns.ravel(), starts), shape=(i.size, x.size))
        self.rows = vstack([self.rows, new], format="csr")
        # Above: x_ij + x_jk - x_ik ≤ 1. Below, turned around: -(x_ij + x_jk - x_ik) ≤ 0.
        self.limits = np.concatenate([self.limits, (sign > 0).astype(float)])
        return int(i.size)

    def _violated_triples(
        self, x: Floats, deadline: float
    ) -> tuple[Items, Items, Items, Floats] | None:
        X = np.zeros((self.n_items, self.n_items))
        X[self.i, self.j] = x
        found = []
        for i in range(self.n_items - 2):
            if monotonic() > deadline:
                return None
            row = X[i, i + 1 :]
            s = row[:, None] + X[i + 1 :, i + 1 :] - row
            excess = np.triu(np.where(s > 1 + TOLERANCE, s - 1, np.minimum(s + TOLERANCE, 0)), 1)
            j, k = np.nonzero(excess)
            found.append((np.full(j.size, i), j + i + 1, k + i + 1, excess[j, k]))
        if not found:
            nothing = np.zeros(0, np.intp)
            return nothing, nothing, nothing, np.zeros(0)
        i_s, j_s, k_s, excesses = (np.concatenate(part) for part in zip(*found, strict=True))
        return i_s, j_s, k_s, excesses

    def solve(self, *, integer: bool, seconds: float) -> tuple[Floats, float] | None:
        """Return the best x and a lower bound, or None if the time limit is reached."""
        if seconds <= 0:
            return None
        result = milp(
            self.cost,
            integrality=np.ones(self.i.size) if integer else None,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(self.rows, -np.inf, self.limits),
            # By default the solver accepts a solution that is nearly optimal.
            options={"mip_rel_gap": 0.0} | ({} if np.isinf(seconds) else {"time_limit": seconds}),
        )
        bound = result.mip_dual_bound if integer else result.fun
        # A relaxation that reached the time limit gives no bound; a tree search always does.
        if result.x is None or bound is None or not (integer or result.success):
            return None
        return result.x, float(bound) + self.constant


def _common_step(W: Floats) -> float:
    """Return the largest number that divides all differences, or 0 if they are not whole."""
    differences = W - W.T
    if np.abs(differences).max(initial=0.0) > 2**53 or np.any(differences % 1):
        return 0.0
    return float(np.gcd.reduce(differences.astype(np.int64), axis=None))
