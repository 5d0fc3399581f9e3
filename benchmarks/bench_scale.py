"""Measure how builds and updates grow with the size of the corpus.

    python -m benchmarks.bench_scale FOLDER [--sizes 100000 300000 1000000] [--shards 4]
        [--update 30000]

Runs the real jobs on Ray over generated citations with a stand-in encoder (`stand_in.py`), so that
the encoder's speed does not count. Prints for each size: seconds and citations per second of each
stage, CPU core seconds, bytes by artefact, and peak anonymous memory in MiB by kind of process.
Then applies an update of `--update` records (two thirds new, the others revisions and deletions)
and compares it with a build of those records alone. Sources and indexes stay in FOLDER, and a
second run reuses them; use another FOLDER for another `--update`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.smallest import parse_arguments
from cluster.index.manifest import read_manifest
from cluster.records import Citation, Deletion
from pipelines.sample.generate_citations import generate_citations, write_generated
from pipelines.sample.render_articles import render_articles
from planning.measure.watch_processes import watched_tree

SMALLEST = "FOLDER --sizes 300 --shards 2 --update 60"

UPDATE = 30_000


def sources_of(folder: Path, size: int) -> Path:
    target = folder / f"sources-{size}"
    if not target.is_dir():
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        write_generated(partial, size)
        partial.rename(target)
    return target


def update_file(folder: Path, size: int, records: int) -> Path:
    """Write an update of a corpus of `size`: new citations, revisions and deletions."""
    path = folder / f"update-{size}" / "pubmed26n9001.xml.gz"
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        render_articles(_update_records(size, records), path)
    return path


def _update_records(size: int, records: int) -> Iterator[Citation | Deletion]:
    """Yield `records`: 20 parts of new citations, 9 of revisions, 1 of deletions."""
    added, revised_count = records * 20 // 30, records * 9 // 30
    changed = records - added
    new = generate_citations(added, first_pmid=size + 1)
    # Revisions have evenly spaced known PMIDs and, from another seed, new texts.
    step = size // changed
    old = range(1, size, step)[:changed]
    revised = (c for p in old[:revised_count] for c in generate_citations(1, 1, p))
    deleted = (Deletion(p, "", 0) for p in old[revised_count:])
    return chain(new, revised, deleted)


def run_job(job: str, shards: int, index: Path, source: Path) -> dict[str, Any]:
    """Run `scale_job` and return its figures with the memory peaks.

    The result is stored next to the index and reused by a later run.
    """
    kept = index.with_name(f"{index.name}-{job}.json")
    if kept.is_file():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    if job == "build":
        shutil.rmtree(index, ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.scale_job", job, str(shards)]
    process = subprocess.Popen(
        [*command, str(index), str(source)], stdout=subprocess.PIPE, text=True
    )
    with watched_tree(process.pid) as tree:
        output, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    peaks = {role: round(size / 2**20) for role, size in tree.peaks.items()}
    cores = round(tree.core_seconds)
    found = {**json.loads(output.splitlines()[-1]), "peaks": peaks, "core_seconds": cores}
    kept.write_text(json.dumps(found))
    return found


def print_job(name: str, found: dict[str, Any]) -> None:
    count, stages = found["citations"], found["stages"]
    rates = ", ".join(f"{s} {t:.0f} s ({count / max(t, 1e-3):,.0f}/s)" for s, t in stages.items())
    # Results stored by older versions lack the core seconds.
    cores = found.get("core_seconds", "unknown")
    print(f"{name}: {count:,} citations in {found['seconds']:.0f} s; {rates}", flush=True)
    print(f"  core seconds, whatever else the machine did meanwhile: {cores}", flush=True)
    peaks = ", ".join(f"{role} {mb:,.0f}" for role, mb in found["peaks"].items())
    print(
        f"  peak MiB of the largest process of each kind, of Ray's own in all: {peaks}", flush=True
    )


def print_bytes(index: Path) -> None:
    manifest = read_manifest(index)
    sizes: Counter[str] = Counter({"vocabulary": manifest.vocabulary.bytes})
    for segment in manifest.segments:
        for name, artefact in segment.artefacts.items():
            sizes[name.split("/")[0]] += artefact.bytes
    each = ", ".join(f"{n} {b / manifest.citations:,.0f}" for n, b in sizes.most_common())
    print(f"  bytes a citation: {each}; in all {sizes.total() / 1e6:,.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument(
        "--update", type=int, default=UPDATE, help="records of the update (default 30000)"
    )
    arguments = parse_arguments(parser, SMALLEST)
    folder, shards = arguments.folder, arguments.shards
    folder.mkdir(parents=True, exist_ok=True)
    for size in arguments.sizes:
        index = folder / f"index-{size}"
        print_job(f"build {size:,}", run_job("build", shards, index, sources_of(folder, size)))
        print_bytes(index)
        alone = folder / f"alone-{size}"
        new = update_file(folder, size, arguments.update)
        built = run_job("build", shards, alone, new)
        print_job(f"  those {arguments.update:,} alone", built)
        updated = run_job("update", shards, index, new)
        print_job(f"  {arguments.update:,} into it", updated)
        print(f"  update / build alone: {updated['seconds'] / built['seconds']:.2f}", flush=True)


if __name__ == "__main__":
    main()
