"""Yes/no questions on whole abstracts, whose conclusion lies outside the passage that is found.

    python -m tests.bench.bench_abstracts TEXTS.jsonl... --index FOLDER [--whole 0 5]

TEXTS are lines with `pmid`, `title` and `text` (both together), as of BC5CDR and NCBI Disease; the
index is made once in FOLDER. Prints what is answered rightly, wrongly and otherwise, with so many
citations read whole, and each answer that is not right.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from cluster.answers import NOT_ENOUGH, Question
from cluster.records import Citation
from cluster.settings.presets import load_system
from serve.graph.local_graph import local_answerer
from serve.request import Request
from tests.answers.collection import build_index, settings_for
from tests.small_index import citation

QUESTIONS = Path(__file__).with_name("abstracts.yaml")


def citations(files: Sequence[Path]) -> Iterator[Citation]:
    """Each citation once."""
    seen: set[int] = set()
    for row in (json.loads(line) for file in files for line in file.open(encoding="utf-8")):
        if (pmid := int(row["pmid"])) not in seen:
            seen.add(pmid)
            yield citation(pmid, row["text"].removeprefix(row["title"]).strip(), row["title"])


async def ask(index: Path, whole: int) -> None:
    system = load_system("citeray").model_copy(update={"whole": whole})
    answerer = local_answerer(settings_for(index))
    right = wrong = asked = 0
    for expected, bodies in yaml.safe_load(QUESTIONS.read_text("utf-8")).items():
        for body in bodies:
            answer = await answerer.answer(Request(Question("q", body, "yesno"), system))
            said = "none" if answer.verdict == NOT_ENOUGH else answer.exact
            said = "mixed" if answer.verdict == "mixed" else said
            asked, right = asked + 1, right + (said == expected)
            wrong += said in ("yes", "no") and said != expected
            if said != expected:
                print(f"  {expected}, said {said}: {body}")
    print(f"{whole} read whole: {right} of {asked} right, {wrong} wrong", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--whole", type=int, nargs="+", default=[0, 5])
    arguments = parser.parse_args()
    index = build_index(arguments.index, list(citations(arguments.texts)))
    for whole in arguments.whole:
        asyncio.run(ask(index, whole))


if __name__ == "__main__":
    main()
