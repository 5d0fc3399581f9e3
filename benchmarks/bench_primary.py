"""Measure how often a review's sentence is traced to the right study, and how often to a wrong one.

    python -m benchmarks.bench_primary [TRIALS] [--records FILE...] [--sentences 100] [--traps 30]

TRIALS has trials.jsonl, findings of trials, and PubMed XML of their reports (Evidence Inference).
Reviews are generated: each sentence reports a finding, and the review's references are the report,
reports of other treatments of the same disease, and references of real records (--records). The
traps are sentences whose number was altered or whose direction was reversed, and sentences whose
report is not in the collection; no study should be found for them. Half of the trials choose the
lowest entailment at which at most 3% of the sentences are traced wrongly, and the other half gives
the figures. Without TRIALS, a few made-up trials are used.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.smallest import parse_arguments
from cluster.answers import Evidence, Sentence
from cluster.index.read_shard import Fetched
from cluster.models.adapters import model_folder
from cluster.models.encoder import Encoder
from cluster.pubmed.parse_articles import read_records
from cluster.records import Author, Citation, MeshHeading, Passage, Section
from cluster.settings.settings import Settings, load_settings
from pipelines.indexing.staging.split_passages import make_splitter, split_citation
from pipelines.train.reader.abstracts import Finding, read_findings
from serve.graph.load_stages import load_reader
from serve.pipeline.trace_sources import MIN_ENTAILMENT, Choice, Report, choose_studies
from serve.support.attribute_sentences import Read, entailment
from serve.support.reported_study import read_report

SMALLEST = "--sentences 4 --traps 2"
MAX_WRONG = 0.03
REVIEW_PMID = 1
NEIGHBOURS = 20
KINDS = ("present", "altered", "reversed", "absent")
# By effect: 1, -1 or 0 for increased, decreased and no difference.
VERBS = {1: "increased", -1: "reduced", 0: "did not change"}
OPPOSITE = {1: -1, -1: 1, 0: 1}
# Author and year, as in a review that names the study, or a numbered reference, or neither.
FORMS = (
    "In a randomised trial, {finding}{numbers}.",
    "In the trial by {author} et al. ({year}), {finding}{numbers}.",
    "One study reported that {finding}{numbers} [12].",
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?=\s?(?:%|mg|months|weeks|days|years|kg|mmol|points))")


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence of a review, its `references`, and the study to find; None if there is none."""

    kind: str
    sentence: str
    references: tuple[int, ...]
    referent: int | None
    trial: int


@dataclass(frozen=True, slots=True)
class Result:
    """Entailment of the case's sentence by each chosen study, and by the review itself."""

    case: Case
    scores: Mapping[int, float]
    own: float

    def found(self, threshold: float) -> int | None:
        """Return the study that is cited if `threshold` is the lowest entailment."""
        best = max(self.scores, key=lambda pmid: self.scores[pmid], default=None)
        return best if best is not None and self.scores[best] >= threshold else None

    def is_wrong(self, threshold: float) -> bool:
        """Return True if a study is cited that the sentence does not report."""
        return self.found(threshold) not in (None, self.case.referent)


def read_trials(folder: Path | None) -> tuple[list[Finding], dict[int, Citation]]:
    """Return the findings that abstracts state, one for each trial, and the reports by PMID."""
    if folder is None:
        return made_up_trials()
    files = sorted(folder.glob("*.xml*"))
    records = [r for file in files for r in read_records(file, strict=False)]
    reports = {record.pmid: record for record in records if isinstance(record, Citation)}
    first: dict[int, Finding] = {}
    for found in read_findings(folder / "trials.jsonl"):
        if found.in_abstract and found.pmid in reports:
            first.setdefault(found.pmid, found)
    return list(first.values()), reports


