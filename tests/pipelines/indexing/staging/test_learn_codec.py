"""The token codec is learned from passages of all readable sources."""

from pathlib import Path

import numpy as np
import pytest

from cluster.index.tokens.codec import read_codec
from cluster.models.encoder import Encoder
from cluster.settings.stages.index import TokenVectorSettings
from pipelines.indexing.staging.learn_codec import SOURCES, keep_codec, sample_passages
from pipelines.indexing.staging.split_passages import make_splitter
from tests.pipelines.verify.built_index import record, write_source
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model

SPLITTER = make_splitter("characters", 512, 64)


def sources(folder: Path, count: int) -> list[Path]:
    return [
        write_source(
            folder / f"n{n:02d}.xml.gz",
            *(record(100 * n + i, f"Text {i} of file {n}.") for i in range(1, 9)),
        )
        for n in range(count)
    ]


def test_codec_sample_is_spread_over_the_files(tmp_path: Path) -> None:
    found = sample_passages(sources(tmp_path, 30), SPLITTER, 16)
    files = {int(text.split()[-1].rstrip(".")) for text in found if text.startswith("Text")}
    assert len(found) == 16
    assert (min(files), max(files), len(files)) == (0, 29, SOURCES)


def test_codec_sample_skips_unreadable_files(tmp_path: Path) -> None:
    files = sources(tmp_path, 3)
    files[1].write_bytes(files[1].read_bytes()[:40])
    files[2].unlink()
    found = sample_passages(files, SPLITTER, 30)
    assert found
    assert not any("file 2" in text for text in found)


def test_codec_is_stored_by_checksum_and_fits_the_encoder(tmp_path: Path) -> None:
    encoder = Encoder(make_tiny_encoder(tmp_path / "model"), device="cpu", dtype="float32")
    chosen = TokenVectorSettings(components=16, bits=2, pool=1, training_passages=5)
    texts = ["aspirin reduces fever", "the gene inhibits a protein"]
    path = keep_codec(tmp_path / "index", texts, encoder, chosen)
    assert path == keep_codec(tmp_path / "index", texts, encoder, chosen)
    codec = read_codec(path)
    (vectors,) = encoder.token_vectors(["aspirin reduces fever"])
    embedded = encoder.embed(["aspirin reduces fever"], encoder.compress_by(codec, 1))
    assert embedded.codes[0].shape == (len(vectors), 4)
    np.testing.assert_allclose(embedded.vectors, encoder.encode(["aspirin reduces fever"]))
    textless = keep_codec(tmp_path / "textless", [], encoder, chosen)
    assert read_codec(textless).bytes_a_token == 4
