"""Learn the codec of token vectors before any passage is embedded.

Raw token vectors take about 90 kB per passage, so they are compressed as soon as they are computed,
which needs the codec first. It is learned from passages of sources spread over all given files,
because PubMed's oldest files hold only titles.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from cluster.errors import SourceError
from cluster.index.layout import codec_file
from cluster.index.tokens.codec import learn_codec
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from cluster.settings.stages.index import TokenVectorSettings
from cluster.storage.locations import Location
from cluster.storage.object_store import File
from cluster.storage.whole_files import write_atomically
from pipelines.indexing.staging.split_passages import Splitter, split_citation

if TYPE_CHECKING:
    from cluster.models.encoder import Encoder
    from cluster.models.model_cache.converted_encoder import ConvertedEncoder

SOURCES = 8
# The lowest number of training passages; more improve the codec only slightly.
FEWEST_PASSAGES = 100


def sample_passages(sources: Sequence[File], splitter: Splitter, limit: int) -> list[str]:
    """Return at most `limit` passages from the first records of up to SOURCES evenly spread files.

    Of a file that cannot be read, the passages before the fault are used; the build reports it.
    """
    places = np.unique(np.linspace(0, len(sources) - 1, min(SOURCES, len(sources))).astype(int))
    share = -(-limit // max(len(places), 1))
    found: list[str] = []
    for place in places:
        with suppress(SourceError, OSError):
            for _, text in zip(range(share), _texts(sources[place], splitter), strict=False):
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
