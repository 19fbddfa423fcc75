"""The Plackett-Luce model: items are chosen one by one, in proportion to their worths."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.names import as_names
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import (
    Seed,
    require_choice,
    require_generator,
    require_number,
    require_whole_number,
)
from rankshot.ranking.checks import (
    require_any_rankings,
    require_one_subject,
    require_sample_length,
)
from rankshot.ranking.consensus import precedence
from rankshot.ranking.layouts import (
    ABSENT,
    alike_items,
    group_ties,
    last_levels,
    levels,
    name_groups,
)
from rankshot.ranking.models.plackett_luce_likelihood import build_likelihood
from rankshot.ranking.models.plackett_luce_solvers import (
    Solver,
    solve_lbfgs,
    solve_mm,
    solve_newton,
)
from rankshot.ranking.models.plackett_luce_stages import log_prob
from rankshot.ranking.parts import (
    AnyRankings,
    keep_counted,
    map_rows,
    reduce_parts,
    with_items,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
SOLVERS: dict[str, Solver] = {"newton": solve_newton, "lbfgs": solve_lbfgs, "mm": solve_mm}
TIED = 1e-6
"""Items whose log-worths differ by less are tied in the mode: solvers are not exact."""


class PlackettLuce(BaseEstimator):
    r"""The Plackett-Luce model of top-K, full and subset rankings, ties included.

    A ranking is a sequence of choices. At each stage the remaining items are chosen with
    probabilities proportional to their worths v (the paper's equation 8):

    .. math:: P(\pi; v) = \prod_{i=1}^K \frac{v_{\pi^{-1}(i)}}{\sum_{j \ge i} v_{\pi^{-1}(j)}}

    In a subset ranking the sum runs over the listed items alone. A tie means that the order of
    its items is unknown and every order is equally likely: the probability is the mean over the
    strict rankings that it allows, computed exactly (see `rankshot.ranking.models.tie_integral`).

    Parameters
    ----------
    regularization : float
        η in the penalty η/2 Σ θ², on log-worths θ. With 0 the fit is maximum likelihood, which
        exists only if the items are strongly connected by the comparisons; if they are not,
        `fit` raises and names the items. The small default makes every fit well defined.
    solver : {"newton", "lbfgs", "mm"}
        All reach the same optimum. Newton's method is the fastest up to a few hundred items;
        L-BFGS never builds a matrix of items by items; Hunter's MM is the simplest.
    tol : float
        Stop when less log-likelihood than this is left to gain. If the weights of the rankings
        add up to less than 1, it is multiplied by their sum.
    max_iter : int
        The largest number of iterations; a warning tells if they were not enough.
    verbose : bool
        Show progress.

    Attributes
    ----------
    items_ : tuple of str
    worths_ : ndarray
        The worth of each item; they add up to one.
    log_worths_ : ndarray
        Their logarithms, centred on zero.
    mode_ : tuple
        The most probable order; items of equal worth are tied, as a tuple inside it.
    log_likelihood_ : float
        The log-likelihood of the rankings that were fitted, without the penalty.
    n_iter_ : int
        The number of iterations.

    Notes
    -----
    Items at the same level in every ranking, such as all items that no ranking lists, are alike:
    they have the same worth, and one parameter in the fit. So a fit to short lists of many items
    takes as long as one of the listed items alone.

    The likelihood is concave in log-worths, with one exception: a tie that K cuts. With such
    rankings the optimum found may be a local one.

    References
    ----------
    Hunter (2004), MM algorithms for generalized Bradley-Terry models. Annals of Statistics 32.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["b", "a"], ["c", "a", "b"]], items=["a", "b", "c"])
    >>> model = rs.PlackettLuce(regularization=0).fit(votes)
    >>> model.worths_.round(3)
    array([0.532, 0.317, 0.152])
    >>> model.mode_
    ('a', 'b', 'c')
    """

    def __init__(
        self,
        *,
        regularization: float = 0.01,
        solver: Literal["newton", "lbfgs", "mm"] = "newton",
        tol: float = 1e-10,
        max_iter: int = 10_000,
        verbose: bool = False,
    ) -> None:
        self.regularization = regularization
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @classmethod
    def from_worths(cls, worths: Mapping[str, float]) -> PlackettLuce:
        """Return a fitted model with given worths.

        Examples
        --------
        >>> PlackettLuce.from_worths({"leopard": 3, "tiger": 1}).worths_
        array([0.75, 0.25])
        """
        if not isinstance(worths, Mapping):
            raise RankshotError(f"worths must map names to numbers, not be {short_repr(worths)}")
        items = as_names(worths)
        values = [
            require_number(f"the worth of {item!r}", worth, above=0, below=np.inf)
            for item, worth in worths.items()
        ]
        return cls(regularization=0.0)._with_log_worths(items, np.log(values))

    def fit(self, rankings: AnyRankings) -> PlackettLuce:
        """Estimate the worths.

        Parameters
        ----------
        rankings : Rankings or PartitionedRankings
            Full, top-K or of subsets, with or without ties; their weights count.
        """
        require_choice("solver", self.solver, SOLVERS)
        require_number("regularization", self.regularization, least=0, below=np.inf)
        require_number("tol", self.tol, least=0, below=np.inf)
        require_whole_number("max_iter", self.max_iter)
        total_weight = require_one_subject(rankings).weight
        if self.regularization == 0:
            require_estimable(rankings)
        class_of = alike_items(keep_counted(rankings))
        likelihood = build_likelihood(rankings, class_of)
        # Rankings of small weight have a small log-likelihood.
        tol = self.tol * min(1.0, total_weight)
        penalty = np.asarray(self.regularization * likelihood.counts, np.float64)
        with ProgressLine("Plackett-Luce", enabled=self.verbose) as line:
            theta, self.n_iter_, converged = SOLVERS[self.solver](
                likelihood, penalty, tol, self.max_iter, line
            )
        if not converged:
            warnings.warn(
                f"{self.solver} did not converge in {self.n_iter_} iterations: raise max_iter"
                + ("" if self.solver == "newton" else ", or use solver='newton'"),
                ConvergenceWarning,
                stacklevel=2,
            )
        self.log_likelihood_ = likelihood.value_and_expected(theta)[0]
        return self._with_log_worths(rankings.items, theta[class_of])

    def _with_log_worths(self, items: tuple[str, ...], theta: Floats) -> PlackettLuce:
        self.items_ = items
        self.log_worths_ = theta - theta.mean()
        self.worths_ = np.exp(theta - logsumexp(theta))
        self.mode_ = name_groups(group_ties(-self.log_worths_, tolerance=TIED), items)
        return self

    def log_prob(self, rankings: AnyRankings) -> Any:
        """Return the log-probability of each ranking, right for worths of any ratio.

        It is a lazy array for rankings in parts.
        """
        check_is_fitted(self)
        return map_rows(require_any_rankings(rankings), log_prob, self.items_, self.log_worths_)

    def standard_errors(self, rankings: AnyRankings) -> Floats:
        """Return the standard errors of ``log_worths_``, from the information in ``rankings``.

        Log-worths are determined up to a common shift; these are the errors of log-worths that
        add up to zero. With a regulariser the penalty is taken as a prior.
        """
        check_is_fitted(self)
        C = len(self.items_)
        rankings = with_items(require_any_rankings(rankings), self.items_)
        if self.regularization == 0:
            require_estimable(rankings)
        information = build_likelihood(rankings).information(self.log_worths_)
        information += self.regularization * np.eye(C)
        centred = np.eye(C) - 1 / C
        covariance = centred @ np.linalg.inv(information + 1 / C) @ centred
        return np.sqrt(np.diag(covariance))

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` independent top-``k`` rankings (full ones by default).

        The draws are exact: each item gets an exponential time of rate v_i, and the k items of
        the smallest times are the list.

        Examples
        --------
        >>> model = PlackettLuce.from_worths({"a": 100.0, "b": 10.0, "c": 1.0})
        >>> model.sample(2, k=2, random_state=0)
        Rankings: 2 rankings of 3 items
          a > c
          a > b
        """
        check_is_fitted(self)
        C = len(self.items_)
        k = require_sample_length(n, k, C)
        rng = require_generator(random_state)
        lists = np.empty((n, k), np.int32)
        for rows in row_blocks(n, C):
            log_times = np.log(rng.standard_exponential((rows.stop - rows.start, C)))
            log_times -= self.log_worths_
            lists[rows] = first_items(log_times, k)
        return Rankings.from_item_numbers(lists, items=self.items_, trusted=True)


