"""Consent and instructions: a safe subset of Markdown, whatever is written."""

import re
import time
from html.parser import HTMLParser

import pytest
from asgi_client import Client, begin, open_survey
from small_studies import small_study

from rankshot.survey.validation import CONSENT_LENGTH
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


def test_text_without_marks_looks_as_written():
    for text in (
        "a & b < c > d \"e\" 'f'",
        "&amp; &lt;b&gt;",
        "# 1",
        "> 2",
        "a `b` c",
        "x_y_z 2*3",
    ):
        parser = HTMLParser()
        shown = []
        parser.handle_data = shown.append
        parser.feed(render_markdown(text))
        assert "".join(shown).strip() == text


def test_the_paragraphs_of_a_plain_consent_stay():
    text = "First line,\nsame paragraph.\n\n  Second: a@b.org\n\n\n\nThird."
    paragraphs = re.findall("<p>(.*?)</p>", render_markdown(text), re.DOTALL)
    old = [paragraph.strip() for paragraph in text.split("\n\n") if paragraph.strip()]
    assert paragraphs == old


@pytest.mark.parametrize(
    "piece",
    ["- ", "[", "*", "**a", "[a](", "<", "![", "_a*", "\\", "1. ", "(", "](", "*a_ ", "- a\n  "],
)
def test_long_and_deep_texts_take_little_time(piece):
    text = (piece * CONSENT_LENGTH)[:CONSENT_LENGTH]
    start = time.process_time()
    assert_safe(render_markdown(text))
    assert time.process_time() - start < 2


def test_nested_lists_stay_whole_up_to_eight_levels():
    text = "\n".join(f"{'  ' * level}- level {level}" for level in range(8))
    assert "level 7" in render_markdown(text)


def test_pages_show_it(tmp_path):
    study = small_study(
        consent="**Yes**<b>\n\n- one",
        instructions="*Think*<i>",
        contact="Ada <ada@example.org> <u>",
    )
    with open_survey(study, tmp_path) as (app, _):
        client = Client(app)
        page = client.get("/").text
        assert "<p><strong>Yes</strong>&lt;b&gt;</p>\n<ul>\n<li>one</li>\n</ul>" in page
        assert ">ada@example.org</a> &lt;u&gt;</bdi>" in page
        how = client.get(f"{begin(client)}/instructions").text
        assert "<p><em>Think</em>&lt;i&gt;</p>" in how
        for lost in ("/nowhere", "/p/" + "0" * 48, "/static/none.js"):
            assert 'href="mailto:ada@example.org"' in client.get(lost).text
