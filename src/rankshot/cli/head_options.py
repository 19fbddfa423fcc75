"""The head that commands use, by options that they share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from rankshot.ranking.errors import RankshotError
from rankshot.ranking.files import read_rankings
from rankshot.ranking.mallows import Mallows
from rankshot.ranking.plackett_luce import PlackettLuce
from rankshot.semantics.similarity_files import read_similarity
from rankshot.zeroshot.conse import ConSE
from rankshot.zeroshot.decisions import Decisions
from rankshot.zeroshot.deterministic_ranking import DeterministicRanking
from rankshot.zeroshot.direct_similarity import DirectSimilarity
from rankshot.zeroshot.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.score_files import ScoreTable
from rankshot.zeroshot.scores import SUM_TOLERANCE, Scores


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


class ScoresAre(StrEnum):
    """What the numbers in a table of scores are."""

    AUTO = "auto"
    LOGITS = "logits"
    PROBABILITIES = "probabilities"
    ONE_VS_REST_LOGITS = "one-vs-rest-logits"
    ONE_VS_REST_PROBABILITIES = "one-vs-rest-probabilities"


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
ScoresAreOption = Annotated[
    ScoresAre,
    typer.Option(help="What the scores are; by default told from the first rows, and said."),
]


def fitted_head(
    items: tuple[str, ...],
    rankings: Path | None,
    similarity: Path | None,
    head: Head,
    k: int,
    prior: Prior,
    posterior: Posterior,
) -> Decisions:
    """Read what semantics say and fit a head to it."""
    needs_similarity = head in {Head.DIRECT, Head.CONSE}
    if needs_similarity and similarity is None:
        raise RankshotError(f"--head {head} needs --similarity FILE")
    if not needs_similarity and rankings is None:
        raise RankshotError(f"--head {head} needs --rankings FILE; `rankshot rank` makes one")
    if needs_similarity:
        table = read_similarity(str(similarity))
        table = table.select(table.targets, items)
        model: Decisions = DirectSimilarity() if head is Head.DIRECT else ConSE()
        return _fitted(model, table, similarity)
    said = read_rankings(str(rankings), items=items)
    merged_by: Any = PRIORS[prior]()
    if head is Head.DETERMINISTIC:
        model = DeterministicRanking(k=k, prior=merged_by)
    else:
        model = ProbabilisticRanking(k=k, prior=merged_by, posterior=posterior.value)
    return _fitted(model, said, rankings)


def _fitted(model: Decisions, knowledge: Any, path: Path | None) -> Decisions:
    try:
        fitted: Decisions = model.fit(knowledge)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    return fitted


def told_from(values: NDArray[np.floating], table: ScoreTable) -> ScoresAre:
    """Tell probabilities, which add up to one in every row, from logits."""
    if table.kind == "one-vs-one" or values.shape[1] < 2:
        return ScoresAre.LOGITS
    inside = bool((values >= 0).all() and (values <= 1).all())
    adds_up = bool((np.abs(values.sum(axis=1) - 1) <= SUM_TOLERANCE).all())
    return ScoresAre.PROBABILITIES if inside and adds_up else ScoresAre.LOGITS


def as_scores_of(values: NDArray[np.floating], table: ScoreTable, are: ScoresAre) -> Scores:
    """Return a batch as scores on the scale of logarithms."""
    kind = "one-vs-rest" if are.startswith("one-vs-rest") else table.kind
    if kind != table.kind == "one-vs-one":
        raise RankshotError(f"{table.path}: has a column a pair of classes, not one-vs-rest")
    if are.endswith("probabilities"):
        return Scores.from_probabilities(values, table.items, kind)
    return Scores(values, table.items, kind)
