"""Check and measure the encoder and the cross-encoder on a machine with a GPU.

    python -m benchmarks.gpu_check --pack FOLDER [SOURCE...] [--set key=value]
    python -m benchmarks.gpu_check --packed FOLDER [--out FOLDER]
    python -m benchmarks.gpu_check --device cpu [--out FOLDER]

The first command needs the package index. It writes the encoder, passages of the sources (default:
the sample corpus), their vectors from a CPU in float32, and the wheels that a common PyTorch
installation lacks. The second one needs these wheels, but no network, Ray, vLLM, tantivy or FAISS:

    python -m pip install --no-index --no-deps --target /tmp/site FOLDER/wheels/*.whl
    PYTHONPATH=/tmp/site python -m benchmarks.gpu_check --packed FOLDER --out results

It measures
- the difference between the GPU's vectors and token codes and those of the CPU,
- passages per second of an index build's embedding step by batch size, with and without token codes
  and tokenisation, for the packed encoder and for a random one of BERT's base size,
- pairs per second of a reader with random weights, which is as fast as a trained one,
- the share of time in which the GPU is idle,
- the encoder with torch.compile, and the TFLOP/s of the encoder and of a product of matrices.

`coefficients.json` has the figures for `citeray plan`, `measurements.json` all figures; the folder
`base` has those of the base size. The exit status is 1 if a measurement failed, or if the vectors
differ too much for an index. The third command runs everything at a tiny size for tests, except
that it compiles with the backend "eager" and does not measure idle time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu_pack import Amounts, Pack, download_wheels, read_pack, write_pack
from benchmarks.gpu_timing import busy_seconds, memory_of, rate
from benchmarks.random_models import Shape, base_pack, random_reader
from cluster.models.embedded import Embedded
from cluster.models.encoder import Encoder
from cluster.models.model_cache.cache_entries import MIN_COSINE
from cluster.models.openvino_runtime import PROBE_QUESTIONS
from cluster.settings.settings import load_settings
from cluster.text.tokenise import Tokens, make_tokeniser

BATCHES = (64, 128, 256, 512, 1024)
# An index build gives each encoder on a GPU two tables at once (pipelines.indexing.staging).
TABLES = 2
# Batch size and table for the measurements that do not vary them.
BATCH, TABLE = 256, 1024
# Names of measurements. PLAIN and CODED are also names of coefficients.
PLAIN, CODED = "encoder_documents_per_s", "encoder_documents_per_s_with_tokens"
OF_BASE = ("lengths", PLAIN, CODED, "encoder_tflops")
FIRST = (*OF_BASE, "agreement", "reader", "tokenisers", "matrix_tflops")
LAST = ("idle", "compiled")  # The most likely ones to fail or to take long.
FULL_AMOUNTS = Amounts(passages=8192, expected=256, learning=500, articles=64)
TINY_AMOUNTS = Amounts(passages=24, expected=8, learning=32, articles=2)


@dataclass(frozen=True)
class Effort:
    """`seconds` of each rate, `matrix` rows of a product, `base` the shape of large models."""

    seconds: float
    matrix: int
    base: Shape
    compiler: str


FULL = Effort(seconds=3.0, matrix=8192, base=Shape(12, 768, 3072), compiler="inductor")
TINY = Effort(seconds=0.0, matrix=64, base=Shape(1, 32, 64), compiler="eager")


def equal_shares(ours: Embedded, wanted: Sequence[np.ndarray], bits: int) -> dict[str, float]:
    """Return the shares of equal bytes and of equal components in the token codes."""
    pairs = zip(ours.codes, wanted, strict=True)
    differ = np.concatenate([(a ^ b).ravel() for a, b in pairs])
    parts = [(differ >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return {
        "equal_bytes": float(np.mean(differ == 0)),
        "equal_components": float(np.mean(np.stack(parts) == 0)),
    }


class Check:
    """The measurements on one device. `found` has their results so far, by name."""

    def __init__(self, pack: Pack, device: str, effort: Effort) -> None:
        self.pack, self.device, self.effort = pack, device, effort
        self.found: dict[str, Any] = {}
        self.failed: dict[str, str] = {}
        self.encoder = Encoder(pack.encoder, device=device, max_tokens=pack.max_tokens)
        self.tokenise = make_tokeniser(pack.encoder, pack.max_tokens)
        self.encoder.check_tokeniser(self.tokenise)
        self.tokens = self.tokenise(pack.passages)
        self.compress = self.encoder.compress_by(pack.codec, 1)

    @property
    def name(self) -> str:
        return "cpu" if self.device == "cpu" else str(torch.cuda.get_device_name())

    @property
    def steps(self) -> dict[str, Callable[[], Any]]:
        return {
            "lengths": self.lengths,
            "agreement": self.agreement,
            PLAIN: partial(self.encoder_rates, coded=False),
            CODED: partial(self.encoder_rates, coded=True),
            "encoder_tflops": self.encoder_tflops,
            "reader": self.reader_rates,
            "tokenisers": self.tokeniser_rates,
            "matrix_tflops": self.matrix_tflops,
            "idle": self.idle_shares,
            "compiled": self.compiled,
        }

    def lengths(self) -> dict[str, float]:
        """Return the mean and percentiles of the passages' tokens."""
        counts = [len(ids) for ids in self.tokens]
        marks = {f"p{p}": float(np.percentile(counts, p)) for p in (10, 50, 90, 100)}
        return {"mean_tokens_per_document": float(np.mean(counts)), **marks}

    def agreement(self) -> dict[str, float]:
        """Compare vectors and token codes with those of a CPU in float32."""
        wanted, bits = self.pack.expected, self.pack.codec.bits
        ours = self.encoder.embed_tokens(self.tokens[: len(wanted.vectors)], self.compress)
        cosines = (ours.vectors * wanted.vectors).sum(1)
        least, mean = float(cosines.min()), float(cosines.mean())
        # The comparison is negated so that NaN does not pass.
        if not least >= MIN_COSINE:
            self.failed["agreement"] = f"least cosine {least}, and an index needs {MIN_COSINE}"
        shares = equal_shares(ours, wanted.codes, bits)
        return {"least_cosine": least, "mean_cosine": mean, **shares}

    def embed(self, tokens: Sequence[Tokens], batch: int = BATCH, coded: bool = True) -> int:
        self.encoder.batch_size = batch
        self.encoder.embed_tokens(tokens, self.compress if coded else None)
        return len(tokens)

    def encoder_rates(self, coded: bool) -> dict[str, float]:
        """Return the passages per second by batch size, with tokens from memory."""
        found = {}
        for batch in BATCHES:
            run = partial(self.embed, self.tokens, batch, coded)
            run()
            found[str(batch)] = rate(run, TABLES, self.effort.seconds)
        return found

    def reader_rates(self) -> dict[str, float]:
        """Return the pairs per second: whole readings, and the logits alone."""
        question, texts = PROBE_QUESTIONS[1], self.pack.articles
        layers = self.effort.base.layers
        reader = random_reader(self.pack.encoder, layers, len(texts), self.device)

        def read() -> int:
            return len(reader.read(question, texts))

        def score() -> int:
            return len({window.row for window in reader.score(question, texts)})

        windows = sum(1 for _ in reader.score(question, texts))
        seconds = self.effort.seconds
        return {
            "cross_encoder_pairs_per_s": rate(read, 1, seconds),
            "logits_pairs_per_s": rate(score, 1, seconds),
            "windows_per_pair": windows / len(texts),
        }

    def tokeniser_rates(self) -> dict[str, dict[str, float]]:
        """Return passages per second by tokeniser threads, alone and feeding the encoder."""
        texts = self.pack.passages[:TABLE]
        found = {}
        # Otherwise each call would use all cores.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        for threads in (1, 2):
            alone = rate(lambda: len(self.tokenise(texts)), threads, self.effort.seconds)
            found[str(threads)] = {"alone": alone, "embedding": self.fed_rate(texts, threads)}
        del os.environ["TOKENIZERS_PARALLELISM"]
        return found

    def fed_rate(self, texts: list[str], threads: int) -> float:
        """Return the passages per second, with token codes, that are tokenised and embedded."""
        with ThreadPoolExecutor(threads) as pool:
            ready = deque(pool.submit(self.tokenise, texts) for _ in range(threads))

            def work() -> int:
                ready.append(pool.submit(self.tokenise, texts))
                return self.embed(ready.popleft().result())

            found = rate(work, TABLES, self.effort.seconds)
            pool.shutdown(cancel_futures=True)
        return found

    def matrix_tflops(self) -> float:
        """Return the TFLOP/s of the fastest product of square bfloat16 matrices."""
        size = self.effort.matrix
        a, b = torch.randn(2, size, size, device=self.device).bfloat16()

        def product() -> int:
            for _ in range(10):
                a @ b
            if self.device != "cpu":
                torch.cuda.synchronize()
            return 10

        product()
        return max(rate(product, 1, 0.0) for _ in range(5)) * 2 * size**3 / 1e12

    def encoder_tflops(self) -> dict[str, float]:
        """Return the TFLOP/s of the embedding step by batch size, without padding."""
        shape = Shape.of(self.pack.encoder)
        flops = np.mean([shape.flops(len(ids)) for ids in self.tokens])
        rates = self.found["encoder_documents_per_s"].items()
        return {batch: float(speed * flops / 1e12) for batch, speed in rates}

    def idle_shares(self) -> dict[str, Any]:
        """Return the shares of time in which the GPU runs nothing, by batch or tokeniser threads.

        The GPU's busy seconds per passage are profiled; the rates were measured without profiling.
        """
        found: dict[str, Any] = {}
        for coded, name in ((False, PLAIN), (True, CODED)):
            found[name] = {}
            for batch, speed in self.found[name].items():
                busy = busy_seconds(partial(self.embed, self.tokens, int(batch), coded))
                found[name][batch] = 1 - speed * busy / len(self.tokens)
        table = self.tokens[:TABLE]
        busy = busy_seconds(partial(self.embed, table)) / len(table)
        fed = self.found["tokenisers"].items()
        return {**found, "tokenisers": {n: 1 - speeds["embedding"] * busy for n, speeds in fed}}

    def compiled(self) -> dict[str, Any]:
        """Compare torch.compile with the model as loaded, one table at a time."""
        module: Any = self.encoder._model[0].model

        def embed() -> int:
            return self.embed(self.tokens)

        plain = rate(embed, 1, self.effort.seconds)
        before = self.encoder.embed_tokens(self.tokens[:TABLE], None).vectors
        module.forward = torch.compile(module.forward, dynamic=True, backend=self.effort.compiler)
        try:
            begun = time.perf_counter()
            embed()
            compiling = time.perf_counter() - begun
            after = self.encoder.embed_tokens(self.tokens[:TABLE], None).vectors
            speed = rate(embed, 1, self.effort.seconds)
        finally:
            del module.forward
        return {
            "backend": self.effort.compiler,
            f"{module.config._attn_implementation}_documents_per_s": plain,
            "compiled_documents_per_s": speed,
            "first_table_s": compiling,
            "least_cosine": float((before * after).sum(1).min()),
        }

    def run(self, names: Sequence[str], out: Path) -> bool:
        """Run the steps `names`, store the results after each, and return whether all is well."""
        out.mkdir(parents=True, exist_ok=True)
        for name in names:
            begun = time.perf_counter()
            try:
                self.found[name] = self.steps[name]()
            except Exception:  # the other measurements are worth having
                self.failed[name] = traceback.format_exc()
            said = self.failed.get(name) or json.dumps(self.found[name])
            print(f"{name} ({time.perf_counter() - begun:.1f} s): {said}", flush=True)
            self.store(out)
        return not self.failed

    def store(self, out: Path) -> None:
        """Write the measurements and, once they are complete, the coefficients."""
        versions = {"torch": torch.__version__, "dtype": self.encoder.dtype}
        told = {"device": self.name, **versions, **self.found, "failed": self.failed}
        (out / "measurements.json").write_text(json.dumps(told, indent=1) + "\n")
        if {"lengths", PLAIN, CODED, "reader"} <= self.found.keys():
            figures = {
                "kind": "gpu-coefficients",
                "device": self.name,
                **{name: self.found[name] for name in (PLAIN, CODED)},
                "cross_encoder_pairs_per_s": self.found["reader"]["cross_encoder_pairs_per_s"],
                "mean_tokens_per_document": self.found["lengths"]["mean_tokens_per_document"],
                "memory_bytes": memory_of(self.device),
            }
            (out / "coefficients.json").write_text(json.dumps(figures, indent=1) + "\n")


