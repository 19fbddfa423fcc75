"""A new study: its questions from targets and items, and its text for study.toml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

from rankshot.core.errors import RankshotError, suggest_name
from rankshot.core.names import as_names
from rankshot.ranking.checks import require_rankings
from rankshot.ranking.consensus import average_order
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.wordnet import WordNet
from rankshot.survey.bounds import MOST_ITEMS, check_count
from rankshot.survey.study import CONSENT_PLACEHOLDER, DEFAULT_PROMPT, Question, Study

MOST_SHOWN = 10
"""By default a question shows so many items, as in the paper, or all where there are fewer."""
WIDTH = 100
"""Lists that are longer go on several lines."""
DEFAULT_TITLE = "Which of these are alike?"
DEFAULT_CONSENT = f"""\
This is a research study about what people find alike. You will see some questions. Each of them
names one thing and asks you to put others in order, those most like it first.

Taking part is voluntary. You may skip any question, and you may stop at any time, without giving
a reason, by closing the page; the answers that you have sent by then are kept.

We store your answers, when you gave them and how long each took, and a code made from your
participant id (a hash), but not the id itself. The answers are used for research.

If you have a question about this study, please ask
{CONSENT_PLACEHOLDER}."""
_HEAD = """\
# A survey: participants order items by how much they are like a target.
# Read and edit this file; then start the survey with `rankshot survey serve`, and get its
# answers as a rankings file with `rankshot survey export`. Do not change questions once answers
# have come in: a changed question is a new one, and starts without answers.

# Participants see the title on every page.
title = {title}

# The question; {{target}} stands for the name of the target.
prompt = {prompt}

# What participants agree to before they start. A blank line begins a new paragraph. Fill in what
# stands in [brackets], and add what your ethics board asks for.
consent = \"""
{consent}\"""
"""
_PLAN = """\
[plan]
# How many participants answer each question.
answers_per_question = {answers}
# How many different questions one participant answers. Gold questions and repeats are added.
questions_per_participant = {questions}
# How many of them are asked a second time at the end, to see whether the answers agree.
repeats = {repeats}
# Who does nothing for so many minutes has left: the open questions go to somebody else.
return_after_minutes = {minutes}
"""
_ITEMS = """\
[items]
# All items, whether or not a question shows them: the classes that the classifier knows.
{names}
# What is known of the items that a question does not show.
# "after": they are less like the target than those that it shows, because it shows the nearest.
# "unknown": nothing; so where several questions share a target and show different items.
unshown = {unshown}
"""
_PLATFORM = """\
[platform]
# Where participants come from: "none" (anybody with the link), "prolific" or "mturk"
# (Amazon Mechanical Turk, as an external question).
name = {name}
# For Prolific: the address that its page shows for participants who have finished.
{completion_url}
"""
_NO_URL = '# completion_url = "https://app.prolific.com/submissions/complete?cc=..."'
_QUALITY = """\
# When a participant is flagged. Nobody's answers are dropped for it, unless you export them
# with --exclude-flagged.
[quality]
# Answers given within fewer seconds are too fast.
seconds = {seconds}
# How far repeated answers may be from the first ones: 0 is the same order, 0.5 is chance.
repeat_distance = {repeat_distance}
# How far answers may be from the consensus of the others, in the same measure.
consensus_distance = {consensus_distance}
# So many wrong answers to gold questions are forgiven.
gold_failures = {gold_failures}
"""
_GOLD = """\
# Gold questions have a known answer: it begins with the items in `first`, in any order. Every
# participant gets all of them. Their items may be any names. For example:
# [[gold]]
# target = "wolf"
# items = ["dog", "bus", "rose"]
# first = ["dog"]
"""
_QUESTIONS = """\
# The questions: a target, and the items shown with it, in a random order.
"""


# -------------------- survey.preselection
# Which items a question shows: the nearest ones, and sets of them where they are many.


def nearest_items(
    rankings: Rankings, targets: Iterable[Any], items: Iterable[Any], n: int
) -> list[tuple[str, ...]]:
    """Return the ``n`` items nearest to each target, nearest first.

    People cannot order a hundred names. The paper showed the ten of the smallest average place
    in five sources, or in WordNet alone.

    Parameters
    ----------
    rankings : Rankings
        Of the items, one or more for each target; weights count.
    targets, items : iterables of names
        A target that is itself an item is not among its nearest.
    n : int
        How many.

    Returns
    -------
    list of tuples of str
        In the order of the targets. Items of the same average place are ordered by name; those
        that no ranking of the target compares come last.

    Examples
    --------
    >>> import rankshot as rs
    >>> similarity = rs.WordNet().similarity(["tiger"], ["leopard", "seal", "mole", "wolf"])
    >>> nearest_items(similarity.to_rankings(), similarity.targets, similarity.items, 2)
    [('leopard', 'wolf')]
    """
    require_rankings(rankings)
    target_names, item_names = as_names(targets, "targets"), as_names(items)
    check_count("n", n, 1)
    counted = rankings.with_items(item_names)
    counted = counted[counted.weights > 0]
    return [_nearest(counted, target, n) for target in target_names]


