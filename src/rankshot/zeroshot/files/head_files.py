"""Heads as text and files: their parameters, and a ZIP archive of JSON, JSON lines and .npy arrays.

A parameter is declared once, in the constructor of its head: the annotation says what it may be,
and the docstring what it means. Options, files and help texts are made from that.

This module knows the archive; `load_head` turns its content into heads.
``docs/guide/files.md`` documents the format.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankshot import __version__
from rankshot.core.errors import RankshotError, prefix_errors, quote_names, short_repr, suggest_name
from rankshot.core.estimators import Estimator
from rankshot.core.files import replace_file, require_ending, skip_blank_lines
from rankshot.core.validation import require_choice
from rankshot.ranking.ranking_files import parse_jsonl, write_jsonl
from rankshot.ranking.rankings import Rankings

# ---- Parameters

MODEL, PARAMETERS = "model", "parameters"
"""What a file says of a parameter that is a ranking model."""


def list_settable(kind: type) -> dict[str, tuple[str, ...]]:
    """Return the parameters of a head that can be written as text, with the choices of some."""
    values = {name: _Values(kind, name) for name in _list_hints(kind)}
    return {name: (*it.choices, *it.models) for name, it in values.items() if it.are_texts}


def parse_parameter(kind: type, name: str, text: str) -> object:
    """Return the value of a parameter that a user wrote."""
    values = _Values(kind, name)
    if text.lower() == "none" and type(None) in values.allowed:
        return None
    if values.choices:
        return require_choice(name, text, values.choices)
    if values.models:
        return values.models[require_choice(name, text, tuple(values.models))]()
    try:
        return (int if int in values.allowed else float)(text)
    except ValueError:
        raise RankshotError(f"{text!r} is not a number") from None


def encode_parameters(head: BaseEstimator | Estimator) -> dict[str, object]:
    """Return the parameters of a head or a model that are not the defaults, as JSON holds them.

    The head inside a head, which has no default, is left out.
    """
    found = {}
    given = head.get_params(deep=False)
    for name, default in _list_defaults(type(head)).items():
        value = given[name]
        if value is default or (not isinstance(value, Estimator) and value == default):
            continue
        if isinstance(value, Estimator):
            value = {MODEL: type(value).__name__, PARAMETERS: encode_parameters(value)}
        elif is_dataclass(value) and not isinstance(value, type):
            value = asdict(value)
        found[name] = require_plain(name, value)
    return found


def decode_parameters(kind: type, plain: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters of a head that `encode_parameters` returned."""
    known = tuple(_list_defaults(kind))
    found = {}
    for name, value in plain.items():
        if name not in known:
            raise RankshotError(
                f"{kind.__name__} has no parameter {short_repr(name)}{suggest_name(name, known)}; "
                f"it has {quote_names(known)}"
            )
        values = _Values(kind, name)
        found[name] = value
        if isinstance(value, Mapping) and value.keys() == {MODEL, PARAMETERS}:
            models = {each.__name__: each for each in values.models.values()}
            model = models[require_choice(name, value[MODEL], tuple(models))]
            found[name] = model(**decode_parameters(model, value[PARAMETERS]))
        elif isinstance(value, Mapping) and values.record is not None:
            found[name] = values.record(**value)
    return found


class _Values:
    """What a parameter may be, by its annotation."""

    def __init__(self, kind: type, name: str) -> None:
        hint = _list_hints(kind)[name]
        is_choice = get_origin(hint) is Literal
        self.allowed = () if is_choice else (get_args(hint) or (hint,))
        self.choices: tuple[str, ...] = get_args(hint) if is_choice else ()
        types = [each for each in self.allowed if isinstance(each, type)]
        self.models = {
            _split_words(each.__name__): each for each in types if issubclass(each, Estimator)
        }
        self.record = next((each for each in types if is_dataclass(each)), None)
        self.are_texts = bool(self.choices or self.models or {int, float} & {*types})


def _list_defaults(kind: type) -> dict[str, object]:
    parameters = signature(kind).parameters.items()
    return {name: each.default for name, each in parameters if each.default is not Parameter.empty}


def _list_hints(kind: type) -> dict[str, object]:
    hints = get_type_hints(kind.__init__)  # type: ignore[misc]
    return {name: hints[name] for name in _list_defaults(kind)}


def _split_words(name: str) -> str:
    """Return ``plackett-luce`` for ``PlackettLuce``."""
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def require_plain(name: str, value: object) -> Any:
    """Return a value as JSON holds it; objects are refused."""
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
    raise RankshotError(f"{name}={short_repr(value)} cannot be stored in a file")


