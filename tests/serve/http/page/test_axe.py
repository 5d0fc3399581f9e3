"""Every page and state by axe-core: in light on a desk, and in dark on a phone.

The package axe-playwright-python brings axe-core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.serve.batches.served import Asking, served
from tests.serve.http.page.test_feedback_page import SAYINGS, open_tab, say
from tests.serve.http.page.test_page import QUESTION, ask, unfold
from tests.serve.http_server import serving
from tests.serve.saved.kept import saved_at
from tests.serve.service import DISPUTED, SmallService, dispute, unsure_of

pytestmark = pytest.mark.browser

axe = Axe()
# Every rule runs in both; a colour is the same at either width.
LOOKS = (("light", 1280), ("dark", 390))


def check(page: Page) -> None:
    """No violation in light at the width of a desk, nor in dark at that of a phone."""
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
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.goto(url)
    expect(page.locator("#system option:checked")).to_contain_text("(recommended)")
    yield page
    context.close()


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


def corrected(page: Page) -> None:
    ask(page)
    page.get_by_role("button", name="Not right").click()
    expect(page.get_by_label("What the answer should say")).to_be_visible()


def watching(page: Page) -> None:
    ask(page)
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


def test_first_screen_and_answer_have_no_violation(
    browser: Browser, library_url: str, subtests: pytest.Subtests
) -> None:
    for state in [first_screen, answered]:
        with subtests.test(state=state), opened(browser, library_url) as page:
            state(page)
            check(page)


@pytest.mark.nightly
def test_other_states_of_asking_have_no_violation(
    browser: Browser, library_url: str, subtests: pytest.Subtests
) -> None:
    for state in [hinted, passage, refused, compared]:
        with subtests.test(state=state), opened(browser, library_url) as page:
            state(page)
            check(page)


@pytest.fixture(scope="module")
def keeping_url(service: SmallService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    saved = saved_at(tmp_path_factory.mktemp("saved"))
    with serving(create_api(service, load_settings().serve, saved=saved)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("state", [corrected, watching, reviewed])
@pytest.mark.nightly
def test_no_violation_in_what_is_kept(
    browser: Browser, keeping_url: str, state: Callable[[Page], None]
) -> None:
    with opened(browser, keeping_url) as page:
        state(page)
        check(page)


@pytest.mark.parametrize(
    "held",
    [{"decide": unsure_of}, {"citations": DISPUTED, "decide": dispute}, {"broken": ("rerank",)}],
    ids=["unsure", "mixed", "without a stage"],
)
@pytest.mark.durability
@pytest.mark.nightly
def test_no_violation_in_answers_that_are_less(browser: Browser, held: dict[str, Any]) -> None:
    with (
        serving(create_api(SmallService(**held), load_settings().serve)) as port,
        opened(browser, f"http://127.0.0.1:{port}") as page,
    ):
        answered(page)
        expect(page.locator(".verdict, p.lost").first).to_be_visible()
        check(page)


def test_no_violation_in_a_batch(browser: Browser, service: SmallService, tmp_path: Path) -> None:
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


def test_no_violation_where_a_key_is_asked_for_or_the_server_is_not_ready(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"alice:{'k' * 32}")
    api = create_api(SmallService(state="loading"), load_settings().serve)
    context = browser.new_context()
    with serving(api) as port:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}")
        expect(page.get_by_label("This server asks for an API key")).to_be_visible()
        expect(page.locator("#indexed")).to_contain_text("still loading")
        check(page)
    context.close()
