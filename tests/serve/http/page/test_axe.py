"""Accessibility of every page and state by axe-core: light mode on a desktop, dark on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.serve.batches.served import Asking, served
from tests.serve.http.page.conftest import open_page, page_of
from tests.serve.http.page.test_kept_page import SAYINGS, open_tab, say
from tests.serve.http.page.test_page import QUESTION, ask, unfold
from tests.serve.service import DISPUTED, SmallService, dispute, unsure_of

pytestmark = pytest.mark.browser

axe = Axe()
LOOKS = (("light", 1280), ("dark", 390))


def check(page: Page) -> None:
    """Assert that axe-core finds no violation in either mode."""
    found: dict[str, list[str]] = {}
    for theme, width in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
        for violation in axe.run(page).response["violations"]:
            places = [node["html"][:200] for node in violation["nodes"]]
            found[f"{theme} {violation['id']}"] = places
    assert found == {}


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    with open_page(browser, url) as page:
        expect(page.locator("#system option:checked")).to_contain_text("(recommended)")
        yield page


def card(page: Page) -> None:
    expect(page.get_by_role("article", name="Answer").last).to_be_visible()


def first_screen(page: Page) -> None:
    expect(page.locator("#examples")).to_be_visible()
    page.get_by_text("Filters", exact=True).click()
    page.locator("#languages").select_option("English")
    expect(page.locator("#chips li")).to_have_count(1)


def answered(page: Page) -> None:
    ask(page)
    card(page)
    unfold(page)


def hinted(page: Page) -> None:
    ask(page)
    page.get_by_role("link", name="Reference 1").first.focus()
    expect(page.get_by_role("tooltip")).to_be_visible()


def passage(page: Page) -> None:
    ask(page)
    page.get_by_role("button", name="Read the passage of reference 1").click()
    expect(page.get_by_role("dialog").get_by_text("The whole abstract")).to_be_visible()


def refused(page: Page) -> None:
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("From year").fill("2030")
    page.get_by_label("To year").fill("2020")
    ask(page)
    expect(page.locator(".problem")).to_be_visible()


def compared(page: Page) -> None:
    page.get_by_role("tab", name="Compare").click()
    page.locator("#compare-question").fill(QUESTION)
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#compare-progress")).to_have_text("2 of 2 have answered")
    page.locator("#compare-methods > summary").click()


def conversing(page: Page) -> None:
    ask(page, f"{QUESTION} What does VKORC1 do?")
    page.get_by_label("Ask a follow-up").fill("And in the liver?")
    page.get_by_role("button", name="Follow up").click()
    page.get_by_role("button", name="Edit").click()
    page.locator("#thread summary").click()
    expect(page.locator("#thread .part")).to_have_count(2)


def corrected(page: Page) -> None:
    ask(page)
    page.get_by_role("button", name="Not right").click()
    expect(page.get_by_label("What the answer should say")).to_be_visible()


def watching(page: Page) -> None:
    ask(page)
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Watch this question").click()
    expect(page.get_by_role("button", name="Watched")).to_be_disabled()
    page.get_by_role("tab", name="Saved").click()
    page.get_by_role("button", name="Show changes and answer").first.click()
    expect(page.get_by_text("It has not been asked yet.").first).to_be_visible()


def reviewed(page: Page) -> None:
    say(page.url, SAYINGS[0])
    say(page.url, SAYINGS[1])
    items = open_tab(page)
    items.first.get_by_role("button", name="Show the answer").click()
    card(page)
    items.nth(1).get_by_role("button", name="Accept").click()
    expect(items.nth(1).locator(".stance")).to_contain_text("Accepted ")


NIGHTLY_STATES = (hinted, passage, refused, compared, conversing)
NIGHTLY = [pytest.param(s, marks=pytest.mark.nightly) for s in NIGHTLY_STATES]


@pytest.mark.parametrize("state", [first_screen, answered, *NIGHTLY])
def test_asking_has_no_accessibility_violation(
    browser: Browser, library_url: str, state: Callable[[Page], None]
) -> None:
    with opened(browser, library_url) as page:
        state(page)
        check(page)


@pytest.mark.parametrize("state", [corrected, watching, reviewed])
@pytest.mark.nightly
def test_saved_data_has_no_accessibility_violation(
    keeping: Page, state: Callable[[Page], None]
) -> None:
    state(keeping)
    check(keeping)


@pytest.mark.parametrize(
    "held",
    [{"decide": unsure_of}, {"citations": DISPUTED, "decide": dispute}, {"broken": ("rerank",)}],
    ids=["unsure", "mixed", "without a stage"],
)
@pytest.mark.durability
@pytest.mark.nightly
def test_incomplete_answers_have_no_accessibility_violation(
    browser: Browser, held: dict[str, Any]
) -> None:
    with page_of(browser, SmallService(**held)) as page:
        answered(page)
        expect(page.locator(".verdict, p.lost").first).to_be_visible()
        check(page)


def test_batch_has_no_accessibility_violation(
    browser: Browser, service: SmallService, tmp_path: Path
) -> None:
    asking = Asking(service)

    def fail(question: Any) -> None:
        if question.id == "2":
            raise ValueError("this one cannot be asked")

    asking.trouble = fail
    with served(service, tmp_path, asking) as http, opened(browser, str(http.base_url)) as page:
        page.get_by_role("tab", name="Batch").click()
        page.get_by_label("Questions, one a line").fill(f"{QUESTION}\nWhat is broken?")
        page.get_by_role("button", name="Start").click()
        expect(page.locator("#batches li").first).to_contain_text("done: 1 of 2")
        page.locator(".result summary").click()
        check(page)


def test_key_prompt_and_loading_server_have_no_accessibility_violation(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"alice:{'k' * 32}")
    with page_of(browser, SmallService(state="loading")) as page:
        expect(page.get_by_label("This server requires an API key")).to_be_visible()
        expect(page.locator("#indexed")).to_contain_text("still loading")
        check(page)
