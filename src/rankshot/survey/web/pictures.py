"""The pictures of a study: read and checked at the start, then served from memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from rankshot.core.errors import RankshotError
from rankshot.survey.presentation import Picture
from rankshot.survey.web.pages import RefusedError, describe_refusals

MOST_BYTES = 2**20
"""The largest file. Participants load up to 50 pictures for one question, many by telephone."""
MOST_BYTES_TOGETHER = 2**28
"""All files together, since they stay in memory."""
DIGEST_DIGITS = 32
KINDS = {"jpg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
FILE = f"[0-9a-f]{{{DIGEST_DIGITS}}}\\.({'|'.join(KINDS)})"
# Described but not enforced: another name is no such file, as for the static files.
FileName = Annotated[str, Path(json_schema_extra={"pattern": f"^{FILE}$"})]


class Pictures:
    """The pictures of a study.

    Parameters
    ----------
    pictures : mapping
        The picture of each item or target that has one.
    root : str
        The prefix of every path.

    Attributes
    ----------
    shown : dict
        The address and the alternative text for each name.

    Raises
    ------
    RankshotError
        If a file is missing, too large or not a picture. The message names the file.
    """

    def __init__(self, pictures: Mapping[str, Picture], root: str = "") -> None:
        self.shown: dict[str, str] = {}
        self._files: dict[str, bytes] = {}
        for name, picture in pictures.items():
            content = _read_picture(picture.path)
            digest = hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]
            file = f"{digest}.{_find_ending(picture.path, content)}"
            self._files[file] = content
            self.shown[name] = f"{root}/pictures/{file}"
        together = sum(map(len, self._files.values()))
        if together > MOST_BYTES_TOGETHER:
            raise RankshotError(
                f"the {len(self._files):,} pictures have {_format_size(together)} together: at "
                f"most {_format_size(MOST_BYTES_TOGETHER)} are allowed; make them smaller"
            )

    def router(self) -> APIRouter:
        """Return the router with the route of the pictures, if there are any."""
        router = APIRouter()
        if self._files:
            kinds = {kind: {"schema": {"type": "string"}} for kind in KINDS.values()}
            described: dict[int | str, dict[str, Any]] = {200: {"content": kinds}}
            router.get(
                "/pictures/{file}",
                response_class=Response,
                responses={**described, **describe_refusals(404)},
            )(self.picture)
        return router

    def picture(self, file: FileName) -> Response:
        """Return a picture. Its address names its content, so it never changes."""
        if file not in self._files:
            raise RefusedError(404, message="no_file")
        return Response(
            self._files[file],
            media_type=KINDS[file.rpartition(".")[2]],
            headers={"cache-control": "public, max-age=31536000, immutable"},
        )


def _read_picture(path: FilePath) -> bytes:
    try:
        with path.open("rb") as file:
            # One byte more than allowed shows that a file is too large, however large it is.
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise RankshotError(f"{path}: cannot read this picture ({error.strerror})") from None
    if len(content) > MOST_BYTES:
        raise RankshotError(
            f"{path}: this picture has more than {_format_size(MOST_BYTES)}: make it smaller, for "
            "example 800 pixels wide"
        )
    return content


def _find_ending(path: FilePath, content: bytes) -> str:
    """Return the file ending for the kind of a picture, by its first bytes."""
    if content.startswith(b"\xff\xd8\xff"):
        return "jpg"
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "png"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "webp"
    raise RankshotError(
        f"{path}: this is not a JPEG, PNG or WebP picture: convert it, or correct the name"
    )


def _format_size(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.0f} MiB"
