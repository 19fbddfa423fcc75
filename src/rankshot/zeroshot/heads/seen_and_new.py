"""`SeenAndNew`: a head over seen and new classes together, and the `Gate` between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import (
    Array,
    Constants,
    Dtype,
    Library,
    Lost,
    as_double,
    largest,
    log_softmax,
    with_prefix,
)
from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.validation import require_number
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.decide import iterate_rows
from rankshot.zeroshot.evidence import fit_temperature
from rankshot.zeroshot.heads.base import (
    BaseHead,
    Reference,
    as_reference,
    mean_and_std,
    standardize,
)
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.heads.weighted_mean import measure_coverage
from rankshot.zeroshot.scores import (
    ROUNDING_UNITS,
    Kind,
    Scores,
    as_scores,
    class_scores,
    count_predictions,
    pair_constants,
    standardize_rows,
)

Coefficients = tuple[float, float, float]
NONE_SHARE = 0.1
"""The share of inputs of neither group that gates are fitted for by default."""
N_SHARE_ITERATIONS = 300
RIDGE = 100.0
"""The inverse of the penalty on the coefficients of a gate (scikit-learn's C). It only matters if a
few inputs separate the groups without an error."""


@dataclass(frozen=True)
class Gate:
    """A gate that estimates whether an input is of a seen class, a new class, or neither.

    The log-odds of the groups *new* and *none of these* versus the group *seen* are linear in two
    features z and s: how well the input fits the best new class, and how well it fits the best
    seen class. `SeenAndNew.gate_features` returns them.

    Parameters
    ----------
    new : Coefficients
        The coefficients of z and s, and the intercept, for new classes.
    none : Coefficients, optional
        The coefficients for inputs of neither group.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.zeroshot import Gate
    >>> gate = Gate(new=(1.0, -2.0, 0.5))
    >>> np.exp(gate.log_proba([[1.0, 0.0], [0.0, 1.0]])).round(2)
    array([[0.18, 0.82],
           [0.82, 0.18]])
    """

    new: Coefficients
    none: Coefficients | None = None

    def __post_init__(self) -> None:
        for name, values in vars(self).copy().items():
            self.__dict__[name] = None if values is None else _require_coefficients(name, values)

    def log_proba(self, features: ArrayLike, *, none: bool = False) -> NDArray[np.float64]:
        """Return log P of seen, new and (with ``none``) neither, given the ``features``."""
        z_s_1 = np.insert(np.asarray(features, np.float64), 2, 1.0, axis=1)
        return np.asarray(log_softmax(z_s_1 @ self.coefficients(none=none), np, 1))

    def estimate_other_share(self, features: ArrayLike) -> float:
        """Return the share of the inputs of a batch that are of no new class.

        The shares of the groups in a batch differ from those that the gate was fitted for. The EM
        algorithm of Saerens, Latinne and Decaestecker (2002) finds the maximum-likelihood shares.

        Parameters
        ----------
        features : array-like of shape (n, 2)
            As returned by `SeenAndNew.gate_features`.
        """
        usual = np.log([(1 - NONE_SHARE) / 2, (1 - NONE_SHARE) / 2, NONE_SHARE])
        log_proba = self.log_proba(features, none=True)
        n_groups = log_proba.shape[1]
        likelihood = np.exp(log_proba - usual[:n_groups])
        share = np.full(n_groups, 1 / n_groups)
        for _ in range(N_SHARE_ITERATIONS):
            joint = likelihood * share
            share = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
        return float(1 - share[1])

    def coefficients(self, *, none: bool) -> NDArray[np.float64]:
        """Return the coefficients of z and s and the constants, one column per group."""
        groups = [(0.0, 0.0, 0.0), self.new]
        if none and self.none is not None:
            groups.append(self.none)
        return np.array(groups).T


def _require_coefficients(name: str, values: object) -> tuple[float, ...]:
    numbers = np.array(values if isinstance(values, list | tuple) else np.nan, np.float64)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise RankshotError(f"gate: {name} must be three finite numbers, not {short_repr(values)}")
    return tuple(numbers.tolist())


DEFAULT_GATE = Gate(new=(1.1, -1.7, -1.0), none=(0.1, -1.0, -1.9))
"""Fitted to held-out seen classes of three data sets, with two classifiers each."""
LARGEST_FEATURE = 5.0
"""In standard deviations over the reference. Those of a few classes are small, and inputs of all
others far from usual."""


def fit_gate(new: ArrayLike, seen: ArrayLike, none: ArrayLike | None = None) -> Gate:
    """Fit a gate by logistic regression.

    The gate assumes that inputs of seen and of new classes are equally frequent, and that a tenth
    of all inputs belong to neither group, whatever the numbers of inputs passed here.

    Parameters
    ----------
    new, seen, none : array-like of shape (n, 2)
        The features of inputs of new classes, of seen classes and of neither, as returned by
        `SeenAndNew.gate_features`. In a rehearsal, the new classes are held-out seen classes, and
        ``none`` are inputs of other held-out classes whose rankings the head does not have.

    Examples
    --------
    >>> from rankshot.zeroshot import fit_gate
    >>> gate = fit_gate(new=[[1, 0], [2, 1], [0, 1]], seen=[[0, 0], [1, 1], [1, 2]])
    >>> gate.new[0] > 0 > gate.new[1]
    True
    """
    tables = [np.asarray(group) for group in (seen, new, none) if group is not None]
    groups = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    model = LogisticRegression(C=RIDGE, max_iter=1000, class_weight="balanced")
    model.fit(np.concatenate(tables), groups)
    fitted = np.column_stack([model.coef_, model.intercept_])
    if none is None:
        return Gate(tuple(fitted[0]))
    against_seen = fitted[1:] - fitted[0]
    # The share of seen classes is half of those that are not of neither group.
    against_seen[1, 2] += logit(NONE_SHARE) + log(2)
    return Gate(*map(tuple, against_seen))


Floats = NDArray[np.floating]
NONE_OF_THESE = "none of these"
"""The name of the class of inputs that are of no seen and of no new class."""
SEEN_TEMPERATURES = {"multiclass": 0.45, "one-vs-rest": 0.75, "one-vs-one": 0.4}
"""The default temperatures of the seen classes. The best ones on held-out inputs are .38 to .60 for
logistic regression, .74 to 1.01 for least squares, and .36 to .38 for one-vs-one machines."""
TEMPERATURE_BOUNDS = (0.02, 50.0)


class SeenAndNew(BaseHead, BaseEstimator):
    r"""A head over seen and new classes together (generalised zero-shot classification).

    The classifier's scores decide among seen classes, rankings decide among new classes, and a
    gate decides between the two groups:

    .. math:: \log P(c|x) = \log P(\text{seen}|x) + \log \text{softmax}(f(x) / T)_c

    .. math:: \log P(z|x) = \log P(\text{new}|x) + \log P_{head}(z|x)

    Here the scores f of each input have mean 0 and variance 1. The gate has two features: how well
    the input fits the best new class, and the best seen class.

    - Without a reference, they are the largest log-posterior of a new class by
      `ProbabilisticRanking`, and that of the ranking that only puts a seen class c first, which
      is log softmax(f)_c + log C. Both are divided by the standard deviation of the scores of the
      input and by the temperature of `ProbabilisticRanking`, and scaled so that their difference
      is the log-odds of the default gate.
    - With a reference, they are the largest log-posterior of a new class and the largest score of
      a seen class. The log-posteriors of each class, the scores of each class, and then both
      features are standardised over the reference. These features are weighted by the coverage of
      the reference, the square of ``coverage_``; the remaining weight is that of the features
      without a reference.

    Parameters
    ----------
    head : head
        A fitted head over new classes.
    gate : Gate, optional
        The gate between the groups, as returned by `fit_gate`. By default a gate that was fitted
        to held-out seen classes of three data sets.
    none : bool
        Whether "none of these" may be predicted, for inputs that belong to no seen and no new
        class.
    seen : bool
        Whether seen classes may be predicted. If not, the choices are the new classes and "none of
        these", which then has the probability that the gate gives to seen classes. This works
        without a reference, because an input of an unknown class also fits the new classes badly.
    seen_temperature : float, optional
        The temperature T. By default it is fitted to the labels passed to `fit`; without labels,
        it is .45 for multiclass, .75 for one-vs-rest and .4 for one-vs-one scores.

    Attributes
    ----------
    classes_ : ndarray of str
        The seen and the new classes, and "none of these" if requested, sorted.
    seen_ : ndarray of bool
        Which of ``classes_`` are seen classes.
    gate_ : Gate
        The gate in use.
    coverage_ : float
        The smallest coverage of a seen class by the reference, from 0 to 1; 0 without a reference.
    seen_temperature_ : float or None
        T, or None for the default of the kind of the scores.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger", "fox"], ["bus", "tram"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.SeenAndNew(rs.WeightedMean().fit(rankings)).fit()
    >>> head.classes_.tolist()
    ['bus', 'cat', 'fox', 'leopard', 'tiger', 'tram', 'truck']
    >>> head.predict([[-1.0, -1.0, 5.0, -1.0, -1.0], [-1.0, 2.0, 3.0, 3.0, -1.0]])
    array(['leopard', 'cat'], dtype='<U7')
    """

    name = "seen-and-new"
    head: BaseHead
    temperature = None
    _learned = (
        *("seen_temperature_", "coverage_", "_feature_mean", "_feature_std"),
        *("_places", "_decay"),
    )
    _records: ClassVar[Mapping[str, type]] = {"gate_": Gate, "reference_": Reference}

    def __init__(
        self,
        head: BaseHead,
        *,
        gate: Gate | None = None,
        none: bool = False,
        seen: bool = True,
        seen_temperature: float | None = None,
    ) -> None:
        self.head = head
        self.gate = gate
        self.none = none
        self.seen = seen
        self.seen_temperature = seen_temperature

    def fit(
        self, reference: Scores | ArrayLike | None = None, labels: ArrayLike | None = None
    ) -> SeenAndNew:
        """Learn the mean and scale of the features, and the temperature of the seen classes.

        Parameters
        ----------
        reference : Scores or array-like, optional
            Scores of varied inputs of seen classes that the classifier was not trained on. If the
            head has a reference, use the same one.
        labels : array-like of str, optional
            The classes of these inputs, to fit the temperature.
        """
        check_is_fitted(self.head, "classes_")
        if self.seen_temperature is not None:
            require_number("seen_temperature", self.seen_temperature, above=0, below=np.inf)
        if reference is None and (labels is not None or self.head.reference_ is not None):
            raise RankshotError(
                "pass the reference of the head, or that of the labels, to fit as well"
            )
        self.gate_ = self.gate or DEFAULT_GATE
        has_none = self.gate_.none is not None and (self.gate is not None or reference is not None)
        if self._has_third_group and not has_none:
            raise RankshotError(
                "the gate has no coefficients for 'none of these': pass a reference to fit, or a "
                "gate that was fitted with inputs of this kind"
            )
        self.items_ = self.head.items_
        self.reference_: Reference | None = None
        self.coverage_ = 0.0
        self.seen_temperature_ = self.seen_temperature
        self._feature_mean: Floats = np.zeros(2)
        self._feature_std: Floats = np.ones(2)
        # Defaults may change in a later version, which reads this head from a file.
        defaults = ProbabilisticRanking()
        self._places, self._decay = defaults.k, defaults.decay
        if reference is not None:
            table = as_reference(reference, self.items_)
            self._fit_reference(table)
            if labels is not None and self.seen_temperature is None:
                self.seen_temperature_ = self._fit_temperature(table, labels)
        self._prepare()
        return self

    def _prepare(self) -> None:
        self._name_classes()
        # A head of similarities has no rankings.
        rankings: Rankings | None = self.head.rankings_
        if rankings is not None:
            self._rankings = ProbabilisticRanking(k=self._places, decay=self._decay).fit(rankings)
        elif self.reference_ is None:
            raise RankshotError(
                f"{type(self.head).__name__} has no rankings, so a reference is needed: pass "
                "scores of varied inputs of seen classes to fit"
            )
        # The features with a reference count this much.
        self._share = 1.0 if rankings is None else self.coverage_**2

    @property
    def _has_third_group(self) -> bool:
        return self.none and self.seen

    def _name_classes(self) -> None:
        """Set the classes, and the column of each of them: seen, new, none."""
        none = [NONE_OF_THESE] if self.none or not self.seen else []
        # Without seen classes, "none of these" is in the place of their group.
        first, last = (list(self.items_), none) if self.seen else (none, [])
        names = np.array([*first, *self.head.classes_, *last])
        found, times = np.unique(names, return_counts=True)
        if (times > 1).any():
            raise RankshotError(
                f"{quote_names(found[times > 1].tolist())} would be both seen and new: fit the "
                "head to rankings of new classes only"
            )
        self._columns = np.argsort(names, kind="stable")
        self.classes_ = names[self._columns]
        self.seen_ = (self._columns < len(self.items_)) & self.seen

    def _fit_reference(self, table: Scores) -> None:
        kind = table.kind
        f = standardize_rows(table.values, kind, len(self.items_))
        c = with_prefix("head", self.head._constants(kind, table.values.dtype, np))
        inputs = (table._inputs(rows, self) for rows in iterate_rows(self.head, table))
        log_posterior = np.concatenate(
            [self.head._evaluate(some, kind, c, np, None) for some in inputs]
        )
        coverage = measure_coverage(count_predictions(f))
        self.coverage_ = float(coverage.min())
        mean, std = mean_and_std(f)
        usual = coverage * mean, std**coverage
        self.reference_ = Reference(kind, *usual, *mean_and_std(log_posterior))
        c = self.reference_.constants()
        self._feature_mean, self._feature_std = mean_and_std(_best(f, log_posterior, c, np))

    def _fit_temperature(self, table: Scores, labels: ArrayLike) -> float:
        """Return the temperature with the largest likelihood of the labels."""
        truth = np.asarray(labels).astype(str)
        own = truth[:, None] == np.array(self.items_)
        if len(truth) != len(table) or not own.any(axis=1).all():
            raise RankshotError(
                f"labels must be a seen class for each of {len(table)} inputs, not "
                f"{short_repr(labels)}"
            )
        f = standardize_rows(table.values, table.kind, len(self.items_))
        equal = np.full(len(truth), 1 / len(truth))
        return fit_temperature([(f, own.argmax(axis=1), equal)], TEMPERATURE_BOUNDS)

    def _measure(
        self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost
    ) -> tuple[Array, Array, Array]:
        """Return standardised scores of seen classes, log-posteriors of new ones, and features."""
        log_posterior = self.head._evaluate(f, kind, c, xp, lost)
        rows = standardize_rows(f, kind, len(self.items_), c, xp)
        features = 0.0
        if self._share > 0:
            features = self._share * self._features_by_reference(rows, log_posterior, c, xp)
        if self._share < 1:
            plain = class_scores(f, kind, len(self.items_), c, xp)
            features = features + (1 - self._share) * self._features_by_rankings(plain, c, xp, lost)
        return rows, log_posterior, features

    def _features_by_rankings(self, f: Array, c: Constants, xp: Library, lost: Lost) -> Array:
        """Return how well each input fits the best new and the best seen class, as columns."""
        f = as_double(f, xp)
        by_rankings = self._rankings._evaluate(f, "multiclass", c, xp, lost, "rankings")
        s = largest(log_softmax(f, xp, 1), xp, 1) + log(len(self.items_))
        features = xp.concat([largest(by_rankings, xp, 1), s], axis=1) / _row_std(f, xp)
        return features * c["plain_scale"] + c["plain_shift"]

    def _features_by_reference(
        self, f: Array, log_posterior: Array, c: Constants, xp: Library
    ) -> Array:
        """Return the same, in units of what is usual over the reference."""
        best = _best(f, log_posterior, c, xp)
        features = standardize(best, c["feature_mean"], c["feature_std"])
        return xp.clip(features, -LARGEST_FEATURE, LARGEST_FEATURE)

    def gate_features(self, scores: Scores | ArrayLike) -> NDArray[np.float64]:
        """Return the two features of the gate for each input: for new and for seen classes."""
        check_is_fitted(self, "classes_")
        table = as_scores(scores, self.items_)
        features = np.empty((len(table), 2))
        c = self._constants(table.kind, table.values.dtype, np)
        for rows in iterate_rows(self, table):
            f = table._inputs(rows, self)
            features[rows] = self._measure(f, table.kind, c, np, None)[2]
        return features

    def gate_proba(self, scores: Scores | ArrayLike) -> NDArray[np.float64]:
        """Return P(seen|x), P(new|x) and, if both may be predicted, P(none|x), as columns."""
        log_proba = self.gate_.log_proba(self.gate_features(scores), none=self._has_third_group)
        return np.asarray(np.exp(log_proba))

    def gate_terms(self, scores: Scores | ArrayLike) -> NDArray[np.float64]:
        """Return the three terms of the log-odds of new against seen classes, as columns."""
        return np.insert(self.gate_features(scores), 2, 1.0, axis=1) * self.gate_.new

    def _constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants:
        constants: Constants = {
            "gate": self.gate_.coefficients(none=self._has_third_group),
            "columns": self._columns,
            "temperature_of_head": np.array(self.head.temperature_),
            "temperature_of_seen": np.array(self.seen_temperature_ or SEEN_TEMPERATURES[kind]),
            **with_prefix("head", self.head._constants(kind, dtype, xp)),
            **pair_constants(len(self.items_), kind, xp),
        }
        if self._share < 1:
            by_rankings = self._rankings._constants("multiclass", dtype, xp)
            constants |= with_prefix("rankings", by_rankings)
            of_z, of_s, constant = DEFAULT_GATE.new
            # By the default gate, the log-odds of new classes are z - s.
            constants["plain_scale"] = 1 / np.array([of_z, -of_s]) / self._rankings.temperature_
            constants["plain_shift"] = np.array([0.0, -constant / of_s])
        if self.reference_ is None:
            return constants
        usual = {"feature_mean": self._feature_mean, "feature_std": self._feature_std}
        return constants | self.reference_.constants() | usual

    def _log_posterior(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        rows, log_posterior, features = self._measure(f, kind, c, xp, lost)
        log_gate = log_softmax(features @ c["gate"][:2, :] + c["gate"][2, :], xp, 1)
        seen = log_softmax(rows / c["temperature_of_seen"], xp, 1) if self.seen else 0.0
        new = log_softmax(log_posterior / c["temperature_of_head"], xp, 1)
        groups = [log_gate[:, :1] + seen, log_gate[:, 1:2] + new, log_gate[:, 2:]]
        return xp.take(xp.concat(groups, axis=1), c["columns"], axis=1)

    def _block_rows(self, kind: Kind) -> int:
        # The scores of the seen classes, and those by rankings, take room as well.
        return max(1, self.head._block_rows(kind) // 4)


def _best(f: Array, log_posterior: Array, c: Constants, xp: Library) -> Array:
    """Return the largest standardised log-posterior and score of each input, as columns."""
    z = largest(standardize(log_posterior, c["target_mean"], c["target_std"]), xp, 1)
    s = largest(standardize(f, c["score_mean"], c["score_std"]), xp, 1)
    return xp.concat([z, s], axis=1)


def _row_std(f: Array, xp: Library) -> Array:
    """Return the standard deviation of each row, infinite where all scores are equal."""
    variance = xp.var(f, axis=1, keepdims=True)
    rounding = ROUNDING_UNITS * float(xp.finfo(f.dtype).eps) * largest(xp.abs(f), xp, 1)
    has_spread = xp.sqrt(variance) > rounding
    # The root of 0 has no gradient.
    return xp.where(has_spread, xp.sqrt(xp.where(has_spread, variance, 1.0)), np.inf)
