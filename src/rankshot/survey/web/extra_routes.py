"""The page with the extra questions, after the last ranking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Form
from pydantic import BaseModel, ConfigDict
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.survey.extra_answers import MOST_CHARACTERS, check_extra_answers
from rankshot.survey.store.participation import ExtraLeft, NotAssignedError
from rankshot.survey.web.pages import FormToken, RefusedError, describe_form, describe_redirect
from rankshot.survey.web.participant_routes import Link, ParticipantRoutes


class ExtraForm(BaseModel):
    """What the page sends: its token, and one field per question, named by its number."""

    model_config = ConfigDict(extra="allow")

    form: FormToken


class ExtraRoutes(ParticipantRoutes):
    """The routes of the extra questions."""

    def __init__(self, *values: Any) -> None:
        super().__init__(*values)
        # By the names of their fields: a question may have any name, such as "form".
        numbered = enumerate(self._study.extra, 1)
        self._questions = {f"extra-{number}": question for number, question in numbered}

    def router(self) -> APIRouter:
        """Return the router with the routes, if the study has extra questions."""
        router = APIRouter(default_response_class=HTMLResponse)
        if self._questions:
            see_other = describe_redirect(404, 410, 503)["responses"]
            router.get("/p/{link}/extra", responses=see_other)(self.extra)
            router.post("/p/{link}/extra", **describe_form(404, 410, 503))(self.answer_extra)
        return router

    def extra(self, link: Link) -> Response:
        """Show the extra questions to somebody who has answered all others."""
        return self._ask_extra(link)

    def answer_extra(self, link: Link, form: Annotated[ExtraForm, Form()]) -> Response:
        """Store the answers to the extra questions. They are on disk when the redirect is sent."""
        sent = form.model_extra or {}
        if not sent.keys() <= self._questions.keys():
            text = "This request does not come from our pages. Nothing was stored."
            raise RefusedError(422, "Malformed", text)
        by_name = {q.name: sent.get(field, "") for field, q in self._questions.items()}
        values, errors = check_extra_answers(self._study.extra, by_name)
        if errors:
            return self._ask_extra(link, sent, errors, status=422)
        try:
            self._participation.submit_extra(self._require_rater(link), form.form, values)
        except NotAssignedError:
            # Who has withdrawn, for example in another tab, reads that.
            self._current_question(link)
            text = "Please open the page again. Nothing was changed."
            home = self._home_url(link)
            raise RefusedError(403, "Invalid form", text, link=home) from None
        return RedirectResponse(self._home_url(link), 303)

    def _ask_extra(
        self,
        link: str,
        sent: Mapping[str, str] | None = None,
        errors: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> Response:
        now, home = self._current_question(link), self._home_url(link)
        if not isinstance(now, ExtraLeft):
            # Other questions come first, or these were answered in another tab.
            return RedirectResponse(home, 303)
        return self._pages.render(
            "extra.html",
            status,
            questions=self._questions,
            sent=sent or {},
            errors=errors or {},
            fields={"form": now.form},
            action=f"{home}/extra",
            most_characters=MOST_CHARACTERS,
            withdraw_url=f"{home}/withdraw",
            pilot=now.pilot,
        )
