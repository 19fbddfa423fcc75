"""`HeadOptions`: the options of a head in a command, the tables that they name, and the fit.

The columns of a table of scores keep their names. Rankings, similarities, a reference and true
classes may spell them in another way. Exact names cost nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from rankshot import core, ranking, zeroshot
from rankshot.cli.console import refuse, say
from rankshot.core.errors import (
    RankshotError,
    UnknownItemError,
    format_count,
    prefix_errors,
    quote_names,
    short_repr,
)
from rankshot.core.files import require_ending

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankshot.core.tables import Batch
    from rankshot.zeroshot.files.score_tables import ScoreTable

DEFAULT_HEAD = "weighted-mean"
Classes = Literal["new", "new-or-none", "all", "all-or-none"]
"""What may be predicted."""
ScoreType = Literal[
    "auto",
    "logits",
    "probabilities",
    "one-vs-rest-logits",
    "one-vs-rest-probabilities",
    "one-vs-one",
]
"""What the numbers in a table of scores are: the choices of --score-type."""
WORDS = Path("words")
"""In place of a file of evidence: the words of texts and of the names of classes are compared."""
GUESS, PROBABILITY = "guess", "probability"
"""Columns of a table of examples, as `rankshot suggest` writes it, besides id and label."""
EXAMPLE_IDS = "example_ids"
"""The entry of what a saved head is from that has the ids of its examples."""
PREDICTED = "predicted mean accuracy of the new classes, with 95% interval"
"""The note in a file of settings, or in a saved head, that `rankshot report` reads."""


@dataclass(frozen=True)
class HeadOptions:
    """The settings of a head and the files that it is fitted to, checked before any is read.

    A saved head is ``fitted``, and ``saved`` is its file; the settings are those that it was
    fitted with. ``settings_file`` is that of a rehearsal.
    """

    settings: zeroshot.Settings
    rankings: Path | None = None
    reference: Path | None = None
    settings_file: Path | None = None
    examples: Path | None = None
    evidence: Path | None = None
    saved: Path | None = None
    fitted: zeroshot.LinearHead | zeroshot.SeenAndNew | None = None
    score_type: ScoreType = "auto"

    @classmethod
    def from_command(
        cls,
        *,
        rankings: Path | None = None,
        head: str = DEFAULT_HEAD,
        set: list[str] | None = None,  # noqa: A002
        settings: Path | None = None,
        reference: Path | None = None,
        classes: Classes = "new",
        examples: Path | None = None,
        evidence: Path | None = None,
        score_type: ScoreType = "auto",
    ) -> HeadOptions:
        """Return the options, with those in a file of settings or in a saved head.

        Parameters
        ----------
        rankings
            The rankings of the seen classes for each new class (.jsonl, .parquet), as written by
            `rankshot rank`.
        head : <FILE.rankshot>
            A head that `rankshot fit` has written, which replaces the other options of `fit`. The
            default is to fit one.
        set : <name=value>
            A setting of the head; may be repeated. {settings}
        settings
            The settings that `rankshot rehearse -o` wrote (.json), instead of --set.
            They include the weights of the sources.
        reference
            The scores of inputs of seen classes, several per class, with the same columns as the
            scores to classify (.csv, .parquet; read into memory). Scores are standardised by
            their mean and standard deviation over these inputs.
        classes
            What may be predicted: new classes only (new), or new and seen classes (all). With
            new-or-none and all-or-none, inputs that belong to none of these classes are labelled
            `none of these`; about a third of the inputs of new classes get this label by mistake.
            all-or-none needs a reference, and all is more accurate with one.
        examples
            Labelled inputs of new classes: a table with columns id and
            label, as `rankshot suggest` writes it, with ids that occur in the scores; or scores of
            other inputs, with a column label (.csv, .parquet). Empty labels are ignored.
        evidence
            Another model's scores for the new classes: one column per new class, with
            log-probabilities, probabilities, cosines or other scores, and the same ids
            as the scores (.csv, .parquet; read into memory). A head that was fitted with
            evidence needs it for each input.
        score_type
            What the scores are. With auto, the type is inferred from the first rows and printed.
        """
        given: dict[str, object] = {
            "rankings": rankings,
            "set": set,
            "settings": settings,
            "reference": reference,
            "examples": examples,
            "classes": classes != "new",
        }
        is_saved = head.endswith(".rankshot")
        twice = ", ".join(sorted(f"--{name}" for name, value in given.items() if value))
        refuse(
            is_saved and twice,
            f"{head}: is a fitted head, which includes these settings; leave out {twice}",
        )
        refuse(
            settings and set,
            f"{settings}: has the settings; leave out --set",
        )
        refuse(
            not is_saved and head != DEFAULT_HEAD,
            f"--head {head!r}: must be a saved head, whose name ends in .rankshot",
        )
        if is_saved:
            return cls._of_saved_head(Path(head), evidence, score_type)
        chosen = zeroshot.Settings() if settings is None else zeroshot.Settings.read(settings)
        chosen = replace(
            chosen,
            **cast("Any", zeroshot.Settings.parse(set or [])),
            classes="all" if classes.startswith("all") else "new",
            none=classes.endswith("none"),
            batch=False,
        )
        files = rankings, reference, settings, examples, evidence
        return cls(chosen, *files, score_type=score_type)

    @classmethod
    def _of_saved_head(
        cls, path: Path, evidence: Path | None, score_type: ScoreType
    ) -> HeadOptions:

        fitted = zeroshot.load_head(path)
        names = quote_names(fitted.inner.evidence)
        refuse(evidence and not names, f"{path}: was fitted without evidence; leave out --evidence")
        refuse(
            names and not evidence,
            f"{path}: was fitted with evidence: give that of the inputs, --evidence FILE with the "
            f"columns id, {names}",
        )
        settings = zeroshot.Settings.from_json(fitted.inner.about.get("settings", {}))
        return cls(settings, evidence=evidence, saved=path, fitted=fitted, score_type=score_type)

    @property
    def files(self) -> dict[str, Path]:
        """The files that are read, which no output may replace, by what they have."""
        given = {
            "rankings": self.rankings,
            "settings": self.settings_file,
            "reference": self.reference,
            "examples": self.examples,
            "evidence": self.evidence,
            "head": self.saved,
        }
        return {what: path for what, path in given.items() if path is not None}

    @property
    def needs_reference(self) -> bool:
        """Whether inputs of no class are to be told from those of seen classes."""
        return self.settings.none and self.settings.classes == "all"


# ---- The fit


def open_table(path: Path, options: HeadOptions) -> ScoreTable:
    """Open the scores of inputs, with the evidence that the options name."""
    return add_evidence(zeroshot.open_scores(path).keep(), options.evidence)


def fit_head(
    scores: ScoreTable, options: HeadOptions
) -> tuple[zeroshot.LinearHead | zeroshot.SeenAndNew, ScoreTable]:
    """Read the rankings of a table's classes and fit a head to them.

    The table is returned as well, with the type of its scores. A saved head is not fitted again.
    """
    from rankshot.zeroshot.remarks import describe_fit
    from rankshot.zeroshot.seen_and_new import NONE_OF_THESE

    if options.fitted is not None:
        return _check_scores(scores, options, options.fitted)
    if options.settings_file is not None:
        _check_rehearsed(options)
    refuse(
        options.needs_reference and options.reference is None,
        "--classes all-or-none needs --reference FILE: without the scores of inputs of seen "
        "classes, it is not known which scores are too low for all of them",
    )
    settings = options.settings
    if options.rankings is None:
        raise RankshotError("give --rankings FILE; `rankshot rank` writes one")
    rankings = read_new_rankings(options.rankings, scores)
    if settings.source_weights is not None:
        _check_sources(rankings, settings.source_weights, options.rankings)
    refuse(
        settings.none and NONE_OF_THESE in {*scores.items, *rankings.targets},
        f"--classes: a class is called {NONE_OF_THESE!r}; rename it",
    )
    reference, given, scores = read_more(options, scores, rankings)
    # The options are checked already, so an error is about the content of the files.
    with prefix_errors(*options.files.values()):
        known = zeroshot.Knowledge(rankings, reference, given.get("examples"), given.get("batch"))
        fitted = known.fit(settings)
    for remark in describe_fit(fitted, reference):
        say(remark)
    return fitted, scores


def read_more(
    options: HeadOptions, scores: ScoreTable, rankings: ranking.Rankings
) -> tuple[zeroshot.Scores | None, dict[str, Any], ScoreTable]:
    """Return the reference, what else a head is fitted to, and the table with its score type."""
    reference: zeroshot.Scores | None = None
    given: dict[str, object] = {}
    if options.reference is not None:
        reference, scores = _read_reference(options, scores)
    if options.examples is not None:
        given["examples"], scores = read_examples(
            options.examples, scores, options.score_type, {*map(str, rankings.targets)}
        )
    if scores.n_rows != 0:
        scores = infer_score_type(scores, options.score_type)
    if scores.evidence is not None:
        given["batch"] = scores.sample(features=options.examples is not None)
    return reference, given, scores


def _check_rehearsed(options: HeadOptions) -> None:
    """Refuse settings of a rehearsal that do not fit the other options."""
    settings = options.settings
    with prefix_errors(options.settings_file):
        refuse(
            settings.use_reference and options.reference is None,
            "the head was rehearsed with a reference: give --reference FILE, the scores of "
            "inputs of seen classes, for example those of the rehearsal",
        )
        refuse(
            settings.evidence_weight and options.evidence is None,
            "the head was rehearsed with evidence: give --evidence FILE, the scores of the same "
            "model for the new classes",
        )
    if options.reference is not None and not (settings.use_reference or settings.has_gate):
        say(
            f"{options.settings_file}: the rehearsal was without a reference, or not better with "
            "one, so --reference is not used"
        )


def _check_scores(
    scores: ScoreTable,
    options: HeadOptions,
    head: zeroshot.LinearHead | zeroshot.SeenAndNew,
) -> tuple[zeroshot.LinearHead | zeroshot.SeenAndNew, ScoreTable]:
    """Refuse scores that do not fit a saved head; return it for their columns, and the table."""
    from rankshot.zeroshot.files.score_tables import (
        AUTO,
        name_by_columns,
        require_score_type,
    )

    path, given = cast("Path", options.saved), options.score_type
    named, column_of = name_by_columns(head, scores, path)
    say_matched(column_of, scores, path)
    known = head.inner.about.get("score_type")
    if known is None:
        return named, infer_score_type(scores, given)
    require_score_type(next(scores.batches())[1].columns, scores, given, known, path)
    if given == AUTO:
        say(f"{scores.path}: the scores are interpreted as {known}, for which {path} was fitted")
    return named, replace(scores, score_type=known)


def _check_sources(rankings: ranking.Rankings, weights: Mapping[str, float], path: Path) -> None:
    """Warn of sources that the rehearsal used and that rank no new class."""
    from rankshot.zeroshot.class_rankings import quote_sources, source_names

    used = {source for source, weight in weights.items() if weight > 0}
    if missing := sorted(used - set(source_names(rankings))):
        say(
            f"{path}: warning: no rankings by {quote_sources(missing)}, which the "
            "rehearsal used: its settings may not fit the other sources alone"
        )


def save_head(
    model: zeroshot.LinearHead | zeroshot.SeenAndNew,
    output: Path,
    options: HeadOptions,
    score_type: str,
    predicted: zeroshot.metrics.Interval | None = None,
) -> None:
    """Write a head that was fitted with these options, and which files it is from."""
    provenance: dict[str, object] = {
        "files": {
            what: {"name": path.name, "sha256": _hash_file(path)}
            for what, path in options.files.items()
        }
    }
    if options.examples is not None:
        # A report does not test a head with what it was fitted to.
        provenance[EXAMPLE_IDS] = list_example_ids(options.examples)
    if score_type != "auto":
        provenance["score_type"] = score_type
    if options.settings_file is not None:
        provenance["notes"] = json.loads(options.settings_file.read_bytes()).get("notes", {})
    elif predicted is not None:
        provenance["notes"] = {PREDICTED: list(predicted)}
    model.save(output, provenance=provenance)


def _hash_file(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


# ---- Scores: their type, and the names of their columns


def infer_score_type(
    table: ScoreTable, given: ScoreType, values: NDArray[np.floating] | None = None
) -> ScoreTable:
    """Return a table with the type that was given or, for auto, that of the first rows; print it.

    ``values`` are the first rows, if they are not in the table.
    """
    from rankshot.zeroshot.files.score_tables import AUTO, LOGITS, guess_score_type

    if given != AUTO or table.score_type != AUTO:
        return table if given == AUTO else replace(table, score_type=given)
    if values is None:
        values = next(table.batches())[1].values
    score_type = guess_score_type(values, table)
    remark = "see --score-type"
    if score_type == LOGITS and values.min() >= 0 and values.max() <= 1:
        remark = (
            "although all are between 0 and 1: if they are probabilities whose rows do not add up "
            "to 1 because they were rounded, write more digits; if each is the probability of a "
            "separate yes-no question, give --score-type one-vs-rest-probabilities"
        )
    say(f"{table.path}: the scores are interpreted as {score_type} ({remark})")
    return replace(table, score_type=score_type)


def match_columns(
    names: Iterable[str], table: ScoreTable, where: Path, *, quiet: bool = False
) -> dict[str, str]:
    """Return the column that each name means, for names that are not columns; print an example.

    Names that mean no column, or several, are left out. ``where`` is the file of the names.
    """
    from rankshot.zeroshot.files.score_tables import find_columns

    found = find_columns(names, table, where)
    if not quiet:
        say_matched(found, table, where)
    return found


def say_matched(found: dict[str, str], table: ScoreTable, where: Path) -> None:
    """Print how many names were matched to columns of another spelling, and an example."""
    if found:
        name, column = next(iter(found.items()))
        say(
            f"{where}: {format_count(len(found), 'name')} matched to the columns of {table.path}, "
            f"for example {name!r} to {column!r}"
        )


def _read_reference(options: HeadOptions, scores: ScoreTable) -> tuple[zeroshot.Scores, ScoreTable]:
    """Read a reference into memory; it must have the score type of the scores to classify."""
    from rankshot.zeroshot.files.score_tables import rename_all

    path = cast("Path", options.reference)
    # What decides between seen and new classes needs the evidence of the reference as well.
    table = add_evidence(
        zeroshot.open_scores(path).keep(),
        options.evidence if options.settings.classes == "all" else None,
    )
    items = rename_all(table.items, match_columns(table.items, scores, path))
    different = quote_names(sorted(set(items) ^ set(scores.items)))
    refuse(
        different,
        f"{path}: a reference needs the columns of {scores.path}; only one of the two files "
        f"has {different}",
    )
    refuse(
        table.kind != scores.kind,
        f"{path}: has {table.kind} scores, but {scores.path} has {scores.kind} scores; a "
        "reference must have scores of the same kind",
    )
    if scores.n_rows != 0:
        scores = infer_score_type(scores, options.score_type)
    table = infer_score_type(table, options.score_type)
    own, other = scores.score_type, table.score_type
    refuse(
        own != other and scores.n_rows != 0,
        f"{path}: the scores look like {other}, and those of {scores.path} like {own}; both must "
        "be the same: give --score-type",
    )
    scores = replace(scores, score_type=other)
    return table.read()[1].rename(items), scores


# ---- Rankings


def read_new_rankings(path: Path, scores: ScoreTable) -> ranking.Rankings:
    """Read the rankings of new classes, and print what is left out or missing."""
    from rankshot.zeroshot.class_rankings import only_new, require_targets

    rankings = read_rankings_of(path, scores)
    with prefix_errors(path):
        new = only_new(require_targets(rankings))
    if seen := sorted(set(rankings.target_names) & set(scores.items)):
        say(f"{path}: rankings of {quote_names(seen)} are left out: they are seen classes")
    listed = set(rankings.codes.tolist())
    if unlisted := [item for i, item in enumerate(rankings.items) if i not in listed]:
        share = f"{len(unlisted):,} of {len(rankings.items):,} seen classes"
        say(f"{path}: no ranking has {share}: {quote_names(unlisted, 4)}")
    return new


def read_rankings_of(path: Path, table: ScoreTable, *, quiet: bool = False) -> ranking.Rankings:
    """Read rankings of the classes of a table of scores."""
    try:
        return ranking.read_rankings(path, items=table.items)
    except UnknownItemError as error:
        problem = error
    found = ranking.read_rankings(path)
    # A target that is not an item is a new class, even if a seen class has its name as a synonym.
    rankings = rename(found, match_columns(found.items, table, path, quiet=quiet))
    columns = f"items must be columns of {table.path}"
    if rankings is found:
        raise RankshotError(f"{problem}; {columns}") from None
    try:
        return rankings.change_items(table.items)
    except UnknownItemError as error:
        raise RankshotError(f"{path}: {error}; {columns}") from None


def rename(rankings: ranking.Rankings, column_of: dict[str, str]) -> ranking.Rankings:
    """Return rankings with other names of some items and targets."""
    from rankshot.zeroshot.files.score_tables import rename_all

    if not column_of:
        return rankings
    targets = [column_of.get(name, name) for name in rankings.targets]
    return replace(
        rankings, items=rename_all(rankings.items, column_of), targets=core.as_text_array(targets)
    )


# ---- Examples


class Label(NamedTuple):
    """The class of an example, and the file and row that say it."""

    name: str
    where: str


def read_labels(path: Path) -> dict[str, Label]:
    """Return the labels of inputs by id; rows that have none yet are left out."""
    table = core.read_table(path, [core.ID, core.LABEL])
    found: dict[str, Label] = {}
    for row, label in _filled_in(table, 1).items():
        name = table.texts[0][row]
        refuse(not name, f"{label.where}: the id is empty")
        before = found.setdefault(name, label)
        refuse(
            before.name != label.name,
            f"{label.where}: the input {short_repr(name)} is {label.name!r} here and "
            f"{before.name!r} in {before.where}; keep one of the two rows",
        )
    return found


def list_example_ids(path: Path) -> list[str]:
    """Return the ids of examples; none if the file has scores of its own and no ids."""
    return [*read_labels(path)] if core.ID in core.read_columns(path)[0] else []


def _filled_in(table: Batch, column: int) -> dict[int, Label]:
    """Return the labels of the rows that have one."""
    labels = {
        row: Label(text.strip(), table.where(row))
        for row, text in enumerate(table.texts[column])
        if text.strip()
    }
    refuse(
        not labels,
        f"{table.path}: no label is filled in; write the classes of some inputs into the column "
        f"{table.names[column]!r}",
    )
    return labels


def require_new(labels: Collection[Label], seen: Collection[str], ranked: Collection[str]) -> None:
    """Refuse labels that are seen classes, or look like misspelled names of new ones."""
    from rankshot.zeroshot.examples import require_example_label

    for label in labels:
        require_example_label(label.name, seen, ranked, label.where)
    if unranked := sorted({label.name for label in labels} - set(ranked)):
        say(f"examples: these classes have examples but no ranking: {quote_names(unranked)}")


def read_examples(
    path: Path, scores: ScoreTable, given: ScoreType, ranked: Collection[str]
) -> tuple[tuple[zeroshot.Scores, NDArray[np.str_]], ScoreTable]:
    """Return the scores and classes of examples, and the table with the type of its scores.

    The file names inputs of a table of scores by their ids, or has scores of its own.
    """
    import numpy as np

    from rankshot.zeroshot.files.score_tables import RULE, build_scores

    require_ending(path, core.TABLE_ENDINGS)
    columns = _find_own_scores(path, scores)
    if columns:
        batch = core.read_table(path, [core.LABEL], columns, rule=RULE)
        found = _filled_in(batch, 0)
        labels, rows = list(found.values()), list(found)
        table = replace(scores, path=path, evidence=None)
        table = infer_score_type(table, given, batch.numbers[rows])
        scores = replace(scores, score_type=table.score_type)
        raw = zeroshot.Scores.from_validated(batch.numbers[rows], scores.items, scores.kind)
        found_scores = build_scores(raw, table, rows)
    else:
        refuse(
            scores.n_rows == 0,
            f"{path}: has ids and no scores; give a table of the inputs' scores as --seen, or "
            "examples with the columns of scores and a column label",
        )
        by_id = read_labels(path)
        scores = infer_score_type(scores, given)
        place_of = scores.find(by_id, lambda name: f"{by_id[name].where}: ")
        labels = list(by_id.values())
        found_scores = zeroshot.Scores.concatenate([place_of[name] for name in by_id])
    require_new(labels, scores.items, ranked)
    return (found_scores, np.array([label.name for label in labels])), scores


def _find_own_scores(path: Path, scores: ScoreTable) -> list[str]:
    """Return the columns of a file that are the seen classes; none if it only has labels."""
    columns, _ = core.read_columns(path)
    core.find_column(columns, core.LABEL, path)
    others = [name for name in columns if name not in {core.ID, core.LABEL, GUESS, PROBABILITY}]
    if scores.kind == "one-vs-one" or not others:
        return []
    match = match_columns(others, scores, path, quiet=True)
    column_of = {match.get(name, name): name for name in others}
    missing = [name for name in scores.items if name not in column_of]
    refuse(
        missing and len(missing) < len(scores.items),
        f"{path}: examples with scores of their own need all columns of {scores.path}; it has no "
        f"column {quote_names(missing)}",
    )
    return [] if missing else [column_of[name] for name in scores.items]


# ---- Evidence


def add_evidence(table: ScoreTable, path: Path | None) -> ScoreTable:
    """Return a table of scores with what another model says of each input, matched by id."""
    from rankshot.zeroshot.files.score_tables import LOGITS, PROBABILITIES, guess_score_type

    if path is None:
        return table
    refuse(
        path == WORDS,
        "--evidence words needs the texts, which only `rankshot recognise` reads; give a table of "
        "evidence instead",
    )
    refuse(
        table.n_rows == 0,
        f"{path}: the weight of evidence is estimated from scores; give the scores of the same "
        "inputs with --seen FILE",
    )
    given = zeroshot.open_scores(path)
    refuse(
        given.kind == "one-vs-one", f"{path}: evidence needs one column per new class, not per pair"
    )
    first = next(given.batches())[1].values
    are_shares = guess_score_type(first, given) == PROBABILITIES
    names, read = replace(given, score_type=PROBABILITIES if are_shares else LOGITS).read()
    row_of = {name: row for row, name in enumerate(names)}
    ids = [name for names, _ in table.inputs() for name in names]
    if missing := [name for name in ids if name not in row_of]:
        rule = "" if given.has_ids else "; without a column id, rows are numbered from 0"
        raise RankshotError(
            f"{path}: evidence is missing for {len(missing):,} of the "
            f"{format_count(len(ids), 'input')} in {table.path}: {quote_names(missing)}{rule}"
        )
    if are_shares:
        say(f"{path}: the evidence is interpreted as probabilities")
    evidence = read[[row_of[name] for name in ids]]
    return replace(table, evidence=evidence, n_rows=len(ids))
