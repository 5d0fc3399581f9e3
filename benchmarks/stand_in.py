"""Stand-in encoder for benchmarks of everything but the encoder: bags of words in 384 dimensions.

The vector of a passage is the mean of one random vector per word, drawn in 32 dimensions and
projected to 384 by one matrix. Passages that share words are near each other, as with a real
encoder. The encoder is not trained and takes about 20 microseconds per passage. The difficulty of a
nearest-neighbour search depends on the intrinsic dimension (Levina and Bickel 2004, k = 20; here of
16,698 passages): 7 for MiniLM's vectors of real abstracts, 22 for these vectors of generated
abstracts, and 54 for means of independent 384-dimensional vectors, which no encoder produces.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import ray.cloudpickle
import torch
from torch.nn.functional import embedding_bag, normalize

from cluster.models.embedded import NO_CODES, Embedded
from cluster.settings.settings import Settings, load_settings
from cluster.storage.object_store import File
from pipelines.indexing.staging import staging_tasks
from planning.measure.watch_build import BuildMeasured, build_here
from planning.measure.watch_processes import in_fresh_process

DIMENSIONS = 384
LATENT = 32
_ROWS = 1 << 16


class BagOfWords:
    """Encoder with the interface of `cluster.models.encoder.Encoder`.

    Returns unit vectors of shape (n, 384) in float32.
    """

    dtype = "float32"

    def __init__(self, seed: int = 0, threads: int = 1) -> None:
        torch.set_num_threads(threads)
        generator = torch.Generator().manual_seed(seed)
        latent = torch.randn(_ROWS, LATENT, generator=generator)
        self._table = latent @ torch.randn(LATENT, DIMENSIONS, generator=generator)
        self._rows: dict[str, int] = {}

    def _row(self, word: str) -> int:
        row = self._rows.get(word)
        if row is None:
            row = self._rows[word] = zlib.crc32(word.encode()) % _ROWS
        return row

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        bags = [[self._row(word) for word in text.split()] for text in texts]
        offsets = np.cumsum([0, *(len(bag) for bag in bags[:-1])])
        rows = torch.tensor([row for bag in bags for row in bag])
        means = embedding_bag(rows, self._table, torch.from_numpy(offsets), mode="mean")
        found: npt.NDArray[np.float32] = normalize(means, dim=-1).numpy()
        return found

    def embed(self, texts: Sequence[str], _: object) -> Embedded:
        """Embed texts as `encode` does, without token codes."""
        return Embedded(self.encode(texts), [NO_CODES] * len(texts))


def stand_in_settings(index: Path, shards: int) -> Settings:
    """Return the settings of a build into `index` with the stand-in encoder."""
    model = index.parent / "stand-in"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text('{"stand-in": "benchmarks.stand_in"}')
    overrides = {
        "index.path": index,
        "index.shards": shards,
        "encoder.model": f"file:{model.resolve()}",
        "vocabulary.concepts": "",
        # The stand-in has no token vectors.
        "index.token_vectors": "none",
    }
    return load_settings(None, [f"{name}={value}" for name, value in overrides.items()])


def build_by_stand_in(
    sources: Sequence[File], settings: Settings, *, update: bool = False
) -> BuildMeasured:
    """Run a real build or update on Ray in a new process; only the encoder is replaced."""
    return in_fresh_process(_build, sources, settings, update=update).result


def _build(sources: Sequence[File], settings: Settings, *, update: bool) -> BuildMeasured:
    staging_tasks.load_encoder = lambda _settings, _model: BagOfWords()  # type: ignore[assignment,return-value]
    staging_tasks.find_encoder = staging_tasks.load_encoder
    # Pickle the module by value; otherwise workers would import it again, with the real encoder.
    ray.cloudpickle.register_pickle_by_value(staging_tasks)
    return build_here(sources, settings, update=update)
