"""RAGAS's four measures of generated answers, with a language model as the judge.

The measures follow the published definitions (Es et al. 2023, arXiv 2309.15217, and the documented
formulae of the `ragas` library). The library itself is not used: its newest release needs a
different OpenAI client, and the newest compatible one (0.3.1) fails to import with the versions
that pip selects, adds over thirty packages and reports its use over the network by default.
Differences from it: the questions are generated in one call, so that they differ at temperature 0;
context recall splits the reference with the same prompt that faithfulness uses for the answer; and
scores that the judge fails to give are left out and counted.

Two measures are those of paper 002 under RAGAS's names (section 3.5): RELEVANT_SHARE is its context
precision, the share of passages that are relevant, and SNIPPETS_COVERED its context recall, the
share of gold snippets that the passages cover.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from cluster.errors import InputError, LLMError
from evaluation.answers.judge_prompts import (
    ASK_BACK,
    PROBE,
    RATE_PASSAGE,
    SPLIT,
    VERIFY,
    Judge,
    ProbeCase,
    Questions,
    Statements,
    UnjudgedError,
    Usefulness,
    numbered,
    verdicts_on,
)
from evaluation.scores import Measure, Scores, mean, tabulate
from serve.llm.language_model import ChatModel
from serve.llm.prompts import quote

MEASURES = ("faithfulness", "answer relevancy", "context precision", "context recall")
RELEVANT_SHARE, SNIPPETS_COVERED = "passages relevant", "snippets covered"
COLUMNS = (*MEASURES, RELEVANT_SHARE, SNIPPETS_COVERED)
FAILURES = "judge failures"
WEAK_BELOW = 0.8
MAX_SNIPPETS = 10

_STATEMENTS_TOKENS = 1024
_REPLY_TOKENS = 256
_VERDICT_TOKENS = 96

Encode = Callable[[Sequence[str]], npt.NDArray[np.floating[Any]]]
Progress = Callable[[int, int], None]
Known = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Input of the judge: an answer, the passages it was written from in order, and the gold.

    If `reference` is "", there is no reference answer, and context precision and recall do not
    apply. The gold `snippets` may be empty; only the first MAX_SNIPPETS are judged.
    """

    id: str
    question: str
    answer: str
    contexts: tuple[str, ...]
    reference: str
    snippets: tuple[str, ...] = ()


Keep = Callable[[Sample, Mapping[str, float]], None]


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """Scores of a run by the judge.

    `scores` has COLUMNS, and FAILURES, the number of scores that the judge could not give.
    `probe_accuracy` is its accuracy on PROBE, cases with known verdicts; `calls` counts requests.
    """

    scores: Scores
    probe_accuracy: float
    calls: int

    @property
    def weak(self) -> bool:
        """Whether the judge failed the probe so often that its scores are unreliable."""
        return self.probe_accuracy < WEAK_BELOW


async def judge_samples(
    samples: Sequence[Sample],
    model: ChatModel,
    encode: Encode,
    *,
    concurrent: int = 4,
    progress: Progress | None = None,
    known: Known = MappingProxyType({}),
    keep: Keep | None = None,
) -> JudgedRun:
    """Probe the judge, then score all samples, `concurrent` at a time.

    Scores in `known`, by sample id, are not requested again; `keep` is called with each new score.
    `encode` returns vectors (n, dimensions) and runs in a thread; `progress` is called with
    (samples done, samples). Before any call, raises InputError for an empty question or a duplicate
    id. Raises LLMError if the judge gives no usable reply to the probe.
    """
    _check(samples, concurrent)
    judge = Judge(model)
    slots = asyncio.Semaphore(concurrent)
    accuracy = await _probe(judge, slots)
    done = 0

    async def score(sample: Sample) -> dict[str, float]:
        nonlocal done
        if sample.id in known:
            return dict(known[sample.id])
        async with slots:
            found = await _score(sample, judge, encode)
        done += 1
        if keep is not None:
            keep(sample, found)
        if progress is not None:
            progress(done, len(samples))
        return found

    rows = await asyncio.gather(*(score(sample) for sample in samples))
    found = {sample.id: row for sample, row in zip(samples, rows, strict=True)}
    failures = Measure(FAILURES, lambda drawn: drawn.sum(FAILURES), direction=-1)
    measures = [*(mean(name) for name in COLUMNS), failures]
    return JudgedRun(tabulate(found, [*COLUMNS, FAILURES], measures), accuracy, judge.calls)


def average_precision(useful: Sequence[bool]) -> float:
    """Return the mean precision@k over the ranks k with a useful context; 0 if there is none."""
    hits = 0
    total = 0.0
    for rank, verdict in enumerate(useful, start=1):
        if verdict:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


