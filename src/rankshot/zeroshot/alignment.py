"""Align semantics (rankings or similarities) with the classes of a classifier.

The items become the classes that the classifier was trained on. The targets are either the new
classes alone (`only_new`) or the new and the seen classes together (`with_seen`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.ranking.checks import require_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.similarity import Similarity
from rankshot.zeroshot.scores import Kind, Scores, score_by_pair_wins

Semantics = Rankings | Similarity
Labelled = tuple[Scores, Any]
SOURCE = "classifier"
"""The name of the source of the rankings of seen classes that are made here."""


def align_to(semantics: Semantics | None, items: tuple[str, ...]) -> Semantics:
    """Return the same semantics with the seen classes of a classifier as items.

    Rankings that name only some of these classes become top-K rankings of all of them. A ranking
    that lists another class is refused: nothing is dropped.
    """
    semantics = require_semantics(semantics)
    if isinstance(semantics, Similarity):
        return semantics.select(semantics.targets, items)
    return require_targets(semantics).change_items(items)


def require_semantics(semantics: Any) -> Semantics:
    """Return ``semantics`` if they are `Rankings` or a `Similarity`; raise otherwise."""
    if not isinstance(semantics, Rankings | Similarity):
        raise RankshotError(
            f"rankings must be Rankings (see Rankings.from_orders and read_rankings), or a "
            f"Similarity for heads that take one, not {short_repr(semantics)}"
        )
    return semantics


def only_new(semantics: Semantics, advice: str = "") -> Semantics:
    """Keep only the targets that are not items: the new classes.

    If there is none, ``advice`` ends the message.
    """
    is_new = np.array([name not in semantics.items for name in semantics.targets], bool)
    if not is_new.any():
        raise RankshotError(
            "there are rankings of seen classes only "
            f"({quote_names(dict.fromkeys(semantics.targets), 4)}){advice}"
        )
    return select_targets(semantics, is_new)


def select_targets(semantics: Semantics, wanted: NDArray[np.bool_]) -> Semantics:
    """Keep the rankings, or the rows of a similarity table, that are marked in ``wanted``."""
    if isinstance(semantics, Rankings):
        return semantics[wanted]
    return semantics.select(np.array(semantics.targets)[wanted], semantics.items)


def with_seen(
    semantics: Semantics, kind: Kind | None, labelled: Callable[[], Labelled]
) -> Semantics:
    """Return semantics whose targets are the new and the seen classes.

    A seen class without a ranking is ranked before all others, which are in no order. So it needs
    no inputs; and seen and new classes are closer to balance than with longer rankings.
    One-vs-one scores need rankings of one length: there `rank_seen_classes` makes them, as long as
    the others, from the scores and the true classes that ``labelled`` returns. Similarities must
    contain the seen classes already.

    Parameters
    ----------
    semantics : Rankings or Similarity
        Its items are the seen classes.
    kind : str or None
        The kind of the scores, where it is known.
    labelled : callable
        Returns scores of labelled inputs and their classes.
    """
    missing = [item for item in semantics.items if item not in set(semantics.targets)]
    if isinstance(semantics, Similarity):
        if missing:
            raise RankshotError(
                f"classes='all' needs the similarities of the seen classes as well; those of "
                f"{quote_names(missing)} are missing. Ask the source for "
                "similarity(new + seen, seen)"
            )
        return semantics
    _require_itself_first(semantics)
    if not missing:
        return semantics
    if kind == "one-vs-one":
        own = rank_seen_classes(*labelled(), missing)
        return Rankings.concatenate([semantics, own.top(int(semantics.lengths.max()))])
    themselves = Rankings.from_orders(
        [[name] for name in missing], items=semantics.items, targets=missing, sources=SOURCE
    )
    return Rankings.concatenate([semantics, themselves])


def _require_itself_first(rankings: Rankings) -> None:
    """Raise if a ranking of a seen class does not put that class alone in first place."""
    for target in sorted(set(rankings.target_names) & set(rankings.items)):
        for order in rankings.select(target=target).orders():
            if order[0] != target:
                raise RankshotError(
                    f"a ranking of the seen class {target!r} starts with "
                    f"{short_repr(order[0])}: with classes='all' a seen class must come first in "
                    "its own rankings"
                )


def rank_seen_classes(scores: Scores, y: Any, targets: Sequence[str]) -> Rankings:
    """Rank the seen classes for each of some seen classes, by the scores of its inputs.

    Each class comes first in its own ranking; the others follow by their mean score over the
    inputs of the class.

    Parameters
    ----------
    scores : Scores
        Scores of labelled inputs, at least one of each class in ``targets``.
    y : array-like of names
        The class of each input.
    targets : sequence of str
        The seen classes to rank for.

    Examples
    --------
    >>> scores = Scores([[2., 1., 0.], [3., 2., 0.], [0., 2., 1.]], ["cat", "fox", "bus"])
    >>> rank_seen_classes(scores, ["cat", "cat", "fox"], ["cat", "fox"])
    Rankings: 2 rankings of 3 items, 2 targets, 1 source
      cat: cat > fox > bus
      fox: fox > bus > cat
    """
    labels = np.asarray(y).astype(str)
    values = scores.values
    if scores.kind == "one-vs-one":
        values = score_by_pair_wins(values, len(scores.items))
    means = np.empty((len(targets), len(scores.items)))
    for row, target in enumerate(targets):
        theirs = labels == target
        if not theirs.any():
            raise RankshotError(
                f"one-vs-one scores: a seen class is ranked by its own inputs, and there is no "
                f"input of {target!r}{suggest_name(target, np.unique(labels))}: pass some to fit, "
                "or add a ranking of this class to rankings"
            )
        means[row] = values[theirs].mean(axis=0, dtype=np.float64)
        means[row, scores.items.index(target)] = np.inf
    return Rankings.from_scores(means, items=scores.items, targets=targets, sources=SOURCE)


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
    used = weighted[_prefers_an_item(weighted)]
    if lost := sorted(set(weighted.target_names) - set(used.target_names)):
        raise RankshotError(
            f"the rankings of {quote_names(lost)} prefer no seen class to another: each compares a "
            "single one, or ties all that it compares"
        )
    return used


def _prefers_an_item(rankings: Rankings) -> NDArray[np.bool_]:
    """Mark the rankings that say something: a subset of one item, or of tied ones, does not."""
    n_places = rankings.places[rankings.starts[1:] - 1] + 1
    return np.asarray((n_places > 1) | ~rankings.is_subset)
