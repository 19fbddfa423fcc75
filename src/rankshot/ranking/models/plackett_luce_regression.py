"""Plackett-Luce with covariates: log-worths that are linear in features of the items."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog, minimize_scalar
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri, stdtrit

from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.estimators import check_is_fitted
from rankshot.core.newton import Optimum, maximize
from rankshot.core.tables import as_frame, frame_to_matrix
from rankshot.core.validation import (
    Seed,
    as_name,
    refuse_masked,
    require_number,
    require_whole_number,
)
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.models.information import invert_curvature, without_cut_ties
from rankshot.ranking.models.plackett_luce import PlackettLuce, WorthModel
from rankshot.ranking.models.plackett_luce_likelihood import Likelihood
from rankshot.ranking.parts import (
    keep_counted_part,
    merge_copies,
    require_one_subject,
    require_rankings,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
ITEM = "item"
"""The column of a data frame that names the items."""
DEPENDENT = 1e-9
"""A feature of length one that has less left, after others are taken out, depends on them."""
ROUNDING = 1e-5
"""Differences of less than this times `DEPENDENT`, of features of size one, are rounding."""
ENOUGH = 1e-5
"""Of the log-likelihood, this may be left to gain while effects of items are looked for."""
TOLERANCE = 1e-12
"""Of the mean log-likelihood of a ranking, this may be left to gain in the end."""
LARGEST_STD = 10.0
"""Log-worths that differ by more than this from what features say are not looked for."""


class PlackettLuceRegression(WorthModel):
    r"""The Plackett-Luce model with log-worths that are linear in features of items.

    This gives worths to items that were never ranked. The log-worths are θ = X β + u. The effects u
    of the items are what the features do not explain: they are normal, with standard deviation σ.
    Given σ, the fit minimises

    .. math:: -\frac{1}{W} \log P(\text{rankings}; X \beta + u) + \frac{\|u\|_2^2}{2 \sigma^2 W} +
        \frac{\alpha}{2} \|\beta\|_2^2

    where W is the weight of all rankings. There is no intercept, as only differences of log-worths
    matter. A tie means that the order is unknown, as in
    `PlackettLuce`. For pairs this is logistic regression of who wins on differences of features.

    Parameters
    ----------
    alpha : float
        The strength of the ridge penalty. With 0, the default, the fit is maximum likelihood; `fit`
        raises if it does not exist, or if features depend on one another. Features are not
        scaled: give them the same scale before you penalise them.
    item_effects : bool
        Whether items have effects of their own. Without them, features are assumed to explain the
        worths completely: the errors of coefficients are then far too small if they do not. If
        there are n - 1 features for n items, item effects are omitted.
    max_iter
        Those of `PlackettLuce`.

    Attributes
    ----------
    coef_ : ndarray
        β, one coefficient per feature.
    item_std_ : float
        σ. It maximises the likelihood of the rankings with β and u integrated out by Laplace's
        method, as restricted maximum likelihood does. It is 0 if the features explain the worths
        as well as the rankings can tell.
    feature_names_in_ : ndarray of str
        The names of the features; ``x0``, ``x1``, … of an array.
    log_worths_ : ndarray
        X β + u of the items, centred on zero.
    items_, worths_, mode_, log_likelihood_, n_iter_
        Those of `PlackettLuce`.

    Examples
    --------
    >>> import rankshot as rs
    >>> races = rs.Rankings.from_orders(
    ...     [["ant", "bee", "cat"], ["bee", "ant"], ["cat", "bee", "ant"]])
    >>> weight = [[1.0], [2.0], [5.0]]
    >>> model = rs.PlackettLuceRegression().fit(races, weight)
    >>> model.coef_.round(3)
    array([-0.218])
    >>> model.predict_log_worths([[3.0]]).round(3)
    array([-0.073])
    """

    def __init__(
        self,
        *,
        alpha: float = 0.0,
        item_effects: bool = True,
        max_iter: int = 1_000,
    ) -> None:
        self.alpha = alpha
        self.item_effects = item_effects
        self.max_iter = max_iter

    def fit(self, rankings: Rankings, features: ArrayLike) -> PlackettLuceRegression:
        """Estimate the coefficients.

        Parameters
        ----------
        rankings : Rankings
            Full, top-K or of subsets, with or without ties; their weights count.
        features : array-like or data frame
            One row per item, one column per feature. The rows of an array are in the order of
            ``rankings.items``. In a data frame, a column ``item`` or the pandas index names
            the items; rows of other items are left out. Without either, the order counts.
        """
        require_number("alpha", self.alpha, least=0, below=np.inf)
        require_whole_number("max_iter", self.max_iter)
        require_rankings(rankings)
        weight = require_one_subject(rankings).weight
        names, values = _read_features(features, rankings.items)
        # Equal rankings, such as votes on the same pair, are evaluated once.
        rankings = merge_copies(keep_counted_part(rankings))[0]
        rankings = replace(rankings, weights=rankings.weights / weight)
        X = values - values.mean(axis=0)
        likelihood = Likelihood(rankings)
        if self.alpha == 0:
            _require_estimable(rankings, X, names)
        mixed = _MixedModel(likelihood, X, weight, self)
        self.item_std_ = mixed.find_std() if self._has_item_effects(X) else 0.0
        found = mixed.fit(self.item_std_, TOLERANCE)
        self._design = mixed.design(self.item_std_)
        theta = self._design @ self._take_parameters(found)
        self.coef_ = beta = found.parameters[: len(names)]
        self.log_likelihood_ = weight * likelihood.value_and_expected(theta)[0]
        self.feature_names_in_ = np.array(names, object)
        self.n_features_in_ = len(names)
        self._shift = float(values.mean(axis=0) @ beta)
        return self._with_log_worths(rankings.items, theta)

    def _has_item_effects(self, X: Floats) -> bool:
        return self.item_effects and _degrees(X) > 0

    def predict_log_worths(self, features: ArrayLike) -> Floats:
        """Return the log-worths of items with these features, on the scale of ``log_worths_``.

        New items have no known effects of their own. A data frame must have the columns of the
        fit; other columns are ignored.
        """
        check_is_fitted(self)
        _, values = _read_features(features, None, tuple(self.feature_names_in_))
        return np.asarray(values @ self.coef_ - self._shift)

    def log_prob(self, rankings: Rankings) -> Floats:
        """Return the log-probability of each ranking of ``items_``."""
        return np.asarray(self._as_plackett_luce().log_prob(rankings))

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` top-``k`` rankings (full by default), from the seed ``random_state``."""
        return self._as_plackett_luce().sample(n, k, random_state)

    def _as_plackett_luce(self) -> PlackettLuce:
        check_is_fitted(self)
        return PlackettLuce()._with_log_worths(self.items_, self.log_worths_)

    def _parameter_covariance(self, rankings: Rankings) -> Floats:
        """Return the covariance of the coefficients, and of the effects in units of σ."""
        check_is_fitted(self)
        weight = require_one_subject(require_rankings(rankings)).weight
        rankings = merge_copies(keep_counted_part(rankings.with_items(self.items_)))[0]
        names = tuple(self.feature_names_in_)
        if self.alpha == 0:
            X = self._design[:, : len(names)]
            _require_determined(csr_array(precedence(rankings)), X, names)
        information = Likelihood(rankings).information(self.log_worths_)
        curvature = self._design.T @ information @ self._design
        prior = _penalty(self._design, len(names), weight * self.alpha)
        return invert_curvature(curvature + np.diag(prior), [*names, *self.items_][: len(prior)])

    def coef_covariance(self, rankings: Rankings) -> Floats:
        """Return the covariance of ``coef_``, from the information in ``rankings``.

        Effects of items, with the standard deviation ``item_std_``, add to it. The penalty is
        interpreted as a prior.
        """
        found = self._parameter_covariance(rankings)
        return found[: self.coef_.size, : self.coef_.size]

    def coef_standard_errors(self, rankings: Rankings) -> Floats:
        """Return the standard errors of ``coef_``: see `coef_covariance`."""
        return np.sqrt(np.diag(self.coef_covariance(rankings)))

    def coef_intervals(self, rankings: Rankings, level: float = 0.95) -> Floats:
        """Return the lower and the upper end of a confidence interval of each of ``coef_``.

        With effects of items, the quantiles are those of Student's t with as many degrees of
        freedom as there are items, less one and less the features; without them, of the normal
        distribution.

        Parameters
        ----------
        rankings : Rankings
            The rankings of the fit.
        level : float
            The probability that an interval contains the coefficient.

        Examples
        --------
        >>> import rankshot as rs
        >>> sizes = [[1.0], [2.0], [3.0], [4.0], [5.0]]
        >>> votes = rs.PlackettLuce.from_worths(
        ...     {"a": 1, "b": 3, "c": 2, "d": 4, "e": 6}).sample(200, random_state=0)
        >>> model = rs.PlackettLuceRegression().fit(votes, sizes)
        >>> model.coef_.round(2), round(model.item_std_, 2)
        (array([0.38]), 0.32)
        >>> model.coef_intervals(votes).round(2)
        array([[0.04, 0.72]])
        """
        require_number("level", level, above=0, below=1)
        errors = self.coef_standard_errors(rankings)
        X = self._design[:, : errors.size]
        p = (1 + level) / 2
        width = errors * (stdtrit(_degrees(X), p) if self._has_item_effects(X) else ndtri(p))
        return np.stack([self.coef_ - width, self.coef_ + width], axis=1)

    def covariance(self, rankings: Rankings) -> Floats:
        """Return the covariance of ``log_worths_``, which add up to zero."""
        found = self._parameter_covariance(rankings)
        centred = self._design - self._design.mean(axis=0)
        return np.asarray(centred @ found @ centred.T)


