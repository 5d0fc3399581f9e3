"""Boolean search over all shards."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cluster.errors import InputError
from cluster.index.boolean.expressions import And, Expression, Term, map_terms, terms_of
from cluster.index.layout import shard_of
from cluster.records import Citation
from serve.contracts.stage_calls import StageCalls, require
from serve.contracts.stage_watch import StageLostError
from serve.question.find_headings import find_headings, mapped_note, unknown_heading
from serve.search.shard_stage import CITATIONS, MATCH, VersionName, oldest

_UI = re.compile(r"[Dd]\d{6,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Matched:
    """All citations that match an expression.

    `pmids` are ascending; `months` are their months of publication as 12 * year + month. `read` is
    the oldest index version that was searched, and `coverage` the share of shards that answered,
    such as "2/2". `degraded` has a sentence for each shard that did not. `notes` name the headings
    that entry terms stand for.
    """

    pmids: npt.NDArray[np.int64]
    months: npt.NDArray[np.int32]
    read: VersionName
    coverage: str
    degraded: tuple[str, ...]
    notes: tuple[str, ...]

    def newest_first(self) -> npt.NDArray[np.int64]:
        """Return the PMIDs ordered by month of publication, then by PMID, both descending."""
        newest: npt.NDArray[np.int64] = self.pmids[np.lexsort((self.pmids, self.months))[::-1]]
        return newest


async def match_all(stages: StageCalls, expression: Expression) -> Matched:
    """Return the citations of all shards that match `expression`.

    Raises InputError for a heading that the index does not know and for an expression that is too
    costly or matches too much, and StageLostError if no shard answers.
    """
    expression, notes = await _with_descriptors(stages, expression)
    if until := stages.settings.until:
        expression = And((expression, Term("dp", f"1000:{until.replace('-', '/')}")))
    shards = stages.facts.shards
    replies = await asyncio.gather(
        *(stages.call(MATCH.of_shard(n), expression) for n in range(shards))
    )
    found = [reply for reply in replies if reply is not None]
    if not found:
        raise StageLostError("no shard of the index answered; try again in a moment")
    if refused := sorted({part.value.refused for part in found} - {""}):
        raise InputError(refused[0])
    pmids = np.concatenate([part.value.pmids for part in found])
    months = np.concatenate([part.value.months for part in found])
    order = np.argsort(pmids)
    return Matched(
        pmids[order],
        months[order],
        oldest(part.read for part in found),
        f"{len(found)}/{shards}",
        tuple(stages.watch.degraded),
        notes,
    )


async def fetch_citations(stages: StageCalls, pmids: Sequence[int]) -> list[Citation]:
    """Return the records of those `pmids` that are in the index, in the same order.

    Raises StageLostError if a shard does not answer.
    """
    by_shard: dict[int, list[int]] = {}
    for pmid in pmids:
        by_shard.setdefault(shard_of(pmid, stages.facts.shards), []).append(pmid)
    lost = "a shard does not answer; try again in a moment"
    replies = await asyncio.gather(
        *(
            require(stages.backend, stages.settings, lost, CITATIONS.of_shard(n), own)
            for n, own in by_shard.items()
        )
    )
    held = {citation.pmid: citation for reply in replies for citation in reply}
    return [held[pmid] for pmid in pmids if pmid in held]


async def _with_descriptors(
    stages: StageCalls, expression: Expression
) -> tuple[Expression, tuple[str, ...]]:
    """Return `expression` with each MeSH heading replaced by its UI, and notes on entry terms."""
    named = [t for t in terms_of(expression) if _is_name(t)]
    known = await find_headings(list(dict.fromkeys(t.value for t in named)), stages)
    for term in named:
        if term.value not in known:
            said = (
                f"query, {term}: not a MeSH heading that this index knows; give it without a "
                "subheading, or use [tiab] to search for the words"
            )
            raise await unknown_heading(said, term.value, stages)
    notes = (mapped_note(value, heading) for value, heading in known.items())
    expression = map_terms(
        expression, lambda t: replace(t, value=known[t.value].ui) if _is_name(t) else t
    )
    return expression, tuple(filter(None, notes))


def _is_name(term: Term) -> bool:
    """Return whether `term` names a MeSH heading otherwise than by its UI."""
    return term.field in ("mh", "majr") and not _UI.fullmatch(term.value)
