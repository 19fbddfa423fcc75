"""`HeadOptions`: the options of a head that a command was given, and the fitting of this head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from rankshot import ranking, sources, zeroshot
from rankshot.cli.console import refuse, say
from rankshot.cli.score_inputs import (
    ScoreType,
    add_evidence,
    infer_score_type,
    match_columns,
    read_examples,
    read_rankings_of,
    read_scores,
    sample_scores,
    say_matched,
)
from rankshot.core.errors import RankshotError, prefix_errors, quote_names, suggest_name

if TYPE_CHECKING:
    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.heads.base import Semantics
    from rankshot.zeroshot.heads.semantic_head import SemanticHead

DEFAULT_HEAD = "weighted-mean"
Classes = Literal["new", "new-or-none", "all", "all-or-none"]
"""What may be predicted."""


@dataclass(frozen=True)
class HeadOptions:
    """The plan of a head and the files that it is fitted to, checked before any is read.

    A saved head is ``fitted``, and ``saved`` is its file; the plan has the parameters that it was
    fitted with. ``settings_file`` is that of a rehearsal.
    """

    plan: zeroshot.Plan
    rankings: Path | None = None
    reference: Path | None = None
    settings_file: Path | None = None
    examples: Path | None = None
    evidence: Path | None = None
    saved: Path | None = None
    fitted: zeroshot.BaseHead | None = None
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
            `rankshot rank`; for --head direct and --head conse, the similarities (.csv, .parquet)
            that `rankshot rank --similarity-out` writes.
        head : <{methods}|FILE.rankshot>
            The method that decides between new classes; or a head that `rankshot fit` has written,
            which replaces the other options of `fit`.
        set : <name=value>
            A setting of the head; may be repeated. {settings}
        settings
            The settings that `rankshot rehearse -o` wrote (.json), instead of --head and --set.
            They include the weights of the sources.
        reference
            The scores of inputs of seen classes, several per class, with the same columns as the
            scores to classify (.csv, .parquet, .npz; read into memory). Scores are standardised by
            their mean and standard deviation over these inputs. For --head weighted-mean, and for
            --head probabilistic unless posterior=sum.
        classes
            What may be predicted: new classes only (new), or new and seen classes (all). With
            new-or-none and all-or-none, inputs that belong to none of these classes are labelled
            `none of these`; about a third of the inputs of new classes get this label by mistake.
            all-or-none needs a reference, and all is more accurate with one.
        examples
            Labelled inputs of new classes, for --head weighted-mean: a table with columns id and
            label, as `rankshot suggest` writes it, with ids that occur in the scores; or scores of
            other inputs, with a column label (.csv, .parquet). Empty labels are ignored.
        evidence
            Another model's scores for the new classes, for --head weighted-mean: one column per new
            class, with log-probabilities, probabilities, cosines or other scores, and the same ids
            as the scores (.csv, .parquet, .npz; read into memory). A head that was fitted with
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
            settings and (set or head != DEFAULT_HEAD),
            f"{settings}: has the settings of the head; leave out --head and --set",
        )
        if is_saved:
            return cls._of_saved_head(Path(head), evidence, score_type)
        if settings is None:
            plan = zeroshot.Plan(head=_parse_head(head, set or []))
        else:
            plan = zeroshot.Plan.read(settings)
        plan = replace(
            plan,
            classes="all" if classes.startswith("all") else "new",
            none=classes.endswith("none"),
        )
        files = rankings, reference, settings, examples, evidence
        return cls(plan, *files, score_type=score_type)

    @classmethod
    def _of_saved_head(
        cls, path: Path, evidence: Path | None, score_type: ScoreType
    ) -> HeadOptions:

        fitted = zeroshot.load_head(path)
        names = quote_names(fitted.evidence_classes_)
        refuse(evidence and not names, f"{path}: was fitted without evidence; leave out --evidence")
        refuse(
            names and not evidence,
            f"{path}: was fitted with evidence: give that of the inputs, --evidence FILE with the "
            f"columns id, {names}",
        )
        plan = zeroshot.Plan.from_head(fitted)
        more: Any = {"saved": path, "fitted": fitted, "score_type": score_type}
        return cls(plan, evidence=evidence, **more)

    def __post_init__(self) -> None:
        from rankshot.ranking.rankings import Rankings

        head = self.plan.head
        has_seen = self.plan.classes == "all"
        refuse(
            self.reference is not None and not head.takes_reference and not has_seen,
            f"--head {head.name} uses no reference with these settings: leave out --reference",
        )
        refuse(
            self.plan.has_gate and head.semantics is not Rankings,
            f"--head {head.name} uses no rankings, which --classes needs: leave out --classes",
        )

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
        return self.plan.none and self.plan.classes == "all"


def _parse_head(name: str, given: list[str]) -> SemanticHead:
    """Return a head with the settings in options of the form name=value."""
    from rankshot.zeroshot.files.head_files import list_settable, parse_parameter
    from rankshot.zeroshot.plan import METHODS, SEMANTIC

    refuse(
        name not in METHODS,
        f"--head {name!r}: no such method{suggest_name(name, METHODS)}; the methods are "
        f"{', '.join(METHODS)}, and the name of a saved head ends in .rankshot",
    )
    kind = SEMANTIC[name]
    known = list_settable(kind)
    found: dict[str, object] = {}
    for text in given:
        setting, _, value = text.partition("=")
        with prefix_errors(f"--set {text}"):
            refuse(
                "=" not in text or setting not in known,
                f"give a setting as name=value{suggest_name(setting, known)}; the settings of "
                f"{name} are {', '.join(known)}",
            )
            found[setting] = parse_parameter(kind, setting, value)
    head = kind(**found)
    head.require_parameters()
    return head


def _check_rehearsed(options: HeadOptions) -> None:
    """Refuse settings of a rehearsal that do not fit the other options."""
    from rankshot.zeroshot.rehearsal import require_gate

    plan, has_gate = options.plan, options.plan.has_gate
    needs_reference = bool(plan.reference) or has_gate
    what = "the gate to the seen classes" if has_gate else "the head"
    with prefix_errors(options.settings_file):
        require_gate(plan)
        refuse(
            needs_reference and options.reference is None,
            f"{what} was rehearsed with a reference: give --reference FILE, the scores of "
            "inputs of seen classes, for example those of the rehearsal",
        )
        refuse(
            plan.head.evidence_weight and options.evidence is None,
            "the head was rehearsed with evidence: give --evidence FILE, the scores of the same "
            "model for the new classes",
        )
    if options.reference is not None and not needs_reference:
        # Without inputs of other seen classes there was neither a gate nor a reference.
        why = (
            "the rehearsal had too few inputs of other seen classes to try a reference"
            if plan.gate is None
            else "in the rehearsal, the head was not better with a reference"
        )
        say(f"{options.settings_file}: {why}, so --reference is not used")


def open_table(path: Path, options: HeadOptions) -> ScoreTable:
    """Open the scores of inputs, with the evidence that the options name."""
    return add_evidence(zeroshot.open_scores(path).keep(), options.evidence)


def fit_head(scores: ScoreTable, options: HeadOptions) -> tuple[zeroshot.BaseHead, ScoreTable]:
    """Read the semantics of a table's classes and fit a head to them.

    The table is returned as well, with the type of its scores. A saved head is not fitted again.
    """
    from rankshot.ranking.rankings import Rankings
    from rankshot.zeroshot.heads.seen_and_new import NONE_OF_THESE
    from rankshot.zeroshot.remarks import describe_fit

    if options.fitted is not None:
        return _check_scores(scores, options, options.fitted)
    if options.settings_file is not None:
        _check_rehearsed(options)
    refuse(
        options.needs_reference and options.reference is None,
        "--classes all-or-none needs --reference FILE: without the scores of inputs of seen "
        "classes, it is not known which scores are too low for all of them",
    )
    plan, has_rankings = options.plan, options.plan.head.semantics is Rankings
    if options.rankings is None:
        how = "`rankshot rank`" if has_rankings else "`rankshot rank --similarity-out`"
        raise RankshotError(f"--head {plan.head.name} needs --rankings FILE; {how} writes one")
    read = read_new_rankings if has_rankings else _read_similarity
    semantics = read(options.rankings, scores)
    if plan.source_weights is not None:
        _check_sources(semantics, plan.source_weights, options.rankings)
    refuse(
        plan.none and NONE_OF_THESE in {*scores.items, *semantics.targets},
        f"--classes: a class is called {NONE_OF_THESE!r}; rename it",
    )
    reference, given, scores = read_more(options, scores, semantics)
    # The options are checked already, so an error is about the content of the files.
    with prefix_errors(*options.files.values()):
        fitted = plan.fit(semantics, reference, **given)
    for remark in describe_fit(fitted, reference):
        say(remark)
    return fitted, scores


def read_more(
    options: HeadOptions, scores: ScoreTable, semantics: Semantics
) -> tuple[zeroshot.Scores | None, dict[str, Any], ScoreTable]:
    """Return the reference, what else a head is fitted to, and the table with its score type."""
    reference: zeroshot.Scores | None = None
    given: dict[str, object] = {}
    if options.reference is not None:
        reference, scores = _read_reference(options, scores)
    if options.examples is not None:
        given["examples"], scores = read_examples(
            options.examples, scores, options.score_type, {*map(str, semantics.targets)}
        )
    if scores.n_rows != 0:
        scores = infer_score_type(scores, options.score_type)
    if scores.evidence is not None:
        given["evidence"] = sample_scores(scores, features=options.examples is not None)
    return reference, given, scores


def _check_scores(
    scores: ScoreTable, options: HeadOptions, head: zeroshot.BaseHead
) -> tuple[zeroshot.BaseHead, ScoreTable]:
    """Refuse scores that do not fit a saved head; return it for their columns, and the table."""
    from rankshot.zeroshot.files.score_tables import (
        AUTO,
        name_by_columns,
        require_score_type,
    )

    path, given = cast("Path", options.saved), options.score_type
    named, column_of = name_by_columns(head, scores, path)
    say_matched(column_of, scores, path)
    known = head.provenance_.get("score_type")
    if known is None:
        return named, infer_score_type(scores, given)
    require_score_type(next(scores.batches())[1].values, scores, given, known, path)
    if given == AUTO:
        say(f"{scores.path}: the scores are interpreted as {known}, for which {path} was fitted")
    return named, replace(scores, score_type=known)


def _check_sources(rankings: Semantics, weights: Mapping[str, float], path: Path) -> None:
    """Warn of sources that the rehearsal used and that rank no new class."""
    from rankshot.zeroshot.heads.base import quote_sources, source_names

    used = {source for source, weight in weights.items() if weight > 0}
    if missing := sorted(used - set(source_names(rankings))):
        say(
            f"{path}: warning: no rankings by {quote_sources(missing)}, which the "
            "rehearsal used: its settings may not fit the other sources alone"
        )


def _read_similarity(path: Path, scores: ScoreTable) -> Semantics:
    from rankshot.zeroshot.files.score_tables import rename_all

    if scores.kind == "one-vs-one":
        raise RankshotError(
            f"{scores.path}: has one column per pair of classes, and this head needs one "
            "per class; the other heads take pairs"
        )
    table = sources.read_similarity(path)
    table = replace(table, items=rename_all(table.items, match_columns(table.items, scores, path)))
    with prefix_errors(path, scores.path):
        return table.select(table.targets, scores.items)


def read_new_rankings(path: Path, scores: ScoreTable) -> ranking.Rankings:
    """Read the rankings of new classes, and print what is left out or missing."""
    from rankshot.zeroshot.heads.base import only_new, require_targets

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


def _read_reference(options: HeadOptions, scores: ScoreTable) -> tuple[zeroshot.Scores, ScoreTable]:
    """Read a reference into memory; it must have the score type of the scores to classify."""
    from rankshot.zeroshot.files.score_tables import rename_all

    path = cast("Path", options.reference)
    # What decides between seen and new classes needs the evidence of the reference as well.
    table = add_evidence(
        zeroshot.open_scores(path).keep(),
        options.evidence if options.plan.classes == "all" else None,
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
    return replace(read_scores(table)[1], items=items), scores
