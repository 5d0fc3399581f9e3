"""Count the citations that match Boolean expressions, without reading too many of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence

from cluster.errors import InputError
from cluster.index.boolean.expressions import And, Expression, Not, Or, Term
from cluster.text.analysis import Analyser
from serve.contracts.stage_calls import StageCalls, require
from serve.question.understand_question import STATISTICS
from serve.search.boolean_search import match_all
from serve.strategy.choose_terms import Count

# Words are compared with the texts of the citations. An expression for which more citations than
# this would be read is not counted but estimated from the numbers of citations with each word.
MOST_COUNTED = 50_000
AT_ONCE = 4
VOCABULARY_LOST = "the vocabulary does not answer; try again in a moment"


class HitCounter:
    """Counts matching citations; the same expression is counted once.

    `sizes` are upper bounds of the number of citations that match each term, out of `citations`.
    """

    def __init__(self, stages: StageCalls, sizes: Mapping[Term, int], citations: int) -> None:
        self.citations = citations
        self._stages = stages
        self._sizes = sizes
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._known: dict[Expression, Count] = {}

    async def count(self, expressions: Sequence[Expression]) -> list[Count]:
        """Return the count of each expression, in order."""
        new = [e for e in dict.fromkeys(expressions) if e not in self._known]
        counts = await asyncio.gather(*map(self._count, new))
        self._known |= dict(zip(new, counts, strict=True))
        return [self._known[expression] for expression in expressions]

    async def _count(self, expression: Expression) -> Count:
        if self._bound(expression) <= MOST_COUNTED:
            try:
                async with self._turns:
                    return Count(len((await match_all(self._stages, expression)).pmids))
            except InputError:
                # A shard would have to read too many citations.
                pass
        return Count(round(self.citations * self._share(expression)), exact=False)

    def _bound(self, expression: Expression) -> int:
        """Return an upper bound of the number of citations that match."""
        match expression:
            case Term():
                return self._sizes.get(expression, self.citations)
            case And(parts):
                return min(map(self._bound, parts), default=self.citations)
            case Or(parts):
                return min(sum(map(self._bound, parts)), self.citations)
            case Not():
                return self.citations

    def _share(self, expression: Expression) -> float:
        """Return the estimated share of citations that match; parts of AND count as independent."""
        match expression:
            case And(parts):
                return math.prod(map(self._share, parts))
            case Not():
                return 1.0
            case Term() | Or():
                return self._bound(expression) / max(self.citations, 1)


async def sizes_of(
    terms: Iterable[Term], analyser: Analyser, stages: StageCalls
) -> tuple[dict[Term, int], int]:
    """Return the number of citations with the rarest word of each text term, and of all citations.

    Raises StageLostError if the expander does not answer.
    """
    stems = {t: analyser.terms(t.value.rstrip("*")) for t in terms if t.field != "mh"}
    wanted = list(dict.fromkeys(stem for own in stems.values() for stem in own))
    known = await require(
        stages.backend, stages.settings, VOCABULARY_LOST, STATISTICS, wanted, "citations"
    )
    sizes = {t: min(known.frequencies.get(s, 0) for s in own) for t, own in stems.items() if own}
    return sizes, known.units
