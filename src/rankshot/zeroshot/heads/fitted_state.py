"""What a head learned in `fit`, as arrays, rankings and plain values: what a file stores of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.ranking.matrices import group_ties, name_groups
from rankshot.ranking.models.babington_smith import BabingtonSmith
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import TIED, PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.reference import Reference
from rankshot.zeroshot.prior import RankingModel, require_prior
from rankshot.zeroshot.scores import KINDS, n_columns

State = dict[str, Any]
"""Arrays, `Rankings` and plain values (JSON) by name. Numbers that may be infinite are arrays."""
MODELS: dict[str, type[Any]] = {
    "PlackettLuce": PlackettLuce,
    "Mallows": Mallows,
    "BabingtonSmith": BabingtonSmith,
}
"""The priors that a file can hold, by name."""
REFERENCE = "reference"
"""The arrays of a reference have names that begin so."""


@dataclass(frozen=True)
class FittedState:
    """The state of a head that was read from a file; every part is checked when it is taken."""

    items: tuple[str, ...]
    classes: tuple[str, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    rankings: Mapping[str, Rankings] = field(default_factory=dict)

    def take_array(
        self, name: str, *shape: int | None, kind: str = "f", finite: bool = True
    ) -> NDArray[Any]:
        """Return an array of this shape (None: any size) and kind of numbers, without NaN."""
        if name not in self.arrays:
            raise RankshotError(f"the array {name!r} is missing")
        array = self.arrays[name]
        fits = len(array.shape) == len(shape) and all(
            size in {None, found} for size, found in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype.kind != kind:
            wanted = ", ".join("any" if size is None else str(size) for size in shape)
            raise RankshotError(
                f"the array {name!r} is {array.dtype} of shape {array.shape}; expected "
                f"{ {'f': 'floats', 'i': 'integers', 'b': 'booleans'}[kind] } of shape ({wanted})"
            )
        wrong = ~np.isfinite(array) if finite else np.isnan(array)
        if wrong.any():
            raise RankshotError(f"the array {name!r} has the value {array[wrong][0]}")
        return array

    def take_rankings(self, name: str) -> Rankings:
        """Return rankings of the seen classes that rank each class of the head."""
        if name not in self.rankings:
            raise RankshotError(f"the rankings {name!r} are missing")
        found = self.rankings[name]
        if found.target_names != self.classes or (found.targets == None).any():  # noqa: E711
            raise RankshotError(
                f"the rankings {name!r} are those of {quote_names(found.target_names)}, not of "
                f"{quote_names(self.classes)}"
            )
        return found

    def take_value(self, name: str, kind: type[Any]) -> Any:
        """Return a plain value of this type."""
        value = self.values.get(name)
        if type(value) is not kind:
            raise RankshotError(
                f"{name!r} must be of type {kind.__name__}, not {short_repr(value)}"
            )
        return value


# ---- Reference


def describe_reference(reference: Reference | None) -> State:
    """Return the state of a reference; empty if there is none."""
    if reference is None:
        return {}
    return {
        f"{REFERENCE}_kind": reference.kind,
        f"{REFERENCE}_score_mean": reference.score_mean,
        f"{REFERENCE}_score_std": reference.score_std,
        f"{REFERENCE}_target_mean": reference.target_mean,
        f"{REFERENCE}_target_std": reference.target_std,
    }


def restore_reference(
    state: FittedState, n_targets: int, *, by_class: bool = False
) -> Reference | None:
    """Return the reference of a state, if it has one.

    ``by_class``: one-vs-one scores were added up, so that there is one mean per seen class.
    """
    if f"{REFERENCE}_kind" not in state.values:
        return None
    kind = state.take_value(f"{REFERENCE}_kind", str)
    if kind not in KINDS:
        raise RankshotError(f"the kind of the reference is {kind!r}, not one of {KINDS}")
    columns = n_columns(len(state.items), "multiclass" if by_class else kind)
    score_mean, score_std = (
        state.take_array(f"{REFERENCE}_{name}", columns) for name in ("score_mean", "score_std")
    )
    target_mean, target_std = (
        state.take_array(f"{REFERENCE}_{name}", n_targets) for name in ("target_mean", "target_std")
    )
    return Reference(kind, score_mean, score_std, target_mean, target_std)


# ---- Priors


def describe_models(models: Mapping[str, RankingModel]) -> State:
    """Return the state of the fitted models of some new classes: arrays with one row per class."""
    if not models:
        return {}
    fitted: list[Any] = list(models.values())
    state: State = {
        "prior_targets": list(models),
        "prior_log_likelihood": np.array([model.log_likelihood_ for model in fitted]),
    }
    if isinstance(fitted[0], PlackettLuce):
        state["prior_log_worths"] = np.array([model.log_worths_ for model in fitted])
        state["prior_worths"] = np.array([model.worths_ for model in fitted])
        state["prior_n_iter"] = np.array([model.n_iter_ for model in fitted], np.int64)
    elif isinstance(fitted[0], Mallows):
        code = {name: i for i, name in enumerate(fitted[0].items_)}
        state["prior_center"] = np.array(
            [[code[name] for name in model.center_] for model in fitted], np.int64
        )
        state["prior_spread"] = np.array([model.spread_ for model in fitted])
    else:
        state["prior_log_odds"] = np.array([model.log_odds_ for model in fitted])
    return state


def restore_models(state: FittedState, prior: RankingModel | None) -> dict[str, RankingModel]:
    """Return the fitted models of a state."""
    if "prior_targets" not in state.values:
        return {}
    targets = state.take_value("prior_targets", list)
    if unknown := [name for name in targets if name not in state.classes]:
        raise RankshotError(f"there are priors of {quote_names(unknown)}, which are no classes")
    n, C = len(targets), len(state.items)
    models: list[Any] = [clone(require_prior(prior)) for _ in targets]
    likelihood = state.take_array("prior_log_likelihood", n, finite=False)
    for model, value in zip(models, likelihood.tolist(), strict=True):
        model.items_, model.log_likelihood_ = state.items, value
    if isinstance(models[0], PlackettLuce):
        log_worths = state.take_array("prior_log_worths", n, C)
        worths = state.take_array("prior_worths", n, C)
        n_iter = state.take_array("prior_n_iter", n, kind="i").tolist()
        for row, model in enumerate(models):
            model.log_worths_, model.worths_ = log_worths[row], worths[row]
            model.n_iter_ = n_iter[row]
            model.mode_ = name_groups(group_ties(-log_worths[row], tolerance=TIED), state.items)
    elif isinstance(models[0], Mallows):
        centers = state.take_array("prior_center", n, C, kind="i")
        spreads = state.take_array("prior_spread", n, finite=False).tolist()
        if not (np.sort(centers, axis=1) == np.arange(C)).all() or min(spreads) < 0:
            raise RankshotError("the priors are damaged: a centre must name each seen class once")
        for model, center, spread in zip(models, centers.tolist(), spreads, strict=True):
            model.center_ = model.mode_ = tuple(state.items[i] for i in center)
            model.spread_ = spread
    else:
        log_odds = state.take_array("prior_log_odds", n, C, C)
        for row, model in enumerate(models):
            model.log_odds_ = log_odds[row]
    return dict(zip(targets, models, strict=True))
