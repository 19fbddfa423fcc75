"""The answers of a survey as a rankings file, ready to merge and to fit."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.files import replace_file, require_ending
from rankshot.ranking.ranking_files import JSONL_ENDINGS
from rankshot.survey.answers import Answer, is_counted
from rankshot.survey.quality import Flag
from rankshot.survey.study import Study

SOURCE = "survey"


@dataclass(frozen=True)
class Export:
    """The lines of a rankings file, and counts of what is not in it.

    Attributes
    ----------
    lines : tuple of str
        JSON, one ranking per line.
    n_answers : int
        The number of rankings.
    n_excluded, n_raters_excluded : int
        How many answers of how many flagged participants were left out.
    n_skips, n_repeats, n_gold : int
        Answers that are never exported: skips, repeated answers, and answers to gold questions.
        A skipped repeat or gold question counts as a skip.

    Examples
    --------
    >>> from rankshot.survey import Answer, Question, Study, export_lines
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> said = Answer("a1", cat, 1, False, cat.items, ("leopard",), 7.25, 0.0)
    >>> found = export_lines(study, [said], {})
    >>> found.n_answers, found.n_skips, found.n_gold
    (1, 0, 0)
    """

    lines: tuple[str, ...]
    n_answers: int
    n_excluded: int
    n_raters_excluded: int
    n_skips: int
    n_repeats: int
    n_gold: int


def export_lines(
    study: Study,
    answers: Sequence[Answer],
    flags: Mapping[str, Sequence[Flag]],
    *,
    exclude_flagged: bool = False,
) -> Export:
    """Return the answers as lines of a rankings file.

    A ranking is a top-K list of all the study's items if the question showed all of them, or if
    the items that were not shown come after those that were (``study.unshown`` is "after").
    Otherwise it is a ranking of the subset shown, with the unranked items tied at its end, and
    ``k`` is the number of ranked items, if not all are. This is also the case for a target whose
    questions, current or earlier, show different items: an item that only another question shows
    need not come after. Each line also has the items in the order of the screen, the seconds that
    the answer took (null if unknown), and the names of the participant's flags, if any.

    Parameters
    ----------
    study : Study
    answers : sequence of Answer
        All answers.
    flags : mapping
        The flags of each participant; see `find_flags`.
    exclude_flagged : bool
        Leave out the answers of participants with a flag.

    Raises
    ------
    RankshotError
        If no answer is left to export, or if one ranks an item that the study no longer names.

    Examples
    --------
    >>> from rankshot.survey import Answer, Question, Study, export_lines
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Animals", "Like {target}?", "Yes?", (*cat.items, "cup"), "unknown", (cat,))
    >>> said = Answer("a1", cat, 1, False, ("fox", "bus", "leopard"), ("leopard",), 7.25, 0.0)
    >>> export_lines(study, [said], {}).lines[0]
    '{"target": "cat", "ranking": ["leopard", ["bus", "fox"]], "source": "survey", "rater": "a1",
    "kind": "subset", "k": 1, "shown": ["fox", "bus", "leopard"], "seconds": 7.2}'
    """
    given = [answer for answer in answers if answer.order]
    counted = [answer for answer in given if is_counted(answer)]
    kept = [a for a in counted if not (exclude_flagged and flags.get(a.rater))]
    if not kept:
        raise RankshotError(_explain_empty_export(study, len(answers), len(counted)))
    _check_items(study, kept)
    n_gold = sum(answer.question.is_gold for answer in given)
    n_excluded, n_raters = count_left_out(answers, flags) if exclude_flagged else (0, 0)
    # Of all answers: leaving out flagged participants does not change what an answer means.
    several = _targets_with_several_sets(study, counted)
    return Export(
        lines=tuple(_format_line(study, a, flags.get(a.rater, ()), several) for a in kept),
        n_answers=len(kept),
        n_excluded=n_excluded,
        n_raters_excluded=n_raters,
        n_skips=len(answers) - len(given),
        n_repeats=len(given) - len(counted) - n_gold,
        n_gold=n_gold,
    )


def count_left_out(
    answers: Iterable[Answer], flags: Mapping[str, Sequence[Flag]]
) -> tuple[int, int]:
    """Return how many answers a file without flagged participants leaves out, and of how many.

    Flagged participants who skipped everything have no answers that could be left out.
    """
    raters = [answer.rater for answer in answers if flags.get(answer.rater) and is_counted(answer)]
    return len(raters), len(set(raters))


def write_export(
    path: str | Path,
    study: Study,
    answers: Sequence[Answer],
    flags: Mapping[str, Sequence[Flag]],
    *,
    exclude_flagged: bool = False,
) -> Export:
    """Write the answers as a rankings file (.jsonl), whole or not at all; see `export_lines`.

    `rankshot.read_rankings` reads it, with ``items=study.items``.

    Parameters
    ----------
    path : str or Path
        The file to write.
    study : Study
    answers : sequence of Answer
    flags : mapping of str to sequence of Flag
        The flags of the raters, from `find_flags`.
    exclude_flagged : bool
        Whether answers of flagged participants are left out.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import rankshot as rs
    >>> from rankshot.survey import Answer, Question, Study, write_export
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> said = Answer("a1", cat, 1, False, cat.items, ("leopard", "fox", "bus"), 7.25, 0.0)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "rankings.jsonl")
    ...     export = write_export(path, study, [said], {})
    ...     rs.read_rankings(path, items=study.items)
    Rankings: 1 ranking of 3 items, 1 target, 1 source, 1 rater
      cat: leopard > fox > bus
    """
    path = Path(path)
    require_ending(path, JSONL_ENDINGS)
    export = export_lines(study, answers, flags, exclude_flagged=exclude_flagged)
    with replace_file(path) as stream:
        stream.writelines(f"{line}\n" for line in export.lines)
    return export


def rank_shown_items(answer: Answer) -> list[str | list[str]]:
    """Return the order of an answer, with the shown but unranked items tied at its end.

    Examples
    --------
    >>> from rankshot.survey import Question
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> rank_shown_items(Answer("a1", cat, 1, False, cat.items, ("leopard",), 7.25, 0.0))
    ['leopard', ['bus', 'fox']]
    """
    left = sorted(set(answer.shown) - set(answer.order))
    tie: list[str | list[str]] = [left] if len(left) > 1 else [*left]
    return [*answer.order, *tie]


def _targets_with_several_sets(study: Study, answers: Iterable[Answer]) -> set[str]:
    """Return the targets whose questions, asked or answered, do not all show the same items."""
    sets: dict[str, set[frozenset[str]]] = defaultdict(set)
    for question in (*study.questions, *(answer.question for answer in answers)):
        sets[question.target].add(frozenset(question.items))
    return {target for target, shown_sets in sets.items() if len(shown_sets) > 1}


def _format_line(study: Study, answer: Answer, flags: Sequence[Flag], several: set[str]) -> str:
    target = answer.question.target
    after = study.unshown == "after" and target not in several
    is_top = after or set(answer.shown) >= set(study.items)
    record: dict[str, Any] = {
        "target": target,
        "ranking": answer.order if is_top else rank_shown_items(answer),
        "source": SOURCE,
        "rater": answer.rater,
    }
    if not is_top:
        record["kind"] = "subset"
        if len(answer.order) < len(answer.shown):
            record["k"] = len(answer.order)
    seconds = None if answer.seconds is None else round(answer.seconds, 1)
    record |= {"shown": answer.shown, "seconds": seconds}
    if flags:
        record["flags"] = [flag.name for flag in flags]
    return json.dumps(record, ensure_ascii=False)


def _explain_empty_export(study: Study, n_given: int, n_counted: int) -> str:
    if n_counted:
        return (
            f"{study.title}: all {n_counted} answers are from flagged participants, and these "
            "are excluded"
        )
    others = f", only {n_given} skips, repeats or gold answers" if n_given else ""
    return f"{study.title}: there are no answers to export yet{others}"


def _check_items(study: Study, answers: Sequence[Answer]) -> None:
    """Refuse answers that show items which the study no longer has."""
    known = set(study.items)
    for answer in answers:
        for name in answer.shown:
            if name not in known:
                raise RankshotError(
                    f"an answer to {short_repr(answer.question.target)} ranks {short_repr(name)}, "
                    "which is no longer among the study's [items] names"
                    f"{suggest_name(name, study.items)}: add it again"
                )
