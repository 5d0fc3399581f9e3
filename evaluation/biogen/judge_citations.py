"""Judge whether cited documents support their sentences: by people's labels, else by a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evaluation.biogen.read_labels import Labels, Relation
from serve.support.attribute_sentences import Support, SupportScorer, split_sentences


class Asked(NamedTuple):
    """A citation to judge: the question's id, the answer's sentence and the PMID."""

    topic: str
    sentence: str
    pmid: int


class EntailmentJudge:
    """Judge by natural language inference (NLI) over a document's title and abstract.

    The premises are windows of `window` consecutive sentences; the hypothesis is the answer's
    sentence. A document supports the sentence if a window entails it with a score of `threshold` or
    more, contradicts it if a window contradicts it and none supports it, and is neutral otherwise.
    A document without text is unknown. NLI does not distinguish neutral from irrelevant.
    """

    def __init__(
        self,
        texts: Callable[[Sequence[int]], Mapping[int, str]],
        scorer: SupportScorer,
        threshold: float = 0.5,
        window: int = 2,
    ) -> None:
        self._texts = texts
        self._scorer = scorer
        self._threshold = threshold
        self._window = window

    def judge(self, asked: Sequence[Asked]) -> list[Relation]:
        """Return relations in the order of `asked`; "unknown" for a document without text."""
        texts = self._texts(list(dict.fromkeys(item.pmid for item in asked)))
        premises = {pmid: self._windows(text) for pmid, text in texts.items()}
        pairs = [(p, item.sentence) for item in asked for p in premises.get(item.pmid, ())]
        supports = iter(self._scorer.score(pairs) if pairs else [])
        found: list[Relation] = []
        for item in asked:
            row = [next(supports) for _ in premises.get(item.pmid, ())]
            if not row:
                found.append("unknown")
            elif max(support.score for support in row) >= self._threshold:
                found.append("support")
            else:
                against = any(map(_contradicts, row))
                found.append("contradict" if against else "neutral")
        return found

    def _windows(self, text: str) -> list[str]:
        parts = split_sentences(text)
        last = max(1, len(parts) - self._window + 1) if parts else 0
        return [" ".join(parts[begin : begin + self._window]) for begin in range(last)]


def _contradicts(support: Support) -> bool:
    """Return True if contradiction is at least as probable as support, and as neutrality."""
    return support.against >= max(support.score, 1 - support.score - support.against)


@dataclass(frozen=True, slots=True)
class Judged:
    """The distinct PMIDs that a sentence cites, with people's and the model's labels by PMID.

    `human` holds all labelled PMIDs of the sentence, `machine` only citations without a label.
    """

    cited: tuple[int, ...]
    human: Mapping[int, Relation]
    machine: Mapping[int, Relation]

    @property
    def relations(self) -> dict[int, Relation]:
        """Return the relation of each PMID; people's labels take precedence."""
        return {**self.machine, **self.human}


Citations = Mapping[str, Sequence[tuple[str, Sequence[int]]]]
"""For each topic, the answer's sentences in order, each with the PMIDs that it cites."""


def judge_run(
    citations: Citations, labels: Labels, judge: EntailmentJudge | None
) -> dict[str, list[Judged]]:
    """Return each topic's judged sentences; people's labels take precedence.

    The judge is called once for the whole run, with each distinct citation that has no label.
    """
    rows = {
        id_: [
            (text, tuple(dict.fromkeys(pmids)), labels.of(id_, number, text))
            for number, (text, pmids) in enumerate(sentences, start=1)
        ]
        for id_, sentences in citations.items()
    }
    asked = [
        Asked(id_, text, pmid)
        for id_, sentences in rows.items()
        for text, cited, human in sentences
        for pmid in cited
        if pmid not in human
    ]
    said = _ask(judge, list(dict.fromkeys(asked)))
    return {
        id_: [
            Judged(cited, human, {p: said[a] for p in cited if (a := Asked(id_, text, p)) in said})
            for text, cited, human in sentences
        ]
        for id_, sentences in rows.items()
    }


def _ask(judge: EntailmentJudge | None, asked: Sequence[Asked]) -> dict[Asked, Relation]:
    if judge is None or not asked:
        return {}
    answers = zip(asked, judge.judge(asked), strict=True)
    return {item: relation for item, relation in answers if relation != "unknown"}
