"""Kemeny's consensus with ties, at a cost for ties: by local search, and with proof.

A consensus is an array with the level of each item: 0 is best, equal levels are tied, and no
level is empty.
"""

from __future__ import annotations

from time import monotonic
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.progress import ProgressLine
from rankshot.ranking.consensus.kemeny_programs import TOLERANCE, Program, Rows, common_step, prove
from rankshot.ranking.consensus.kemeny_solvers import LEAST_GAIN, STRETCH, majority_groups
from rankshot.ranking.matrices import group_ties

Floats = NDArray[np.float64]
Levels = NDArray[np.intp]


class Costs(NamedTuple):
    """What pairs cost: ``before[i, j]`` if i comes before j, ``tied[i, j]`` if they are tied."""

    before: Floats
    tied: Floats

    def among(self, items: NDArray[np.intp]) -> Costs:
        """Return the costs of some of the items."""
        return Costs(*(table[np.ix_(items, items)] for table in self))

    def score(self, level: Levels) -> float:
        """Return the cost of all pairs."""
        earlier, same = level[:, None] < level, level[:, None] == level
        # The diagonal costs nothing, and a tied pair is counted from both of its sides.
        return float(self.before[earlier].sum() + self.tied[same].sum() / 2)

    @property
    def floor(self) -> float:
        """The score if each pair could be placed alone."""
        least = np.minimum(np.minimum(self.before, self.before.T), self.tied)
        return float(np.triu(least, 1).sum())


def pair_costs(W: Floats, compared: Floats, ties: float) -> Costs:
    """Return the costs of pairs: 1 if a ranking reverses it, ``ties`` if only one has it tied.

    ``compared[i, j]`` is the weight of the rankings that compare i and j. Those that do not put
    them in order, by ``W``, tie them.
    """
    tied = np.maximum(compared - W - W.T, 0)
    before = W.T + ties * tied
    for table in (before, tied):
        np.fill_diagonal(table, 0)
    return Costs(before, ties * (W + W.T))


def find_levels(
    costs: Costs, *, exact: bool, deadline: float = np.inf, verbose: bool = False
) -> tuple[Levels, float, float]:
    """Return a consensus, its score, and by how much at most the score exceeds the best.

    If every item of one group costs least before every item of another, some best consensus
    places the first group before the second. So each group is solved separately.
    """
    least = np.minimum(costs.before.T, costs.tied)
    not_later = (costs.before > least).T
    groups = majority_groups(not_later)
    parts = [costs.among(group) for group in groups]
    found = [_search(part, deadline) for part in parts]
    gaps = [
        0.0 if len(f) == 1 else part.score(f) - part.floor
        for part, f in zip(parts, found, strict=True)
    ]
    if exact:
        with ProgressLine("kemeny", enabled=verbose) as line:
            for number, part in enumerate(parts):
                program = LevelProgram(part)
                found[number], gaps[number] = prove(program, found[number], deadline, line.update)
    level = np.empty(len(costs.before), np.intp)
    n_levels = 0
    for group, best in zip(groups, found, strict=True):
        level[group] = best + n_levels
        n_levels += int(best.max()) + 1
    score = costs.score(level)
    gap = sum(gaps)
    return level, score, gap if gap > LEAST_GAIN * score else 0.0


# ---- Local search


