"""Compare an index build with a plain SentenceTransformer loop over the same passages.

    python -m benchmarks.bench_index SOURCE... [--set key=value]

Prints the passages per second of the build and of loops in bfloat16 and float32, their ratios, and
the largest resident memory in MB of any process of the build.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.smallest import parse_arguments
from cluster.models.adapters import model_folder
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from cluster.settings.settings import load_settings
from cluster.storage.object_store import File
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.indexing.staging.split_passages import make_splitter, split_citation

SMALLEST = "SOURCES"

BARE_PASSAGES = 1500


def passages_of(sources: Sequence[File]) -> list[str]:
    splitter = make_splitter("characters", 512, 64)
    records = (r for path in sources for r in read_records(path))
    citations = (r for r in records if isinstance(r, Citation))
    return [p.text for c in citations for p in split_citation(c, splitter)]


def bare_rate(texts: list[str], dtype: torch.dtype) -> float:
    """Return the passages per second of a plain `SentenceTransformer.encode` call."""
    settings = load_settings()
    path = model_folder(settings.encoder)
    model = SentenceTransformer(str(path), device="cpu", model_kwargs={"dtype": dtype})
    model.encode(texts[:32])
    begun = time.perf_counter()
    model.encode(texts, batch_size=32)
    return len(texts) / (time.perf_counter() - begun)


def build(sources: list[str], overrides: list[str], index: Path) -> tuple[dict[str, float], float]:
    """Build an index. Return (summary of the build, peak memory in MB of its largest process)."""
    command = [sys.executable, "-m", "commands.cli", "index", "build", *sources, "--json"]
    for override in [*overrides, f"index.path={index}"]:
        command += ["--set", override]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    parent = psutil.Process(process.pid)
    peak = 0
    while process.poll() is None:
        for child in [parent, *parent.children(recursive=True)]:
            try:
                peak = max(peak, child.memory_info().rss)
            except psutil.Error:
                continue
        time.sleep(0.5)
    summary: dict[str, float] = json.loads(process.communicate()[0])
    return summary, peak / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    arguments = parse_arguments(parser, SMALLEST)
    texts = passages_of(find_sources(arguments.sources))
    sample = texts[:: max(len(texts) // BARE_PASSAGES, 1)]
    before = bare_rate(sample, torch.bfloat16)
    plain = bare_rate(sample, torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        summary, peak = build(arguments.sources, arguments.overrides, Path(folder) / "index")
    after = bare_rate(sample, torch.bfloat16)
    bare = (before + after) / 2
    rate = len(texts) / summary["seconds"]
    print(f"bare bf16 loop: {bare:.1f} passages/s (before {before:.1f}, after {after:.1f})")
    print(f"bare float32 loop: {plain:.1f} passages/s")
    print(f"index build, all in: {rate:.1f} passages/s, {summary['seconds']} s")
    print(f"ratio to bf16 {rate / bare:.2f}, to float32 {rate / plain:.2f}")
    print(f"largest process: {peak:.0f} MB")


if __name__ == "__main__":
    main()
