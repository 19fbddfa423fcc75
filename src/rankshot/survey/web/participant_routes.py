"""The routes of participants, in the order in which they see the pages."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial, wraps
from math import ceil
from typing import Annotated, Any, Literal

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Form, Path, Query, Request
from pydantic import Field, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.survey.languages import ParticipantError
from rankshot.survey.platforms import (
    ID_PARAMETER,
    ID_PATTERN,
    INVITATION,
    Arrival,
    Visitor,
    participant_name,
    read_completion_code,
    read_visitor,
)
from rankshot.survey.store.identity import LINK_DIGITS, Identity
from rankshot.survey.store.participation import (
    AlreadyAnsweredError,
    CurrentQuestion,
    ExtraLeft,
    Finished,
    NotAssignedError,
    Participation,
    StoppedError,
)
from rankshot.survey.study import Study
from rankshot.survey.validation import MOST_ITEMS
from rankshot.survey.web.pages import (
    AnswerToken,
    FormNonce,
    FormToken,
    Pages,
    RefusedError,
    SentForm,
    describe_form,
    describe_redirect,
    describe_refusals,
    keep_query,
    link_languages,
)

Link = Annotated[str, Path(pattern=f"^[0-9a-f]{{{LINK_DIGITS}}}$")]
# Not an int: 1.0 and +1 would be URLs of the same question.
Number = Annotated[str, Path(pattern="^[1-9][0-9]{0,4}$")]
Text = Annotated[str, StringConstraints(max_length=200)]
# Described but not enforced here: `read_visitor` says in words what is wrong with an id.
Id = Annotated[Text, Field(json_schema_extra={"anyOf": [{"pattern": ID_PATTERN}, {"const": ""}]})]
Place = Annotated[str, StringConstraints(max_length=3)]


class StartForm(SentForm):
    """What the consent page sends."""

    form: FormNonce
    participant: Id = ""
    invitation: Text = ""
    assignment: Text = ""
    submit_to: Text = ""
    study: Text = ""
    session: Text = ""
    language: Text = ""

    def arrival(self) -> Arrival:
        """Return what the address of the consent page said."""
        return Arrival(**self.model_dump(exclude={"form", "language"}))


class ConfirmForm(SentForm):
    """What a page sends that asks whether something is meant."""

    form: FormToken


class AnswerForm(SentForm):
    """What a question's page sends: one place per item, in the order of the screen."""

    form: AnswerToken
    place: Annotated[list[Place], Field(max_length=MOST_ITEMS)] = []  # noqa: RUF012 (a model copies its defaults)
    skip: Literal["yes", ""] = ""


