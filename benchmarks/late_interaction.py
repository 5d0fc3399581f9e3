"""Compare late interaction over stored token vectors with PyLate's reranking.

Both rerank the same 200 candidates of each question with the token vectors of the same encoder.
CiteRay reads its compressed codes (64 components, 2 bits each); PyLate's `rank.rerank` pads and
multiplies float32 vectors. FastPLAID is left out because its wheels need an older torch.
"""

from __future__ import annotations

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
from benchmarks.ratios import Ratio
from cluster.index.tokens.codec import TokenCodec, learn_codec
from cluster.index.tokens.stored import StoredTokens, mean_max_sim
from cluster.models.adapters import model_folder
from cluster.models.encoder import Encoder
from cluster.settings.settings import Settings

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
        chosen = [vectors[position] for position in candidates]
        ids = [candidates.tolist()]
        found = rank.rerank(ids, [torch.from_numpy(tokens)], [chosen], device="cpu")
        return [result["id"] for result in found[0][:TOP]]

    return Scored(best, fmean(part.numel() * 4 for part in vectors))


def compare(
    settings: Settings, questions: Sequence[str], texts: Sequence[str], rounds: int
) -> list[Ratio]:
    """Return the ratios of the time for a question and of the bytes for a passage."""
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
    pairs = zip(found[OURS], found[PYLATE], strict=True)
    shared = fmean(len(set(ours) & set(theirs)) / len(theirs) for ours, theirs in pairs)
    what = f"late interaction, {CANDIDATES} of {len(texts):,} passages"
    sizes = [contenders[of].bytes_a_passage for of in (OURS, PYLATE)]
    return [
        Ratio(what, milliseconds[OURS], PYLATE, milliseconds[PYLATE], "ms"),
        Ratio(f"token vectors, {shared:.3f} of the best {TOP} the same", sizes[0], PYLATE, sizes[1],
              "bytes a passage"),
    ]  # fmt: skip
