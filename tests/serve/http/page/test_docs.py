"""The API's own page at `/docs`, in a real Chromium."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.serve.http.page.conftest import SAID, page_of
from tests.serve.service import SmallService

pytestmark = [pytest.mark.browser, pytest.mark.nightly]


def test_the_api_can_be_tried_from_its_documents_page_with_a_key(
    browser: Browser, service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"alice:{'k' * 32}")
    with page_of(browser, service) as page:
        page.goto(f"{page.url}docs")
        expect(page.get_by_role("heading", name="CiteRay")).to_be_visible()
        answer = page.locator(".opblock", has_text="/v1/answer")
        answer.get_by_role("button", name="/v1/answer").first.click()
        answer.get_by_role("button", name="Try it out").click()
        answer.get_by_role("textbox").first.fill('{"question": "Does metformin activate AMPK?"}')
        answer.get_by_role("button", name="Execute").click()
        reply = answer.locator(".live-responses-table")
        expect(reply).to_contain_text("401")
        page.get_by_role("button", name="Authorize").first.click()
        dialog = page.locator(".dialog-ux")
        dialog.get_by_role("textbox").fill("k" * 32)
        dialog.get_by_role("button", name="Apply credentials").click()
        dialog.get_by_role("button", name="Close").last.click()
        page.get_by_role("button", name="Execute").click()
        expect(reply).to_contain_text(SAID)
