from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html

from cluster.errors import InputError
from evaluation.bootstrap import Interval
from evaluation.report.plot_intervals import plot_differences, plot_measures, plot_spread
from evaluation.report.render_report import (
    FAMILIES,
    ROWS_SHOWN,
    TEXT_SHOWN,
    WORST_SHOWN,
    cut,
    number,
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
GROUPS = (
    Group("all", 1327, ALL),
    Group(
        "yesno",
        82,
        {**ALL, "documents MAP": Interval(0.3, 0.2, 0.4), "BLEU": NAN},
    ),
    Group("list", 60, {"documents MAP": Interval(0.6, 0.55, 0.65)}),
)
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
    groups=GROUPS,
    against=AGAINST,
    worst=(CASE,),
    notes=("The judge is weak.",),
    spread={"documents AP": [0.0, 0.25, 1.0, 1.0, math.nan]},
)


# Without plots, for what is not about them.
LIGHT = replace(REPORT, groups=(), against=None, spread={})


@pytest.fixture(scope="module")
def whole() -> Any:
    return page(REPORT)


def page(report: Report) -> Any:
    return html.document_fromstring(render_report(report))


def text(element: Any) -> str:
    """What a reader sees, the pieces apart."""
    return " ".join(" ".join(element.itertext()).split())


def rows(table: Any) -> list[list[str]]:
    return [[text(cell) for cell in row.xpath("./th|./td")] for row in table.xpath(".//tr")]


def with_case(**fields: Any) -> Report:
    return replace(LIGHT, worst=(replace(CASE, **fields),))


def svg_text(svg: str) -> list[str]:
    return [text(element) for element in html.fromstring(svg).xpath("//text")]


def test_the_headline_shows_each_measure_of_the_first_group_and_its_difference(whole: Any) -> None:
    assert rows(whole.get_element_by_id("headline")) == [
        ["Measure", "Value", "95% interval", "Difference", "95% interval", "Verdict"],
        ["documents MAP", "0.7697", "[0.7369, 0.8022]", "0.1257", "[0.1023, 0.1512]", "better"],
        [
            "documents recall",
            "0.5000",
            "[0.4000, 0.6000]",
            "-0.2000",
            "[-0.3000, -0.1000]",
            "worse",
        ],
        [
            "yesno accuracy",
            "0.9000",
            "[0.8000, 1.0000]",
            "0.0000",
            "[-0.0100, 0.0100]",
            "no difference shown",
        ],
        ["BLEU", "23.2500", "[20.1250, 26.5000]", DASH, DASH, DASH],
    ]


def test_without_another_run_nothing_is_said_of_differences() -> None:
    tree = page(replace(REPORT, against=None))
    assert rows(tree.get_element_by_id("headline"))[0] == ["Measure", "Value", "95% interval"]
    assert "Against" not in text(tree)
    assert len(tree.xpath("//section//svg")) == 3


def test_a_family_shows_its_groups_side_by_side_with_their_counts(whole: Any) -> None:
    (table,) = whole.xpath("//section[h3='Documents']//table")
    assert rows(table) == [
        ["Measure", "all 1,327 questions", "yesno 82 questions", "list 60 questions"],
        [
            "documents MAP",
            "0.7697 [0.7369, 0.8022]",
            "0.3000 [0.2000, 0.4000]",
            "0.6000 [0.5500, 0.6500]",
        ],
        ["documents recall", "0.5000 [0.4000, 0.6000]", "0.5000 [0.4000, 0.6000]", DASH],
    ]


def test_families_are_the_measures_first_words_and_those_that_apply_to_nothing_are_not_shown(
    whole: Any,
) -> None:
    assert [text(h) for h in whole.xpath("//section/h3")] == [
        FAMILIES["documents"],
        FAMILIES["yesno"],
        "BLEU",
    ]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("documents condensed MAP", "Condensed list and unjudged documents"),
        ("documents unjudged rate at 10", "Condensed list and unjudged documents"),
        ("documents MAP", "Documents"),
        ("ROUGE-SU4 F1", "Ideal answers: ROUGE"),
        ("faithfulness", "RAGAS"),
        ("context recall", "RAGAS"),
        ("citation support rate", "BioGen: citations"),
        ("novelty at 3", "novelty"),
    ],
)
def test_a_measure_stands_in_its_family(name: str, title: str) -> None:
    report = replace(LIGHT, groups=(Group("all", 3, {name: Interval(0.5, 0.4, 0.6)}),))
    assert [text(h) for h in page(report).xpath("//section/h3")] == [title]