# ---- Effects of items
#
# With u = σ z, log-worths are linear in β and z: θ = X β + σ z, where z has the ridge penalty of a
# standard normal prior. So one solver fits both, and σ = 0 needs no case of its own.


def _degrees(X: Floats) -> int:
    """Return how many differences of log-worths features leave unexplained."""
    return len(X) - 1 - int(X.shape[1])


def _penalty(design: Floats, n_features: int, alpha: float) -> Floats:
    """Return the ridge penalty of each parameter, in units of one ranking."""
    return np.where(np.arange(design.shape[1]) < n_features, alpha, 1.0)


class _MixedModel:
    """The fit with a given standard deviation of the effects, and the search for it."""

    def __init__(
        self, likelihood: Likelihood, X: Floats, weight: float, model: PlackettLuceRegression
    ) -> None:
        self._likelihood, self._X, self._weight, self._model = likelihood, X, weight, model
        self._last = np.zeros(X.shape[1]), np.zeros(X.shape[0])

    def design(self, std: float) -> Floats:
        """Return what log-worths are linear in: features, and the items if they have effects."""
        return np.hstack([self._X, std * np.eye(len(self._X))]) if std else self._X

    def _ridge(self, design: Floats) -> Floats:
        alpha = self._weight * self._model.alpha
        return _penalty(design, self._X.shape[1], alpha) / self._weight

    def fit(self, std: float, tol: float) -> Optimum:
        """Return β, followed by z if there are effects; start from the last ones found."""
        # Effects make it sparse.
        design = csr_array(self.design(std)) if std else self._X
        beta, effects = self._last
        found = maximize(
            self._likelihood.evaluate,
            self._likelihood.information,
            np.append(beta, effects / std) if std else beta,
            design=design,
            ridge=self._ridge(design),
            tol=tol,
            max_iter=self._model.max_iter,
        )
        if std:
            self._last = found.parameters[: beta.size], std * found.parameters[beta.size :]
        return found

    def _log_evidence(self, std: float) -> float:
        """Return the log-likelihood with β and z integrated out by Laplace's method."""
        found = self.fit(std, ENOUGH / self._weight)
        design = csr_array(self.design(std)) if std else self._X
        information = self._likelihood.information(design @ found.parameters)
        curvature = design.T @ information @ design + np.diag(self._ridge(design))
        # The prior of z is standard normal: its constant is that of the curvature's units.
        log_volume = np.linalg.slogdet(self._weight * curvature)[1] / 2
        return float(self._weight * found.value - log_volume)

    def find_std(self) -> float:
        """Return the standard deviation of effects with the largest evidence."""
        found = minimize_scalar(
            lambda std: -self._log_evidence(std),
            bounds=(0, LARGEST_STD),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return float(found.x) if -found.fun > self._log_evidence(0.0) + 1e-6 else 0.0


# ---- Features


def _read_features(
    features: Any, items: tuple[str, ...] | None, names: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], Floats]:
    """Return names and values of features: rows of ``items`` and columns of ``names``, if given."""
    frame = as_frame(features)
    if frame is None:
        refuse_masked("features", features)
        try:
            from sklearn.utils.validation import check_array  # noqa: PLC0415 (slow to import)

            table = check_array(features, dtype=np.float64, ensure_all_finite=False)
        except (TypeError, ValueError, OverflowError) as error:
            raise RankshotError(
                f"features must be a table of numbers with one row per item: {error}"
            ) from None
        found = tuple(f"x{j}" for j in range(table.shape[1])) if names is None else names
        given = [f"column {j}" for j in range(table.shape[1])]
        missing = given[len(found) :] or list(found[len(given) :])
    else:
        found = tuple(name for name in frame.columns if name != ITEM) if names is None else names
        missing, given = [name for name in found if name not in frame.columns], frame.columns
    if missing:
        raise RankshotError(
            f"features must have the columns of the fit, {quote_names(found)}, not "
            f"{quote_names(given)}"
        )
    if frame is not None:
        table = np.asarray(frame_to_matrix(frame.select(list(found))), np.float64)
        labels = _item_labels(frame)
        if items is not None and labels is not None:
            table = table[_find_rows(labels, items)]
    if items is not None and len(table) != len(items):
        raise RankshotError(
            f"features have {len(table)} rows for {len(items)} items: give one row per item, or a "
            f"data frame with a column {ITEM!r}"
        )
    if (bad := np.argwhere(~np.isfinite(table))).size:
        row, column = bad[0]
        where = f"row {row}" if items is None else f"item {items[row]!r}"
        raise RankshotError(
            f"features, {where}: {found[column]!r} is {table[row, column]}; features must be "
            "finite numbers"
        )
    return found, table