def made_up_trials() -> tuple[list[Finding], dict[int, Citation]]:
    """Return findings of made-up trials of eight drugs in two diseases, and their reports."""
    drugs = ("lumetib", "sarovast", "benpril", "cortamab")
    findings, reports = [], {}
    for at, (drug, disease) in enumerate((d, s) for s in ("asthma", "gout") for d in drugs):
        share, outcome = 11 + 3 * at, f"days with {disease}"
        said = f"{drug.capitalize()} reduced {outcome} by {share}% compared with placebo."
        text = f"We randomised 200 patients with {disease}. {said}"
        mesh = (MeshHeading(f"D{disease}", disease, True),)
        pmid, author = 100 + at, Author(f"Doe{at}")
        findings.append(Finding(pmid, drug, "placebo", outcome, -1, said, True))
        reports[pmid] = Citation(
            pmid, 1, f"Trial of {drug} in {disease}", (Section("", text),), authors=(author,),
            year=2010, mesh=mesh,
        )  # fmt: skip
    return findings, reports


def make_cases(
    findings: Sequence[Finding],
    reports: Mapping[int, Citation],
    listed: Sequence[int],
    counts: Mapping[str, int],
    draw: random.Random,
) -> Iterator[Case]:
    """Yield `counts` sentences of each kind, with `listed` among the references of all reviews."""
    headings = {pmid: {h.ui for h in report.mesh} for pmid, report in reports.items()}
    for kind, count in counts.items():
        numbered = [f for f in findings if _numbers(f)] if kind == "altered" else list(findings)
        for finding in draw.sample(numbered, min(count, len(numbered))):
            own = headings[finding.pmid]
            others = sorted(
                (pmid for pmid in reports if pmid != finding.pmid),
                key=lambda pmid: -len(own & headings[pmid]),
            )[:NEIGHBOURS]
            present = kind != "absent"
            references = [*others, *listed, *([finding.pmid] if present else [])]
            draw.shuffle(references)
            sentence = write_sentence(finding, reports[finding.pmid], kind, draw)
            referent = finding.pmid if kind == "present" else None
            yield Case(kind, sentence, tuple(references), referent, finding.pmid)


def write_sentence(finding: Finding, report: Citation, kind: str, draw: random.Random) -> str:
    """Return the sentence of a review that reports the finding, changed for a trap of `kind`."""
    effect = OPPOSITE[finding.effect] if kind == "reversed" else finding.effect
    numbers = _numbers(finding)
    if kind == "altered":
        numbers = [str(round(float(number) * 1.5 + 1, 1)) for number in numbers]
    form = draw.choice([f for f in FORMS if "author" not in f or (report.authors and report.year)])
    outcome = finding.outcome
    outcome = outcome if outcome[1:2].isupper() else outcome[:1].lower() + outcome[1:]
    return form.format(
        finding=f"{finding.intervention} {VERBS[effect]} {outcome}"
        f" compared with {finding.comparator}",
        numbers=f" ({' vs '.join(numbers)})" if numbers else "",
        author=report.authors[0].last if report.authors else "",
        year=report.year,
    )


def _numbers(finding: Finding) -> list[str]:
    return _NUMBER.findall(finding.evidence)[:2]


