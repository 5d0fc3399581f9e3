from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Route

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.chromium import open_browser
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint
from tests.serve.http_server import serving
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
def service(tmp_path_factory: pytest.TempPathFactory, model: ChatEndpoint) -> SmallService:
    return SmallService(tmp_path_factory.mktemp("index"), writer=model.model())


@pytest.fixture(scope="package")
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


def pretend(page: Page, routes: Mapping[str, Any], fields: Mapping[str, Sequence[str]]) -> None:
    """Let the server seem to have `routes` ("get /v1/x": the reply) and `fields` by form.

    They are of parts of the server that are tested by themselves, and not in every one.
    """

    def document(route: Route) -> None:
        told = route.fetch().json()
        for named in routes:
            method, path = named.split(" ")
            told["paths"].setdefault(path, {})[method] = {}
        for form, names in fields.items():
            known = told["components"]["schemas"][form]["properties"]
            known.update({name: {} for name in names})
        route.fulfill(json=told)

    def reply_with(reply: Any) -> Callable[[Route], None]:
        told: dict[str, Any] = {"body": reply} if isinstance(reply, str) else {"json": reply}
        return lambda route: route.fulfill(**told)

    page.route("**/openapi.json", document)
    for named, reply in routes.items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", named.split(" ")[1])
        page.route(re.compile(rf"{pattern}(\?.*)?$"), reply_with(reply))
    page.reload()


def change_answers(page: Page, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """What `change` makes of a request joins its reply; it takes out what the server lacks."""

    def answer(route: Route) -> None:
        body = {**route.request.post_data_json, "stream": False}
        added = change(body)
        reply = {**route.fetch(post_data=body).json(), **added}
        event = f"event: answer\ndata: {json.dumps(reply)}\n\n"
        route.fulfill(body=event, headers={"content-type": "text/event-stream"})

    page.route("**/v1/answer", answer)
