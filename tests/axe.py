"""Hold a page to WCAG 2.2 AA, as far as a machine can tell."""

from pathlib import Path

import pytest

WIDTHS = (360, 1280)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# What a reader may set, by success criterion 1.4.12.
SPACING = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(`* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
    word-spacing: 0.16em !important } p { margin-bottom: 2em !important }`);
  document.adoptedStyleSheets = [sheet];
}"""
TOO_WIDE = """() => {
  const { scrollWidth } = document.documentElement;
  return scrollWidth > innerWidth ? `${scrollWidth} wide` : '';
}"""
AXE = """rules => axe
  .run(document, { runOnly: { type: 'tag', values: rules }, resultTypes: ['violations'] })
  .then(({ passes, violations }) => ({
    passed: passes.map(rule => rule.id),
    violated: violations.map(rule => [rule.id, rule.nodes.map(node => node.html)]),
  }))"""


def load_axe(page):
    """Put axe-core into a page."""
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is absent")
    page.evaluate((Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))


def violations(page):
    """Return what axe-core finds, once it is sure that it looked."""
    found = page.evaluate(AXE, RULES)
    assert {"color-contrast", "document-title"} <= set(found["passed"])
    return found["violated"]


def check(page):
    """Hold a page to the rules: light and dark, on a phone and a desktop, enlarged and spaced."""
    __tracebackhide__ = True
    page.wait_for_load_state("load")
    before = page.viewport_size
    load_axe(page)
    # Colours do not depend on the width, nor sizes on the colours: two of four combinations do.
    for scheme, width in zip(("light", "dark"), WIDTHS, strict=True):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 740})
        assert violations(page) == [], f"{page.title()}, {scheme}, {width} pixels"
    # 1280 pixels at 400 %, which is what success criterion 1.4.10 asks for.
    page.set_viewport_size({"width": 320, "height": 256})
    assert page.evaluate(TOO_WIDE) == "", page.title()
    page.evaluate(SPACING)
    assert page.evaluate(TOO_WIDE) == "", page.title()
    page.evaluate("document.adoptedStyleSheets = []")
    page.set_viewport_size(before)
