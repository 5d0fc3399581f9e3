"""The manifest of an index version, which `cluster.index.lease` publishes.

Readers open only the files that a manifest names, and reject unknown formats.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cluster.errors import IndexFormatError
from cluster.index.layout import CURRENT, manifest_file
from cluster.problem_words import problem_words
from cluster.storage.locations import Location
from cluster.storage.object_store import File
from cluster.storage.sealed_text import unseal
from cluster.storage.whole_files import sha256_of, write_atomically

# Format 2 had no token vectors, filterable columns or corpus-wide term statistics.
FORMAT = 3


def _is_below(path: str) -> str:
    """Reject a path that leads out of the index folder, or out of a local copy of it."""
    if {"", ".", ".."} & set(path.split("/")) or "\\" in path or not path.isprintable():
        raise ValueError(f"{path!r} is outside the index")
    return path


FilePath = Annotated[str, AfterValidator(_is_below)]
Name = Annotated[FilePath, Field(pattern="^[^/]+$")]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class Entry(BaseModel):
    """Immutable base class of the manifest's records; rejects unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Artefact(Entry):
    """Size in bytes and SHA-256 of one file of the index."""

    bytes: Count
    sha256: Sha256


class DeadEntry(Entry):
    """Counts of what a segment replaces or deletes in older segments, as in `SegmentEntry`."""

    citations: int = 0
    passages: int = 0
    terms: Mapping[str, int] = {}


class SegmentEntry(Entry):
    """One immutable segment; `artefacts` maps a file's path inside it to its checksum.

    `terms` is the total number of BM25 terms of all citations and of all passages, from
    which BM25 takes the mean lengths.
    """

    id: Name
    citations: Count
    passages: Count
    terms: Mapping[Name, Count]
    artefacts: Mapping[FilePath, Artefact]
    dead: DeadEntry = DeadEntry()

    def live_terms(self, over: str) -> int:
        """Return the net number of BM25 terms that this segment adds to the live units."""
        return self.terms.get(over, 0) - self.dead.terms.get(over, 0)


class FormatOnly(BaseModel):
    """The format number of a manifest of any format."""

    format: int | str | None = None


class Pointer(Entry):
    """Content of CURRENT: the published version, its manifest's checksum, and the fencing token
    of the writer that published it (cluster/index/lease.py).
    """

    version: Name
    sha256: Sha256
    token: Count = 0


class ShardEntry(Entry):
    """The segments of one shard, oldest first."""

    segments: tuple[SegmentEntry, ...]

    def units(self, over: str) -> int:
        """Return the number of live documents for BM25 `over` "citations" or "passages"."""
        if over == "citations":
            return sum(s.citations - s.dead.citations for s in self.segments)
        return sum(s.passages - s.dead.passages for s in self.segments)

    def live_terms(self, over: str) -> int:
        """Return the total number of BM25 terms in these documents."""
        return sum(segment.live_terms(over) for segment in self.segments)


class SourceEntry(Entry):
    """Record counts of one source file: read = kept + deletions + dropped.

    `modified_ns` is the file's modification time in nanoseconds; 0 if it was not recorded.
    """

    name: str
    bytes: int
    sha256: str
    read: int
    kept: int
    deletions: int
    dropped: Mapping[str, int]
    modified_ns: int = 0


class EncoderEntry(Entry):
    """The encoder of the vectors; `sha256` covers the weights of the model and any adapter.

    `dtype` is the number type of the computation; "" if it was not recorded.
    """

    model: str
    adapter: str = ""
    sha256: str
    dimensions: int
    max_tokens: int
    dtype: str = ""


class TokensEntry(Entry):
    """Settings of the token vectors of passages, and the codec that all segments share."""

    components: int
    bits: int
    pool: int
    codec: Artefact


class TermsEntry(Entry):
    """Term counts added by `version`; the counts of a manifest are the sum of its entries."""

    version: Name
    counts: Artefact


class SplitEntry(Entry):
    """How passages were split; sizes are in characters, or in tokens if split by section."""

    method: str
    size: int
    overlap: int


class VersionEntry(Entry):
    """An earlier version and the SHA-256 of its manifest. Its files may have been pruned."""

    version: Name
    sha256: Sha256
    created: str
    last_source: str


