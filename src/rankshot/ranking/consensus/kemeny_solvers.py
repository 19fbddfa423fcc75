"""Kemeny's consensus from the matrix of precedences: by local search, and with proof.

An order is an array of item numbers, best first; ``W[i, j]`` is the weight of the rankings
that place i before j. The searches start from the order 0, 1, 2, …

Proofs are by linear and integer programming (SciPy's HiGHS). An order is a vector x of zeros and
ones, which says of each pair of items which one comes first. It satisfies a constraint for every
triple of items. There are about C³ of these, and hardly any is active. The linear solver starts
without them, adds those that its solution violates, and repeats. The solution is nearly always
integral; if it is not, the same constraints go to the integer solver.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]
Items = NDArray[np.intp]
MAX_SWAPS = 1000
"""The paper's limit for the adjacent search."""
STRETCH = 12
"""How many neighbouring items `insertion_search` shuffles at a time."""
LEAST_GAIN = 1e-12
"""Gains smaller than this fraction of the largest weight are rounding errors."""
FEW_ITEMS = 10
"""Up to this many items are ordered by dynamic programming, which is faster than any search."""
TOLERANCE = 1e-6
"""The accuracy of the linear solver."""
ROWS_PER_ITEM = 50
"""The most new constraints per item in a round: more only slow down the solver."""
SECONDS_PER_COLUMN = 2e-5
"""What SciPy takes to pass a variable to HiGHS and back. HiGHS does not count it as its time."""


# ---- Local search


def reversed_weight(W: Floats, order: Items) -> float:
    """Kemeny's score: the weight of all pairs that the order reverses."""
    return float(np.tril(W[np.ix_(order, order)], -1).sum())


def adjacent_search(W: Floats) -> Items:
    """Swap the two neighbours that lower the score most, until none does (the paper's search)."""
    order = np.arange(len(W))
    excess = W.T - W
    for _ in range(MAX_SWAPS):
        gain = np.append(excess[order[:-1], order[1:]], 0.0)
        best = int(np.argmax(gain))
        if gain[best] <= LEAST_GAIN * excess.max():
            break
        order[best], order[best + 1] = order[best + 1], order[best]
    return order


def insertion_search(W: Floats) -> Items:
    """Search each majority group separately: no best order is lost (see `majority_groups`)."""
    groups = _split(W)
    return np.concatenate([group[_search_group(W[np.ix_(group, group)])] for group in groups])


def _split(W: Floats) -> list[Items]:
    """Groups of items that are ordered separately."""
    return [np.arange(len(W))] if len(W) <= FEW_ITEMS else majority_groups(W > W.T)


