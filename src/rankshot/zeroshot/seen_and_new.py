"""`SeenAndNew`: a head over seen and new classes together, and the `Gate` between them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace
from math import log
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.validation import require_number
from rankshot.ranking.ranking_files import parse_jsonl, write_jsonl
from rankshot.zeroshot.evidence import fit_temperature
from rankshot.zeroshot.head_files import HeadFile, write_head_file
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.paper.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.scores import (
    ROUNDING_UNITS,
    Floats,
    Scores,
    as_scores,
    count_predictions,
    standardize_rows,
)
from rankshot.zeroshot.weighted_mean import WeightedMean, as_reference, measure_coverage

Doubles = NDArray[np.float64]
Coefficients = tuple[float, float, float]
NONE_SHARE = 0.1
"""The share of inputs of neither group that gates are fitted for by default."""
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

    def log_proba(self, features: ArrayLike, *, none: bool = False) -> Doubles:
        """Log P of seen, new and (with ``none``) neither, given the ``features``."""
        z_s_1 = np.insert(np.asarray(features, np.float64), 2, 1.0, axis=1)
        return np.asarray(log_softmax(z_s_1 @ self.coefficients(none=none), axis=1))

    def coefficients(self, *, none: bool) -> Doubles:
        """The coefficients of z and s and the constants, one column per group."""
        groups = [(0.0, 0.0, 0.0), self.new]
        if none and self.none is not None:
            groups.append(self.none)
        return np.array(groups).T


def _require_coefficients(name: str, values: object) -> tuple[float, ...]:
    numbers = np.array(values if isinstance(values, list | tuple) else np.nan, np.float64)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise InputError(name, values, "must be three finite numbers", where="gate")
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


NONE_OF_THESE = "none of these"
"""The name of the class of inputs that are of no seen and of no new class."""
SEEN_TEMPERATURES = {"multiclass": 0.45, "one-vs-rest": 0.75, "one-vs-one": 0.4}
"""The default temperatures of the seen classes. The best ones on held-out inputs are .38 to .60 for
logistic regression, .74 to 1.01 for least squares, and .36 to .38 for one-vs-one machines."""
TEMPERATURE_BOUNDS = (0.02, 50.0)


class SeenAndNew(Predictor, BaseEstimator):
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
    head : WeightedMean
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

    def __init__(
        self,
        head: WeightedMean,
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
        if not isinstance(self.head, WeightedMean):
            raise InputError("head", self.head, "must be a fitted WeightedMean")
        if self.seen_temperature is not None:
            require_number("seen_temperature", self.seen_temperature, above=0, below=np.inf)
        self.head_, self.rankings_ = self.head.inner, self.head.rankings_
        if reference is None and (labels is not None or "reference" in self.head_.about):
            raise InputError(
                "reference", reference, "must be the reference of the head, or that of the labels"
            )
        self.gate_ = self.gate or DEFAULT_GATE
        has_none = self.gate_.none is not None and (self.gate is not None or reference is not None)
        if self.none and self.seen and not has_none:
            raise InputError(
                "reference",
                NO_VALUE,
                "is needed for 'none of these' beside seen classes",
                hint="or pass a gate that was fitted with inputs of this kind",
            )
        self.reference_: GateReference | None = None
        self.coverage_ = 0.0
        self.seen_temperature_ = self.seen_temperature
        if reference is not None:
            table = as_reference(reference, self.head_.seen)
            self._fit_reference(table)
            if labels is not None and self.seen_temperature is None:
                self.seen_temperature_ = self._fit_temperature(table, labels)
        self._prepare()
        return self

    def _prepare(self) -> None:
        """Set what follows from what was learned: the classes, and the paper's ranking model."""
        self._rankings = ProbabilisticRanking().fit(self.rankings_)
        # The features with a reference count this much.
        self._share = self.coverage_**2
        none = [NONE_OF_THESE] if self.none or not self.seen else []
        # Without seen classes, "none of these" is in the place of their group.
        items = self.head_.seen
        first, last = (list(items), none) if self.seen else (none, [])
        names = np.array([*first, *self.head_.classes, *last])
        distinct, times = np.unique(names, return_counts=True)
        if (times > 1).any():
            raise InputError(
                "rankings",
                str(distinct[times > 1][0]),
                "would be both seen and new",
                hint="fit the head to rankings of new classes only",
            )
        self._columns = np.argsort(names, kind="stable")
        self.classes_ = names[self._columns]
        self.seen_ = (self._columns < len(items)) & self.seen

    def _fit_reference(self, table: Scores) -> None:
        f = standardize_rows(table.values)
        values = np.asarray(self.head_.decision_function(table), np.float64)
        coverage = measure_coverage(count_predictions(f))
        self.coverage_ = float(coverage.min())
        mean, std = mean_and_std(f)
        usual = coverage * mean, std**coverage, *mean_and_std(values)
        self.reference_ = GateReference(*usual, np.zeros(2), np.ones(2))
        best = self.reference_.measure(f, values)
        self.reference_ = GateReference(*usual, *mean_and_std(best))

    def _fit_temperature(self, table: Scores, labels: ArrayLike) -> float:
        """The temperature with the largest likelihood of the labels."""
        truth = np.asarray(labels).astype(str)
        own = truth[:, None] == np.array(table.items)
        if len(truth) != len(table) or not own.any(axis=1).all():
            raise InputError("labels", labels, f"must be a seen class for each of {len(table)}")
        f = standardize_rows(table.values)
        equal = np.full(len(truth), 1 / len(truth))
        return fit_temperature([(f, own.argmax(axis=1), equal)], TEMPERATURE_BOUNDS)

    def gate_features(self, scores: Scores | ArrayLike) -> Doubles:
        """The two features of the gate for each input: for new and for seen classes."""
        return self._measure(as_scores(scores, self.head_.seen))[2]

    def gate_terms(self, scores: Scores | ArrayLike) -> Doubles:
        """The three terms of the log-odds of new against seen classes, as columns."""
        return np.insert(self.gate_features(scores), 2, 1.0, axis=1) * self.gate_.new

    def _measure(self, table: Scores) -> tuple[Doubles, Doubles, Doubles]:
        """Standardised scores of seen classes, values of new ones, and features of the gate."""
        check_is_fitted(self, "classes_")
        values = np.asarray(self.head_.decision_function(table), np.float64)
        rows = standardize_rows(table.values)
        features = np.zeros((len(table), 2))
        if self._share > 0 and self.reference_ is not None:
            features += self._share * self.reference_.standardize(rows, values)
        if self._share < 1:
            features += (1 - self._share) * self._features_by_rankings(table)
        return rows, values, features

    def _features_by_rankings(self, table: Scores) -> Doubles:
        """How well each input fits the best new and the best seen class, by rankings."""
        f = np.asarray(table.values, np.float64)
        plain = Scores.from_validated(f, table.items, "multiclass")
        z = self._rankings.log_posterior(plain).max(axis=1)
        s = log_softmax(f, axis=1).max(axis=1) + log(f.shape[1])
        variance = f.var(axis=1)
        rounding = ROUNDING_UNITS * np.finfo(table.values.dtype).eps * np.abs(f).max(axis=1)
        std = np.sqrt(variance)
        features = np.column_stack([z, s]) / np.where(std > rounding, std, np.inf)[:, None]
        # By the default gate, the log-odds of new classes are z - s.
        of_z, of_s, constant = DEFAULT_GATE.new
        scale = 1 / np.array([of_z, -of_s]) / self._rankings.temperature_
        return np.asarray(features * scale + np.array([0.0, -constant / of_s]))

    @property
    def inner(self) -> LinearHead:
        """The fitted head, as a value."""
        check_is_fitted(self, "head_")
        return self.head_

    def log_proba(self, scores: Scores | ArrayLike) -> Floats:
        """Log-probabilities: one row per input, one column per class as in ``classes_``.

        Parameters
        ----------
        scores : Scores, data frame or array-like
            As for `LinearHead.log_proba`, as NumPy arrays.
        """
        check_is_fitted(self, "classes_")
        table = as_scores(scores, self.head_.seen)
        result = np.empty((len(table), len(self.classes_)), table.values.dtype)
        for block in row_blocks(len(table), len(self.classes_) + len(self.rankings_)):
            result[block] = self._log_proba(table[block])
        return result

    def _log_proba(self, table: Scores) -> Doubles:
        rows, values, features = self._measure(table)
        c = self.gate_.coefficients(none=self.none and self.seen)
        log_gate = log_softmax(features @ c[:2] + c[2], axis=1)
        temperature = self.seen_temperature_ or SEEN_TEMPERATURES[table.kind]
        seen = log_softmax(rows / temperature, axis=1) if self.seen else 0.0
        new = log_softmax(values / self.head_.temperature, axis=1)
        groups = [log_gate[:, :1] + seen, log_gate[:, 1:2] + new, log_gate[:, 2:]]
        return np.concatenate(groups, axis=1)[:, self._columns]

    def rename_seen(self, names: Mapping[str, str]) -> SeenAndNew:
        """The same head with other names of some seen classes."""
        renamed = copy(self)
        renamed.head_ = self.head_.rename_seen(names)
        renamed.rankings_ = replace(self.rankings_, items=renamed.head_.seen)
        renamed._prepare()
        return renamed

    def save(
        self, path: str | Path, *, note: str = "", provenance: Mapping[str, object] | None = None
    ) -> None:
        """Write the fitted head to one file (.rankshot): see `LinearHead.save`."""
        check_is_fitted(self, "classes_")
        inner, text = self.head_.to_file(), io.StringIO()
        write_jsonl(self.rankings_, text, Path("rankings"))
        values = {
            "head": {name: value for name, value in inner.values.items() if name != "about"},
            "about": inner.values["about"],
            "rankings": text.getvalue(),
            "gate": asdict(self.gate_),
            "none": self.none,
            "seen": self.seen,
            "seen_temperature": self.seen_temperature_,
            "coverage": self.coverage_,
        }
        arrays = dict(inner.arrays)
        if self.reference_ is not None:
            arrays |= {f"reference_{name}": x for name, x in self.reference_._asdict().items()}
        more = {**(provenance or {}), **({"note": note} if note else {})}
        write_head_file(Path(path), HeadFile("seen and new", values, arrays), more)

    @classmethod
    def from_file(cls, file: HeadFile) -> SeenAndNew:
        """The head in a file."""
        values, begin = file.values, "reference_"
        own = {name: x for name, x in file.arrays.items() if not name.startswith(begin)}
        inner = {**values["head"], "about": values["about"]}
        head = LinearHead.from_file(HeadFile("linear", inner, own))
        gate = Gate(**{name: each and tuple(each) for name, each in values["gate"].items()})
        result = cls(None, none=values["none"], seen=values["seen"])  # type: ignore[arg-type]
        result.head_, result.gate_ = head, gate
        lines = enumerate(values["rankings"].splitlines(), 1)
        result.rankings_ = parse_jsonl(lines, head.seen, Path("rankings"))
        result.seen_temperature_, result.coverage_ = values["seen_temperature"], values["coverage"]
        reference = {
            name.removeprefix(begin): x for name, x in file.arrays.items() if name.startswith(begin)
        }
        result.reference_ = GateReference(**reference) if reference else None
        result._prepare()
        return result


