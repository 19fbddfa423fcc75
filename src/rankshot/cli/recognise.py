"""``rankshot recognise``: from a model and a folder of pictures, or texts, to new classes."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from rankshot.cli.classes import ClassLists, list_label_files, read_class_lists
from rankshot.cli.classify import classify_table
from rankshot.cli.console import check_folder, check_writable, refuse, say, show_parts
from rankshot.cli.examples import WORDS, read_labels
from rankshot.cli.fit import save_head
from rankshot.cli.heads import HeadOptions, fit_head, open_table
from rankshot.cli.rank import (
    check_specs,
    list_files,
    parse_senses,
    print_rankings,
    print_warnings,
    rank_by_sources,
)
from rankshot.cli.score import open_plan, print_skipped
from rankshot.cli.score_inputs import ScoreType, read_first_ids
from rankshot.core.errors import RankshotError, format_count

if TYPE_CHECKING:
    from rankshot.inference.scoring import ScoringPlan
    from rankshot.jobs.score_parts import InputParts
    from rankshot.zeroshot.scores import Kind

ENDING = ".rankshot-run"
FORMAT = "rankshot run 2"
MANIFEST = "run.json"
OWN_FILES = (MANIFEST, "scores", "*.rankings.jsonl", "*.evidence.npz", "*.rankshot")
"""What --again removes. The answers of a language model, which cost money, stay."""
SCORE_TYPES: dict[Kind, ScoreType] = {
    "multiclass": ScoreType.LOGITS,
    "one-vs-rest": ScoreType.ONE_VS_REST_LOGITS,
    "one-vs-one": ScoreType.ONE_VS_ONE,
}
"""What a model's scores are: probabilities have become logarithms."""


def recognise(
    inputs: Path,
    *,
    model: str,
    output: Path,
    options: Annotated[HeadOptions, "rankings settings reference classes examples evidence"],
    new: str | None = None,
    source: list[str] | None = None,
    seen: str | None = None,
    names: Path | None = None,
    preprocessing: str | None = None,
    yes: bool = False,
    folder: Path | None = None,
    again: bool = False,
) -> None:
    """Recognise new classes in pictures or texts with a model that was not trained on them.

    This is `rankshot score`, `rank`, `fit` and `classify` in one go. What they make is kept in a
    folder: a run that was stopped goes on when the same command is given again, and a run with
    other new classes uses the same scores.

    Example: rankshot recognise photos/ --model efficientnet-lite0 --new "okapi, menorah, pagoda"
    -o predictions.csv

    Parameters
    ----------
    inputs
        A folder of pictures (with all its folders), a picture, a list of paths or texts (.txt, one
        per line), or a table with a column text, or path, and optionally id (.csv, .jsonl). In a
        table with a single column besides id, this column may have any name.
    output
        The predictions to write (.csv, .parquet).
    examples
        The classes of some of the inputs: a table with columns id and label, as `rankshot suggest`
        writes it; or scores of other inputs, with a column label (.csv, .parquet).
    evidence : <file or words>
        What another model says about the new classes: a table with one column per new class and the
        ids of the inputs (.csv, .parquet, .npz). For texts, `words` compares their words with the
        names of the classes, which needs nothing else.
    new : <names or file>
        The new classes: names separated by commas, or a file with one name per line.
    source : <source>
        Where the rankings of the model's classes come from, as for `rankshot rank`; may be
        repeated: wordnet, glove, answers:FOLDER, llm:MODEL and others. The default is wordnet,
        which needs nothing else.
    folder
        Where scores, rankings and the fitted head are kept for the next run. The default is beside
        the output and named after the inputs, such as photos.rankshot-run.
    again
        Start afresh: remove what is kept, except the answers of a language model.
    """
    from rankshot.core.files import remove_leftovers
    from rankshot.jobs.score_parts import list_inputs
    from rankshot.zeroshot.files.score_tables import ScoreTable, open_scores

    specs = source or ["wordnet"]
    refuse(
        options.rankings is None and new is None,
        'give the new classes, such as --new "okapi, menorah, pagoda", or --rankings FILE',
    )
    refuse(
        options.rankings and (new or source or names),
        "--rankings FILE has the new classes and what is known of them: leave out --new, "
        "--source and --names",
    )
    check_specs(specs)
    run = RunFolder(folder or output.parent / f"{inputs.resolve().name}{ENDING}", output)
    files = [*options.files, names, *list_label_files(seen, new), *list_files(specs)]
    _check_places(inputs, output, run.path, files, again=again)
    if options.rankings is None:
        options = replace(options, rankings=run.rankings)
    plan = open_plan(model, seen, preprocessing)
    listed = list_inputs(plan, inputs)
    if options.reference is not None:
        _check_reference(options.reference)
    _check_evidence(options, plan, listed)
    about = None if new is None else read_class_lists(plan.classes, new, names)
    with run.open(plan, again=again):
        # Before the scores, which may take long: what is wrong with the classes is said at once.
        if about is not None:
            _rank(about, specs, run, plan, yes=yes, is_default=source is None)
        kind = plan.model.kind
        table = ScoreTable(run.scores, plan.classes.names, kind, True, 0, 1)  # noqa: FBT003
        needs_scores = options.examples is not None or options.evidence is not None
        if needs_scores:
            _score(plan, listed, run)
            options = _make_evidence(options, inputs, run)
            table = open_table(run.scores, options)
        head, score_type = fit_head(table, SCORE_TYPES[kind], options)
        save_head(head, run.head, options, score_type)
        if not needs_scores:
            _score(plan, listed, run)
            table = open_scores(run.scores)
        remove_leftovers(output.resolve().parent, output.name)
        classify_table(table, head, score_type, output)
        _print_end(run, options, made=about is not None, model=model)


