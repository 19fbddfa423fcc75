"""What participants read in their language: the fixed texts, and the study's texts."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from rankshot.core.errors import InputError, RankshotError
from rankshot_survey.study import DEFAULT_PROMPT, TAGS, Study, Translation

ENGLISH = "en"


# ---- Fixed texts


class Catalogue(NamedTuple):
    """The fixed texts of the survey in one language: by key, with fields such as ``{name}``."""

    language: str
    name: str
    direction: str
    texts: dict[str, str]

    def isolate(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Return fields so that an English name in an Arabic sentence does not move its words."""
        if self.direction == "ltr":
            return dict(fields)
        return {
            key: f"\u2068{value}\u2069" if type(value) is str else value
            for key, value in fields.items()
        }


class ParticipantError(RankshotError):
    """What a participant should change; the message is in English, pages translate it.

    ``key`` is that of the text; of its fields, ``item`` and ``other`` are names of the study.
    """

    def __init__(self, key: str, **fields: Any) -> None:
        super().__init__(load_catalogue(ENGLISH).texts[key].format(**fields))
        self.key = key
        self.fields = fields


@cache
def load_catalogue(tag: str) -> Catalogue:
    """Return the fixed texts in a language."""
    path = files("rankshot_survey") / "web" / "languages" / f"{tag}.toml"
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    head = {key: document.pop(key) for key in ("language", "name", "direction")}
    texts = {f"{part}.{key}": text for part, own in document.items() for key, text in own.items()}
    return Catalogue(**head, texts=texts)


# ---- The language of a participant


class Languages:
    """The languages of a study: the catalogues that are offered, and the default one."""

    def __init__(self, study: Study) -> None:
        self.offered = {tag: load_catalogue(tag) for tag in study.languages or TAGS}
        for tag in study.translations:
            if not any(match_language(other, [tag]) for other in self.offered):
                rule = f"is not one of the offered languages {', '.join(self.offered)}"
                raise InputError("translations", tag, rule)
        own = (match_language(tag, self.offered) for tag in (study.language, ENGLISH))
        self.default = self.offered[next(filter(None, own), next(iter(self.offered)))]

    def choose(self, asked: Iterable[str | None], accepted: str = "") -> Catalogue:
        """Return the catalogue of the first language that is offered.

        ``accepted`` is the browser's list of languages, the header Accept-Language.
        """
        liked = sort_accepted(accepted)
        tags = chain(asked, (match_language(tag, self.offered) for tag in liked))
        return next((self.offered[tag] for tag in tags if tag in self.offered), self.default)


def sort_accepted(header: str) -> list[str]:
    """Return the languages of the header Accept-Language, the preferred ones first."""
    # float() would also accept nan, inf and 1e9.
    entry = r"\s*([\w-]+)\s*(?:;\s*q\s*=\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*)?"
    parts = [re.fullmatch(entry, part, re.IGNORECASE) for part in header.split(",")]
    weights = {part[1]: float(part[2] or 1) for part in parts if part}
    return sorted((tag for tag in weights if weights[tag]), key=weights.__getitem__, reverse=True)


def match_language(tag: str, tags: Iterable[str]) -> str | None:
    """Return the tags language that is nearest to a tag: itself, or a more general one."""
    by_name = {name.lower(): name for name in tags}
    tag = tag.lower()
    while tag and tag not in by_name:
        tag = tag.rpartition("-")[0]
    return by_name.get(tag)


# ---- The study's own texts


class OwnText(NamedTuple):
    """A text of the study, and the language that it is in."""

    text: str
    language: str


class OwnTexts:
    """The study's own texts for the readers of one language.

    What is not translated is in the study's own language.
    """

    def __init__(self, study: Study, tag: str) -> None:
        self._study = study
        self._tag = match_language(tag, study.translations) or study.language
        self._translation = texts = study.translations.get(self._tag, Translation())
        self.title = self._choose(texts.title, study.title)
        self.prompt = self._choose(texts.prompt, study.prompt)
        self.consent = self._choose(texts.consent, study.consent)
        # A study need not have these, or may have them in one language alone.
        self.instructions = self._find(texts.instructions, study.instructions)
        self.contact = self._find(texts.contact, study.contact)
        self.debriefing = self._find(texts.debriefing, study.debriefing)
        # The names that are not shown, but the images.
        self.hidden = frozenset(p.name for p in study.images if study.hide_names)

    def _find(self, translated: str | None, own: str | None) -> OwnText | None:
        return None if translated is None and own is None else self._choose(translated, own or "")

    def alt(self, name: str) -> OwnText:
        """Return the description of the image of an item or a target."""
        own = next(image.alt for image in self._study.images if image.name == name)
        return self._choose(self._translation.alts.get(name), own)

    def _choose(self, translated: str | None, own: str) -> OwnText:
        if translated is None:
            return OwnText(own, self._study.language)
        return OwnText(translated, self._tag)

    def name(self, name: str) -> OwnText:
        """Return the name of an item or a target as it is shown."""
        # Spaces for underscores are safe, since a form sends places and no names.
        return self._choose(self._translation.names.get(name), name.replace("_", " "))

    def names(self, names: Sequence[str]) -> list[OwnText]:
        """Return names as they are shown, or what the images of hidden names show."""
        shown = [self.alt(name) if name in self.hidden else self.name(name) for name in names]
        # Unchanged if two would become the same.
        if self.hidden or len({text for text, _ in shown}) == len(names):
            return shown
        return [OwnText(name, self._study.language) for name in names]

    def ask(self, target: str) -> OwnText:
        """Prompt with the name of a target in it."""
        text, language = self.prompt
        return OwnText(text.replace("{target}", target), language)


def make_example(study: Study, own: OwnTexts) -> tuple[OwnText, list[OwnText], list[OwnText]]:
    """Return an example that fits the study's prompt, in the language of the prompt.

    It is the question, the items that are ranked, and the others.
    """
    keys = (
        "violin cello guitar trumpet drum" if study.prompt == DEFAULT_PROMPT else "target a b c d"
    )
    tag = own.prompt.language
    texts = load_catalogue(match_language(tag, TAGS) or ENGLISH).texts
    target, *items = (OwnText(texts[f"example.{key}"], tag) for key in keys.split())
    n = study.rank if isinstance(study.rank, int) else {"all": len(items)}.get(study.rank, 2)
    return own.ask(target.text), items[:n], items[n:]
