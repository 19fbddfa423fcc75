"""``rankshot recognise``: from a model and a folder of images, or texts, to new classes."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from rankshot import __version__, core, ranking, recognition, sources, zeroshot
from rankshot.cli.classes import ClassLists, list_label_files, match_seen, read_class_lists
from rankshot.cli.classify import Batch, check_rejection, write_decisions
from rankshot.cli.console import check_folder, check_output, refuse, say, show_parts
from rankshot.cli.heads import (
    WORDS,
    HeadOptions,
    ScoreType,
    add_evidence,
    read_examples,
    read_labels,
    read_rankings_of,
    save_head,
)
from rankshot.cli.rank import (
    DEFAULT_SOURCE,
    list_files,
    print_rankings,
    print_warnings,
    rank_by_sources,
    read_sources,
    require_known,
    write_follow_ups,
    write_prompts,
)
from rankshot.cli.score import open_plan, print_check, print_features, print_skipped
from rankshot.core.errors import RankshotError, format_count, quote_names
from rankshot.core.files import lock_folder, remove_leftovers, replace_file
from rankshot.sources.registry import ANSWERS, Spec

if TYPE_CHECKING:
    from rankshot.recognition.score_parts import InputParts
    from rankshot.recognition.scoring import ScoringPlan
    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.scores import Kind

ENDING = ".rankshot-run"
FORMAT = "rankshot cache 4"
MANIFEST, LABELLED = "cache.json", "labelled"
MAX_TOKENS = 16_000
"""Of a prompt and its answer. A prompt about 40 classes and the 1,000 of ImageNet is one file."""
SCORE_TYPES: dict[Kind, ScoreType] = {
    "multiclass": "logits",
    "one-vs-rest": "one-vs-rest-logits",
    "one-vs-one": "one-vs-one",
}
"""What a model's scores are: probabilities have become logarithms."""


