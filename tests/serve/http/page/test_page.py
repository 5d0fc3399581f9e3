from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.serve.http.page.conftest import SAID, open_page, page_of
from tests.serve.service import SmallService
from tests.small_index import citation

pytestmark = pytest.mark.browser

QUESTION = "Does metformin activate AMPK?"
EVIL = '<svg onload="document.title=1"></svg><b onpointerenter="document.title=1">bold</b>'


def ask(page: Page, question: str = QUESTION, system: str = "") -> None:
    page.locator("#question").fill(question)
    if system:
        show_options(page)
        page.get_by_label("Method").first.select_option(system)
    page.get_by_role("button", name="Ask", exact=True).click()


def show_options(page: Page) -> None:
    """Open the options of the form, which are folded after a question was asked."""
    button = page.get_by_role("button", name="Options")
    if button.is_visible() and button.get_attribute("aria-expanded") == "false":
        button.click()


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")


def test_answer_is_shown_with_references_and_evidence(page: Page) -> None:
    ask(page)
    answer = page.get_by_role("article", name="Answer")
    expect(answer.get_by_role("heading", level=2)).to_have_text(QUESTION)
    expect(answer.locator(".exact")).to_have_text("Yes")
    expect(answer).to_contain_text(SAID)
    reference = page.locator(".references li").first
    expect(reference).to_contain_text(f"{SAID}Doe J. Metformin and AMPK. 11-9. PubMed PMID: 1.")
    expect(page.locator("#progress")).to_have_text("Done.")
    page.get_by_text("Details: evidence").click()
    details = page.locator(".details")
    expect(details).to_contain_text("shards 2/2; system citeray")
    expect(details.locator(".bars")).to_contain_text("rerank")
    expect(details.locator(".evidence")).to_contain_text("supports: yes")
    expect(details.locator(".evidence")).to_contain_text(re.compile(r"rerank \d\.\d\d"))


def test_filters_restrict_the_citations_and_are_named(browser: Browser) -> None:
    held = [
        citation(1, SAID, "Old", year=1999),
        citation(2, SAID, "New", year=2021, publication_types=("Randomized Controlled Trial",)),
    ]
    with page_of(browser, SmallService(citations=held)) as page:
        page.get_by_text("Filters", exact=True).click()
        page.get_by_label("From year").fill("2020")
        page.get_by_label("Article type").select_option("randomised trials")
        expect(page.locator("#filters summary")).to_have_text("Filters (2 active)")
        ask(page)
        answer = page.get_by_role("article", name="Answer")
        expect(answer).to_contain_text("Only citations since 2020, randomized controlled trial.")
        page.locator("summary", has_text="All citations found (1)").click()
        expect(page.locator(".found")).to_contain_text("New (2021)")
        page.get_by_role("button", name="Remove filter: since 2020").click()
        expect(page.locator("#filters summary")).to_have_text("Filters (1 active)")
        show_options(page)
        page.get_by_role("button", name="Clear all").click()
        expect(page.locator("#filters summary")).to_have_text("Filters")
        ask(page)
        page.locator("summary", has_text="All citations found (2)").click()
        expect(answer).not_to_contain_text("Only citations")
        show_options(page)
        page.get_by_label("From year").fill("2030")
        page.get_by_label("To year").fill("2020")
        ask(page)
        expect(page.get_by_role("alert").first).to_contain_text("filters.year_from: 2030 is after")


