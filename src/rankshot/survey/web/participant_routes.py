"""The routes of participants, in the order in which they see the pages."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial, wraps
from math import ceil
from typing import Annotated, Any, Literal

from anyio import CapacityLimiter
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync
from fastapi import APIRouter, Form, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.survey.answers import MOST_CHARACTERS, check_extra_answers
from rankshot.survey.languages import ParticipantError
from rankshot.survey.platforms import (
    Arrival,
    ShortText,
    Visitor,
    participant_name,
    read_completion_code,
    read_visitor,
)
from rankshot.survey.store.database import LINK_DIGITS, Identity
from rankshot.survey.store.participation import (
    AlreadyAnsweredError,
    CurrentQuestion,
    ExtraLeft,
    Finished,
    NotAssignedError,
    Participation,
    StoppedError,
)
from rankshot.survey.study import MOST_ITEMS, Study
from rankshot.survey.web.guards import LOGGER, RateLimit
from rankshot.survey.web.pages import (
    REDIRECT,
    REFUSALS,
    AnswerToken,
    FormNonce,
    FormToken,
    Pages,
    RefusedError,
    SentForm,
    keep_query,
)

HOUR = 3600.0
Link = Annotated[str, Path(pattern=f"^[0-9a-f]{{{LINK_DIGITS}}}$")]
# Not an int: 1.0 and +1 would be URLs of the same question.
Number = Annotated[str, Path(pattern="^[1-9][0-9]{0,4}$")]
Place = Annotated[str, StringConstraints(max_length=3)]


class StartForm(Arrival, SentForm):
    """What the consent page sends: what its address said, and the language."""

    form: FormNonce
    language: ShortText = ""


class ConfirmForm(SentForm):
    """What a page sends that asks whether something is meant."""

    form: FormToken


class AnswerForm(SentForm):
    """What a question's page sends: one place per item, in the order of the screen."""

    form: AnswerToken
    place: Annotated[list[Place], Field(max_length=MOST_ITEMS)] = []  # noqa: RUF012 (a model copies its defaults)
    skip: Literal["yes", ""] = ""


class ExtraForm(BaseModel):
    """What the page of the extra questions sends: one field per question, named by its number."""

    model_config = ConfigDict(extra="allow")

    form: FormToken


