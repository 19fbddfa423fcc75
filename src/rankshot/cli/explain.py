"""``rankshot explain``: why inputs got their classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankshot.cli.console import say
from rankshot.cli.head_options import (
    DECAY,
    DecayOption,
    Head,
    HeadOption,
    HeadPriorOption,
    K,
    KOption,
    Posterior,
    PosteriorOption,
    RankingsOption,
    ReferenceOption,
    SimilarityOption,
    fitted_head,
)
from rankshot.cli.score_options import ScoresAre, ScoresAreOption, first_names, inputs_named
from rankshot.core.errors import RankshotError
from rankshot.zeroshot import explanation
from rankshot.zeroshot.files.score_tables import open_scores

FIRST = 3
"""How many inputs are explained where none is named."""


def explain(
    scores: Annotated[
        Path, typer.Argument(help="The table of scores, as for `classify` (.csv, .parquet, .npz).")
    ],
    rankings: RankingsOption = None,
    similarity: SimilarityOption = None,
    id: Annotated[  # noqa: A002
        list[str] | None,
        typer.Option(
            metavar="<id>",
            help="Which input, by its id (or row number, without ids); may be repeated. By "
            "default the first three.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="What to explain; by default the class predicted.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Compare with this class; by default the average.")
    ] = None,
    head: HeadOption = Head.PROBABILISTIC,
    k: KOption = K,
    decay: DecayOption = DECAY,
    posterior: PosteriorOption = Posterior.MEAN,
    prior: HeadPriorOption = None,
    reference: ReferenceOption = None,
    scores_are: ScoresAreOption = ScoresAre.AUTO,
) -> None:
    """Say which seen classes, and which sources, pushed an input towards its class.

    Example: rankshot explain scores.parquet --rankings rankings.jsonl --id img17 --against dog
    """
    if head is Head.DETERMINISTIC:
        raise RankshotError(
            "--head deterministic cannot be explained: it compares whole rankings; others can"
        )
    table = open_scores(scores)
    model, scores_are = fitted_head(
        table,
        scores_are,
        rankings=rankings,
        similarity=similarity,
        head=head,
        k=k,
        decay=decay,
        prior=prior,
        posterior=posterior,
        reference=reference,
    )
    names = id or first_names(table, FIRST)
    for name, one in inputs_named(table, names, scores_are):
        why = explanation.explain(model, one, target=target, against=against)[0]
        say(f"{name}: {why}\n")