def test_every_filter_can_be_set_and_is_shown_as_a_chip(page: Page) -> None:
    page.get_by_text("Filters", exact=True).click()
    form = page.locator("#filters")
    form.get_by_label("Published by").fill("2024-05-31")
    form.get_by_label("Language").select_option("English")
    form.get_by_label("Study design").select_option("meta-analysis")
    form.get_by_label("People").select_option("in humans")
    form.get_by_label("Abstract").select_option("with an abstract")
    form.get_by_label("Retracted").select_option("not retracted")
    for label, value in (("Journal", "Lancet"), ("MeSH heading", "D006801")):
        form.get_by_label(label).fill(value)
        form.get_by_label(label).press("Enter")
    page.locator("#question").fill(QUESTION)
    with page.expect_request("**/v1/answer") as asked:
        page.get_by_role("button", name="Ask", exact=True).click()
    assert asked.value.post_data_json["filters"] == {
        "until": "2024-05-31",
        "design": ["meta_analysis"],
        "journals": ["Lancet"],
        "languages": ["eng"],
        "mesh": ["D006801"],
        "humans": True,
        "has_abstract": True,
        "retracted": False,
    }
    expect(page.locator("#chips li")).to_have_count(8)
    # No article of this index has these values, which the page reports next to the filters.
    expect(page.locator(".problem")).to_contain_text("filters.journals")


def test_citation_number_leads_to_its_sentence_reference_and_passage(page: Page) -> None:
    ask(page)
    number = page.get_by_role("link", name="Reference 1").first
    number.focus()
    hint = page.get_by_role("tooltip")
    expect(hint).to_contain_text(SAID)
    expect(number).to_have_attribute("aria-describedby", "hint")
    page.keyboard.press("Escape")
    expect(hint).to_be_hidden()
    number.click()
    expect(page.locator(".references li").first).to_be_focused()
    assert "#" not in page.url
    page.get_by_role("button", name="Read the passage of reference 1").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Metformin and AMPK")
    expect(dialog.locator("mark")).to_have_text(SAID)
    link = dialog.get_by_role("link", name="PMID 1 at PubMed")
    expect(link).to_have_attribute("href", "https://pubmed.ncbi.nlm.nih.gov/1/")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_phone_shows_the_verdict_first_and_needs_no_horizontal_scrolling(
    browser: Browser, url: str
) -> None:
    with open_page(browser, url, viewport={"width": 390, "height": 844}) as page:
        method = page.get_by_label("Method").first
        expect(method).to_be_visible()
        ask(page)
        expect(page.locator(".verdict")).to_contain_text("Yes1 study says yes")
        expect(method).to_be_hidden()
        box = page.locator(".badge").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 300
        # While a question runs, there is a third button, and the question has a line of its own.
        page.evaluate("document.getElementById('cancel').hidden = false")
        running = page.locator("#question").bounding_box()
        assert running is not None
        assert running["width"] > 300
        page.evaluate("document.getElementById('cancel').hidden = true")
        page.locator("#question").fill("Does warfarin inhibit VKORC1?")
        page.get_by_role("button", name="Options").click()
        expect(method).to_be_visible()
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.get_by_role("heading", level=2).first).to_contain_text("VKORC1")
        expect(method).to_be_hidden()
        page.set_viewport_size({"width": 360, "height": 740})
        unfold(page)
        for tab in ("Ask", "Compare", "Batch"):
            page.get_by_role("tab", name=tab).click()
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, tab


def test_found_articles_and_a_draft_are_shown_while_the_answer_is_written(page: Page) -> None:
    page.evaluate(
        """() => { window.seen = {};
             for (const id of ["early", "draft-text"]) {
               const place = document.getElementById(id);
               window.seen[id] = [];
               new MutationObserver(() => window.seen[id].push(place.textContent))
                 .observe(place, {childList: true, subtree: true, characterData: true}); } }"""
    )
    ask(page, system="citeray-model")
    expect(page.get_by_role("article", name="Answer")).to_contain_text(SAID)
    page.get_by_text("Details: evidence").click()
    expect(page.locator(".details")).to_contain_text("Written by the language model")
    expect(page.locator("#early")).to_be_hidden()
    expect(page.get_by_text("Draft, not checked yet")).to_be_hidden()
    seen = page.evaluate("window.seen")
    listed = [text for text in seen["early"] if text]
    assert "Found 3 articles; writing the answer" in listed[0]
    assert "Metformin and AMPK" in listed[0]
    assert SAID in seen["draft-text"]


