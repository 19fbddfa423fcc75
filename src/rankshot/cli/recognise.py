"""``rankshot recognise``: from a model and a folder of pictures, or texts, to new classes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.class_options import (
    ClassLists,
    NamesOption,
    list_label_files,
    read_class_lists,
)
from rankshot.cli.classify import classify_table
from rankshot.cli.console import check_writable, say
from rankshot.cli.fit import save_head
from rankshot.cli.heads import HeadOptions, fit_head, takes_head
from rankshot.cli.part_runs import show_parts
from rankshot.cli.rank import print_rankings, warn_of_classes_without_ranking
from rankshot.cli.rank_sources import (
    SourceInput,
    check_specs,
    list_files,
    parse_senses,
    rank_by_sources,
)
from rankshot.cli.run_folder import ENDING, RunFolder, fingerprint_sources
from rankshot.cli.score import (
    InputsArgument,
    ModelClassesOption,
    ModelOption,
    PreprocessingOption,
    TextColumnOption,
    open_plan,
    print_skipped,
)
from rankshot.cli.score_tables import ScoreType, read_first_ids
from rankshot.core.errors import RankshotError, format_count

if TYPE_CHECKING:
    from rankshot.inference.scoring import ScoringPlan
    from rankshot.jobs.score_parts import InputParts
    from rankshot.zeroshot.scores import Kind

SCORE_TYPES: dict[Kind, ScoreType] = {
    "multiclass": ScoreType.LOGITS,
    "one-vs-rest": ScoreType.ONE_VS_REST_LOGITS,
    "one-vs-one": ScoreType.ONE_VS_ONE,
}
"""What a model's scores are: probabilities have become logarithms."""


@takes_head("rankings", "settings", "reference", "classes", "none")
def recognise(
    inputs: InputsArgument,
    model: ModelOption,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The predictions to write (.csv, .parquet).")
    ],
    options: HeadOptions,
    new: Annotated[
        str | None,
        typer.Option(
            "--new",
            metavar="<names or file>",
            help="The new classes: names separated by commas, or a file with one name per line.",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<source>",
            help="Where the rankings of the model's classes come from, as for `rankshot rank`; may "
            "be repeated: wordnet, glove, answers:FOLDER, model:NAME and others. The default is "
            "wordnet, which needs nothing else.",
        ),
    ] = None,
    seen: ModelClassesOption = None,
    names: NamesOption = None,
    preprocessing: PreprocessingOption = None,
    text_column: TextColumnOption = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation before model:NAME is used.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Where scores, rankings and the fitted head are kept for the next run. The "
            "default is beside the output and named after the inputs, such as "
            f"photos{ENDING}."
        ),
    ] = None,
    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Start afresh: remove what is kept, except the answers of a language model.",
        ),
    ] = False,
) -> None:
    """Recognise new classes in pictures or texts with a model that was not trained on them.

    This is `rankshot score`, `rank`, `fit` and `classify` in one go. What they make is kept in a
    folder: a run that was stopped goes on when the same command is given again, and a run with
    other new classes uses the same scores.

    Example: rankshot recognise photos/ --model efficientnet-lite0 --new "okapi, menorah, pagoda"
    -o predictions.csv
    """
    from rankshot.jobs.score_parts import list_inputs
    from rankshot.zeroshot.files.score_tables import ScoreTable, open_scores

    specs = source or ["wordnet"]
    _check_options(options, new, source, names)
    check_specs(specs)
    run = RunFolder(folder or output.parent / f"{inputs.resolve().name}{ENDING}", output)
    files = [*options.files, names, *list_label_files(seen, new), *list_files(specs)]
    _check_places(inputs, output, run.path, files)
    if again:
        run.refuse_to_remove(files)
    if options.rankings is None:
        options = replace(options, rankings=run.rankings)
    plan = open_plan(model, seen, preprocessing)
    listed = list_inputs(plan, inputs, text_column)
    _check_reference(options.reference)
    about = None if new is None else read_class_lists(plan.classes, new, names, None, 0, None)
    with run.open(plan, again=again):
        # Before the scores, which may take long: what is wrong with the classes is said at once.
        if about is not None:
            _rank(about, specs, run, plan, yes=yes, is_default=source is None)
        kind = plan.model.kind
        columns = ScoreTable(run.scores, plan.classes.names, kind, True, 0, 1)  # noqa: FBT003
        head, score_type = fit_head(columns, SCORE_TYPES[kind], options)
        save_head(head, run.head, options, score_type)
        _score(plan, listed, run)
        from rankshot.core.files import remove_leftovers

        remove_leftovers(output.resolve().parent, output.name)
        classify_table(open_scores(run.scores), head, score_type, output)
        _print_end(run, options.rankings or run.rankings, model)


# ---- What is given


