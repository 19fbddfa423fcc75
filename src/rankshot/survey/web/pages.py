"""Templates, filled in: everything that people wrote is escaped."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from rankshot.survey.study import Study

STATIC = {
    "survey.css": "text/css",
    "icon.svg": "image/svg+xml",
    "question.js": "text/javascript",
    "researcher.css": "text/css",
    "researcher.js": "text/javascript",
}


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


def static_files() -> dict[str, Response]:
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