class GateReference(NamedTuple):
    """What is usual over a reference: means and standard deviations.

    Of the standardised score of each seen class, of the value of each new class, and of the two
    features: the largest standardised value and score of an input.
    """

    score_mean: Doubles
    score_std: Doubles
    value_mean: Doubles
    value_std: Doubles
    feature_mean: Doubles
    feature_std: Doubles

    def measure(self, f: Doubles, values: Doubles) -> Doubles:
        """The largest standardised value and score of each input, as columns."""
        z = ((values - self.value_mean) / self.value_std).max(axis=1)
        s = ((f - self.score_mean) / self.score_std).max(axis=1)
        return np.column_stack([z, s])

    def standardize(self, f: Doubles, values: Doubles) -> Doubles:
        """The same, in units of what is usual over the reference."""
        features = (self.measure(f, values) - self.feature_mean) / self.feature_std
        return np.clip(features, -LARGEST_FEATURE, LARGEST_FEATURE)


def mean_and_std(values: Doubles) -> tuple[Doubles, Doubles]:
    """The mean and the standard deviation of each column; 1 for a constant column."""
    mean, std = values.mean(axis=0), values.std(axis=0)
    rounding = ROUNDING_UNITS * np.finfo(np.float64).eps * np.abs(values).max(axis=0)
    return mean, np.where(std > rounding, std, 1.0)
