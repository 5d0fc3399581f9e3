"""Names and values that the reader marks in the evidence, grouped and ranked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from serve.answer.names.cluster_names import Recognise, cluster_names, spelling
from serve.answer.names.group_names import MAX_CHARS, definitions, usual_first
from serve.answer.names.settle_exact import trim_name
from serve.answer.read_evidence import ReadCitation
from serve.support.compare_wording import read_wording, stem

# A citation's weight is divided by 1 plus this number times its rank.
NAME_RANK_LOSS = 0.2


@dataclass(frozen=True, slots=True)
class RankedName:
    """The names of one concept, the most frequent one first.

    `score` is the sum over citations of the mention's probability times the citation's relevance;
    `share` the highest probability of a mention, 0 to 1.
    """

    names: tuple[str, ...]
    score: float
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class _Mention:
    text: str
    pmid: int
    score: float
    share: float


def rank_names(
    body: str, citations: Sequence[ReadCitation], recognise: Recognise
) -> list[RankedName]:
    """Return the names that the reader marks, grouped by concept, best first.

    Names that only repeat words of the question `body` are left out.
    """
    mentions = _mentions(body, citations, variants=False)
    names = [mention.text for mention in mentions]
    defined = definitions([item for citation in citations for item in citation.items])
    return _rank(mentions, cluster_names(names, defined, recognise))


def rank_spans(body: str, citations: Sequence[ReadCitation]) -> list[RankedName]:
    """Return the names of `rank_names` and their variants, each spelling by itself, best first."""
    mentions = _mentions(body, citations, variants=True)
    return _rank(mentions, [spelling(mention.text) for mention in mentions])


def _rank(mentions: Sequence[_Mention], groups: Iterable[Hashable]) -> list[RankedName]:
    grouped: dict[Hashable, list[_Mention]] = defaultdict(list)
    for group, mention in zip(groups, mentions, strict=True):
        grouped[group].append(mention)
    return sorted(map(_ranked, grouped.values()), key=lambda name: -name.score)


def _mentions(body: str, citations: Sequence[ReadCitation], *, variants: bool) -> list[_Mention]:
    found = []
    for citation in citations:
        reading = citation.reading
        weight = reading.relevance / (1 + NAME_RANK_LOSS * citation.rank)
        for span in (*reading.names, *(reading.variants if variants else ())):
            text = trim_name(citation.text[span.begin : span.end])
            if 0 < len(text) <= MAX_CHARS and not repeats(text, body):
                found.append(_Mention(text, citation.pmid, span.score * weight, span.score))
    return found


def _ranked(mentions: Sequence[_Mention]) -> RankedName:
    best: dict[int, float] = {}
    for mention in mentions:
        best[mention.pmid] = max(best.get(mention.pmid, 0.0), mention.score)
    names = usual_first([mention.text for mention in mentions])
    return RankedName(tuple(names), sum(best.values()), max(m.share for m in mentions))


def repeats(name: str, body: str) -> bool:
    """Return whether `name` has only words that the question `body` has."""
    words = read_wording(name).words or {stem(name): 1.0}
    return words.keys() <= read_wording(body).words.keys()
