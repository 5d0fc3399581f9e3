"""Common tasks, each within the number of clicks in the name of its test.

A choice from a list counts as two clicks; typing and Enter count as none. The last tests are
about the verdicts of answers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import docx
import pytest
import rispy
from playwright.sync_api import Browser, Page, expect

from cluster.answers import TracedSource
from cluster.records import Link
from serve.answer.write_answer import WrittenAnswer
from serve.contracts.answer_events import Event
from serve.contracts.request import Request
from serve.saved.stores import Saved
from tests.serve.api import served_api
from tests.serve.http.page.conftest import CLIPBOARD, SAID, Hand, open_page, page_of
from tests.serve.http.page.library import TRIAL
from tests.serve.http.page.test_page import QUESTION, ask
from tests.serve.service import DISPUTED, SmallService, dispute, own_words, unsure_of
from tests.small_index import citation

pytestmark = [pytest.mark.durability, pytest.mark.browser, pytest.mark.nightly]


def test_answer_is_copied_with_references_in_1_click(page: Page) -> None:
    hand = Hand(page)
    page.evaluate(CLIPBOARD)
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    hand.click(page.get_by_role("button", name="Copy"))
    expect(page.locator("#said")).to_have_text("Answer with references copied.")
    copied = page.evaluate("window.copied")
    assert copied.startswith(f"{QUESTION}\n\nVerdict: Answered: 1 study says yes.")
    assert f"Answer\n{SAID} [1]" in copied
    assert "References\n[1] Doe J. Metformin and AMPK. 11-9. PubMed PMID: 1. https://pub" in copied
    assert "Index v000001 of 2026-01-01. Preset citeray." in copied
    assert f"Address: {page.url}\n" in copied
    assert hand.clicks <= 1


def test_ten_citations_are_exported_to_ris_in_2_clicks(library: Page) -> None:
    hand = Hand(library)
    library.locator("#question").fill(QUESTION)
    library.locator("#question").press("Enter")
    hand.click(library.get_by_text("More", exact=True))
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
    """Service without enough evidence for the preset bm25."""

    def __init__(self, index: Path) -> None:
        super().__init__(index / "sure")
        self._unsure = SmallService(index / "unsure", decide=unsure_of)

    def answer_events(self, request: Request) -> AsyncGenerator[Event, None]:
        if request.system.name == "bm25":
            return self._unsure.answer_events(request)
        return super().answer_events(request)


def test_four_presets_are_compared_in_4_clicks(browser: Browser, tmp_path: Path) -> None:
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


def test_retracted_corrected_and_untitled_references_are_marked(browser: Browser) -> None:
    held = [
        citation(1, SAID, "Gone", links=(Link("RetractionIn", 77, ""),)),
        citation(2, f"Again, {SAID}", "Mended", links=(Link("ErratumIn", None, ""),)),
        citation(3, f"Still, {SAID}", "[Not Available]."),
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
        expect(references.filter(has_text=f"No English title: “Still, {SAID}”")).to_have_count(1)


def test_answer_without_evidence_links_the_nearest_citations(browser: Browser) -> None:
    with page_of(browser, SmallService(decide=unsure_of)) as page:
        ask(page)
        answer = page.get_by_role("article", name="Answer")
        expect(answer).to_contain_text("Not enough evidence")
        nearest = answer.get_by_role("listitem").filter(has_text="Metformin and AMPK. 11-9.")
        link = nearest.get_by_role("link", name="PubMed")
        expect(link).to_have_attribute("href", "https://pubmed.ncbi.nlm.nih.gov/1/")
        expect(answer.locator(".exact, .sentences")).to_have_count(0)
        page.get_by_text("Details: evidence").click()
        expect(page.locator(".evidence")).to_contain_text(SAID)
        expect(page.locator(".stance")).to_have_count(0)


def test_both_sides_of_disagreeing_sources_are_quoted(browser: Browser) -> None:
    with page_of(browser, SmallService(citations=DISPUTED, decide=dispute)) as page:
        ask(page)
        answer = page.get_by_role("article", name="Answer")
        expect(answer.locator(".verdict")).to_have_text("Sources disagree1 of 2 studies says no")
        expect(answer.locator(".exact")).to_have_count(0)
        expect(answer.get_by_text("For and against (1 for, 1 against)")).to_be_visible()
        for_ = answer.locator(".side.pro li", has_text=SAID)
        against = answer.locator(".side.con li", has_text="does not activate")
        expect(answer.get_by_role("heading", name="Supports “")).to_be_visible()
        expect(answer.get_by_role("heading", name="Contradicts “")).to_be_visible()
        expect(for_).to_have_count(1)
        expect(against.get_by_role("link", name=re.compile("Reference ., against"))).to_be_visible()


def test_page_copy_print_and_documents_list_the_same_references(
    browser: Browser, saved: Saved
) -> None:
    trial = citation(
        5, "Metformin did not activate AMPK in adults.", "A trial", publication_types=TRIAL
    )

    def decide(written: WrittenAnswer) -> WrittenAnswer:
        first, *others = written.ideal
        first = replace(first, traced=TracedSource("primary", first.pmids[0], 5))
        return dispute(replace(written, ideal=(first, *others)))

    service = SmallService(citations=[*DISPUTED, trial], decide=decide)
    with served_api(service, saved=saved) as url, open_page(browser, url) as page:
        page.evaluate(CLIPBOARD)
        ask(page)
        references = page.locator(".references .reference")
        expect(references.first).to_contain_text("A trial. PubMed PMID: 5.")
        origin = page.locator(".references .design", has_text="primary study, via [2]")
        expect(origin).to_have_count(1)
        quotes = page.locator(".references .basis").all_inner_texts()
        assert quotes[0] == "Metformin did not activate AMPK in adults."
        assert len(quotes) == references.count() == 3
        printed = [text.split("PubMed PMID")[0] for text in references.all_inner_texts()]
        page.get_by_role("button", name="Copy").click()
        expect(page.locator("#said")).to_contain_text("copied")
        copied = page.evaluate("window.copied")
        page.get_by_text("More", exact=True).click()
        with page.expect_download() as got:
            page.get_by_role("button", name="Word (DOCX)").click()
        paragraphs = [p.text for p in docx.Document(str(got.value.path())).paragraphs]
        for number, (reference, quote) in enumerate(zip(printed, quotes, strict=True), 1):
            assert f"[{number}] {reference}" in copied
            (entry,) = [text for text in paragraphs if text.startswith(f"[{number}]\t{reference}")]
            assert quote in entry
            assert quote in copied
        assert f"Address: {page.url}" in paragraphs
        assert "Randomised trial; primary study, via [2]: " in copied
        shown = page.locator(".actions, .opinion, form").locator("visible=true")
        expect(shown).to_have_count(4)
        page.emulate_media(media="print")
        expect(page.locator(".colophon")).to_contain_text(f"Address: {page.url}")
        expect(references.first).to_be_visible()
        expect(shown).to_have_count(0)


def test_unsupported_sentence_is_marked(browser: Browser) -> None:
    with page_of(browser, SmallService(decide=own_words)) as page:
        ask(page)
        last = page.locator(".sentences > li").last
        expect(last).to_contain_text("It cures everything.\u00a0No evidence supports this. ")
        expect(last.get_by_role("link")).to_have_count(0)
        expect(page.locator(".sentences > li").first).not_to_contain_text("No evidence")


def test_answer_in_the_history_of_an_earlier_version_is_shown(page: Page, url: str) -> None:
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
