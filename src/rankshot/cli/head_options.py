"""The head that commands use, by options that they share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from rankshot.cli.console import say
from rankshot.ranking.errors import RankshotError, did_you_mean, listed
from rankshot.ranking.files import read_rankings
from rankshot.ranking.mallows import Mallows
from rankshot.ranking.plackett_luce import PlackettLuce
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.similarity_files import read_similarity
from rankshot.zeroshot.conse import ConSE
from rankshot.zeroshot.decisions import Decisions
from rankshot.zeroshot.deterministic_ranking import DeterministicRanking
from rankshot.zeroshot.direct_similarity import DirectSimilarity
from rankshot.zeroshot.knowledge import Knowledge, of_unseen
from rankshot.zeroshot.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.score_files import ScoreTable
from rankshot.zeroshot.semantic_prior import remarks_on, require_targets


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

    CONSENSUS = "consensus"
    MEAN = "mean"
    SUM = "sum"


PRIORS = {Prior.PLACKETT_LUCE: PlackettLuce, Prior.MALLOWS: Mallows}

RankingsOption = Annotated[
    Path | None,
    typer.Option(help="Rankings of the seen classes for each new one (.jsonl), as from `rank`."),
]
SimilarityOption = Annotated[
    Path | None,
    typer.Option(help="Similarities for --head direct and conse (.csv, .parquet)."),
]
HeadOption = Annotated[Head, typer.Option(help="The method.")]
KOption = Annotated[int, typer.Option("--k", help="How many places of each ranking count.")]
PriorOption = Annotated[Prior, typer.Option(help="The model that merges a class's rankings.")]
PosteriorOption = Annotated[
    Posterior,
    typer.Option(help="Merge a class's rankings, take their mean, or sum over all rankings."),
]


SEED = 0
"""Where rankings are drawn for --posterior sum: a job gives the same answers every day."""


def fitted_head(
    scores: ScoreTable,
    rankings: Path | None,
    similarity: Path | None,
    head: Head,
    k: int,
    prior: Prior,
    posterior: Posterior,
) -> Decisions:
    """Read what semantics say of a table's classes, and fit a head to it."""
    if k < 1:
        raise RankshotError(f"--k must be 1 or more, not {k}")
    if head in {Head.DIRECT, Head.CONSE}:
        if similarity is None:
            raise RankshotError(f"--head {head} needs --similarity FILE")
        if scores.kind == "one-vs-one":
            raise RankshotError(
                f"{scores.path}: has a column for each pair of classes, and --head {head} needs "
                "one for each class; --head probabilistic and deterministic take pairs"
            )
        model: Decisions = DirectSimilarity() if head is Head.DIRECT else ConSE()
        return _fitted(model, _similarities(similarity, scores.items, head), similarity)
    if rankings is None:
        raise RankshotError(f"--head {head} needs --rankings FILE; `rankshot rank` makes one")
    said = _rankings(rankings, scores)
    merged_by: Any = PRIORS[prior]()
    if head is Head.DETERMINISTIC:
        model = DeterministicRanking(k=k, prior=merged_by)
    else:
        model = ProbabilisticRanking(
            k=k, prior=merged_by, posterior=posterior.value, random_state=SEED
        )
    return _fitted(model, said, rankings)


def _rankings(path: Path, scores: ScoreTable) -> Knowledge:
    """Read the rankings of classes that the scores do not have, and say what they leave out."""
    try:
        said = read_rankings(path, items=scores.items)
    except RankshotError as error:
        if "unknown item" not in str(error):
            raise
        there = f"the columns of {scores.path} are {listed(scores.items)}"
        raise RankshotError(f"{error}; {there}") from None
    try:
        new = of_unseen(require_targets(said))
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    if known := sorted(set(said.targets) - set(new.targets)):
        say(f"{path}: rankings of {listed(known)} are left out: the scores have such classes")
    named = set(said.entries.tolist())
    if unnamed := [item for i, item in enumerate(said.items) if i not in named]:
        say(f"{scores.path}: no ranking names {listed(unnamed, 4)}")
    return new


def _similarities(path: Path, items: tuple[str, ...], head: Head) -> Similarity:
    """Read a table of similarities, and refuse in the command's words what a head would."""
    table = read_similarity(path)
    if missing := [item for item in items if item not in table.items]:
        raise RankshotError(
            f"{path}: no column for the seen classes {listed(missing)}"
            f"{did_you_mean(missing[0], table.items)}"
        )
    table = table.select(table.targets, items)
    if table.unknown_targets:
        raise RankshotError(
            f"{path}: every cell of {listed(table.unknown_targets)} is empty; leave out such rows"
        )
    if head is Head.DIRECT and (negative := np.argwhere(table.values < 0)).size:
        row, column = negative[0]
        raise RankshotError(
            f"{path}: {table.targets[row]!r}, {table.items[column]!r}: {table.values[row, column]} "
            "is negative, which --head direct cannot use; --head conse can"
        )
    return table


def _fitted(model: Decisions, knowledge: Any, path: Path) -> Decisions:
    try:
        fitted: Decisions = model.fit(knowledge)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    for remark in remarks_on(fitted):
        say(f"{path}: {remark}")
    return fitted