def _search_group(W: Floats) -> Items:
    """Move single items to where they cost least, and shuffle parts of the order.

    After the first local optimum, `STRETCH` neighbours are shuffled and their items are moved
    again; the result is kept unless it is worse. The random numbers are seeded: the same
    precedences always give the same order.
    """
    C = len(W)
    if C <= FEW_ITEMS:
        return order_few(W)
    rng = np.random.default_rng(0)
    excess = W - W.T
    order = np.arange(C)
    _insert_until_stable(excess, order, rng)
    for _ in range(C // 2):
        order = _shuffle_stretch(excess, order, rng)
    _insert_until_stable(excess, order, rng)
    return order


def _insert_until_stable(excess: Floats, order: Items, rng: np.random.Generator) -> None:
    """Move single items to where they cost least, in place, until no move lowers the score."""
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
            order[best + 2 : here + 1] = order[best + 1 : here]
            order[best + 1] = item
        else:
            order[here:best] = order[here + 1 : best + 1]
            order[best] = item
    return gained


def _shuffle_stretch(excess: Floats, order: Items, rng: np.random.Generator) -> Items:
    trial = order.copy()
    begin = int(rng.integers(0, max(len(order) - STRETCH, 0) + 1))
    stretch = trial[begin : begin + STRETCH]
    before = reversed_weight(excess, stretch)
    rng.shuffle(stretch)
    # An excess has both sides of its pair, and counts twice.
    loss = (reversed_weight(excess, stretch) - before) / 2
    items = stretch.tolist()
    while (gained := _insert_items(excess, trial, items)) > 0:
        loss -= gained
    return trial if loss <= 0 else order


def settle_ties(W: Floats, order: Items) -> Items:
    """Swap neighbours that the rankings do not distinguish into ascending order.

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
            earlier = order[first : len(order) - 1 : 2]
            later = order[first + 1 :: 2]
            swap = np.flatnonzero((earlier > later) & indifferent[earlier, later])
            earlier[swap], later[swap] = later[swap], earlier[swap]
            swapped |= swap.size > 0
    return order


# ---- Few items: dynamic programming over the sets of items already placed


def order_few(W: Floats) -> Items:
    """Best order of at most `FEW_ITEMS` items; the first of several by item numbers.

    The least cost of the items S that are left is that of S without its first item i, plus the
    weight of the rankings that place others of S before i. A set is a number, item i its i-th bit.
    """
    n = len(W)
    slack = LEAST_GAIN * n * max(float(W.sum()), 1e-300)
    least, passed = np.zeros(1 << n), np.zeros((1 << n, n))
    for j in range(n):
        passed[1 << j : 2 << j] = passed[: 1 << j] + W[j]
    for sets, items, others in _sets_by_size(n):
        least[sets] = (least[others] + passed[others, items]).min(axis=1)
    order, unplaced = [], (1 << n) - 1
    while unplaced:
        every = np.flatnonzero(unplaced >> np.arange(n) & 1)
        rest = unplaced - (1 << every)
        is_best = least[rest] + passed[rest, every] <= least[unplaced] + slack
        order.append(int(every[is_best.argmax()]))
        unplaced -= 1 << order[-1]
    return np.array(order, np.intp)


@lru_cache(maxsize=FEW_ITEMS + 1)
def _sets_by_size(n: int) -> list[tuple[Items, Items, Items]]:
    """Return, for each size, all sets, their items (largest first), and the set without each."""
    layers = []
    for size in range(1, n + 1):
        items = np.array(list(combinations(range(n)[::-1], size)), np.intp)
        sets = (1 << items).sum(axis=1)
        layers.append((sets, items, sets[:, None] - (1 << items)))
    return layers


# ---- Proof


def solve_exactly(W: Floats, *, deadline: float = np.inf) -> tuple[Items, float]:
    """Order, and by how much at most its score exceeds the best: 0 is a proof.

    The order is never worse than that of `insertion_search`. The deadline, a time of
    `time.monotonic`, ends the proof.
    """
    groups = _split(W)
    parts = [W[np.ix_(group, group)] for group in groups]
    orders = [_search_group(part) for part in parts]
    gap = 0.0
    for number, part in enumerate(parts):
        if len(part) > FEW_ITEMS:
            orders[number], excess = _prove(OrderProgram(part), orders[number], deadline)
            gap += excess
    return np.concatenate([group[best] for group, best in zip(groups, orders, strict=True)]), gap


def majority_groups(beats: NDArray[np.bool_]) -> list[Items]:
    """Split the items into groups, best first; no item of a later group beats one of an earlier.

    If a majority prefers every item of one group to every item of another, or is undecided, some
    best order places the first group before the second (the extended Condorcet principle). So
    each group is ordered separately. Among groups that may come next, the one with the smallest
    item number does.
    """
    count, label = connected_components(csr_array(beats), connection="strong")
    if count == 1:
        return [np.arange(len(beats))]
    first = np.unique(label, return_index=True)[1]
    label = np.argsort(np.argsort(first))[label]
    after = np.zeros((count, count), bool)
    winners, losers = np.nonzero(beats)
    after[label[winners], label[losers]] = True
    np.fill_diagonal(after, val=False)
    waiting = after.sum(axis=0)
    members = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
    groups = []
    for _ in range(count):
        number = int(waiting.argmin())
        groups.append(members[number])
        waiting -= after[number]
        waiting[number] = count
    return groups


class OrderProgram:
    """Minimise Kemeny's score, Σ cost x + constant, over the constraints added so far.

    x_ij for i < j is 1 if i comes before j, and x_ij + x_jk - x_ik ∈ {0, 1}.

    Attributes
    ----------
    floor : float
        A lower bound for all scores.
    step : float
        The scores differ from ``floor`` by multiples of this; 0 if they can differ by anything.
    """

    def __init__(self, W: Floats) -> None:
        self.W = W
        self.i, self.j = np.triu_indices(len(W), 1)
        # SciPy before 1.15 solves only problems whose sparse matrix has 32-bit indices.
        self.number = np.zeros(W.shape, np.int32)
        self.number[self.i, self.j] = np.arange(self.i.size)
        before, after = W[self.i, self.j], W[self.j, self.i]
        # The solver's tolerances are meant for costs of about 1.
        self.scale = float(np.abs(after - before).max(initial=0)) or 1.0
        self.cost = (after - before) / self.scale
        self.constant = float(before.sum())
        self.floor = float(np.minimum(before, after).sum())
        self.step = common_step(after - before)
        self.rows = csr_array((0, self.cost.size))
        self.limits = np.zeros(0)

    def start(self) -> Floats:
        """Best x without any constraint."""
        return (self.cost <= 0).astype(float)

    def gap(self, score: float, bound: float) -> float:
        """Largest possible excess of a score over the best, given a bound on all of them.

        Scores differ by whole steps, so a bound is raised to the next possible score.
        """
        if self.step == 0:
            return max(score - bound - TOLERANCE * abs(bound), 0.0)
        least = np.ceil((bound - self.floor) / self.step - TOLERANCE)
        return self.step * max(float(np.rint((score - self.floor) / self.step) - least), 0.0)

    def round(self, x: Floats) -> Items:
        """Sort the items by how many others they precede, exact if x is an order; and improve."""
        X = np.zeros(self.W.shape)
        X[self.i, self.j] = x
        X[self.j, self.i] = 1 - x
        order = np.argsort(-X.sum(axis=1), kind="stable")
        _insert_until_stable(self.W - self.W.T, order, np.random.default_rng(0))
        return order

    def violated(self, x: Floats) -> tuple[Items, Floats]:
        """Variables of the constraints that x violates, and by how much.

        That is positive where x_ij + x_jk - x_ik is above 1, and negative where it is below 0.
        """
        X = np.zeros(self.W.shape)
        X[self.i, self.j] = x
        parts = []
        for i in range(len(X) - 2):
            row = X[i, i + 1 :]
            s = row[:, None] + X[i + 1 :, i + 1 :] - row
            excess = np.triu(np.where(s > 1 + TOLERANCE, s - 1, np.minimum(s + TOLERANCE, 0)), 1)
            j, k = np.nonzero(excess)
            parts.append((np.full(j.size, i), j + i + 1, k + i + 1, excess[j, k]))
        i_s, j_s, k_s, excesses = (np.concatenate(part) for part in zip(*parts, strict=True))
        pairs = (i_s, j_s), (j_s, k_s), (i_s, k_s)
        return np.column_stack([self.number[pair] for pair in pairs]), excesses

    def add(self, columns: Items, excesses: Floats) -> None:
        """Add the constraints that are violated most."""
        most = ROWS_PER_ITEM * len(self.W)
        if excesses.size > most:
            worst = np.argsort(-np.abs(excesses), kind="stable")[:most]
            columns, excesses = columns[worst], excesses[worst]
        # Above: x_ij + x_jk - x_ik ≤ 1. Below, turned around: -(x_ij + x_jk - x_ik) ≤ 0.
        values = np.sign(excesses)[:, None] * np.array([1.0, 1.0, -1.0])
        starts = np.arange(0, columns.size + 1, 3, dtype=np.int32)
        entries = (values.ravel(), columns.ravel(), starts)
        new = csr_array(entries, shape=(excesses.size, self.cost.size))
        self.rows = vstack([self.rows, new], format="csr")
        self.limits = np.append(self.limits, excesses > 0)

    def solve(self, *, integer: bool, deadline: float) -> tuple[Floats, float] | None:
        """Best x and a lower bound, or None if the deadline is reached.

        Variables that are in no constraint keep their best values: SciPy's time grows with the
        number of variables.
        """
        used = np.unique(self.rows.indices)
        seconds = deadline - monotonic() - SECONDS_PER_COLUMN * used.size
        if seconds <= 0:
            return None
        result = milp(
            self.cost[used],
            integrality=np.ones(used.size) if integer else None,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(self.rows[:, used], -np.inf, self.limits),
            # By default the solver accepts a solution that is nearly optimal.
            options={"mip_rel_gap": 0.0} | ({} if np.isinf(seconds) else {"time_limit": seconds}),
        )
        least = result.mip_dual_bound if integer else result.fun
        # A relaxation that reached the time limit gives no bound; a tree search always does.
        if result.x is None or least is None or not (integer or result.success):
            return None
        x = self.start()
        rest = float(self.cost @ x) - float(self.cost[used] @ x[used])
        x[used] = result.x
        return x, self.scale * (float(least) + rest) + self.constant


def _prove(program: OrderProgram, order: Items, deadline: float) -> tuple[Items, float]:
    """Best order found, and by how much at most its score exceeds the best."""
    score, bound = reversed_weight(program.W, order), program.floor
    x = program.start()
    integer = False
    while program.gap(score, bound) > 0:
        columns, excesses = program.violated(x)
        if excesses.size:
            program.add(columns, excesses)
        elif integer or np.all(np.minimum(x, 1 - x) < TOLERANCE):
            break
        else:
            integer = True
        solution = program.solve(integer=integer, deadline=deadline)
        if solution is None:
            break
        x, least = solution
        bound = max(bound, least)
        rounded = program.round(x)
        if (rounded_score := reversed_weight(program.W, rounded)) < score:
            order, score = rounded, rounded_score
    return order, program.gap(score, bound)


def common_step(differences: Floats) -> float:
    """Largest number that divides all differences; 0 if they are not whole or half."""
    doubled = 2 * differences
    if np.abs(doubled).max(initial=0.0) > 2**53 or np.any(doubled % 1):
        return 0.0
    return float(np.gcd.reduce(doubled.astype(np.int64), axis=None)) / 2
