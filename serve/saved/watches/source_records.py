"""Detect changes of the records that an answer is based on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from cluster.answers import Answer
from cluster.appraisal import Weighed
from cluster.exposure import ExposedSource, Exposure
from cluster.notices import NOTICES, RETRACTED, Notice, as_printed, printed_words
from cluster.records import Citation
from serve.contracts.stage_watch import StageLostError

CITES_DOUBT: Literal["cites an article in doubt"] = "cites an article in doubt"
ChangeKind = Notice | Literal["deleted", "revised", "cites an article in doubt"]
Look = Callable[[int], Awaitable[Citation | None]]
Expose = Callable[[Sequence[int]], Awaitable[Exposure | None]]
AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """State of a record when an answer was based on it.

    `digest` is a SHA-256 of its title and abstract. `notices` are its linked corrections,
    retractions and similar notices. A record that is `gone` is no longer in the index. `exposed`
    are the PMIDs that it cites and that are retracted or under an expression of concern.
    """

    pmid: int
    title: str = ""
    version: int = 0
    digest: str = ""
    notices: tuple[str, ...] = ()
    retracted: bool = False
    gone: bool = False
    exposed: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, pmid: int, citation: Citation | None, source: ExposedSource | None = None
    ) -> SourceRecord:
        """Return the state of a citation; None means that it is gone. `source` is its exposure."""
        if citation is None:
            return cls(pmid, gone=True)
        text = "\0".join((citation.title, citation.abstract))
        links = (as_printed(link) for link in citation.links if link.kind in NOTICES)
        return cls(
            pmid,
            citation.title,
            citation.version,
            sha256(text.encode(errors="surrogatepass")).hexdigest(),
            tuple(dict.fromkeys(links)),
            citation.retracted or (source is not None and source.state == RETRACTED),
            exposed=(*source.retracted, *source.doubted) if source else (),
        )


@dataclass(frozen=True, slots=True)
class SourceChange:
    """Change of a record since the last check. `detail` names the notices or the versions."""

    pmid: int
    title: str
    kind: ChangeKind
    detail: str = ""


async def look_up(pmids: Iterable[int], look: Look, expose: Expose) -> dict[int, SourceRecord]:
    """Return the current state of `pmids` in their order.

    `expose` returns their exposure. Propagates the errors of `look` and `expose`, and raises
    StageLostError if the exposure is not known, since it would seem new at the next check.
    """
    turns = asyncio.Semaphore(AT_ONCE)
    wanted = tuple(pmids)
    exposure = await expose(wanted)
    if wanted and exposure is None:
        raise StageLostError("a shard does not answer; try again in a moment")
    exposed = {source.pmid: source for source in exposure.exposed} if exposure else {}

    async def one(pmid: int) -> SourceRecord:
        async with turns:
            return SourceRecord.of(pmid, await look(pmid), exposed.get(pmid))

    return dict(zip(wanted, await asyncio.gather(*map(one, wanted)), strict=True))


def records_then(answer: Answer, now: Mapping[int, SourceRecord]) -> dict[int, SourceRecord]:
    """Return the state that the records `now` had when `answer` was written, as far as the answer
    shows it.

    An answer contains the notices about its sources, but neither their versions nor their texts.
    """
    known: dict[int, Weighed] = {item.passage.pmid: item for item in answer.evidence}
    known |= {citation.pmid: citation for citation in answer.citations}
    retracted = {citation.pmid for citation in answer.citations if citation.retracted}
    exposed = {s.pmid: s for s in answer.exposure.exposed} if answer.exposure else {}
    then = {}
    for pmid in now.keys() & known.keys():
        links = [link for link in known[pmid].links if link.kind in NOTICES]
        then[pmid] = replace(
            now[pmid],
            notices=tuple(map(as_printed, links)),
            retracted=pmid in retracted,
            gone=False,
            exposed=(*source.retracted, *source.doubted) if (source := exposed.get(pmid)) else (),
        )
    return then


def changed_sources(
    before: Mapping[int, SourceRecord], now: Mapping[int, SourceRecord]
) -> tuple[SourceChange, ...]:
    """Return the most serious change of each record that is in both mappings."""
    both = ((before[pmid], now[pmid]) for pmid in now if pmid in before)
    return tuple(change for old, new in both if (change := _change(old, new)))


def _change(old: SourceRecord, new: SourceRecord) -> SourceChange | None:
    title = new.title or old.title
    if new.gone or old.gone:
        return None if old.gone else SourceChange(new.pmid, title, "deleted")
    added = [notice for notice in new.notices if notice not in old.notices]
    detail = "; ".join(map(printed_words, added))
    if new.retracted and not old.retracted:
        return SourceChange(new.pmid, title, RETRACTED, detail)
    for notice in added:
        kind = NOTICES.get(notice.partition(" ")[0])
        if kind is not None and kind != RETRACTED:
            return SourceChange(new.pmid, title, kind, detail)
    if cited := [pmid for pmid in new.exposed if pmid not in old.exposed]:
        detail = f"it cites PMID {', '.join(map(str, cited))}"
        return SourceChange(new.pmid, title, CITES_DOUBT, detail)
    if new.version != old.version:
        said = f"version {old.version} is now {new.version}"
        return SourceChange(new.pmid, title, "revised", said)
    if new.digest != old.digest:
        return SourceChange(new.pmid, title, "revised", "its title or abstract was changed")
    return None
