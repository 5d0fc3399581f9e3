"""Answer a batch of questions as text to read, or as a table for spreadsheets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from cluster.answers import Answer, Question
from cluster.storage.whole_files import write_atomically
from serve.client.answer_batch import Asked, Batch, joined, request_of
from serve.client.open_client import Client, Reply, as_answer
from serve.formats.bioasq import Entry
from serve.references.write_csv import write_table
from serve.wording.verdict_words import exact_words

COLUMNS = ("id", "type", "question", "verdict", "confidence", "exact", "answer", "pmids", "titles")


def table_batch(
    questions: Sequence[Question], system: str, file_format: str, as_text: Callable[[Reply], str]
) -> Batch:
    """Return a batch in the format "csv", or in the format "text" with a text for each reply.

    A question without enough evidence has its verdict, and no guess.
    """

    def ask(client: Client, question: Question) -> Asked:
        reply = client.answer(request_of(question, system))
        row = {"id": question.id, "text": as_text(reply)} if text else to_row(as_answer(reply))
        return joined(row, reply)

    text = file_format == "text"
    write = _write_texts if text else _write_rows
    return Batch(questions, ask, write, inputs=file_format)


def to_row(answer: Answer) -> Entry:
    """Return the answer as a row of the CSV file; multiple values are separated by "; ".

    `exact` is empty for a yes or no on which the sources disagree.
    """
    divided = answer.verdict == "mixed" and isinstance(answer.exact, str)
    pmids = list(dict.fromkeys(pmid for sentence in answer.ideal for pmid in sentence.pmids))
    titles = {item.passage.pmid: item.title for item in answer.evidence}
    return {
        "id": answer.question.id,
        "type": answer.question.type,
        "question": answer.question.body,
        "verdict": answer.verdict.replace("_", " "),
        "confidence": f"{answer.confidence:.2f}",
        "exact": "" if divided else exact_words(answer.exact),
        "answer": " ".join(sentence.text for sentence in answer.ideal),
        "pmids": "; ".join(map(str, pmids)),
        "titles": "; ".join(titles.get(pmid, "") for pmid in pmids),
    }


def _write_rows(path: Path, rows: Iterable[Entry]) -> None:
    write_atomically(path, write_table(rows, COLUMNS).encode())


def _write_texts(path: Path, rows: Iterable[Entry]) -> None:
    write_atomically(path, "\n".join(row["text"] for row in rows).encode())
