"""The file format of saved heads: a ZIP archive of JSON, JSON lines and .npy arrays.

This module knows the archive; `saved_heads` turns its content into heads.
``docs/guide/files.md`` documents the format.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankshot import __version__
from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.files import decode_lines, replace_file, require_ending
from rankshot.ranking.ranking_files import parse_jsonl, write_jsonl
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.files.score_tables import ARCHIVE_ERRORS
from rankshot.zeroshot.settings import HeadSettings, require_plain

ENDING = ".rankshot"
FORMAT = "rankshot head"
VERSION = 2
"""The version of the format: a file with a larger one is refused."""
MANIFEST = "head.json"
INNER = "head/"
"""The folder in the archive of the head inside a head."""
MEMBER = re.compile(r"(head/){0,3}(arrays/[a-z_]{1,60}\.npy|[a-z_]{1,60}\.jsonl)")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all members, so that the same head gives the same bytes."""
MAGIC = b"PK\x03\x04"
DTYPES = frozenset({"<f4", "<f8", "<i8", "|b1"})


@dataclass(frozen=True)
class HeadFile:
    """The content of a file, each member of which has the checksum that the manifest names."""

    manifest: dict[str, Any]
    members: dict[str, bytes]

    def read_arrays(self, folder: str) -> dict[str, NDArray[Any]]:
        """Return the arrays of a head by name; ``folder`` is that of the head in the archive."""
        begin = f"{folder}arrays/"
        return {
            name.removeprefix(begin).removesuffix(".npy"): _parse_array(content, name)
            for name, content in self.members.items()
            if name.startswith(begin)
        }

    def read_rankings(self, folder: str, items: tuple[str, ...]) -> dict[str, Rankings]:
        """Return the rankings of a head by name."""
        found = {}
        for name, content in self.members.items():
            short = name.removeprefix(folder).removesuffix(".jsonl")
            if name == f"{folder}{short}.jsonl" and "/" not in short:
                lines = decode_lines(io.BytesIO(content), Path(name))
                full = ((number, text) for number, line in lines if (text := line.strip()))
                found[short] = parse_jsonl(full, items, Path(name))
        return found


# ---- Writing


def write_head(head: Any, path: Path, provenance: Mapping[str, Any]) -> None:
    """Write a fitted head; see `BaseHead.save`."""
    require_ending(path, (ENDING,))
    members: dict[str, bytes] = {}
    try:
        described = _describe_head(head, "", members)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "head": described,
            "seen_classes": list(head.items_),
            "score_kind": head._expected_kind(),
            "provenance": {**_describe_origin(head), **require_plain("provenance", provenance)},
            "members": {
                name: hashlib.sha256(content).hexdigest() for name, content in members.items()
            },
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
        content = _pack({MANIFEST: text.encode(), **members})
    except UnicodeEncodeError as error:
        odd = short_repr(error.object[error.start : error.end])
        raise RankshotError(f"{path}: UTF-8 cannot encode the character {odd}") from None
    with replace_file(path) as stream:
        stream.buffer.write(content)


def _describe_head(head: Any, folder: str, members: dict[str, bytes]) -> dict[str, Any]:
    """Return what the manifest says of a head; its arrays and rankings are added to ``members``."""
    inner = getattr(head, "head", None)
    values = {}
    for name, value in head._describe_state().items():
        if isinstance(value, np.ndarray):
            members[f"{folder}arrays/{name}.npy"] = _format_array(value)
        elif isinstance(value, Rankings):
            text = io.StringIO()
            write_jsonl(value, text, Path(name))
            members[f"{folder}{name}.jsonl"] = text.getvalue().encode()
        else:
            values[name] = require_plain(name, value)
    described = {
        "settings": HeadSettings.from_head(head).to_json(),
        "classes": head.classes_.tolist(),
        "values": values,
    }
    if inner is not None:
        described["head"] = _describe_head(inner, folder + INNER, members)
    return described


def _describe_origin(head: Any) -> dict[str, Any]:
    """Return the provenance that was read with the head, or that of a head fitted here."""
    found: dict[str, Any] = head.provenance_
    if found:
        return found
    origin = {"created": datetime.now(UTC).date().isoformat(), "rankshot": __version__}
    inner = head
    while inner is not None and not hasattr(inner, "rankings_"):
        inner = getattr(inner, "head", None)
    if inner is None:
        return origin
    rankings: Rankings = inner.rankings_
    return {**origin, "rankings": len(rankings), "sources": list(rankings.source_names)}


