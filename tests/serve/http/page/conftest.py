from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from serve.saved.keep import Saved
from tests.chromium import open_browser
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint
from tests.serve.http.page.library import library_service
from tests.serve.http_server import serving
from tests.serve.saved.kept import saved_at
from tests.serve.service import SmallService

SAID = "Metformin activates AMPK in the liver of diabetic mice."

# What the page copies, as window.copied.
CLIPBOARD = "() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; }"


# One for the folder: a browser takes a second or two to start.
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
    with serving(create_api(service, load_settings().serve)) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def open_page(browser: Browser, home: str, **options: Any) -> Iterator[Page]:
    """A page that may complain of nothing and ask no other host for anything."""
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
    """The page of a server of its own."""
    api = create_api(service, load_settings().serve)
    with serving(api) as port, open_page(browser, f"http://127.0.0.1:{port}", **options) as page:
        yield page


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    with open_page(browser, url) as page:
        yield page


@pytest.fixture(scope="package")
def library_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    api = create_api(library_service(tmp_path_factory.mktemp("library")), load_settings().serve)
    with serving(api) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def library(browser: Browser, library_url: str) -> Iterator[Page]:
    """The page of a server with more citations than a question asks for."""
    with open_page(browser, library_url) as page:
        yield page


@pytest.fixture
def saved(tmp_path: Path) -> Saved:
    return saved_at(tmp_path)


@pytest.fixture
def keeping(browser: Browser, service: SmallService, saved: Saved) -> Iterator[Page]:
    """The page of a server that keeps answers, feedback and questions."""
    api = create_api(service, load_settings().serve, saved=saved)
    with serving(api) as port, open_page(browser, f"http://127.0.0.1:{port}") as page:
        yield page


class Hand:
    """Uses a page as a person does, and counts: a click, a choice from a list, a page opened."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, place: Locator) -> None:
        place.click()
        self.clicks += 1

    def choose(self, place: Locator, option: str) -> None:
        """From a list: one click opens it, one chooses."""
        place.select_option(option)
        self.clicks += 2


@pytest.fixture
def hand(page: Page) -> Hand:
    return Hand(page)
