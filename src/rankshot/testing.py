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
from rankshot.zeroshot.knowledge import load_head
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
    names = head.classes_
    _require(list(names) == sorted(names), "classes_ are sorted")
    _require(proba.shape == (len(scores), len(names)), "one column per class")
    _require(bool((proba >= 0).all()), "probabilities are not negative")
    _require(_is_close(proba.sum(axis=1), 1.0, 1e-5), "probabilities add up to one")
    rows = np.arange(len(scores))
    own = proba[rows, np.searchsorted(names, head.predict(scores))]
    _require(_is_close(own, proba.max(axis=1), 1e-5), "predict returns the most probable class")
    best = head.top(scores, 1)
    _require(best.labels[:, 0].tolist() == head.predict(scores).tolist(), "top begins as predict")
    tolerance = CLOSE if scores.values.dtype == np.float64 else 1e-5
    one_by_one = [head.predict_proba(scores[[row]]) for row in range(len(scores))]
    _require(
        _is_close(np.concatenate(one_by_one), proba, tolerance),
        "the result of an input does not depend on other inputs",
    )
    order = np.random.default_rng(0).permutation(len(scores.items))
    mixed = scores.select([scores.items[i] for i in order])
    _require(
        _is_close(head.predict_proba(mixed), proba, tolerance), "columns are matched by their names"
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "head.rankshot"
        head.save(path)
        loaded = load_head(path)
    _require(loaded.classes_.tolist() == names.tolist(), "a loaded head has the same classes")
    _require(
        np.array_equal(loaded.predict_proba(scores), head.predict_proba(scores)),
        "a loaded head gives the same probabilities",
    )
    if isinstance(head, LinearHead) and not head.evidence:
        turned = [f"class {len(names) - i:09}" for i in range(len(names))]
        by_name = np.argsort(turned)
        ranks = head.rank_slopes[by_name] if head.rank_slopes.size else None
        other = replace(
            head,
            classes=tuple(sorted(turned)),
            slopes=head.slopes[by_name],
            offsets=head.offsets[by_name],
            rank_slopes=ranks,
        )
        _require(
            _is_close(other.predict_proba(scores), proba[:, by_name], tolerance),
            "permuting the classes permutes the columns",
        )


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
    if isinstance(result, Rankings):
        _require(len(result) > 0, "there is a ranking")
        _require(all(result.sources), "each ranking names its source")
        pairs = [
            sorted(zip(map(str, each.targets), map(repr, each.orders()), strict=True))
            for each in (result, other.change_items(result.items))
        ]
        _require(
            [target for target, _ in pairs[0]] == [target for target, _ in pairs[1]],
            "the order of names does not matter",
        )
        return
    _require(bool(result.source), "the table names its source")
    again = other.select(result.targets, result.items).values
    _require(
        np.allclose(again, result.values, rtol=1e-9, equal_nan=True),
        "the order of names does not matter",
    )


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