def check_all(pack: Pack, device: str, out: Path, scratch: Path) -> bool:
    """Measure the encoder of the pack and one with BERT's base size."""
    effort = TINY if device == "cpu" else FULL
    check = Check(pack, device, effort)
    well = check.run(FIRST, out)
    base = Check(base_pack(pack, effort.base, scratch), device, effort)
    if "reader" in check.found:
        base.found["reader"] = check.found["reader"]
    well = base.run(OF_BASE, out / "base") and well
    return check.run(LAST[device == "cpu" :], out) and well


def pack_files(folder: Path, given: argparse.Namespace, amounts: Amounts) -> None:
    settings = load_settings(given.config, given.set)
    write_pack(folder, settings, given.sources, amounts)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="*", help="read passages from these PubMed files")
    parser.add_argument("--pack", type=Path, help="write a pack and the wheels to this folder")
    parser.add_argument("--packed", type=Path, help="read the pack in this folder")
    parser.add_argument("--out", type=Path, default=Path("build/gpu-check"))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--python", default="3.12", help="download wheels for this version")
    parser.add_argument("--config", help="read the encoder's settings from this file")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args(arguments)
    if given.pack:
        pack_files(given.pack, given, FULL_AMOUNTS)
        download_wheels(given.pack / "wheels", given.python)
        size = sum(file.stat().st_size for file in given.pack.rglob("*.*") if file.is_file())
        print(f"{given.pack}: {size / 2**20:.1f} MiB")
        return 0
    on_cpu = given.device == "cpu"
    if not on_cpu and not (given.packed and torch.cuda.is_available()):
        parser.error("needs a GPU and --packed FOLDER, or --device cpu")
    amounts = TINY_AMOUNTS if on_cpu else FULL_AMOUNTS
    with tempfile.TemporaryDirectory() as scratch:
        packed = given.packed or Path(scratch) / "packed"
        if not given.packed:
            pack_files(packed, given, amounts)
        pack = read_pack(packed, Path(scratch), amounts)
        return 0 if check_all(pack, given.device, given.out, Path(scratch)) else 1


if __name__ == "__main__":
    sys.exit(main())
