"""The first page of the site: the README, with links to pages and images of the site."""

import re

from page_metadata import RAW, REPOSITORY, ROOT
from sphinx.application import Sphinx

PLACE = "<!-- the README -->"
IMAGES = f"{RAW}/main/docs/images"
REWRITES = {
    # Badges come from other hosts, and a reader of the site has no clone.
    r"^\[!\[.*\n": "",
    r"  # in a clone: .*": "",
    # The site has a switch for its colours, which browsers do not ask.
    rf'<picture>\n(?:<source.*\n)+<img src="{IMAGES}/first-.*" alt="(.*)">\n</picture>': "\n".join(
        f"```{{image}} images/first-{width}-{scheme}.webp\n:alt: \\1\n"
        f":class: {width}-screens only-{scheme}\n```"
        for width in ("wide", "narrow")
        for scheme in ("light", "dark")
    ),
    rf'<img src="{IMAGES}/(\S+)" .*alt="(.*)">': "```{image} images/\\1\n:alt: \\2\n```",
    rf"\({REPOSITORY}/blob/main/docs/(\S+?)\)": r"(\1)",
    rf"\({REPOSITORY}/blob/main/examples/(\S+?)\.py\)": r"(gallery/\1.rst)",
}


def fill_first_page(app: Sphinx, page: str, source: list[str]) -> None:
    """Put the README into the first page."""
    if page == "index":
        text = (ROOT / "README.md").read_text("utf-8")
        for pattern, replacement in REWRITES.items():
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        source[0] = source[0].replace(PLACE, text)
        app.env.note_dependency(str(ROOT / "README.md"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the handler."""
    app.connect("source-read", fill_first_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
