"""`BaseHead`: from log-posteriors of classes to labels and probabilities, for all heads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import (
    Array,
    Constants,
    Library,
    Lost,
    device_of,
    log_softmax,
    numpy_dtype,
    other_library,
    to_library,
    to_numpy,
)
from rankshot.core.blocks import CACHED_CELLS, row_blocks
from rankshot.core.dask_arrays import map_row_blocks
from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.validation import require_choice, require_number, require_whole_number
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.fitted_state import FittedState, State
from rankshot.zeroshot.runner import (
    Candidates,
    Top,
    candidate_mask,
    most_probable,
    normalize_log_proba,
    take_top,
)
from rankshot.zeroshot.scores import (
    KINDS,
    Kind,
    Scores,
    as_scores,
    is_lazy,
    name_columns,
    warn_of_probabilities,
)

Floats = NDArray[np.floating]
ARRAY_CELLS = 1 << 28
"""The number of cells of the temporary arrays of libraries with large memory of their own."""


class BaseHead(ABC):
    """The methods that all heads share: labels, probabilities and the most probable classes.

    A head sets ``items_`` (the seen classes) and ``classes_`` in `fit`. The latter are the classes
    that it may answer, sorted: the new classes, and also seen classes if it was fitted to their
    rankings or similarities. Its `_log_posterior` returns how probable each of them is, up to a
    constant per input. It is divided by ``temperature_``.

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

    items_: tuple[str, ...]
    classes_: NDArray[np.str_]
    temperature: float | None

    @abstractmethod
    def fit(self, semantics: Any) -> Any:
        """Learn from rankings or similarities of the new classes."""

    def _formula(
        self,
        f: Array,  # noqa: ARG002
        kind: Kind,  # noqa: ARG002
        c: Constants,  # noqa: ARG002
        xp: Library,  # noqa: ARG002
        lost: Lost,  # noqa: ARG002
    ) -> Array:
        """Return log P(z|x) plus a constant per input, with one row per input, in any library.

        ``c`` has the `_constants`, in the library ``xp`` of the scores ``f``. For ``lost`` see
        `rankshot.core.arrays.Lost`. A head has this formula, or a `_log_posterior` of its own for
        NumPy arrays, or both.
        """
        raise RankshotError(f"{type(self).__name__} has no formula for arrays of any library")

    def _constants(self, kind: Kind, dtype: np.dtype[np.floating]) -> Constants:  # noqa: ARG002
        """Return the arrays of the formula."""
        raise RankshotError(f"{type(self).__name__} needs NumPy arrays, and cannot be exported")

    def _log_posterior(self, values: Floats, kind: Kind) -> Floats:
        """Return the same for NumPy arrays, with one row per class."""
        f = np.asarray(values, np.float64)
        result = self._formula(f, kind, self._constants(kind, f.dtype), np, None)
        return np.ascontiguousarray(result.T)

    @property
    def temperature_(self) -> float:
        """The number by which log-posteriors are divided before they are normalised."""
        return self._default_temperature() if self.temperature is None else float(self.temperature)

    def _default_temperature(self) -> float:
        return 1.0

    def save(
        self, path: str | Path, *, note: str = "", provenance: Mapping[str, Any] | None = None
    ) -> None:
        """Write the fitted head to one file (.rankshot); `load_head` reads it.

        The file holds what the head learned, so the loaded head gives the same answers to the
        last bit, without rankings, similarities or reference. It is a ZIP archive of JSON, JSON
        lines and .npy files; nothing in it is a pickle. It is written under another name and then
        renamed, so that it is never incomplete.

        Parameters
        ----------
        path : str or Path
            Ends in .rankshot.
        note : str
            A remark for those who use the file.
        provenance : mapping, optional
            More to keep about how the head came about, as plain values (text, numbers, lists).

        Examples
        --------
        >>> import tempfile
        >>> import rankshot as rs
        >>> rankings = rs.Rankings.from_orders(
        ...     [["leopard", "tiger"], ["bus"]], items=["bus", "leopard", "tiger"],
        ...     targets=["cat", "truck"], sources="me")
        >>> head = rs.WeightedMean(k=2).fit(rankings)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     head.save(folder + "/new-classes.rankshot", note="first try")
        ...     again = rs.load_head(folder + "/new-classes.rankshot")
        >>> again
        WeightedMean(k=2)
        >>> again.predict([[0.0, 3.0, 1.0]])
        array(['cat'], dtype='<U5')
        >>> again.provenance_["sources"], again.provenance_["note"]
        (['me'], 'first try')
        """
        from rankshot.zeroshot.files.head_files import write_head  # noqa: PLC0415

        check_is_fitted(self, "classes_")
        more = {**(provenance or {}), **({"note": note} if note else {})}
        write_head(self, Path(path), more)

    @property
    def provenance_(self) -> dict[str, Any]:
        """How a head from a file came about; empty for a head that was fitted here."""
        classes, provenance = getattr(self, "_loaded", (None, {}))
        # `fit` sets new classes, and then the file no longer says how the head came about.
        return dict(provenance) if classes is self.classes_ else {}

    def _describe_state(self) -> State:
        """Return what `fit` learned: arrays, rankings and plain values by name."""
        raise RankshotError(f"{type(self).__name__} cannot be saved")

    def _restore_state(self, state: FittedState) -> None:  # noqa: ARG002
        """Set what `fit` learned; ``items_`` and ``classes_`` are set already."""
        raise RankshotError(f"{type(self).__name__} cannot be loaded")

    def _expected_kind(self) -> Kind | None:
        """Return the kind of scores that the head was fitted for; None for all kinds."""
        reference = getattr(self, "reference_", None)
        return None if reference is None else reference.kind

    def predict_log_proba(self, scores: Scores | ArrayLike, candidates: Candidates = None) -> Array:
        """Return log P(z|x): one row per input, one column per class as in ``classes_``.

        Parameters
        ----------
        scores : Scores, data frame or array-like of shape (n, C) or (n, C (C - 1) / 2)
            Scores of the classifier. The columns of a plain array are in the order of
            ``items_``. The result has float32 if the scores have. Arrays of torch, CuPy and JAX
            are used as they are: the result is of the same library, on the same device. Their
            values are not checked. For an array or a data frame of Dask, the result is a lazy
            array of Dask, with the same blocks of rows.
        candidates : list of lists of names, or bool array of shape (n, L), optional
            The classes that each input may get; by default all of ``classes_``. Scores of Dask
            take none.
        """
        check_is_fitted(self, "classes_")
        if is_lazy(scores):
            if candidates is not None:
                raise RankshotError(
                    "candidates need scores in memory: pass them for each block of a Dask array, "
                    "with dask.array.map_blocks"
                )
            return self._map_blocks("predict_log_proba", scores)
        table = as_scores(scores, self.items_)
        mask = candidate_mask(candidates, len(table), self.classes_)
        if (xp := other_library(table.values)) is not None:
            return self._log_proba_of_array(table, mask, xp)
        result = np.empty((len(table), len(self.classes_)), table.values.dtype)
        for rows, block in self._log_posterior_blocks(table):
            allowed = None if mask is None else mask[rows].T
            result[rows] = normalize_log_proba(
                block, allowed, table.values.dtype, temperature=self.temperature_
            ).T
        return result

    def to_torch(self, kind: Kind = "multiclass") -> Any:
        """Return the fitted head as a module of torch, from scores to log-probabilities.

        The module can be compiled, exported and moved to any device. Its ``classes`` are the
        names of the columns. It is differentiable, except that of `DeterministicRanking`, whose
        answers change in steps. It computes in single precision; after ``double()`` in double
        precision, with constants of single precision.

        Parameters
        ----------
        kind : {"multiclass", "one-vs-rest", "one-vs-one"}
            The kind of the scores.

        Examples
        --------
        >>> import rankshot as rs, torch
        >>> rankings = rs.Rankings.from_orders(
        ...     [["leopard", "tiger"], ["bus"]], items=["bus", "leopard", "tiger"],
        ...     targets=["cat", "truck"])
        >>> module = rs.WeightedMean().fit(rankings).to_torch()
        >>> module.classes, module(torch.tensor([[0.0, 3.0, 1.0]])).exp().round(decimals=2)
        (('cat', 'truck'), tensor([[0.9000, 0.1000]]))
        """
        check_is_fitted(self, "classes_")
        require_choice("kind", kind, KINDS)
        try:
            module = import_module("rankshot.zeroshot.torch_head")
        except ImportError as error:
            raise RankshotError(
                f"to_torch needs {error.name}: pip install torch 'rankshot[arrays]'"
            ) from None
        return module.TorchHead(self, kind)

    def decision_function(self, scores: Scores | ArrayLike) -> Array:
        """Return the log-posteriors before they are divided by the temperature and normalised.

        Values of one class are comparable over inputs: a high value means that the input fits the
        class well, also if it fits other classes better.
        """
        check_is_fitted(self, "classes_")
        if is_lazy(scores):
            return self._map_blocks("decision_function", scores)
        table = as_scores(scores, self.items_)
        if (xp := other_library(table.values)) is not None:
            return self._log_posterior_of_array(table, xp)
        result = np.empty((len(table), len(self.classes_)), table.values.dtype)
        for rows, block in self._log_posterior_blocks(table):
            result[rows] = block.T
        return result

    def _map_blocks(self, method: str, scores: Any) -> Array:
        """Return what a method returns for each block of a table of Dask, as a lazy array."""
        is_plain = not isinstance(scores, Scores)
        table = name_columns(scores, self.items_) if is_plain else scores
        constant = self, method, table.items, table.kind, is_plain
        return map_row_blocks(table.values, _call_with_block, constant)

    def _log_proba_of_array(self, table: Scores, mask: Array | None, xp: Library) -> Array:
        log_posterior = self._log_posterior_of_array(table, xp)
        if mask is not None:
            if isinstance(mask, np.ndarray):
                mask = to_library(mask, xp, table.values)
            log_posterior = xp.where(mask, log_posterior, -np.inf)
        return log_softmax(log_posterior / self.temperature_, xp, 1)

    def _log_posterior_of_array(self, table: Scores, xp: Library) -> Array:
        values = table.values
        c = self._constants_like(values, table.kind, xp)
        cells = int(values.shape[1]) + self._cells_per_input_of_array(table.kind)
        blocks = list(row_blocks(len(table), cells, ARRAY_CELLS)) or [slice(0, 0)]
        parts = [self._formula_of_block(values[rows, ...], table.kind, c, xp) for rows in blocks]
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)

    def _formula_of_block(self, f: Array, kind: Kind, c: Constants, xp: Library) -> Array:
        if "jax" in xp.__name__:
            # Under its transformations, nothing may depend on values.
            return self._formula(f, kind, c, xp, None)
        lost: list[Array] = []
        result = self._formula(f, kind, c, xp, lost)
        # How many inputs are lost is known without a look at any value.
        if any(xp.nonzero(where)[0].shape[0] for where in lost):
            return self._formula(f, kind, c, xp, None)
        return result

    def _constants_like(self, values: Array, kind: Kind, xp: Library) -> Constants:
        """Return the constants in the library, precision and device of some scores; kept."""
        # What torch makes in its inference mode has no place in the computation of a gradient.
        mode = getattr(xp, "is_inference_mode_enabled", bool)()
        key = kind, xp.__name__, str(values.dtype), str(device_of(values)), mode
        # Other rankings make other constants.
        if getattr(self, "_converted_for", None) is not self.classes_:
            self._converted: dict[tuple[Any, ...], Constants] = {}
            self._converted_for = self.classes_
        if key in self._converted:
            return self._converted[key]
        constants = {
            name: to_library(array, xp, values)
            for name, array in self._constants(kind, numpy_dtype(values)).items()
        }
        # What JAX makes inside a transformation is not valid outside.
        if "jax" not in xp.__name__:
            self._converted[key] = constants
        return constants

    def __getstate__(self) -> Any:
        # What is on a device stays there; copies of the head make their own.
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if not name.startswith("_converted")}

    def _cells_per_input_of_array(self, kind: Kind) -> int:  # noqa: ARG002
        return len(self.classes_)

    def _log_posterior_blocks(self, table: Scores) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of inputs and their log-posteriors, with one row per class."""
        cells = self._cells_per_block(table.kind)
        for rows in row_blocks(len(table), self._cells_per_input(table.values), cells):
            yield rows, self._log_posterior(table.values[rows], table.kind)

    def _cells_per_block(self, kind: Kind) -> int:  # noqa: ARG002
        return CACHED_CELLS

    def _cells_per_input(self, values: Floats) -> int:
        return int(values.shape[1]) + len(self.classes_)

    def predict_proba(self, scores: Scores | ArrayLike, candidates: Candidates = None) -> Array:
        """Return P(z|x): one row per input, one column per class as in ``classes_``."""
        log_proba = self.predict_log_proba(scores, candidates)
        if is_lazy(log_proba):
            return np.exp(log_proba)
        xp = other_library(log_proba)
        return np.exp(log_proba, out=log_proba) if xp is None else xp.exp(log_proba)

    def predict(
        self, scores: Scores | ArrayLike, candidates: Candidates = None
    ) -> NDArray[np.str_]:
        """Return the most probable class of each input; among equals, the first by name.

        The names are a NumPy array also if the scores are on another device; they are a lazy
        array of Dask if the scores are.
        """
        log_proba = self.predict_log_proba(scores, candidates)
        if is_lazy(log_proba):
            names: NDArray[np.str_] = map_row_blocks(log_proba, _most_probable_names, self.classes_)
            return names
        return _most_probable_names(log_proba, self.classes_)

    def top(self, scores: Scores | ArrayLike, k: int, candidates: Candidates = None) -> Top:
        """Return the ``k`` most probable classes of each input, and their probabilities."""
        log_proba = self.predict_log_proba(scores, candidates)
        if is_lazy(log_proba):
            labels, proba = (
                map_row_blocks(log_proba, _take_top_field, (self.classes_, k, field))
                for field in Top._fields
            )
            return Top(labels, proba)
        return take_top(to_numpy(log_proba), self.classes_, k)


def _call_with_block(
    block: Array, constant: tuple[BaseHead, str, tuple[str, ...], Kind, bool]
) -> Array:
    head, method, items, kind, is_plain = constant
    scores = Scores(block, items, kind)
    if is_plain:
        warn_of_probabilities(scores)
    return getattr(head, method)(scores)


def _most_probable_names(log_proba: Array, classes: NDArray[np.str_]) -> NDArray[np.str_]:
    return classes[most_probable(log_proba)]


def _take_top_field(log_proba: Array, constant: tuple[NDArray[np.str_], int, str]) -> Array:
    classes, k, field = constant
    return getattr(take_top(to_numpy(log_proba), classes, k), field)


def require_k(k: int | None, n_items: int) -> int:
    """Return the number of places that count: ``k``, at most ``n_items``; all for None."""
    return n_items if k is None else min(require_whole_number("k", k), n_items)


def require_temperature(temperature: float | None) -> None:
    """Raise unless a temperature is positive and finite, or None for the default of a head."""
    if temperature is not None:
        require_number("temperature", temperature, above=0, below=np.inf)


def takes_reference(head: Any) -> bool:
    """Return whether a head can be fitted with a reference."""
    # The sum over rankings has its own scale.
    return (
        "reference" in signature(head.fit).parameters and getattr(head, "posterior", None) != "sum"
    )


def sources_or_raters(rankings: Rankings) -> tuple[tuple[str, ...], NDArray[np.object_]]:
    """Return the names of the sources and that of each ranking; of one source, those of raters."""
    labels = rankings.sources
    if len(rankings.source_names) < 2 and rankings.rater_names:
        labels = rankings.raters
    return tuple(sorted({label for label in labels if label is not None})), labels


def describe_missing(head: Any) -> list[str]:
    """Return one remark per source that does not rank all classes of a fitted head."""
    remarks = []
    for source, classes in getattr(head, "missing_", {}).items():
        theirs = [(name or "") == source for name in head.rankings_.sources]
        ranked = head.rankings_[np.array(theirs)].target_names
        who = f"the source {source!r}" if source else "the part without a source"
        if source in getattr(head, "unused_", ()):
            remarks.append(f"{who} ranks only {ranked[0]!r}: it compares no classes, and is unused")
        else:
            remarks.append(
                f"{who} has no ranking of {quote_names(classes)}: there the other sources decide"
            )
    return remarks


def describe_indistinguishable(head: Any) -> list[str]:
    """Return one warning per group of classes that a fitted head cannot distinguish."""
    names = [str(name) for name in head.classes_]
    if len(names) == 1:
        return [f"{names[0]!r} is the only class: every input gets this class"]
    used = getattr(head, "consensus_", None)
    if used is None:
        used = getattr(head, "rankings_", None)
    if used is None:
        return []
    return [
        f"the rankings of {quote_names(same)} are the same in all places that count: inputs of "
        "these classes cannot be distinguished"
        for same in group_equal_classes(used)
    ]


def group_equal_classes(rankings: Rankings) -> list[list[str]]:
    """Return groups of classes with the same rankings and the same shares of the weight."""
    numbers = rankings.lists.number_equal_rows([rankings.lengths, rankings.is_subset])
    shares: dict[str, dict[int, float]] = {}
    for target, number, weight in zip(rankings.targets, numbers, rankings.weights, strict=True):
        theirs = shares.setdefault(str(target), {})
        theirs[int(number)] = theirs.get(int(number), 0.0) + float(weight)
    groups: dict[frozenset[tuple[int, float]], list[str]] = {}
    for target in sorted(shares):
        total = sum(shares[target].values())
        key = frozenset((n, round(share / total, 9)) for n, share in shares[target].items())
        groups.setdefault(key, []).append(target)
    return [same for same in groups.values() if len(same) > 1]
