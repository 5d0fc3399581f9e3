"""Compare the GPU steps of an index build with the peak of the card.

    python -m benchmarks.bench_gpu [--config cluster.yaml] [--set key=value]
        [--passages 20000] [--vectors 1000000] [--device cuda]

Embedding: TFLOP/s of the encoder of the settings over passages of 128 tokens, relative to the
fastest measured matrix product in bfloat16 and to the peak in the card's data sheet. FLOPs are
counted from the model's configuration. CAGRA: seconds to build the graph and its recall@10, and the
same for FAISS's HNSW on the CPU. Exits with status 2 if there is no GPU; `--device cpu` runs the
same steps on the CPU. For the tokens per second of the language model use bench_llm with --config.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig

from benchmarks.smallest import parse_arguments
from cluster.index import cagra
from cluster.index.vectors import Vectors, build, empty_index
from cluster.models.adapters import model_folder
from cluster.models.encoder import Encoder
from cluster.models.load_safely import SAFELY
from cluster.settings.settings import IndexSettings, load_settings
from cluster.text.tokenise import Tokens

PASSAGE_TOKENS = 128
QUERIES, TOP = 200, 10
# Dense bfloat16 TFLOP/s from NVIDIA's data sheets, by name; longer names precede their prefixes.
SHEET_TFLOPS = {
    "H100 PCIe": 756.0,
    "H100": 989.4,
    "H200": 989.4,
    "A100": 312.0,
    "L40S": 362.0,
    "L4": 121.0,
}


@dataclass(frozen=True)
class Shape:
    """Dimensions of an encoder that determine its FLOPs."""

    layers: int
    hidden: int
    inner: int

    @classmethod
    def of(cls, model_dir: Path) -> Shape:
        config: Any = AutoConfig.from_pretrained(str(model_dir), **SAFELY)
        return cls(config.num_hidden_layers, config.hidden_size, config.intermediate_size)

    def flops(self, tokens: int) -> int:
        """Return the FLOPs of matrix products in one forward pass, with 2 per multiply-add."""
        projections = 8 * self.hidden**2 + 4 * self.hidden * self.inner
        attention = 4 * self.hidden * tokens
        return self.layers * tokens * (projections + attention)


def sheet_tflops(card: str) -> float | None:
    return next((peak for name, peak in SHEET_TFLOPS.items() if name in card), None)


def seconds_of(work: Callable[[], Any], device: str) -> float:
    """Return the seconds of one call, including the work that it started on the GPU."""
    begun = time.perf_counter()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def matmul_tflops(device: str, size: int, rounds: int = 5) -> float:
    """Return the best TFLOP/s of `rounds` products of square bfloat16 matrices."""
    a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    torch.matmul(a, b)
    best = min(seconds_of(lambda: torch.matmul(a, b), device) for _ in range(rounds))
    return 2 * size**3 / best / 1e12


def passages(count: int, vocabulary: int) -> list[Tokens]:
    drawn = np.random.default_rng(0).integers(0, vocabulary, (count, PASSAGE_TOKENS))
    return list(drawn.astype(np.int32))


def embedding_lines(encoder: Encoder, model_dir: Path, count: int, peak: float) -> list[str]:
    config: Any = AutoConfig.from_pretrained(str(model_dir), **SAFELY)
    tokens = passages(count, config.vocab_size)
    encoder.embed_tokens(tokens[: encoder.batch_size], None)
    took = seconds_of(lambda: encoder.embed_tokens(tokens, None), encoder.device)
    done = count * Shape.of(model_dir).flops(PASSAGE_TOKENS) / took / 1e12
    card = "cpu" if encoder.device == "cpu" else torch.cuda.get_device_name()
    sheet = sheet_tflops(card)
    beside = f", {done / sheet:.1%} of the data sheet's {sheet:.0f}" if sheet else ""
    return [
        f"{encoder.name} on {card}: {count / took:,.0f} passages of {PASSAGE_TOKENS} tokens a "
        f"second, {done:.3g} TFLOP/s; {done / peak:.1%} of the {peak:.3g} of a product of "
        f"matrices{beside}"
    ]


def clustered(rows: int, dimensions: int) -> Vectors:
    """Return unit vectors around common centres, because uniform ones have no near neighbours."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((max(rows // 100, 1), dimensions), np.float32)
    made = centres[random.integers(0, len(centres), rows)]
    made += 0.7 * random.standard_normal((rows, dimensions), np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def recall(index: Any, vectors: Vectors, queries: Vectors, ef_search: int) -> float:
    index.hnsw.efSearch = ef_search
    found = index.search(queries, TOP)[1]
    exact = np.argpartition(-queries @ vectors.T, TOP, axis=1)[:, :TOP]
    return float(np.mean([len(set(f) & set(e)) / TOP for f, e in zip(found, exact, strict=True)]))


def graph_lines(chosen: IndexSettings, rows: int, dimensions: int) -> list[str]:
    everything = clustered(rows + QUERIES, dimensions)
    vectors, queries = everything[:rows], everything[rows:]

    def made(name: str, by: Callable[[Any], Any]) -> str:
        empty = empty_index(chosen.vectors, dimensions, chosen.hnsw_m, chosen.ef_construction)
        if not empty.is_trained:
            empty.train(vectors[: chosen.training_vectors])
        took = seconds_of(lambda: by(empty), "cpu")
        return (
            f"HNSW of {rows:,} vectors of {dimensions} ({chosen.vectors}, M {chosen.hnsw_m}) by "
            f"{name}: {took:.1f} s, recall@{TOP} "
            f"{recall(empty, vectors, queries, chosen.ef_search):.3f}"
        )

    threads = chosen.build_threads
    lines = [made(f"{threads} threads of the CPU", lambda e: build(e, [vectors], threads))]
    if not cagra.on_gpu() or rows < cagra.FEWEST_ROWS:
        return [*lines, "CAGRA: not run, as FAISS has none here, sees no GPU, or has few vectors"]
    return [*lines, made("CAGRA", lambda e: cagra.build_by_cagra(e, vectors, threads))]


def smallest() -> str:
    """Return the arguments of the smallest run, which uses the CPU if there is no GPU."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return (
        f"--config laptop.yaml --device {device} --passages 8 --vectors 1000 --matrix 64 "
        "--set encoder.dtype=float32"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="cluster.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--matrix", type=int, default=8192)
    given = parse_arguments(parser, smallest(), arguments)
    if given.device != "cpu" and not torch.cuda.is_available():
        print("no GPU is seen here: run this where there is one, or with --device cpu")
        return 2
    settings = load_settings(given.config, [*given.set, f"encoder.device={given.device}"])
    folder = model_folder(settings.encoder)
    encoder = Encoder.by(settings.encoder, folder)
    peak = matmul_tflops(given.device, given.matrix)
    print(*embedding_lines(encoder, folder, given.passages, peak), sep="\n")
    print(*graph_lines(settings.index, given.vectors, encoder.dimensions), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
