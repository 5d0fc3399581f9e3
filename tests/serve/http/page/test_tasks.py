"""What people come for, each in at most the number of clicks that its test states.

A click is a click; a choice from a list is two. Typing, and the Enter at its end, is none.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import rispy
from docx import Document
from playwright.sync_api import Browser, Page, expect

from cluster.records import Link
from serve.answer_events import Event
from serve.request import Request
from tests.serve.http.page.conftest import CLIPBOARD, SAID, Hand, open_page, page_of
from tests.serve.http.page.library import ABOUT_METFORMIN
from tests.serve.http.page.test_page import QUESTION, ask
from tests.serve.service import DISPUTED, SmallService, dispute, unsure_of
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


def test_where_the_clipboard_is_shut_the_text_is_shown_to_copy(page: Page) -> None:
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(); }")
    ask(page)
    page.get_by_role("button", name="Copy with references").click()
    expect(page.get_by_label("The browser does not let")).to_have_value(re.compile("References"))


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


def test_both_sides_are_open_beside_each_other_without_a_click(browser: Browser) -> None:
    service = SmallService(citations=DISPUTED, decide=dispute)
    with page_of(browser, service, viewport={"width": 1280, "height": 900}) as page:
        type_and_enter(page, "#question", QUESTION)
        pro, con = (page.locator(f".side.{side}") for side in ("pro", "con"))
        expect(con).to_contain_text("Metformin does not activate")
        left, right = pro.bounding_box(), con.bounding_box()
        assert left is not None
        assert right is not None
        assert left["y"] == right["y"]
        assert left["x"] + left["width"] <= right["x"]


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
    told = {citation.title: citation for citation in ABOUT_METFORMIN}
    for record in records:
        held = told[record["title"]]
        assert (record["doi"], record["year"]) == (held.doi, str(held.year))
        names = ("Doe", "Garcia", "Nguyen", "Okafor")
        assert record["authors"] == [f"{name}, A. B." for name in names]
    expect(library.locator("#said")).to_have_text("10 references saved.")


def test_an_answer_becomes_a_document_in_2_clicks(page: Page, hand: Hand) -> None:
    type_and_enter(page, "#question", QUESTION)
    hand.click(page.get_by_text("Export", exact=True))
    with page.expect_download() as got:
        hand.click(page.get_by_role("button", name="Word"))
    assert hand.clicks <= 2
    assert got.value.suggested_filename == "citeray-answer.docx"
    text = "\n".join(part.text for part in Document(str(got.value.path())).paragraphs)
    assert text.startswith(QUESTION)
    assert SAID in text
    assert "Doe J" in text


def test_share_an_address_in_1_click(page: Page, hand: Hand, url: str) -> None:
    page.evaluate(CLIPBOARD)
    type_and_enter(page, "#question", QUESTION)
    hand.click(page.get_by_role("button", name="Copy link"))
    expect(page.locator("#said")).to_have_text("Link copied.")
    assert page.evaluate("window.copied") == page.url
    assert page.url.startswith(f"{url}/?q=Does+metformin")
    assert hand.clicks <= 1


def test_compare_four_systems_side_by_side_at_1280_px_in_4_clicks(
    browser: Browser, url: str
) -> None:
    with open_page(browser, url, viewport={"width": 1280, "height": 900}) as page:
        hand = Hand(page)
        hand.click(page.get_by_role("tab", name="Compare"))
        page.locator("#compare-question").fill(QUESTION)
        for name in ("bm25", "dense"):
            hand.click(page.locator(f"#compare-systems input[value={name}]"))
        hand.click(page.get_by_role("button", name="Compare"))
        expect(page.locator("#compare-progress")).to_have_text("4 of 4 have answered")
        table = page.get_by_role("table")
        expect(table.get_by_role("columnheader")).to_have_count(5)
        expect(table.get_by_role("row", name="Verdict")).to_contain_text("Answered")
        expect(table.locator("td.cited")).to_have_count(4)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        region = page.locator(".scroll")
        assert region.evaluate("(e) => e.scrollWidth <= e.clientWidth")
        expect(page.get_by_role("article", name="bm25", exact=True)).to_contain_text(SAID)
        assert hand.clicks <= 4


class UnsureByWords(SmallService):
    """The preset bm25 is not sure of its answers."""

    def __init__(self, index: Path) -> None:
        super().__init__(index / "sure")
        self._unsure = SmallService(index / "unsure", decide=unsure_of)

    def answer_events(self, request: Request) -> AsyncGenerator[Event, None]:
        if request.system.name == "bm25":
            return self._unsure.answer_events(request)
        return super().answer_events(request)


def test_systems_that_differ_stand_out_in_words(browser: Browser, tmp_path: Path) -> None:
    with page_of(browser, UnsureByWords(tmp_path)) as page:
        page.get_by_role("tab", name="Compare").click()
        page.locator("#compare-question").fill(QUESTION)
        page.locator("#compare-systems input[value=bm25]").check()
        page.get_by_role("button", name="Compare").click()
        expect(page.locator("#compare-progress")).to_have_text("3 of 3 have answered")
        row = page.get_by_role("row", name="Verdict")
        expect(row.locator(".odd")).to_have_text("Not enough evidence (differs)")
        expect(page.locator("tr.differs")).to_have_count(1)


def test_comparing_nothing_asks_for_a_method(page: Page) -> None:
    page.get_by_role("tab", name="Compare").click()
    page.locator("#compare-question").fill(QUESTION)
    checked = page.locator("#compare-systems input:checked")
    expect(checked).to_have_count(2)
    for box in checked.element_handles():
        box.uncheck()
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#compare-progress")).to_have_text("Choose a method to compare.")


def test_print_leaves_the_answer_its_references_and_the_disclaimer(page: Page) -> None:
    ask(page)
    expect(page.locator(".references")).to_be_visible()
    page.emulate_media(media="print")
    for gone in (".top", "#ask-form", ".actions", "#history-card"):
        expect(page.locator(gone)).to_be_hidden()
    expect(page.locator(".references")).to_contain_text("Doe J.")
    expect(page.locator(".foot")).to_contain_text("Not medical advice.")


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
