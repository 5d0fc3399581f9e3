"""Evaluate every preset in configs/systems on questions with gold, as a Markdown table.

    python -m benchmarks.bench_systems QUESTIONS.json --index INDEX --corpus XML_FOLDER
        [--limit 60] [--system sinai --system citeray] [--no-answers] [--set llm.kind=none]

Runs `citeray ablate --markdown` with a local PubMed server over XML_FOLDER
(benchmarks/corpus_pubmed.py describes its search), and resumes an interrupted run. `--limit` draws
that many questions with `--seed`, in proportion to their types. Fetches and ranks 100 citations per
question for recall@100; an ordinary search fetches 10 and is faster. Latencies of PubMed include
the request rate that NCBI allows but no network. The questions are kept beside the runs.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.corpus_pubmed import CorpusPubMed
from benchmarks.questions import Row, overrides, question_parser
from benchmarks.smallest import parse_arguments
from cluster.bioasq_file import read_rows
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from cluster.settings.presets import load_system, system_names
from cluster.storage.whole_files import write_atomically
from commands.evaluation.ablate import ablate
from tests.serve.eutils_server import eutils
from tests.serve.http_server import free_port

SMALLEST = (
    "QUESTIONS --index INDEX --corpus CORPUS --output FOLDER --limit 2 --no-answers "
    "--system bm25 --system sinai --set llm.kind=none"
)

DEPTH = 100
# The port is fixed: the address is part of a run's settings, which must match to resume it.
PUBMED_PORT = 8765


def sample_by_type(rows: Sequence[Row], limit: int | None, seed: int) -> list[Row]:
    """Draw `limit` of `rows` in proportion to their types, keeping their order."""
    if limit is None or limit >= len(rows):
        return list(rows)
    drawn = random.Random(seed).sample(range(len(rows)), len(rows))
    by_type = sorted(drawn, key=lambda place: str(rows[place]["type"]))
    chosen = {by_type[step * len(rows) // limit] for step in range(limit)}
    return [rows[place] for place in sorted(chosen)]


def read_corpus(folder: Path) -> list[Citation]:
    """Return the citations of the PubMed XML files in a folder."""
    files = sorted(folder.glob("*.xml*"))
    every = (record for file in files for record in read_records(file))
    return [record for record in every if isinstance(record, Citation)]


@contextmanager
def local_pubmed(
    corpus: Path | None, systems: Sequence[str], port: int = PUBMED_PORT
) -> Iterator[list[str]]:
    """Serve `corpus` as a local PubMed if `systems` use PubMed, and yield the settings for it."""
    if all(load_system(name).online.when == "never" for name in systems):
        yield []
        return
    if corpus is None:
        raise SystemExit("--corpus: a preset that searches PubMed needs its folder of PubMed XML")
    with eutils(CorpusPubMed(citations=read_corpus(corpus)), port) as pubmed:
        yield [f"entrez.base_url={pubmed.url}", "entrez.cache_days=0"]


def keep_questions(file: Path, folder: Path, limit: int | None, seed: int) -> Path:
    """Write a sample of `file` to `folder`, print its size, and return its path."""
    rows = sample_by_type(read_rows(file), limit, seed)
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(Counter(r["type"] for r in rows).items()))
    print(f"{len(rows)} questions of {file.name} ({kinds}), drawn by seed {seed}\n", flush=True)
    kept = folder / "questions.json"
    text = json.dumps({"questions": rows}, ensure_ascii=False)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(kept, text.encode())
    return kept


def main() -> None:
    parser = question_parser(__doc__)
    parser.add_argument("--corpus", type=Path, help="PubMed XML, for presets that search PubMed")
    parser.add_argument("--system", action="append", help="preset; repeatable (default all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-answers", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(".citeray/systems"))
    given = parse_arguments(parser, SMALLEST)
    systems = given.system or system_names()
    questions = keep_questions(given.questions, given.output, given.limit, given.seed)
    # Start a new graph: one that is already running would use another PubMed.
    port = f"serve.port={free_port()}"
    with local_pubmed(given.corpus, systems) as online:
        ablate(
            systems=systems,
            questions=questions,
            gold=questions,
            output=given.output,
            answers=not given.no_answers,
            depth=DEPTH,
            markdown=True,
            config=given.config,
            overrides=overrides(given, port, *online),
        )


if __name__ == "__main__":
    main()
