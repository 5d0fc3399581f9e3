"""Damage random files of an index and check that `verify` reports each damage.

    python -m tests.pipelines.verify.damages --seed 0 --count 500

A damage flips a byte, truncates, extends or deletes a file, or swaps two files. Prints each damage
that `verify` does not report; the exit code is 1 if there is one. A seed causes the same damages in
the same index.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.index.layout import CURRENT, LEASE, manifest_file, terms_file, vocabulary_file
from cluster.index.manifest import read_manifest
from cluster.storage.locations import list_files
from pipelines.verify.verify_index import verify_index
from tests.pipelines.histories import SmallIndex

KINDS = ("flip", "cut", "extend", "delete", "swap")


@dataclass(frozen=True)
class Damage:
    """Damage to one or two `files` (relative paths); `at` is a position from 0 to 1."""

    kind: str
    files: tuple[str, ...]
    at: float = 0.0
    bit: int = 0

    def change(self, data: bytes) -> bytes | None:
        """Return the damaged bytes, or None to remove the file."""
        place = int(self.at * len(data))
        if self.kind == "flip":
            return data[:place] + bytes([data[place] ^ 1 << self.bit]) + data[place + 1 :]
        if self.kind == "cut":
            return data[:place]
        return data + bytes([self.bit]) * (1 + place % 100) if self.kind == "extend" else None


def make_history(folder: Path) -> Path:
    """Build an index of three versions, with segments of a build and of an update."""
    index = SmallIndex(folder / "index", "sq8")
    index.build([[(pmid, f"aspirin and fever {pmid}") for pmid in range(1, 30)]])
    index.update([[(pmid, "heparin") for pmid in range(20, 40)] + [(3, None)]])
    index.update([[(50, "iron")]])
    shutil.rmtree(folder / "index/staging")
    return folder / "index"


def artefacts(index: Path) -> list[str]:
    """Return the files that the published version needs, without locks.

    Of earlier versions, only the manifest counts, because a pruned version has no manifest.
    """
    manifest = read_manifest(index)
    named = {*map(str, (manifest_file(manifest.version), vocabulary_file(manifest.version)))}
    named |= {CURRENT, LEASE, *(str(terms_file(entry.version)) for entry in manifest.terms)}
    shared = ("segments/", "versions/quantiser-", "versions/tokens-")
    found = [name for name in list_files(index) if name in named or name.startswith(shared)]
    return [name for name in found if not name.endswith(".lock")]


def draw(index: Path, dice: random.Random) -> Damage:
    """Draw a damage, first the kind of file, because segments have many more files."""
    files = artefacts(index)
    kinds: dict[str, list[str]] = {}
    for name in files:
        kinds.setdefault(Path(name).name.split("-")[0] if "/" in name else name, []).append(name)
    earlier = [str(manifest_file(e.version)) for e in read_manifest(index).history]
    kind = dice.choice(KINDS)
    chosen = dice.choice(kinds[dice.choice(sorted(kinds))])
    if kind in ("flip", "cut", "extend") and dice.random() < 0.1:
        chosen = dice.choice(earlier)
    size = (index / chosen).stat().st_size
    if kind == "swap":
        data = (index / chosen).read_bytes()
        others = [name for name in files if (index / name).read_bytes() != data]
        return Damage("swap", (chosen, dice.choice(others)))
    if size == 0 and kind != "delete":
        kind = "extend"
    return Damage(kind, (chosen,), dice.random(), dice.randrange(8))


@contextmanager
def damaged(index: Path, damage: Damage) -> Iterator[None]:
    """Apply the damage to `index` within the block, and undo it afterwards."""
    held = {name: (index / name).read_bytes() for name in damage.files}
    if damage.kind == "swap":
        first, second = damage.files
        (index / first).write_bytes(held[second])
        (index / second).write_bytes(held[first])
    else:
        (name,) = damage.files
        data = damage.change(held[name])
        (index / name).unlink() if data is None else (index / name).write_bytes(data)
    try:
        yield
    finally:
        for name, data in held.items():
            (index / name).write_bytes(data)


def unnamed(index: Path, seed: int, count: int) -> tuple[list[Damage], Counter[str]]:
    """Return the damages whose files `verify` does not name, and the number of each kind."""
    dice = random.Random(seed)
    missed, drawn = [], Counter[str]()
    for _ in range(count):
        damage = draw(index, dice)
        drawn[damage.kind] += 1
        with damaged(index, damage):
            places = {finding.place for finding in verify_index(index).findings}
        if places.isdisjoint(damage.files):
            missed.append(damage)
    return missed, drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="damages-") as folder:
        index = make_history(Path(folder))
        missed, drawn = unnamed(index, given.seed, given.count)
        clean = verify_index(index)
    print(f"seed {given.seed}: {dict(drawn)}, {len(missed)} not named", *missed, sep="\n")
    print(f"the sound index: {len(clean.findings)} findings")
    sys.exit(1 if missed or clean.findings else 0)


if __name__ == "__main__":
    main()
