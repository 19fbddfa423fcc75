"""What participants read in their language: catalogues of fixed texts, and the study's texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import Any, Literal, NamedTuple

from rankshot.core.errors import NO_VALUE, InputError, RankshotError, prefix_errors
from rankshot_survey.study import DEFAULT_PROMPT, ExtraQuestion, Study, Translation
from rankshot_survey.study_files import parse_toml
from rankshot_survey.study_values import Name, Tag, Text, validated

# The language of the catalogue that has all keys.
ENGLISH = "en"
# How many characters of a browser's list of languages are read.
HEADER_LENGTH = 400


# ---- Fixed texts


@validated
class Catalogue:
    """The fixed texts of the survey in one language: by key, with fields such as ``{name}``."""

    language: Tag
    name: Name
    direction: Literal["ltr", "rtl"]
    texts: dict[str, Text]

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
    """Return one of the catalogues that come with the package."""
    with as_file(_folder() / f"{tag}.toml") as path:
        return read_catalogue(path)


def english_text(tag: str = ENGLISH) -> str:
    """Return the file of the English catalogue, as the start of a translation."""
    text = (_folder() / f"{ENGLISH}.toml").read_text(encoding="utf-8")
    return str(text).replace(f'language = "{ENGLISH}"', f'language = "{tag}"')


def read_catalogue(path: Path) -> Catalogue:
    """Read a catalogue, and hold it to the keys and fields of the English one."""
    document = parse_toml(path)
    tables = {key: table for key, table in document.items() if isinstance(table, dict)}
    head = {key: value for key, value in document.items() if key not in tables}
    texts = {f"{name}.{key}": text for name, table in tables.items() for key, text in table.items()}
    with prefix_errors(path):
        catalogue = Catalogue(**head, texts=texts)
        if path.name != f"{ENGLISH}.toml" or not path.is_relative_to(Path(str(_folder()))):
            _compare_texts(catalogue.texts, load_catalogue(ENGLISH).texts)
    return catalogue


def _folder() -> Traversable:
    return files("rankshot_survey") / "web" / "languages"


def _compare_texts(texts: Mapping[str, str], english: Mapping[str, str]) -> None:
    if odd := sorted(texts.keys() ^ english.keys()):
        rule = "is missing" if odd[0] in english else "is not a text of the English catalogue"
        raise InputError(odd[0], NO_VALUE, rule)
    for key, text in texts.items():
        wanted = find_fields(english[key])
        if find_fields(text) != wanted:
            listed = ", ".join(sorted(f"{{{name}}}" for name in wanted or ())) or "none"
            hint = "write another brace as {{ or }}"
            raise InputError(
                key, text, f"must have the fields of the English text: {listed}", hint=hint
            )


def find_fields(text: str) -> set[str] | None:
    """Return the fields of a text; None if its braces do not match, or have more than a name."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return None
    if any(form or change for _, _, form, change in parts):
        return None
    return {name for _, name, _, _ in parts if name is not None}


# ---- The language of a participant


class Languages:
    """The languages of a study: the catalogues that are offered, and the default one."""

    def __init__(self, study: Study) -> None:
        tags = sorted(file.name.removesuffix(".toml") for file in _folder().iterdir())
        catalogues = {tag: load_catalogue(tag) for tag in tags}
        catalogues |= {own.language: own for own in map(read_catalogue, study.catalogues)}
        for tag in study.languages:
            if tag not in catalogues:
                hint = (
                    f"translate `rankshot-survey catalogue {tag}.toml`, and name it in catalogues"
                )
                rule = f"is not one of the languages {', '.join(catalogues)}"
                raise InputError("language.offered", tag, rule, hint=hint)
        self._known = catalogues
        self.offered = {tag: catalogues[tag] for tag in study.languages or catalogues}
        for tag in study.translations:
            if not any(match_language(other, [tag]) for other in self.offered):
                rule = f"is not one of the offered languages {', '.join(self.offered)}"
                raise InputError("translations", tag, rule)
        own = (match_language(tag, self.offered) for tag in (study.language, ENGLISH))
        self.default = self.offered[next(filter(None, own), next(iter(self.offered)))]

    def catalogue(self, tag: str) -> Catalogue:
        """Return the catalogue of a language, offered or not; English if there is none."""
        return self._known[match_language(tag, self._known) or ENGLISH]

    def choose(self, asked: Iterable[str | None], accepted: str = "") -> Catalogue:
        """Return the catalogue of the first language that is offered.

        ``accepted`` is the browser's list of languages, the header Accept-Language.
        """
        liked = sort_accepted(accepted[:HEADER_LENGTH])
        tags = chain(asked, (match_language(tag, self.offered) for tag in liked))
        return next((self.offered[tag] for tag in tags if tag in self.offered), self.default)


@lru_cache(1000)
def sort_accepted(header: str) -> list[str]:
    """Return the languages of the header Accept-Language, the preferred ones first."""
    weights = {}
    for entry in header.split(","):
        tag, *parameters = (part.strip() for part in entry.split(";"))
        # float() would also accept nan, inf and 1e9.
        weight = re.fullmatch(r"[qQ]\s*=\s*([0-9]*\.?[0-9]+|[0-9]+\.)", "".join(parameters[:1]))
        weights[tag] = float(weight[1]) if weight else float(not parameters)
    return sorted(
        (tag for tag in weights if tag and weights[tag] > 0), key=weights.__getitem__, reverse=True
    )


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


class ShownExtra(NamedTuple):
    """An extra question as it is shown; the choices by the study's own, which are stored."""

    # The name of its field: a question may have any name, such as "form".
    field: str
    question: ExtraQuestion
    text: OwnText
    choices: dict[str, OwnText]


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
        self.extra = []
        for number, question in enumerate(study.extra, 1):
            translated = texts.extra.get(question.name)
            shown, tag = (translated, self._tag) if translated else (question, study.language)
            pairs = zip(question.choices, shown.choices, strict=True)
            choices = {own: OwnText(choice, tag) for own, choice in pairs}
            text = OwnText(shown.text, tag)
            self.extra.append(ShownExtra(f"extra-{number}", question, text, choices))

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


def make_example(
    study: Study, own: OwnTexts, languages: Languages
) -> tuple[OwnText, list[OwnText], list[OwnText]]:
    """Return an example that fits the study's prompt, in the language of the prompt.

    It is the question, the items that are ranked, and the others.
    """
    keys = (
        "violin cello guitar trumpet drum" if study.prompt == DEFAULT_PROMPT else "target a b c d"
    )
    tag = own.prompt.language
    texts = languages.catalogue(tag).texts
    target, *items = (OwnText(texts[f"example.{key}"], tag) for key in keys.split())
    n = study.rank if isinstance(study.rank, int) else {"all": len(items)}.get(study.rank, 2)
    return own.ask(target.text), items[:n], items[n:]
