"""The routes of participants, in the order in which they see the pages."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil
from typing import Annotated, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.web.guards import (
    FormNonce,
    FormToken,
    RateLimit,
    RefusedError,
    Sent,
    TimedToken,
    are_equal,
    find_address,
    set_cookie,
)
from rankshot_survey.answers import MOST_CHARACTERS, check_extra_answers
from rankshot_survey.languages import ParticipantError
from rankshot_survey.platforms import (
    Arrival,
    ShortText,
    Visitor,
    participant_name,
    read_completion_code,
    read_visitor,
)
from rankshot_survey.store.database import LINK_DIGITS, Database, Identity
from rankshot_survey.store.participation import (
    AlreadyAnsweredError,
    CurrentQuestion,
    ExtraLeft,
    NotAssignedError,
    Participation,
    StoppedError,
    Submission,
)
from rankshot_survey.study import MOST_ITEMS, ExtraQuestion, Study
from rankshot_survey.web.pages import Pages

LOGGER = logging.getLogger("rankshot.survey")
# How the paths end to which the answers to extra questions are sent.
EXTRA = "/extra"
# The only field that a form has several times.
PLACE = b"place"
# The cookie with the links of those who have started in a browser, the latest first. Without it,
# they go on by their link alone.
COOKIE = "rankshot_participant"
COOKIE_SECONDS = 90 * 24 * 3600
MOST_LINKS = 20
# Not an int: 1.0 and +1 would be URLs of the same question.
Number = Annotated[str, Path(pattern="^[1-9][0-9]{0,4}$")]
Place = Annotated[str, StringConstraints(max_length=3)]


class StartForm(Arrival):
    """What the consent page sends: what its address said, the language, and the screening."""

    form: FormNonce
    language: ShortText = ""


class ConfirmForm(Sent):
    """What a page sends that asks whether something is meant."""

    form: FormToken


class WithdrawForm(ConfirmForm):
    """What the page sends that asks whether all answers are to be deleted."""

    code: ShortText = ""


class AnswerForm(Sent):
    """What a question's page sends: one place per item, in the order of the screen."""

    form: TimedToken
    place: Annotated[list[Place], Field(max_length=MOST_ITEMS)] = []  # noqa: RUF012 (a model copies its defaults)
    skip: Literal["yes", ""] = ""
    # What the script has measured; empty without it.
    screen: Literal["phone", "tablet", "desktop", ""] = ""
    seen: Annotated[str, StringConstraints(pattern="^[0-9]{0,2}$")] = ""


class ExtraForm(BaseModel):
    """What the page of the extra questions sends: one field per question, named by its number."""

    model_config = ConfigDict(extra="allow")

    form: FormToken


class Visit(NamedTuple):
    """A request with the link of a participant, and the address of their current question."""

    request: Request
    rater: str
    home: str

    def go_home(self) -> Response:
        """Redirect to the current question."""
        return RedirectResponse(self.home, 303)


async def find_visit(
    request: Request, link: Annotated[str, Path(pattern=f"^[0-9a-f]{{{LINK_DIGITS}}}$")]
) -> Visit:
    """Return the visit of a link; pages for this request are in the language of its owner."""
    identity: Identity = request.app.state.identity
    rater = identity.verify_link(link)
    if rater is None:
        raise RefusedError(404, "no_link")
    request.state.rater = rater
    return Visit(request, rater, f"/p/{link}")


AVisit = Annotated[Visit, Depends(find_visit)]


def _read_extra(
    questions: Mapping[str, ExtraQuestion], form: StartForm | ExtraForm, ids: Sequence[str] = ()
) -> tuple[dict[str, str], dict[str, str], dict[str, ParticipantError]]:
    """Return the answers of a form to extra questions, their values, and the errors by field."""
    sent = {name: text for name, text in (form.model_extra or {}).items() if name not in ids}
    if not sent.keys() <= questions.keys():
        raise RefusedError(422, "malformed")
    return sent, *check_extra_answers(questions, sent)


