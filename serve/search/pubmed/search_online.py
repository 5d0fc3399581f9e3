"""Online search in PubMed by the question and by its entities (paper 000, section 3.2.1).

It also serves as paper 001's back-off (section 4.1), when the vector search finds too little.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import date

from cluster.entrez.search_pubmed import PubMed
from cluster.errors import InputError, PubMedError
from cluster.records import Citation, Entity, Passage
from cluster.settings.stages.entrez import EntrezSettings
from serve.contracts.stage_calls import REQUEST, StageCalls, stage_method

# First and last day of publication; None means unbounded.
Published = tuple[date | None, date | None]
ANY_DAY: Published = (None, None)

# Syntax of PubMed's query language: fields, phrases, groups and truncation.
_SYNTAX = re.compile(r"[\[\]\"(){}*~|&:#]")
_OPERATOR = re.compile(r"\b(AND|OR|NOT)\b")


def _ignore_message(_: str) -> None:
    """Discard PubMed's warnings: they quote the question, which must not be logged."""


class Online:
    """PubMed as a stage. A graph has a single replica, which enforces NCBI's rate limit."""

    def __init__(self, settings: EntrezSettings) -> None:
        self._pubmed = PubMed(settings)

    async def find_online(
        self, query: str, limit: int, published: Published = ANY_DAY
    ) -> list[int]:
        """Return the first `limit` PMIDs by PubMed's relevance; raises PubMedError on failure."""
        first, last = published
        try:
            return await self._pubmed.search(
                query, limit=limit, date_from=first, date_to=last, tell=_ignore_message
            )
        except InputError:
            # The error quotes the query and would be logged.
            raise PubMedError("PubMed finds nothing, and does not know all words") from None

    async def fetch_online(self, pmids: Sequence[int]) -> list[Citation]:
        """Return the records of `pmids` in order, without missing ones; raises PubMedError."""
        return await self._pubmed.fetch(pmids)

    def ready(self) -> str:
        """Return "ready" at once: nothing is loaded, and PubMed is not contacted."""
        return "ready"


FIND_ONLINE = stage_method("pubmed", Online.find_online, "pubmed", limit=REQUEST)
FETCH_ONLINE = stage_method(
    "pubmed", Online.fetch_online, "pubmed", "articles not fetched", limit=REQUEST
)


def plain_query(text: str) -> str:
    """Return the words of `text` without PubMed's fields, groups and operators."""
    words = _OPERATOR.sub(lambda m: m[0].lower(), _SYNTAX.sub(" ", text)).rstrip("?. \n")
    return " ".join(words.split())


def entities_query(entities: Sequence[Entity]) -> str:
    """Return all distinct entities, joined by AND; "" if there are none."""
    names: dict[str, str] = {}
    for entity in entities:
        if name := plain_query(entity.text):
            names.setdefault(name.casefold(), name)
    return " AND ".join(names.values())


async def find_online(
    question: str,
    entities: Sequence[Entity],
    stages: StageCalls,
    *,
    limit: int,
    published: Published = ANY_DAY,
    written: str = "",
) -> list[int]:
    """Return the distinct PMIDs found by the question, then by its entities, then by `written`.

    `written` is a query in PubMed's syntax, or "". `limit` is the maximum number of PMIDs per
    search; `published` restricts the publication date. Failed searches are recorded in `degraded`.
    """
    queries = {
        plain_query(question): "question not searched online",
        entities_query(entities): "entities not searched online",
        written: "a written query not searched online",
    }
    found = await asyncio.gather(
        *(
            stages.call(FIND_ONLINE.with_loss(loss), query, limit, published)
            for query, loss in queries.items()
            if query
        )
    )
    return list(dict.fromkeys(pmid for pmids in found for pmid in pmids or ()))


def whole_abstract(citation: Citation) -> Passage | None:
    """Return the abstract, or else the title, as one passage, the unit that paper 001 embeds."""
    if text := citation.abstract.strip():
        begin = citation.abstract.index(text)
        return Passage(citation.pmid, "abstract", begin, begin + len(text), text)
    if not citation.has_title:
        return None
    return Passage(citation.pmid, "title", 0, len(citation.title), citation.title)
