"""``rankshot suggest``: the inputs whose labels help most, as a table to fill in."""

from __future__ import annotations

from pathlib import Path

from rankshot.cli.console import check_output, refuse, say
from rankshot.cli.heads import HeadOptions, fit_head, open_table
from rankshot.cli.score_inputs import GUESS, PROBABILITY, read_labels, read_scores
from rankshot.core.errors import format_count
from rankshot.core.files import replace_file


def suggest(
    scores: Path,
    *,
    output: Path,
    options: HeadOptions,
    number: int = 20,
) -> None:
    """Suggest inputs to label as examples of new classes.

    The suggested inputs are the centers of clusters, so that each represents many others. The
    output has the columns id, guess, probability and label. Fill in as many labels as you like,
    and give the file to --examples of `classify`, `recognise` or `fit`. With --examples, inputs
    that have a label are not suggested again: they come first in the output, with their labels.

    Example: rankshot suggest scores.parquet --head new-classes.rankshot -n 20 -o labels.csv

    Parameters
    ----------
    scores
        The table of scores, as for `classify` (.csv, .parquet, .npz).
    output
        The table to fill in (.csv).
    number
        The number of inputs to suggest.
    """
    import numpy as np

    from rankshot.core.tables import ID, LABEL, open_csv_writer, read_columns
    from rankshot.core.validation import require_whole_number
    from rankshot.zeroshot.suggestions import choose_diverse

    require_whole_number("--number", number)
    check_output(output, (".csv",), scores, *options.files.values())
    model, table = fit_head(open_table(scores, options), options)
    ids, values = read_scores(table)
    best = model.top(values, 1)
    known = {}
    if options.examples is not None and ID in read_columns(options.examples)[0]:
        known = read_labels(options.examples)
    labelled = [row for row, name in enumerate(ids) if name in known]
    left = np.delete(np.arange(len(ids)), labelled)
    refuse(not left.size, f"{scores}: all inputs have a label in {options.examples}")
    rows = [*labelled, *choose_diverse(values, left, number).tolist()]
    with replace_file(output) as stream:
        writer = open_csv_writer(stream)
        writer.writerow([ID, GUESS, PROBABILITY, LABEL])
        for row in rows:
            label = known[ids[row]].name if ids[row] in known else ""
            writer.writerow([ids[row], best.labels[row, 0], f"{best.proba[row, 0]:.3f}", label])
    kept = f" ({format_count(len(labelled), 'label')} of {options.examples} kept)" * bool(labelled)
    n = format_count(len(rows) - len(labelled), "input")
    say(f"{n} to label written to {output}{kept}: fill in the column {LABEL!r}, and give the file")
    say(f"  to --examples {output} of rankshot classify, recognise or fit")
