"""The routes of the researcher, behind a token: login, progress and downloads."""

from __future__ import annotations

import hmac
import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Depends, Form, Header, Path, Query, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from rankshot.core.errors import RankshotError
from rankshot.survey.export import count_left_out, export_lines
from rankshot.survey.overview import STATES, Overview, OverviewReader
from rankshot.survey.payment import Decision, decide_payments, format_payments
from rankshot.survey.quality import FLAG_NAMES, is_right
from rankshot.survey.raw_data import (
    MARK,
    answer_records,
    format_csv,
    format_jsonl,
    participant_records,
)
from rankshot.survey.store.database import Database
from rankshot.survey.store.identity import RATER_DIGITS, Identity
from rankshot.survey.store.people import MOST_REASON
from rankshot.survey.study import Study
from rankshot.survey.web.pages import (
    FormNonce,
    Pages,
    RefusedError,
    SentForm,
    describe_form,
    describe_refusals,
)
from rankshot.survey.web.participant_table import (
    FORMATS,
    ID_HEADINGS,
    ParticipantTable,
    TableQuery,
)
from rankshot.survey.web.researcher_actions import (
    PARTICIPANT_ACTIONS,
    STATE_AFTER,
    STUDY_ACTIONS,
    ActForm,
    Action,
    Actions,
    AnyAction,
    ConfirmForm,
    describe_done,
)

COOKIE = "rankshot_researcher"
SECONDS = 12 * 3600
"""How long a login lasts."""
LEAST_CHARACTERS = 16
MOST_CHARACTERS = 500
JSONL = "application/x-ndjson"
CSV = "text/csv"
PLAIN = "text/plain"
Rater = Annotated[str, Path(pattern=f"^[0-9a-f]{{{RATER_DIGITS}}}$")]
DataName = Literal["answers.csv", "answers.jsonl", "participants.csv", "participants.jsonl"]
PaymentName = Literal["payments.csv", "approve.txt", "flagged.txt", "reject.txt"]
LISTED: dict[str, Decision] = {
    "approve.txt": "approve",
    "flagged.txt": "look at",
    "reject.txt": "reject",
}
_COOKIE = APIKeyCookie(
    name=COOKIE, scheme_name="cookie", description="Set by the login form.", auto_error=False
)
_BEARER = HTTPBearer(
    scheme_name="token",
    description="The token with which the survey was started.",
    auto_error=False,
)


# ---- Login


class Login:
    """A token, and a cookie that proves that the browser has sent it.

    The cookie is an expiry time with a signature. The signature needs the token and the survey's
    secret key. So a cookie is invalid after a change of the token, and a guessed token can only
    be tested by sending it to the server.

    Examples
    --------
    >>> login = Login("a-token-that-nobody-guesses", Identity(b"a key"))
    >>> cookie = login.cookie(now=1000.0)
    >>> login.accepts(cookie, now=2000.0), login.accepts(cookie, now=99_000.0)
    (True, False)
    """

    def __init__(self, token: str, identity: Identity) -> None:
        how = "for example from python -c 'import secrets; print(secrets.token_hex())'"
        if not LEAST_CHARACTERS <= len(token) <= MOST_CHARACTERS:
            raise RankshotError(
                f"the researcher's token has {len(token)} characters; give at least "
                f"{LEAST_CHARACTERS} and at most {MOST_CHARACTERS}, {how}"
            )
        # Other characters cannot be sent in a header unchanged.
        if not (token.isascii() and token.isprintable() and token == token.strip()):
            raise RankshotError(
                "the researcher's token has characters that are not ASCII, or begins or ends with "
                f"a space; give another, {how}"
            )
        self._token = token.encode()
        self._key = identity.login_key(token)

    def is_token(self, token: str) -> bool:
        """Return whether this is the token, in constant time."""
        return hmac.compare_digest(self._token, token.encode())

    def cookie(self, now: float) -> str:
        """Return the value of a new cookie."""
        end = str(int(now) + SECONDS)
        return f"{end}.{self._sign(end)}"

    def accepts(self, cookie: str, now: float) -> bool:
        """Return whether a cookie is valid and has not expired."""
        end, _, signature = cookie.partition(".")
        signed = hmac.compare_digest(self._sign(end).encode(), signature.encode())
        return signed and int(end) > now

    def _sign(self, end: str) -> str:
        return hmac.digest(self._key, end.encode(), "sha256").hex()


