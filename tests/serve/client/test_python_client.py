import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Answer, SearchResult
from cluster.records import Citation, Passage
from cluster.settings.settings import load_settings
from serve.answer_events import Drafted, Event, Finished, Found, StageDone
from serve.client.call_endpoint import BadRequestError, EndpointError
from serve.client.python_client import CiteRay, read_events
from serve.http.api import create_api
from tests.serve.chat_endpoint import chat_endpoint
from tests.serve.http_server import serving
from tests.serve.problem import problem
from tests.serve.scripted_server import reply, scripted
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTION = "Does metformin activate AMPK?"
SAID = "Metformin activates AMPK in the liver of diabetic mice."


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    service = SmallService()
    with serving(create_api(service, load_settings().serve)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def citeray(url: str) -> Iterator[CiteRay]:
    with CiteRay(url, timeout_s=60) as client:
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


def test_references_come_as_files_and_styled_and_an_answer_as_a_document(citeray: CiteRay) -> None:
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
    with chat_endpoint(SAID) as endpoint:
        service = SmallService(writer=endpoint.model())
        with (
            serving(create_api(service, load_settings().serve)) as port,
            CiteRay(f"http://127.0.0.1:{port}", timeout_s=60) as citeray,
        ):
            asked = citeray.answer_events(QUESTION, type="summary", system="citeray-model")
            events = list(asked)
    assert {"encode", "retrieve"} <= {e.stage for e in events if isinstance(e, StageDone)}
    assert [e.result.coverage for e in events if isinstance(e, Found)] == ["2/2"]
    assert "".join(e.text for e in events if isinstance(e, Drafted)) == SAID
    assert isinstance(events[-1], Finished)
    assert events[-1].answer.ideal[0].text == SAID


def test_a_stream_that_cannot_be_answered_raises_the_servers_sentence() -> None:
    service = SmallService(broken=("shard-0", "shard-1"))
    with (
        serving(create_api(service, load_settings().serve)) as port,
        CiteRay(f"http://127.0.0.1:{port}", timeout_s=60) as citeray,
        pytest.raises(EndpointError, match="no shard of the index answered") as caught,
    ):
        list(citeray.answer_events(QUESTION))
    assert caught.value.status == 503


def test_a_stream_is_opened_again_while_the_endpoint_is_busy() -> None:
    failure = problem(500, "the end")
    stream = f"event: error\ndata: {json.dumps(failure)}\n\n".encode()
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    with scripted(reply(429, problem(429, "busy")), head + stream) as server:
        with (
            CiteRay(server.url, timeout_s=30) as citeray,
            pytest.raises(EndpointError, match="the end"),
        ):
            list(citeray.answer_events(QUESTION))
        assert len(server.heads) == 2


def test_a_stream_that_breaks_off_is_an_error() -> None:
    stream = b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nevent: draft\ndata: {"text": "Met"}\n\n'
    with scripted(stream) as server, CiteRay(server.url, timeout_s=30) as citeray:
        events = citeray.answer_events(QUESTION)
        assert next(events) == Drafted("Met")
        with pytest.raises(EndpointError, match="broke off before the answer"):
            next(events)


def test_a_reply_of_another_service_is_refused_and_a_line_ends_at_line_feeds_alone() -> None:
    text = "one\u2028two\x85three"
    stream = f"event: draft\ndata: {json.dumps({'text': text}, ensure_ascii=False)}\n\n"
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    other = reply(200, {"status": "ok"})
    with scripted(other, head + stream.encode()) as server, CiteRay(server.url) as citeray:
        with pytest.raises(EndpointError, match="no reply of CiteRay's: question: "):
            citeray.answer(QUESTION)
        assert next(citeray.answer_events(QUESTION)) == Drafted(text)


def test_comments_and_unknown_fields_are_no_events() -> None:
    lines = [": ping", "", "event: a", "data: 1", "data: 2", "id: 7", "", "data:3", "", "event: b"]
    assert list(read_events(lines)) == [("a", "1\n2"), ("message", "3")]


def test_who_stops_listening_ends_the_work(tmp_path: Path) -> None:
    ended = threading.Event()

    class Endless(SmallService):
        async def answer_events(self, *asked: Any) -> AsyncGenerator[Event, None]:
            try:
                yield Drafted("Met")
                await asyncio.sleep(60)
            finally:
                ended.set()

    with (
        serving(create_api(Endless(tmp_path), load_settings().serve)) as port,
        CiteRay(f"http://127.0.0.1:{port}") as citeray,
    ):
        with closing(citeray.answer_events(QUESTION)) as events:
            assert next(events) == Drafted("Met")
        assert ended.wait(60)