def test_missing_page_and_api_documentation_link_to_the_start(browser: Browser, url: str) -> None:
    page = browser.new_page()
    reply = page.goto(f"{url}/nowhere")
    assert reply is not None
    assert reply.status == 404
    page.get_by_role("link", name="the API").click()
    expect(page.locator("h3.opblock-tag a").first).to_have_text("Questions")
    expect(page.locator("h3.opblock-tag")).to_have_count(4)
    page.get_by_role("link", name="Back to the questions").click()
    expect(page.locator("#question")).to_be_focused()
    # The question has the focus before the scripts of the page have run.
    page.wait_for_load_state()
    theme = page.locator("#theme")
    expect(theme).to_have_text("Dark")
    theme.click()
    expect(theme).to_have_text("Light")
    page.close()
    assert httpx.get(f"{url}/nowhere").headers["content-type"] == "application/problem+json"


def test_page_is_usable_by_keyboard(page: Page) -> None:
    page.locator("body").press("/")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    expect(page.get_by_role("article", name="Answer")).to_contain_text(SAID)
    expect(page.locator("#answer")).to_be_focused()
    page.get_by_role("tab", name="Ask").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Compare")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Compare")).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_role("tab", name="Batch")).to_have_attribute("aria-selected", "true")


def test_question_can_be_cancelled(page: Page, url: str) -> None:
    page.route("**/v1/answer", lambda route: None)
    ask(page)
    with page.expect_event("requestfailed") as failed:
        page.get_by_role("button", name="Cancel").click()
    assert failed.value.url == f"{url}/v1/answer"
    expect(page.locator("#progress")).to_have_text("Cancelled.")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_page_asks_for_an_api_key(
    browser: Browser, service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"alice:{'k' * 32}")
    with page_of(browser, service) as page:
        page.get_by_label("This server requires an API key").fill("k" * 32)
        page.get_by_role("button", name="Use this key").click()
        expect(page.get_by_label("Method").first).to_contain_text("Words and meaning")
        ask(page)
        expect(page.get_by_role("article", name="Answer")).to_contain_text(SAID)
        assert page.evaluate("Object.keys(localStorage).join()").find("key") == -1


def test_hostile_titles_abstracts_and_questions_are_shown_as_text(browser: Browser) -> None:
    planted = [citation(7, f"Metformin activates AMPK {EVIL} in mice.", f"On AMPK {EVIL}")]
    with page_of(browser, SmallService(citations=planted)) as page:
        ask(page, f"{QUESTION} <img src=x onerror=alert()><script>alert()</script> {EVIL}")
        expect(page.get_by_role("article", name="Answer")).to_contain_text("<svg onload=")
        unfold(page)
        page.get_by_role("button", name="Read the passage").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("<svg onload=")
        for made in ("img", "script", "[onload]", "[onpointerenter]"):
            assert page.locator(f":is(main, dialog) {made}").count() == 0
        assert page.title().startswith("CiteRay")


def test_page_files_have_a_strict_policy_and_no_inline_code(url: str) -> None:
    for path in ("/", "/static/page.js", "/static/answer.css"):
        policy = httpx.get(f"{url}{path}").headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    etag = httpx.get(f"{url}/static/page.js").headers["etag"]
    again = httpx.get(f"{url}/static/page.js", headers={"If-None-Match": etag})
    assert again.status_code == 304
    inline = r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|https?://"
    assert not re.search(inline, httpx.get(url).text)
    with httpx.Client() as client:
        for name in ("../api.py", "%2e%2e/api.py", "..%2fapi.py", ""):
            request = client.build_request("GET", url)
            request.url = request.url.copy_with(raw_path=f"/static/{name}".encode())
            assert client.send(request).status_code in (404, 405), name
