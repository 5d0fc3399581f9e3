"""Build and update indexes without Ray or a model, and compute their expected content.

A history is a list of files, and a file is a list of events in order. An event is a PMID with the
text of a new record, or None for a deletion. A text may begin with a version, such as "v2 aspirin";
"-v2" deletes only that version.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from cluster.index.layout import shard_of
from cluster.index.lease import hold_lease
from cluster.index.manifest import EncoderEntry, Manifest
from cluster.index.read_shard import ShardReader
from cluster.index.write_segment import SegmentPlan
from cluster.records import Citation, Deletion
from cluster.settings.settings import load_settings
from cluster.storage.locations import Location
from cluster.storage.whole_files import write_atomically
from pipelines.indexing.publish_index import publish_build, publish_compaction, publish_update
from pipelines.indexing.shards.build_shard import build_shard, train_quantiser
from pipelines.indexing.shards.compact_shard import compact_shard, merge_tail, tail_to_merge
from pipelines.indexing.shards.update_shard import ShardUpdate, update_shard
from pipelines.indexing.sources.late_sources import SourceOrder
from pipelines.indexing.staging.embed_passages import embed_citations, split_citations
from pipelines.indexing.staging.plan_build import (
    added_segment_plan,
    quantiser_of,
    segment_id,
    segment_plan,
)
from pipelines.indexing.staging.stage_citations import (
    ParsedSource,
    read_account,
    staged_positions,
    write_account,
    write_part,
)
from tests.pipelines.staging import SPLITTER, account
from tests.small_index import CODEC, DIMENSIONS, bag_of_words, citation, embed_words, keep_codec

# Only one BM25 side, which needs the same kinds of requests to a store but half as many objects.
SMALL = ("index.bm25_over=[citations]",)
Event = tuple[int, str | None]
File = Sequence[Event]
ENCODER = EncoderEntry(model="test", sha256="", dimensions=DIMENSIONS, max_tokens=256)
# The newest version before the first build.
NOT_BUILT = cast(Manifest, None)


def version_of(text: str | None) -> int:
    """Return the version of a record or of a deletion; a deletion of version 0 deletes all."""
    found = re.match(r"-?v(\d)", text or "")
    return int(found[1]) if found else int(text is not None)


def deletes(text: str | None) -> bool:
    return text is None or text.startswith("-")


def record(pmid: int, text: str, source: str, position: int) -> Citation:
    """Return a record whose keyword, title and filter fields identify it."""
    fields = {
        "version": version_of(text),
        "keywords": (text,),
        "source": source,
        "position": position,
        "year": 2000 + pmid % 5 if text else None,
        "journal": f"Journal of {text}",
        "languages": ("eng", "fre") if "aspirin" in text else ("fre",),
        "publication_types": ("Retracted Publication",) if "warfarin" in text else (),
    }
    return citation(pmid, f"{text} in trial {pmid}.", text, **fields)


def name_of(number: int) -> str:
    return f"pubmed26n{number:04d}.xml.gz"


def live(files: Sequence[File]) -> dict[int, Citation]:
    """Return the live records of a history, by PMID, from a sequential reading."""
    held: dict[int, Citation] = {}
    for number, events in enumerate(files, 1):
        for position, (pmid, text) in enumerate(events):
            known = held[pmid].version if pmid in held else 0
            if text is not None and not deletes(text):
                if version_of(text) >= known:
                    held[pmid] = record(pmid, text, name_of(number), position)
            elif version_of(text) in (0, known):
                held.pop(pmid, None)
    return held


def lengths(manifest: Manifest, over: str) -> list[tuple[int, int]]:
    """Return the live BM25 units of each shard and their number of terms."""
    return [(shard.units(over), shard.live_terms(over)) for shard in manifest.shards]


@dataclass
class SmallIndex:
    """Index to which files are applied in successive runs."""

    path: Location
    vectors: str = "flat"
    shards: int = 2
    applied: int = 0
    manifest: Manifest = NOT_BUILT
    overrides: Sequence[str] = ()

    def __post_init__(self) -> None:
        over = [f"index.vectors={self.vectors}", f"index.shards={self.shards}"]
        threads = ["index.build_threads=1", "index.hnsw_m=8", "vocabulary.concepts=''"]
        self.settings = load_settings(overrides=[*over, *threads, *self.overrides])

    def stage(self, files: Sequence[File]) -> tuple[list[Location], list[ParsedSource]]:
        """Stage the next files, numbered from `applied + 1`, unless they are staged."""
        places, accounts = [], []
        for number, events in enumerate(files, self.applied + 1):
            name = name_of(number)
            directory = self.staged_at(number, events)
            rows = [
                record(p, t, name, n)
                for n, (p, t) in enumerate(events)
                if t is not None and not deletes(t)
            ]
            gone = [
                Deletion(p, name, n, version_of(t)) for n, (p, t) in enumerate(events) if deletes(t)
            ]
            digest = hashlib.sha256(repr(events).encode()).hexdigest()
            staged = account(name, len(rows), read=len(events), deletions=len(gone), sha256=digest)
            whole = len(staged_positions(directory)) == len(rows)
            if read_account(directory) != staged or not whole:
                table = embed_citations(split_citations(rows, SPLITTER), embed_words, None)
                write_part(table, directory, self.shards)
                write_account(directory, staged, gone)
            places.append(directory)
            accounts.append(staged)
        return places, accounts

    def staged_at(self, number: int, events: File) -> Location:
        """Return the staging folder of file `number` in its present state."""
        state = zlib.crc32(repr(events).encode())
        return self.path / "staging" / f"{name_of(number)}-{len(events)}-{state}"

    def build(self, files: Sequence[File]) -> Manifest:
        with hold_lease(self.path, "build") as lease:
            places, accounts = self.stage(files)
            quantiser = self.path / "staging" / "quantiser.faiss"
            name = segment_id("build", self.settings.index, accounts)
            plan = segment_plan(name, quantiser, DIMENSIONS, self.settings.index)
            train_quantiser(bag_of_words(["aspirin", "warfarin", "heparin"]), quantiser, plan)
            built = [build_shard(self.path, s, places, plan) for s in range(self.shards)]
            codec = keep_codec(self.path)
            self.manifest = publish_build(
                lease, quantiser, codec, self.settings, ENCODER, accounts, built, "built"
            )
        self.applied += len(files)
        return self.manifest

    def update(
        self,
        files: Sequence[File],
        *,
        crash_after: int | None = None,
        order: SourceOrder | None = None,
    ) -> Manifest:
        """Update; a crash after `crash_after` shards leaves the next segment half-written.

        `order` is the order of late files.
        """
        with hold_lease(self.path, "update") as lease:
            places, accounts = self.stage(files)
            name = segment_id("build", self.settings.index, accounts, self.manifest)
            quantiser = quantiser_of(self.path, self.manifest)
            plan = added_segment_plan(name, quantiser, self.manifest, self.settings.index)
            updates = [
                update_shard(self.path, number, shard, places, plan, order)
                for number, shard in enumerate(self.manifest.shards[:crash_after])
            ]
            if crash_after is not None:
                if crash_after < self.shards:
                    half = self.path / f"segments/{crash_after:04d}/.{name}.partial"
                    write_atomically(half / "citations.arrow", b"half of it")
                return self.manifest
            vocabulary = self.settings.vocabulary
            merged = self._with_merged_tails(updates, plan)
            self.manifest = publish_update(lease, merged, vocabulary, accounts, updates)
        self.applied += len(files)
        return self.manifest

    def _with_merged_tails(
        self, updates: Sequence[ShardUpdate | None], plan: SegmentPlan
    ) -> Manifest:
        shards = list(self.manifest.shards)
        for number, update in enumerate(updates):
            if update:
                sizes = [s.citations for s in shards[number].segments]
                count = tail_to_merge(sizes, update.entry.citations)
                shards[number] = merge_tail(self.path, number, shards[number], count, plan, CODEC)
        return self.manifest.model_copy(update={"shards": tuple(shards)})

    def compact(self, *, crash_after: int | None = None) -> Manifest:
        with hold_lease(self.path, "compact") as lease:
            quantiser = quantiser_of(self.path, self.manifest)
            plan = added_segment_plan("", quantiser, self.manifest, self.settings.index)
            entries = [
                compact_shard(self.path, number, shard, plan, CODEC)
                for number, shard in enumerate(self.manifest.shards[:crash_after])
            ]
            if crash_after is None:
                self.manifest = publish_compaction(lease, self.manifest, entries)
        return self.manifest

    def readers(self, manifest: Manifest | None = None) -> list[ShardReader]:
        """Return exact readers of the shards of `manifest` (default: the newest)."""
        return [
            ShardReader(self.path, n, entry, ef_search=32, exact_below=10**9, codec=CODEC)
            for n, entry in enumerate((manifest or self.manifest).shards)
        ]

    def citations(self, pmids: Sequence[int], manifest: Manifest | None = None) -> dict:
        """Return the citation and passages of each live PMID of `pmids`."""
        readers = self.readers(manifest)
        found = [readers[shard_of(p, self.shards)].fetch([p], None) for p in pmids]
        return {f.citation.pmid: f for part in found for f in part}
