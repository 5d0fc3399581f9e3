"""Exposure of an answer to retractions: its own sources, and the articles that these cite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from cluster.notices import DOUBTED, RETRACTED

Doubt = Literal["retracted", "expression of concern"]
References = Mapping[int, tuple[int, ...] | None]
"""PMIDs that each article cites; None if the index does not have them."""
# Maximum number of articles named in a sentence; the rest are only counted.
MAX_NAMED = 5
UNKNOWN = "Exposure to retractions is unknown: this index has no references of these sources."
_ARE: Mapping[Doubt, tuple[str, str]] = {
    RETRACTED: ("is retracted", "are retracted"),
    DOUBTED: ("is under an expression of concern", "are under an expression of concern"),
}
_CITED: Mapping[Doubt, tuple[str, str]] = {
    RETRACTED: ("1 retracted article", "{} retracted articles"),
    DOUBTED: (
        "1 article under an expression of concern",
        "{} articles under an expression of concern",
    ),
}


@dataclass(frozen=True, slots=True)
class ExposedSource:
    """A source that is retracted or under an expression of concern, or cites such an article.

    `state` is its own state, "" if it is neither. `retracted` and `doubted` are the
    PMIDs that it cites.
    """

    pmid: int
    state: Literal["", "retracted", "expression of concern"] = ""
    retracted: tuple[int, ...] = ()
    doubted: tuple[int, ...] = ()

    def cited(self, doubt: Doubt) -> tuple[int, ...]:
        """Return the PMIDs of one state that the source cites."""
        return self.retracted if doubt == RETRACTED else self.doubted


@dataclass(frozen=True, slots=True)
class Knockout:
    """The decision without the exposed sources.

    `outcome` is what it states: "yes", "no", names, "mixed" or "not enough evidence"; "answered"
    for an answer in sentences only. `before` is what the answer with all sources states, and
    `stays` whether both are the same.
    """

    outcome: str
    before: str
    stays: bool


@dataclass(frozen=True, slots=True)
class Exposure:
    """The sources of an answer, and which of them are exposed to retractions.

    `unknown` are the sources whose references the index does not have. `without` is None unless
    a source of a stated answer is exposed.
    """

    sources: tuple[int, ...]
    unknown: tuple[int, ...] = ()
    exposed: tuple[ExposedSource, ...] = ()
    without: Knockout | None = None


def find_exposure(
    sources: Iterable[int], cited: References, doubts: Mapping[int, Doubt]
) -> Exposure:
    """Return the exposure of `sources`, whose references are `cited`.

    `doubts` are the states of those sources and references that are in doubt.
    """
    pmids = tuple(dict.fromkeys(sources))
    exposed = []
    for pmid in pmids:
        found = [other for other in cited.get(pmid) or () if other in doubts and other != pmid]
        source = ExposedSource(
            pmid,
            doubts.get(pmid, ""),
            tuple(other for other in found if doubts[other] == RETRACTED),
            tuple(other for other in found if doubts[other] == DOUBTED),
        )
        if source != ExposedSource(pmid):
            exposed.append(source)
    unknown = tuple(pmid for pmid in pmids if cited.get(pmid) is None)
    return Exposure(pmids, unknown, tuple(exposed))


def join_doubts(known: dict[int, Doubt], more: Mapping[int, Doubt]) -> None:
    """Add the states in `more` to `known`; a retraction replaces an expression of concern."""
    for pmid, state in more.items():
        if known.get(pmid) != RETRACTED:
            known[pmid] = state


def join_exposures(parts: Iterable[Exposure | None]) -> Exposure | None:
    """Return the exposure of an answer in parts, without a decision; None without any."""
    found = [part for part in parts if part]
    if not found:
        return None
    sources = tuple(dict.fromkeys(pmid for part in found for pmid in part.sources))
    unknown = tuple(dict.fromkeys(pmid for part in found for pmid in part.unknown))
    exposed = {source.pmid: source for part in found for source in part.exposed}
    return Exposure(sources, unknown, tuple(exposed.values()))


def exposure_words(exposure: Exposure | None) -> tuple[str, ...]:
    """Return sentences about the exposure; () if it is known and no source is exposed."""
    if exposure is None or not exposure.sources:
        return ()
    total, unknown, said = len(exposure.sources), len(exposure.unknown), list[str]()
    if unknown == total and not exposure.exposed:
        return (UNKNOWN,)
    for doubt, (is_, are) in _ARE.items():
        own = [source.pmid for source in exposure.exposed if source.state == doubt]
        if own:
            state = is_ if len(own) == 1 else are
            said.append(f"{_share(len(own), total)} {state} ({_named(own)}).")
    for doubt in _CITED:
        citing = [source for source in exposure.exposed if source.cited(doubt)]
        if citing:
            cite = "cites" if len(citing) == 1 else "cite"
            said.append(f"{_share(len(citing), total)} {cite} {_cited_words(doubt, citing)}.")
    if exposure.without is not None and said:
        them = "this source" if len(exposure.exposed) == 1 else "these sources"
        change = "changes from mixed to" if exposure.without.before == "mixed" else "changes to"
        verb = "is still" if exposure.without.stays else change
        said.append(f"Without {them}, the answer {verb} {exposure.without.outcome}.")
    if unknown:
        said.append(f"The references of {unknown} of {total} sources are unknown.")
    return (" ".join(said),) if said else ()


def source_words(source: ExposedSource) -> str:
    """Return a sentence about one exposed source, for a mark beside its reference."""
    own = [f"{_ARE[source.state][0].capitalize()}."] if source.state else []
    cited = [f"Cites {_cited_words(doubt, [source])}." for doubt in _CITED if source.cited(doubt)]
    return " ".join([*own, *cited])


def _share(count: int, total: int) -> str:
    return "The only source" if total == 1 else f"{count} of {total} sources"


def _cited_words(doubt: Doubt, citing: Iterable[ExposedSource]) -> str:
    pmids = sorted({pmid for source in citing for pmid in source.cited(doubt)})
    one, many = _CITED[doubt]
    return f"{one if len(pmids) == 1 else many.format(len(pmids))} ({_named(pmids)})"


def _named(pmids: list[int]) -> str:
    more = f" and {len(pmids) - MAX_NAMED} more" if len(pmids) > MAX_NAMED else ""
    return f"PMID {', '.join(map(str, pmids[:MAX_NAMED]))}{more}"
