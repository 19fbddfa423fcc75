"""``rankshot fit`` writes a fitted head to one file, and ``rankshot head`` shows what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankshot.cli.class_options import list_label_files, read_seen_labels
from rankshot.cli.console import check_writable, say
from rankshot.cli.heads import HeadOptions, fit_head, innermost_head, takes_head
from rankshot.cli.score_tables import ScoreType, ScoreTypeOption, infer_score_type
from rankshot.core.errors import RankshotError, format_count, quote_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.heads.base import BaseHead

NAMES_SHOWN = 12
"""How many names of classes are shown."""
NAME_WIDTH = 24
"""How wide the first column is at most."""


@takes_head()
def fit(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The fitted head to write (.rankshot).")
    ],
    options: HeadOptions,
    seen: Annotated[
        str | None,
        typer.Option(
            metavar="<file or imagenet-1k>",
            help="The seen classes, in the order of the columns of the scores: a file of names or "
            "labels, as for `rankshot rank`, imagenet-1k, or a table of scores (.csv, .parquet, "
            ".npz), of which only the names and the score type are used. The default is "
            "--reference.",
        ),
    ] = None,
    score_type: ScoreTypeOption = ScoreType.AUTO,
    note: Annotated[str, typer.Option(help="A remark to keep in the file.")] = "",
) -> None:
    """Fit a head to rankings or similarities, and write it to one file.

    The options are those of `classify`. `classify`, `explain` and `report` take the file with
    --head, in place of these options and of the files that they name. `rankshot head` shows what
    is in it, and `rankshot.load_head` reads it in Python.

    Example: rankshot fit --rankings rankings.jsonl --reference seen_scores.parquet
    -o new-classes.rankshot
    """
    from rankshot.core.files import require_ending
    from rankshot.zeroshot.files.head_files import ENDING

    require_ending(output, (ENDING,))
    labels = list_label_files(seen)
    check_writable(output, *labels, *options.files)
    table = _open_seen(seen, options.reference)
    rows = _find_rows(table, options.reference)
    if score_type is ScoreType.AUTO and rows is not None:
        score_type = infer_score_type(next(rows.batches())[1].values, rows)
    model, score_type = fit_head(table, score_type, options)
    save_head(model, output, options, score_type, note)
    n_new = len(innermost_head(model).classes_)
    say(
        f"head for {format_count(n_new, 'new class')} and "
        f"{format_count(len(model.items_), 'seen class')} written to {output}; to use it:"
    )
    say(f"  rankshot classify SCORES --head {output} -o PREDICTIONS")


def head(
    file: Annotated[Path, typer.Argument(help="A fitted head, as `rankshot fit` writes it.")],
) -> None:
    """Show what is in the file of a fitted head.

    Example: rankshot head new-classes.rankshot
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rankshot.zeroshot import load_head

    model = load_head(file)
    table = Table(title=file.name, show_header=False)
    table.add_column(max_width=NAME_WIDTH)
    table.add_column(overflow="fold")
    try:
        for what, text in _describe_file(model):
            table.add_row(what, Text(text))
    except (TypeError, ValueError, LookupError, AttributeError):
        raise RankshotError(f"{file}: what it says of its origin is damaged") from None
    Console().print(table)


def _open_seen(seen: str | None, reference: Path | None) -> ScoreTable:
    """Return a table with the seen classes; that of a file of labels has no rows to read."""
    from rankshot.zeroshot.files.score_tables import ENDINGS, ScoreTable, open_scores

    path = reference if seen is None else Path(seen)
    if path is None:
        raise RankshotError(
            "give --seen, which names the seen classes in the order of the columns of the scores "
            "(a file of names, imagenet-1k, or a table of scores), or --reference FILE"
        )
    if path.suffix in ENDINGS:
        return open_scores(path)
    kind = "multiclass" if reference is None else open_scores(reference).kind
    names = read_seen_labels(str(path)).names
    return ScoreTable(path, names, kind, has_ids=False, n_rows=0, batch_rows=1)


def _find_rows(table: ScoreTable, reference: Path | None) -> ScoreTable | None:
    """Return the only table with scores, if there is one; `fit_head` compares two of them."""
    from rankshot.zeroshot.files.score_tables import open_scores

    if reference is None:
        return None if table.n_rows == 0 else table
    return open_scores(reference) if table.n_rows == 0 or table.path == reference else None


def save_head(
    model: BaseHead, output: Path, options: HeadOptions, score_type: ScoreType, note: str = ""
) -> None:
    """Write a head that was fitted with these options, and which files it is from."""
    import json

    files = {
        "rankings": options.rankings,
        "reference": options.reference,
        "settings": options.settings_file,
    }
    provenance: dict[str, Any] = {
        "files": {
            what: {"name": path.name, "sha256": hash_file(path)}
            for what, path in files.items()
            if path is not None
        }
    }
    if score_type is not ScoreType.AUTO:
        provenance["score_type"] = score_type.value
    if options.settings_file is not None:
        provenance["settings"] = json.loads(options.settings_file.read_bytes())
    model.save(output, note=note, provenance=provenance)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of the content of a file."""
    import hashlib

    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# ---- What is shown


def _describe_file(head: Any) -> Iterator[tuple[str, str]]:
    """Yield the lines of the table: what the head is, and how it came about."""
    inner: Any = innermost_head(head)
    origin = head.provenance_
    new, seen = inner.classes_.tolist(), head.items_
    around = "" if head is inner else f"{type(head).__name__} of "
    yield "head", around + " ".join(repr(inner).split())
    yield "new classes", f"{len(new):,}: {quote_names(new, NAMES_SHOWN)}"
    yield "seen classes", f"{len(seen):,}: {quote_names(seen, NAMES_SHOWN)}"
    others = "" if len(head.classes_) == len(new) else " and seen classes"
    none = ", or 'none of these'" if getattr(head, "none", False) else ""
    yield "predicts", f"new{others or ' classes'}{none}"
    yield "scores", origin.get("score_type") or head._expected_kind() or "of any type"
    has_reference = any(getattr(part, "reference_", None) is not None for part in (head, inner))
    yield "reference", "yes, as means and standard deviations" if has_reference else "no"
    yield "temperature", f"{inner.temperature_:.3g}"
    if (gate := getattr(head, "gate_", None)) is not None:
        yield "gate", str(gate)
    if "rankings" in origin:
        sources = quote_names(origin["sources"]) or "no source named"
        yield "rankings", f"{origin['rankings']:,} ({sources})"
    for what, found in origin.get("files", {}).items():
        yield f"file of {what}", f"{found['name']} (SHA-256 {found['sha256'][:12]}…)"
    for what, value in origin.get("settings", {}).get("notes", {}).items():
        yield what, _format(value)
    for what in ("note", "created"):
        if what in origin:
            yield what, str(origin[what])
    yield "written by", f"rankshot {origin.get('rankshot', 'of an unknown version')}"


def _format(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_format, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