def first_items(times: Floats, k: int) -> NDArray[np.intp]:
    """Return the columns of the k smallest numbers of each row, in order."""
    if k == times.shape[1]:
        return np.argsort(times, axis=1)
    columns = np.argpartition(times, k, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(times, columns, axis=1), axis=1)
    return np.take_along_axis(columns, order, axis=1)


# ---- Do the rankings compare enough items for the estimate to exist?


def require_estimable(rankings: AnyRankings) -> None:
    """Raise unless the Plackett-Luce maximum-likelihood estimate exists.

    It exists if and only if the graph of "was placed before" is strongly connected: the items
    cannot be split into two parts such that no item of one is ever placed before an item of the
    other (Hunter 2004). A tie that K cuts says only that some of its items came before the rest.
    Such ties are left out, so that an estimate that depends on them is refused, too.
    """
    compared = reduce_parts(keep_counted(rankings), _count_neighbours)
    before = compared.before > 0
    count, label = connected_components(csr_array(before), connection="strong")
    if count > 1:
        cut = compared.n_cut > 0
        raise RankshotError(_message(before, int(count), label, rankings.items, cut=cut))


class _Neighbours(NamedTuple):
    """Which item came before which: the numbers count, and are positive where one did.

    ``n_cut`` is the number of rankings with a tie that K cuts.
    """

    before: NDArray[Any]
    n_cut: int


