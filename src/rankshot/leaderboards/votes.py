"""Votes or rankings with all that a board needs: raters, clusters, weights and covariates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankshot.core.columns import Table, is_records, open_table
from rankshot.core.errors import InputError, format_count, quote_names
from rankshot.core.tables import as_frame
from rankshot.leaderboards.judgements import unfold_judgements
from rankshot.ranking.checks import are_votes
from rankshot.ranking.column_meanings import Reading
from rankshot.ranking.construction import Labels, distinct_values, require_one_each
from rankshot.ranking.ranking_files import (
    COLUMN_ARGUMENTS,
    SHARED_ARGUMENTS,
    TABLE_ARGUMENTS,
    VOTE_ARGUMENTS,
    has_rankings,
    read_missing,
    read_with_layout,
    require_arguments,
    split_names,
)
from rankshot.ranking.rankings import Rankings, require_rankings
from rankshot.ranking.votes import TableOfVotes, is_votes, read_votes as read_table

Floats = NDArray[np.float64]
POSITION = "position"
"""The covariate 1 of every vote: what it is worth to be the first of the two."""


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """Votes between two items, or other rankings, with what may explain them.

    Attributes
    ----------
    rankings : Rankings
        One for each vote, the winner first, with weights and raters; their targets are the
        categories.
    covariates : ndarray of shape (votes, covariates)
        Those of the winner minus those of the loser; in a tie, of the first item in the ranking.
    names : tuple of str
        The names of the covariates.
    clusters : ndarray of str or None, optional
        A second reason why votes may be alike, such as the prompt.
    reading : Reading, optional
        Which columns of a table were used.

    Examples
    --------
    >>> from rankshot.leaderboards import read_votes
    >>> read_votes({"model_a": ["x"], "model_b": ["y"], "winner": ["x"], "turn": [1]})
    Votes: 1 vote between 2 items
      columns used: model_a (item), model_b (item), winner (winner); not used: turn
    """

    rankings: Rankings
    covariates: Floats = field(default_factory=lambda: np.empty((0, 0)))
    names: tuple[str, ...] = ()
    clusters: NDArray[np.object_] | None = None
    reading: Reading | None = None

    def __len__(self) -> int:
        return len(self.rankings)

    def __repr__(self) -> str:
        counted = "vote" if self.are_pairs else "ranking"
        between = "between" if self.are_pairs else "of"
        items = format_count(self.rankings.n_items, "item")
        lines = [f"Votes: {format_count(len(self), counted)} {between} {items}"]
        return "\n".join([*lines, *([f"  {self.reading}"] if self.reading else [])])

    @property
    def are_pairs(self) -> bool:
        """Whether all of them compare two items."""
        return are_votes(self.rankings)

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories that occur, sorted."""
        return distinct_values(self.rankings.targets)

    def select(self, rows: NDArray[Any]) -> Votes:
        """Keep some of the votes.

        Parameters
        ----------
        rows : ndarray of bool or int
        """
        clusters = None if self.clusters is None else self.clusters[rows]
        return replace(
            self,
            rankings=self.rankings[rows],
            covariates=self.covariates[rows] if self.names else self.covariates,
            clusters=clusters,
        )

    def of_category(self, name: str) -> Votes:
        """Keep the votes of a category, over the items that these compare.

        Parameters
        ----------
        name : str
        """
        part = self.select(self.rankings.targets == name)
        if not part.rankings.is_subset.all():
            return part
        listed = np.unique(part.rankings.codes)
        items = tuple(part.rankings.items[i] for i in listed)
        return replace(part, rankings=part.rankings.change_items(items))


