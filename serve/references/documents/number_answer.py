"""Prepare an answer for a document, with references numbered in the order of their citation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote

from cluster.answers import NOT_ENOUGH, Answer, ExactAnswer
from cluster.records import Citation
from serve.references.describe_citation import one_line, pubmed_url
from serve.references.marked_text import Run
from serve.references.prepare_for_style import StyleName
from serve.references.style_references import style_references
from serve.wording.verdict_words import (
    MAX_NEAREST,
    NEAREST,
    UNSUPPORTED,
    side_words,
    verdict_words,
)

DISCLAIMER = (
    "Not medical advice. CiteRay is a research tool and its answers can be wrong. "
    "Read the cited articles before you rely on them."
)
_QUOTED_PMID = re.compile(r"\[PMID (\d+)\]$")


@dataclass(frozen=True, slots=True)
class Reference:
    """Entry of the reference list. `links` are pairs of (name, URL)."""

    number: int
    pmid: int
    runs: tuple[Run, ...]
    links: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AnswerDocument:
    """Contents of a document in every file format, in this order.

    `paragraph` has the sentences with their reference numbers, `sides` the quotations of
    disagreeing sources, and `listed` the heading of the reference list. `notes` name the parts of
    the system that did not respond, the index and the preset.
    """

    question: str
    verdict: str
    exact: tuple[str, ...]
    paragraph: tuple[str, ...]
    sides: tuple[str, ...]
    listed: str
    references: tuple[Reference, ...]
    notes: tuple[str, ...]
    disclaimer: str = DISCLAIMER

    def sections(self) -> Iterator[tuple[str, tuple[str, ...], bool]]:
        """Yield (heading, texts, whether the texts are list items) for each nonempty section."""
        for heading, texts, listed in (
            ("Exact answer", self.exact, True),
            ("Answer", self.paragraph, False),
            ("Both sides", self.sides, True),
        ):
            if texts:
                yield heading, texts if listed else (" ".join(texts),), listed


def cited_pmids(answer: Answer) -> tuple[int, ...]:
    """Return the PMIDs of the reference list, in the order of their first citation.

    An answer without enough evidence lists the nearest articles instead.
    """
    if answer.verdict == NOT_ENOUGH:
        return tuple(citation.pmid for citation in answer.citations[:MAX_NEAREST])
    cited = [pmid for s in answer.ideal for pmid in (*s.pmids, *s.contradicted)]
    quoted = [
        int(found[1]) for words in side_words(answer) if (found := _QUOTED_PMID.search(words))
    ]
    return tuple(dict.fromkeys((*cited, *quoted)))


def number_answer(
    answer: Answer, citations: Iterable[Citation], style: StyleName, day: date
) -> AnswerDocument:
    """Return the contents of a document of `answer`, dated `day`.

    A PMID that `citations` lacks is listed as not in the index.
    """
    pmids = cited_pmids(answer)
    numbers = {pmid: number for number, pmid in enumerate(pmids, 1)}
    none = answer.verdict == NOT_ENOUGH
    return AnswerDocument(
        question=one_line(answer.question.body),
        verdict=_verdict(answer),
        exact=() if none else _exact(answer.exact),
        paragraph=() if none else tuple(_sentences(answer, numbers)),
        sides=tuple(_side(words, numbers) for words in side_words(answer)),
        listed=NEAREST.removesuffix(":") if none else "References",
        references=tuple(_references(pmids, citations, style)),
        notes=tuple(_notes(answer, day)),
    )


def _verdict(answer: Answer) -> str:
    said = verdict_words(answer) or "Answered."
    return f"{said} Confidence {answer.confidence:.2f} of 1."


def _exact(exact: ExactAnswer) -> tuple[str, ...]:
    if isinstance(exact, str):
        return (one_line(exact).capitalize(),) if exact else ()
    return tuple(_names([one_line(name) for name in names]) for names in exact or () if names)


def _names(names: Sequence[str]) -> str:
    others = f" ({', '.join(names[1:])})" if names[1:] else ""
    return names[0] + others


def _sentences(answer: Answer, numbers: Mapping[int, int]) -> Iterable[str]:
    for sentence in answer.ideal:
        marks = [UNSUPPORTED] if sentence.unsupported else []
        if sentence.pmids:
            marks.append(_numbered(sentence.pmids, numbers))
        if sentence.contradicted:
            marks.append(f"contradicted by {_numbered(sentence.contradicted, numbers)}")
        yield one_line(sentence.text) + (f" [{'; '.join(marks)}]" if marks else "")


def _numbered(pmids: Iterable[int], numbers: Mapping[int, int]) -> str:
    return ", ".join(str(number) for number in sorted({numbers[pmid] for pmid in pmids}))


def _side(words: str, numbers: Mapping[int, int]) -> str:
    return one_line(_QUOTED_PMID.sub(lambda found: f"[{numbers[int(found[1])]}]", words))


def _references(
    pmids: Sequence[int], citations: Iterable[Citation], style: StyleName
) -> Iterable[Reference]:
    held = {citation.pmid: citation for citation in citations}
    present = [held[pmid] for pmid in pmids if pmid in held]
    styled = {reference.pmid: reference for reference in style_references(present, style)}
    for number, pmid in enumerate(pmids, 1):
        if pmid in styled:
            yield Reference(number, pmid, styled[pmid].runs, _links(held[pmid]))
        else:
            said = Run(f"PMID {pmid}: not in this index.")
            yield Reference(number, pmid, (said,), (("PubMed", pubmed_url(pmid)),))


def _links(citation: Citation) -> tuple[tuple[str, str], ...]:
    doi, pmcid = one_line(citation.doi), one_line(citation.pmcid)
    places = [("PubMed", pubmed_url(citation.pmid))]
    if doi:
        places.append(("DOI", f"https://doi.org/{quote(doi, safe='/')}"))
    if pmcid:
        places.append(("PMC", f"https://pmc.ncbi.nlm.nih.gov/articles/{quote(pmcid, safe='')}/"))
    return tuple(places)


def _notes(answer: Answer, day: date) -> Iterable[str]:
    if answer.degraded:
        yield f"This answer may be incomplete: {'; '.join(map(one_line, answer.degraded))}."
    last = one_line(answer.last_source)
    source = f", PubMed files up to {last}" if last else ""
    yield f"Index {one_line(answer.index_version) or 'unknown'}{source}. Preset {answer.system}."
    yield f"Written by CiteRay on {day.isoformat()}."