def _search(costs: Costs, deadline: float) -> Levels:
    """Move single items to where they cost least, and shuffle parts of the consensus.

    It starts from the order 0, 1, 2, … and from one tie of all items, and goes on with the
    better one, as `insertion_search` does.
    """
    C = len(costs.before)
    rng = np.random.default_rng(0)
    every = np.arange(C)
    starts = [_improve(costs, start, every, deadline) for start in (every, np.zeros(C, np.intp))]
    level = min(starts, key=costs.score)
    score = costs.score(level)
    for _ in range(C // 2 if C > 2 else 0):
        if monotonic() > deadline:
            break
        trial, moved = _shuffle_levels(level, rng)
        trial = _improve(costs, trial, moved, deadline)
        if (trial_score := costs.score(trial)) <= score:
            level, score = trial, trial_score
    return _improve(costs, level, every, deadline)


def _shuffle_levels(level: Levels, rng: np.random.Generator) -> tuple[Levels, Levels]:
    """Give `STRETCH` items in a row random levels of theirs; return them, too."""
    order = np.lexsort((rng.random(level.size), level))
    begin = int(rng.integers(0, max(level.size - STRETCH, 0) + 1))
    moved = order[begin : begin + STRETCH]
    trial = level.copy()
    trial[moved] = rng.choice(level[moved], moved.size)
    return np.unique(trial, return_inverse=True)[1], moved


def _improve(costs: Costs, level: Levels, items: Levels, deadline: float) -> Levels:
    """Move each of ``items`` to its best level, old or new, until no move lowers the score."""
    level = level.copy()
    least_gain = LEAST_GAIN * level.size * float(costs.before.max(initial=0))
    moved = True
    while moved:
        moved = False
        for item in items.tolist():
            if monotonic() > deadline:
                return level
            moved |= _move(costs, level, item, least_gain)
    return level


def _move(costs: Costs, level: Levels, item: int, least_gain: float) -> bool:
    """Move an item to its best level in place; return whether that helps.

    An item at a level comes after all items at earlier levels, and before those at later ones.
    """
    here = int(level[item])
    n = int(level.max()) + 1
    after, tied, before = (
        np.bincount(level, row, minlength=n)
        for row in (costs.before[:, item], costs.tied[item], costs.before[item])
    )
    after_earlier = np.concatenate([[0.0], after.cumsum()])
    # new[l]: on a level of its own, just before level l; join[l]: at level l.
    new = after_earlier + np.concatenate([before[::-1].cumsum()[::-1], [0.0]])
    join = new[:-1] - before + tied
    best_new, best_join = int(new.argmin()), int(join.argmin())
    if join[here] - min(new[best_new], join[best_join]) <= least_gain:
        return False
    if join[best_join] <= new[best_new]:
        level[item] = best_join
    else:
        level[level >= best_new] += 1
        level[item] = best_new
        here += best_new <= here
    if not np.any(level == here):
        level[level > here] -= 1
    return True


# ---- Proof


class LevelProgram(Program[Levels]):
    """Weak orders: x_ij is 1 if i comes before j, else 0; both are 0 for a tie.

    These are the x with x_ij + x_ji ≤ 1 and x_ij ≤ x_ik + x_kj: if i comes before j, then k, too,
    comes after i or before j.
    """

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        C = len(costs.before)
        self.i, self.j = np.nonzero(~np.eye(C, dtype=bool))
        self.number = np.zeros((C, C), int)
        self.number[self.i, self.j] = np.arange(self.i.size)
        before, tied = costs.before[self.i, self.j], costs.tied[self.i, self.j]
        super().__init__(
            before - tied,
            constant=float(tied.sum()) / 2,
            floor=costs.floor,
            step=common_step(before - tied),
            n_items=C,
        )
        # If both orders are better than a tie, x without this constraint would take both.
        gain = self._table(self.cost)
        i, j = np.nonzero(np.triu((gain < 0) & (gain.T < 0)))
        self.add(self._exclude_both(i, j, np.ones(i.size)))

    def start(self) -> Floats:
        """Return the best x for each pair alone."""
        gain = self._table(self.cost)
        first = (gain < 0) & ((gain < gain.T) | np.triu(gain == gain.T))
        return np.asarray(first[self.i, self.j], float)

    def score(self, answer: Levels) -> float:
        """Return the cost of all pairs."""
        return self.costs.score(answer)

    def round(self, x: Floats, deadline: float) -> Levels:
        """Sort the items by how many others they precede, exact if x is a weak order; improve."""
        X = self._table(x)
        groups = group_ties((X.T - X).sum(axis=1), tolerance=0.5)
        level = np.empty(len(X), np.intp)
        for number, group in enumerate(groups):
            level[group] = number
        return _improve(self.costs, level, np.arange(len(X)), deadline)

    def violated(self, x: Floats, deadline: float) -> Rows | None:
        """Return the constraints of pairs that x violates, or else of triples."""
        X = self._table(x)
        i, j = np.nonzero(np.triu(X + X.T > 1 + TOLERANCE))
        if i.size:
            return self._exclude_both(i, j, (X + X.T)[i, j] - 1)
        found = []
        for k in range(len(X)):
            if monotonic() > deadline:
                return None
            excess = X - X[:, [k]] - X[k]
            excess[k] = excess[:, k] = 0
            i, j = np.nonzero(excess > TOLERANCE)
            found.append((i, j, np.full(i.size, k), excess[i, j]))
        i, j, k_s, excesses = (np.concatenate(part) for part in zip(*found, strict=True))
        number = self.number
        columns = np.column_stack([number[i, j], number[i, k_s], number[k_s, j]])
        values = np.tile([1.0, -1.0, -1.0], (i.size, 1))
        return Rows(columns, values, np.zeros(i.size), excesses)

    def _exclude_both(self, i: Levels, j: Levels, violations: Floats) -> Rows:
        columns = np.column_stack([self.number[i, j], self.number[j, i]])
        return Rows(columns, np.ones(columns.shape), np.ones(i.size), violations)

    def _table(self, x: Floats) -> Floats:
        X = np.zeros(self.costs.before.shape)
        X[self.i, self.j] = x
        return X
