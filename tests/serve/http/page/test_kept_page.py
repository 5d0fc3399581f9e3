from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from serve.http.workbench.ask_service import ServiceAsk
from serve.saved.stores import Saved
from tests.serve.api import served_api
from tests.serve.http.page.conftest import CLIPBOARD, SAID, Hand, open_page
from tests.serve.http.page.test_page import QUESTION, ask
from tests.serve.saved.kept import KEYS, KEYS_ENV, saved_at
from tests.serve.saved.watches.asking import check
from tests.serve.saved.watches.test_watches_over_http import Updated
from tests.serve.service import DISPUTED, SmallService, dispute

pytestmark = [pytest.mark.durability, pytest.mark.browser, pytest.mark.nightly]


def in_a_thread(work: Callable[..., None], *arguments: object) -> None:
    """Run `work` in another thread, as Playwright's event loop runs in this one."""
    thread = Thread(target=work, args=arguments)
    thread.start()
    thread.join()


def test_answer_is_corrected_in_4_clicks(keeping: Page, saved: Saved) -> None:
    hand = Hand(keeping)
    ask(keeping)
    hand.click(keeping.get_by_role("button", name="Not right"))
    hand.choose(keeping.get_by_label("The exact answer"), "no")
    keeping.get_by_label("What the answer should say").fill("It does not.")
    keeping.get_by_label("A note for the reviewer").fill("Only in mice.")
    hand.click(keeping.get_by_role("button", name="Send"))
    expect(keeping.locator("#said")).to_contain_text("Thank you")
    opinion = saved.feedback.list("", 10)[0].opinion
    assert (opinion.rating, opinion.exact) == ("down", "no")
    assert (opinion.ideal, opinion.note) == ("It does not.", "Only in mice.")
    assert hand.clicks <= 4


def test_question_is_saved_and_its_changes_shown_in_3_clicks(
    keeping: Page, saved: Saved, service: SmallService, tmp_path: Path
) -> None:
    hand = Hand(keeping)
    ask(keeping)
    hand.click(keeping.get_by_text("More", exact=True))
    hand.click(keeping.get_by_role("button", name="Watch this question"))
    expect(keeping.get_by_role("button", name="Watched")).to_be_disabled()
    in_a_thread(check, saved, ServiceAsk(service.answerer, "citeray"), "v000001")
    updated = Updated(tmp_path / "updated", citations=DISPUTED, decide=dispute)
    in_a_thread(check, saved, ServiceAsk(updated.answerer, "citeray"), "v000002")
    keeping.reload()
    hand.click(keeping.get_by_role("tab", name="Saved (new)"))
    # A changed question is open.
    shown = keeping.locator("#watches")
    expect(shown.locator(".new .changed")).to_contain_text("Changed: verdict changed, ")
    checks = shown.locator(".checks-made > li")
    expect(checks).to_have_count(2)
    newest, first = checks.all()
    expect(newest).to_contain_text("index v000002")
    expect(newest).to_contain_text('The verdict was "answered" and is now "mixed evidence".')
    expect(newest).to_contain_text("New evidence against the answer: PMID 1")
    expect(first).to_contain_text("index v000001")
    expect(shown.get_by_role("article", name="Answer")).to_contain_text("Sources disagree")
    assert hand.clicks <= 3
    keeping.reload()
    keeping.wait_for_load_state("networkidle")
    keeping.get_by_role("tab", name="Saved", exact=True).click()
    expect(shown.get_by_role("link", name="Feed")).to_have_attribute(
        "href", f"/v1/watches/{saved.watches.list('')[0].id}/feed"
    )
    keeping.get_by_role("button", name="Remove").click()
    expect(keeping.get_by_text("No saved questions yet.")).to_be_visible()
    assert saved.watches.list("") == []


def test_answer_is_shared_by_a_permanent_link(keeping: Page) -> None:
    keeping.evaluate(CLIPBOARD)
    ask(keeping)
    keeping.get_by_text("More", exact=True).click()
    keeping.get_by_role("button", name="Save and share").click()
    expect(keeping.locator("#said")).to_contain_text("Permanent link copied")
    address = keeping.evaluate("window.copied")
    assert "/?answer=" in address
    assert keeping.url == address
    keeping.goto(address)
    expect(keeping.get_by_role("article", name="Answer")).to_contain_text(SAID)
    expect(keeping.locator("#progress")).to_contain_text("A stored answer of")
    keeping.get_by_text("More", exact=True).click()
    expect(keeping.get_by_role("button", name="Copy permanent link")).to_be_visible()


def test_server_without_a_database_hides_saved_data(page: Page) -> None:
    ask(page)
    expect(page.get_by_role("article", name="Answer")).to_be_visible()
    for name in ("Right", "Not right", "Watch this question", "Save and share"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    for tab in ("Saved", "Feedback"):
        expect(page.get_by_role("tab", name=tab)).to_be_hidden()


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
    """Return the ids of two answers: the first is rated as right, the second is corrected."""
    return [say(keeping.url, saying) for saying in SAYINGS]


def test_feedback_is_listed_newest_first_with_its_details(
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


def test_correction_is_read_and_accepted_in_3_clicks(
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


def test_feedback_is_filtered_by_rating_and_state(keeping: Page, answers: list[str]) -> None:
    items = open_tab(keeping)
    expect(items).to_have_count(2)
    items.first.get_by_role("button", name="Reject").click()
    # Filter only after the review is stored.
    expect(keeping.locator("#said")).to_have_text("Rejected.")
    keeping.locator("#feedback-state").select_option("not reviewed")
    expect(items).to_have_count(1)
    expect(items.locator(".rated strong")).to_have_text("Right")
    keeping.get_by_label("Rating").select_option("not right")
    expect(keeping.locator("#feedback-count")).to_have_text("None found.")
    keeping.locator("#feedback-state").select_option("rejected")
    expect(items).to_have_count(1)
    items.get_by_role("button", name="Undo the review").click()
    expect(items.get_by_role("button", name="Accept")).to_be_focused()


@pytest.mark.parametrize(("name", "reviews"), [("alice", False), ("bob", True)])
def test_only_reviewers_have_the_feedback_tab(
    browser: Browser,
    service: SmallService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    reviews: bool,
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", KEYS_ENV)
    saved = saved_at(tmp_path, reviewers='["bob"]')
    with served_api(service, saved=saved) as url, open_page(browser, url) as page:
        say(url, SAYINGS[0], **KEYS["alice"])
        page.get_by_label("This server requires an API key").fill(KEYS[name]["X-API-Key"])
        with page.expect_response(lambda r: r.url.endswith("/v1/feedback?limit=1") and r.ok):
            page.get_by_role("button", name="Use this key").click()
        expect(page.locator("#system option:checked")).to_contain_text("(recommended)")
        tab = page.get_by_role("tab", name="Feedback")
        expect(tab).to_be_visible() if reviews else expect(tab).to_be_hidden()
        if reviews:
            expect(open_tab(page).get_by_role("button", name="Accept")).to_have_count(1)
