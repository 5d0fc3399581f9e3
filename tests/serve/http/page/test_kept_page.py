"""What a reader keeps: an opinion on an answer, and questions that are asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page, expect

from cluster.answers import Answer
from serve.http.workbench.ask_service import ServiceAsk
from serve.request import Request
from serve.saved.keep import Saved
from serve.saved.watches.check_watches import Budget, check_watches
from tests.serve.http.page.conftest import CLIPBOARD, SAID, Hand
from tests.serve.http.page.test_page import ask
from tests.serve.service import DISPUTED, SmallService, dispute

pytestmark = [pytest.mark.durability, pytest.mark.browser, pytest.mark.nightly]


class Updated(SmallService):
    """As an index of the next version would answer."""

    async def answer(self, request: Request) -> Answer:
        return replace(await super().answer(request), index_version="v000002")


def ask_again(saved: Saved, service: SmallService, version: str) -> None:
    ask = ServiceAsk(service, "citeray")
    asyncio.run(check_watches(saved.watches, ask, version, Budget(6000.0)))


def in_a_thread(work: Callable[..., None], *arguments: object) -> None:
    """Playwright's own loop runs in this thread."""
    thread = Thread(target=work, args=arguments)
    thread.start()
    thread.join()


def test_correct_an_answer_in_4_clicks(keeping: Page, saved: Saved) -> None:
    hand = Hand(keeping)
    ask(keeping)
    hand.click(keeping.get_by_role("button", name="Not right"))
    hand.choose(keeping.get_by_label("The exact answer"), "no")
    keeping.get_by_label("What the answer should say").fill("It does not.")
    keeping.get_by_label("A note for who reviews it").fill("Only in mice.")
    hand.click(keeping.get_by_role("button", name="Send"))
    expect(keeping.locator("#said")).to_contain_text("Thank you")
    opinion = saved.feedback.list("", 10)[0].opinion
    assert (opinion.rating, opinion.exact) == ("down", "no")
    assert (opinion.ideal, opinion.note) == ("It does not.", "Only in mice.")
    assert hand.clicks <= 4


def test_save_a_question_and_see_what_an_update_changed_in_3_clicks(
    keeping: Page, saved: Saved, service: SmallService, tmp_path: Path
) -> None:
    hand = Hand(keeping)
    ask(keeping)
    hand.click(keeping.get_by_role("button", name="Watch this question"))
    expect(keeping.get_by_role("button", name="Watched")).to_be_disabled()
    in_a_thread(ask_again, saved, service, "v000001")
    updated = Updated(tmp_path / "updated", citations=DISPUTED, decide=dispute)
    in_a_thread(ask_again, saved, updated, "v000002")
    hand.click(keeping.get_by_role("tab", name="Saved"))
    hand.click(keeping.get_by_role("button", name="Show changes and answer"))
    shown = keeping.locator("#watches")
    checks = shown.locator(".checks-made > li")
    expect(checks).to_have_count(2)
    newest, first = checks.all()
    expect(newest).to_contain_text("index v000002")
    expect(newest).to_contain_text('The verdict was "answered" and is now "mixed evidence".')
    expect(newest).to_contain_text("New evidence against the answer: PMID 1")
    expect(first).to_contain_text("index v000001")
    expect(shown.get_by_role("article", name="Answer")).to_contain_text("Sources disagree")
    assert hand.clicks <= 3
    expect(shown.get_by_role("link", name="Feed")).to_have_attribute(
        "href", f"/v1/watches/{saved.watches.list('')[0].id}/feed"
    )
    keeping.get_by_role("button", name="Remove").click()
    expect(keeping.get_by_text("None is saved yet.")).to_be_visible()
    assert saved.watches.list("") == []


def test_an_answer_is_shared_by_an_address_that_is_its_own(keeping: Page) -> None:
    keeping.evaluate(CLIPBOARD)
    ask(keeping)
    keeping.get_by_role("button", name="Save and share").click()
    expect(keeping.locator("#said")).to_contain_text("Permanent link copied")
    address = keeping.evaluate("window.copied")
    assert "/?answer=" in address
    assert keeping.url == address
    keeping.goto(address)
    expect(keeping.get_by_role("article", name="Answer")).to_contain_text(SAID)
    expect(keeping.locator("#progress")).to_contain_text("A stored answer of")
    expect(keeping.get_by_role("button", name="Copy permanent link")).to_be_visible()


def test_a_server_that_keeps_nothing_offers_neither(page: Page) -> None:
    ask(page)
    expect(page.get_by_role("article", name="Answer")).to_be_visible()
    for name in ("Right", "Not right", "Watch this question", "Save and share"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    for tab in ("Saved", "Feedback"):
        expect(page.get_by_role("tab", name=tab)).to_be_hidden()
