"""A real browser for tests of pages."""

import os
import shutil
from contextlib import contextmanager

import pytest

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
