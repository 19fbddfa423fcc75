"""``rankshot suggest``: the inputs whose labels help most, as a table to fill in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rankshot import core, zeroshot
from rankshot.cli.console import check_output, refuse, say
from rankshot.cli.heads import (
    PROBABILITY,
    HeadOptions,
    fit_head,
    open_table,
    read_labels,
)
from rankshot.core.errors import format_count, quote_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Guesses = tuple[list[str], zeroshot.Scores, NDArray[np.str_], NDArray[np.floating]]
    """All inputs: ids, what tells them apart, the most probable class, and its probability."""


def suggest(
    inputs: Path,
    *,
    output: Path,
    options: HeadOptions,
    number: int = 20,
) -> None:
    """Suggest inputs to label as examples of new classes.

    The suggested inputs are the centres of clusters, so that each represents many others. The
    output has the columns id, guess, probability and label. Fill in as many labels as you like, and
    give the file to --examples of `classify`, `recognise` or `fit`. With --examples, inputs that
    have a label are not suggested again: they come first in the output, with their labels.

    Example: rankshot suggest scores.parquet --head new-classes.rankshot -n 20 -o labels.csv

    Example: rankshot suggest predictions.csv -n 20 -o labels.csv

    Parameters
    ----------
    inputs
        The scores of the inputs, with the options of `classify` (.csv, .parquet); or
        predictions (.csv, .parquet), which distinguish the inputs less well.
    output
        The table to fill in (.csv).
    number
        The number of inputs to suggest.
    """
    from rankshot.review.suggestions import add_suggestions

    core.require_whole_number("--number", number)
    # A table that exists is added to.
    check_output(output, (".csv",), inputs)
    is_predicted = (
        inputs.suffix in core.TABLE_ENDINGS and PROBABILITY in core.read_columns(inputs)[0]
    )
    read = _read_predictions if is_predicted else _classify
    ids, scores, guesses, proba = read(inputs, options)
    known = {}
    if options.examples is not None and core.ID in core.read_columns(options.examples)[0]:
        known = {name: label.name for name, label in read_labels(options.examples).items()}
    n = add_suggestions(output, ids, scores, guesses, proba, number=number, labels=known)
    refuse(not n, f"{inputs}: all inputs have a label in {output}")
    say(f"{format_count(n, 'input')} to label in {output}: fill in the column {core.LABEL!r}, and")
    say(f"  give --examples {output} to rankshot classify, recognise or fit")


def _read_predictions(path: Path, options: HeadOptions) -> _Guesses:
    """Read predictions: inputs are distinguished by their probabilities."""
    import numpy as np

    from rankshot.zeroshot.decide import most_probable

    refuse(
        {*options.files} - {"examples"} or options.score_type != "auto",
        f"{path}: has predictions, so no head is needed: leave out all options but --examples, or "
        "give the scores instead",
    )
    predicted = zeroshot.read_predictions(path)
    ids = predicted.ids.tolist()
    if options.examples is not None:
        missing = sorted(read_labels(options.examples).keys() - set(ids))
        refuse(missing, f"{options.examples}: {quote_names(missing)} not found in {path}")
    best = most_probable(predicted.proba)
    proba = predicted.proba[np.arange(len(ids)), best]
    scores = zeroshot.Scores.from_probabilities(predicted.proba, predicted.targets)
    return ids, scores, np.array(predicted.targets)[best], proba


def _classify(path: Path, options: HeadOptions) -> _Guesses:
    """Classify inputs, which are distinguished by their scores."""
    table = open_table(path, options)
    model, table = fit_head(table, options)
    ids, scores = table.read()
    best = model.top(scores, 1)
    return ids, scores, best.labels[:, 0], best.proba[:, 0]