class Tracer:
    """Traces sentences as `serve.pipeline.trace_sources` does, over reports held in memory."""

    def __init__(self, settings: Settings, reports: Mapping[int, Citation], read: Read) -> None:
        self._encoder = Encoder.by(settings.encoder, model_folder(settings.encoder))
        self._splitter = make_splitter("characters", settings.split.size, settings.split.overlap)
        self._reports = reports
        self._read = read
        self._fetched: dict[int, Fetched] = {}

    def _fetch(self, pmids: Sequence[int]) -> list[Fetched]:
        for pmid in pmids:
            if pmid in self._reports and pmid not in self._fetched:
                report = self._reports[pmid]
                passages = tuple(split_citation(report, self._splitter))
                vectors = self._encoder.encode([passage.text for passage in passages])
                halves = vectors.astype(np.float16)
                self._fetched[pmid] = Fetched(report, passages, (), vectors=halves)
        return [self._fetched[pmid] for pmid in pmids if pmid in self._fetched]

    def trace(self, case: Case, others: Sequence[str]) -> Result:
        """Return the result for a case whose review also has the sentences `others`."""
        text = " ".join([*others, case.sentence])
        review = Citation(REVIEW_PMID, title="Review", sections=(Section("", text),))
        passage = Passage(REVIEW_PMID, "abstract", 0, len(text), text)
        sentence = Sentence(case.sentence, (REVIEW_PMID,), 1.0)
        report = Report(sentence, read_report(case.sentence), Evidence(passage))
        vector = self._encoder.encode([report.study.claim])[0]
        choice = Choice(
            report, review, choose_studies(report, vector, self._fetch(case.references))
        )
        pairs = choice.pairs()
        own, *scores = entailment(pairs, None, self._read) or [0.0]
        return Result(
            case, {s.citation.pmid: n for s, n in zip(choice.studies, scores, strict=True)}, own
        )


def choose_threshold(results: Sequence[Result]) -> float:
    """Return the lowest entailment at which at most MAX_WRONG of the results are wrong."""
    steps = [step / 100 for step in range(1, 100)]
    right = [
        step for step in steps if sum(r.is_wrong(step) for r in results) <= MAX_WRONG * len(results)
    ]
    return min(right, default=1.0)


def print_figures(results: Sequence[Result], threshold: float) -> None:
    """Print the shares of sentences that are resolved and wrong at `threshold`, by kind."""
    present = [r for r in results if r.case.kind == "present"]
    resolved = [r for r in present if r.found(threshold) == r.case.referent]
    before = sum(max(r.scores.values()) >= r.own for r in resolved)
    listed = sum(r.case.referent in r.scores for r in present)
    wrong = sum(r.is_wrong(threshold) for r in results)
    print(f"lowest entailment {threshold:.2f}, {len(results)} sentences, {len(present)} to resolve")
    print(f"  read by the reader: {listed / max(1, len(present)):.3f}")
    print(f"  resolved: {len(resolved) / max(1, len(present)):.3f}")
    print(f"  supported as well as by the review: {before / max(1, len(present)):.3f}")
    print(f"  wrong: {wrong / max(1, len(results)):.3f}")
    for kind in KINDS:
        of_kind = [r for r in results if r.case.kind == kind]
        shown = sum(r.is_wrong(threshold) for r in of_kind)
        print(f"  wrong, {kind}: {shown} of {len(of_kind)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", type=Path, nargs="?")
    parser.add_argument("--records", type=Path, nargs="*", default=[])
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--traps", type=int, default=30, help="sentences of each kind of trap")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    arguments = parse_arguments(parser, SMALLEST)
    settings, draw = load_settings(None, arguments.overrides), random.Random(1)
    findings, reports = read_trials(arguments.trials)
    records = [r for file in arguments.records for r in read_records(file, strict=False)]
    listed = [p for r in records if isinstance(r, Citation) for p in r.references or ()]
    draw.shuffle(findings)
    counts = dict.fromkeys(KINDS, arguments.traps) | {"present": arguments.sentences}
    tracer = Tracer(settings, reports, load_reader(settings).read)
    halves: list[list[Result]] = []
    for half in (findings[::2], findings[1::2]):
        cases = list(make_cases(half, reports, listed, counts, draw))
        begun = time.monotonic()
        halves.append([tracer.trace(c, [o.sentence for o in draw.sample(cases, 2)]) for c in cases])
        print(f"{(time.monotonic() - begun) * 1000 / len(cases):.0f} ms a sentence", flush=True)
    threshold = choose_threshold(halves[0])
    for name, results in zip(("chosen on", "measured on"), halves, strict=True):
        print(f"{name}: ", end="")
        print_figures(results, threshold)
    print("as shipped: ", end="")
    print_figures(halves[1], MIN_ENTAILMENT)


if __name__ == "__main__":
    main()