def recognise(
    inputs: Path,
    *,
    model: str,
    output: Path,
    options: Annotated[HeadOptions, "rankings classes examples evidence"],
    new: str | None = None,
    source: list[str] | None = None,
    seen: str | None = None,
    names: Path | None = None,
    preprocessing: str | None = None,
    rehearse: Path | None = None,
    batch: Batch = "auto",
    reject_below: float | None = None,
    yes: bool = False,
    folder: Path | None = None,
) -> None:
    """Recognise new classes in images or texts with your own model.

    This combines `rankshot score`, `rank`, `rehearse`, `fit` and `classify`. It uses whatever files
    you give, and prints each choice with its reason. Results are kept in a folder: an interrupted
    run continues when the same command is run again, only new inputs are scored, and a run with
    other new classes reuses the scores.

    Example: rankshot recognise photos/ --model efficientnet-lite0 --new "okapi, menorah, pagoda"
    -o predictions.csv

    Example: rankshot recognise photos/ --model network.onnx --new new.txt --rehearse seen-photos/
    -o predictions.csv

    Parameters
    ----------
    inputs
        A folder of images (subfolders included), an image, a list of paths or texts (.txt, one per
        line), or a table with a column text or path, and optionally id (.csv, .jsonl). If there is
        only one column besides id, it may have any name.
    output
        The predictions to write (.csv, .parquet).
    examples
        The classes of some of the inputs: a table with columns id and label, as `rankshot suggest`
        writes it; or scores of other inputs, with a column label (.csv, .parquet).
    evidence : <file or words>
        Another model's scores for the new classes: a table with one column per new class and the
        ids of the inputs (.csv, .parquet). For texts, `words` compares their words with the
        names of the classes; no file is needed.
    new : <names or file>
        The new classes: names separated by commas, or a file with one name per line. With
        --rankings, only the rankings of these classes are used.
    source : <source>
        Where the rankings of the model's classes come from, as for `rankshot rank`; may be
        repeated: wordnet, glove, answers:FOLDER, llm:MODEL and others. The default is the answers
        to the prompts in the folder of the run, if there are any, and otherwise wordnet.
    rehearse : <folder or table>
        Labelled inputs of seen classes that were not used for training: a folder with one
        subfolder of images per class, or a table with a column label and a column text, path or id
        (.csv, .parquet). Their classes are held out to choose settings, to calibrate the
        probabilities and to predict the accuracy; the inputs are also the reference.
    folder
        Where scores, rankings, prompts and the fitted head are kept for the next run. The default
        is next to the output, named after the inputs, such as photos.rankshot-run.
    """
    from rankshot.recognition.score_parts import list_inputs
    from rankshot.zeroshot.files.score_tables import ScoreTable

    refuse(
        options.rankings is None and new is None,
        'give the new classes, such as --new "okapi, menorah, pagoda", or --rankings FILE',
    )
    refuse(
        options.rankings and (source or names),
        "--rankings FILE replaces --source and --names: leave these out",
    )
    refuse(
        options.needs_reference and rehearse is None,
        "--classes all-or-none needs inputs of the model's own classes, --rehearse FOLDER; "
        "--classes new-or-none does not",
    )
    check_rejection(reject_below)
    run = RunFolder(folder or output.parent / f"{inputs.resolve().name}{ENDING}", output)
    specs = read_sources(source or run.default_sources)
    files = [names, rehearse, *list_label_files(seen, new), *list_files(specs)]
    _check_places(inputs, output, run.path, [*options.files.values(), *files])
    given = options.rankings
    options = replace(options, rankings=run.rankings if new is not None else given)
    plan = open_plan(model, seen, preprocessing)
    listed = list_inputs(plan, inputs, keep=run.scores)
    _check_evidence(options, plan, listed)
    labelled = None if rehearse is None else _read_labelled(rehearse, plan, inputs)
    about = None if new is None else read_class_lists(plan.classes, new, names)
    with run.open(plan):
        # Before the scores, which may take long: what is wrong with the classes is said at once.
        if about is not None and given is not None:
            _choose_rankings(given, about, run)
        elif about is not None:
            _rank(about, labelled, specs, run, plan, yes=yes, is_default=source is None)
        columns = ScoreTable.without_rows(run.scores, plan.classes.names, plan.model.kind)
        rankings = read_rankings_of(cast("Path", options.rankings), columns)
        table = _score(plan, listed, run.scores)
        seen_inputs = None if labelled is None else _score_labelled(plan, *labelled, run)
        options = _make_evidence(options, inputs, run)
        table = add_evidence(table, options.evidence)
        examples: object = options.examples
        if options.examples and core.ID not in core.read_columns(options.examples)[0]:
            examples, _ = read_examples(options.examples, table, "auto", rankings.target_names)
        ids, scores = table.read()
        found = recognition.recognise(
            _as_inputs(ids, scores, plan, inputs, are_tables=listed.are_tables),
            rankings,
            reference=seen_inputs,
            examples=examples,
            classes=options.settings.classes,
            none=options.settings.none,
            batch={"yes": True, "no": False}.get(batch, "auto"),
        )
        for note in found.notes:
            say(note)
        check_rejection(reject_below, found.head.classes_)
        save_head(found.head, run.head, options, table.score_type, predicted=found.predicted)
        remove_leftovers(output.resolve().parent, output.name)
    # Before the predictions: if they are there, the run is complete.
    found.save(run.path)
    write_decisions(ids, found.head, found.proba, output, reject_below)
    how = [] if preprocessing is None else ["--preprocessing", preprocessing]
    _print_end(run, ids[0], options, [model, *how], made=about is not None)


# ---- What is given


def _check_places(inputs: Path, output: Path, folder: Path, files: list[Path | None]) -> None:
    """Refuse inputs that are not there, and outputs that cannot be written or change the inputs."""
    check_output(output, core.TABLE_ENDINGS, inputs, *files)
    refuse(not inputs.exists(), f"{inputs}: no such file or folder")
    for path in (output, folder):
        inside = f"{path}: is inside the folder of the inputs; write to"
        refuse(path.resolve().is_relative_to(inputs.resolve()), f"{inside} another folder")


