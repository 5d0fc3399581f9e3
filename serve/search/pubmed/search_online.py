"""PubMed online as a retriever: by the question and by its entities (paper 000, 3.2.1).

Where it is asked only because the vectors find too little, it is paper 001's back-off
(section 4.1).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import date
from typing import Protocol

from cluster.entrez.search_pubmed import PubMed
from cluster.errors import InputError, PubMedError
from cluster.records import Citation, Entity, Passage
from cluster.settings.settings import EntrezSettings
from serve.graph.watch_stages import StageWatch

STAGE = "pubmed"
# The first and the last day of publication; None for no bound.
Published = tuple[date | None, date | None]
ANY_DAY: Published = (None, None)

# What PubMed's query language gives a meaning to: fields, phrases, groups, truncation.
_SYNTAX = re.compile(r"[\[\]\"(){}*~|&:#]")
_OPERATOR = re.compile(r"\b(AND|OR|NOT)\b")


class OnlineStage(Protocol):
    """PubMed's E-utilities as a stage; each call raises where PubMed gives no answer."""

    async def find_online(
        self, query: str, limit: int, published: Published = ANY_DAY
    ) -> list[int]:
        """The first `limit` PMIDs by relevance, of what was published in those days."""
        ...

    async def fetch_online(self, pmids: Sequence[int]) -> list[Citation]:
        """The records of `pmids` that PubMed has, in that order."""
        ...


def _tell_nobody(_: str) -> None:
    """What PubMed did not know are words of the question, which no log holds."""


class Online:
    """PubMed as a stage. A graph has one, whose process keeps NCBI's pace for all."""

    def __init__(self, settings: EntrezSettings) -> None:
        self._pubmed = PubMed(settings)

    async def find_online(
        self, query: str, limit: int, published: Published = ANY_DAY
    ) -> list[int]:
        """The first `limit` PMIDs by PubMed's relevance; raises PubMedError without an answer."""
        first, last = published
        try:
            return await self._pubmed.search(
                query, limit=limit, date_from=first, date_to=last, tell=_tell_nobody
            )
        except InputError:
            # It repeats the query, and what fails here is logged.
            raise PubMedError("PubMed finds nothing, and does not know all words") from None

    async def fetch_online(self, pmids: Sequence[int]) -> list[Citation]:
        """Records of `pmids` in that order, missing ones left out; raises as `find_online`."""
        return await self._pubmed.fetch(pmids)

    def ready(self) -> str:
        """Answers at once: nothing is loaded, and PubMed is not asked."""
        return "ready"


def plain_query(text: str) -> str:
    """`text` as words alone: nothing in it is a field, a group or an operator to PubMed."""
    words = _OPERATOR.sub(lambda m: m[0].lower(), _SYNTAX.sub(" ", text)).rstrip("?. \n")
    return " ".join(words.split())


def entities_query(entities: Sequence[Entity]) -> str:
    """All distinct entities, joined by AND; "" for none."""
    names: dict[str, str] = {}
    for entity in entities:
        if name := plain_query(entity.text):
            names.setdefault(name.casefold(), name)
    return " AND ".join(names.values())


async def find_online(
    question: str,
    entities: Sequence[Entity],
    pubmed: OnlineStage,
    watch: StageWatch,
    *,
    limit: int,
    deadline_s: float,
    published: Published = ANY_DAY,
    written: str = "",
) -> list[int]:
    """PMIDs of the question's own search, then of its entities' and of `written`'s, each once.

    `written` is a query in PubMed's own language, "" for none. `limit` bounds each search, and
    `published` the days of publication. A search that is lost is noted, and the others stand.
    """
    queries = {
        plain_query(question): "question not searched online",
        entities_query(entities): "entities not searched online",
        written: "a written query not searched online",
    }
    found = await asyncio.gather(
        *(
            watch.run(STAGE, pubmed.find_online(query, limit, published), deadline_s, consequence)
            for query, consequence in queries.items()
            if query
        )
    )
    return list(dict.fromkeys(pmid for pmids in found for pmid in pmids or ()))


def finds_too_little(similarities: Sequence[float], at_least: int, similarity: float) -> bool:
    """Whether fewer than `at_least` of the vectors' finds are near the question.

    Near is a cosine of `similarity` or more. Paper 001, section 4.1, backs off "if the vector
    search yields insufficient results" and gives no number.
    """
    return sum(1 for each in similarities if each >= similarity) < at_least


def whole_abstract(citation: Citation) -> Passage | None:
    """The abstract, or else the title, as one passage: the unit that paper 001 embeds."""
    if text := citation.abstract.strip():
        begin = citation.abstract.index(text)
        return Passage(citation.pmid, "abstract", begin, begin + len(text), text)
    if not citation.has_title:
        return None
    return Passage(citation.pmid, "title", 0, len(citation.title), citation.title)
