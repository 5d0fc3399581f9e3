"""What people come for, each in at most the number of clicks that its test states.

A click is a click; a choice from a list is two. Typing, and the Enter at its end, is none.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import rispy
from playwright.sync_api import Browser, Page, expect

from cluster.records import Link
from serve.answer_events import Event
from serve.request import Request
from tests.serve.http.page.conftest import CLIPBOARD, SAID, Hand, page_of
from tests.serve.http.page.test_page import QUESTION, ask
from tests.serve.service import SmallService, unsure_of
from tests.small_index import citation

pytestmark = [pytest.mark.durability, pytest.mark.browser, pytest.mark.nightly]


def type_and_enter(page: Page, place: str, text: str) -> None:
    page.locator(place).fill(text)
    page.locator(place).press("Enter")


def test_ask_and_copy_with_references_in_1_click(page: Page, hand: Hand) -> None:
    page.evaluate(CLIPBOARD)
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    hand.click(page.get_by_role("button", name="Copy with references"))
    expect(page.locator("#said")).to_have_text("Answer with references copied.")
    copied = page.evaluate("window.copied")
    assert copied.startswith(f"{QUESTION}\n\nYes.\n\n{SAID} [1]")
    assert "References\n1. Doe J. Metformin and AMPK. :11-9. PMID: 1. https://pubmed" in copied
    assert copied.endswith("Not medical advice.")
    assert hand.clicks <= 1


def test_follow_up_without_a_click(page: Page) -> None:
    ask(page)
    expect(page.get_by_label("Ask a follow-up")).to_be_visible()
    with page.expect_request("**/v1/answer") as sent:
        type_and_enter(page, "#follow", "And warfarin?")
    (turn,) = sent.value.post_data_json["turns"]
    assert turn["question"] == QUESTION
    assert turn["answer"].startswith(f"Yes {SAID}")
    card = page.get_by_role("article", name="Answer")
    expect(card).to_contain_text(f"Follow-up to: {QUESTION}")
    expect(card).to_contain_text("Understood as: Does metformin activate AMPK? And warfarin?")
    assert "And+warfarin" in page.url


def test_export_ten_citations_to_ris_in_2_clicks(library: Page) -> None:
    hand = Hand(library)
    type_and_enter(library, "#question", QUESTION)
    hand.click(library.get_by_text("Export", exact=True))
    menu = library.locator(".menu-body")
    expect(menu.get_by_text("All citations found (10)")).to_be_visible()
    with library.expect_download() as got:
        hand.click(menu.get_by_role("button", name="RIS").last)
    assert hand.clicks <= 2
    assert got.value.suggested_filename == "citeray.ris"
    records = rispy.loads(Path(got.value.path()).read_text(encoding="utf-8"))
    shown = library.locator(".found a").all_text_contents()
    assert [record["title"] for record in records] == shown
    assert len(set(shown)) == 10


class UnsureByWords(SmallService):
    """The preset bm25 is not sure of its answers."""

    def __init__(self, index: Path) -> None:
        super().__init__(index / "sure")
        self._unsure = SmallService(index / "unsure", decide=unsure_of)

    def answer_events(self, request: Request) -> AsyncGenerator[Event, None]:
        if request.system.name == "bm25":
            return self._unsure.answer_events(request)
        return super().answer_events(request)


def test_compare_four_systems_side_by_side_in_4_clicks_with_what_differs(
    browser: Browser, tmp_path: Path
) -> None:
    service = UnsureByWords(tmp_path)
    with page_of(browser, service, viewport={"width": 1280, "height": 900}) as page:
        hand = Hand(page)
        hand.click(page.get_by_role("tab", name="Compare"))
        page.locator("#compare-question").fill(QUESTION)
        for name in ("bm25", "dense"):
            hand.click(page.locator(f"#compare-systems input[value={name}]"))
        hand.click(page.get_by_role("button", name="Compare"))
        expect(page.locator("#compare-progress")).to_have_text("4 of 4 have answered")
        assert hand.clicks <= 4
        table = page.get_by_role("table")
        expect(table.get_by_role("columnheader")).to_have_count(5)
        expect(table.locator("td.cited")).to_have_count(3)
        expect(table.locator("tr.differs")).to_have_count(1)
        row = table.get_by_role("row", name="Verdict")
        expect(row).to_contain_text("Answered")
        expect(row.locator(".odd")).to_have_text("Not enough evidence (differs)")
        assert page.locator(".scroll").evaluate("(e) => e.scrollWidth <= e.clientWidth")
        expect(page.get_by_role("article", name="dense", exact=True)).to_contain_text(SAID)


def test_a_retracted_or_corrected_reference_says_so(browser: Browser) -> None:
    held = [
        citation(1, SAID, "Gone", links=(Link("RetractionIn", 77, ""),)),
        citation(2, f"Again, {SAID}", "Mended", links=(Link("ErratumIn", None, ""),)),
    ]
    service = SmallService(citations=held, decide=unsure_of)
    with page_of(browser, service) as page:
        ask(page)
        references = page.locator(".references li")
        gone = references.filter(has_text="Gone")
        expect(gone).to_contain_text("Retracted: see PMID 77.")
        expect(gone.get_by_role("link", name="PMID 77")).to_have_attribute(
            "href", "https://pubmed.ncbi.nlm.nih.gov/77/"
        )
        expect(gone.locator(".notice.bad")).to_have_count(1)
        expect(references.locator(".notice.bad")).to_have_count(1)
        expect(references.filter(has_text="Mended")).to_contain_text("Corrected or updated since.")
