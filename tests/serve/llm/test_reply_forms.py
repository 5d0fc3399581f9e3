from __future__ import annotations

import json

import pytest

from cluster.errors import LLMError
from serve.llm.reply_forms import (
    TEXT,
    read_names,
    read_reasoned,
    reasoned_schema,
    says_nothing,
    summarise_reasoning,
)


@pytest.mark.parametrize("tokens", [32, 64, 1024])
def test_reasoned_schema_fits_the_token_limit(tokens: int) -> None:
    schema = reasoned_schema(TEXT, tokens)
    longest = {name: "a" * part["maxLength"] for name, part in schema["properties"].items()}
    assert tokens * 2 < len(json.dumps(longest)) <= tokens * 3
    # The reasoning precedes the answer.
    assert list(schema["properties"]) == schema["required"] == ["chain_of_thought", "answer"]


def test_read_reasoned_ignores_surrounding_text() -> None:
    reply = {"chain_of_thought": "So.", "answer": "yes"}
    found = read_reasoned(f"Here it is: {json.dumps(reply)} Bye.")
    assert (found.reasoning, found.answer) == ("So.", "yes")


def test_malformed_reply_raises_llm_error(subtests: pytest.Subtests) -> None:
    for text in ["", "yes", "[1]", '{"answer": ', '{"reply": "yes"}', "}{"]:
        with subtests.test(text=text), pytest.raises(LLMError, match="llm: the reply"):
            read_reasoned(text)
    with pytest.raises(LLMError, match="not a list"):
        read_names("Metformin")
    assert read_reasoned('{"chain_of_thought": 7, "answer": "no"}').reasoning == ""


def test_says_nothing_recognises_the_prompts_phrases() -> None:
    texts = ("No answer provided", "no answer provided.", "Not stated in the passages.", " ", "")
    assert all(map(says_nothing, texts))


def test_summarise_reasoning_keeps_the_last_whole_sentences() -> None:
    assert summarise_reasoning("First this.\n Then that.") == "First this. Then that."
    text = "We looked at the passages. The trial found no effect. So the answer is no."
    assert summarise_reasoning(text, 60) == "The trial found no effect. So the answer is no."
    assert summarise_reasoning("word " * 50 + "end.", 9) == "word end."
