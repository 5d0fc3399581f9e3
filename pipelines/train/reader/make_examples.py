"""Make the reader's training examples from its data, by kind and pass of the recipe."""

from __future__ import annotations

import random
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import InputError
from cluster.storage.object_store import File
from pipelines.train.examples.mine_candidates import best_by_bm25
from pipelines.train.examples.read_questions import read_corpus
from pipelines.train.reader.abstracts import (
    abstract_examples,
    read_abstract_questions,
    read_abstracts,
    read_findings,
    trial_examples,
)
from pipelines.train.reader.bioasq import bioasq_examples, read_answered
from pipelines.train.reader.claims import (
    Row,
    abstract_claim_examples,
    claim_examples,
    mention_examples,
    nonsense_examples,
)
from pipelines.train.reader.hard_negatives import hard_negative_examples
from pipelines.train.reader.records import ReaderExample, balance_sides
from pipelines.train.reader.tables import attribute_examples, contrast_examples
from pipelines.train.reader.written import (
    abstract_of,
    named_examples,
    read_named,
    read_written,
    written_examples,
)
from pipelines.train.recipe import ReaderRecipe

# Makes new examples of one kind; for tables and contrast sets, as many as requested.
Source = Callable[[int], Iterable[ReaderExample]]


@dataclass(frozen=True, slots=True)
class ReaderData:
    """Files to train and measure the reader on.

    `questions` are BioASQ files whose citations are in `corpus`. `abstract_questions` has
    PubMedQA's questions and `findings` has findings of trials, both on citations in `abstracts`,
    which also has those of the written questions.
    `held_out` are BioASQ files to measure on.
    """

    questions: tuple[Path, ...]
    corpus: tuple[File, ...]
    abstract_questions: Path | None = None
    findings: Path | None = None
    abstracts: tuple[File, ...] = ()
    held_out: tuple[Path, ...] = ()

    @property
    def files(self) -> list[File]:
        """All files that the reader is trained on."""
        optional = [self.abstract_questions, self.findings]
        return [*self.questions, *self.corpus, *filter(None, optional), *self.abstracts]


def make_examples(data: ReaderData, recipe: ReaderRecipe) -> list[list[ReaderExample]]:
    """Return the examples of each pass.

    Raises InputError for invalid data, for questions or findings whose abstracts are missing, and
    for a pass without examples.
    """
    draw = random.Random(recipe.seed)
    sources = _sources(data, recipe, draw)
    passes = []
    for number, part in enumerate(recipe.passes, start=1):
        found = [
            example
            for kind, source in sources.items()
            for example in _draw_examples(source, getattr(part, kind), part.balanced, draw)
        ]
        if not found:
            raise InputError(
                f"pass {number} has no examples: give files of the kinds that it lists"
            )
        passes.append(found)
    return passes


def _sources(data: ReaderData, recipe: ReaderRecipe, draw: random.Random) -> dict[str, Source]:
    """Return a function that makes new examples, by kind of example."""
    corpus = read_corpus(data.corpus)
    questions = read_answered(data.questions)
    abstracts = read_abstracts(data.abstracts)
    texts: Sequence[str] = [c.search_text for c in abstracts.values()] or corpus.texts
    findings = read_findings(data.findings) if data.findings else []
    _check_held({f.pmid for f in findings}, abstracts, data.findings)
    asked = read_abstract_questions(data.abstract_questions) if data.abstract_questions else []
    _check_held({q.pmid for q in asked}, abstracts, data.abstract_questions)

    def of_bioasq(sided: bool) -> Source:
        chosen = [q for q in questions if (q.stance is not None) is sided]
        mined = best_by_bm25(corpus.texts, [q.text for q in chosen], recipe.hardest)
        return lambda count: bioasq_examples(chosen, corpus, mined, draw)

    def used(name: str, read: Callable[[str], list[Row]], held: Container[int]) -> list[Row]:
        if not any(getattr(part, name) for part in recipe.passes):
            return []
        rows = read(name)
        option = "--corpus" if held is corpus.rows else "--abstracts"
        _check_held({int(row["pmid"]) for row in rows}, held, f"{name}.jsonl", option)
        return rows

    def abstract(pmid: int) -> str:
        return abstract_of(abstracts[pmid], draw)

    articles = used("articles", read_written, abstracts)
    background = used("background", read_written, abstracts)
    wordings = used("wordings", read_written, corpus.rows)
    named = used("named", read_named, corpus.rows)
    return {
        "yesno": of_bioasq(True),
        "other": of_bioasq(False),
        "abstracts": lambda count: abstract_examples(asked, abstracts, draw),
        "trials": lambda count: trial_examples(findings, abstracts, draw),
        "propositions": lambda count: contrast_examples(count, texts, draw),
        "attributes": lambda count: attribute_examples(count, texts, draw),
        "claims": lambda count: claim_examples(count, texts, draw),
        "abstract_claims": lambda count: abstract_claim_examples(count, draw),
        "mentions": lambda count: mention_examples(count, texts, draw),
        "nonsense": lambda count: nonsense_examples(count, texts, draw),
        "hard_negatives": lambda count: hard_negative_examples(count, asked, abstracts, draw),
        "articles": lambda count: written_examples(articles, abstract),
        "background": lambda count: written_examples(background, abstract),
        "wordings": lambda count: written_examples(wordings, corpus.text),
        "named": lambda count: named_examples(named, corpus.text),
    }


def _draw_examples(
    source: Source, count: int, balanced: bool, draw: random.Random
) -> list[ReaderExample]:
    """Return `count` examples of `source`, or none if it has none."""
    found: list[ReaderExample] = []
    while len(found) < count:
        more = list(source(count))
        if not more:
            return []
        found += more
    return balance_sides(found, count, draw) if balanced else draw.sample(found, count)


def _check_held(
    pmids: set[int], held: Container[int], file: Path | str | None, option: str = "--abstracts"
) -> None:
    missing = sorted(pmid for pmid in pmids if pmid not in held)
    if missing:
        raise InputError(
            f"{file}: {len(missing)} articles are in no file of {option} (PMID {missing[0]} "
            "is the first): name the PubMed XML files that have them"
        )
