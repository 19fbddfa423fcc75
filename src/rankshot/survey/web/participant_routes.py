"""The routes of participants, in the order in which they see the pages."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Path, Query
from pydantic import Field, StringConstraints
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.core.errors import RankshotError
from rankshot.survey.platforms import (
    ID_PARAMETER,
    ID_PATTERN,
    Visitor,
    participant_name,
    read_visitor,
)
from rankshot.survey.store.identity import LINK_DIGITS, Identity
from rankshot.survey.store.participation import (
    AlreadyAnsweredError,
    CurrentQuestion,
    Finished,
    NotAssignedError,
    Participation,
)
from rankshot.survey.study import Study
from rankshot.survey.validation import MOST_ITEMS
from rankshot.survey.web.guards import StartLimit
from rankshot.survey.web.pages import (
    FormNonce,
    FormToken,
    Pages,
    RefusedError,
    SentForm,
    describe_form,
    describe_redirect,
    describe_refusals,
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
    assignment: Text = ""
    submit_to: Text = ""


class AnswerForm(SentForm):
    """What a question's page sends: one place per item, in the order of the screen."""

    form: FormToken
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
    starts : StartLimit
    """

    def __init__(
        self,
        study: Study,
        participation: Participation,
        identity: Identity,
        pages: Pages,
        starts: StartLimit,
    ) -> None:
        self._study = study
        self._participation = participation
        self._identity = identity
        self._pages = pages
        self._starts = starts

    def router(self) -> APIRouter:
        """Return the router with all routes."""
        router = APIRouter(default_response_class=HTMLResponse)
        router.get("/", responses=describe_refusals(400, 503))(self.consent)
        router.post("/start", **describe_form(400, 503))(self.start)
        router.get("/p/{link}/instructions", responses=describe_refusals(404))(self.instructions)
        router.get("/p/{link}", responses=describe_refusals(404, 503))(self.question)
        if self._study.completion_url is not None:
            router.get("/p/{link}/leave", **describe_redirect(404, 409))(self.leave)
        router.post("/p/{link}/{number}", **describe_form(404, 409))(self.answer)
        return router

    def consent(
        self,
        participant: Annotated[Id, Query(alias=ID_PARAMETER["none"])] = "",
        prolific: Annotated[Text, Query(alias=ID_PARAMETER["prolific"])] = "",
        worker: Annotated[Text, Query(alias=ID_PARAMETER["mturk"])] = "",
        assignment: Annotated[Text, Query(alias="assignmentId")] = "",
        submit_to: Annotated[Text, Query(alias="turkSubmitTo")] = "",
    ) -> HTMLResponse:
        """Show what the study is about, and ask for consent. Nothing is stored yet."""
        platforms = {"none": participant, "prolific": prolific, "mturk": worker}
        given = platforms[self._study.platform]
        who = self._read_visitor(given, assignment, submit_to)
        if not who.preview and self._participation.is_full(self._participant_name(who)):
            raise RefusedError(503, template="full.html")
        fields = {"form": self._identity.nonce("start"), "participant": given}
        if who.turk is not None:
            fields |= {"assignment": assignment, "submit_to": submit_to}
        return self._pages.render("consent.html", fields=fields, preview=who.preview)

    def start(self, request: Request, form: Annotated[StartForm, Form()]) -> Response:
        """Start, or resume at the current question."""
        if not self._identity.is_nonce(form.form, "start"):
            raise RefusedError(403, "Invalid form", "Please open the link to the survey again.")
        who = self._read_visitor(form.participant, form.assignment, form.submit_to)
        if who.preview:
            raise RefusedError(400, "Not yet", "Please accept the task first.")
        # Without an id, each copy of the consent page is one participant.
        name = self._participant_name(who) or f"{self._study.platform}:anonymous:{form.form}"
        rater = self._participation.start(name, who.turk, lambda: self._admit(request))
        if rater is None:
            raise RefusedError(503, template="full.html")
        return RedirectResponse(self._home_url(self._identity.link(rater)) + "/instructions", 303)

    def _admit(self, request: Request) -> None:
        """Refuse a new participant from an address with too many starts."""
        wait = self._starts.wait(request.client.host if request.client else "unknown")
        if wait:
            text = (
                f"{self._starts.per_hour} people have started from your network within an hour. "
                f"Please open your link again in {ceil(wait / 60)} minutes, or from another "
                "network, such as that of your telephone. If you are in a room with many others, "
                "please tell the person who leads the survey. Nothing was stored."
            )
            raise RefusedError(429, "Too many people at once", text, retry_seconds=ceil(wait))

    def instructions(self, link: Link) -> HTMLResponse:
        """Show the instructions, with an example."""
        self._require_rater(link)
        return self._pages.render("instructions.html", question_url=self._home_url(link))

    def question(self, link: Link) -> HTMLResponse:
        """Show the current question; after the last one, the page with the completion code."""
        now = self._current_question(link)
        if isinstance(now, CurrentQuestion):
            return self._ask(link, now, [""] * len(now.shown))
        if now.n_answers == 0:
            # Others have answered all questions meanwhile. No answer, no completion code.
            raise RefusedError(503, template="full.html")
        turk = now.turk and {"action": now.turk.action, "assignment_id": now.turk.assignment}
        leave = f"{self._home_url(link)}/leave" if self._study.completion_url else None
        return self._pages.render(
            "finished.html", code=now.code, n_answers=now.n_answers, leave_url=leave, turk=turk
        )

    def answer(self, link: Link, number: Number, form: Annotated[AnswerForm, Form()]) -> Response:
        """Store an answer. It is on disk when the redirect is sent."""
        rater, home = self._require_rater(link), self._home_url(link)
        skip = form.skip == "yes"
        try:
            self._participation.submit(rater, int(number), form.form, form.place, skip=skip)
        except NotAssignedError:
            text = (
                "This question is not one of yours, or somebody else got it while you were away. "
                "Your earlier answers are saved."
            )
            raise RefusedError(403, "This question is closed", text, link=home) from None
        except AlreadyAnsweredError as before:
            raise RefusedError(
                409,
                template="answered.html",
                order=[_display_name(item) for item in before.order],
                continue_url=home,
            ) from None
        except RankshotError as error:
            return self._ask_again(link, form, str(error))
        return RedirectResponse(home, 303)

    def leave(self, link: Link) -> Response:
        """Return to the platform when all questions are answered."""
        now = self._current_question(link)
        if isinstance(now, CurrentQuestion) or now.n_answers == 0:
            text = "Some questions have no answer yet."
            raise RefusedError(409, "Not finished yet", text, link=self._home_url(link))
        return RedirectResponse(str(self._study.completion_url), 303)

    def _ask(
        self,
        link: str,
        now: CurrentQuestion,
        places: list[str],
        error: str | None = None,
        status: int = 200,
    ) -> HTMLResponse:
        home = self._home_url(link)
        return self._pages.render(
            "question.html",
            status,
            prompt=self._study.prompt.replace("{target}", _display_name(now.question.target)),
            shown=_display_names(now.shown),
            number=now.position,
            total=now.total,
            fields={"form": now.form},
            action=f"{home}/{now.number}",
            error=error,
            places=places,
            instructions_url=f"{home}/instructions",
            draft_key=now.form,
        )

    def _ask_again(self, link: str, form: AnswerForm, error: str) -> HTMLResponse:
        """Show the question again, with the error and the chosen places."""
        now = self._current_question(link)
        if not isinstance(now, CurrentQuestion) or now.form != form.form:
            # The question has an answer, or was assigned to somebody else.
            text = (
                f"{_display_name(error)}. This answer was not saved. Your earlier answers are "
                "saved."
            )
            raise RefusedError(422, "Not a ranking", text, link=self._home_url(link))
        chosen = form.place if len(form.place) == len(now.shown) else [""] * len(now.shown)
        return self._ask(link, now, chosen, f"{_display_name(error)}.", status=422)

    def _current_question(self, link: str) -> CurrentQuestion | Finished:
        try:
            return self._participation.current_question(self._require_rater(link))
        except NotAssignedError:
            text = "Please open the link to the survey again."
            raise RefusedError(404, "Not started", text) from None

    def _require_rater(self, link: str) -> str:
        rater = self._identity.verify_link(link)
        if rater is None:
            text = "Please open the survey with the link that you were given."
            raise RefusedError(404, "No such address", text)
        return rater

    def _participant_name(self, who: Visitor) -> str | None:
        """Return the name of a participant; None without an id."""
        return who.participant and participant_name(self._study.platform, who.participant)

    def _home_url(self, link: str) -> str:
        return f"{self._pages.root}/p/{link}"

    def _read_visitor(self, participant: str, assignment: str, submit_to: str) -> Visitor:
        try:
            return read_visitor(self._study.platform, participant, assignment, submit_to)
        except RankshotError as error:
            raise RefusedError(400, "This link is not complete", f"Sorry: {error}.") from None


def _display_names(names: Sequence[str]) -> Sequence[str]:
    """Return names as they are shown; unchanged if two would become the same."""
    spoken = [_display_name(name) for name in names]
    return spoken if len(set(spoken)) == len(names) else names


def _display_name(name: str) -> str:
    """Return a name with spaces; this is safe, since a form sends places and no names."""
    return name.replace("_", " ")
