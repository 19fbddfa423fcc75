"""Association measures, from how often two names occur alone and together; hit counts.

The measures take arrays of counts that broadcast against one another: ``n_a`` units (windows,
documents, web pages) contain the first name, ``n_b`` the second, ``n_ab`` both, out of ``N``
units. A larger value means more similar. A name that never occurs is unknown, NaN. A pair that
never occurs together has the lowest possible value, so that all such pairs of a table are tied.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.tables import Rule, read_table
from rankshot.sources.similarity import Similarity, refuse_huge_table

Floats = NDArray[np.float64]
HIT_RULE = Rule("counts must be finite numbers, at least 0")


def dice(n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike) -> Floats:
    """Return Dice's coefficient 2 n_ab / (n_a + n_b), in [0, 1].

    It does not need N, so it suits search engines, whose size is unknown.

    Parameters
    ----------
    n_a, n_b, n_ab : array of int
        How many units, such as pages, contain the first name, the second, and both.

    Examples
    --------
    >>> from rankshot.sources import dice
    >>> dice([10, 10, 0], 30, [8, 0, 0])
    array([0.4, 0. , nan])
    """
    a, b, ab = _broadcast_counts(n_a, n_b, n_ab)
    share = np.full(a.shape, np.nan)
    np.divide(2 * ab, a + b, out=share, where=(a > 0) & (b > 0))
    return share


def pmi(n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike, N: ArrayLike) -> Floats:
    """Return pointwise mutual information, log(n_ab N / (n_a n_b)).

    For a pair that never occurs together the formula gives minus infinity, which cannot be
    averaged or stored in a table. Such a pair gets -log(2 N) instead. The lowest value of a pair
    that does occur together is -log N (both are in every unit, together in one), so -log(2 N) is
    below it, and the same for all pairs that never occur together.

    Parameters
    ----------
    n_a, n_b, n_ab, N : array of int
        How many units contain the first name, the second, and both; and the number of all units.

    Examples
    --------
    >>> from rankshot.sources import pmi
    >>> pmi(10, [20, 20, 0], [2, 0, 0], 100).round(3)
    array([ 0.   , -5.298,    nan])
    """
    a, b, ab, n = _broadcast_counts(n_a, n_b, n_ab, N)
    occurs = (a > 0) & (b > 0)
    met = occurs & (ab > 0)
    # Sums of logarithms, because products of counts of web pages can overflow.
    together = _log(ab, met) + _log(n, met) - _log(a, met) - _log(b, met)
    return np.where(occurs, np.where(met, together, -_log(2 * n, occurs)), np.nan)


def ppmi(n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike, N: ArrayLike) -> Floats:
    """Return positive pointwise mutual information, max(0, `pmi`).

    To show that two names occur together less often than by chance takes far more text than to
    show that they do so more often. So negative values, which are mostly noise, become zero.

    Parameters
    ----------
    n_a, n_b, n_ab, N : array of int
        As for `pmi`.

    Examples
    --------
    >>> from rankshot.sources import ppmi
    >>> ppmi(10, [20, 20, 20], [4, 1, 0], 100).round(3)
    array([0.693, 0.   , 0.   ])
    """
    return np.maximum(pmi(n_a, n_b, n_ab, N), 0)


def _broadcast_counts(*counts: ArrayLike) -> tuple[Floats, ...]:
    return np.broadcast_arrays(*(np.asarray(count, dtype=np.float64) for count in counts))


def _log(values: Floats, where: NDArray[np.bool_]) -> Floats:
    return np.log(values, out=np.zeros(values.shape), where=where)


def read_hit_counts(path: str | Path) -> Similarity:
    r"""Read hit counts from CSV or Parquet as a similarity table, by Dice's coefficient.

    Impossible counts, such as more hits together than alone, raise an error that names the line.

    Parameters
    ----------
    path : str or Path
        Has the columns ``target``, ``item``, ``n_target``, ``n_item`` and ``n_both``, in any order;
        other columns are ignored. Every row holds one pair. A pair that is not in the file is
        unknown. The file's name becomes the source.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot.sources import read_hit_counts
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flickr.csv"
    ...     lines = ["target,item,n_target,n_item,n_both",
    ...              "cat,tiger,1000,400,140", "cat,bus,1000,3000,20"]
    ...     _ = path.write_text("\n".join(lines))
    ...     read_hit_counts(path).to_rankings()
    Rankings: 1 ranking of 2 items, 1 target, 1 source
      cat: tiger > bus
    """
    path = Path(path)
    columns = ["target", "item"], ["n_target", "n_item", "n_both"]
    table = read_table(path, *columns, rule=HIT_RULE, strip=True)
    alone: tuple[dict[str, float], dict[str, float]] = {}, {}
    both: dict[tuple[str, str], float] = {}
    pairs = zip(table.require_text(0), table.require_text(1), strict=True)
    for row, (pair, counts) in enumerate(zip(pairs, table.numbers.tolist(), strict=True)):
        if pair in both:
            problem = f"the pair {pair[0]!r} and {pair[1]!r} occurs twice"
        else:
            problem = _find_problem(pair, counts, alone)
        if problem:
            raise RankshotError(f"{table.where(row)}: {problem}")
        both[pair] = counts[2]
    targets, items = alone
    refuse_huge_table(path, len(targets), len(items))
    row_of, column_of = ({name: i for i, name in enumerate(names)} for names in alone)
    n_ab = np.full((len(targets), len(items)), np.nan)
    for (target, item), count in both.items():
        n_ab[row_of[target], column_of[item]] = count
    n_a, n_b = np.array([*targets.values()])[:, None], np.array([*items.values()])
    return Similarity(dice(n_a, n_b, n_ab), targets, items, path.stem)


def _find_problem(
    pair: tuple[str, str], counts: list[float], alone: Sequence[dict[str, float]]
) -> str:
    """Return what is wrong with the counts of a pair; add those of its names to ``alone``."""
    *single, together = counts
    if min(counts) < 0:
        return f"{min(counts):.16g} is negative; {HIT_RULE.text}"
    for name, count, known in zip(pair, single, alone, strict=True):
        before = known.setdefault(name, count)
        if together > count:
            return f"{count:.16g} hits of {name!r}, but {together:.16g} with the other name"
        if before != count:
            return f"{count:.16g} hits of {name!r}, but {before:.16g} in an earlier row"
    return ""
