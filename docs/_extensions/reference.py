"""The reference: which names are public, what the page of a class lists, links in docstrings."""

import importlib
import inspect
import re
from collections import Counter
from functools import cached_property
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from docutils import nodes
from numpydoc import docscrape_sphinx
from numpydoc.xref import DEFAULT_LINKS
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import rankshot

# The command has a page of its own, and nothing in web and review is public.
FLOORS = [
    found.name
    for found in iter_modules(rankshot.__path__)
    if found.name not in {"cli", "core", "review", "web"}
]
# scikit-learn's own affairs: they are in its documentation.
HIDDEN = re.compile(r"_|get_metadata_routing$|set_\w+_request$")
# In the order in which the example draws them.
PLOTS = ("rankings", "leaderboard", "reliability", "comparison")
IMAGE = "/gallery/rankings/images/sphx_glr_04_all_plots_{:03}.png"
SHORT_NAME = re.compile(r"(?:rankshot\.)?([A-Za-z_]\w*(?:\.\w+)*)$")


def public_names() -> dict[str, Any]:
    """Return every public object by the name that users write, such as ``rankshot.kemeny``.

    An object that is public at the top and in its package has its shorter name.
    """
    names: dict[int, tuple[str, Any]] = {}
    for package in ("rankshot", *(f"rankshot.{floor}" for floor in FLOORS)):
        for module in (importlib.import_module(package), *_public_modules(package)):
            for name in module.__all__:
                found = getattr(module, name)
                if not isinstance(found, ModuleType):
                    names.setdefault(id(found), (f"{module.__name__}.{name}", found))
    return dict(names.values())


def _public_modules(package: str) -> list[ModuleType]:
    module = importlib.import_module(package)
    values = (getattr(module, name) for name in module.__all__)
    return [value for value in values if isinstance(value, ModuleType)]


def list_members(public_class: type) -> dict[str, list[str]]:
    """Return the public methods and properties of a class, inherited ones included, by name.

    Fields of data classes and named tuples are not among them: the docstring of the class lists
    them.
    """
    members: dict[str, list[str]] = {"methods": [], "properties": []}
    of_builtins = set(dir(tuple)) | set(dir(Exception))
    for name in dir(public_class):
        if HIDDEN.match(name) or name in of_builtins:
            continue
        found = inspect.getattr_static(public_class, name)
        if isinstance(found, property | cached_property):
            members["properties"].append(name)
        elif inspect.isroutine(getattr(public_class, name, None)):
            members["methods"].append(name)
    return members


def alias_classes(names: dict[str, Any]) -> dict[str, str]:
    """Return what the short name of each class links to.

    With a dot in front, Sphinx takes the class of the package whose docstring has the name.
    """
    classes = [name for name, found in names.items() if inspect.isclass(found)]
    shared = Counter(name.rpartition(".")[2] for name in classes)
    return {
        short: name if shared[short] == 1 else f".{short}"
        for name in classes
        for short in [name.rpartition(".")[2]]
    }


def link_short_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Element | None:
    """Link `Rankings.select` in a docstring of any package to ``rankshot.Rankings.select``.

    A name of several packages that is not at the top is left without a link.
    """
    match = SHORT_NAME.match(node.get("reftarget", ""))
    if node.get("refdomain") != "py" or match is None:
        return None
    python = env.domains.python_domain
    top = f"rankshot.{match[1]}"
    names = [top, *(f"rankshot.{floor}.{match[1]}" for floor in FLOORS)]
    found = [name for name in names if name in python.objects]
    if top not in found and len(found) != 1:
        return None
    return python.resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, content)


def remove_old_pages(app: Sphinx) -> None:
    """Remove the pages of names that are no longer public: Sphinx keeps what it generated."""
    pages = app.config.autosummary_filename_map
    kept = {pages.get(name, name) for name in public_names()}
    for path in (app.srcdir / "api" / "generated").glob("rankshot.*.rst"):
        if path.stem not in kept:
            path.unlink()


def share_template() -> None:
    """Let numpydoc compile its template once, and not for each docstring."""
    make, made = docscrape_sphinx.SandboxedEnvironment, []

    def share(loader: Any) -> Any:
        if not made:
            made.append(make(loader=loader))
        return made[0]

    docscrape_sphinx.SandboxedEnvironment = share


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what the reference needs."""
    share_template()
    names = public_names()
    app.config.autosummary_context = {
        "class_members": {
            name: list_members(found) for name, found in names.items() if inspect.isclass(found)
        },
        "plots": {
            f"rankshot.pages.plot_{name}": IMAGE.format(number)
            for number, name in enumerate(PLOTS, start=1)
        },
    }
    # Some names differ from others in capitals only, which not every file system tells apart.
    app.config.autosummary_filename_map = {
        name: f"{name}-function"
        for name in names
        if name[name.rfind(".") + 1].islower()
        and name.lower() in {other.lower() for other in names if other != name}
    }
    # Types of parameters are links if they are ours.
    app.config.numpydoc_xref_ignore = "all"
    app.config.numpydoc_xref_aliases = {word: word for word in DEFAULT_LINKS} | alias_classes(names)
    app.add_css_file("reference.css")
    app.connect("builder-inited", remove_old_pages, priority=100)
    app.connect("missing-reference", link_short_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
