"""Compare encoder runtimes and number types on this CPU with sentence-transformers.

    python -m benchmarks.bench_encoder SOURCE... [--limit 320] [--rounds 5] [--set key=value]

Prints for each runtime and number type: passages per second in the batches of a build, and
milliseconds for a single question, both also as ratios to `SentenceTransformer(model).encode`
(float32, batches of 32); and the smallest cosine similarity of a vector to that of the baseline.
Then prints the milliseconds in which the reader reads 20 passages. The contenders take turns, and
figures are medians over the rounds. To simulate a CPU without AVX-512, set ONEDNN_MAX_CPU_ISA=AVX2,
ATEN_CPU_CAPABILITY=avx2 and --set encoder.dtype=float32.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from benchmarks.build_index import passages_of
from benchmarks.smallest import parse_arguments
from cluster.models.adapters import model_folder
from cluster.models.encoder import Encoder
from cluster.models.openvino_runtime import PROBE_QUESTIONS
from cluster.models.reader import Reader
from cluster.settings.settings import Settings, load_settings
from cluster.text.tokenise import make_tokeniser
from pipelines.indexing.sources.find_sources import find_sources

SMALLEST = "SOURCES --limit 8 --rounds 1"

DEFAULT = "sentence-transformers float32"
Encode = Callable[[list[str]], NDArray[np.float32]]
READ_PASSAGES = 20


def encoders_of(settings: Settings) -> Iterator[tuple[str, Encode]]:
    """Yield the baseline, then each runtime in float32 and in the number type of the settings."""
    folder = model_folder(settings.encoder)
    plain = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    plain.max_seq_length = settings.encoder.max_tokens
    yield DEFAULT, lambda texts: plain.encode(texts, batch_size=32, show_progress_bar=False)
    for dtype in dict.fromkeys(("float32", settings.encoder.dtype)):
        for runtime in ("torch", "openvino"):
            changes = {"dtype": dtype, "runtime": runtime, "device": "cpu"}
            encoder = Encoder.by(settings.encoder.model_copy(update=changes), folder)
            yield f"{encoder.runtime} {encoder.dtype}", encoder.encode


def readers_of(settings: Settings) -> Iterator[tuple[str, Reader]]:
    for dtype in dict.fromkeys(("float32", settings.encoder.dtype)):
        for runtime in ("torch", "openvino"):
            reader = Reader.load(
                model_folder(settings.reader),
                device="cpu",
                dtype=dtype,
                runtime=runtime,
                max_tokens=settings.reader.max_tokens,
                batch_size=settings.reader.batch_size,
                threads=settings.encoder.threads,
            )
            yield f"{runtime} {dtype}", reader


def medians(work: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the median seconds of each function. All run once to warm up, then in turns."""
    for run in work.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, run in work.items():
            begun = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begun)
    return {name: median(found) for name, found in times.items()}


def compare_encoders(settings: Settings, texts: list[str], rounds: int) -> None:
    encoders = dict(encoders_of(settings))
    build = medians({n: partial(e, texts) for n, e in encoders.items()}, rounds)
    questions = list(PROBE_QUESTIONS)

    def one_by_one(encode: Encode) -> None:
        for question in questions:
            encode([question])

    alone = medians({n: partial(one_by_one, e) for n, e in encoders.items()}, rounds)
    wanted = encoders[DEFAULT]([*texts, *questions])
    for name, encode in encoders.items():
        least = (encode([*texts, *questions]) * wanted).sum(1).min()
        print(
            f"{name:30} {len(texts) / build[name]:6.0f} passages/s "
            f"({build[DEFAULT] / build[name]:.2f}x), a question in "
            f"{1e3 * alone[name] / len(questions):6.1f} ms ({alone[DEFAULT] / alone[name]:.2f}x), "
            f"least cosine {least:.5f}"
        )


def compare_readers(settings: Settings, passages: list[str], rounds: int) -> None:
    readers = dict(readers_of(settings))
    question = PROBE_QUESTIONS[0]
    spent = medians({n: partial(r.read, question, passages) for n, r in readers.items()}, rounds)
    wanted = next(iter(readers.values())).read(question, passages)
    for name, reader in readers.items():
        found = reader.read(question, passages)
        most = max(abs(a.relevance - b.relevance) for a, b in zip(found, wanted, strict=True))
        print(
            f"reader, {name:22} {len(passages)} passages in {1e3 * spent[name]:6.0f} ms, "
            f"relevance differs by at most {most:.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=320)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    options = parse_arguments(parser, SMALLEST)
    settings = load_settings(overrides=options.overrides)
    torch.set_num_threads(settings.encoder.threads)
    texts = passages_of(find_sources(list(map(str, options.sources))))[: options.limit]
    tokenise = make_tokeniser(model_folder(settings.encoder), settings.encoder.max_tokens)
    tokens = sum(map(len, tokenise(texts)))
    spent = medians({"tokenise": lambda: tokenise(texts)}, options.rounds)["tokenise"]
    print(
        f"{len(texts)} passages, {tokens / len(texts):.0f} tokens each, "
        f"{settings.encoder.threads} threads; tokenised at {len(texts) / spent:.0f}/s"
    )
    compare_encoders(settings, texts, options.rounds)
    compare_readers(settings, texts[:READ_PASSAGES], options.rounds)


if __name__ == "__main__":
    main()
