"""The folds of a rehearsal: which seen classes are held out, their rankings and their inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, format_count, quote_names, short_repr, suggest_name
from rankshot.core.validation import Seed, require_whole_number
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.restriction import restrict_items
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.alignment import Semantics, align_to, require_semantics, select_targets
from rankshot.zeroshot.scores import Scores, sum_pair_scores

Labels = NDArray[np.str_]
ENOUGH_TO_JUDGE = 50
"""The number of inputs from which on a classifier that is no better than chance is noticed."""
LEAST_CLASSES = 5
"""With fewer classes, a rehearsal tells nothing about other classes."""
USUAL_FOLDS = 5
"""The number of groups, if there are classes enough for two in each."""


class Fold(NamedTuple):
    """Some held-out classes that play new ones.

    Attributes
    ----------
    semantics : Rankings or Similarity
        Of the held-out classes, by the other seen classes.
    new, new_label : Scores, ndarray of str
        Scores of inputs of the held-out classes, without their own columns; and the classes.
    seen, seen_label : Scores, ndarray of str
        The same for inputs of the other seen classes.
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


def make_fold(scores: Scores, labels: Labels, semantics: Semantics, group: tuple[str, ...]) -> Fold:
    """Hold out a group of classes: their columns leave the scores and the rankings."""
    items = [name for name in scores.items if name not in group]
    if len(items) < 2:
        raise RankshotError(
            f"with {quote_names(group)} held out, fewer than two seen classes are left"
        )
    # Classes without a column that are in another group are neither.
    is_new, is_seen = np.isin(labels, group), np.isin(labels, items)
    left = scores.select(items)
    _require_agreement(left[is_seen], labels[is_seen])
    about = _restrict(semantics, group, left.items)
    return Fold(about, left[is_new], labels[is_new], left[is_seen], labels[is_seen])


def _require_agreement(scores: Scores, labels: Labels) -> None:
    """Raise if the classifier is no better than chance: then scores and labels do not belong."""
    if len(scores) < ENOUGH_TO_JUDGE:
        return
    values = scores.values
    if scores.kind == "one-vs-one":
        values = sum_pair_scores(values, len(scores.items))
    agreement = float(np.mean(np.array(scores.items)[values.argmax(axis=1)] == labels))
    if agreement < 2 / len(scores.items):
        raise RankshotError(
            f"only {agreement:.1%} of the inputs of other seen classes have the highest score for "
            "their own class: do the labels belong to these scores, row by row?"
        )


def require_rehearsed(rankings: Semantics, labels: Labels) -> Semantics:
    """Return the rankings of classes that have inputs; they can be rehearsed."""
    semantics = require_semantics(rankings)
    there = set(labels.tolist())
    targets = np.array(semantics.targets, object).astype(str)
    known = np.isin(targets, list(there))
    if not known.any():
        raise RankshotError(
            f"no input has a class that is ranked: the rankings are of "
            f"{quote_names(dict.fromkeys(targets.tolist()), 4)}, the inputs are of "
            f"{quote_names(sorted(there), 4)}. A rehearsal needs rankings of seen classes "
            "(rankshot rank --rehearse 20)"
        )
    return select_targets(semantics, known)


def require_scores(X: Any, labels: Labels, semantics: Semantics) -> Scores:
    """Return X if it has scores for these labels; raise otherwise."""
    if not isinstance(X, Scores):
        raise RankshotError(
            f"X must be Scores of seen inputs, not {short_repr(X)}; inputs need estimator="
        )
    known = {*X.items, *semantics.targets}
    if unknown := [name for name in dict.fromkeys(labels.tolist()) if name not in known]:
        raise RankshotError(
            f"the labels {quote_names(unknown)} are neither classes of the scores nor ranked"
            f"{suggest_name(unknown[0], X.items)}"
        )
    return X


def _listed_items(semantics: Semantics) -> set[str]:
    """Return the items that rankings list; of similarities, all."""
    if isinstance(semantics, Similarity):
        return set(semantics.items)
    return {semantics.items[code] for code in np.unique(semantics.codes)}


def source_names(semantics: Semantics) -> tuple[str, ...]:
    """Return the names of the sources, sorted; rankings without a source have the name ""."""
    if isinstance(semantics, Similarity):
        return (semantics.source,)
    return tuple(sorted({source or "" for source in semantics.sources}))


def quote_sources(sources: Iterable[str]) -> str:
    """Return the names of sources for a message."""
    return quote_names(source or "no source" for source in sources)


def find_unranked(semantics: Semantics, sources: tuple[str, ...]) -> list[str]:
    """Return the targets that none of some sources ranks, sorted."""
    if isinstance(semantics, Similarity):
        return []
    ranked = semantics[_is_by(semantics, sources)]
    return sorted({*semantics.target_names} - {*ranked.target_names})


def select_sources(semantics: Semantics, sources: tuple[str, ...]) -> Semantics:
    """Return the rankings of some sources; no target may get lost."""
    if isinstance(semantics, Similarity):
        return semantics
    wanted = _is_by(semantics, sources)
    if not wanted.any():
        raise RankshotError(
            f"there is no ranking by {quote_sources(sources)}, which the rehearsal chose, only by "
            f"{quote_sources(source_names(semantics))}"
        )
    if lost := find_unranked(semantics, sources):
        raise RankshotError(
            f"{quote_names(lost)} have no ranking by {quote_sources(sources)}, which the rehearsal "
            "chose; rank them by these sources, or leave them out"
        )
    return semantics[wanted]


def _is_by(rankings: Rankings, sources: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([(source or "") in sources for source in rankings.sources], bool)


def _restrict(semantics: Semantics, group: tuple[str, ...], items: tuple[str, ...]) -> Semantics:
    """Return the rankings of the held-out group, by the remaining seen classes."""
    about = select_targets(semantics, np.isin(np.array(semantics.targets, object), group))
    if isinstance(about, Similarity):
        return about.select(about.targets, items)
    if unknown := sorted(set(about.items) - set(items) - set(group)):
        listed = _listed_items(about)
        if wrong := [name for name in unknown if name in listed]:
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


def _require_groups(held_out: Any, ranked: list[str]) -> list[tuple[str, ...]]:
    """Return the groups of ``held_out``; each class must be one of the ranked seen classes."""
    if isinstance(held_out, str) or not isinstance(held_out, Iterable):
        raise RankshotError(
            f"held_out must be a list of lists of names, not {short_repr(held_out)}"
        )
    groups: list[tuple[str, ...]] = []
    for group in held_out:
        names = () if isinstance(group, str) or not isinstance(group, Iterable) else tuple(group)
        if len(set(names)) < max(2, len(names)):
            raise RankshotError(
                "held_out: a group must be a list of at least two different classes, not "
                f"{short_repr(group)}"
            )
        for name in names:
            if name not in ranked:
                raise RankshotError(
                    f"held_out: there is no ranking of a seen class {short_repr(name)}"
                    f"{suggest_name(name, ranked)}"
                )
            if any(name in other for other in groups):
                raise RankshotError(f"held_out: {str(name)!r} is in two groups")
        groups.append(names)
    if not groups:
        raise RankshotError("held_out is empty: pass at least one group")
    return groups
