"""The web application of a review: the page, its data as JSON, images and sounds, and files."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Depends, FastAPI, Query as Parameter, Request
from pydantic import Field, StrictInt
from starlette.requests import HTTPConnection
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response

from rankshot.core.errors import OutputError, RankshotError
from rankshot.pages.explanations import format_alternatives, format_contributions
from rankshot.review.inputs import ShownInputs
from rankshot.review.results import Results
from rankshot.review.session import GoneError, Review
from rankshot.web.guards import (
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
from rankshot.zeroshot.joint_head import NONE_OF_THESE

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
    title: str,
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
        kind="application/json",
        most_bytes=MOST_BYTES,
        hosts=hosts,
    )

    @app.exception_handler(RankshotError)
    def show_error(request: Request, error: RankshotError) -> Response:
        status = {GoneError: 409, OutputError: 507}.get(type(error), 422)
        return refuse(request, RefusedError(status, str(error)))

    def show_page() -> Response:
        names = {"items": sorted(review.learner.items), "files": results.names}
        return HTMLResponse(templates.get_template("review.html").render(**names))

    locked = APIRouter(dependencies=[Depends(_lock(app, require_secret(token), show_page))])
    _add_data(locked, review, inputs)
    _add_changes(locked, review)
    _add_media(locked, inputs, results)
    app.include_router(locked)
    add_files(app, "/static/{name}", static)
    return app


def _lock(
    app: FastAPI, secret: str, show_page: Callable[[], Response]
) -> Callable[[Request], None]:
    """Add the page, where a token in the address becomes a cookie; return what asks for this."""
    name = COOKIE + sha256(secret.encode()).hexdigest()[:8]
    attempts = RateLimit(ATTEMPTS)

    def require_cookie(request: Request) -> None:
        """Refuse a request without the cookie."""
        if not are_equal(secret, request.cookies.get(name, "")):
            raise RefusedError(403, "token")

    @app.get("/")
    def page(request: Request, token: str = "") -> Response:
        if not token:
            require_cookie(request)
            return show_page()
        if not is_secret(request, token, secret, attempts):
            raise RefusedError(403, "token")
        response = RedirectResponse("./", 303)
        set_cookie(response, request, name, secret, max_age=COOKIE_SECONDS, samesite="strict")
        return response

    return require_cookie


def _add_data(router: APIRouter, review: Review, inputs: ShownInputs) -> None:
    """Add what the page asks for; not by FastAPI's encoder, which visits every value of a list."""

    @router.get("/api/state")
    def state() -> JSONResponse:
        return JSONResponse(review.describe())

    @router.get("/api/rows")
    def rows(asked: Annotated[Query, Parameter()]) -> JSONResponse:
        """Return one page of inputs, or only those that the page has already."""
        return JSONResponse(list_inputs(review, inputs, asked))

    @router.get("/api/explanation/{row}")
    def explanation(row: int) -> JSONResponse:
        """Return why an input is predicted to have its class."""
        scores = review.learner.scores[[inputs.require_row(row)]]
        why = explain(review.predicted.head, scores)[0]
        tables = format_contributions(why)
        if others := format_alternatives(why):
            tables.append({"caption": "Probabilities of other classes", "bars": others, "note": ""})
        for table in tables:
            table["bars"] = [bar._asdict() for bar in table["bars"]]
        return JSONResponse({"target": why.target, "rival": why.rival, "tables": tables})


def _add_changes(router: APIRouter, review: Review) -> None:
    """Add what a person does: the answer comes when it is on disk."""

    @router.post("/api/labels")
    def set_labels(sent: SentLabels) -> dict[str, int]:
        review.set_labels(dict(sent.labels))
        return {"n_saved": len(sent.labels)}

    @router.post("/api/classes")
    def add_class(sent: SentClass) -> dict[str, str]:
        return {"name": review.add_class(sent.name, sent.ranking)}

    @router.post("/api/audit")
    def change_audit(sent: SentAudit) -> dict[str, object]:
        """Open, continue or close the audit."""
        if sent.action == "open":
            review.open_audit(secrets.randbits(63))
        elif sent.action == "check":
            review.check(sent.row, sent.label)
        elif sent.action == "undo":
            review.undo_check()
        else:
            review.close_audit()
        return {"audit": review.describe_audit()}