# ---- What is given


def _check_places(
    inputs: Path, output: Path, folder: Path, files: list[Path | None], *, again: bool
) -> None:
    """Refuse inputs that are not there, and outputs that cannot be written or change the inputs."""
    from rankshot.core.files import require_ending
    from rankshot.core.tables import TABLE_ENDINGS

    require_ending(output, TABLE_ENDINGS)
    check_writable(output, inputs, *files)
    refuse(not inputs.exists(), f"{inputs}: there is no such file or folder")
    for path in (output, folder):
        inside = f"{path}: is in the folder of the inputs, which would change with it; write to"
        refuse(path.resolve().is_relative_to(inputs.resolve()), f"{inside} another folder")
    for given in filter(None, files if again else ()):
        removed = f"{given}: --again would remove it; copy it to another folder"
        refuse(given.resolve().is_relative_to(folder.resolve()), removed)


def _check_reference(path: Path) -> None:
    from rankshot.zeroshot.files.score_tables import PROBABILITIES, guess_score_type, open_scores

    table = open_scores(path)
    if guess_score_type(next(table.batches())[1].values, table) == PROBABILITIES:
        raise RankshotError(
            f"{path}: has probabilities, and the scores to classify are logits; make the "
            "reference with `rankshot score`, from inputs of the model's own classes"
        )


def _check_evidence(options: HeadOptions, plan: ScoringPlan, listed: InputParts) -> None:
    """Refuse what is wrong with examples and evidence before the scores, which may take long."""
    from rankshot.core.tables import LABEL, read_table
    from rankshot.zeroshot.files.score_tables import open_scores

    if options.examples is not None:
        read_table(options.examples, [LABEL])
    if options.evidence is not None and options.evidence != WORDS:
        open_scores(options.evidence)
    refuse(
        options.evidence == WORDS and (plan.model.takes != "texts" or listed.are_tables),
        f"--evidence words: {listed.name} is not one file of texts, whose words could be compared "
        "with the names of the classes",
    )


# ---- What is done


