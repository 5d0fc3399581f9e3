"""The Strategy tab: blocks, the query box, paged results and exports."""

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
