"""Contracts for those who extend rankshot: what every head and every source must hold to.

The functions raise an ``AssertionError`` that names the contract. They use random numbers with a
fixed seed, and need no test framework.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rankshot.ranking.rankings import Rankings
from rankshot.sources.named_rankings import RankingSource
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.joint_head import load_head
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.scores import Scores

__all__ = ["check_head", "check_source"]
CLOSE = 1e-9
"""The largest difference of a probability that rounding may make."""


def check_head(head: Predictor, scores: Scores) -> None:
    """Check a fitted head: see the contracts below.

    - Probabilities are positive or zero, and add up to one.
    - ``classes_`` are sorted, and `predict` and ``top`` return the most probable of them.
    - The result of one input does not depend on the others.
    - Permuting the columns of named scores changes nothing.
    - A saved head gives the same probabilities after it is loaded.
    - A `LinearHead` whose classes have other names permutes its columns, and nothing else.

    Parameters
    ----------
    head : Predictor
        A fitted head, such as a `WeightedMean` or a `LinearHead`.
    scores : Scores
        Scores of a few inputs, with what the head needs besides.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.testing import check_head
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus"]], items=["bus", "leopard", "tiger"],
    ...     targets=["cat", "truck"])
    >>> scores = rs.Scores([[0.1, 3.0, 1.5], [4.0, 0.0, 1.0]], rankings.items)
    >>> check_head(rs.WeightedMean().fit(rankings), scores)
    """
    proba = np.asarray(head.predict_proba(scores), np.float64)
    names, labels = head.classes_, head.predict(scores)
    tolerance = CLOSE if scores.values.dtype == np.float64 else 1e-5
    _require(list(names) == sorted(names), "classes_ are sorted")
    _require(proba.shape == (len(scores), len(names)), "one column per class")
    _require(bool((proba >= 0).all()), "probabilities are not negative")
    _require(_is_close(proba.sum(axis=1), 1.0, 1e-5), "probabilities add up to one")
    own = proba[np.arange(len(scores)), np.searchsorted(names, labels)]
    _require(_is_close(own, proba.max(axis=1), 1e-5), "predict returns the most probable class")
    best = head.top(scores, 1).labels[:, 0]
    _require(best.tolist() == labels.tolist(), "top begins as predict")
    one_by_one = np.concatenate([head.predict_proba(scores[[i]]) for i in range(len(scores))])
    is_alone = _is_close(one_by_one, proba, tolerance)
    _require(is_alone, "the result of an input does not depend on other inputs")
    order = np.random.default_rng(0).permutation(len(scores.items))
    mixed = head.predict_proba(scores.select([scores.items[i] for i in order]))
    _require(_is_close(mixed, proba, tolerance), "columns are matched by their names")
    with TemporaryDirectory() as folder:
        head.save(Path(folder) / "head.rankshot")
        loaded = load_head(Path(folder) / "head.rankshot")
    _require(loaded.classes_.tolist() == names.tolist(), "a loaded head has the same classes")
    same = np.array_equal(loaded.predict_proba(scores), head.predict_proba(scores))
    _require(same, "a loaded head gives the same probabilities")
    if isinstance(head, LinearHead) and not head.evidence:
        turned = [f"class {len(names) - i:09}" for i in range(len(names))]
        by_name = np.argsort(turned)
        other = replace(
            head,
            classes=tuple(sorted(turned)),
            slopes=head.slopes[by_name],
            offsets=head.offsets[by_name],
            rank_slopes=head.rank_slopes[by_name],
        )
        permuted = _is_close(other.predict_proba(scores), proba[:, by_name], tolerance)
        _require(permuted, "permuting the classes permutes the columns")


def check_source(source: Any, targets: Sequence[str], items: Sequence[str]) -> None:
    """Check a source of rankings or similarities.

    - It has a method ``rankings`` or ``similarity``, called with targets and items.
    - The result is about these targets, and lists or compares exactly these items.
    - Each ranking names its source.
    - The order in which items and targets are passed does not matter.

    Parameters
    ----------
    source : object
        An object with a method ``rankings(targets, items)`` or ``similarity(targets, items)``.
    targets, items : sequence of str
        Names that the source knows.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.testing import check_source
    >>> check_source(rs.WordNet("wup"), ["cat", "truck"], ["bus", "fox", "leopard", "tram"])
    """
    names = tuple(targets), tuple(items)
    result = _ask(source, *names)
    _require({*result.targets} <= {*names[0]}, "the result is about the targets that were passed")
    _require({*result.items} == {*names[1]}, "the result has the items that were passed")
    other: Any = _ask(source, names[0][::-1], names[1][::-1])
    same_order = "the order of names does not matter"
    if isinstance(result, Rankings):
        _require(len(result) > 0, "there is a ranking")
        _require(all(result.sources), "each ranking names its source")
        again = other.change_items(result.items)
        _require(sorted(map(str, result.targets)) == sorted(map(str, again.targets)), same_order)
        return
    _require(bool(result.source), "the table names its source")
    values = other.select(result.targets, result.items).values
    _require(np.allclose(values, result.values, rtol=1e-9, equal_nan=True), same_order)


def _ask(source: Any, targets: tuple[str, ...], items: tuple[str, ...]) -> Rankings | Similarity:
    if isinstance(source, RankingSource):
        rankings: Rankings = source.rankings(targets, items)
        _require(isinstance(rankings, Rankings), "rankings() returns Rankings")
        return rankings
    _require(hasattr(source, "similarity"), "a source has a method rankings or similarity")
    table: Similarity = source.similarity(targets, items)
    _require(isinstance(table, Similarity), "similarity() returns a Similarity")
    return table


def _is_close(values: Any, expected: Any, tolerance: float) -> bool:
    return bool(np.allclose(np.asarray(values, np.float64), expected, rtol=0, atol=tolerance))


def _require(holds: bool, contract: str) -> None:  # noqa: FBT001 (a private check)
    if not holds:
        raise AssertionError(f"contract: {contract}")
