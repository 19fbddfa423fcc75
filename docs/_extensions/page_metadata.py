"""What search engines and social media show of a page, links to its source, and unrun code.

The description of a page is its first paragraph. All pages share one preview image. The pages of
the guide link to their file, and examples to their program; names of the reference link to their
code.
"""

import inspect
import sys
import tomllib
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]
RAW = REPOSITORY.replace("github.com", "raw.githubusercontent.com")
PREVIEW = f"{RAW}/main/docs/images/preview.jpg"
MOST_LETTERS = 160
"""Longer descriptions are cut by search engines."""


def describe_page(doctree: nodes.document | None) -> str:
    """Return the beginning of the first paragraph of a page, in whole sentences if possible."""
    first = next(iter(doctree.findall(nodes.paragraph)), None) if doctree is not None else None
    text = " ".join(first.astext().split()) if first is not None else PROJECT["description"]
    if len(text) <= MOST_LETTERS:
        return text
    sentence = text[:MOST_LETTERS].rpartition(". ")[0]
    return f"{sentence}." if sentence else text[:MOST_LETTERS].rpartition(" ")[0] + " …"


def find_source(page: str) -> str | None:
    """Return the file of a page, from the root of the repository; generated pages have none."""
    names = (f"docs/{page}.md", f"examples/{page.removeprefix('gallery/')}.py")
    return next((name for name in names if (ROOT / name).is_file()), None)


def add_metadata(
    app: Sphinx, page: str, _: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add the description, the preview and the link to the source."""
    description = describe_page(doctree)
    title = context.get("title") or app.config.project
    values = {
        'name="description"': description,
        'property="og:type"': "website",
        'property="og:site_name"': app.config.project,
        'property="og:title"': title,
        'property="og:description"': description,
        'property="og:image"': PREVIEW,
        'name="twitter:card"': "summary_large_image",
    }
    context["metatags"] = context.get("metatags", "") + "".join(
        f'\n<meta {name} content="{escape(str(value))}">' for name, value in values.items()
    )
    source = find_source(page)
    context["theme_use_edit_page_button"] = source is not None
    # The theme asks for a template with `file_name`, which would be wrong for examples.
    context["edit_page_provider_name"] = "GitHub"
    context["edit_page_url_template"] = f"{REPOSITORY}/edit/main/{source}{{# file_name #}}"


def mark_unrun(_: Sphinx, doctree: nodes.document) -> None:
    """Mark the blocks of code that the tests do not run, so that readers see the difference."""
    for comment in doctree.findall(nodes.raw):
        code = comment.next_node(siblings=True, descend=False)
        if comment.astext().startswith("<!-- not run") and isinstance(code, nodes.literal_block):
            code["classes"].append("not-run")


def link_code(domain: str, info: dict[str, str]) -> str | None:
    """Return the lines that define a name of the reference."""
    if domain != "py" or info["module"] not in sys.modules:
        return None
    found: Any = sys.modules[info["module"]]
    try:
        for part in info["fullname"].split("."):
            found = getattr(found, part)
        found = inspect.unwrap(found.fget if isinstance(found, property) else found)
        lines, start = inspect.getsourcelines(found)
        path = Path(inspect.getsourcefile(found) or "").relative_to(ROOT)
    except (AttributeError, OSError, TypeError, ValueError):
        # A constant, an attribute of an instance, or something of another package.
        return None
    return f"{REPOSITORY}/blob/main/{path.as_posix()}#L{start}-L{start + len(lines) - 1}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the handler; before that of the theme, which leaves out empty parts."""
    app.connect("doctree-read", mark_unrun)
    app.connect("html-page-context", add_metadata, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
