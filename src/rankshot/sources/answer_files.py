"""Files of answers that were copied from a chat window: each is one rater."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankshot.core.errors import RankshotError, format_count
from rankshot.core.validation import as_names, require_whole_number
from rankshot.ranking.rankings import Rankings
from rankshot.sources.answers import LONGEST_ANSWER, Answers, read_answers
from rankshot.sources.questions import PROMPT_END, choose_length

ENDINGS = (".txt", ".md", ".json", ".jsonl")
"""The files that are read in a folder; a file that is given by name may have any ending."""
NUMBERED = re.compile(r"\.(again|part)-(\d{1,6})(?=\.|$)")
"""The end of a name such as rater-1.again-1.part-2: a rater has several files."""
FAULTS_SHOWN = 3


@dataclass(frozen=True)
class AnswerFiles:
    """The answers of several raters.

    Attributes
    ----------
    rankings : Rankings
        All usable lists. Their source is ``answers``, their raters are the names of the files.
    answers : dict of str to Answers
        The answers of each rater, with notes on what was left out.
    follow_ups : dict of str to tuple of targets
        The targets to ask again for, by the name for the next prompt of the rater, without ending.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.sources import read_answer_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rater-1.txt")
    ...     _ = path.write_text("cat: tiger, whale, bus")
    ...     found = read_answer_files([path], ["cat", "truck"], ["tiger", "bus", "whale"])
    >>> found.rankings.orders(), found.follow_ups
    ([['tiger', 'whale', 'bus']], {'rater-1.again-1': ('truck',)})
    """

    rankings: Rankings
    answers: dict[str, Answers]
    follow_ups: dict[str, tuple[str, ...]]


def read_answer_files(
    paths: Iterable[str | Path],
    targets: Iterable[Any],
    items: Iterable[Any],
    k: int | None = None,
) -> AnswerFiles:
    """Read what language models answered to the prompts of `make_prompts`.

    Parameters
    ----------
    paths : iterable of paths
        Files of text, or folders of them. A file is a rater; ``rater-1.part-2.txt`` and
        ``rater-1.again-1.txt`` belong to the rater of ``rater-1.txt``.
    targets, items : iterables of names
        The names that were asked about, and those that were to be ranked.
    k : int, optional
        The length of the lists that was asked for: 15, or all items if there are fewer.

    Raises
    ------
    RankshotError
        If a file is empty, or the files of a rater have no usable list. It names the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.sources import read_answer_files
    >>> path = Path(tempfile.mkdtemp()) / "rater-1.txt"
    >>> path.write_text("cat: tiger, whale, bus")
    22
    >>> found = read_answer_files([path], ["cat", "truck"], ["tiger", "bus", "whale"])
    >>> found.rankings
    Rankings: 1 ranking of 3 items, 1 target, 1 source, 1 rater
      cat: tiger > whale > bus
    >>> found.follow_ups
    {'rater-1.again-1': ('truck',)}
    """
    target_names, item_names = as_names(targets, "targets"), as_names(items)
    length = choose_length(None if k is None else require_whole_number("k", k), item_names)
    files = _group_by_rater(_list_files([Path(path) for path in paths]))
    answers: dict[str, Answers] = {}
    for rater, names in files.items():
        text = "\n\n".join(_read_answer(path) for path in names)
        answers[rater] = read_answers(text, target_names, item_names, length)
        if not answers[rater].orders:
            raise RankshotError(_describe_failure(names, answers[rater]))
    chosen = [(rater, target) for rater in answers for target in answers[rater].orders]
    rankings = Rankings.from_orders(
        [answers[rater].orders[target] for rater, target in chosen],
        items=item_names,
        targets=[target for _, target in chosen],
        sources="answers",
        raters=[rater for rater, _ in chosen],
    )
    # The number of files gives each follow-up a name that no answer has yet.
    follow_ups = {
        f"{rater}.again-{len(names)}": answers[rater].unanswered for rater, names in files.items()
    }
    return AnswerFiles(rankings, answers, {name: left for name, left in follow_ups.items() if left})


def _list_files(paths: list[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        found = sorted(
            file
            for file in path.iterdir()
            if file.suffix.lower() in ENDINGS and not file.name.startswith(".")
        )
        if not found:
            raise RankshotError(
                f"{path}: no answers in this folder; save each answer there as a text file "
                f"({', '.join(ENDINGS)})"
            )
        files += found
    if not files:
        raise RankshotError("no files of answers are given")
    return files


def _group_by_rater(files: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files of each rater: the answers to the first prompts, then to the later ones."""
    raters: dict[str, list[Path]] = {}
    of_stem: dict[str, Path] = {}
    for path in files:
        other = of_stem.setdefault(path.stem, path)
        if other != path:
            raise RankshotError(f"{other} and {path}: two files of one rater; rename one of them")
        raters.setdefault(NUMBERED.sub("", path.stem), []).append(path)
    for names in raters.values():
        names.sort(key=_get_turn)
    return raters


def _get_turn(path: Path) -> tuple[int, int]:
    numbers = {word: int(number) for word, number in NUMBERED.findall(path.stem)}
    return numbers.get("again", 0), numbers.get("part", 0)


def _read_answer(path: Path) -> str:
    """Return the text of a file, without the prompt if that was copied as well."""
    with path.open("rb") as stream:
        content = stream.read(4 * LONGEST_ANSWER + 1)
    if len(content) > 4 * LONGEST_ANSWER:
        raise RankshotError(f"{path}: longer than any answer; is it another file?")
    try:
        # Some editors of Windows write UTF-16, and mark it.
        is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        text = content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise RankshotError(f"{path}: not UTF-8 text; save it as plain text") from None
    _, prompt, answer = text.rpartition(PROMPT_END)
    if not answer.strip():
        what = "holds a prompt and no answer" if prompt else "is empty"
        raise RankshotError(f"{path}: {what}; copy the answer of the chat window into it")
    return answer


def _describe_failure(files: list[Path], answers: Answers) -> str:
    names = " and ".join(map(str, files))
    more = len(answers.notes) - FAULTS_SHOWN
    notes = "; ".join(answers.notes[:FAULTS_SHOWN])
    rest = f"; and {format_count(more, 'more note')}" if more > 0 else ""
    return (
        f"{names}: no usable list in it ({notes}{rest}). It must be the answer to a prompt with "
        "these classes, with their names in the same language; ask again, or leave out this file"
    )
