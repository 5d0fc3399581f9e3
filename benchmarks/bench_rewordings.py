"""Measure whether answers to one question agree when it is worded differently.

    python -m benchmarks.bench_rewordings --index FOLDER [TRIALS] [--limit N] [--set key=value]

Asks each wording of the facts in tests/answers/tables/rewordings.yaml as a yes/no question. The
index holds the sample corpus and, if TRIALS is given, the PubMed XML in that folder or file; it is
built in FOLDER by the first run. Facts whose citations are not in the index are not asked. Prints
how many answers are stated (right or wrong) and withheld, how many facts have stated answers that
contradict each other, and every wrong answer.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.smallest import parse_arguments
from cluster.answers import Answer
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation, Deletion
from cluster.storage.object_store import File
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.sample.write_sample import write_sample
from tests.answers.collection import SYSTEM, Examiner, build_index, settings_for
from tests.answers.suite import RewordedFact, Wording, load_reworded_facts

SMALLEST = "--index FOLDER --limit 2"
STATED = ("right", "wrong")


@dataclass(frozen=True, slots=True)
class Reply:
    """Outcome of one wording: "right", "wrong", or the verdict of an answer that was withheld.

    `lost` are the stages that did not respond, so that the answer may be incomplete.
    """

    fact: RewordedFact
    wording: Wording
    outcome: str
    lost: tuple[str, ...] = ()


def judge(wording: Wording, answer: Answer) -> str:
    """Compare an answer with the right answer to this wording."""
    if answer.verdict != "answered":
        return answer.verdict
    return "right" if answer.exact == wording.answer else "wrong"


def ask_facts(facts: Iterable[RewordedFact], ask: Callable[[str], Answer]) -> list[Reply]:
    replies = []
    for fact in facts:
        for wording in fact.wordings:
            answer = ask(wording.ask)
            replies.append(Reply(fact, wording, judge(wording, answer), answer.degraded))
    return replies


def find_contradictions(replies: Iterable[Reply]) -> list[str]:
    """Return the ids of facts that one stated answer affirms and another one denies.

    A right answer to any wording affirms the fact, and a wrong one denies it.
    """
    outcomes: dict[str, set[str]] = {}
    for reply in replies:
        outcomes.setdefault(reply.fact.id, set()).add(reply.outcome)
    return [id for id, found in outcomes.items() if found.issuperset(STATED)]


def summarise(replies: Sequence[Reply]) -> str:
    """Return a Markdown table of the outcomes over all wordings and over groups of them."""
    parts = {
        "all": replies,
        **{f"answer {a}": [r for r in replies if r.wording.answer == a] for a in ("yes", "no")},
        **{s: [r for r in replies if r.fact.source == s] for s in ("sample", "trials")},
    }
    lines = [
        "| wordings | number | stated | right | wrong | withheld | not enough evidence | mixed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, some in parts.items():
        if not some:
            continue
        count = Counter(reply.outcome for reply in some)
        stated = sum(count[outcome] for outcome in STATED)
        cells = (
            *(len(some), stated, count["right"], count["wrong"], len(some) - stated),
            *(count["not_enough_evidence"], count["mixed"]),
        )
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def print_replies(replies: Sequence[Reply]) -> None:
    print(summarise(replies))
    if lost := sum(bool(reply.lost) for reply in replies):
        print(f"{lost} answers were given without a stage, so that these figures are not valid")
    contradictions = find_contradictions(replies)
    facts = len({reply.fact.id for reply in replies})
    print(f"\n{len(contradictions)} of {facts} facts have contradicting stated answers")
    for id in contradictions:
        print(f"  {id}")
    wrong = [reply for reply in replies if reply.outcome == "wrong"]
    print(f"{len(wrong)} wrong answers")
    for reply in wrong:
        print(f"  {reply.fact.id}, right is {reply.wording.answer}: {reply.wording.ask}")


def read_citations(files: Iterable[File]) -> list[Citation]:
    """Return the current citations of PubMed XML files, which must be in update order."""
    live: dict[int, Citation] = {}
    for record in (record for file in files for record in read_records(file)):
        if isinstance(record, Citation):
            live[record.pmid] = record
        elif isinstance(record, Deletion):
            live.pop(record.pmid, None)
    return list(live.values())


def load_corpus(trials: Path | None) -> list[Citation]:
    """Return the sample corpus and the citations of `trials`."""
    with tempfile.TemporaryDirectory() as folder:
        citations = read_citations(write_sample(Path(folder)).sources)
    if trials is not None:
        citations += read_citations(find_sources([str(trials)]))
    return citations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", type=Path, nargs="?")
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="number of facts (default all)")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--system", default=SYSTEM, help=f"preset (default {SYSTEM})")
    arguments = parse_arguments(parser, SMALLEST)
    citations = load_corpus(arguments.trials)
    known = {citation.pmid for citation in citations}
    facts = [fact for fact in load_reworded_facts() if known.issuperset(fact.pmids)]
    index = build_index(arguments.index, citations)
    print(f"{len(citations)} citations in {index}", flush=True)
    examiner = Examiner(settings_for(index, arguments.overrides), arguments.system)
    try:
        replies = ask_facts(facts[: arguments.limit], lambda body: examiner.answer(body, "yesno"))
    finally:
        examiner.close()
    print_replies(replies)


if __name__ == "__main__":
    main()