def test_the_whole_set_is_left_out_where_one_type_alone_has_the_measures(whole: Any) -> None:
    (table,) = whole.xpath("//section[h3='Yes/no answers']//table")
    assert rows(table)[0] == ["Measure", "yesno 82 questions"]


def test_two_groups_with_other_values_are_both_shown() -> None:
    two = (GROUPS[0], Group("yesno", 82, {"yesno accuracy": Interval(0.1, 0.0, 0.2)}))
    (table,) = page(replace(REPORT, groups=two)).xpath("//section[h3='Yes/no answers']//table")
    assert rows(table)[0] == ["Measure", "all 1,327 questions", "yesno 82 questions"]


def test_a_plot_names_measures_and_groups_and_their_values() -> None:
    svg = plot_measures({"MAP": {"all": ALL["documents MAP"], "list": Interval(0.6, 0.5, 0.7)}}, "")
    shown = svg_text(svg)
    assert [word for word in shown if not re.fullmatch(r"[01]\.\d", word)] == [
        "MAP",
        "all",
        "0.770",
        "list",
        "0.600",
    ]


def test_a_plot_of_one_group_has_a_line_for_each_measure_and_no_headings() -> None:
    svg = plot_measures({"MAP": {"all": Interval(0.5, 0.4, 0.6)}, "F1": {"all": NAN}}, "")
    assert "all" not in svg_text(svg)
    assert {"MAP", "F1"} <= set(svg_text(svg))


def whisker(svg: str) -> tuple[float, float, float]:
    """Where the first whisker begins and ends and where its dot is, in the plot's points."""
    begin, end = map(float, re.findall(r'd="M ([\d.]+) \S+\s+L ([\d.]+) \S+\s*" style="fill: none; '
                                       r"stroke: var\(--accent\)", svg)[0])  # fmt: skip
    (dot,) = re.findall(r'var\(--accent\)[^>]*transform="translate\(([\d.]+) ', svg)
    return begin, end, float(dot)


def test_the_dot_and_the_whisker_stand_where_the_numbers_say() -> None:
    """On an axis from -0.02 to 1.02; two ticks, 0 and 1, give the scale."""
    svg = plot_measures({"MAP": {"all": Interval(0.5, 0.25, 1.0)}}, "")
    ticks = {
        element.text: float(element.get("x"))
        for element in html.fromstring(svg).xpath("//text[@x]")
        if element.text in ("0.0", "1.0")
    }
    zero, one = ticks["0.0"], ticks["1.0"]
    begin, end, dot = whisker(svg)
    assert begin == pytest.approx(zero + 0.25 * (one - zero), abs=0.1)
    assert end == pytest.approx(one, abs=0.1)
    assert dot == pytest.approx(zero + 0.5 * (one - zero), abs=0.1)


def test_a_measure_beyond_1_has_an_axis_of_its_own() -> None:
    svg = plot_measures({"BLEU": {"all": Interval(23.0, 20.0, 26.0)}}, "")
    assert {"20", "26"} <= set(svg_text(svg))


def test_a_difference_has_the_verdict_of_the_data_and_its_colour() -> None:
    less = {"MAP": Interval(0.1, 0.05, 0.15), "F1": Interval(-0.1, -0.2, -0.05)}
    svg = plot_differences(less, {"MAP": "better", "F1": "worse"}, "")
    assert {"better", "worse"} <= set(svg_text(svg))
    assert "var(--better)" in svg
    assert "var(--worse)" in svg


def test_a_difference_without_a_verdict_is_neither_better_nor_worse() -> None:
    """Though its interval excludes 0: the words come from the data alone."""
    svg = plot_differences({"unjudged": Interval(0.1, 0.05, 0.15)}, {"unjudged": "higher"}, "")
    assert "higher" in svg_text(svg)
    assert "var(--better)" not in svg
    assert "var(--worse)" not in svg


def test_the_line_of_no_difference_is_in_the_middle() -> None:
    svg = plot_differences({"MAP": Interval(0.1, 0.05, 0.15)}, {}, "")
    dashes = [e for e in html.fromstring(svg).iter("path") if "dasharray" in e.get("style", "")]
    (line,) = dashes
    x = float(line.get("d").split()[1])
    axis = [e for e in html.fromstring(svg).iter("path") if "miter" in e.get("style", "")][-1]
    _, begin, _, _, end, _ = axis.get("d").split()
    assert x == pytest.approx((float(begin) + float(end)) / 2, abs=0.1)


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_differences_that_are_all_nothing_are_drawn(value: float) -> None:
    assert "<svg" in plot_differences({"MAP": Interval(value, value, value)}, {}, "")


