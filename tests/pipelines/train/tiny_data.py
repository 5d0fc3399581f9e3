"""Small training files in the formats that `citeray train` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster.records import Citation, Section

ARTICLE = (
    "<PubmedArticle><MedlineCitation><PMID Version='1'>{}</PMID><Article><ArticleTitle>[Not "
    "Available].</ArticleTitle><Abstract><AbstractText>{}</AbstractText></Abstract></Article>"
    "</MedlineCitation></PubmedArticle>"
)


FINDING = {
    "pmid": 1,
    "intervention": "aspirin",
    "comparator": "placebo",
    "outcome": "fever",
    "label": "decreased",
    "evidence": "Aspirin reduces fever.",
    "in_abstract": True,
}


def abstract(pmid: int, *sections: str) -> Citation:
    """Return a citation with an abstract of labelled sections."""
    found = tuple(Section(f"PART {n}", text) for n, text in enumerate(sections))
    return Citation(pmid, title=f"Title {pmid}.", sections=found)


def write_corpus(path: Path, abstracts: Mapping[int, str]) -> Path:
    articles = "".join(ARTICLE.format(pmid, text) for pmid, text in abstracts.items())
    path.write_text(f"<PubmedArticleSet>{articles}</PubmedArticleSet>", encoding="utf-8")
    return path


def write_questions(path: Path, gold: Mapping[str, Sequence[int]]) -> Path:
    url = "http://www.ncbi.nlm.nih.gov/pubmed/"
    rows = [{"body": q, "documents": [f"{url}{p}" for p in pmids]} for q, pmids in gold.items()]
    path.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    return path


def gold_row(**changes: Any) -> dict[str, Any]:
    """Return a BioASQ yes/no question with gold answers, updated with `changes`."""
    return {
        "id": "q1",
        "body": "Does aspirin reduce fever?",
        "type": "yesno",
        "documents": ["http://www.ncbi.nlm.nih.gov/pubmed/1"],
        "snippets": [{"text": "Aspirin reduces fever in patients."}],
        "exact_answer": "yes",
        "ideal_answer": ["Yes, aspirin reduces fever in patients."],
    } | changes


def write_gold(path: Path, *rows: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps({"questions": list(rows)}), encoding="utf-8")
    return path


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def tagged_rows() -> list[dict[str, Any]]:
    """Return sentences that mark aspirin as a chemical and fever and tumour as diseases."""
    rows = []
    for drug, verb, illness in (
        ("aspirin", "treats", "fever"),
        ("aspirin", "causes", "tumour"),
        ("aspirin", "reduces", "fever"),
    ):
        text = f"{drug} {verb} {illness} ."
        at = text.index(illness)
        entities = [
            {"start": 0, "end": len(drug), "type": "Chemical"},
            {"start": at, "end": at + len(illness), "type": "Disease"},
        ]
        rows.append({"text": text, "entities": entities})
    return rows
