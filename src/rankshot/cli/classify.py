"""``rankshot classify``: a table of scores in, labels and probabilities out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankshot.cli.console import check_writable, progress_bar, say
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
from rankshot.cli.score_options import ScoresAre, ScoresAreOption, as_scores_of, told_from
from rankshot.core.errors import RankshotError
from rankshot.zeroshot.files.predictions import open_predictions
from rankshot.zeroshot.files.score_tables import open_scores
from rankshot.zeroshot.heads.base import REJECTED, label_or_reject


def classify(
    scores: Annotated[
        Path,
        typer.Argument(
            help="A table with a column for each seen class, and perhaps one named id (.csv, "
            ".parquet, .npz)."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The predictions to write (.csv, .parquet).")
    ],
    rankings: RankingsOption = None,
    similarity: SimilarityOption = None,
    head: HeadOption = Head.PROBABILISTIC,
    k: KOption = K,
    decay: DecayOption = DECAY,
    posterior: PosteriorOption = Posterior.MEAN,
    prior: HeadPriorOption = None,
    reference: ReferenceOption = None,
    scores_are: ScoresAreOption = ScoresAre.AUTO,
    reject_below: Annotated[
        float | None,
        typer.Option(help="Label an input `rejected` if no class is at least so probable."),
    ] = None,
    batch_rows: Annotated[
        int | None,
        typer.Option(help="Rows read at a time; by default those of a million scores."),
    ] = None,
) -> None:
    """Classify inputs as new classes, from a classifier's scores for the classes it knows.

    Example: rankshot classify scores.parquet --rankings rankings.jsonl -o predictions.parquet
    """
    if reject_below is not None and not 0 <= reject_below <= 1:
        raise RankshotError(f"--reject-below must be a probability, not {reject_below}")
    if batch_rows is not None and batch_rows < 1:
        raise RankshotError(f"--batch-rows must be 1 or more, not {batch_rows}")
    check_writable(output, scores, rankings, similarity, reference)
    table = open_scores(scores, batch_rows)
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
    targets = model.classes_
    if reject_below is not None and REJECTED in targets:
        raise RankshotError(f"--reject-below: a class is called {REJECTED!r}; rename it")
    counts: Counter[str] = Counter()
    done = 0
    with open_predictions(output, targets) as writer, progress_bar() as bar:
        task = bar.add_task("classifying", total=table.n_rows)
        for ids, batch in table.batches():
            if scores_are is ScoresAre.AUTO:
                scores_are = told_from(batch.values, table)
            rows = range(done, done + len(batch))
            log_proba = model.predict_log_proba(as_scores_of(batch.values, table, scores_are, rows))
            labels = label_or_reject(log_proba, targets, reject_below, REJECTED)
            writer.write(ids, labels, np.exp(log_proba))
            counts.update(labels.tolist())
            done += len(batch)
            bar.advance(task, len(batch))
    _show(counts, output)


def _show(counts: Counter[str], output: Path) -> None:
    total = sum(counts.values())
    shown = Table(title="Predicted classes")
    shown.add_column("class")
    shown.add_column("inputs", justify="right")
    shown.add_column("share", justify="right")
    for label, count in counts.most_common(20):
        shown.add_row(Text(label), f"{count:,}", f"{count / total:.1%}")
    console = Console()
    console.print(shown)
    if len(counts) > 20:
        say(f"and {len(counts) - 20} more classes", console)
    say(f"{total:,} predictions written to {output}", console)
