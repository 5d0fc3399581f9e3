"""Every field of a Citation, from handwritten XML and, if available, from real records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation, Link, MeshHeading, OtherAbstract, Section
from tests.cluster.pubmed_sets import abstract, parse_one

SHARED = Path(__file__).resolve().parents[3].parent / "shared/data"
SAMPLES = SHARED / "xml-samples"
CORPUS = SHARED / "bioasq/corpus"


def test_pmid_and_version_are_parsed() -> None:
    citation = parse_one(pmid='<PMID Version="2"> 123 </PMID>')
    assert (citation.pmid, citation.version) == (123, 2)
    assert parse_one(pmid="<PMID>5</PMID>").version == 1


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (
            'Let <mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML"><mml:mi>x</mml:mi>'
            "<mml:mo>=</mml:mo><mml:mn>2</mml:mn></mml:math> hold.",
            "Let x=2 hold.",
        ),
        (
            "Let <math><semantics><mi>x</mi><annotation>\\x</annotation>"
            '<m:annotation-xml xmlns:m="u"><m:ci>x</m:ci></m:annotation-xml></semantics></math>'
            " and <math><semantics><mrow/><annotation>y</annotation></semantics></math>.",
            "Let x and y.",
        ),
        ("\n  a \t b\n<i> c</i>\u00a0d\u2009\u2009e ", "a b c\u00a0d\u2009\u2009e"),
        ("&#945; &lt; 2<!-- no --> <![CDATA[<x>]]>", "\u03b1 < 2 <x>"),
        ("TNF-&alpha; rose; &nosuch; too", "TNF-\u03b1 rose; &nosuch; too"),
        ("", ""),
    ],
)
def test_abstract_keeps_text_inside_markup(inner: str, text: str) -> None:
    assert parse_one(inside=abstract(f"<AbstractText>{inner}</AbstractText>")).abstract == text


def test_structured_abstract_keeps_sections_with_text() -> None:
    inner = (
        '<AbstractText Label="AIM" NlmCategory="OBJECTIVE">To see.</AbstractText>'
        "<AbstractText>Plain.</AbstractText>"
        '<AbstractText Label="METHODS"/><AbstractText Label="DESIGN">  </AbstractText>'
        '<AbstractText Label="RESULTS">Seen <b>well</b>.</AbstractText>'
        "<CopyrightInformation>(c) Nobody</CopyrightInformation>"
    )
    assert parse_one(inside=abstract(inner)).sections == (
        Section("AIM", "To see."),
        Section("", "Plain."),
        Section("RESULTS", "Seen well."),
    )


def test_other_abstracts_are_parsed() -> None:
    after = (
        '<OtherAbstract Type="Publisher" Language="spa"><AbstractText Label="FIN">Uno.'
        '</AbstractText><AbstractText>Dos.</AbstractText></OtherAbstract><OtherAbstract Type="KIE" '
        "><AbstractText>Three.</AbstractText></OtherAbstract>"
    )
    citation = parse_one(after=after)
    assert citation.other_abstracts == (
        OtherAbstract("spa", "Publisher", (Section("FIN", "Uno."), Section("", "Dos."))),
        OtherAbstract("eng", "KIE", (Section("", "Three."),)),
    )
    assert citation.abstract == "Three."
    own = abstract("<AbstractText>Own.</AbstractText>")
    assert parse_one(inside=own, after=after).abstract == "Own."


def test_vernacular_title_replaces_a_missing_english_title() -> None:
    vernacular = "<VernacularTitle>Sur la rage.</VernacularTitle>"
    for title, expected in [
        ("[Not Available].", "Sur la rage."),
        ("", "Sur la rage."),
        ("[On rabies].", "[On rabies]."),
    ]:
        inside = f"<ArticleTitle>{title}</ArticleTitle>{vernacular}"
        assert parse_one(inside=inside).title == expected


@pytest.mark.parametrize(
    ("journal", "info", "expected"),
    [
        ("<Title>Long Name</Title><ISOAbbreviation>Lg Nm</ISOAbbreviation>", "", "Long Name"),
        ("<Title/><ISOAbbreviation>Lg Nm</ISOAbbreviation>", "Medl", "Lg Nm"),
        ("", "Medl", "Medl"),
        ("", "", ""),
    ],
)
def test_journal_uses_the_most_complete_name(journal: str, info: str, expected: str) -> None:
    citation = parse_one(
        inside=f"<Journal>{journal}</Journal><ArticleTitle>T</ArticleTitle>",
        after=f"<MedlineJournalInfo><MedlineTA>{info}</MedlineTA></MedlineJournalInfo>",
    )
    assert citation.journal == expected


@pytest.mark.parametrize(
    ("date", "year", "month"),
    [
        ("<Year>2001</Year><Month>Jun</Month><Day>3</Day>", 2001, 6),
        ("<Year>2001</Year><Month>06</Month>", 2001, 6),
        ("<Year>2001</Year><Month>September</Month>", 2001, 9),
        ("<Year>2001</Year><Month>13</Month>", 2001, None),
        ("<Year>1990</Year><Season>Spring</Season>", 1990, 4),
        ("<Year>1990</Year><Season>Autumn</Season>", 1990, 10),
        ("<Year>1990</Year>", 1990, None),
        ("<MedlineDate>2000 Nov-Dec</MedlineDate>", 2000, 11),
        ("<MedlineDate>1998 Dec-1999 Jan</MedlineDate>", 1998, 12),
        ("<MedlineDate>1975-1976 Winter</MedlineDate>", 1975, 1),
        ("<MedlineDate>1975-1976</MedlineDate>", 1975, None),
        ("<MedlineDate>undated</MedlineDate>", 1888, 5),
        ("<Year>MMXX</Year>", 1888, 5),
        ("", 1888, 5),
    ],
)
def test_publication_date_is_parsed(date: str, year: int | None, month: int | None) -> None:
    issue = f"<Journal><JournalIssue><PubDate>{date}</PubDate></JournalIssue></Journal>"
    online = "<ArticleDate><Year>1888</Year><Month>05</Month></ArticleDate>"
    citation = parse_one(inside=f"{issue}<ArticleTitle>T</ArticleTitle>{online}")
    assert (citation.year, citation.month) == (year, month)


def test_mesh_heading_is_major_by_descriptor_or_qualifier() -> None:
    after = (
        "<MeshHeadingList>"
        '<MeshHeading><DescriptorName UI="D1" MajorTopicYN="N">A</DescriptorName></MeshHeading>'
        '<MeshHeading><DescriptorName UI="D2" MajorTopicYN="Y">B</DescriptorName></MeshHeading>'
        '<MeshHeading><DescriptorName UI="D3" MajorTopicYN="N">C</DescriptorName>'
        '<QualifierName UI="Q1" MajorTopicYN="Y">x</QualifierName>'
        '<QualifierName UI="Q2" MajorTopicYN="N">y</QualifierName></MeshHeading></MeshHeadingList>'
    )
    assert parse_one(after=after).mesh == (
        MeshHeading("D1", "A", False),
        MeshHeading("D2", "B", True),
        MeshHeading("D3", "C", True),
    )


def test_keywords_of_all_lists_are_kept() -> None:
    after = (
        '<KeywordList Owner="NOTNLM"><Keyword>a <i>b</i></Keyword><Keyword/></KeywordList>'
        '<KeywordList Owner="KIE"><Keyword>c</Keyword></KeywordList>'
    )
    assert parse_one(after=after).keywords == ("a b", "c")


def test_links_are_parsed_with_or_without_a_pmid() -> None:
    after = (
        '<CommentsCorrectionsList><CommentsCorrections RefType="RetractionIn">'
        "<RefSource>Gut. 2017;66:1</RefSource><PMID>12</PMID></CommentsCorrections>"
        '<CommentsCorrections RefType="ErratumIn"><RefSource>Gut. 2018;67:2</RefSource>'
        "</CommentsCorrections></CommentsCorrectionsList>"
    )
    assert parse_one(after=after).links == (
        Link("RetractionIn", 12, "Gut. 2017;66:1"),
        Link("ErratumIn", None, "Gut. 2018;67:2"),
    )


def test_references_of_all_lists_are_read_once_in_order_without_other_identifiers() -> None:
    def reference(*ids: str) -> str:
        own = f"<ArticleIdList>{''.join(ids)}</ArticleIdList>"
        return f"<Reference><Citation>A</Citation>{own}</Reference>"

    def cited(text: str) -> str:
        return f'<ArticleId IdType="pubmed">{text}</ArticleId>'

    doi = '<ArticleId IdType="doi">10.1/other</ArticleId><ArticleId IdType="pmc">PMC9</ArticleId>'
    untyped = "<ArticleId>3</ArticleId>"
    inner = (
        f"<ReferenceList><Title>More</Title>{reference(cited('5'), cited('12'))}</ReferenceList>"
    )
    lists = (
        f"<ReferenceList>{reference(cited(' 12 '), doi)}"
        f"{reference(cited('PMC1'), cited(''), cited('0'), cited('1234567890'))}{reference()}"
        f"{reference(untyped)}{inner}</ReferenceList>"
        f"<ReferenceList>{reference(cited('12'), cited('9'))}</ReferenceList>"
    )
    own = '<ArticleIdList><ArticleId IdType="doi">10.1/own</ArticleId></ArticleIdList>'
    citation = parse_one(data=lists + own)
    assert citation.references == (12, 3, 5, 9)
    assert (citation.doi, citation.pmcid) == ("10.1/own", "")
    only_references = parse_one(data=lists)
    assert (only_references.doi, only_references.pmcid) == ("", "")
    assert parse_one(data=own).references == ()


def test_doi_falls_back_to_a_valid_electronic_location() -> None:
    locations = (
        '<ELocationID EIdType="pii">S1</ELocationID>'
        '<ELocationID EIdType="doi" ValidYN="N">10.1/bad</ELocationID>'
        '<ELocationID EIdType="doi" ValidYN="Y">10.1/good</ELocationID>'
    )
    ids = '<ArticleIdList><ArticleId IdType="pmc">PMC7</ArticleId></ArticleIdList>'
    citation = parse_one(inside="<ArticleTitle>T</ArticleTitle>" + locations, data=ids)
    assert (citation.doi, citation.pmcid) == ("10.1/good", "PMC7")


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared real records not present")
def test_real_record_is_parsed() -> None:
    samples = [r for path in sorted(SAMPLES.glob("*.xml")) for r in read_records(path)]
    found = {r.pmid: r for r in samples if isinstance(r, Citation)}
    assert len(found) == len(samples) == 6
    record = found[27797938]
    assert [s.label for s in record.sections] == ["OBJECTIVE", "DESIGN", "RESULTS", "CONCLUSIONS"]
    assert (record.journal, record.year, record.month) == ("Gut", 2017, 6)
    assert (record.doi, record.pmcid) == ("10.1136/gutjnl-2016-312510", "PMC5442267")
    assert len(record.mesh) == 21
    assert MeshHeading("D010190", "Pancreatic Neoplasms", True) in record.mesh
    assert len(record.links) == 49
    assert record.links[0] == Link("CommentIn", 27920200, "Gut. 2017 Jun;66(6):1")
    cites = [link.pmid for link in record.links if link.kind == "Cites"]
    assert record.references == tuple(cites)
    assert len(cites) == 48
    assert record.keywords == ("PANCREATIC CANCER",)


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.is_dir(), reason="shared corpus not present")
def test_gold_snippets_match_their_offsets() -> None:
    texts = {
        str(r.pmid): {"title": r.title, "abstract": r.abstract}
        for path in sorted(CORPUS.glob("*.xml.gz"))
        for r in read_records(path)
        if isinstance(r, Citation)
    }
    questions = json.loads((SHARED / "bioasq/questions-dev.json").read_text())["questions"]
    snippets = [snippet for question in questions for snippet in question["snippets"]]
    wrong = [
        s
        for s in snippets
        if texts[s["document"].rsplit("/", 1)[1]][s["beginSection"]][
            s["offsetInBeginSection"] : s["offsetInEndSection"]
        ]
        != s["text"]
    ]
    assert len(texts) == 13_449
    assert wrong == []