def find_session(
    request: Request,
    cookie: Annotated[str | None, Depends(_COOKIE)],
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
) -> str | None:
    """Return the login of a request: its cookie, or "token" for ``Authorization: Bearer``.

    A wrong token is refused.
    """
    login: Login = request.app.state.login
    if bearer is not None:
        if login.is_token(bearer.credentials):
            return "token"
        text = "This is not the token with which the survey was started."
        raise _refuse(401, "Wrong token", text, label="Log in")
    return cookie if cookie is not None and login.accepts(cookie, time.time()) else None


def require_session(session: Annotated[str | None, Depends(find_session)]) -> str:
    """Refuse a request without a login."""
    if session is None:
        text = "Please log in first. A login ends after 12 hours."
        raise _refuse(401, "Not logged in", text, label="Log in")
    return session


Session = Annotated[str, Depends(require_session)]


# ---- Routes


class LoginForm(SentForm):
    """What the login page sends."""

    form: FormNonce
    token: Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)]


class LogoutForm(SentForm):
    """What the logout button sends."""

    form: FormNonce


class PageQuery(TableQuery):
    """The query of the page after an action: what was done."""

    done: AnyAction | Literal[""] = ""
    n: Annotated[int, Field(ge=0, le=1_000_000)] = 0


class PilotQuery(BaseModel):
    """Whether a file is about the pilot participants, or about the others."""

    model_config = ConfigDict(extra="forbid")
    pilot: bool = False


class RankingsQuery(PilotQuery):
    """What a rankings file contains."""

    exclude_flagged: bool = False


class DataQuery(PilotQuery):
    """What a file of raw data contains."""

    with_ids: bool = False


