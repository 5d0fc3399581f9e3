"""The page in a real Chromium, over the real API on a small index."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from cluster.answers import Question
from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.serve.batches.served import Asking, served
from tests.serve.http.page.conftest import SAID, watched
from tests.serve.http_server import serving
from tests.serve.service import SmallService
from tests.small_index import citation

QUESTION = "Does metformin activate AMPK?"
EVIL = '<svg onload="document.title=1"></svg><b onpointerenter="document.title=1">bold</b>'


def ask(page: Page, question: str = QUESTION, system: str = "") -> None:
    page.get_by_role("textbox", name="Question").first.fill(question)
    if system:
        page.get_by_label("System").first.select_option(system)
    page.get_by_role("button", name="Ask", exact=True).click()


def test_an_answer_comes_with_its_citations_and_what_it_rests_on(page: Page) -> None:
    ask(page)
    answer = page.get_by_role("article", name="Answer")
    expect(answer.locator(".exact")).to_have_text("Yes")
    expect(answer).to_contain_text(SAID)
    expect(answer).to_contain_text("shards 2/2; system citeray")
    expect(page.get_by_role("status").first).to_have_text("The answer is there.")
    page.get_by_text("Time by stage").click()
    expect(page.locator(".bars")).to_contain_text("rerank")
    page.get_by_text("Evidence (").click()
    expect(page.locator(".evidence")).to_contain_text("supports")


def test_filters_narrow_what_is_found_and_the_answer_names_them(
    browser: Browser, tmp_path: Path
) -> None:
    held = [
        citation(1, SAID, "Old", year=1999),
        citation(2, SAID, "New", year=2021, publication_types=("Randomized Controlled Trial",)),
    ]
    api = create_api(SmallService(tmp_path, citations=held), load_settings().serve)
    with serving(api) as port, watched(browser.new_context(), f"http://127.0.0.1:{port}") as page:
        page.get_by_text("Filters", exact=True).click()
        page.get_by_label("From", exact=True).fill("2020")
        page.get_by_label("Kind").select_option("randomised trials")
        expect(page.locator("#filters summary")).to_have_text("Filters (2 on)")
        ask(page)
        answer = page.get_by_role("article", name="Answer")
        expect(answer).to_contain_text("Only citations since 2020, randomized controlled trial.")
        page.get_by_text("Citations (1)").click()
        expect(page.locator("details ol").first).to_contain_text("New (2021)")
        page.get_by_role("button", name="Clear").click()
        expect(page.locator("#filters summary")).to_have_text("Filters")
        ask(page)
        expect(page.get_by_text("Citations (2)")).to_be_visible()
        expect(answer).not_to_contain_text("Only citations")
        page.get_by_label("From", exact=True).fill("2030")
        page.get_by_label("to", exact=True).fill("2020")
        ask(page)
        expect(page.get_by_role("alert")).to_contain_text("filters.year_from: 2030 is after")


def test_a_citation_opens_its_passage_with_the_sentence_marked(page: Page) -> None:
    ask(page)
    page.get_by_role("article", name="Answer").get_by_role("button", name="PMID 1").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Metformin and AMPK")
    expect(dialog.locator("mark")).to_have_text(SAID)
    link = dialog.get_by_role("link", name="PMID 1 at PubMed")
    expect(link).to_have_attribute("href", "https://pubmed.ncbi.nlm.nih.gov/1/")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_the_models_words_are_a_draft_until_they_are_checked(page: Page) -> None:
    page.evaluate(
        """() => { window.drafts = []; new MutationObserver(() => window.drafts.push(
             document.getElementById("draft-text").textContent))
             .observe(document.getElementById("draft-text"), {childList: true, subtree: true,
                      characterData: true}); }"""
    )
    ask(page, system="citeray-model")
    expect(page.get_by_role("article", name="Answer")).to_contain_text("Written by the language")
    expect(page.get_by_text("Draft, not checked yet")).to_be_hidden()
    assert SAID in page.evaluate("window.drafts")


def test_several_systems_answer_side_by_side(page: Page) -> None:
    page.get_by_role("tab", name="Compare").click()
    page.get_by_role("tabpanel", name="Compare").get_by_label("Question").fill(QUESTION)
    page.get_by_role("checkbox", name="bm25").check()
    page.get_by_role("button", name="Compare").click()
    for system in ("citeray", "hybrid", "bm25"):
        card = page.get_by_role("article", name=system, exact=True)
        expect(card).to_contain_text("PMID 1 (also ")
    expect(page.locator("#compare-progress")).to_have_text("3 of 3 have answered")


def test_earlier_questions_are_kept_in_the_browser_until_they_are_forgotten(page: Page) -> None:
    ask(page)
    expect(page.get_by_role("article", name="Answer")).to_be_visible()
    page.reload()
    page.get_by_text("Earlier questions").click()
    page.get_by_role("button", name=QUESTION).click()
    expect(page.get_by_role("article", name="Answer")).to_contain_text(SAID)
    assert QUESTION.split()[1] not in page.url
    page.get_by_role("button", name="Forget them").click()
    expect(page.get_by_text("Earlier questions")).to_be_hidden()


def test_the_page_can_be_used_by_keyboard_alone(page: Page) -> None:
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


def test_every_control_has_a_name(page: Page) -> None:
    for tab in ("Ask", "Compare", "Batch"):
        page.get_by_role("tab", name=tab).click()
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, textarea, a")]
                 .filter((e) => e.offsetParent && !(e.textContent.trim() || e.labels?.length
                         || e.getAttribute("aria-label"))).map((e) => e.outerHTML)"""
        )
        assert unnamed == []


