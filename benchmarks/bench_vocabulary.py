"""Measure the cost of publishing a vocabulary: merge counts, assemble concepts, write the file.

    python -m benchmarks.bench_vocabulary [TERMS...]

Prints, for about that many terms (default 100,000, 1,000,000 and 4,000,000), the CPU time of each
step in seconds and in microseconds per term, the peak memory in MiB of its process, and the
sizes of its input and output. The input is one large table of counts and eight tables of a
hundredth of its size, as after eight updates.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.smallest import parse_arguments
from cluster.text.vocabulary import write_concepts
from pipelines.vocabulary.assemble_vocabulary import assemble_concepts
from pipelines.vocabulary.mine_vocabulary import (
    COUNTS_SCHEMA,
    TermCounts,
    merge_counts,
    read_counts,
    sum_counts,
    write_counts,
)

SMALLEST = "2000"

UPDATES = 8
WORDS = 60_000
TEXT = pa.large_string()
BLANK = pa.scalar("", TEXT)
KINDS = pa.array(["mesh", "chemical", "keyword", "abbreviation"], TEXT)
SHARES = (0.005, 0.02, 0.475, 0.5)
T = TypeVar("T")


def make_words() -> Any:
    """Return invented words of 4 to 11 letters without plurals."""
    letters = np.random.default_rng(0).choice(list("abcdefghijklmnopqrtuvwxyz"), (WORDS, 11))
    sizes = np.random.default_rng(1).integers(4, 12, WORDS)
    words = ("".join(row[:size]) for row, size in zip(letters, sizes, strict=True))
    return pa.array(words, TEXT)


def make_names(names: int, words: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return names of one to four words drawn by Zipf's law, and their short forms.

    A short form has two letters and the initials of the further words; a third end in a digit.
    """
    size = rng.integers(1, 5, names)
    parts = []
    for place in range(4):
        drawn = words.take(pa.array(rng.zipf(1.1, names) % len(words)))
        parts.append(pc.if_else(pa.array(size > place), drawn, BLANK))
    initials = [pc.utf8_slice_codeunits(p, 0, 1 + (n == 0)) for n, p in enumerate(parts)]
    name = pc.utf8_trim_whitespace(pc.binary_join_element_wise(*parts, pa.scalar(" ", TEXT)))
    digit = pc.if_else(pa.array(rng.random(names) < 0.3), pa.scalar("2", TEXT), BLANK)
    return name, pc.utf8_upper(pc.binary_join_element_wise(*initials, digit, BLANK))


def make_counts(terms: int, seed: int, words: Any) -> TermCounts:
    """Return about `terms` counts, half of keywords and half of definitions.

    Most of them have one citation. The shares of distinct names, of short forms to keep and of
    single citations resemble those of the BioASQ corpus.
    """
    rng = np.random.default_rng(seed)
    names, shorts = make_names(terms * 2 // 3, words, rng)
    picked = pa.array(rng.integers(0, len(names), terms))
    key, short = names.take(picked), shorts.take(picked)
    kind = rng.choice(len(KINDS), terms, p=SHARES)
    columns = [
        KINDS.take(pa.array(kind)),
        key,
        pc.if_else(pa.array(kind < 2), key, BLANK),
        pc.if_else(pa.array(rng.random(terms) < 0.3), pc.utf8_capitalize(key), key),
        pc.if_else(pa.array(kind == 3), short, BLANK),
        np.minimum(rng.zipf(2.4, terms), 100_000),
    ]
    return TermCounts(sum_counts([pa.table(columns, schema=COUNTS_SCHEMA)]))


def make_files(terms: int, folder: Path) -> list[Path]:
    words = make_words()
    paths = []
    for part in range(1 + UPDATES):
        size = terms if part == 0 else terms // 100
        paths.append(folder / f"{part}.arrow")
        write_counts(make_counts(size, part, words), paths[-1])
    return paths


def timed(step: str, work: Callable[[], T], terms: int = 0) -> T:
    begun = time.process_time()
    result = work()
    seconds = time.process_time() - begun
    rows = terms or len(result)  # type: ignore[arg-type]
    print(f"  {step:9} {seconds:8.2f} s  {seconds / rows * 1e6:6.2f} us a term", flush=True)
    return result


def publish(paths: Sequence[Path], out: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    counts = timed("merge", lambda: merge_counts(map(read_counts, paths)))
    terms = len(counts)
    concepts, keys = timed("assemble", lambda: assemble_concepts(counts, ()), terms)
    timed("write", lambda: write_concepts(concepts, keys, out), terms)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    read = sum(path.stat().st_size for path in paths) / 2**20
    print(
        f"  {terms:,} terms, {len(concepts):,} concepts; counts {read:.0f} MiB (mapped), "
        f"file {out.stat().st_size / 2**20:.0f} MiB, peak memory {peak:.0f} MiB"
    )


def alone(work: Callable[..., T], *arguments: Any) -> T:
    """Run `work` in a separate process, so that its memory is measured separately."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("terms", type=int, nargs="*", default=[100_000, 1_000_000, 4_000_000])
    for size in parse_arguments(parser, SMALLEST).terms:
        print(f"{size:,} rows and {UPDATES} updates of a hundredth")
        with tempfile.TemporaryDirectory() as name:
            paths = alone(make_files, size, Path(name))
            alone(publish, paths, Path(name) / "vocabulary.arrow")


if __name__ == "__main__":
    main()
