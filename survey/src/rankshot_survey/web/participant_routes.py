"""The routes of participants, in the order in which they see the pages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from math import ceil
from typing import Annotated, Literal, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from fastapi import APIRouter, Depends, Form, Path, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.core.errors import short_repr
from rankshot.web.guards import RateLimit, RefusedError, Sent, find_address, set_cookie
from rankshot_survey.languages import ParticipantError
from rankshot_survey.store.database import ID_COLUMNS, LOGGER, Database, participant_name
from rankshot_survey.store.identity import Identity
from rankshot_survey.store.participation import (
    AlreadyAnsweredError,
    CurrentQuestion,
    NotAssignedError,
    Participation,
    StoppedError,
)
from rankshot_survey.study import MOST_ITEMS, Study
from rankshot_survey.web.pages import Pages

# The only field that a form has several times.
PLACE = b"place"
# The cookie with the link of whoever has started last in a browser. Without it, people go on by
# their link alone.
COOKIE = "rankshot_participant"
COOKIE_SECONDS = 90 * 24 * 3600
# An id of a platform.
_ID = re.compile("[A-Za-z0-9_.:@-]{1,100}")
# Not an int: 1.0 and +1 would be URLs of the same question.
Number = Annotated[str, Path(pattern="^[1-9][0-9]{0,4}$")]
Place = Annotated[str, StringConstraints(max_length=3)]


class StartForm(BaseModel):
    """What the consent page sends: the ids that its address had, and the language."""

    model_config = ConfigDict(extra="allow")
    form: str
    language: Annotated[str, StringConstraints(max_length=200)] = ""


class AnswerForm(Sent):
    """What a question's page sends: one place per item, in the order of the screen."""

    form: str
    place: Annotated[list[Place], Field(max_length=MOST_ITEMS)] = []  # noqa: RUF012 (a model copies its defaults)
    skip: Literal["yes", ""] = ""


class Visit(NamedTuple):
    """A request with the link of a participant, and the address of their current question."""

    request: Request
    rater: str
    home: str

    def go_home(self) -> Response:
        """Redirect to the current question."""
        return RedirectResponse(self.home, 303)


async def find_visit(request: Request, link: str) -> Visit:
    """Return the visit of a link; pages for this request are in the language of its owner."""
    identity: Identity = request.app.state.identity
    rater = identity.verify_link(link)
    if rater is None:
        raise RefusedError(404, "no_link")
    request.state.rater = rater
    return Visit(request, rater, f"/p/{link}")


AVisit = Annotated[Visit, Depends(find_visit)]


def _make_query(arrived: Mapping[str, str], tag: str) -> str:
    """Return the query of an address that leads to the same visitor's page in a language."""
    return f"?{urlencode({**arrived, 'lang': tag})}"


