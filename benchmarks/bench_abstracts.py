"""Measure answers whose evidence is a conclusion outside the passage that the search finds.

    python -m benchmarks.bench_abstracts TEXTS.jsonl... --index FOLDER [--whole 0 5] [--limit N]

Each line of TEXTS has `pmid`, `title` and `text` (title and abstract), as in BC5CDR and NCBI
Disease. The index is built once in FOLDER. For each number of abstracts read in full (`--whole`),
prints the numbers of right and wrong yes/no answers, the sum of the scores of the other question
types (0 to 1 a question), and every answer that is not right.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from benchmarks.smallest import parse_arguments
from cluster.answers import NOT_ENOUGH, Answer, Question, QuestionType
from cluster.records import Citation
from cluster.settings.presets import load_system
from serve.graph.local_graph import local_answerer
from serve.request import Request
from tests.answers.collection import build_index, settings_for
from tests.small_index import citation

SMALLEST = "TEXTS --index FOLDER --whole 0 --limit 2"

Ask = Callable[[str, QuestionType], Awaitable[Answer]]
QUESTIONS = Path(__file__).with_name("abstracts.yaml")


def citations(files: Sequence[Path]) -> Iterator[Citation]:
    """Yield the citations of the files without duplicates."""
    seen: set[int] = set()
    for row in (json.loads(line) for file in files for line in file.open(encoding="utf-8")):
        if (pmid := int(row["pmid"])) not in seen:
            seen.add(pmid)
            yield citation(pmid, row["text"].removeprefix(row["title"]).strip(), row["title"])


def score(kind: QuestionType, answer: Answer, says: Sequence[str]) -> float:
    """Return 0 or 1 for a factoid's first name or a summary, and F1 for a list."""
    told = " ".join(sentence.text for sentence in answer.ideal).lower()
    names = [" ".join(item).lower() for item in answer.exact or () if not isinstance(item, str)]
    if kind == "list":
        said = sum(any(word in name for name in names) for word in says)
        meant = sum(any(word in name for word in says) for name in names)
        found, right = said / len(says), meant / max(1, len(names))
        return 2 * found * right / (found + right) if said else 0.0
    text = told if kind == "summary" else "".join(names[:1])
    return float(any(word in text for word in says))


async def ask_types(ask: Ask, questions: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    kinds: Sequence[QuestionType] = ("factoid", "list", "summary")
    for kind in kinds:
        scores = []
        for body, says in questions[kind].items():
            answer = await ask(body, kind)
            scores.append(score(kind, answer, says))
            if scores[-1] < 1:
                told = answer.exact or " ".join(sentence.text for sentence in answer.ideal)
                print(f"  {scores[-1]:.2f} {body} {told}")
        print(f"{kind}: {sum(scores):.1f} of {len(scores)}", flush=True)


async def ask_sides(ask: Ask, questions: Mapping[str, Sequence[str]]) -> None:
    right = wrong = asked = 0
    for expected in ("yes", "no", "none"):
        for body in questions[expected]:
            answer = await ask(body, "yesno")
            said = "none" if answer.verdict == NOT_ENOUGH else answer.exact
            said = "mixed" if answer.verdict == "mixed" else said
            asked, right = asked + 1, right + (said == expected)
            wrong += said in ("yes", "no") and said != expected
            if said != expected:
                print(f"  {expected}, said {said}: {body}")
    print(f"yes/no: {right} of {asked} right, {wrong} wrong", flush=True)


def read_questions(limit: int | None) -> dict[str, Any]:
    """Return at most `limit` questions of each kind; abstracts.yaml describes their form."""
    return {
        kind: asked[:limit] if isinstance(asked, list) else dict(islice(asked.items(), limit))
        for kind, asked in yaml.safe_load(QUESTIONS.read_text("utf-8")).items()
    }


async def ask_all(index: Path, whole: int, limit: int | None) -> None:
    system = load_system("citeray").model_copy(update={"whole": whole})
    answerer = local_answerer(settings_for(index))
    questions = read_questions(limit)

    async def ask(body: str, kind: QuestionType) -> Answer:
        return await answerer.answer(Request(Question("q", body, kind), system))

    print(f"{whole} read whole")
    await ask_sides(ask, questions)
    await ask_types(ask, questions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--whole", type=int, nargs="+", default=[0, 5])
    parser.add_argument("--limit", type=int, help="questions of each kind (default all)")
    arguments = parse_arguments(parser, SMALLEST)
    index = build_index(arguments.index, list(citations(arguments.texts)))
    for whole in arguments.whole:
        asyncio.run(ask_all(index, whole, arguments.limit))


if __name__ == "__main__":
    main()
