"""What is live in an index, and a reader that opens it over and over while a job runs."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cluster.index.manifest import Manifest, read_manifest
from cluster.index.read_shard import ShardReader
from pipelines.build.stage_citations import positions_in

LOOK_EVERY_S, OPEN_EVERY_S = 0.01, 0.3


@dataclass(frozen=True)
class Contents:
    """What is live: a digest of each record with its passages, and its vectors, by PMID."""

    records: dict[int, str]
    vectors: dict[int, np.ndarray]

    def differs(self, other: Contents) -> str:
        """What is different, or nothing."""
        if self.records != other.records:
            named = {p for p, d in self.records.items() ^ other.records.items()}
            return f"{len(named)} records differ, such as PMID {min(named)}"
        for pmid, vectors in self.vectors.items():
            # An encoder's last bits depend on what it was given in one batch.
            if not np.allclose(vectors, other.vectors[pmid], atol=2e-3):
                return f"the vectors of PMID {pmid} differ"
        return ""


def contents(index: Path, manifest: Manifest) -> Contents:
    records: dict[int, str] = {}
    vectors: dict[int, np.ndarray] = {}
    for segment in (s for reader in open_shards(index, manifest) for s in reader.segments):
        held, rows = segment.records, segment.live_rows()
        for row, record in zip(rows, held.table(rows).to_pylist(), strict=True):
            told = json.dumps(
                [record, held.span_lists(np.array([row])).to_pylist()], sort_keys=True, default=str
            )
            records[record["pmid"]] = hashlib.sha256(told.encode()).hexdigest()
            passages = held.passages_of(np.asarray([row]))
            vectors[record["pmid"]] = segment.vectors(passages)
    return Contents(records, vectors)


def open_shards(index: Path, manifest: Manifest) -> list[ShardReader]:
    """Readers of every shard, with every checksum verified."""
    return [
        ShardReader(index, number, entry, ef_search=8, exact_below=0)
        for number, entry in enumerate(manifest.shards)
    ]


class Watch:
    """Opens the published version over and over, and notes each part that is staged.

    `versions` maps what was seen of each version to its live citations; `problems` are
    what a reader must never see.
    """

    def __init__(self, index: Path) -> None:
        self._index = index
        self._over = threading.Event()
        self.versions: dict[str, int] = {}
        self.problems: list[str] = []
        self.paths: set[str] = set()
        self.parts: dict[tuple[str, int], int] = {}
        self.opened = 0
        self._threads = [threading.Thread(target=t) for t in (self._read, self._look)]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _read(self) -> None:
        while not self._over.wait(OPEN_EVERY_S):
            try:
                manifest = read_manifest(self._index)
                readers = open_shards(self._index, manifest)
                live = sum(len(s.live_rows()) for r in readers for s in r.segments)
            except Exception as error:
                self.problems.append(f"{type(error).__name__}: {error}")
                continue
            self.opened += 1
            if live != manifest.citations:
                self.problems.append(f"{live} live citations in {manifest.version}")
            if self.versions.setdefault(manifest.version, live) != live:
                self.problems.append(f"{manifest.version} was {self.versions[manifest.version]}")

    def _look(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            for folder, _, files in os.walk(self._index):
                self.paths.add(folder)
                self.paths.update(f"{folder}/{name}" for name in files)
                for name in files:
                    if name.startswith("part-"):
                        self._note_part(f"{folder}/{name}")

    def _note_part(self, path: str) -> None:
        try:
            inode = os.stat(path).st_ino
        except FileNotFoundError:
            return
        runs = Path(path).stem.removeprefix("part-").split("+")
        self.parts[path, inode] = len(positions_in(runs))

    @property
    def staged_twice(self) -> int:
        """Citations that were embedded and staged more often than once."""
        distinct: dict[str, set[int]] = {}
        for path, _ in self.parts:
            runs = Path(path).stem.removeprefix("part-").split("+")
            held = distinct.setdefault(str(Path(path).parent), set())
            held.update(positions_in(runs).tolist())
        return sum(self.parts.values()) - sum(map(len, distinct.values()))
