import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Answer, SearchResult
from cluster.records import Citation, Passage
from serve.client.call_endpoint import BadRequestError, EndpointError
from serve.client.python_client import CiteRay, read_events
from serve.contracts.answer_events import Drafted, Event, Finished, Found, StageDone
from tests.serve.api import served_api
from tests.serve.chat_endpoint import chat_endpoint
from tests.serve.problem import problem
from tests.serve.saved.kept import saved_at
from tests.serve.scripted_server import reply, scripted
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTION = "Does metformin activate AMPK?"
SAID = "Metformin activates AMPK in the liver of diabetic mice."


@contextmanager
def client_at(service: SmallService, **parts: Any) -> Iterator[CiteRay]:
    with served_api(service, **parts) as url, CiteRay(url, timeout_s=60) as client:
        yield client


@pytest.fixture(scope="module")
def citeray() -> Iterator[CiteRay]:
    with client_at(SmallService()) as client:
        yield client


def test_replies_are_typed_records(citeray: CiteRay) -> None:
    found = citeray.search(QUESTION, k=1, system="bm25")
    assert isinstance(found, SearchResult)
    assert [c.pmid for c in found.citations] == [1]
    assert (found.system, found.question.body) == ("bm25", QUESTION)
    assert 2 not in {c.pmid for c in citeray.related(2, k=2, system="bm25").citations}
    answer = citeray.answer(QUESTION, type="yesno", id="q7", exclude=[2])
    assert isinstance(answer, Answer)
    assert (answer.exact, answer.ideal[0].pmids) == ("yes", (1,))
    assert (answer.question.id, answer.question.exclude) == ("q7", (2,))
    given = Passage(2, "abstract", 0, 44, "Metformin activates AMPK in rat hepatocytes.")
    answer = citeray.answer(QUESTION, evidence=[given])
    assert [item.passage for item in answer.evidence] == [given]
    record = citeray.citation(1)
    assert isinstance(record, Citation)
    assert record.abstract == SAID
    with pytest.raises(BadRequestError, match="PMID 99 is not in this index") as caught:
        citeray.citation(99)
    assert caught.value.status == 404


def test_client_returns_references_and_documents(citeray: CiteRay) -> None:
    assert citeray.references([2, 1]).count("TY  - JOUR") == 2
    assert citeray.references([1], format="bibtex").startswith("@article{pmid1,")
    (styled,) = citeray.styled_references([1], style="ama")
    assert (styled.number, styled.pmid) == (1, 1)
    assert styled.text.startswith("Doe J. Metformin and AMPK.")
    with pytest.raises(BadRequestError, match="PMID 99: not in this index"):
        citeray.references([1, 99])
    answer = citeray.answer(QUESTION, type="yesno")
    assert citeray.document(answer).startswith(b"PK")
    assert b"Doe, J. " in citeray.document(answer, "markdown", style="apa")


def test_events_are_typed_and_end_with_the_answer() -> None:
    with (
        chat_endpoint(SAID) as endpoint,
        client_at(SmallService(writer=endpoint.model())) as citeray,
    ):
        asked = citeray.answer_events(QUESTION, type="summary", system="citeray-model")
        events = list(asked)
    assert {"encode", "retrieve"} <= {e.stage for e in events if isinstance(e, StageDone)}
    assert [e.result.coverage for e in events if isinstance(e, Found)] == ["2/2"]
    assert "".join(e.text for e in events if isinstance(e, Drafted)) == SAID
    assert isinstance(events[-1], Finished)
    assert events[-1].answer.ideal[0].text == SAID


def test_error_event_is_raised() -> None:
    with (
        client_at(SmallService(broken=("shard-0", "shard-1"))) as citeray,
        pytest.raises(EndpointError, match="no shard of the index answered") as caught,
    ):
        list(citeray.answer_events(QUESTION))
    assert caught.value.status == 503


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


def test_stream_is_retried_while_busy_and_truncation_is_an_error() -> None:
    stream = HEAD + b'event: draft\ndata: {"text": "Met"}\n\n'
    with scripted(reply(429, problem(429, "busy")), stream) as server:
        with CiteRay(server.url, timeout_s=30) as citeray:
            events = citeray.answer_events(QUESTION)
            assert next(events) == Drafted("Met")
            with pytest.raises(EndpointError, match="broke off before the answer"):
                next(events)
        assert len(server.heads) == 2


def test_reply_of_another_service_is_refused_and_lines_end_at_line_feeds_only() -> None:
    text = "one\u2028two\x85three"
    stream = f"event: draft\ndata: {json.dumps({'text': text}, ensure_ascii=False)}\n\n"
    other = reply(200, {"status": "ok"})
    with scripted(other, HEAD + stream.encode()) as server, CiteRay(server.url) as citeray:
        with pytest.raises(EndpointError, match="not a reply of CiteRay: question: "):
            citeray.answer(QUESTION)
        assert next(citeray.answer_events(QUESTION)) == Drafted(text)


def test_comments_and_unknown_fields_are_ignored() -> None:
    lines = [": ping", "", "event: a", "data: 1", "data: 2", "id: 7", "", "data:3", "", "event: b"]
    assert list(read_events(lines)) == [("a", "1\n2"), ("message", "3")]


def test_closing_the_generator_cancels_the_work(tmp_path: Path) -> None:
    ended = threading.Event()

    class Endless(SmallService):
        async def answer_events(self, *asked: Any) -> AsyncGenerator[Event, None]:
            try:
                yield Drafted("Met")
                await asyncio.sleep(60)
            finally:
                ended.set()

    with client_at(Endless(tmp_path)) as citeray:
        with closing(citeray.answer_events(QUESTION)) as events:
            assert next(events) == Drafted("Met")
        assert ended.wait(60)


def test_saved_data_are_typed_records(tmp_path: Path) -> None:
    with client_at(SmallService(), saved=saved_at(tmp_path)) as citeray:
        answer = citeray.answer(QUESTION, type="yesno", store=True)
        kept = citeray.stored_answer(answer.answer_id)
        assert kept.request["question"] == QUESTION
        assert [row.id for row in citeray.stored_answers(limit=1).answers] == [kept.id]
        replayed = citeray.replay(kept.id)
        assert (replayed.comparison.same_text, replayed.now.exact) == (True, "yes")
        given = citeray.give_feedback(kept.id, "down", exact="no", pmids=[2])
        assert [item.id for item in citeray.feedback().feedback] == [given.id]
        assert citeray.review(given.id, "accepted").state == "accepted"
        assert citeray.feedback(state="open").feedback == []
        assert [item.id for item in citeray.feedback(rating="down").feedback] == [given.id]
        citeray.delete_answer(kept.id)
        with pytest.raises(BadRequestError, match="no stored answer"):
            citeray.stored_answer(kept.id)
        watch = citeray.watch(QUESTION, type="yesno", filters={"year_from": 1990})
        assert [item.id for item in citeray.watches()] == [watch.id]
        assert citeray.watched(watch.id).history == []
        citeray.unwatch(watch.id)
        assert citeray.watches() == []


@pytest.mark.process
def test_client_does_not_import_sqlalchemy() -> None:
    code = "import sys; sys.modules['sqlalchemy'] = None; import serve.client.python_client"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
