"""A real browser for tests of pages."""

import os
import shutil
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

HOST = "127.0.0.1"
PHONE = {"width": 360, "height": 740}
NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def launch_chromium():
    """Launch the system's Chromium; skips where it, or what drives it, is absent."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="pip install playwright, to test in a browser"
    )
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    # Chromium's sandbox does not run as root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=options)
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """What goes wrong unseen: errors of scripts, of the policy, and requests to other hosts."""

    def __init__(self, context):
        self.wrong = []
        context.on("console", self._console)
        context.on("weberror", lambda error: self.wrong.append(str(error.error)))
        context.on("request", self._request)

    def _console(self, message):
        where = message.location["url"]
        # Pages of errors are expected where they are asked for; style and scripts always load.
        is_page = "Failed to load resource" in message.text and "/static/" not in where
        is_page |= "ERR_INTERNET_DISCONNECTED" in message.text
        if message.type in {"error", "warning"} and not is_page:
            self.wrong.append(f"{message.text} ({where})")

    def _request(self, request):
        if urlsplit(request.url).hostname != HOST:
            self.wrong.append(f"a request to {request.url}")


@contextmanager
def opening_pages(browser):
    """Yield a function that opens a page in a new context; nothing may go wrong in any."""
    contexts = []

    def open_new_page(**options):
        settings = {"viewport": PHONE, "reduced_motion": "reduce", **options}
        context = browser.new_context(**settings)
        context.set_default_timeout(120_000)
        contexts.append((context, Watch(context)))
        return context.new_page()

    yield open_new_page
    wrong = [problem for _, watch in contexts for problem in watch.wrong]
    for context, _ in contexts:
        context.close()
    assert wrong == []