def _add_media(router: APIRouter, inputs: ShownInputs, results: Results) -> None:
    """Add images, sounds, and the files that a review gives."""

    @router.get("/images/{row}")
    def image(row: int, *, large: bool = False) -> Response:
        """Return an image, small for the grid or larger."""
        shown = (inputs.read_image if large else inputs.read_thumbnail)(inputs.require_row(row))
        return Response(shown.data, media_type=shown.media_type, headers=KEPT)

    @router.get("/sounds/{row}")
    def sound(row: int) -> Response:
        file, kind = inputs.find_sound(inputs.require_row(row))
        return FileResponse(file, media_type=kind, headers=KEPT)

    @router.get("/files/{name}")
    def file(name: str) -> Response:
        """Write one of the results, and return it."""
        if name not in results.names:
            raise RefusedError(404, "no_file")
        return FileResponse(results.write(name), filename=name)


# ---- Which inputs the page shows, and in what order: groups, filters, pages

PAGE = 60
"""Inputs on a page."""
N_USEFUL = 30
"""Inputs whose labels help most that are chosen at once."""
Text = Annotated[str, Field(max_length=500)]


class Query(Sent):
    """What somebody wants to see.

    ``name`` is the predicted class, or that of the label, and ``text`` a part of ids and texts.
    ``is_open`` keeps only inputs without a label. ``only`` names rows, and everything else is
    ignored.
    """

    order: Literal["groups", "uncertain", "useful"] = "groups"
    name: Text = ""
    text: Text = ""
    is_open: bool = False
    page: Annotated[int, Field(ge=0, le=10**9)] = 0
    only: Annotated[str, Field(pattern=r"^(\d{1,9}(,\d{1,9})*)?$", max_length=10_000)] = ""


def list_inputs(review: Review, inputs: ShownInputs, query: Query) -> dict[str, object]:
    """Return one page of inputs, and how many there are."""
    predicted = review.predicted
    if query.only:
        some = [row for row in map(int, query.only.split(",")) if row < len(review.ids)]
        return {"rows": [describe_input(review, inputs, row) for row in some]}
    rows = predicted.order
    if query.order == "uncertain":
        rows = rows[np.argsort(predicted.proba[rows], kind="stable")]
    elif query.order == "useful":
        rows = review.learner.find_useful(review.unlabelled(), N_USEFUL)
    labels = dict(review.labels)
    chosen = np.array([labels.get(row, "") for row in rows.tolist()], object)
    keep = (chosen == "") | (not query.is_open)
    if query.name:
        keep &= np.where(chosen == "", predicted.labels[rows], chosen) == query.name
    found = rows[keep].tolist()
    if wanted := query.text.casefold():
        found = [
            row for row in found if wanted in f"{review.ids[row]}\n{inputs.text(row)}".casefold()
        ]
    n_pages = max(1, -(-len(found) // PAGE))
    page = min(query.page, n_pages - 1)
    shown = found[page * PAGE : (page + 1) * PAGE]
    return {
        "n": len(found),
        "page": page,
        "n_pages": n_pages,
        "version": review.version,
        "rows": [describe_input(review, inputs, row) for row in shown],
    }


def describe_input(review: Review, inputs: ShownInputs, row: int) -> dict[str, object]:
    """Return an input, its prediction and its label, for the page."""
    predicted = review.predicted
    return {
        "row": row,
        "id": review.ids[row],
        "label": str(predicted.labels[row]),
        "proba": float(predicted.proba[row]),
        "second": str(predicted.second[row]),
        "second_proba": float(predicted.second_proba[row]),
        "given": review.labels.get(row),
        **inputs.describe(row),
    }
