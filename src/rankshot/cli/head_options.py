"""`HeadOptions`: the options of a head that a command was given, and the fitting of this head."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankshot.cli.console import say
from rankshot.cli.head_parameters import (
    DECAY,
    K_OF_WEIGHTED_MEAN,
    SEED,
    TAKE_REFERENCE,
    Classes,
    Head,
    K,
    Posterior,
    Prior,
    build_prior,
)
from rankshot.cli.matched_names import match_columns, read_rankings_of, say_matched
from rankshot.cli.score_options import ScoreType, infer_score_type
from rankshot.core.errors import RankshotError, quote_names, suggest_name

if TYPE_CHECKING:
    from rankshot.zeroshot.alignment import Semantics
    from rankshot.zeroshot.files.head_settings import HeadSettings
    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.heads.base import BaseHead
    from rankshot.zeroshot.scores import Scores


@dataclass(frozen=True)
class HeadOptions:
    """The options of a head, checked before any other file is read.

    The options of a saved head are those that it was fitted with; it is ``fitted``, and
    ``saved`` is its file.
    """

    rankings: Path | None
    head: Head
    k: int | None
    decay: float
    prior: Prior | None
    posterior: Posterior | None
    temperature: float | None
    reference: Path | None
    similarity: Path | None = None
    classes: Classes = Classes.NEW
    none: bool = False
    settings: Path | None = None
    rehearsed: HeadSettings | None = None
    saved: Path | None = None
    fitted: BaseHead | None = None

    @classmethod
    def from_command(cls, *, head: str, settings: Path | None = None, **given: Any) -> HeadOptions:
        """Return the options, with those in a file of settings or in a saved head."""
        if head in set(Head):
            return cls(head=Head(head), **given).use_settings(settings)
        if not head.endswith(".rankshot"):
            raise RankshotError(
                f"--head {head!r}: no such method{suggest_name(head, Head)}; the methods are "
                f"{', '.join(Head)}, and the name of a saved head ends in .rankshot"
            )
        usual = {"decay": DECAY, "classes": Classes.NEW, "none": False}
        options = {**given, "settings": settings}
        twice = [f"--{name}" for name in options if options[name] != usual.get(name)]
        if twice:
            raise RankshotError(
                f"{head}: is a fitted head, which decides this already; leave out "
                f"{', '.join(sorted(twice))}"
            )
        return cls._of_saved_head(Path(head))

    @classmethod
    def _of_saved_head(cls, path: Path) -> HeadOptions:
        from rankshot.zeroshot import load_head
        from rankshot.zeroshot.files.head_settings import HEADS, parse_settings

        fitted = load_head(path)
        inner: Any = innermost_head(fitted)
        posterior = getattr(inner, "posterior", None)
        settings = fitted.provenance_.get("settings")
        return cls(
            rankings=None,
            head=next(Head(name) for name, kind in HEADS.items() if type(inner) is kind),
            # Without k, all places count.
            k=getattr(inner, "k", None) or len(inner.items_),
            decay=getattr(inner, "decay", DECAY),
            prior=None,
            posterior=None if posterior is None else Posterior(posterior),
            temperature=inner.temperature,
            reference=None,
            settings=None if settings is None else path,
            rehearsed=None if settings is None else parse_settings(settings),
            saved=path,
            fitted=fitted,
        )

    def __post_init__(self) -> None:
        from rankshot.core.validation import require_number, require_whole_number

        # Not bounds of Typer: they let an infinite decay through. Not left to the head either: it
        # checks its parameters in `fit`, where an error may also be about the rankings, so that
        # the message could not name the option.
        require_whole_number("--k", self.places)
        require_number("--decay", self.decay, least=0, below=math.inf)
        if self.temperature is not None:
            require_number("--temperature", self.temperature, above=0, below=math.inf)
        if self.posterior is not None and self.head is not Head.PROBABILISTIC:
            raise RankshotError(
                f"--posterior {self.posterior} is for --head probabilistic, not {self.head}"
            )
        takes_reference = self.head in TAKE_REFERENCE
        if self.reference is not None and not takes_reference and self.classes is Classes.NEW:
            raise RankshotError(
                f"--reference is for --head weighted-mean and probabilistic, not {self.head}"
            )
        if self.reference is not None and self.posterior is Posterior.SUM:
            raise RankshotError("--reference is for --posterior mean and consensus, not sum")
        if self.prior is not None and takes_reference and not self.merges_rankings:
            raise RankshotError(
                f"--prior {self.prior}: these options do not merge rankings; use --head "
                "probabilistic --posterior consensus, or leave out --prior"
            )
        if self.classes is Classes.ALL and self.head in {Head.DIRECT, Head.CONSE}:
            raise RankshotError(f"--classes all is for heads with rankings, not --head {self.head}")
        if self.none and self.classes is Classes.NEW:
            raise RankshotError("--none is for --classes all")
        if self.none and self.reference is None:
            raise RankshotError(
                "--none needs --reference FILE: without the scores of inputs of seen classes, it "
                "is not known which scores are too low for all of them"
            )

    def use_settings(self, path: Path | None) -> HeadOptions:
        """Return the options with the settings of a file, if there is one."""
        if path is None:
            return self
        from rankshot.zeroshot.files.head_settings import read_settings

        options = {
            "--head": self.head is not Head.WEIGHTED_MEAN,
            "--k": self.k is not None,
            "--decay": self.decay != DECAY,
            "--posterior": self.posterior is not None,
            "--prior": self.prior is not None,
            "--temperature": self.temperature is not None,
        }
        if any(options.values()):
            twice = ", ".join(option for option, is_given in options.items() if is_given)
            raise RankshotError(f"{path}: has the settings of the head; leave out {twice}")
        found = read_settings(path)
        given = found.parameters
        posterior = given.get("posterior")
        try:
            return replace(
                self,
                head=Head(found.head),
                k=given.get("k"),
                decay=given.get("decay", DECAY),
                posterior=None if posterior is None else Posterior(posterior),
                temperature=given.get("temperature"),
                settings=path,
                rehearsed=found,
            )
        except ValueError as error:
            raise RankshotError(f"{path}: {error}") from None

    @property
    def fits_reference(self) -> bool:
        """Whether the head itself, not only the gate to the seen classes, uses --reference."""
        if self.rehearsed is not None:
            return self.rehearsed.reference
        return self.reference is not None and self.head in TAKE_REFERENCE

    def check_rehearsed(self) -> None:
        """Refuse settings of a rehearsal that do not fit the other options."""
        if self.rehearsed is None:
            return
        if self.classes is Classes.ALL and self.rehearsed.gate is None:
            raise RankshotError(
                f"{self.settings}: has no gate between seen and new classes, because the rehearsal "
                "had too few inputs of other seen classes: predict new classes only"
            )
        if self.none and (self.rehearsed.gate or {}).get("none") is None:
            raise RankshotError(
                f"{self.settings}: knows nothing about inputs of no class, because the rehearsal "
                "had too few classes: leave out --none"
            )
        if self.reference is not None:
            if self.classes is Classes.NEW and not self.fits_reference:
                say(
                    f"{self.settings}: in the rehearsal, the head was not better with a "
                    "reference, so --reference is not used"
                )
        elif self.fits_reference or self.classes is Classes.ALL:
            what = "the gate to the seen classes" if self.classes is Classes.ALL else "the head"
            raise RankshotError(
                f"{self.settings}: {what} was rehearsed with a reference: give --reference FILE, "
                "the scores of inputs of seen classes, for example those of the rehearsal"
            )

    @property
    def places(self) -> int:
        """How many places of each ranking are used: --k, or the default of the head."""
        if self.k is not None:
            return self.k
        return K_OF_WEIGHTED_MEAN if self.head is Head.WEIGHTED_MEAN else K

    @property
    def merges_rankings(self) -> bool:
        """Whether --head probabilistic fits a model to the rankings of a class."""
        return self.posterior in {Posterior.CONSENSUS, Posterior.SUM}


def fit_head(
    scores: ScoreTable, score_type: ScoreType, options: HeadOptions
) -> tuple[BaseHead, ScoreType]:
    """Read the semantics of a table's classes and fit a head to them.

    The score type is returned as well: it is inferred here if there is a reference. A saved head
    is not fitted again.
    """
    from rankshot import zeroshot
    from rankshot.zeroshot.heads.seen_and_new import NONE_OF_THESE

    if options.fitted is not None and options.saved is not None:
        return _check_scores(scores, score_type, options.fitted, options.saved)
    options.check_rehearsed()
    head, rehearsed = options.head, options.rehearsed
    if head in {Head.DIRECT, Head.CONSE}:
        return _fit_similarity(options, scores), score_type
    if options.rankings is None:
        raise RankshotError(f"--head {head} needs --rankings FILE; `rankshot rank` writes one")
    model = _build_ranking_head(options)
    semantics = read_new_rankings(options.rankings, scores)
    files, reference = [options.rankings], None
    if rehearsed is not None and options.settings is not None:
        files += [options.settings]
        semantics = _select_sources(semantics, rehearsed.sources, options.rankings)
    if options.reference is not None:
        files += [options.reference]
        reference, score_type = _read_reference(options.reference, scores, score_type)
    of_head = reference if options.fits_reference else None
    given = {} if of_head is None else {"reference": of_head}
    fitted = _fit(model, semantics, *files, competes=options.classes is Classes.ALL, **given)
    if options.classes is Classes.NEW:
        return fitted, score_type
    if options.none and NONE_OF_THESE in {*scores.items, *fitted.classes_}:
        raise RankshotError(f"--none: a class is called {NONE_OF_THESE!r}; rename it")
    gate = {} if rehearsed is None else rehearsed.build_gate()
    return zeroshot.SeenAndNew(fitted, none=options.none, **gate).fit(reference), score_type


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
        say(f"{scores.path}: the scores are taken as {fitted}, for which {path} was fitted")
    return named, fitted


def _select_sources(rankings: Any, sources: tuple[str, ...], path: Path) -> Any:
    """Return the rankings of the sources that a rehearsal chose, and print what is left out."""
    from rankshot.zeroshot.rehearsal.folds import quote_sources, select_sources, source_names

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


def _build_ranking_head(options: HeadOptions) -> BaseHead:
    from rankshot import zeroshot

    if options.rehearsed is not None:
        head: BaseHead = options.rehearsed.build_head()
        return head
    k, decay, temperature = options.places, options.decay, options.temperature
    prior = None if options.prior is None else build_prior(options.prior)
    if options.head is Head.WEIGHTED_MEAN:
        return zeroshot.WeightedMean(k=k, decay=decay, temperature=temperature)
    if options.head is Head.DETERMINISTIC:
        return zeroshot.DeterministicRanking(k=k, prior=prior, temperature=temperature)
    return zeroshot.ProbabilisticRanking(
        k=k,
        decay=decay,
        prior=prior,
        posterior=(options.posterior or Posterior.MEAN).value,
        temperature=temperature,
        random_state=SEED,
    )


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
    from rankshot import zeroshot
    from rankshot.sources import read_similarity
    from rankshot.zeroshot.files.score_tables import rename_all

    head, path = options.head, options.similarity
    if path is None:
        raise RankshotError(
            f"--head {head} needs --similarity FILE; `rankshot rank --similarity-out` writes one"
        )
    if scores.kind == "one-vs-one":
        raise RankshotError(
            f"{scores.path}: has one column per pair of classes, and --head {head} needs one "
            "per class; the other heads take pairs"
        )
    by_similarity = zeroshot.DirectSimilarity if head is Head.DIRECT else zeroshot.ConSE
    model: BaseHead = by_similarity(temperature=options.temperature)
    if options.rehearsed is not None:
        model = options.rehearsed.build_head()
    table = read_similarity(path)
    table = replace(table, items=rename_all(table.items, match_columns(table.items, scores, path)))
    try:
        table = table.select(table.targets, scores.items)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}; {scores.path} has scores of it") from None
    return _fit(model, table, path)


def read_new_rankings(path: Path, scores: ScoreTable) -> Semantics:
    """Read the rankings of new classes, and print what is left out or missing."""
    from rankshot.zeroshot.alignment import only_new, require_targets

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
