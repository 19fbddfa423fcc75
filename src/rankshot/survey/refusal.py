"""What is not done, and the page that says why."""

from __future__ import annotations

from typing import Any

ALWAYS = (413, 422, 429)
"""Too large, malformed, too often: any request may be answered so."""

REASONS = {
    400: "The address lacks something",
    401: "Not logged in",
    403: "Not a form of ours",
    404: "No such page",
    409: "There is another answer, or some are missing",
    413: "Too large",
    422: "Malformed, or no ranking",
    429: "Too often",
    503: "Nothing is left to ask at the moment",
}


class RefusedError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status : int
    heading, text : str
        For the person who reads the page.
    template : str
        The page, where it is not the usual one.
    **values
        What the template needs.
    """

    def __init__(
        self, status: int, heading: str, text: str, template: str = "message.html", **values: Any
    ) -> None:
        super().__init__(f"{status} {heading}")
        self.status = status
        self.template = template
        self.values = {"heading": heading, "text": text, "link": None, **values}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the refusals of a route, all of them pages, for its OpenAPI document."""
    page = {"text/html": {"schema": {"type": "string"}}}
    return {
        status: {"description": REASONS[status], "content": page}
        for status in sorted({*statuses, *ALWAYS})
    }