def test_a_dollar_sign_in_a_name_is_no_mathematics() -> None:
    svg = plot_measures({"F$_1$ \\frac": {"all": Interval(0.5, 0.4, 0.6)}}, "")
    assert "F$_1$ \\frac" in svg_text(svg)


def test_plots_have_colours_of_the_page_and_no_fonts_identifiers_or_styles_of_their_own(
    whole: Any,
) -> None:
    svgs = whole.xpath("//svg")
    assert len(svgs) == 6
    for svg in svgs:
        drawn = html.tostring(svg, encoding="unicode")
        assert not re.search(r"#[0-9a-fA-F]{6}|url\(|font-family|href", drawn)
        assert not svg.xpath(".//@id|.//style|.//defs|.//metadata")
        assert svg.get("role") == "img"
        assert "95%" in svg.get("aria-label") or "median" in svg.get("aria-label")


def test_every_plot_has_a_caption(whole: Any) -> None:
    figures = whole.xpath("//figure")
    assert [text(f.find("figcaption")) for f in figures] == [
        "Documents: each measure (dot) and its 95% interval (line).",
        "Documents: this run less other-run.json, with 95% intervals.",
        "Yes/no answers: each measure (dot) and its 95% interval (line).",
        "Yes/no answers: this run less other-run.json, with 95% intervals.",
        "BLEU: each measure (dot) and its 95% interval (line).",
        "documents AP: 4 questions, median 0.6250.",
    ]


def test_the_spread_counts_the_scores_in_20_bins() -> None:
    """Of 0, 0.25, 1, 1: bars of heights 1, 1 and 2, at bins 0, 5 and 19."""
    bars = [
        [float(n) for n in re.findall(r"-?[\d.]+", e.get("d"))]
        for e in html.fromstring(plot_spread([0, 0.25, 1, 1], "")).iter("path")
        if "fill: var(--accent)" in e.get("style", "")
    ]
    assert len(bars) == 20
    heights = [bar[1] - bar[5] for bar in bars]
    assert [n for n, height in enumerate(heights) if height > 0] == [0, 5, 19]
    assert heights[19] == pytest.approx(2 * heights[0], rel=1e-3)


def test_scores_beyond_1_are_spread_over_their_own_range() -> None:
    assert "20" in svg_text(plot_spread([20.0, 30.0], ""))


@pytest.mark.parametrize("spread", [{}, {"documents AP": []}, {"documents AP": [math.nan]}])
def test_a_spread_of_nothing_is_left_out(spread: Mapping[str, list[float]]) -> None:
    tree = page(replace(LIGHT, spread=spread))
    assert not tree.xpath("//*[@id='spread']|//a[@href='#spread']")


def test_a_case_shows_its_question_scores_documents_and_answers(whole: Any) -> None:
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


def test_a_case_without_answers_says_none() -> None:
    empty = with_case(documents=(), snippets=(), gold_ideal=(), said_ideal=(), gold_exact=None)
    (case,) = page(empty).xpath("//details[@class='case']")
    assert not case.xpath(".//table|.//ul")
    sides = [text(side) for side in case.xpath(".//div[@class='sides']/div")]
    assert sides == [
        "Gold, exact none",
        "Said, exact MOG GFAP",
        "Gold, ideal none",
        "Said, ideal none",
    ]


def test_a_case_whose_ranking_score_is_unknown_is_shown_all_the_same() -> None:
    (case,) = page(with_case(scores={})).xpath("//details[@class='case']")
    assert text(case.xpath("./summary/span")[0]) == f"factoid · documents AP {DASH} · 6402c9"


def test_the_matched_part_of_a_snippet_is_marked(whole: Any) -> None:
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


def test_only_web_addresses_are_links_and_they_tell_no_referrer() -> None:
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


def test_nothing_is_loaded_and_no_script_can_run(whole: Any) -> None:
    (policy,) = whole.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert not whole.xpath("//script|//img|//iframe|//object|//embed|//@src|//@srcset")
    assert whole.xpath("//link/@href") == ["data:,"]
    assert not [name for name in whole.xpath("//@*") if name.attrname.startswith("on")]
    for style in whole.xpath("//style/text()|//@style"):
        assert not re.search(r"url\(|@import", style)
    elsewhere = [a.get("href") for a in whole.iter("a") if not a.get("href").startswith("#")]
    assert all(address.startswith(PUBMED) for address in elsewhere)


