"""Trace the sentences that rest on a review to the studies that it reports.

cited sentence ─► references of its review ─► nearest ones ─► numbers, names ─► reader ─► study
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from cluster.answers import NOT_ENOUGH, Evidence, Sentence, TracedSource
from cluster.index.read_shard import Fetched
from cluster.index.vectors import Vectors
from cluster.notices import RETRACTED
from cluster.records import Citation
from cluster.study_design.design_classifier import SYNTHESES, classify_design
from serve.answer.write_answer import WrittenAnswer
from serve.contracts.request import Request
from serve.contracts.stage_calls import StageCalls, stage_method
from serve.pipeline.check_exposure import look_up_exposure
from serve.search.encoder_stage import EMBED
from serve.search.search_shards import ShardSearch
from serve.support.attribute_sentences import MAX_PMIDS
from serve.support.reported_study import ReportedStudy, may_be, of_trial, read_report, shared_words

NOT_TRACED = "sources of reviews not traced"
# Maximum number of sentences to trace, of references of a review to fetch, of fetched studies whose
# numbers and names are compared, and of those that the reader reads for each sentence.
MAX_SENTENCES = 5
MAX_REFERENCES = 200
MAX_COMPARED = 8
MAX_READ = 3
# Lowest share of the words of a sentence that a study must have, and lowest entailment of the
# sentence by the study (docs/benchmarks-quality.md, "Primary sources").
MIN_SHARED = 0.4
MIN_ENTAILMENT = 0.77


class ClaimReader(Protocol):
    """Interface of the writer stage for tracing."""

    async def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return how strongly each text supports its claim, 0 to 1, for pairs (text, claim)."""
        ...


ENTAILMENT = stage_method("writer", ClaimReader.entailment, "entail", NOT_TRACED)


@dataclass(frozen=True, slots=True)
class Report:
    """Sentence of an answer that takes its finding from the article `via`."""

    sentence: Sentence
    study: ReportedStudy
    via: Evidence

    @property
    def is_secondary(self) -> bool:
        """Whether the finding cannot be the article's own, as the result of a meta-analysis is."""
        own = self.via.design == "meta_analysis" and not self.study.cued
        return self.via.design in SYNTHESES and not own


@dataclass(frozen=True, slots=True)
class Choice:
    """A report with the record of its review, and the studies that it may be about, best first."""

    report: Report
    review: Citation
    studies: Sequence[Fetched]

    def pairs(self) -> list[tuple[str, str]]:
        """Return (text, claim) for the review and each study; [] without studies."""
        texts = [self.review, *(study.citation for study in self.studies)]
        return [(c.search_text, self.report.study.claim) for c in texts if self.studies]

    def settle(self, entailed: Mapping[tuple[str, str], float]) -> tuple[Sentence, Fetched | None]:
        """Return the sentence with its traced source, and the study that it now cites, if any."""
        sentence, via = self.report.sentence, self.review.pmid
        own, *scores = [entailed[pair] for pair in self.pairs()] or [0.0]
        best = max(scores, default=0.0)
        if best < MIN_ENTAILMENT:
            secondary = TracedSource("secondary", via) if self.report.is_secondary else None
            return replace(sentence, traced=secondary), None
        study = self.studies[scores.index(best)]
        pmid = study.citation.pmid
        # Only a study that supports the sentence as well as the review is cited before it.
        pair = (pmid, via) if best >= own else (via, pmid)
        pmids = (*pair, *(other for other in sentence.pmids if other not in pair))[:MAX_PMIDS]
        traced = TracedSource("primary", via, pmid)
        return replace(sentence, pmids=pmids, traced=traced), study


async def trace_sources(
    written: WrittenAnswer,
    evidence: Sequence[Evidence],
    request: Request,
    stages: StageCalls,
    left_ms: float,
) -> tuple[WrittenAnswer, tuple[Evidence, ...]]:
    """Return the answer with the traced sources of its sentences, and evidence from new studies.

    The answer is unchanged if a stage fails or after `left_ms`, which is noted as degraded.
    """
    style = request.system.answer
    stated = written.verdict != NOT_ENOUGH and not request.question.given
    wanted = stated and style.primary_sources and style.check != "off"
    reports = find_reports(written.ideal, evidence)[:MAX_SENTENCES] if wanted else []
    if not reports:
        return written, ()
    work = _trace(reports, request, stages)
    settled = await stages.watch.run("trace", work, max(left_ms / 1000, 0.001), NOT_TRACED)
    now = {sentence.text: sentence for sentence, _ in settled or ()}
    known = {item.passage.pmid for item in evidence}
    new = {i.passage.pmid: i for _, i in settled or () if i and i.passage.pmid not in known}
    ideal = tuple(now.get(sentence.text, sentence) for sentence in written.ideal)
    return replace(written, ideal=ideal), tuple(new.values())


