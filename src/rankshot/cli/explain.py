"""``rankshot explain``: why inputs were given their classes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rankshot.cli.console import say
from rankshot.cli.heads import HeadOptions, fit_head, takes_head
from rankshot.cli.score_tables import ScoreType, ScoreTypeOption, find_inputs, read_first_ids
from rankshot.core.errors import RankshotError

FIRST = 3
"""How many inputs are explained by default."""


@takes_head()
def explain(
    scores: Annotated[
        Path, typer.Argument(help="The table of scores, as for `classify` (.csv, .parquet, .npz).")
    ],
    options: HeadOptions,
    id: Annotated[  # noqa: A002
        list[str] | None,
        typer.Option(
            metavar="<id>",
            help="The id of an input to explain, or its row number if the table has no ids; may "
            "be repeated. The default is the first three inputs.",
        ),
    ] = None,
    new_class: Annotated[
        str | None,
        typer.Option(help="The class to explain. The default is the predicted class."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="The new class to compare with. The default is the average over all new classes."
        ),
    ] = None,
    score_type: ScoreTypeOption = ScoreType.AUTO,
) -> None:
    """Show why inputs got their classes.

    For each input, the output says how much each seen class and each source contributes.

    Example: rankshot explain scores.parquet --rankings rankings.jsonl --id img17 --against dog
    """
    from rankshot.zeroshot import explain as explain_scores
    from rankshot.zeroshot.files.score_tables import open_scores

    if options.head == "deterministic":
        raise RankshotError(
            "--head deterministic cannot be explained because it compares whole rankings; the "
            "other heads can"
        )
    table = open_scores(scores)
    model, score_type = fit_head(table, score_type, options)
    ids = id or read_first_ids(table, FIRST)
    for name, scores_of_one in find_inputs(table, ids, score_type):
        why = explain_scores(model, scores_of_one, target=new_class, against=against)[0]
        say(f"{name}: {why}\n")
