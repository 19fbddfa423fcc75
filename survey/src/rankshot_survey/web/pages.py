"""Pages from templates, in the language of their reader, and images."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any
from urllib.parse import parse_qsl, quote

from jinja2.utils import htmlsafe_json_dumps
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse

from rankshot.core.errors import InputError
from rankshot.web.guards import SENT, RefusedError
from rankshot.web.server import File, create_environment
from rankshot_survey.languages import (
    ENGLISH,
    Catalogue,
    Languages,
    OwnText,
    OwnTexts,
    ParticipantError,
    load_catalogue,
    make_example,
)
from rankshot_survey.store.participation import Participation
from rankshot_survey.study import ItemImage, Study

# The refusals after which the same request may succeed.
TEMPORARY = ("outage", "failed")
# It has the templates and the static files.
PACKAGE = "rankshot_survey.web"
# The largest file. Participants load up to 50 images for one question, many on phones.
MOST_IMAGE_BYTES = 2**20
DIGEST_DIGITS = 32
# How many rows of questions are kept, each about 500 bytes.
MOST_ROWS = 10_000
_FIELD = re.compile(r"\{(\w+)\}")
# How the files of each kind begin.
IMAGES = {
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
# The keys of the texts that the script of a question shows.
SCRIPT_KEYS = (
    *("up", "down", "first", "remove", "placed", "moved", "stays", "removed", "skip_again"),
    *("nothing_ranked", "exactly", "sending", "offline"),
)


class Pages:
    """The pages of one study, with the addresses of its images; what people wrote is escaped."""

    def __init__(
        self,
        study: Study,
        images: dict[str, str],
        static: dict[str, File],
        participation: Participation,
    ) -> None:
        self._environment = create_environment(PACKAGE, static, study=study, images=images)
        self._study = study
        self._participation = participation
        self._texts: dict[str, PageTexts] = {}
        self.languages = Languages(study)

    def texts(self, reader: HTTPConnection | None = None) -> PageTexts:
        """Return the texts in a participant's language; without a reader, in English.

        The address chooses (``?lang=de``), then the choice at the start, then the browser. The
        choice is ``reader.state.language``, or is looked up for ``reader.state.rater``.
        """
        if reader is None:
            catalogue = load_catalogue(ENGLISH)
        else:
            state = reader.state
            if not hasattr(state, "language"):
                rater = getattr(state, "rater", None)
                person = rater and self._participation.find_person(rater)
                state.language = person.language if person else None
            asked = (reader.query_params.get("lang"), state.language)
            header = reader.headers.get("accept-language", "")
            catalogue = self.languages.choose(asked, header)
        if catalogue.language not in self._texts:
            self._texts[catalogue.language] = PageTexts(self._study, catalogue, self._render)
        return self._texts[catalogue.language]

    def render(
        self,
        template: str,
        status: int = 200,
        *,
        reader: HTTPConnection | None = None,
        **values: object,
    ) -> HTMLResponse:
        """Return a page in the language of a participant; without a reader, in English."""
        texts = self.texts(reader)
        values["way_back"] = partial(self.way_back, reader)
        headers = {"content-language": texts.tag, "vary": "accept-language"}
        return HTMLResponse(self._render(template, texts, **values), status, headers)

    def _render(self, template: str, texts: PageTexts, **values: object) -> Markup:
        values |= {"texts": texts, "t": texts.translate, "own": texts.own}
        page = self._environment.get_template(template)
        return Markup(page.render(lang_of=texts.mark_language, **values))  # noqa: S704 (escaped)

    def way_back(self, reader: HTTPConnection | None, url: str | None) -> str | None:
        """Return the URL of a platform, with the ids of a participant that it names."""
        if reader is None or url is None or "{" not in url:
            return url
        rater = getattr(reader.state, "rater", None)
        ids = self._participation.read_ids(rater) if rater else getattr(reader.state, "ids", {})
        # A name without a value is empty.
        return _FIELD.sub(lambda field: quote(ids.get(field[1], ""), safe=""), url)

    def refuse(self, reader: HTTPConnection, error: RefusedError) -> HTMLResponse:
        """Return the page that says why a request is refused."""
        template, values = error.template, error.values
        if error.message:
            if error.status >= 500 and not hasattr(reader.state, "language"):
                # The database may be what fails.
                reader.state.language = None
            texts, key = self.texts(reader), f"refused.{error.message}"
            said: dict[str, object] = {"heading": texts.translate(f"{key}_heading")}
            said |= {"link": self.way_back(reader, error.link)}
            said |= {"again": error.message in TEMPORARY and reader.url}
            sent = reader.scope.get(SENT, b"").decode("latin-1")
            said["sent"] = parse_qsl(sent, keep_blank_values=True)
            template, values = "message.html", {**said, "text": texts.translate(key, **values)}
        # The researcher's own pages are in English.
        is_own = not error.message and reader.scope["path"].startswith("/researcher")
        page = self.render(template, error.status, reader=None if is_own else reader, **values)
        page.headers.update(error.headers)
        return page


class PageTexts:
    """All texts for the readers of one language, as HTML."""

    def __init__(self, study: Study, catalogue: Catalogue, render: Callable[..., Markup]) -> None:
        self._catalogue = catalogue
        self.tag = catalogue.language
        self.direction = catalogue.direction
        self.own = own = OwnTexts(study, catalogue.language)
        self.consent = render_markdown(own.consent.text)
        self.instructions = own.instructions and render_markdown(own.instructions.text)
        self.debriefing = own.debriefing and render_markdown(own.debriefing.text)
        self.contact = own.contact and self._wrap(
            OwnText(render_line(own.contact.text), own.contact.language)
        )
        self.example = make_example(study, own)
        self.script = htmlsafe_json_dumps(
            {key: catalogue.texts[f"question.{key}"] for key in SCRIPT_KEYS}
        )
        # What is the same on every page of a question, and on many of them.
        self.controls = render("question_controls.html", self)
        self._make_row = lru_cache(MOST_ROWS)(partial(render, "question_row.html", self))

    def translate(self, key: str, **fields: object) -> Markup:
        """Return a fixed text as HTML; fields that are not HTML are escaped."""
        return escape(self._catalogue.texts[key]).format(**self._catalogue.isolate(fields))

    def translate_error(self, error: ParticipantError) -> Markup:
        """Return the text that says what a participant should change."""
        names = {
            key: self.own.names([str(error.fields[key])])[0].text
            for key in ("item", "other")
            if key in error.fields
        }
        return self.translate(error.key, **error.fields | names)

    def make_rows(self, items: Sequence[str], places: Sequence[str]) -> Markup:
        """Return the items of a question as HTML, each with its place ("" if it has none)."""
        parts = zip(items, self.own.names(items), places, strict=True)
        return Markup().join(
            self._make_row(item=item, name=name, number=number, n=len(items), chosen=place)
            for number, (item, name, place) in enumerate(parts, 1)
        )

    def mark_language(self, text: OwnText) -> Markup:
        """Return the attribute for a text in another language than the page, or nothing."""
        if text.language == self.tag:
            return Markup()
        return Markup(' lang="{}"').format(text.language)

    def join(self, texts: list[OwnText]) -> Markup:
        """Return a list of names as HTML."""
        return self.translate("page.comma").join(map(self._wrap, texts))

    def _wrap(self, text: OwnText) -> Markup:
        """Return a text of the study, for a sentence that may have another direction."""
        return Markup("<bdi{}>{}</bdi>").format(self.mark_language(text), text.text)


# ---- Markdown


class SafeMarkdown(MarkdownIt):
    """Markdown that is safe to show: paragraphs, lists, emphasis and links, no HTML.

    Links go to https: and mailto: addresses alone, and open in a new tab.
    """

    def __init__(self) -> None:
        super().__init__("zero")
        self.enable(["list", "emphasis", "link", "autolink", "escape"])
        self.add_render_rule("link_open", _open_link)

    def validateLink(self, url: str) -> bool:  # noqa: N802 (a name of markdown-it)
        """Return whether a link is shown as a link."""
        return url.lower().startswith(("https://", "mailto:"))


def _open_link(renderer: Any, tokens: Sequence[Any], index: int, *options: Any) -> Any:
    tokens[index].attrs |= {"target": "_blank", "rel": "noopener noreferrer"}
    return renderer.renderToken(tokens, index, *options)


_MARKDOWN = SafeMarkdown()


def render_markdown(text: str) -> Markup:
    """Return Markdown as HTML."""
    return Markup(_MARKDOWN.render(text))  # noqa: S704 (it has no HTML)


def render_line(text: str) -> Markup:
    """Return one line of Markdown as HTML."""
    return Markup(_MARKDOWN.renderInline(text))  # noqa: S704 (it has no HTML)


# ---- Images


def load_images(images: Iterable[ItemImage]) -> tuple[dict[str, str], dict[str, File]]:
    """Read the images of a study; return their addresses, and the files, by name.

    An address names the content, so it never changes.
    """
    addresses, files = {}, {}
    for image in images:
        with image.file.open("rb") as file:
            # One byte more than allowed shows that a file is too large, however large it is.
            content = file.read(MOST_IMAGE_BYTES + 1)
        kind = next((kind for kind, start in IMAGES.items() if start.match(content)), None)
        if kind is None or len(content) > MOST_IMAGE_BYTES:
            most = f"{MOST_IMAGE_BYTES / 2**20:,.0f} MiB"
            rule = f"must be a JPEG, PNG or WebP image of at most {most}"
            raise InputError("images", str(image.file), rule)
        name = f"{hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS]}.{kind}"
        addresses[image.name] = f"/images/{name}"
        files[name] = File(content, f"image/{kind}")
    return addresses, files
