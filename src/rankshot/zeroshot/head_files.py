"""Files of fitted heads (.rankshot): a ZIP archive of one JSON text and .npy arrays, no pickles."""

from __future__ import annotations

import io
import json
import math
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
from rankshot.core.errors import InputError, RankshotError, prefix_errors, short_repr
from rankshot.core.files import replace_file, require_ending, require_regular

ENDING = ".rankshot"
FORMAT = "rankshot head"
VERSION = 4
"""The version of the format: a file with another one is refused."""
MANIFEST = "head.json"
MEMBER = re.compile(r"arrays/[a-z_]{1,60}\.npy")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all members, so that the same head gives the same bytes."""
DTYPES = frozenset({"<f4", "<f8", "<i8", "|b1"})


@dataclass(frozen=True)
class HeadFile:
    """The content of a file: what kind of head it is, plain values, and arrays.

    ``provenance`` says how the head was made.
    """

    type: str
    values: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def write_head_file(path: Path, file: HeadFile, provenance: Mapping[str, object]) -> None:
    """Write a head; what a loaded head came from is kept."""
    require_ending(path, (ENDING,))
    values = dict(file.values)
    origin = {"created": datetime.now(UTC).date().isoformat(), "rankshot": __version__}
    about = {**origin, **values.pop("about"), **provenance}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "type": file.type,
        "values": require_plain("values", values),
        "about": require_plain("provenance", about),
        "arrays": sorted(file.arrays),
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    members = {MANIFEST: text.encode()}
    for name, array in file.arrays.items():
        stream = io.BytesIO()
        npy.write_array(stream, array.astype(array.dtype.newbyteorder("<")), allow_pickle=False)
        members[f"arrays/{name}.npy"] = stream.getvalue()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, content in members.items():
            # Not compressed: so no file can claim more than it has.
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            packed.writestr(info, content)
    with replace_file(path) as stream_of_file:
        stream_of_file.buffer.write(archive.getvalue())


def read_head_file(path: Path) -> HeadFile:
    """Read an archive into memory, and check all that does not depend on the kind of head."""
    require_ending(path, (ENDING,))
    require_regular(path)
    content = path.read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise InputError("path", content[:4], "must begin as a saved head does", where=str(path))
    with prefix_errors(path):
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return _read_archive(archive, len(content))
        except RankshotError:
            raise
        except Exception as error:  # noqa: BLE001 (a damaged archive may raise anything)
            raise RankshotError(f"the file is damaged: {error}") from None


def _read_archive(archive: zipfile.ZipFile, n_bytes: int) -> HeadFile:
    infos = archive.infolist()
    is_packed = any(info.compress_type != zipfile.ZIP_STORED for info in infos)
    if is_packed or sum(info.file_size for info in infos) > n_bytes:
        raise RankshotError("the file is damaged: members of saved heads are not compressed")
    # First, because another format may have other members.
    has_manifest = MANIFEST in archive.namelist()
    manifest = json.loads(archive.read(MANIFEST)) if has_manifest else None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise RankshotError(f"this is not a saved head: {MANIFEST} is {short_repr(manifest)}")
    if manifest.get("version") != VERSION:
        about = manifest.get("provenance") or manifest.get("about") or {}
        raise RankshotError(
            f"this head was saved by rankshot {about.get('rankshot')}, whose format "
            f"({manifest.get('version')}) version {__version__} does not read: fit it again, with "
            "the same rankings and files, by `rankshot export` or in Python"
        )
    names = {f"arrays/{name}.npy": name for name in manifest["arrays"]}
    if {*archive.namelist()} != {MANIFEST, *names} or not all(map(MEMBER.fullmatch, names)):
        raise RankshotError(f"the file is damaged: its members are not those that {MANIFEST} lists")
    arrays = {
        name: np.load(io.BytesIO(archive.read(member)), allow_pickle=False)
        for member, name in names.items()
    }
    if odd := [name for name, array in arrays.items() if array.dtype.str not in DTYPES]:
        raise RankshotError(f"the file is damaged: {odd[0]!r} holds {arrays[odd[0]].dtype}")
    return HeadFile(manifest["type"], {**manifest["values"], "about": manifest["about"]}, arrays)


def require_plain(name: str, value: object) -> Any:
    """A value as JSON holds it; objects are refused."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: require_plain(f"{name}[{key!r}]", each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [require_plain(name, each) for each in value]
    raise InputError(name, value, "cannot be stored in a file")
