from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.chromium import open_browser
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint
from tests.serve.http_server import serving
from tests.serve.service import SmallService

SAID = "Metformin activates AMPK in the liver of diabetic mice."

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def model() -> Iterator[ChatEndpoint]:
    with chat_endpoint(SAID) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model: ChatEndpoint) -> SmallService:
    return SmallService(tmp_path_factory.mktemp("index"), writer=model.model())


@pytest.fixture(scope="module")
def url(service: SmallService) -> Iterator[str]:
    with serving(create_api(service, load_settings().serve)) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def watched(context: BrowserContext, home: str) -> Iterator[Page]:
    """A page that may complain of nothing and ask no other host for anything."""
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


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    with watched(context, url) as page:
        yield page
    context.close()