class ParticipantRoutes:
    """The routes of a study's participants."""

    def __init__(
        self, study: Study, participation: Participation, database: Database, pages: Pages
    ) -> None:
        self._starts = RateLimit(study.starts_per_hour, seconds=3600.0)
        self._study = study
        self._participation = participation
        self._identity = database.identity
        self._pages = pages
        # Prolific expects the code of its own that is in the URL.
        query = parse_qs(urlsplit(study.completion_url or "").query)
        code = query.get("cc", [None])[0]
        self._completion_code = code if study.platform == "prolific" else None

    def router(self) -> APIRouter:
        """Return the router with all routes."""
        router = APIRouter()
        router.get("/")(self.consent)
        router.get("/declined")(self.declined)
        router.post("/start")(self.start)
        router.get("/p/{link}/instructions")(self.instructions)
        router.get("/p/{link}")(self.show_question)
        router.get("/p/{link}/withdraw")(self.ask_to_withdraw)
        router.post("/p/{link}/withdrawn")(self.withdraw)
        router.post("/p/{link}/{number}")(self.answer)
        return router

    def show_question(self, visit: AVisit) -> Response:
        """Show the current question; after the last one, the page with the completion code."""
        now = self._participation.current_question(visit.rater)
        if isinstance(now, CurrentQuestion):
            visit.request.state.language = now.language
            return self._ask(visit, now, [])
        if now.n_answers == 0:
            # Others have answered all questions meanwhile. No answer, no completion code.
            raise StoppedError("full")
        if now.n_counted == 0:
            return self._render("no_code.html", visit, now=now)
        code = self._completion_code or now.code
        return self._render("finished.html", visit, now=now, code=code)

    # ---- Start

    def consent(self, request: Request) -> Response:
        """Show what the study is about, and ask for consent. Nothing is stored yet."""
        if len(request.query_params) < len(request.query_params.multi_items()):
            raise RefusedError(422, "repeated")
        name = self._read_name(request, request.query_params)
        person = name and self._participation.find_own(name, "", self._find_owned(request))
        if person and person.finished_at is not None:
            return RedirectResponse(f"/p/{self._identity.link(person.rater)}", 303)
        pilot = bool(person.pilot) if person else self._participation.require_place()
        language = self._pages.texts(request).tag
        arrived = request.state.ids
        return self._pages.render(
            "consent.html",
            reader=request,
            fields={"form": self._identity.nonce("start"), **arrived, "language": language},
            pilot=pilot,
            query=_make_query(arrived, language),
            languages=[
                {"tag": tag, "name": catalogue.name, "url": _make_query(arrived, tag)}
                for tag, catalogue in self._pages.languages.offered.items()
                if tag != language
            ],
        )

    def declined(self, request: Request) -> Response:
        """Say good-bye to somebody who does not agree. Nothing is stored."""
        arrived = request.state.ids = self._find_ids(request.query_params)
        query = _make_query(arrived, self._pages.texts(request).tag)
        return self._pages.render("declined.html", reader=request, query=query)

    def start(self, request: Request, form: Annotated[StartForm, Form()]) -> Response:
        """Start, or resume at the current question."""
        if not self._identity.is_nonce(form.form, "start"):
            raise RefusedError(403, "form")
        sent = form.model_extra or {}
        if not sent.keys() <= {*self._study.id_names}:
            raise RefusedError(422, "malformed")
        own_name = self._read_name(request, sent)
        # Without an id, each copy of the consent page is one participant.
        name = own_name or f"{self._study.platform}:anonymous:{form.form}"
        language = form.language if form.language in self._pages.languages.offered else None
        request.state.language = language
        owned = self._find_owned(request)
        if self._participation.find_own(name, form.form, owned) is None:
            self._require_pace(request)
        # Without a platform, an id is only hashed. What an address does not say does not erase what
        # an earlier one said.
        ids, names = request.state.ids, zip(ID_COLUMNS, self._study.id_names, strict=False)
        kept = {} if self._study.platform == "none" else {c: ids[n] for c, n in names if n in ids}
        rater = self._participation.start(name, kept, language, form=form.form, owned=owned)
        link = self._identity.link(rater)
        response = RedirectResponse(f"/p/{link}/instructions", 303)
        if own_name:
            # It is also sent to who follows a link of the platform.
            set_cookie(response, request, COOKIE, link, max_age=COOKIE_SECONDS, samesite="lax")
        return response

    def _find_owned(self, request: Request) -> str | None:
        """Return the rater who has started in this browser."""
        return self._identity.verify_link(request.cookies.get(COOKIE, ""))

    def _require_pace(self, request: Request) -> None:
        """Refuse a new participant if too many have started from the same address."""
        if wait := self._starts.wait(find_address(request.scope)):
            rule = "one address has reached %d starts per hour: raise it for a lecture hall"
            LOGGER.warning(rule, self._study.starts_per_hour)
            headers = {"retry-after": str(ceil(wait))}
            link = self._study.full_url or self._study.refusal_url
            raise RefusedError(429, "starts", link, headers=headers, minutes=ceil(wait / 60))

    def _find_ids(self, sent: Mapping[str, str]) -> dict[str, str]:
        """Return the ids that the study asks for."""
        return {name: sent[name] for name in self._study.id_names if sent.get(name)}

    def _read_name(self, request: Request, sent: Mapping[str, str]) -> str | None:
        """Return the name of a participant, None without an id; refuse who may not start."""
        study = self._study
        ids = request.state.ids = self._find_ids(sent)
        for name, value in ids.items():
            if not _ID.fullmatch(value):
                raise RefusedError(400, "bad_id", name=name, value=short_repr(value))
        person = ids.get(study.id_names[0])
        if person is None and study.platform != "none":
            raise RefusedError(400, "no_id", name=study.id_names[0])
        if study.allowed is not None and person not in study.allowed:
            raise RefusedError(403, "not_on_list", study.refusal_url or study.full_url)
        return person and participant_name(study.platform, person)

    # ---- Questions

    def instructions(self, visit: AVisit) -> Response:
        """Show the instructions, with an example."""
        return self._render("instructions.html", visit)

    def answer(
        self, visit: AVisit, number: Number, form: Annotated[AnswerForm, Form()]
    ) -> Response:
        """Store an answer. It is on disk when the redirect is sent."""
        skip = form.skip == "yes"
        try:
            self._participation.submit(visit.rater, int(number), form.form, form.place, skip=skip)
        except ParticipantError as error:
            return self._ask_again(visit, form, error)
        except NotAssignedError:
            # Who has withdrawn, for example in another tab, reads that.
            self._participation.current_question(visit.rater)
            raise RefusedError(403, "closed", visit.home) from None
        except AlreadyAnsweredError as error:
            order = error.order
            raise RefusedError(
                409, template="answered.html", order=order, home=visit.home
            ) from None
        return visit.go_home()

    def _ask(
        self, visit: Visit, now: CurrentQuestion, places: list[str], error: str | None = None
    ) -> Response:
        texts = self._pages.texts(visit.request)
        chosen = places if len(places) == len(now.shown) else [""] * len(now.shown)
        return self._render(
            "question.html",
            visit,
            422 if error else 200,
            now=now,
            target_name=texts.own.name(now.target),
            rows=texts.make_rows(now.shown, chosen),
            error=error,
        )

    def _ask_again(self, visit: Visit, form: AnswerForm, error: ParticipantError) -> Response:
        """Show the question again, with the error and the chosen places."""
        now = self._participation.current_question(visit.rater)
        text = self._pages.texts(visit.request).translate_error(error)
        if isinstance(now, CurrentQuestion):
            key = (visit.rater, now.number, now.key, json.dumps(now.shown))
            if self._identity.read_timed_token(form.form, *key) is not None:
                return self._ask(visit, now, form.place, text)
        # The question has an answer, or was assigned to somebody else.
        raise RefusedError(422, "no_ranking", visit.home, error=text)

    # ---- The end

    def ask_to_withdraw(self, visit: AVisit) -> Response:
        """Ask whether all answers are to be deleted."""
        return self._render("withdraw.html", visit)

    def withdraw(self, visit: AVisit) -> Response:
        """Delete all answers of a participant."""
        self._participation.withdraw(visit.rater)
        return visit.go_home()

    def _render(
        self, template: str, visit: Visit, status: int = 200, **values: object
    ) -> HTMLResponse:
        return self._pages.render(template, status, reader=visit.request, home=visit.home, **values)
