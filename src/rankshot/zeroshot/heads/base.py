"""`BaseHead`: what all heads share; the semantics that they are fitted to, and their reference."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import (
    CACHED_CELLS,
    Array,
    Constants,
    Dtype,
    Library,
    Lost,
    other_library,
    row_blocks,
    to_numpy,
    with_prefix,
    without_prefix,
)
from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.validation import require_choice, require_number, require_whole_number
from rankshot.ranking.rankings import Rankings, require_rankings
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.decide import Candidates, Top, predict_names, predict_top, run_head
from rankshot.zeroshot.files.head_files import write_head
from rankshot.zeroshot.scores import (
    KINDS,
    LARGEST_SCORE,
    ROUNDING_UNITS,
    Kind,
    Scores,
    as_scores,
    is_dask,
    n_columns,
)

if TYPE_CHECKING:
    from rankshot.zeroshot.torch_head import TorchHead

Floats = NDArray[np.floating]
DECAY = 0.5
"""By default, place r of a ranking has the weight r^-DECAY."""
Semantics = Rankings | Similarity
Named = TypeVar("Named", bound=Semantics)
Orders = Mapping[str, Sequence[str | Sequence[str]]]
"""For each target, its seen classes, most similar first."""


class BaseHead(ABC):
    """The methods that all heads share: labels, probabilities and the most probable classes.

    A fitted head has ``items_``, the seen classes in the order of the columns of the scores, and
    ``classes_``, the classes that it may predict, sorted: the new classes, and also seen classes
    if it was fitted to their rankings or similarities. Its log-posteriors are divided by
    ``temperature_``. If a reference was passed to `fit`, ``reference_`` holds its means and
    standard deviations.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus", "tram"]],
    ...     items=["bus", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> isinstance(head, rs.zeroshot.BaseHead), head.classes_
    (True, array(['cat', 'truck'], dtype='<U5'))
    >>> head.predict([[0.1, 3.0, 1.5, -1.0]])
    array(['cat'], dtype='<U5')
    """

    name: ClassVar[str]
    """What commands and files call the head."""
    head: BaseHead | None = None
    """The head inside, of a head around another one."""
    items_: tuple[str, ...]
    classes_: NDArray[np.str_]
    temperature: float | None
    # What a fitted head may have; the last two are the classes that each source lacks, and the
    # sources that are not used.
    rankings_: Any = None
    consensus_: Any = None
    reference_: Reference | None = None
    missing_: Mapping[str, list[str]] = {}
    unused_: tuple[str, ...] = ()
    _loaded: tuple[NDArray[np.str_] | None, dict[str, Any]] = None, {}
    _learned: ClassVar[tuple[str, ...]] = ()
    """The attributes that `fit` sets and a file holds: arrays, rankings and plain values. Those of
    base classes are stored as well. All else follows from them in `_prepare`."""
    _records: ClassVar[Mapping[str, type]] = {}
    """The same, for attributes that have such fields; None is not stored."""

    if TYPE_CHECKING:
        # By scikit-learn's BaseEstimator, which has no types.
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...  # noqa: FBT001, FBT002, D102
        def set_params(self, **params: object) -> Self: ...  # noqa: D102

    @abstractmethod
    def fit(self, semantics: Any) -> Any:
        """Learn from ``semantics``: rankings or similarities of the new classes."""

    def _prepare(self) -> None:  # noqa: B027
        """Compute what follows from what was learned; called by `fit` and after loading."""

    @abstractmethod
    def _log_posterior(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        """Return log P(z|x) plus a constant per input, with one row per input, in any library.

        ``c`` has the `_constants`, in the library ``xp`` of the scores ``f``. For ``lost`` see
        `rankshot.core.arrays.Lost`.
        """

    @abstractmethod
    def _constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants:
        """Return the NumPy arrays that `_log_posterior` needs for scores of the library ``xp``."""

    def _evaluate(
        self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost, prefix: str = "head"
    ) -> Array:
        """Return the same for a head around this one, whose constants have a prefix in ``c``."""
        result = self._log_posterior(f, kind, without_prefix(prefix, c), xp, lost)
        # Sums of infinite numbers are not known.
        return np.maximum(result, -LARGEST_SCORE, dtype=np.float64) if xp is np else result

    @property
    def innermost(self) -> BaseHead:
        """The head over new classes that heads such as `SeenAndNew` have inside."""
        return self if self.head is None else self.head.innermost

    @property
    def n_features_(self) -> int:
        """The number of features that inputs need besides their scores; usually none."""
        return 0 if self.head is None else self.head.n_features_

    @property
    def evidence_classes_(self) -> tuple[str, ...]:
        """The classes of the evidence that inputs need besides their scores; usually none."""
        return () if self.head is None else self.head.evidence_classes_

    @property
    def n_extra_columns_(self) -> int:
        """The number of columns that inputs need besides their scores: features, then evidence."""
        return self.n_features_ + len(self.evidence_classes_)

    def _default_temperature(self) -> float:
        return 1.0

    def _block_rows(self, kind: Kind) -> int:
        """Return how many inputs are best computed together on a CPU."""
        columns = n_columns(len(self.items_), kind) + self.n_extra_columns_
        return CACHED_CELLS // (columns + len(self.classes_))

    def _formula_cells(self, kind: Kind) -> int:
        """Return roughly how many numbers the formula keeps at a time for one input."""
        return len(self.classes_)

    @property
    def temperature_(self) -> float:
        """The number by which log-posteriors are divided before they are normalised."""
        return self._default_temperature() if self.temperature is None else float(self.temperature)

    def _list_temperatures(self) -> tuple[float, ...]:
        """Return the temperatures of this head and of those inside; they may change after `fit`."""
        return self.temperature_, *(() if self.head is None else self.head._list_temperatures())

    def predict_log_proba(self, scores: Scores | ArrayLike, candidates: Candidates = None) -> Array:
        """Return log P(z|x): one row per input, one column per class as in ``classes_``.

        Parameters
        ----------
        scores : Scores, data frame or array-like of shape (n, C) or (n, C (C - 1) / 2)
            Scores of the classifier. The columns of a plain array are in the order of
            ``items_``. The result is float32 if the scores are. torch, CuPy and JAX arrays give
            a result of the same library, on the same device; their values are not checked. Dask
            arrays and data frames give a lazy array, with the same blocks of rows.
        candidates : list of lists of names, or bool array of shape (n, L), optional
            The classes that each input may be assigned; by default all of ``classes_``. Not for
            Dask.
        """
        check_is_fitted(self, "classes_")
        return run_head(self, scores, candidates)

    def predict_proba(self, scores: Scores | ArrayLike, candidates: Candidates = None) -> Array:
        """Return P(z|x): one row per input, one column per class as in ``classes_``."""
        log_proba = self.predict_log_proba(scores, candidates)
        if is_dask(log_proba):
            return np.exp(log_proba)
        xp = other_library(log_proba)
        return np.exp(log_proba, out=log_proba) if xp is None else xp.exp(log_proba)

    def predict(
        self, scores: Scores | ArrayLike, candidates: Candidates = None
    ) -> NDArray[np.str_]:
        """Return the most probable class of each input; among equals, the first by name.

        The names are a NumPy array even if the scores are on another device; they are a lazy Dask
        array if the scores are.
        """
        return predict_names(self.predict_log_proba(scores, candidates), self.classes_)

    def top(self, scores: Scores | ArrayLike, k: int, candidates: Candidates = None) -> Top:
        """Return the ``k`` most probable classes of each input, and their probabilities."""
        return predict_top(self.predict_log_proba(scores, candidates), self.classes_, k)

    def decision_function(self, scores: Scores | ArrayLike) -> Array:
        """Return the log-posteriors before they are divided by the temperature and normalised.

        The values of a class can be compared between inputs: a high value means that the input
        fits the class well, even if it fits other classes better.
        """
        check_is_fitted(self, "classes_")
        return run_head(self, scores, normalize=False)

    def item_contributions(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return what each seen class adds to the log-posteriors, for heads that define this.

        The shape is (n, new classes, seen classes), for ``values``, which are scores of a ``kind``.
        """
        raise RankshotError(
            f"{type(self).__name__} cannot be explained by seen classes and sources"
        )

    def source_log_posteriors(
        self,
        values: Floats,
        kind: Kind,
    ) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Return the names of sources, and the log-posteriors by each alone; empty for many heads.

        The shape is (n, new classes, sources), for ``values``, which are scores of a ``kind``.
        """
        return (), np.zeros((len(values), len(self.classes_), 0))

    def to_torch(self, kind: Kind = "multiclass") -> TorchHead:
        """Return the fitted head as a torch module, from scores to log-probabilities.

        The module takes scores of one ``kind``. It can be compiled, exported and moved to any
        device. Its ``classes`` are the names of the columns. It is differentiable, except for
        `DeterministicRanking`, whose output is piecewise constant. It computes in single
        precision; after ``double()``, it computes in double precision, but its constants keep
        single precision.
        """
        check_is_fitted(self, "classes_")
        require_choice("kind", kind, KINDS)
        try:
            from rankshot.zeroshot.torch_head import TorchHead  # noqa: PLC0415
        except ImportError as error:
            raise RankshotError(
                f"to_torch needs {error.name}: pip install torch array-api-compat"
            ) from None
        return TorchHead(self, kind)

    def save(
        self, path: str | Path, *, note: str = "", provenance: Mapping[str, object] | None = None
    ) -> None:
        """Write the fitted head to one file (.rankshot); `load_head` reads it.

        The file holds everything that the head learned: the loaded head gives bit-identical
        predictions and needs no rankings, similarities or reference. It is a ZIP archive of JSON,
        JSON lines and .npy files, without pickles. It is written under another name and then
        renamed, so that it is never incomplete.

        Parameters
        ----------
        path : str or Path
            Ends in .rankshot.
        note : str
            A note for users of the file.
        provenance : mapping, optional
            Further information on how the head was made, as plain values (text, numbers, lists).
        """
        check_is_fitted(self, "classes_")
        write_head(self, Path(path), {**(provenance or {}), **({"note": note} if note else {})})

    @property
    def provenance_(self) -> dict[str, Any]:
        """How a loaded head was made; empty for a head that was fitted in this process."""
        classes, provenance = self._loaded
        # `fit` sets new classes, and then the file no longer says how the head came about.
        return dict(provenance) if classes is self.classes_ else {}

    def _list_learned(self) -> dict[str, type | None]:
        """Return the attributes that a file holds, and the type of each that has fields."""
        found: dict[str, type | None] = {}
        for base in reversed(type(self).__mro__):
            found |= dict.fromkeys(vars(base).get("_learned", ()))
            found |= vars(base).get("_records", {})
        return found

    def _describe_state(self) -> dict[str, object]:
        """Return what `fit` learned by name: arrays, rankings and plain values."""
        state: dict[str, Any] = {}
        for name, record in self._list_learned().items():
            value, key = getattr(self, name, None), name.strip("_")
            if record is None:
                state[key] = value
            elif value is not None:
                parts = {part: getattr(value, part) for part in signature(record).parameters}
                state |= with_prefix(key, parts)
        # JSON has no infinite numbers, arrays do.
        is_infinite = {name for name, x in state.items() if isinstance(x, float) and isinf(x)}
        return state | {name: np.array(state[name]) for name in is_infinite}

    def _restore_state(self, state: Mapping[str, Any]) -> None:
        """Set what `fit` learned; ``items_`` and ``classes_`` are set already."""
        for name, record in self._list_learned().items():
            key = name.strip("_")
            if record is None:
                value = state[key]
                is_number = isinstance(value, np.ndarray) and value.ndim == 0
                setattr(self, name, value.item() if is_number else value)
            else:
                parts = without_prefix(key, dict(state))
                setattr(self, name, record(**parts) if parts else None)
        self._prepare()

    def _expected_kind(self) -> Kind | None:
        """Return the kind of scores that the head was fitted for; None for all kinds."""
        return None if self.reference_ is None else self.reference_.kind


# ---- What heads are fitted to


def align_to(semantics: Semantics | Orders | None, items: tuple[str, ...]) -> Semantics:
    """Return the same semantics with the seen classes of a classifier as items.

    A dict has one order of seen classes per target. Rankings that name only some of these classes
    become top-K rankings of all of them. A ranking that lists another class is refused: nothing is
    dropped.
    """
    if isinstance(semantics, Mapping):
        return Rankings.from_orders(semantics.values(), items=items, targets=list(semantics))
    semantics = require_semantics(semantics)
    if isinstance(semantics, Similarity):
        return semantics.select(semantics.targets, items)
    return require_targets(semantics).change_items(items)


def require_semantics(semantics: object) -> Semantics:
    """Return ``semantics`` if they are `Rankings` or a `Similarity`; raise otherwise."""
    if not isinstance(semantics, Rankings | Similarity):
        raise RankshotError(
            f"rankings must be Rankings (see Rankings.from_orders and read_rankings), or a "
            f"Similarity for heads that take one, not {short_repr(semantics)}"
        )
    return semantics


def only_new(semantics: Named) -> Named:
    """Keep only the targets that are not items: the new classes."""
    is_new = np.array([name not in semantics.items for name in semantics.targets], bool)
    if not is_new.any():
        raise RankshotError(
            "there are rankings of seen classes only "
            f"({quote_names(dict.fromkeys(semantics.targets), 4)})"
        )
    return select_targets(semantics, is_new)


def select_targets(semantics: Named, wanted: NDArray[np.bool_]) -> Named:
    """Keep the rankings, or the rows of a similarity table, that are marked in ``wanted``."""
    if isinstance(semantics, Rankings):
        return cast("Named", semantics[wanted])
    names = np.array(semantics.targets)[wanted]
    return cast("Named", semantics.select(names, semantics.items))


def source_names(semantics: Semantics) -> tuple[str, ...]:
    """Return the names of the sources, sorted; rankings without a source have the name ""."""
    if isinstance(semantics, Similarity):
        return (semantics.source,)
    return tuple(np.unique(sources_of(semantics)).tolist())


def sources_of(rankings: Rankings) -> NDArray[np.str_]:
    """Return the source of each ranking; "" for none."""
    return np.array([source or "" for source in rankings.sources], dtype=str)


def quote_sources(sources: Iterable[str]) -> str:
    """Return the names of sources for a message."""
    return quote_names(source or "no source" for source in sources)


def require_targets(rankings: Rankings) -> Rankings:
    """Return the rankings with a weight above 0 that prefer an item; each must have a target."""
    if isinstance(rankings, Similarity):
        raise RankshotError(
            f"expected Rankings, not the similarities of {rankings.source!r}: use its to_rankings()"
        )
    require_rankings(rankings)
    nameless = np.flatnonzero([target is None for target in rankings.targets])
    if nameless.size:
        raise RankshotError(
            f"ranking {nameless[0]} has no target: name the target of each ranking with targets=, "
            'or with "target" in a file'
        )
    weighted = rankings[rankings.weights > 0]
    if len(weighted) == 0:
        raise RankshotError("there are no rankings (or all have weight 0)")
    # A subset of one item, or of tied ones, says nothing.
    n_places = weighted.places[weighted.starts[1:] - 1] + 1
    used = weighted[(n_places > 1) | ~weighted.is_subset]
    if lost := sorted(set(weighted.target_names) - set(used.target_names)):
        raise RankshotError(
            f"the rankings of {quote_names(lost)} do not order any seen classes: each lists a "
            "single one, or ties all that it lists"
        )
    return used


# ---- Parameters, and remarks about a fitted head


def require_k(k: int | None, n_items: int = sys.maxsize) -> int:
    """Return the number of places that count: ``k``, at most ``n_items``; all for None."""
    return n_items if k is None else min(require_whole_number("k", k), n_items)


def require_temperature(temperature: float | None) -> None:
    """Raise unless a temperature is positive and finite, or None for the default of a head."""
    if temperature is not None:
        require_number("temperature", temperature, above=0, below=np.inf)


def sources_or_raters(rankings: Rankings) -> tuple[tuple[str, ...], NDArray[np.object_]]:
    """Return the names of the sources and that of each ranking; of one source, those of raters."""
    labels = rankings.sources
    if len(rankings.source_names) < 2 and rankings.rater_names:
        labels = rankings.raters
    return tuple(sorted({label for label in labels if label is not None})), labels


def compared_rankings(head: BaseHead) -> Rankings | None:
    """Return the rankings that a fitted head compares with scores, or their consensus, if any."""
    found: Rankings | None = head.consensus_ or head.rankings_
    return found


# ---- The reference: scores of seen inputs that tell what is usual


LEAST_INPUTS = 10
"""The smallest number of inputs for means and standard deviations."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Means and standard deviations over inputs of seen classes, for one kind of scores.

    Those of the log-posterior of each new class (target) are computed from standardised scores.
    """

    kind: Kind
    score_mean: Floats
    score_std: Floats
    target_mean: Floats
    target_std: Floats

    def standardize_scores(self, values: Floats, kind: Kind) -> Floats:
        """Return scores in standard deviations from their mean; they must be of the same kind."""
        self.require_kind(kind)
        return np.asarray(standardize(values, self.score_mean, self.score_std))

    def require_kind(self, kind: Kind) -> None:
        """Raise unless scores are of the same kind as those of the reference."""
        if kind != self.kind:
            raise RankshotError(
                f"the reference has {self.kind} scores, but these are {kind}: pass the same kind"
            )

    def constants(self) -> Constants:
        """Return the arrays for formulas in any library."""
        return {name: value for name, value in vars(self).items() if name != "kind"}

    def standardize_log_posterior(self, log_posterior: Floats) -> NDArray[np.float64]:
        """Return log-posteriors, one row per class, in standard deviations from their mean."""
        mean, std = self.target_mean[:, None], self.target_std[:, None]
        return np.asarray(standardize(log_posterior, mean, std))


def as_reference(reference: Scores | ArrayLike, items: tuple[str, ...]) -> Scores:
    """Return the scores of a reference, of enough inputs, in main memory."""
    table = as_scores(reference, items)
    if len(table) < LEAST_INPUTS:
        raise RankshotError(
            f"the reference has {len(table)} inputs: at least {LEAST_INPUTS} are needed, and "
            "several hundred are better"
        )
    return replace(table, values=np.ascontiguousarray(to_numpy(table.values)))


def standardize(values: Array, mean: Array, std: Array) -> Array:
    """Return values in standard deviations from their mean, in any library."""
    return (values - mean) / std


def mean_and_std(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of each column; 1 for a constant column.

    The first row is subtracted before: the mean of many equal numbers is rounded, so that their
    standard deviation would not be exactly 0.
    """
    total, squares = np.zeros((2, values.shape[1]))
    for rows in row_blocks(len(values), values.shape[1]):
        total += np.subtract(values[rows], values[0], dtype=np.float64).sum(axis=0)
    mean = values[0] + total / len(values)
    for rows in row_blocks(len(values), values.shape[1]):
        from_mean = np.subtract(values[rows], values[0], dtype=np.float64) - total / len(values)
        squares += np.einsum("ni,ni->i", from_mean, from_mean)
    deviation = np.sqrt(squares / len(values))
    largest = np.maximum(values.max(axis=0), -values.min(axis=0))
    std = np.where(
        deviation > ROUNDING_UNITS * np.finfo(values.dtype).eps * largest, deviation, 1.0
    )
    return mean.astype(values.dtype), std.astype(values.dtype)
