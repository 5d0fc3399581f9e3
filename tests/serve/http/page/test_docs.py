"""The API's own page at `/docs`, in a real Chromium."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.serve.http.page.conftest import SAID, watched
from tests.serve.http_server import serving
from tests.serve.service import SmallService

pytestmark = [pytest.mark.browser, pytest.mark.nightly]


def ask(page: Page, url: str) -> Locator:
    """What the documents page shows of the reply to a question asked from it."""
    page.goto(f"{url}/docs")
    expect(page.get_by_role("heading", name="CiteRay")).to_be_visible()
    answer = page.locator(".opblock", has_text="/v1/answer")
    answer.get_by_role("button", name="/v1/answer").first.click()
    answer.get_by_role("button", name="Try it out").click()
    answer.get_by_role("textbox").first.fill('{"question": "Does metformin activate AMPK?"}')
    answer.get_by_role("button", name="Execute").click()
    return answer.locator(".live-responses-table")


def test_the_api_can_be_tried_from_its_documents_page(browser: Browser, url: str) -> None:
    with watched(browser.new_context(), url) as page:
        expect(ask(page, url)).to_contain_text(SAID)


def test_a_key_is_given_by_the_documents_page(
    browser: Browser, service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"alice:{'k' * 32}")
    with serving(create_api(service, load_settings().serve)) as port:
        url = f"http://127.0.0.1:{port}"
        with watched(browser.new_context(), url) as page:
            reply = ask(page, url)
            expect(reply).to_contain_text("401")
            page.get_by_role("button", name="Authorize").first.click()
            dialog = page.locator(".dialog-ux")
            dialog.get_by_role("textbox").fill("k" * 32)
            dialog.get_by_role("button", name="Apply credentials").click()
            dialog.get_by_role("button", name="Close").last.click()
            page.get_by_role("button", name="Execute").click()
            expect(reply).to_contain_text(SAID)