def _read_labelled(path: Path, plan: ScoringPlan, inputs: Path) -> tuple[list[object], list[str]]:
    """Return labelled inputs of seen classes, paths or texts, and their classes."""
    from rankshot.recognition.inputs import INPUT_COLUMNS, Input, open_inputs
    from rankshot.sources.wordnet import suggest_class

    takes = plan.model.takes
    if path.is_dir():
        found = [one for one in open_inputs(path, takes) if isinstance(one, Input)]
        pairs = [(one.value, one.value.parent.name) for one in found]
    else:
        column = INPUT_COLUMNS.get(takes, core.ID)
        if takes == "images" and column not in core.read_columns(path)[0]:
            column = core.ID
        texts, names = core.read_table(path, [column, core.LABEL]).texts
        place = inputs if column == core.ID else path.parent
        values = [place / text if takes == "images" else text for text in texts]
        pairs = [pair for pair in zip(values, map(str.strip, names), strict=True) if pair[1]]
    refuse(not pairs, f"--rehearse {path}: no input in it has a label")
    meant = match_seen(dict.fromkeys(name for _, name in pairs), plan.classes)
    if unknown := [name for name, seen in meant.items() if seen not in plan.classes.names]:
        raise RankshotError(
            f"--rehearse {path}: the model has no class {quote_names(unknown)}"
            f"{suggest_class(unknown[0], plan.classes.names)}; give inputs of new classes to "
            "--examples"
        )
    return [value for value, _ in pairs], [meant[name] for _, name in pairs]


def _check_evidence(options: HeadOptions, plan: ScoringPlan, listed: InputParts) -> None:
    """Refuse what is wrong with examples and evidence before the scores, which may take long."""
    if options.examples is not None:
        core.read_table(options.examples, [core.LABEL])
    if options.evidence is not None and options.evidence != WORDS:
        zeroshot.open_scores(options.evidence)
    refuse(
        options.evidence == WORDS and (plan.model.takes != "texts" or listed.are_tables),
        f"--evidence words needs one file of texts, whose words it compares with the names of "
        f"classes; {listed.name} is not one",
    )


# ---- What is done


def _make_evidence(options: HeadOptions, inputs: Path, run: RunFolder) -> HeadOptions:
    """Compare the words of texts and classes, if this is wanted, and keep the result as a table."""
    from rankshot.recognition.inputs import Input, open_inputs
    from rankshot.zeroshot.files.score_tables import write_score_table

    if options.evidence != WORDS:
        return options
    texts = {one.id: one.value for one in open_inputs(inputs, "texts") if isinstance(one, Input)}
    classes = {*ranking.read_rankings(cast("Path", options.rankings)).target_names}
    if options.examples is not None:
        classes |= {label.name for label in read_labels(options.examples).values()}
    found = zeroshot.word_evidence(list(texts.values()), sorted(classes))
    write_score_table(run.evidence, found.items, [(list(texts), found)])
    return replace(options, evidence=run.evidence)


def _choose_rankings(path: Path, classes: ClassLists, run: RunFolder) -> None:
    """Keep the rankings of the wanted classes, and those of seen classes, which are rehearsed."""
    import numpy as np

    from rankshot.recognition.model import fingerprint, fingerprint_files
    from rankshot.sources.wordnet import suggest_class

    found = ranking.read_rankings(path)
    if missing := [name for name in classes.targets if name not in found.target_names]:
        ranked = found.target_names
        raise RankshotError(
            f"{path}: no ranking of {quote_names(missing)}{suggest_class(missing[0], ranked)}; it "
            f"has {quote_names(ranked)}"
        )
    wanted = {*classes.targets, *classes.items}
    made_from = fingerprint([fingerprint_files([path]), classes.targets])
    with run.replace_rankings(made_from):
        part = found[np.array([target in wanted for target in found.targets])]
        ranking.write_rankings(part, run.rankings)