def _nearest(rankings: Rankings, target: str, n: int) -> tuple[str, ...]:
    these = rankings[rankings.targets == target]
    if len(these) == 0:
        hint = suggest_name(target, rankings.target_names)
        raise RankshotError(f"there is no ranking of the target {target!r}{hint}: add one")
    compared = {rankings.items[i] for i in these.codes}
    if not these.is_subset.all():
        compared = set(rankings.items)
    # The average of an item that nobody compares is a guess, and comes after what is known.
    order = sorted(average_order(these), key=lambda name: name not in compared)
    found = [name for name in order if name != target]
    if len(found) < n:
        raise RankshotError(
            f"{n} items are wanted for the target {target!r}, and there are {len(found)}: ask for "
            "fewer"
        )
    return tuple(found[:n])


def item_sets(pool: Sequence[str], show: int, rng: Random) -> list[tuple[str, ...]]:
    """Split a pool into sets of ``show`` items that overlap, or return it as the only set.

    The sets are windows on the shuffled pool, bent to a ring. Each begins about half a window
    after the one before it, so that every item is in two sets or more, and neighbours share
    items: from the answers, all items of the pool can be compared.

    Parameters
    ----------
    pool : sequence of str
        At least ``show`` different names. Their order has no influence on the sets.
    show : int
        How many items each set has.
    rng : Random
        Shuffles the pool.

    Returns
    -------
    list of tuples of str
        Each in the order of the pool.

    Examples
    --------
    >>> item_sets(["a", "b", "c", "d"], 2, Random(1))
    [('a', 'd'), ('a', 'c'), ('b', 'c'), ('b', 'd')]
    """
    names = as_names(pool, "pool")
    check_count("show", show, 2, MOST_ITEMS)
    size = len(names)
    if size < show:
        raise RankshotError(f"a pool of {size} cannot fill sets of {show} items: show fewer")
    if size == show:
        return [names]
    ring = sorted(names)
    rng.shuffle(ring)
    # Twice the pool, in windows of `show`: two windows on, one begins at most `show` later.
    count = -(-2 * size // show)
    place = {name: i for i, name in enumerate(names)}
    sets = []
    for begin in (i * size // count for i in range(count)):
        window = [ring[(begin + i) % size] for i in range(show)]
        sets.append(tuple(sorted(window, key=place.__getitem__)))
    return sets


# -------------------- survey.new_study
# A new study: its questions from targets and items, and its text for study.toml.


def new_study(
    targets: Iterable[Any],
    items: Iterable[Any],
    *,
    show: int | None = None,
    pool: int | None = None,
    rankings: Rankings | WordNet | None = None,
    title: str = DEFAULT_TITLE,
    answers_per_question: int = 50,
    questions_per_participant: int | None = None,
    seed: int = 0,
) -> Study:
    """Make the study of some targets: which items are shown with each of them.

    Parameters
    ----------
    targets, items : iterables of names
        The unseen classes, and the seen ones.
    show : int, optional
        How many items a question shows: by default 10, or all where there are fewer.
    pool : int, optional
        How many items nearest to each target are asked about; by default as many as are shown.
        A larger pool is split into overlapping sets (see `item_sets`), a question each.
    rankings : Rankings or WordNet, optional
        Says which items are nearest (see `nearest_items`): rankings of all targets, or WordNet;
        by default ``WordNet()``. A default is not asked where the pool has all items.
    title : str
    answers_per_question : int
        Fifty in the paper.
    questions_per_participant : int, optional
        By default 10, or all where there are fewer.
    seed : int
        Shuffles pools. The sets of a target depend on it, on its name and its pool alone.

    Returns
    -------
    Study
        Its consent has a `CONSENT_PLACEHOLDER` that the researcher must fill in.

    Examples
    --------
    >>> study = new_study(["tiger", "dolphin"], ["leopard", "whale", "mole", "wolf"], show=2)
    >>> [(question.target, question.items) for question in study.questions]
    [('tiger', ('leopard', 'wolf')), ('dolphin', ('whale', 'mole'))]
    """
    target_names, item_names = as_names(targets, "targets"), as_names(items)
    available = len(item_names) - any(name in item_names for name in target_names)
    show, pool = _sizes(show, pool, available)
    pools = _pools(target_names, item_names, pool, rankings)
    questions: list[Question] = []
    for target, nearest in zip(target_names, pools, strict=True):
        rng = Random(f"{seed} {target}")  # noqa: S311 (no secret: it shuffles a pool)
        questions += [Question(target, chosen) for chosen in item_sets(nearest, show, rng)]
    if questions_per_participant is None:
        questions_per_participant = min(10, len(questions))
    return Study(
        title=title,
        prompt=DEFAULT_PROMPT,
        consent=DEFAULT_CONSENT,
        items=item_names,
        unshown="after" if pool == show else "unknown",
        questions=tuple(questions),
        answers_per_question=answers_per_question,
        questions_per_participant=questions_per_participant,
        # A participant of one question has nothing in between.
        repeats=min(1, questions_per_participant // 2),
    )


def _sizes(show: int | None, pool: int | None, available: int) -> tuple[int, int]:
    """Return how many items are shown and how many are in a pool, after checking both."""
    if available < 2:
        raise RankshotError(f"a target needs 2 items beside it, and there is {available}: add more")
    if pool is not None:
        check_count("pool", pool, 2, available)
    if show is None:
        show = min(MOST_SHOWN, available if pool is None else pool)
    check_count("show", show, 2, min(available, MOST_ITEMS))
    if pool is None:
        return show, show
    if pool < show:
        raise RankshotError(f"a pool of {pool} is fewer than the {show} items shown: raise pool")
    return show, pool


def _pools(
    targets: tuple[str, ...],
    items: tuple[str, ...],
    size: int,
    rankings: Rankings | WordNet | None,
) -> list[tuple[str, ...]]:
    """Return the items that each target is asked about."""
    if rankings is None:
        others = [tuple(name for name in items if name != target) for target in targets]
        if all(len(names) == size for names in others):
            return others
        rankings = WordNet()
    if isinstance(rankings, WordNet):
        rankings = rankings.similarity(targets, items).to_rankings()
    return nearest_items(rankings, targets, items, size)


def study_text(study: Study) -> str:
    """Return a study as the text of study.toml, with remarks for the researcher.

    `read_study` of a file with this text gives an equal study.

    Examples
    --------
    >>> study = new_study(["tiger"], ["leopard", "whale", "wolf"], show=2)
    >>> print(study_text(study)[-61:])
    [[questions]]
    target = "tiger"
    items = ["leopard", "wolf"]
    <BLANKLINE>
    """
    rules = study.quality
    url = study.completion_url
    parts = [
        _HEAD.format(
            title=_quoted(study.title), prompt=_quoted(study.prompt), consent=_lines(study.consent)
        ),
        _PLAN.format(
            answers=study.answers_per_question,
            questions=study.questions_per_participant,
            repeats=study.repeats,
            minutes=study.return_after_minutes,
        ),
        _ITEMS.format(names=_list("names", study.items), unshown=_quoted(study.unshown)),
        _PLATFORM.format(
            name=_quoted(study.platform),
            completion_url=_NO_URL if url is None else f"completion_url = {_quoted(url)}",
        ),
        _QUALITY.format(
            seconds=rules.seconds,
            repeat_distance=rules.repeat_distance,
            consensus_distance=rules.consensus_distance,
            gold_failures=rules.gold_failures,
        ),
        _GOLD,
        *(_asked("gold", question) for question in study.gold),
        _QUESTIONS,
        *(_asked("questions", question) for question in study.questions),
    ]
    return "\n".join(parts)


def _asked(table: str, question: Question) -> str:
    lines = [
        f"[[{table}]]",
        f"target = {_quoted(question.target)}",
        _list("items", question.items),
    ]
    if question.first:
        lines.append(_list("first", question.first))
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return one line of text as a TOML string; JSON's escapes are among TOML's."""
    return json.dumps(text, ensure_ascii=False)


def _lines(text: str) -> str:
    """Return text for between three quotes, where a line break stands for itself."""
    # No two quotes may follow each other, nor one the end.
    return re.sub(r'"(?="|\Z)', r"\"", text.replace("\\", "\\\\"))


def _list(key: str, names: Sequence[str]) -> str:
    """Return a key with a list of names, on several lines if it is long."""
    quoted = [_quoted(name) for name in names]
    line = f"{key} = [{', '.join(quoted)}]"
    if len(line) <= WIDTH:
        return line
    rows = [""]
    for name in quoted:
        if rows[-1] and len(rows[-1]) + len(name) + 6 > WIDTH:
            rows.append("")
        rows[-1] += f" {name}," if rows[-1] else f"    {name},"
    return "\n".join([f"{key} = [", *rows, "]"])
