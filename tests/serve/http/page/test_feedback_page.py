"""The tab on which reviewers read, accept and reject what was said of answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from serve.saved.keep import Saved
from tests.serve.http.page.conftest import SAID, Hand, open_page
from tests.serve.http.page.test_page import QUESTION
from tests.serve.http_server import serving
from tests.serve.saved.kept import KEYS, KEYS_ENV, saved_at
from tests.serve.service import SmallService

pytestmark = [pytest.mark.durability, pytest.mark.browser, pytest.mark.nightly]

EVIL = "<img src=x onerror=alert()> [bold]"
SAYINGS = (
    {"rating": "up"},
    {"rating": "down", "exact": "no", "ideal": "Only in mice.", "pmids": [2, 3], "note": EVIL},
)


def say(home: str, saying: dict[str, object], **headers: str) -> str:
    """Store an answer, give feedback on it, and return the answer's id."""
    asked = {"question": QUESTION, "type": "yesno", "store": True}
    with httpx.Client(base_url=home, headers=headers, timeout=30) as http:
        answer: str = http.post("/v1/answer", json=asked).json()["answer_id"]
        assert http.post(f"/v1/answers/{answer}/feedback", json=saying).status_code == 201
    return answer


def open_tab(page: Page) -> Locator:
    page.get_by_role("tab", name="Feedback").click()
    return page.get_by_role("list", name="Feedback").locator("> li")


@pytest.fixture
def answers(keeping: Page) -> list[str]:
    """The answers that a thumb and a correction are about."""
    return [say(keeping.url, saying) for saying in SAYINGS]


def test_feedback_comes_newest_first_with_all_that_was_said(
    keeping: Page, answers: list[str]
) -> None:
    items = open_tab(keeping)
    expect(items).to_have_count(2)
    newest, oldest = items.all()
    for word in ("Not right", "Exact answer", "No", "Only in mice.", EVIL, "Not reviewed"):
        expect(newest).to_contain_text(word)
    expect(newest.get_by_role("link", name="PMID 2")).to_have_attribute(
        "href", "https://pubmed.ncbi.nlm.nih.gov/2/"
    )
    expect(oldest.locator(".rated strong")).to_have_text("Right")
    newest.get_by_role("link", name="Open the answer").click()
    expect(keeping.get_by_role("article", name="Answer")).to_contain_text(SAID)
    assert keeping.url.endswith(f"/?answer={answers[1]}")


def test_read_an_answer_and_accept_its_correction_in_3_clicks(
    keeping: Page, answers: list[str], saved: Saved
) -> None:
    hand = Hand(keeping)
    hand.click(keeping.get_by_role("tab", name="Feedback"))
    item = keeping.locator("#feedback > li").first
    hand.click(item.get_by_role("button", name="Show the answer"))
    expect(item.get_by_role("article", name="Answer")).to_contain_text(SAID)
    hand.click(item.get_by_role("button", name="Accept"))
    expect(keeping.locator("#said")).to_have_text("Accepted.")
    expect(item.locator(".stance")).to_contain_text("Accepted ")
    expect(item.get_by_role("button", name="Undo the review")).to_be_focused()
    assert hand.clicks <= 3
    assert [kept.answer_id for kept in saved.feedback.list("", 9, state="accepted")] == answers[1:]


def test_filters_leave_what_is_to_be_reviewed(keeping: Page, answers: list[str]) -> None:
    items = open_tab(keeping)
    expect(items).to_have_count(2)
    items.first.get_by_role("button", name="Reject").click()
    # Filtered before it is kept, it would still be there.
    expect(keeping.locator("#said")).to_have_text("Rejected.")
    keeping.locator("#feedback-state").select_option("not reviewed")
    expect(items).to_have_count(1)
    expect(items.locator(".rated strong")).to_have_text("Right")
    keeping.get_by_label("Rating").select_option("not right")
    expect(keeping.locator("#feedback-count")).to_have_text("There is none.")
    keeping.locator("#feedback-state").select_option("rejected")
    expect(items).to_have_count(1)
    items.get_by_role("button", name="Undo the review").click()
    expect(items.get_by_role("button", name="Accept")).to_be_focused()


@pytest.fixture
def keyed_url(
    service: SmallService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    monkeypatch.setenv("CITERAY_API_KEYS", KEYS_ENV)
    saved = saved_at(tmp_path, reviewers='["bob"]')
    with serving(create_api(service, load_settings().serve, saved=saved)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(("name", "buttons"), [("alice", 0), ("bob", 1)])
def test_who_may_not_review_sees_their_own_feedback_without_buttons(
    browser: Browser, keyed_url: str, name: str, buttons: int
) -> None:
    say(keyed_url, SAYINGS[0], **KEYS["alice"])
    with open_page(browser, keyed_url) as page:
        page.get_by_label("This server asks for an API key").fill(KEYS[name]["X-API-Key"])
        page.get_by_role("button", name="Use it").click()
        expect(page.locator("#system option:checked")).to_contain_text("(recommended)")
        item = open_tab(page)
        expect(item).to_have_count(1)
        expect(item.get_by_role("button", name="Accept")).to_have_count(buttons)