def find_reports(ideal: Sequence[Sentence], evidence: Sequence[Evidence]) -> list[Report]:
    """Return the sentences whose first citation is a review, or that name another study."""
    sources = {item.passage.pmid: item for item in reversed(evidence)}
    found = [
        Report(sentence, read_report(sentence.text), sources[sentence.pmids[0]])
        for sentence in ideal
        if sentence.pmids and sentence.pmids[0] in sources
    ]
    return [r for r in found if r.study.cued or r.via.design in SYNTHESES]


async def _trace(
    reports: Sequence[Report], request: Request, stages: StageCalls
) -> list[tuple[Sentence, Evidence | None]]:
    """Return each sentence with its traced source, and evidence from the study that it now cites.

    Sentences of an article whose references are not known are left out.
    """
    shards = ShardSearch(stages)
    citing = dict.fromkeys(report.via.passage.pmid for report in reports)
    reviews = {f.citation.pmid: f.citation for f in await shards.fetch(list(citing), None)}
    listed = {pmid: (review.references or ())[:MAX_REFERENCES] for pmid, review in reviews.items()}
    reports = [report for report in reports if listed.get(report.via.passage.pmid)]
    embed, claims = EMBED.with_loss(NOT_TRACED), [report.study.claim for report in reports]
    vectors = await stages.call(embed, claims) if reports else None
    if vectors is None:
        return []
    wanted = dict.fromkeys(pmid for pmids in listed.values() for pmid in pmids)
    fetched = await shards.fetch(list(wanted), vectors[0])
    studies = {f.citation.pmid: f for f in fetched if is_usable(f.citation, request)}
    choices = []
    for report, vector in zip(reports, vectors, strict=True):
        via = report.via.passage.pmid
        own = [studies[p] for p in listed[via] if p in studies]
        chosen = await asyncio.to_thread(choose_studies, report, vector, own)
        choices.append(Choice(report, reviews[via], chosen))
    choices = await _without_retracted(choices, stages)
    pairs = list(dict.fromkeys(pair for choice in choices for pair in choice.pairs()))
    scores = await stages.call(ENTAILMENT, pairs) if pairs else []
    if scores is None:
        return []
    settled = [choice.settle(dict(zip(pairs, scores, strict=True))) for choice in choices]
    return [
        (sentence, None if study is None else _evidence(study, vector))
        for (sentence, study), vector in zip(settled, vectors, strict=True)
    ]


async def _without_retracted(choices: Sequence[Choice], stages: StageCalls) -> list[Choice]:
    """Return the choices without studies that another record, such as a notice, retracts."""
    pmids = [study.citation.pmid for choice in choices for study in choice.studies]
    exposure = await look_up_exposure(pmids, stages)
    exposed = exposure.exposed if exposure else ()
    retracted = {source.pmid for source in exposed if source.state == RETRACTED}
    return [
        replace(c, studies=[s for s in c.studies if s.citation.pmid not in retracted])
        for c in choices
    ]


def is_usable(citation: Citation, request: Request) -> bool:
    """Return True for an original study that the request admits and that is not retracted."""
    design = classify_design(citation)
    about_another = design.name == "other" and design.source == "publication_types"
    return not (
        citation.retracted
        or about_another
        or design.name in SYNTHESES
        or citation.pmid in request.question.exclude
        or (request.filters and not request.filters.admits(citation))
    )


def choose_studies(report: Report, vector: Vectors, studies: Sequence[Fetched]) -> list[Fetched]:
    """Return the studies nearest to the sentence that have its numbers, names and words."""
    near = sorted(studies, key=lambda study: -_nearness(study, vector))[:MAX_COMPARED]
    named = of_trial(report.study, [study.citation for study in near])
    kept = [
        study
        for study in near
        if study.citation in named
        and study.citation.pmid not in report.sentence.contradicted
        and may_be(report.study, study.citation)
        and shared_words(report.study, study.citation) >= MIN_SHARED
    ]
    return kept[:MAX_READ]


def _nearness(study: Fetched, vector: Vectors) -> float:
    vectors = study.vectors
    return float((vectors @ vector).max()) if vectors is not None and len(vectors) else -1.0


def _evidence(study: Fetched, vector: Vectors) -> Evidence | None:
    """Return the passage of the study that is nearest to the sentence."""
    scores = tuple((study.vectors @ vector).tolist()) if study.vectors is not None else ()
    position = replace(study, dense=scores).best_passage()
    return None if position is None else Evidence.of(study.passages[position], study.citation, {})
