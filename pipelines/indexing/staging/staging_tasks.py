"""The steps of staging, which run in the workers of a build.

The encoder is given by its settings and the checksum `weights`, and each node has its own copy.
Raw token vectors take about 90 kB per passage, so they are compressed as soon as they are computed.
Their codec is therefore learned before any passage is embedded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cluster.errors import SourceError
from cluster.index.layout import codec_file
from cluster.index.tokens.codec import TokenCodec, learn_codec
from cluster.models.adapters import folder_on_this_node
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from cluster.settings.stages.encoder import EncoderSettings
from cluster.settings.stages.index import SplitSettings, TokenVectorSettings
from cluster.storage.locations import Location
from cluster.storage.object_store import File, named_file
from cluster.storage.whole_files import write_atomically
from cluster.text.tokenise import Tokenise, make_tokeniser
from pipelines.indexing.staging.embed_passages import (
    embed_citations,
    embed_tokens,
    tokenise_citations,
)
from pipelines.indexing.staging.read_source import BYTES_PER_CITATION, read_source
from pipelines.indexing.staging.split_passages import Splitter, make_splitter, split_citation
from pipelines.indexing.staging.stage_citations import DTYPE, write_part

if TYPE_CHECKING:
    from cluster.models.encoder import Encoder
    from cluster.models.model_cache.converted_encoder import ConvertedEncoder


def load_encoder(settings: EncoderSettings, weights: str) -> Encoder:
    """Load the encoder; the first call imports torch, which is slow."""
    # Imported here because the driver does not need torch, which takes seconds to import.
    from cluster.models.encoder import Encoder

    return Encoder.by(settings, folder_on_this_node(settings, weights))


def find_encoder(settings: EncoderSettings, weights: str) -> Encoder | ConvertedEncoder:
    """Return the cached encoder, which does not need torch, if there is one, else load it."""
    from cluster.models.model_cache.converted_encoder import find_encoder as find_entry

    found = find_entry(settings, folder_on_this_node(settings, weights))
    return found or load_encoder(settings, weights)


def load_splitter(split: SplitSettings, settings: EncoderSettings, weights: str) -> Splitter:
    """Return the splitter of the settings; `sections` loads the encoder, which is slow."""
    offsets = None
    if split.method == "sections":
        # Only the tokeniser is used, so the model is neither converted nor measured.
        plain = settings.model_copy(update={"runtime": "torch"})
        offsets = load_encoder(plain, weights).token_offsets
    return make_splitter(split.method, split.size, split.overlap, offsets)


def learn_codec_of(
    sources: Sequence[File],
    index: Location,
    split: SplitSettings,
    settings: EncoderSettings,
    coded: TokenVectorSettings,
    weights: str,
) -> Location:
    """Learn the codec of the token vectors of `sources`, store it in `index` and return its path.

    At most a tenth of the passages is embedded for it, but at least FEWEST_PASSAGES.
    """
    expected = sum(source.stat().st_size for source in sources) // BYTES_PER_CITATION
    limit = min(coded.training_passages, max(expected // 10, FEWEST_PASSAGES))
    texts = sample_passages(sources, load_splitter(split, settings, weights), limit)
    return keep_codec(index, texts, find_encoder(settings, weights), coded)


def read_source_rows(
    batch: pa.Table,
    split: SplitSettings,
    settings: EncoderSettings,
    weights: str,
    directories: dict[str, Location],
) -> Iterator[pa.Table]:
    """Turn rows of (path, staged runs) into tables in SPLIT_SCHEMA."""
    splitter = load_splitter(split, settings, weights)
    for row in batch.to_pylist():
        path = named_file(row["path"])
        yield from read_source(path, directories[path.name], splitter, row["staged"].split())


@dataclass(frozen=True, slots=True)
class CodedTokens:
    """The codec of stored token vectors, and how many tokens are pooled into one vector."""

    codec: TokenCodec
    pool: int


def load_tokeniser(settings: EncoderSettings, weights: str) -> Tokenise:
    """Return the tokeniser of the encoder, whose files this node has or fetches."""
    return make_tokeniser(folder_on_this_node(settings, weights), settings.max_tokens)


class TokenisePassages:
    """Turns tables in SPLIT_SCHEMA into tables in TOKENISED_SCHEMA, in one thread."""

    def __init__(self, settings: EncoderSettings, weights: str) -> None:
        # Otherwise the tokeniser starts as many threads as the node has cores.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        self._tokenise = load_tokeniser(settings, weights)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Add the token ids of the passages."""
        return tokenise_citations(table, self._tokenise)


