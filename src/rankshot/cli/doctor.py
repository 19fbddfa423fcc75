"""``rankshot doctor``: what is known of a network and its rankings, and what would help most."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rankshot import core, pages, ranking, recognition, zeroshot
from rankshot.cli.console import refuse, say
from rankshot.cli.heads import HeadOptions, infer_score_type, read_new_rankings, read_rankings_of
from rankshot.cli.recognise import ENDING, LABELLED, MANIFEST
from rankshot.cli.rehearse import check_labelled, read_labelled
from rankshot.cli.report import MAX_PLACES
from rankshot.core.errors import format_count, format_share, quote_names
from rankshot.sources.registry import ANSWERS

if TYPE_CHECKING:
    from rankshot.zeroshot.files.score_tables import ScoreTable

SHOWN = 5
"""Pairs of classes, seen classes to collect inputs of, and inputs to label."""
MOST_INPUTS = 2_000
"""Of more inputs, some are taken evenly: the page takes a minute at most."""
LEAST_COVERAGE = 0.5
Step = tuple[str, list[object]]
"""What would help, and the words of the command."""


def doctor(
    scores: Path,
    *,
    options: Annotated[HeadOptions, "rankings reference score_type"],
    truth: Path | None = None,
    rehearsal: Path | None = None,
) -> None:
    """Check a network and its rankings, and list what would help.

    It prints what the network predicts, its accuracy on labelled inputs of seen
    classes, how well a reference covers the seen classes, the accuracy that a rehearsal predicts
    for each source alone, new classes with similar rankings, and the next steps, the most useful
    first, each with its command. At most 2,000 inputs are used.

    Example: rankshot doctor photos

    Example: rankshot doctor scores.csv --rankings rankings.jsonl --reference seen_scores.csv
    --truth seen_labels.csv --rehearsal rehearsal.jsonl

    Parameters
    ----------
    scores
        The scores of inputs (.csv, .parquet, or a folder of parts); or the inputs of
        `rankshot recognise`, or the folder that it keeps, which has rankings as well.
    rankings
        The rankings of the seen classes for each new class (.jsonl, .parquet).
    reference
        The scores of inputs of seen classes (.csv, .parquet; read into memory).
    truth
        The classes of the inputs of --reference or, without it, of the scores: a table with
        columns id and label, or with a column label alone and the same rows (.csv, .parquet).
    rehearsal
        Rankings for some seen classes, which list the other seen classes (.jsonl), as written by
        `rankshot rank --rehearse`, from the sources of --rankings. They need --reference and
        --truth.
    """
    path, rankings, reference = scores, options.rankings, options.reference
    again: list[Any] = []
    if (run := _find_run(scores)) is not None:
        # What `rankshot recognise` keeps, labelled inputs and rankings of their classes included.
        path, labelled, again = run / "scores", run / LABELLED, _read_command(run)
        rankings = rankings or _find_rankings(run, again)
        if not (reference or truth) and labelled.is_dir():
            reference, truth, rehearsal = labelled, labelled.with_suffix(".csv"), rankings
    refuse(
        rehearsal and not (rankings and reference and truth),
        "--rehearsal needs --rankings, --reference and --truth as well",
    )
    table = infer_score_type(zeroshot.open_scores(path).keep(), options.score_type)
    new = None if rankings is None else read_new_rankings(rankings, table)
    given = _read(table, None)
    rows = _choose_rows(len(given[0]))
    names, inputs = given[0][rows], given[1][rows]
    labels: Any = None
    seen: Any = None
    if reference or truth:
        given_seen = table
        if reference is not None:
            given_seen = replace(zeroshot.open_scores(reference), score_type=table.score_type)
        labels, seen = _read(given_seen, truth)
    doubts = _examine_network(path, (names, inputs), (labels if truth else None, seen))
    score = again or ["score", "INPUTS", "--model", "MODEL", "-o", path]
    more = ["--folder", "FOLDER"] if again else []
    steps: list[Step] = [(doubt, [*score, "--preprocessing", "NAME", *more]) for doubt in doubts]
    if new is None:
        words = again or ["ask", "--seen", path, "--new", "NAMES", "-o", "prompts"]
        steps.append(("rankings of the new classes, such as a language model's answers", words))
    else:
        head = zeroshot.WeightedMean().fit(new, reference=seen if reference else None)
        tried = None
        if rehearsal is not None:
            some = _choose_rows(len(labels))
            of_seen = read_rankings_of(rehearsal, table, quiet=True)
            if {*labels} & {*of_seen.target_names} or not again:
                tried = zeroshot.Rehearsal().fit(seen[some], labels[some], of_seen)
            else:
                say(f"rehearsal: left out, since {rehearsal} has no rankings of labelled classes")
        _print_sources(new, tried)
        if rankings and not new.rater_names:
            steps.append(_propose_answers(new, rankings, path, again))
        steps += _propose_batch(head, inputs, [path, "--rankings", rankings], again)
        words = ["suggest", path, "--rankings", rankings, "-o", "labels.csv"]
        steps.append((_find_labels(head, names, inputs), words))
        lacking = _examine_reference(head, reference, seen)
        files = ["--truth", truth, "--rankings", rehearsal, "--new-rankings", rankings]
        known = ["rehearse", reference, *files, "-o", "settings.json"]
        steps += _propose_labelled(tried, lacking, table, known, again)
    say("what would help most next")
    for number, (text, words) in enumerate(steps, 1):
        say(f"  {number}. {text}\n     rankshot {shlex.join(map(str, words))}")


# ---- What is given


def _find_run(given: Path) -> Path | None:
    """Return the folder of a run of `rankshot recognise`: the given one, or that of the inputs."""
    kept = f"{given.resolve().name}{ENDING}"
    for folder in (given, given.parent / kept, Path(kept)):
        if (folder / "scores").is_dir():
            if folder != given:
                say(f"{given}: `rankshot recognise` keeps its scores in {folder}")
            return folder
    refuse(
        given.is_dir() and not any(given.glob("*.parquet")),
        f"{given}: has no scores; `rankshot recognise {given} --model MODEL --new NAMES -o "
        "predictions.csv` writes them, or give the folder that it wrote, or a table of scores",
    )
    return None


def _read_command(run: Path) -> list[str]:
    """Return the words of the command that wrote a folder last."""
    try:
        return list(json.loads((run / MANIFEST).read_text(encoding="utf-8"))["command"])
    except (OSError, ValueError, KeyError):
        return ["recognise", run.name.removesuffix(ENDING), "--model", "MODEL", "-o", "FILE.csv"]


def _find_rankings(run: Path, again: list[str]) -> Path | None:
    """Return the rankings that a run was given, or those that it wrote last."""
    given = Path(again[again.index("--rankings") + 1]) if "--rankings" in again else None
    if given is not None and given.is_file():
        return given
    found = run.glob("*.rankings.jsonl")
    return max(found, key=lambda file: file.stat().st_mtime, default=None)


def _choose_rows(n: int) -> object:
    import numpy as np

    return np.linspace(0, n - 1, min(n, MOST_INPUTS)).round().astype(int)


def _read(table: ScoreTable, truth: Path | None) -> tuple[Any, Any]:
    """Return the classes of inputs or, if they are not given, the ids, and the scores."""
    if truth is not None:
        return read_labelled(table, truth)[::-1]
    ids, scores = table.read()
    return core.as_text_array(ids), scores


# ---- What is found


def _examine_network(
    path: Path, given: tuple[Any, zeroshot.Scores], labelled: tuple[Any, zeroshot.Scores | None]
) -> list[str]:
    """Print what the model says, and how accurate it is; return what is doubtful."""
    from rankshot.recognition.score_parts import read_origin

    check = recognition.check_scores([given])
    lines = [f"{what}: {text}" for what, text in read_origin(path).items()] + check.describe()
    doubts = dict.fromkeys(check.doubts)
    labels, seen = labelled
    if seen is not None and labels is not None:
        check = check_labelled(seen, labels)
        lines += check.describe()[1:]
        doubts |= dict.fromkeys(check.doubts)
    _print("model", lines)
    return list(doubts)


def _print_sources(rankings: ranking.Rankings, rehearsal: zeroshot.Rehearsal | None) -> None:
    """Print the sources, and what a rehearsal predicts for each."""
    new = rankings.target_names
    n_new = format_count(len(new), "new class")
    pairs = {*zip(rankings.sources, rankings.targets, strict=True)}
    ranked = Counter(sorted(source or "no source" for source, _ in pairs))
    lines = [f"{source}: ranks {n} of {n_new}" for source, n in ranked.items()]
    if rehearsal is not None:
        lines += rehearsal.forecast_.describe(rankings)[1:]
    _print(f"rankings (random guessing: {format_share(1 / len(new))})", lines)


def _find_labels(head: zeroshot.WeightedMean, names: Any, inputs: zeroshot.Scores) -> str:
    """Print which new classes are alike; return which inputs to label."""
    import numpy as np

    from rankshot.zeroshot.suggestions import choose_diverse

    k = min(MAX_PLACES, head.rankings_.n_items)
    merged: Any = zeroshot.ProbabilisticRanking(k=k, posterior="consensus").fit(
        head.rankings_.top(k)
    )
    found = pages.find_similar_classes(merged.consensus_, k)
    pairs = () if found is None else found.pairs[:SHOWN]
    lines = [f"{a} and {b}: {format_share(far)}" for a, b, far in pairs]
    _print("most similar new classes (0 is the same ranking)", lines or ["none"])
    alike = [name for *pair, _ in pairs[:1] for name in pair]
    among, which = np.flatnonzero(np.isin(head.predict(inputs), alike)), " or ".join(alike)
    if len(among) < SHOWN:
        among, which = np.arange(len(names)), "any class"
    chosen = quote_names(names[choose_diverse(inputs, among, SHOWN)].tolist())
    return f"labels for a few inputs, such as {chosen} ({which}), for --examples labels.csv"


def _examine_reference(
    head: zeroshot.WeightedMean, path: Path | None, reference: zeroshot.Scores
) -> str:
    """Print how many seen classes a reference has; return those that it lacks."""
    import numpy as np

    from rankshot.zeroshot.remarks import describe_reference

    weight = head.weights_.sum(axis=0)
    share = float(weight @ head.coverage_ / weight.sum())
    missing = "none: scores cannot be standardised"
    _print("reference", [missing if path is None else f"{path}: {describe_reference(reference)}"])
    if share >= LEAST_COVERAGE:
        return ""
    lacking = np.argsort(-weight * (1 - head.coverage_), kind="stable")[:SHOWN]
    return quote_names(head.head_.seen[i] for i in lacking)


def _print(heading: str, lines: list[str]) -> None:
    say("\n".join([heading, *(f"  {line}" for line in lines)]))


# ---- What would help


def _propose_answers(
    new: ranking.Rankings, rankings: Path, path: Path, again: list[object]
) -> Step:
    """Return how to get rankings by a language model: by prompts that are there, or new ones."""
    text = "answers from a language model: so far, all rankings come from tables"
    name = rankings.name.removesuffix(".rankings.jsonl")
    prompt = next(iter(sorted(rankings.parent.glob(f"{name}.prompts/rater-*.txt"))), None)
    if prompt is None:
        names = ", ".join(map(str, new.target_names))
        return text, ["ask", "--seen", path, "--new", names, "-o", "prompts"]
    answer = prompt.parent / ANSWERS / prompt.name
    how = f"; paste {prompt} into any chat window, save the answer as {answer}, and run again"
    return text + how, again


def _propose_batch(
    head: zeroshot.WeightedMean, inputs: zeroshot.Scores, using: list[object], again: list[object]
) -> list[Step]:
    """Return how to decide all inputs together, if that is possible and not done yet."""
    from rankshot.zeroshot.batch_refinement import refine_batch

    # By default, `recognise` decides so itself.
    if (again and "--batch" not in again) or "changed" not in refine_batch(head, inputs).about.get(
        "batch", {}
    ):
        return []
    words = ["classify", *using, "--batch", "yes", "-o", "predictions.csv"]
    if again:
        place = again.index("--batch") + 1
        words = [*again[:place], "yes", *again[place + 1 :]]
    text = "classify all inputs jointly, if most new classes occur among them"
    return [(text, words)] if words != again else []


def _propose_labelled(
    tried: zeroshot.Rehearsal | None, lacking: str, table: Any, known: list[Any], again: list[Any]
) -> list[Step]:
    """Return how labelled inputs of seen classes would help, as a reference and to rehearse."""
    from rankshot.zeroshot.forecast import ENOUGH_CLASSES

    enough = min(ENOUGH_CLASSES, len(table.items))
    are_enough = tried is not None and len(tried.forecast_.classes) >= enough
    finds = "which finds the best sources and settings, and predicts the accuracy"
    all_of = "all" if enough == len(table.items) else "at least"
    few = f"a rehearsal of {all_of} {enough} labelled seen classes"
    if again:
        # It has rehearsed all labelled inputs already.
        first = f"; begin with {lacking}" if lacking else ""
        more = [] if "--rehearse" in again else ["--rehearse", "LABELLED"]
        return [] if are_enough else [(f"{few}, {finds}{first}", [*again, *more])]
    words = ["score", "SEEN_INPUTS", "--model", "MODEL", "-o", "reference.parquet"]
    steps = (
        [(f"a reference: inputs of seen classes; begin with {lacking}", words)] if lacking else []
    )
    if are_enough:
        text = "the settings, the temperature and the weights of sources as rehearsed"
        return [*steps, (text, known)]
    known = ["rank", "--seen", table.path, "--rehearse", "NAMES", "-o", "rehearsal.jsonl"]
    return [*steps, (f"{few}, {finds}", known)]
