from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.serve.http.page.library import EXAMPLE
from tests.serve.http.page.test_page import QUESTION, ask, show_options
from tests.serve.service import SmallService

pytestmark = [pytest.mark.durability, pytest.mark.browser, pytest.mark.nightly]

OTHER = "Does warfarin inhibit VKORC1?"


def heading(page: Page, text: str) -> None:
    card = page.get_by_role("article", name="Answer")
    expect(card.get_by_role("heading", level=2)).to_have_text(text)


def test_url_asks_its_question_with_preset_type_and_filters(page: Page, url: str) -> None:
    asked = f"{url}/?q=Does+metformin+activate+AMPK%3F&system=hybrid&type=yesno"
    with page.expect_request("**/v1/answer") as sent:
        page.goto(f"{asked}&year_to=2020&design=meta_analysis&humans=false&retracted=false")
    body = sent.value.post_data_json
    assert (body["question"], body["system"], body["type"]) == (QUESTION, "hybrid", "yesno")
    assert body["filters"] == {
        "year_to": 2020,
        "design": ["meta_analysis"],
        "humans": False,
        "retracted": False,
    }
    heading(page, QUESTION)
    expect(page.locator("#system")).to_have_value("hybrid")
    expect(page.locator("#chips li")).to_have_count(4)


def test_url_of_an_answer_survives_reload_back_and_forward(page: Page) -> None:
    ask(page, system="hybrid")
    heading(page, QUESTION)
    assert parse_qs(urlsplit(page.url).query) == {"q": [QUESTION], "system": ["hybrid"]}
    page.reload()
    heading(page, QUESTION)
    ask(page, OTHER, system="bm25")
    heading(page, OTHER)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.go_back()
    heading(page, QUESTION)
    expect(page.locator("#question")).to_have_value(QUESTION)
    expect(page.locator("#system")).to_have_value("hybrid")
    page.go_forward()
    heading(page, OTHER)
    assert not [asked for asked in requests if asked.endswith("/v1/answer")]
    page.go_back()
    page.go_back()
    expect(page.get_by_role("article", name="Answer")).to_have_count(0)
    expect(page.locator("#question")).to_have_value("")


def test_history_restores_question_preset_filters_and_answer(page: Page) -> None:
    page.get_by_text("Filters", exact=True).click()
    page.get_by_label("Abstract").select_option("with an abstract")
    ask(page, system="hybrid")
    heading(page, QUESTION)
    show_options(page)
    page.get_by_role("button", name="Clear all").click()
    ask(page, OTHER, system="bm25")
    heading(page, OTHER)
    page.get_by_text("Earlier questions").click()
    page.locator("#history").get_by_role("button", name=QUESTION).click()
    heading(page, QUESTION)
    expect(page.locator("#question")).to_have_value(QUESTION)
    expect(page.locator("#system")).to_have_value("hybrid")
    expect(page.locator("#chips li")).to_contain_text(["with an abstract"])
    assert parse_qs(urlsplit(page.url).query)["q"] == [QUESTION]


def test_history_is_limited_and_has_no_duplicates(page: Page) -> None:
    ask(page)
    heading(page, QUESTION)
    page.evaluate(
        """() => { const [entry] = JSON.parse(localStorage["citeray-history"]);
             const old = Array.from({length: 20}, (_, n) =>
               ({...entry, at: n, request: {...entry.request, question: `Old ${n}`}}));
             localStorage["citeray-history"] = JSON.stringify(old); }"""
    )
    for _ in range(2):
        ask(page)
        expect(page.locator("#progress")).to_have_text("Done.")
    kept = page.evaluate(
        "() => JSON.parse(localStorage['citeray-history']).map((e) => e.request.question)"
    )
    assert len(kept) == 20
    assert kept.count(QUESTION) == 1


def test_did_you_mean_asks_the_corrected_question(library: Page) -> None:
    ask(library, "Does metfromin activate AMPK?")
    card = library.get_by_role("article", name="Answer")
    card.get_by_role("button", name=QUESTION).click()
    heading(library, QUESTION)
    expect(card.get_by_text("Did you mean")).to_have_count(0)


def test_unavailable_presets_are_disabled_with_a_reason(page: Page, service: SmallService) -> None:
    before, service.models = service.models, {"llm": "none"}
    try:
        page.reload()
        option = page.locator("#system option[value=citeray-model]")
        expect(option).to_be_disabled()
        expect(option).to_contain_text(
            "It needs a language model that writes; this server has none"
        )
        page.get_by_role("tab", name="Compare").click()
        expect(page.locator("#compare-systems input[value=citeray]")).to_be_checked()
        expect(page.locator("#compare-systems input[value=citeray-model]")).to_have_count(0)
        rest = page.locator("#compare-systems").get_by_text("more need a language model")
        rest.click()
        listed = page.locator("#compare-systems li")
        expect(listed.filter(has_text="written by the language model")).to_be_visible()
    finally:
        service.models = before


def test_example_is_asked_with_one_click(library: Page) -> None:
    with library.expect_request("**/v1/answer") as asked:
        library.get_by_role("button", name=EXAMPLE.question).click()
    assert asked.value.post_data_json["type"] == EXAMPLE.type
    heading(library, EXAMPLE.question)
    expect(library.get_by_role("article", name="Answer")).to_contain_text("Baloxavir is effective")
    expect(library.get_by_text("Example questions")).to_be_hidden()


def test_mesh_heading_is_chosen_by_name(library: Page) -> None:
    library.get_by_text("Filters", exact=True).click()
    library.get_by_label("MeSH heading").press_sequentially("metf")
    names = library.get_by_role("listbox", name="Suggestions")
    expect(names.get_by_role("option")).to_have_text(["Metformin"])
    library.keyboard.press("ArrowDown")
    library.keyboard.press("Enter")
    expect(library.locator("#chips li")).to_contain_text(["MeSH Metformin"])
    library.get_by_label("MeSH heading").fill("metabolism")
    library.keyboard.press("Enter")
    expect(library.locator("#chips li")).to_contain_text(["MeSH Metformin", "MeSH Metabolism"])
    library.locator("#question").fill(QUESTION)
    with library.expect_request("**/v1/answer") as asked:
        library.get_by_role("button", name="Ask", exact=True).click()
    assert asked.value.post_data_json["filters"]["mesh"] == ["D008687", "D008690"]


def test_names_are_completed_by_keyboard(library: Page) -> None:
    library.locator("#question").press_sequentially("Does met")
    names = library.get_by_role("listbox")
    expect(names.get_by_role("option")).to_have_text(["Metformin", "Metabolism"])
    library.keyboard.press("ArrowDown")
    expect(library.locator("#question")).to_have_attribute("aria-activedescendant", "names-0")
    library.keyboard.press("Enter")
    expect(library.locator("#question")).to_have_value("Does Metformin ")
    expect(names).to_be_hidden()