def _make_evidence(options: HeadOptions, inputs: Path, run: RunFolder) -> HeadOptions:
    """Compare the words of texts and classes, if this is wanted, and keep the result as a table."""
    from rankshot.inference.inputs import Input, open_inputs
    from rankshot.ranking import read_rankings
    from rankshot.zeroshot.evidence import word_evidence
    from rankshot.zeroshot.files.score_tables import write_score_table

    if options.evidence != WORDS:
        return options
    texts = {one.id: one.value for one in open_inputs(inputs, "texts") if isinstance(one, Input)}
    classes = {*read_rankings(cast("Path", options.rankings)).target_names}
    if options.examples is not None:
        classes |= {label.name for label in read_labels(options.examples).values()}
    found = word_evidence(list(texts.values()), sorted(classes))
    write_score_table(run.evidence, found.items, lambda: [(list(texts), found.values)])
    return replace(options, evidence=run.evidence)


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
    from rankshot import __version__
    from rankshot.inference.model import fingerprint_files
    from rankshot.jobs.part_jobs import fingerprint
    from rankshot.ranking import read_rankings, write_rankings
    from rankshot.sources import LanguageModel

    question = "text" if plan.model.takes == "texts" else "images"
    known = [classes.targets, classes.items, classes.words, dict(classes.synsets)]
    files = []
    for path in list_files(specs):
        files += sorted(path.iterdir()) if path.is_dir() else [path]
    content = fingerprint_files(path for path in files if path.is_file())
    made_from = fingerprint([content, __version__, specs, known, question])
    if run.has_rankings(made_from):
        say(f"rankings: those in {run.rankings}, from an earlier run (--again makes them anew)")
        found = read_rankings(run.rankings, items=classes.items)
    else:
        if is_default:
            say(
                "rankings: from WordNet, the default, which needs nothing else; the answers of a "
                "language model are usually better (see `rankshot ask`)"
            )
        open_model = partial(LanguageModel, log=run.answers, question=question)
        senses = parse_senses(classes, [])
        found, _, missing = rank_by_sources(specs, classes, senses, open_model, yes=yes)
        with run.replace_rankings(made_from):
            write_rankings(found, run.rankings)
        print_rankings(found, classes)
        if missing:
            lists = format_count(sum(map(len, missing.values())), "list")
            say(f"missing: {lists}; `rankshot rank --follow-up` asks for them again")
    print_warnings(found, classes)


def _score(plan: ScoringPlan, listed: InputParts, run: RunFolder) -> None:
    """Write the scores of all inputs, unless they are there, and print how many."""
    from rankshot.jobs import score as score_parts

    with show_parts("scoring") as show:
        scored = score_parts(
            plan, listed, run.scores, on_error="skip", update=True, progress=show, notify=say
        )
    for _, reason in scored.failed:
        raise RankshotError(reason)
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


def _print_end(run: RunFolder, options: HeadOptions, *, made: bool, model: str) -> None:
    """Print what is kept, and the commands that one may want next."""
    from rankshot.zeroshot.files.score_tables import open_scores

    rankings = [run.rankings.name] if made else []
    names = ", ".join([run.scores.name, *rankings, run.head.name])
    say(f"kept in {run.path}: {names}; a run with other new classes uses the scores again")
    first, *_ = read_first_ids(open_scores(run.scores), 1)
    evidence = [] if options.evidence is None else ["--evidence", options.evidence]
    using = [run.scores, "--head", run.head, *evidence]
    explain = ["explain", *using, "--id", first]
    suggest = ["suggest", *using, "-o", "labels.csv"]
    export = ["export", run.head, "-o", "head.onnx"]
    if model.endswith(".onnx"):
        export = ["export", run.head, "--attach", model, "-o", "zero-shot.onnx"]
    say("to see why an input got its class, which ones to label, and to use the head elsewhere:")
    for words in (explain, suggest, export):
        say(f"  rankshot {shlex.join(map(str, words))}")


# ---- What is kept


