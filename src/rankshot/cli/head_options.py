"""The head that commands use, by options that they share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rankshot.cli.console import say
from rankshot.cli.score_options import ScoresAre, as_scores_of, told_from
from rankshot.core.errors import RankshotError, quote_names, suggest_name
from rankshot.ranking.files import read_rankings
from rankshot.ranking.mallows import Mallows
from rankshot.ranking.plackett_luce import PlackettLuce
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.similarity_files import read_similarity
from rankshot.zeroshot.alignment import Semantics, only_new
from rankshot.zeroshot.files.score_tables import ScoreTable, open_scores
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.conse import ConSE
from rankshot.zeroshot.heads.deterministic_ranking import DeterministicRanking
from rankshot.zeroshot.heads.direct_similarity import DirectSimilarity
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.heads.reference import LEAST_INPUTS
from rankshot.zeroshot.prior import describe_indistinguishable, require_targets
from rankshot.zeroshot.scores import Scores

RankingsOption = Annotated[
    Path | None,
    typer.Option(help="Rankings of the seen classes for each new one (.jsonl), as from `rank`."),
]
SimilarityOption = Annotated[
    Path | None,
    typer.Option(help="Similarities for --head direct and conse (.csv, .parquet)."),
]
KOption = Annotated[int, typer.Option("--k", help="How many places of each ranking count.")]
DecayOption = Annotated[
    float,
    typer.Option(
        help="How fast places lose weight: the r-th counts r^-decay; 0: all alike. For --head "
        "probabilistic, but not --posterior sum."
    ),
]
ReferenceOption = Annotated[
    Path | None,
    typer.Option(
        help="Scores of several inputs of every seen class, with the columns of SCORES: then "
        "scores count by how far from usual they are (.csv, .parquet, .npz; read whole)."
    ),
]
K = 10
"""Places that count unless told, as in `ProbabilisticRanking`."""
DECAY = 0.5
"""How fast they lose weight."""
SEED = 0
"""Where rankings are drawn for --posterior sum: a job gives the same answers every day."""


class Head(StrEnum):
    """How scores and semantics become a decision."""

    PROBABILISTIC = "probabilistic"
    DETERMINISTIC = "deterministic"
    DIRECT = "direct"
    CONSE = "conse"


class Prior(StrEnum):
    """The model that merges the rankings of a target."""

    PLACKETT_LUCE = "plackett-luce"
    MALLOWS = "mallows"


class Posterior(StrEnum):
    """What becomes of the rankings of a target."""

    MEAN = "mean"
    CONSENSUS = "consensus"
    SUM = "sum"


PRIORS = {Prior.PLACKETT_LUCE: PlackettLuce, Prior.MALLOWS: Mallows}


HeadOption = Annotated[Head, typer.Option(help="The method.")]


PriorOption = Annotated[Prior, typer.Option(help="The model that merges a class's rankings.")]


HeadPriorOption = Annotated[
    Prior | None,
    typer.Option(
        help="The model that merges a class's rankings, for --posterior consensus and sum and "
        "--head deterministic; plackett-luce unless told."
    ),
]


PosteriorOption = Annotated[
    Posterior,
    typer.Option(help="Take the mean of a class's rankings, merge them, or sum over all rankings."),
]


def fitted_head(
    scores: ScoreTable,
    scores_are: ScoresAre,
    *,
    rankings: Path | None,
    similarity: Path | None = None,
    head: Head = Head.PROBABILISTIC,
    k: int,
    decay: float,
    prior: Prior | None,
    posterior: Posterior,
    reference: Path | None,
) -> tuple[BaseHead, ScoresAre]:
    """Read what semantics say of a table's classes, and fit a head to it.

    Returned as well is what the scores are, where a reference made it necessary to know.
    """
    _check_numbers(k, decay)
    if reference is not None:
        _check_reference(head, posterior)
    if head in {Head.DIRECT, Head.CONSE}:
        if similarity is None:
            raise RankshotError(f"--head {head} needs --similarity FILE")
        if scores.kind == "one-vs-one":
            raise RankshotError(
                f"{scores.path}: has a column for each pair of classes, and --head {head} needs "
                "one for each class; --head probabilistic and deterministic take pairs"
            )
        model: BaseHead = DirectSimilarity() if head is Head.DIRECT else ConSE()
        said = _similarities(similarity, scores.items, head)
        return _fitted(model, similarity, said), scores_are
    if rankings is None:
        raise RankshotError(f"--head {head} needs --rankings FILE; `rankshot rank` makes one")
    merged_by: Any = None if prior is None else PRIORS[prior]()
    if head is Head.DETERMINISTIC:
        model = DeterministicRanking(k=k, prior=merged_by)
        return _fitted(model, rankings, _rankings(rankings, scores)), scores_are
    if prior is not None and posterior is Posterior.MEAN:
        raise RankshotError(
            f"--prior {prior}: the mean of a class's rankings merges nothing; use --posterior "
            "consensus, or leave out --prior"
        )
    model = ProbabilisticRanking(
        k=k, decay=decay, prior=merged_by, posterior=posterior.value, random_state=SEED
    )
    known = _rankings(rankings, scores)
    if reference is None:
        return _fitted(model, rankings, known), scores_are
    usual, scores_are = _usual(reference, scores, scores_are)
    return _fitted(model, rankings, known, usual), scores_are


def _check_numbers(k: int, decay: float) -> None:
    if k < 1:
        raise RankshotError(f"--k must be 1 or more, not {k}")
    if not 0 <= decay < np.inf:
        raise RankshotError(f"--decay must be 0 or more, and finite, not {decay}")


def _check_reference(head: Head, posterior: Posterior) -> None:
    if head is not Head.PROBABILISTIC:
        raise RankshotError(f"--reference is for --head probabilistic, not {head}")
    if posterior is Posterior.SUM:
        raise RankshotError("--reference is for --posterior mean and consensus, not sum")


def _usual(path: Path, scores: ScoreTable, are: ScoresAre) -> tuple[Scores, ScoresAre]:
    """Read a reference, whole; what its scores are is what those to classify are."""
    table = open_scores(path)
    _check_columns(table, scores)
    batches = [batch.values for _, batch in table.batches()]
    if are is ScoresAre.AUTO:
        are = told_from(next(scores.batches())[1].values, scores)
        if (theirs := told_from(batches[0], table)) is not are:
            raise RankshotError(
                f"{path}: the scores look like {theirs}, and those of {scores.path} like {are}; "
                "both must be the same: say what they are with --scores-are"
            )
    values = np.concatenate(batches)
    if len(values) < LEAST_INPUTS:
        raise RankshotError(
            f"{path}: has {len(values)} inputs; a reference needs {LEAST_INPUTS} or more, and some "
            "hundreds are better"
        )
    return as_scores_of(values, table, are, range(len(values))), are


def _check_columns(reference: ScoreTable, scores: ScoreTable) -> None:
    """Raise unless both tables have scores of the same classes, or of pairs of them."""
    if missing := [item for item in scores.items if item not in reference.items]:
        raise RankshotError(
            f"{reference.path}: no scores of {quote_names(missing)}, which {scores.path} has"
            f"{suggest_name(missing[0], reference.items)}"
        )
    if extra := [item for item in reference.items if item not in scores.items]:
        raise RankshotError(
            f"{reference.path}: has scores of {quote_names(extra)}, which {scores.path} has not"
            f"{suggest_name(extra[0], scores.items)}"
        )
    if reference.kind != scores.kind:
        raise RankshotError(
            f"{reference.path}: has {reference.kind} scores, and {scores.path} has {scores.kind} "
            "ones; a reference has scores of the same kind"
        )


def _rankings(path: Path, scores: ScoreTable) -> Semantics:
    """Read the rankings of classes that the scores do not have, and say what they leave out."""
    try:
        said = read_rankings(path, items=scores.items)
    except RankshotError as error:
        if "unknown item" not in str(error):
            raise
        there = f"the columns of {scores.path} are {quote_names(scores.items)}"
        raise RankshotError(f"{error}; {there}") from None
    try:
        new = only_new(require_targets(said))
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    if known := sorted(set(said.targets) - set(new.targets)):
        say(f"{path}: rankings of {quote_names(known)} are left out: the scores have such classes")
    named = set(said.codes.tolist())
    if unnamed := [item for i, item in enumerate(said.items) if i not in named]:
        say(f"{scores.path}: no ranking names {quote_names(unnamed, 4)}")
    return new


def _similarities(path: Path, items: tuple[str, ...], head: Head) -> Similarity:
    """Read a table of similarities, and refuse in the command's words what a head would."""
    table = read_similarity(path)
    if missing := [item for item in items if item not in table.items]:
        raise RankshotError(
            f"{path}: no column for the seen classes {quote_names(missing)}"
            f"{suggest_name(missing[0], table.items)}"
        )
    table = table.select(table.targets, items)
    if table.unknown_targets:
        raise RankshotError(
            f"{path}: every cell of {quote_names(table.unknown_targets)} is empty; leave out such rows"
        )
    if head is Head.DIRECT and (negative := np.argwhere(table.values < 0)).size:
        row, column = negative[0]
        raise RankshotError(
            f"{path}: {table.targets[row]!r}, {table.items[column]!r}: {table.values[row, column]} "
            "is negative, which --head direct cannot use; --head conse can"
        )
    return table


def _fitted(
    model: BaseHead, path: Path, semantics: Any, reference: Scores | None = None
) -> BaseHead:
    options = {} if reference is None else {"reference": reference}
    try:
        fitted: BaseHead = model.fit(semantics, **options)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    for remark in describe_indistinguishable(fitted):
        say(f"{path}: {remark}")
    return fitted
