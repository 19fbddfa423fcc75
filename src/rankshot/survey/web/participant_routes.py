"""The routes of participants, in the order in which they see the pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import ceil
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Path, Query, Request
from pydantic import Field, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.core.errors import RankshotError
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
    invitation: Text = ""
    assignment: Text = ""
    submit_to: Text = ""
    study: Text = ""
    session: Text = ""

    def arrival(self) -> Arrival:
        """Return what the address of the consent page said."""
        return Arrival(**self.model_dump(exclude={"form"}))


class ConfirmForm(SentForm):
    """What a page sends that asks whether something is meant."""

    form: FormToken


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
    wait_to_start : callable, optional
        For an address, returns the seconds until one more participant may start from it, and
        counts this one if it is 0. It is asked for new participants only, and not for those
        with an invitation or on the list of allowed ids.
    """

    def __init__(
        self,
        study: Study,
        participation: Participation,
        identity: Identity,
        pages: Pages,
        wait_to_start: Callable[[str], float] | None = None,
    ) -> None:
        self._wait_to_start = wait_to_start
        self._study = study
        self._participation = participation
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
        router.post("/start", **describe_form(400, 410, 503))(self.start)
        router.get("/p/{link}/instructions", responses=describe_refusals(404))(self.instructions)
        pages = describe_refusals(404, 410, 503)
        if self._study.extra:
            pages |= describe_redirect()["responses"]
        router.get("/p/{link}", responses=pages)(self.question)
        if self._study.completion_url is not None:
            router.get("/p/{link}/leave", **describe_redirect(404, 409, 410, 503))(self.leave)
        router.post("/p/{link}/reopen", **describe_form(404, 409, 410, 503))(self.reopen)
        router.get("/p/{link}/withdraw", responses=describe_refusals(404))(self.ask_to_withdraw)
        router.post("/p/{link}/withdrawn", **describe_form(404))(self.withdraw)
        router.post("/p/{link}/{number}", **describe_form(404, 409, 410, 503))(self.answer)
        return router

    def consent(
        self,
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
                raise self._refuse_stopped(error) from None
        kept = {name: value for name, value in asdict(arrival).items() if value}
        fields = {"form": self._identity.nonce("start"), "participant": given, **kept}
        return self._pages.render("consent.html", fields=fields, preview=who.preview, pilot=pilot)

    def start(self, request: Request, form: Annotated[StartForm, Form()]) -> Response:
        """Start, or resume at the current question."""
        if not self._identity.is_nonce(form.form, "start"):
            raise RefusedError(403, "Invalid form", "Please open the link to the survey again.")
        arrival = form.arrival()
        who = self._read_visitor(arrival)
        if who.preview:
            raise RefusedError(400, "Not yet", "Please accept the task first.")
        name = self._participant_name(who, arrival)
        if not arrival.invitation and self._study.allowed is None:
            self._require_pace(request, name)
        # Without an id, each copy of the consent page is one participant.
        name = name or f"{self._study.platform}:anonymous:{form.form}"
        try:
            rater = self._participation.start(name, who.turk, who.session)
        except StoppedError as error:
            raise self._refuse_stopped(error) from None
        if rater is None:
            raise self._refuse_stopped(StoppedError("full"))
        return RedirectResponse(self._home_url(self._identity.link(rater)) + "/instructions", 303)

    def _require_pace(self, request: Request, name: str | None) -> None:
        """Refuse a new participant if too many have started from the same address."""
        if self._wait_to_start is None or (name and self._participation.is_known(name)):
            return
        address = request.client.host if request.client else "unknown"
        if wait := self._wait_to_start(address):
            minutes = ceil(wait / 60)
            text = (
                "Many people have started from your network. Please try again in "
                f"{minutes} {'minute' if minutes == 1 else 'minutes'}. If you were invited to a "
                "room, tell whoever invited you."
            )
            headers = {"retry-after": str(ceil(wait))}
            raise RefusedError(429, "Please wait", text, headers=headers)

    def instructions(self, link: Link) -> HTMLResponse:
        """Show the instructions, with an example."""
        self._require_rater(link)
        home = self._home_url(link)
        return self._pages.render(
            "instructions.html", question_url=home, withdraw_url=f"{home}/withdraw"
        )

    def question(self, link: Link) -> Response:
        """Show the current question; after the last one, the page with the completion code."""
        now = self._current_question(link)
        if isinstance(now, CurrentQuestion):
            return self._ask(link, now, [""] * len(now.shown))
        home = self._home_url(link)
        if isinstance(now, ExtraLeft):
            return RedirectResponse(f"{home}/extra", 303)
        withdraw_url = f"{home}/withdraw"
        if now.n_counted == 0 and now.n_skipped == 0:
            # Others have answered all questions meanwhile. No answer, no completion code.
            raise self._refuse_stopped(StoppedError("full"))
        if now.n_counted == 0:
            return self._pages.render(
                "no_code.html",
                fields={"form": self._form_token(link, "reopen")},
                action=f"{home}/reopen",
                withdraw_url=withdraw_url,
            )
        turk = now.turk and {"action": now.turk.action, "assignment_id": now.turk.assignment}
        return self._pages.render(
            "finished.html",
            code=self._completion_code or now.code,
            n_answers=now.n_answers,
            leave_url=f"{home}/leave" if self._study.completion_url else None,
            turk=turk,
            withdraw_url=withdraw_url,
            pilot=now.pilot,
        )

    def reopen(self, link: Link, form: Annotated[ConfirmForm, Form()]) -> Response:
        """Ask again what somebody has skipped who has answered nothing."""
        self._require_form(link, form, "reopen")
        try:
            self._participation.reopen(self._require_rater(link))
        except StoppedError as error:
            raise self._refuse_stopped(error) from None
        except NotAssignedError:
            pass  # There is an answer meanwhile: the next page shows what is left.
        return RedirectResponse(self._home_url(link), 303)

    def ask_to_withdraw(self, link: Link) -> HTMLResponse:
        """Ask whether all answers are to be deleted."""
        self._require_rater(link)
        home = self._home_url(link)
        return self._pages.render(
            "withdraw.html",
            fields={"form": self._form_token(link, "withdraw")},
            action=f"{home}/withdrawn",
            home_url=home,
        )

    def withdraw(self, link: Link, form: Annotated[ConfirmForm, Form()]) -> Response:
        """Delete all answers of a participant."""
        self._require_form(link, form, "withdraw")
        try:
            self._participation.withdraw(self._require_rater(link))
        except NotAssignedError:
            raise self._refuse_unknown() from None
        return RedirectResponse(self._home_url(link), 303)

    def answer(self, link: Link, number: Number, form: Annotated[AnswerForm, Form()]) -> Response:
        """Store an answer. It is on disk when the redirect is sent."""
        rater, home = self._require_rater(link), self._home_url(link)
        skip = form.skip == "yes"
        try:
            self._participation.submit(rater, int(number), form.form, form.place, skip=skip)
        except NotAssignedError:
            # Who has withdrawn, for example in another tab, reads that.
            self._current_question(link)
            text = (
                "This question is not one of yours, or somebody else got it while you were away. "
                "Your earlier answers are saved."
            )
            raise RefusedError(403, "This question is closed", text, link=home) from None
        except AlreadyAnsweredError as before:
            raise RefusedError(
                409,
                template="answered.html",
                items=before.order,
                order=[_display_name(item) for item in before.order],
                continue_url=home,
            ) from None
        except RankshotError as error:
            return self._ask_again(link, form, str(error))
        return RedirectResponse(home, 303)

    def leave(self, link: Link) -> Response:
        """Return to the platform when all questions are answered."""
        now = self._current_question(link)
        if not isinstance(now, Finished) or now.n_counted == 0:
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
            target=now.question.target,
            target_name=_display_name(now.question.target),
            items=now.shown,
            shown=_display_names(now.shown),
            number=now.position,
            total=now.total,
            fields={"form": now.form},
            action=f"{home}/{now.number}",
            error=error,
            places=places,
            instructions_url=f"{home}/instructions",
            withdraw_url=f"{home}/withdraw",
            draft_key=now.form,
            pilot=now.pilot,
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

    def _current_question(self, link: str) -> CurrentQuestion | ExtraLeft | Finished:
        try:
            return self._participation.current_question(self._require_rater(link))
        except NotAssignedError:
            raise self._refuse_unknown() from None
        except StoppedError as error:
            raise self._refuse_stopped(error) from None

    def _refuse_unknown(self) -> RefusedError:
        text = "Please open the link to the survey again."
        return RefusedError(404, "Not started", text)

    def _refuse_stopped(self, error: StoppedError) -> RefusedError:
        """Return the page that says why somebody cannot start or go on."""
        if error.reason == "full":
            return RefusedError(503, template="full.html")
        status = 503 if error.reason == "paused" else 410
        return RefusedError(status, template="stopped.html", reason=error.reason)

    def _form_token(self, link: str, purpose: str) -> str:
        return self._identity.form_token(self._require_rater(link), purpose)

    def _require_form(self, link: str, form: ConfirmForm, purpose: str) -> None:
        if not self._identity.is_form_token(form.form, self._require_rater(link), purpose):
            text = "Please open the page again. Nothing was changed."
            raise RefusedError(403, "Invalid form", text, link=self._home_url(link))

    def _require_rater(self, link: str) -> str:
        rater = self._identity.verify_link(link)
        if rater is None:
            text = "Please open the survey with the link that you were given."
            raise RefusedError(404, "No such address", text)
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
            text = "Please open the link exactly as you received it."
            raise RefusedError(403, "This invitation is not valid", text)
        if study.invitations and not is_invited:
            text = "To take part in this study, please open the link that you were sent."
            raise RefusedError(403, "By invitation only", text)
        try:
            who = read_visitor(study.platform, arrival)
        except RankshotError as error:
            raise RefusedError(400, "This link is not complete", f"Sorry: {error}.") from None
        is_allowed = study.allowed is None or who.participant in study.allowed
        if not (is_allowed or is_invited or who.preview):
            text = "This study is for a fixed group of people, and your id is not on its list."
            raise RefusedError(403, "Not on the list", f"{text} Nothing was stored.")
        return who


def _display_names(names: Sequence[str]) -> Sequence[str]:
    """Return names as they are shown; unchanged if two would become the same."""
    spoken = [_display_name(name) for name in names]
    return spoken if len(set(spoken)) == len(names) else names


def _display_name(name: str) -> str:
    """Return a name with spaces; this is safe, since a form sends places and no names."""
    return name.replace("_", " ")
