"""``rankshot fit``, ``head`` and ``export``: fitted heads in files, which are written and shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rankshot import core, zeroshot
from rankshot.cli.classes import list_label_files, read_seen_labels
from rankshot.cli.console import check_output, print_table, refuse, say
from rankshot.cli.heads import HeadOptions, add_evidence, fit_head, infer_score_type, save_head
from rankshot.core.errors import RankshotError, format_count, quote_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.scores import Kind

NAMES_SHOWN = 12
"""How many names of classes are shown."""


def fit(
    *,
    output: Path,
    options: HeadOptions,
    seen: str | None = None,
) -> None:
    """Fit a head to rankings, and write it to one file.

    The options are those of `classify`. Give the file to `classify`, `explain` or `report` as
    --head: it replaces these options and their files. `rankshot head` shows its contents, and
    `rankshot.load_head` reads it in Python.

    Example: rankshot fit --rankings rankings.jsonl --reference seen_scores.parquet
    -o new-classes.rankshot

    Parameters
    ----------
    output
        The fitted head to write (.rankshot).
    seen : <file or imagenet-1k>
        The seen classes, in the order of the columns of the scores: a file of names or labels, as
        for `rankshot rank`, imagenet-1k, or a table of scores (.csv, .parquet), from which
        the names, the score type and the scores of the inputs in --examples and --evidence are
        taken. The default is --reference.
    """
    from rankshot.zeroshot.head_files import ENDING

    check_output(output, (ENDING,), *list_label_files(seen), *options.files.values())
    table, rows = _open_seen(seen, options.reference)
    if rows is not None:
        known = infer_score_type(rows, options.score_type)
        table = replace(table, score_type=known.score_type)
    model, table = fit_head(add_evidence(table, options.evidence), options)
    save_head(model, output, options, table.score_type)
    n_new = len(model.inner.classes)
    say(
        f"head for {format_count(n_new, 'new class')} and "
        f"{format_count(len(model.inner.seen), 'seen class')} written to {output}; to use it:"
    )
    say(f"  rankshot classify SCORES --head {output} -o PREDICTIONS")


def head(file: Path) -> None:
    """Show the contents of a saved head.

    Example: rankshot head new-classes.rankshot

    Parameters
    ----------
    file
        A fitted head, as `rankshot fit` writes it.
    """
    model = zeroshot.load_head(file)
    try:
        rows = [(fill(what, 24), text) for what, text in _describe_file(model)]
    except (TypeError, ValueError, LookupError, AttributeError):
        raise RankshotError(f"{file}: the description of its origin is damaged") from None
    print_table(file.name, ["", ""], rows, show_header=False)


def _open_seen(seen: str | None, reference: Path | None) -> tuple[ScoreTable, ScoreTable | None]:
    """Return a table with the seen classes, and the only table with scores, if there is one.

    The table of a file of labels has no rows to read; `fit_head` compares two that have.
    """
    from rankshot.zeroshot.files.score_tables import ScoreTable

    path = reference if seen is None else Path(seen)
    if path is None:
        raise RankshotError(
            "give --seen, which names the seen classes in the order of the columns of the scores "
            "(a file of names, imagenet-1k, or a table of scores), or --reference FILE"
        )
    of_reference = None if reference is None else zeroshot.open_scores(reference).keep()
    if path.suffix in core.TABLE_ENDINGS:
        table = of_reference if of_reference and path == reference else None
        table = table or zeroshot.open_scores(path).keep()
        return table, table if of_reference is None or path == reference else None
    kind = "multiclass" if of_reference is None else of_reference.kind
    names = read_seen_labels(str(path)).names
    return ScoreTable.without_rows(path, names, kind), of_reference


# ---- What is shown


def _describe_file(head: Any) -> Iterator[tuple[str, str]]:
    """Yield the lines of the table: what the head is, and how it came about."""
    from rankshot.zeroshot.remarks import describe_examples

    inner = head.inner
    origin = inner.about
    new, seen = inner.classes, inner.seen
    around = "" if head is inner else f"{type(head).__name__} of "
    yield "head", around + " ".join(origin.get("head", repr(inner)).split())
    yield "new classes", f"{len(new):,}: {quote_names(new, NAMES_SHOWN)}"
    yield "seen classes", f"{len(seen):,}: {quote_names(seen, NAMES_SHOWN)}"
    others = "" if len(head.classes_) == len(new) else " and seen classes"
    has_gate = isinstance(head, zeroshot.SeenAndNew)
    none = ", or 'none of these'" if has_gate and head.none else ""
    yield "predicts", f"new{others or ' classes'}{none}"
    yield "scores", origin.get("score_type") or inner.kind or "of any type"
    has_reference = "reference" in origin or getattr(head, "reference_", None) is not None
    yield "reference", "yes, as means and standard deviations" if has_reference else "no"
    yield "temperature", f"{inner.temperature:.3g}"
    if (facts := origin.get("examples")) is not None:
        yield "examples", describe_examples(facts)
    if "evidence_weight" in origin:
        yield "evidence", f"weight {origin['evidence_weight']:.2f}; each input needs it"
    if has_gate:
        yield "budget", "none, without a reference" if head.budget_ is None else str(head.budget_)
    if "rankings" in origin:
        sources = quote_names(origin["sources"]) or "no source named"
        yield "rankings", f"{origin['rankings']:,} ({sources})"
    for what, found in origin.get("files", {}).items():
        yield f"file of {what}", f"{found['name']} (SHA-256 {found['sha256'][:12]}…)"
    for what, value in origin.get("notes", {}).items():
        yield what, _format(value)
    for what in ("note", "created"):
        if what in origin:
            yield what, str(origin[what])
    yield "written by", f"rankshot {origin.get('rankshot', 'of an unknown version')}"


def _format(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_format, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# ---- export


def export(
    head: Path,
    *,
    output: Path,
    attach: Path | None = None,
    network_output: str | None = None,
    preprocessing: str | None = None,
) -> None:
    """Write a fitted head as an ONNX file.

    The outputs are the probabilities of the classes, and the index of the most probable class. The
    names of the classes are in the metadata. Before the file is written, its probabilities are
    compared with those of the head. If the preprocessing of images is known, it is stored in the
    metadata, and Python code that does the same is printed.

    Example: rankshot export new-classes.rankshot --attach network.onnx -o zero-shot.onnx

    Parameters
    ----------
    head
        A fitted head, as `rankshot fit` writes it.
    output
        The file to write (.onnx).
    attach
        A network (.onnx) that computes the scores of the seen classes: the file then contains the
        network and the head, from the network's inputs to the new classes.
    network_output
        The output of the network to use, if several outputs could be the scores.
    preprocessing : <name or file>
        How images are preprocessed for the network, as for `rankshot score`. Not needed if the
        network's metadata or a file preprocessor_config.json next to it describes this.
    """
    from rankshot.recognition.onnx_networks import PREPROCESSING_KEY, find_preprocessing
    from rankshot.zeroshot.onnx_networks import describe_value

    check_output(output, (".onnx",), head, attach)
    refuse(network_output and attach is None, "--network-output needs --attach FILE")
    refuse(preprocessing and attach is None, "--preprocessing needs --attach FILE")
    fitted = zeroshot.load_head(head)
    known = fitted.inner.about.get("score_type")
    kind: Kind = fitted.inner.kind or "multiclass"
    if known is not None:
        kinds: tuple[Kind, ...] = ("one-vs-one", "one-vs-rest")
        kind = next((each for each in kinds if known.startswith(each)), "multiclass")
    made = None if attach is None else find_preprocessing(attach, preprocessing)
    metadata = {} if made is None else {PREPROCESSING_KEY: json.dumps(made.to_config())}
    try:
        exported = zeroshot.export_onnx(
            fitted, output, kind=kind, network=attach, output=network_output, metadata=metadata
        )
    except RankshotError as error:
        # Errors about the network name its file.
        about_head = not str(error).startswith(str(attach))
        raise RankshotError(f"{head}: {error}" if about_head else str(error)) from None
    graph = exported.model.graph
    for what, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            say(f"{what} {value.name!r}: {describe_value(value)}")
    names = quote_names(fitted.classes_.tolist(), NAMES_SHOWN)
    say(f"{format_count(len(fitted.classes_), 'class')} ({names}) written to {output}")
    say(_describe_scores(known, kind, attach, ends_so=exported.from_probabilities))
    if n := fitted.inner.n_features:
        is_input = "features" in {value.name for value in graph.input}
        own = f"the {n} features are the input of the last layer of {attach}"
        say(f"the input 'features' expects the {n} features of the examples" if is_input else own)
    if names := quote_names(fitted.inner.evidence, NAMES_SHOWN):
        say(f"the columns of the input 'evidence' are the other model's scores of {names}")
    say(f"largest difference from the head in a probability: {exported.difference:.1g}")
    if made is not None:
        say(f"preprocessing: {made}; the same in Python, for an image without transparent parts:")
        say("\n".join(f"  {line}" for line in made.to_python()))


def _describe_scores(known: str | None, kind: Kind, network: Path | None, *, ends_so: bool) -> str:
    """Return what the head takes; ``ends_so`` if the network ends with probabilities."""
    scale = "logarithms" if kind == "multiclass" else "log-odds"
    scores = "logits" if kind == "multiclass" else f"{kind} scores"
    was_fitted_so = known is not None and known.endswith("probabilities")
    if ends_so:
        return f"{network} outputs probabilities: the head uses their {scale}"
    if network is not None:
        doubt = (
            "warning: the head was fitted to probabilities, and no softmax or sigmoid was found: "
        )
        return f"{doubt * was_fitted_so}the outputs of {network} are interpreted as {scores}"
    if was_fitted_so:
        return f"the head was fitted to probabilities: the input 'scores' expects their {scale}"
    column = "pair of seen classes" if kind == "one-vs-one" else "seen class"
    return f"the input 'scores' expects {scores}, one column per {column}"
