"""The page with the extra questions, after the last ranking."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from pydantic import BaseModel, ConfigDict
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.survey.extra_answers import MOST_CHARACTERS, check_extra_answers
from rankshot.survey.store.identity import Identity
from rankshot.survey.store.participation import ExtraLeft, NotAssignedError, Participation
from rankshot.survey.study import Study
from rankshot.survey.web.pages import (
    FormToken,
    Pages,
    RefusedError,
    describe_form,
    describe_redirect,
)
from rankshot.survey.web.participant_routes import Link


class ExtraForm(BaseModel):
    """What the page sends: its token, and one field per question, named by its number."""

    model_config = ConfigDict(extra="allow")

    form: FormToken


class ExtraRoutes:
    """The routes of the extra questions.

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
        # By the names of their fields: a question may have any name, such as "form".
        self._questions = {f"extra-{i}": question for i, question in enumerate(study.extra, 1)}
        self._participation = participation
        self._identity = identity
        self._pages = pages

    def router(self) -> APIRouter:
        """Return the router with the routes, if the study has extra questions."""
        router = APIRouter(default_response_class=HTMLResponse)
        if self._questions:
            see_other = describe_redirect(404, 503)["responses"]
            router.get("/p/{link}/extra", responses=see_other)(self.extra)
            router.post("/p/{link}/extra", **describe_form(404, 503))(self.answer_extra)
        return router

    def extra(self, link: Link) -> Response:
        """Show the extra questions to somebody who has answered all others."""
        now = self._find(link)
        if not isinstance(now, ExtraLeft):
            return RedirectResponse(self._home_url(link), 303)
        return self._ask(link, now.form)

    def answer_extra(self, link: Link, form: Annotated[ExtraForm, Form()]) -> Response:
        """Store the answers to the extra questions. They are on disk when the redirect is sent."""
        sent = {name: str(value) for name, value in (form.model_extra or {}).items()}
        if not sent.keys() <= self._questions.keys():
            text = "This request does not come from our pages. Nothing was stored."
            raise RefusedError(422, "Malformed", text)
        by_name = {q.name: sent.get(field, "") for field, q in self._questions.items()}
        values, errors = check_extra_answers(tuple(self._questions.values()), by_name)
        if errors:
            now = self._find(link)
            if isinstance(now, ExtraLeft):
                return self._ask(link, now.form, sent, errors, status=422)
            # They were answered in another tab.
            return RedirectResponse(self._home_url(link), 303)
        try:
            self._participation.submit_extra(self._require_rater(link), form.form, values)
        except NotAssignedError:
            text = "Please open the link to the survey again. Nothing was stored."
            raise RefusedError(403, "Invalid form", text) from None
        return RedirectResponse(self._home_url(link), 303)

    def _ask(
        self,
        link: str,
        form: str,
        sent: dict[str, str] | None = None,
        errors: dict[str, str] | None = None,
        status: int = 200,
    ) -> HTMLResponse:
        return self._pages.render(
            "extra.html",
            status,
            questions=self._questions,
            sent=sent or {},
            errors=errors or {},
            fields={"form": form},
            action=f"{self._home_url(link)}/extra",
            most_characters=MOST_CHARACTERS,
        )

    def _find(self, link: str) -> object:
        """Return what the participant has to do now."""
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

    def _home_url(self, link: str) -> str:
        return f"{self._pages.root}/p/{link}"
