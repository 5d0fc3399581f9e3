from __future__ import annotations

from pathlib import Path

import pytest
import rispy
from playwright.sync_api import Page, expect

from tests.serve.http.page.conftest import CLIPBOARD
from tests.serve.http.page.test_page import QUESTION

pytestmark = [pytest.mark.browser]


def test_strategy_is_made_edited_and_exported(library: Page) -> None:
    library.evaluate(CLIPBOARD)
    library.locator("#question").fill(QUESTION)
    library.get_by_role("tab", name="Strategy").click()
    expect(library.locator("#strategy-question")).to_have_value(QUESTION)
    library.get_by_role("button", name="Make strategy").click()
    blocks = library.get_by_role("region", name="Blocks", exact=True)
    expect(blocks).to_contain_text("best articles of the semantic search (recall")
    expect(blocks.get_by_role("rowheader").first).to_contain_text("#1 ")
    expect(blocks).to_contain_text("without this block")
    query = library.locator("#strategy-query")
    expect(query).to_have_value("AMPK[tiab]")
    results = library.get_by_role("region", name="Results")
    expect(results.get_by_role("heading")).to_have_text("12 results")
    blocks.get_by_role("button", name="Copy for Ovid").click()
    assert library.evaluate("window.copied") == "1. (AMPK).ti,ab.\n"
    # An edited query is run again, and all of its results are exported.
    query.fill("metformin[tiab] NOT 2020:[dp]")
    library.get_by_role("button", name="Search", exact=True).click()
    expect(results.get_by_role("heading")).to_have_text("8 results")
    # The figures and texts of the strategy are not those of the edited query.
    expect(blocks).to_be_hidden()
    expect(results).to_contain_text("You edited the query")
    expect(results.get_by_role("listitem")).to_have_count(8)
    with library.expect_download() as got:
        results.get_by_role("button", name="All as RIS").click()
    records = rispy.loads(Path(got.value.path()).read_text(encoding="utf-8"))
    assert len(records) == 8
    query.fill("metformin[ad]")
    library.get_by_role("button", name="Search", exact=True).click()
    expect(library.get_by_role("alert").filter(has_text="[ad]")).to_be_visible()


def test_address_of_a_strategy_makes_it_and_its_table_scrolls_on_a_phone(library: Page) -> None:
    library.set_viewport_size({"width": 390, "height": 800})
    home = library.url
    library.goto(f"{home}?q=Does+metformin+activate+AMPK%3F&year_from=2015&tab=strategy&max_hits=9")
    blocks = library.get_by_role("region", name="Blocks", exact=True)
    expect(blocks).to_contain_text("Limits: 2015:3000[dp].")
    expect(library.get_by_role("tab", name="Strategy")).to_have_attribute("aria-selected", "true")
    expect(library.locator("#strategy-max")).to_have_value("9")
    # The link leads to the same strategy.
    library.evaluate(CLIPBOARD)
    blocks.get_by_role("button", name="Copy link").click()
    assert library.evaluate("window.copied") == library.url
    # The table is wider than the screen, but the page is not.
    table = library.get_by_role("region", name="Blocks of the strategy")
    assert table.evaluate("(place) => place.scrollWidth > place.clientWidth")
    expect(blocks.get_by_text("Scroll the table sideways")).to_be_visible()
    assert table.evaluate("(place) => getComputedStyle(place).overflowX") == "auto"
    assert library.evaluate("document.documentElement.scrollWidth") <= 390
