"""The manifest of an index version; cluster/index/lease.py has the switch that publishes it.

Readers trust only what a manifest names, and refuse a format they don't know.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cluster.errors import IndexFormatError
from cluster.index.layout import CURRENT, manifest_file
from cluster.storage.object_store import File
from cluster.storage.places import Place
from cluster.storage.sealed_text import unseal
from cluster.storage.whole_files import sha256_of, write_atomically

# Format 2 had no token vectors, no columns to filter by and no statistics of the whole.
FORMAT = 3


def _is_below(path: str) -> str:
    """A name becomes a path, here and of what is copied here from a store: it may not lead out."""
    if {"", ".", ".."} & set(path.split("/")) or "\\" in path or not path.isprintable():
        raise ValueError(f"{path!r} leaves the index")
    return path


FilePath = Annotated[str, AfterValidator(_is_below)]
Name = Annotated[FilePath, Field(pattern="^[^/]+$")]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class Entry(BaseModel):
    """Base of the manifest's records: immutable, unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Artefact(Entry):
    """Size in bytes and SHA-256 of one file of the index."""

    bytes: Count
    sha256: Sha256


class DeadEntry(Entry):
    """What a segment makes dead in older ones, counted as SegmentEntry counts its own."""

    citations: int = 0
    passages: int = 0
    terms: Mapping[str, int] = {}


class SegmentEntry(Entry):
    """One immutable segment; `artefacts` maps a file's path inside it to its checksum.

    `terms` counts the BM25 terms of all citations and of all passages, for the mean
    lengths that BM25 needs.
    """

    id: Name
    citations: Count
    passages: Count
    terms: Mapping[Name, Count]
    artefacts: Mapping[FilePath, Artefact]
    dead: DeadEntry = DeadEntry()

    def live_terms(self, over: str) -> int:
        """The terms that this segment adds to those of the version's live units."""
        return self.terms.get(over, 0) - self.dead.terms.get(over, 0)


class FormatOnly(BaseModel):
    """Of a manifest of any format, the number that says which it is."""

    format: int | str | None = None


class Pointer(Entry):
    """What CURRENT holds: the published version, its manifest's checksum, and the token of the
    writer that published it (cluster/index/lease.py).
    """

    version: Name
    sha256: Sha256
    token: Count = 0


class ShardEntry(Entry):
    """Segments from the oldest to the newest."""

    segments: tuple[SegmentEntry, ...]

    def units(self, over: str) -> int:
        """How many documents of this shard BM25 `over` "citations" or "passages" counts."""
        if over == "citations":
            return sum(s.citations - s.dead.citations for s in self.segments)
        return sum(s.passages - s.dead.passages for s in self.segments)

    def live_terms(self, over: str) -> int:
        """The BM25 terms of those documents in all."""
        return sum(segment.live_terms(over) for segment in self.segments)


class SourceEntry(Entry):
    """What one source file held: records read = kept + deletions + dropped.

    `modified_ns` is the file's time of modification; 0 where it was not recorded.
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
    """`sha256` is of the weights that made the vectors: the model's, or its and the adapter's.

    `dtype` is the number type that they were computed in; "" where it was not recorded.
    """

    model: str
    adapter: str = ""
    sha256: str
    dimensions: int
    max_tokens: int
    dtype: str = ""


class TokensEntry(Entry):
    """How the tokens of passages are coded, by the codec that all segments share."""

    components: int
    bits: int
    pool: int
    codec: Artefact


class TermsEntry(Entry):
    """Counts of terms that `version` wrote; a version's own are the sums of all that it names."""

    version: Name
    counts: Artefact


class SplitEntry(Entry):
    """How passages were cut: sizes in characters, or in tokens where cut by sections."""

    method: str
    size: int
    overlap: int


class VersionEntry(Entry):
    """An earlier version: `sha256` is its manifest's. Pruning may have removed its files."""

    version: Name
    sha256: Sha256
    created: str
    last_source: str


class Manifest(Entry):
    """`citations` and `passages` count what is live, whatever the segments still hold.

    `superseded` and `deleted` count records that a later one replaced or removed.
    `failed_sources` were asked for, could not be read to their end, and are left out whole.
    `quantiser` is the trained, empty FAISS index that all segments share. `tokens` is None where
    no token vectors are kept. `history` names the versions before this one, oldest first.
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

    @property
    def segments(self) -> tuple[SegmentEntry, ...]:
        """Those of all shards."""
        return tuple(segment for shard in self.shards for segment in shard.segments)


def artefact(path: File) -> Artefact:
    """Size and SHA-256 of the file at `path`, which is read to its end."""
    return Artefact(bytes=path.stat().st_size, sha256=sha256_of(path))


def check_artefact(path: Place, expected: Artefact) -> None:
    """Raise IndexFormatError unless `path` holds exactly the bytes of `expected`.

    Raises InputError where an object store cannot be read.
    """
    if not path.is_file():
        raise IndexFormatError(f"{path}: missing from the index; build it again or restore it")
    size = path.stat().st_size
    if size != expected.bytes:
        raise IndexFormatError(
            f"{path}: {size} bytes where the manifest says {expected.bytes}; build it again"
        )
    if sha256_of(path) != expected.sha256:
        raise IndexFormatError(f"{path}: its checksum is not the manifest's; build it again")


def write_manifest(index: Place, manifest: Manifest) -> str:
    """Write the file of `manifest`, which publishes nothing yet, and give its checksum.

    Raises StorageError where the index location may not be written.
    """
    data = manifest.model_dump_json(indent=1).encode()
    write_atomically(index / manifest_file(manifest.version), data)
    return hashlib.sha256(data).hexdigest()


def current_version(index: Place) -> str | None:
    """The published version's name, or None where nothing was published yet."""
    pointer = current_pointer(index)
    return pointer["version"] if pointer else None


def current_pointer(index: Place) -> dict[str, str] | None:
    """What CURRENT says, the published `version` and its manifest's `sha256`; None without it."""
    path = index / CURRENT
    try:
        pointer = read_pointer(path.read_bytes(), path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return {"version": pointer.version, "sha256": pointer.sha256}


def read_pointer(data: bytes, path: Place) -> Pointer:
    """What the bytes of CURRENT at `path` say; raises IndexFormatError where they are damaged."""
    try:
        return Pointer.model_validate(unseal(data))
    except ValueError as error:
        raise IndexFormatError(f"{path}: damaged; restore it or build the index again") from error


def read_manifest(index: Place, version: str | None = None) -> Manifest:
    """The published manifest, or that of an earlier `version` of it.

    Raises IndexFormatError when there is no index or no such version, when the manifest
    is damaged, or when its format is one that this code does not know.
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


def _verified_manifest(index: Place, version: str, sha256: str) -> Manifest:
    path = index / manifest_file(version)
    # Read once: what is checked is what is parsed.
    data = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise IndexFormatError(f"{path}: missing or changed since it was published; build again")
    try:
        known = FormatOnly.model_validate_json(data).format
    except ValidationError as error:
        raise IndexFormatError(f"{path}: not a manifest: {error.errors()[0]['msg']}") from error
    if known != FORMAT:
        raise IndexFormatError(
            f"{path}: index format {known!r}, this CiteRay reads format {FORMAT}; build the index "
            "again from its sources with `citeray index build`, or use the CiteRay that wrote it"
        )
    try:
        return Manifest.model_validate_json(data)
    except ValidationError as error:
        raise IndexFormatError(f"{path}: not a manifest: {error.errors()[0]['msg']}") from error