def read_votes(
    votes: object,
    *,
    items: Iterable[object] | None = None,
    covariates: str | Iterable[str] = (),
    cluster: Labels = None,
    outcomes: Literal["name", "side", "index", "score"] | None = None,
    ignore: str | Iterable[str] | None = None,
    missing: str | Iterable[str] | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    columns: Mapping[str, str] | None = None,
    **named: str | None,
) -> Votes:
    r"""Read a table of votes between two items, or of ballots, or a file of rankings.

    A row names two items and who won, or the winner and the loser (a column such as ``tie`` or
    ``is_draw`` marks ties). The winner is given by the name of its column, by its own name, as
    ``a``/``b``, ``left``/``right`` or ``first``/``second``; a tie as ``tie``, ``draw``,
    ``both_bad`` and the like. Case, blanks and punctuation in column names are ignored:
    ``Model A`` is ``model_a``. Blanks around names are ignored. Judgements of MT-bench and
    Arena-Hard are read as they are published.

    A column that says who voted (``rater``, ``judge_model``, ``evaluation_session_id``) or which
    prompt a vote is about (``question_id``) is used; `Votes` names what was used and what was not.
    If there is a doubt, an `InputError` names the argument for each meaning.

    Parameters
    ----------
    votes : Rankings, data frame, datasets.Dataset, str, Path, list of dict or dict of lists
        A .csv, .tsv, .json, .jsonl (each also with .gz) or .parquet file; a pandas, polars or other
        data frame; records; or rankings.
    items : iterable of names, optional
        All items, in the desired order. By default those that occur, sorted.
    covariates : iterable of str
        Columns of numbers that may affect who wins: ``length`` is the column of this name (of the
        first item minus that of the second), or ``length_a`` minus ``length_b``; ``position`` is
        the advantage of being listed first.
    cluster : str or sequence, optional
        The column of prompts, or of another reason besides the rater why votes may be alike; or one
        label per ranking.
    outcomes : {"name", "side", "index", "score"}, optional
        How the winner is encoded, if this is ambiguous: by the name of an item; by the side
        (``a`` or ``left``); by the index of the item that won (0 and 1, or 1 and 2); or by the
        score of the first item (1 if it won). Needed for 0 and 1, for True and False, and for items
        called ``a`` and ``b``.
    ignore, missing, on_error, columns
        As for `read_rankings`.
    **named : str
        The columns of some roles, if they do not have the usual names: ``a`` and ``b`` (the two
        items), ``winner``, ``loser``, ``tie``, ``rater``, ``category``, ``weight`` (only ratios
        matter), ``count`` (how often a vote was given), ``id`` (copies of a vote are warned of);
        and those of ballots.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot.leaderboards import read_votes
    >>> _ = Path("votes.csv").write_text("a,b,winner\nant,bee,b\nbee,cat,tie\n")
    >>> read_votes("votes.csv").rankings
    Rankings: 2 rankings of 3 items
      bee > ant (subset)
      bee = cat (subset)
    """
    names = (covariates,) if isinstance(covariates, str) else tuple(covariates)
    named = {role: name for role, name in named.items() if name is not None}
    require_arguments({**named, **(columns or {})}, TABLE_ARGUMENTS | COLUMN_ARGUMENTS)
    if isinstance(votes, Votes):
        return votes
    if not _is_table(votes):
        return _of_rankings(votes, names, cluster, {**named, **(columns or {})})
    rows = unfold_judgements(votes)
    has_scores, votes = rows is not votes and "score" in rows[0], rows
    more: dict[str, Any] = {"ignore": ignore, "missing": missing, "on_error": on_error}
    more |= {"columns": columns, **named}
    more.pop("layout", None)
    layout = named.pop("layout", None)
    wanted = {*named, *(columns or {})} & VOTE_ARGUMENTS or outcomes or names
    is_file = isinstance(votes, (str, Path)) and has_rankings(Path(votes))
    table = None if is_file else open_table(votes, read_missing(missing), on_error)
    is_known = bool(wanted or layout)
    are_others = table is not None and not (is_known or is_votes(table))
    if table is None or are_others or layout not in {None, "votes"}:
        rankings, reading = read_with_layout(votes, items, layout=layout, **more)
        if names or isinstance(cluster, str):
            what = ("covariates", names) if names else ("cluster", cluster)
            raise InputError(*what, "must be of a table of votes between two items")
        if has_scores:
            cluster = rankings.targets.tolist()
            rankings = replace(rankings, targets=np.full(len(rankings), None, object))
        return replace(_of_rankings(rankings, (), cluster, {}), reading=reading)
    if other := {*named} - VOTE_ARGUMENTS - SHARED_ARGUMENTS:
        raise InputError(min(other), named[min(other)], "applies to ballots, but these are votes")
    pair_of = {name: _find_covariate(table, name) for name in names}
    prompt = cluster if isinstance(cluster, str) else cluster is None
    found = read_table(
        table,
        items,
        outcomes=outcomes,
        columns={**(columns or {}), **named},
        ignore=[*(split_names(ignore) or ()), *(x for pair in pair_of.values() for x in pair)],
        cluster=prompt,
        is_complete=columns is not None,
    )
    X = _read_covariates(table, pair_of, found)
    labels = found.cluster
    if cluster is not None and not isinstance(cluster, str):
        labels = np.array(require_one_each(cluster, len(found.rankings), "cluster"), object)
    reading = found.reading
    used = reading.used | {x: f"covariate {name}" for name, pair in pair_of.items() for x in pair}
    unused = tuple(name for name in reading.unused if name not in used)
    return Votes(found.rankings, X, names, labels, Reading("votes", used, unused))


