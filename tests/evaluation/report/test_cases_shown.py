"""Single questions on the page, and limits on their length and number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lxml import html

from evaluation.report.render_report import TEXT_SHOWN, WORST_SHOWN, cut, render_report
from evaluation.report.report import SnippetRow
from tests.evaluation.report.some_report import CASE, DASH, LIGHT, page, rows, text, with_case


def test_case_shows_question_scores_documents_and_answers(whole: Any) -> None:
    (case,) = whole.xpath("//details[@class='case']")
    assert text(case.xpath(".//h3")[0]) == "Which protein is it?"
    assert text(case.xpath("./summary/span")[0]) == "factoid · documents AP 0.1250 · 6402c9"
    assert [text(div) for div in case.xpath("./dl/div")] == [
        "documents AP 0.1250",
        "factoid MRR 0.0000",
    ]
    assert rows(case.xpath(".//table")[0]) == [
        ["Rank", "Document", "Standing"],
        ["8", "11", "gold, found"],
        [DASH, "12", "gold, missed"],
        ["1", "13", "not gold, unjudged"],
        ["2", "14", "judged, not gold"],
    ]
    assert [text(side) for side in case.xpath(".//div[@class='sides']/div")] == [
        "Gold, exact aquaporin-4 / AQP4",
        "Said, exact MOG GFAP",
        "Gold, ideal It is aquaporin-4. The protein is AQP4.",
        "Said, ideal It is MOG.",
    ]


def test_matched_part_of_snippet_is_marked(whole: Any) -> None:
    items = whole.xpath("//ul[@class='snippets']/li")
    assert [text(li.find("span")) for li in items] == [
        "run, matched · 11",
        "gold and run, matched · 11",
        "gold, not matched · 12",
    ]
    assert [li.find("p").text_content() for li in items] == [s.text for s in CASE.snippets]
    assert [[text(m) for m in li.xpath(".//mark")] for li in items] == [
        ["aquaporin-4"],
        ["whole text"],
        [],
    ]


def test_long_text_is_shortened() -> None:
    body = "w" * (TEXT_SHOWN + 1234)
    long = SnippetRow("d", "x" * (TEXT_SHOWN + 5), True, True, True, (10, TEXT_SHOWN + 3))
    tree = page(with_case(body=body, snippets=(long,)))
    (shown,) = tree.xpath("//details/summary/h3")
    assert text(shown) == "w" * TEXT_SHOWN + "… (1,234 more characters)"
    (shown,) = tree.xpath("//ul[@class='snippets']/li/p")
    assert text(shown.find("mark")) == "x" * (TEXT_SHOWN - 10)
    assert shown.text_content() == cut(long.text)


def test_only_the_worst_cases_are_shown() -> None:
    cases = tuple(replace(CASE, id=f"case-{n}") for n in range(5000))
    rendered = render_report(replace(LIGHT, worst=cases, questions=5000))
    tree = html.document_fromstring(rendered)
    ids = [text(s).rpartition(" ")[2] for s in tree.xpath("//details[@class='case']/summary/span")]
    assert ids == [f"case-{n}" for n in range(WORST_SHOWN)]
    assert f"{WORST_SHOWN} of 5,000 answered questions, the worst first." in text(tree)
    assert len(rendered) < 1_000_000
