"""``rankshot score``: a model and images, or texts, in; a table of scores out."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from cyclopts import Parameter

from rankshot.cli.printing import FileOrName, Input, RequiredOutput, say
from rankshot.core.errors import format_count, join_some

REASONS_SHOWN = 5
MOST_CHECKED = 20_000
"""Inputs whose scores are described, about."""


def score(
    inputs: Input,
    /,
    *,
    model: FileOrName,
    output: RequiredOutput,
    seen: FileOrName | None = None,
    preprocessing: FileOrName | None = None,
    features: Annotated[bool, Parameter(negative="--no-features")] = True,
    batch_size: int = 16,
    on_error: Literal["stop", "skip"] = "stop",
    overwrite: bool = False,
) -> None:
    """Run a model on images or texts, and write its scores.

    The scores are the input of `rankshot classify`. If the output is a folder, they are written in
    parts, and an interrupted run continues when the same command is run again.

    Example: rankshot score photos/ --model network.onnx --seen imagenet-1k --preprocessing
    imagenet -o scores.parquet

    Parameters
    ----------
    inputs
        A folder of images (subfolders included), an image, a list of paths or texts (.txt, one per
        line), or a table with a column text or path, and optionally id (.csv, .jsonl).
    model
        A network (.onnx), a transformers model (a folder or its name on the hub), a scikit-learn
        pipeline (.skops), or efficientnet-lite0, which was trained on ImageNet.
    output
        The scores to write (.parquet, .csv); or a folder for many parts.
    seen
        The names of the classes in the order of the model's outputs: a file, or imagenet-1k. Not
        needed if they are in the model.
    preprocessing
        How images are preprocessed: imagenet, efficientnet-lite, clip, or a file
        preprocessor_config.json (one next to the model is found automatically).
    features
        Keep the input of the model's last layer beside the scores, by which labelled examples are
        compared.
    batch_size
        The number of inputs per call to the model.
    on_error
        What to do with inputs that cannot be read: stop, or skip and list them in a file.
    overwrite
        Replace a table that is there, or the parts of another model.
    """
    from rankshot.recognition import check_scores, write_scores
    from rankshot.zeroshot import Scores, open_scores

    run = write_scores(
        model,
        inputs,
        output,
        seen,
        preprocessing=preprocessing,
        features=features,
        batch_size=batch_size,
        on_error=on_error,
        overwrite=overwrite,
    )
    kept = f"; {run.n_kept} of {run.n_parts} parts by an earlier run" * bool(run.n_kept)
    say(f"{format_count(run.n_rows, 'input')} scored{kept}; scores written to {output}")
    # Some reasons name sizes and the like, and would all be different.
    reasons = Counter(reason.partition(" (")[0] for _, reason, is_input in run.skipped if is_input)
    if reasons:
        shown = join_some((f"{n:,} {reason}" for reason, n in reasons.most_common()), REASONS_SHOWN)
        say(f"skipped {format_count(reasons.total(), 'input')}: {shown}")
    # Inputs are often in the order of their classes: some are taken evenly.
    step = max(1, run.n_rows // MOST_CHECKED)
    some = [batch[::step] for _, batch in open_scores(output).batches()]
    for line in check_scores(Scores.concatenate(some)).describe() if some else ():
        say(line)
