"""`HeadOptions`: the options of a head that a command was given, and the fitting of this head.

`takes_head` makes the options: those that are settings come from the fields of `HeadSettings`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from rankshot.cli.console import say
from rankshot.cli.score_tables import (
    ScoreType,
    infer_score_type,
    match_columns,
    read_rankings_of,
    say_matched,
)
from rankshot.core.errors import RankshotError, quote_names, suggest_name
from rankshot.zeroshot.settings import METHODS, RANKING_HEADS, REFERENCE_HEADS, HeadSettings

if TYPE_CHECKING:
    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.heads.base import BaseHead, Semantics
    from rankshot.zeroshot.scores import Scores

SEED = 0
"""The seed of rankings that are sampled for posterior=sum, so that runs can be repeated."""
FIELDS = {each.name: each.metadata for each in fields(HeadSettings) if each.metadata}
PARAMETERS = {
    name: about
    for name, about in FIELDS.items()
    if about["help"] and name not in {"head", "classes", "none"}
}
"""The settings that --set takes."""


class Classes(StrEnum):
    """What may be predicted."""

    NEW = "new"
    ALL = "all"


OPTIONS: dict[str, tuple[Any, Any]] = {
    "rankings": (
        Annotated[
            Path | None,
            typer.Option(
                help="The rankings of the seen classes for each new class (.jsonl, .parquet), as "
                "written by `rankshot rank`; for --head direct and --head conse, the similarities "
                "(.csv, .parquet) that `rankshot rank --similarity-out` writes."
            ),
        ],
        None,
    ),
    "head": (
        Annotated[
            str,
            typer.Option(
                metavar=f"<{'|'.join(METHODS)}|FILE.rankshot>",
                help="The method that decides between new classes; or a fitted head that `rankshot "
                "fit` wrote, in place of all other options that fit one.",
            ),
        ],
        METHODS[0],
    ),
    "set": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="<name=value>",
                help="A setting of the head; may be repeated. "
                + " ".join(f"{name}: {about['help']}" for name, about in PARAMETERS.items()),
            ),
        ],
        None,
    ),
    "settings": (
        Annotated[
            Path | None,
            typer.Option(
                help="The settings that `rankshot rehearse -o` wrote (.json), in place of --head "
                "and --set. Only the sources that the rehearsal chose are used."
            ),
        ],
        None,
    ),
    "reference": (
        Annotated[
            Path | None,
            typer.Option(
                help="The scores of inputs of seen classes, several per class, with the same "
                "columns as the scores to classify (.csv, .parquet, .npz; read into memory). "
                "Scores are then measured from their mean there, in standard deviations. For "
                "--head weighted-mean, and for --head probabilistic, except with posterior=sum."
            ),
        ],
        None,
    ),
    "classes": (Annotated[Classes, typer.Option(help=FIELDS["classes"]["help"])], Classes.NEW),
    "none": (Annotated[bool, typer.Option("--none", help=FIELDS["none"]["help"])], False),
}


def takes_head(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these `OPTIONS`, by default all; it gets them as one `HeadOptions`.

    The parameter ``options`` of the command is replaced by them in `add_head_options`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        command.head_options = names or tuple(OPTIONS)  # type: ignore[attr-defined]
        return command

    return decorate


def add_head_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options that `takes_head` gave it, if it did."""
    if not (chosen := getattr(command, "head_options", ())):
        return command
    hints = get_type_hints(command, include_extras=True)
    parameters = []
    for name, each in inspect.signature(command).parameters.items():
        if name != "options":
            parameters.append(each.replace(kind=each.KEYWORD_ONLY, annotation=hints[name]))
            continue
        for one in chosen:
            annotation, default = OPTIONS[one]
            parameters.append(
                inspect.Parameter(one, each.KEYWORD_ONLY, default=default, annotation=annotation)
            )

    @wraps(command)
    def run(**given: Any) -> None:
        own = {name: given.pop(name) for name in chosen}
        command(**given, options=HeadOptions.from_command(**own))

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


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
        reference: Path | None = None,
        head: str = METHODS[0],
        set: list[str] | None = None,  # noqa: A002
        settings: Path | None = None,
        classes: str = "new",
        none: bool = False,
    ) -> HeadOptions:
        """Return the options, with those in a file of settings or in a saved head."""
        files: dict[str, Any] = {"rankings": rankings, "reference": reference}
        of_head = {"set": set, "classes": classes != "new", "none": none}
        if head.endswith(".rankshot"):
            given = {**files, **of_head, "settings": settings}
            if twice := [f"--{name}" for name, value in given.items() if value]:
                raise RankshotError(
                    f"{head}: is a fitted head, which decides this already; leave out "
                    f"{', '.join(sorted(twice))}"
                )
            return cls._of_saved_head(Path(head))
        if head not in METHODS:
            raise RankshotError(
                f"--head {head!r}: no such method{suggest_name(head, METHODS)}; the methods are "
                f"{', '.join(METHODS)}, and the name of a saved head ends in .rankshot"
            )
        if settings is None:
            chosen = _parse_settings(set or [])
            return cls(HeadSettings(head=head, classes=classes, none=none, **chosen), **files)  # type: ignore[arg-type]
        if set or head != METHODS[0]:
            raise RankshotError(
                f"{settings}: has the settings of the head; leave out --head and --set"
            )
        found = replace(HeadSettings.read(settings), classes=classes, none=none)  # type: ignore[arg-type]
        return cls(found, settings_file=settings, **files)

    @classmethod
    def _of_saved_head(cls, path: Path) -> HeadOptions:
        from rankshot.zeroshot import load_head

        fitted = load_head(path)
        settings = HeadSettings.from_head(innermost_head(fitted))
        rehearsed = fitted.provenance_.get("settings")
        if rehearsed is not None:
            before = HeadSettings.from_json(rehearsed).default_temperature
            settings = replace(settings, default_temperature=before)
        file = None if rehearsed is None else path
        return cls(settings, settings_file=file, saved=path, fitted=fitted)

    def __post_init__(self) -> None:
        if self.saved is not None:
            return
        chosen = self.settings
        is_all, takes_reference = chosen.classes == "all", chosen.head in REFERENCE_HEADS
        if self.reference is not None and not takes_reference and not is_all:
            raise RankshotError(
                f"--reference is for --head weighted-mean and probabilistic, not {chosen.head}"
            )
        if self.reference is not None and chosen.posterior == "sum":
            raise RankshotError("--reference is for posterior=mean and consensus, not sum")
        if chosen.prior is not None and takes_reference and not self.merges_rankings:
            raise RankshotError(
                f"prior={chosen.prior}: these settings do not merge rankings; use --head "
                "probabilistic --set posterior=consensus, or leave out the prior"
            )
        if is_all and chosen.head not in RANKING_HEADS:
            raise RankshotError(
                f"--classes all is for heads with rankings, not --head {chosen.head}"
            )
        if chosen.none and not is_all:
            raise RankshotError("--none is for --classes all")
        if chosen.none and self.reference is None:
            raise RankshotError(
                "--none needs --reference FILE: without the scores of inputs of seen classes, it "
                "is not known which scores are too low for all of them"
            )

    @property
    def files(self) -> list[Path | None]:
        """The files that are read, which no output may replace."""
        return [self.rankings, self.reference, self.settings_file, self.saved]

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

    def check_rehearsed(self) -> None:
        """Refuse settings of a rehearsal that do not fit the other options."""
        if self.settings_file is None:
            return
        from rankshot.zeroshot.rehearsal import require_gate

        is_all = self.settings.classes == "all"
        if is_all:
            try:
                require_gate(self.settings)
            except RankshotError as error:
                raise RankshotError(f"{self.settings_file}: {error}") from None
        if self.reference is not None:
            if not is_all and not self.fits_reference:
                say(
                    f"{self.settings_file}: in the rehearsal, the head was not better with a "
                    "reference, so --reference is not used"
                )
        elif self.fits_reference or is_all:
            what = "the gate to the seen classes" if is_all else "the head"
            raise RankshotError(
                f"{self.settings_file}: {what} was rehearsed with a reference: give --reference "
                "FILE, the scores of inputs of seen classes, for example those of the rehearsal"
            )

    @property
    def model(self) -> Any:
        """The head over new classes: fitted if it was saved, otherwise not."""
        from rankshot.zeroshot import build_head

        return build_head(self.settings) if self.fitted is None else innermost_head(self.fitted)

    @property
    def merges_rankings(self) -> bool:
        """Whether --head probabilistic fits a model to the rankings of a class."""
        return self.settings.posterior in {"consensus", "sum"}