class ResearcherRoutes:
    """The routes of a study's researcher.

    Parameters
    ----------
    study : Study
    database : Database
    login : Login
    pages : Pages
    """

    def __init__(self, study: Study, database: Database, login: Login, pages: Pages) -> None:
        self._study = study
        self._identity = database.identity
        self._reader = OverviewReader(study, database)
        self._login = login
        self._pages = pages
        self._home = f"{pages.root}/researcher"
        self._actions = Actions(study, database, self._reader)

    def router(self) -> APIRouter:
        """Return the router with all routes."""
        router = APIRouter(prefix="/researcher", default_response_class=HTMLResponse)
        locked: dict[str, Any] = {"dependencies": [Depends(require_session)]}
        # Without a login, this is the page that asks for the token.
        router.get("", responses=describe_refusals(401), openapi_extra={"security": [{}]})(
            self.page
        )
        router.post("/login", **describe_form(401))(self.log_in)
        router.post("/logout", **describe_form(401), **locked)(self.log_out)
        unchanged: dict[int | str, dict[str, Any]] = {304: {"description": "Nothing has changed"}}
        router.get("/progress", responses={**unchanged, **describe_refusals(401)}, **locked)(
            self.progress
        )
        router.get("/participants/{rater}", responses=describe_refusals(401, 404), **locked)(
            self.participant
        )
        router.post("/confirm", responses=describe_refusals(401, 403, 409, 415), **locked)(
            self.confirm
        )
        router.post("/act", **describe_form(401, 409), **locked)(self.act)
        router.get(
            "/rankings.jsonl",
            response_class=Response,
            responses={200: _describe_files(JSONL), **describe_refusals(401, 404)},
            **locked,
        )(self.rankings)
        router.get(
            "/data/{name}",
            response_class=StreamingResponse,
            responses={200: _describe_files(JSONL, CSV), **describe_refusals(401, 404)},
            **locked,
        )(self.data)
        router.get(
            "/payment/{name}",
            response_class=Response,
            responses={200: _describe_files(CSV, PLAIN), **describe_refusals(401, 409)},
            **locked,
        )(self.payment)
        return router

    # ---- Login

    def log_in(self, request: Request, form: Annotated[LoginForm, Form()]) -> Response:
        """Check the token, and set the login cookie."""
        self._require_nonce(form.form, "login")
        if not self._login.is_token(form.token):
            error = "This is not the token with which the survey was started."
            fields = self._fields("login")
            raise RefusedError(401, template="login.html", fields=fields, error=error)
        response = RedirectResponse(self._home, 303)
        response.set_cookie(
            COOKIE,
            self._login.cookie(time.time()),
            max_age=SECONDS,
            path=self._home,
            secure=request.scope["scheme"] == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    def log_out(self, form: Annotated[LogoutForm, Form()], session: Session) -> Response:
        """Delete the login cookie."""
        self._require_nonce(form.form, session)
        response = RedirectResponse(self._home, 303)
        response.delete_cookie(COOKIE, path=self._home, httponly=True, samesite="strict")
        return response

    # ---- Pages

    def page(
        self,
        session: Annotated[str | None, Depends(find_session)],
        query: Annotated[PageQuery, Query()],
    ) -> HTMLResponse:
        """Show the progress of the survey and its participants, or ask for the token."""
        if session is None:
            return self._pages.render("login.html", fields=self._fields("login"), error=None)
        done = describe_done(query.done, query.n) if query.done else None
        return self._show_page(session, query, done=done)

    def _show_page(
        self,
        session: str,
        query: TableQuery,
        status: int = 200,
        *,
        done: str | None = None,
        problem: str | None = None,
        who: str = "",
    ) -> HTMLResponse:
        return self._pages.render(
            "researcher.html",
            status,
            fields=self._fields(session),
            done=done,
            problem=problem,
            who=who,
            **_show_progress(self._reader.read(pilot=query.pilot), query),
        )

    def progress(
        self,
        query: Annotated[TableQuery, Query()],
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Return the part of the page that changes, for its script."""
        view = self._reader.read(pilot=query.pilot)
        etag = f'"{view.version}"'
        if if_none_match == etag:
            return Response(status_code=304)
        page = self._pages.render("progress.html", **_show_progress(view, query))
        page.headers["etag"] = etag
        return page

    def participant(
        self, rater: Rater, session: Session, query: Annotated[TableQuery, Query()]
    ) -> HTMLResponse:
        """Show one participant with all answers."""
        for pilot in (False, True):
            view = self._reader.read(pilot=pilot)
            if rater in view.people:
                break
        else:
            text = "There is no participant with this name, or not any more."
            raise _refuse(404, "No such participant", text)
        person = view.people[rater]
        given = view.excluded_answers if person.excluded_at is not None else view.answers
        return self._pages.render(
            "participant.html",
            fields=self._fields(session),
            view=view,
            person=person,
            # The way back leads to the table as it was.
            query=query.model_copy(update={"pilot": person.pilot}),
            answers=[answer for answer in given if answer.rater == rater],
            is_right=is_right,
            participant_actions=_name_buttons(PARTICIPANT_ACTIONS),
            **FORMATS,
        )

    # ---- Actions

    def confirm(self, form: Annotated[ConfirmForm, Form()], session: Session) -> HTMLResponse:
        """Say what an action will do, and to whom. Nothing is changed yet."""
        self._require_nonce(form.form, session)
        try:
            planned = self._actions.plan(form)
        except RankshotError as error:
            return self._show_problem(form, session, error)
        return self._pages.render(
            "confirm.html",
            fields=self._fields(session) | planned.fields,
            planned=planned,
            id_name=ID_HEADINGS[self._study.platform],
            query=TableQuery.parse(form.query),
            most_reason=MOST_REASON,
        )

    def _show_problem(self, form: ConfirmForm, session: str, error: RankshotError) -> HTMLResponse:
        """Show the page again, with what was typed and why it was not done."""
        text = str(error).removesuffix("; nothing was changed")
        problem = f"Nothing was changed. {text[:1].upper()}{text[1:]}."
        return self._show_page(
            session, TableQuery.parse(form.query), 409, problem=problem, who=form.who
        )

    def act(self, form: Annotated[ActForm, Form()], session: Session) -> Response:
        """Do what was confirmed."""
        self._require_nonce(form.form, session)
        try:
            n, remains = self._actions.run(form)
        except RankshotError as error:
            return self._show_problem(form, session, error)
        query = TableQuery.parse(form.query)
        if remains is not None:
            problem = f"{remains[:1].upper()}{remains[1:]}."
            return self._show_page(
                session, query, done=describe_done(form.action, n), problem=problem
            )
        address = query.address(done=form.action, n=n)
        return RedirectResponse(f"{self._home}{address}", 303)

    # ---- Files

    def rankings(self, query: Annotated[RankingsQuery, Query()]) -> Response:
        """Return the answers as a rankings file."""
        view = self._reader.read(pilot=query.pilot)
        try:
            export = export_lines(
                view.study, view.answers, view.flags, exclude_flagged=query.exclude_flagged
            )
        except RankshotError as error:
            raise _refuse(404, "Nothing to download", f"{error}.") from None
        lines = "".join(f"{line}\n" for line in export.lines)
        return Response(lines, media_type=JSONL, headers=_attach("rankings.jsonl"))

    def data(self, name: DataName, query: Annotated[DataQuery, Query()]) -> Response:
        """Return every answer, or every participant, as CSV or JSON lines."""
        view = self._reader.read(pilot=query.pilot)
        if not view.people:
            text = "Nobody has started yet."
            raise _refuse(404, "Nothing to download", text)
        what, _, ending = name.partition(".")
        records = (
            answer_records(view)
            if what == "answers"
            else participant_records(view, with_ids=query.with_ids)
        )
        return StreamingResponse(
            format_csv(records) if ending == "csv" else format_jsonl(records),
            media_type=CSV if ending == "csv" else JSONL,
            headers=_attach(name),
        )

    def payment(self, name: PaymentName, query: Annotated[PilotQuery, Query()]) -> Response:
        """Return who is to be paid, with reasons; or ids to approve, to look at or to reject."""
        payments = decide_payments(self._reader.read(pilot=query.pilot))
        try:
            if name == "payments.csv":
                text = MARK + format_payments(payments, get_args(Decision))
                return Response(text, media_type=CSV, headers=_attach(name))
            return Response(format_payments(payments, [LISTED[name]], plain=True), media_type=PLAIN)
        except RankshotError as error:
            raise _refuse(409, "Ids are missing", f"{error}.") from None

    # ---- Forms

    def _fields(self, purpose: str) -> dict[str, str]:
        return {"form": self._identity.nonce(f"researcher {purpose}")}

    def _require_nonce(self, form: str, purpose: str) -> None:
        """Refuse a form of another page, or of another login."""
        if not self._identity.is_nonce(form, f"researcher {purpose}"):
            raise _refuse(403, "Invalid form", "Please open the page again.")


def _refuse(
    status: int, heading: str, text: str, label: str = "Back to the survey"
) -> RefusedError:
    return RefusedError(status, heading, text, template="refused.html", label=label)


def _show_progress(view: Overview, query: TableQuery) -> dict[str, Any]:
    """Return the values for the template of the part that changes."""
    return {
        "view": view,
        "left_out": count_left_out(view.answers, view.flags),
        "table": ParticipantTable.make(view, query),
        "states": STATES,
        "flag_names": FLAG_NAMES,
        "participant_actions": _name_buttons(PARTICIPANT_ACTIONS),
        "study_actions": [
            (name, action.button)
            for name, action in STUDY_ACTIONS.items()
            if (view.n_pilot if name == "reset" else STATE_AFTER[name] != view.state)
        ],
        **FORMATS,
    }


def _name_buttons(actions: Mapping[str, Action]) -> list[tuple[str, str]]:
    return [(name, action.button) for name, action in actions.items()]


def _describe_files(*kinds: str) -> dict[str, Any]:
    return {"content": {kind: {"schema": {"type": "string"}} for kind in kinds}}


def _attach(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
