"""What is known of a run or of a saved head, and what would help most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankshot import pages
from rankshot.core.errors import NO_VALUE, InputError, format_count, format_share, quote_names
from rankshot.ranking.rankings import Rankings
from rankshot.recognition.network_check import check_scores
from rankshot.recognition.recognition import rehearse_known
from rankshot.recognition.run_folder import Run, open_run
from rankshot.zeroshot.class_rankings import only_new
from rankshot.zeroshot.forecast import ENOUGH_CLASSES, Forecast
from rankshot.zeroshot.knowledge import load_head
from rankshot.zeroshot.paper import ProbabilisticRanking
from rankshot.zeroshot.remarks import describe_reference
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.suggestions import suggest

SHOWN = 5
"""Pairs of classes, seen classes to collect inputs of, and inputs to label."""
MOST_INPUTS = 2_000
"""Of more inputs, some are taken evenly: the examination takes a minute at most."""
LEAST_COVERAGE = 0.5
MAX_PLACES = 10
Step = tuple[str, list[object]]
"""What would help, and the words of the command."""


def examine_run(folder: Path) -> tuple[list[str], list[Step]]:
    """Lines that say what is known of a run, and the next steps, the most useful first.

    Parameters
    ----------
    folder : Path
        The folder of a run.
    """
    run = open_run(folder)
    batch = run.knowledge.batch
    assert batch is not None  # noqa: S101 (a run always has scores)
    rows = np.linspace(0, len(batch) - 1, min(len(batch), MOST_INPUTS)).round().astype(int)
    names, inputs = run.ids[rows].astype(str), batch[rows]
    again: list[object] = ["recognise", "INPUTS", "--folder", folder]
    lines, steps = _examine_network(run, inputs, again)
    new = only_new(run.knowledge.rankings)
    pairs = {*zip(new.sources, new.targets, strict=True)}
    ranked = Counter(sorted(source or "no source" for source, _ in pairs))
    classes = format_count(len(new.target_names), "new class")
    lines.append(f"rankings (random guessing: {format_share(1 / len(new.target_names))})")
    lines += [f"  {source}: ranks {n} of {classes}" for source, n in ranked.items()]
    if not new.rater_names:
        text = "answers from a language model: so far, all rankings come from tables"
        steps.append((text, ["rank", "--seen", "SEEN", "--new", "NAMES", "--prompts", "prompts"]))
    alike = _find_alike(run)
    lines.append("most similar new classes (distance; 0 = identical)")
    lines += [f"  {a} and {b}: {format_share(far)}" for a, b, far in alike] or ["  none"]
    steps.append(_suggest_labels(run, names, inputs, [*alike[0][:2]] if alike else []))
    more, lacking = _examine_reference(run)
    lines += more
    if lacking:
        text = f"a reference: labelled inputs of seen classes; begin with {quote_names(lacking)}"
        steps.append((text, [*again, "--reference", "SEEN"]))
    elif _count_rehearsed(run) < min(ENOUGH_CLASSES, len(run.knowledge.seen)):
        text = f"rankings and labelled inputs of {ENOUGH_CLASSES} seen classes, for a forecast"
        steps.append((text, [*again, "--reference", "SEEN"]))
    return lines, steps


def rehearse_run(folder: Path) -> Forecast:
    """Hold out seen classes of a run once more, to choose settings and forecast the accuracy."""
    run = open_run(folder)
    notes: list[str] = []
    forecast = rehearse_known(run.knowledge, run.settings, notes)
    if forecast is None:
        raise InputError("reference", NO_VALUE, "is not enough", hint="; ".join(notes))
    return forecast


def describe_head(path: Path) -> list[str]:
    """Lines that say what a saved head contains, and how it came about."""
    head = load_head(path)
    lines = [
        repr(head),
        f"classes: {quote_names(head.classes_.tolist(), 20)}",
        f"seen classes: {quote_names(head.inner.seen, 20)}",
    ]
    return [*lines, *(f"{name}: {value}" for name, value in head.inner.about.items())]


def _examine_network(run: Run, inputs: Scores, again: list[object]) -> tuple[list[str], list[Step]]:
    """What the model says, how accurate it is, and what is doubtful."""
    check = check_scores([(None, inputs)])
    lines = [*(f"{name}: {value}" for name, value in run.model.items() if value)]
    lines += check.describe()
    doubts = dict.fromkeys(check.doubts)
    scores, labels = run.knowledge.reference or (None, None)
    if scores is not None and labels is not None:
        by_row = {str(row): label for row, label in enumerate(labels.tolist())}
        ids = np.arange(len(scores)).astype(str).astype(object)
        check = check_scores([(ids, scores)], by_row)
        lines += check.describe()[1:]
        doubts |= dict.fromkeys(check.doubts)
    fix = [*again, "--preprocessing", "NAME"]
    return ["model", *(f"  {line}" for line in lines)], [(doubt, fix) for doubt in doubts]


def _find_alike(run: Run) -> Sequence[tuple[Any, Any, float]]:
    """Pairs of new classes whose rankings are most similar."""
    new = only_new(run.knowledge.rankings)
    k = min(MAX_PLACES, new.n_items)
    method = ProbabilisticRanking(k=k, posterior="consensus").fit(new.top(k))
    return pages.find_similar_classes(cast("Rankings", method.consensus_), k)[:SHOWN]


def _suggest_labels(run: Run, names: NDArray[np.str_], inputs: Scores, alike: list[Any]) -> Step:
    """Inputs whose labels would help: of the most similar classes, if there are enough."""
    among, which = np.flatnonzero(np.isin(run.head.predict(inputs), alike)), " or ".join(alike)
    if len(among) < SHOWN:
        among, which = np.arange(len(names)), "any class"
    chosen = quote_names(names[suggest(inputs, min(SHOWN, len(among)), among=among)].tolist())
    text = f"labels for a few inputs, such as {chosen} ({which})"
    return text, ["review", run.folder]


def _examine_reference(run: Run) -> tuple[list[str], list[str]]:
    """What the reference covers, and the seen classes that it lacks."""
    scores = None if run.knowledge.reference is None else run.knowledge.reference[0]
    head = run.knowledge.fit_alone(run.settings)
    weight = head.weights_.sum(axis=0)
    text = "none: which scores are high for every input is not known"
    lines = ["reference", f"  {text if scores is None else describe_reference(scores)}"]
    if float(weight @ head.coverage_ / weight.sum()) >= LEAST_COVERAGE:
        return lines, []
    order = np.argsort(-weight * (1 - head.coverage_), kind="stable")[:SHOWN]
    return lines, [run.knowledge.seen[i] for i in order]


def _count_rehearsed(run: Run) -> int:
    """How many seen classes are ranked and have labelled inputs."""
    labels = None if run.knowledge.reference is None else run.knowledge.reference[1]
    ranked = {*run.knowledge.rankings.target_names} & {*run.knowledge.seen}
    return 0 if labels is None else len(ranked & {*labels.tolist()})
