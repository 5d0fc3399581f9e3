"""Measure how builds and updates grow with the size of the corpus.

    python -m benchmarks.bench_scale FOLDER [--sizes 100000 300000 1000000] [--shards 4]
        [--update 30000]

Runs the real jobs on Ray over generated citations with a stand-in encoder (`stand_in.py`), so that
the encoder's speed does not count. Prints for each size: seconds and citations per second of each
stage, CPU core seconds, bytes by artefact, and peak memory in MiB by kind of process.
Then applies an update of `--update` records (two thirds new, the others revisions and deletions)
and compares it with a build of those records alone. Sources and indexes stay in FOLDER, and a
second run reuses them; use another FOLDER for another `--update`.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.smallest import parse_arguments
from benchmarks.stand_in import build_by_stand_in, stand_in_settings
from cluster.records import Citation, Deletion
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.sample.generate_citations import generate_citations, write_generated
from pipelines.sample.render_articles import render_articles

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


def run_job(job: str, shards: int, index: Path, source: Path, citations: int) -> dict[str, Any]:
    """Build or update an index, and return figures for `citations` records of the source.

    The result is stored next to the index and reused by a later run.
    """
    kept = index.with_name(f"{index.name}-{job}.json")
    if kept.is_file():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    if job == "build":
        shutil.rmtree(index, ignore_errors=True)
    settings = stand_in_settings(index, shards)
    real = build_by_stand_in(find_sources([str(source)]), settings, update=job == "update")
    names = ("seconds", "bytes", "memory", "core_seconds")
    found = {"citations": citations, **{name: getattr(real, name) for name in names}}
    kept.write_text(json.dumps(found))
    return found


def print_job(name: str, found: dict[str, Any]) -> None:
    count, seconds = found["citations"], dict(found["seconds"])
    total = seconds.pop("all")
    rates = ", ".join(f"{s} {t:.0f} s ({count / max(t, 1e-3):,.0f}/s)" for s, t in seconds.items())
    print(f"{name}: {count:,} citations in {total:.0f} s; {rates}", flush=True)
    cores = round(found["core_seconds"])
    print(f"  core seconds, whatever else the machine did meanwhile: {cores}", flush=True)
    peaks = ", ".join(f"{role} {size >> 20:,}" for role, size in found["memory"].items())
    print(
        f"  peak MiB of the largest process of each kind, of Ray's own in all: {peaks}", flush=True
    )


def print_bytes(found: dict[str, Any]) -> None:
    sizes = Counter(found["bytes"])
    del sizes["staging"]
    each = ", ".join(f"{n} {b / found['citations']:,.0f}" for n, b in sizes.most_common())
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
        whole = run_job("build", shards, index, sources_of(folder, size), size)
        print_job(f"build {size:,}", whole)
        print_bytes(whole)
        alone, count = folder / f"alone-{size}", arguments.update
        new = update_file(folder, size, count)
        built = run_job("build", shards, alone, new, count)
        print_job(f"  those {count:,} alone", built)
        updated = run_job("update", shards, index, new, count)
        print_job(f"  {count:,} into it", updated)
        ratio = updated["seconds"]["all"] / built["seconds"]["all"]
        print(f"  update / build alone: {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
