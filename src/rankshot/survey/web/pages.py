"""Pages from templates, the forms on them, and the responses in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.survey.store.identity import NONCE_DIGITS, TOKEN_DIGITS
from rankshot.survey.study import Study

STATIC = {
    "survey.css": "text/css",
    "icon.svg": "image/svg+xml",
    "question.js": "text/javascript",
    "researcher.css": "text/css",
    "researcher.js": "text/javascript",
}


@dataclass(frozen=True)
class ShownPicture:
    """The picture of an item or a target, as a page shows it."""

    url: str
    alt: str


class Pages:
    """The pages of one study. Everything that people wrote is escaped.

    Parameters
    ----------
    study : Study
    root : str
        The prefix of every path, if the survey is served below a path of another site.
    pictures : mapping
        The pictures of items and targets.
    """

    def __init__(self, study: Study, root: str, pictures: Mapping[str, ShownPicture]) -> None:
        self._environment = Environment(
            loader=PackageLoader("rankshot.survey.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            # Templates do not change while the server runs.
            auto_reload=False,
        )
        self._environment.globals |= {"study": study, "root": root, "pictures": pictures}
        self.root = root

    def render(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        text = self._environment.get_template(template).render(**values)
        return HTMLResponse(text, status)

    def render_message(self, status: int, heading: str, text: str) -> HTMLResponse:
        """Return a page with a heading and one paragraph."""
        return self.render("message.html", status, heading=heading, text=text, link=None)


class RefusedError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status : int
    heading, text : str
        For the usual page with a heading and one paragraph.
    template : str
        The template of another page.
    headers : dict, optional
    **values
        The values for the template.
    """

    def __init__(
        self,
        status: int,
        heading: str = "",
        text: str = "",
        template: str = "message.html",
        headers: dict[str, str] | None = None,
        **values: Any,
    ) -> None:
        super().__init__(f"{status} {heading}")
        self.status = status
        self.template = template
        self.headers = headers or {}
        self.values = {"heading": heading, "text": text, "link": None, **values}


def load_static_files() -> dict[str, Response]:
    """Return style sheets, scripts and the icon. They are small, and stay in memory."""
    folder = files("rankshot.survey.web") / "static"
    return {
        name: Response(
            (folder / name).read_bytes(),
            media_type=f"{kind}; charset=utf-8",
            headers={"cache-control": "public, max-age=300"},
        )
        for name, kind in STATIC.items()
    }


# ---- Forms


def _hex_digits(n: int) -> StringConstraints:
    return StringConstraints(pattern=f"^[0-9a-f]{{{n}}}$")


FormToken = Annotated[str, _hex_digits(TOKEN_DIGITS)]
FormNonce = Annotated[str, _hex_digits(NONCE_DIGITS)]


class SentForm(BaseModel):
    """A form that one of our pages sends: it has no other fields."""

    model_config = ConfigDict(extra="forbid")


# ---- Responses in the OpenAPI document

ALWAYS = (413, 422, 429)
"""Too large, malformed, too many: any request may get these."""
FORMS = (403, 415)
"""From another site, of another content type: any form may get these."""
REASONS = {
    400: "The address is not complete",
    401: "Not logged in",
    403: "Not a valid form",
    404: "No such page",
    409: "Already answered, or not finished",
    410: "Withdrawn or excluded, or the study is closed",
    413: "Too large",
    415: "Not a form",
    422: "Malformed, or not a ranking",
    429: "Too many requests",
    503: "No question is left at the moment, or the study is paused",
}
HEADERS = {
    303: {"Location": "The next page"},
    401: {"WWW-Authenticate": "How to send the token"},
    429: {"Retry-After": "Seconds to wait"},
}
"""Headers that only responses with this status have."""


def describe_refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals of a route, which are all pages."""
    page = {"text/html": {"schema": {"type": "string"}}}
    return {
        status: {"description": REASONS[status], "content": page, **_describe_headers(status)}
        for status in sorted({*statuses, *ALWAYS})
    }


def describe_redirect(*statuses: int) -> dict[str, Any]:
    """Return the keyword arguments of a route that redirects, with its refusals."""
    see_other = {"description": "Done: see the next page", **_describe_headers(303)}
    return {
        "status_code": 303,
        "response_class": RedirectResponse,
        "responses": {303: see_other, **describe_refusals(*statuses)},
    }


def describe_form(*statuses: int) -> dict[str, Any]:
    """Return the keyword arguments of a route that takes a form and redirects."""
    return describe_redirect(*statuses, *FORMS)


def _describe_headers(status: int) -> dict[str, Any]:
    found = HEADERS.get(status, {})
    described = {
        name: {"description": text, "required": True, "schema": {"type": "string"}}
        for name, text in found.items()
    }
    return {"headers": described} if described else {}
