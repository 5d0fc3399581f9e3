"""Random damages to every kind of file of an index, and whether `verify` names each.

    python -m tests.pipelines.verify.damages --seed 0 --count 500

A damage is a flipped byte, a cut, an extension, a deletion, or two files that change places.
Prints each that is not named; exit code 1 if there is one. A seed gives the same damages to the
same index.
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

from cluster.index.layout import CURRENT, manifest_file, terms_file, vocabulary_file
from cluster.index.manifest import read_manifest
from cluster.storage.places import list_files
from pipelines.verify.verify_index import Verification, verify_index
from tests.pipelines.histories import SmallIndex

KINDS = ("flip", "cut", "extend", "delete", "swap")


@dataclass(frozen=True)
class Damage:
    """`files` are one or two paths relative to the index, `at` a share of the file's bytes."""

    kind: str
    files: tuple[str, ...]
    at: float = 0.0
    bit: int = 0

    def change(self, data: bytes) -> bytes | None:
        """The damaged bytes; None where the file goes."""
        place = int(self.at * len(data))
        if self.kind == "flip":
            return data[:place] + bytes([data[place] ^ 1 << self.bit]) + data[place + 1 :]
        if self.kind == "cut":
            return data[:place]
        return data + bytes([self.bit]) * (1 + place % 100) if self.kind == "extend" else None


def make_history(folder: Path) -> Path:
    """An index of three versions, with segments of a build and of an update."""
    index = SmallIndex(folder / "index", "sq8")
    index.build([[(pmid, f"aspirin and fever {pmid}") for pmid in range(1, 30)]])
    index.update([[(pmid, "heparin") for pmid in range(20, 40)] + [(3, None)]])
    index.update([[(50, "iron")]])
    shutil.rmtree(folder / "index/staging")
    return folder / "index"


def artefacts(index: Path) -> list[str]:
    """The files that the published version stands on; locks hold nothing.

    Of earlier versions that is the manifest, without which an earlier version was pruned.
    """
    manifest = read_manifest(index)
    told = {*map(str, (manifest_file(manifest.version), vocabulary_file(manifest.version)))}
    told |= {str(terms_file(entry.version)) for entry in manifest.terms}
    found = []
    for name in list_files(index):
        kept = name.startswith(("segments/", "versions/quantiser-", "versions/tokens-"))
        if name in told or kept or name in (CURRENT, "LEASE"):
            found.append(name)
    return [name for name in found if not name.endswith(".lock")]


def draw(index: Path, dice: random.Random) -> Damage:
    """A damage to a file of any kind: kinds of files first, as segments have so many more."""
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
    """`index` with the damage within the block, and as it was after it."""
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


def names(found: Verification, damage: Damage) -> bool:
    """Whether a finding is about the damaged file; of two that changed places, about either."""
    places = [finding.place for finding in found.findings]
    return any(name in places for name in damage.files)


def unnamed(index: Path, seed: int, count: int) -> tuple[list[Damage], Counter[str]]:
    """The damages that `verify` does not name, and how many there were of each kind."""
    dice = random.Random(seed)
    missed, drawn = [], Counter[str]()
    for _ in range(count):
        damage = draw(index, dice)
        drawn[damage.kind] += 1
        with damaged(index, damage):
            found = verify_index(index)
        if not names(found, damage):
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
