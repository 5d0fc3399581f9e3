"""The live contents of an index, and a reader that opens it repeatedly while a job runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cluster.index.manifest import Manifest, read_manifest
from cluster.index.read_shard import ShardReader
from tests.end_to_end.waiting import meanwhile

LOOK_EVERY_S, OPEN_EVERY_S = 0.01, 0.3


@dataclass(frozen=True)
class Contents:
    """Live citations by PMID: a digest of each record with its passages, and its vectors."""

    records: dict[int, str]
    vectors: dict[int, np.ndarray]

    def differs(self, other: Contents) -> str:
        """Return a description of the first difference, or an empty string."""
        if self.records != other.records:
            named = {p for p, d in self.records.items() ^ other.records.items()}
            return f"{len(named)} records differ, such as PMID {min(named)}"
        for pmid, vectors in self.vectors.items():
            # The last bits of a vector depend on the other texts of its batch.
            if not np.allclose(vectors, other.vectors[pmid], atol=2e-3):
                return f"the vectors of PMID {pmid} differ"
        return ""


def contents(index: Path, manifest: Manifest) -> Contents:
    records: dict[int, str] = {}
    vectors: dict[int, np.ndarray] = {}
    for segment in (s for reader in open_shards(index, manifest) for s in reader.segments):
        held, rows = segment.records, segment.live_rows()
        for row, record in zip(rows, held.table(rows).to_pylist(), strict=True):
            content = json.dumps(
                [record, held.span_lists(np.array([row])).to_pylist()], sort_keys=True, default=str
            )
            records[record["pmid"]] = hashlib.sha256(content.encode()).hexdigest()
            passages = held.passages_of(np.asarray([row]))
            vectors[record["pmid"]] = segment.vectors(passages)
    return Contents(records, vectors)


def open_shards(index: Path, manifest: Manifest) -> list[ShardReader]:
    """Readers of every shard, with every checksum verified."""
    return [
        ShardReader(index, number, entry, ef_search=8, exact_below=0)
        for number, entry in enumerate(manifest.shards)
    ]


def files_open_in(pid: int) -> set[str]:
    """Return the files that the process and its children have open or mapped."""
    found: set[str] = set()
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for process in (Path(f"/proc/{pid}"), *(Path(f"/proc/{child}") for child in children)):
            found.update(os.readlink(link) for link in (process / "fd").iterdir())
            found.update(line.split()[-1] for line in (process / "maps").read_text().splitlines())
    return found


@dataclass
class Watch:
    """Open the published version repeatedly while a job changes the index.

    `versions` maps each version that was read to its number of live citations. `problems` are
    observations that no reader may make. `paths` are all files and folders that existed meanwhile.
    """

    index: Path
    versions: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    opened: int = 0

    def read(self, over: threading.Event) -> None:
        while not over.wait(OPEN_EVERY_S):
            try:
                manifest = read_manifest(self.index)
                readers = open_shards(self.index, manifest)
                live = sum(len(s.live_rows()) for r in readers for s in r.segments)
            except Exception as error:
                self.problems.append(f"{type(error).__name__}: {error}")
                continue
            self.opened += 1
            if live != manifest.citations:
                self.problems.append(f"{live} live citations in {manifest.version}")
            if self.versions.setdefault(manifest.version, live) != live:
                self.problems.append(f"{manifest.version} was {self.versions[manifest.version]}")

    def look(self, over: threading.Event) -> None:
        while not over.wait(LOOK_EVERY_S):
            for folder, _, files in os.walk(self.index):
                self.paths.add(folder)
                self.paths.update(f"{folder}/{name}" for name in files)


@contextmanager
def watching(index: Path) -> Iterator[Watch]:
    """Watch `index` until the block ends."""
    watch = Watch(index)
    with meanwhile(watch.read, watch.look):
        yield watch
