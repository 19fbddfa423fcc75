"""The Davidson-Luce model: Plackett-Luce where a tie is an outcome of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import (
    Seed,
    as_names,
    require_generator,
    require_number,
    require_whole_number,
)
from rankshot.ranking.construction import validate_columns
from rankshot.ranking.entries import Entries, row_starts
from rankshot.ranking.matrices import group_ties, name_groups
from rankshot.ranking.models.covariances import invert_information
from rankshot.ranking.models.davidson_luce_estimability import (
    require_finite_worths,
    require_tie_sizes,
)
from rankshot.ranking.models.davidson_luce_likelihood import (
    Likelihood,
    Parameters,
    Polynomials,
    count_choices,
    log_prob,
    refuse_cut_ties,
)
from rankshot.ranking.parts import (
    keep_counted_part,
    merge_copies,
    require_one_subject,
    require_rankings,
    require_sample_length,
    warn_of_weight_range,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Evaluate = Callable[[Floats], tuple[float, Floats]]
"""From log-worths and log tie parameters to the penalised log-likelihood and its gradient."""
WIDE = 16
"""For rankings of more items than these, Newton's second derivatives take longer than they save."""
TIED = 1e-6
"""Items whose log-worths differ by less are tied in the mode: the solver is not exact."""


class DavidsonLuce(BaseEstimator):
    r"""The Davidson-Luce model of rankings in which a tie is an outcome of its own.

    A ranking is a sequence of choices of sets. From the items A that remain, the set S is chosen
    with a probability proportional to

    .. math:: f(S) = \delta_{|S|} \Bigl(\prod_{i \in S} \alpha_i\Bigr)^{1/|S|}

    with worths α and tie parameters δ, where δ_1 = 1. For pairs this is Davidson's model, where
    two items of equal worth tie with probability δ_2 / (2 + δ_2). Without ties it is the
    Plackett-Luce model, and for pairs that of Bradley and Terry. In `PlackettLuce`, by contrast,
    a tie means that the order is unknown.

    Parameters
    ----------
    regularization : float
        η in the penalty η/2 Σ θ², on log-worths θ. With 0 the fit is maximum likelihood, and
        `fit` raises if that does not exist, and names the items. It exists if wins and losses
        connect all items both ways; ties connect items, too, if other rankings limit the tie
        parameter.
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
    tie_parameters_ : dict
        δ for each size that a tie has in the rankings. Ties of other sizes have probability 0.
    mode_ : tuple
        The items by worth, largest first; items of equal worth are tied, as a tuple inside it.
    log_likelihood_ : float
        The log-likelihood of the rankings that were fitted, without the penalty.
    n_iter_ : int
        The number of iterations.

    Notes
    -----
    All items of a full ranking are chosen, a tie in the last place included. The items that a
    top-K ranking leaves out are among those that can be chosen, and nothing is said of how they
    tie. A tie that K cuts is refused.

    The log-likelihood is concave in the logarithms of worths and tie parameters, so that the
    optimum is the only one. Its sums over sets cost O(D²) per item of a ranking, for ties of at
    most D items.

    References
    ----------
    Davidson (1970), On extending the Bradley-Terry model to accommodate ties in paired comparison
    experiments. Journal of the American Statistical Association 65.

    Firth, Kosmidis and Turner (2019), Davidson-Luce model for multi-item choice with ties.
    arXiv:1909.07123.

    Turner, van Etten, Firth and Kosmidis (2020), Modelling rankings in R: the PlackettLuce
    package. Computational Statistics 35.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pair_counts(
    ...     [[0, 6, 4], [3, 0, 5], [2, 4, 0]], ties=[[0, 2, 1], [2, 0, 3], [1, 3, 0]],
    ...     items=["a", "b", "c"])
    >>> model = rs.DavidsonLuce(regularization=0).fit(votes)
    >>> model.worths_.round(3)
    array([0.511, 0.265, 0.224])
    >>> round(model.tie_parameters_[2], 3)
    0.52
    """

    def __init__(
        self,
        *,
        regularization: float = 0.01,
        tol: float = 1e-10,
        max_iter: int = 1_000,
        verbose: bool = False,
    ) -> None:
        self.regularization = regularization
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @classmethod
    def from_worths(
        cls, worths: Mapping[str, float], tie_parameters: Mapping[int, float]
    ) -> DavidsonLuce:
        """Return a fitted model with given worths and tie parameters.

        Examples
        --------
        >>> import numpy as np
        >>> from rankshot import DavidsonLuce, Rankings
        >>> model = DavidsonLuce.from_worths({"a": 1, "b": 1}, {2: 2})
        >>> tie = Rankings.from_orders([[["a", "b"]]])
        >>> np.exp(model.log_prob(tie)).round(3)
        array([0.5])
        """
        for what, given in (("worths", worths), ("tie_parameters", tie_parameters)):
            if not isinstance(given, Mapping):
                raise RankshotError(f"{what} must be a mapping to numbers, not {short_repr(given)}")
        items = as_names(worths)
        values = [
            require_number(f"the worth of {item!r}", worth, above=0, below=np.inf)
            for item, worth in worths.items()
        ]
        ties = {
            require_whole_number("the size of a tie", size, len(items), least=2): require_number(
                f"the tie parameter of size {size}", delta, above=0, below=np.inf
            )
            for size, delta in tie_parameters.items()
        }
        sizes = np.array([1, *sorted(ties)])
        gamma = np.log([1.0, *(ties[int(size)] for size in sizes[1:])])
        return cls(regularization=0.0)._with_parameters(
            items, sizes, Parameters(np.log(values), gamma)
        )

    def fit(self, rankings: Rankings) -> DavidsonLuce:
        """Estimate worths and tie parameters.

        Parameters
        ----------
        rankings : Rankings
            Full, top-K or of subsets, with or without ties; their weights count.
        """
        require_number("regularization", self.regularization, least=0, below=np.inf)
        require_number("tol", self.tol, above=0, below=np.inf)
        require_whole_number("max_iter", self.max_iter)
        require_rankings(rankings)
        found = require_one_subject(rankings)
        warn_of_weight_range(found)
        merged = _merge(rankings)
        sizes = require_tie_sizes(merged)
        if self.regularization == 0:
            require_finite_worths(merged, sizes)
        likelihood = Likelihood(merged, sizes)
        with ProgressLine("Davidson-Luce", enabled=self.verbose) as line:
            values = self._climb(likelihood, self.tol * min(1.0, found.weight), line)
        self.log_likelihood_ = likelihood.value_and_expected(values)[0]
        return self._with_parameters(
            rankings.items, sizes, Parameters.unpack(values, rankings.n_items)
        )

    def _climb(self, likelihood: Likelihood, tol: float, line: ProgressLine) -> Floats:
        """Maximise the penalised log-likelihood; warn if that takes too many iterations."""
        penalty = self._penalty(likelihood)

        def evaluate(values: Floats) -> tuple[float, Floats]:
            value, expected = likelihood.value_and_expected(values)
            value -= float(penalty @ values**2) / 2
            return value, likelihood.observed - expected - penalty * values

        climb = self._climb_by_newton if likelihood.widest <= WIDE else self._climb_by_lbfgs
        values, self.n_iter_, converged = climb(likelihood, evaluate, tol, line)
        if not converged:
            warnings.warn(
                f"the fit did not converge in {self.n_iter_} iterations: raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        return values

    def _climb_by_newton(
        self, likelihood: Likelihood, evaluate: Evaluate, tol: float, line: ProgressLine
    ) -> tuple[Floats, int, bool]:
        """Newton's method with step halving."""
        values = np.zeros_like(likelihood.observed)
        value, gradient = evaluate(values)
        rounding = 4 * np.finfo(float).eps * likelihood.observed
        gain, fresh_enough = np.inf, 0.0
        for iteration in range(1, self.max_iter + 1):
            # The curvature is computed again once the gains fall less than a hundredfold per step.
            if gain > fresh_enough:
                factor = _factor(self._curvature(likelihood, values))
                # What the rounding of the gradient alone would seem to gain.
                least_gain = max(tol, float(rounding @ cho_solve(factor, rounding)) / 2)
                gain = np.inf
            fresh_enough = gain / 100
            step = cho_solve(factor, gradient)
            gain = float(gradient @ step) / 2
            line.update(f"iteration {iteration}, log-likelihood {value:.6f}, gain {gain:.1e}")
            least = value - 1e-13 * abs(value)
            for scale in 0.5 ** np.arange(40):
                trial = evaluate(values + scale * step)
                if trial[0] >= least:
                    break
            values = np.asarray(values + scale * step)
            value, gradient = trial
            if gain <= least_gain:
                return values, iteration, True
        return values, self.max_iter, False

    def _climb_by_lbfgs(
        self, likelihood: Likelihood, evaluate: Evaluate, tol: float, line: ProgressLine
    ) -> tuple[Floats, int, bool]:
        """SciPy's L-BFGS-B, on parameters scaled by their information if they were alone."""
        start = np.zeros_like(likelihood.observed)
        first, gradient = evaluate(start)
        expected = likelihood.observed - gradient
        scale = 1 / np.sqrt(expected + self._penalty(likelihood))

        def negative(scaled: Floats) -> tuple[float, Floats]:
            value, gradient = evaluate(scale * scaled)
            line.update(f"log-likelihood {value:.6f}")
            return first - value, -scale * gradient

        options = {
            "maxiter": self.max_iter,
            "maxfun": 4 * self.max_iter,
            "maxcor": 20,
            "ftol": 0.0,
            "gtol": np.sqrt(tol / start.size) / 10,
        }
        found = minimize(negative, start, jac=True, method="L-BFGS-B", options=options)
        # A line search that stops because of rounding has converged as far as possible.
        _, slope = negative(found.x)
        converged = bool(slope @ slope <= max(tol, 1e-12 * abs(first)))
        return scale * found.x, int(found.nit), converged

    def _penalty(self, likelihood: Likelihood) -> Floats:
        is_worth = np.arange(likelihood.observed.size) < likelihood.n_items
        return np.where(is_worth, self.regularization, 0.0)

    def _curvature(self, likelihood: Likelihood, values: Floats) -> Floats:
        """Return the penalised information, and a curvature for a common shift of log-worths.

        The likelihood does not depend on such a shift, which would make the matrix singular.
        """
        C = likelihood.n_items
        curvature = likelihood.information(values) + np.diag(self._penalty(likelihood))
        curvature[:C, :C] += max(np.trace(curvature[:C, :C]), np.finfo(float).tiny) / C**2
        return curvature

    def _with_parameters(
        self, items: tuple[str, ...], sizes: NDArray[np.intp], parameters: Parameters
    ) -> DavidsonLuce:
        theta = parameters.theta
        self.items_ = items
        self.log_worths_ = theta - theta.mean()
        self.worths_ = np.exp(theta - logsumexp(theta))
        self.tie_parameters_ = dict(
            zip(sizes[1:].tolist(), np.exp(parameters.gamma[1:]).tolist(), strict=True)
        )
        self.mode_ = name_groups(group_ties(-self.log_worths_, tolerance=TIED), items)
        return self

    @property
    def _sizes(self) -> NDArray[np.intp]:
        return np.array([1, *self.tie_parameters_])

    @property
    def _parameters(self) -> Parameters:
        delta = np.array([1.0, *self.tie_parameters_.values()])
        return Parameters(self.log_worths_, np.log(delta))

    def log_prob(self, rankings: Rankings) -> Floats:
        """Return the log-probability of each ranking, right for worths of any ratio."""
        check_is_fitted(self)
        rankings = require_rankings(rankings).with_items(self.items_)
        refuse_cut_ties(rankings)
        return log_prob(rankings, self._sizes, self._parameters)

    def covariance(self, rankings: Rankings) -> Floats:
        """Return the covariance of ``log_worths_``, from the information in ``rankings``.

        Log-worths are determined up to a common shift; this is the covariance of log-worths that
        add up to zero. With a regulariser the penalty is taken as a prior.
        """
        check_is_fitted(self)
        warn_of_weight_range(require_one_subject(require_rankings(rankings)))
        C = len(self.items_)
        return self._invert_information(rankings)[0][:C, :C]

    def standard_errors(self, rankings: Rankings) -> Floats:
        """Return the standard errors of ``log_worths_``: see `covariance`."""
        return np.sqrt(np.diag(self.covariance(rankings)))

    def tie_standard_errors(self, rankings: Rankings) -> dict[int, float]:
        """Return the standard error of the logarithm of each tie parameter."""
        check_is_fitted(self)
        warn_of_weight_range(require_one_subject(require_rankings(rankings)))
        covariance, known = self._invert_information(rankings)
        if not known.all():
            size = self._sizes[1:][~known][0]
            raise RankshotError(
                f"the standard error of the tie parameter of ties of {size} items is infinite: no "
                "ranking chooses from so many items"
            )
        errors = np.sqrt(np.diag(covariance)[len(self.items_) :]).tolist()
        return dict(zip(self.tie_parameters_, errors, strict=True))

    def _invert_information(self, rankings: Rankings) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the covariance of log-worths and tie parameters, and which of these it has."""
        merged = _merge(rankings.with_items(self.items_))
        unknown = np.setdiff1d(count_choices(merged)[0], self._sizes)
        if unknown.size:
            raise RankshotError(
                f"the model has no tie parameter for ties of {unknown[0]} items, which these "
                "rankings have: fit it to rankings with such ties"
            )
        values = np.append(self.log_worths_, self._parameters.gamma[1:])
        information = Likelihood(merged, self._sizes).information(values)
        C = len(self.items_)
        known = np.diag(information)[C:] > 0
        kept = np.append(np.arange(C), C + np.flatnonzero(known))
        found = invert_information(
            information[np.ix_(kept, kept)], self.items_, self.regularization
        )
        return found, known

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` independent rankings of all items, or of at least ``k``.

        The draws are exact: the size of a set is drawn first, and then its items one by one. A
        ranking ends with the tie in which it reaches ``k`` items, so that no tie is cut.

        Examples
        --------
        >>> from rankshot import DavidsonLuce
        >>> model = DavidsonLuce.from_worths({"a": 9, "b": 3, "c": 1}, {2: 0.5})
        >>> model.sample(3, random_state=1)
        Rankings: 3 rankings of 3 items
          b > a > c
          a = c > b
          a > b > c
        """
        check_is_fitted(self)
        C = len(self.items_)
        k = require_sample_length(n, k, C)
        rng = require_generator(random_state)
        polynomials = Polynomials(self._sizes)
        places = np.concatenate(
            [
                _draw_places(rows.stop - rows.start, k, polynomials, self._parameters, rng)
                for rows in row_blocks(n, C * polynomials.n_rows)
            ]
        )
        order = np.argsort(np.where(places < 0, C, places), axis=1, kind="stable")
        listed = np.take_along_axis(places, order, axis=1)
        kept = listed >= 0
        entries = Entries(
            order[kept].astype(np.int32),
            listed[kept].astype(np.int32),
            row_starts(kept.sum(axis=1)),
        )
        return Rankings(self.items_, *entries, entries.sizes, *validate_columns(n))


def _draw_places(
    n: int, k: int, polynomials: Polynomials, parameters: Parameters, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw the place of each item in each ranking, from 0; -1 where it is not placed."""
    C = parameters.theta.size
    places = np.full((C, n), -1)
    for place in range(C):
        short = np.flatnonzero((places >= 0).sum(axis=0) < k)
        if not short.size:
            break
        rows = np.arange(short.size)
        left = places[:, short] < 0
        theta = np.where(left, parameters.theta[:, None], -np.inf)
        log_whole, _, with_item = polynomials.add_items(theta)
        weights = log_whole[0] + parameters.gamma[:, None]
        # The largest of these sums is that of a draw in proportion to the weights.
        size = np.argmax(weights + rng.gumbel(size=weights.shape), axis=0)
        row, missing = polynomials.whole[size], polynomials.sizes[size]
        for item in range(C):
            share = with_item[item, np.maximum(row, 1) - 1, rows]
            taken = (rng.random(short.size) < share) & (missing > 0)
            places[item, short[taken]] = place
            missing = missing - taken
            row = row - taken
    return places.T


def _factor(curvature: Floats) -> tuple[Floats, bool]:
    """Factor a curvature, made larger where rounding leaves it without a Cholesky factor."""
    lift = 0.0
    while True:
        try:
            return cho_factor(curvature + lift * np.eye(len(curvature)))  # type: ignore[no-any-return]
        except LinAlgError:
            lift = max(10 * lift, 1e-12 * float(np.diag(curvature).max()))


def _merge(rankings: Rankings) -> Rankings:
    """Merge equal rankings; refuse ties that are no outcome."""
    refuse_cut_ties(rankings)
    return merge_copies(keep_counted_part(rankings))[0]
