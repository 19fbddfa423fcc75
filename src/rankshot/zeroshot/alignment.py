"""What semantics say, fitted to a classifier: its classes, and which targets may be answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.similarity import Similarity
from rankshot.zeroshot.prior import require_targets
from rankshot.zeroshot.scores import Scores, score_by_pair_wins

Semantics = Rankings | Similarity
Labelled = tuple[Scores, Any]
SOURCE = "classifier"
"""The source of rankings that the classifier itself makes of the classes it knows."""


def align_to(semantics: Semantics | None, items: tuple[str, ...]) -> Semantics:
    """Return rankings, or similarities, of the classes that a classifier knows.

    Lists that name only some of them are taken as the top of all.
    """
    semantics = require_semantics(semantics)
    if isinstance(semantics, Similarity):
        return semantics.select(semantics.targets, items)
    return require_targets(semantics).over(items)


def require_semantics(semantics: Any) -> Semantics:
    """Return rankings or similarities, or say that something else was passed."""
    if not isinstance(semantics, Rankings | Similarity):
        raise RankshotError(
            f"rankings must be Rankings (see Rankings.from_orders and read_rankings), or a "
            f"Similarity for heads that read one, not {short_repr(semantics)}"
        )
    return semantics


def only_new(semantics: Semantics) -> Semantics:
    """Leave out what is said of targets that are items: the classifier knows them."""
    unseen = np.array([name not in semantics.items for name in semantics.targets], bool)
    if not unseen.any():
        raise RankshotError(
            f"rankings: the classifier knows every target already "
            f"({quote_names(dict.fromkeys(semantics.targets), 4)}); classes='all' takes those in"
        )
    if isinstance(semantics, Rankings):
        return semantics[unseen]
    return semantics.select(np.array(semantics.targets)[unseen], semantics.items)


def with_seen(semantics: Semantics, labelled: Callable[[], Labelled]) -> Semantics:
    """Return what is said of unseen and seen classes.

    Seen classes that nothing is said of are ranked by `rank_seen_classes`, from the scores and true
    classes that ``labelled`` returns.
    """
    missing = [item for item in semantics.items if item not in set(semantics.targets)]
    if isinstance(semantics, Similarity):
        if missing:
            raise RankshotError(
                f"classes='all' needs the similarities of the seen classes as well; there are "
                f"none of {quote_names(missing)}. Ask the source for similarity(new + seen, seen)"
            )
        return semantics
    _require_itself_first(semantics)
    if not missing:
        return semantics
    return Rankings.concatenate([semantics, rank_seen_classes(*labelled(), missing)])


def _require_itself_first(rankings: Rankings) -> None:
    """Raise if a ranking of a seen class puts another one first, or as high."""
    for target in sorted(set(rankings.target_names) & set(rankings.items)):
        for order in rankings.select(target=target).orders():
            if order[0] != target:
                raise RankshotError(
                    f"a ranking of the seen class {target!r} starts with {short_repr(order[0])}: with "
                    "classes='all' a seen class comes first in its own rankings"
                )


def rank_seen_classes(scores: Scores, y: Any, targets: Sequence[str]) -> Rankings:
    """Rank all classes for some of them: itself first, then by mean score over its inputs.

    With such rankings seen and unseen classes compete in one head.

    Parameters
    ----------
    scores : Scores
        Of inputs of all ``targets``.
    y : array-like of names
        The class of each input.
    targets : sequence of str
        The seen classes wanted.

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
                f"classes='all' ranks a seen class by its own inputs, and there is none of "
                f"{target!r}{suggest_name(target, np.unique(labels))}: pass such to fit, or put a "
                "ranking of it into rankings"
            )
        means[row] = values[theirs].mean(axis=0, dtype=np.float64)
        means[row, scores.items.index(target)] = np.inf
    return Rankings.from_scores(means, items=scores.items, targets=targets, sources=SOURCE)
