"""`HeadOptions`: the options of a head that a command was given, and the fitting of this head."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rankshot.cli.console import refuse, say
from rankshot.cli.score_inputs import (
    ScoreType,
    infer_score_type,
    match_columns,
    read_all_scores,
    read_rankings_of,
    say_matched,
)
from rankshot.core.errors import RankshotError, prefix_errors, quote_names, suggest_name
from rankshot.zeroshot.settings import METHODS, RANKING_HEADS, REFERENCE_HEADS, HeadSettings

if TYPE_CHECKING:
    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.heads.base import BaseHead, Semantics
    from rankshot.zeroshot.scores import Scores

SEED = 0
"""The seed of rankings that are sampled for posterior=sum, so that runs can be repeated."""
PARAMETERS = {
    each.name: each.metadata
    for each in fields(HeadSettings)
    if each.metadata.get("help") and each.name not in {"head", "classes", "none"}
}
"""The settings that --set takes."""


class Classes(StrEnum):
    """What may be predicted."""

    NEW = "new"
    ALL = "all"


@dataclass(frozen=True)
class HeadOptions:
    """The settings of a head and the files that it is fitted to, checked before any is read.

    A saved head is ``fitted``, and ``saved`` is its file; its settings are those that it was
    fitted with. ``settings_file`` is that of a rehearsal.
    """

    settings: HeadSettings
    rankings: Path | None = None
    reference: Path | None = None
    settings_file: Path | None = None
    saved: Path | None = None
    fitted: BaseHead | None = None

    @classmethod
    def from_command(
        cls,
        *,
        rankings: Path | None = None,
        head: str = METHODS[0],
        set: list[str] | None = None,  # noqa: A002
        settings: Path | None = None,
        reference: Path | None = None,
        classes: Classes = Classes.NEW,
        none: bool = False,
    ) -> HeadOptions:
        """Return the options, with those in a file of settings or in a saved head.

        Parameters
        ----------
        rankings
            The rankings of the seen classes for each new class (.jsonl, .parquet), as written by
            `rankshot rank`; for --head direct and --head conse, the similarities (.csv, .parquet)
            that `rankshot rank --similarity-out` writes.
        head : <{methods}|FILE.rankshot>
            The method that decides between new classes; or a fitted head that `rankshot fit`
            wrote, in place of all other options that fit one.
        set : <name=value>
            A setting of the head; may be repeated. {settings}
        settings
            The settings that `rankshot rehearse -o` wrote (.json), in place of --head and --set.
            Only the sources that the rehearsal chose are used.
        reference
            The scores of inputs of seen classes, several per class, with the same columns as the
            scores to classify (.csv, .parquet, .npz; read into memory). Scores are then measured
            from their mean there, in standard deviations. For --head weighted-mean, and for --head
            probabilistic, except with posterior=sum.
        classes
            Predict new classes only, or new and seen classes together. With a reference, it is
            better known what is usual for seen classes.
        none
            With seen and new classes together, and a reference: an input that is of no class at
            all gets the class `none of these`.
        """
        given: dict[str, Any] = {
            "rankings": rankings,
            "set": set,
            "settings": settings,
            "reference": reference,
        }
        given |= {"classes": classes is Classes.ALL, "none": none}
        is_saved = head.endswith(".rankshot")
        twice = ", ".join(sorted(f"--{name}" for name, value in given.items() if value))
        refuse(
            is_saved and twice,
            f"{head}: is a fitted head, which decides this already; leave out {twice}",
        )
        refuse(
            not is_saved and head not in METHODS,
            f"--head {head!r}: no such method{suggest_name(head, METHODS)}; the methods are "
            f"{', '.join(METHODS)}, and the name of a saved head ends in .rankshot",
        )
        refuse(
            settings and (set or head != METHODS[0]),
            f"{settings}: has the settings of the head; leave out --head and --set",
        )
        if is_saved:
            return cls._of_saved_head(Path(head))
        if settings is None:
            chosen = HeadSettings(head=head, **_parse_settings(set or []))
        else:
            chosen = HeadSettings.read(settings)
        chosen = replace(chosen, classes=classes.value, none=none)
        return cls(chosen, rankings, reference, settings)

    @classmethod
    def _of_saved_head(cls, path: Path) -> HeadOptions:
        from rankshot.zeroshot import load_head

        fitted = load_head(path)
        settings = HeadSettings.from_head(innermost_head(fitted))
        return cls(settings, saved=path, fitted=fitted)

    def __post_init__(self) -> None:
        chosen, has_reference = self.settings, self.reference is not None
        is_all, takes_reference = chosen.classes == "all", chosen.head in REFERENCE_HEADS
        refuse(
            has_reference and not takes_reference and not is_all,
            f"--reference is for --head weighted-mean and probabilistic, not {chosen.head}",
        )
        refuse(
            has_reference and chosen.posterior == "sum",
            "--reference is for posterior=mean and consensus, not sum",
        )
        refuse(
            not self.saved and chosen.prior and takes_reference and not self.merges_rankings,
            f"prior={chosen.prior}: these settings do not merge rankings; use --head "
            "probabilistic --set posterior=consensus, or leave out the prior",
        )
        refuse(
            is_all and chosen.head not in RANKING_HEADS,
            f"--classes all is for heads with rankings, not --head {chosen.head}",
        )
        refuse(chosen.none and not is_all, "--none is for --classes all")
        refuse(
            chosen.none and not has_reference,
            "--none needs --reference FILE: without the scores of inputs of seen classes, it "
            "is not known which scores are too low for all of them",
        )

    @property
    def files(self) -> list[Path | None]:
        """The files that are read, which no output may replace."""
        return [self.rankings, self.settings_file, self.reference, self.saved]

    @property
    def head(self) -> str:
        """The name of the head."""
        return self.settings.head

    @property
    def fits_reference(self) -> bool:
        """Whether the head itself, not only the gate to the seen classes, uses --reference."""
        if self.settings_file is not None:
            return self.settings.reference
        return self.reference is not None and self.head in REFERENCE_HEADS

    @property
    def merges_rankings(self) -> bool:
        """Whether --head probabilistic fits a model to the rankings of a class."""
        return self.settings.posterior in {"consensus", "sum"}

    @property
    def model(self) -> Any:
        """The head over new classes: fitted if it was saved, otherwise not."""
        from rankshot.zeroshot import build_head

        return build_head(self.settings) if self.fitted is None else innermost_head(self.fitted)


def _parse_settings(given: list[str]) -> dict[str, Any]:
    """Return the settings in options of the form name=value."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in PARAMETERS:
            hint = suggest_name(name, PARAMETERS)
            raise RankshotError(
                f"--set {text}: give name=value{hint}; the settings are {', '.join(PARAMETERS)}"
            )
        try:
            found[name] = PARAMETERS[name]["type"](value)
        except ValueError:
            raise RankshotError(f"--set {text}: {value!r} is not a number") from None
    return found


