"""A small index, built without Ray, and without a model unless an encoder is given."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster.index.layout import (
    codec_file,
    quantiser_file,
    segment_directory,
    shard_of,
    vocabulary_file,
)
from cluster.index.manifest import (
    FORMAT,
    EncoderEntry,
    Manifest,
    SegmentEntry,
    ShardEntry,
    SplitEntry,
    TokensEntry,
    artefact,
)
from cluster.index.tokens.codec import TokenCodec, learn_codec
from cluster.index.write_segment import SegmentPlan, write_segment
from cluster.models.embedded import Embedded
from cluster.records import Citation, Section
from cluster.storage.locations import Location
from cluster.storage.whole_files import write_atomically
from cluster.text.analysis import ANALYSER, Analyser, analyse
from pipelines.indexing.publish_index import publish_terms
from pipelines.indexing.shards.build_shard import train_quantiser
from pipelines.indexing.staging.embed_passages import embed_citations, split_citations
from pipelines.indexing.staging.split_passages import make_splitter
from tests.publish_manifest import publish
from tests.vocabulary_file import write_each

if TYPE_CHECKING:
    from cluster.models.encoder import Encoder

DIMENSIONS = 64
Encode = Callable[[Sequence[str]], np.ndarray]
Embed = Callable[..., Embedded]


def bag_of_words(texts: Sequence[str]) -> np.ndarray:
    """Encode texts as unit vectors of hashed terms, so that shared words give near vectors."""
    vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
    for row, text in enumerate(texts):
        for term in analyse(text):
            vectors[row, shard_of(int.from_bytes(term.encode()[:7], "big"), DIMENSIONS)] += 1
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(norms, 1e-9)


WORDS = [f"word{number}" for number in range(400)]


def code_tokens(codec: TokenCodec, tokens: np.ndarray) -> np.ndarray:
    """Encode token vectors as `TokenCodec` does, without torch."""
    pairs = zip(codec.bounds, codec.project(tokens).T, strict=True)
    places = np.stack([np.searchsorted(b, column) for b, column in pairs]).T.reshape(
        len(tokens), codec.bytes_a_token, -1
    )
    return (places << (codec.bits * np.arange(8 // codec.bits))).sum(-1).astype(np.uint8)


CODEC = learn_codec(bag_of_words(WORDS), DIMENSIONS, 2)
_CODES: dict[str, np.ndarray] = {}


def embed_words(texts: Sequence[str], _: object = None) -> Embedded:
    """Encode texts whose tokens are their terms; each term has its own vector."""
    terms = [analyse(text) for text in texts]
    new = sorted({term for of_text in terms for term in of_text} - _CODES.keys())
    if new:
        _CODES.update(zip(new, code_tokens(CODEC, bag_of_words(new)), strict=True))
    none = np.empty((0, CODEC.bytes_a_token), np.uint8)
    codes = [np.stack([_CODES[t] for t in of]) if of else none for of in terms]
    return Embedded(bag_of_words(texts), codes)


def embed_by(encoder: Encoder, texts: Sequence[str]) -> tuple[TokenCodec, Embed]:
    """Return a codec of the encoder's token vectors of `texts`, and its encoding with the codec."""
    codec = learn_codec(np.concatenate(encoder.token_vectors(texts)), DIMENSIONS, 2)
    compress = encoder.compress_by(codec, 1)
    return codec, lambda texts, _: encoder.embed(texts, compress)


def keep_codec(index: Location, codec: TokenCodec = CODEC) -> TokensEntry:
    """Write the codec below `index` and return its entry in the manifest."""
    data = codec.to_bytes()
    path = index / codec_file(hashlib.sha256(data).hexdigest())
    write_atomically(path, data)
    bits, components = codec.bits, len(codec.components)
    return TokensEntry(components=components, bits=bits, pool=1, codec=artefact(path))


def citation(pmid: int, abstract: str, title: str = "", **fields: object) -> Citation:
    sections = (Section("", abstract),) if abstract else ()
    return Citation(pmid=pmid, title=title, sections=sections, **fields)  # type: ignore[arg-type]


_MADE: dict[Any, tuple[Path, Manifest]] = {}
_SHARED = tempfile.TemporaryDirectory(prefix="small-indexes-")