class ParticipantRoutes:
    """The routes of a study's participants.

    Parameters
    ----------
    study : Study
    participation : Participation
    identity : Identity
    pages : Pages
    wait_to_start : callable, optional
        For an address, returns the seconds until one more participant may start from it, and
        counts this one if it is 0. It is asked for new participants only, and not for those
        with an invitation or on the list of allowed ids.
    n_threads : int
        How many threads answer the frequent requests.
    """

    def __init__(
        self,
        study: Study,
        participation: Participation,
        identity: Identity,
        pages: Pages,
        wait_to_start: Callable[[str], float] | None = None,
        n_threads: int = 1,
    ) -> None:
        self._wait_to_start = wait_to_start
        self._study = study
        self._participation = participation
        self._threads = CapacityLimiter(n_threads)
        self._identity = identity
        self._pages = pages
        # Prolific expects the code of its own that is in the URL.
        self._completion_code = (
            read_completion_code(study.completion_url) if study.platform == "prolific" else None
        )

    def router(self) -> APIRouter:
        """Return the router with all routes."""
        router = APIRouter(default_response_class=HTMLResponse)
        router.get("/", responses=describe_refusals(400, 403, 410, 503))(self.consent)
        router.get("/declined", responses=describe_refusals())(self.declined)
        router.post("/start", **describe_form(400, 410, 503))(self.start)
        router.get("/p/{link}/instructions", responses=describe_refusals(404))(self.instructions)
        pages = describe_refusals(404, 410, 503)
        if self._study.extra:
            pages |= describe_redirect()["responses"]
        router.get("/p/{link}", responses=pages)(self._in_turn(self.question))
        if self._study.completion_url is not None:
            router.get("/p/{link}/leave", **describe_redirect(404, 409, 410, 503))(self.leave)
        router.post("/p/{link}/reopen", **describe_form(404, 409, 410, 503))(self.reopen)
        router.get("/p/{link}/withdraw", responses=describe_refusals(404))(self.ask_to_withdraw)
        router.post("/p/{link}/withdrawn", **describe_form(404))(self.withdraw)
        answer = self._in_turn(self.answer)
        router.post("/p/{link}/{number}", **describe_form(404, 409, 410, 503))(answer)
        return router

    def _in_turn(self, handle: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
        """Return a handler of a frequent request, for which few threads are enough.

        More of them would mostly wait for each other, and take a third more of the processor.
        """

        @wraps(handle)
        async def wait_and_handle(**values: Any) -> Response:
            return await run_sync(partial(handle, **values), limiter=self._threads)

        return wait_and_handle

    def consent(
        self,
        request: Request,
        participant: Annotated[Id, Query(alias=ID_PARAMETER["none"])] = "",
        prolific: Annotated[Text, Query(alias=ID_PARAMETER["prolific"])] = "",
        worker: Annotated[Text, Query(alias=ID_PARAMETER["mturk"])] = "",
        invitation: Annotated[Text, Query(alias=INVITATION)] = "",
        assignment: Annotated[Text, Query(alias="assignmentId")] = "",
        submit_to: Annotated[Text, Query(alias="turkSubmitTo")] = "",
        study: Annotated[Text, Query(alias="STUDY_ID")] = "",
        session: Annotated[Text, Query(alias="SESSION_ID")] = "",
    ) -> HTMLResponse:
        """Show what the study is about, and ask for consent. Nothing is stored yet."""
        platforms = {"none": participant, "prolific": prolific, "mturk": worker}
        given = platforms[self._study.platform]
        arrival = Arrival(given, invitation, assignment, submit_to, study, session)
        who = self._read_visitor(arrival)
        pilot = False
        if not who.preview:
            try:
                pilot = self._participation.require_place(self._participant_name(who, arrival))
            except StoppedError as error:
                raise refuse_stopped(self._study, error) from None
        kept = {name: value for name, value in asdict(arrival).items() if value}
        language = self._pages.texts(request).tag
        fields = {"form": self._identity.nonce("start"), "participant": given, **kept}
        return self._pages.render(
            "consent.html",
            reader=request,
            fields={**fields, "language": language},
            preview=who.preview,
            pilot=pilot,
            query=keep_query(request, language),
            languages=link_languages(self._pages.languages, request, language),
        )

    def declined(self, request: Request) -> HTMLResponse:
        """Say good-bye to somebody who does not agree. Nothing is stored."""
        query = keep_query(request, self._pages.texts(request).tag)
        return self._pages.render("declined.html", reader=request, query=query)

    def start(self, request: Request, form: Annotated[StartForm, Form()]) -> Response:
        """Start, or resume at the current question."""
        if not self._identity.is_nonce(form.form, "start"):
            raise RefusedError(403, message="form")
        arrival = form.arrival()
        who = self._read_visitor(arrival)
        if who.preview:
            raise RefusedError(400, message="preview")
        # Without an id, each copy of the consent page is one participant.
        anonymous = f"{self._study.platform}:anonymous:{form.form}"
        name = self._participant_name(who, arrival) or anonymous
        if not arrival.invitation and self._study.allowed is None:
            self._require_pace(request, name)
        language = form.language if form.language in self._pages.languages.offered else None
        number = self._identity.verify_invitation(arrival.invitation)
        try:
            rater = self._participation.start(name, who.turk, who.session, language, number)
        except StoppedError as error:
            raise refuse_stopped(self._study, error) from None
        if rater is None:
            raise refuse_stopped(self._study, StoppedError("full"))
        return RedirectResponse(self._home_url(self._identity.link(rater)) + "/instructions", 303)

    def _require_pace(self, request: Request, name: str) -> None:
        """Refuse a new participant if too many have started from the same address."""
        if self._wait_to_start is None or self._participation.is_known(name):
            return
        address = request.client.host if request.client else "unknown"
        if wait := self._wait_to_start(address):
            headers = {"retry-after": str(ceil(wait))}
            raise RefusedError(429, message="starts", headers=headers, minutes=ceil(wait / 60))

    def instructions(self, request: Request, link: Link) -> HTMLResponse:
        """Show the instructions, with an example."""
        require_rater(request, self._identity, link)
        home = self._home_url(link)
        return self._pages.render(
            "instructions.html", reader=request, question_url=home, withdraw_url=f"{home}/withdraw"
        )

    def question(self, request: Request, link: Link) -> Response:
        """Show the current question; after the last one, the page with the completion code."""
        now = self._find_current(request, link)
        if isinstance(now, CurrentQuestion):
            return self._ask(request, link, now, [""] * len(now.shown))
        home = self._home_url(link)
        if isinstance(now, ExtraLeft):
            return RedirectResponse(f"{home}/extra", 303)
        withdraw_url = f"{home}/withdraw"
        if now.n_counted == 0 and now.n_skipped == 0:
            # Others have answered all questions meanwhile. No answer, no completion code.
            raise refuse_stopped(self._study, StoppedError("full"))
        if now.n_counted == 0:
            return self._pages.render(
                "no_code.html",
                reader=request,
                fields={"form": self._form_token(request, link, "reopen")},
                action=f"{home}/reopen",
                withdraw_url=withdraw_url,
                pilot=now.pilot,
            )
        turk = now.turk and {"action": now.turk.action, "assignment_id": now.turk.assignment}
        return self._pages.render(
            "finished.html",
            reader=request,
            code=self._completion_code or now.code,
            n_answers=now.n_answers,
            leave_url=f"{home}/leave" if self._study.completion_url else None,
            turk=turk,
            withdraw_url=withdraw_url,
            pilot=now.pilot,
        )

    def reopen(
        self, request: Request, link: Link, form: Annotated[ConfirmForm, Form()]
    ) -> Response:
        """Ask again what somebody has skipped who has answered nothing."""
        rater = self._require_form(request, link, form, "reopen")
        try:
            self._participation.reopen(rater)
        except StoppedError as error:
            raise refuse_stopped(self._study, error) from None
        except NotAssignedError:
            pass  # There is an answer meanwhile: the next page shows what is left.
        return RedirectResponse(self._home_url(link), 303)

    def ask_to_withdraw(self, request: Request, link: Link) -> HTMLResponse:
        """Ask whether all answers are to be deleted."""
        home = self._home_url(link)
        return self._pages.render(
            "withdraw.html",
            fields={"form": self._form_token(request, link, "withdraw")},
            reader=request,
            action=f"{home}/withdrawn",
            home_url=home,
        )

    def withdraw(
        self, request: Request, link: Link, form: Annotated[ConfirmForm, Form()]
    ) -> Response:
        """Delete all answers of a participant."""
        rater = self._require_form(request, link, form, "withdraw")
        try:
            self._participation.withdraw(rater)
        except NotAssignedError:
            raise RefusedError(404, message="not_started") from None
        return RedirectResponse(self._home_url(link), 303)

    def answer(
        self, request: Request, link: Link, number: Number, form: Annotated[AnswerForm, Form()]
    ) -> Response:
        """Store an answer. It is on disk when the redirect is sent."""
        rater, home = require_rater(request, self._identity, link), self._home_url(link)
        skip = form.skip == "yes"
        try:
            self._participation.submit(rater, int(number), form.form, form.place, skip=skip)
        except NotAssignedError:
            # Who has withdrawn, for example in another tab, reads that.
            self._find_current(request, link)
            raise RefusedError(403, message="closed", link=home) from None
        except AlreadyAnsweredError as before:
            raise RefusedError(
                409, template="answered.html", order=before.order, continue_url=home
            ) from None
        except ParticipantError as error:
            return self._ask_again(request, link, form, error)
        return RedirectResponse(home, 303)

    def leave(self, request: Request, link: Link) -> Response:
        """Return to the platform when all questions are answered."""
        now = self._find_current(request, link)
        if not isinstance(now, Finished) or now.n_counted == 0:
            raise RefusedError(409, message="unfinished", link=self._home_url(link))
        return RedirectResponse(str(self._study.completion_url), 303)

    def _ask(
        self,
        request: Request,
        link: str,
        now: CurrentQuestion,
        places: list[str],
        error: str | None = None,
        status: int = 200,
    ) -> HTMLResponse:
        home = self._home_url(link)
        own = self._pages.texts(request).own
        target = own.name(now.question.target)
        return self._pages.render(
            "question.html",
            status,
            reader=request,
            prompt=own.ask(target.text),
            target=now.question.target,
            target_name=target,
            items=now.shown,
            shown=own.names(now.shown),
            number=now.position,
            total=now.total,
            fields={"form": now.form},
            action=f"{home}/{now.number}",
            error=error,
            repeat=now.repeat,
            places=places,
            instructions_url=f"{home}/instructions",
            withdraw_url=f"{home}/withdraw",
            draft_key=now.draft,
            pilot=now.pilot,
        )

    def _ask_again(
        self, request: Request, link: str, form: AnswerForm, error: ParticipantError
    ) -> HTMLResponse:
        """Show the question again, with the error and the chosen places."""
        now = self._find_current(request, link)
        text = self._pages.texts(request).translate_error(error)
        if not isinstance(now, CurrentQuestion) or not self._is_form_of(request, link, form, now):
            # The question has an answer, or was assigned to somebody else.
            home = self._home_url(link)
            raise RefusedError(422, message="no_ranking", link=home, error=text)
        chosen = form.place if len(form.place) == len(now.shown) else [""] * len(now.shown)
        return self._ask(request, link, now, chosen, text, status=422)

    def _is_form_of(
        self, request: Request, link: str, form: AnswerForm, now: CurrentQuestion
    ) -> bool:
        shown = json.dumps(now.shown)
        key = (require_rater(request, self._identity, link), now.number, now.question.key, shown)
        return self._identity.read_answer_token(form.form, *key) is not None

    def _find_current(self, request: Request, link: str) -> CurrentQuestion | ExtraLeft | Finished:
        return find_current(request, self._study, self._participation, self._identity, link)

    def _form_token(self, request: Request, link: str, purpose: str) -> str:
        return self._identity.form_token(require_rater(request, self._identity, link), purpose)

    def _require_form(self, request: Request, link: str, form: ConfirmForm, purpose: str) -> str:
        """Return the rater, if the form is one of their pages'."""
        rater = require_rater(request, self._identity, link)
        if not self._identity.is_form_token(form.form, rater, purpose):
            raise RefusedError(403, message="page_form", link=self._home_url(link))
        return rater

    def _participant_name(self, who: Visitor, arrival: Arrival) -> str | None:
        """Return the name of a participant; None without an id."""
        if arrival.invitation:
            number = arrival.invitation.partition("-")[0]
            return participant_name(INVITATION, number)
        return who.participant and participant_name(self._study.platform, who.participant)

    def _home_url(self, link: str) -> str:
        return f"{self._pages.root}/p/{link}"

    def _read_visitor(self, arrival: Arrival) -> Visitor:
        """Read who has come, and refuse who may not start."""
        study = self._study
        is_invited = self._identity.verify_invitation(arrival.invitation) is not None
        if arrival.invitation and not is_invited:
            raise RefusedError(403, message="invitation")
        if study.invitations and not is_invited:
            raise RefusedError(403, message="invited_only")
        try:
            who = read_visitor(study.platform, arrival)
        except ParticipantError as error:
            message = error.key.removeprefix("refused.")
            raise RefusedError(400, message=message, **error.fields) from None
        is_allowed = study.allowed is None or who.participant in study.allowed
        if not (is_allowed or is_invited or who.preview):
            raise RefusedError(403, message="not_on_list")
        return who


def require_rater(request: Request, identity: Identity, link: str) -> str:
    """Return whose link it is; pages for this request are in the language of that person."""
    rater = identity.verify_link(link)
    if rater is None:
        raise RefusedError(404, message="no_link")
    request.state.rater = rater
    return rater


def find_current(
    request: Request, study: Study, participation: Participation, identity: Identity, link: str
) -> CurrentQuestion | ExtraLeft | Finished:
    """Return what a participant has to do now."""
    try:
        now = participation.current_question(require_rater(request, identity, link))
    except NotAssignedError:
        raise RefusedError(404, message="not_started") from None
    except StoppedError as error:
        raise refuse_stopped(study, error) from None
    if isinstance(now, CurrentQuestion):
        request.state.language = now.language
    return now


def refuse_stopped(study: Study, error: StoppedError) -> RefusedError:
    """Return the page that says why somebody cannot start or go on, and leads to the platform.

    Who has started a paused study may go on later, and gets no code that ends it.
    """
    reason = error.reason
    if reason == "full":
        return RefusedError(503, template="full.html")
    if reason in ("withdrawn", "excluded"):
        link = study.refusal_url or study.full_url
    else:
        link = None if error.has_started else study.full_url or study.refusal_url
    status = 503 if reason == "paused" else 410
    return RefusedError(status, template="stopped.html", reason=reason, link=link)
