"""Build indexes from source files with the build's functions, without Ray or a model."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from cluster.index.layout import SEGMENT as SEGMENT_FILE
from cluster.index.layout import segment_directory, shard_of
from cluster.index.lease import hold_lease
from cluster.index.manifest import Manifest, SegmentEntry, ShardEntry, read_manifest
from cluster.index.put_segment import entry_text
from cluster.index.write_segment import artefacts_of
from cluster.settings.settings import load_settings
from pipelines.indexing.publish_index import publish_build
from pipelines.indexing.shards.build_shard import build_shard, train_quantiser
from pipelines.indexing.staging.embed_passages import embed_citations
from pipelines.indexing.staging.read_source import read_source
from pipelines.indexing.staging.stage_citations import (
    ParsedSource,
    read_account,
    staged_ranges,
    write_part,
)
from pipelines.verify.note_findings import Finding
from pipelines.verify.verify_index import Verification
from tests.cluster.pubmed_sets import DOCTYPE, abstract, article
from tests.pipelines.histories import ENCODER
from tests.pipelines.indexing.shards.test_build_shard import plan_in
from tests.pipelines.staging import SPLITTER
from tests.publish_manifest import publish
from tests.small_index import DIMENSIONS, embed_words, keep_codec

SHARDS = 2
PMIDS = range(1, 41)
HERE = [pmid for pmid in PMIDS if shard_of(pmid, SHARDS) == 0]
SEGMENT = segment_directory(0, "first")


def record(pmid: int, text: str) -> str:
    inner = abstract(f"<AbstractText>{text}</AbstractText>")
    return article(f'<PMID Version="1">{pmid}</PMID>', inner)


def deletion(*pmids: int) -> str:
    inside = "".join(f'<PMID Version="1">{pmid}</PMID>' for pmid in pmids)
    return f"<DeleteCitation>{inside}</DeleteCitation>"


def write_source(path: Path, *records: str) -> Path:
    """Write a gzipped file of `records` with an .md5 file in NCBI's format."""
    xml = f"{DOCTYPE}<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(xml.encode(), mtime=0))
    digest = hashlib.md5(path.read_bytes()).hexdigest()
    path.with_name(f"{path.name}.md5").write_text(f"MD5({path.name})= {digest}\n")
    return path


def build_from(index: Path, sources: Sequence[Path]) -> Manifest:
    """Build and publish `sources` in order; the staging is in another folder."""
    build = index.parent / f"{index.name}-build"
    directories = [build / path.name for path in sources]
    for path, directory in zip(sources, directories, strict=True):
        directory.mkdir(parents=True)
        for table in read_source(path, directory, SPLITTER):
            write_part(embed_citations(table, embed_words, None), directory, SHARDS)
    accounts = [account for d in directories if (account := read_account(d))]
    return publish_staged(index, directories, accounts, "''")


def publish_staged(
    index: Path, directories: Sequence[Path], accounts: Sequence[ParsedSource], concepts: str
) -> Manifest:
    """Build and publish the staged sources in `directories`."""
    vocabulary = [f"vocabulary.concepts={concepts}", "vocabulary.lexicons=[]"]
    settings = load_settings(overrides=["split.size=512", *vocabulary])
    plan = plan_in(directories[0].parent, segment="first")
    train_quantiser(staged_ranges(directories, DIMENSIONS)[0], plan.quantiser, plan)
    shards = [build_shard(index, s, directories, plan) for s in range(SHARDS)]
    codec = keep_codec(index)
    with hold_lease(index, "build") as lease:
        return publish_build(lease, plan.quantiser, codec, settings, ENCODER, accounts, shards)


def replace_segments(index: Path, *entries: SegmentEntry) -> Manifest:
    """Publish other segments of shard 0 with unchanged counts."""
    manifest = read_manifest(index)
    for entry in entries:
        (index / segment_directory(0, entry.id) / SEGMENT_FILE).write_bytes(entry_text(entry))
    shards = (ShardEntry(segments=entries), *manifest.shards[1:])
    changed = manifest.model_copy(update={"shards": shards})
    publish(index, changed)
    return changed


def reseal(index: Path) -> None:
    """Publish the present files of the segment of shard 0 with unchanged counts."""
    update_entry(index, artefacts=artefacts_of(index / SEGMENT))


def read_table(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        return ipc.open_file(file).read_all()


def write_table(path: Path, table: pa.Table) -> None:
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def kinds(found: Verification) -> set[str]:
    return {finding.kind for finding in found.findings}


def only(found: Verification) -> Finding:
    (finding,) = found.findings
    return finding


def flip_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def update_manifest(index: Path, **fields: Any) -> None:
    publish(index, read_manifest(index).model_copy(update=fields))


def update_entry(index: Path, **fields: Any) -> None:
    entry = read_manifest(index).shards[0].segments[0]
    replace_segments(index, entry.model_copy(update=fields))


def alter(index: Path, file: str, change: Callable[[pa.Table], pa.Table]) -> pa.Table:
    """Rewrite an Arrow file of shard 0, publish its new checksum, and return its old rows."""
    path = index / SEGMENT / file
    held = read_table(path)
    write_table(path, change(held))
    reseal(index)
    return held


def replaced(table: pa.Table, column: str, change: Callable[[Any], Any]) -> pa.Table:
    place = table.column_names.index(column)
    values = change(table.column(column).to_numpy().copy())
    return table.set_column(place, table.field(place), pa.array(values))


def put(row: int, value: int) -> Callable[[Any], Any]:
    def change(values: Any) -> Any:
        values[row] = value
        return values

    return change
