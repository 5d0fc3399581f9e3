"""The steps that stage sources, as they run in the workers of a build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from cluster.settings.settings import EncoderSettings, SplitSettings
from cluster.storage.object_store import named_file
from cluster.storage.places import Place
from cluster.text.tokenise import make_tokeniser
from pipelines.build.embed_passages import embed_citations, embed_tokens, tokenise_citations
from pipelines.build.read_source import read_source
from pipelines.build.split_passages import make_splitter
from pipelines.build.stage_citations import DTYPE, write_part

if TYPE_CHECKING:
    from cluster.models.encoder import Encoder


def load_encoder(settings: EncoderSettings, model: Path) -> Encoder:
    """Load the encoder from the folder `model`; the first call imports torch, which is slow."""
    # Here, not above: the driver never needs torch, which takes seconds to import.
    from cluster.models.encoder import Encoder

    return Encoder.by(settings, model)


def read_source_rows(
    batch: pa.Table,
    split: SplitSettings,
    settings: EncoderSettings,
    model: Path,
    directories: dict[str, Place],
) -> Iterator[pa.Table]:
    """Rows (path, runs staged) in, tables in SPLIT_SCHEMA out."""
    offsets = None
    if split.method == "sections":
        # Only its tokeniser is used, so nothing is converted or measured.
        plain = settings.model_copy(update={"runtime": "torch"})
        offsets = load_encoder(plain, model).token_offsets
    splitter = make_splitter(split.method, split.size, split.overlap, offsets)
    for row in batch.to_pylist():
        path = named_file(row["path"])
        yield from read_source(path, directories[path.name], splitter, row["staged"].split())


def tokenise_passages(table: pa.Table, settings: EncoderSettings, model: Path) -> pa.Table:
    """Tables in SPLIT_SCHEMA in, in TOKENISED_SCHEMA out."""
    return tokenise_citations(table, make_tokeniser(model, settings.max_tokens))


class EmbedAndStage:
    """Tables in SPLIT_SCHEMA or TOKENISED_SCHEMA in, counts by source out.

    Vectors go straight to disk.
    """

    def __init__(
        self, settings: EncoderSettings, model: Path, directories: dict[str, Place], shards: int
    ) -> None:
        self._encoder = load_encoder(settings, model)
        if settings.gpus:
            self._encoder.check_tokeniser(make_tokeniser(model, settings.max_tokens))
        self._directories = directories
        self._shards = shards

    def __call__(self, batch: pa.Table) -> pa.Table:
        """Embed the batch, write it to disk by source, and return rows of (source, citations)."""
        if "tokens" in batch.column_names:
            embedded = embed_tokens(batch, self._encoder.encode_tokens)
        else:
            embedded = embed_citations(batch, self._encoder.encode)
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