class RunFolder:
    """What a run keeps, so that another run need not do it again; `open` creates the folder.

    The scores are a job's folder of parts, with its own manifest. The file ``run.json`` says from
    which new classes and sources the rankings are. A folder is used by one process at a time.
    """

    def __init__(self, path: Path, output: Path) -> None:
        self.path = path
        self.scores = path / "scores"
        self.rankings = path / f"{output.stem}.rankings.jsonl"
        self.head = path / f"{output.stem}.rankshot"
        self.answers = path / "answers.jsonl"
        self.evidence = path / f"{output.stem}.evidence.npz"
        self._made: dict[str, dict[str, str]] = {}

    @contextmanager
    def open(self, plan: ScoringPlan, *, again: bool) -> Iterator[None]:
        """Create the folder, or use one of the same model; no other process can use it then."""
        check_folder(self.path)
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        with _lock(self.path):
            self._begin(plan, again=again)
            try:
                yield
            except BaseException:
                if is_new and [path.name for path in self.path.iterdir()] == [MANIFEST]:
                    shutil.rmtree(self.path)
                raise

    def has_rankings(self, fingerprint: str) -> bool:
        """Tell whether the rankings are there that the fingerprint describes."""
        made = self._made.get(self.rankings.name, {})
        return self.rankings.is_file() and made.get("from") == fingerprint

    @contextmanager
    def replace_rankings(self, fingerprint: str) -> Iterator[None]:
        """Record the fingerprint of rankings that the block writes.

        The old one is removed before: if the process is killed in between, the rankings are
        those of no run, and are made again. Rankings that were corrected by hand are kept beside.
        """
        name = self.rankings.name
        self._keep_corrected(name)
        self._made.pop(name, None)
        self._write()
        yield
        self._made[name] = {"from": fingerprint, "written": _hash(self.rankings)}
        self._write()

    def _begin(self, plan: ScoringPlan, *, again: bool) -> None:
        """Read the manifest, or write a new one; refuse what is not from the same model."""
        from rankshot.core.files import remove_leftovers
        from rankshot.jobs.score_parts import require_same_plan

        remove_leftovers(self.path)
        manifest = self.path / MANIFEST
        if manifest.is_file():
            try:
                kept = json.loads(manifest.read_text(encoding="utf-8"))
                self._made = dict({kept["format"]: kept["rankings"]}[FORMAT])
            except (ValueError, KeyError, TypeError):
                raise RankshotError(
                    f"{manifest}: damaged, or written by another version of rankshot; give "
                    "another --folder"
                ) from None
        else:
            odd = f"{self.path}: is not empty, and not a folder of `rankshot recognise`; give"
            refuse(any(self.path.iterdir()), f"{odd} another --folder")
        if again:
            for name in self._made:
                self._keep_corrected(name)
            for pattern in OWN_FILES:
                for path in self.path.glob(pattern):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            self._made = {}
        try:
            require_same_plan(self.scores, plan)
        except RankshotError as error:
            raise RankshotError(f"{error}; give another --folder, or start with --again") from None
        self._write()

    def _keep_corrected(self, name: str) -> None:
        """Give rankings that are not as they were written another name, and say it."""
        rankings, made = self.path / name, self._made.get(name)
        if made is None or not rankings.is_file() or _hash(rankings) == made["written"]:
            return
        stem = name.removesuffix(".jsonl")
        names = (f"{stem}.corrected{f'-{n}' if n > 1 else ''}.jsonl" for n in count(1))
        copy = next(path for name in names if not (path := rankings.with_name(name)).exists())
        rankings.rename(copy)
        say(f"rankings: those in {rankings} were corrected by hand; they are kept as {copy}")

    def _write(self) -> None:
        from rankshot.core.files import replace_file

        with replace_file(self.path / MANIFEST) as stream:
            json.dump({"format": FORMAT, "rankings": self._made}, stream, indent=1)


def _hash(path: Path) -> str:
    from rankshot.inference.model import fingerprint_files

    return fingerprint_files([path])


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lock a folder; the lock of a process that ends, in whatever way, ends with it."""
    try:
        import fcntl
    except ImportError:  # Windows: one process at a time
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise RankshotError(
            f"{folder}: is in use by another run; wait until that has ended, or give another "
            "--folder"
        ) from None
    finally:
        os.close(handle)
