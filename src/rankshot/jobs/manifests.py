"""The manifest of an output folder: which job fills it, from which parts.

``_rankshot.json`` describes the job (head, settings) and lists the parts of the input with their
versions. A second start reads it: the same job goes on, another one is refused.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from rankshot.core.errors import RankshotError, quote_names
from rankshot.jobs.storage import (
    OutputError,
    Part,
    follow_links,
    has_pattern,
    is_file,
    is_visible,
    join_address,
    list_files,
    read_bytes,
    remove_files,
    write_text,
)

MANIFEST = "_rankshot.json"
FAILED = "_failed.csv"
FORMAT = "rankshot parts"
VERSION = 1
ENDING = ".parquet"
"""The ending of output parts."""


def fingerprint(description: Mapping[str, Any]) -> str:
    """Return a hash of what a job depends on, except its parts."""
    text = json.dumps(description, sort_keys=True, ensure_ascii=False)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def output_name(part: Part) -> str:
    """Return the name of the output part of an input part."""
    return f"{part.stem}{ENDING}"


def open_output(
    output: str,
    description: Mapping[str, Any],
    parts: Sequence[Part],
    *,
    again: bool = False,
    update: bool = False,
) -> None:
    """Write the manifest of a job, if its output folder is new or was begun by the same job.

    Parameters
    ----------
    output : str
        The folder, or its address.
    description : mapping
        What the result for a part depends on, by the names that a user knows: head, settings.
    parts : sequence of Part
        All parts of the input.
    again : bool
        Remove all output parts first, also those of another job.
    update : bool
        Remove the output parts of parts that changed or vanished.

    Raises
    ------
    RankshotError
        If the folder belongs to another job, or to none.
    """
    _refuse_equal_names(parts)
    if is_file(output):
        raise RankshotError(f"{output}: is a file, not a folder; give another name")
    require_folder_name(output)
    present = list_files(output)
    kept = _read_manifest(output)
    if kept is None:
        _refuse_files(output, present, set(), "and no job of rankshot has begun there")
    else:
        own = {output_name(part) for part in kept[1]}
        _refuse_files(output, present, own, "and the job there has no such part")
        done = own & set(present)
        stale = done if again else _find_stale(output, kept, description, parts, done)
        if stale and not (again or update):
            raise _describe_stale(output, kept[1], parts, stale)
        remove_files(output, sorted(stale))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "fingerprint": fingerprint(description),
        "job": dict(description),
        "parts": [[part.name, part.size, part.version] for part in parts],
    }
    text = json.dumps(manifest, indent=0, ensure_ascii=False)
    write_text(join_address(output, MANIFEST), text)


def _refuse_equal_names(parts: Sequence[Part]) -> None:
    """Refuse two inputs that would have the same output."""
    first: dict[str, Part] = {}
    for part in parts:
        other = first.setdefault(output_name(part), part)
        if other is not part:
            raise RankshotError(
                f"{part.address}: would have the same output as {other.address}, "
                f"{output_name(part)!r}; rename one of them"
            )


def refuse_inside(output: str, dataset: str, parts: Sequence[Part]) -> None:
    """Refuse an output that is part of the input: the next start would take it for a part."""
    # Another name of a folder, by a link or by two points, is the same folder.
    root = follow_links(parts[0].address.removesuffix(parts[0].name).rstrip("/")) + "/"
    is_folder = not has_pattern(dataset) and parts[0].address != dataset
    folder = f"{follow_links(output)}/"
    inside = next((part.name for part in parts if f"{root}{part.name}".startswith(folder)), None)
    if inside is not None or folder == root or (is_folder and folder.startswith(root)):
        raise RankshotError(
            f"{output}: is the dataset, or inside of it ({inside or root}); give another output"
        )


def _refuse_files(output: str, present: Iterable[str], own: set[str], why: str) -> None:
    """Refuse a folder with parts that no part of the input has written."""
    if foreign := sorted({name for name in present if is_visible(name)} - own):
        raise RankshotError(
            f"{output}: is not empty ({quote_names(foreign, 3)}), {why}; give another output, or "
            "remove what is there"
        )


def _read_manifest(output: str) -> tuple[Mapping[str, Any], list[Part]] | None:
    """Return the description and the parts of the job that an output folder belongs to."""
    address = join_address(output, MANIFEST)
    content = read_bytes(address)
    if content is None:
        return None
    try:
        manifest = json.loads(content)
        if manifest["format"] == FORMAT and manifest["version"] == VERSION:
            parts = [
                Part(str(name), str(name), int(size), str(version))
                for name, size, version in manifest["parts"]
            ]
            return dict(manifest["job"]), parts
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise RankshotError(
        f"{address}: damaged, or written by another version of rankshot; give another output"
    )


def _find_stale(
    output: str,
    kept: tuple[Mapping[str, Any], list[Part]],
    description: Mapping[str, Any],
    parts: Sequence[Part],
    done: set[str],
) -> set[str]:
    """Return the output parts whose inputs changed or vanished; refuse those of another job."""
    before, old = kept
    if fingerprint(before) != fingerprint(description):
        changed = [
            name for name in {**before, **description} if before.get(name) != description.get(name)
        ]
        told = "; ".join(_tell_change(name, before, description) for name in changed)
        raise RankshotError(
            f"{output}: belongs to another job ({told}); give another output, or remove all that "
            "is there and begin again with --again (again=True)"
        )
    versions = {part.name: part.version for part in parts}
    # A part without an output, such as one that failed, may well have changed.
    return {output_name(part) for part in old if versions.get(part.name) != part.version} & done


def _describe_stale(
    output: str, old: Sequence[Part], parts: Sequence[Part], stale: set[str]
) -> RankshotError:
    now = {part.name for part in parts}
    names = [part.name for part in old if output_name(part) in stale]
    told = [
        f"{quote_names(some, 3)} {what}"
        for some, what in (
            ([name for name in names if name in now], "changed"),
            ([name for name in names if name not in now], "vanished"),
        )
        if some
    ]
    return RankshotError(
        f"{output}: since they were done, {' and '.join(told)}; --update (update=True) does those "
        "again that changed, and removes the output of those that vanished"
    )


def _tell_change(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    values = [before.get(name), now.get(name)]
    if all(isinstance(value, str) and len(value) == 64 for value in values):
        return f"another {name}"
    return f"{name} was {values[0]}, is {values[1]}"


def require_folder_name(output: str) -> None:
    """Refuse the name of a file for a folder of parts."""
    if output.endswith((".csv", ".npz", ENDING)):
        raise RankshotError(
            f"{output}: the output is a folder of many parts; give a name without an ending"
        )


def require_own(output: str, own: str) -> None:
    """Refuse to write if the output folder belongs to another job than that of a fingerprint.

    Workers ask this before each part. The fingerprint is near the beginning, so that a list of
    many parts is not read.
    """
    begin = read_bytes(join_address(output, MANIFEST), n=400)
    if begin is None:
        raise OutputError(
            f"{output}: a worker does not see {MANIFEST} there; give folders that all machines "
            "share, or an address such as s3://"
        )
    if own.encode() not in begin:
        raise OutputError(
            f"{output}: another job has begun there since this one did; its parts may be of both, "
            "until one of them is done with --again (again=True)"
        )


def write_failed(output: str, failed: Sequence[tuple[str, str]]) -> None:
    """List the parts that have no output, with the reasons; remove the list if there are none."""
    if not failed:
        remove_files(output, [FAILED])
        return
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("part", "reason"), *failed])
    write_text(join_address(output, FAILED), text.getvalue())
