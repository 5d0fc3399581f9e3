"""Batches for TREC BioGen: find evidence for given sentences (A), and answer questions (B)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from cluster.answers import Evidence, Question
from serve.client.answer_batch import SEARCH, Asked, Batch, answer_request_of, joined
from serve.client.open_client import Client, Reply, as_answer
from serve.contracts.request_forms import MAX_QUESTION_CHARACTERS
from serve.formats.biogen import (
    GroundingTopic,
    read_topics_b,
    to_entry_a,
    to_entry_b,
    write_lines,
)
from serve.support.attribute_sentences import SupportScorer
from serve.support.ground_sentences import ground_sentence
from serve.support.weigh_evidence import Thresholds

# Preset of the word search for contradicting passages; every installation has it.
WORDS_SYSTEM = "bm25"


def biogen_a_batch(
    topics: Sequence[GroundingTopic], system: str, scorer: SupportScorer, thresholds: Thresholds
) -> Batch:
    """Return the batch of task A: supporting and contradicting PMIDs of each given sentence."""
    by_id = {topic.question.id: topic for topic in topics}

    def ask(client: Client, question: Question) -> Asked:
        topic = by_id[question.id]
        replies: list[Reply] = []

        def search_by(name: str, text: str) -> Sequence[Evidence]:
            body = text[:MAX_QUESTION_CHARACTERS]
            replies.append(client.search({"question": body, "system": name, "k": 1}))
            return SEARCH.validate_python(replies[-1]).evidence

        by_meaning, by_words = partial(search_by, system), partial(search_by, WORDS_SYSTEM)
        grounds = [
            ground_sentence(s.text, s.existing, by_meaning, by_words, scorer, thresholds)
            for s in topic.sentences
        ]
        return joined(to_entry_a(topic, grounds, system), *replies)

    questions = [topic.question for topic in by_id.values()]
    said = repr([topic.sentences for topic in by_id.values()])
    return Batch(questions, ask, write_lines, inputs=sha256(said.encode()).hexdigest())


def biogen_b_batch(topics: Path, system: str) -> Batch:
    """Return the batch of task B: answers of at most 250 words, with PMIDs for each sentence.

    Raises InputError if the file is invalid, as `read_topics_b` does.
    """

    def ask(client: Client, question: Question) -> Asked:
        reply = client.answer(answer_request_of(question, system) | {"snippets": False})
        return joined(to_entry_b(question, as_answer(reply), system), reply)

    return Batch(read_topics_b(topics), ask, write_lines, inputs="biogen-b")
