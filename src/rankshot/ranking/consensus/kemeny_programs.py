"""Proofs that a consensus is the best one, by linear and integer programming (SciPy's HiGHS).

A consensus is a vector x of zeros and ones, which says of each pair of items which one comes
first. It satisfies a constraint for every triple of items. There are about C³ of these, and hardly
any is active. The linear solver starts without them, adds those that its solution violates, and
repeats. The solution is nearly always integral; if it is not, the same constraints go to the
integer solver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from time import monotonic
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, vstack

Floats = NDArray[np.float64]
Answer = TypeVar("Answer")
TOLERANCE = 1e-6
"""The accuracy of the linear solver."""
ROWS_PER_ITEM = 50
"""The most new constraints per item in a round: more only slow down the solver."""
SECONDS_PER_COLUMN = 2e-5
"""What SciPy takes to pass a variable to HiGHS and back. HiGHS does not count it as its time."""


class Rows(NamedTuple):
    """Constraints ``values @ x[columns] <= limit``, all with as many columns."""

    columns: NDArray[np.integer]
    values: Floats
    limits: Floats
    violations: Floats

    def worst(self, most: int) -> Rows:
        """Return those that are violated most."""
        if self.limits.size <= most:
            return self
        worst = np.argsort(-self.violations, kind="stable")[:most]
        return Rows(
            self.columns[worst], self.values[worst], self.limits[worst], self.violations[worst]
        )


class Program(ABC, Generic[Answer]):
    """Minimise Σ cost x + constant over 0 ≤ x ≤ 1 and the constraints added so far.

    Parameters
    ----------
    cost, constant
        A consensus x has the score ``cost @ x + constant``.
    floor : float
        A lower bound for all scores.
    step : float
        The scores differ from ``floor`` by multiples of this; 0 if they can differ by anything.
    """

    def __init__(
        self, cost: Floats, *, constant: float, floor: float, step: float, n_items: int
    ) -> None:
        # The solver's tolerances are meant for costs of about 1.
        self.scale = float(np.abs(cost).max(initial=0)) or 1.0
        self.cost = cost / self.scale
        self.constant = constant
        self.floor = floor
        self.step = step
        self.n_items = n_items
        self.rows = csr_array((0, cost.size))
        self.limits = np.zeros(0)

    @abstractmethod
    def score(self, answer: Answer) -> float:
        """Return the score of a consensus."""

    @abstractmethod
    def round(self, x: Floats, deadline: float) -> Answer:
        """Return a good consensus near x, and that of x if it is one."""

    @abstractmethod
    def violated(self, x: Floats, deadline: float) -> Rows | None:
        """Return the constraints that x violates; None if the deadline passed meanwhile."""

    def start(self) -> Floats:
        """Return the best x without any constraint."""
        return (self.cost <= 0).astype(float)

    def gap(self, score: float, bound: float) -> float:
        """Return by how much at most a score exceeds the best, given a bound on all of them.

        Scores differ by whole steps, so a bound is raised to the next possible score.
        """
        if self.step == 0:
            return max(score - bound - TOLERANCE * abs(bound), 0.0)
        least = np.ceil((bound - self.floor) / self.step - TOLERANCE)
        return self.step * max(float(np.rint((score - self.floor) / self.step) - least), 0.0)

    def add(self, rows: Rows) -> None:
        """Add constraints."""
        n, width = rows.columns.shape
        starts = np.arange(0, n * width + 1, width)
        new = csr_array(
            (rows.values.ravel(), rows.columns.ravel(), starts), shape=(n, self.cost.size)
        )
        self.rows = vstack([self.rows, new], format="csr")
        self.limits = np.concatenate([self.limits, rows.limits])

    def solve(self, *, integer: bool, deadline: float) -> tuple[Floats, float] | None:
        """Return the best x and a lower bound, or None if the deadline is reached.

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


def prove(
    program: Program[Answer], answer: Answer, deadline: float, report: Callable[[str], None]
) -> tuple[Answer, float]:
    """Return the best consensus found, and by how much at most its score exceeds the best."""
    score, bound = program.score(answer), program.floor
    x = program.start()
    integer = False
    while program.gap(score, bound) > 0:
        rows = program.violated(x, deadline)
        if rows is None:
            break
        if rows.limits.size:
            program.add(rows.worst(ROWS_PER_ITEM * program.n_items))
        elif integer or _is_integral(x):
            break
        else:
            integer = True
        solution = program.solve(integer=integer, deadline=deadline)
        if solution is None:
            break
        x, least = solution
        bound = max(bound, least)
        rounded = program.round(x, deadline)
        if (rounded_score := program.score(rounded)) < score:
            answer, score = rounded, rounded_score
        report(
            f"{program.n_items} items, {program.limits.size} rows, bound {bound:.2f} of {score:g}"
        )
    return answer, program.gap(score, bound)


def _is_integral(x: Floats) -> bool:
    return bool(np.all(np.minimum(x, 1 - x) < TOLERANCE))


def common_step(differences: Floats) -> float:
    """Return the largest number that divides all differences, or 0 if they are not whole or half.

    Examples
    --------
    >>> common_step(np.array([4.0, -6.0])), common_step(np.array([1.5, 1.0]))
    (2.0, 0.5)
    """
    doubled = 2 * differences
    if np.abs(doubled).max(initial=0.0) > 2**53 or np.any(doubled % 1):
        return 0.0
    return float(np.gcd.reduce(doubled.astype(np.int64), axis=None)) / 2
