"""Classify a table of scores of any length: read, decide and write, one batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rankshot.zeroshot.files.predictions import open_predictions
from rankshot.zeroshot.files.score_tables import ScoreTable
from rankshot.zeroshot.files.table_scores import build_scores
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.runner import REJECTED, label_or_reject

STAGES = ("reading", "classifying", "writing")


@dataclass
class Classified:
    """How a table was classified.

    Attributes
    ----------
    counts : Counter of str
        How often each class was predicted; `REJECTED` is one of them.
    seconds : dict of str to float
        The time of reading, classifying and writing.
    """

    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        """Add the time of the block to a stage."""
        begin = perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += perf_counter() - begin


def classify_to_file(
    table: ScoreTable,
    head: BaseHead,
    score_type: str,
    output: Path,
    reject_below: float | None = None,
    *,
    id_prefix: str = "",
    check_first: Callable[[NDArray[np.floating]], None] | None = None,
    describe: Callable[[Classified], dict[str, str]] | None = None,
    advance: Callable[[int], None] | None = None,
) -> Classified:
    """Write the predictions of a fitted head for a table of scores.

    Parameters
    ----------
    table : ScoreTable
    head : BaseHead
    score_type : str
        One of `SCORE_TYPES` except auto.
    output : Path
        Ends in .csv or .parquet; it is replaced when all rows are written.
    reject_below : float, optional
        Inputs of which no class has this probability are labelled `REJECTED`.
    id_prefix : str
        Comes before the number of a row, which is its id in a table without ids.
    check_first : callable, optional
        Called with the numbers of the first batch, before they are taken as scores of this type.
    describe : callable, optional
        Called after the last row; returns what goes into the footer of a Parquet file.
    advance : callable, optional
        Called with the number of rows of each batch.
    """
    done, n_rows = Classified(), 0
    metadata: dict[str, str] = {}
    is_empty = table.n_rows == 0
    with ExitStack() as stack:
        writer = stack.enter_context(
            open_predictions(output, head.classes_, metadata, allow_empty=is_empty)
        )
        batches = table.batches()
        while True:
            with done.time("reading"):
                ids, batch = next(batches, (None, None))
            if batch is None:
                break
            rows = range(n_rows, n_rows + len(batch))
            if check_first is not None and n_rows == 0:
                check_first(batch.values)
            with done.time("classifying"):
                scores = build_scores(batch.values, table, score_type, rows)
                log_proba = head.predict_log_proba(scores)
                labels = label_or_reject(log_proba, head.classes_, reject_below, REJECTED)
                done.counts.update(labels.tolist())
            with done.time("writing"):
                names = (f"{id_prefix}{row}" for row in rows) if ids is None else ids
                writer.write(names, labels, np.exp(log_proba))
            n_rows += len(batch)
            if advance is not None:
                advance(len(batch))
        if describe is not None:
            metadata.update(describe(done))
        # Parquet is written when there are enough rows, or no more.
        with done.time("writing"):
            stack.close()
    return done
