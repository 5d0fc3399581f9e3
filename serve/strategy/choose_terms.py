"""Choose the terms and the blocks of a strategy by what they find on the index.

Terms and blocks are chosen greedily; ties are broken by hits and by name, so that equal indexes
give equal strategies.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from cluster.index.boolean.expressions import Expression, Term
from serve.strategy.concept_blocks import Concepts, ReferenceSet
from serve.strategy.strategy_records import both, either

# A term is kept if it is at least this many times as frequent in the reference citations that it
# adds as in the whole index (docs/benchmarks-quality.md).
MIN_LIFT = 5.0
# Blocks are ranked by the recall that they lose, divided by this power of the logarithm of the
# factor by which they lower the hits.
FOCUS = 2


@dataclass(frozen=True, slots=True)
class Count:
    """Number of citations that match; an upper estimate unless `exact`."""

    hits: int
    exact: bool = True


# Counts the citations in the index that match each of the expressions.
Counter = Callable[[Sequence[Expression]], Awaitable[list[Count]]]


@dataclass(frozen=True, slots=True)
class ChosenBlock:
    """A block with its chosen terms, the count of each, and the reference citations that it has.

    `is_entity` is True for a recognised entity, and False for a content word. `is_telling` is False
    if no term is clearly more frequent in the reference citations than in the index.
    """

    name: str
    terms: tuple[Term, ...]
    counts: tuple[Count, ...]
    found: frozenset[int]
    is_entity: bool = False
    is_telling: bool = True

    @property
    def expression(self) -> Expression:
        """The terms joined by OR."""
        return either(self.terms)


async def choose_terms(
    concepts: Concepts, reference: ReferenceSet, count: Counter, citations: int
) -> ChosenBlock | None:
    """Return the block with the terms that add recall at an acceptable number of hits.

    The heading is judged first, then names, then single words of them, each by the weight of the
    reference citations that they find. A block with a heading also has the best name, because new
    articles are not indexed with headings yet. `citations` is the size of the index. None if no
    term finds a reference citation.
    """
    finding = [(term, found) for term in concepts.terms if (found := reference.found_by(term))]
    counts = await count([term for term, _ in finding])
    ranked = sorted(
        zip(finding, counts, strict=True),
        key=lambda item: (
            item[0][0].field != "mh",
            concepts.terms.index(item[0][0]) >= concepts.words,
            -round(reference.share(item[0][1]), 9),
            item[1].hits,
            item[0][0].value.endswith("*"),
            item[0][0].value,
        ),
    )
    kept: list[tuple[Term, Count]] = []
    covered: frozenset[int] = frozenset()
    for (term, found), hits in ranked:
        adds = reference.share(found - covered)
        if adds and adds * citations >= MIN_LIFT * hits.hits:
            kept.append((term, hits))
            covered |= found
    is_telling = bool(kept)
    if not kept:
        if not ranked:
            return None
        # The concept occurs throughout the index; whether the block is useful is decided later.
        (term, covered), hits = ranked[0]
        kept.append((term, hits))
    if all(term.field == "mh" for term, _ in kept):
        words = [item for item in ranked if item[0][0].field != "mh"]
        kept += [(term, hits) for (term, _), hits in words[:1]]
        covered = covered.union(*(found for (_, found), _ in words[:1]))
    terms, held = zip(*kept, strict=True)
    return ChosenBlock(concepts.name, terms, held, covered, concepts.words > 0, is_telling)


def without_common_words(blocks: Sequence[ChosenBlock]) -> list[ChosenBlock]:
    """Return the blocks without words that do not distinguish the reference citations from others.

    They are kept if there are no other blocks.
    """
    return [block for block in blocks if block.is_entity or block.is_telling] or list(blocks)


@dataclass(frozen=True, slots=True)
class ChosenBlocks:
    """The blocks that are joined by AND, and the others."""

    kept: tuple[ChosenBlock, ...]
    left_out: tuple[ChosenBlock, ...]


async def choose_blocks(
    blocks: Sequence[ChosenBlock],
    limits: Sequence[Expression],
    reference: ReferenceSet,
    count: Counter,
    max_hits: int,
) -> ChosenBlocks:
    """Add the blocks that lose the least recall for the hits that they exclude.

    Blocks are added until there are at most `max_hits` hits; after that, only blocks that lose no
    reference citation are added. Entities that lose none are added even if they exclude nothing
    here, since they may in all of PubMed. A block that leaves no citation is never added. If no
    block could be added, as in a small index, the blocks with the best F1 are chosen instead.
    """
    kept: list[ChosenBlock] = []
    left = list(blocks)
    covered = frozenset(range(len(reference.pmids)))
    [hits] = await count([both(limits)])
    while left:
        joined = [both([*(b.expression for b in (*kept, block)), *limits]) for block in left]
        best: tuple[float, int, str] | None = None
        for block, narrower in zip(left, await count(joined), strict=True):
            loses = reference.share(covered - block.found)
            over = hits.hits > max_hits
            if not narrower.hits or narrower.hits >= hits.hits or not covered & block.found:
                continue
            if loses and not over:
                continue
            cost = loses / math.log(hits.hits / narrower.hits) ** FOCUS
            if best is None or (round(cost, 9), narrower.hits, block.name) < best:
                best, chosen, new_hits = (
                    (round(cost, 9), narrower.hits, block.name),
                    block,
                    narrower,
                )
        if best is None:
            break
        kept.append(chosen)
        left.remove(chosen)
        covered, hits = covered & chosen.found, new_hits
    if blocks and not kept:
        # The limits leave few enough citations, or each of them has the words of the question.
        kept = await _most_exact(blocks, limits, reference, count)
        left = [block for block in left if block not in kept]
        covered = covered.intersection(*(block.found for block in kept))
    free = [block for block in left if block.is_entity and covered <= block.found]
    kept += free
    left = [block for block in left if block not in free]
    return ChosenBlocks(tuple(kept), tuple(left))


async def _most_exact(
    blocks: Sequence[ChosenBlock],
    limits: Sequence[Expression],
    reference: ReferenceSet,
    count: Counter,
) -> list[ChosenBlock]:
    """Add blocks as long as the F1 of recall and precision on the reference citations rises.

    Only entities are added if there are any. At least one block is returned.
    """
    left = [block for block in blocks if block.is_entity] or list(blocks)
    kept: list[ChosenBlock] = []
    covered = frozenset(range(len(reference.pmids)))
    best = 0.0
    while left:
        joined = [both([*(b.expression for b in (*kept, block)), *limits]) for block in left]
        scored = []
        for block, narrower in zip(left, await count(joined), strict=True):
            found = covered & block.found
            recall, precision = reference.share(found), len(found) / max(narrower.hits, 1)
            f1 = 2 * recall * precision / ((recall + precision) or 1.0)
            scored.append((-round(f1, 9), narrower.hits, block.name, block))
        score, _, _, chosen = min(scored, key=lambda item: item[:3])
        if kept and -score <= best:
            break
        best = -score
        kept.append(chosen)
        left.remove(chosen)
        covered &= chosen.found
    return kept