def _is_table(votes: object) -> bool:
    if (
        isinstance(votes, dict)
        and votes
        and all(hasattr(x, "column_names") for x in votes.values())
    ):
        raise InputError("votes", ", ".join(map(str, votes)), "names splits: choose one of them")
    return isinstance(votes, (str, Path)) or is_records(votes) or as_frame(votes) is not None


def _of_rankings(
    votes: object, names: tuple[str, ...], cluster: Labels, named: Mapping[str, object]
) -> Votes:
    """Return rankings as votes."""
    if not isinstance(votes, Rankings):
        raise InputError(
            "votes", votes, "must be a table, a data frame, the path of a file, or Rankings"
        )
    rankings = require_rankings(votes)
    odd: dict[str, object] = {**named}
    odd |= {"covariates": names} if names else {}
    odd |= {"cluster": cluster} if isinstance(cluster, str) else {}
    if odd:
        name = next(iter(odd))
        raise InputError(name, odd[name], "names a column of a table, not of Rankings")
    labels = None
    if cluster is not None:
        labels = np.array(require_one_each(cluster, len(rankings), "cluster"), object)
    return Votes(rankings, clusters=labels)


# ---- Covariates


def _find_covariate(table: Table, name: str) -> list[str]:
    """Return the columns of a covariate: its own, that of each item, or none for the position."""
    pair = [f"{name}_a", f"{name}_b"]
    if name in table.columns:
        return [name]
    if {*pair} <= {*table.columns}:
        return pair
    if name == POSITION:
        return []
    raise InputError(
        "covariates", name, f"is no column, nor are {quote_names(pair)}", where=str(table),
        hint=f"the columns are {quote_names(table.columns)}",
    )  # fmt: skip


def _read_covariates(table: Table, pair_of: Mapping[str, list[str]], found: TableOfVotes) -> Floats:
    """Return one column per covariate, those of the winner minus those of the loser."""
    X = np.ones((len(found.rankings), len(pair_of)))
    for k, pair in enumerate(pair_of.values()):
        if pair:
            numbers = table.read_numbers(pair)[found.rows]
            X[:, k] = numbers[:, 0] - (numbers[:, 1] if len(pair) > 1 else 0.0)
    # The winner comes first in rankings.
    turned = np.where(found.rankings.codes[::2] == found.first, 1.0, -1.0)
    return np.asarray(turned[:, None] * X)
