"""Damaged files by seed: none may hang, use much memory, or change an undamaged record.

    python -m tests.hostile.fuzz_xml --seed 0 --files 10000

Each file is a valid set of records with a few damages: flipped, removed, doubled and moved bytes,
misplaced pieces of XML, and endless texts and nestings. Prints the seed of each file that takes
over 2 s, lets the process grow by over 50 MiB, raises anything but a SourceError, or in which one
damaged byte changes more than its own record; the exit code is 1 if there is one.
`--only SEED` repeats one file.
"""

from __future__ import annotations

import argparse
import gzip
import math
import random
import sys
import time
from collections import Counter
from pathlib import Path

from cluster.pubmed.skipped_records import SKIP_REASONS
from cluster.records import Rejected
from tests.hostile.hostile_sets import SOUND, outcome

MOST_SECONDS = 2.0
MOST_MIB = 50
# Files after which memory no longer grows, because caches are full.
WARM_UP = 50
PIECES = (
    b"<PMID>", b"</PMID>", b"<PubmedArticle>", b"</PubmedArticle>", b"<!--", b"-->", b"<![CDATA[",
    b"]]>", b"<?x ?>", b"&nbsp;", b"&#0;", b"&#xD800;", b"&#99999999999;",
    b"\xef\xbf\xbf", b'" a="', b"\xff", b"\xed\xa0\x80", b"\0",
    b"<PubmedArticleSet>", b"</PubmedArticleSet>", b"<DeleteCitation>", b"</DeleteCitation>",
    b"<DeleteCitation><PMID Version='2'>7</PMID></DeleteCitation>", b"<x:y/>", b"xmlns='u'",
    b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"&a;",
)  # fmt: skip
WHOLE = outcome(SOUND, strict=False)[0]


def _flip(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]


def _cut(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data))
    return data[:at] + data[at + dice.choice([1, 5, 400, 40_000]) :]


def _insert(data: bytes, dice: random.Random) -> bytes:
    at, piece = dice.randrange(len(data)), dice.choice(PIECES)
    return data[:at] + piece * dice.choice([1, 1, 1, 300]) + data[at:]


def _swell(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data))
    piece = dice.choice([b"x", b" ", b"<i>", b"<a/>", b"&lt;", b"<PMID>1</PMID>", b"\xff"])
    return data[:at] + piece * (dice.choice([10, 1000, 100_000]) // len(piece)) + data[at:]


def _move(data: bytes, dice: random.Random) -> bytes:
    begin, length = dice.randrange(len(data)), dice.choice([10, 100, 3000])
    piece, rest = data[begin : begin + length], data[:begin] + data[begin + length :]
    at = dice.randrange(len(rest) + 1)
    return rest[:at] + piece + rest[at:]


DAMAGES = (_flip, _flip, _cut, _insert, _insert, _swell, _move)


def draw(seed: int) -> tuple[bytes, bool]:
    """Return a damaged file, and whether only one byte was changed."""
    dice = random.Random(seed)
    if dice.random() < 0.3:
        return _flip(SOUND, dice), True
    data = SOUND
    for _ in range(dice.choice([1, 1, 2, 5])):
        data = dice.choice(DAMAGES)(data, dice) or b"<"
    if dice.random() < 0.1:
        packed = gzip.compress(data, 1, mtime=0)
        return (_flip(packed[10:], dice) if dice.random() < 0.5 else packed), False
    return data, False


def fault_of(seed: int) -> tuple[str, str]:
    """Return how the file of `seed` was read, and the fault in reading it ("" if none)."""
    data, is_one_byte = draw(seed)
    begun = time.thread_time()
    records, sentence = outcome(data, strict=False)
    seconds = time.thread_time() - begun
    aside = any(isinstance(r, Rejected) and r.reason in SKIP_REASONS for r in records)
    ended = "refused" if sentence else "set aside" if aside else "whole"
    if seconds > MOST_SECONDS:
        return ended, f"it took {seconds:.1f} s"
    if is_one_byte and not sentence:
        changed = sum(a != b for a, b in zip(records, WHOLE, strict=False))
        if len(records) != len(WHOLE) or changed > 1:
            return ended, f"{changed} records changed, {len(records)} of {len(WHOLE)} are there"
    return ended, ""


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1024**2


def run(seeds: range) -> tuple[list[str], Counter[str]]:
    """Return the faults of the files of `seeds`, and the number of files by result."""
    before, faults, ended = math.inf, list[str](), Counter[str]()
    for number, seed in enumerate(seeds):
        if number == WARM_UP:
            before = resident_mib()
        try:
            how, fault = fault_of(seed)
            ended[how] += 1
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        if (grown := resident_mib() - before) > MOST_MIB:
            fault = fault or f"the process grew by {grown:.0f} MiB"
            before = resident_mib()
        if fault:
            faults.append(f"seed {seed}: {fault}")
    return faults, ended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="First seed; one file a seed.")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--only", type=int, default=None, help="Repeat the file of this seed.")
    given = parser.parse_args()
    first, count = (given.seed, given.files) if given.only is None else (given.only, 1)
    begun = time.monotonic()
    faults, ended = run(range(first, first + count))
    seconds = time.monotonic() - begun
    print(f"{count} files in {seconds:.0f} s: {len(faults)} faults", *faults, sep="\n")
    print(f"{dict(ended)}; {resident_mib():.0f} MiB in use at the end")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
