"""Minimal PubmedArticleSets, and helpers that parse them."""

from __future__ import annotations

import io

from cluster.pubmed.parse_articles import Record, parse_stream
from cluster.records import Citation, Rejected

DOCTYPE = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    '"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n'
)


def article(
    pmid: str = '<PMID Version="1">1</PMID>',
    inside: str = "<ArticleTitle>T</ArticleTitle>",
    after: str = "",
    data: str = "",
) -> str:
    """Return a record with the given children of Article (`inside`), MedlineCitation (`after`) and
    PubmedData (`data`).
    """
    return (
        f"<PubmedArticle><MedlineCitation>{pmid}<Article>{inside}</Article>{after}"
        f"</MedlineCitation><PubmedData>{data}</PubmedData></PubmedArticle>"
    )


def parse(*records: str, doctype: str = DOCTYPE) -> list[Record]:
    xml = doctype + "<PubmedArticleSet>" + "\n".join(records) + "</PubmedArticleSet>"
    return list(parse_stream(io.BytesIO(xml.encode()), "set.xml"))


def parse_one(**parts: str) -> Citation:
    (record,) = parse(article(**parts))
    assert isinstance(record, Citation), record
    return record


def reject_one(record: str) -> Rejected:
    rejected, kept = parse(record, article('<PMID Version="1">77</PMID>'))
    assert isinstance(kept, Citation)
    assert (kept.pmid, kept.position) == (77, 1)
    assert isinstance(rejected, Rejected), rejected
    return rejected


def abstract(inner: str) -> str:
    return f"<ArticleTitle>T</ArticleTitle><Abstract>{inner}</Abstract>"
