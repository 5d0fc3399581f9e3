"""Compare late interaction over stored token vectors with PyLate's reranking.

    python -m benchmarks.bench_late QUESTIONS.json SOURCE... [--passages 2000] [--rounds 5]

Both rerank the same 200 candidates of each question with the token vectors of the same encoder; the
candidates are the nearest of the first `--passages` passages. CiteRay reads its compressed codes
(64 components, 2 bits each); PyLate's `rank.rerank` pads and multiplies float32 vectors. Prints the
median milliseconds per question and their ratio, then bytes per passage and the share of the ten
best passages that both have in common. FastPLAID is left out because its wheels need an older
torch.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from pylate import rank

from benchmarks.bench_encoder import medians
from benchmarks.bench_index import passages_of
from benchmarks.ratios import Ratio, print_ratios
from benchmarks.smallest import parse_arguments
from cluster.index.tokens.codec import TokenCodec, learn_codec
from cluster.index.tokens.stored import StoredTokens, mean_max_sim
from cluster.models.adapters import model_folder
from cluster.models.encoder import Encoder
from cluster.settings.settings import Settings, load_settings
from pipelines.indexing.sources.find_sources import find_sources

SMALLEST = "QUESTIONS SOURCES --passages 50 --rounds 1"

CANDIDATES, TOP = 200, 10
OURS, PYLATE = "CiteRay", "PyLate, float32"


@dataclass(frozen=True)
class Scored:
    """A contender. `best` returns the TOP best candidates of a question, best first."""

    best: Callable[[np.ndarray, np.ndarray], list[int]]
    bytes_a_passage: float


def of_codes(texts: Sequence[str], encoder: Encoder, codec: TokenCodec, folder: Path) -> Scored:
    codes = encoder.embed(list(texts), encoder.compress_by(codec, 1)).codes
    path = folder / "tokens.bin"
    path.write_bytes(b"".join(part.tobytes() for part in codes))
    stored = StoredTokens(path, np.cumsum(list(map(len, codes)), dtype=np.uint64), codec)

    def best(tokens: np.ndarray, candidates: np.ndarray) -> list[int]:
        scores = mean_max_sim(stored.best_cosines(codec.project(tokens), candidates))
        found: list[int] = candidates[np.argsort(-scores, kind="stable")[:TOP]].tolist()
        return found

    return Scored(best, path.stat().st_size / len(texts))


def of_floats(vectors: Sequence[torch.Tensor]) -> Scored:
    def best(tokens: np.ndarray, candidates: np.ndarray) -> list[int]:
        chosen = [vectors[place] for place in candidates]
        ids = [candidates.tolist()]
        found = rank.rerank(ids, [torch.from_numpy(tokens)], [chosen], device="cpu")
        return [result["id"] for result in found[0][:TOP]]

    return Scored(best, fmean(part.numel() * 4 for part in vectors))


def compare(
    settings: Settings, questions: Sequence[str], texts: Sequence[str], rounds: int
) -> tuple[list[Ratio], list[str]]:
    """Return the ratios, and a line of text for each contender."""
    encoder = Encoder.by(settings.encoder, model_folder(settings.encoder))
    tokens = encoder.token_vectors(texts)
    coded = settings.index.token_codec
    if coded is None:
        raise SystemExit("index.token_vectors is none: there is nothing to compare")
    codec = learn_codec(
        np.concatenate(tokens[: coded.training_passages]), coded.components, coded.bits
    )
    vectors = [torch.from_numpy(part) for part in tokens]
    asked = encoder.encode_queries(questions)
    passages = encoder.encode(texts)
    candidates = [np.argsort(-(passages @ q.vector))[:CANDIDATES] for q in asked]
    queries = [q.tokens.astype(np.float32) for q in asked]
    with tempfile.TemporaryDirectory() as name:
        contenders = {
            OURS: of_codes(texts, encoder, codec, Path(name)),
            PYLATE: of_floats(vectors),
        }
        found: dict[str, list[list[int]]] = {}

        def run(of: str) -> None:
            pairs = zip(queries, candidates, strict=True)
            found[of] = [contenders[of].best(*pair) for pair in pairs]

        spent = medians({of: partial(run, of) for of in contenders}, rounds)
    milliseconds = {of: 1e3 * seconds / len(questions) for of, seconds in spent.items()}
    what = f"late interaction, {CANDIDATES} of {len(texts):,} passages"
    ratios = [Ratio(what, milliseconds[OURS], PYLATE, milliseconds[PYLATE], "ms")]
    lines = [
        f"{of}: {scored.bytes_a_passage:,.0f} bytes a passage, "
        f"{fmean(_shared(a, b) for a, b in zip(found[of], found[PYLATE], strict=True)):.3f} "
        f"of the {TOP} best"
        for of, scored in contenders.items()
    ]
    return ratios, lines


def _shared(one: Sequence[int], other: Sequence[int]) -> float:
    return len(set(one) & set(other)) / len(other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--passages", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parse_arguments(parser, SMALLEST)
    bodies = [q["body"] for q in json.loads(options.questions.read_text())["questions"]][:32]
    texts = [t for t in passages_of(find_sources(options.sources)) if len(t) > 40]
    ratios, lines = compare(load_settings(), bodies, texts[: options.passages], options.rounds)
    print_ratios(ratios)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