def _check_rehearsed(options: HeadOptions) -> None:
    """Refuse settings of a rehearsal that do not fit the other options."""
    from rankshot.zeroshot.rehearsal import require_gate

    is_all = options.settings.classes == "all"
    needs_reference = options.fits_reference or is_all
    what = "the gate to the seen classes" if is_all else "the head"
    with prefix_errors(options.settings_file):
        if is_all:
            require_gate(options.settings)
        refuse(
            needs_reference and options.reference is None,
            f"{what} was rehearsed with a reference: give --reference FILE, the scores of "
            "inputs of seen classes, for example those of the rehearsal",
        )
    if options.reference is not None and not needs_reference:
        say(
            f"{options.settings_file}: in the rehearsal, the head was not better with a reference, "
            "so --reference is not used"
        )


def fit_head(
    scores: ScoreTable, score_type: ScoreType, options: HeadOptions
) -> tuple[BaseHead, ScoreType]:
    """Read the semantics of a table's classes and fit a head to them.

    The score type is returned as well: it is inferred here if there is a reference. A saved head
    is not fitted again.
    """
    from rankshot.zeroshot import build_head
    from rankshot.zeroshot.files.saved_heads import add_seen_classes
    from rankshot.zeroshot.heads.seen_and_new import NONE_OF_THESE

    if options.fitted is not None:
        return _check_scores(scores, score_type, options.fitted, cast("Path", options.saved))
    if options.settings_file is not None:
        _check_rehearsed(options)
    settings, has_rankings = options.settings, options.head in RANKING_HEADS
    if options.rankings is None:
        how = "`rankshot rank`" if has_rankings else "`rankshot rank --similarity-out`"
        raise RankshotError(f"--head {settings.head} needs --rankings FILE; {how} writes one")
    read = read_new_rankings if has_rankings else _read_similarity
    semantics: Any = read(options.rankings, scores)
    if settings.sources is not None:
        semantics = _select_sources(semantics, settings.sources, options.rankings)
    reference = None
    if options.reference is not None:
        reference, score_type = _read_reference(options.reference, scores, score_type)
    given = {"reference": reference} if options.fits_reference else {}
    model = build_head(settings)
    if settings.posterior == "sum":
        model.set_params(random_state=SEED)
    # The options are checked already, so an error is about the content of the files.
    with prefix_errors(*filter(None, options.files)):
        fitted: BaseHead = model.fit(semantics, **given)
    _print_remarks(fitted, options.rankings, competes=settings.classes == "all")
    if settings.classes == "new":
        return fitted, score_type
    if settings.none and NONE_OF_THESE in {*scores.items, *fitted.classes_}:
        raise RankshotError(f"--none: a class is called {NONE_OF_THESE!r}; rename it")
    return add_seen_classes(settings, fitted).fit(reference), score_type


