"""The verdict on the page, in a real Chromium."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.serve.http.page.conftest import SAID, page_of
from tests.serve.http.page.test_page import QUESTION, ask
from tests.serve.service import DISPUTED, SmallService, dispute, own_words, unsure_of

pytestmark = [pytest.mark.durability, pytest.mark.browser, pytest.mark.nightly]


def test_an_unanswered_question_says_so_and_links_the_nearest_citations(browser: Browser) -> None:
    with page_of(browser, SmallService(decide=unsure_of)) as page:
        ask(page)
        answer = page.get_by_role("article", name="Answer")
        expect(answer).to_contain_text("Not enough evidence")
        link = answer.get_by_role("link", name="Metformin and AMPK")
        expect(link).to_have_attribute("href", "https://pubmed.ncbi.nlm.nih.gov/1/")
        expect(answer.locator(".exact, .sentences")).to_have_count(0)
        page.get_by_text("Details: evidence").click()
        expect(page.locator(".evidence")).to_contain_text(SAID)
        expect(page.locator(".stance")).to_have_count(0)


def test_where_sources_disagree_both_sides_are_quoted(browser: Browser) -> None:
    with page_of(browser, SmallService(citations=DISPUTED, decide=dispute)) as page:
        ask(page)
        answer = page.get_by_role("article", name="Answer")
        expect(answer).to_contain_text("Sources disagree")
        expect(answer.locator(".exact")).to_have_count(0)
        for_ = answer.locator(".side.pro li", has_text=SAID)
        against = answer.locator(".side.con li", has_text="does not activate")
        expect(answer.get_by_role("heading", name="Supports “")).to_be_visible()
        expect(answer.get_by_role("heading", name="Contradicts “")).to_be_visible()
        expect(for_).to_have_count(1)
        expect(against.get_by_role("link", name=re.compile("Reference ., against"))).to_be_visible()


def test_a_sentence_that_no_evidence_supports_bears_the_mark(browser: Browser) -> None:
    with page_of(browser, SmallService(decide=own_words)) as page:
        ask(page)
        last = page.locator(".sentences > li").last
        expect(last).to_contain_text("It cures everything.\u00a0No evidence supports this. ")
        expect(last.get_by_role("link")).to_have_count(0)
        expect(page.locator(".sentences > li").first).not_to_contain_text("No evidence")


def test_an_answer_kept_by_an_earlier_version_is_still_shown(page: Page, url: str) -> None:
    ask(page)
    expect(page.get_by_role("article", name="Answer")).to_be_visible()
    page.evaluate(
        """() => { const kept = JSON.parse(localStorage["citeray-history"]);
             for (const entry of kept) { const { answer } = entry;
               delete entry.request; delete answer.verdict; delete answer.confidence;
               delete answer.spent;
               for (const item of answer.evidence) delete item.stance_on; }
             localStorage["citeray-history"] = JSON.stringify(kept); }"""
    )
    page.goto(url)
    page.get_by_text("Earlier questions").click()
    page.get_by_role("button", name=QUESTION).click()
    expect(page.get_by_role("article", name="Answer")).to_contain_text(SAID)
    page.get_by_text("Details: evidence").click()
    expect(page.locator(".evidence .stance.supports").first).to_have_text("supports")
