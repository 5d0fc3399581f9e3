from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from serve.saved.stores import Saved
from tests.chromium import open_browser
from tests.serve.api import served_api
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint
from tests.serve.http.page.library import library_service
from tests.serve.saved.kept import saved_at
from tests.serve.service import SmallService

SAID = "Metformin activates AMPK in the liver of diabetic mice."

# Store the copied text in window.copied.
CLIPBOARD = "() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; }"


# One browser for the folder, as it takes a second or two to start.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="package")
def model() -> Iterator[ChatEndpoint]:
    with chat_endpoint(SAID) as endpoint:
        yield endpoint


@pytest.fixture(scope="package")
def service(model: ChatEndpoint) -> SmallService:
    return SmallService(writer=model.model())


@pytest.fixture(scope="package")
def url(service: SmallService) -> Iterator[str]:
    with served_api(service) as url:
        yield url


@contextmanager
def open_page(browser: Browser, home: str, **options: Any) -> Iterator[Page]:
    """Open a page, and assert at the end that it logged no error and contacted no other host."""
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}} | options)
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(home)
    yield page
    expected = ("status of 401", "status of 503", "status of 422")
    assert [c for c in complaints if not any(e in c for e in expected)] == []
    assert [u for u in asked if not u.startswith((home, "data:", "blob:"))] == []
    context.close()


@contextmanager
def page_of(browser: Browser, service: SmallService, **options: Any) -> Iterator[Page]:
    """Open the page of a new server."""
    with served_api(service) as url, open_page(browser, url, **options) as page:
        yield page


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    with open_page(browser, url) as page:
        yield page


@pytest.fixture(scope="package")
def library_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_api(library_service(tmp_path_factory.mktemp("library"))) as url:
        yield url


@pytest.fixture
def library(browser: Browser, library_url: str) -> Iterator[Page]:
    """Page of a server with more citations than a question requests."""
    with open_page(browser, library_url) as page:
        yield page


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    return saved_at(tmp_path)


@pytest.fixture
def keeping(browser: Browser, service: SmallService, saved: Saved) -> Iterator[Page]:
    """Page of a server that stores answers, feedback and questions."""
    with served_api(service, saved=saved) as url, open_page(browser, url) as page:
        yield page


class Hand:
    """Operates a page and counts the clicks."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, place: Locator) -> None:
        place.click()
        self.clicks += 1

    def choose(self, place: Locator, option: str) -> None:
        """Choose from a list with two clicks: the first opens it, the second chooses."""
        place.select_option(option)
        self.clicks += 2
