"""``rankshot export``: a head in one file, for other programs."""

from __future__ import annotations

from pathlib import Path

from rankshot.cli.printing import RequiredOutput, remember_output, require_output, say
from rankshot.core.errors import InputError, format_count

ENDINGS = (".rankshot", ".onnx")


def export(
    source: Path,
    /,
    *,
    output: RequiredOutput,
    attach: Path | None = None,
    note: str = "",
    overwrite: bool = False,
) -> None:
    """Write the head of a run as one file: .rankshot, or .onnx.

    A .rankshot file is for `rankshot classify --head` and `load_head`. An .onnx file maps scores to
    probabilities, or is a whole network with new classes (--attach).

    Example: rankshot export photos.rankshot-run -o new-classes.rankshot

    Example: rankshot export photos.rankshot-run --attach network.onnx -o with-new-classes.onnx

    Parameters
    ----------
    source
        The folder that `rankshot recognise` keeps, or a saved head (.rankshot).
    output
        The file to write (.rankshot, .onnx).
    attach
        A network (.onnx) whose outputs are the scores: the head becomes part of it.
    note
        A note for users of a .rankshot file.
    overwrite
        Replace a file that is not of this run, or was changed.
    """
    from rankshot import zeroshot
    from rankshot.recognition import open_run

    require_output(output, ENDINGS, source, attach, overwrite=overwrite, run=source)
    head = zeroshot.load_head(source) if source.is_file() else open_run(source).head
    classes = format_count(len(head.classes_), "class")
    if output.suffix == ".onnx":
        difference = zeroshot.export_onnx(head, output, network=attach)
        remember_output(output, source)
        say(f"{classes} written to {output}; largest difference {difference:.1e}")
        return
    if attach is not None:
        raise InputError("attach", str(attach), "needs an output that ends in .onnx")
    head.save(output, note=note)
    remember_output(output, source)
    say(f"{classes} written to {output}; next: rankshot classify SCORES --head {output}")
