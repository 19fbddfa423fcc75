"""Links between the pages and the reference.

A name in code font, such as `kemeny`, `rs.kemeny(votes)`, `Rankings.from_pairs` or `rankshot rank`,
is a link to its entry. The page of an entry lists the pages of the guide that use it.
"""

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from command_reference import list_command_places
from docutils import nodes
from reference import list_members, public_names
from sphinx.addnodes import desc
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

import rankshot

READERS_PAGES = ("guide/", "paper")
"""Pages that are listed on the pages of the names that they use."""
NAME = re.compile(r"(?:rankshot\.|rs\.)?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?=\(|$)")
IN_CODE = re.compile(r"\brs\.((?:[a-z_]+\.)*\w+)|from rankshot[\w.]* import \(?([\w, \n]+)")
OPTION = re.compile(r"(?:^| )-")
COMMAND = re.compile(r"\brankshot ([a-z]+(?: [a-z]+)*)")
UNLINKED = (desc, nodes.reference, nodes.title, nodes.rubric)
"""A docstring says itself what is a link."""


def spell_names(names: dict[str, Any]) -> dict[str, str]:
    """Return the full name for each way to write a name.

    The name of a package may be left out where no other name is the same. A plain word, such as
    `accuracy`, must be at the top of the package or be written as a call.
    """
    members = [
        f"{name}.{member}"
        for name, found in names.items()
        if inspect.isclass(found)
        for found_members in list_members(found).values()
        for member in found_members
    ]
    spellings = defaultdict(set)
    for name, first in (*((name, 1) for name in names), *((name, 2) for name in members)):
        parts = name.split(".")[1:]
        for start in range(len(parts) - first + 1):
            spellings[".".join(parts[start:])].add(name)
    found = {short: min(full) for short, full in spellings.items() if len(full) == 1}
    return found | {name.removeprefix("rankshot."): name for name in (*names, *members)}


class Links:
    """What code font leads to: full names of the reference, and places of commands."""

    def __init__(self) -> None:
        self.names = spell_names(public_names())
        self.commands = list_command_places()
        self.top = set(rankshot.__all__)

    def find(self, text: str) -> str | None:
        """Return the full name or the place of the command that a text in code font stands for."""
        if command := COMMAND.match(text):
            return self.find_command(command[1])
        match = NAME.match(text)
        if match is None:
            return None
        short, is_call = match[1], match.end() < len(text)
        if re.fullmatch("[a-z]+", text) and short not in self.top and not is_call:
            return None
        owner = short.rpartition(".")[0]
        # An attribute has no entry of its own: its class has it.
        is_class = owner.rpartition(".")[2][:1].isupper()
        return self.names.get(short) or (self.names.get(owner) if is_class else None)

    def find_command(self, words: str) -> str | None:
        """Return the place of the longest command that the words begin with."""
        parts = words.split()
        paths = (" ".join(parts[:length]) for length in range(len(parts), 0, -1))
        return next((self.commands[path] for path in paths if path in self.commands), None)

    def find_in_code(self, text: str) -> Iterator[str]:
        """Yield what a block of code uses."""
        for dotted, imported in IN_CODE.findall(text):
            shorts = [dotted] if dotted else re.findall(r"\w+", imported)
            yield from (self.names[short] for short in shorts if short in self.names)
        yield from filter(None, map(self.find_command, COMMAND.findall(text)))


def find_owner(env: BuildEnvironment, target: str) -> str:
    """Return the page of a name: that of its class for a method."""
    found = env.domains.python_domain.objects.get(target)
    return found.docname if found else target.partition("#")[0]


def collect_uses(app: Sphinx, doctree: nodes.document) -> None:
    """Note which names a page of the guide uses."""
    page, links = app.env.docname, app.rankshot_links
    if page.startswith(READERS_PAGES):
        found = [links.find(node.astext()) for node in doctree.findall(nodes.literal)]
        for block in doctree.findall(nodes.literal_block):
            found += links.find_in_code(block.astext())
        _uses(app.env)[page] = Counter(filter(None, found))


def _uses(env: BuildEnvironment) -> dict[str, Counter[str]]:
    if not hasattr(env, "rankshot_uses"):
        env.rankshot_uses = {}
    return env.rankshot_uses


def invert_uses(env: BuildEnvironment) -> dict[str, list[str]]:
    """Return for each page of the reference the pages that use it, the most frequent user first."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for page, uses in _uses(env).items():
        for target, count in uses.items():
            counts[find_owner(env, target)][page] += count
    return {
        target: sorted(pages, key=lambda page: (-pages[page], page))
        for target, pages in counts.items()
    }


def note_changed_uses(_app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return the pages of the reference to write again, since other pages use them now."""
    before, now = getattr(env, "rankshot_users", {}), invert_uses(env)
    env.rankshot_users = now
    changed = {page for page in {*before, *now} if before.get(page) != now.get(page)}
    return sorted(changed & env.found_docs)


def forget_page(_app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Forget the uses of a page that has changed or vanished."""
    _uses(env).pop(page, None)


def merge_pages(_app: Sphinx, env: BuildEnvironment, pages: set[str], other: Any) -> None:
    """Take over what another process has read."""
    _uses(env).update({page: uses for page, uses in _uses(other).items() if page in pages})


def insert_links(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Make names in code font links, and list users on the page of a name."""
    for literal in list(doctree.findall(nodes.literal)):
        if OPTION.search(literal.astext()):
            literal["classes"].append("option")
        link_literal(app, literal, page)
    if users := app.env.rankshot_users.get(page):
        insert_users(app, doctree, page, users)


def link_literal(app: Sphinx, literal: nodes.literal, page: str) -> None:
    """Put a link around a name in code font."""
    parent = literal.parent
    while parent is not None and not isinstance(parent, UNLINKED):
        parent = parent.parent
    target = app.rankshot_links.find(literal.astext())
    if parent is not None or target is None:
        return
    found = app.env.domains.python_domain.objects.get(target)
    to, _, place = (
        f"{found.docname}#{found.node_id}".partition("#") if found else target.partition("#")
    )
    if to != page and to in app.env.found_docs:
        link = make_refnode(app.builder, page, to, place, literal.deepcopy())
        literal.replace_self(link)


def insert_users(app: Sphinx, doctree: nodes.document, page: str, users: list[str]) -> None:
    """Add the list of users: before the examples of the gallery, or at the end."""
    items = []
    for user in users:
        title = app.env.titles[user].astext()
        link = make_refnode(app.builder, page, user, "", nodes.Text(title))
        items.append(nodes.list_item("", nodes.paragraph("", "", link)))
    section = next(doctree.findall(nodes.section))
    parts = [nodes.rubric("", "In the guide"), nodes.bullet_list("", *items, classes=["users"])]
    inner = (place for place, node in enumerate(section) if isinstance(node, nodes.section))
    place = next(inner, len(section)) if "generated" in page else len(section)
    section[place:place] = parts


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the links."""
    app.rankshot_links = Links()
    app.connect("doctree-read", collect_uses)
    app.connect("env-purge-doc", forget_page)
    app.connect("env-merge-info", merge_pages)
    app.connect("env-updated", note_changed_uses)
    app.connect("doctree-resolved", insert_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