def _rank(
    classes: ClassLists,
    labelled: tuple[list[object], list[str]] | None,
    specs: list[Spec],
    run: RunFolder,
    plan: ScoringPlan,
    *,
    yes: bool,
    is_default: bool,
) -> None:
    """Write the rankings of new and held-out classes, unless they are there; print the first."""
    import numpy as np

    from rankshot.recognition.model import fingerprint, fingerprint_files
    from rankshot.zeroshot.class_rankings import only_new, source_names

    held_out = () if labelled is None else tuple(sorted({*labelled[1]}))
    question = {"texts": "text", "images": "images"}.get(plan.model.takes, "any")
    known = [classes.targets, held_out, classes.items, classes.words, dict(classes.synsets)]
    files = []
    for path in list_files(specs):
        files += sorted(path.iterdir()) if path.is_dir() else [path]
    content = fingerprint_files(path for path in files if path.is_file())
    made_from = fingerprint([content, __version__, list(map(str, specs)), known, question])
    # Together: answers are read as lists of all classes that were asked for.
    everything = replace(classes, targets=classes.targets + held_out)
    has_answers = any(spec.name == ANSWERS for spec in specs)
    if is_default and not has_answers:
        _write_prompts(everything, run, question)
    if run.has_rankings(made_from):
        say(f"rankings: those in {run.rankings}, from an earlier run")
        found = ranking.read_rankings(run.rankings, items=classes.items)
    else:
        open_model = partial(sources.LanguageModel, log=run.answers, question=question)
        found, _, missing = rank_by_sources(
            specs,
            everything,
            open_model,
            yes=yes,
            skip_unknown=True,
            # Names in another language are ranked by the answers alone.
            optional=[DEFAULT_SOURCE] if is_default and has_answers else [],
        )
        require_known(found, classes, missing)
        with run.replace_rankings(made_from):
            ranking.write_rankings(found, run.rankings)
        print_rankings(found, classes)
        if held_out:
            ranked = {target for target in found.target_names if target in held_out}
            of_them = found[np.array([target in ranked for target in found.targets])]
            by = f" (by {quote_names(filter(None, source_names(of_them)))})" if ranked else ""
            n = f"{len(ranked):,} of the {len(held_out):,}"
            say(f"rankings of {n} labelled classes as well{by}")
        if missing:
            asked = {"question": question, "inputs": None}
            say(write_follow_ups(missing, everything, run.follow_ups, asked))
    print_warnings(only_new(found), classes)


def _write_prompts(classes: ClassLists, run: RunFolder, question: str) -> None:
    """Write prompts for a language model, and print how better rankings are had in two minutes."""
    command = shlex.join(["rankshot", *sys.argv[1:]])
    names, _ = write_prompts(
        classes, run.prompts, command, overwrite=True, question=question, max_tokens=MAX_TOKENS
    )
    say(
        "rankings: from WordNet, because there are no answers from a language model yet. To "
        f"improve them, paste {run.prompts / names[0]} into any chat window, save the answer as "
        f"{run.prompts / ANSWERS / names[0]}, and run the same command again (answers to all "
        f"{format_count(len(names), 'prompt')} there help further)"
    )


def _score(
    plan: ScoringPlan, listed: InputParts, output: Path, labels: dict[str, str] | None = None
) -> ScoreTable:
    """Write the scores of all inputs, unless they are there; print how many, and return them."""
    with show_parts("scoring") as show:
        scored = recognition.write_scores(plan, listed, output, on_error="skip", progress=show)
    for _, reason in scored.failed:
        raise RankshotError(reason)
    n_inputs = format_count(scored.n_rows, "input")
    if not scored.n_done:
        say(f"scores: those of {n_inputs} in {output}, from an earlier run")
    else:
        n_kept = scored.n_rows - scored.n_new_rows
        kept = f", {n_kept:,} of them by an earlier run" if n_kept else ""
        n_skipped = scored.count_reasons().total()
        say(f"scores: {n_inputs} scored{kept}, {n_skipped:,} skipped")
    print_skipped(scored, output / "_skipped.csv")
    table = zeroshot.open_scores(output).keep()
    if scored.n_done or labels:
        # The notes of `recognise` have the doubts about its inputs.
        print_check(table, labels, doubts=labels is not None)
    if scored.n_done and plan.features:
        print_features(table)
    return replace(table, score_type=SCORE_TYPES[table.kind])


def _as_inputs(
    ids: list[str], scores: zeroshot.Scores, plan: ScoringPlan, inputs: Path, *, are_tables: bool
) -> recognition.ScoredInputs:
    """Return scores with what they are of, for the page of a review."""
    import numpy as np

    from rankshot.recognition.inputs import open_inputs
    from rankshot.recognition.scoring import list_values

    values = None
    if not are_tables:
        values = list_values(open_inputs(inputs, plan.model.takes), ids)
    names = np.array(ids, object)
    return recognition.ScoredInputs(scores, names, (), plan.classes, values, inputs, plan.about)


def _score_labelled(
    plan: ScoringPlan, values: list[object], labels: list[str], run: RunFolder
) -> tuple[zeroshot.Scores, list[str]]:
    """Return the scores of labelled inputs of seen classes, and their classes."""
    from rankshot.recognition.score_parts import list_inputs

    # The ids of a list are its paths or numbers.
    ids = [str(value) if isinstance(value, Path) else str(i) for i, value in enumerate(values)]
    label_of = dict(zip(ids, labels, strict=True))
    with replace_file(run.labelled.with_suffix(".csv")) as stream:
        core.open_csv_writer(stream).writerows([(core.ID, core.LABEL), *label_of.items()])
    listed = list_inputs(plan, values, keep=run.labelled)
    ids, scores = _score(plan, listed, run.labelled, label_of).read()
    return scores, [label_of[id_] for id_ in ids]