def mean_cosine(
    question: npt.NDArray[np.floating[Any]], generated: npt.NDArray[np.floating[Any]]
) -> float:
    """Return the mean cosine of `question` (dimensions,) with rows of `generated` (n, dimensions).

    The result is between -1 and 1. A vector of length 0 has cosine 0.
    """
    lengths = np.linalg.norm(generated, axis=1) * np.linalg.norm(question)
    products = generated @ question
    return float(np.mean(np.where(lengths > 0, products / np.where(lengths > 0, lengths, 1), 0)))


async def _score(sample: Sample, judge: Judge, encode: Encode) -> dict[str, float]:
    """Return the applicable measures that the judge could give, and the number of failures."""
    work: dict[str, Callable[[], Awaitable[float]]] = {
        "answer relevancy": lambda: _relevancy(sample, judge, encode)
    }
    if sample.answer.strip():
        work["faithfulness"] = lambda: _supported(sample, sample.answer, judge)
    if sample.reference.strip():
        work["context recall"] = lambda: _supported(sample, sample.reference, judge)
    if sample.snippets:
        work[SNIPPETS_COVERED] = lambda: _covered(sample, judge)
    found = {FAILURES: 0.0}
    for name, measure in work.items():
        try:
            found[name] = await measure()
        except UnjudgedError:
            found[FAILURES] += 1
    if sample.reference.strip():
        try:
            useful = await _useful(sample, judge)
            found["context precision"] = average_precision(useful)
            found[RELEVANT_SHARE] = fmean(useful) if useful else 0.0
        except UnjudgedError:
            found[FAILURES] += 1
    return found


async def _supported(sample: Sample, text: str, judge: Judge) -> float:
    """Return the share of statements in `text` that the contexts support; 0 without contexts."""
    if not sample.contexts:
        return 0.0
    messages = SPLIT.messages(question=quote(sample.question), text=quote(text))
    split = await judge.ask(messages, Statements, _STATEMENTS_TOKENS)
    return fmean(await _verify(split.statements, sample.contexts, judge))


async def _verify(
    statements: Sequence[str], contexts: Sequence[str], judge: Judge
) -> tuple[bool, ...]:
    messages = VERIFY.messages(
        passages=numbered(contexts, "[{}]"),
        statements=numbered(statements, "{}."),
        count=str(len(statements)),
    )
    tokens = _REPLY_TOKENS + _VERDICT_TOKENS * len(statements)
    reply = await judge.ask(messages, verdicts_on(len(statements)), tokens)
    return tuple(verdict.supported for verdict in reply.verdicts)


async def _relevancy(sample: Sample, judge: Judge, encode: Encode) -> float:
    """Return the mean cosine with the generated questions; 0 for a noncommittal answer."""
    if not sample.answer.strip():
        return 0.0
    messages = ASK_BACK.messages(answer=quote(sample.answer))
    reply = await judge.ask(messages, Questions, _REPLY_TOKENS)
    if reply.noncommittal:
        return 0.0
    vectors = await asyncio.to_thread(encode, [sample.question, *reply.questions])
    return mean_cosine(vectors[0], vectors[1:])


async def _covered(sample: Sample, judge: Judge) -> float:
    """Return the share of gold snippets that the contexts cover; 0 without contexts."""
    if not sample.contexts:
        return 0.0
    snippets = [quote(text) for text in sample.snippets[:MAX_SNIPPETS]]
    return fmean(await _verify(snippets, sample.contexts, judge))


async def _useful(sample: Sample, judge: Judge) -> list[bool]:
    """Return, for each context in order, whether it is useful for the reference answer."""
    useful = []
    for context in sample.contexts:
        messages = RATE_PASSAGE.messages(
            question=quote(sample.question),
            answer=quote(sample.reference),
            passage=quote(context),
        )
        useful.append((await judge.ask(messages, Usefulness, _REPLY_TOKENS)).useful)
    return useful


async def _probe(judge: Judge, slots: asyncio.Semaphore) -> float:
    """Return the judge's accuracy on PROBE; an unusable reply counts as wrong."""
    faults: list[str] = []

    async def right(case: ProbeCase) -> bool:
        async with slots:
            try:
                verdicts = await _verify([case.statement], [case.passage], judge)
            except UnjudgedError as error:
                faults.append(str(error))
                return False
        return verdicts == (case.supported,)

    outcomes = await asyncio.gather(*(right(case) for case in PROBE))
    if not judge.replies:
        raise LLMError(f"judge: it answered none of the {len(PROBE)} probe cases: {faults[-1]}")
    return sum(outcomes) / len(PROBE)


def _check(samples: Sequence[Sample], concurrent: int) -> None:
    if concurrent < 1:
        raise InputError(f"concurrent is {concurrent}: judge at least 1 sample at a time")
    seen: set[str] = set()
    for sample in samples:
        if not sample.question.strip():
            raise InputError(f"sample {sample.id!r}: field question is empty; fill it in")
        if sample.id in seen:
            raise InputError(f"sample {sample.id!r}: its id occurs twice; give each its own")
        seen.add(sample.id)
