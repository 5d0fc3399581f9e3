"""The verdict on the page, in a real Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.serve.batches.served import Asking, served
from tests.serve.http.page.conftest import SAID, watched
from tests.serve.http.page.test_page import CONTRAST, QUESTION, ask
from tests.serve.http_server import serving
from tests.serve.service import DISPUTED, SmallService, dispute, own_words, unsure_of


@contextmanager
def page_of(browser: Browser, service: SmallService, **context: Any) -> Iterator[Page]:
    opened = browser.new_context(viewport={"width": 1000, "height": 900}, **context)
    api = create_api(service, load_settings().serve)
    with serving(api) as port, watched(opened, f"http://127.0.0.1:{port}") as page:
        yield page
    opened.close()


@pytest.fixture(scope="module")
def unsure(tmp_path_factory: pytest.TempPathFactory) -> SmallService:
    return SmallService(tmp_path_factory.mktemp("unsure"), decide=unsure_of)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> SmallService:
    index = tmp_path_factory.mktemp("mixed")
    return SmallService(index, citations=DISPUTED, decide=dispute)


def test_an_unanswered_question_says_so_and_links_the_nearest_citations(
    browser: Browser, unsure: SmallService
) -> None:
    with page_of(browser, unsure) as page:
        ask(page)
        answer = page.get_by_role("article", name="Answer")
        expect(answer).to_contain_text("Not enough evidence")
        expect(answer).to_contain_text("The indexed literature does not answer this question.")
        link = answer.get_by_role("link", name="Metformin and AMPK")
        expect(link).to_have_attribute("href", "https://pubmed.ncbi.nlm.nih.gov/1/")
        expect(answer.locator(".exact, .sentences")).to_have_count(0)
        page.get_by_text("Evidence (").click()
        expect(page.locator(".evidence")).to_contain_text(SAID)
        expect(page.locator(".stance")).to_have_count(0)
        answer.get_by_role("button", name="PMID 1").click()
        expect(page.get_by_role("dialog").locator("mark")).to_have_text(SAID)


def test_where_sources_disagree_both_sides_are_quoted(
    browser: Browser, mixed: SmallService
) -> None:
    with page_of(browser, mixed) as page:
        ask(page)
        answer = page.get_by_role("article", name="Answer")
        expect(answer).to_contain_text("Sources disagree")
        expect(answer.locator(".exact")).to_have_count(0)
        for_, against = (answer.locator(".sides li", has_text=text) for text in (SAID, "not"))
        expect(for_).to_contain_text("supports: ")
        expect(against).to_contain_text("contradicts: ")
        expect(against.get_by_role("button", name="Against: PMID 4")).to_be_visible()


def test_a_sentence_that_no_evidence_supports_bears_the_mark(
    browser: Browser, tmp_path: Path
) -> None:
    with page_of(browser, SmallService(tmp_path, decide=own_words)) as page:
        ask(page)
        last = page.locator(".sentences > li").last
        expect(last).to_have_text("It cures everything. No evidence supports this. ")
        expect(last.get_by_role("button")).to_have_count(0)
        expect(page.locator(".sentences > li").first).not_to_contain_text("No evidence")


def test_a_stance_badge_says_what_it_is_towards(page: Page) -> None:
    ask(page)
    page.get_by_text("Evidence (").click()
    expect(page.locator(".evidence .stance.supports").first).to_have_text("supports: yes")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_verdicts_can_be_read_in_light_and_dark(
    browser: Browser, unsure: SmallService, mixed: SmallService, scheme: str
) -> None:
    for service in (unsure, mixed):
        with page_of(browser, service, color_scheme=scheme) as page:
            ask(page)
            expect(page.locator(".verdict")).to_be_visible()
            assert page.evaluate(CONTRAST) == []


def test_an_answer_kept_by_an_earlier_version_is_still_shown(page: Page) -> None:
    ask(page)
    expect(page.get_by_role("article", name="Answer")).to_be_visible()
    page.evaluate(
        """() => { const kept = JSON.parse(localStorage["citeray-history"]);
             for (const { answer } of kept) { delete answer.verdict; delete answer.confidence;
               for (const item of answer.evidence) delete item.stance_on; }
             localStorage["citeray-history"] = JSON.stringify(kept); }"""
    )
    page.reload()
    page.get_by_text("Earlier questions").click()
    page.get_by_role("button", name=QUESTION).click()
    expect(page.get_by_role("article", name="Answer")).to_contain_text(SAID)
    page.get_by_text("Evidence (").click()
    expect(page.locator(".evidence .stance.supports").first).to_have_text("supports")


def test_a_batch_says_how_many_questions_lack_evidence(
    browser: Browser, unsure: SmallService, tmp_path: Path
) -> None:
    file = tmp_path / "questions.json"
    rows = [{"id": f"q{n}", "type": "yesno", "body": QUESTION} for n in range(2)]
    file.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    with (
        served(unsure, tmp_path, Asking(unsure)) as http,
        watched(browser.new_context(), str(http.base_url)) as page,
    ):
        page.get_by_role("tab", name="Batch").click()
        page.get_by_label("BioASQ questions (JSON)").set_input_files(file)
        page.get_by_role("button", name="Start").click()
        batch = page.locator("#batches li")
        expect(batch).to_contain_text("2 of 2, 2 without enough evidence", timeout=15_000)
