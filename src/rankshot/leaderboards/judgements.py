"""Judgements of language models as MT-bench and Arena-Hard publish them, as rows of a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rankshot.core.files import open_bytes

NESTED = re.compile(rb'"games"|"g1_winner"|"judge":\s*\[')
NESTED_COLUMNS = ({"games"}, {"g1_winner"}, {"judge", "score", "question_id"})
HEAD = 1 << 16
"""The bytes of a JSON file that show whether it has judgements."""
NO_SCORE = -1
"""What MT-bench writes for an answer without a score."""


def unfold_judgements(votes: Any) -> Any:
    """Return a table of votes or scores, if these are judgements; otherwise what was given.

    The two games of a question have their answers in both orders: they are two votes on one prompt.

    Examples
    --------
    >>> unfold_judgements([{"model": "x", "question_id": 1, "judge": "j",
    ...     "games": [{"score": "A>>B"}, {"score": None}]}])
    [{'model_a': 'baseline', 'model_b': 'x', 'winner': 'A>>B', 'question_id': 1, 'judge': 'j'}]
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
