"""Page of an evaluation: its content, its limits, and that no text of a run injects markup."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lxml import html

from cluster.errors import InputError
from evaluation.bootstrap import Interval
from evaluation.report.render_report import (
    TEXT_SHOWN,
    WORST_SHOWN,
    cut,
    render_report,
    write_report,
)
from evaluation.report.report import Case, Comparison, DocumentRow, Group, Report, SnippetRow

NAN = Interval(math.nan, math.nan, math.nan)
DASH = "\N{EN DASH}"
PUBMED = "http://www.ncbi.nlm.nih.gov/pubmed/"
ALL = {
    "documents MAP": Interval(0.76971, 0.7369, 0.8022),
    "documents recall": Interval(0.5, 0.4, 0.6),
    "yesno accuracy": Interval(0.9, 0.8, 1.0),
    "BLEU": Interval(23.25, 20.125, 26.5),
    "factoid MRR": NAN,
}
AGAINST = Comparison(
    "other-run.json",
    {
        "documents MAP": Interval(0.1257, 0.1023, 0.1512),
        "documents recall": Interval(-0.2, -0.3, -0.1),
        "yesno accuracy": Interval(-0.00001, -0.01, 0.01),
        "factoid MRR": NAN,
    },
    {
        "documents MAP": "better",
        "documents recall": "worse",
        "yesno accuracy": "no difference shown",
    },
)
CASE = Case(
    id="6402c9",
    type="factoid",
    body="Which protein is it?",
    score_name="documents AP",
    scores={"documents AP": 0.125, "factoid MRR": 0.0},
    documents=(
        DocumentRow(PUBMED + "11", 8, True, True),
        DocumentRow(PUBMED + "12", None, True, True),
        DocumentRow(PUBMED + "13", 1, False, False),
        DocumentRow(PUBMED + "14", 2, False, True),
    ),
    snippets=(
        SnippetRow(PUBMED + "11", "It is aquaporin-4, of course.", True, True, False, (6, 17)),
        SnippetRow(PUBMED + "11", "whole text", True, True, True),
        SnippetRow(PUBMED + "12", "never found", False, False, True),
    ),
    gold_ideal=("It is aquaporin-4.", "The protein is AQP4."),
    said_ideal=("It is MOG.",),
    gold_exact=(("aquaporin-4", "AQP4"),),
    said_exact=(("MOG",), ("GFAP",)),
)
REPORT = Report(
    title="Dev questions",
    run="run.json",
    gold="gold.json",
    seed=7,
    resamples=2000,
    questions=1327,
    missing=("q1", "q2"),
    groups=(Group("all", 1327, ALL), Group("yesno", 82, {**ALL, "BLEU": NAN})),
    against=AGAINST,
    worst=(CASE,),
    notes=("The judge is weak.",),
)
# Without measures, for tests that do not need them.
LIGHT = replace(REPORT, groups=(), against=None)


def page(report: Report) -> Any:
    return html.document_fromstring(render_report(report))


def text(element: Any) -> str:
    """Return the visible text of an element."""
    return " ".join(" ".join(element.itertext()).split())


def rows(table: Any) -> list[list[str]]:
    return [[text(cell) for cell in row.xpath("./th|./td")] for row in table.xpath(".//tr")]


def with_case(**fields: Any) -> Report:
    return replace(LIGHT, worst=(replace(CASE, **fields),))


@pytest.fixture(scope="module")
def whole() -> Any:
    return page(REPORT)


def test_headline_shows_measures_and_differences(whole: Any) -> None:
    found = {row[0]: row[1:] for row in rows(whole.get_element_by_id("headline"))[1:]}
    assert list(found) == ["documents MAP", "documents recall", "yesno accuracy", "BLEU"]
    value, difference = ["0.5000", "[0.4000, 0.6000]"], ["-0.2000", "[-0.3000, -0.1000]"]
    assert found["documents recall"] == [*value, *difference, "worse"]
    # A difference of -0.00001 is not shown as -0.
    assert found["yesno accuracy"][2:] == ["0.0000", "[-0.0100, 0.0100]", "no difference shown"]
    assert found["BLEU"] == ["23.2500", "[20.1250, 26.5000]", DASH, DASH, DASH]
    tree = page(replace(REPORT, against=None))
    assert rows(tree.get_element_by_id("headline"))[0] == ["Measure", "Value", "95% interval"]
    assert "Against" not in text(tree)
    assert [text(h) for h in tree.xpath("//section/h3")] == ["Documents", "Yes/no answers", "BLEU"]


@pytest.mark.parametrize("groups", [(), (Group("all", 0, {}),), (Group("all", 3, {"F1": NAN}),)])
def test_report_without_measures_says_so(groups: Any) -> None:
    tree = page(Report("t", "r", "g", 0, 2000, 0, (), groups))
    assert "No measure applies to these questions." in text(tree)
    assert "0 of 0 answered questions" in text(tree)
    assert not tree.xpath("//table|//details")


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
ELEMENTS_OF_A_HOSTILE_PAGE = {"h1": 1, "details": 2, "img": 0, "mark": 1, "script": 0, "style": 1}


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


@pytest.mark.parametrize("words", [HOSTILE, "a\0\b\x1b\ud800\udfff\u202e\ufffe<!--]]>&#0;"])
def test_any_text_gives_a_valid_page_with_the_same_elements(words: str) -> None:
    rendered = render_report(hostile_report(words))
    assert not re.search("[\x00-\x08\ud800-\udfff]", rendered)
    found = html.document_fromstring(rendered.encode().decode())
    counts = {tag: len(found.xpath(f"//{tag}")) for tag in ELEMENTS_OF_A_HOSTILE_PAGE}
    assert counts == ELEMENTS_OF_A_HOSTILE_PAGE
    assert not found.xpath("//@onerror")


def test_injected_markup_is_shown_as_text() -> None:
    tree = page(hostile_report(HOSTILE))
    assert text(tree.find(".//h1")) == HOSTILE
    assert tree.xpath("//li/p")[0].text_content() == HOSTILE


def test_unwritable_report_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/index\.html: the report cannot be written: "):
        write_report(tmp_path / "file", LIGHT)
    (tmp_path / "taken" / "index.html").mkdir(parents=True)
    with pytest.raises(InputError, match="name another folder"):
        write_report(tmp_path / "taken", LIGHT)
    assert [p.name for p in (tmp_path / "taken").iterdir()] == ["index.html"]


def test_failed_rendering_leaves_no_file(tmp_path: Path) -> None:
    broken: Any = {"documents MAP": "0.5"}
    with pytest.raises(AttributeError):
        write_report(tmp_path / "new", replace(REPORT, groups=(Group("all", 1, broken),)))
    assert not (tmp_path / "new").exists()
