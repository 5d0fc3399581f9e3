"""Questions with unusual characters."""

from __future__ import annotations

from itertools import cycle

import httpx
import pytest

METFORMIN = "Does metformin activate AMPK?"
QUESTIONS = {
    "right to left": f"\u202e{METFORMIN}\u202c",
    "isolates left open": "\u2066" * 500 + METFORMIN,
    "zero width within words": "Does\u200b met\u200dfor\u2060min acti\ufeffvate AM\u00adPK?",
    "a flood of accents": "Does metformin activate A" + "\u0301" * 1970 + "MPK?",
    "homoglyphs": "Dоеs mеtfоrmin асtivаtе АМРК?",  # noqa: RUF001
    "2,000 emoji": "\U0001f9ec" * 2000,
    "no characters": "\ufffe\uffff" * 500,
    "NULs": "\0" * 2000,
    "control characters": "".join(map(chr, range(1, 32))) * 60 + "a",
    "line separators": "a\u2028b\u2029c\x85" * 300,
    "what grows when folded": "İßﬁ\ufdfa" * 500,
    "other digits": "٣۳३３" * 500,
    "operators of a search": 'NOT AND OR ("*"~^:[]{}+-!\\/) ' * 60,
    "spaces": "a" + " " * 1998 + "b",
    "one long word": "A" * 2000,
    "capitals and dashes": "aA1-" * 500,
}
TYPES = ("yesno", "factoid", "list", "summary", "unknown")


@pytest.mark.slow
def test_answer_returns_any_question_unchanged(
    http: httpx.Client, subtests: pytest.Subtests
) -> None:
    for question, kind in zip(QUESTIONS.values(), cycle(TYPES), strict=False):
        with subtests.test(question=question, kind=kind):
            asked = {"question": question, "type": kind, "snippets": True}
            reply = http.post("/v1/answer", json=asked)
            assert reply.status_code == 200, reply.text
            answer = reply.json()
            assert answer["question"]["body"] == question.strip()
            cited = {pmid for sentence in answer["ideal"] for pmid in sentence["pmids"]}
            assert cited <= {item["passage"]["pmid"] for item in answer["evidence"]}


@pytest.mark.slow
def test_every_route_accepts_any_question(http: httpx.Client, subtests: pytest.Subtests) -> None:
    for question in QUESTIONS.values():
        with subtests.test(question=question):
            assert http.post("/v1/search", json={"question": question}).status_code == 200
            streamed = http.post("/v1/answer", json={"question": question, "stream": True})
            assert "event: answer" in streamed.text
            turns = [{"role": "user", "content": question}]
            said = http.post("/v1/chat/completions", json={"model": "citeray", "messages": turns})
            assert said.status_code == 200, said.text
            call = {"name": "search_pubmed", "arguments": {"question": question}}
            tool = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            reply = http.post("/mcp", json=tool, headers={"Accept": "application/json"})
            assert "structuredContent" in reply.json()["result"], reply.text


def test_words_between_invisible_characters_are_found(http: httpx.Client) -> None:
    found = http.post("/v1/search", json={"question": QUESTIONS["right to left"]}).json()
    assert found["citations"][0]["pmid"] == 1


def test_question_limit_counts_characters(http: httpx.Client) -> None:
    reply = http.post("/v1/search", json={"question": "\U0001f9ec" * 2001})
    assert reply.status_code == 422
    assert "at most 2000 characters" in reply.json()["detail"]
