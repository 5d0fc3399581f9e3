from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.serve.http.page.test_page import QUESTION, ask

pytestmark = pytest.mark.browser

FOLLOW_UP = "And its effect in the liver?"


def follow(page: Page, question: str) -> None:
    page.get_by_label("Ask a follow-up").fill(question)
    page.get_by_role("button", name="Follow up").click()
    expect(page.locator("#answer h2")).to_have_text(question)


def test_each_turn_of_a_conversation_keeps_its_answer(library: Page) -> None:
    ask(library)
    said = library.locator("#answer .sentences").inner_text()
    follow(library, FOLLOW_UP)
    thread = library.get_by_role("region", name="Earlier in this conversation")
    turn = thread.locator("details")
    expect(turn).to_have_count(1)
    expect(turn.locator("> summary")).to_have_text(f"{QUESTION} Yes")
    turn.locator("> summary").click()
    expect(turn.locator(".sentences")).to_have_text(
        re.compile(re.escape(said.split("[")[0].strip()))
    )
    follow(library, "And what is its dose?")
    expect(turn).to_have_count(2)
    library.go_back()
    expect(library.locator("#answer h2")).to_have_text(FOLLOW_UP)
    expect(turn).to_have_count(1)
    ask(library, "Does baloxavir help?")
    expect(library.locator("#answer h2")).to_have_text("Does baloxavir help?")
    expect(turn).to_have_count(0)


def test_question_as_understood_is_shown_and_edited(library: Page) -> None:
    ask(library)
    follow(library, FOLLOW_UP)
    card = library.locator("#answer .answer")
    expect(card).to_contain_text(f"Understood as: {QUESTION} {FOLLOW_UP}")
    card.get_by_role("button", name="Edit").click()
    field = card.get_by_label("The question as understood")
    expect(field).to_be_focused()
    expect(field).to_have_value(f"{QUESTION} {FOLLOW_UP}")
    edited = "Does metformin act in the liver?"
    with library.expect_request("**/v1/answer") as sent:
        field.fill(edited)
        card.get_by_role("button", name="Ask this").click()
    assert sent.value.post_data_json["question"] == edited
    assert sent.value.post_data_json["turns"] == []
    expect(library.locator("#answer h2")).to_have_text(edited)
    expect(library.locator("#thread details")).to_have_count(1)


def test_parts_of_a_question_have_their_own_verdicts(library: Page) -> None:
    ask(library, f"{QUESTION} What does VKORC1 do?")
    card = library.get_by_role("article", name="Answer")
    first = card.get_by_role("region", name=QUESTION)
    second = card.get_by_role("region", name="What does VKORC1 do?")
    expect(first.locator(".exact")).to_have_text("Yes")
    expect(second).to_contain_text("Not enough evidence")
    expect(card.get_by_text("There is not enough evidence for this part")).to_have_count(0)
    first.get_by_role("link", name="Reference 1").first.click()
    expect(card.locator(".references li").first).to_be_focused()
