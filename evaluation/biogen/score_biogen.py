"""TREC BioGen's citation measures: task A (grounding) and task B (attribution).

Task A follows `task_a_eval.py` of starter-kit-2025, which has two parts. The experts' part (`expert
...` here) averages over a topic's sentences, then over topics: precision over judged PMIDs only,
and a soft recall that needs one correct PMID of the pool. The relaxed variants also accept partial
support. The other part averages precision, recall and F1 over all sentences. The program rounds
percentages per topic; nothing is rounded here.

Task B follows MedAESQA's `medaesqa_eval.py`, which its authors also use for BioGen 2024; measures
are averaged over topics. No program for task B of 2025 was found, so these definitions are used for
it. BioACE's `rank_correlation.py` differs: it divides sums over all topics, and counts a sentence
as covered when a citation contradicts it. There is no relaxed variant; partial support does not
count as support. The track's completeness measures need experts' classes of sentences (required,
unnecessary) and are not computed here.

An unjudged citation counts as a citation but never as support. Where the programs divide by zero
(an answer without sentences), the share is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.bioasq.score_question import precision_recall_f
from evaluation.biogen.judge_citations import EntailmentJudge, Judged, judge_run
from evaluation.biogen.read_biogen import Grounded, TaskA, TaskB
from evaluation.biogen.read_labels import Labels, Relation
from evaluation.scores import Scores, mean, ratio, tabulate

MAX_WORDS = 250
MAX_CITATIONS = 3

_RELAXED = ("support", "partial")

Row = dict[str, float]

_COUNTS = ("human judgements", "machine judgements", "unjudged citations")
_SHARES = tuple(ratio(f"share of {name}", name, "citations", 0) for name in _COUNTS)

_EXPERT = tuple(
    f"expert {name}"
    for name in (
        *("support precision (strict)", "support soft recall (strict)"),
        *("support precision (relaxed)", "support soft recall (relaxed)"),
        *("contradict precision", "contradict soft recall"),
    )
)
_POOLED = tuple(
    f"{stance} {name}"
    for stance in ("support", "contradict")
    for name in ("precision", "recall", "F1")
)


def score_task_a(run: TaskA, labels: Labels, judge: EntailmentJudge | None = None) -> Scores:
    """Score a task A run against the pool of `labels`, and by `judge` for unlabelled citations.

    A topic without labels has no `expert` measures, and without a judge no other measures either.
    The shares and counts of judgements are over distinct citations of a sentence. `missing` are the
    labelled topics that the run does not answer.
    """
    judged = judge_run(
        {id_: [(s.text, s.supported + s.contradicted) for s in said] for id_, said in run.items()},
        labels,
        judge,
    )
    known = set(labels.topics)
    found: dict[str, Row] = {}
    for id_, said in run.items():
        row = _count(judged[id_])
        if judge is not None or id_ in known:
            row |= _sum([_pooled(*pair) for pair in zip(said, judged[id_], strict=True)], _POOLED)
            row["sentences"] = len(said)
        if id_ in known:
            rows = [_expert(s, j.human) for s, j in zip(said, judged[id_], strict=True)]
            row |= {name: _share(v, len(said)) for name, v in _sum(rows, _EXPERT).items()}
        found[id_] = row
    measures = (
        *(ratio(name, name, "sentences") for name in _POOLED),
        *(mean(name) for name in _EXPERT),
        *_SHARES,
    )
    columns = (*_POOLED, "sentences", *_EXPERT, *_COUNTS, "citations")
    return tabulate(found, columns, measures, [id_ for id_ in labels.topics if id_ not in run])


def _expert(sentence: Grounded, human: Mapping[int, Relation]) -> tuple[float, ...]:
    """Return `_EXPERT` for a sentence: the first three PMIDs of each kind, without given ones."""
    added = [pmid for pmid in sentence.supported if pmid not in sentence.existing]
    support = [human[p] for p in set(added[:MAX_CITATIONS]) if p in human]
    against = [human[p] for p in set(sentence.contradicted[:MAX_CITATIONS]) if p in human]
    found: list[float] = []
    for judgements, right in (
        (support, ("support",)),
        (support, _RELAXED),
        (against, ("contradict",)),
    ):
        hits = sum(relation in right for relation in judgements)
        found += [_share(hits, len(judgements)), float(hits > 0)]
    return tuple(found)


def _pooled(sentence: Grounded, judged: Judged) -> tuple[float, ...]:
    """Return `_POOLED` for a sentence over its judged PMIDs; a PMID of both kinds is support."""
    pool = judged.relations
    support = set(sentence.supported)
    measures: tuple[float, ...] = ()
    for said, stance in (
        (support, "support"),
        (set(sentence.contradicted) - support, "contradict"),
    ):
        wanted = {pmid for pmid, relation in pool.items() if relation == stance}
        measures += precision_recall_f(len(said & wanted), len(said & pool.keys()), len(wanted))
    return measures


_CITED = ("citation coverage", "citation support rate", "citation contradict rate")
_DOCUMENTS = ("document precision", "document recall")
_FORM = ("uncited sentence rate", "words over 250", "sentences over 3 citations")


def score_task_b(
    run: TaskB, labels: Labels, judge: EntailmentJudge | None = None, topics: Sequence[str] = ()
) -> Scores:
    """Score the citations of a task B run by `labels`, and by `judge` where unlabelled.

    - citation coverage: share of sentences with a supporting citation;
    - citation support and contradict rate: share of supporting or contradicting citations among
      the distinct citations of each sentence;
    - document precision and recall (the track's precision and recall of citations): the share of
      relevant PMIDs, including neutral ones, among the cited PMIDs, and the share of the relevant
      PMIDs in the pool that are cited. A PMID is relevant by its label for the sentence or, without
      one, by a label for another sentence of the topic; the judge is not used;
    - share of sentences without citation, and per answer the words over 250 and the sentences
      with more than 3 citations, which are the track's limits.

    A topic without labels has no document measures, and without a judge no citation measures
    either. `missing` are the `topics` that the run does not answer.
    """
    judged = judge_run(
        {id_: [(s.text, s.pmids) for s in said] for id_, said in run.items()}, labels, judge
    )
    known = set(labels.topics)
    found: dict[str, Row] = {}
    for id_, said in run.items():
        row = _count(judged[id_]) | _form([s.text for s in said], judged[id_])
        if judge is not None or id_ in known:
            row |= _attribution(judged[id_])
        if id_ in known:
            row |= _documents(judged[id_], labels.relevant(id_))
        found[id_] = row
    names = (*_CITED, *_DOCUMENTS, *_FORM)
    less = {"citation contradict rate", *_FORM}
    measures = (*(mean(name, direction=-1 if name in less else 1) for name in names), *_SHARES)
    missing = [id_ for id_ in topics if id_ not in run]
    return tabulate(found, (*names, *_COUNTS, "citations"), measures, missing)


def _attribution(judged: Sequence[Judged]) -> Row:
    said = [[sentence.relations.get(p) for p in sentence.cited] for sentence in judged]
    citations = sum(map(len, said))
    shares = (
        _share(sum("support" in row for row in said), len(said)),
        _share(sum(row.count("support") for row in said), citations),
        _share(sum(row.count("contradict") for row in said), citations),
    )
    return dict(zip(_CITED, shares, strict=True))


def _documents(judged: Sequence[Judged], pool: set[int]) -> Row:
    cited = {pmid for sentence in judged for pmid in sentence.cited}
    relevant = {
        pmid
        for sentence in judged
        for pmid in sentence.cited
        if (sentence.human[pmid] != "irrelevant" if pmid in sentence.human else pmid in pool)
    }
    row = {"document precision": _share(len(relevant), len(cited))}
    if pool:
        row["document recall"] = len(relevant) / len(pool)
    return row


def _form(texts: Sequence[str], judged: Sequence[Judged]) -> Row:
    words = sum(len(text.split()) for text in texts)
    figures = (
        _share(sum(not sentence.cited for sentence in judged), len(judged)),
        float(max(0, words - MAX_WORDS)),
        float(sum(len(sentence.cited) > MAX_CITATIONS for sentence in judged)),
    )
    return dict(zip(_FORM, figures, strict=True))


def _count(judged: Sequence[Judged]) -> Row:
    human = sum(pmid in sentence.human for sentence in judged for pmid in sentence.cited)
    machine = sum(len(sentence.machine) for sentence in judged)
    citations = sum(len(sentence.cited) for sentence in judged)
    counts = (human, machine, citations - human - machine)
    return {**dict(zip(_COUNTS, map(float, counts), strict=True)), "citations": float(citations)}


def _sum(rows: Sequence[Sequence[float]], names: Sequence[str]) -> Row:
    return {name: sum(row[position] for row in rows) for position, name in enumerate(names)}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