HOSTILE = "</style><script>alert(1)</script><img src=x onerror=y> \"'&{{ 7 * 7 }}"


# A case, a family and the missing are details; the family has a plot and one of differences.
ELEMENTS_OF_A_HOSTILE_PAGE = {
    "h1": 1,
    "details": 3,
    "svg": 3,
    "mark": 1,
    "script": 0,
    "img": 0,
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
        spread={words: [0.5]},
    )


def test_injected_tags_are_text() -> None:
    tree = page(hostile_report(HOSTILE))
    assert not tree.xpath("//script|//img|//@onerror")
    assert text(tree.find(".//h1")) == HOSTILE
    assert len(tree.xpath("//style")) == 1
    assert tree.xpath("//li/p")[0].text_content() == HOSTILE
    assert "49" not in text(tree.find(".//h1"))


@settings(max_examples=8, deadline=None)
@given(st.text(st.characters(), min_size=3, max_size=40))
def test_any_text_gives_a_page_in_utf_8_with_the_same_elements(words: str) -> None:
    """Control characters, halves of surrogate pairs and right-to-left marks among them."""
    rendered = render_report(hostile_report(words))
    assert not re.search("[\x00-\x08\ud800-\udfff]", rendered)
    found = html.document_fromstring(rendered.encode().decode())
    counts = {tag: len(found.xpath(f"//{tag}")) for tag in ELEMENTS_OF_A_HOSTILE_PAGE}
    assert counts == ELEMENTS_OF_A_HOSTILE_PAGE


def test_texts_of_unknown_direction_choose_their_own(whole: Any) -> None:
    for path in ("//h1", "//details/summary/h3", "//ul[@class='snippets']/li/p"):
        assert set(whole.xpath(f"{path}/@dir")) == {"auto"}


def test_a_text_too_long_is_cut_and_says_by_how_much() -> None:
    body = "w" * (TEXT_SHOWN + 1234)
    (shown,) = page(with_case(body=body)).xpath("//details/summary/h3")
    assert text(shown) == "w" * TEXT_SHOWN + "… (1,234 more characters)"


def test_a_long_snippet_is_cut_around_its_mark() -> None:
    long = SnippetRow("d", "x" * (TEXT_SHOWN + 5), True, True, True, (10, TEXT_SHOWN + 3))
    (shown,) = page(with_case(snippets=(long,))).xpath("//ul[@class='snippets']/li/p")
    assert text(shown.find("mark")) == "x" * (TEXT_SHOWN - 10)
    assert shown.text_content() == cut(long.text)


def test_of_5000_cases_the_worst_are_shown_and_the_page_says_of_how_many() -> None:
    cases = tuple(replace(CASE, id=f"case-{n}") for n in range(5000))
    rendered = render_report(replace(LIGHT, worst=cases, questions=5000))
    tree = html.document_fromstring(rendered)
    ids = [text(s).rpartition(" ")[2] for s in tree.xpath("//details[@class='case']/summary/span")]
    assert ids == [f"case-{n}" for n in range(WORST_SHOWN)]
    assert f"{WORST_SHOWN} of 5,000 answered questions, the worst first." in text(tree)
    assert len(rendered) < 1_000_000


def test_long_lists_are_bounded_and_counted() -> None:
    many = 2000
    report = with_case(
        documents=CASE.documents[:1] * many,
        snippets=CASE.snippets[:1] * many,
        gold_ideal=("a",) * many,
        gold_exact=(("a",),) * many,
    )
    tree = page(replace(report, notes=("n",) * many, missing=("m",) * many))
    for what in ("documents", "snippets", "answers", "items", "notes", "ids"):
        assert f"{ROWS_SHOWN} of 2,000 {what} are shown." in text(tree)
    assert len(tree.xpath("//ul[@class='snippets']/li")) == ROWS_SHOWN


def test_the_head_says_what_was_scored_and_how(whole: Any) -> None:
    facts = dict(
        zip(
            map(text, whole.xpath("//header//dt")),
            map(text, whole.xpath("//header//dd")),
            strict=True,
        )
    )
    assert facts == {
        "Run": "run.json",
        "Gold": "gold.json",
        "Against": "other-run.json",
        "Questions": "1,327 answered, 2 without an answer",
        "Intervals": "95%, percentile bootstrap over the questions, 2,000 resamples, seed 7",
    }
    assert text(whole.xpath("//details[summary='2 questions without an answer']/p")[0]) == "q1, q2"