def _format_array(array: NDArray[Any]) -> bytes:
    """Return an array as a .npy file; its order in memory, which matters to sums, is kept."""
    stream = io.BytesIO()
    npy.write_array(stream, array.astype(array.dtype.newbyteorder("<")), allow_pickle=False)
    return stream.getvalue()


def _pack(members: Mapping[str, bytes]) -> bytes:
    """Return an archive. It is not compressed: so no file can claim more than it has."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, content)
    return stream.getvalue()


# ---- Reading


def read_head_file(path: Path) -> HeadFile:
    """Read an archive into memory, and check all that does not depend on the class of the head."""
    require_ending(path, (ENDING,))
    with path.open("rb") as stream:
        start = stream.read(len(MAGIC))
        if start != MAGIC:
            found = f"it begins with {start!r}" if start else "it is empty"
            raise RankshotError(f"{path}: is no saved head: {found}; `rankshot fit` writes one")
        content = start + stream.read()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _read_archive(archive, len(content))
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
    except ARCHIVE_ERRORS as error:
        raise RankshotError(f"{path}: is damaged: {error}") from None


def _read_archive(archive: zipfile.ZipFile, n_bytes: int) -> HeadFile:
    """Return the content of an archive, if each member is what the manifest says."""
    infos = archive.infolist()
    by_name = {info.filename: info for info in infos}
    if MANIFEST not in by_name:
        found = quote_names(by_name, 4) or "nothing"
        raise RankshotError(f"is no saved head: there is no {MANIFEST!r} in it, but {found}")
    # First, because a newer format may have other members.
    manifest = _parse_manifest(_read_members(archive, [by_name.pop(MANIFEST)], n_bytes)[0])
    if len(by_name) + 1 < len(infos):
        raise RankshotError("is damaged: two members of it have the same name")
    if foreign := [name for name in by_name if not MEMBER.fullmatch(name)]:
        raise RankshotError(f"is damaged: {short_repr(foreign[0])} does not belong in it")
    sums = require_part(manifest, "members", dict)
    if missing := sorted(sums.keys() - by_name.keys()):
        raise RankshotError(f"is damaged: {quote_names(missing)} is missing")
    contents = _read_members(archive, list(by_name.values()), n_bytes)
    members = dict(zip(by_name, contents, strict=True))
    for name, content in members.items():
        if sums.get(name) != hashlib.sha256(content).hexdigest():
            raise RankshotError(f"is damaged: {name!r} has another checksum than {MANIFEST} says")
    return HeadFile(manifest, members)


def _read_members(
    archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo], n_bytes: int
) -> list[bytes]:
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise RankshotError(
                f"is damaged: {info.filename!r} is compressed, and members of saved heads are not"
            )
    if sum(info.file_size for info in infos) > n_bytes:
        raise RankshotError("is damaged: its members claim to be larger than the file")
    return [archive.read(info) for info in infos]


def _parse_manifest(content: bytes) -> dict[str, Any]:
    """Return the manifest, if it has a format that this version reads."""
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RankshotError(f"is damaged: {MANIFEST} is no JSON: {error}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else manifest
        raise RankshotError(f"is no saved head: its format is {short_repr(found)}, not {FORMAT!r}")
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise RankshotError(f"is damaged: the version of its format is {short_repr(version)}")
    provenance = require_part(manifest, "provenance", dict)
    if version < VERSION:
        raise RankshotError(
            f"was written by an older rankshot, in format {version}; this one reads format "
            f"{VERSION}: fit the head again"
        )
    if version > VERSION:
        writer = short_repr(provenance.get("rankshot"))
        raise RankshotError(
            f"was written by a newer rankshot ({writer}, format {version}); this one "
            f"({__version__}) reads format {VERSION}: upgrade rankshot, or save the head again"
        )
    return manifest


def require_part(container: Mapping[str, Any], name: str, kind: type[Any]) -> Any:
    """Return a part of the manifest that must have this type."""
    value = container.get(name)
    if not isinstance(value, kind):
        raise RankshotError(
            f"is damaged: {name!r} must be a {kind.__name__}, not {short_repr(value)}"
        )
    return value


def _parse_array(content: bytes, name: str) -> NDArray[Any]:
    try:
        table: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
    except ARCHIVE_ERRORS as error:
        raise RankshotError(f"{name!r} is not a plain array ({error})") from None
    if table.dtype.str not in DTYPES:
        raise RankshotError(f"{name!r} holds {table.dtype}, which saved heads do not")
    return table
