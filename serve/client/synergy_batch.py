"""Answer a Synergy round: new documents for all questions, and answers for those marked ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from cluster.answers import Question
from cluster.storage.whole_files import sha256_of
from serve.client.answer_batch import (
    NONE_GIVEN,
    SEARCH,
    Asked,
    Batch,
    answer_request_of,
    joined,
    request_of,
)
from serve.client.open_client import Client, as_answer
from serve.formats.bioasq import to_entry
from serve.formats.given_snippets import give_snippets
from serve.formats.synergy import Judged, read_judged, read_round_questions

NOT_JUDGED = Judged()
# Fields of an entry that come from the answer; documents and snippets come from the search.
SAID = ("exact_answer", "ideal_answer", "verdict", "confidence")


def synergy_batch(
    questions: Path,
    feedback: Sequence[Path],
    system: str,
    *,
    answers: bool,
    given: bool = False,
) -> Batch:
    """Return the batch of the round in `questions`; `feedback` are the files of all earlier rounds.

    Judged documents and their snippets are not submitted again. Answers may use documents judged
    relevant, but not rejected ones. If evidence is `given`, answers use only the golden snippets;
    questions without snippets are answered from a search. Raises the InputError of
    `read_round_questions`, `read_judged` and `give_snippets`.
    """
    asked = read_round_questions(questions)
    judged = read_judged(feedback)
    ready = {item.question.id: item.ready and answers for item in asked}
    batch = [item.question for item in asked]
    if given:
        batch = give_snippets(batch, [questions, *feedback])

    def ask(client: Client, question: Question) -> Asked:
        is_ready = ready[question.id]
        found = ask_question(client, question, system, judged, is_ready)
        searched = given and is_ready and not question.given
        return found.with_loss(NONE_GIVEN) if searched else found

    digests = [sha256_of(path) for path in [questions, *feedback]]
    digest = sha256("".join([*digests, "given" if given else ""]).encode())
    return Batch(batch, ask, inputs=digest.hexdigest())


def ask_question(
    client: Client, question: Question, system: str, judged: Mapping[str, Judged], ready: bool
) -> Asked:
    """Return the entry of one question, with answers only if it is `ready`."""
    known = judged.get(question.id, NOT_JUDGED)
    new = replace(question, exclude=tuple(sorted(known.all)), given=())
    reply = client.search(request_of(new, system))
    entry = to_entry(SEARCH.validate_python(reply)) | {"answerReady": ready}
    if not ready:
        return joined(entry, reply)
    allowed = replace(question, exclude=tuple(sorted(known.rejected)))
    answered = client.answer(answer_request_of(allowed, system) | {"snippets": False})
    said = to_entry(as_answer(answered))
    answers = {field: said[field] for field in SAID if field in said}
    return joined(entry | answers, reply, answered)
