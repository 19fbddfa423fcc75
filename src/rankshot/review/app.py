"""The web application of a review: the page, its data as JSON, images and sounds, and files."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI, Query as Parameter, Request
from pydantic import BaseModel, ConfigDict, Field, StrictInt
from starlette.requests import HTTPConnection
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response

from rankshot.core.errors import OutputError, RankshotError
from rankshot.report.pictures import Thumbnail
from rankshot.review.inputs import ShownInputs
from rankshot.review.listing import Listing, Query
from rankshot.review.results import HEAD, LABELS, PREDICTIONS, REPORT, Results
from rankshot.review.session import GoneError, Review
from rankshot.web.application import (
    File,
    add_files,
    create_application,
    create_environment,
    load_static_files,
)
from rankshot.web.guards import POLICY, RateLimit, RefusedError, Rules, find_address
from rankshot.web.tokens import are_equal, require_secret, set_cookie
from rankshot.zeroshot.explanation import explain
from rankshot.zeroshot.heads.seen_and_new import NONE_OF_THESE

PACKAGE = "rankshot.review"
COOKIE = "rankshot_review_"
"""How the name of the cookie begins. Browsers share cookies between the ports of a host, and there
may be several reviews: the rest follows from the token."""
COOKIE_SECONDS = 30 * 24 * 3600
REQUESTS, ATTEMPTS = 6_000, 10
"""Requests per minute, thumbnails not counted, and wrong tokens per minute, of one address."""
MOST_BYTES = 2**20
"""The largest request: labels of a page of inputs, or a ranking of all seen classes."""
MOST_SET = 2_000
"""Labels in one request."""
KEPT = "private, max-age=3600"
TYPES = {
    PREDICTIONS: "text/csv; charset=utf-8",
    LABELS: "text/csv; charset=utf-8",
    HEAD: "application/octet-stream",
    REPORT: "text/html; charset=utf-8",
}
REFUSALS = {
    "token": "This page needs its token. Open the address that rankshot review has printed.",
    "wait": "Too many requests. Wait {seconds} seconds.",
    "host": "This page is not known by this name. Open the address that was printed.",
    "other_site": "Another site sent this request.",
    "large": "The request is too large.",
    "no_form": "The request is not JSON.",
    "malformed": "The request is malformed.",
    "no_page": "There is no such page.",
    "no_file": "There is no such file.",
    "address": "There is no such page.",
    "failed": "Something went wrong on the server. Nothing of this was saved. Try again.",
}
"""What a refusal says, by its key; others say themselves what is wrong."""


class Sent(BaseModel):
    """What the page sends: it has no other fields."""

    model_config = ConfigDict(extra="forbid")


Name = Annotated[str, Field(min_length=1, max_length=500)]


class SentLabels(Sent):
    """Rows and their labels; None removes a label."""

    labels: Annotated[list[tuple[StrictInt, Name | None]], Field(min_length=1, max_length=MOST_SET)]


class SentClass(Sent):
    """A new class, and seen classes that are like it, most similar first."""

    name: Name
    ranking: list[Name] = []


class SentAudit(Sent):
    """What is done with the audit; a check has the row and its class."""

    action: Literal["open", "check", "undo", "close"]
    row: StrictInt | None = None
    label: Name | None = None


class Asked(BaseModel):
    """Which inputs the page asks for."""

    model_config = ConfigDict(extra="forbid")
    order: Literal["groups", "useful"] = "groups"
    name: Annotated[str, Field(max_length=500)] = ""
    least: Annotated[float, Field(ge=0, le=1)] = 0.0
    most: Annotated[float, Field(ge=0, le=1)] = 1.0
    text: Annotated[str, Field(max_length=500)] = ""
    labelled: bool | None = None
    page: Annotated[int, Field(ge=0, le=10**9)] = 0
    only: Annotated[str, Field(pattern=r"^(\d{1,9}(,\d{1,9})*)?$", max_length=10_000)] = ""


def create_app(
    review: Review,
    inputs: ShownInputs,
    results: Results,
    *,
    token: str,
    title: str = "Review",
    hosts: Collection[str] | None = None,
) -> FastAPI:
    """Create the web application of a review.

    Parameters
    ----------
    review, inputs, results
        What is shown and changed.
    token : str
        Who opens ``/?token=...`` gets a cookie that gives access.
    title : str
        What is reviewed.
    hosts : collection of str, optional
        The names, with the port, by which browsers may ask for the page.
    """
    static = load_static_files(PACKAGE)
    rules = Rules(
        RateLimit(REQUESTS),
        uncounted=("/health", "/static/", "/thumbnails/"),
        policy=f"{POLICY}; media-src 'self'",
        kind="application/json",
        find_most_bytes=lambda _path: MOST_BYTES,
        hosts=hosts,
    )
    pages = Pages(static, title)
    app = create_application(pages.refuse, rules)
    routes = Routes(review, inputs, results, require_secret(token), pages)
    app.routes.extend(routes.router().routes)
    add_files(app, "/static/{name}", static)

    @app.exception_handler(RankshotError)
    def show_error(request: Request, error: RankshotError) -> Response:
        status = 409 if isinstance(error, GoneError) else 422
        return pages.refuse(
            request, RefusedError(507 if isinstance(error, OutputError) else status, str(error))
        )

    return app


class Pages:
    """The page of a review, and the messages of refused requests."""

    def __init__(self, static: dict[str, File], title: str) -> None:
        # Relative, so that a proxy can serve the page under a path.
        self._environment = create_environment(
            PACKAGE,
            static,
            root="",
            title=title,
            none=NONE_OF_THESE,
        )

    def render(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        return HTMLResponse(self._environment.get_template(template).render(**values), status)

    def refuse(self, reader: HTTPConnection, error: RefusedError) -> Response:
        """Return why a request is refused: to the page as JSON, to a person as a page."""
        text = error.message
        if text in REFUSALS:
            text = REFUSALS[text].format(**error.values)
        if reader.scope["path"].startswith("/api/"):
            page: Response = JSONResponse({"error": text}, error.status)
        else:
            page = self.render("message.html", error.status, text=text)
        page.headers.update(error.headers)
        return page


class Routes:
    """All routes, behind a token."""

    def __init__(
        self, review: Review, inputs: ShownInputs, results: Results, token: str, pages: Pages
    ) -> None:
        self._review = review
        self._inputs = inputs
        self._results = results
        self._listing = Listing(review, inputs)
        self._token = token
        self._cookie = COOKIE + sha256(token.encode()).hexdigest()[:8]
        self._pages = pages
        self._attempts = RateLimit(ATTEMPTS)

    def router(self) -> APIRouter:
        """Return the router with all routes."""
        router = APIRouter()
        router.get("/")(self.page)
        locked = APIRouter(dependencies=[Depends(self.require_cookie)])
        locked.get("/api/state")(self.state)
        locked.get("/api/rows")(self.rows)
        locked.get("/api/explanation/{row}")(self.explanation)
        locked.post("/api/labels")(self.set_labels)
        locked.post("/api/classes")(self.add_class)
        locked.post("/api/audit")(self.change_audit)
        locked.get("/thumbnails/{row}")(self.thumbnail)
        locked.get("/images/{row}")(self.image)
        locked.get("/sounds/{row}")(self.sound)
        locked.get("/files/{name}")(self.file)
        router.include_router(locked)
        return router

    # ---- Access

    def require_cookie(self, request: Request) -> None:
        """Refuse a request without the cookie."""
        if not are_equal(self._token, request.cookies.get(self._cookie, "")):
            raise RefusedError(403, "token")

    def page(self, request: Request, token: str = "") -> Response:
        """Return the page; the token in the address becomes a cookie."""
        if token:
            address = find_address(request.scope)
            if wait := self._attempts.wait(address):
                raise RefusedError(429, "wait", seconds=round(wait) + 1)
            if not are_equal(self._token, token):
                raise RefusedError(403, "token")
            self._attempts.give_back(address)
            response: Response = RedirectResponse("./", 303)
            kept = {"path": "/", "max_age": COOKIE_SECONDS, "samesite": "strict"}
            set_cookie(response, request, self._cookie, self._token, **kept)
            return response
        self.require_cookie(request)
        items = sorted(self._review.learner.items)
        return self._pages.render("review.html", items=items, files=list(TYPES))

    # ---- Data

    def state(self, since: Annotated[int, Parameter(ge=0)] = 0) -> JSONResponse:
        """Return what has changed, and how far the review is."""
        # Not by FastAPI's encoder, which visits every value of long lists.
        return JSONResponse(self._review.describe(since))

    def rows(self, asked: Annotated[Asked, Parameter()]) -> JSONResponse:
        """Return one page of inputs, or only those that the page has already."""
        if asked.only:
            rows = [self._require_row(int(row)) for row in asked.only.split(",")]
            return JSONResponse({"rows": [self._listing.describe(row) for row in rows]})
        return JSONResponse(self._listing.find(Query(**asked.model_dump(exclude={"only"}))))

    def explanation(self, row: int) -> JSONResponse:
        """Return why an input is predicted to have its class."""
        review = self._review
        scores = review.learner.scores[[self._require_row(row)]]
        return JSONResponse({"text": str(explain(review.predicted.head, scores)[0])})

    def set_labels(self, sent: SentLabels) -> dict[str, int]:
        """Save labels; the answer comes when they are on disk."""
        return {"n_history": self._review.set_labels(dict(sent.labels))}

    def add_class(self, sent: SentClass) -> dict[str, str]:
        """Save a new class."""
        return {"name": self._review.add_class(sent.name, sent.ranking)}

    def change_audit(self, sent: SentAudit) -> dict[str, Any]:
        """Open, continue or close the audit."""
        review = self._review
        if sent.action == "open":
            review.open_audit(secrets.randbits(63))
        elif sent.action == "undo":
            review.undo_check()
        elif sent.action == "close":
            review.close_audit()
        elif sent.row is None or sent.label is None:
            raise RefusedError(422, "malformed")
        else:
            review.check(sent.row, sent.label)
        return {"audit": None if review.audit is None else review.audit.describe()}

    # ---- Media and files

    def thumbnail(self, row: int) -> Response:
        """Return a small image."""
        return _send(self._inputs.thumbnail(self._require_row(row)))

    def image(self, row: int) -> Response:
        """Return a larger image."""
        return _send(self._inputs.image(self._require_row(row)))

    def sound(self, row: int) -> Response:
        """Return a sound file."""
        file, kind = self._inputs.sound(self._require_row(row))
        return FileResponse(file, media_type=kind, headers={"cache-control": KEPT})

    def file(self, name: str) -> Response:
        """Write one of the results, and return it."""
        if name not in TYPES:
            raise RefusedError(404, "no_file")
        path: Path = self._results.write(name)
        return FileResponse(path, media_type=TYPES[name], filename=name)

    def _require_row(self, row: int) -> int:
        if not 0 <= row < len(self._review.ids):
            raise RefusedError(404, "no_page")
        return row


def _send(image: Thumbnail) -> Response:
    return Response(image.data, media_type=image.media_type, headers={"cache-control": KEPT})
