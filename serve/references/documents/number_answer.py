"""Prepare an answer for a document, with references numbered by the strength of their design."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote

from cluster.answers import NOT_ENOUGH, Answer, ExactAnswer
from cluster.appraisal import Weighed
from cluster.records import Citation
from cluster.study_design.design_classifier import design_words
from cluster.study_design.designs import DESIGN_WORDS
from serve.references.describe_citation import one_line, pubmed_url
from serve.references.marked_text import Run
from serve.references.prepare_for_style import StyleName
from serve.references.style_references import style_references
from serve.wording.appraisal_words import traced_words
from serve.wording.quote_sentence import quoted_sentence, shortened
from serve.wording.verdict_words import (
    CLOSEST,
    MAX_NEAREST,
    NEAREST,
    UNSUPPORTED,
    agreement_words,
    origin_words,
    quotation,
    quoted_sides,
    verdict_words,
)

DISCLAIMER = (
    "Not medical advice. CiteRay is a research tool and its answers can be wrong. "
    "Read the cited articles before you rely on them."
)
# Sources listed on each side if one contradicts the answer; as in http/page/references.js.
MOST_A_SIDE = 5
# Study designs, strongest first.
_ORDER = tuple(DESIGN_WORDS)


@dataclass(frozen=True, slots=True)
class Reference:
    """Entry of the reference list. `links` are pairs of (name, URL).

    `design` is the study design in words, `quote` the sentence that the answer rests on, and
    `origin` tells whether it is the original study ("primary study, via [2]"); "" if unknown.
    """

    number: int
    pmid: int
    runs: tuple[Run, ...]
    links: tuple[tuple[str, str], ...]
    design: str = ""
    quote: str = ""
    origin: str = ""

    @property
    def basis(self) -> str:
        """Study design, origin and quotation on one line, or ""."""
        quoted = f"\u201c{self.quote}\u201d" if self.quote else ""
        about = "; ".join(filter(None, [self.design, self.origin]))
        return ": ".join(filter(None, [about[:1].upper() + about[1:], quoted]))


@dataclass(frozen=True, slots=True)
class AnswerDocument:
    """Contents of a document in every file format, in this order.

    `paragraph` has the sentences with their reference numbers, `sides` the quotations of
    disagreeing sources, `caveats` what qualifies the answer, `closest` the quotations of sources
    that come closest to an answer, and `listed` the heading of the reference list. `notes` name
    the parts of the system that did not respond, the index, the preset, the date and the address.
    """

    question: str
    verdict: str
    exact: tuple[str, ...]
    paragraph: tuple[str, ...]
    sides: tuple[str, ...]
    closest: tuple[str, ...]
    listed: str
    references: tuple[Reference, ...]
    notes: tuple[str, ...]
    caveats: tuple[str, ...] = ()
    disclaimer: str = DISCLAIMER

    def sections(self) -> Iterator[tuple[str, tuple[str, ...], bool]]:
        """Yield (heading, texts, whether the texts are list items) for each nonempty section."""
        for heading, texts, listed in (
            ("Exact answer", self.exact, True),
            ("Answer", self.paragraph, False),
            ("Caveats", self.caveats, True),
            ("Both sides", self.sides, True),
            (CLOSEST.removesuffix(":"), self.closest, True),
        ):
            if texts:
                yield heading, texts if listed else (" ".join(texts),), listed


def cited_pmids(answer: Answer) -> tuple[int, ...]:
    """Return the PMIDs of the reference list, strongest study design first.

    Equally strong ones are in the order of their first citation. If a source contradicts the
    answer, both sides are listed. An answer without enough evidence lists the closest and the
    nearest articles instead, by relevance. The page numbers references in the same way (listedIn in
    serve/http/page/references.js).
    """
    stated = answer.parts or (answer,)
    closest = [pmid for part in stated for sentence in part.closest for pmid in sentence.pmids]
    if answer.verdict == NOT_ENOUGH:
        nearest = [citation.pmid for citation in answer.citations[:MAX_NEAREST]]
        return tuple(dict.fromkeys((*closest, *nearest)))
    cited = [pmid for s in answer.ideal for pmid in (*s.pmids, *s.contradicted)]
    quoted = [pmid for part in stated for pmid in _both_sides(part)]
    designs = _designs(answer)
    listed = dict.fromkeys((*cited, *quoted, *closest))
    return tuple(sorted(listed, key=lambda pmid: _ORDER.index(designs[pmid].design)))


def _both_sides(answer: Answer) -> list[int]:
    """Return the PMIDs that are quoted for both sides; [] if no source contradicts the answer."""
    supporting, contradicting = answer.sides.supporting, answer.sides.contradicting
    quoted = (*supporting[:MOST_A_SIDE], *contradicting[:MOST_A_SIDE])
    return [source.pmid for source in quoted] if contradicting else []


def _designs(answer: Answer) -> Mapping[int, Weighed]:
    known: dict[int, Weighed] = {item.passage.pmid: item for item in reversed(answer.evidence)}
    known |= {citation.pmid: citation for citation in answer.citations}
    return defaultdict(Weighed, known)


def number_answer(
    answer: Answer,
    citations: Iterable[Citation],
    style: StyleName,
    day: date,
    address: str = "",
) -> AnswerDocument:
    """Return the contents of a document of `answer`, dated `day`, with the answer's `address`.

    A PMID that `citations` lacks is listed as not in the index.
    """
    pmids = cited_pmids(answer)
    numbers = {pmid: number for number, pmid in enumerate(pmids, 1)}
    none = answer.verdict == NOT_ENOUGH
    return AnswerDocument(
        question=one_line(answer.question.body),
        verdict=_verdict(answer),
        exact=() if none else _exact(answer.exact) + _parts(answer),
        paragraph=() if none else tuple(_sentences(answer, numbers)),
        sides=tuple(_sides(answer, numbers)),
        caveats=tuple(map(one_line, answer.caveats)),
        closest=tuple(_closest(answer, numbers)) if none else (),
        listed=NEAREST.removesuffix(":") if none else "References",
        references=tuple(_references(answer, pmids, citations, style)),
        notes=tuple(_notes(answer, day, address)),
    )


def _verdict(answer: Answer) -> str:
    agreed = agreement_words(answer)
    said = verdict_words(answer) or (f"Answered: {agreed}." if agreed else "Answered.")
    return f"{said} Confidence {answer.confidence:.2f} of 1."


def _exact(exact: ExactAnswer) -> tuple[str, ...]:
    if isinstance(exact, str):
        return (one_line(exact).capitalize(),) if exact else ()
    return tuple(_names([one_line(name) for name in names]) for names in exact or () if names)


def _parts(answer: Answer) -> tuple[str, ...]:
    """Return each part of the question with its exact answer or its verdict, if it has any."""
    said = [(part, "; ".join(_exact(part.exact)) or verdict_words(part)) for part in answer.parts]
    return tuple(f"{one_line(part.question.body)} {words}".strip() for part, words in said)


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


def _number(pmid: int, numbers: Mapping[int, int]) -> str:
    return f"[{numbers[pmid]}]" if pmid in numbers else f"PMID {pmid}"


def _sides(answer: Answer, numbers: Mapping[int, int]) -> Iterable[str]:
    """Yield the quotations of both sides with reference numbers; an unlisted PMID stays."""
    for part in answer.parts or (answer,):
        for stance, source in quoted_sides(part):
            name = str(numbers.get(source.pmid, f"PMID {source.pmid}"))
            yield one_line(quotation(stance, source, name))


def _closest(answer: Answer, numbers: Mapping[int, int]) -> Iterable[str]:
    for sentence in answer.closest:
        yield f'"{shortened(sentence.text)}" [{_numbered(sentence.pmids, numbers)}]'


def _references(
    answer: Answer, pmids: Sequence[int], citations: Iterable[Citation], style: StyleName
) -> Iterable[Reference]:
    designs = _designs(answer)
    held = {citation.pmid: citation for citation in citations}
    present = [held[pmid] for pmid in pmids if pmid in held]
    styled = {reference.pmid: reference for reference in style_references(present, style)}
    numbers = {pmid: number for number, pmid in enumerate(pmids, 1)}
    for pmid, number in numbers.items():
        runs: tuple[Run, ...] = (Run(f"PMID {pmid}: not in this index."),)
        links: tuple[tuple[str, str], ...] = (("PubMed", pubmed_url(pmid)),)
        if pmid in styled:
            runs, links = styled[pmid].runs, links_of(held[pmid])
        design = design_words(designs[pmid].design, designs[pmid].subjects)
        quote = one_line(shortened(quoted_sentence(answer, pmid)))
        origin = traced_words(answer.ideal, pmid, lambda via: _number(via, numbers))
        yield Reference(number, pmid, runs, links, design, quote, origin)


def links_of(citation: Citation) -> tuple[tuple[str, str], ...]:
    """Return (name, URL) of the citation at PubMed, and at its DOI and in PMC if it has them."""
    doi, pmcid = one_line(citation.doi), one_line(citation.pmcid)
    places = [("PubMed", pubmed_url(citation.pmid))]
    if doi:
        places.append(("DOI", f"https://doi.org/{quote(doi, safe='/')}"))
    if pmcid:
        places.append(("PMC", f"https://pmc.ncbi.nlm.nih.gov/articles/{quote(pmcid, safe='')}/"))
    return tuple(places)


def _notes(answer: Answer, day: date, address: str) -> Iterable[str]:
    if answer.degraded:
        yield f"This answer may be incomplete: {'; '.join(map(one_line, answer.degraded))}."
    last, updated = one_line(answer.last_source), one_line(answer.index_date)
    source = f", PubMed files up to {last}" if last else ""
    dated = f" of {updated}" if updated else ""
    index = one_line(answer.index_version) or "unknown"
    yield f"Index {index}{dated}{source}. Preset {answer.system}."
    if origin := origin_words(answer):
        yield f"{origin}."
    yield f"Answered with CiteRay on {day.isoformat()}."
    if address:
        yield f"Address: {one_line(address)}"