def _item_labels(frame: Any) -> list[str | None] | None:
    """Return the names of items in a data frame: a column, or an index that is not 0, 1, …."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (comes with scikit-learn)

    if ITEM in frame.columns:
        return [as_name(label) for label in frame[ITEM].to_list()]
    index = nw.maybe_get_index(frame)
    if index is None or list(index) == list(range(len(frame))):
        return None
    return [as_name(label) for label in index]


def _find_rows(labels: list[str | None], items: tuple[str, ...]) -> list[int]:
    count = Counter(labels)
    if wrong := [item for item in items if count[item] != 1]:
        raise RankshotError(
            f"features must have one row for each item; {quote_names(wrong)} has none, or several"
        )
    return [labels.index(item) for item in items]


# ---- Do the rankings determine the coefficients?


def _require_estimable(rankings: Rankings, X: Floats, names: tuple[str, ...]) -> None:
    """Raise unless the maximum-likelihood estimate exists and is the only one.

    Ties that K cuts are left out, as in `require_estimable`.
    """
    aside = " (ties that K cuts aside)" if np.any(rankings.lengths < rankings.n_listed) else ""
    before = csr_array(precedence(without_cut_ties(rankings)))
    within = _require_determined(before, X, names, aside)
    _refuse_separation(before, within, names, aside)


def _require_determined(
    before: csr_array, X: Floats, names: tuple[str, ...], aside: str = ""
) -> Floats:
    """Raise unless features differ, and in different ways, between items that are compared."""
    _, group = connected_components(before, directed=False)
    # Items of different groups were never compared: only differences inside a group matter.
    size = np.bincount(group)
    means = np.stack([np.bincount(group, column) / size for column in X.T], axis=1)
    within = X - means[group]
    length = np.linalg.norm(within, axis=0)
    constant = length <= DEPENDENT * np.maximum(np.linalg.norm(X, axis=0), ROUNDING)
    within = np.where(constant, 0.0, within / np.where(constant, 1.0, length))
    for j, name in enumerate(names):
        weights = np.linalg.lstsq(within[:, :j], within[:, j], rcond=None)[0]
        if np.linalg.norm(within[:, j] - within[:, :j] @ weights) <= DEPENDENT:
            others = [names[i] for i in np.flatnonzero(np.abs(weights) > 1e-6)]
            why = f"it does not differ between items that are compared{aside}"
            if others:
                why = f"it is a linear combination of {quote_names(others)}"
            raise RankshotError(
                f"the coefficient of {name!r} is not determined: {why}. Leave it out, or use "
                "alpha > 0"
            )
    return np.asarray(within)


def _refuse_separation(before: csr_array, X: Floats, names: tuple[str, ...], aside: str) -> None:
    """Raise if a combination of features never contradicts the rankings.

    Its coefficients would grow without bound. Where each item comes before each other, directly
    or through others, there is no such combination; elsewhere a linear program looks for one.
    """
    count, _ = connected_components(before, connection="strong")
    if count == 1:
        return
    first, second = before.nonzero()
    differences = X[first] - X[second]
    found = linprog(
        -differences.sum(axis=0),
        A_ub=-differences,
        b_ub=np.zeros(len(differences)),
        bounds=(-1, 1),
    )
    if -found.fun > 1e-7 * np.abs(differences).sum():
        which = [names[j] for j in np.flatnonzero(np.abs(found.x) > 1e-7)]
        raise RankshotError(
            "the maximum-likelihood estimate does not exist: no ranking contradicts the order of "
            f"items by a combination of {quote_names(which)}{aside}. Use alpha > 0, or add rankings"
        )
