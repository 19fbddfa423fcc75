"""The gate between seen and new classes, learned in a rehearsal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.zeroshot.alignment import select_targets
from rankshot.zeroshot.heads.gate import Gate, fit_gate
from rankshot.zeroshot.heads.seen_and_new import SeenAndNew
from rankshot.zeroshot.metrics import GeneralizedAccuracy, generalized_accuracy
from rankshot.zeroshot.rehearsal.folds import Fold

Floats = NDArray[np.float64]
FitHead = Callable[[Fold], Any]
LEAST_HALVED = 8
"""With fewer held-out classes, half of them are too few to play new ones."""


class RehearsedGate(NamedTuple):
    """What a rehearsal learns about seen and new classes together.

    Attributes
    ----------
    gate : Gate
    seen_temperature : float
        The temperature of the seen classes.
    together : GeneralizedAccuracy
        The accuracies of the rehearsed and of the other seen classes where both may be answered,
        and their harmonic mean: means over the folds.
    """

    gate: Gate
    seen_temperature: float
    together: GeneralizedAccuracy


def rehearse_gate(folds: Sequence[Fold], fit_head: FitHead, temperature: float) -> RehearsedGate:
    """Learn the gate from inputs of held-out classes and of the other seen classes.

    Parameters
    ----------
    folds : sequence of Fold
    fit_head : callable
        Returns the head for the held-out classes of a fold.
    temperature : float
        The temperature of this head, to measure the accuracies.
    """
    heads = [fit_head(fold).set_params(temperature=temperature) for fold in folds]
    pairs = [SeenAndNew(h).fit(f.seen, f.seen_label) for h, f in zip(heads, folds, strict=True)]
    new = [both.gate_features(fold.new) for both, fold in zip(pairs, folds, strict=True)]
    seen = [both.gate_features(fold.seen) for both, fold in zip(pairs, folds, strict=True)]
    gate = fit_gate(np.concatenate(new), np.concatenate(seen))
    halves = [groups for fold in folds for groups in _features_of_halves(fold, fit_head)]
    if halves:
        groups = (np.concatenate(group) for group in zip(*halves, strict=True))
        gate = Gate(gate.new, fit_gate(*groups).none)
    temperatures = np.array([both.seen_temperature_ for both in pairs], np.float64)
    seen_temperature = float(np.exp(np.log(temperatures).mean()))
    measured = [
        _measure(SeenAndNew(head, gate=gate, seen_temperature=seen_temperature), fold)
        for head, fold in zip(heads, folds, strict=True)
    ]
    together = GeneralizedAccuracy(*np.mean(measured, axis=0).tolist())
    return RehearsedGate(gate, seen_temperature, together)


def _features_of_halves(fold: Fold, fit_head: FitHead) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield the features of new classes, seen classes and neither.

    Half of the held-out classes play new ones. The inputs of the other half are of no class that
    the head knows.
    """
    names = np.unique(fold.new_label)
    if len(names) < LEAST_HALVED:
        return
    for half in (names[::2], names[1::2]):
        is_half = np.isin(np.array(fold.semantics.targets, object), half)
        head = fit_head(fold._replace(semantics=select_targets(fold.semantics, is_half)))
        both = SeenAndNew(head).fit(fold.seen)
        features = both.gate_features(fold.new)
        known = np.isin(fold.new_label, half)
        yield features[known], both.gate_features(fold.seen), features[~known]


def _measure(both: SeenAndNew, fold: Fold) -> GeneralizedAccuracy:
    both.fit(fold.seen)
    truth = np.concatenate([fold.new_label, fold.seen_label])
    found = np.concatenate([both.predict(fold.new), both.predict(fold.seen)])
    return generalized_accuracy(truth, found, fold.seen.items)
