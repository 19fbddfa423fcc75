"""Files of fitted heads (.rankshot): a ZIP archive of one JSON text and .npy arrays, no pickles."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankshot import __version__
from rankshot.core.errors import InputError, RankshotError, prefix_errors
from rankshot.core.files import replace_file, require_ending, require_regular

T = TypeVar("T")
ENDING = ".rankshot"
VERSION = 4
"""The version of the format: a file with another one is refused."""
MANIFEST = "head.json"


class HeadFile(NamedTuple):
    """The content of a file: what kind of head it is, its values, and how it came about."""

    type: str
    values: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    about: Mapping[str, Any]


def write_head_file(path: Path, file: HeadFile, provenance: Mapping[str, object]) -> None:
    """Write a head; what a loaded head came from is kept."""
    require_ending(path, (ENDING,))
    origin = {"created": datetime.now(UTC).date().isoformat(), "rankshot": __version__}
    manifest = {
        "format": "rankshot head",
        "version": VERSION,
        "type": file.type,
        "values": require_plain("values", file.values),
        "about": require_plain("provenance", {**origin, **file.about, **provenance}),
        "arrays": sorted(file.arrays),
    }
    members = {MANIFEST: json.dumps(manifest, indent=1, ensure_ascii=False).encode()}
    for name, array in file.arrays.items():
        stream = io.BytesIO()
        np.save(stream, array, allow_pickle=False)
        members[_member(name)] = stream.getvalue()
    with replace_file(path) as target, zipfile.ZipFile(target.buffer, "w") as archive:
        for name, content in members.items():
            # Without a time, so the same head gives the same bytes.
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, content)


def read_head_file(path: Path, make: Callable[[HeadFile], T]) -> T:
    """Read an archive into memory, and make a head of its content; damage is named."""
    require_ending(path, (ENDING,))
    require_regular(path)
    content = io.BytesIO(path.read_bytes())
    with prefix_errors(path):
        try:
            with zipfile.ZipFile(content) as archive:
                return make(_read_archive(archive))
        except RankshotError:
            raise
        except Exception as error:  # noqa: BLE001 (a damaged archive may raise anything)
            raise RankshotError(f"the file is damaged, or not a saved head: {error!r}") from None


def _read_archive(archive: zipfile.ZipFile) -> HeadFile:
    # So no file can claim more than it has.
    if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
        raise RankshotError("the file is damaged: members of saved heads are not compressed")
    manifest = json.loads(archive.read(MANIFEST))
    if manifest["version"] != VERSION:
        about = manifest.get("provenance") or manifest.get("about") or {}
        raise RankshotError(
            f"this head was saved by rankshot {about.get('rankshot')}, whose format "
            f"({manifest['version']}) version {__version__} does not read: fit it again, with "
            "the same rankings and files, by `rankshot export` or in Python"
        )
    arrays = {
        name: np.load(io.BytesIO(archive.read(_member(name))), allow_pickle=False)
        for name in manifest["arrays"]
    }
    return HeadFile(manifest["type"], manifest["values"], arrays, manifest["about"])


def _member(name: str) -> str:
    return f"arrays/{name}.npy"


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
