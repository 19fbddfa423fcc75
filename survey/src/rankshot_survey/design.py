"""The design of a new study: which items each question shows."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from rankshot.core.errors import NO_VALUE, InputError, suggest_name
from rankshot.core.validation import as_names, require_whole_number
from rankshot.ranking.consensus.precedence import average_order
from rankshot.ranking.rankings import Rankings, require_rankings
from rankshot_survey.study import DEFAULT_PROMPT, MOST_ITEMS, TITLE_PLACEHOLDER, Question, Study

# The default number of items that a question shows, as in the paper; fewer if there are fewer.
MOST_SHOWN = 10
# The target of questions about nothing but the items.
ALL_ITEMS = "all items"


def new_study(
    targets: Iterable[object] | None,
    items: Iterable[object],
    *,
    prompt: str | None = None,
    show: int | None = None,
    rankings: Rankings | None = None,
    answers_per_question: int = 50,
    questions_per_participant: int | None = None,
) -> Study:
    """Design a study: choose the items that are shown with each target.

    Parameters
    ----------
    targets, items : iterables of names
        The new classes, and the seen classes. If ``targets`` is None, people order ordinary items;
        then the target of the answers is "all items".
    prompt : str, optional
        The question, with ``{target}`` in place of the target. Required without targets.
    show : int, optional
        How many items a question shows: by default 10, or all if there are fewer, or no targets.
        If there are more, a question about a target shows the nearest; without targets, each
        participant gets different sets, so that all pairs of items are compared about equally
        often.
    rankings : Rankings, optional
        Rankings of the items for each target, from any source: they say which items are nearest.
        Required unless all items are shown.
    answers_per_question : int
        The number of answers that each question should get; Hamm and Belkin (2015) used 50.
    questions_per_participant : int, optional
        By default 10, or all if there are fewer.

    Returns
    -------
    Study
        Its consent contains "[name and e-mail address of the researcher]", to be replaced.

    Examples
    --------
    >>> from rankshot_survey import new_study
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "wolf", "whale"], ["whale", "wolf", "leopard"]],
    ...     targets=["tiger", "dolphin"])
    >>> study = new_study(["tiger", "dolphin"], rankings.items, show=2, rankings=rankings)
    >>> [(question.target, question.items) for question in study.questions]
    [('tiger', ('leopard', 'wolf')), ('dolphin', ('whale', 'wolf'))]
    >>> study = new_study(None, ["tea", "coffee", "juice"], prompt="Which do you like best?")
    >>> study.questions[0].target, study.questions[0].items
    ('all items', ('tea', 'coffee', 'juice'))
    """
    item_names = as_names(items)
    is_drawn, title = False, "Which of these are similar?"
    if targets is None:
        if prompt is None:
            raise InputError("prompt", NO_VALUE, "is missing: without targets, it is the question")
        targets, title = [ALL_ITEMS], TITLE_PLACEHOLDER
        show = len(item_names) if show is None else show
        is_drawn = show < len(item_names)
    target_names = as_names(targets, "targets")
    available = len(item_names) - any(name in item_names for name in target_names)
    if available < 2:
        raise InputError("items", available, "must be 2 or more")
    show = min(MOST_SHOWN, available) if show is None else show
    require_whole_number("show", show, min(available, MOST_ITEMS), least=2)
    if rankings is not None:
        shown = select_nearest_items(rankings, target_names, item_names, show)
    else:
        shown = [tuple(name for name in item_names if name != target) for target in target_names]
        if not is_drawn and any(len(names) != show for names in shown):
            rule = "must say which items are nearest: not all are shown"
            raise InputError("rankings", NO_VALUE, rule)
    questions = [
        Question(target, names, show=show if is_drawn else 0)
        for target, names in zip(target_names, shown, strict=True)
    ]
    if questions_per_participant is None:
        questions_per_participant = min(10, sum(question.n_parts for question in questions))
    consent = (files("rankshot_survey") / "new_consent.txt").read_text(encoding="utf-8")
    return Study(
        title=title,
        prompt=prompt or DEFAULT_PROMPT,
        consent=consent.strip(),
        items=item_names,
        questions=tuple(questions),
        unshown="unknown" if is_drawn else "after" if show < len(item_names) else None,
        answers_per_question=answers_per_question,
        questions_per_participant=questions_per_participant,
        # A participant with one question would get the repeat directly after it.
        repeats=min(1, questions_per_participant // 2),
    )


# ---- Which items a question shows


def select_nearest_items(
    rankings: Rankings, targets: Iterable[object], items: Iterable[object], n: int
) -> list[tuple[str, ...]]:
    """Return the ``n`` items nearest to each target, nearest first.

    People cannot order a hundred names. The paper showed the ten items with the smallest average
    place in five sources, or in WordNet alone. Items with the same average place are ordered by
    name. Items that no ranking of the target compares come last. A target that is also an item is
    not one of its own nearest items.
    """
    require_rankings(rankings)
    counted = rankings.with_items(items)
    counted = counted[counted.weights > 0]
    nearest = []
    for target in targets:
        these = counted[counted.targets == target]
        if len(these) == 0:
            rule = "is a target without a ranking"
            hint = suggest_name(target, counted.target_names).strip(" ()")
            raise InputError("rankings", target, rule, hint=hint)
        compared = set(counted.items)
        if these.is_subset.all():
            compared = {counted.items[i] for i in these.codes}
        # The average place of an item that no ranking compares is a guess: it comes last.
        order = sorted(average_order(these), key=lambda name: name not in compared)
        nearest.append(tuple(name for name in order if name != target)[:n])
    return nearest
