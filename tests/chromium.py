"""Chromium for the tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
QUIET = ("gpu", "background-networking", "component-update", "sync", "quic")

# A busy machine may need longer than Playwright's default of 5 s to update a page.
expect.set_options(timeout=30_000)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Yield a browser; skip the test if Chromium is not installed."""
    if CHROMIUM is None:
        pytest.skip("no chromium on PATH; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in QUIET)]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()