def test_notes_stand_before_the_measures(whole: Any) -> None:
    marks = whole.xpath("//section[@class='notes']//li|//h2[@id='measures']")
    assert [text(mark) for mark in marks] == ["The judge is weak.", "Measures"]


def test_headings_are_in_order_and_the_page_has_a_language_and_a_title(whole: Any) -> None:
    levels = [int(h.tag[1]) for h in whole.xpath("//h1|//h2|//h3|//h4|//h5")]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert whole.get("lang") == "en"
    assert text(whole.find(".//title")) == "Dev questions"


def test_a_reader_without_a_mouse_can_scroll_every_wide_table_and_follow_the_contents(
    whole: Any,
) -> None:
    for table in whole.iter("table"):
        box = table.getparent()
        assert (box.get("class"), box.get("tabindex"), box.get("role")) == ("scroll", "0", "region")
        name = box.get("aria-label") or text(whole.get_element_by_id(box.get("aria-labelledby")))
        assert name
    for anchor in whole.xpath("//nav//a/@href"):
        whole.get_element_by_id(anchor.removeprefix("#"))
    ids = whole.xpath("//@id")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("groups", [(), (Group("all", 0, {}),), (Group("all", 3, {"F1": NAN}),)])
def test_a_run_that_nothing_can_be_said_of_has_a_page_that_says_so(groups: Any) -> None:
    tree = page(Report("t", "r", "g", 0, 2000, 0, (), groups))
    assert "No measure applies to these questions." in text(tree)
    assert "0 of 0 answered questions" in text(tree)
    assert not tree.xpath("//svg|//table|//details")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.12345, "0.1235"), (-0.00001, "0.0000"), (-0.5, "-0.5000"), (math.nan, "n/a")],
)
def test_numbers_have_four_decimals(value: float, shown: str) -> None:
    # 0.12345 as a float lies a little above its decimal form.
    assert number(value) == shown


def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    """In another process too, with another hash seed."""
    code = (
        "import sys; from pathlib import Path;"
        "from evaluation.report.render_report import write_report;"
        "from tests.evaluation.test_report import REPORT; write_report(Path(sys.argv[1]), REPORT)"
    )
    root = Path(__file__).resolve().parents[2]
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "b")],
        cwd=root,
        env={"PYTHONHASHSEED": "1", "MPLCONFIGDIR": str(tmp_path)},
        check=True,
        timeout=120,
    )
    first = write_report(tmp_path / "a", REPORT).read_bytes()
    assert (tmp_path / "b/index.html").read_bytes() == first


def test_the_page_is_written_into_a_new_folder_and_replaces_an_older_one(tmp_path: Path) -> None:
    folder = tmp_path / "deep/report"
    path = write_report(folder, LIGHT)
    assert path == folder / "index.html"
    write_report(folder, replace(LIGHT, title="Newer"))
    assert '<h1 dir="auto">Newer</h1>' in path.read_text(encoding="utf-8")
    assert list(folder.iterdir()) == [path]


def test_a_folder_that_cannot_be_made_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/index\.html: the report cannot be written: "):
        write_report(tmp_path / "file", LIGHT)


def test_nothing_is_left_behind_when_the_page_cannot_take_its_place(tmp_path: Path) -> None:
    (tmp_path / "index.html").mkdir()
    with pytest.raises(InputError, match="name another folder"):
        write_report(tmp_path, LIGHT)
    assert [p.name for p in tmp_path.iterdir()] == ["index.html"]


def test_nothing_is_left_behind_when_rendering_fails(tmp_path: Path) -> None:
    broken: Any = {"documents MAP": "0.5"}
    with pytest.raises(AttributeError):
        write_report(tmp_path / "new", replace(REPORT, groups=(Group("all", 1, broken),)))
    assert not (tmp_path / "new").exists()


def test_drawing_leaves_matplotlibs_settings_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    render_report(REPORT)
    assert dict(matplotlib.rcParams) == before


def test_importing_the_page_does_not_import_matplotlib() -> None:
    code = "import sys, evaluation.report.render_report; sys.exit('matplotlib' in sys.modules)"
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, timeout=60).returncode == 0