def fit_head(
    scores: ScoreTable, score_type: ScoreType, options: HeadOptions
) -> tuple[BaseHead, ScoreType]:
    """Read the semantics of a table's classes and fit a head to them.

    The score type is returned as well: it is inferred here if there is a reference. A saved head
    is not fitted again.
    """
    from rankshot.zeroshot.files.saved_heads import add_seen_classes, build_head
    from rankshot.zeroshot.heads.seen_and_new import NONE_OF_THESE

    if options.fitted is not None and options.saved is not None:
        return _check_scores(scores, score_type, options.fitted, options.saved)
    options.check_rehearsed()
    settings = options.settings
    if settings.head not in RANKING_HEADS:
        return _fit_similarity(options, scores), score_type
    if options.rankings is None:
        raise RankshotError(
            f"--head {settings.head} needs --rankings FILE; `rankshot rank` writes one"
        )
    semantics = read_new_rankings(options.rankings, scores)
    files, reference = [options.rankings], None
    if options.settings_file is not None:
        files += [options.settings_file]
    if settings.sources is not None:
        semantics = _select_sources(semantics, settings.sources, options.rankings)
    if options.reference is not None:
        files += [options.reference]
        reference, score_type = _read_reference(options.reference, scores, score_type)
    of_head = reference if options.fits_reference else None
    given = {} if of_head is None else {"reference": of_head}
    model = build_head(settings)
    if settings.posterior == "sum":
        # So that a run can be repeated.
        model.set_params(random_state=SEED)
    fitted = _fit(model, semantics, *files, competes=settings.classes == "all", **given)
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

    try:
        chosen = select_sources(rankings, sources)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    there = set(source_names(rankings))
    if unused := sorted(there - set(sources)):
        say(f"{path}: left out, as the rehearsal chose: rankings by {quote_sources(unused)}")
    if missing := sorted(set(sources) - there):
        say(
            f"{path}: warning: there are no rankings by {quote_sources(missing)}, which the "
            "rehearsal used: its settings may not fit the other sources alone"
        )
    return chosen