def _check_options(
    options: HeadOptions, new: str | None, source: list[str] | None, names: Path | None
) -> None:
    if options.rankings is None and new is None:
        raise RankshotError(
            'give the new classes, such as --new "okapi, menorah, pagoda", or --rankings FILE'
        )
    if options.rankings is not None and (new or source or names):
        raise RankshotError(
            "--rankings FILE has the new classes and what is known of them: leave out --new, "
            "--source and --names"
        )


def _check_places(inputs: Path, output: Path, folder: Path, files: list[Path | None]) -> None:
    """Refuse inputs that are not there, and outputs that cannot be written or change the inputs."""
    from rankshot.core.files import require_ending
    from rankshot.core.tables import TABLE_ENDINGS

    require_ending(output, TABLE_ENDINGS)
    check_writable(output, inputs, *files)
    if not inputs.exists():
        raise RankshotError(f"{inputs}: there is no such file or folder")
    for path in (output, folder):
        if path.resolve().is_relative_to(inputs.resolve()):
            raise RankshotError(
                f"{path}: is in the folder of the inputs, which would change with it; write to "
                "another folder"
            )


def _check_reference(path: Path | None) -> None:
    from rankshot.zeroshot.files.score_tables import PROBABILITIES, guess_score_type, open_scores

    if path is None:
        return
    table = open_scores(path)
    if guess_score_type(next(table.batches())[1].values, table) == PROBABILITIES:
        raise RankshotError(
            f"{path}: has probabilities, and the scores to classify are logits; make the "
            "reference with `rankshot score`, from inputs of the model's own classes"
        )


# ---- What is done


def _rank(
    classes: ClassLists,
    specs: list[str],
    run: RunFolder,
    plan: ScoringPlan,
    *,
    yes: bool,
    is_default: bool,
) -> None:
    """Write the rankings of new classes, unless they are there; print what is in them."""
    from rich.console import Console

    from rankshot import __version__
    from rankshot.ranking import read_rankings, write_rankings
    from rankshot.sources import LanguageModel

    console = Console()
    question = "text" if plan.model.takes == "texts" else "images"
    known = [classes.targets, classes.items, classes.words, dict(classes.synsets)]
    fingerprint = fingerprint_sources(list_files(specs), __version__, specs, known, question)
    if run.has_rankings(fingerprint):
        say(f"rankings: those in {run.rankings}, from an earlier run (--again makes them anew)")
        found = read_rankings(run.rankings, items=classes.items)
    else:
        if is_default:
            say(
                "rankings: from WordNet, the default, which needs nothing else; the answers of a "
                "language model are usually better (see `rankshot ask`)"
            )
        open_language_model = partial(LanguageModel, log=run.answers, question=question)
        given = SourceInput(classes, parse_senses(classes, []))
        found, _, missing = rank_by_sources(specs, given, open_language_model, console, yes=yes)
        with run.replace_rankings(fingerprint):
            write_rankings(found, run.rankings)
        print_rankings(found, classes, console)
        if missing:
            lists = format_count(sum(map(len, missing.values())), "list")
            say(f"missing: {lists}; `rankshot rank --follow-up` asks for them again", console)
    warn_of_classes_without_ranking(found, classes, console)


def _score(plan: ScoringPlan, listed: InputParts, run: RunFolder) -> None:
    """Write the scores of all inputs, unless they are there, and print how many."""
    from rankshot.jobs.score_parts import score_inputs

    with show_parts("scoring") as show:
        scored = score_inputs(
            plan,
            listed,
            run.scores,
            on_error="skip",
            update=True,
            progress=show,
            notify=say,
        )
    if scored.failed:
        raise RankshotError(scored.failed[0][1])
    n_inputs = format_count(scored.n_rows, "input")
    if not scored.n_done:
        say(f"scores: those of {n_inputs} in {run.scores}, from an earlier run")
    else:
        n_kept = scored.n_rows - scored.n_new_rows
        kept = f", {n_kept:,} of them by an earlier run" if n_kept else ""
        n_skipped = scored.count_reasons().total()
        say(f"scores: {n_inputs} scored{kept}, {n_skipped:,} skipped")
    print_skipped(scored, run.scores / "_skipped.csv")


# ---- What is printed


def _print_end(run: RunFolder, rankings: Path, model: str) -> None:
    """Print what is kept, and the commands that one may want next."""
    from rankshot.zeroshot.files.score_tables import open_scores

    made = [run.rankings.name] if rankings == run.rankings else []
    names = ", ".join([run.scores.name, *made, run.head.name])
    say(f"kept in {run.path}: {names}; a run with other new classes uses the scores again")
    first, *_ = read_first_ids(open_scores(run.scores), 1)
    explain = ["explain", run.scores, "--head", run.head, "--id", first]
    export = ["export", run.head, "-o", "head.onnx"]
    if model.endswith(".onnx"):
        export = ["export", run.head, "--attach", model, "-o", "zero-shot.onnx"]
    say("to see why an input got its class, and to use the new classes elsewhere:")
    for words in (explain, export):
        say(f"  rankshot {shlex.join(map(str, words))}")
