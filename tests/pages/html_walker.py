"""A parser of HTML pages for tests, and what every page has to fulfil."""

import re
from html.parser import HTMLParser
from itertools import pairwise

VOID = {"meta", "br", "col", "hr", "img", "link", "input"}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></svg></table></title>-->",
    "{{ 7 * 7 }}{% raw %}",
    "' onclick='x",
    "&lt;b&gt; &amp;",
]
"""Names that would be markup if they were not escaped."""


class Walker(HTMLParser):
    """Parse a page, check that all tags are closed in order, and keep its texts and tags."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, self.getpos()

    def handle_data(self, text):
        if self.open and self.open[-1] != "style":
            self.texts.append(text)

    @property
    def text(self):
        return re.sub(r"\s+", " ", "".join(self.texts))

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def check_self_contained(page, *, has_script=False):
    """Nothing is loaded from elsewhere, and nothing runs but a script that the policy names."""
    tags = Walker(page).tags
    allowed = {"script"} if has_script else set()
    assert not {tag for tag, _ in tags} & {"script", "link", "iframe", "object"} - allowed
    assert has_script == ("script-src 'sha256-" in page)
    assert all(a["src"].startswith("data:image/") for _, a in tags if "src" in a)
    # The letters of an image may be any.
    rest = re.sub(r'(src|href)="data:image/[a-z]+;base64,[^"]*"', "", page)
    assert not re.search(r"https?:|//[a-z]|url\((?!#)|@import|src=", rest)
    assert all(not key.startswith("on") for _, attributes in tags for key in attributes)
    targets = [a["href"] for _, a in tags if "href" in a]
    assert all(href.startswith(("#", "data:image/png;base64,")) for href in targets)
    assert "default-src 'none'" in page


def check_accessible(page):
    """Tables and charts have names for a screen reader, and headings skip no level."""
    assert len(page.all("caption")) == len(page.all("table")) > 0
    assert all("scope" in th for th in page.all("th"))
    scrolled = [div for div in page.all("div") if div.get("class") == "scroll"]
    assert all(div["aria-label"] for div in scrolled)
    assert all(image["alt"] for image in page.all("img"))
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(headings))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {section["aria-labelledby"] for section in page.all("section")} <= set(ids)


def check_same_markup(page, plain):
    """A page with hostile names has the tags and attributes of one with plain names."""
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert [sorted(a) for _, a in page.tags] == [sorted(a) for _, a in plain.tags]
