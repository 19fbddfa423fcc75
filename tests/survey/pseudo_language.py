"""A catalogue whose texts are their own keys, between marks; and finding texts without marks."""

import re
from html.parser import HTMLParser

from rankshot.survey.languages import ENGLISH, load_catalogue

TAG = "qps"
SPOKEN = ("title", "aria-label", "alt", "placeholder")
# Keys of the keyboard, and names of languages in these languages.
NEVER_TRANSLATED = re.compile("Tab|Enter|Home|Delete|English|Deutsch|Español")


def write_catalogue(folder):
    """Write the catalogue; return its path."""
    texts = load_catalogue(ENGLISH).texts
    lines = [f'language = "{TAG}"', 'name = "Ψευδο"', 'direction = "ltr"']
    for table in dict.fromkeys(key.partition(".")[0] for key in texts):
        lines.append(f"[{table}]")
        for key, text in texts.items():
            home, _, name = key.partition(".")
            if home == table:
                fields = " ".join(re.findall(r"\{\w+\}", text))
                lines.append(f'{name} = "⟦{key} {fields}⟧"')
    path = folder / f"{TAG}.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


class _Texts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in SPOKEN]

    def handle_data(self, data):
        self.found.append(data)


def visible_texts(page):
    """Return what a page shows and says."""
    parser = _Texts()
    parser.feed(page)
    return parser.found


def untranslated(texts):
    """Return the texts that have Latin letters outside of marks; the study's own are Greek."""
    left = []
    # One text may stand inside another, and may be interrupted by tags.
    rest = "\n".join(texts)
    while (shorter := re.sub("⟦[^⟦⟧]*⟧", "", rest)) != rest:
        rest = shorter
    left = [line for line in rest.split("\n") if re.search("[A-Za-z]", line)]
    return [line for line in left if re.search("[A-Za-z]", NEVER_TRANSLATED.sub("", line))]


def find_keys(text):
    """Return the keys of the catalogue's texts in a page, the texts of scripts included."""
    return set(re.findall(r"⟦([\w.]+)", text.replace("\\u27e6", "⟦")))
