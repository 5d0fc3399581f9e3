"""Fake of NCBI's E-utilities on loopback, with scripted failures."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from tests.cluster.pubmed_sets import DOCTYPE, article
from tests.serve.http_server import serving

REACH = 9_999
_SPAN = re.compile(r"#(\d+) AND (\S+):(\S+)\[edat\]")


@dataclass(frozen=True)
class Reply:
    """Scripted reply; `cut` closes the connection after this number of bytes."""

    body: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None


@dataclass
class EUtils:
    """Returns all records of `entered` (PMID to date of entry, by relevance) for every query.

    Replies in `script` are sent first, in turn; with `for_ever` the last one is repeated.
    `requests` are the forms received, with the `utility` and the arrival time `at` in seconds.
    """

    entered: dict[int, date] = field(default_factory=dict)
    script: list[Reply] = field(default_factory=list)
    for_ever: bool = False
    warnings: dict[str, Any] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)
    books: Sequence[int] = ()
    stored: set[str] = field(default_factory=set)
    url: str = ""

    def start_over(self, entered: dict[int, date]) -> None:
        vars(self).update(vars(EUtils(entered, url=self.url)))

    def forget_stored_searches(self) -> None:
        self.stored.clear()

    async def respond(self, utility: str, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode(), keep_blank_values=True))
        self.requests.append({"utility": utility, "at": time.monotonic(), **form})
        if self.script:
            stays = self.for_ever and len(self.script) == 1
            return _as_told(self.script[0] if stays else self.script.pop(0))
        answer = self.esearch(form) if utility == "esearch" else self.efetch(form)
        return Response(answer)

    def esearch(self, form: dict[str, str]) -> str:
        pmids = self.found_by(form["term"])
        if span := _SPAN.fullmatch(form["term"]):
            if form["WebEnv"] not in self.stored:
                return json.dumps({"esearchresult": {"ERROR": "Unable to obtain query #1"}})
            first, last = (date(*map(int, day.split("/"))) for day in span.groups()[1:])
            pmids = [pmid for pmid in pmids if first <= self.entered[pmid] <= last]
        found = {
            "count": str(len(pmids)),
            "idlist": [str(pmid) for pmid in pmids[: min(int(form["retmax"]), REACH)]],
            **self.warnings,
        }
        if form.get("usehistory") == "y":
            found |= {"webenv": f"MCID_{len(self.requests)}", "querykey": "1"}
            self.stored.add(str(found["webenv"]))
        return json.dumps({"header": {"type": "esearch"}, "esearchresult": found})

    def found_by(self, term: str) -> list[int]:
        """Return all PMIDs, most relevant first."""
        return list(self.entered)

    def records(self, pmids: Sequence[int], books: Sequence[int]) -> str:
        return records(pmids, books)

    def efetch(self, form: dict[str, str]) -> str:
        wanted = [int(pmid) for pmid in form["id"].split(",")]
        known = [pmid for pmid in wanted if pmid in self.entered]
        # PubMed does not keep the order of the request.
        return self.records(sorted(known), [pmid for pmid in wanted if pmid in self.books])


def records(pmids: Sequence[int], books: Sequence[int] = ()) -> str:
    articles = [
        article(f"<PMID>{pmid}</PMID>", f"<ArticleTitle>Title {pmid}</ArticleTitle>")
        for pmid in pmids
    ]
    articles += [
        f"<PubmedBookArticle><BookDocument><PMID>{pmid}</PMID></BookDocument></PubmedBookArticle>"
        for pmid in books
    ]
    return f"{DOCTYPE}<PubmedArticleSet>{''.join(articles)}</PubmedArticleSet>"


def _as_told(reply: Reply) -> Response:
    if reply.cut is None:
        return Response(reply.body, reply.status, reply.headers)
    body = reply.body.encode()

    async def begin() -> AsyncIterator[bytes]:
        yield body[: reply.cut]

    return StreamingResponse(
        begin(), reply.status, {**reply.headers, "Content-Length": str(len(body))}
    )


Served = TypeVar("Served", bound=EUtils)


@contextmanager
def eutils(server: Served, port: int = 0) -> Iterator[Served]:
    """Run `server` at `server.url`, on `port` or, for 0, on a free port."""
    app = FastAPI()

    @app.api_route("/{utility}.fcgi", methods=["GET", "POST"])
    async def respond(utility: str, request: Request) -> Response:
        if request.method == "GET":
            return Response("POST, please", status_code=405)
        return await server.respond(utility, request)

    with serving(app, port) as port:
        server.url = f"http://127.0.0.1:{port}"
        yield server
