"""The pages that participants see, in the order in which they see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.core.errors import RankshotError
from rankshot.survey.bounds import MOST_ITEMS
from rankshot.survey.platforms import ID_PARAMETER, ID_PATTERN, Visitor, participant_name, read_visitor
from rankshot.survey.store.identity import LINK_DIGITS, Identity
from rankshot.survey.store.participation import (
    AlreadyAnsweredError,
    CurrentQuestion,
    Finished,
    NotAssignedError,
    Participation,
)
from rankshot.survey.study import Study
from rankshot.survey.web.pages import Pages, RefusedError, describe_redirect, describe_refusals, describe_form

Link = Annotated[str, Path(pattern=f"^[0-9a-f]{{{LINK_DIGITS}}}$")]
# Not an int: 1.0 and +1 would be addresses of the same question.
Number = Annotated[str, Path(pattern="^[1-9][0-9]{0,4}$")]
Text = Annotated[str, StringConstraints(max_length=200)]
# Described, not enforced: `visitor` says in words what is wrong with an id.
Id = Annotated[Text, Field(json_schema_extra={"anyOf": [{"pattern": ID_PATTERN}, {"const": ""}]})]
Place = Annotated[str, StringConstraints(max_length=3)]


class StartForm(BaseModel):
    """What the page of consent sends."""

    model_config = ConfigDict(extra="forbid")
    form: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    participant: Id = ""
    assignment: Text = ""
    submit_to: Text = ""


class AnswerForm(BaseModel):
    """What a question's page sends: a place for each item, as they were shown."""

    model_config = ConfigDict(extra="forbid")
    form: Annotated[str, StringConstraints(pattern="^[0-9a-f]{32}$")]
    place: Annotated[list[Place], Field(max_length=MOST_ITEMS)] = []
    skip: Literal["yes", ""] = ""


class ParticipantRoutes:
    """The routes of a study's participants.

    Parameters
    ----------
    study : Study
    participation : Participation
    identity : Identity
    pages : Pages
    """

    def __init__(
        self, study: Study, participation: Participation, identity: Identity, pages: Pages
    ) -> None:
        self._study = study
        self._participation = participation
        self._identity = identity
        self._pages = pages

    def router(self) -> APIRouter:
        """Return them."""
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
        """Say what the study is about, and ask for consent. Nothing is stored yet."""
        platforms = {"none": participant, "prolific": prolific, "mturk": worker}
        given = platforms[self._study.platform]
        who = self._visitor(given, assignment, submit_to)
        if not who.preview and self._participation.is_full(self._name(who)):
            raise RefusedError(503, template="full.html")
        fields = {"form": self._identity.nonce("start"), "participant": given}
        if who.turk is not None:
            fields |= {"assignment": assignment, "submit_to": submit_to}
        return self._pages.page("consent.html", fields=fields, preview=who.preview)

    def start(self, form: Annotated[StartForm, Form()]) -> Response:
        """Begin, or go on: whoever has begun before comes back to where they were."""
        if not self._identity.is_nonce(form.form, "start"):
            raise RefusedError(403, "This form is not ours", "Please open the survey's link again.")
        who = self._visitor(form.participant, form.assignment, form.submit_to)
        if who.preview:
            raise RefusedError(400, "Not yet", "Please accept the task first.")
        # Without an id, one copy of the page of consent is one participant.
        name = self._name(who) or f"{self._study.platform}:anonymous:{form.form}"
        rater = self._participation.start(name, who.turk)
        if rater is None:
            raise RefusedError(503, template="full.html")
        return RedirectResponse(self._home(self._identity.link(rater)) + "/instructions", 303)

    def instructions(self, link: Link) -> HTMLResponse:
        """Say what to do, with an example."""
        self._rater(link)
        return self._pages.page("instructions.html", question_url=self._home(link))

    def question(self, link: Link) -> HTMLResponse:
        """Ask the next question; after the last one, thank, and show the code."""
        now = self._current(link)
        if isinstance(now, CurrentQuestion):
            return self._ask(link, now, [""] * len(now.shown))
        if now.n_answers == 0:
            # Others have answered everything meanwhile. There is no code for nothing.
            raise RefusedError(503, template="full.html")
        turk = now.turk and {"action": now.turk.action, "assignment_id": now.turk.assignment}
        leave = f"{self._home(link)}/leave" if self._study.completion_url else None
        return self._pages.page(
            "finished.html", code=now.code, n_answers=now.n_answers, leave_url=leave, turk=turk
        )

    def answer(self, link: Link, number: Number, form: Annotated[AnswerForm, Form()]) -> Response:
        """Keep an answer. When the redirect is sent, it is on disk."""
        rater, home = self._rater(link), self._home(link)
        skip = form.skip == "yes"
        try:
            self._participation.submit(rater, int(number), form.form, form.place, skip=skip)
        except NotAssignedError:
            text = (
                "It was not yours, or the question went to somebody else while you were away. "
                "Your earlier answers are kept."
            )
            raise RefusedError(403, "This form is not open", text, link=home) from None
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
        """Go back to the platform, once every answer is kept."""
        now = self._current(link)
        if isinstance(now, CurrentQuestion) or now.n_answers == 0:
            text = "Some questions are still open."
            raise RefusedError(409, "Not finished yet", text, link=self._home(link))
        return RedirectResponse(str(self._study.completion_url), 303)

    def _ask(
        self, link: str, now: CurrentQuestion, places: list[str], error: str | None = None, status: int = 200
    ) -> HTMLResponse:
        home = self._home(link)
        return self._pages.page(
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
        """Show the question once more, with what was wrong and what was chosen."""
        now = self._current(link)
        if not isinstance(now, CurrentQuestion) or now.form != form.form:
            # It has an answer, or went to somebody else.
            text = f"{_display_name(error)}. It was not kept; your earlier answers are."
            raise RefusedError(422, "No ranking", text, link=self._home(link))
        chosen = form.place if len(form.place) == len(now.shown) else [""] * len(now.shown)
        return self._ask(link, now, chosen, f"{_display_name(error)}.", status=422)

    def _current(self, link: str) -> CurrentQuestion | Finished:
        try:
            return self._participation.current(self._rater(link))
        except NotAssignedError:
            text = "Please open the survey's link again."
            raise RefusedError(404, "Nobody has begun here", text) from None

    def _rater(self, link: str) -> str:
        rater = self._identity.rater_of(link)
        if rater is None:
            text = "Please open the survey by the link that you were given."
            raise RefusedError(404, "No such address", text)
        return rater

    def _name(self, who: Visitor) -> str | None:
        """Return what a participant is known by, if by anything."""
        return who.participant and participant_name(self._study.platform, who.participant)

    def _home(self, link: str) -> str:
        return f"{self._pages.root}/p/{link}"

    def _visitor(self, participant: str, assignment: str, submit_to: str) -> Visitor:
        try:
            return read_visitor(self._study.platform, participant, assignment, submit_to)
        except RankshotError as error:
            raise RefusedError(400, "This link is not complete", f"Sorry: {error}.") from None


def _display_names(names: Sequence[str]) -> Sequence[str]:
    """Return names as people write them, unless two of them would become the same."""
    spoken = [_display_name(name) for name in names]
    return spoken if len(set(spoken)) == len(names) else names


def _display_name(name: str) -> str:
    """Return a class's name as people write it; answers go by the places on the screen."""
    return name.replace("_", " ")
