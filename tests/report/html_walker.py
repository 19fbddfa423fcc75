"""A page of HTML, walked through and checked for tags that do not close."""

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "col", "hr", "img", "link", "input"}


class Walker(HTMLParser):
    """Walks a page: every tag must be closed, in order, and its texts and tags are kept."""

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
