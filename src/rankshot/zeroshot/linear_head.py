"""`LinearHead`: what is deployed, one linear map of standardised scores to new classes."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import (
    CACHED_CELLS,
    Array,
    Constants,
    Library,
    device_of,
    log_softmax,
    other_library,
    row_blocks,
    to_library,
    to_numpy,
)
from rankshot.core.errors import NO_VALUE, InputError, RankshotError
from rankshot.core.validation import as_names, require_number
from rankshot.zeroshot.decide import Top, most_probable, take_top
from rankshot.zeroshot.default_head import rank_bonus
from rankshot.zeroshot.formula import Formula, evaluate, linear_logits, scale_features
from rankshot.zeroshot.head_files import HeadFile, write_head_file
from rankshot.zeroshot.scores import Kind, Scores, standardize_rows
from rankshot.zeroshot.tables import as_scores

if TYPE_CHECKING:
    from rankshot.zeroshot.torch_head import TorchHead

Doubles = NDArray[np.float64]


class Predictor:
    """What everything that predicts classes from scores has in common.

    ``classes_`` are the classes that may be predicted, sorted by name.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard"], ["bus"]], items=["bus", "leopard"], targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> isinstance(head, rs.zeroshot.Predictor), head.inner
    (True, LinearHead: 2 classes from the scores of 2)
    """

    classes_: NDArray[np.str_]

    @property
    def inner(self) -> Head:
        """The fitted value, a `LinearHead` or a `JointHead`: that of an estimator, or itself."""
        check_is_fitted(self, "head_")
        head: Head = vars(self)["head_"]
        return head

    def log_proba(self, scores: Scores | ArrayLike) -> Array:
        """Log-probabilities: one row per input, one column per class as in ``classes_``.

        Parameters
        ----------
        scores : Scores, data frame, file or array-like of shape (n, C) or (n, C (C - 1) / 2)
            Scores of the classifier. The columns of a plain array are in the order of the seen
            classes. The result is float32 if the scores are. torch, CuPy and JAX arrays give a
            result of the same library, on the same device; their values are not checked.
        """
        return self.inner.log_proba(scores)

    def save(self, path: str | Path, *, provenance: Mapping[str, object] | None = None) -> None:
        """Write what was fitted to one file (.rankshot), which `load_head` reads.

        The loaded head gives bit-identical predictions. The file is a ZIP archive of JSON and .npy
        files, without pickles. It is written under another name and then renamed, so that it is
        never incomplete.

        Parameters
        ----------
        path : str or Path
            Ends in .rankshot.
        provenance : mapping, optional
            Further information on how the head was made, such as a note for its users, as plain
            values (text, numbers, lists).
        """
        write_head_file(Path(path), self.inner.to_file(), provenance or {})

    def predict_proba(self, scores: Scores | ArrayLike) -> Array:
        """Probabilities: one row per row of ``scores``, one column per class as in ``classes_``."""
        log_proba = self.log_proba(scores)
        return (other_library(log_proba) or np).exp(log_proba)

    def predict(self, scores: Scores | ArrayLike) -> NDArray[np.str_]:
        """The most probable class of each row of ``scores``; among equals, the first by name.

        The names are a NumPy array even if the scores are on another device.
        """
        return self.classes_[most_probable(self.log_proba(scores))]

    def top(self, scores: Scores | ArrayLike, k: int) -> Top:
        """The ``k`` most probable classes of each row of ``scores``, and their probabilities."""
        return take_top(to_numpy(self.log_proba(scores)), self.classes_, k)


class Head(Predictor, ABC):
    """A fitted head as a value: a formula of `rankshot.zeroshot.formula`, and its constants.

    Attributes
    ----------
    seen : tuple of str
        The seen classes, in the order of the columns of the scores.
    evidence : tuple of str
        The classes of the other model's scores; empty if inputs need none.
    n_features : int
        The number of features that inputs need; 0 for none.
    kind : str or None
        The kind of scores that the head was fitted to, if it was fitted to any.
    about : mapping
        How the head came about, as plain values.
    new : LinearHead
        The head over the new classes alone.
    """

    seen: tuple[str, ...]
    evidence: tuple[str, ...]
    n_features: int
    kind: Kind | None
    about: Mapping[str, Any]
    new: LinearHead
    file_type: ClassVar[str]
    logits: ClassVar[Formula]

    @property
    def inner(self) -> Self:
        """The head itself."""
        return self

    @abstractmethod
    def constants(self, kind: Kind | None = None) -> Constants:
        """The arrays of the formula by name, for scores of this kind."""

    def to_file(self) -> HeadFile:
        """The content of a file."""
        names = [each.name for each in fields(self) if each.init]  # type: ignore[arg-type]
        content = {name: getattr(self, name) for name in names if name not in {"new", "about"}}
        arrays = {name: x for name, x in content.items() if isinstance(x, np.ndarray)}
        values = {name: x for name, x in content.items() if name not in arrays}
        return HeadFile(self.file_type, values, arrays, self.about)

    def log_proba(self, scores: Scores | ArrayLike) -> Array:
        """As for `Predictor.log_proba`: log-probabilities of ``scores``."""

        def formula(*inputs: Any) -> Array:
            return log_softmax(type(self).logits(*inputs), inputs[-1], 1)

        return self._apply(formula, scores, len(self.classes_))

    def _apply(self, formula: Formula, scores: Scores | ArrayLike, n_columns: int) -> Array:
        """The values of a formula, with one row per input."""
        table = self.require(as_scores(scores, self.seen))
        xp = other_library(table.values) or np
        c = self._convert(table, xp)
        if xp is not np:
            is_jax = "jax" in xp.__name__
            # On a GPU, JAX would round the numbers in matrix products to TF32.
            precise = sys.modules["jax"].default_matmul_precision if is_jax else nullcontext
            with precise("highest"):
                return formula(*self._inputs(table), c, xp)
        result = np.empty((len(table), n_columns), table.values.dtype)
        # The columns of scores and of products, and what is looked up for each input.
        cells = len(self.seen) + sum(x.size // max(len(x), 1) for x in c.values() if x.ndim > 1)
        for rows in row_blocks(len(table), cells, 4 * CACHED_CELLS):
            result[rows] = formula(*self._inputs(table, rows), c, np)
        return result

    def require(self, table: Scores) -> Scores:
        """Raise unless a ``table`` of scores has what the head needs: their kind, and features."""
        if self.kind is not None and table.kind != self.kind:
            rule = f"must be {self.kind}, as those that the head was fitted to"
            raise InputError("scores", table.kind, rule)
        n = 0 if table.features is None else table.features.shape[1]
        if self.n_features and n != self.n_features:
            rule = f"must be {self.n_features} columns, as those of the examples"
            raise InputError("features", n, rule, hint="pass Scores(values, items, features=...)")
        return table

    def _inputs(
        self, table: Scores, rows: slice = slice(None)
    ) -> tuple[Array, Array | None, Array | None]:
        """Scores, features and evidence of some rows, in one precision."""
        values = table.values[rows, :]
        if isinstance(values, np.ndarray):
            # Sums are rounded in the order of memory: a table has one result in any order.
            values = np.ascontiguousarray(values)
        xp, features, evidence = other_library(values) or np, None, None
        if self.n_features:
            part = table.features[rows, :]
            features = xp.astype(part.toarray() if issparse(part) else part, values.dtype)
        if self.evidence:
            evidence = xp.astype(table.evidence_of(self.evidence)[rows, :], values.dtype)
        return values, features, evidence

    def _convert(self, table: Scores, xp: Library) -> Constants:
        """The constants in the library, precision and device of some scores; kept."""
        like, device, mode = table.values, None, False
        if xp is not np:
            device = str(device_of(like))
            # What torch makes in its inference mode has no place in the computation of a gradient.
            mode = getattr(xp, "is_inference_mode_enabled", bool)()
        key = xp.__name__, str(like.dtype), device, mode, table.kind
        kept: dict[object, Constants] = self.__dict__["_converted"]
        if key in kept:
            return kept[key]
        constants = {
            name: to_library(x, xp, like) for name, x in self.constants(table.kind).items()
        }
        # What JAX makes inside a transformation is not valid outside.
        if "jax" not in xp.__name__:
            kept[key] = constants
        return constants

    def to_torch(self) -> TorchHead:
        """The head as a torch module, from scores to log-probabilities.

        It can be compiled, exported and moved to any device, and is differentiable. Its ``classes``
        are the names of the columns. It computes in single precision, after ``double()`` in double
        precision.
        """
        try:
            from rankshot.zeroshot.torch_head import TorchHead  # noqa: PLC0415
        except ImportError as error:
            raise RankshotError(
                f"to_torch needs {error.name}: pip install torch array-api-compat"
            ) from None
        classes = tuple(self.classes_.tolist())
        return TorchHead(self.seen, classes, type(self).logits, self.constants(self.kind))


@dataclass(frozen=True, eq=False, repr=False)
class LinearHead(Head):
    r"""A fitted head: one linear map from what is known of an input to its classes.

    .. math:: \log P(z|x) = \frac1T \left( \sum_i a_{zi} f_i(x) + b_z \right) + \text{const}

    The columns f of an input are, in this order: the scores of the seen classes, standardised to
    mean 0 and variance 1 within the input; its features, less their usual values and scaled to
    length 1, if there are any; and another model's scores of the new classes, if there are any.

    The order of an input's scores counts as well, if ``rank_slopes`` are there: they multiply the
    `rank_bonus` of each seen class, for a place among the five largest scores.

    All that can be fitted is such a value: rankings alone, with a reference, with labelled
    examples, with another model's scores, and refined by a batch. It runs on NumPy, torch, CuPy and
    JAX arrays, on their device; it is a torch module (`to_torch`) and an ONNX graph
    (`export_onnx`).

    Parameters
    ----------
    seen : iterable of names
        The C seen classes, in the order of the columns of the scores.
    classes : iterable of names
        The L classes that may be predicted, sorted.
    slopes : array-like of shape (L, columns)
        a.
    offsets : array-like of shape (L,)
        b.
    temperature : float
        T.
    usual_features : array-like of shape (d,)
        What is subtracted from features; empty if inputs need none.
    evidence : iterable of names
        The classes of the other model's scores; empty if inputs need none.
    rank_slopes : array-like of shape (L, C), optional
        The slopes of the rank bonus of each seen class.
    usual_scores : array-like of shape (C,), optional
        The usual value of each standardised score, by a reference. It is only used by
        explanations: b includes it.
    kind : str, optional
        The kind of scores that the head was fitted to, if it was fitted to any.
    about : mapping
        How the head came about, as plain values. Predictions do not depend on it.

    Examples
    --------
    >>> import rankshot as rs
    >>> head = rs.LinearHead(["bus", "leopard", "tiger"], ["cat", "truck"],
    ...                      slopes=[[-1, 1, 1], [1, -1, -1]], offsets=[0, 0])
    >>> head.predict_proba([[0.0, 3.0, 2.0]]).round(3)
    array([[0.995, 0.005]])
    """

    seen: tuple[str, ...]
    classes: tuple[str, ...]
    slopes: Doubles
    offsets: Doubles
    temperature: float = 1.0
    usual_features: Any = ()
    evidence: tuple[str, ...] = ()
    rank_slopes: Any = None
    usual_scores: Any = None
    kind: Kind | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check everything: what a fit cannot make, a file cannot hold."""
        seen, classes = as_names(self.seen, "seen"), as_names(self.classes, "classes")
        evidence = as_names(self.evidence, "evidence") if len(self.evidence) else ()
        if list(classes) != sorted(classes):
            raise InputError("classes", classes, "must be sorted")
        C, L, d = len(seen), len(classes), len(self.usual_features)
        usual = np.zeros(C) if self.usual_scores is None else self.usual_scores
        ranks = np.zeros((L, 0)) if self.rank_slopes is None else self.rank_slopes
        arrays = {
            "slopes": as_finite("slopes", self.slopes, (L, C + d + len(evidence))),
            "offsets": as_finite("offsets", self.offsets, (L,)),
            "usual_features": as_finite("usual_features", self.usual_features, (d,)),
            "usual_scores": as_finite("usual_scores", usual, (C,)),
            "rank_slopes": as_finite("rank_slopes", ranks, (L, C if np.size(ranks) else 0)),
        }
        require_number("temperature", self.temperature, above=0, below=np.inf)
        names = {"seen": seen, "classes": classes, "evidence": evidence}
        self.__dict__.update(arrays, **names, temperature=float(self.temperature))
        self.__dict__.update(classes_=np.array(classes), n_features=d, _converted={})

    def __repr__(self) -> str:
        new, seen = len(self.classes), len(self.seen)
        return f"LinearHead: {new} classes from the scores of {seen}"

    @property
    def new(self) -> Self:  # type: ignore[override]
        """The head itself."""
        return self

    @property
    def blocks(self) -> dict[str, slice]:
        """The columns of ``slopes`` that belong to scores, features and evidence."""
        ends = np.cumsum([0, len(self.seen), self.n_features, len(self.evidence)]).tolist()
        names = "scores", "features", "evidence"
        return {name: slice(ends[i], ends[i + 1]) for i, name in enumerate(names)}

    # ---- The formula

    file_type: ClassVar[str] = "linear"
    logits: ClassVar[Formula] = staticmethod(linear_logits)

    def constants(self, kind: Kind | None = None) -> Constants:  # noqa: ARG002
        """The arrays of the formula by name, for scores of any kind."""
        return self.stack_constants(self.slopes, self.rank_slopes, self.offsets)

    def stack_constants(self, slopes: Doubles, rank_slopes: Doubles, offsets: Doubles) -> Constants:
        """The arrays of `evaluate` for any rows of slopes of the same columns.

        The arrays of slopes have one row per column.
        """
        slopes, block = slopes.T, self.blocks
        of_scores = slopes[block["scores"]]
        # The mean of each row is subtracted from the slopes instead of the scores, which would need
        # another table; the last column of the product is that mean.
        of_scores = of_scores - of_scores.mean(axis=0)
        mean = np.full((len(self.seen), 1), 1 / len(self.seen))
        return {
            "scores": np.hstack([of_scores, mean]),
            "features": slopes[block["features"]],
            "evidence": slopes[block["evidence"]],
            "ranks": rank_slopes.T,
            "usual_features": self.usual_features,
            "offsets": offsets,
            "temperature": np.array(self.temperature),
        }

    def decision_function(self, scores: Scores | ArrayLike) -> Array:
        """The values of ``scores`` before they are divided by the temperature and normalised.

        The values of a class can be compared between inputs: a high value means that the input
        fits the class well, even if it fits other classes better.
        """
        return self._apply(evaluate, scores, len(self.classes))

    # ---- Other values that follow from it

    def rename_seen(self, names: Mapping[str, str]) -> Self:
        """The same head with other ``names`` of some seen classes."""
        return replace(self, seen=tuple(names.get(name, name) for name in self.seen))

    def with_about(self, **facts: object) -> Self:
        """The same head with more ``facts`` about how it came about."""
        return replace(self, about={**self.about, **facts})

    def contributions(self, scores: Scores | ArrayLike) -> dict[str, Doubles]:
        """What each seen class, feature and column of evidence adds to the log-probabilities.

        For each row of ``scores``. Arrays of shape (n, classes, columns): "scores", and "features"
        and "another model" if the head has these. Their sum over all columns is the
        log-probability, up to the offset of each class and a constant of each input. A score counts
        as far as it is above what is usual for it, and above the other scores of the input.
        """
        table = self.require(as_scores(scores, self.seen))
        values, features, evidence = self._inputs(table)
        f = np.asarray(values, np.float64)
        slopes, block = self.slopes / self.temperature, self.blocks
        above = standardize_rows(values) - self.usual_scores
        of_scores = slopes[:, block["scores"]] * above[:, None]
        if self.rank_slopes.size:
            of_scores += self.rank_slopes * rank_bonus(f)[:, None] / self.temperature
        parts = {"scores": of_scores}
        if features is not None:
            x = scale_features(features, self.usual_features, np)
            parts["features"] = slopes[:, block["features"]] * x[:, None]
        if evidence is not None:
            parts["another model"] = slopes[:, block["evidence"]] * evidence[:, None]
        return parts


def as_finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Doubles:
    """Numbers of this shape that cannot be changed; others are refused."""
    array = np.array(values, np.float64)
    if array.shape != shape:
        raise InputError(name, array.shape, f"must have the shape {shape}")
    if not np.isfinite(array).all():
        raise InputError(name, NO_VALUE, "must be finite numbers")
    array.setflags(write=False)
    return array
