"""Valid and invalid rows of run files."""

from __future__ import annotations

from functools import partial
from typing import Any

from evaluation.lint.check_biogen import check_biogen
from evaluation.lint.note_problems import Checked

URL = "http://www.ncbi.nlm.nih.gov/pubmed/"
ABSTRACT = "Insulin lowers glucose. Iron is stored in ferritin. Iron is stored."
Row = dict[str, Any]
METADATA = {"team_id": "t", "run_id": "r", "qa_id": "116", "topic_id": 181}
task_a, task_b = partial(check_biogen, task="A"), partial(check_biogen, task="B")


def question(**fields: Any) -> Row:
    return {"id": "q", "type": "summary", **fields}


def snippet(text: str = "Insulin lowers", begin: Any = 0, end: Any = 14, **fields: Any) -> Row:
    return {
        "document": f"{URL}7",
        "beginSection": "abstract",
        "endSection": "abstract",
        "offsetInBeginSection": begin,
        "offsetInEndSection": end,
        "text": text,
        **fields,
    }


def grounded(**fields: Any) -> Row:
    sentence = {
        "text": "Iron is stored.",
        "existing_supported_citations": ["1"],
        "supported_citations": [2, 3, 4],
        "contradicted_citations": [5, 6, 8],
    }
    return {"metadata": METADATA, "answer": [{**sentence, **fields}]}


def cited(*sentences: Row) -> Row:
    return {"metadata": METADATA, "responses": list(sentences)}


def sentence(text: str = "Iron is stored.", *citations: Any) -> Row:
    return {"text": text, "citations": list(citations or ("7",))}


def messages(checked: Checked, *, mendable: bool | None = None) -> list[str]:
    return [p.message for p in checked.problems if mendable is None or p.mendable == mendable]
