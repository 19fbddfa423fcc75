"""How Sphinx builds the site: make docs."""

import gc
import os
import re
import sys
import tomllib
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.writers.html5 import HTML5Translator

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from page_metadata import link_code as linkcode_resolve  # noqa: F401

# To search all pages for garbage and to stem each word on each page again takes long.
gc.set_threshold(100_000, 50)
SearchEnglish.stem = cache(SearchEnglish.stem)

project = "rankshot"
author = "The rankshot developers"
project_copyright = f"{datetime.now(UTC).year}, {author}"
version = release = installed_version("rankshot")
ROOT = Path(__file__).resolve().parents[1]
pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
urls = pyproject["project"]["urls"]

extensions = [
    "myst_parser",
    "command_reference",
    "first_page",
    "name_links",
    "numpydoc",
    "page_metadata",
    "reference",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
# Of the tables of measurements, these are pages; the others are read in the repository.
RESULTS = {"accuracies", "claims", "defaults"}
exclude_patterns = ["_build"] + [
    f"results/{path.name}"
    for path in Path(__file__).parent.glob("results/*.md")
    if path.stem not in RESULTS
]
templates_path = ["_templates"]

# ---- Pages in Markdown

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
# Links to headings, as on code hosts: page.md#a-heading.
myst_heading_anchors = 4
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# ---- Reference

# By name: Sphinx would not look into a page that is new since the last build.
autosummary_generate = [f"api/{page.name}" for page in Path(__file__).parent.glob("api/*.md")]
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
# A name between single backticks in a docstring is a link, if the reference has it.
default_role = "py:obj"
toc_object_entries_show_parents = "hide"
# Quotes and hyphens of code stay as they are: {"mean", "sum"}, --k.
smartquotes = False

# ---- Gallery

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "reset_modules": ("matplotlib", "gallery_style.use_plot_style"),
    "show_memory": False,
    # That page loads scripts from another host.
    "write_computation_times": False,
    # The times are those of a busy machine.
    "min_reported_time": 10_000,
    # Axes are seen; their name below the plot says nothing.
    "ignore_repr_types": "matplotlib",
    "download_all_examples": False,
    "backreferences_dir": "api/generated/backreferences",
    "doc_module": ("rankshot",),
    # Names in the code of an example are links to the reference.
    "reference_url": {"rankshot": None},
    "parallel": 2,
}
# An example that warns fails. It runs in another process, which reads this, and finds the style.
os.environ["PYTHONWARNINGS"] = "error:::__main__"
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent / "_extensions"), os.environ.get("PYTHONPATH", "")]
)

# ---- Look: all fonts and scripts are local

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "rankshot"
html_logo = html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
# The first page has nothing to list beside it.
html_sidebars = {"index": []}
html_css_files = ["site.css"]
html_show_sourcelink = False
html_search_scorer = str(Path(__file__).parent / "_static" / "search_scorer.js")
html_theme_options = {
    "logo": {"text": f"rankshot {version}"},
    "icon_links": [
        {"name": "Repository", "url": urls["Repository"], "icon": "fa-brands fa-github"},
        {"name": "Issues", "url": urls["Issues"], "icon": "fa-regular fa-circle-dot"},
        {"name": "Package", "url": urls["Package"], "icon": "fa-brands fa-python"},
    ],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


# ---- Formulas as MathML, which browsers draw without a script


def write_inline_math(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula inside a sentence."""
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def write_block_math(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


# ---- Links to files that are not pages


def link_to_repository(app: Sphinx, page: str, source: list[str]) -> None:
    """Let links to Markdown files that are not pages lead to the repository."""
    folder = Path(app.srcdir, page).parent

    def replace(match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        inside = path.is_relative_to(app.srcdir)
        name = path.relative_to(app.srcdir).with_suffix("").as_posix() if inside else ""
        if name in app.project.docnames or not path.is_file():
            return match[0]
        return (
            f"]({urls['Repository']}/blob/main/{path.relative_to(ROOT).as_posix()}{match[2] or ''})"
        )

    source[0] = re.sub(r"\]\((?!https?:)([^)#\s]+\.md)(#[^)\s]*)?\)", replace, source[0])


def setup(app: Sphinx) -> None:
    """Register the writers of formulas."""
    app.connect("source-read", link_to_repository)
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(write_inline_math, None),
        block_renderers=(write_block_math, None),
    )
