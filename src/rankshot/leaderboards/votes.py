"""Votes or rankings with all that a board needs: raters, clusters, weights and covariates.

Judgements of language models are read as MT-bench and Arena-Hard publish them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rankshot.core.errors import InputError
from rankshot.core.files import open_bytes
from rankshot.ranking.construction import Labels, require_one_each
from rankshot.ranking.ranking_files import TABLE_ARGUMENTS, read_source, require_arguments
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.votes import Votes

__all__ = ["Votes", "read_votes"]

NESTED = re.compile(rb'"games"|"g1_winner"|"judge":\s*\[')
NESTED_COLUMNS = ({"games"}, {"g1_winner"}, {"judge", "score", "question_id"})
HEAD = 1 << 16
"""The bytes of a JSON file that show whether it has judgements."""
NO_SCORE = -1
"""What MT-bench writes for an answer without a score."""


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
    others: dict[str, Any] = {role: name for role, name in named.items() if name is not None}
    if isinstance(votes, Votes):
        return votes
    if isinstance(votes, Rankings):
        more: dict[str, Any] = {**others, **(columns or {})}
        more |= {"covariates": names} if names else {}
        more |= {"cluster": cluster} if isinstance(cluster, str) else {}
        require_arguments(more, TABLE_ARGUMENTS | {"covariates", "cluster"})
        for name, value in more.items():
            raise InputError(name, value, "names a column of a table, not of Rankings")
        found = Votes(votes)
    else:
        if isinstance(votes, dict) and any(hasattr(x, "column_names") for x in votes.values()):
            names_of_splits = ", ".join(map(str, votes))
            raise InputError("votes", names_of_splits, "names splits: choose one of them")
        table = _unfold_judgements(votes)
        found = read_source(
            table,
            items,
            ignore=ignore,
            missing=missing,
            on_error=on_error,
            columns=columns,
            covariates=names,
            cluster=cluster if isinstance(cluster, str) else cluster is None,
            outcomes=outcomes,
            **others,
        )
        if table is not votes and "score" in table[0]:
            # Scores are compared within a question.
            scored, nobody = found.rankings, np.full(len(found), None, object)
            rankings = replace(scored, targets=nobody)
            found = replace(found, rankings=rankings, clusters=scored.targets)
    if cluster is None or isinstance(cluster, str):
        return found
    labels = require_one_each(cluster, len(found), "cluster")
    return replace(found, clusters=np.array(labels, object))


# ---- Judgements of language models


def _unfold_judgements(votes: Any) -> Any:
    """Return a table of votes or scores, if these are judgements; otherwise what was given.

    The two games of a question have their answers in both orders: they are two votes on one prompt.
    """
    is_file = isinstance(votes, (str, Path)) and "json" in Path(votes).name
    records = _read_records(Path(votes)) if is_file else votes
    if any(names <= {*getattr(votes, "column_names", ())} for names in NESTED_COLUMNS):
        records = votes.to_list() if hasattr(votes, "features") else votes
    if not isinstance(records, list) or not records or not isinstance(records[0], Mapping):
        return votes
    first = records[0]
    if isinstance(first.get("games"), list):
        return [vote for record in records for vote in _unfold_games(record)]
    if "g1_winner" in first:
        return [vote for record in records for vote in _unfold_pair(record)]
    if {"question_id", "model", "score"} <= {*first} and isinstance(first.get("judge"), list):
        return [_describe_score(record) for record in records if record["score"] != NO_SCORE]
    return votes


def _read_records(path: Path) -> Any:
    """Return the records of a JSON file, or of JSON lines; None if they are not nested."""
    with open_bytes(path) as stream:
        head = stream.read(HEAD)
        if not NESTED.search(head):
            return None
        text = (head + stream.read()).decode("utf-8-sig")
    with suppress(ValueError):
        if text.lstrip().startswith("["):
            return json.loads(text)
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return None


def _describe_score(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a score: the models of one question and turn are compared."""
    question = f"question {record['question_id']}, turn {record.get('turn', 1)}"
    judge, *_ = record["judge"]
    return {"model": record["model"], "score": record["score"], "judge": judge, "target": question}


def _describe_vote(record: Mapping[str, Any], **cells: object) -> dict[str, Any]:
    """Return the row of a vote, with its judge and prompt."""
    judge = record.get("judge")
    return {
        **cells, "question_id": record.get("question_id", record.get("uid")),
        "judge": judge[0] if isinstance(judge, list) else judge,
    }  # fmt: skip


def _unfold_pair(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the two games of a pair of MT-bench; games without a verdict are left out."""
    sides = {name: record[name] for name in ("model_1", "model_2")}
    for winner in (record["g1_winner"], record["g2_winner"]):
        if winner in {*sides, "tie"}:
            yield _describe_vote(record, **sides, winner=winner)


def _unfold_games(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the two games of a question of Arena-Hard: the baseline comes first, then last.

    A clear win (A>>B) is a win like others, and games without a verdict are left out.
    """
    sides = (record.get("baseline", "baseline"), record["model"])
    for game, (first, second) in zip(record["games"], (sides, sides[::-1]), strict=False):
        score = (game or {}).get("score")
        verdict = score.get("score") if isinstance(score, Mapping) else score
        if isinstance(verdict, str) and verdict.replace(">>", ">") in {"A>B", "B>A", "A=B"}:
            yield _describe_vote(record, model_a=first, model_b=second, winner=verdict)