def _count_neighbours(given: Rankings) -> _Neighbours:
    rankings = _without_cut_ties(given)
    before = precedence(rankings) if rankings.has_ties else _next_in_line(rankings)
    return _Neighbours(before, int((given.lengths < given.n_listed).sum()))


def _next_in_line(rankings: Rankings) -> NDArray[np.int64]:
    """Return how often an item came right before which other.

    This graph has the same connected parts as that of "before", and is cheaper. After the last
    item of a top-K list come all items that it leaves out. Item j is left out by some list that
    ends with i unless all lists that end with i name it.
    """
    C, entries, rows = rankings.n_items, rankings.codes.astype(np.int64), rankings.entry_rows
    follows = rows[1:] == rows[:-1]
    pairs = (entries[:-1] * C + entries[1:])[follows]
    before = np.bincount(pairs, minlength=C * C).reshape(C, C)
    top = rankings[~rankings.is_subset]
    last = top.codes[top.starts[1:] - 1].astype(np.int64)
    ends_with = np.bincount(last, minlength=C)
    named = np.bincount(last[top.entry_rows] * C + top.codes, minlength=C * C).reshape(C, C)
    return np.asarray(before + ends_with[:, None] - named)


def _without_cut_ties(rankings: Rankings) -> Rankings:
    """End rankings before a tie that K cuts: its items need not have come before the rest."""
    if not rankings.has_ties:
        return rankings
    table = levels(rankings)
    last = last_levels(rankings)[:, None]
    sure = ((table < last) & (table != ABSENT)).sum(axis=1)
    whole = sure + (table == last).sum(axis=1) <= rankings.lengths
    lengths = np.where(whole, rankings.lengths, sure)
    kept = lengths > 0
    return rankings[kept].top(lengths[kept])


def _message(
    before: NDArray[np.bool_],
    count: int,
    label: NDArray[np.int32],
    items: tuple[str, ...],
    *,
    cut: bool,
) -> str:
    part = np.zeros((len(items), count))
    part[np.arange(len(items)), label] = 1
    between = (part.T @ before @ part) > 0
    np.fill_diagonal(between, val=False)
    sizes = np.bincount(label)
    # Name the items outside the largest group, not those in it.
    in_main_group = (label == np.argmax(sizes)) & (sizes.max() > 1)
    parts: list[str] = []
    loses, wins = np.asarray(between.any(axis=0)), np.asarray(between.any(axis=1))
    for ends, text in (
        (wins & ~loses, "nothing else was placed before"),
        (loses & ~wins, "nothing else was placed after"),
        (~wins & ~loses, "nothing else was compared with"),
    ):
        names = [items[i] for i in np.flatnonzero(ends[label] & ~in_main_group)]
        if names:
            parts.append(f"{text} {quote_names(names)}")
    verdict = "need not exist, ties that K cuts aside" if cut else "does not exist"
    return (
        f"the Plackett-Luce maximum-likelihood estimate {verdict}: the items fall into "
        f"{count} groups whose worths cannot be compared ({'; '.join(parts)}). "
        "Use regularization > 0, or add rankings that connect them"
    )