def _fit(
    model: Any, semantics: Semantics, *files: Path, competes: bool = False, **options: Scores
) -> BaseHead:
    """Fit a head, and print what it cannot distinguish or lacks; errors name the files.

    The options are checked already, so an error is about the content of the files.
    """
    from rankshot.zeroshot.heads.base import describe_indistinguishable, describe_missing

    try:
        head: BaseHead = model.fit(semantics, **options)
    except RankshotError as error:
        raise RankshotError(f"{' and '.join(map(str, files))}: {error}") from None
    # A single new class that competes with seen classes is not the only class.
    same = [] if competes and len(head.classes_) == 1 else describe_indistinguishable(head)
    for remark in (*describe_missing(head), *same):
        say(f"{files[0]}: {remark}")
    return head


def _fit_similarity(options: HeadOptions, scores: ScoreTable) -> BaseHead:
    from rankshot.sources import read_similarity
    from rankshot.zeroshot import build_head
    from rankshot.zeroshot.files.score_tables import rename_all

    head, path = options.head, options.rankings
    if path is None:
        raise RankshotError(
            f"--head {head} needs --rankings FILE, a table of similarities; `rankshot rank "
            "--similarity-out` writes one"
        )
    if scores.kind == "one-vs-one":
        raise RankshotError(
            f"{scores.path}: has one column per pair of classes, and --head {head} needs one "
            "per class; the other heads take pairs"
        )
    table = read_similarity(path)
    table = replace(table, items=rename_all(table.items, match_columns(table.items, scores, path)))
    try:
        table = table.select(table.targets, scores.items)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}; {scores.path} has scores of it") from None
    return _fit(build_head(options.settings), table, path)


def read_new_rankings(path: Path, scores: ScoreTable) -> Semantics:
    """Read the rankings of new classes, and print what is left out or missing."""
    from rankshot.zeroshot.heads.base import only_new, require_targets

    rankings = read_rankings_of(path, scores)
    try:
        new = only_new(require_targets(rankings))
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
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
    import numpy as np

    from rankshot.zeroshot.files.score_tables import build_scores, open_scores, rename_all

    table = open_scores(path)
    items = rename_all(table.items, match_columns(table.items, scores, path))
    if different := sorted(set(items) ^ set(scores.items)):
        raise RankshotError(
            f"{path}: a reference needs the columns of {scores.path}; only one of the two files "
            f"has {quote_names(different)}"
        )
    if table.kind != scores.kind:
        raise RankshotError(
            f"{path}: has {table.kind} scores, and {scores.path} has {scores.kind} scores; a "
            "reference has scores of the same kind"
        )
    batches = [batch.values for _, batch in table.batches()]
    if score_type is ScoreType.AUTO:
        score_type = infer_score_type(next(scores.batches())[1].values, scores)
        if (other := infer_score_type(batches[0], table)) is not score_type:
            raise RankshotError(
                f"{path}: the scores look like {other}, and those of {scores.path} like "
                f"{score_type}; both must be the same: give --score-type"
            )
    values = np.concatenate(batches)
    named = replace(table, items=items)
    return build_scores(values, named, score_type, range(len(values))), score_type
