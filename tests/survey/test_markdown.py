"""Consent and instructions: a safe subset of Markdown, whatever is written."""

from html.parser import HTMLParser

import pytest

from rankshot.survey.web.pages import render_line, render_markdown

ALLOWED = {"p", "ul", "ol", "li", "em", "strong", "a"}


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    handle_startendtag = handle_starttag


def assert_safe(text):
    for tag, attributes in Tags(text).found:
        assert tag in ALLOWED, text
        if tag == "a":
            assert set(attributes) - {"title"} == {"href", "target", "rel"}
            assert attributes["href"].lower().startswith(("https://", "mailto:"))
            assert (attributes["target"], attributes["rel"]) == ("_blank", "noopener noreferrer")
        else:
            assert set(attributes) <= {"start"}


def test_what_may_be_written():
    text = (
        "One *two* **three**.\n\n- a\n- b\n  1. c\n\n[page](https://example.org/?a=1&b) <a@b.org>"
    )
    shown = render_markdown(text)
    assert_safe(shown)
    assert "<p>One <em>two</em> <strong>three</strong>.</p>" in shown
    assert "<li>a</li>" in shown
    assert "<ol>\n<li>c</li>\n</ol>" in shown
    assert (
        'href="https://example.org/?a=1&amp;b" target="_blank" rel="noopener noreferrer"' in shown
    )
    assert 'href="mailto:a@b.org"' in shown


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<a href='javascript:alert(1)'>a</a>",
        "</div></main><form action='https://example.org'>",
        "<!-- a --><![CDATA[ <b>b</b> ]]><?php ?>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](java\tscript:alert(1))",
        "[a](&#106;avascript:alert(1))",
        "[a](&#x6A;avascript&colon;alert(1))",
        "[a](data:text/html;base64,PHNjcmlwdD4=)",
        "[a](vbscript:a)",
        "[a](http://example.org)",
        "[a](//example.org)",
        "[a](/researcher)",
        "[a](#top)",
        '[a]( https://example.org" onclick="alert(1))',
        '[a](https://example.org "title\\" onclick=")',
        '[a](https://example.org"onmouseover=alert(1))',
        '[a](<https://example.org/"><b>>)',
        "![a](https://example.org/a.png)",
        "![a][b]\n\n[b]: https://example.org/a.png",
        "[a][b]\n\n[b]: javascript:alert(1)",
        "<javascript:alert(1)>",
        '<https://example.org/"onclick=alert(1)>',
        "&lt;script&gt; &amp; &#60;b&#62; &quot;",
        "# heading\n\n> quote\n\n---\n\n```\ncode\n```\n\n    code\n\n`code`",
        "| a | b |\n|---|---|\n| c | d |",
        "a\x0bb\u2028c\u202ed",
    ],
)
def test_hostile_texts_become_text(text):
    assert_safe(render_markdown(text))
    assert_safe(render_line(text.replace("\n", " ")))
