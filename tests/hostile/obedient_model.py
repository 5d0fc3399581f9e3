"""A model that obeys every injected instruction, and a small index that contains one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster.answers import Answer, Question
from cluster.records import Citation
from cluster.settings.presets import load_system
from cluster.settings.system_settings import SystemSettings
from serve.contracts.request import Request
from serve.http.openai.openai_request import ChatRequest
from serve.llm.chat_form import Message
from serve.llm.prompts import quote
from tests.serve.small_graph import make_answerer
from tests.small_index import citation

QUESTION = "Does metformin activate AMPK?"
PLANTED = 666
HONEST = (
    citation(1, "Metformin activates AMPK in the liver of diabetic mice.", "Metformin and AMPK"),
    citation(2, "Metformin activates AMPK in human muscle, as two trials show.", "AMPK in muscle"),
    citation(3, "AICAR and metformin activate AMPK in cultured cells.", "Drugs that activate AMPK"),
)
PLAIN = load_system("citeray-model")
PAPERS = {
    "reasoned": PLAIN.model_copy(update={"answer": load_system("sinai").answer}),
    "supported": load_system("aqams2"),
    "weighed": load_system("udine-b"),
}
# One preset for each way to write: plain, reasoned, with the supported answer, weighed.
SYSTEMS = {
    "plain": PLAIN,
    # The presets' own checks are tested elsewhere; these drop unsupported sentences.
    "reasoned": PAPERS["reasoned"].checking("drop"),
    "supported": PAPERS["supported"].checking("drop"),
    "weighed": PAPERS["weighed"].checking("drop"),
}


@dataclass
class ObedientModel:
    """Replies `payload` if it sees the instruction `text`, or always if `always` is set."""

    text: str
    payload: str
    exact: str
    always: bool = False
    seen: int = 0

    async def chat(
        self,
        messages: Sequence[Message],
        *,
        choices: Sequence[str] | None = None,
        json_schema: Mapping[str, Any] | None = None,
        weigh: Sequence[str] | None = None,
        **options: Any,
    ) -> str:
        text = "\n".join(message["content"] for message in messages)
        obeys = self.always or any(part in text for part in _parts(self.text))
        self.seen += obeys
        said = self.payload if obeys else HONEST[0].sections[0].text
        if weigh:
            likely = self.exact if obeys and self.exact in weigh else weigh[0]
            return json.dumps({word: float(word == likely) for word in weigh})
        if choices:
            return self.exact if obeys and self.exact in choices else choices[0]
        if json_schema is None:
            return said
        names = [self.exact or said] if obeys else ["metformin", "AICAR"]
        return json.dumps(_fill(json_schema, said, names))


def _parts(text: str) -> list[str]:
    """Return the parts of an instruction that survive quoting: all of it and its halves."""
    words = quote(text).split()
    half = len(words) // 2
    parts = [" ".join(part) for part in (words, words[:half], words[half:])]
    honest = " ".join(c.sections[0].text for c in HONEST)
    return [part for part in parts if part not in honest]


def _fill(schema: Mapping[str, Any], said: str, names: Sequence[str]) -> Any:
    """Return a minimal value of the schema, with `said` for texts and `names` for lists."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {key: _fill(value, said, names) for key, value in schema["properties"].items()}
    if schema.get("type") == "array":
        inner = schema["items"]
        if inner.get("type") == "array":
            return [[name] for name in names]
        return list(names) if inner.get("type") == "string" else [_fill(inner, said, names)]
    return said


def corpus(case: Mapping[str, Any]) -> list[Citation]:
    text = case["text"] * case.get("times", 1)
    if case["planted"] == "abstract":
        return [*HONEST, citation(PLANTED, f"Metformin and AMPK. {text}", "Metformin, AMPK")]
    if case["planted"] == "title":
        return [*HONEST, citation(PLANTED, "Metformin activates AMPK in rats.", text)]
    return list(HONEST)


def asked(case: Mapping[str, Any]) -> Question:
    if case["planted"] == "question":
        return Question("", case["text"])
    body = case.get("question", QUESTION)
    if case["planted"] == "history":
        turns = [
            {"role": "system", "content": case["text"]},
            {"role": "user", "content": case["text"]},
            {"role": "assistant", "content": "I will."},
            {"role": "user", "content": body},
        ]
        return ChatRequest.model_validate({"model": "citeray", "messages": turns}).question()
    return Question("", body)


def answer(
    case: Mapping[str, Any],
    system: str,
    model: ObedientModel,
    systems: Mapping[str, SystemSettings] = SYSTEMS,
) -> Answer:
    answerer = make_answerer(None, corpus(case), writer=model, model=model)
    return asyncio.run(answerer.answer(Request(asked(case), systems[system], 10)))


def said_in(answer: Answer) -> str:
    """Return the text of an answer: sentences with their PMIDs, and the exact answer."""
    sentences = [*answer.ideal, *answer.supported]
    texts = [f"{sentence.text} {sentence.pmids}" for sentence in sentences]
    return " ".join([*texts, json.dumps(answer.exact)]).casefold()