class ParticipantRoutes:
    """The routes of a study's participants.

    Parameters
    ----------
    study : Study
    participation : Participation
    identity : Identity
    pages : Pages
    n_threads : int
        How many threads answer the frequent requests.
    """

    def __init__(
        self,
        study: Study,
        participation: Participation,
        identity: Identity,
        pages: Pages,
        n_threads: int,
    ) -> None:
        self._starts = RateLimit(study.starts_per_hour, seconds=HOUR)
        self._warnings = RateLimit(1, seconds=HOUR)
        self._study = study
        self._participation = participation
        self._n_threads = n_threads
        self._limiter: RunVar[CapacityLimiter] = RunVar("limiter")
        self._identity = identity
        self._pages = pages
        # By the names of their fields: a question may have any name, such as "form".
        self._extra = {f"extra-{number}": q for number, q in enumerate(study.extra, 1)}
        # Prolific expects the code of its own that is in the URL.
        self._completion_code = (
            read_completion_code(study.completion_url) if study.platform == "prolific" else None
        )

    def router(self) -> APIRouter:
        """Return the router with all routes."""
        router = APIRouter(default_response_class=HTMLResponse, responses=REFUSALS)
        router.get("/")(self.consent)
        router.get("/declined")(self.declined)
        router.post("/start", **REDIRECT)(self.start)
        router.get("/p/{link}/instructions")(self.instructions)
        if self._extra:
            router.get("/p/{link}/extra")(self.extra)
            router.post("/p/{link}/extra", **REDIRECT)(self.answer_extra)
        router.get("/p/{link}")(self._in_turn(self.question))
        if self._study.completion_url is not None:
            router.get("/p/{link}/leave", **REDIRECT)(self.leave)
        router.post("/p/{link}/reopen", **REDIRECT)(self.reopen)
        router.get("/p/{link}/withdraw")(self.ask_to_withdraw)
        router.post("/p/{link}/withdrawn", **REDIRECT)(self.withdraw)
        router.post("/p/{link}/{number}", **REDIRECT)(self._in_turn(self.answer))
        return router

    def _in_turn(self, handle: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
        """Return a handler of a frequent request, for which few threads are enough.

        More of them would mostly wait for each other, and take a third more of the processor.
        """

        @wraps(handle)
        async def wait_and_handle(**values: Any) -> Response:
            limiter = self._limiter.get(None)
            if limiter is None:
                # One per event loop: it cannot wake up what waits in another one.
                limiter = CapacityLimiter(self._n_threads)
                self._limiter.set(limiter)
            return await run_sync(partial(handle, **values), limiter=limiter)

        return wait_and_handle

    def consent(self, request: Request, arrival: Annotated[Arrival, Query()]) -> HTMLResponse:
        """Show what the study is about, and ask for consent. Nothing is stored yet."""
        name = self._participant_name(self._read_visitor(arrival))
        pilot = self._participation.require_place(name)
        language = self._pages.texts(request).tag
        fields = {
            "form": self._identity.nonce("start"),
            **arrival.model_dump(exclude_defaults=True),
        }
        return self._pages.render(
            "consent.html",
            reader=request,
            fields={**fields, "language": language},
            pilot=pilot,
            query=keep_query(request, language),
            languages=[
                {"tag": tag, "name": catalogue.name, "url": keep_query(request, tag)}
                for tag, catalogue in self._pages.languages.offered.items()
                if tag != language
            ],
        )

    def declined(self, request: Request) -> HTMLResponse:
        """Say good-bye to somebody who does not agree. Nothing is stored."""
        query = keep_query(request, self._pages.texts(request).tag)
        return self._pages.render("declined.html", reader=request, query=query)

    def start(self, request: Request, form: Annotated[StartForm, Form()]) -> Response:
        """Start, or resume at the current question."""
        if not self._identity.is_nonce(form.form, "start"):
            raise RefusedError(403, message="form")
        who = self._read_visitor(form)
        # Without an id, each copy of the consent page is one participant.
        name = self._participant_name(who) or f"{self._study.platform}:anonymous:{form.form}"
        if self._study.allowed is None:
            self._require_pace(request, name)
        language = form.language if form.language in self._pages.languages.offered else None
        rater = self._participation.start(name, who.columns, language)
        return RedirectResponse(home_url(self._identity.link(rater)) + "/instructions", 303)

    def _require_pace(self, request: Request, name: str) -> None:
        """Refuse a new participant if too many have started from the same address."""
        if self._participation.is_known(name):
            return
        address = request.client.host if request.client else "unknown"
        if wait := self._starts.wait(address):
            if not self._warnings.wait(address):
                LOGGER.warning(
                    "one address has reached %d starts per hour: raise starts_per_hour for a "
                    "lecture hall",
                    self._study.starts_per_hour,
                )
            headers = {"retry-after": str(ceil(wait))}
            raise RefusedError(429, message="starts", headers=headers, minutes=ceil(wait / 60))

    def instructions(self, request: Request, link: Link) -> HTMLResponse:
        """Show the instructions, with an example."""
        self._require_rater(request, link)
        home = home_url(link)
        return self._pages.render(
            "instructions.html", reader=request, question_url=home, withdraw_url=f"{home}/withdraw"
        )

    def question(self, request: Request, link: Link) -> Response:
        """Show the current question; after the last one, the page with the completion code."""
        now = self._find_current(request, link)
        if isinstance(now, CurrentQuestion):
            return self._ask(request, link, now, [""] * len(now.shown))
        home = home_url(link)
        if isinstance(now, ExtraLeft):
            return RedirectResponse(f"{home}/extra", 303)
        withdraw_url = f"{home}/withdraw"
        if now.n_counted == 0 and now.n_skipped == 0:
            # Others have answered all questions meanwhile. No answer, no completion code.
            raise StoppedError("full")
        if now.n_counted == 0:
            return self._pages.render(
                "no_code.html",
                reader=request,
                fields={"form": self._form_token(request, link, "reopen")},
                action=f"{home}/reopen",
                withdraw_url=withdraw_url,
                pilot=now.pilot,
            )
        return self._pages.render(
            "finished.html",
            reader=request,
            code=self._completion_code or now.code,
            n_answers=now.n_answers,
            leave_url=f"{home}/leave" if self._study.completion_url else None,
            withdraw_url=withdraw_url,
            pilot=now.pilot,
        )

    def reopen(
        self, request: Request, link: Link, form: Annotated[ConfirmForm, Form()]
    ) -> Response:
        """Ask again what somebody has skipped who has answered nothing."""
        rater = self._require_form(request, link, form, "reopen")
        # If there is an answer meanwhile, the next page shows what is left.
        with suppress(NotAssignedError):
            self._participation.reopen(rater)
        return RedirectResponse(home_url(link), 303)

    def ask_to_withdraw(self, request: Request, link: Link) -> HTMLResponse:
        """Ask whether all answers are to be deleted."""
        home = home_url(link)
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
        self._participation.withdraw(rater)
        return RedirectResponse(home_url(link), 303)

    def answer(
        self, request: Request, link: Link, number: Number, form: Annotated[AnswerForm, Form()]
    ) -> Response:
        """Store an answer. It is on disk when the redirect is sent."""
        rater, home = self._require_rater(request, link), home_url(link)
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

    def extra(self, request: Request, link: Link) -> Response:
        """Show the extra questions to somebody who has answered all others."""
        return self._ask_extra(request, link)

    def answer_extra(
        self, request: Request, link: Link, form: Annotated[ExtraForm, Form()]
    ) -> Response:
        """Store the answers to the extra questions. They are on disk when the redirect is sent."""
        sent = form.model_extra or {}
        if not sent.keys() <= self._extra.keys():
            raise RefusedError(422, message="malformed")
        by_name = {q.name: sent.get(field, "") for field, q in self._extra.items()}
        values, errors = check_extra_answers(tuple(self._extra.values()), by_name)
        if errors:
            return self._ask_extra(request, link, sent, errors, status=422)
        try:
            rater = self._require_rater(request, link)
            self._participation.submit_extra(rater, form.form, values)
        except NotAssignedError:
            # Who has withdrawn, for example in another tab, reads that.
            self._find_current(request, link)
            raise RefusedError(403, message="form") from None
        return RedirectResponse(home_url(link), 303)

    def _ask_extra(
        self,
        request: Request,
        link: str,
        sent: Mapping[str, str] | None = None,
        errors: Mapping[str, ParticipantError] | None = None,
        status: int = 200,
    ) -> Response:
        now = self._find_current(request, link)
        home = home_url(link)
        if not isinstance(now, ExtraLeft):
            # Other questions come first, or these were answered in another tab.
            return RedirectResponse(home, 303)
        translate = self._pages.texts(request).translate_error
        return self._pages.render(
            "extra.html",
            status,
            reader=request,
            fields_of={q.name: field for field, q in self._extra.items()},
            sent=sent or {},
            errors={name: translate(error) for name, error in (errors or {}).items()},
            fields={"form": now.form},
            action=f"{home}/extra",
            most_characters=MOST_CHARACTERS,
            withdraw_url=f"{home}/withdraw",
            pilot=now.pilot,
        )

    def leave(self, request: Request, link: Link) -> Response:
        """Return to the platform when all questions are answered."""
        now = self._find_current(request, link)
        if not isinstance(now, Finished) or now.n_counted == 0:
            raise RefusedError(409, message="unfinished", link=home_url(link))
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
        home = home_url(link)
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
            home = home_url(link)
            raise RefusedError(422, message="no_ranking", link=home, error=text)
        chosen = form.place if len(form.place) == len(now.shown) else [""] * len(now.shown)
        return self._ask(request, link, now, chosen, text, status=422)

    def _is_form_of(
        self, request: Request, link: str, form: AnswerForm, now: CurrentQuestion
    ) -> bool:
        shown = json.dumps(now.shown)
        key = (self._require_rater(request, link), now.number, now.question.key, shown)
        return self._identity.read_answer_token(form.form, *key) is not None

    def _require_rater(self, request: Request, link: str) -> str:
        """Return whose link it is; pages for this request are in the language of that person."""
        rater = self._identity.verify_link(link)
        if rater is None:
            raise RefusedError(404, message="no_link")
        request.state.rater = rater
        return rater

    def _find_current(self, request: Request, link: str) -> CurrentQuestion | ExtraLeft | Finished:
        """Return what a participant has to do now."""
        now = self._participation.current_question(self._require_rater(request, link))
        if isinstance(now, CurrentQuestion):
            request.state.language = now.language
        return now

    def _form_token(self, request: Request, link: str, purpose: str) -> str:
        return self._identity.form_token(self._require_rater(request, link), purpose)

    def _require_form(self, request: Request, link: str, form: ConfirmForm, purpose: str) -> str:
        """Return the rater, if the form is one of their pages'."""
        rater = self._require_rater(request, link)
        if not self._identity.is_form_token(form.form, rater, purpose):
            raise RefusedError(403, message="page_form", link=home_url(link))
        return rater

    def _participant_name(self, who: Visitor) -> str | None:
        """Return the name of a participant; None without an id."""
        return who.participant and participant_name(self._study.platform, who.participant)

    def _read_visitor(self, arrival: Arrival) -> Visitor:
        """Read who has come, and refuse who may not start."""
        try:
            who = read_visitor(self._study.platform, arrival)
        except ParticipantError as error:
            message = error.key.removeprefix("refused.")
            raise RefusedError(400, message=message, **error.fields) from None
        if self._study.allowed is not None and who.participant not in self._study.allowed:
            raise RefusedError(403, message="not_on_list")
        return who


def home_url(link: str) -> str:
    """Return the address of a participant's current question."""
    return f"/p/{link}"