@pytest.mark.parametrize("tab", ["Ask", "Compare", "Batch"])
def test_a_phone_shows_the_page_without_sideways_scrolling(
    browser: Browser, url: str, tab: str
) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 740})
    with watched(context, url) as page:
        ask(page)
        expect(page.get_by_role("article", name="Answer")).to_be_visible()
        for details in page.locator("details > summary").all():
            details.click()
        page.get_by_role("tab", name=tab).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


# WCAG 2.2's contrast of every text on what lies behind it.
CONTRAST = """() => {
  const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("body *")].filter((e) => e.offsetParent && !e.disabled
      && [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => {
    const lights = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const [a, b] = lights.sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 80)];
  }).filter(([ratio]) => ratio < 4.5);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_light_and_dark(browser: Browser, url: str, scheme: str) -> None:
    context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
    with watched(context, url) as page:
        ask(page)
        expect(page.get_by_role("article", name="Answer")).to_be_visible()
        for details in page.locator("details > summary").all():
            details.click()
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert page.evaluate(CONTRAST) == []
        page.get_by_role("button", name="Dark").click()
        assert page.evaluate("document.documentElement.dataset.theme") != scheme
    context.close()


def test_cancel_ends_the_question(page: Page, url: str) -> None:
    page.route("**/v1/answer", lambda route: None)
    ask(page)
    with page.expect_event("requestfailed") as failed:
        page.get_by_role("button", name="Cancel").click()
    assert failed.value.url == f"{url}/v1/answer"
    expect(page.get_by_role("status").first).to_have_text("Cancelled.")
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()


def test_a_server_that_is_not_ready_is_said_in_words(browser: Browser, tmp_path: Path) -> None:
    api = create_api(SmallService(tmp_path, state="loading"), load_settings().serve)
    with serving(api) as port, watched(browser.new_context(), f"http://127.0.0.1:{port}") as page:
        ask(page)
        expect(page.get_by_role("alert").first).to_contain_text("still loading: shard-0001")


def test_a_server_with_keys_asks_for_one(
    browser: Browser, service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", f"alice:{'k' * 32}")
    api = create_api(service, load_settings().serve)
    with serving(api) as port, watched(browser.new_context(), f"http://127.0.0.1:{port}") as page:
        page.get_by_label("This server asks for an API key").fill("k" * 32)
        page.get_by_role("button", name="Use it").click()
        expect(page.get_by_label("System").first).to_contain_text("hybrid")
        ask(page)
        expect(page.get_by_role("article", name="Answer")).to_contain_text(SAID)
        assert page.evaluate("Object.keys(localStorage).join()").find("key") == -1


def test_hostile_titles_abstracts_and_questions_stay_text(browser: Browser, tmp_path: Path) -> None:
    planted = [citation(7, f"Metformin activates AMPK {EVIL} in mice.", f"On AMPK {EVIL}")]
    api = create_api(SmallService(tmp_path, citations=planted), load_settings().serve)
    with serving(api) as port, watched(browser.new_context(), f"http://127.0.0.1:{port}") as page:
        ask(page, f"{QUESTION} <img src=x onerror=alert()><script>alert()</script> {EVIL}")
        expect(page.get_by_role("article", name="Answer")).to_contain_text("<svg onload=")
        for details in page.locator("details > summary").all():
            details.click()
        page.get_by_role("article").get_by_role("button", name="PMID 7").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("<svg onload=")
        for made in ("img", "script", "[onload]", "[onpointerenter]"):
            assert page.locator(f":is(main, dialog) {made}").count() == 0
        assert page.title().startswith("CiteRay")


def test_a_file_of_questions_becomes_a_run(
    browser: Browser, service: SmallService, tmp_path: Path
) -> None:
    rows = [{"id": f"q{n}", "type": "yesno", "body": QUESTION} for n in range(3)]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    asking = Asking(service)
    with (
        served(service, tmp_path, asking) as http,
        watched(browser.new_context(), str(http.base_url)) as page,
    ):
        page.get_by_role("tab", name="Batch").click()
        page.get_by_label("BioASQ questions (JSON)").set_input_files(file)
        page.get_by_role("button", name="Start").click()
        batch = page.locator("#batches li")
        expect(batch).to_contain_text("done: 3 of 3", timeout=15_000)
        page.reload()
        page.get_by_role("tab", name="Batch").click()
        with page.expect_download() as fetched:
            batch.get_by_role("button", name="Download the run").click()
        run = json.loads(Path(fetched.value.path()).read_bytes())
        assert [entry["id"] for entry in run["questions"]] == ["q0", "q1", "q2"]
        batch.get_by_role("button", name="Forget").click()
        expect(batch).to_have_count(0)


def test_a_batch_says_how_many_of_its_questions_failed(
    browser: Browser, service: SmallService, tmp_path: Path
) -> None:
    rows = [{"id": f"q{n}", "type": "yesno", "body": QUESTION} for n in range(3)]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    asking = Asking(service)

    def fail(question: Question) -> None:
        if question.id == "q1":
            raise ValueError("this one cannot be asked")

    asking.trouble = fail
    with (
        served(service, tmp_path, asking) as http,
        watched(browser.new_context(), str(http.base_url)) as page,
    ):
        page.get_by_role("tab", name="Batch").click()
        page.get_by_label("BioASQ questions (JSON)").set_input_files(file)
        page.get_by_role("button", name="Start").click()
        batch = page.locator("#batches li")
        expect(batch).to_contain_text("done: 2 of 3, 1 failed", timeout=15_000)


def test_a_file_that_is_no_batch_is_refused_in_words(
    browser: Browser, service: SmallService, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{", encoding="utf-8")
    unfit = tmp_path / "unfit.json"
    unfit.write_text('{"questions": [{"id": "q1"}]}', encoding="utf-8")
    with (
        served(service, tmp_path, Asking(service)) as http,
        watched(browser.new_context(), str(http.base_url)) as page,
    ):
        page.get_by_role("tab", name="Batch").click()
        for file, said in ((bad, "bad.json is no BioASQ file"), (unfit, "question 0 (id q1)")):
            page.get_by_label("BioASQ questions (JSON)").set_input_files(file)
            page.get_by_role("button", name="Start").click()
            expect(page.locator("#batch-problem")).to_contain_text(said)


def test_a_batch_can_be_cancelled_from_the_page(
    browser: Browser, service: SmallService, tmp_path: Path
) -> None:
    rows = [{"id": f"q{n}", "type": "yesno", "body": QUESTION} for n in range(200)]
    file = tmp_path / "questions.json"
    file.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    asking = Asking(service)
    asking.trouble = lambda question: time.sleep(0.2)
    with (
        served(service, tmp_path, asking) as http,
        watched(browser.new_context(), str(http.base_url)) as page,
    ):
        page.get_by_role("tab", name="Batch").click()
        page.get_by_label("BioASQ questions (JSON)").set_input_files(file)
        page.get_by_role("button", name="Start").click()
        batch = page.locator("#batches li")
        batch.get_by_role("button", name="Cancel").click()
        expect(batch).to_contain_text("cancelled: ")
        assert len(asking.asked) < 200


def test_the_policy_forbids_what_the_page_does_not_need(url: str) -> None:
    for path in ("/", "/static/page.js", "/static/page.css"):
        headers = httpx.get(f"{url}{path}").headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["etag"]
    script = httpx.get(f"{url}/static/page.js")
    again = httpx.get(f"{url}/static/page.js", headers={"If-None-Match": script.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path", ["/static/../api.py", "/static/%2e%2e/api.py", "/static/..%2fapi.py", "/static/"]
)
def test_no_other_file_is_served(url: str, path: str) -> None:
    with httpx.Client() as client:
        request = client.build_request("GET", url)
        request.url = request.url.copy_with(raw_path=path.encode())
        assert client.send(request).status_code in (404, 405)


def test_the_page_has_no_inline_code(url: str) -> None:
    page = httpx.get(url).text
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|https?://", page)
