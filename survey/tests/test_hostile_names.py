"""Names that are scripts are names: shown as they are written, on every page, and exported so."""

import re
from html.parser import HTMLParser

import pytest

from asgi_client import as_researcher, begin, finish, form_of, open_survey
from rankshot_survey.study import Question
from rankshot_survey.web.pages import render_line, render_markdown
from small_studies import small_study

NAMES = (
    "<script>alert(1)</script>",
    "\"' onmouseover='alert(1)' x=\"",
    "</title></style></textarea></select><img src=x onerror=alert(1)>",
    "<!-- --><b>&lt;b&gt;&amp;amp;</b>]]>",
    "{{ 1234567*7654321 }}{% raw %}${1234567*7654321}",
    "javascript:alert(1)",
    "\u202eright to left\u202c \u200f\u2066x",
    "'; DROP TABLE question; --",
    "\\u003cscript\\u003e\\",
)
TITLE, PROMPT, CONSENT = "<script>alert('title')</script>", "<i>{target}</i>?", "<b onclick=x>A</b>"
TARGETS = ("<script>alert('target')</script>", '"><svg onload=alert(1)>')
STUDY_DONE = "https://example.org/?a=1&b=2"
STUDY = small_study(
    title=TITLE,
    prompt=PROMPT,
    consent=CONSENT,
    items=NAMES,
    questions=tuple(Question(target, NAMES) for target in TARGETS),
    questions_per_participant=2,
    completion_url=STUDY_DONE,
)


class Read(HTMLParser):
    """What a browser makes of a page: its elements, and its text as people read it."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.text = [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


OURS = """html head title meta link script body header main nav section h1 h2 h3 p br a bdi code
    em kbd span strong div dl dt dd ol ul li figure figcaption noscript template form fieldset
    legend label input select option button progress textarea table thead tbody tr th td svg path"""
OURS = set(OURS.split())


def assert_safe(name, page):
    read = Read(page)
    for tag, attributes in read.elements:
        assert tag in OURS, (name, tag)
        assert not any(key.startswith("on") or key == "style" for key in attributes), (name, tag)
        if tag == "script":
            assert re.fullmatch(r"/static/\w+\.js\?v=[0-9a-f]{8}", attributes["src"]), name
        for key in ("href", "src", "action"):
            is_done = (name, attributes.get(key)) == ("finished", STUDY_DONE)
            assert is_done or re.match(r"/|#|$", attributes.get(key, "")), (name, attributes)
    assert str(1234567 * 7654321) not in read.text, f"{name}: a template was filled in"
    return read


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Every page of the study."""
    with open_survey(STUDY, tmp_path_factory.mktemp("names")) as (client, database):
        found, researcher = {}, as_researcher(database)
        found["consent"] = client.get("/")
        home = begin(client)
        found["instructions"] = client.get(f"{home}/instructions")
        found["question"] = client.get(home)
        form = form_of(found["question"].text)
        found["no ranking"] = client.post(form.action, form.answer("1", "1"))
        found["no place"] = client.post(form.action, form.answer("99"))
        everything = [str(i + 1) for i in range(len(NAMES))]
        assert client.post(form.action, form.answer(*everything)).status == 303
        found["answered"] = client.post(form.action, form.answer("1"))
        finish(client, home)
        found["finished"] = client.get(home)
        found["message"] = client.get("/nowhere")
        found["login"] = client.get("/researcher")
        found["researcher"] = client.get("/researcher", researcher)
        yield found


def display_name(name):
    """Return a name as participants read it: without underscores."""
    return name.replace("_", " ")


def test_no_page_has_an_element_that_is_not_ours(pages):
    for name, reply in pages.items():
        read = assert_safe(name, reply.text)
        assert TITLE in read.text, name
        assert f"<p>{TITLE}" not in reply.text


def test_names_are_read_as_they_were_written(pages):
    for page in ("question", "no ranking", "no place", "answered"):
        read = Read(pages[page].text)
        assert all(display_name(name) in read.text for name in NAMES), page
    assert any(PROMPT.replace("{target}", t) in Read(pages["question"].text).text for t in TARGETS)
    assert CONSENT in Read(pages["consent"].text).text
    read = Read(pages["researcher"].text)
    assert all(name in read.text for name in (*NAMES, *TARGETS))
    labels = [a.get("data-name") for tag, a in Read(pages["question"].text).elements]
    assert sorted(filter(None, labels)) == sorted(map(display_name, NAMES))


# ---- Markdown of consent and instructions: a safe subset, whatever is written

MARKDOWN = {"p", "ul", "ol", "li", "em", "strong", "a"}


def assert_plain(text):
    for tag, attributes in Read(text).elements:
        assert tag in MARKDOWN, text
        if tag == "a":
            assert set(attributes) - {"title"} == {"href", "target", "rel"}
            assert attributes["href"].lower().startswith(("https://", "mailto:"))
            assert (attributes["target"], attributes["rel"]) == ("_blank", "noopener noreferrer")
        else:
            assert set(attributes) <= {"start"}


def test_what_may_be_written():
    shown = render_markdown(
        "One *two* **three**.\n\n- a\n  1. c\n\n[page](https://e.org) <a@b.org>"
    )
    assert_plain(shown)
    assert "<p>One <em>two</em> <strong>three</strong>.</p>" in shown
    assert "<ol>\n<li>c</li>\n</ol>" in shown
    assert 'href="https://e.org" target="_blank" rel="noopener noreferrer"' in shown
    assert 'href="mailto:a@b.org"' in shown


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "</div></main><form action='https://example.org'>",
        "<!-- a --><![CDATA[ <b>b</b> ]]><?php ?>",
        "[a](javascript:alert(1))",
        "[a](&#x6A;avascript&colon;alert(1))",
        "[a](http://example.org)",
        '[a]( https://example.org" onclick="alert(1))',
        "![a](https://example.org/a.png)",
        "<javascript:alert(1)>",
        '<https://example.org/"onclick=alert(1)>',
        "a\x0bb\u2028c\u202ed",
    ],
)
def test_hostile_texts_become_text(text):
    assert_plain(render_markdown(text))
    assert_plain(render_line(text.replace("\n", " ")))