def innermost_head(head: BaseHead) -> BaseHead:
    """Return the head over new classes that others, such as `SeenAndNew`, have inside."""
    inner = getattr(head, "head", None)
    return head if inner is None else innermost_head(inner)


def _check_scores(
    scores: ScoreTable, score_type: ScoreType, head: BaseHead, path: Path
) -> tuple[BaseHead, ScoreType]:
    """Refuse scores that do not fit a saved head; return it for their columns, and their type."""
    from rankshot.zeroshot.files.score_tables import name_by_columns, require_score_type

    named, column_of = name_by_columns(head, scores, path)
    say_matched(column_of, scores, path)
    known = head.provenance_.get("score_type")
    if known is None:
        return named, score_type
    fitted = ScoreType(known)
    require_score_type(scores, score_type, fitted, path)
    if score_type is ScoreType.AUTO:
        say(f"{scores.path}: the scores are interpreted as {fitted}, for which {path} was fitted")
    return named, fitted


def _select_sources(rankings: Any, sources: tuple[str, ...], path: Path) -> Any:
    """Return the rankings of the sources that a rehearsal chose, and print what is left out."""
    from rankshot.zeroshot.heads.base import quote_sources, select_sources, source_names

    with prefix_errors(path):
        chosen = select_sources(rankings, sources)
    there = set(source_names(rankings))
    if unused := sorted(there - set(sources)):
        say(f"{path}: left out, as the rehearsal chose: rankings by {quote_sources(unused)}")
    if missing := sorted(set(sources) - there):
        say(
            f"{path}: warning: there are no rankings by {quote_sources(missing)}, which the "
            "rehearsal used: its settings may not fit the other sources alone"
        )
    return chosen


def _print_remarks(head: BaseHead, path: Path, *, competes: bool) -> None:
    """Print what a head cannot distinguish, or lacks."""
    from rankshot.zeroshot.heads.base import describe_indistinguishable, describe_missing

    # A single new class that competes with seen classes is not the only class.
    same = [] if competes and len(head.classes_) == 1 else describe_indistinguishable(head)
    for remark in (*describe_missing(head), *same):
        say(f"{path}: {remark}")


def _read_similarity(path: Path, scores: ScoreTable) -> Semantics:
    from rankshot.sources import read_similarity
    from rankshot.zeroshot.files.score_tables import rename_all

    if scores.kind == "one-vs-one":
        raise RankshotError(
            f"{scores.path}: has one column per pair of classes, and this head needs one "
            "per class; the other heads take pairs"
        )
    table = read_similarity(path)
    table = replace(table, items=rename_all(table.items, match_columns(table.items, scores, path)))
    with prefix_errors(path, scores.path):
        return table.select(table.targets, scores.items)


def read_new_rankings(path: Path, scores: ScoreTable) -> Semantics:
    """Read the rankings of new classes, and print what is left out or missing."""
    from rankshot.zeroshot.heads.base import only_new, require_targets

    rankings = read_rankings_of(path, scores)
    with prefix_errors(path):
        new = only_new(require_targets(rankings))
    if seen := sorted(set(rankings.target_names) & set(scores.items)):
        say(f"{path}: rankings of {quote_names(seen)} are left out: they are seen classes")
    listed = set(rankings.codes.tolist())
    if unlisted := [item for i, item in enumerate(rankings.items) if i not in listed]:
        share = f"{len(unlisted):,} of {len(rankings.items):,} seen classes occur in no ranking"
        say(f"{path}: {share}: {quote_names(unlisted, 4)}")
    return new


def _read_reference(
    path: Path, scores: ScoreTable, score_type: ScoreType
) -> tuple[Scores, ScoreType]:
    """Read a reference into memory; it must have the score type of the scores to classify."""
    from rankshot.zeroshot.files.score_tables import build_scores, open_scores, rename_all

    table = open_scores(path)
    items = rename_all(table.items, match_columns(table.items, scores, path))
    different = quote_names(sorted(set(items) ^ set(scores.items)))
    refuse(
        different,
        f"{path}: a reference needs the columns of {scores.path}; only one of the two files "
        f"has {different}",
    )
    refuse(
        table.kind != scores.kind,
        f"{path}: has {table.kind} scores, and {scores.path} has {scores.kind} scores; a "
        "reference has scores of the same kind",
    )
    _, values = read_all_scores(table)
    if score_type is ScoreType.AUTO:
        score_type = infer_score_type(next(scores.batches())[1].values, scores)
        if (other := infer_score_type(next(table.batches())[1].values, table)) is not score_type:
            raise RankshotError(
                f"{path}: the scores look like {other}, and those of {scores.path} like "
                f"{score_type}; both must be the same: give --score-type"
            )
    named = replace(table, items=items)
    return build_scores(values, named, score_type, range(len(values))), score_type
