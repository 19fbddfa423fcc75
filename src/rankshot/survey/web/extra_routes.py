"""The page of the extra questions, after the last question and before the completion code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Form, Request
from pydantic import BaseModel, ConfigDict
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.survey.extra_answers import MOST_CHARACTERS, check_extra_answers
from rankshot.survey.languages import ParticipantError
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
from rankshot.survey.web.participant_routes import Link, find_current, require_rater


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
        self._study = study
        self._participation = participation
        self._identity = identity
        self._pages = pages
        # By the names of their fields: a question may have any name, such as "form".
        self._questions = {f"extra-{number}": q for number, q in enumerate(study.extra, 1)}

    def router(self) -> APIRouter:
        """Return the router with the routes, if the study has extra questions."""
        router = APIRouter(default_response_class=HTMLResponse)
        if self._questions:
            see_other = describe_redirect(404, 410, 503)["responses"]
            router.get("/p/{link}/extra", responses=see_other)(self.extra)
            router.post("/p/{link}/extra", **describe_form(404, 410, 503))(self.answer_extra)
        return router

    def extra(self, request: Request, link: Link) -> Response:
        """Show the extra questions to somebody who has answered all others."""
        return self._ask(request, link)

    def answer_extra(
        self, request: Request, link: Link, form: Annotated[ExtraForm, Form()]
    ) -> Response:
        """Store the answers to the extra questions. They are on disk when the redirect is sent."""
        sent = form.model_extra or {}
        if not sent.keys() <= self._questions.keys():
            raise RefusedError(422, message="malformed")
        by_name = {q.name: sent.get(field, "") for field, q in self._questions.items()}
        values, errors = check_extra_answers(tuple(self._questions.values()), by_name)
        if errors:
            return self._ask(request, link, sent, errors, status=422)
        try:
            rater = require_rater(request, self._identity, link)
            self._participation.submit_extra(rater, form.form, values)
        except NotAssignedError:
            # Who has withdrawn, for example in another tab, reads that.
            find_current(request, self._study, self._participation, self._identity, link)
            raise RefusedError(403, message="form") from None
        return RedirectResponse(self._home_url(link), 303)

    def _ask(
        self,
        request: Request,
        link: str,
        sent: Mapping[str, str] | None = None,
        errors: Mapping[str, ParticipantError] | None = None,
        status: int = 200,
    ) -> Response:
        now = find_current(request, self._study, self._participation, self._identity, link)
        home = self._home_url(link)
        if not isinstance(now, ExtraLeft):
            # Other questions come first, or these were answered in another tab.
            return RedirectResponse(home, 303)
        translate = self._pages.texts(request).translate_error
        return self._pages.render(
            "extra.html",
            status,
            reader=request,
            fields_of={q.name: field for field, q in self._questions.items()},
            sent=sent or {},
            errors={name: translate(error) for name, error in (errors or {}).items()},
            fields={"form": now.form},
            action=f"{home}/extra",
            most_characters=MOST_CHARACTERS,
            withdraw_url=f"{home}/withdraw",
            pilot=now.pilot,
        )

    def _home_url(self, link: str) -> str:
        return f"{self._pages.root}/p/{link}"