class EmbedAndStage:
    """Embeds tables in SPLIT_SCHEMA or TOKENISED_SCHEMA, writes them and returns counts by source.

    Vectors are written to disk directly.
    """

    def __init__(
        self,
        settings: EncoderSettings,
        weights: str,
        directories: dict[str, Location],
        shards: int,
        tokens: CodedTokens | None,
    ) -> None:
        self._encoder: Any
        if settings.gpus or (tokens is not None and tokens.pool > 1):
            # On GPUs the tables are already tokenised, and pooling tokens needs torch.
            self._encoder = whole = load_encoder(settings, weights)
            if settings.gpus:
                whole.check_tokeniser(load_tokeniser(settings, weights))
        else:
            self._encoder = find_encoder(settings, weights)
        self._compress: Any = None
        if tokens is not None:
            self._compress = self._encoder.compress_by(tokens.codec, tokens.pool)
        self._directories = directories
        self._shards = shards

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Embed the batch, write it to disk by source, and return rows of (source, citations)."""
        if "tokens" in batch.column_names:
            embedded = embed_tokens(batch, self._encoder.embed_tokens, self._compress)
        else:
            embedded = embed_citations(batch, self._encoder.embed, self._compress)
        embedded = embedded.replace_schema_metadata({DTYPE: self._encoder.dtype})
        names = embedded.column("source")
        counts = []
        for name in names.unique().to_pylist():
            rows = embedded.filter(pa.compute.equal(names, name))
            write_part(rows, self._directories[name], self._shards)
            counts.append({"source": name, "citations": rows.num_rows})
        return pa.Table.from_pylist(
            counts, schema=pa.schema([("source", pa.string()), ("citations", pa.int64())])
        )


SOURCES = 8
# The lowest number of training passages; more improve the codec only slightly.
FEWEST_PASSAGES = 100


def sample_passages(sources: Sequence[File], splitter: Splitter, limit: int) -> list[str]:
    """Return at most `limit` passages from the first records of up to SOURCES evenly spread files.

    The files are spread because PubMed's oldest files hold only titles. Of a file that cannot be
    read, the passages before the fault are used; the build reports it.
    """
    places = np.unique(np.linspace(0, len(sources) - 1, min(SOURCES, len(sources))).astype(int))
    share = -(-limit // max(len(places), 1))
    found: list[str] = []
    for position in places:
        with suppress(SourceError, OSError):
            for _, text in zip(range(share), _texts(sources[position], splitter), strict=False):
                found.append(text)
    return found[:limit]


def _texts(source: File, splitter: Splitter) -> Iterator[str]:
    for record in read_records(source, strict=False):
        if isinstance(record, Citation):
            yield from (passage.text for passage in split_citation(record, splitter))


def keep_codec(
    index: Location,
    texts: Sequence[str],
    encoder: Encoder | ConvertedEncoder,
    settings: TokenVectorSettings,
) -> Location:
    """Learn the codec of `encoder`'s token vectors of `texts` and store it in `index`."""
    # Sources without any text are refused later, with a better error message.
    vectors = encoder.token_vectors(texts or ["PubMed"])
    codec = learn_codec(np.concatenate(vectors), settings.components, settings.bits)
    data = codec.to_bytes()
    path = index / codec_file(hashlib.sha256(data).hexdigest())
    write_atomically(path, data)
    return path