def _make_query(arrived: Mapping[str, str], tag: str) -> str:
    """Return the query of an address that leads to the same visitor's page in a language."""
    return f"?{urlencode({**arrived, 'lang': tag})}"


class ParticipantRoutes:
    """The routes of a study's participants."""

    def __init__(
        self, study: Study, participation: Participation, database: Database, pages: Pages
    ) -> None:
        self._starts = RateLimit(study.starts_per_hour, seconds=3600.0)
        self._warnings = RateLimit(1, seconds=3600.0)
        self._study = study
        self._participation = participation
        self._identity = database.identity
        self._pages = pages
        extra = {field: question for field, question, *_ in pages.texts().own.extra}
        self._extra = {field: q for field, q in extra.items() if not q.accepted}
        self._screening = {field: q for field, q in extra.items() if q.accepted}
        # Prolific expects the code of its own that is in the URL.
        self._completion_code = (
            read_completion_code(study.completion_url) if study.platform == "prolific" else None
        )

    def router(self) -> APIRouter:
        """Return the router with all routes."""
        router = APIRouter()
        router.get("/")(self.consent)
        router.get("/declined")(self.declined)
        router.post("/start")(self.start)
        router.get("/p/{link}/instructions")(self.instructions)
        if self._extra:
            router.get("/p/{link}/extra")(self.extra)
            router.post("/p/{link}/extra")(self.answer_extra)
        router.get("/p/{link}")(self.show_question)
        router.post("/p/{link}/reopen")(self.reopen)
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
        if isinstance(now, ExtraLeft):
            return RedirectResponse(f"{visit.home}/extra", 303)
        if now.n_counted == 0 and now.n_skipped == 0:
            # Others have answered all questions meanwhile. No answer, no completion code.
            raise StoppedError("full")
        if now.n_counted == 0:
            form = self._identity.form_token(visit.rater, "reopen")
            return self._render("no_code.html", visit, now=now, form=form)
        code = self._completion_code or now.code
        return self._render("finished.html", visit, now=now, code=code)

    # ---- Start

    def consent(self, request: Request, arrival: Annotated[Arrival, Query()]) -> Response:
        """Show what the study is about, and ask for consent. Nothing is stored yet."""
        if len(request.query_params) < len(request.query_params.multi_items()):
            raise RefusedError(422, "repeated")
        return self._ask_consent(request, arrival)

    def _ask_consent(
        self,
        request: Request,
        arrival: Arrival,
        sent: Mapping[str, str] | None = None,
        errors: Mapping[str, ParticipantError] | None = None,
    ) -> Response:
        name = self._participant_name(self._read_visitor(request, arrival))
        person = name and self._participation.find_own(name, "", self._find_owned(request))
        if person and person.finished_at is not None:
            return RedirectResponse(f"/p/{self._identity.link(person.rater)}", 303)
        pilot = bool(person.pilot) if person else self._participation.require_place()
        language = self._pages.texts(request).tag
        arrived = arrival.find_ids(self._study)
        return self._pages.render(
            "consent.html",
            422 if errors else 200,
            reader=request,
            fields={"form": self._identity.nonce("start"), **arrived, "language": language},
            is_new=not person,
            sent=sent or {},
            errors=errors or {},
            pilot=pilot,
            query=_make_query(arrived, language),
            languages=[
                {"tag": tag, "name": catalogue.name, "url": _make_query(arrived, tag)}
                for tag, catalogue in self._pages.languages.offered.items()
                if tag != language
            ],
        )

    def declined(self, request: Request, arrival: Annotated[Arrival, Query()]) -> Response:
        """Say good-bye to somebody who does not agree. Nothing is stored."""
        arrived = request.state.ids = arrival.find_ids(self._study)
        query = _make_query(arrived, self._pages.texts(request).tag)
        return self._pages.render("declined.html", reader=request, query=query)

    def start(self, request: Request, form: Annotated[StartForm, Form()]) -> Response:
        """Start, or resume at the current question."""
        if not self._identity.is_nonce(form.form, "start"):
            raise RefusedError(403, "form")
        who = self._read_visitor(request, form)
        # Without an id, each copy of the consent page is one participant.
        name = self._participant_name(who) or f"{self._study.platform}:anonymous:{form.form}"
        sent, values, errors = _read_extra(self._screening, form, self._study.id_names)
        language = form.language if form.language in self._pages.languages.offered else None
        request.state.language = language
        owned = self._find_owned(request)
        if self._participation.find_own(name, form.form, owned) is None:
            if errors:
                return self._ask_consent(request, form, sent, errors)
            self._require_pace(request)
        consent = self._pages.texts(request).own.consent
        rater = self._participation.start(
            name, who.columns, language, consent, values, form=form.form, owned=owned
        )
        link = self._identity.link(rater)
        response = RedirectResponse(f"/p/{link}/instructions", 303)
        if who.participant:
            # A browser may be that of many, for example in a laboratory.
            others = [other for other in self._read_cookie(request) if other != link]
            links = ".".join([link, *others][:MOST_LINKS])
            # It is also sent to who follows a link of the platform.
            set_cookie(response, request, COOKIE, links, max_age=COOKIE_SECONDS, samesite="lax")
        return response

    def _read_cookie(self, request: Request) -> list[str]:
        return request.cookies.get(COOKIE, "").split(".")[:MOST_LINKS]

    def _find_owned(self, request: Request) -> set[str]:
        """Return the raters who have started in this browser."""
        raters = map(self._identity.verify_link, self._read_cookie(request))
        return {rater for rater in raters if rater is not None}

    def _require_pace(self, request: Request) -> None:
        """Refuse a new participant if too many have started from the same address."""
        address = find_address(request.scope)
        if wait := self._starts.wait(address):
            if not self._warnings.wait(address):
                LOGGER.warning(
                    "one address has reached %d starts per hour: raise starts_per_hour for a "
                    "lecture hall",
                    self._study.starts_per_hour,
                )
            headers = {"retry-after": str(ceil(wait))}
            link = self._study.full_url or self._study.refusal_url
            raise RefusedError(429, "starts", link, headers=headers, minutes=ceil(wait / 60))

    def _participant_name(self, who: Visitor) -> str | None:
        """Return the name of a participant; None without an id."""
        return who.participant and participant_name(self._study.platform, who.participant)

    def _read_visitor(self, request: Request, arrival: Arrival) -> Visitor:
        """Read who has come, and refuse who may not start."""
        request.state.ids = arrival.find_ids(self._study)
        try:
            who = read_visitor(self._study, arrival)
        except ParticipantError as error:
            raise RefusedError(400, error.key.removeprefix("refused."), **error.fields) from None
        if self._study.allowed is not None and who.participant not in self._study.allowed:
            raise RefusedError(403, "not_on_list", self._study.refusal_url or self._study.full_url)
        return who

    # ---- Questions

    def instructions(self, visit: AVisit) -> Response:
        """Show the instructions, with an example."""
        self._participation.require_going_on(visit.rater)
        return self._render("instructions.html", visit)

    def answer(
        self, visit: AVisit, number: Number, form: Annotated[AnswerForm, Form()]
    ) -> Response:
        """Store an answer. It is on disk when the redirect is sent."""
        sent = Submission(
            visit.rater,
            int(number),
            form.form,
            form.place,
            skip=form.skip == "yes",
            screen=form.screen or None,
            n_seen=int(form.seen) if form.seen else None,
        )
        try:
            self._participation.submit(sent)
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
            target=now.question.target,
            target_name=texts.own.name(now.question.target),
            rows=texts.make_rows(now.shown, chosen),
            error=error,
        )

    def _ask_again(self, visit: Visit, form: AnswerForm, error: ParticipantError) -> Response:
        """Show the question again, with the error and the chosen places."""
        now = self._participation.current_question(visit.rater)
        text = self._pages.texts(visit.request).translate_error(error)
        if isinstance(now, CurrentQuestion):
            key = (visit.rater, now.number, now.question.key, json.dumps(now.shown))
            if self._identity.read_timed_token(form.form, *key) is not None:
                return self._ask(visit, now, form.place, text)
        # The question has an answer, or was assigned to somebody else.
        raise RefusedError(422, "no_ranking", visit.home, error=text)

    # ---- Extra questions, and the end

    def extra(self, visit: AVisit) -> Response:
        """Show the extra questions to somebody who has answered all others."""
        return self._ask_extra(visit, {}, {})

    def answer_extra(self, visit: AVisit, form: Annotated[ExtraForm, Form()]) -> Response:
        """Store the answers to the extra questions. They are on disk when the redirect is sent."""
        sent, values, errors = _read_extra(self._extra, form)
        if errors:
            return self._ask_extra(visit, sent, errors)
        try:
            self._participation.submit_extra(visit.rater, form.form, values)
        except NotAssignedError:
            # Who has withdrawn, for example in another tab, reads that.
            self._participation.current_question(visit.rater)
            raise RefusedError(403, "form") from None
        return visit.go_home()

    def _ask_extra(
        self, visit: Visit, sent: Mapping[str, str], errors: Mapping[str, ParticipantError]
    ) -> Response:
        now = self._participation.current_question(visit.rater)
        if not isinstance(now, ExtraLeft):
            # Other questions come first, or these were answered in another tab.
            return visit.go_home()
        values = {"now": now, "sent": sent, "errors": errors, "most_characters": MOST_CHARACTERS}
        return self._render("extra.html", visit, 422 if errors else 200, **values)

    def reopen(self, visit: AVisit, form: Annotated[ConfirmForm, Form()]) -> Response:
        """Ask again what somebody has skipped who has answered nothing."""
        self._require_form(visit, form, "reopen")
        # If there is an answer meanwhile, the next page shows what is left.
        with suppress(NotAssignedError):
            self._participation.reopen(visit.rater)
        return visit.go_home()

    def ask_to_withdraw(self, visit: AVisit) -> Response:
        """Ask whether all answers are to be deleted."""
        return self._ask_to_withdraw(visit)

    def _ask_to_withdraw(self, visit: Visit, *, is_wrong: bool = False) -> Response:
        form = self._identity.form_token(visit.rater, "withdraw")
        values = {"form": form, "has_ended": self._participation.has_ended(visit.rater)}
        status = 422 if is_wrong else 200
        return self._render("withdraw.html", visit, status, is_wrong=is_wrong, **values)

    def withdraw(self, visit: AVisit, form: Annotated[WithdrawForm, Form()]) -> Response:
        """Delete all answers of a participant. After the end, this needs the completion code."""
        self._require_form(visit, form, "withdraw")
        code = self._completion_code or self._identity.code(visit.rater)
        is_wrong = not are_equal(code.casefold(), form.code.strip().casefold())
        if is_wrong and self._participation.has_ended(visit.rater):
            return self._ask_to_withdraw(visit, is_wrong=True)
        self._participation.withdraw(visit.rater)
        return visit.go_home()

    def _require_form(self, visit: Visit, form: ConfirmForm, purpose: str) -> None:
        """Refuse a form that is not from a page of this participant."""
        if not self._identity.is_form_token(form.form, visit.rater, purpose):
            raise RefusedError(403, "page_form", visit.home)

    def _render(
        self, template: str, visit: Visit, status: int = 200, **values: object
    ) -> HTMLResponse:
        return self._pages.render(template, status, reader=visit.request, home=visit.home, **values)