class Manifest(Entry):
    """The manifest of one version; `citations` and `passages` count live units only.

    `superseded` and `deleted` count records that a later one replaced or removed.
    `failed_sources` could not be read to the end and are left out completely.
    `quantiser` is the trained, empty FAISS index that all segments share. `tokens` is None if
    no token vectors are stored. `history` lists the earlier versions, oldest first. `build` is the
    digest of the settings and models of the build on which this version is based, and the first
    `build_sources` sources are its sources; "" if it was not recorded.
    """

    format: int
    version: Name
    created: str
    encoder: EncoderEntry
    split: SplitEntry
    analyser: str
    vectors: str
    bm25_over: tuple[str, ...]
    shards: tuple[ShardEntry, ...]
    sources: tuple[SourceEntry, ...]
    failed_sources: tuple[str, ...]
    last_source: str
    citations: int
    passages: int
    superseded: int
    deleted: int
    vocabulary: Artefact
    terms: tuple[TermsEntry, ...]
    quantiser: Artefact
    tokens: TokensEntry | None
    history: tuple[VersionEntry, ...] = ()
    build: str = ""
    build_sources: Count = 0

    @property
    def segments(self) -> tuple[SegmentEntry, ...]:
        """The segments of all shards."""
        return tuple(segment for shard in self.shards for segment in shard.segments)


def artefact(path: File) -> Artefact:
    """Return the size and SHA-256 of the file at `path`, which is read completely."""
    return Artefact(bytes=path.stat().st_size, sha256=sha256_of(path))


def check_artefact(path: Location, expected: Artefact) -> None:
    """Raise IndexFormatError unless `path` holds exactly the bytes of `expected`.

    Raises InputError if an object store cannot be read.
    """
    if not path.is_file():
        raise IndexFormatError(f"{path}: missing from the index; build it again or restore it")
    size = path.stat().st_size
    if size != expected.bytes:
        raise IndexFormatError(
            f"{path}: {size} bytes instead of the manifest's {expected.bytes}; build it again"
        )
    if sha256_of(path) != expected.sha256:
        raise IndexFormatError(f"{path}: its checksum differs from the manifest; build it again")


def write_manifest(index: Location, manifest: Manifest) -> str:
    """Write `manifest` without publishing it, and return its SHA-256.

    Raises StorageError if the index location is not writable.
    """
    data = manifest.model_dump_json(indent=1).encode()
    write_atomically(index / manifest_file(manifest.version), data)
    return hashlib.sha256(data).hexdigest()


def current_version(index: Location) -> str | None:
    """Return the name of the published version, or None if there is none."""
    pointer = current_pointer(index)
    return pointer["version"] if pointer else None


def current_pointer(index: Location) -> dict[str, str] | None:
    """Return the published `version` and its manifest's `sha256`, or None without CURRENT."""
    path = index / CURRENT
    try:
        pointer = read_pointer(path.read_bytes(), path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return {"version": pointer.version, "sha256": pointer.sha256}


def read_pointer(data: bytes, path: Location) -> Pointer:
    """Parse the bytes of CURRENT at `path`. Raises IndexFormatError if they are damaged."""
    try:
        return Pointer.model_validate(unseal(data))
    except ValueError as error:
        raise IndexFormatError(f"{path}: damaged; restore it or build the index again") from error


def read_manifest(index: Location, version: str | None = None) -> Manifest:
    """Return the published manifest, or the manifest of an earlier `version`.

    Raises IndexFormatError if there is no index or no such version, or if the manifest
    is damaged or has an unknown format.
    """
    pointer = current_pointer(index)
    if pointer is None:
        raise IndexFormatError(
            f"{index}: no index here; build one with `citeray index build SOURCE...` "
            "or name another with --set index.path=DIR"
        )
    manifest = _verified_manifest(index, pointer["version"], pointer["sha256"])
    if version is None or version == manifest.version:
        return manifest
    for entry in manifest.history:
        if entry.version == version:
            return _verified_manifest(index, version, entry.sha256)
    known = ", ".join([*(e.version for e in manifest.history), manifest.version])
    raise IndexFormatError(f"{index}: no version {version} here; there are: {known}")


def _verified_manifest(index: Location, version: str, sha256: str) -> Manifest:
    path = index / manifest_file(version)
    # Read the file once, so that the bytes that are checked are the bytes that are parsed.
    data = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise IndexFormatError(f"{path}: missing or changed since it was published; build again")
    try:
        known = FormatOnly.model_validate_json(data).format
    except ValidationError as error:
        raise IndexFormatError(
            f"{path}: not a manifest: {problem_words(error.errors()[0])}"
        ) from error
    if known != FORMAT:
        raise IndexFormatError(
            f"{path}: index format {known!r}, this CiteRay reads format {FORMAT}; build the index "
            "again from its sources with `citeray index build`, or use the version that wrote it"
        )
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        raise IndexFormatError(
            f"{path}: not a manifest: {problem_words(error.errors()[0])}"
        ) from error