ENDING = ".rankshot"
FORMAT = "rankshot head"
VERSION = 3
"""The version of the format: a file with another one is refused."""
MANIFEST = "head.json"
INNER = "head/"
"""The folder in the archive of the head inside a head."""
MEMBER = re.compile(r"(head/){0,3}(arrays/[a-z_]{1,60}\.npy|[a-z_]{1,60}\.jsonl)")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all members, so that the same head gives the same bytes."""
MAGIC = b"PK\x03\x04"
T = TypeVar("T")
DTYPES = frozenset({"<f4", "<f8", "<i8", "|b1"})


@dataclass(frozen=True)
class HeadFile:
    """The content of a file, each member of which has the checksum that the manifest names."""

    manifest: dict[str, Any]
    members: dict[str, bytes]

    def read_arrays(self, folder: str) -> dict[str, NDArray[np.generic]]:
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
                lines = skip_blank_lines(io.BytesIO(content), Path(name))
                found[short] = parse_jsonl(lines, items, Path(name))
        return found


# ---- Writing


def write_head(head: Any, path: Path, provenance: Mapping[str, object]) -> None:
    """Write a fitted head; see `BaseHead.save`."""
    require_ending(path, (ENDING,))
    members: dict[str, bytes] = {}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "head": _describe_head(head, "", members),
        "seen_classes": list(head.items_),
        "score_kind": head._expected_kind(),
        "provenance": {**_describe_origin(head), **require_plain("provenance", provenance)},
        "members": {name: hashlib.sha256(found).hexdigest() for name, found in members.items()},
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, content in {MANIFEST: text.encode(), **members}.items():
            # Not compressed: so no file can claim more than it has.
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            packed.writestr(info, content)
    with replace_file(path) as stream:
        stream.buffer.write(archive.getvalue())


def _describe_head(head: Any, folder: str, members: dict[str, bytes]) -> dict[str, object]:
    """Return what the manifest says of a head; its arrays and rankings are added to ``members``."""
    values = {}
    for name, value in head._describe_state().items():
        if isinstance(value, np.ndarray):
            stream = io.BytesIO()
            # The order in memory, which matters to sums, is kept.
            npy.write_array(stream, value.astype(value.dtype.newbyteorder("<")), allow_pickle=False)
            members[f"{folder}arrays/{name}.npy"] = stream.getvalue()
        elif isinstance(value, Rankings):
            text = io.StringIO()
            write_jsonl(value, text, Path(name))
            members[f"{folder}{name}.jsonl"] = text.getvalue().encode()
        else:
            values[name] = require_plain(name, value)
    described = {
        "settings": {"head": head.name, "parameters": encode_parameters(head)},
        "classes": head.classes_.tolist(),
        "values": values,
    }
    if head.head is not None:
        described["head"] = _describe_head(head.head, folder + INNER, members)
    return described


def _describe_origin(head: Any) -> dict[str, Any]:
    """Return the provenance that was read with the head, or that of a head fitted here."""
    found: dict[str, Any] = head.provenance_
    if found:
        return found
    origin: dict[str, object] = {
        "created": datetime.now(UTC).date().isoformat(),
        "rankshot": __version__,
    }
    if (rankings := head.innermost.rankings_) is None:
        return origin
    return {**origin, "rankings": len(rankings), "sources": list(rankings.source_names)}


# ---- Reading


def read_head_file(path: Path) -> HeadFile:
    """Read an archive into memory, and check all that does not depend on the class of the head."""
    require_ending(path, (ENDING,))
    content = path.read_bytes()
    if not content.startswith(MAGIC):
        found = f"it begins with {content[:4]!r}" if content else "it is empty"
        raise RankshotError(f"{path}: is not a saved head: {found}; `rankshot fit` writes one")
    with prefix_errors(path):
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return _read_archive(archive, len(content))
        except Exception as error:
            if isinstance(error, RankshotError):
                raise
            # The directory of a damaged archive may name places outside the file.
            raise RankshotError(f"is damaged: {error}") from None


def _read_archive(archive: zipfile.ZipFile, n_bytes: int) -> HeadFile:
    """Return the content of an archive, if each member is what the manifest says."""
    infos = archive.infolist()
    is_packed = any(info.compress_type != zipfile.ZIP_STORED for info in infos)
    if is_packed or sum(info.file_size for info in infos) > n_bytes:
        raise RankshotError("is damaged: members of saved heads are not compressed")
    members = {info.filename: archive.read(info) for info in infos}
    # First, because another format may have other members.
    manifest = _parse_manifest(members.pop(MANIFEST, b"null"))
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    is_whole = sums == manifest.get("members") and len(infos) == len(members) + 1
    if not is_whole or not all(map(MEMBER.fullmatch, members)):
        raise RankshotError(f"is damaged: its members are not those that {MANIFEST} lists")
    return HeadFile(manifest, members)


def _parse_manifest(content: bytes) -> dict[str, object]:
    """Return the manifest, if it has a format that this version reads."""
    manifest = json.loads(content)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise RankshotError(f"is not a saved head: {MANIFEST} is {short_repr(manifest)}")
    provenance, version = require_part(manifest, "provenance", dict), manifest.get("version")
    if version != VERSION:
        writer = short_repr(provenance.get("rankshot"))
        raise RankshotError(
            f"was written by another version of rankshot ({writer}, format "
            f"{short_repr(version)}); this one "
            f"({__version__}) reads format {VERSION}: upgrade rankshot, or fit the head again"
        )
    return manifest


def require_part(container: Mapping[str, object], name: str, kind: type[T]) -> T:
    """Return a part of the manifest that must have this type."""
    value = container.get(name)
    if not isinstance(value, kind):
        raise RankshotError(
            f"is damaged: {name!r} must be a {kind.__name__}, not {short_repr(value)}"
        )
    return value


def _parse_array(content: bytes, name: str) -> NDArray[np.generic]:
    """Return an array of finite or infinite numbers."""
    values: NDArray[np.generic] = np.load(io.BytesIO(content), allow_pickle=False)
    if values.dtype.str not in DTYPES or (values.dtype.kind == "f" and np.isnan(values).any()):
        raise RankshotError(f"{name!r} holds {values.dtype} of shape {values.shape}")
    return values
