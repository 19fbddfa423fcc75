"""``rankshot export``: a fitted head as an ONNX file, alone or behind the network it belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankshot.cli.console import check_writable, say
from rankshot.cli.score_tables import ScoreType
from rankshot.core.errors import RankshotError, format_count, quote_names

if TYPE_CHECKING:
    from rankshot.zeroshot.heads.base import BaseHead
    from rankshot.zeroshot.scores import Kind

NAMES_SHOWN = 6
"""How many names of classes are shown."""


def export(
    head: Annotated[Path, typer.Argument(help="A fitted head, as `rankshot fit` writes it.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write (.onnx).")],
    attach: Annotated[
        Path | None,
        typer.Option(
            help="A network (.onnx) whose outputs are the scores of the seen classes: the file "
            "then has the network and the head, from the network's inputs to the new classes."
        ),
    ] = None,
    network_output: Annotated[
        str | None,
        typer.Option(help="The output of the network to use, if several may be the scores."),
    ] = None,
) -> None:
    """Write a fitted head as an ONNX file, alone or behind a network.

    The outputs are the probabilities of the classes, and the number of the most probable class.
    The names of the classes are in the metadata. Before the file is written, its probabilities
    are compared with those of the head.

    Example: rankshot export new-classes.rankshot --attach network.onnx -o zero-shot.onnx
    """
    from rankshot.core.files import require_ending
    from rankshot.zeroshot import export_onnx, load_head

    require_ending(output, (".onnx",))
    check_writable(output, head, attach)
    if network_output is not None and attach is None:
        raise RankshotError("--network-output is for --attach FILE")
    fitted = load_head(head)
    known = fitted.provenance_.get("score_type")
    kind = _find_kind(fitted, known)
    try:
        exported = export_onnx(fitted, output, kind=kind, network=attach, output=network_output)
    except RankshotError as error:
        # Errors about the network name its file.
        about_head = not str(error).startswith(str(attach))
        raise RankshotError(f"{head}: {error}" if about_head else str(error)) from None
    _print_file(output, exported.model.graph, fitted)
    say(_describe_scores(known, kind, attach, ends_so=exported.from_probabilities))
    say(f"largest difference from the head in a probability: {exported.difference:.1g}")


def _find_kind(head: BaseHead, known: str | None) -> Kind:
    """Return the kind of scores that a saved head was fitted for; multiclass if it is not known."""
    if known is None:
        return head._expected_kind() or "multiclass"
    if known == ScoreType.ONE_VS_ONE:
        return "one-vs-one"
    return "one-vs-rest" if known.startswith("one-vs-rest") else "multiclass"


def _print_file(path: Path, graph: Any, head: BaseHead) -> None:
    for what, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            say(f"{what} {value.name!r}: {_describe_type(value)}")
    names = quote_names(head.classes_.tolist(), NAMES_SHOWN)
    say(f"{format_count(len(head.classes_), 'class')} ({names}) written to {path}")


def _describe_type(value: Any) -> str:
    from onnx import TensorProto

    tensor = value.type.tensor_type
    shape = [str(dim.dim_value or dim.dim_param or "any") for dim in tensor.shape.dim]
    return f"{TensorProto.DataType.Name(tensor.elem_type).lower()} ({', '.join(shape)})"


def _describe_scores(known: str | None, kind: Kind, network: Path | None, *, ends_so: bool) -> str:
    """Return what the head takes; ``ends_so`` if the network ends with probabilities."""
    scale = "logarithms" if kind == "multiclass" else "log-odds"
    scores = "logits" if kind == "multiclass" else f"{kind} scores"
    was_fitted_so = known is not None and known.endswith("probabilities")
    if ends_so:
        return f"{network} ends with probabilities: the head takes their {scale}"
    if network is not None and was_fitted_so:
        return (
            f"warning: the head was fitted to probabilities, and {network} does not end with a "
            f"softmax or sigmoid: its outputs are taken as {scores}"
        )
    if network is not None:
        return f"the outputs of {network} are taken as {scores}"
    if was_fitted_so:
        return f"the head was fitted to probabilities: the input 'scores' expects their {scale}"
    column = "pair of seen classes" if kind == "one-vs-one" else "seen class"
    return f"the input 'scores' expects {scores}, one column per {column}"
