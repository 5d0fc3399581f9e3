"""Texts of a run cannot inject markup or scripts into the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html

from evaluation.bootstrap import Interval
from evaluation.report.render_report import render_report
from evaluation.report.report import Case, Comparison, DocumentRow, Group, Report, SnippetRow
from tests.evaluation.report.some_report import PUBMED, page, rows, text, with_case


def test_only_web_addresses_become_links_without_referrer() -> None:
    documents = (
        DocumentRow("javascript:alert(1)", 1, False, False),
        DocumentRow("https://pubmed.example/7/", 2, False, False),
        DocumentRow("12345678", 3, False, False),
    )
    (table,) = page(with_case(documents=documents)).xpath("//details[@class='case']//table")
    assert [(a.get("href"), a.get("rel"), a.text) for a in table.iter("a")] == [
        ("https://pubmed.example/7/", "noreferrer", "7")
    ]
    assert [row[1] for row in rows(table)[1:]] == ["javascript:alert(1)", "7", "12345678"]


def test_report_loads_nothing_and_runs_no_script(whole: Any) -> None:
    (policy,) = whole.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert not whole.xpath("//script|//iframe|//object|//embed|//@srcset")
    assert not whole.xpath("//@src")
    assert whole.xpath("//link/@href") == ["data:,"]
    assert not [name for name in whole.xpath("//@*") if name.attrname.startswith("on")]
    for style in whole.xpath("//style/text()|//@style"):
        assert not re.search(r"url\(|@import", style)
    elsewhere = [a.get("href") for a in whole.iter("a") if not a.get("href").startswith("#")]
    assert all(address.startswith(PUBMED) for address in elsewhere)


HOSTILE = "</style><script>alert(1)</script><img src=x onerror=y> \"'&{{ 7 * 7 }}"
# The details are a case and the missing questions.
ELEMENTS_OF_A_HOSTILE_PAGE = {
    "h1": 1,
    "details": 2,
    "img": 0,
    "mark": 1,
    "script": 0,
    "style": 1,
}


def hostile_report(words: str) -> Report:
    interval = Interval(0.5, 0.4, 0.6)
    return Report(
        title=words,
        run=words,
        gold=words,
        seed=0,
        resamples=1000,
        questions=1,
        missing=(words,),
        groups=(Group(words, 1, {words: interval}),),
        against=Comparison(words, {words: interval}, {words: words}),
        worst=(
            Case(
                words,
                words,
                words,
                words,
                {words: 0.5},
                (DocumentRow(words, 1, True, True), DocumentRow(PUBMED + words, 1, True, True)),
                (SnippetRow(words, words, True, True, True, (2, 5)),),
                (words,),
                (words,),
                ((words, words),),
                ((words,),),
            ),
        ),
        notes=(words,),
    )


def test_injected_markup_is_escaped() -> None:
    tree = page(hostile_report(HOSTILE))
    assert not tree.xpath("//script|//img|//@onerror")
    assert text(tree.find(".//h1")) == HOSTILE
    assert len(tree.xpath("//style")) == 1
    assert tree.xpath("//li/p")[0].text_content() == HOSTILE
    assert "49" not in text(tree.find(".//h1"))


@pytest.mark.slow
@settings(max_examples=8)
@given(st.text(st.characters(), min_size=3, max_size=40))
def test_any_text_gives_a_valid_page_with_the_same_elements(words: str) -> None:
    """Texts include control characters, unpaired surrogates and right-to-left marks."""
    rendered = render_report(hostile_report(words))
    assert not re.search("[\x00-\x08\ud800-\udfff]", rendered)
    found = html.document_fromstring(rendered.encode().decode())
    counts = {tag: len(found.xpath(f"//{tag}")) for tag in ELEMENTS_OF_A_HOSTILE_PAGE}
    assert counts == ELEMENTS_OF_A_HOSTILE_PAGE
