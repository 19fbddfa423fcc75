"""Rankings of classes: what is accepted, which are of new ones, and the weights of sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.errors import NO_VALUE, InputError, quote_names
from rankshot.core.tables import as_frame
from rankshot.core.validation import require_number
from rankshot.ranking.ranking_files import read_rankings
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.floating]
Order = Sequence[str | Sequence[str]]
Orders = Mapping[str, Order | Sequence[Order]]
"""For each target, its seen classes, most similar first; or one such list per rater."""
ONE_RATER = "dict"
"""The rater of a dict with one list per class, unless raters are named."""
DECAY = 0.5
"""By default, place r of a ranking has the weight r^-DECAY."""
LEAST_COHERENCE = 1.64
"""Standard deviations above chance: of sources with random lists, one in 20 is above."""


def as_rankings(
    rankings: object, items: Sequence[str] | None = None, raters: str | Sequence[str] | None = None
) -> Rankings:
    """Rankings of the seen classes ``items`` from `Rankings`, a dict, a file or a data frame.

    Rankings that name only some of these classes become top-K rankings of all of them. A ranking
    that lists another class is refused: nothing is dropped. A dict has one list of seen classes per
    class, most similar first, by one rater; or one list for each of the ``raters``.
    """
    if isinstance(rankings, Mapping):
        if items is None:
            hint = "use Rankings.from_orders(..., items=...), or a reference or examples in Scores"
            rule = "do not name the columns of the scores"
            raise InputError("rankings", NO_VALUE, rule, hint=hint)
        if raters is not None and not isinstance(raters, str):
            # One list of each rater for each class.
            raters = [*raters] * len(rankings)
        named = Rankings.from_orders(rankings, items=items, raters=raters)
        if raters is None and len(named) == len(rankings):
            named = replace(named, raters=np.full(len(named), ONE_RATER, object))
        return _require_targets(named)
    if isinstance(rankings, str | Path) or as_frame(rankings) is not None:
        rankings = read_rankings(rankings)
    if not isinstance(rankings, Rankings):
        rule = "must be Rankings, a dict of lists, or a file"
        raise InputError("rankings", rankings, rule, hint="a Similarity has to_rankings()")
    named = _require_targets(rankings)
    # The same classes keep the order that the rankings give them: plain arrays have it as well.
    is_same = items is None or {*items} == {*named.items}
    return named if is_same else named.change_items(tuple(items or ()))


def only_new(rankings: Rankings) -> Rankings:
    """The rankings whose targets are not items: those of the new classes."""
    is_new = np.array([name not in rankings.items for name in rankings.targets], bool)
    if not is_new.any():
        hint = f"they are of {quote_names(dict.fromkeys(rankings.targets), 4)}"
        raise InputError("rankings", NO_VALUE, "are of seen classes only", hint=hint)
    return rankings[is_new]


def _require_targets(rankings: Rankings) -> Rankings:
    """The rankings with a weight above 0 that prefer an item; each must have a target."""
    nameless = np.flatnonzero([target is None for target in rankings.targets])
    if nameless.size:
        where, hint = f"ranking {nameless[0]}", 'name it with targets=, or "target" in a file'
        raise InputError("rankings", NO_VALUE, "must have a target", where, hint)
    weighted = rankings[rankings.weights > 0]
    if len(weighted) == 0:
        raise InputError("rankings", NO_VALUE, "are missing, or all have weight 0")
    # A subset of one item, or of tied ones, says nothing.
    n_places = weighted.places[weighted.starts[1:] - 1] + 1
    used = weighted[(n_places > 1) | ~weighted.is_subset]
    if lost := sorted(set(weighted.target_names) - set(used.target_names)):
        hint = "each lists a single one, or ties all that it lists"
        raise InputError("rankings", lost[0], "has no ranking that orders seen classes", hint=hint)
    return used


# ---- Sources


def source_names(rankings: Rankings) -> tuple[str, ...]:
    """The names of the sources, sorted; rankings without a source have the name ""."""
    return tuple(np.unique(sources_of(rankings)).tolist())


def sources_of(rankings: Rankings) -> NDArray[np.str_]:
    """The source of each ranking; "" for none."""
    return np.array([source or "" for source in rankings.sources], dtype=str)


def listed_weights(rankings: Rankings, decay: float) -> csr_array:
    """The weights of the items that each ranking lists, with one row per ranking.

    The weight of an item falls with its place r as r^-decay. Items of a tie share the weights of
    their places, as far as these are among the first K. Each row has the sum 1. Of a subset
    ranking, the mean over the items that it lists is subtracted: it compares no others.

    Examples
    --------
    >>> lists = Rankings.from_orders([["a", ["b", "c"]]], items=["a", "b", "c", "d"])
    >>> listed_weights(lists.top(2), decay=1).toarray().round(3)
    array([[0.667, 0.167, 0.167, 0.   ]])
    """
    places = 1.0 + np.arange(rankings.lengths.max(initial=0))
    total = np.append(0.0, np.cumsum(places**-decay))
    begin, size, row, _ = rankings.groups
    last = rankings.lengths[row]
    share = total[np.minimum(begin + size, last)] - total[np.minimum(begin, last)]
    listed = np.repeat(share / total[last] / size, size)
    rows = rankings.entry_rows
    listed -= np.where(rankings.is_subset, 1 / rankings.n_listed, 0.0)[rows]
    return csr_array((listed, (rows, rankings.codes)), (len(rankings), rankings.n_items))


def choose_source_weights(
    rankings: Rankings, coherence: Callable[[Rankings], float]
) -> dict[str, float]:
    """The default weight of each source: 1 or 0.

    Sources with raters (people, language models) count. Those without (tables: WordNet, vectors,
    corpora) count only if there are no others, and if they rank all classes that any such table
    ranks. A source does not count if it is not more coherent than chance and clearly less coherent
    than another one: with few classes, no source may be above chance. Sources that do not count
    fill in: see `weigh_sources`.

    Parameters
    ----------
    rankings : Rankings
    coherence : function
        Returns how coherent the rankings of a source are, as `measure_coherence`; infinite where
        this is not known.
    """
    names = sources_of(rankings)
    parts = {source: rankings[names == source] for source in source_names(rankings)}
    if len(parts) == 1:
        return dict.fromkeys(parts, 1.0)
    measured = {source: coherence(part) for source, part in parts.items()}
    best = max((value for value in measured.values() if value < np.inf), default=0.0)
    # The difference of two coherences has twice the variance of one.
    least = min(LEAST_COHERENCE, best - np.sqrt(2) * LEAST_COHERENCE)
    trusted = [source for source in parts if measured[source] >= least]
    if raters := [source for source in trusted if parts[source].rater_names]:
        trusted = raters
    else:
        most = max(len(parts[source].target_names) for source in trusted)
        trusted = [s for s in trusted if len(parts[s].target_names) == most]
    return {source: float(source in trusted) for source in parts}


def measure_coherence(listed: Floats, correlations: Floats) -> float:
    r"""How coherent lists are, in standard deviations above chance.

    Seen classes that are listed together should have scores that rise and fall together. This is
    Mantel's statistic [1]_, :math:`\sum_{i \ne j} A_{ij} R_{ij}`, with the correlations R of the
    scores and A = w'w, where w are the weights of the seen classes in the lists of each new class.
    Its mean and variance over all permutations of the seen classes have a closed form. It is
    infinite where nothing can be told, as with fewer than four seen classes.

    Parameters
    ----------
    listed : ndarray of shape (new classes, seen classes)
        w.
    correlations : ndarray of shape (seen classes, seen classes)
        R.

    References
    ----------
    .. [1] N. Mantel, "The detection of disease clustering and a generalized regression approach",
       Cancer Research 27 (1967), 209-220.
    """
    n = len(correlations)
    if n < 4:
        return np.inf
    together = listed.T @ listed
    # Without their diagonals, and their means over pairs, both have the mean 0.
    others = ~np.eye(n, dtype=bool)
    A, R = (np.where(others, x - x[others].mean(), 0.0) for x in (together, correlations))
    pairs = n * (n - 1)
    a, r = (np.array([(x**2).sum(), (x.sum(axis=1) ** 2).sum()]) for x in (A, R))
    variance = 2 * a[0] * r[0] / pairs
    variance += 4 * (a[1] - a[0]) * (r[1] - r[0]) / (pairs * (n - 2))
    variance += (2 * a[0] - 4 * a[1]) * (2 * r[0] - 4 * r[1]) / (pairs * (n - 2) * (n - 3))
    scale = a[0] * r[0] / pairs
    if variance <= np.finfo(float).eps * max(scale, 1.0):
        return np.inf
    return float((A * R).sum() / np.sqrt(variance))


def weigh_sources(rankings: Rankings, weights: Mapping[str, float]) -> Rankings:
    """Multiply the weights of rankings by those of their sources.

    A source with the weight 0 only fills in: its rankings count for classes that no other ranks.
    """
    weighed = rankings.weights * [weights[source] for source in sources_of(rankings)]
    targets = rankings.targets.astype(str)
    is_lost = ~np.isin(targets, targets[weighed > 0])
    weighed = np.where(is_lost, rankings.weights, weighed)
    return replace(rankings, weights=weighed)[weighed > 0]


def require_source_weights(weights: Mapping[str, float], rankings: Rankings) -> dict[str, float]:
    """The weights of the sources of some rankings, 0 for those that are not named.

    At least one must be above 0.
    """
    if not isinstance(weights, Mapping):
        raise InputError("source_weights", weights, "must be a dict of sources and weights")
    for source, weight in weights.items():
        require_number(f"source_weights[{source!r}]", weight, least=0, below=np.inf)
    found = {source: float(weights.get(source, 0.0)) for source in source_names(rankings)}
    if not any(found.values()):
        wanted = next((source for source, weight in weights.items() if weight > 0), NO_VALUE)
        rule = "must name a source of the rankings with a weight above 0"
        hint = f"these are by {quote_names(source or 'no source' for source in found)}"
        raise InputError("source_weights", wanted, rule, hint=hint)
    return found
