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
- passages per second of an index build's embedding step by batch size, with and without token
  codes, for the packed encoder and for a random one of BERT's base size,
- pairs per second of a reader with random weights, which is as fast as a trained one.

`coefficients.json` has the figures for `citeray plan`, `measurements.json` all figures; the folder
`base` has those of the base size. The exit status is 1 if a measurement failed, or if the vectors
differ too much for an index. The third command runs everything at a tiny size for tests.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.gpu_pack import Amounts, Pack, download_wheels, read_pack, write_pack
from benchmarks.random_models import Shape, base_pack, random_reader
from cluster.models.embedded import Embedded
from cluster.models.encoder import Encoder
from cluster.models.model_cache.cache_entries import MIN_COSINE
from cluster.models.openvino_runtime import PROBE_QUESTIONS
from cluster.settings.settings import load_settings
from cluster.text.tokenise import make_tokeniser

BATCHES = (64, 128, 256, 512, 1024)
# An index build gives each encoder on a GPU two tables at once (pipelines.indexing.staging).
TABLES = 2
# Names of measurements. PLAIN and CODED are also names of coefficients.
PLAIN, CODED = "encoder_documents_per_s", "encoder_documents_per_s_with_tokens"
OF_BASE = ("lengths", PLAIN, CODED)
ALL = (*OF_BASE, "agreement", "reader")
FULL_AMOUNTS = Amounts(passages=8192, expected=256, learning=500, articles=64)
TINY_AMOUNTS = Amounts(passages=24, expected=8, learning=32, articles=2)


@dataclass(frozen=True)
class Effort:
    """`seconds` of each rate, and `base`, the shape of large models."""

    seconds: float
    base: Shape


FULL = Effort(seconds=3.0, base=Shape(12, 768, 3072))
TINY = Effort(seconds=0.0, base=Shape(1, 32, 64))


def rate(work: Callable[[], int], threads: int, seconds: float) -> float:
    """Return the units per second of `work`, which returns the number of units of one call.

    Each thread calls `work` until `seconds` have passed, at least once. All work on the GPU must
    be complete when `work` returns.
    """
    begun = time.perf_counter()

    def repeat(_: int) -> int:
        done = work()
        while time.perf_counter() - begun < seconds:
            done += work()
        return done

    with ThreadPoolExecutor(threads) as pool:
        done = sum(pool.map(repeat, range(threads)))
    return done / (time.perf_counter() - begun)


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
        tokenise = make_tokeniser(pack.encoder, pack.max_tokens)
        self.encoder.check_tokeniser(tokenise)
        self.tokens = tokenise(pack.passages)
        self.compress = self.encoder.compress_by(pack.codec, 1)

    @property
    def name(self) -> str:
        return "cpu" if self.device == "cpu" else str(torch.cuda.get_device_name())

    @property
    def memory(self) -> int | None:
        """Memory of the GPU in bytes, or None for the CPU."""
        if self.device == "cpu":
            return None
        return int(torch.cuda.get_device_properties(self.device).total_memory)

    @property
    def steps(self) -> dict[str, Callable[[], Any]]:
        return {
            "lengths": self.lengths,
            "agreement": self.agreement,
            PLAIN: partial(self.encoder_rates, coded=False),
            CODED: partial(self.encoder_rates, coded=True),
            "reader": self.reader_rate,
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

    def embed(self, batch: int, coded: bool) -> int:
        self.encoder.batch_size = batch
        self.encoder.embed_tokens(self.tokens, self.compress if coded else None)
        return len(self.tokens)

    def encoder_rates(self, coded: bool) -> dict[str, float]:
        """Return the passages per second by batch size, with tokens from memory."""
        found = {}
        for batch in BATCHES:
            run = partial(self.embed, batch, coded)
            run()
            found[str(batch)] = rate(run, TABLES, self.effort.seconds)
        return found

    def reader_rate(self) -> float:
        """Return the pairs of a question and an article that the reader reads per second."""
        texts, layers = self.pack.articles, self.effort.base.layers
        reader = random_reader(self.pack.encoder, layers, len(texts), self.device)
        read = partial(reader.read, PROBE_QUESTIONS[1], texts)
        return rate(lambda: len(read()), 1, self.effort.seconds)

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
        measurements = {"device": self.name, **versions, **self.found, "failed": self.failed}
        (out / "measurements.json").write_text(json.dumps(measurements, indent=1) + "\n")
        if {"lengths", PLAIN, CODED, "reader"} <= self.found.keys():
            figures = {
                "kind": "gpu-coefficients",
                "device": self.name,
                **{name: self.found[name] for name in (PLAIN, CODED)},
                "cross_encoder_pairs_per_s": self.found["reader"],
                "mean_tokens_per_document": self.found["lengths"]["mean_tokens_per_document"],
                "memory_bytes": self.memory,
            }
            (out / "coefficients.json").write_text(json.dumps(figures, indent=1) + "\n")


def check_all(pack: Pack, device: str, out: Path, scratch: Path) -> bool:
    """Measure the encoder of the pack and one with BERT's base size."""
    effort = TINY if device == "cpu" else FULL
    check = Check(pack, device, effort)
    well = check.run(ALL, out)
    base = Check(base_pack(pack, effort.base, scratch), device, effort)
    if "reader" in check.found:
        base.found["reader"] = check.found["reader"]
    return base.run(OF_BASE, out / "base") and well


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
