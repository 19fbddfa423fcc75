"""Templates, filled in: everything that people wrote is escaped."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.survey.study import Study

ALWAYS = (413, 422, 429)
"""Too large, malformed, too often: any request may be answered so."""
FORMS = (403, 415)
"""From another site, of another kind: any form may be answered so."""
REASONS = {
    400: "The address lacks something",
    401: "Not logged in",
    403: "Not a form of ours",
    404: "No such page",
    409: "There is another answer, or some are missing",
    413: "Too large",
    415: "Not a form",
    422: "Malformed, or no ranking",
    429: "Too often",
    503: "Nothing is left to ask at the moment",
}
HEADERS = {
    303: {"Location": "The page that comes next"},
    401: {"WWW-Authenticate": "How to show the token"},
    429: {"Retry-After": "Seconds to wait"},
}
"""What a response has beside the headers that all of them have."""
STATIC = {
    "survey.css": "text/css",
    "icon.svg": "image/svg+xml",
    "question.js": "text/javascript",
    "researcher.css": "text/css",
    "researcher.js": "text/javascript",
}


# -------------------- survey.web.refusal
# What is not done, and the page that says why; refusals and redirects as OpenAPI has them.


class RefusedError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status : int
    heading, text : str
        For the person who reads the usual page; others have their own.
    template : str
        The page, where it is not the usual one.
    **values
        What the template needs.
    """

    def __init__(
        self,
        status: int,
        heading: str = "",
        text: str = "",
        template: str = "message.html",
        **values: Any,
    ) -> None:
        super().__init__(f"{status} {heading}")
        self.status = status
        self.template = template
        self.values = {"heading": heading, "text": text, "link": None, **values}


def describe_refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals of a route, all of them pages, for its OpenAPI document."""
    page = {"text/html": {"schema": {"type": "string"}}}
    return {
        status: {"description": REASONS[status], "content": page, **_describe_headers(status)}
        for status in sorted({*statuses, *ALWAYS})
    }


def describe_redirect(*statuses: int) -> dict[str, Any]:
    """Describe a route that redirects, with its refusals: keyword arguments of a route."""
    see_other = {"description": "Done: see the next page", **_describe_headers(303)}
    return {
        "status_code": 303,
        "response_class": RedirectResponse,
        "responses": {303: see_other, **describe_refusals(*statuses)},
    }


def describe_form(*statuses: int) -> dict[str, Any]:
    """Describe a route that takes a form, and redirects."""
    return describe_redirect(*statuses, *FORMS)


def _describe_headers(status: int) -> dict[str, Any]:
    found = HEADERS.get(status, {})
    described = {
        name: {"description": text, "required": True, "schema": {"type": "string"}}
        for name, text in found.items()
    }
    return {"headers": described} if described else {}


# -------------------- survey.web.pages
# Templates, filled in: everything that people wrote is escaped.


class Pages:
    """The pages of one study.

    Parameters
    ----------
    study : Study
    root : str
        What stands before every path, where the survey is served below another site.
    """

    def __init__(self, study: Study, root: str = "") -> None:
        self._environment = Environment(
            loader=PackageLoader("rankshot.survey.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals |= {"study": study, "root": root}
        self.root = root

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        text = self._environment.get_template(template).render(**values)
        return HTMLResponse(text, status)

    def message(self, status: int, heading: str, text: str) -> HTMLResponse:
        """Return a page that only says something."""
        return self.page("message.html", status, heading=heading, text=text, link=None)


def load_static_files() -> dict[str, Response]:
    """Return style and scripts: few and small, so they stay in memory."""
    folder = files("rankshot.survey.web") / "static"
    return {
        name: Response(
            (folder / name).read_bytes(),
            media_type=f"{kind}; charset=utf-8",
            headers={"cache-control": "public, max-age=300"},
        )
        for name, kind in STATIC.items()
    }