def make_index(index: Path, citations: Sequence[Citation], **how: Any) -> Manifest:
    """Write and publish version v000001 of `citations` at `index`, which the test may change.

    The files are copied from the shared index, not linked, because tests damage them in place.
    """
    shared, manifest = shared_index(citations, **how)
    shutil.copytree(shared, index, dirs_exist_ok=True, symlinks=True)
    return manifest


def shared_index(citations: Sequence[Citation], **how: Any) -> tuple[Path, Manifest]:
    """Return an index of `citations` that all tests of this process read and none may change.

    It is written at the first call with these arguments; `how` is as for `write_index`.
    """
    made = (repr(list(citations)), tuple(sorted(how.items())))
    if made not in _MADE:
        folder = Path(tempfile.mkdtemp(dir=_SHARED.name))
        _MADE[made] = folder, write_index(folder, citations, **how)
    return _MADE[made]


def write_index(
    index: Path,
    citations: Sequence[Citation],
    *,
    shards: int = 2,
    vectors: str = "flat",
    hnsw_m: int = 16,
    gpus: float = 0,
    encoder: Encoder | None = None,
    analyser: Analyser = ANALYSER,
) -> Manifest:
    """Write and publish an index as `make_index` does, without sharing."""
    encode = encoder.encode if encoder else bag_of_words
    texts = [c.search_text for c in citations]
    codec, embed = embed_by(encoder, texts) if encoder else (CODEC, embed_words)
    scratch = index / "scratch"
    scratch.mkdir(parents=True)
    plan = SegmentPlan(
        id="segment",
        quantiser=scratch / "quantiser.faiss",
        dimensions=encode(["a"]).shape[1],
        bm25_over=("citations", "passages"),
        vectors=vectors,
        hnsw_m=hnsw_m,
        ef_construction=64,
        threads=2,
        gpus=gpus,
        analyser=analyser,
    )
    sample = encode(texts[:1000])
    train_quantiser(sample, plan.quantiser, plan)
    segments = []
    for shard in range(shards):
        mine = [c for c in citations if shard_of(c.pmid, shards) == shard]
        segments.append(_write_shard(index, shard, mine, plan, embed))
    manifest = _describe_index(index, segments, plan, codec)
    publish(index, manifest)
    return manifest


def _describe_index(
    index: Path, segments: Sequence[SegmentEntry], plan: SegmentPlan, codec: TokenCodec
) -> Manifest:
    """Write the files that the shards share and return the manifest."""
    vocabulary = index / vocabulary_file("v000001")
    vocabulary.parent.mkdir(parents=True, exist_ok=True)
    write_each([], vocabulary)
    quantiser = artefact(plan.quantiser)
    shutil.copy(plan.quantiser, index / quantiser_file(quantiser.sha256))
    return Manifest(
        format=FORMAT,
        version="v000001",
        created="2026-01-01T00:00:00+00:00",
        encoder=EncoderEntry(model="test", sha256="", dimensions=DIMENSIONS, max_tokens=256),
        split=SplitEntry(method="characters", size=512, overlap=64),
        analyser=plan.analyser.name,
        vectors=plan.vectors,
        bm25_over=plan.bm25_over,
        shards=tuple(ShardEntry(segments=(segment,)) for segment in segments),
        sources=(),
        failed_sources=(),
        last_source="",
        citations=sum(segment.citations for segment in segments),
        passages=sum(segment.passages for segment in segments),
        superseded=0,
        deleted=0,
        vocabulary=artefact(vocabulary),
        terms=publish_terms(index, "v000001", (), list(enumerate(segments))),
        quantiser=quantiser,
        tokens=keep_codec(index, codec),
    )


def _write_shard(
    index: Path, shard: int, citations: Sequence[Citation], plan: SegmentPlan, embed: Any
) -> SegmentEntry:
    """Write the only segment of a shard and return its entry in the manifest."""
    splitter = make_splitter("characters", 512, 64)
    table = embed_citations(split_citations(sorted(citations, key=_pmid), splitter), embed, None)
    batches = table.combine_chunks().to_batches()
    return write_segment(batches, index / segment_directory(shard, plan.id), plan)


def _pmid(citation: Citation) -> int:
    return citation.pmid
