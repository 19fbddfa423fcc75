"""The built site: links lead somewhere, no other host is needed, and it fits on a phone."""

import re
from functools import cache
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from chromium import launch_chromium

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
pytestmark = pytest.mark.skipif(
    not (SITE / "index.html").exists(), reason="the site is not built: make docs"
)
WIDTHS = {"phone": 375, "desktop": 1280}


class Page(HTMLParser):
    """The links of a page, what it loads, and the places that can be linked to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids.add(values.get("id"))
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in {"script", "img", "iframe", "source", "video"} and values.get("src"):
            self.loaded.append(values["src"])
        if tag == "link" and values.get("rel") not in {"canonical", "index", "search"}:
            self.loaded.append(values["href"])


read_page = cache(Page)


def all_pages():
    return sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)


def written_pages():
    """All pages apart from those that are made from docstrings, which have one template."""
    return [path for path in all_pages() if "generated" not in path.parts]


def is_outside(link):
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def find_target(page, link):
    """Return the file that a link of a page leads to, and the place in it."""
    parts = urlsplit(link)
    return find_file(page.parent, parts.path) if parts.path else page, parts.fragment


@cache
def find_file(folder, path):
    """Return the file at a path of a link: most links are on many pages."""
    return Path(normpath(folder / unquote(path)))


exists = cache(Path.exists)


def test_every_link_inside_leads_somewhere():
    broken = []
    for page in all_pages():
        for link in {*read_page(page).links, *read_page(page).loaded}:
            if is_outside(link):
                continue
            path, place = find_target(page, link)
            known = path.suffix != ".html" or (exists(path) and place in read_page(path).ids)
            if not exists(path) or not known:
                broken.append(f"{page.relative_to(SITE)}: {link}")
    assert broken == []


def test_no_other_host_is_needed():
    outside = [
        f"{page.relative_to(SITE)}: {link}"
        for page in all_pages()
        for link in read_page(page).loaded
        if is_outside(link) and not link.startswith("data:")
    ]
    assert outside == []
    for style in SITE.rglob("*.css"):
        text = style.read_text(encoding="utf-8", errors="replace")
        assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)]{0,80}", text), style


@pytest.fixture(scope="module")
def chromium():
    with launch_chromium() as browser:
        yield browser


def find_wide_pages(chromium, pages, width, scheme):
    """Return the pages that scroll sideways, or that wrote an error to the console."""
    context = chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True
    )
    tab = context.new_page()
    wrong = []
    tab.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    for page in pages:
        tab.goto(page.as_uri(), wait_until="load")
        # `overflow: hidden` would hide what is too wide, so the width itself is compared.
        too_wide = tab.evaluate("document.documentElement.scrollWidth > innerWidth")
        if too_wide:
            wrong.append(f"{page.relative_to(SITE)} is wider than {width}")
    context.close()
    return wrong


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_no_page_scrolls_sideways(chromium, width, step):
    generated = sorted(SITE.glob("api/generated/*.html"))[::25]
    pages = [*written_pages(), *generated][::step]
    assert find_wide_pages(chromium, pages, width, "light") == []
    # The colours do not change the width: the dark pages are a sample.
    assert find_wide_pages(chromium, pages[::8], width, "dark") == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("elo", "guide/leaderboards"),
        ("NA", "guide/rankings"),
        ("long format", "guide/rankings"),
        ("huggingface", "guide/deploy"),
        ("label studio", "guide/deploy"),
        ("license", "project/index"),
        ("ollama", "guide/names"),
        ("pytorch", "guide/classifier"),
        ("recognize", "api/recognition"),
        ("windows", "guide/troubleshooting"),
    ],
)
def test_search_finds_the_page_that_answers(chromium, words, page):
    tab = chromium.new_context(offline=True).new_page()
    tab.goto((SITE / "search.html").as_uri() + f"?q={words.replace(' ', '+')}")
    # Results appear one by one, the best first.
    tab.wait_for_selector(f"#search-results li > a[href*='{page}.html']", timeout=300_000)
    links = tab.eval_on_selector_all("#search-results li > a", "all => all.map(a => a.href)")
    assert any(f"/{page}.html" in link for link in links[:5])