# ---- What is printed


def _print_end(
    run: RunFolder, first: str, options: HeadOptions, network: list[str], *, made: bool
) -> None:
    """Print what is kept, and the commands that one may want next."""
    rankings = [run.rankings.name] if made else []
    names = ", ".join([run.scores.name, *rankings, run.head.name])
    say(f"kept in {run.path}: {names}; a run with other new classes uses the scores again")
    evidence = [] if options.evidence is None else ["--evidence", options.evidence]
    using = [run.scores, "--head", run.head, *evidence]
    explain = ["explain", *using, "--id", first]
    suggest = ["suggest", *using, "-o", "labels.csv"]
    export = ["export", run.head, "-o", "head.onnx"]
    if network[0].endswith(".onnx"):
        export = ["export", run.head, "--attach", *network, "-o", "zero-shot.onnx"]
    page = ["report", run.path, "-o", "report.html"]
    say("next, you can check and correct the predictions on a page, write a report, see what helps")
    say("most, explain a prediction, choose inputs to label, or use the head elsewhere:")
    for words in (["review", run.path], page, ["doctor", run.path], explain, suggest, export):
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
        self.labelled = path / LABELLED
        self.prompts = path / f"{output.stem}.prompts"
        self.follow_ups = path / f"{output.stem}.follow-up"
        self.evidence = path / f"{output.stem}.evidence.parquet"
        self._made: dict[str, str] = {}

    @property
    def default_sources(self) -> list[str]:
        """The answers of a language model, if there are any, and WordNet."""
        answers = self.prompts / ANSWERS
        there = answers.is_dir() and any(answers.glob("*.txt"))
        return [*([f"{ANSWERS}:{answers}"] if there else []), DEFAULT_SOURCE]

    @contextmanager
    def open(self, plan: ScoringPlan) -> Iterator[None]:
        """Create the folder, or use one of the same model; no other process can use it then."""
        check_folder(self.path)
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        with lock_folder(self.path, "wait until that has ended, or give another --folder"):
            self._begin(plan)
            try:
                yield
            except BaseException:
                if is_new and [path.name for path in self.path.iterdir()] == [MANIFEST]:
                    shutil.rmtree(self.path)
                raise

    def has_rankings(self, fingerprint: str) -> bool:
        """Tell whether the rankings are there that the fingerprint describes."""
        return self.rankings.is_file() and self._made.get(self.rankings.name) == fingerprint

    @contextmanager
    def replace_rankings(self, fingerprint: str) -> Iterator[None]:
        """Record the fingerprint of rankings that the block writes.

        The old one is removed before: if the process is killed in between, the rankings are
        those of no run, and are made again. The former rankings, which may have been corrected by
        hand, are kept beside.
        """
        name = self.rankings.name
        if self._made.pop(name, None) and self.rankings.is_file():
            self.rankings.replace(self.rankings.with_suffix(".before.jsonl"))
        self._write()
        yield
        self._made[name] = fingerprint
        self._write()

    def _begin(self, plan: ScoringPlan) -> None:
        """Read the manifest, or write a new one; refuse what is not from the same model."""
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
        try:
            _require_same_plan(self.scores, plan)
        except RankshotError as error:
            raise RankshotError(f"{error}; give another --folder, or remove this one") from None
        self._write()

    def _write(self) -> None:
        kept = {"format": FORMAT, "rankings": self._made, "command": sys.argv[1:]}
        with replace_file(self.path / MANIFEST) as stream:
            json.dump(kept, stream, indent=1)


def _require_same_plan(folder: Path, plan: ScoringPlan) -> None:
    """Refuse a folder of parts that are the scores of another model."""
    from rankshot.jobs import SETTINGS, list_outputs

    kept = [json.loads(footer[SETTINGS]) for footer in list_outputs(folder).values()]
    for what, now in plan.identity.items():
        if kept and kept[0].get(what) != now:
            if what == "features":
                raise RankshotError(f"{folder}: has scores {'without' if now else 'with'} features")
            name = what if what == "model" else f"model, with other {what}"
            raise RankshotError(f"{folder}: has the scores of another {name}")
