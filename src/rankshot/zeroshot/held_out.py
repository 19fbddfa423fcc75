"""Which seen classes are held out, with their rankings and the scores of their inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, format_count, quote_names, short_repr, suggest_name
from rankshot.core.validation import Seed, require_whole_number
from rankshot.ranking.matrices import restrict_items
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.heads.base import Semantics, align_to, select_targets
from rankshot.zeroshot.scores import Scores, class_scores

Labels = NDArray[np.str_]
ENOUGH_TO_JUDGE = 50
"""The number of inputs from which on a classifier that is no better than chance is noticed."""
LEAST_CLASSES = 5
"""With fewer classes, a rehearsal tells nothing about other classes."""
USUAL_FOLDS = 5
"""The number of groups, if there are classes enough for two in each."""


class Fold(NamedTuple):
    """Some held-out classes that stand for new ones.

    ``semantics`` are those of the held-out classes, by the other seen classes. ``new`` are scores
    of their inputs, without their own columns; ``seen`` those of inputs of the other classes.
    """

    semantics: Semantics
    new: Scores
    new_label: Labels
    seen: Scores
    seen_label: Labels


def choose_groups(
    semantics: Semantics, held_out: Any, n_folds: int | None, random_state: Seed
) -> list[tuple[str, ...]]:
    """Return the groups of classes that are held out together: see `Rehearsal`."""
    ranked = sorted(set(semantics.targets))
    if held_out is not None:
        return _require_groups(held_out, ranked)
    if len(ranked) < LEAST_CLASSES:
        raise RankshotError(
            f"only {format_count(len(ranked), 'seen class')} with rankings and inputs "
            f"({quote_names(ranked)}): a rehearsal needs at least {LEAST_CLASSES}, and 20 are "
            "better"
        )
    if not _listed_items(semantics) & set(ranked):
        return [tuple(ranked)]
    most = len(ranked) // 2
    number = min(USUAL_FOLDS, most) if n_folds is None else n_folds
    number = require_whole_number("n_folds", number, least=1, most=most)
    mixed = np.random.default_rng(random_state).permutation(ranked)
    return [tuple(group.tolist()) for group in np.array_split(mixed, number)]


def _require_groups(held_out: Any, ranked: list[str]) -> list[tuple[str, ...]]:
    """Return the groups of ``held_out``; each class must be one of the ranked seen classes."""
    groups = [() if isinstance(group, str) else tuple(group) for group in held_out]
    names = [name for group in groups for name in group]
    is_odd = not {*names} <= {*ranked} or len(set(names)) < len(names)
    if is_odd or min(map(len, groups), default=0) < 2:
        raise RankshotError(
            "held_out must be a list of groups, each a list of at least two ranked seen classes "
            f"that are in no other group, not {short_repr(held_out)}"
        )
    return groups


def hold_out(scores: Scores, labels: Labels, semantics: Semantics, group: tuple[str, ...]) -> Fold:
    """Hold out a group of classes: their columns leave the scores and the rankings."""
    left = scores.select([name for name in scores.items if name not in group])
    # Classes without a column that are in another group are neither.
    is_new, is_seen = np.isin(labels, group), np.isin(labels, left.items)
    _require_agreement(left[is_seen], labels[is_seen])
    about = _restrict(semantics, group, left.items)
    return Fold(about, left[is_new], labels[is_new], left[is_seen], labels[is_seen])


def _require_agreement(scores: Scores, labels: Labels) -> None:
    """Raise if the classifier is no better than chance: then scores and labels do not belong."""
    if len(scores) < ENOUGH_TO_JUDGE:
        return
    values = class_scores(scores.values, scores.kind, len(scores.items), {}, np)
    agreement = float(np.mean(np.array(scores.items)[values.argmax(axis=1)] == labels))
    if agreement < 2 / len(scores.items):
        raise RankshotError(
            f"only {agreement:.1%} of the inputs of other seen classes have the highest score for "
            "their own class: do the labels belong to these scores, row by row?"
        )


def _listed_items(semantics: Semantics) -> set[str]:
    """Return the items that rankings list; of similarities, all."""
    if isinstance(semantics, Similarity):
        return set(semantics.items)
    return {semantics.items[code] for code in np.unique(semantics.codes)}


def _restrict(semantics: Semantics, group: tuple[str, ...], items: tuple[str, ...]) -> Semantics:
    """Return the rankings of the held-out group, by the remaining seen classes."""
    about = select_targets(semantics, np.isin(np.array(semantics.targets, object), group))
    if isinstance(about, Similarity):
        return about.select(about.targets, items)
    if wrong := sorted(_listed_items(about) - set(items) - set(group)):
        raise RankshotError(
            f"the rankings list {quote_names(wrong)}, which the scores do not have"
            f"{suggest_name(wrong[0], items)}"
        )
    about = restrict_items(about, [name for name in about.items if name in set(items)])
    if missing := sorted(set(group) - set(about.target_names)):
        raise RankshotError(
            f"the rankings of {quote_names(missing)} list no seen class that is left if "
            f"{quote_names(group)} are held out"
        )
    return align_to(about, items)
