"""The web application of a review: the page, its data as JSON, images and sounds, and files."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from hashlib import sha256
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, FastAPI, Query as Parameter, Request
from numpy.typing import NDArray
from pydantic import Field, StrictInt
from starlette.requests import HTTPConnection
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response

from rankshot.core.errors import OutputError, RankshotError
from rankshot.pages.explanations import format_alternatives, format_contributions
from rankshot.review.inputs import ShownInputs
from rankshot.review.learning import Predicted
from rankshot.review.results import Results
from rankshot.review.session import GoneError, Review
from rankshot.web.guards import (
    POLICY,
    RateLimit,
    RefusedError,
    Sent,
    are_equal,
    is_secret,
    require_secret,
    set_cookie,
)
from rankshot.web.server import (
    add_files,
    create_application,
    create_environment,
    load_static_files,
)
from rankshot.zeroshot.explanation import explain
from rankshot.zeroshot.seen_and_new import NONE_OF_THESE

PACKAGE = "rankshot.review"
COOKIE = "rankshot_review_"
"""How the name of the cookie begins. Browsers share cookies between the ports of a host, and there
may be several reviews: the rest follows from the token."""
COOKIE_SECONDS = 30 * 24 * 3600
REQUESTS, ATTEMPTS = 6_000, 10
"""Requests per minute, thumbnails not counted, and wrong tokens per minute, of one address."""
MOST_BYTES = 2**20
"""The largest request: labels of a page of inputs, or a ranking of all seen classes."""
KEPT = {"cache-control": "private, max-age=3600"}
REFUSALS = {
    "token": "This page needs its token. Open the address that rankshot review has printed.",
    "wait": "Too many requests. Wait {seconds} seconds.",
    "host": "This page is not known by this name. Open the address that was printed.",
    "other_site": "Another site sent this request.",
    "large": "The request is too large.",
    "no_form": "The request is not JSON.",
    "malformed": "The request is malformed.",
    **dict.fromkeys(("no_page", "no_file", "address"), "There is no such page."),
    "failed": "Something went wrong on the server. This was not saved. Try again.",
}
"""What a refusal says, by its key; others say themselves what is wrong."""
Name = Annotated[str, Field(min_length=1, max_length=500)]


class SentLabels(Sent):
    """Rows and their labels; None removes a label."""

    labels: Annotated[list[tuple[StrictInt, Name | None]], Field(min_length=1, max_length=2_000)]


class SentClass(Sent):
    """A new class, and seen classes that are like it, most similar first."""

    name: Name
    ranking: tuple[Name, ...] = ()


class SentAudit(Sent):
    """What is done with the audit; a check has the row and its class."""

    action: Literal["open", "check", "undo", "close"]
    row: StrictInt = -1
    label: Name = NONE_OF_THESE


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
    # Relative, so that a proxy can serve the page under a path.
    values = {"root": "", "title": title, "none_of_these": NONE_OF_THESE}
    templates = create_environment(PACKAGE, static, **values)

    def refuse(reader: HTTPConnection, error: RefusedError) -> Response:
        """Return why a request is refused: to the page as JSON, to a person as a page."""
        text = error.message
        if text in REFUSALS:
            text = REFUSALS[text].format(**error.values)
        if reader.scope["path"].startswith("/api/"):
            return JSONResponse({"error": text}, error.status, error.headers)
        page = templates.get_template("message.html").render(text=text)
        return HTMLResponse(page, error.status, error.headers)

    app = create_application(
        refuse,
        limit=RateLimit(REQUESTS),
        uncounted=("/health", "/static/", "/images/"),
        policy=f"{POLICY}; media-src 'self'",
        kind="application/json",
        most_bytes=MOST_BYTES,
        hosts=hosts,
    )
    app.routes.extend(Routes(review, inputs, results, require_secret(token), templates).router())
    add_files(app, "/static/{name}", static)

    @app.exception_handler(RankshotError)
    def show_error(request: Request, error: RankshotError) -> Response:
        status = {GoneError: 409, OutputError: 507}.get(type(error), 422)
        return refuse(request, RefusedError(status, str(error)))

    return app


class Routes:
    """All routes, behind a token."""

    def __init__(
        self, review: Review, inputs: ShownInputs, results: Results, token: str, templates: Any
    ) -> None:
        self._review = review
        self._inputs = inputs
        self._results = results
        self._listing = Listing(review, inputs)
        self._token = token
        self._cookie = COOKIE + sha256(token.encode()).hexdigest()[:8]
        self._templates = templates
        self._attempts = RateLimit(ATTEMPTS)

    def router(self) -> list[Any]:
        """Return all routes."""
        router = APIRouter()
        router.get("/")(self.page)
        locked = APIRouter(dependencies=[Depends(self.require_cookie)])
        locked.get("/api/state")(self.state)
        locked.get("/api/rows")(self.rows)
        locked.get("/api/explanation/{row}")(self.explanation)
        locked.post("/api/labels")(self.set_labels)
        locked.post("/api/classes")(self.add_class)
        locked.post("/api/audit")(self.change_audit)
        locked.get("/images/{row}")(self.image)
        locked.get("/sounds/{row}")(self.sound)
        locked.get("/files/{name}")(self.file)
        router.include_router(locked)
        return router.routes

    # ---- Access

    def require_cookie(self, request: Request) -> None:
        """Refuse a request without the cookie."""
        if not are_equal(self._token, request.cookies.get(self._cookie, "")):
            raise RefusedError(403, "token")

    def page(self, request: Request, token: str = "") -> Response:
        """Return the page; the token in the address becomes a cookie."""
        if not token:
            self.require_cookie(request)
            values = {"items": sorted(self._review.learner.items), "files": self._results.names}
            return HTMLResponse(self._templates.get_template("review.html").render(**values))
        if not is_secret(request, token, self._token, self._attempts):
            raise RefusedError(403, "token")
        response = RedirectResponse("./", 303)
        cookie, token = self._cookie, self._token
        set_cookie(response, request, cookie, token, max_age=COOKIE_SECONDS, samesite="strict")
        return response

    # ---- Data: not by FastAPI's encoder, which visits every value of long lists

    def state(self) -> JSONResponse:
        """Return the state of the review."""
        return JSONResponse(self._review.describe())

    def rows(self, asked: Annotated[Query, Parameter()]) -> JSONResponse:
        """Return one page of inputs, or only those that the page has already."""
        return JSONResponse(self._listing.find(asked))

    def explanation(self, row: int) -> JSONResponse:
        """Return why an input is predicted to have its class."""
        scores = self._review.learner.scores[[self._require_row(row)]]
        why = explain(self._review.predicted.head, scores)[0]
        tables = format_contributions(why)
        if others := format_alternatives(why):
            tables.append({"caption": "Probabilities of other classes", "bars": others, "note": ""})
        for table in tables:
            table["bars"] = [bar._asdict() for bar in table["bars"]]
        return JSONResponse({"target": why.target, "rival": why.rival, "tables": tables})

    def set_labels(self, sent: SentLabels) -> dict[str, int]:
        """Save labels; the answer comes when they are on disk."""
        self._review.set_labels(dict(sent.labels))
        return {"n_saved": len(sent.labels)}

    def add_class(self, sent: SentClass) -> dict[str, str]:
        """Save a new class."""
        return {"name": self._review.add_class(sent.name, sent.ranking)}

    def change_audit(self, sent: SentAudit) -> dict[str, object]:
        """Open, continue or close the audit."""
        review = self._review
        {
            "open": lambda: review.open_audit(secrets.randbits(63)),
            "check": lambda: review.check(sent.row, sent.label),
            "undo": review.undo_check,
            "close": review.close_audit,
        }[sent.action]()
        return {"audit": review.describe_audit()}

    # ---- Media and files

    def image(self, row: int, *, large: bool = False) -> Response:
        """Return an image, small for the grid or larger."""
        read = self._inputs.read_image if large else self._inputs.read_thumbnail
        image = read(self._require_row(row))
        return Response(image.data, media_type=image.media_type, headers=KEPT)

    def sound(self, row: int) -> Response:
        """Return a sound file."""
        file, kind = self._inputs.find_sound(self._require_row(row))
        return FileResponse(file, media_type=kind, headers=KEPT)

    def file(self, name: str) -> Response:
        """Write one of the results, and return it."""
        if name not in self._results.names:
            raise RefusedError(404, "no_file")
        return FileResponse(self._results.write(name), filename=name)

    def _require_row(self, row: int) -> int:
        if row not in range(len(self._review.ids)):
            raise RefusedError(404, "no_page")
        return row


# ---- Which inputs the page shows, and in what order: groups, filters, pages

PAGE = 60
"""Inputs on a page."""
N_USEFUL = 30
"""Inputs whose labels help most that are chosen at once."""
Rows = NDArray[np.intp]
Text = Annotated[str, Field(max_length=500)]
Share = Annotated[float, Field(ge=0, le=1)]


class Query(Sent):
    """What somebody wants to see.

    ``name`` is the predicted class, or that of the label; ``least`` and ``most`` bound the
    probability, and ``text`` is a part of ids and texts. ``labelled`` keeps only inputs with a
    label, or without.
    ``only`` names rows, and everything else is ignored.
    """

    order: Literal["groups", "useful"] = "groups"
    name: Text = ""
    least: Share = 0.0
    most: Share = 1.0
    text: Text = ""
    labelled: bool | None = None
    page: Annotated[int, Field(ge=0, le=10**9)] = 0
    only: Annotated[str, Field(pattern=r"^(\d{1,9}(,\d{1,9})*)?$", max_length=10_000)] = ""


class Listing:
    """Orders and filters the inputs of a review."""

    def __init__(self, review: Review, inputs: ShownInputs) -> None:
        self._review = review
        self._inputs = inputs
        shown = zip(review.ids, inputs.values, strict=True)
        texts = (f"{name}\n{text if isinstance(text, str) else ''}" for name, text in shown)
        self._searched = [text.casefold() for text in texts]
        self._useful: tuple[Any, Rows] = None, np.empty(0, np.intp)

    def find(self, query: Query) -> dict[str, object]:
        """Return one page of inputs, and how many there are."""
        predicted = self._review.predicted
        if query.only:
            rows = np.array(query.only.split(","), int)
            return {"rows": [self.describe(row) for row in rows[rows < len(self._searched)]]}
        rows = predicted.order if query.order == "groups" else self._find_useful(predicted)
        rows = self._filter(rows, query, predicted)
        n_pages = max(1, -(-len(rows) // PAGE))
        page = min(query.page, n_pages - 1)
        return {
            "n": len(rows),
            "page": page,
            "n_pages": n_pages,
            "version": self._review.version,
            "rows": [self.describe(row) for row in rows[page * PAGE : (page + 1) * PAGE]],
        }

    def _find_useful(self, predicted: Predicted) -> Rows:
        version, rows = self._useful
        left = self._review.unlabelled()
        # Found again when the head has learned, or when all of them have labels.
        if version is not predicted or not np.isin(rows, left).any():
            rows = self._review.learner.find_useful(left, N_USEFUL)
            self._useful = predicted, rows
        return rows

    def _filter(self, rows: Rows, query: Query, predicted: Predicted) -> Rows:
        labels = dict(self._review.labels)
        # As it is shown, in whole percents.
        proba = predicted.proba[rows].round(2)
        keep = (proba >= query.least) & (proba <= query.most)
        if query.labelled is not None or query.name:
            chosen = np.array([labels.get(row, "") for row in rows.tolist()], object)
            if query.labelled is not None:
                keep &= (chosen != "") == query.labelled
            if query.name:
                keep &= np.where(chosen == "", predicted.labels[rows], chosen) == query.name
        rows = rows[keep]
        if wanted := query.text.casefold():
            rows = rows[[wanted in self._searched[row] for row in rows.tolist()]]
        return rows

    def describe(self, row: int) -> dict[str, object]:
        """Return an input, its prediction and its label, for the page."""
        review, predicted = self._review, self._review.predicted
        return {
            "row": int(row),
            "id": review.ids[row],
            "label": str(predicted.labels[row]),
            "proba": float(predicted.proba[row]),
            "second": str(predicted.second[row]),
            "second_proba": float(predicted.second_proba[row]),
            "given": review.labels.get(row),
            **self._inputs.describe(row),
        }
